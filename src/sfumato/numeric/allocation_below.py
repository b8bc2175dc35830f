"""Random allocation, from below: the law of a mean of likelihood ratios, each cell drawn together.

The lower end of a bracket. A law in which what lies in a cell is moved to its centre of mass is smaller in
convex order, so its two curves lie below (`docs/proofs/allocation.md`, theorem 3). Centres are on no lattice:
all pairs of points are added one by one.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.numeric import lognormal
from sfumato.numeric.rounding import Floats, U

__all__ = ["Centres", "drawn_together"]

_BITS = 6
_HIGHEST, _TINY = 9.0, 1e-25
_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True)
class Centres:
    """Places of D = Σ (Y_i − 1) and masses there.

    Attributes:
        count: of how many ratios it is the sum.
        place: rising.
        mass: at each place.
        rounding: how much too large, relatively, masses may be.
        hair: how far X may be off, over 1 + X.
    """

    count: int
    place: Floats
    mass: Floats
    rounding: float
    hair: float

    def plus(self, other: Centres, mu: float) -> Centres:
        """The sum with an independent one, drawn together."""
        count = self.count + other.count
        cells = _Cells(mu, count, float(self.place[-1] + other.place[-1]))
        for start in range(0, len(self.place), step := max(1, _AT_ONCE // len(other.place))):
            some = slice(start, start + step)
            cells.put(
                np.add.outer(self.place[some], other.place).ravel(),
                np.multiply.outer(self.mass[some], other.mass).ravel(),
            )
        place, mass, many = cells.centres()
        slack = (many + 16) * U
        rounding = self.rounding + other.rounding + 2 * slack
        # A centre is off by what its two sums are, as a part of its cell, and by a few roundings of itself.
        return _kept(count, place, mass, rounding, max(self.hair, other.hair) + 2 * slack)


def drawn_together(mu: float, count: int) -> Centres:
    """The mean of `count` ratios of N(mu, 1) to N(0, 1), from below in convex order."""
    cells = _Cells(mu, 1, lognormal.place(mu, _HIGHEST + mu))
    edges = np.maximum(cells.edges, -1.0)
    mass, off = lognormal.cells(mu, edges)
    some = mass > 0
    one = _kept(
        1, edges[:-1][some] + off[some] / mass[some], mass[some], 4 * lognormal.ACCURATE, lognormal.MOVED
    )
    law = one
    for bit in bin(count)[3:]:
        law = law.plus(law, mu)
        if bit == "1":
            law = law.plus(one, mu)
    return law


def _kept(count: int, place: Floats, mass: Floats, rounding: float, hair: float) -> Centres:
    """Without what hardly counts: a measure with less on it has lower curves."""
    enough = mass * np.maximum(1 + place / count, 1.0) > _TINY
    return Centres(count, place[enough], mass[enough], rounding, hair)


class _Cells:
    """Cells that are a part of their distance from 0 wide, into which masses are put."""

    def __init__(self, mu: float, count: int, highest: float) -> None:
        deviation = math.sqrt(math.expm1(mu * mu) * count)
        bits = _BITS + (count < 4)
        # The first bits of |D| + A, as a float has them, number the cells on each side of 0.
        self._near = 2.0 ** math.floor(math.log2(min(deviation, count / 2)))
        self._shift = 52 - bits
        self._first = self._number(self._near)
        self._left = self._number(self._near + count) - self._first + 1
        right = self._number((self._near + highest) * (1 + 4 * U)) - self._first + 1
        sides = np.arange(self._left, 0, -1), np.arange(right + 1)
        below, above = ((self._first + side << self._shift).view(np.float64) - self._near for side in sides)
        self.edges: Floats = np.concatenate((-below, above))
        cells = len(self.edges) - 1
        self._mass, self._off, self._many = np.zeros(cells), np.zeros(cells), np.zeros(cells, np.int64)

    def _number(self, distance: float) -> int:
        return int(np.array([distance]).view(np.int64)[0]) >> self._shift

    def put(self, places: Floats, masses: Floats) -> None:
        """Adds masses to the cells that they are in."""
        number = ((np.abs(places) + self._near).view(np.int64) >> self._shift) - self._first
        where = np.where(places < 0, self._left - 1 - number, self._left + number)
        self._mass += np.bincount(where, masses, len(self._mass))
        self._off += np.bincount(where, masses * (places - self.edges[where]), len(self._mass))
        self._many += np.bincount(where, minlength=len(self._mass))

    def centres(self) -> tuple[Floats, Floats, int]:
        """The centre of mass of each cell that has any, its mass, and how many terms a sum had at most."""
        some = self._mass > 0
        centre = self.edges[:-1][some] + self._off[some] / self._mass[some]
        return centre, self._mass[some], int(self._many.max())
