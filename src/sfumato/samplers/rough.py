"""What floats decide about a single draw, with room for all their errors; close calls are left to integers.

A law that is drawn from once or a few times pays for no exact boundaries: those are needed only where a
uniform of 64 bits lies next to one. Floats never decide anything that exact arithmetic would decide
otherwise, and use the bits that it would use, so that draws are the same, bit by bit.

Every exponent here is a sum of positive terms with at most eight roundings, each of 2**-53 of it, and an
exponential is off by an ulp or two. Where exponents are at most 64, values are off by less than 2**-42 of 1,
and sums of up to 130 of them over their total by less than 2**-39; exponentials of larger exponents are below
2**-92, and so are their errors. `MARGIN` is a hundred times that, and a quotient is taken only of a
denominator above 1/16.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

from sfumato._dataclasses import dataclass

__all__ = ["MARGIN", "About", "about", "accepted", "symbol"]

MARGIN = 2.0**-32
"""Floats decide only where a uniform is farther than this from what it is compared with."""

_WORD = 2.0**-64
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
        single = discrete and exponent == 0
        tails, tests, sures = list[float](), list[float](), list[float]()
        for _, least in sides:
            start = width * blocks + least
            bend = (found.slope + 2.0 * found.curvature * start) * width
            tails.append(math.exp(-found.drop(0.0, start)) / -math.expm1(-bend))
            for index in range(blocks - 1, -1, -1):
                near = index * width + least
                height = math.exp(-found.drop(0.0, near))
                if single:
                    sures.append(height)
                else:
                    far = math.exp(-found.drop(0.0, near + found.reach))
                    tests.append(height - far)
                    sures.append(far)
        volumes = [*tails, *tests, *sures]
        whole = math.fsum(volumes)
        starts = [before / whole for before in accumulate(volumes[:-1], initial=0.0)]
    except (OverflowError, ZeroDivisionError):
        return None
    found.starts.extend(starts)
    return found if math.isfinite(whole) and all(map(math.isfinite, starts)) else None


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
