"""Utility of selection and threshold mechanisms: how far from the best an answer may lie, rounded wide."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_integer, float_up, probability

__all__ = ["failure_of", "outward", "race_failure", "smallest_gap", "two_sided_width"]

# Float formulas below are good to about 1e-13 relative; what they give is widened by much more than that.
_SLACK = 1e-9


def failure_of(confidence: Rational, size: int) -> float:
    """The failure probability left to each of `size` answers, so that all hold at once with `confidence`."""
    share = (1 - probability(confidence, "confidence")) / as_integer(size, "size")
    return float(share)


def candidates_of(candidates: int | None) -> int:
    """The number of candidates, which a bound on the error of a selection needs."""
    if candidates is None:
        raise InvalidParameter(
            "The error of a selection depends on how many there are to choose from: give candidates=…."
        )
    return as_integer(candidates, "candidates")


def smallest_gap(failure: Callable[[float], float], allowed: float) -> float:
    """The least x ≥ 0 with failure(x) ≤ allowed for a decreasing curve, rounded up by bisection.

    `failure` may be off by a relative 1e-9 of its value: it is compared against that much less than
    `allowed`.
    """
    target = allowed * (1 - _SLACK)
    if failure(0.0) <= target:
        return 0.0
    high = 1.0
    while failure(high) > target:
        high *= 2
    low = high / 2 if high > 1 else 0.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if failure(middle) > target else (low, middle)
    return high


def outward(units: float, step: Fraction, *, extra: int = 1) -> float:
    """A distance in grid units as a float, rounded up, with `extra` units for the rounding of the scores."""
    return float_up((Fraction(math.ceil(units * (1 + _SLACK))) + extra) * step)


def race_failure(rate: float, rivals: int) -> Callable[[float], float]:
    """P(one of `rivals` that lie x below beats the best), by the union bound, for discrete Laplace noise.

    With q = e^-rate, the difference D of two draws has P(D ≥ x) = c²·q^x·((x + A)/(1−q) + q/(1−q)²),
    c = (1−q)/(1+q) and A = (1+q²)/(1−q²).
    """
    q = math.exp(-rate)
    one_minus = -math.expm1(-rate)
    a = (1 + q * q) / -math.expm1(-2 * rate)

    def failure(x: float) -> float:
        tail = math.exp(-rate * x) * ((x + a) * one_minus + q) / (1 + q) ** 2
        return rivals * tail

    return failure


def two_sided_width(scale: Fraction, failure: float) -> int:
    """A whole w with P(|X| > w) ≤ `failure` for a discrete Laplace X.

    P(|X| > w) = 2q^(w+1)/(1+q) ≤ q^w for whole w, with q = e^(-1/scale).
    """
    return math.ceil(float_up(scale) * max(0.0, -math.log(failure)) * (1 + _SLACK))
