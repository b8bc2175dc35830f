"""The law of the noise on accelerators: two finite tables, and how far what they give is from a Gaussian."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.numeric.balls import ball, exact_upper
from sfumato.numeric.exact import show

__all__ = ["COARSE", "COLUMNS", "DEVIATION", "DISTANCE", "SIGMA", "Table", "missing", "tables", "unevenness"]

Words: TypeAlias = NDArray[np.int32]

COLUMNS = 1 << 15
"""How many values, from 0 on, each table has; a sign comes on top."""
COARSE = 1480
"""How much one step of the coarse table is worth."""
DEVIATION = 2776
"""The standard deviation of both tables."""
_THRESHOLD_BITS = 96
_WHOLE = 1 << (15 + _THRESHOLD_BITS)
_PRECISION = 320
_UP = 1.05  # of a figure that is shown with two digits


class Table(NamedTuple):
    """A law on 0 … COLUMNS − 1 as columns of equal chance, each shared by two values.

    Attributes:
        packed: The highest 16 bits of each column's threshold, where it changes hands; then 16 bits for whose
            it is from there on.
        second: The 32 bits after the threshold's highest, as signed words.
        rest: The 48 bits after those.
    """

    packed: Words
    second: Words
    rest: NDArray[np.int64]

    def column(self, at: int) -> tuple[int, int]:
        """A column's threshold, among 2**96, and whose it is from there on."""
        packed, second = (int(part[at]) & 0xFFFFFFFF for part in (self.packed, self.second))
        return ((packed >> 16) << 80) + (second << 48) + int(self.rest[at]), packed & 0xFFFF

    def weights(self) -> list[int]:
        """How many of 2**111 equal chances each value has; for tests."""
        given = [0] * COLUMNS
        for at in range(COLUMNS):
            threshold, other = self.column(at)
            given[at] += threshold
            given[other] += (1 << _THRESHOLD_BITS) - threshold
        return given


def unevenness(deviation: int, coarse: int) -> arb:
    """How far the sum of a Gaussian and so many times a discrete one is from a Gaussian."""
    wave = (-2 * arb.pi() ** 2 * arb(deviation) ** 2 / (1 + arb(coarse) ** 2)).exp()
    uneven = 2 * wave / (1 - wave)
    return uneven / (1 - uneven)


def _distance() -> Fraction:
    """A bound on the total variation between a draw and a rounded Gaussian of that variance."""
    with ctx.workprec(_PRECISION):
        beyond = (arb(COLUMNS) - arb(1) / 2) / DEVIATION
        tail = (
            2 * (beyond / arb(2).sqrt()).erfc()
        )  # of the fine law; the coarse one's is no heavier than that
        bound = exact_upper(unevenness(DEVIATION, COARSE) + 2 * (tail + arb(COLUMNS) / _WHOLE))
    assert bound is not None
    return bound


SIGMA = DEVIATION * math.sqrt(1 + COARSE**2)
"""The standard deviation of a draw, in steps of the grid."""
DISTANCE = _distance()
"""How far the law of one draw is from that of a rounded Gaussian, in total variation.

Privacy:
    Claim: let X be a draw of the fine table and Y one of the coarse table, each with a fair sign. X +
    COARSE·Y is within this of round(N(0, s²(1 + COARSE²))), s the deviation of either. Proof: were the tables
    exact, X would be a rounded N(0, s²) and Y have chances in proportion to exp(−y²/2s²). COARSE·Y is whole,
    so the sum is the rounding of N(0, s²) + COARSE·Y, whose density at t is Σ_y exp(−(t − COARSE·y)²/2s² −
    y²/2s²) up to a constant; completing the square, that is exp(−t²/2σ²) times Σ_y exp(−(y − c_t)²/2v), σ² =
    s²(1 + COARSE²) and v = s⁴/σ². By Poisson summation the last sum is within a factor 1 ± η of its mean over
    c, η = 2Σ_m exp(−2π²vm²), and two densities whose ratio is, up to a constant, within 1 ± η are within η/(1
    − η) of each other. Each table adds its tail, which it leaves out, and its rounding: chances are multiples
    of 2**-111, each off by less than one of them.
"""


