"""Figures in words: what was given prints as given, what was computed is rounded to its safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

__all__ = ["given", "number_down", "number_up", "percent_down", "percent_given", "percent_up"]


def given(value: float) -> str:
    """A parameter as it was given, to the last digit: 0.1234567 stays that, and 1e-06 is not 0.000001."""
    if not math.isfinite(value):
        return f"{value:g}"
    exact = Decimal(repr(value)).normalize()
    return f"{exact:f}" if -5 < exact.adjusted() < 16 else f"{float(exact)!r}"


def percent_given(share: float) -> str:
    """A share that was given, as a percentage, to the last digit: 10 % for 0.1."""
    return f"{given(float(Decimal(repr(share)) * 100))} %"


def number_up(value: Fraction | float, digits: int = 2) -> str:
    """A figure to so many digits, never below it."""
    return _number(max(_both(value)), digits, ROUND_CEILING)


def number_down(value: Fraction | float, digits: int = 2) -> str:
    """A figure to so many digits, never above it."""
    return _number(min(_both(value)), digits, ROUND_FLOOR)


def _both(value: Fraction | float) -> tuple[Fraction, Fraction]:
    """A float as its binary value and as the decimal that it shows: a bound may be meant by either."""
    return Fraction(value), value if isinstance(value, Fraction) else Fraction(repr(value))


def _number(exact: Fraction, digits: int, rounding: str) -> str:
    shown = Context(prec=digits, rounding=rounding).divide(
        Decimal(exact.numerator), Decimal(exact.denominator)
    )
    return given(float(shown))


def percent_up(share: float) -> str:
    """A share as a percentage that is not below it, with as many digits as tell it from 0 and 100."""
    return _percent(share, ROUND_CEILING)


def percent_down(share: float) -> str:
    """A share as a percentage that is not above it."""
    return _percent(share, ROUND_FLOOR)


def _percent(share: float, rounding: str) -> str:
    exact = Decimal(share) * 100  # exact: a float has few digits and the context many
    near = min(exact, 100 - exact)
    if near <= 0:
        return f"{round(exact)} %"
    places = min(6, 1 - near.adjusted()) if near < 1 else 1
    shown = exact.quantize(Decimal(1).scaleb(-places), rounding=rounding)
    return f"{shown:f}".rstrip("0").rstrip(".") + " %"
