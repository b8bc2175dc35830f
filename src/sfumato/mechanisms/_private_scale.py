"""Exact noise whose scale is itself private: one real number, known lazily, scaled and rounded."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx

from sfumato import random
from sfumato.numeric.figures import ball, upper

__all__ = ["add_cauchy", "add_exponential_tails", "add_student", "cauchy_tail", "student_tail"]

_STAGE = 40  # bits in each of the first two stages of an exponential, so that a third is hardly ever needed
_BITS = 128  # bits of a uniform to begin with


def add_exponential_tails(value: Fraction, scale: Fraction) -> int:
    """floor(value + X + 1/2) with X a continuous Laplace of this scale, exactly.

    A unit exponential E is known as whole multiples of 2**-k: its first 40 bits are a geometric draw, each
    further stage is a uniform u accepted with probability exp(−u/2**k), since within a cell the density is
    e^−x. Scaled by ± `scale` the cell is an interval; more bits are drawn in the rare case that it holds a
    rounding boundary. No table depends on `scale`, and neither does what is drawn, but for that case.
    """
    sign = 1 - 2 * random.integers(2)
    cell, bits = random.geometric(Fraction(1, 2**_STAGE)), _STAGE
    while True:
        cell, bits = _finer(cell, bits)
        ends = [value + sign * scale * Fraction(cell + side, 2**bits) + Fraction(1, 2) for side in (0, 1)]
        whole = ends[0] // 1
        if whole == ends[1] // 1:
            return whole


def _finer(cell: int, bits: int) -> tuple[int, int]:
    """The cell of width 2**-(bits+40), inside a cell of an exponential, that it lies in."""
    finer = bits + _STAGE
    while True:
        low = random.integers(2**_STAGE)
        if random.bernoulli_exp(Fraction(low, 2**finer)):
            return (cell << _STAGE) + low, finer


def add_cauchy(value: Fraction, scale: Fraction) -> int:
    """floor(value + X + 1/2) with X = scale·Z and Z a standard Cauchy, density 1/(π(1+z²)), exactly."""
    return _add_tail(value, scale, cauchy_tail)


def add_student(value: Fraction, scale: Fraction) -> int:
    """floor(value + X + 1/2) with X = scale·T and T Student's t with 4 degrees of freedom, exactly."""
    return _add_tail(value, scale, student_tail)


def cauchy_tail(tail: arb) -> arb:
    """The z with P(Z > z) = `tail` for a standard Cauchy and 0 < tail < 1/2."""
    return tail.cot_pi()


def student_tail(tail: arb) -> arb:
    """The t with P(T > t) = `tail` for Student's t with 4 degrees of freedom and 0 < tail < 1/2.

    2·√(q − 1) with q = cos(arccos(√a)/3)/√a and a = 4·tail·(1 − tail) (Shaw 2006).
    """
    root = (4 * tail * (1 - tail)).sqrt()
    return 2 * ((root.acos() / 3).cos() / root - 1).sqrt()


def _add_tail(value: Fraction, scale: Fraction, quantile: Callable[[arb], arb]) -> int:
    """By inversion: |Z| decreases in a uniform on (0, 1/2), of which a cell is known.

    Both ends are enclosed in balls; more bits are drawn until they round to the same integer.
    """
    sign = 1 - 2 * random.integers(2)
    cell, bits = random.current().bits(_BITS), _BITS
    while True:
        low, high = _enclosed(cell, bits, quantile)
        if high is not None:
            first, second = (value + sign * scale * end + Fraction(1, 2) for end in (low, high))
            if first // 1 == second // 1:
                return first // 1
        cell, bits = (cell << _STAGE) + random.integers(2**_STAGE), bits + _STAGE


def _enclosed(cell: int, bits: int, quantile: Callable[[arb], arb]) -> tuple[Fraction, Fraction | None]:
    """Bounds on |Z| for a uniform in [cell, cell + 1]/2**(bits+1); no upper one in the first cell."""
    with ctx.workprec(2 * bits + 64):
        most = None
        if cell:
            most = upper(quantile(ball(Fraction(cell, 2 ** (bits + 1)))))
        least = Fraction(0)
        if cell + 1 < 2**bits:
            least = max(least, -upper(-quantile(ball(Fraction(cell + 1, 2 ** (bits + 1))))))
        return least, most
