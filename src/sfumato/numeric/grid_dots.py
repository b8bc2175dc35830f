"""One law as masses on a grid, from its profile alone: connect the dots, pessimistically.

A profile δ is convex in x = e^ε, so straight lines (in x) between points on or above it lie above it, and
so does the lower convex hull of such points. A convex polygon with corners at losses g_i is the profile of
a discrete law on the g_i, so that law dominates (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022;
`docs/proofs/grid.md`, lemmas 1 and 2).
"""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.numeric.laws.base import Law
from sfumato.numeric.rounding import LIBRARY, Floats, U

__all__ = ["Dots", "clear", "connect", "hull", "masses"]

Integers = npt.NDArray[np.int64]

_ZONE = 0.1
"""Where low losses are cut off, so wide a stretch of points is left out of the lower end (lemma 4)."""

_LIGHT = 1e-14
"""A zone of no more mass than this costs nothing that shows."""

_HULLS = 100
"""How often dots other than corners are removed: where a curve is all rounding this could go on for long."""

_ROUNDING = 2.0**-44
"""A bound on how far, relatively, the padding of `masses` raises the curve (lemma 3): 512 U."""

_FRACTIONS = tuple(10.0**-k for k in range(6, 15))
"""Dots whose two bounds differ by more than such a fraction may count as an excess at infinity instead."""


@dataclass(frozen=True, slots=True)
class Dots:
    """A discrete law that dominates: mass[j] at top - stride·step·(n - 1 - j), and an atom at infinity.

    Its profile lies above the true one, and below (1 + slack)·C + excess for each pair (slack, excess) of
    `looseness`, where C connects the exact dots at all the grid points; if losses below the last point were
    moved up to it, this holds for the law without its lowest `zone` points. `surplus` bounds by how much
    the masses and the atom add up to more than 1.
    """

    top: float
    width: float  # stride·step, rounded
    mass: Floats
    infinity: float
    looseness: tuple[tuple[float, float], ...]
    surplus: float
    zone: int

    def loose(self, delta: float) -> tuple[float, float]:
        """The pair (slack, excess) that costs least where a composed profile is about delta."""
        return min(self.looseness, key=lambda pair: pair[0] * delta + pair[1])


def hull(place: Floats, curve: Floats, unit: float = 1.0) -> Integers:
    """Which dots, at losses place·unit, are corners of the lower hull (in e^loss) of them and (0, 1).

    A dot on or above the line between its two neighbours is not a corner, whoever the neighbours are, so all
    such dots go at once, and again until none is left or `_HULLS` rounds are over. Whatever is kept,
    straight lines between kept dots lie above the profile: stopping early costs tightness, never soundness
    (proof, after lemma 2).
    """
    kept = np.arange(len(place))
    for _ in range(_HULLS):
        bent = _bends(place[kept], curve[kept], unit)[0] > 0.0
        bent[-1] = True
        if bent.all():
            break
        kept = kept[bent]
    return kept


def _bends(place: Floats, curve: Floats, unit: float) -> tuple[Floats, Floats]:
    """The mass at each corner of a polygon, and a bound on its rounding error.

    With B the drop of the curve over a cell divided by e^width - 1, the mass is (B before - B after) + drop
    before: only widths are exponentiated, never a loss, and nothing cancels but what cancels in the law
    itself.
    """
    width = np.diff(place) * unit
    drop = curve[:-1] - curve[1:]
    with np.errstate(over="ignore"):
        scaled = drop / np.expm1(width)
    before = np.concatenate(([0.0], scaled))
    after = np.concatenate((scaled, [0.0]))
    fallen = np.concatenate(([1.0 - curve[0]], drop))
    change = before - after
    padding = LIBRARY + 8 * U + 4 * U * np.concatenate(([0.0], width))
    return change + fallen, padding * fallen + 2 * U * np.abs(change)


def masses(place: Floats, curve: Floats, unit: float = 1.0) -> Floats:
    """Masses at the corners place·unit, never below those of the polygon through (0, 1) and the dots.

    Privacy:
        Every rounding is upwards: the profile of these masses, with curve[-1] at infinity, is at least the
        polygon at every ε (proof, lemma 3).
    """
    mass, error = _bends(place, curve, unit)
    widest = float(np.max(np.diff(place), initial=0.0)) * unit
    return np.maximum(mass + error, 0.0) * (1 + LIBRARY + 8 * U + 4 * U * widest)


def connect(
    law: Law,
    parameters: tuple[float, ...],
    top: float,
    step: float,
    *,
    count: int,
    stride: int = 1,
    zone: int = 0,
) -> Dots:
    """The law on `count` points that descend from `top` by exactly `stride` times `step` each.

    Above `top` everything is moved to infinity; below the last point, up to it. Both are safe anywhere, and
    `looseness` and `zone` say what they cost. At least `zone` points at the low end are left out of the lower
    end: the more, the less loose is the rest.

    Privacy:
        The result dominates the law: domination by dots and hull (proof, lemmas 1 to 3).
    """
    key = (law, parameters, top, step, count, stride, zone)
    dots = _CACHE.get(key)
    if dots is None:
        dots = _connect(law, parameters, top, step, count, stride, zone)
        _CACHE.put(key, dots)
    return dots


