"""The generated statement against a slow reference in plain Python, on random tables full of surprises."""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from on_engine import rows_below
from sfumato.engines import UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB, Dialect
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.plan.questions.nodes import Key, Measured, Measurement
from sfumato.plan.questions.sensitivity import WEIGHT, sensitivities
from sfumato.schema import Bool, Date, Enum, Float, Int, PrivacyUnit, PrivateTable, Text
from sfumato.sql.write import lower as lowering
from sfumato.sql.write import parts as shared
from sfumato.sql.write.fixed_point import fixed_point
from sfumato.sql.write.typed import Typed

lower = functools.partial(lowering.lower, dialect=DUCKDB)

SCHEMA = {
    "country": Enum("FR", "DE", "IT"),
    "city": Text(),
    "amount": Float(0, 200),
    "balance": Float(-1, 3),
    "age": Int(18, 99),
    "large": Int(-(2**53), 2**53),
    "member": Bool(),
    "day": Date("2024-01-01", "2024-02-29"),
}
ARROW = pa.schema(
    [
        ("who", pa.float64()),
        ("country", pa.string()),
        ("city", pa.string()),
        ("amount", pa.float64()),
        ("balance", pa.float64()),
        ("age", pa.int64()),
        ("large", pa.int64()),
        ("member", pa.bool_()),
        ("day", pa.date32()),
    ]
)
ROWS = Measurement("rows")
UNITS = Measurement("units")
AMOUNT = Measurement("sum", Column("amount"), 0, 200 << 22, 22, whole=False)
BALANCE = Measurement("sum", Column("balance"), -(1 << 29), 3 << 29, 29, whole=False)
AGE = Measurement("sum", Column("age"), 18, 99)
LARGE = Measurement("sum", Column("large"), -(2**53), 2**53)
SPREAD = Measurement("sum", call("subtract", Column("age"), literal(58)), -40, 41)
HALVES = Measurement("sum", Column("age"), 36, 198, 1)
PRESENT = Measurement("present", Column("amount"))
NAMED = Measurement("present", Column("city"))
BORN = Measurement("present", Column("day"))
MEASUREMENTS = (ROWS, UNITS, AMOUNT, BALANCE, AGE, LARGE, SPREAD, HALVES, PRESENT, NAMED, BORN)

COUNTRY = Key(Column("country"), ("FR", "DE", "IT"))
MEMBER = Key(Column("member"), (False, True))
AGES = Key(Column("age"), tuple(range(20, 61)))
DAYS = Key(Column("day"), tuple(datetime.date(2024, 1, 1) + datetime.timedelta(i) for i in range(40)))
OLD = Key(call("less", literal(40), Column("age")), (False, True))
GROUPINGS: tuple[tuple[Key, ...], ...] = ((), (COUNTRY,), (AGES,), (DAYS,), (COUNTRY, MEMBER), (OLD, COUNTRY))
UNIT_CHOICES = (
    PrivacyUnit.row(),
    PrivacyUnit("who"),
    PrivacyUnit("who", max_groups=3),
    PrivacyUnit("who", max_groups=2, max_rows=7),
)
ADULT = call("greater_equal", Column("age"), literal(30))


def make_table(unit: PrivacyUnit) -> PrivateTable:
    return PrivateTable("visits", source=None, unit=unit, schema=SCHEMA)


def question(
    unit: PrivacyUnit,
    keys: tuple[Key, ...],
    measurements: tuple[Measurement, ...],
    *,
    adults: bool = False,
    combinations: tuple[tuple[Any, ...], ...] | None = None,
) -> Measured:
    every = tuple(itertools.product(*(key.values for key in keys)))
    return Measured(
        "visits",
        "1",
        unit,
        ADULT if adults else None,
        keys,
        every if combinations is None else combinations,
        measurements,
    )


NUMBERS = (0.0, -0.0, 1e-320, 0.1, 199.99999999999997, 200.0, 200.00000000000003, -5.0, 1e300, -1e300)
ODD = (None, math.nan, math.inf, -math.inf)


