"""What the guide says of each function on each engine is what dialects declare, and basics are the same."""

from __future__ import annotations

import dataclasses

import pytest

import sfumato as sf
from function_table import DIALECTS, GUIDE, TABLE, cell, table
from sfumato.engines.dialect import DUCKDB, Dialect
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.functions.dates import DATES
from sfumato.plan.expressions.functions.text import TEXT
from sfumato.plan.expressions.functions.times import TIMES
from sfumato.plan.expressions.tree import Call, Column
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.questions.relations import rows_of
from sfumato.sql.asking import ask
from sfumato.sql.write.expressions import lower_expression
from sfumato.sql.write.lower import lower

UNICODE = {"lower", "upper", "ilike"}
"""Of texts, what follows the Unicode of an engine's library: the same on ASCII."""


def test_the_guide_has_the_table_that_the_dialects_declare():
    (written,) = TABLE.findall(GUIDE.read_text())
    assert written == table()


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_each_function_is_declared_once(dialect):
    formed = set(FUNCTIONS) if dialect.common is None else {*dialect.common, *dialect.forms}
    refused = [name for names in dialect.refused.values() for name in names]
    different = [name for names in dialect.different.values() for name in names]
    assert formed.isdisjoint(refused)
    assert formed | set(refused) == set(FUNCTIONS)
    assert set(different) <= formed
    for names in (refused, different):
        assert len(names) == len(set(names))


def test_a_refusal_says_why():
    bare = dataclasses.replace(DUCKDB, name="bare", common=frozenset())
    said = dataclasses.replace(bare, refused={"zero has two signs": frozenset({"negate"})})
    for dialect, words in ((bare, r"form in bare\."), (said, r"form in bare: zero has two signs\.")):
        with pytest.raises(QueryRefused, match=words):
            lower_expression(Call("negate", (Column("i"),)), dialect)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_no_function_of_dates_times_and_texts_is_missing(dialect):
    basics = {function.name: cell(function, dialect) for function in (*DATES, *TIMES, *TEXT)}
    assert len(basics) >= 45
    others = {name: said for name, said in basics.items() if said != "same"}
    assert set(others) in (set(), UNICODE)
    assert all(said.startswith("differs: beyond ASCII") for said in others.values())


PEOPLE, VISITS = (
    sf.PrivateTable(
        name,
        source=None,
        unit=sf.PrivacyUnit("who", max_groups=2, max_rows=5),
        schema={
            "g": sf.Enum("a", "b"), "city": sf.Text(), "x": sf.Float(0, 9), "i": sf.Int(0, 50),
            "d": sf.Date("2020-01-01", "2024-12-31"), "t": sf.Timestamp("2024-01-01", "2024-12-31"),
        },
        dataset="d",
    )
    for name in ("people", "visits")
)  # fmt: skip
PLACES = sf.PublicTable(
    "places", source=None, key=["i"], schema={"i": sf.Int(0, 50), "land": sf.Enum("FR", "DE")}
)
TABLES = {each.name: each for each in (PEOPLE, VISITS, PLACES)}
JOINED = "people JOIN visits ON people.who = visits.who"
ASKED = {
    "counting": [
        "SELECT g, COUNT(*) AS n, COUNT(x) AS m FROM people WHERE x > 3 AND g IN ('a', 'b') GROUP BY g",
        "SELECT g, COUNT(DISTINCT who) AS n FROM people GROUP BY g",
        "SELECT COUNT(DISTINCT i) AS n FROM people",
    ],
    "sums": ["SELECT g, SUM(x) AS s, SUM(i * 2 + x / 3) AS w FROM people GROUP BY g"],
    "means": ["SELECT g, AVG(x) AS m, STDDEV(i) AS w, CORR(x, i) AS c FROM people GROUP BY g"],
    "quantiles": ["SELECT MEDIAN(x) AS m, QUANTILE_CONT(i, 0.9) AS q, MIN(x) AS s, MAX(i) AS t FROM people"],
    "joins": [
        f"SELECT people.g, COUNT(*) AS n FROM {JOINED} AND people.i = visits.i GROUP BY people.g",
        "SELECT land, SUM(x) AS s FROM people JOIN places ON people.i = places.i GROUP BY land",
        "SELECT COUNT(*) AS n FROM people LEFT JOIN (SELECT DISTINCT who, 1 AS w FROM visits) AS v "
        "ON people.who = v.who WHERE v.w IS NULL",
        "SELECT AVG(n) AS m FROM (SELECT who, LEAST(COUNT(*), 9) AS n FROM visits GROUP BY who) AS w",
        "SELECT COUNT(*) AS n FROM (SELECT x, ROW_NUMBER() OVER (PARTITION BY who ORDER BY x) AS r FROM "
        "people) AS w WHERE r <= 2",
    ],
    "key selection": [
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city",
        "SELECT city, g, SUM(x) AS s FROM people GROUP BY ROLLUP (city, g)",
        "SELECT city, MEDIAN(x) AS m FROM people GROUP BY city",
    ],
    "dates": [
        "SELECT EXTRACT(year FROM d) AS y, COUNT(*) AS n FROM people GROUP BY y",
        "SELECT DATE_TRUNC('month', d) AS m, AVG(x) AS x FROM people GROUP BY m",
        "SELECT EXTRACT(hour FROM t) AS h, COUNT(*) AS n FROM people WHERE t < '2024-06-30' GROUP BY h",
        "SELECT AVG(DATE_DIFF('day', DATE '2020-01-01', d)) AS x FROM people",
    ],
    "text": [
        "SELECT COUNT(*) AS n FROM people WHERE city LIKE 'L%' OR LENGTH(TRIM(city)) > 4",
        "SELECT COUNT_IF(SUBSTRING(city, 1, 2) = 'Ly') AS n, COUNT_IF(city || g = 'x') AS m FROM people",
    ],
}


def without_different(dialect: Dialect) -> Dialect:
    """The same dialect, which has no function that differs from DuckDB's."""
    different = frozenset().union(*dialect.different.values())
    return dataclasses.replace(
        dialect,
        forms={name: form for name, form in dialect.forms.items() if name not in different},
        common=frozenset(FUNCTIONS if dialect.common is None else dialect.common) - different,
    )


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("kind", ASKED)
def test_basics_are_asked_in_what_is_the_same_everywhere(dialect, kind):
    same = without_different(dialect.choosing_by("md5/1"))
    for text in ASKED[kind]:
        report = ask(text, TABLES).report
        questions = recipe(report, rows_of(report.child.source, TABLES)).questions
        assert questions
        for measured in questions:
            assert lower(measured, TABLES, same, salt=5).sql(dialect=same.writer)


def test_a_function_that_differs_is_not_among_them():
    for dialect in DIALECTS.values():
        if dialect.different:
            with pytest.raises(QueryRefused, match="LN has no proven form"):
                lower_expression(Call("ln", (Column("x"),)), without_different(dialect))