def _connect(
    law: Law, parameters: tuple[float, ...], top: float, step: float, count: int, stride: int, least: int
) -> Dots:
    width = stride * step
    steps = step * (stride * np.arange(count - 1, -1, -1, dtype=np.float64))
    loss = top - steps
    # The grid is exact in real numbers, its floats are not: the profile falls, so reading it a hair to the
    # left is safe.
    hair = 4 * U * (abs(top) + steps)
    hair[-1] = 0.0
    lower, upper = (np.array(end) for end in law.bounds(loss - hair, parameters))  # a law may keep its arrays
    bottom, summit = law.support(parameters)
    if top >= summit:
        upper[-1] = law.infinity(parameters)
        lower[-1] = min(lower[-1], upper[-1])
    curve = np.minimum.accumulate(np.minimum(upper, 1.0))
    lower = _lower_at(loss, lower, curve, hair, width)
    place = np.arange(count, dtype=np.float64)
    kept = hull(place, curve, width)
    dense = np.zeros(count)
    dense[kept] = masses(place[kept], curve[kept], width)
    infinity = float(curve[-1])
    zone, factor = 0, 1.0
    if loss[0] > bottom:  # losses were moved up to the last point: lemma 4
        zone = max(_zone(dense, width), least)
        factor = 2.0 - 1.0 / math.expm1(-width * (zone - 1))
    cut = 0.0 if top >= summit else infinity - law.infinity(parameters) * (1 - 2.0**-40)
    # Where the hull was left early a corner may bend the wrong way: its mass is raised to 0 (after lemma 2).
    bends, errors = _bends(place[kept], curve[kept], width)
    lift = float(np.sum(np.maximum(-bends - errors, 0.0))) * (1 + 64 * U)
    pairs = _looseness(_polygon(place * width, curve, kept), lower)
    looseness = tuple(
        ((s * (1 + 8 * U) + _ROUNDING) * factor, (max(e, cut) + lift) * factor) for s, e in pairs
    )
    surplus = max(0.0, float(np.sum(dense)) * (1 + 64 * U) + infinity - 1.0) + 8 * U
    return Dots(top, width, dense, infinity, looseness, surplus, zone)


def _zone(mass: Floats, width: float) -> int:
    """How many of the lowest points the lower end leaves out: as wide as may be, of hardly any mass."""
    widest = max(2, math.ceil(min(_ZONE, 0.2 * width * len(mass)) / width))
    light = np.cumsum(mass[:widest]) <= 8 * float(mass[0]) + _LIGHT
    return max(2, int(light.sum()))


def _lower_at(loss: Floats, lower: Floats, curve: Floats, hair: Floats, width: float) -> Floats:
    """The lower bounds moved back from a hair to the left, by the slope of the chord before each."""
    left = np.concatenate(([1.0], curve[:-1]))
    steep = np.concatenate(([2.0], np.full(len(loss) - 1, 2.0 / -np.expm1(-width))))
    result: Floats = np.maximum(lower - hair * steep * np.maximum(left - lower, 0.0), 0.0)
    return result


def _polygon(loss: Floats, curve: Floats, kept: Integers) -> Floats:
    """The hull's height at every grid point, up to rounding above it."""
    if len(kept) == len(loss):
        return curve
    height = curve.copy()
    gone = np.ones(len(loss), dtype=bool)
    gone[kept] = False
    at = np.flatnonzero(gone)
    right = np.searchsorted(kept, at)
    b = kept[right]
    a = kept[np.maximum(right - 1, 0)]
    first = right == 0  # between (0, 1) and the first corner
    left = np.where(first, 1.0, curve[a])
    span = np.where(first, -1.0, np.expm1(np.where(first, -1.0, loss[a] - loss[b])))
    height[at] = (curve[b] + (left - curve[b]) * np.expm1(loss[at] - loss[b]) / span) * (1 + 4 * LIBRARY)
    return height


def _looseness(height: Floats, lower: Floats) -> list[tuple[float, float]]:
    """Pairs (slack, excess) with height ≤ (1 + slack)·lower + excess at every grid point."""
    gap = np.maximum(height - lower, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(gap > 0.0, gap / lower, 0.0)
    pairs = []
    for fraction in _FRACTIONS:
        fine = relative <= fraction
        slack = float(np.max(relative, where=fine, initial=0.0))
        pairs.append((slack, float(np.max(gap, where=~fine, initial=0.0)) * (1 + 4 * U)))
    return pairs


class _Cache:
    """The latest grids, up to a fixed number of floats in all."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._held: OrderedDict[tuple[object, ...], Dots] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> Dots | None:
        dots = self._held.get(key)
        if dots is not None:
            self._held.move_to_end(key)
        return dots

    def put(self, key: tuple[object, ...], dots: Dots) -> None:
        dots.mass.setflags(write=False)
        self._held[key] = dots
        total = sum(len(held.mass) for held in self._held.values())
        while total > self._capacity and self._held:
            total -= len(self._held.popitem(last=False)[1].mass)

    def clear(self) -> None:
        self._held.clear()


_CACHE = _Cache(2**23)


def clear() -> None:
    """Forget the cached grids."""
    _CACHE.clear()
