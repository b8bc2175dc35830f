"""Casts of constants: the bare one where nothing changes, PostgreSQL's value where it does, or a refusal."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from postgres import running
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.tree import Literal
from sfumato.schema import Date, Enum, Float, Int, PrivacyUnit, PrivateTable, Text, Timestamp
from sfumato.sql.read.expressions import constant_of
from sfumato.sql.read.parse import parse
from sfumato.sql.text.statement import read

TABLE = PrivateTable(
    "visits",
    source=None,
    unit=PrivacyUnit.row(),
    schema={
        "city": Text(),
        "ward": Enum("a", "b"),
        "age": Int(0, 99),
        "spent": Float(0, 200),
        "day": Date("2024-01-01", "2024-12-31"),
        "at": Timestamp("2024-01-01 00:00:00", "2024-12-31 00:00:00"),
    },
)


def plan(text: str):
    return parse(text, {"visits": TABLE})


def where(condition: str):
    return plan(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}")


# As drivers write it, and as people do: both are one question, with one price.
SAME = [
    ("city IN ('a'::VARCHAR)", "city IN ('a')"),
    ("city IN ('b'::VARCHAR, 'a'::VARCHAR(9), CAST('c' AS TEXT))", "city IN ('a', 'b', 'c')"),
    ("ward NOT IN ('a'::VARCHAR)", "ward NOT IN ('a')"),
    ("age IN (3::INTEGER, (5)::BIGINT, '7'::SMALLINT)", "age IN (3, 5, 7)"),
    ("age IN (3::NUMERIC, (-5)::NUMERIC(10, 2))", "age IN (-5, 3)"),
    ("spent IN (3.5::FLOAT, 4.25::NUMERIC, '1e1'::DOUBLE PRECISION)", "spent IN (3.5, 4.25, 1e1)"),
    ("day IN ('2024-01-31'::DATE, '2024-02-01'::TIMESTAMP::DATE)", "day IN ('2024-01-31', '2024-02-01')"),
    ("city LIKE 'A%'::VARCHAR", "city LIKE 'A%'"),
    ("city ILIKE 'a%'::VARCHAR", "city ILIKE 'a%'"),
    ("city NOT LIKE 'A/%'::TEXT ESCAPE '/'", "city NOT LIKE 'A/%' ESCAPE '/'"),
    ("city LIKE '%' || 'x'::VARCHAR || '%'", "city LIKE '%x%'"),
    ("city LIKE '%' || 'x/%' || '%' ESCAPE '/'", "city LIKE '%x/%%' ESCAPE '/'"),
    ("city = 'x'::VARCHAR AND age > 3::INTEGER", "city = 'x' AND age > 3"),
    ("age > 3.4::INTEGER AND age < '50'::INT8", "age > 3 AND age < 50"),
    ("day >= '2024-05-01'::VARCHAR", "day >= '2024-05-01'"),
    ("day BETWEEN '2024-05-01'::VARCHAR AND '2024-06-01'::DATE", "day BETWEEN '2024-05-01' AND '2024-06-01'"),
    ("at >= '2024-05-01'::DATE::TIMESTAMP", "at >= TIMESTAMP '2024-05-01 00:00:00'"),
    ("LEFT(city, 1::INTEGER) = 'A'", "LEFT(city, 1) = 'A'"),
    (
        "city = 3::TEXT OR city = 2.5::TEXT OR city = TRUE::TEXT",
        "city = '3' OR city = '2.5' OR city = 'true'",
    ),
    ("DATE_PART('month'::VARCHAR, day) = 3", "DATE_PART('month', day) = 3"),
    ("(age > 3) = 'on'::BOOLEAN OR (age > 4) = 0::BOOLEAN", "(age > 3) = TRUE OR (age > 4) = FALSE"),
]


@pytest.mark.parametrize(("cast", "bare"), SAME)
def test_a_constant_with_its_type_is_the_constant(cast: str, bare: str) -> None:
    assert where(cast) == where(bare)


@pytest.mark.parametrize(
    ("cast", "bare"),
    [
        ("LIMIT 3::INTEGER OFFSET 1::BIGINT", "LIMIT 3 OFFSET 1"),
        ("LIMIT '3'::INTEGER", "LIMIT 3"),
        ("LIMIT (3)", "LIMIT 3"),
        ("LIMIT NULL::INTEGER", ""),
        ("FETCH FIRST (3::INTEGER) ROWS ONLY", "LIMIT 3"),
        ("HAVING COUNT(*) > 5::INTEGER", "HAVING COUNT(*) > 5"),
    ],
)
def test_limits_take_constants_with_their_type(cast: str, bare: str) -> None:
    grouped = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward "
    assert plan(grouped + cast) == plan(grouped + bare)


def test_other_places_that_take_constants_take_them_with_their_type() -> None:
    for cast, bare in (
        ("QUANTILE_CONT(age, 0.25::FLOAT)", "QUANTILE_CONT(age, 0.25)"),
        ("ROUND(AVG(age), 1::INTEGER)", "ROUND(AVG(age), 1)"),
        ("SUM(GREATEST(age, 18::INTEGER))", "SUM(GREATEST(age, 18))"),
    ):  # fmt: skip
        assert plan(f"SELECT {cast} AS x FROM visits") == plan(f"SELECT {bare} AS x FROM visits")
    ranked = (
        "SELECT ward, COUNT(*) AS n, NTILE({}) OVER (ORDER BY COUNT(*) DESC) AS t FROM visits GROUP BY ward"
    )
    assert plan(ranked.format("4::INTEGER")) == plan(ranked.format("4"))


@pytest.mark.parametrize(
    "value",
    [
        "'3.7'::INTEGER", "''::INTEGER", "'abc'::INT", "'1e3'::INTEGER", "40000::SMALLINT",
        "3000000000::INTEGER", "1e19::BIGINT", "2.5::INTEGER", "(-0.5)::INTEGER", "'abc'::DOUBLE",
        "'nan'::FLOAT", "'1e999'::FLOAT",
        "0.12345::NUMERIC", "3.14159::NUMERIC(10, 2)", "1234::NUMERIC(3, 0)", "'x'::NUMERIC", "TRUE::NUMERIC",
        "'abcd'::CHARACTER VARYING(3)", "2.50::TEXT", "1e6::TEXT", "'maybe'::BOOLEAN",
        "'o'::BOOLEAN", "''::BOOLEAN", "0.5::BOOLEAN", "'2024-13-01'::DATE", "'x'::TIME", "'x'::TIMESTAMP",
        "3::UUID", "3::FLOAT(24)", "3::INTERVAL",
    ],
)  # fmt: skip
def test_what_a_cast_would_change_in_a_doubtful_way_is_refused(value: str) -> None:
    for condition in (f"age IN ({value})", f"city LIKE {value}", f"{value} = {value}"):
        with pytest.raises(QueryRefused) as refusal:
            where(condition)
        assert refusal.value.fix
    with pytest.raises(QueryRefused):
        plan(f"SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT {value}")


@pytest.mark.parametrize(
    "limit", ["-1::INTEGER", "(-1)::INTEGER", "'3'", "3.0", "TRUE", "TRUE::TEXT", "age", "1 + 1"]
)
def test_a_limit_is_a_whole_number(limit: str) -> None:
    with pytest.raises(QueryRefused, match="LIMIT takes a whole number"):
        plan(f"SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT {limit}")


def test_a_cast_of_a_number_names_no_column_of_the_result() -> None:
    with pytest.raises(QueryRefused):
        plan("SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1::INTEGER")


def test_try_casts_and_casts_of_columns_are_as_before() -> None:
    assert where("TRY_CAST('abc' AS INTEGER) IS NULL AND age > 3")
    assert where("CAST(city AS INTEGER) > 3")
    assert where("TRY_CAST('3' AS INTEGER) < age") == where("3 < age")


TYPES = [
    "SMALLINT", "INTEGER", "BIGINT", "DOUBLE PRECISION", "NUMERIC", "NUMERIC(6, 2)", "TEXT", "VARCHAR",
    "CHARACTER VARYING(4)", "BOOLEAN", "DATE", "TIMESTAMP", "TIME",
]  # fmt: skip


def _value(draw: random.Random) -> str:
    whole = str(
        draw.choice((draw.randrange(-9, 10), draw.randrange(-40_000, 40_000), draw.randrange(10**12)))
    )
    decimal = (
        f"{draw.choice(('', '-'))}{draw.randrange(999)}.{draw.choice(('5', '25', '50', '0', '375', '99999'))}"
    )
    text = draw.choice(
        (whole, decimal, f" {whole} ", f"+{abs(int(whole))}", "true", "F", "yes", "of", "o", "on",
         "2024-02-29", "2024-02-30", "2024-02-29 08:30:00", "08:30", "", "abc", "1e2", "0x1F", "infinity")
    )  # fmt: skip
    return draw.choice((f"({whole})", f"({decimal})", f"'{text}'", "TRUE", "FALSE", "(DATE '2024-02-29')"))


def _python(value: Any) -> Any:
    """Numbers of all kinds alike."""
    return Decimal(repr(value)) if isinstance(value, float) else value


@pytest.mark.stats
def test_no_cast_of_a_constant_means_anything_but_what_postgresql_says() -> None:
    """Random constants through random casts: PostgreSQL's value, or refused."""
    draw = random.Random(24)
    kept = 0
    with running() as server, server.database() as address:
        import psycopg

        with psycopg.connect(address, autocommit=True) as postgres:
            for _ in range(1_500):
                sql = _value(draw)
                for _ in range(draw.choice((1, 1, 1, 2))):
                    sql += f"::{draw.choice(TYPES)}"
                try:
                    ours = constant_of(read(f"SELECT {sql}").selects[0])
                except QueryRefused:
                    continue
                if ours is None:
                    continue  # left to the rules for columns
                try:
                    theirs = postgres.execute(f"SELECT {sql}").fetchone()
                except psycopg.errors.CannotCoerce:  # as of truth values to BIGINT, which DuckDB has
                    continue
                assert theirs is not None
                assert isinstance(ours, Literal)
                kept += 1
                assert _python(ours.value) == _python(theirs[0]), sql
                if isinstance(ours.value, datetime.date | str | bool):
                    assert type(ours.value) is type(theirs[0]), sql
    assert kept > 400


def test_a_long_list_of_casts_is_one_of_constants() -> None:
    values = list(range(1_000))
    cast = ", ".join(f"{value}::BIGINT" for value in values)
    assert where(f"age IN ({cast})") == where(f"age IN ({', '.join(map(str, values))})")
