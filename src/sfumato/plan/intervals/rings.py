"""Quantiles from counts around the cells that were selected: where the rings lie, estimates, intervals.

A selected cell is public. Around each one the grid is cut at distances of 1, 2, 3, 4, 8, 16, … cells: finely
near it and coarsely far from it, whatever the scale of the data; cuts of neighbouring cells meet half way.
The pieces are one partition of the grid, and the noisy weights of them all give the rank of each cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.intervals.cdf import sum_widths
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.intervals.noise import Noise

__all__ = ["Aim", "Rings", "cuts_around", "weights_between"]

_EXACT = 16  # so many noises are counted one by one; more are rounded up
_FEW_LEVELS = 4  # up to so many, each looks at all cuts
_CHUNK = 2**18  # cells added up at once
_HALF = 32  # bits for each number of a pair
_SURE = 3  # standard deviations of counted weight by which an estimate is moved
_FAR = 1e150  # standard deviations
_LEAST = 1e-9  # rows: how far at least an estimate that leaves its cell is off
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
    """Distances from 1 to at least `cells`: the first ones, and then each twice the one before."""
    steps = [1, 2, 3, 4]
    while steps[-1] < cells:
        steps.append(2 * steps[-1])
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
    between = np.empty((len(weights), cuts.shape[1] - 1), weights.dtype)
    rows = max(1, _CHUNK // weights.shape[1])
    for start in range(0, len(weights), rows):
        part = weights[start : start + rows]
        upto = np.zeros((len(part), part.shape[1] + 1), weights.dtype)
        np.cumsum(part, axis=1, out=upto[:, 1:])
        between[start : start + rows] = np.diff(np.take_along_axis(upto, cuts[start : start + rows], axis=1))
    return between


class Aim(NamedTuple):
    """The rank that a level aims at: q·n, or for the extremes a guard inside them.

    Attributes:
        level: q.
        guard: For q = 1 the rank is max(n/2, n − guard), for q = 0 its mirror image; None for others.
        rate: Of a two-sided exponential law about as wide as the rank error of the selected cell.
        aside: The guard within which the cell of an outer level was selected, for q ≥ 19/20 at the rank
            min(q·n, max(n/2, n − aside)) and so on (`mechanisms.Quantiles`); None for inner levels.
    """

    level: Fraction
    guard: float | None
    rate: float
    aside: float | None = None

    @property
    def mirrored(self) -> Aim:
        """The same seen from the other end."""
        return Aim(1 - self.level, self.guard, self.rate, self.aside)

    def is_straight(self, total: Floats) -> NDArray[np.bool_]:
        """Where the cell was selected for the very rank, in groups of these weights."""
        if self.aside is None or self.guard is not None:
            return np.ones(total.shape, np.bool_)
        inside = np.minimum(total / 2, self.aside)
        straight: NDArray[np.bool_] = float(min(self.level, 1 - self.level)) * total >= inside
        return straight


@dataclass(frozen=True, eq=False)
class Rings:
    """Noisy weights between cuts.

    Attributes:
        cells: How many cells the grid has.
        cuts: Groups × cuts.
        noisy: Groups × (cuts − 1), in natural units.
        noise: The law of their noise, the same for all and independent.
        levels: Around how many selected cells of each group the cuts lie.
    """

    cells: int
    cuts: Cells
    noisy: Floats
    noise: Noise
    levels: int = 1

    def intervals(
        self, aim: Aim, risk: float, place: int | None = None, added: float = 0.0
    ) -> tuple[Cells, Cells]:
        """For each group the first and the last cell that the noise cannot rule out as its quantile.

        A quantile is a cell with (weight before it) ≤ T ≤ (weight up to it). At each cut, the weight before
        it less T is estimated from noisy weights. The cells before the cut are ruled out if it is below 0,
        those after it if it is above 0, by more than its noise is with probability risk/2. Any quantile cell
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
            other = None if place is None else self.levels - 1 - place
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

    def _tried(self, place: int | None) -> list[int]:
        """The inner cuts at which the rank of a level is looked at.

        Its own, those of the levels beside it, and one near each other selected cell.
        """
        if place is None or self.levels <= _FEW_LEVELS:
            return list(range(1, self.cuts.shape[1] - 1))
        size = (self.cuts.shape[1] - 2) // self.levels
        centers = range(1 + size // 2, self.cuts.shape[1] - 1, size)
        first, last = max(place - 1, 0), min(place + 2, self.levels)
        return sorted({*centers, *range(1 + size * first, 1 + size * last)})

    def estimates(self, aim: Aim, selected: Cells) -> Cells:
        """A cell for each group: the selected one, or another that the counts speak for.

        The noisy ranks say how far off the selected cell is, and so does the law by which it was selected.
        Both together have a posterior law, and the cell is kept where its median says that the cell holds the
        rank. Otherwise it is moved by so many rows as the median says, in proportion to the weight that was
        counted in that direction.
        """
        if 2 * aim.level < 1 and aim.guard is not None:
            mirrored = self._mirrored.estimates(aim.mirrored, self.cells - 1 - selected)
            return self.cells - 1 - mirrored
        rows = np.arange(len(self.cuts))
        start = (self.cuts < selected[:, None]).sum(axis=1)  # the cut before the cell
        end = (self.cuts <= selected[:, None]).sum(axis=1)
        ranks = self._ranks(aim)
        over = ranks[rows, start]
        deviation = self._deviation(aim, start)
        held = ranks[rows, end] - over - self.noise.variance**0.5
        # A cell that was selected for a rank further inside says nothing.
        rate = np.where(aim.is_straight(self._sums[0][:, -1]), aim.rate, 0.0)
        off = _posterior_median(over, np.maximum(held, 0.0), deviation, rate)
        left = self._moved(start, np.maximum(off, 0.0), towards=-1)
        right = self._moved(end, np.maximum(-off, 0.0), towards=1)
        cells = np.where(off > 0, np.minimum(np.floor(left), selected - 1), selected)
        cells = np.where(off < 0, np.maximum(np.floor(right), selected + 1), cells)
        return np.clip(cells, 0, self.cells - 1).astype(np.int64)

    def _moved(self, start: NDArray[np.int64], ranks: Floats, *, towards: int) -> Floats:
        """Where so many rows lie between a cut and that place, in proportion to counted weight.

        It lies between the last cut with clearly fewer rows and the first with at least as many, and clearly
        some.
        """
        rows, places = np.arange(len(start)), np.arange(self.cuts.shape[1])
        upto, pieces = self._sums
        weight = towards * (upto - upto[rows, start][:, None])
        crossed = towards * (pieces - pieces[rows, start][:, None])
        noise = _SURE * np.sqrt(self.noise.variance * np.maximum(crossed, 1))
        enough = (crossed > 0) & (weight >= np.maximum(ranks[:, None], noise))
        enough[:, -1 if towards > 0 else 0] = True
        end = towards * np.where(enough, towards * places, places.size).min(axis=1)
        few = (crossed > 0) & (weight + noise <= ranks[:, None]) & (towards * places < towards * end[:, None])
        begin = towards * np.where(few, towards * places, towards * start[:, None]).max(axis=1)
        rest = np.maximum(ranks - np.where(begin == start, 0.0, weight[rows, begin]), 0.0)
        between = np.maximum(weight[rows, end] - weight[rows, begin], rest)
        part = rest / np.where(between > 0, between, 1.0)
        first, last = self.cuts[rows, begin], self.cuts[rows, end]
        placed: Floats = first + part * (last - first)
        return placed

    def _deviation(self, aim: Aim, place: NDArray[np.int64]) -> Floats:
        """The standard deviation of the noise of the rank at one cut for each group."""
        rows, total = np.arange(len(place)), self._sums[0][:, -1]
        q = np.full(len(place), float(aim.level))
        if aim.guard is not None:
            q = np.where(total / 2 > total - aim.guard, 0.5, 1.0)
        left, all_ = self._sums[1][rows, place], self._sums[1][:, -1]
        variance = self.noise.variance * (left * (1 - q) ** 2 + (all_ - left) * q**2)
        deviation: Floats = np.sqrt(np.maximum(variance, 1e-120))
        return deviation

    def _ranks(self, aim: Aim) -> Floats:
        """The noisy weight before each cut, less the rank that is aimed at, groups × cuts."""
        before = self._sums[0]
        total = before[:, -1:]
        rank = float(aim.level) * total
        if aim.guard is not None:
            rank = np.maximum(total / 2, total - aim.guard)
        return before - rank

    def _refuted(
        self, aim: Aim, risk: float, tried: list[int], added: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """At which cuts weight before − T is surely above 0, and surely below 0.

        For an extreme it is min(before − n/2, before − n + guard). Above both must be, below one of the two;
        the first seldom is and has a tenth of the risk then.

        Weight a that is added before the cut and b after it, a + b ≤ `added`, moves before − qn by
        (1 − q)·a − q·b: at most (1 − q)·added up and q·added down.
        """
        up, down = (1 - float(aim.level)) * added, float(aim.level) * added
        plain, width = self._form(aim.level, 0.0, risk, tried)
        if aim.guard is None:
            return plain - down > width, plain + up < -width
        half, half_width = self._form(Fraction(1, 2), 0.0, risk, tried)
        inside, inside_width = self._form(Fraction(1), aim.guard, risk, tried)
        _, half_wider = self._form(Fraction(1, 2), 0.0, risk / 10, tried)
        _, inside_wider = self._form(Fraction(1), aim.guard, 0.9 * risk, tried)
        either = added / 2
        above = (half - either > half_width) & (inside - added > inside_width)
        below = (half + either < -half_wider) | (inside < -inside_wider)
        return above, below

    def _form(self, level: Fraction, shift: float, risk: float, tried: list[int]) -> tuple[Floats, Floats]:
        """(1 − q)·before − q·after + shift at each of these cuts, and what its noise exceeds at the risk."""
        before, pieces = self._sums
        form = before[:, tried] - float(level) * before[:, -1:] + shift
        counts = _rounded_up(pieces[:, tried]), _rounded_up(pieces[:, -1:] - pieces[:, tried])
        pairs, place = np.unique((counts[0] << _HALF) + counts[1], return_inverse=True)
        widths = _widths(level, self.noise, risk, pairs)[place.reshape(form.shape)]
        return form, widths + _ROUNDING * np.abs(self.noisy).max(axis=1, initial=0.0)[:, None]

    @cached_property
    def _sums(self) -> tuple[Floats, Cells]:
        """The noisy weight before each cut, and how many pieces with a cell that is.

        What was released for pieces without a cell is noise alone and left out.
        """
        wide = np.diff(self.cuts, axis=1) > 0
        weight, pieces = np.zeros(self.cuts.shape), np.zeros(self.cuts.shape, np.int64)
        np.cumsum(np.where(wide, self.noisy, 0.0), axis=1, out=weight[:, 1:])
        np.cumsum(wide, axis=1, out=pieces[:, 1:])
        return weight, pieces

    @cached_property
    def _mirrored(self) -> Rings:
        cuts = self.cells - self.cuts[:, ::-1]
        return Rings(self.cells, cuts, self.noisy[:, ::-1], self.noise, self.levels)


def _posterior_median(over: Floats, held: Floats, deviation: Floats, rate: Floats) -> Floats:
    """How far outside of the selected cell its rank lies: above 0 before the cell, below 0 after it.

    The true weight x before the cell less the rank has, before counting, a law that is flat on (−held, 0) and
    falls off by exp(−rate·distance) on both sides. Counted, it is `over` with Gaussian noise.
    The law after counting is a piece of a Gaussian law on each of the three ranges. Its median is given as 0
    within the cell, and as its distance from the cell beyond.
    """
    from scipy import special

    (before, above), (after, below) = (_beyond(mean, deviation, rate) for mean in (over, -held - over))
    within = _log_between((-held - over) / deviation, -over / deviation)
    share = special.softmax(np.stack([above, within, below]), axis=0)
    return np.where(share[0] > 0.5, before(share[0]), np.where(share[2] > 0.5, -after(share[2]), 0.0))


def _beyond(mean: Floats, deviation: Floats, rate: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
    """The part above 0 of a Gaussian law times exp(−rate·x): its median of all, and its logarithm.

    The first is a function of which share of all the part is: half of all lies beyond the median.
    """
    from scipy import special

    top = (mean - rate * deviation**2) / deviation  # where the part would be highest
    low = -0.5 * (mean / deviation) ** 2 + np.log(special.erfcx(np.maximum(-top, 0.0) / math.sqrt(2)) / 2)
    high = rate * (0.5 * rate * deviation**2 - mean) + special.log_ndtr(np.maximum(top, 0.0))

    def median(share: Floats) -> Floats:
        left = np.log(0.5 / np.maximum(share, 0.5)) + special.log_ndtr(top)
        return np.maximum(deviation * (top - special.ndtri_exp(left)), _LEAST)

    return median, np.where(top < 0, low, high)


def _log_between(low: Floats, high: Floats) -> Floats:
    """The logarithm of the probability that a Gaussian variable lies between the two, in both tails."""
    from scipy import special

    low, high = np.clip(low, -_FAR, _FAR), np.clip(high, -_FAR, _FAR)
    low, high = np.where(low + high > 0, -high, low), np.where(low + high > 0, -low, high)
    at_low, at_high = special.log_ndtr(low), special.log_ndtr(high)
    with np.errstate(divide="ignore"):
        between: Floats = at_high + np.log1p(-np.exp(at_low - at_high))
    return between


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
