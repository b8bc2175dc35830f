"""Quantiles from counts around the cells that were selected: where the rings lie, estimates, intervals.

A selected cell is public. Around each one the grid is cut at distances of 1, 2, 3, 4, 6, 9, … cells: finely
near it and coarsely far from it, whatever the scale of the data; cuts of neighbouring cells meet half way.
The pieces are one partition of the grid, and the noisy weights of them all give the rank of each cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.plan.intervals.cdf import sum_widths
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.intervals.noise import Noise

__all__ = ["Aim", "Rings", "cuts_around", "weights_between"]

_EXACT = 16  # so many noises are counted one by one; more are rounded up
_FEW_LEVELS = 4  # up to so many, each looks at all cuts
_HALF = 32  # bits for each number of a pair
_ROUNDING = 2.0**-44  # of the largest number in a group: what adding up in floats can take off

Cells = NDArray[np.int64]


def cuts_around(selected: Cells, cells: int) -> Cells:
    """The cuts of each group, ascending, groups × cuts: from 0 to `cells`, some of them more than once.

    Args:
        selected: The cells that were selected, groups × levels; a cell lies between cuts c and c + 1.
        cells: How many cells the grid has.
    """
    centers = np.sort(selected, axis=1)
    between = (centers[:, 1:] + centers[:, :-1] + 1) // 2
    first, last = np.zeros((len(centers), 1), np.int64), np.full((len(centers), 1), cells)
    steps = _steps(cells)
    left = np.concatenate([first, between], axis=1)
    right = np.maximum(np.concatenate([between, last], axis=1), centers + 1)
    rings = np.concatenate([centers[:, :, None] + 1 - steps, centers[:, :, None] + steps], axis=2)
    rings = np.clip(rings, left[:, :, None], right[:, :, None])
    return np.sort(
        np.concatenate([first, rings.reshape(len(centers), centers.shape[1] * 2 * len(steps)), last], axis=1),
        axis=1,
    )


@lru_cache(maxsize=64)
def _steps(cells: int) -> Cells:
    """Distances from 1 to below `cells`, each about half as far again as the one before."""
    steps = [1]
    while steps[-1] < cells:
        steps.append(max(steps[-1] + 1, steps[-1] * 3 // 2))
    return np.array(steps)


def weights_between(weights: NDArray[Any], cuts: Cells) -> NDArray[Any]:
    """The exact weight between each cut and the next one, groups × (cuts − 1).

    Args:
        weights: Groups × cells, exact integers.
        cuts: Those of `cuts_around`.

    Privacy:
        Claim: where a unit's weights over all cells of all groups total at most Δ, these move by at most Δ in
        L1 for any cuts that do not depend on the weights but through what was released of them. Proof: the
        pieces of a group are a partition of its cells.
    """
    upto = np.concatenate([np.zeros((len(weights), 1), weights.dtype), np.cumsum(weights, axis=1)], axis=1)
    return np.diff(np.take_along_axis(upto, cuts, axis=1), axis=1)


class Aim(NamedTuple):
    """The rank that a level aims at: q·n, or for an outer level a guard inside the extreme at the least.

    Attributes:
        level: q.
        guard: None for inner levels. For q ≥ 19/20 the rank is min(q·n, max(n/2, n − guard)), for q ≤ 1/20
            its mirror image (`mechanisms.Quantiles`).
        rate: Of the coins exp(−rate·distance) that selected the cell.
    """

    level: Fraction
    guard: float | None
    rate: float

    @property
    def mirrored(self) -> Aim:
        """The same seen from the other end."""
        return Aim(1 - self.level, self.guard, self.rate)


@dataclass(frozen=True, slots=True, eq=False)
class Rings:
    """Noisy weights between cuts.

    Attributes:
        cells: How many cells the grid has.
        cuts: Groups × cuts.
        noisy: Groups × (cuts − 1), in natural units.
        noise: The law of their noise, the same for all and independent.
    """

    cells: int
    cuts: Cells
    noisy: Floats
    noise: Noise

    def intervals(
        self, aim: Aim, risk: float, place: int | None = None, added: float = 0.0
    ) -> tuple[Cells, Cells]:
        """For each group the first and the last cell that the noise cannot rule out as its quantile.

        A quantile is a cell with (weight before it) ≤ T ≤ (weight up to it). At each cut, the weight before
        it less T is estimated from all pieces. The cells before the cut are ruled out if it is below 0, those
        after it if it is above 0, by more than its noise is with probability risk/2. Any quantile cell
        therefore lies in the interval with probability at least 1 − risk, whatever the data: the cuts do not
        depend on this noise. The interval is never empty.

        Args:
            aim: The rank.
            risk: The probability that an interval may miss.
            place: Of the level among several, ascending: cuts far from its own are then left out in part,
                which only widens. None tries all cuts.
            added: So much weight, anywhere, may belong to the data beside what was counted.
        """
        if 2 * aim.level < 1 and aim.guard is not None:
            other = None if place is None else self._levels - 1 - place
            low, high = self._mirrored.intervals(aim.mirrored, risk, other, added)
            return self.cells - 1 - high, self.cells - 1 - low
        tried = self._tried(place)
        above, below = self._refuted(aim, risk / 2, tried, added)
        ends = np.ones((len(self.cuts), 1), np.bool_)
        reached = np.concatenate([ends, ~above], axis=1)  # at the lower cut of a piece
        passed = np.concatenate([~below, ends], axis=1)  # at its upper cut
        last = reached.shape[1] - 1 - np.argmax(reached[:, ::-1], axis=1)
        cuts = self.cuts[:, [0, *tried, -1]]
        rows = np.arange(len(cuts))
        # Where there seems to be less than nothing, the last cell is left.
        low = np.minimum(cuts[rows, np.argmax(passed, axis=1)], self.cells - 1)
        return low, np.maximum(cuts[rows, last + 1] - 1, low)

    @property
    def _levels(self) -> int:
        """How many cells there are cuts around."""
        return int(self.cuts.shape[1] - 2) // (2 * len(_steps(self.cells)))

    def _tried(self, place: int | None) -> list[int]:
        """The inner cuts at which the rank of a level is looked at: its own, and one of some others each."""
        if place is None or self._levels <= _FEW_LEVELS:
            return list(range(1, self.cuts.shape[1] - 1))
        size = 2 * len(_steps(self.cells))
        away = {place + side * step for step in _steps(self._levels).tolist() for side in (-1, 1)}
        starts = [1 + size * other for other in away if 0 <= other < self._levels]
        return sorted({*starts, *range(1 + size * place, 1 + size * (place + 1))})

    def estimates(self, aim: Aim, selected: Cells) -> Cells:
        """A cell for each group: the selected one, or another that the counts speak for.

        The noisy ranks say how far off the selected cell is. It is moved along them, made monotone, by the
        part that is not their own noise, as that compares with the error of the selection; by whole cells,
        and not at all where the ranks agree that it holds the rank.
        """
        if 2 * aim.level < 1 and aim.guard is not None:
            mirrored = self._mirrored.estimates(aim.mirrored, self.cells - 1 - selected)
            return self.cells - 1 - mirrored
        before = self._ranks(aim)
        falling = np.minimum.accumulate(before[:, ::-1], axis=1)[:, ::-1]
        ranks = (np.maximum.accumulate(before, axis=1) + falling) / 2
        rows = np.arange(len(ranks))
        start = np.argmax(self.cuts >= selected[:, None], axis=1)  # the cut before the cell
        end = np.argmax(self.cuts > selected[:, None], axis=1)
        over, under = ranks[rows, start], ranks[rows, end]
        left, right = self._pieces
        q = float(aim.level)
        variance = self.noise.variance * (left * (1 - q) ** 2 + right * q**2)[rows, start]
        kept = variance / (2 / aim.rate**2 + variance)
        target = kept * np.where(over > 0, over, np.minimum(under, 0.0))
        moved = np.where((over > 0) | (under < 0), self._placed(ranks, target) - (selected + 0.5), 0.0)
        return np.clip(selected + np.trunc(moved).astype(np.int64), 0, self.cells - 1)

    def _placed(self, ranks: Floats, target: Floats) -> Floats:
        """Where monotone ranks pass a target, between cuts in proportion."""
        rows = np.arange(len(ranks))
        after = np.clip((ranks < target[:, None]).sum(axis=1), 1, ranks.shape[1] - 1)
        low, high = ranks[rows, after - 1], ranks[rows, after]
        part = np.clip((target - low) / np.where(high > low, high - low, 1.0), 0.0, 1.0)
        start, end = self.cuts[rows, after - 1], self.cuts[rows, after]
        placed: Floats = start + part * (end - start)
        return placed

    def _ranks(self, aim: Aim) -> Floats:
        """The noisy weight before each cut, less the rank that is aimed at, groups × cuts."""
        before = self._before
        total = before[:, -1:]
        rank = float(aim.level) * total
        if aim.guard is not None:
            rank = np.minimum(rank, np.maximum(total / 2, total - aim.guard))
        return before - rank

    def _refuted(
        self, aim: Aim, risk: float, tried: list[int], added: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """At which cuts weight before − T is surely above 0, and surely below 0.

        For an outer level it is max(before − qn, min(before − n/2, before − n + guard)). Where one of two
        forms is enough to be sure, each has half of the risk.

        Weight a that is added before the cut and b after it, a + b ≤ `added`, moves before − qn by
        (1 − q)·a − q·b: at most (1 − q)·added up and q·added down.
        """
        up, down = (1 - float(aim.level)) * added, float(aim.level) * added
        plain, width = self._form(aim.level, 0.0, risk, tried)
        if aim.guard is None:
            return plain - down > width, plain + up < -width
        half, half_width = self._form(Fraction(1, 2), 0.0, risk / 2, tried)
        inside, inside_width = self._form(Fraction(1), aim.guard, risk / 2, tried)
        _, wider = self._form(aim.level, 0.0, risk / 2, tried)
        either = added / 2
        above = (plain - down > wider) | ((half - either > half_width) & (inside - added > inside_width))
        below = (plain + up < -width) & ((half + either < -half_width) | (inside < -inside_width))
        return above, below

    def _form(self, level: Fraction, shift: float, risk: float, tried: list[int]) -> tuple[Floats, Floats]:
        """(1 − q)·before − q·after + shift at each of these cuts, and what its noise exceeds at the risk."""
        before = self._before
        q = float(level)
        form = before[:, tried] - q * before[:, -1:] + shift
        left, right = (_rounded_up(pieces[:, tried]) for pieces in self._pieces)
        pairs, place = np.unique((left << _HALF) + right, return_inverse=True)
        widths = _widths(level, self.noise, risk, pairs)[place.reshape(form.shape)]
        return form, widths + _ROUNDING * np.abs(self.noisy).max(axis=1, initial=0.0)[:, None]

    @property
    def _wide(self) -> NDArray[np.bool_]:
        """Which pieces have a cell; what was released for others is noise alone and left out."""
        return np.diff(self.cuts, axis=1) > 0

    @property
    def _before(self) -> Floats:
        start = np.zeros((len(self.cuts), 1))
        return np.concatenate([start, np.cumsum(np.where(self._wide, self.noisy, 0.0), axis=1)], axis=1)

    @property
    def _pieces(self) -> tuple[Cells, Cells]:
        """How many pieces with a cell lie before each cut, and after it."""
        start = np.zeros((len(self.cuts), 1), np.int64)
        before = np.concatenate([start, np.cumsum(self._wide, axis=1)], axis=1)
        return before, before[:, -1:] - before

    @property
    def _mirrored(self) -> Rings:
        return Rings(self.cells, self.cells - self.cuts[:, ::-1], self.noisy[:, ::-1], self.noise)


def _rounded_up(count: Cells) -> Cells:
    """The same up to 16, four leading bits beyond: more noises are only wider (Anderson 1955)."""
    drop = np.maximum(np.frexp(np.maximum(count, 1))[1] - 4, 0).astype(np.int64)
    return np.where(count <= _EXACT, count, -(-count >> drop) << drop)


def _widths(level: Fraction, noise: Noise, risk: float, pairs: Cells) -> Floats:
    """What (1 − q)·(noises before) − q·(noises after) exceeds at the risk, for pairs of their numbers."""
    known = _known_widths(level, noise, risk)
    new = [pair for pair in pairs.tolist() if pair not in known]
    if new:
        codes = np.array(new, np.int64)
        counts = np.stack([codes >> _HALF, codes & (2**_HALF - 1)]).astype(np.float64)
        sizes = np.broadcast_to(np.array([[1 - float(level)], [float(level)]]), counts.shape)
        known.update(zip(new, sum_widths(sizes, counts, noise, risk).tolist(), strict=True))
    return np.array([known[pair] for pair in pairs.tolist()])


@lru_cache(maxsize=256)
def _known_widths(level: Fraction, noise: Noise, risk: float) -> dict[int, float]:
    """Widths that were needed before: numbers of pieces repeat from group to group."""
    del level, noise, risk
    return {}
