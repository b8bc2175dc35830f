"""What is read follows from whose rows there are: not from their order, the threads, or the rows of others.

An engine takes 0.0 and -0.0 for one value in every order, hash and group, and all NaN for another one. Rows
that tie so must be alike to all that comes later. Two walls keep it: equal values have one form wherever rows
are ranked (`engines.forms`), and no function sees the form. Each alone is enough; without both, the tests
below fail.
"""

from __future__ import annotations

import dataclasses
import functools
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import sfumato as sf
from random_shapes import FORMS
from random_sources import ARROW, TABLES, Data, make_data
from random_sources import _Maker as Sources
from sfumato.engines import UNIT_COLUMN, engine
from sfumato.engines.base import pointer_column
from sfumato.engines.dialect import DUCKDB
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.tree import Column, Expression, call, literal
from sfumato.plan.questions.sources import Source
from sfumato.schema import pointers_of
from sfumato.sql.write import sources, typed
from sfumato.testing import exact
from ties import FLOATS, PLAIN, TEXTS, bits_of, examine_ties

THREADS = (1, 2, 8)
POINTERS = pointers_of(each for each in TABLES.values() if isinstance(each, sf.PrivateTable))


@pytest.fixture
def few(monkeypatch):
    """Joins keep few rows of each unit: every choice among rows is met."""
    monkeypatch.setattr(sources, "MOST_JOINED", 3)
    monkeypatch.setattr(sources, "MOST_PARTNERS", 2)


@pytest.fixture
def seeing(monkeypatch):
    """Functions see the sign of zero and of NaN, as those of the engine do."""
    for name, sql in (("float_to_text", "CAST({0} AS TEXT)"), ("power", "POWER({0}, {1})")):
        monkeypatch.setitem(FUNCTIONS, name, dataclasses.replace(FUNCTIONS[name], sql=sql))


@pytest.fixture
def formless(monkeypatch):
    """Values stay as they come."""
    monkeypatch.setattr(typed, "one_form", lambda value, kind, dialect: value)


# ── the case that was found: ten units with a thousand rows of each sign, and one that is large ──


def block(units: list[int], value: float, rows: int) -> pa.Table:
    return pa.table({"u": np.repeat(units, rows), "x": np.full(rows * len(units), value)})


def counted(rows: pa.Table, condition: str, threads: int) -> tuple[float, float]:
    ids = np.unique(rows["u"].to_numpy())
    unit = sf.PrivacyUnit("u", max_rows=1000)
    many = sf.PrivateTable("t", source=rows, unit=unit, schema={"x": sf.Float(-1, 1)})
    others = pa.table({"u": ids, "g": ["a"] * len(ids)})
    one = sf.PrivateTable("o", source=others, unit=unit, schema={"g": sf.Enum("a", "b")}, dataset="t")
    asked = f"SELECT COUNT(*) AS n FROM t JOIN o ON t.u = o.u WHERE {condition} OR g = 'b'"
    with sf.Session(many, one, budget=sf.Budget(10), engine=engine("duckdb", threads=threads)) as session:
        found = exact(session.sql(asked))
    return round(found.table["n"][0].as_py()), found.l1["n"]


@pytest.mark.parametrize("walls", ["both", pytest.param("forms alone", marks=pytest.mark.stats)])
@pytest.mark.parametrize(
    ("first", "second", "condition"),
    [
        (-0.0, 0.0, "POWER(x, -1) > 0"),
        (-np.nan, np.nan, "CAST(x AS TEXT) = 'nan'"),
    ],
)
def test_a_large_unit_does_not_choose_the_rows_of_others(request, walls, first, second, condition):
    if walls == "forms alone":
        request.getfixturevalue("seeing")
    units = list(range(1, 11))
    parts = [block(units, first, 1000), block([99], 1.0, 200_000), block(units, second, 1000)]
    answers = []
    for threads in THREADS:
        without, claimed = counted(pa.concat_tables(parts[::2]), condition, threads)
        with_it, _ = counted(pa.concat_tables(parts), condition, threads)
        assert abs(with_it - without) <= claimed
        answers.append((without, with_it))
    assert len(set(answers)) == 1


# ── every form of question ──


def check(form: str, seed: str, count: int, threads: int) -> None:
    outcome = examine_ties(form, seed, count, threads=threads)
    assert outcome.broken == []
    assert outcome.accepted >= 0.5 * count


@pytest.mark.parametrize("form", [*FORMS, PLAIN])
def test_neither_order_nor_threads_move_an_answer(form, few):
    threads = THREADS[[*FORMS, PLAIN].index(form) % len(THREADS)]
    check(form, "short", 2, threads)


@pytest.mark.stats
@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("walls", ["both", "forms alone", "functions alone"])
@pytest.mark.parametrize("form", [*FORMS, PLAIN])
def test_more_of_the_same(form, few, threads, walls, request):
    if walls != "both":
        request.getfixturevalue({"forms alone": "seeing", "functions alone": "formless"}[walls])
    check(form, f"long {threads}", 33, threads)


