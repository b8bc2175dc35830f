"""What floats decide about draws, with room for all their errors; close calls are left to integers.

Exact boundaries of a law's symbols take long to make, and are needed only where a uniform of 64 bits lies
next to one. Floats never decide anything that exact arithmetic would decide otherwise, and use the bits that
it would use, so that draws are the same, bit by bit.

Every exponent here is a sum of positive terms with at most eight roundings, each of 2**-53 of it, and an
exponential is off by a few ulps. Where exponents are at most 64, values are off by less than 2**-42 of 1, and
sums of up to 4,100 of them over their total by less than 2**-38; exponentials of larger exponents are below
2**-92, and so are their errors. `MARGIN` is 64 times that, and a quotient is taken only of a denominator
above 1/16.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.samplers.stream import Words64

__all__ = ["MARGIN", "About", "about", "accepted", "boundaries", "symbol"]

MARGIN = 2.0**-32
"""Floats decide only where a uniform is farther than this from what it is compared with."""

_WORD = 2.0**-64
_SHORT = 64  # lists up to this length are not worth an array
_SHALLOW, _DEEP = 0.125, 64.0
"""Drops of the exponent across a block between which a chance is computed in floats."""


@dataclass(frozen=True, slots=True)
class About:
    """A law in floats: coefficients of its exponent, its blocks, and where its symbols begin in [0, 1)."""

    slope: float
    curvature: float
    width: float
    reach: float
    starts: list[float]

    def drop(self, near: float, step: float) -> float:
        """The exponent at near + step less that at near."""
        return self.slope * step + self.curvature * step * (2.0 * near + step)


def about(
    slope: Fraction,
    curvature: Fraction,
    exponent: int,
    blocks: int,
    sides: tuple[tuple[int, int], ...],
    discrete: bool,
) -> About | None:
    """A law's floats; None where a number is beyond all floats. See `Law` for the arguments and the order."""
    try:
        width = math.ldexp(1.0, exponent)
        found = About(float(slope), float(curvature), width, width - 1.0 if discrete else width, [])
        tails, tests, sures = list[float](), list[float](), list[float]()
        for _, least in sides:
            start = width * blocks + least
            bend = (found.slope + 2.0 * found.curvature * start) * width
            tails.append(math.exp(-found.drop(0.0, start)) / -math.expm1(-bend))
            near = _heights(found, blocks, least)
            if discrete and exponent == 0:
                sures += near
            else:
                far = _heights(found, blocks, least + found.reach)
                tests += [one - other for one, other in zip(near, far, strict=True)]
                sures += far
    except (OverflowError, ZeroDivisionError):
        return None
    before = list(accumulate((*tails, *tests, *sures), initial=0.0))
    whole = before.pop()
    if not math.isfinite(whole):
        return None
    found.starts.extend([start / whole for start in before])
    return found


def _heights(law: About, blocks: int, offset: float) -> list[float]:
    """The density at so far from the near end of each block of a side, outermost first."""
    slope, curvature, width = law.slope, law.curvature, law.width
    if blocks <= _SHORT:
        points = [index * width + offset for index in range(blocks - 1, -1, -1)]
        return [math.exp(-(slope * point + curvature * point * point)) for point in points]
    many = np.arange(blocks - 1, -1, -1, dtype=np.float64) * width + offset
    heights: list[float] = np.exp(-(slope * many + curvature * many * many)).tolist()
    return heights


def boundaries(law: About | None, suffix: int) -> tuple[Words64, Words64] | None:
    """Integers of 64 bits below and above where each symbol begins.

    None where they would leave open in which slot one of them does: a slot is of all numbers with the same
    bits but the last `suffix`.
    """
    if law is None:
        return None
    starts = np.array(law.starts[1:])
    if starts[-1] >= 1.0 - 2.0 * MARGIN:
        return None
    lower = np.floor(np.maximum(starts - MARGIN, 0.0) * 2.0**64).astype(np.uint64)
    upper = np.ceil((starts + MARGIN) * 2.0**64).astype(np.uint64)
    rest = np.uint64((1 << suffix) - 1)
    across = (lower >> np.uint64(suffix)) != (upper >> np.uint64(suffix))
    # The first slot has no edge below: what begins within the margin of 0 begins in it.
    edged = (((lower & rest) == 0) & (lower > 0)) | ((upper & rest) == 0)
    if bool(np.any(across | edged)):
        return None
    zero = np.zeros(1, np.uint64)  # the first symbol begins at 0
    return np.concatenate((zero, lower)), np.concatenate((zero, upper))


def symbol(law: About | None, value: int) -> int | None:
    """The symbol that a uniform of 64 bits falls into; None where it is next to a boundary."""
    if law is None:
        return None
    uniform, starts = value * _WORD, law.starts
    index = bisect_right(starts, uniform) - 1
    if uniform - starts[index] <= MARGIN:
        return None
    if index + 1 < len(starts) and starts[index + 1] - uniform <= MARGIN:
        return None
    return index


def accepted(law: About | None, index: int, least: int, place: Fraction, value: int) -> bool | None:
    """Whether a point of a test box is accepted for a uniform of 64 bits; None where it is a close call.

    Args:
        law: The law.
        index: Of the block, on its side.
        least: Where that side begins.
        place: How far from the near end of the block the point lies.
        value: The uniform's bits.
    """
    if law is None:
        return None
    near = index * law.width + least
    deep = law.drop(near, law.reach)
    if not _SHALLOW <= deep <= _DEEP:
        return None
    floor = math.exp(-deep)
    chance = (math.exp(-law.drop(near, float(place))) - floor) / (1.0 - floor)
    gap = chance - value * _WORD
    return None if abs(gap) <= MARGIN else gap > 0.0
