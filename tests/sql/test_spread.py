"""Weights of units in groups that are found in two rounds: the statement against a slow reading of it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from datafusion_engine import DataFusion
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB, PORTABLE
from sfumato.mechanisms import AdaptiveSelection
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.bounding import boundings
from sfumato.plan.questions.spread import Spread
from sfumato.sql.read.parse import parse
from sfumato.sql.write import choice
from sfumato.sql.write.lower import UNITS, WEIGHTS, lower
from two_rounds import weights_of

UNIT = sf.PrivacyUnit("user", max_groups=3, max_rows=12)
SCHEMA = {"a": sf.Text(), "b": sf.Int(), "x": sf.Float(0, 8)}
STEPS = AdaptiveSelection(1, "0.01", groups=3).steps
QUERIES = {
    "one key": "SELECT a, SUM(x) AS s FROM t GROUP BY a",
    "two keys": "SELECT a, b, SUM(x) AS s FROM t WHERE x > 1 GROUP BY a, b",
    "a public key": "SELECT UPPER(a) AS a, b, SUM(x) AS s FROM t WHERE b IN (1, 2) GROUP BY 1, b",
}
TYPES = (pa.int64(), pa.string(), pa.int64(), pa.float64())
ROWS = [
    (unit, draw.choice(["p", "q", "it's", "", None]), draw.choice([None, 1, 2, 2]), draw.uniform(-1, 9))
    for draw in [random.Random(7)]
    for unit in draw.choices([None, *range(5)], k=80)
]


def arrow(rows, names=("user", "a", "b", "x")):
    columns = zip(*rows, strict=True) if rows else [()] * 4
    return pa.table([pa.array(c, t) for c, t in zip(columns, TYPES, strict=True)], names=list(names))


SHARED = DUCKDB.choosing_by(PORTABLE.name)
DATABASE = duckdb.connect()


def statement(text, spread, dialect=SHARED):
    table = sf.PrivateTable("t", source=None, unit=UNIT, schema=SCHEMA)
    measured = measured_of(parse(text, {"t": table}), table)
    return lower(measured, {"t": table}, dialect, salt=5, spread=spread), len(measured.keys)


def fetched(rows, text, spread):
    """What the statement gives, by group."""
    made, keys = statement(text, spread)
    DATABASE.register("t", arrow(rows, (UNIT_COLUMN, "a", "b", "x")))
    found = DATABASE.sql(made.sql("duckdb")).to_arrow_table().to_pylist()
    return {tuple(row[f"k{i}"] for i in range(keys)): row for row in found}


def groups_of_units(text):
    """The groups that count of each unit, from its own rows alone."""
    units = {row[0] for row in ROWS if row[0] is not None}
    return [list(fetched([r for r in ROWS if r[0] == unit], text, None)) for unit in units]


@pytest.mark.parametrize("kind", QUERIES)
def test_both_rounds_weigh_as_a_slow_reading_does(kind):
    text = QUERIES[kind]
    units = groups_of_units(text)
    assert max(map(len, units)) == UNIT.max_groups
    plain, first = fetched(ROWS, text, None), fetched(ROWS, text, Spread(STEPS))
    assert {group: row[WEIGHTS] for group, row in first.items()} == weights_of(STEPS, units)
    # Whatever else is read stays as it is: sums, and the number of units.
    assert {group: {**row, WEIGHTS: 0} for group, row in first.items()} == {
        group: {**row, WEIGHTS: 0} for group, row in plain.items()
    }
    groups = sorted(first, key=str)
    some = [groups[::2], [group for group in groups if None in group], []]
    for without in some:
        second = fetched(ROWS, text, Spread(STEPS, tuple(without)))
        assert {group: row[WEIGHTS] for group, row in second.items()} == weights_of(STEPS, units, without)
        assert all(second[group][UNITS] == plain[group][UNITS] for group in second)


def ranked_rows():
    """Rows as a table prepared for a grouping by `a` has them: with ranks of groups and of rows in each."""
    groups, places = {}, Counter()
    for unit, a, b, x in ROWS:
        if unit is not None:
            places[unit, a] += 1
            own = groups.setdefault(unit, [])
            own += [a] if a not in own else []
            yield unit, a, b, x, own.index(a) + 1, places[unit, a]


def test_ranks_of_a_prepared_table_weigh_alike():
    rows = list(ranked_rows())
    table = sf.PrivateTable("t", source=None, unit=UNIT, schema=SCHEMA)
    measured = measured_of(parse(QUERIES["one key"], {"t": table}), table)
    measured = replace(measured, bounding=boundings()["grouped"])
    names = [UNIT_COLUMN, "a", "b", "x", GROUP_COLUMN, PLACE_COLUMN]
    kinds = [*TYPES, pa.int64(), pa.int64()]
    columns = [pa.array(c, t) for c, t in zip(zip(*rows, strict=True), kinds, strict=True)]
    DATABASE.register("t", pa.table(columns, names=names))
    units = [{(row[1],) for row in rows if row[0] == unit and row[4] <= 3} for unit in range(5)]

    def read(spread):
        made = lower(measured, {"t": table}, SHARED, spread=spread).sql("duckdb")
        return {(row["k0"],): row for row in DATABASE.sql(made).to_arrow_table().to_pylist()}

    plain, first, without = read(None), read(Spread(STEPS)), ((None,), ("q",))
    assert {group: {**row, WEIGHTS: 0} for group, row in first.items()} == {
        group: {**row, WEIGHTS: 0} for group, row in plain.items()
    }
    assert {group: row[WEIGHTS] for group, row in first.items()} == weights_of(STEPS, units)
    second = read(Spread(STEPS, without))
    assert {group: row[WEIGHTS] for group, row in second.items()} == weights_of(STEPS, units, without)


def test_weights_that_forget_some_groups_are_noticed(monkeypatch):
    right = choice.weighed

    def by_all(pairs, parts, spread):
        return right(pairs, parts, Spread(spread.steps))

    monkeypatch.setattr(choice, "weighed", by_all)
    with pytest.raises(AssertionError):
        test_both_rounds_weigh_as_a_slow_reading_does("two keys")


@pytest.mark.parametrize("kind", ["one key", "two keys"])
def test_a_second_engine_weighs_alike(kind):
    text, engine = QUERIES[kind], DataFusion()
    engine.attach("t", arrow(ROWS), {"a": "text", "b": "integer", "x": "float"}, unit="user")
    for without in (None, ((None, 2), ("it's", 1)) if kind == "two keys" else ((None,), ("q",))):
        spread = Spread(STEPS, without)
        made, keys = statement(text, spread, engine.dialect)
        told = {
            tuple(row[f"k{i}"] for i in range(keys)): int(row[WEIGHTS])
            for row in engine.fetch(made).to_pylist()
        }
        assert told == {group: row[WEIGHTS] for group, row in fetched(ROWS, text, spread).items()}
        assert len(told) > 2