@pytest.mark.parametrize("form", ["units left", "per unit"])
def test_without_both_walls_the_order_shows(form, few, seeing, formless):
    assert examine_ties(form, 0, 33, stop=True).broken


# ── every form of source, row by row and bit by bit ──


class Telling(Sources):
    """Makes sources whose expressions see what orders do not."""

    def expression(self, facts: Mapping[str, Facts]) -> Expression:
        floats = [name for name, each in facts.items() if each.kind == "float"]
        if not floats or self.draw.random() < 0.4:
            return super().expression(facts)
        number = Column(self.draw.choice(floats))
        made = (
            number,
            call("negate", number),
            call("power", number, literal(-1)),
            call("float_to_text", number),
            call("ceil", call("divide", number, literal(3))),
            call("float_to_text", call("multiply", number, literal(-1))),
        )
        return self.draw.choice(made)

    def predicate(self, facts: Mapping[str, Facts]) -> Expression | None:
        floats = [name for name, each in facts.items() if each.kind == "float"]
        if not floats or self.draw.random() < 0.7:
            return super().predicate(facts)
        inverse = call("power", Column(self.draw.choice(floats)), literal(-1))
        return call("less", inverse, literal(0))


def nasty(draw: random.Random) -> Data:
    data = make_data(draw, most=24)
    for rows in data.values():
        for row in rows:
            for name, value in row.items():
                if name != "who" and isinstance(value, float):
                    row[name] = draw.choice(FLOATS[:2] if draw.random() < 0.6 else FLOATS)
                elif isinstance(value, str):
                    row[name] = draw.choice(TEXTS)
                elif name in ("n", "k") and value is not None:
                    row[name] = value % 2
    return data


def crowded(data: Data, draw: random.Random) -> Data:
    """The rows in another order, among those of many others."""
    crowd = {
        "visits": [{**row, "who": 100.0 + i} for i, row in enumerate(data["visits"] * 6)],
        "baskets": [
            {**row, "who": 100.0 + i, "basket": 1000 + i} for i, row in enumerate(data["baskets"] * 6)
        ],
    }
    made = {name: [*rows, *crowd.get(name, ())] for name, rows in data.items()}
    return {name: draw.sample(rows, len(rows)) for name, rows in made.items()}


@functools.cache
def opened(threads: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": threads})


def rows_of(source: Source, data: Data, threads: int) -> Counter[Any]:
    """The rows of the units below 100 as bits."""
    connection = opened(threads)
    for name, rows in data.items():
        connection.register("source", pa.Table.from_pylist(rows, schema=ARROW[name]))
        unit = f', who AS "{UNIT_COLUMN}"' if "who" in ARROW[name].names else ""
        unit += "".join(f', "{each}" AS "{pointer_column(each)}"' for each in POINTERS.get(name, ()))
        connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT *{unit} FROM source')
        connection.unregister("source")
    statement = exp.Select().select(exp.Star()).from_(sources.lower_source(source, TABLES, DUCKDB))
    found = connection.sql(statement.sql("duckdb")).to_arrow_table().to_pylist()
    made: Counter[Any] = Counter()
    for row in found:
        unit = row.pop(UNIT_COLUMN)
        if unit is None or not 100 <= unit < 1000:
            known = None if unit is None else repr(unit + 0.0)  # NaN is one unit, whatever its bits
            made[known, tuple((name, bits_of(value)) for name, value in row.items())] += 1
    return made


def compare(seed: int, depth: int) -> str:
    """What differs between a source's rows in two orders; nothing if all is well."""
    draw = random.Random(f"ties {seed}")
    source, data = Telling(draw).source(depth), nasty(draw)
    found = rows_of(source, data, 1)
    known = {bits_of(value) for value in (0.0, float("nan"))}
    for _, row in found:
        for name, value in row:
            if isinstance(value, bytes) and value not in known:
                (number,) = np.frombuffer(value)
                if number == 0 or number != number:
                    return f"{name} of {source} has another form"
    mixed = crowded(data, draw)
    same = all(rows_of(source, mixed, threads) == found for threads in THREADS[1:])
    return "" if same else f"the order shows in {source}"


@pytest.mark.parametrize("part", range(2))
def test_the_rows_of_a_source_are_the_same_to_the_last_bit(part, few, seeing):
    assert [why for seed in range(part * 12, part * 12 + 12) if (why := compare(seed, 1 + seed % 3))] == []


@pytest.mark.stats
@pytest.mark.parametrize("part", range(10, 30))
def test_more_sources_are_the_same(part, few, seeing):
    assert [why for seed in range(part * 40, part * 40 + 40) if (why := compare(seed, 1 + seed % 4))] == []


@pytest.mark.parametrize("found", ["another form", "the order shows"])
def test_a_source_without_one_form_is_noticed(found, few, seeing, formless):
    assert any(found in compare(seed, 1 + seed % 3) for seed in range(30, 60))
