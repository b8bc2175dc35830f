"""Random allocation, from above: the law of a mean of independent likelihood ratios on a dyadic lattice.

Where a unit takes part in one of k releases, chosen uniformly, the likelihood ratio of all of them is the
mean X of independent ratios Y_1, …, Y_k of one release each. Both directions are expectations of convex
functions of X, so a law that is larger in convex order dominates: each Y_i is spread over lattice points so
that its mean stays, sums of lattice points are lattice points, and where a coarser lattice will do they are
spread once more (`docs/proofs/allocation.md`). Places are those of D = Σ (Y_i − 1), around 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.numeric import lognormal
from sfumato.numeric.rounding import Floats, U

Integers = npt.NDArray[np.int64]

__all__ = ["MOST", "Ratios", "spread"]

MOST = 5.0
"""The largest shift of one release, in deviations of its noise."""

_BITS = 9
"""Each doubling of the distance from 0 has 2^9 points."""

_HIGHEST = 14.0
"""So many deviations above its own mean a ratio goes to infinity: 1e-44 of the likelier law lies there."""

_REST, _TINY = 1e-50, 1e-150
"""What is left out at an end of the lattice, and the least mass on it: nothing underflows when multiplied."""


@dataclass(frozen=True, slots=True)
class Part:
    """Masses at (first + j)·2^exponent."""

    exponent: int
    first: int
    mass: Floats

    @property
    def end(self) -> int:
        """One beyond the last point."""
        return self.first + len(self.mass)

    def places(self) -> Floats:
        """Where the masses are; exact."""
        return np.ldexp(np.arange(self.first, self.end, dtype=np.float64), self.exponent)

    def coarser(self) -> Part:
        """The same on every other point: half of what lies between two goes to each."""
        front = self.first & 1
        padded = np.concatenate((np.zeros(front), self.mass, np.zeros((len(self.mass) + front + 1) % 2)))
        even, odd = padded[::2].copy(), padded[1::2] / 2
        even[:-1] += odd
        even[1:] += odd
        return Part(self.exponent + 1, self.first >> 1, even)


@dataclass(frozen=True, slots=True)
class Ratios:
    """A measure that dominates the law of D, in parts whose lattices become coarser away from 0.

    Attributes:
        count: of how many ratios it is the sum.
        parts: what is around 0 and below it, and beyond that each time twice as far and as coarse.
        nothing: mass of X = 0.
        infinite: what of the likelier law lies at infinity.
        rounding: how much too small, relatively, all masses may be.
    """

    count: int
    parts: tuple[Part, ...]
    nothing: float
    infinite: float
    rounding: float

    @property
    def total(self) -> float:
        """All mass but what is at infinity, rounded up."""
        return (math.fsum(float(part.mass.sum()) for part in self.parts) + self.nothing) * (1 + 1e-11)

    def atoms(self) -> tuple[Floats, Floats]:
        """Rising places of X − 1 and the masses there, without those of X = 0 and at infinity."""
        places = np.concatenate([part.places() for part in self.parts]) / self.count
        masses = np.concatenate([part.mass for part in self.parts])
        some = np.flatnonzero(masses)
        some = some[np.argsort(places[some], kind="stable")]
        return places[some], masses[some]

    def plus(self, other: Ratios, exponent: int) -> Ratios:
        """The sum with an independent one, on a lattice whose finest part has this exponent.

        Privacy:
            Claim: dominates if both do. All pairs of points count; of each pair the finer is spread to the
            lattice of the coarser first. What is at X = 0 stays there whatever is added to it, and the
            likelier law's part of what was added goes to infinity (proofs/allocation.md, lemmas 2 to 4).
        """
        count = self.count + other.count
        lattice, longest = _Lattice(exponent), 0
        for one, two in _pairs(self.parts, other.parts):
            longest = max(longest, min(len(one.mass), len(two.mass)))
            lattice.put(Part(one.exponent, one.first + two.first, np.convolve(one.mass, two.mass)))
        totals = self.total, other.total
        nothing = self.nothing * totals[1] + other.nothing * totals[0]
        infinite = (
            self.count * (self.infinite * totals[1] + other.nothing * totals[0])
            + other.count * (other.infinite * totals[0] + self.nothing * totals[1])
        ) / count
        # A convolution is off by its longest sum; parts are added and made coarser fewer than 1,000 times.
        slack = self.rounding + other.rounding + (longest + 2048) * U
        return lattice.law(count, nothing * (1 + 1e-11), infinite * (1 + 1e-11), slack * (1 + slack))


def spread(mu: float, count: int) -> Ratios:
    """The mean of `count` ratios of N(mu, 1) to N(0, 1), spread.

    Privacy:
        Claim: with all masses raised by `rounding`, E[(X − x)+] and E[(1 − xX)+] are nowhere smaller than for
        the true law, where what is at infinity adds to the first and what is at 0 to the second
        (proofs/allocation.md, theorem 2).
    """
    one = _single(mu)
    law = one
    for bit in bin(count)[3:]:
        law = law.plus(law, _exponent(mu, 2 * law.count))
        if bit == "1":
            law = law.plus(one, _exponent(mu, law.count + 1))
    return law


def _exponent(mu: float, count: int) -> int:
    """Steps of the finest part: a small part of the deviation of D, and of the number of ratios."""
    deviation = math.sqrt(math.expm1(mu * mu) * count)
    finer = max(0, 4 - count.bit_length())
    return math.floor(math.log2(min(deviation, count / 2))) - _BITS - finer


def _single(mu: float) -> Ratios:
    """One ratio: the mass of each cell goes to its two edges so that its mean stays."""
    lattice = _Lattice(_exponent(mu, 1))
    lowest, highest = max(-1.0, lognormal.place(mu, lognormal.LOWEST)), lognormal.place(mu, _HIGHEST + mu)
    indices = list(_indices(lattice.exponent, lowest, highest))
    edges = np.concatenate([np.ldexp(some.astype(np.float64), exponent) for exponent, some in indices])
    order = np.argsort(edges)
    rising = edges[order]
    mass, off = lognormal.cells(mu, rising)
    right = off / np.diff(rising)
    put = np.zeros(len(rising))
    put[1:] += right
    put[:-1] += np.maximum(mass - right, 0.0) + 4 * lognormal.ACCURATE * mass
    there, more = lognormal.above(mu, float(rising[-1]))
    put[-1] += there
    masses = np.empty(len(edges))
    masses[order] = put
    at = 0
    for exponent, some in indices:
        lattice.put(Part(exponent, int(some[0]), masses[at : at + len(some)]))
        at += len(some)
    # Below the lowest edge X is less than 1: no more of the likelier law lies there.
    left = lognormal.below(mu, float(rising[0])) + lognormal.LOWER
    return lattice.law(1, left, left + more, 4 * lognormal.ACCURATE)


def _indices(exponent: int, lowest: float, highest: float) -> Iterator[tuple[int, Integers]]:
    """The points of a lattice between two places, as runs of one step each."""
    half, whole = 1 << _BITS, 2 << _BITS
    yield exponent, np.arange(max(-whole, math.floor(math.ldexp(lowest, -exponent))), whole + 1)
    while math.ldexp(whole, exponent) < -lowest or math.ldexp(whole, exponent) < highest:
        exponent += 1
        least = max(-whole, math.floor(math.ldexp(lowest, -exponent)))
        if least < -half:
            yield exponent, np.arange(least, -half)
        if math.ldexp(half, exponent) < highest:
            yield exponent, np.arange(half + 1, whole + 1)


class _Lattice:
    """A lattice that is filled: 2^(b + 1) points on both sides of 0, then 2^b a side for each doubling."""

    def __init__(self, exponent: int) -> None:
        self.exponent = exponent
        self._held: dict[int, list[Part]] = {}

    def put(self, part: Part) -> None:
        """Adds masses, spread where the lattice is coarser than they are."""
        while part.exponent < self.exponent:
            part = part.coarser()
        limit = 2 << _BITS
        while part.end - 1 > limit or part.first < -limit:
            # What lies further out than 2^(b + 1) of its own steps goes to a coarser lattice.
            inner = slice(max(-limit - part.first, 0), max(limit + 1 - part.first, 0))
            outer = part.mass.copy()
            outer[inner] = 0.0
            self._keep(Part(part.exponent, part.first + inner.start, part.mass[inner]))
            part = Part(part.exponent, part.first, outer).coarser()
        self._keep(part)

    def _keep(self, part: Part) -> None:
        if len(part.mass):
            self._held.setdefault(part.exponent, []).append(part)

    def law(self, count: int, nothing: float, infinite: float, rounding: float) -> Ratios:
        """What was put, each mass on the finest lattice that its place has."""
        half = 1 << _BITS
        parts: list[Part] = []
        for exponent in range(max(self._held), self.exponent, -1):
            if exponent not in self._held:
                continue
            part = _added(self._held[exponent])
            inner = slice(max(-half - part.first, 0), max(half + 1 - part.first, 0))
            finer = np.zeros(max(2 * len(part.mass[inner]) - 1, 0))
            finer[::2] = part.mass[inner]
            if len(finer):
                first = 2 * (part.first + inner.start)
                self._held.setdefault(exponent - 1, []).append(Part(exponent - 1, first, finer))
            part.mass[inner] = 0.0
            parts.append(part)
        parts.append(_added(self._held[self.exponent]))
        return _trimmed(count, parts[::-1], nothing, infinite, rounding)


def _added(parts: list[Part]) -> Part:
    first, end = min(part.first for part in parts), max(part.end for part in parts)
    mass = np.zeros(end - first)
    for part in parts:
        mass[part.first - first : part.end - first] += part.mass
    return Part(parts[0].exponent, first, mass)


def _trimmed(count: int, parts: list[Part], nothing: float, infinite: float, rounding: float) -> Ratios:
    """Without masses that hardly count: they go to X = 0 and, as the likelier law sees them, to infinity."""
    nothing, infinite = nothing + 1e-100, infinite + 1e-100  # what is below `_TINY`
    kept: list[Part] = []
    for part in parts:
        part.mass[part.mass < _TINY] = 0.0
        likelier = part.mass * np.maximum(1 + part.places() / count, 0.0) + part.mass
        ahead, behind = np.cumsum(likelier), np.cumsum(likelier[::-1])
        start, stop = int(np.searchsorted(ahead, _REST)), len(ahead) - int(np.searchsorted(behind, _REST))
        lost = float(likelier[:start].sum() + likelier[stop:].sum()) * (1 + 1e-11)
        nothing, infinite = nothing + lost, infinite + lost
        if start < stop:
            kept.append(Part(part.exponent, part.first + start, part.mass[start:stop]))
    return Ratios(count, tuple(kept), nothing, infinite, rounding)


def _pairs(ones: tuple[Part, ...], twos: tuple[Part, ...]) -> Iterator[tuple[Part, Part]]:
    """Parts on a common lattice each time, so that every pair of points is in exactly one of them."""
    finest = max(ones[0].exponent, twos[0].exponent)
    coarsest = max(ones[-1].exponent, twos[-1].exponent)
    under: list[Part | None] = [None, None]
    sides = [{part.exponent: part for part in parts} for parts in (ones, twos)]
    for exponent in range(min(ones[0].exponent, twos[0].exponent), coarsest + 1):
        under = [None if part is None else part.coarser() for part in under]
        here = [side.get(exponent) for side in sides]
        if exponent >= finest:
            for one, two in ((here[0], here[1]), (here[0], under[1]), (under[0], here[1])):
                if one is not None and two is not None:
                    yield one, two
        for at, part in enumerate(here):
            if part is not None:
                low = under[at]
                under[at] = part if low is None else _added([low, part])