def missing(price: tuple[Fraction, Fraction], draws: int) -> Fraction:
    """The part of delta that so many draws take, since they are not quite those of a Gaussian.

    Args:
        price: Epsilon and delta of all draws together.
        draws: How many there are.

    Raises:
        InvalidParameter: if it is more than half of delta.

    Privacy:
        Claim: what is (epsilon, delta − this)-differentially private with draws of a rounded Gaussian is
        (epsilon, delta)-differentially private with those of the tables. Proof: all draws together are
        within η = draws·DISTANCE in total variation, whatever follows from some of them for others. With P
        and Q for two neighbours and P' and Q' for the same with the tables, each event has P' ≤ P + η ≤
        e^ε·Q + δ + η ≤ e^ε·Q' + δ + (1 + e^ε)·η. The factor is rounded up.
    """
    epsilon, delta = price
    factor = exact_upper(1 + ball(epsilon).exp())
    found = None if factor is None else DISTANCE * draws * factor
    if found is None or 2 * found >= 1:
        raise InvalidParameter(
            f"epsilon {show(epsilon)} is too large for the noise of so many numbers and steps, which is not "
            "close enough to a Gaussian at any delta: take a smaller epsilon."
        )
    if 2 * found > delta:
        raise InvalidParameter(
            f"delta must be at least {float(2 * found) * _UP:.1e} for epsilon {show(epsilon)} and so many "
            "numbers and steps: take a larger delta or a smaller epsilon."
        )
    return found


@cache
def tables() -> tuple[Table, Table]:
    """The fine table, of a rounded Gaussian, and the coarse one, of a discrete one."""
    with ctx.workprec(_PRECISION):
        scale = 1 / (arb(2).sqrt() * DEVIATION)
        ends = [((2 * arb(at) + 1) / 2 * scale).erf() for at in range(COLUMNS)]
        fine = [ends[0], *(after - before for before, after in pairwise(ends))]
        step = 1 / (2 * arb(DEVIATION) ** 2)
        coarse = [(-(arb(at) ** 2) * step).exp() * (2 if at else 1) for at in range(COLUMNS)]
        return _table(fine), _table(coarse)


def _table(chances: list[arb]) -> Table:
    whole = sum(chances, arb(0))
    weights = [_floor(chance / whole) for chance in chances]
    weights[0] += _WHOLE - sum(weights)
    return _columns(weights)


def _floor(chance: arb) -> int:
    scaled = (chance * _WHOLE).mid()
    mantissa, exponent = (int(part) for part in scaled.man_exp())
    return mantissa << exponent if exponent >= 0 else mantissa >> -exponent


def _columns(weights: list[int]) -> Table:
    """Walker's alias method, in whole numbers."""
    height = 1 << _THRESHOLD_BITS
    left, other, threshold = list(weights), list(range(COLUMNS)), [0] * COLUMNS
    low = [at for at, weight in enumerate(left) if weight < height]
    high = [at for at, weight in enumerate(left) if weight > height]
    while low:
        column, giver = low.pop(), high[-1]
        threshold[column], other[column] = left[column], giver
        left[giver] -= height - left[column]
        if left[giver] <= height:
            high.pop()
            if left[giver] < height:
                low.append(giver)
    packed = np.array([(each >> 80) << 16 | to for each, to in zip(threshold, other, strict=True)], np.uint32)
    second = np.array([each >> 48 & 0xFFFFFFFF for each in threshold], np.uint32)
    rest = np.array([each & 0xFFFFFFFFFFFF for each in threshold], np.int64)
    return Table(packed.view(np.int32), second.view(np.int32), rest)
