"""Ball arithmetic for the few irrational constants that losses need, rounded to the safe side.

A ball is an interval that provably holds the true value, so an end of it is a proven bound whatever the
precision.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, fmpq

from sfumato.numeric.exact import float_up

_FAR = 1 << 14

__all__ = ["ball", "exact_upper", "sqrt_up", "sum_of_powers", "upper"]


def sqrt_up(exact: Fraction) -> float:
    """A float that is not below the square root, and is it where the root is a float."""
    root = math.sqrt(float_up(exact))
    # The square root is correctly rounded, so the next float is surely above; mostly it is not needed.
    a, b = root.as_integer_ratio()
    return root if a * a * exact.denominator >= exact.numerator * b * b else math.nextafter(root, math.inf)


def ball(value: Fraction | float | int) -> arb:
    """A ball around an exact number (a float is taken at its binary value)."""
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def exact_upper(value: arb) -> Fraction | None:
    """The upper end of a ball as an exact number, or None where the ball is unbounded."""
    end = value.upper()
    if not end.is_finite():
        return None
    mantissa, exponent = (int(part) for part in end.man_exp())
    # Balls know numbers like 2**(-2**39), which no fraction should spell out: those are rounded up further.
    if exponent + mantissa.bit_length() > _FAR:
        return None if mantissa > 0 else Fraction(-(2**_FAR))
    if exponent < -2 * _FAR:
        return Fraction(1, 2**_FAR) if mantissa > 0 else Fraction(0)
    return Fraction(mantissa) * Fraction(2) ** exponent


def upper(value: arb) -> float:
    """A float that is not below anything in the ball (infinity where it is unbounded)."""
    end = exact_upper(value)
    return float("inf") if end is None else float_up(end)


def sum_of_powers(epsilon: Fraction, count: int) -> arb:
    """A ball around 1 + e^ε + … + e^((count-1)ε)."""
    if epsilon == 0:
        return arb(count)
    x = ball(epsilon)
    return (x * count).expm1() / x.expm1()