def make_rows(draw: random.Random, count: int) -> list[dict[str, Any]]:
    def some(*values: Any) -> Any:
        return draw.choice((*values, None))

    return [
        {
            "who": some(1.0, 2.0, 3.0, 4.0, 0.0, -0.0, math.nan, math.inf, float(draw.randrange(40))),
            "country": some("FR", "DE", "IT", "XX", "fr", ""),
            "city": some("Lyon", "", "Nice"),
            "amount": draw.choice((*NUMBERS, *ODD, draw.uniform(-10, 210))),
            "balance": draw.choice((*NUMBERS, *ODD, draw.uniform(-2, 4))),
            "age": some(draw.randrange(0, 120), 18, 99, -(2**63), 2**63 - 1),
            "large": some(2**63 - 1, -(2**63), 2**53, 2**53 + 1, -(2**53), draw.randrange(-(2**60), 2**60)),
            "member": some(True, False),
            "day": some(
                datetime.date(2024, 1, 1) + datetime.timedelta(draw.randrange(-3, 60)), datetime.date.max
            ),
        }
        for _ in range(count)
    ]


@functools.cache
def opened() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 2})


def connect(rows: list[dict[str, Any]]) -> duckdb.DuckDBPyConnection:
    """A connection whose table holds these rows, until the next call."""
    connection = opened()
    connection.register("source", pa.Table.from_pylist(rows, schema=ARROW))
    connection.execute('CREATE OR REPLACE TEMP TABLE "visits" AS SELECT *, who AS "sfumato unit" FROM source')
    connection.unregister("source")
    return connection


def answer(
    connection: duckdb.DuckDBPyConnection, measured: Measured, dialect: Dialect = DUCKDB
) -> dict[tuple[Any, ...], tuple[int, ...]]:
    """What the engine gives, with zeros where it gives no row."""
    table = make_table(measured.unit)
    if dialect is DUCKDB:
        result = rows_below(connection, lambda below: lower(measured, table, dialect=below), ["visits"])
    else:
        result = connection.execute(lower(measured, table, dialect=dialect).sql("duckdb")).fetchall()
    width = len(measured.keys)
    found = {row[:width]: row[width:] for row in result}
    assert len(found) == len(result)
    assert all(type(value) is int for values in found.values() for value in values)
    assert set(found) <= set(measured.combinations)
    zero = (0,) * len(measured.measurements)
    return {row: found.get(row, zero) for row in measured.combinations}


# The reference


def value_of(measurement: Measurement, row: dict[str, Any]) -> int | None:
    """What one row of weight one adds; None where it has nothing to add."""
    if measurement.kind == "rows":
        return 1
    argument = measurement.argument
    if measurement is SPREAD:
        value = None if row["age"] is None else float(row["age"]) - 58
    else:
        assert isinstance(argument, Column)
        value = row[argument.name]
    if value is None or value != value:
        return None
    if measurement.kind == "present":
        return 1
    if math.isinf(value):
        return measurement.upper if value > 0 else measurement.lower
    scaled = math.trunc(Fraction(value) * 2**measurement.bits)
    return min(max(scaled, measurement.lower), measurement.upper)


def same(unit: Any) -> Any:
    return (
        "NaN" if unit != unit else unit
    )  # one unit, as equality in the engine has it; -0.0 == 0.0 in Python too


def key_of(key: Key, row: dict[str, Any]) -> Any:
    if key is OLD:
        return None if row["age"] is None else row["age"] > 40
    assert isinstance(key.expression, Column)
    return row[key.expression.name]


def reference(rows: list[dict[str, Any]], measured: Measured) -> dict[tuple[Any, ...], tuple[int, ...]]:
    unit, combinations = measured.unit, set(measured.combinations)
    kept = []
    for row in rows:
        if measured.predicate is not None and (row["age"] is None or row["age"] < 30):
            continue
        key = tuple(key_of(each, row) for each in measured.keys)
        if key not in combinations or (unit.column is not None and row[unit.column] is None):
            continue
        kept.append((key, row))
    sizes: dict[Any, int] = {}
    groups: dict[Any, set[Any]] = {}
    for key, row in kept:
        who = same(row["who"])
        sizes[who] = sizes.get(who, 0) + 1
        groups.setdefault(who, set()).add(key)
    totals = {each: [0] * len(measured.measurements) for each in measured.combinations}
    for i, measurement in enumerate(measured.measurements):
        if measurement.kind == "units":
            for found in groups.values():
                share = unit.max_groups * WEIGHT // max(len(found), unit.max_groups) if measured.keys else 1
                for key in found:
                    totals[key][i] += share
            continue
        for key, row in kept:
            value = value_of(measurement, row)
            weight = 1
            if unit.column is not None:
                weight = unit.max_rows * WEIGHT // max(sizes[same(row["who"])], unit.max_rows)
            totals[key][i] += 0 if value is None else value * weight
    return {key: tuple(values) for key, values in totals.items()}


# Tests


