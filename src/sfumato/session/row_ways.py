"""As what a column of rows is read: a number between bounds, a place in a list, or as it is."""

from __future__ import annotations

import contextlib
import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.exact import as_integer
from sfumato.plan.expressions.facts import Facts, facts_of, resolve
from sfumato.plan.expressions.ranges import days_of
from sfumato.plan.expressions.tree import Expression, call, literal
from sfumato.plan.questions.measurement import Measurement
from sfumato.sql.write.rows import AS_IT_IS, AS_TEXT

__all__ = ["LONGEST", "Coded", "Plain", "Scaled", "Taking", "Texts", "days", "measurement"]

LONGEST = 200
"""How many characters of a text are read as they are; of a longer one, one more."""

_FIRST = datetime.date(1970, 1, 1)
_MOST_VALUES = 1000
_MOST_STEPS = 2**31
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "texts, such as ['a', 'b']"),
    "integer": ((int,), "whole numbers, such as [1, 2]"),
    "float": ((int, float), "numbers, such as [0.5, 1]"),
    "boolean": ((bool,), "[False, True]"),
    "date": ((datetime.date,), "days, such as ['2024-01-31']"),
    "timestamp": ((datetime.datetime,), "timestamps, such as ['2024-01-31 08:30:00']"),
    "time": ((datetime.time,), "times of day, such as ['08:30']"),
}


@dataclass(frozen=True, slots=True)
class Scaled:
    """A number as one of 0, 1, …, steps: clamped to its bounds, scaled and rounded to the nearest.

    In doubles: ⌊(x − lower)·rate + ½⌋ with rate = steps/(upper − lower), x held within the bounds.

    Attributes:
        lower: What becomes 0, and all below it.
        upper: What becomes `steps`, and all above it.
        steps: How many steps there are between them.
    """

    lower: float
    upper: float
    steps: int


@dataclass(frozen=True, slots=True)
class Coded:
    """A value as its place among public ones, from 0; missing if it is none of them."""

    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Plain:
    """A number as it is, as a double without bounds; NaN is missing."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A text as it is, cut after `LONGEST` characters and one more: a longer one is known by its length."""


Taking: TypeAlias = Scaled | Coded | Plain | Texts
"""As what a column is read."""


def measurement(name: str, meaning: Expression, way: Taking, columns: Mapping[str, Facts]) -> Measurement:
    """What is measured of each row so that a column is read that way.

    Args:
        name: What messages call it.
        meaning: The expression over the source's columns.
        way: As what.
        columns: What is known of the source's columns.

    Raises:
        QueryRefused: if it cannot be read so.
        InvalidParameter: if bounds are not finite, or categories are none of the column.
    """
    kind = facts_of(meaning, columns).kind
    if isinstance(way, Texts):
        if kind not in ("text", None):
            raise QueryRefused(f"{name[:60]} is no text.", "Cast it in the query: CAST(x AS TEXT) AS x.")
        argument = resolve(call("left", meaning, literal(LONGEST + 1)), columns)
        return Measurement("sum", argument, 0, 0, whole=False, marks=(AS_TEXT,))
    if isinstance(way, Plain):
        argument = resolve(_number(meaning, kind, name), columns)
        return Measurement("sum", argument, 0, 0, whole=False, marks=(AS_IT_IS,))
    if isinstance(way, Coded):
        argument, most = _place(meaning, kind, way, name), len(way.values) - 1
    else:
        argument, most = _step(meaning, kind, way, name)
    return Measurement("sum", resolve(argument, columns), 0, most, whole=True)


def _number(meaning: Expression, kind: str | None, name: str) -> Expression:
    """What can be computed with: days for dates, seconds for times, 0 and 1 for truth values."""
    if kind == "text":
        raise QueryRefused(
            f"{name[:60]} is text, and cannot be read as numbers.",
            "List its categories, or cast it in the query: CAST(x AS DOUBLE) AS x.",
        )
    if kind == "date":
        return call("days_between", meaning, literal(_FIRST))
    if kind in ("timestamp", "time"):
        return call("epoch", meaning)
    return _among(meaning, (False, True)) if kind == "boolean" else meaning


def _step(meaning: Expression, kind: str | None, way: Scaled, name: str) -> tuple[Expression, int]:
    """A number in steps from its lower bound, half a step too high, and how many steps there are."""
    number = _number(meaning, kind, name)
    lower, upper = float(way.lower), float(way.upper)
    steps = as_integer(way.steps, "steps")
    if not (math.isfinite(upper - lower) and lower <= upper) or not 1 <= steps <= _MOST_STEPS:
        raise InvalidParameter(f"The bounds of {name[:60]!r} must be finite numbers, the lower one first.")
    above = call("subtract", number, literal(lower))
    if lower == upper:
        return above, 0  # infinity times no step would be missing
    return call("add", call("multiply", above, literal(steps / (upper - lower))), literal(0.5)), steps


def _place(meaning: Expression, kind: str | None, way: Coded, name: str) -> Expression:
    """The place of a value among public ones; NULL where it is none of them."""
    if not 1 <= len(way.values) <= _MOST_VALUES:
        raise QueryRefused(
            f"{name[:60]} has {len(way.values):,} categories, and a fit on a session reads 1 to "
            f"{_MOST_VALUES:,} of a column.",
            "List the common ones: whatever is not listed counts as none of them.",
        )
    values = [_constant(value, kind, name) for value in way.values]
    if len(set(values)) < len(values):
        raise InvalidParameter(f"The categories of {name[:60]!r} must differ from each other.")
    return _among(meaning, values)


def _among(meaning: Expression, values: Sequence[Any]) -> Expression:
    pairs = ((call("equal", meaning, literal(value)), literal(at)) for at, value in enumerate(values))
    return call("case", *(part for pair in pairs for part in pair), literal(None))


def _constant(value: Any, kind: str | None, name: str) -> Any:
    """A category in the type of its column.

    Raises:
        InvalidParameter: if no value of the column can be it.
    """
    types, such = _KINDS[kind or "text"]
    plain = value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value
    if kind == "boolean" and type(plain) in (int, float) and plain in (0, 1):
        plain = bool(plain)
    if kind == "integer" and type(plain) is float and plain.is_integer():
        plain = int(plain)
    if kind == "date":
        plain = _day(plain)
    fits = isinstance(plain, types) and isinstance(plain, bool) == (kind == "boolean")
    if not fits or (isinstance(plain, float) and not math.isfinite(plain)):
        raise InvalidParameter(f"The categories of {name[:60]!r} must be {such}.")
    return plain


def days(bound: Any) -> Any:
    """A bound of a date as days since 1970-01-01; anything else as it is."""
    day = _day(bound)
    return days_of(day) if isinstance(day, datetime.date) else bound


def _day(value: Any) -> Any:
    """The day that a text or a time says; anything else as it is."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return datetime.date.fromisoformat(value)
    return value.date() if isinstance(value, datetime.datetime) else value
