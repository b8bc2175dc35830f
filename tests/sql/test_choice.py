"""Groups chosen by a hash: every choice is met as often as any other, and no more groups than allowed."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.bounding.choose import Choose
from sfumato.sql.read.parse import parse
from sfumato.sql.write import choice
from sfumato.sql.write.lower import lower
from sfumato.testing.statistics import assert_discrete, discrete_finding

SUBSETS = dict.fromkeys(itertools.combinations(range(6), 3), 1 / 20)
UNIT = sf.PrivacyUnit("user", max_groups=2, max_rows=6)
SCHEMA = {"a": sf.Text(), "b": sf.Int(0, 3), "x": sf.Float(0, 8)}


def first_three(rank: exp.Expr, salt: int) -> list[tuple[int, ...]]:
    """For each of many units which of six groups have ranks 1, 2, 3."""
    text = f"""
        SELECT u, list(g ORDER BY g) FROM (
            SELECT u, g, {rank.sql("duckdb")} AS r
            FROM (SELECT unnest(range({salt % 97}, {salt % 97} + 100)) AS u), (SELECT unnest(range(6)) AS g)
        ) WHERE r <= 3 GROUP BY u
    """
    return [tuple(row[1]) for row in duckdb.sql(text).fetchall()]


def salts(number: int = 100) -> list[int]:
    draw = random.Random(4)
    return [draw.getrandbits(63) for _ in range(number)]


def test_which_groups_come_first_is_uniform_over_subsets():
    found = [each for salt in salts() for each in first_three(choice.rank(["g"], salt, DUCKDB), salt)]
    assert_discrete(found, SUBSETS)


def test_a_hash_that_is_taken_once_is_not_uniform():
    def once(salt):
        made = choice.rank(["g"], salt, DUCKDB)
        made.args["order"].expressions[0].set("this", made.args["order"].expressions[0].this.expressions[0])
        return made

    found = [each for salt in salts() for each in first_three(once(salt), salt)]
    assert discrete_finding(found, SUBSETS).p < 1e-9
    assert len({*first_three(once(5), 5)}) < 20


def table_of(rows):
    return sf.PrivateTable("t", source=rows, unit=UNIT, schema=SCHEMA)


def some_rows(seed):
    draw = random.Random(seed)
    return [
        (
            draw.choice([None, *range(12)]),
            draw.choice(["p", "q", None]),
            draw.randrange(4),
            draw.uniform(-1, 9),
        )
        for _ in range(300)
    ]


def answered(rows, text, salt):
    """What the statement gives, by group."""
    table = table_of(None)
    measured = measured_of(parse(text, {"t": table}), table)
    measured = replace(measured, bounding=Choose())
    made = lower(measured, {"t": table}, DUCKDB, salt=salt).sql("duckdb")
    names = (UNIT_COLUMN, "a", "b", "x")
    types = (pa.int64(), pa.string(), pa.int64(), pa.float64())
    columns = zip(*rows, strict=True) if rows else [()] * 4
    source = pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=list(names))
    with duckdb.connect() as connection:
        connection.from_arrow(source).create_view("t")
        found = connection.sql(made).to_arrow_table().to_pylist()
    keys = range(len(measured.keys))
    return {tuple(row[f"k{i}"] for i in keys): row for row in found}, measured


QUERIES = {
    "one key": "SELECT a, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY a",
    "two keys": "SELECT a, b, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY a, b",
}


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_units_count_in_few_groups_which_their_own_rows_decide(kind, seed):
    rows = some_rows(seed)
    whole, measured = answered(rows, QUERIES[kind], seed)
    units = {row[0] for row in rows if row[0] is not None}
    alone = defaultdict(Counter)
    for unit in units:
        own, _ = answered([row for row in rows if row[0] == unit], QUERIES[kind], seed)
        assert len(own) == UNIT.max_groups
        for group, row in own.items():
            alone[group].update({name: row[name] for name in row if name[0] in "ms"})
    names = [*(f"m{i}" for i in range(len(measured.measurements))), choice.UNITS]
    assert {group: {name: row[name] for name in names} for group, row in whole.items()} == {
        group: {name: total[name] for name in names} for group, total in alone.items()
    }
    shuffled = sorted(rows, key=str)
    assert answered(shuffled, QUERIES[kind], seed)[0] == whole
    assert answered(rows, QUERIES[kind], seed + 100)[0] != whole


def test_groups_of_one_hash_are_told_apart(monkeypatch):
    # Were every hash the same, the groups themselves would decide, and not one more of them would count.
    true = choice.rank

    def constant(columns, salt, dialect):
        made = true(columns, salt, dialect)
        made.args["order"].expressions[0].set("this", exp.Literal.number(1))
        return made

    monkeypatch.setattr(choice, "rank", constant)
    for text in QUERIES.values():
        rows = [(1, a, b, 1.0) for a in "pqrs" for b in range(4)]
        assert len(answered(rows, text, 0)[0]) == UNIT.max_groups
