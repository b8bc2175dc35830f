"""Integer enclosures of exp(-x) at any precision: the only transcendental function that exactness rests on.

Plain integers rather than a ball-arithmetic library: there is no global precision to set, so threads cannot
disturb each other, and the whole argument fits on a page. The tests compare with an independent ball
arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

__all__ = ["Enclosure", "below_one", "exp_minus", "quotient"]

Enclosure: TypeAlias = tuple[int, int]
"""Integers (lower, upper) with lower <= 2**bits * value <= upper; the bits are known from the context."""

# After halving, the argument is below 2**-_SHRINK, so that each Taylor term gains at least _SHRINK bits.
_SHRINK = 8


def exp_minus(x: Fraction, bits: int) -> Enclosure:
    """Integers (lower, upper), a few units apart, around 2**bits * exp(-x), for rational x >= 0.

    exp(-x) = exp(-x / 2**h) ** (2**h). The inner value is an alternating series with decreasing terms, so
    consecutive partial sums enclose it; the squarings are rounded outwards. `guard` extra bits absorb what
    they lose.
    """
    numerator, denominator = x.numerator, x.denominator
    if numerator == 0:
        return 1 << bits, 1 << bits
    if 10 * numerator >= 7 * (bits + 2) * denominator:  # exp(-0.7 k) < 2**-k, since 0.7 > ln 2
        return 0, 1
    whole = numerator // denominator
    halvings = whole.bit_length() + _SHRINK
    shift = halvings + 16
    lower, upper = _squared(numerator, denominator, halvings, bits + shift)
    return lower >> shift, min(-((-upper) >> shift), 1 << bits)


def _squared(numerator: int, denominator: int, halvings: int, precision: int) -> Enclosure:
    """An enclosure of 2**precision * exp(-x), x = numerator / denominator < 2**(halvings - _SHRINK)."""
    one = 1 << precision
    # y <= 2**precision * x / 2**halvings < y + 1
    y = (numerator << (precision - halvings)) // denominator
    lower, upper = _series(y + 1, precision, one)[0], _series(y, precision, one)[1]
    for _ in range(halvings):
        lower = (lower * lower) >> precision
        upper = -((-upper * upper) >> precision)
    return lower, upper


def _series(y: int, precision: int, one: int) -> Enclosure:
    """An enclosure of 2**precision * exp(-y / 2**precision), for 0 <= y < 2**precision."""
    # t_lower <= t <= t_upper enclose each term y^k / k!; subtracted terms enter with the ends exchanged.
    lower = upper = t_lower = t_upper = one
    k = 0
    while t_upper > 1:
        k += 1
        t_lower = (t_lower * y >> precision) // k
        t_upper = -((-t_upper * y) >> precision)
        t_upper = -(-t_upper // k)
        if k % 2:
            lower, upper = lower - t_upper, upper - t_lower
        else:
            lower, upper = lower + t_lower, upper + t_upper
    # The first neglected term is at most the last one kept, which is at most 1.
    return max(lower - 1, 0), min(upper + 1, one)


def below_one(enclosure: Enclosure, bits: int) -> Enclosure:
    """The enclosure of 1 - value."""
    one = 1 << bits
    return max(one - enclosure[1], 0), one - enclosure[0]


def quotient(top: Enclosure, bottom: Enclosure, bits: int) -> Enclosure:
    """An enclosure of top / bottom, for a value known to lie in [0, 1]."""
    if bottom[0] <= 0:
        return 0, 1 << bits
    return (top[0] << bits) // bottom[1], min(-((-top[1] << bits) // bottom[0]), 1 << bits)
