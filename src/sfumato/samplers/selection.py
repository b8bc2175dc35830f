"""Exact choice among many by exponential weights.

Every weight exp(-rate gap) is bounded above by an integer from one certified table of exp(-q / 256).
Integers add up exactly, so drawing from the bounds needs no error analysis, and only the one candidate that
comes up is tested in exact arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from sfumato.samplers import scalar
from sfumato.samplers.enclosure import Enclosure, exp_minus
from sfumato.samplers.stream import Booleans, Integers, Stream, Words64
from sfumato.samplers.table import fall

__all__ = ["choose", "flip"]

_STEPS = 256  # table entries for a factor of e
_BITS = 62
_WORD = 32
_LAST = 11_100  # exp(-_LAST / _STEPS) < 2**-62
# Lowers a float product of two correctly rounded factors below the true one: 3 roundings of 2**-53 each.
_BELOW = 1.0 - 2.0**-48
# A float exponent below 64 is off by less than this, and so is the chance computed from it.
_MARGIN = 2.0**-40
_FASTEST = Fraction(10) ** 280  # a rate beyond this is taken for it, so that it is a float


@cache
def _powers() -> tuple[Words64, Words64]:
    """Integers (lower, upper) with lower[q] <= 2**62 exp(-q / 256) <= upper[q], q = 0 … _LAST."""
    bits = 128
    ratio = exp_minus(Fraction(1, _STEPS), bits)
    low = high = 1 << bits
    lower, upper = [], []
    for _ in range(_LAST + 1):
        lower.append(low >> (bits - _BITS))
        upper.append(-(-high >> (bits - _BITS)))
        low = low * ratio[0] >> bits
        high = (high * ratio[1] >> bits) + 1
    return np.array(lower, np.uint64), np.array(upper, np.uint64)


@cache
def _caps(bits: int) -> Words64:
    """Integers at least 2**bits exp(-q / 256), and at least 1: shifted, which rounds down, and 1 more."""
    return (_powers()[1] >> np.uint64(_BITS - bits)) + np.uint64(1)


@cache
def _coins() -> tuple[Words64, Words64]:
    """Integers (lower, upper) with lower[q] <= 2**32 exp(-q / 256) < upper[q]."""
    lower, upper = _powers()
    shift = np.uint64(_BITS - _WORD)
    return lower >> shift, (upper >> shift) + np.uint64(1)


def _gaps(scores: Integers) -> Words64:
    """Distances from the maximum: below 2**64, so that arithmetic modulo 2**64 gives them exactly."""
    unsigned: Words64 = scores.view(np.uint64)
    gaps: Words64 = unsigned[np.argmax(scores)] - unsigned
    return gaps


def _steps(gaps: Words64, rate: Fraction) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """(x, q): the floats x = gap rate, and integers 0 <= q <= 256 gap rate, at most _LAST."""
    factor = float(min(rate, _FASTEST))
    x = np.multiply(gaps, factor, dtype=np.float64)
    q = np.minimum(x * (_STEPS * _BELOW), float(_LAST))
    return x, q.astype(np.intp)


def choose(stream: Stream, scores: Integers, rate: Fraction) -> int:
    """An index i with probability proportional to exp(rate scores[i]), for rate >= 0."""
    bits = _BITS - scores.size.bit_length()
    gaps = _gaps(scores)
    _, q = _steps(gaps, rate)
    bounds = _caps(bits).take(q, mode="clip")  # their sum stays below 2**63
    sums = np.cumsum(bounds, out=np.empty_like(bounds))
    total = int(sums[-1])
    while True:
        index = int(np.searchsorted(sums, np.uint64(scalar.uniform(stream, total)), side="right"))
        bound, x = int(bounds[index]), rate * int(gaps[index])

        def chance(precision: int, bound: int = bound, x: Fraction = x) -> Enclosure:
            lower, upper = exp_minus(x, precision)
            return (lower << bits) // bound, -((-upper << bits) // bound)

        if scalar.is_below(stream, chance):
            return index


def flip(stream: Stream, scores: Integers, rate: Fraction) -> Booleans:
    """Independent heads with P = exp(-rate (max - scores[i])), for rate >= 0; a maximum is always heads.

    With rate gap = q / 256 + z, heads are those of two coins of probability exp(-q / 256) and exp(-z). Few
    survive the first one with a large gap, and the second one is nearly certain.
    """
    gaps = _gaps(scores)
    words = stream.words32(scores.size)
    if not gaps.any():  # as the high parts of most numbers have none
        return np.ones(scores.size, np.bool_)
    x, q = _steps(gaps, rate)
    lower, upper = (bounds.take(q, mode="clip") for bounds in _coins())
    heads = words < lower
    for i in np.flatnonzero(~heads & (words < upper)).tolist():
        first = Fraction(int(q[i]), _STEPS)
        heads[i] = scalar.is_below(stream, partial(exp_minus, first), value=int(words[i]), known=_WORD)
    survivors = np.flatnonzero(heads & (gaps > 0))
    if survivors.size:
        heads[survivors] = _second(stream, gaps[survivors], rate, x=x[survivors], q=q[survivors])
    return heads


def _second(
    stream: Stream, gaps: Words64, rate: Fraction, *, x: NDArray[np.float64], q: NDArray[np.intp]
) -> Booleans:
    """Heads with P = exp(-(rate gap - q / 256)): floats where they surely decide, else exact arithmetic."""
    rest = np.maximum(x - q / _STEPS, 0.0)
    far = (q >= _LAST) | (rest > 1 / 64)
    chance = 1.0 - fall(np.where(far, 0.0, rest))
    words = stream.words64(gaps.size)
    uniform = (words >> np.uint64(11)) * 2.0**-53
    heads = uniform < chance
    for i in np.flatnonzero(far | (np.abs(uniform - chance) < _MARGIN)).tolist():
        exact = rate * int(gaps[i]) - Fraction(int(q[i]), _STEPS)
        heads[i] = scalar.is_below(stream, partial(exp_minus, exact), value=int(words[i]), known=64)
    return heads
