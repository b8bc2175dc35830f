"""Casts between kinds: what cannot be cast is NULL."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions.base import Array, Function, Vector, need
from sfumato.plan.expressions.functions.text import each
from sfumato.plan.expressions.ranges import Facts, day_of, number, truth

__all__ = ["CASTS"]

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_PLAIN = re.compile(r"-?\d{1,15}", re.ASCII)
_LISTED = 4096
_BIG = Fraction(2**63 - 1025)  # below every double that no longer fits


def _even(bound: Fraction | float) -> Fraction | float:
    return bound if isinstance(bound, float) else Fraction(round(bound))


def _to_integer(facts: Facts) -> Facts:
    need("A cast to INTEGER", ("integer", "float", "boolean", "text"), facts)
    if facts.kind == "integer":
        return facts
    if facts.kind == "text":
        values = facts.values
        if values and all(_PLAIN.fullmatch(value) for value in values):
            whole = tuple(dict.fromkeys(int(value) for value in values))
            bounds = Fraction(min(whole)), Fraction(max(whole))
            return Facts("integer", facts.nullable, *bounds, Fraction(1), whole)
        return Facts("integer", True)
    sure = facts.low >= -_BIG and facts.high <= _BIG
    low, high = max(facts.low, -Fraction(2**63)), min(facts.high, Fraction(2**63))
    return number("integer", _even(low), _even(high), nullable=facts.nullable or not sure)


def _to_float(facts: Facts) -> Facts:
    need("A cast to DOUBLE", ("integer", "float", "boolean", "text"), facts)
    if facts.kind == "text":
        return Facts("float", True)
    return number("float", facts.low, facts.high, nullable=facts.nullable, step=facts.step)


def _to_text(facts: Facts) -> Facts:
    if facts.kind in ("timestamp", "time"):
        raise QueryRefused(
            "A cast of times to text is not supported.",
            "Take parts, such as HOUR(x) or CAST(x AS DATE); DATE_TRUNC('hour', x) is a timestamp.",
        )
    values = _spelt(facts)
    return Facts("text", facts.nullable, values=values)


def _spelt(facts: Facts) -> tuple[str, ...] | None:
    if facts.kind == "float":
        return None
    if facts.values is not None:
        return tuple(_shown(value) for value in facts.values)
    if facts.lower is None or facts.upper is None or facts.step is None:
        return None
    if (facts.upper - facts.lower) / facts.step >= _LISTED:
        return None
    count = int((facts.upper - facts.lower) / facts.step) + 1
    places = [facts.lower + i * facts.step for i in range(count)]
    return tuple(_shown(day_of(place) if facts.kind == "date" else int(place)) for place in places)


def _shown(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(float(value))
    return str(value)


def _float_to_text(facts: Facts) -> Facts:
    need("A cast to TEXT", ("float",), facts)
    return Facts("text", facts.nullable)


def _integer_to_text(facts: Facts) -> Facts:
    need("A cast to TEXT", ("integer",), facts)
    sure = facts.low >= -_BIG and facts.high <= _BIG
    return Facts("text", facts.nullable or not sure, values=_spelt(facts))


def _to_date(facts: Facts) -> Facts:
    need("A cast to DATE", ("date", "text"), facts)
    return facts if facts.kind == "date" else Facts("date", True)


def _to_boolean(facts: Facts) -> Facts:
    need("A cast to BOOLEAN", ("integer", "float", "boolean", "text"), facts)
    if facts.kind == "boolean":
        return facts
    return truth(nullable=facts.nullable or facts.kind == "text")


def _numbers(vector: Vector) -> Vector:
    if vector.values.dtype.kind != "O":
        return Vector(vector.values.astype(np.float64), vector.valid)
    values, valid = np.zeros(len(vector.values)), vector.valid.copy()
    for i in np.flatnonzero(valid):
        valid[i] = _NUMBER.fullmatch(vector.values[i]) is not None
        values[i] = float(vector.values[i]) if valid[i] else 0.0
    return Vector(values, valid)


def _compute_integer(vector: Vector) -> Vector:
    numbers = _numbers(vector)
    fits = np.abs(numbers.values) < 2.0**63
    return Vector(np.rint(np.where(fits, numbers.values, 0.0)), numbers.valid & fits)


def _compute_text(vector: Vector) -> Vector:
    return each(_shown)(vector)


def _compute_date(vector: Vector) -> Vector:
    if vector.values.dtype.kind == "M":
        return vector
    values: Array = np.zeros(len(vector.values), dtype="datetime64[D]")
    valid = vector.valid.copy()
    for i in np.flatnonzero(valid):
        try:
            values[i] = datetime.date.fromisoformat(str(vector.values[i]))
        except ValueError:
            valid[i] = False
    return Vector(values, valid)


_TRUTHS = {"true": True, "t": True, "yes": True, "y": True, "1": True} | {
    "false": False, "f": False, "no": False, "n": False, "0": False,
}  # fmt: skip


def _compute_boolean(vector: Vector) -> Vector:
    if vector.values.dtype.kind != "O":
        return Vector(vector.values != 0, vector.valid)
    truths = [_TRUTHS.get(str(text).lower()) for text in vector.values]
    known = np.array([truth is not None for truth in truths], dtype=bool)
    return Vector(np.array([bool(truth) for truth in truths], dtype=bool), vector.valid & known)


# Equal values are written alike: an order does not tell zeros of two signs apart, or one NaN from another.
_X, _ZERO = "CAST({0} AS DOUBLE)", "CAST(0 AS DOUBLE)"
_TEXT = f"CASE WHEN isnan({_X}) THEN 'nan' ELSE CAST({_X} + {_ZERO} AS TEXT) END"

CASTS: tuple[Function, ...] = (
    Function(
        "to_integer", (1, 1), _to_integer, "TRY_CAST({0} AS BIGINT)", _compute_integer, listed=False,
        doc="The nearest whole number, halves to even; NULL for other text and beyond 64 bits.",
    ),
    Function(
        "to_float", (1, 1), _to_float, "TRY_CAST({0} AS DOUBLE)", _numbers, listed=False,
        doc="As a number; NULL for text that is not a number.",
    ),
    Function(
        "to_text", (1, 1), _to_text, "CAST({0} AS TEXT)", _compute_text, listed=False, doc="As text.",
    ),
    Function(
        "float_to_text", (1, 1), _float_to_text, _TEXT, _compute_text, listed=False, guarded=True,
        doc="A number as text; zero has no sign.",
    ),
    Function(
        "integer_to_text", (1, 1), _integer_to_text, "CAST(TRY_CAST({0} AS BIGINT) AS TEXT)", _compute_text,
        listed=False, guarded=True, doc="A whole number as text.",
    ),
    Function(
        "to_date", (1, 1), _to_date, "TRY_CAST({0} AS DATE)", _compute_date, listed=False,
        doc="As a date; NULL for text that is not a date.",
    ),
    Function(
        "to_boolean", (1, 1), _to_boolean, "TRY_CAST({0} AS BOOLEAN)", _compute_boolean, listed=False,
        doc="As a truth value: whether a number is not 0; NULL for text that is not one.",
    ),
)  # fmt: skip
