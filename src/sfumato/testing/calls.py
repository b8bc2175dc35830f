"""Random calls of every scalar function, tables with odd and ordinary values, and what results must keep."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa

from sfumato.errors import QueryRefused
from sfumato.numeric.moments import FIRST, LAST
from sfumato.plan.expressions.deduce import resolve_with_facts
from sfumato.plan.expressions.facts import Facts, column_facts, domain_of
from sfumato.plan.expressions.ranges import place_of
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, literal
from sfumato.schema import Bool, ColumnType, Date, Enum, Float, Int, Text, Time, Timestamp

__all__ = [
    "BY_KIND",
    "CALLS",
    "FACTS",
    "SCHEMA",
    "TYPES",
    "accepted",
    "check",
    "inside",
    "nasty",
    "place",
    "random_call",
]

SCHEMA: dict[str, ColumnType] = {
    "i": Int(-50, 40),
    "j": Int(0, 9, nullable=False),
    "big": Int(),
    "x": Float(-3.5, 7.25),
    "y": Float(0, 0.1, nullable=False),
    "z": Float(),
    "e": Enum("FR", "de", "Été"),
    "n": Enum(1, 2, 5),
    "t": Text(),
    "p": Bool(),
    "q": Bool(nullable=False),
    "d": Date("2019-12-30", "2021-03-01"),
    "w": Date(),
    "m": Timestamp("2019-12-30T20:15:00", "2020-03-01T04:00:59"),
    "o": Timestamp("2024-02-29T10:20:30", "2024-02-29T10:50:00", nullable=False),
    "v": Timestamp(),
    "c": Time(),
    "k": Time("08:05:10", "08:59:00", nullable=False),
}
FACTS: dict[str, Facts] = {name: column_facts(kind) for name, kind in SCHEMA.items()}
TYPES: dict[str, pa.DataType] = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.int64(),  # as engines hold them
    "time": pa.int64(),
}
BY_KIND: dict[str, list[str]] = {
    kind: [name for name, facts in FACTS.items() if facts.kind == kind]
    for kind in ("integer", "float", "text", "boolean", "date", "timestamp", "time")
}

NASTY: dict[str, list[Any]] = {
    "integer": [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**53, -(2**53) - 1, 7, 50_000_000],
    "float": [None, 0.0, -0.0, math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, 0.5, -2.5, 1e19,
              2.0**63],
    "text": [None, "", " ", "a", "FR", "naïve", "🤦🏼‍♂️", "ß", "İ", "%_\\", "'", "12", "-1e400", "nan",
             "2024-02-30", "infinity", "2024-02-28", "0001-01-01", "x" * 3000, "\x00", "true",
             "９", "e\u0301", "9" * 400],
    "boolean": [None, True, False],
    # the ends of the engine's dates and its infinities, as days
    "date": [None, 0, -719162, 2932896, 2147483647, -2147483647, 2147483646, -2147483646, 18321, -800000,
             2932897],
    # no engine shows any beyond its ends
    "timestamp": [None, 0, -1, 1, FIRST, LAST, FIRST + 1, LAST - 86399, 86399, 86400, -86400, 951782399,
                  1709164800, -719162 * 86400 + 86399],
    "time": [None, 0, 86399, 43200, 3599, 3600, 59, 60],
}  # fmt: skip


def nasty(rows: int = 200) -> pa.Table:
    """A table of values at the ends of their types, and of odd ones."""
    draw = random.Random(1)
    cells = {
        name: [draw.choice(NASTY[str(facts.kind)]) for _ in range(rows)] for name, facts in FACTS.items()
    }
    return _table(cells)


def _table(cells: dict[str, list[Any]]) -> pa.Table:
    """Columns in the types that engines hold; days are numbers."""
    columns = {}
    for name, values in cells.items():
        kind = str(FACTS[name].kind)
        days = pa.array(values, pa.int32()).cast(pa.date32()) if kind == "date" else None
        columns[name] = pa.array(values, TYPES[kind]) if days is None else days
    return pa.table(columns)


def _inside(name: str, draw: random.Random) -> Any:
    facts = FACTS[name]
    if facts.nullable and draw.random() < 0.15:
        return None
    if facts.values is not None:
        return draw.choice(facts.values)
    match facts.kind:
        case "integer":
            return draw.randint(*map(int, _ends(facts, 2000)))
        case "float":
            low, high = map(float, _ends(facts, 10**6))
            return draw.choice(
                [
                    low,
                    high,
                    0.0,
                    min(max(round(draw.uniform(low, high), 1), low), high),
                    draw.uniform(low, high),
                ]
            )
        case "text":
            return draw.choice(
                [
                    "",
                    "a",
                    "Ab",
                    "  b ",
                    "12",
                    "-3.5",
                    "abcabc",
                    "zürich",
                    "2024-02-28",
                    "x%y",
                    "no",
                    "日本語",
                    "TRUE",
                ]
            )
    first, last = map(int, _ends(facts, 100_000 if facts.kind == "date" else 10**10))
    return draw.choice([first, last, draw.randint(first, last)])


def _ends(facts: Facts, wide: int) -> tuple[Fraction, Fraction]:
    """The declared bounds, or some that are wide."""
    if facts.lower is None or facts.upper is None:
        return Fraction(-wide), Fraction(wide)
    return Fraction(facts.lower), Fraction(facts.upper)


def inside(rows: int = 150) -> pa.Table:
    """A table of ordinary values, within what is declared."""
    draw = random.Random(2)
    return _table({name: [_inside(name, draw) for _ in range(rows)] for name in FACTS})


# What each function is called with: kinds, or lists of constants.
N, S, D, P, M, C = "number", "text", "date", "boolean", "timestamp", "time"
WHOLE, ANY = "integer", "any"
CALLS: dict[str, list[tuple[Any, ...]]] = {
    "add": [(N, N), (D, WHOLE), (WHOLE, D)],
    "subtract": [(N, N), (D, WHOLE), (D, D)],
    "multiply": [(N, N)],
    "divide": [(N, N)],
    "int_divide": [(WHOLE, WHOLE)],
    "modulo": [(N, N), (WHOLE, WHOLE)],
    **{name: [(N,)] for name in ("negate", "abs", "sign", "floor", "ceil", "trunc")},
    **{name: [(N,)] for name in ("sqrt", "ln", "log10", "log2", "exp")},
    "round": [(N,), (N, [0, 1, 2, 15, -1, -3, -15])],
    "power": [(N, [0, 1, 2, 3, -1, -2, 0.5, 2.5, -0.5, 40]), (N, N)],
    "width_bucket": [(N, [-3, 0, 0.1], [1, 7.5, 10**6], [1, 5, 100])],
    **{name: [(ANY, ANY)] for name in ("equal", "not_equal", "less", "less_equal")},
    **{name: [(ANY, ANY)] for name in ("greater", "greater_equal")},
    "is_distinct": [(ANY, ANY)],
    "is_not_distinct": [(ANY, ANY)],
    "in": [(N, [0, 1], [5, -1], [0.5]), (S, ["a", "FR"], ["12"]), (D, [datetime.date(2020, 2, 29)]),
           (M, [datetime.datetime(2020, 2, 29, 1)], [datetime.datetime(2024, 2, 29, 10, 30)]),
           (C, [datetime.time(8, 30)])],
    "and": [(P, P), (P, P, P), (P,)],
    "or": [(P, P), (P, P, P)],
    "not": [(P,)],
    "is_null": [(N,), (S,), (D,), (P,), (M,), (C,)],
    "case": [(P, ANY, ANY), (P, ANY, P, ANY, ANY), (P, N, [None]), (P, ["a"], ["b"])],
    "coalesce": [(ANY, ANY), (N, N, [0]), (S, ["none"])],
    "nullif": [(ANY, ANY), (N, [0])],
    "greatest": [(N, N), (N, N, [3]), (D, D), (M, M), (C, C), (M, D)],
    "least": [(N, N), (N, N, [3]), (D, D), (M, M), (C, C), (M, D)],
    "lower": [(S,)],
    "upper": [(S,)],
    **{name: [(S,), (S, ["ab", " ", "", "é"])] for name in ("trim", "ltrim", "rtrim")},
    "length": [(S,)],
    "substring": [(S, [1, 2, 2**31 - 1]), (S, [1, 3], [0, 2, 2**31 - 1])],
    "left": [(S, [0, 1, 2**31 - 1])],
    "right": [(S, [0, 1, 2**31 - 1])],
    "append": [(S, S)],
    "concat": [(S,), (S, S), (S, S, ["-"])],
    "replace": [(S, ["ab", "a", "", "é"], ["", "b"])],
    "like": [(S, ["a%", "%b%", "_", "", "%", "x\\%", "'"]), (S, ["a!%b", "!!%"], ["!"])],
    "ilike": [(S, ["A%", "fr", "%É%"]), (S, ["A!_%"], ["!"])],
    **{name: [(S, S), (S, ["a", "", "é"])] for name in ("starts_with", "ends_with", "contains", "position")},
    **{name: [(D,), (M,)] for name in ("year", "quarter", "month", "day")},
    **{name: [(D,), (M,)] for name in ("dayofweek", "isodow", "dayofyear", "week")},
    **{name: [(D,), (M,)] for name in ("trunc_year", "trunc_quarter", "trunc_month", "trunc_week")},
    "trunc_day": [(D,), (M,)],
    "add_days": [(D, WHOLE), (D, [0, 31, -4_000_000, 4_000_000, 5_000_000]), (M, WHOLE), (M, [1, 4_000_000])],
    "subtract_days": [(D, WHOLE), (D, [1, 4_000_000]), (M, [1, 9_000_000])],
    "add_months": [(D, [0, 1, -1, 12, 13, -120_000, 120_000]), (M, [0, 1, -1, 13, 120_000])],
    "days_between": [(D, D), (M, M), (D, M)],
    **{name: [(M,), (C,)] for name in ("hour", "minute", "second", "epoch", "trunc_hour", "trunc_minute")},
    **{name: [(M, M), (C, C), (M, D)] for name in ("seconds_between", "minutes_between", "hours_between")},
    "add_seconds": [(M, WHOLE), (D, [3600]), (M, [0, 3600, -3600, 10**12, -(10**12), 2**62])],
    "timestamp_to_date": [(M,)],
    "timestamp_to_time": [(M,)],
    "date_to_timestamp": [(D,)],
    "to_timestamp": [(M,), (D,)],
    "to_time": [(M,), (C,)],
    "to_integer": [(N,), (P,), (S,)],
    "to_float": [(N,), (P,), (S,)],
    "to_text": [(N,), (P,), (S,), (D,)],
    "float_to_text": [("float",)],
    "integer_to_text": [(WHOLE,)],
    "to_date": [(S,), (D,), (M,)],
    "to_boolean": [(N,), (P,), (S,)],
}  # fmt: skip
GIVES: dict[str, tuple[str, ...]] = {
    "number": (
        "add",
        "multiply",
        "divide",
        "floor",
        "round",
        "abs",
        "length",
        "year",
        "negate",
        "modulo",
        "case",
    ),
    "float": ("to_float", "divide", "sqrt", "exp"),
    "integer": (
        "floor",
        "length",
        "year",
        "sign",
        "int_divide",
        "to_integer",
        "dayofweek",
        "hour",
        "epoch",
        "minutes_between",
    ),
    "text": ("upper", "left", "concat", "append", "trim", "to_text", "case"),
    "date": (
        "trunc_month",
        "add_days",
        "add_months",
        "to_date",
        "coalesce",
        "trunc_week",
        "timestamp_to_date",
    ),
    "timestamp": ("trunc_hour", "add_seconds", "date_to_timestamp", "coalesce", "greatest", "to_timestamp"),
    "time": ("timestamp_to_time", "trunc_minute", "to_time", "coalesce"),
    "boolean": ("less", "is_null", "and", "not", "like", "to_boolean", "in"),
}
CONSTANTS: dict[str, list[Any]] = {
    "number": [0, 1, -1, 2, 10, 0.5, -2.5, 0.1, 1e-3, 7, 1000],
    "float": [0.0, 0.5, -2.5, 1e300],
    "integer": [0, 1, -1, 2, 10, 7],
    "text": ["a", "", "FR", "b%", "é"],
    "date": [datetime.date(2020, 2, 29), datetime.date(1970, 1, 1), datetime.date.max, datetime.date.min],
    "timestamp": [
        datetime.datetime(2020, 2, 29, 12, 30, 1),
        datetime.datetime(1970, 1, 1),
        datetime.datetime(1969, 12, 31, 23, 59, 59),
        datetime.datetime.min,
        datetime.datetime(9999, 12, 31, 23, 59, 59),
    ],
    "time": [datetime.time(), datetime.time(8, 30), datetime.time(23, 59, 59)],
    "boolean": [True, False],
}


def random_call(name: str, draw: random.Random, depth: int = 2) -> Expression:
    """A call of a function with columns, constants and calls of others."""
    shape = draw.choice(CALLS[name])
    kind = draw.choice(["number", "text", "date", "boolean", "timestamp", "time"])
    return Call(name, tuple(_argument(each, kind, draw, depth) for each in shape))


def _argument(shape: object, shared: str, draw: random.Random, depth: int) -> Expression:
    if isinstance(shape, list):
        return literal(draw.choice(shape))
    kind = shared if shape == ANY else str(shape)
    luck = draw.random()
    if depth > 1 and luck < 0.35:
        return random_call(draw.choice(GIVES[kind]), draw, depth - 1)
    if luck < 0.45:
        return literal(draw.choice(CONSTANTS[kind]))
    if luck < 0.48:
        return Literal(None, None)
    return Column(draw.choice(BY_KIND["integer"] + BY_KIND["float"] if kind == "number" else BY_KIND[kind]))


def accepted(
    name: str, count: int, seed: int = 0, *, only: Callable[[Expression], bool] | None = None
) -> list[tuple[Expression, Facts]]:
    """Random calls that the rules accept, at least a third of those tried; with `only` of some kind."""
    draw, tried = random.Random(f"{name}{seed}"), 0
    found: list[tuple[Expression, Facts]] = []
    while len(found) < count:
        tried += 1
        assert tried < (3 if only is None else 60) * count + 100, f"{name}: most calls are refused"
        expression = random_call(name, draw)
        try:
            made = resolve_with_facts(expression, FACTS)
        except QueryRefused:
            continue
        if only is None or only(made[0]):
            found.append(made)
    return found


def place(value: Any, kind: str | None) -> Any:
    """A constant as engines show it: moments as numbers."""
    return place_of(value) if kind in ("date", "timestamp", "time") else value


_SHOWN: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "boolean": (bool,),
    "date": (int,),
    "timestamp": (int,),
    "time": (int,),
}


def check(values: pa.ChunkedArray, facts: Facts, expression: Expression) -> None:
    """Assert that every value lies within the facts."""
    listed = None if facts.values is None else {place(each, facts.kind) for each in facts.values}
    domain = domain_of(facts, 5000)
    keys = None if domain is None else {place(each, facts.kind) for each in domain}
    if facts.kind == "date" and not pa.types.is_null(values.type):
        assert pa.types.is_date32(values.type), expression
        values = values.cast(pa.int32())
    for value in set(values.to_pylist()):
        if value is None:
            assert facts.nullable, (expression, "NULL")
            continue
        if isinstance(value, float) and math.isnan(value):
            continue
        context = (expression, facts, value)
        assert type(value) in _SHOWN.get(str(facts.kind), (int, float)), context
        if listed is not None:
            assert value in listed, context
        if facts.kind in ("text", None):
            continue
        assert facts.low <= value <= facts.high, context
        if facts.kind == "integer":
            assert not math.isfinite(value) or value == int(value), context
        if facts.step is not None:
            assert (Fraction(value) - Fraction(facts.lower or 0)) % facts.step == 0, context
            assert keys is None or value in keys, context
