"""One question, every engine: the same integers before noise, and the same values of every function."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import random

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

import sfumato as sf
from neighbours import examine, examine_form
from postgres_engine import FilledPostgres, PostgresStore, shared
from random_shapes import FORMS
from sfumato.engines.dialect import DUCKDB, Dialect
from sfumato.engines.postgres.dialect import POSTGRES
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.tree import Call, Expression
from sfumato.sql.write.expressions import lower_expression
from sfumato.testing import check_engine, exact
from sfumato.testing.calls import FACTS, accepted, check, inside, nasty

STORES = {"postgres": PostgresStore}
ENGINES = {"postgres": FilledPostgres}
OTHERWISE = {
    "postgres": {"upper": "letters that have a capital form only since Unicode 5", "log2": "last digits"}
}
"""What an engine computes otherwise than DuckDB: exact there, and not the same."""


def sizes(few: int, many: int) -> list[object]:
    """How far a search goes: a few each time, many among the statistical tests."""
    return [few, pytest.param(many, marks=pytest.mark.stats)]


_FIRST, _LAST = -2440588, 2145031948  # the days that PostgreSQL has


def ordinary(rows: pa.Table) -> pa.Table:
    """The rows that all engines can hold: PostgreSQL has no text with NUL, and fewer days."""
    columns = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_date32(field.type):
            days = column.cast(pa.int32()).to_pylist()
            days = [None if day is None or not _FIRST <= day <= _LAST else day for day in days]
            columns[field.name] = pa.array(days, pa.int32()).cast(pa.date32())
        elif pa.types.is_string(field.type):
            texts = [None if text is None else text.replace("\x00", "") for text in column.to_pylist()]
            columns[field.name] = pa.array(texts)
        else:
            columns[field.name] = column
    return pa.table(columns)


TABLES = {"nasty": ordinary(nasty()), "inside": ordinary(inside())}


@pytest.fixture(scope="module", params=sorted(ENGINES))
def pair(request):
    """DuckDB and another engine over the same tables."""
    shared()
    first, second = duckdb.connect(config={"threads": 1}), ENGINES[request.param]()
    for name, rows in TABLES.items():
        first.register(name, rows)
        second.attach(name, rows, {column: facts.kind for column, facts in FACTS.items()})
    yield request.param, first, second
    second.close()


def values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return [int(value) if pa.types.is_decimal(column.type) and value is not None else value
            for value in column.to_pylist()]  # fmt: skip


def same(first: object, second: object) -> bool:
    if isinstance(first, bool) or isinstance(second, bool) or None in (first, second):
        return first is second
    if isinstance(first, int | float) and isinstance(second, int | float):
        return first == second or (math.isnan(first) and math.isnan(second))
    return first == second


def shown(expressions: list[Expression], dialect: Dialect, table: str) -> exp.Select:
    columns = [exp.alias_(lower_expression(each, dialect), f"c{i}", quoted=True)
               for i, each in enumerate(expressions)]  # fmt: skip
    return exp.Select().select(*columns).from_(exp.Table(this=exp.to_identifier(table, quoted=True)))


def calls(expression: Expression) -> set[str]:
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*map(calls, expression.arguments))


def test_every_function_has_a_form():
    assert not set(POSTGRES.forms) & (POSTGRES.common or set())
    assert set(POSTGRES.forms) | (POSTGRES.common or set()) == set(FUNCTIONS)


@pytest.mark.parametrize("how_many", sizes(3, 24))
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_give_the_same(pair, name, how_many):
    which, first, second = pair
    apart = set(OTHERWISE[which])
    if name in apart:
        return
    made = [each for each, _ in accepted(name, how_many, only=lambda each: not calls(each) & apart)]
    for table in TABLES:
        mine = first.sql(DUCKDB.text(shown(made, DUCKDB, table))).to_arrow_table()
        its = second.fetch(shown(made, second.dialect, table))
        for expression, ours, theirs in zip(made, mine.columns, its.columns, strict=True):
            different = [pair for pair in zip(values(ours), values(theirs), strict=True) if not same(*pair)]
            assert different == [], expression


@pytest.mark.parametrize("how_many", sizes(2, 16))
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_results_lie_within_the_facts(pair, name, how_many):
    _, _, second = pair
    found = accepted(name, how_many, seed=1)
    columns = second.fetch(shown([expression for expression, _ in found], second.dialect, "inside")).columns
    for column, (expression, facts) in zip(columns, found, strict=True):
        if not pa.types.is_decimal(column.type):
            check(column, facts, expression)


def rows_of(seed: int) -> pa.Table:
    draw = random.Random(seed)
    odd = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 2.5, 7.25, 1e300, 5e-324, 1e15, 0.1]
    cells = [
        (
            draw.choice([None, *range(30)]),
            draw.choice(["FR", "DE", "de", "É", "XX", None]),
            draw.choice([*odd, draw.uniform(-3, 12)]),
            draw.randrange(6),
        )
        for _ in range(500)
    ]
    types = (pa.int64(), pa.string(), pa.float64(), pa.int64())
    columns = [pa.array(values, kind) for values, kind in zip(zip(*cells, strict=True), types, strict=True)]
    return pa.table(columns, names=["user", "country", "x", "b"])


QUERIES = (
    "SELECT country, COUNT(*) AS n, SUM(x) AS s, AVG(b) AS a FROM t GROUP BY country",
    "SELECT COUNT(*) AS n, SUM(x * b) AS s FROM t WHERE x / b < 3 OR country IS NULL",
    "SELECT b, COUNT(DISTINCT user) AS n FROM t GROUP BY b",
    "SELECT country, VARIANCE(x) AS v FROM t WHERE ABS(x) > 0.5 GROUP BY country",
    "SELECT AVG(CASE WHEN b > 2 THEN x ELSE b END) AS a FROM t",
    "SELECT COUNT(*) AS n FROM (SELECT user, SUM(x) AS s FROM t GROUP BY user) AS w WHERE s > 3",
    "SELECT COUNT(*) AS n FROM t JOIN t AS o ON t.user = o.user AND t.b = o.b",
    "SELECT MEDIAN(x) AS m FROM t",
)
UNITS = (sf.PrivacyUnit.row(), sf.PrivacyUnit("user", max_groups=2, max_rows=4))


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("unit", UNITS, ids=["rows", "users"])
@pytest.mark.parametrize("other", sorted(ENGINES))
def test_questions_are_answered_alike_before_noise(text, unit, other):
    shared()
    if unit.column is None and "user" in text:
        text = QUERIES[0]
    schema = {"country": sf.Enum("FR", "DE"), "x": sf.Float(0, 8), "b": sf.Int(0, 5)}
    table = sf.PrivateTable("t", source=rows_of(3), unit=unit, schema=schema)
    found = []
    with contextlib.closing(ENGINES[other]()) as second:
        for engine in (None, second):
            with sf.Session(table, budget=sf.Budget(10, 1e-6), engine=engine) as session:
                found.append(exact(session.sql(text)))
    assert found[0] == found[1]


KINDS = {
    "b": (sf.Bool(), [True, False, None]),
    "n": (sf.Int(0, 5), [0, 4, 9, None]),
    "x": (sf.Float(0, 8), [0.5, -3.0, math.nan, None, 7.25]),
    "e": (sf.Enum("FR", "DE"), ["FR", "DE", "XX", None]),
    "s": (sf.Text(), ["a", "É", "", None]),
    "d": (sf.Date("2020-01-01", "2020-12-31"), [dt.date(2020, 2, 29), dt.date(2021, 1, 1), None]),
    "m": (sf.Timestamp("2020-01-01", "2020-12-31"), [dt.datetime(2020, 2, 29, 13, 5), None]),
    "c": (sf.Time(), [dt.time(13, 5, 1), dt.time(0), None]),
}
"""A column of each kind, and its cells, which come round."""
TRUE = ("x > 2", "b AND n > 1", "e IS NULL", "d < DATE '2020-06-01'")
FRAMES = (
    *(f"SELECT {each}({{0}}) AS a FROM t" for each in ("COUNT", "SUM", "AVG", "VARIANCE", "MEDIAN")),
    "SELECT COUNT(DISTINCT {0}) AS a FROM t",
    "SELECT {0} AS k, COUNT(*) AS a FROM t GROUP BY {0}",
    "SELECT COUNT(*) AS a FROM t WHERE {0} = {0}",
    "SELECT SUM(CASE WHEN b THEN {0} END) AS a FROM t",
    "SELECT AVG(CAST({0} AS BOOLEAN)) AS a FROM t",
    *(
        f"SELECT SUM(LEAST(GREATEST(CAST({{0}} AS {each}), 0), 9)) AS a FROM t"
        for each in ("INTEGER", "DOUBLE")
    ),
)
ASKED = [frame.format(f"({value})") for value in (*KINDS, *TRUE) for frame in FRAMES]


def told(session: sf.Session, text: str) -> object:
    """What is read for a question; or that it is refused, which is known before anything is read."""
    try:
        return exact(session.sql(text))
    except QueryRefused:
        return "refused"


@pytest.mark.parametrize("how_many", sizes(24, len(ASKED)))
@pytest.mark.parametrize("other", sorted(ENGINES))
def test_questions_about_columns_of_any_kind_are_answered_alike(other, how_many):
    shared()
    asked = random.Random(1).sample(ASKED, how_many)
    schema = {name: kind for name, (kind, _) in KINDS.items()}
    rows = pa.table({name: [cells[i % len(cells)] for i in range(60)] for name, (_, cells) in KINDS.items()})
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit.row(), schema=schema)
    found = []
    with contextlib.closing(ENGINES[other]()) as second:
        for engine in (None, second):
            with sf.Session(table, budget=sf.Budget(10, 1e-6), engine=engine) as session:
                found.append({text: told(session, text) for text in asked})
    assert found[0] == found[1]
    assert sum(answer != "refused" for answer in found[0].values()) > len(asked) // 2


@pytest.mark.parametrize("other", sorted(ENGINES))
def test_it_keeps_what_statements_rely_on(other):
    shared()
    check_engine(ENGINES[other])


@pytest.mark.parametrize("how_many", sizes(24, 240))
@pytest.mark.parametrize("other", sorted(STORES))
def test_no_unit_moves_a_query_further_than_claimed(other, how_many):
    shared()
    found = examine(other, how_many, plain=True, store=STORES[other])
    assert found.broken == []
    assert found.accepted >= how_many // 3
    assert found.reached >= how_many // 24


@pytest.mark.parametrize("how_many", sizes(2, 16))
@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("other", sorted(STORES))
def test_no_unit_moves_a_question_of_any_form_further_than_claimed(other, form, how_many):
    shared()
    found = examine_form(form, other, how_many, store=STORES[other])
    assert found.broken == []
    assert found.accepted >= 1
