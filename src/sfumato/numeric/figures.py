"""Accuracy figures rounded wide, in ball arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx

from sfumato.errors import InvalidParameter
from sfumato.numeric.balls import ball
from sfumato.numeric.exact import Rational, as_integer, float_up, probability

__all__ = [
    "PRECISION",
    "ball",
    "ceiling",
    "failure",
    "gaussian_width",
    "laplace_width",
    "up",
    "upper",
]

PRECISION = 320
"""Bits that figures are computed with: cancellation in the tails of a quantile never costs that many."""


def upper(value: arb) -> Fraction:
    """The upper end of a ball, exactly."""
    end = value.upper()
    if not end.is_finite():
        raise InvalidParameter("This figure is beyond what can be computed: use less extreme parameters.")
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def up(value: arb) -> float:
    """A float that is not below anything in the ball."""
    return float_up(upper(value))


def ceiling(value: arb) -> int:
    """A whole number that is not below anything in the ball."""
    return math.ceil(upper(value))


def failure(confidence: Rational, size: int) -> arb:
    """1 − confidence^(1/size): what each of `size` independent answers may fail with."""
    exact = probability(confidence, "confidence")
    return -(ball(exact).log() / as_integer(size, "size")).expm1()


def laplace_width(scale: Fraction, confidence: Rational, size: int, *, slack: Fraction) -> float:
    """The quantile of |X| for `size` independent continuous Laplace X, plus a slack, rounded up."""
    with ctx.workprec(PRECISION):
        return up(-failure(confidence, size).log() * ball(scale) + ball(slack))


def gaussian_width(variance: Fraction, confidence: Rational, size: int, *, slack: Fraction) -> float:
    """The quantile of |X| for `size` independent continuous Gaussian X, plus a slack, rounded up."""
    with ctx.workprec(PRECISION):
        return up((2 * ball(variance)).sqrt() * failure(confidence, size).erfcinv() + ball(slack))
