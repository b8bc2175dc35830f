"""Rounding to digits, roots, logarithms, powers and buckets."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.numeric.exact import float_down, float_up
from sfumato.plan.expressions.functions.arithmetic import Bound, numbers, some_null
from sfumato.plan.expressions.functions.base import Array, Function, Vector, strict
from sfumato.plan.expressions.ranges import Facts, number
from sfumato.schema import Kind

__all__ = ["POWERS"]

_ULPS = 8  # what a mathematical library may be off by, with room to spare
_DIGITS = 15


def _loose(value: float, towards: float) -> Bound:
    if not math.isfinite(value):
        return math.copysign(math.inf, value) if value == towards else math.copysign(1.7e308, value)
    for _ in range(_ULPS):
        value = math.nextafter(value, towards)
    return Fraction(value) if math.isfinite(value) else value


def _monotone(function: Callable[[float], float], low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """Bounds of a growing function that a library computes to a few units in the last place."""
    return (
        _loose(_safe(function, low if isinstance(low, float) else float_down(low)), -math.inf),
        _loose(_safe(function, high if isinstance(high, float) else float_up(high)), math.inf),
    )


def _safe(function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except OverflowError:
        return math.inf


def _nonnegative(bounds: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    return max(bounds[0], Fraction(0)), bounds[1]


def _sqrt(facts: Facts) -> Facts:
    numbers("SQRT", facts)
    low, high = max(facts.low, Fraction(0)), max(facts.high, Fraction(0))
    bounds = _nonnegative(_monotone(math.sqrt, low, high))
    return number("float", *bounds, nullable=facts.nullable or facts.low < 0 or facts.upper is None)


def _logarithm(name: str, function: Callable[[float], float]) -> Callable[[Facts], Facts]:
    def at(x: float) -> float:
        return function(x) if x > 0 else -math.inf

    def rule(facts: Facts) -> Facts:
        numbers(name, facts)
        low = max(facts.low, Fraction(1) if facts.whole else Fraction(0))  # elsewhere it is NULL
        bounds = _monotone(at, low, max(facts.high, low))
        return number("float", *bounds, nullable=facts.nullable or facts.low <= 0)

    return rule


def _exp(facts: Facts) -> Facts:
    numbers("EXP", facts)
    return number("float", *_nonnegative(_monotone(math.exp, facts.low, facts.high)), nullable=facts.nullable)


def _power(base: Facts, exponent: Facts) -> Facts:
    numbers("POWER", base, exponent)
    by = exponent.single
    even = by is not None and by == int(by) and int(by) % 2 == 0
    whole = by is not None and by == int(by)
    nullable = some_null(base, exponent) or not (base.low >= 0 or whole)
    if by is None or (by < 0 and base.low <= 0) or (base.low < 0 and not whole):
        return number(
            "float", Fraction(0) if base.low >= 0 or even else -math.inf, math.inf, nullable=nullable
        )

    def raised(x: float) -> float:
        value = math.pow(abs(x), by) if x or by >= 0 else math.inf
        return -value if x < 0 and not even else value

    if (even and base.low < 0) or by < 0:
        ends = [_monotone(raised, end, end) for end in (base.low, base.high)]
        low = min(end[0] for end in ends)
        if even and base.low <= 0 <= base.high:
            low = Fraction(0)
        return number("float", *_signed(low, max(end[1] for end in ends), base, even), nullable=nullable)
    return number("float", *_signed(*_monotone(raised, base.low, base.high), base, even), nullable=nullable)


def _signed(low: Bound, high: Bound, base: Facts, even: bool) -> tuple[Bound, Bound]:
    return (max(low, Fraction(0)), high) if even or base.low >= 0 else (low, high)


def _nearest(value: Array) -> Array:
    """Whole numbers, halves away from zero."""
    cut = np.trunc(value)
    return np.asarray(cut + np.where(np.abs(value - cut) >= 0.5, np.sign(value), 0.0))


def _rounded(value: Array, digits: int) -> Array:
    # As DuckDB does it: scaled, rounded, scaled back; what does not fit stays as it is.
    if digits > 0:
        result = _nearest(value * 10.0**digits) / 10.0**digits
    else:
        result = _nearest(value / 10.0**-digits) * 10.0**-digits
    return np.where(np.isfinite(result), result, value)


def _round(facts: Facts, digits: Facts | None = None) -> Facts:
    numbers("ROUND", facts)
    places = 0 if digits is None else digits.single
    whole = digits is None or digits.kind == "integer"  # a truth value is not
    if not whole or not isinstance(places, int) or abs(places) > _DIGITS:
        raise QueryRefused(f"ROUND takes a constant number of digits, up to {_DIGITS}.", "Write ROUND(x, 2).")
    if facts.kind == "integer" and places == 0:
        return facts

    def at(bound: Bound) -> Bound:  # rounding in doubles is monotone, so the ends stay the ends
        if isinstance(bound, float):
            return bound
        with np.errstate(all="ignore"):
            return Fraction(float(_rounded(np.array([float(bound)]), places)[0]))

    step = Fraction(10) ** -places if places <= 0 else None
    kind: Kind = (
        "float" if places > 0 else "integer"
    )  # scaled up and down, a large whole number may not stay one
    return number(kind, at(facts.low), at(facts.high), nullable=facts.nullable, step=step)


def _compute_round(value: Vector, digits: Vector | None = None) -> Vector:
    places = 0 if digits is None or not digits.valid.any() else int(digits.values[digits.valid][0])
    return strict(lambda values: _rounded(values, places))(value)


def _width_bucket(value: Facts, low: Facts, high: Facts, count: Facts) -> Facts:
    numbers("WIDTH_BUCKET", value, low, high, count)
    buckets = count.single
    if not isinstance(buckets, int) or not 1 <= buckets <= 100_000 or None in (low.single, high.single):
        raise QueryRefused("WIDTH_BUCKET takes a constant number of buckets from 1 to 100000.")
    if low.single >= high.single:
        raise QueryRefused("WIDTH_BUCKET needs a low end below its high end.", "Swap them.")
    first = Fraction(0) if value.low < low.low else Fraction(1)
    last = Fraction(buckets + 1) if value.high >= high.low else Fraction(buckets)
    if value.low >= high.low:
        first = Fraction(buckets + 1)
    if value.high < low.low:
        last = Fraction(0)
    return number("integer", first, last, nullable=value.nullable)


def _bucket(value: Array, low: Array, high: Array, count: Array) -> Array:
    inside = np.minimum(np.floor((value - low) / (high - low) * count) + 1, count)
    return np.where(value < low, 0.0, np.where(value < high, inside, count + 1))


_X = "CAST({0} AS DOUBLE)"
_NAN = "CAST('nan' AS DOUBLE)"
# -0.0 + 0.0 is 0.0: equal values have equal powers, also negative ones.
_POWER = f"POWER({_X} + CAST(0 AS DOUBLE), CAST({{1}} AS DOUBLE))"
_BUCKET = (
    f"CASE WHEN {_X} < {{1}} THEN 0 WHEN {_X} < {{2}} THEN "
    f"LEAST(FLOOR(({_X} - CAST({{1}} AS DOUBLE)) / (CAST({{2}} AS DOUBLE) - CAST({{1}} AS DOUBLE)) "
    f"* CAST({{3}} AS DOUBLE)) + 1, {{3}}) WHEN {_X} >= {{2}} THEN CAST({{3}} AS DOUBLE) + 1 END"
)


def _log(name: str, function: Any, ufunc: Any) -> Function:
    sql = f"CASE WHEN {{0}} > 0 THEN {name.upper()}({_X}) END"
    return Function(
        name,
        (1, 1),
        _logarithm(name, function),
        sql,
        strict(lambda x: (ufunc(np.maximum(x, 0)), x > 0)),
        {"Ln": ("this",)} if name == "ln" else {},
        doc="The logarithm; NULL if the number is not positive.",
    )


POWERS: tuple[Function, ...] = (
    Function(
        "round",
        (1, 2),
        _round,
        lambda n: f"ROUND({_X})" if n == 1 else f"ROUND({_X}, {{1}})",
        _compute_round,
        {"Round": ("this", "decimals")},
        literals=(1,),
        doc="Rounded to so many digits, halves away from zero.",
    ),
    Function(
        "sqrt",
        (1, 1),
        _sqrt,
        f"CASE WHEN {{0}} >= 0 THEN SQRT({_X}) END",
        strict(np.sqrt),
        {"Sqrt": ("this",)},
        doc="The square root; NULL if the number is negative.",
    ),
    _log("ln", math.log, np.log),
    _log("log10", math.log10, np.log10),
    _log("log2", math.log2, np.log2),
    Function("exp", (1, 1), _exp, f"EXP({_X})", strict(np.exp), {"Exp": ("this",)}, doc="e to that power."),
    Function(
        "power",
        (2, 2),
        _power,
        f"CASE WHEN {_POWER} <> {_NAN} THEN {_POWER} END",
        strict(lambda x, y: np.power(x + 0.0, y)),
        {"Pow": ("this", "expression")},
        names=("pow",),
        doc="The first to the power of the second; NULL where that is undefined.",
    ),
    Function(
        "width_bucket",
        (4, 4),
        _width_bucket,
        _BUCKET,
        strict(_bucket),
        {"WidthBucket": ("this", "min_value", "max_value", "num_buckets")},
        literals=(1, 2, 3),
        doc="Which of so many equal buckets between two constants it falls in: 0 is below, count + 1 above.",
    ),
)
