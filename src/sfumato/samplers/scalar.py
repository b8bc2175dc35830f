"""Exact draws one at a time, in integers only: the fallback and the reference of everything faster."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sfumato.samplers.enclosure import Enclosure, exp_minus
from sfumato.samplers.stream import Stream

__all__ = ["bernoulli", "bernoulli_exp", "geometric", "is_below", "uniform"]

_STEP = 64  # bits by which a lazily known real number is extended
GUARD = 32  # bits that a number is enclosed to beyond those of the uniform that it is compared with


def uniform(stream: Stream, bound: int) -> int:
    """A uniform integer in 0 … bound-1, by rejection from the next power of two."""
    count = (bound - 1).bit_length()
    if count == 0:
        return 0
    while True:
        value = stream.bits(count)
        if value < bound:
            return value


def is_below(stream: Stream, bounds: Callable[[int], Enclosure], *, value: int = 0, known: int = 0) -> bool:
    """Whether a uniform U lies below the number that `bounds` encloses: True with exactly that probability.

    `value` holds the first `known` bits of U if some were drawn already. Bits are added until both ends of
    the interval that U is known to lie in are on the same side of the enclosure; U is never a float.
    """
    while True:
        if known == 0:
            value, known = stream.bits(_STEP), _STEP
        lower, upper = bounds(known + GUARD)
        if (value + 1) << GUARD <= lower:
            return True
        if value << GUARD >= upper:
            return False
        value = (value << _STEP) | stream.bits(_STEP)
        known += _STEP


def bernoulli(stream: Stream, p: Fraction) -> bool:
    """True with probability exactly p, 0 <= p <= 1."""
    numerator, denominator = p.numerator, p.denominator
    # Compare U with p one word at a time: what is left of p after each word is again a fraction of the same
    # denominator.
    while True:
        digit, numerator = divmod(numerator << _STEP, denominator)
        word = stream.bits(_STEP)
        if word != digit:
            return word < digit
        if numerator == 0:
            return False


def bernoulli_exp(stream: Stream, x: Fraction) -> bool:
    """True with probability exactly exp(-x), x >= 0."""
    if x == 0:
        return True
    return is_below(stream, lambda bits: exp_minus(x, bits))


def geometric(stream: Stream, rate: Fraction) -> int:
    """An integer k >= 0 with P(k) = (1 - exp(-rate)) exp(-rate k), for rational rate > 0.

    Canonne, Kamath and Steinke (2020), algorithm 2: with rate = n/d, draw g with P(g) proportional to
    exp(-g/d), as a remainder below d (accepted with exp(-g/d)) and a number of units of 1, and divide by n.
    """
    numerator, denominator = rate.numerator, rate.denominator
    while True:
        low = uniform(stream, denominator)
        if bernoulli_exp(stream, Fraction(low, denominator)):
            break
    high = 0
    while bernoulli_exp(stream, Fraction(1)):
        high += 1
    return (high * denominator + low) // numerator
