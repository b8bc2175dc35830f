"""Aggregates of SQL as those of a plan: what is read, what is the same, what is refused in which words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.ledger import Budget
from sfumato.plan import builder as sf
from sfumato.plan.expressions.tree import Call, Column, Literal, call, literal
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.schema import Bool, Enum, Float, Int, PrivacyUnit, PrivateTable, Text
from sfumato.session import Session
from sfumato.sql.read.aggregates import is_aggregate, parse_aggregate
from sfumato.sql.read.parse import parse
from sfumato.sql.read.relation import table_relation
from sfumato.sql.read.scope import Scope

SCHEMA = {
    "country": Enum("FR", "DE"),
    "city": Text(),
    "amount": Float(0, 200),
    "age": Int(18, 99),
    "member": Bool(),
    "free": Float(),
}
TABLE = PrivateTable("visits", source=None, unit=PrivacyUnit("user_id", max_groups=3), schema=SCHEMA)
ROWS = PrivateTable("visits", source=None, unit=PrivacyUnit.row(), schema=SCHEMA)
AMOUNT, AGE, CITY = Column("amount"), Column("age"), Column("city")
HALF = Fraction(1, 2)
OLD = call("greater", AGE, literal(30))


def read(text: str, table: PrivateTable = TABLE, bounds: Any = None) -> AggregateCall:
    tree = parse_one(f"SELECT {text}", dialect="duckdb").expressions[0]
    if bounds is not None:
        found = next(node for node in tree.find_all(exp.AggFunc))
        found.meta["bounds"] = bounds
    assert is_aggregate(tree)
    scope = Scope(table_relation(table, {table.name: table}, table.name))
    return parse_aggregate(scope.resolved(tree), scope)


def only(condition: Call, value: Column) -> Call:
    return call("case", condition, value, Literal(None, None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MIN(age)", AggregateCall("min", AGE)),
        ("MAX(amount)", AggregateCall("max", AMOUNT)),
        ("MAX(DISTINCT amount)", AggregateCall("max", AMOUNT)),
        ("MEDIAN(age)", AggregateCall("quantile", AGE, level=HALF)),
        ("QUANTILE(age, 0.1)", AggregateCall("quantile", AGE, level=Fraction(1, 10))),
        ("QUANTILE_CONT(age, .25)", AggregateCall("quantile", AGE, level=Fraction(1, 4))),
        ("QUANTILE_DISC(age, 1)", AggregateCall("quantile", AGE, level=Fraction(1))),
        ("APPROX_QUANTILE(age, 1e-2)", AggregateCall("quantile", AGE, level=Fraction(1, 100))),
        ("QUANTILE_CONT(age, 1 / 3)", AggregateCall("quantile", AGE, level=Fraction(1, 3))),
        ("PERCENTILE_CONT(age, 0.5)", AggregateCall("quantile", AGE, level=HALF)),
        ("PERCENTILE_CONT(1) WITHIN GROUP (ORDER BY age)", AggregateCall("quantile", AGE, level=Fraction(1))),
        (
            "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age DESC)",
            AggregateCall("quantile", AGE, level=Fraction(1, 10)),
        ),
        ("COUNT(DISTINCT city)", AggregateCall("count_values", CITY)),
        ("COUNT(DISTINCT (user_id))", AggregateCall("count_distinct")),
        ("APPROX_COUNT_DISTINCT(city)", AggregateCall("count_values", CITY)),
        ("CORR(amount, age)", AggregateCall("corr", AMOUNT, AGE)),
        ("COVAR_POP(amount, age)", AggregateCall("covar_pop", AMOUNT, AGE)),
        ("COVAR_SAMP(age, amount)", AggregateCall("covar_samp", AGE, AMOUNT)),
    ],
)  # fmt: skip
def test_every_spelling_is_read(text: str, expected: AggregateCall) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MIN(age)", AggregateCall("min", only(OLD, AGE))),
        ("MEDIAN(amount)", AggregateCall("quantile", only(OLD, AMOUNT), level=HALF)),
        (
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY amount)",
            AggregateCall("quantile", only(OLD, AMOUNT), level=HALF),
        ),
        ("COUNT(DISTINCT city)", AggregateCall("count_values", only(OLD, CITY))),
        ("CORR(amount, age)", AggregateCall("corr", only(OLD, AMOUNT), AGE)),
        ("SUM(age)", AggregateCall("sum", only(OLD, AGE))),
    ],
)
def test_filter_leaves_the_others_missing(text: str, expected: AggregateCall) -> None:
    assert read(f"{text} FILTER (WHERE age > 30)") == expected


def test_count_if_keeps_its_filter() -> None:
    inner = call("case", Column("member"), literal(1), Literal(None, None))
    expected = call("case", OLD, inner, Literal(None, None))
    assert read("COUNT_IF(member) FILTER (WHERE age > 30)") == AggregateCall("count", expected)


def test_where_rows_are_units_distinct_values_are_counted() -> None:
    assert read("COUNT(DISTINCT age)", ROWS) == AggregateCall("count_values", AGE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("QUANTILE_CONT(age, [0.25, 0.5])", r"list of levels is not supported.*one column each"),
        ("QUANTILE_CONT(age, 1.5)", r"between 0 and 1\. Write 0\.5"),
        ("QUANTILE_CONT(age, -0.1)", "between 0 and 1"),
        ("QUANTILE_CONT(age, age)", "between 0 and 1"),
        ("QUANTILE_CONT(age, '0.5')", "between 0 and 1"),
        ("QUANTILE_CONT(age, 1 / 0)", "between 0 and 1"),
        ("QUANTILE_CONT(age, NULL)", "between 0 and 1"),
        ("PERCENTILE_CONT(0.5)", "takes an expression and a level"),
        ("QUANTILE(age)", "takes an expression and a level"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, amount)", "one expression to order by"),
        ("PERCENTILE_CONT(age, 0.5) WITHIN GROUP (ORDER BY age)", "takes the level alone"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY MAX(age))", "inside another"),
        ("SUM(age) WITHIN GROUP (ORDER BY age)", "does not go with SUM"),
        ("MIN(age, 2)", "takes one expression"),
        ("MIN(MAX(age))", "inside another"),
        ("CORR(age, MAX(age))", "inside another"),
        ("SUM(DISTINCT age)", "with DISTINCT is not supported"),
        ("MEDIAN(DISTINCT age)", "takes one expression"),
        ("COUNT(DISTINCT age, city)", "takes one expression"),
        ("COUNT(DISTINCT 1)", "of a constant"),
        ("COUNT(DISTINCT user_id) FILTER (WHERE age > 3)", "Put the condition into WHERE"),
        ("APPROX_QUANTILES(age, 4)", "one column a level"),
        ("RESERVOIR_QUANTILE(age, 0.5)", r"QUANTILE_CONT\(age, 0\.5\) works"),
        ("REGR_SLOPE(age, amount)", r"COVAR_POP\(age, amount\) / VAR_POP\(amount\)"),
        ("REGR_R2(age, amount)", r"CORR\(age, amount\)"),
        ("COVARIANCE_POP(age, amount)", r"Write COVAR_POP\(age, amount\)"),
        ("PERCENTILE(age, 95)", r"Write QUANTILE_CONT\(age, 0\.95\)\."),
        ("TOTAL(age + 1)", r"Write SUM\(x\)\."),
        ("CORR(user_id, amount)", "serves only as the privacy unit"),
        ("PRODUCT(age)", "MEDIAN, QUANTILE, CORR"),
    ],
)
def test_refusals_help(text: str, expected: str) -> None:
    with pytest.raises(QueryRefused, match=expected):
        read(text)


# ── bounds that a dialect's reader found ──


@pytest.mark.parametrize(
    "text",
    [
        *("COUNT(age)", "SUM(age)", "AVG(age)", "VAR_POP(age)", "STDDEV_POP(age)"),
        *("MEDIAN(age)", "PERCENTILE_CONT(age, 0.5)"),
    ],
)
@pytest.mark.parametrize("kind", ["row", "group"])
def test_bounds_go_with_the_call(text: str, kind: str) -> None:
    bounds = (kind, Fraction(-1, 2), Fraction(10))
    found = read(text, bounds=bounds)
    assert found.bounds == bounds
    assert found.argument == AGE


def test_bounds_stay_with_a_filter_and_within_group() -> None:
    bounds = ("row", Fraction(0), Fraction(10))
    assert read("SUM(age) FILTER (WHERE age > 30)", bounds=bounds).bounds == bounds
    text = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age)"
    assert read(text, bounds=bounds) == AggregateCall("quantile", AGE, level=HALF, bounds=bounds)


def test_bounds_where_there_can_be_none_are_refused() -> None:
    for text in ("CORR(age, amount)", "COUNT(DISTINCT city)", "COUNT(DISTINCT user_id)"):
        with pytest.raises(QueryRefused, match="takes no contribution bounds"):
            read(text, bounds=("row", Fraction(0), Fraction(1)))
    with pytest.raises(QueryRefused, match="lower first"):
        read("SUM(age)", bounds=("row", Fraction(2), Fraction(1)))


# ── the builder says the same ──


@pytest.mark.parametrize(
    ("text", "built"),
    [
        ("MIN(age)", sf.min("age")),
        ("MAX(amount + 1)", sf.max(sf.col("amount") + 1)),
        ("MEDIAN(age)", sf.median("age")),
        ("QUANTILE_CONT(age, 0.1)", sf.quantile("age", 0.1)),
        ("QUANTILE_CONT(age, 1 / 3)", sf.quantile("age", Fraction(1, 3))),
        ("COUNT(DISTINCT city)", sf.count_distinct("city")),
        ("COUNT(DISTINCT user_id)", sf.count_distinct("user_id")),
        ("COUNT(DISTINCT amount + age)", sf.count_distinct(sf.col("amount") + sf.col("age"))),
        ("CORR(amount, age)", sf.corr("amount", "age")),
        ("COVAR_SAMP(amount, 3 + age)", sf.covar("amount", 3 + sf.col("age"))),
        ("COVAR_POP(amount, age)", sf.covar("amount", "age", sample=False)),
    ],
)
def test_the_builder_makes_the_same_call(text: str, built: sf.Agg) -> None:
    selection = sf.Selection(TABLE, lambda report: report)
    assert selection.agg(x=built).child.aggregates == (read(text),)


@pytest.mark.parametrize("level", [-0.1, 1.1, "x", None, True])
def test_levels_of_the_builder_are_checked(level: Any) -> None:
    with pytest.raises(InvalidParameter):
        sf.quantile("age", level)


def test_the_builder_makes_the_same_plan() -> None:
    built = (
        sf.Selection(TABLE, lambda report: report)
        .group_by("country")
        .agg(
            c=sf.corr("amount", "age"),
            v=sf.covar("age", "amount") / sf.covar("age", "amount", sample=False),
            m=sf.median("age"),
            q=sf.quantile("amount", "0.9"),
            low=sf.min("age"),
            high=sf.max("age"),
            values=sf.count_distinct("city"),
            units=sf.count_distinct("user_id"),
        )
    )
    text = (
        "SELECT country, CORR(amount, age) AS c, COVAR_SAMP(age, amount) / COVAR_POP(age, amount) AS v,"
        " MEDIAN(age) AS m, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY amount) AS q, MIN(age) AS low,"
        " MAX(age) AS high, COUNT(DISTINCT city) AS values, COUNT(DISTINCT user_id) AS units"
        " FROM visits GROUP BY country"
    )
    assert parse(text, {"visits": TABLE}) == built


def test_pairs_are_measured_where_both_are_numbers() -> None:
    generator = np.random.default_rng(4)
    x, y = generator.uniform(0, 10, 5000), generator.uniform(-1, 1, 5000)
    x[::7], y[::5], y[::9] = np.inf, np.nan, -np.inf
    y = np.where(np.isfinite(y), y + x.clip(0, 10) / 20, y)
    x[::13], y[::17] = 40.0, -25.0  # beyond their bounds: held within them
    source = pa.table({"x": pa.array(x, mask=np.arange(5000) % 11 == 0), "y": pa.array(y)})
    table = PrivateTable(
        "t", source=source, unit=PrivacyUnit.row(), schema={"x": Float(0, 10), "y": Float(-1, 1)}
    )
    there = np.isfinite(x) & np.isfinite(y) & (np.arange(5000) % 11 != 0)
    with Session(table, budget=Budget(epsilon=10**5)) as session:
        text = "SELECT CORR(y, x) AS r, COVAR_SAMP(x, y) AS c FROM t"
        (found,) = session.sql(text).release(epsilon=10**4).table.to_pylist()
    x, y = x.clip(0, 10), y.clip(-1, 1)
    assert found["r"] == pytest.approx(np.corrcoef(x[there], y[there])[0, 1], abs=1e-3)
    assert found["c"] == pytest.approx(np.cov(x[there], y[there])[0, 1], abs=1e-3)