@pytest.mark.parametrize("unit", UNIT_CHOICES, ids=str)
@pytest.mark.parametrize(
    "keys", GROUPINGS, ids=["none", "country", "age", "day", "country-member", "old-country"]
)
def test_statement_equals_reference(unit: PrivacyUnit, keys: tuple[Key, ...]) -> None:
    assert not mismatches(unit, keys)


@pytest.mark.parametrize("unit", UNIT_CHOICES[2:], ids=str)
@pytest.mark.parametrize("keys", [(COUNTRY,), (OLD, COUNTRY)], ids=["country", "old-country"])
def test_sizes_of_units_by_a_window_are_those_by_a_join(unit: PrivacyUnit, keys: tuple[Key, ...]) -> None:
    windowed = replace(DUCKDB, windowed=True)
    assert not mismatches(unit, keys, windowed)
    text = lower(question(unit, keys, (ROWS,)), make_table(unit), dialect=windowed).sql("duckdb")
    assert "OVER" in text
    assert "JOIN" not in text


@pytest.mark.parametrize("left_in", ["owned", "listed"])
def test_rows_that_a_window_must_not_count_are_noticed(left_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = shared.Parts.rows
    monkeypatch.setattr(
        shared.Parts, "rows", lambda self, **options: rows(self, **{**options, left_in: False})
    )
    with pytest.raises(AssertionError):
        assert not mismatches(UNIT_CHOICES[3], (COUNTRY,), replace(DUCKDB, windowed=True))


def mismatches(unit: PrivacyUnit, keys: tuple[Key, ...], dialect: Dialect = DUCKDB) -> int:
    """How many of some random questions the engine answers otherwise than the reference."""
    draw = random.Random(f"{unit} {len(keys)}")
    usable = tuple(each for each in MEASUREMENTS if each.kind != "units" or unit.column is not None)
    wrong = 0
    for count, adults in ((0, False), (50, True), (150, False)):
        rows = make_rows(draw, count)
        connection = connect(rows)
        choices = [usable, (AMOUNT, PRESENT), tuple(draw.sample(usable, 3))]
        choices += [(ROWS,)] if unit.column is None else [(UNITS,), (UNITS, ROWS)]
        for measurements in choices:
            measured = question(unit, keys, measurements, adults=adults)
            wrong += answer(connection, measured, dialect) != reference(rows, measured)
    return wrong


@pytest.mark.parametrize(
    "bug", ["no clamp", "rounded to nearest", "weight rounded up", "no cap", "NaN counted"]
)
def test_planted_bugs_are_noticed(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unclamped(value: Typed, measurement: Measurement, dialect: Dialect) -> exp.Expr:
        return fixed_point(value, replace(measurement, lower=-(2**32), upper=2**32), dialect)

    def nearest(value: Typed, measurement: Measurement, dialect: Dialect) -> exp.Expr:
        rounding = "CAST(ROUND({0}) AS BIGINT)" if dialect.whole else ""
        return fixed_point(value, measurement, replace(dialect, truncate="ROUND({0})", whole=rounding))

    def rounded_up(most: int, size: exp.Expr, _: Dialect) -> exp.Expr:
        ratio = exp.Div(this=exp.Literal.number(float(most * WEIGHT)), expression=exp.Paren(this=size))
        return exp.cast(
            exp.Least(this=exp.Ceil(this=ratio), expressions=[exp.Literal.number(WEIGHT)]), "BIGINT"
        )

    def uncapped(most: int, size: exp.Expr, _: Dialect) -> exp.Expr:
        return exp.cast(exp.Literal.number(WEIGHT), "BIGINT")

    planted: dict[str, tuple[str, Any]] = {
        "no clamp": ("fixed_point", unclamped),
        "rounded to nearest": ("fixed_point", nearest),
        "weight rounded up": ("share", rounded_up),
        "no cap": ("share", uncapped),
        "NaN counted": (
            "is_present",
            lambda value, _: exp.Is(this=value.sql.copy(), expression=exp.Null()).not_(),
        ),
    }
    name, broken = planted[bug]
    for module in (lowering, shared):
        monkeypatch.setattr(module, name, broken, raising=module is shared)
    assert mismatches(UNIT_CHOICES[3], (COUNTRY,))


def test_only_listed_combinations_take_part() -> None:
    draw = random.Random(5)
    rows = make_rows(draw, 300)
    chosen = (("FR", True), ("DE", False), ("IT", True))
    for unit, measurements in itertools.product(UNIT_CHOICES[:3], ((ROWS, AMOUNT), (UNITS, ROWS))):
        if unit.column is None and UNITS in measurements:
            continue
        measured = question(unit, (COUNTRY, MEMBER), measurements, combinations=chosen)
        assert answer(connect(rows), measured) == reference(rows, measured)


def test_no_unit_moves_the_answer_further_than_claimed() -> None:
    """One unit with all the rows, all of them extreme, comes near the claimed sensitivity, never beyond."""
    draw = random.Random(7)
    for unit, keys in itertools.product(UNIT_CHOICES[1:], GROUPINGS):
        measured = question(unit, keys, (ROWS, UNITS, AMOUNT, BALANCE, LARGE))
        claims = sensitivities(measured)
        reached = [0.0] * len(claims)
        for count in (1, 7, 40):
            rows = [{**row, "who": 1.0, "amount": 1e9, "balance": 1e9} for row in make_rows(draw, count)]
            for row in rows[: unit.max_rows]:
                row.update(large=2**63 - 1, country="FR", member=True, age=20, day=datetime.date(2024, 1, 2))
            moved = answer(connect(rows), measured)
            for i, claim in enumerate(claims):
                l1 = sum(abs(values[i]) for values in moved.values())
                assert l1 <= claim.l1
                assert sum(values[i] ** 2 for values in moved.values()) <= claim.l2_squared
                reached[i] = max(reached[i], l1 / claim.l1)
        assert min(reached) > 0.3


def test_key_filter_stays_above_the_grouping() -> None:
    connection = connect(make_rows(random.Random(1), 1000))
    statement = lower(question(PrivacyUnit.row(), (COUNTRY,), (ROWS,)), make_table(PrivacyUnit.row()))
    plan = connection.execute("EXPLAIN " + statement.sql("duckdb")).fetchall()[0][1]
    grouping, scan = plan.upper().index("GROUP BY"), plan.upper().index("SCAN")
    assert "FILTER" in plan.upper()[:grouping]
    assert "FILTER" not in plan.upper()[grouping:scan]
    assert "FILTERS" not in plan.upper()[grouping:]


def test_product_is_widened_where_it_may_not_fit() -> None:
    unit = PrivacyUnit("who")
    wide = lower(question(unit, (COUNTRY,), (LARGE,)), make_table(unit)).sql("duckdb")
    narrow = lower(question(unit, (COUNTRY,), (AMOUNT,)), make_table(unit)).sql("duckdb")
    assert "HUGEINT" in wide or "INT128" in wide
    assert "HUGEINT" not in narrow
    assert "INT128" not in narrow


def test_statement_is_built_from_nodes_alone() -> None:
    statement = lower(
        question(PrivacyUnit("who"), (COUNTRY,), (ROWS, AMOUNT, UNITS)), make_table(PrivacyUnit("who"))
    )
    assert isinstance(statement, exp.Select)
    assert not list(statement.find_all(exp.Anonymous, exp.Command))
    assert all(each.args.get("quoted") for each in statement.find_all(exp.Identifier))


@pytest.mark.parametrize("keys", [(), (COUNTRY,)], ids=["none", "country"])
@pytest.mark.parametrize("measurements", [(ROWS,), (UNITS,), (ROWS, UNITS, AMOUNT)], ids=len)
def test_units_are_told_apart_by_their_own_column_alone(
    keys: tuple[Key, ...], measurements: tuple[Measurement, ...]
) -> None:
    unit = PrivacyUnit("large")  # declared too, and so perhaps cast
    statement = lower(question(unit, keys, measurements), make_table(unit))
    names = {each.name for each in statement.find_all(exp.Column)}
    assert "large" not in names
    assert UNIT_COLUMN in names


def test_names_cannot_break_out_of_their_quotes() -> None:
    nasty = 'a"; DROP TABLE visits; --'
    table = PrivateTable("visits", source=None, unit=PrivacyUnit.row(), schema={nasty: Enum("x'; DROP", "y")})
    key = Key(Column(nasty), ("x'; DROP", "y"))
    connection = duckdb.connect()
    connection.execute('CREATE TABLE visits ("a""; DROP TABLE visits; --" VARCHAR)')
    connection.execute("INSERT INTO visits VALUES ('x''; DROP'), ('z')")
    measured = question(PrivacyUnit.row(), (key,), (ROWS,))
    assert connection.execute(lower(measured, table).sql("duckdb")).fetchall() == [("x'; DROP", 1)]


def test_clamp_beyond_exact_floats_is_refused() -> None:
    huge = Measurement("sum", Column("large"), 0, 2**60)
    with pytest.raises(InvalidParameter, match="2\\*\\*53"):
        lower(question(PrivacyUnit.row(), (), (huge,)), make_table(PrivacyUnit.row()))
