"""What is known about the values of an expression, and the interval arithmetic that keeps it true."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import float_down, float_up
from sfumato.numeric.moments import clock_at, moment_at, seconds_of
from sfumato.schema import Kind

__all__ = [
    "EXACT",
    "FIRST_DAY",
    "LAST_DAY",
    "Facts",
    "constant",
    "day_of",
    "days_of",
    "hull",
    "number",
    "place_of",
    "truth",
    "value_at",
]

EXACT = 2**53  # engines compute in doubles: whole numbers up to here are exact
_ONE = Fraction(1)
_EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about the values of an expression, if the declared bounds of its columns hold.

    They choose clamps and keys; no guarantee relies on them. They speak of values that are not NaN: a NaN
    counts for nothing wherever it is measured.

    Attributes:
        kind: The type; None is that of a bare NULL.
        nullable: Whether it can be NULL.
        lower: Nothing lies below. Truth values count as 0 and 1, dates as days since 1970-01-01, timestamps
            as seconds since then, times of day as seconds since midnight.
        upper: Nothing lies above.
        step: Every value is `lower + i * step`, exactly; None where that is not known.
        values: All values it can have, in the order in which they are reported.
    """

    kind: Kind | None
    nullable: bool = True
    lower: Fraction | None = None
    upper: Fraction | None = None
    step: Fraction | None = None
    values: tuple[Any, ...] | None = None

    @property
    def numeric(self) -> bool:
        """Whether arithmetic applies; a bare NULL passes for anything."""
        return self.kind in ("integer", "float", None)

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.kind in ("integer", "date", "boolean", "timestamp", "time")

    @property
    def low(self) -> Fraction | float:
        """The lower bound, minus infinity without one."""
        return -math.inf if self.lower is None else self.lower

    @property
    def high(self) -> Fraction | float:
        """The upper bound, infinity without one."""
        return math.inf if self.upper is None else self.upper

    @property
    def single(self) -> Any:
        """The one value it has (None: there is no such value)."""
        return self.values[0] if self.values is not None and len(self.values) == 1 else None


def day_of(days: Fraction | int) -> datetime.date:
    """The date that is so many days after 1970-01-01."""
    return datetime.date.fromordinal(int(days) + _EPOCH)


def days_of(day: datetime.date) -> Fraction:
    """Days since 1970-01-01."""
    return Fraction(day.toordinal() - _EPOCH)


def place_of(value: Any) -> Fraction | int:
    """Where a value lies among those of its kind, as bounds count."""
    if isinstance(value, int):
        return value
    if isinstance(value, datetime.datetime | datetime.time):
        return seconds_of(value)
    return days_of(value) if isinstance(value, datetime.date) else Fraction(value)


def value_at(place: Fraction | int, kind: Kind | None) -> Any:
    """The value of a kind of whole numbers that lies there."""
    match kind:
        case "date":
            return day_of(place)
        case "timestamp":
            return moment_at(int(place))
        case "time":
            return clock_at(int(place))
        case "boolean":
            return bool(place)
    return int(place)


FIRST_DAY, LAST_DAY = days_of(datetime.date.min), days_of(datetime.date.max)


def number(
    kind: Kind,
    lower: Fraction | float,
    upper: Fraction | float,
    *,
    nullable: bool,
    step: Fraction | None = None,
) -> Facts:
    """Facts of a number that a correctly rounded operation in doubles gives.

    Bounds are rounded outwards to doubles: rounding is monotone, so a result whose exact value lies within
    the exact bounds stays within these. A step is kept only where every value is a double.
    """
    low = None if isinstance(lower, float) else _fraction(float_down(lower))
    high = None if isinstance(upper, float) else _fraction(float_up(upper))
    if step is None and kind == "integer":
        step = Fraction(1)
    if low is None or high is None or step is None or low != lower or not _representable(low, high, step):
        step = None
    elif (width := high - low) % step:
        high = low + width // step * step
    return Facts(kind, nullable, low, high, step)


def _fraction(bound: float) -> Fraction | None:
    return Fraction(bound) if math.isfinite(bound) else None


def _representable(low: Fraction, high: Fraction, step: Fraction) -> bool:
    unit = math.lcm(low.denominator, step.denominator)
    return step > 0 and unit & (unit - 1) == 0 and unit <= 2**60 and max(abs(low), abs(high)) * unit <= EXACT


def truth(*, nullable: bool, values: tuple[bool, ...] = (False, True)) -> Facts:
    """Facts of a truth value."""
    if values == (False, True):
        return _EITHER_OR_NULL if nullable else _EITHER
    return Facts("boolean", nullable, Fraction(min(values)), Fraction(max(values)), Fraction(1), values)


_EITHER, _EITHER_OR_NULL = (
    Facts("boolean", nullable, Fraction(0), Fraction(1), Fraction(1), (False, True))
    for nullable in (False, True)
)


def constant(value: Any, kind: Kind | None) -> Facts:
    """Facts of a constant."""
    if value is None or kind is None:
        return Facts(kind, True, values=())
    if kind == "boolean":
        return truth(nullable=False, values=(bool(value),))
    if kind == "text":
        return Facts("text", False, values=(value,))
    at = Fraction(place_of(value))
    return Facts(kind, False, at, at, None if kind == "float" else _ONE, (value,))


def hull(parts: Iterable[Facts], kind: Kind | None, *, nullable: bool) -> Facts:
    """Facts of something that is one of these, each time another one perhaps."""
    every = list(parts)
    sure = [part for part in every if part.values != ()]  # a bare NULL adds no value
    values: tuple[Any, ...] | None = None
    if all(part.values is not None for part in sure):
        values = tuple(dict.fromkeys(_typed(value, kind) for part in sure for value in part.values or ()))
    if kind in (None, "text") or not sure:
        return Facts(kind, nullable, values=values)
    low, high = min(part.low for part in sure), max(part.high for part in sure)
    lower = None if isinstance(low, float) else low
    upper = None if isinstance(high, float) else high
    return Facts(kind, nullable, lower, upper, _common(sure, lower), values)


def _typed(value: Any, kind: Kind | None) -> Any:
    return float(value) if kind == "float" else value


def _common(parts: list[Facts], lower: Fraction | None) -> Fraction | None:
    # The coarsest grid on which all of them lie: steps and offsets between the grids, a constant has no step.
    total = Fraction(0)
    for part in parts:
        if lower is None or part.lower is None:
            return None
        if part.lower != part.upper:
            if part.step is None:
                return None
            total = common_step(total, part.step)
        total = common_step(total, part.lower - lower)
    if total:
        return total if total.denominator & (total.denominator - 1) == 0 else None
    return Fraction(1) if all(part.whole for part in parts) else None


def common_step(first: Fraction, second: Fraction) -> Fraction:
    """The greatest step of which both are multiples."""
    scale = math.lcm(first.denominator, second.denominator)
    return Fraction(math.gcd(int(first * scale), int(second * scale)), scale)
