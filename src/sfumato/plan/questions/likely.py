"""How many units probably have how many rows: likely tables, drawn from what is known of noisy cells.

The best limit leaves about as many units above it as noise hides, so it is in cells that a profile cannot
show one by one. All cells are therefore read together. Numbers of units follow a chain from cell to cell:
they fall (or rise) by a slope that changes slowly, as those of Pareto and log-normal laws do, or end, or
jump, as crowds of their own do. Each table that such a chain could make is as likely as it explains the noisy
numbers of units *and* of rows; some are drawn from the chain (filtered forwards, sampled backwards), and a
limit is judged by its error on all of them. Points of a Kronecker sequence take the place of chance: the same
profile always gives the same tables.

This is post-processing of noisy numbers: no choice of these constants can cost privacy or make an interval
false, since bounds on what is cut hold for all limits at once (`Profile.most_cut`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.intervals.noise import Noise

__all__ = ["Goal", "Tables", "likely_tables"]

Floats: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

_DRAWN = 128
_SLOPES = np.array([-3, -1.5, -0.6, 0, 0.4, 0.7, 0.9, 1.2, 1.6, 2.2, 3.2, 5, 9])  # per octave, of log2
_STAYS, _STEPS = 0.7, 0.24  # chances that a slope stays from cell to cell, or moves to one beside it
_SPREAD = 0.35  # of log2 of a number of units around what the slope says
_FIRST, _BEGINS = 0.6, 0.4  # chances that the first cell has units; that the next one has, if none before had
_ENDS, _JUMPS, _RETURNS = 0.1, 0.02, 0.12  # chances of no units, of any number, and of any after none
_MISFIT = 0.25  # of a number of units: numbers are powers of two, and units of a cell differ
_PARTS = np.array([0.15, 0.35, 0.35, 0.15])  # how likely: at the lower end of a cell, … at the upper
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class Goal:
    """What a limit on rows is chosen for.

    Attributes:
        noise: The standard deviation of the noise for each row that a unit may count with, in rows.
        apart: For averages and quantiles, which are over the rows that count: how far those that are cut may
            be from them, of the range. None: for a sum over rows, which misses all that are cut.
    """

    noise: float
    apart: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Tables that units may have: one line a table, one column a cell.

    Attributes:
        units: How many units are in each cell.
        rows: How many rows each of them has.
    """

    units: Floats
    rows: Floats

    @property
    def total(self) -> Floats:
        """How many rows each table has."""
        return np.asarray((self.units * self.rows).sum(axis=1))

    def cut(self, limits: Floats) -> Floats:
        """How many rows of each table each limit cuts: one column a limit."""
        over = np.maximum(self.rows[:, :, np.newaxis] - limits, 0.0)
        return np.asarray((self.units[:, :, np.newaxis] * over).sum(axis=1))

    def best_limit(self, goals: Sequence[Goal], rungs: Sequence[int], groups: int = 1) -> int:
        """The rung with the least error in a group, of the noise and of the rows that are cut, on average.

        Errors are compared with the least one that a rung has on the same table: a heavy tail is not feared
        more than a light one. Of several goals, twice the error is as bad for one as for another.
        """
        limits = np.array(rungs, dtype=np.float64)
        cut, total = self.cut(limits), np.maximum(self.total, 1.0)[:, np.newaxis]
        over = np.zeros(len(limits))
        for goal in goals:
            noise, lost = np.broadcast_to(goal.noise * groups * limits, cut.shape), cut
            if goal.apart is not None:
                noise, lost = noise / np.maximum(total - cut, 1.0), goal.apart * cut / total
            error = np.hypot(noise, lost)
            over += np.log((error / error.min(axis=1, keepdims=True)).mean(axis=0))
        return rungs[int(np.argmin(over))]


@functools.lru_cache(maxsize=64)
def likely_tables(
    rungs: tuple[int, ...], units: tuple[float, ...], rows: tuple[float, ...], noise: tuple[Noise, Noise]
) -> Tables:
    """Tables that may well have given these noisy numbers; always the same for the same numbers.

    Args:
        rungs: The upper ends of the cells.
        units: How many units are in each, with noise.
        rows: How many rows these have, with noise.
        noise: Of each number of units; of each number of rows, once for each row of the cell's upper end.
    """
    ends = np.array(rungs, dtype=np.float64)
    seen, shares = np.array(units), np.array(rows) / ends
    places = _places(ends)
    most = max(8.0, seen.max() + 4 * noise[0].scale, 3 * (shares.max() + 4 * noise[1].scale))
    chain = _chain(rungs, 3 + math.ceil(math.log2(most)))
    sizes = places[:, np.newaxis, :] / ends[:, np.newaxis, np.newaxis]
    # The parts of a cell are told apart by its rows alone: their sum over parts is what a level explains.
    level = chain.levels[:, np.newaxis]
    explained = _density(shares[:, np.newaxis, np.newaxis] - level * sizes, noise[1], level)
    explained *= _PARTS
    counted = _density(seen[:, np.newaxis] - chain.levels, noise[0], chain.levels)
    points = _points(_DRAWN, 3 * len(rungs))
    drawn = chain.drawn(explained.sum(axis=2) * counted + _TINY, points)
    parts = np.stack(
        [
            _picked(explained[cell, drawn[:, cell]] + _TINY, points[:, 2 * len(rungs) + cell])
            for cell in range(len(rungs))
        ],
        axis=1,
    )
    return Tables(chain.levels[drawn], places[np.arange(len(rungs)), parts])


def _places(ends: Floats) -> Floats:
    """Numbers of rows in each cell, from its lower end to its upper."""
    least = np.concatenate([[1.0], ends[:-1] + 1])[:, np.newaxis]
    return np.asarray(least * (ends[:, np.newaxis] / least) ** np.linspace(0, 1, len(_PARTS)))


def _density(off: Floats, noise: Noise, level: Floats) -> Floats:
    """How likely it is to be so far off, over the likeliest in the cell."""
    scale = noise.scale + _MISFIT * level
    far = np.abs(off) / scale
    logs = -(far * far / 2 if noise.law == "gaussian" else far) - np.log(scale)
    return np.asarray(np.exp(logs - logs.max(axis=tuple(range(1, logs.ndim)), keepdims=True)))


@dataclass(frozen=True, slots=True, eq=False)
class _Chain:
    """Numbers of units from cell to cell.

    Attributes:
        levels: The numbers: none yet, none any more, 1, 2, 4, …
        moves: The chance of a level after another, by cell and slope.
        turns: The chance of a slope after another.
    """

    levels: Floats
    moves: Floats
    turns: Floats

    def drawn(self, explained: Floats, points: Floats) -> Places:
        """Places of levels, one line a table, given how well each level explains each cell."""
        cells, (count, slopes) = len(explained), (len(self.levels), len(self.turns))
        first = np.full(count, _FIRST / (count - 2))
        first[:2] = 1 - _FIRST, 0.0
        after = [_whole(np.outer(first * explained[0], np.full(slopes, 1 / slopes)))]
        turned = []
        for cell in range(1, cells):
            turned.append(after[-1] @ self.turns)
            moved = np.einsum("ls,slm->ms", turned[-1], self.moves[cell - 1])
            after.append(_whole(moved * explained[cell][:, np.newaxis]))
        found = np.zeros((len(points), cells), dtype=np.int64)
        last = _picked(np.broadcast_to(after[-1].ravel(), (len(points), count * slopes)), points[:, 0])
        found[:, -1], slope = np.divmod(last, slopes)
        for cell in range(cells - 1, 0, -1):
            before = turned[cell - 1][:, slope].T * self.moves[cell - 1][slope, :, found[:, cell]]
            found[:, cell - 1] = _picked(before, points[:, 2 * (cells - cell) - 1])
            slope = _picked(
                after[cell - 1][found[:, cell - 1]] * self.turns[:, slope].T, points[:, 2 * (cells - cell)]
            )
        return found


def _whole(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())


@functools.lru_cache(maxsize=32)
def _chain(rungs: tuple[int, ...], count: int) -> _Chain:
    levels = np.concatenate([[0.0, 0.0], 2.0 ** np.arange(count - 2)])
    edges = np.log2([0.5, *rungs])
    widths, middles = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    none = np.eye(count)
    anything = np.concatenate([[0.0, 0.0], np.full(count - 2, 1 / (count - 2))])
    logs = np.arange(count - 2)
    moves = np.zeros((len(rungs) - 1, len(_SLOPES), count, count))
    for cell in range(len(rungs) - 1):
        wider, further = widths[cell + 1] / widths[cell], middles[cell + 1] - middles[cell]
        for place, slope in enumerate(_SLOPES):
            expected = levels[:, np.newaxis] * wider * 2.0 ** (-slope * further)
            spread = _SPREAD**2 + 1 / np.maximum(expected, 0.3)  # the second: of small whole numbers
            near = np.exp(-((logs - np.log2(np.maximum(expected, 1e-9))) ** 2) / (2 * spread)) + _TINY
            some = near / near.sum(axis=1, keepdims=True) * -np.expm1(-expected)
            usual = np.hstack([np.zeros((count, 1)), np.exp(-expected), some])
            step = (1 - _ENDS - _JUMPS) * usual + _ENDS * none[1] + _JUMPS * anything
            step[0] = (1 - _BEGINS) * none[0] + _BEGINS * anything
            step[1] = (1 - _RETURNS) * none[1] + _RETURNS * anything
            moves[cell, place] = step
    apart = np.abs(np.subtract.outer(np.arange(len(_SLOPES)), np.arange(len(_SLOPES))))
    turns = np.select([apart == 0, apart == 1], [_STAYS, _STEPS / 2], 0.0)
    turns += (1 - _STAYS - _STEPS) / len(_SLOPES)
    return _Chain(levels, moves, turns / turns.sum(axis=1, keepdims=True))


def _picked(weights: Floats, points: Floats) -> Places:
    """A place in each line, with chances as its weights are."""
    sums = np.cumsum(weights, axis=1)
    places = (sums < (points * sums[:, -1])[:, np.newaxis]).sum(axis=1)
    return np.asarray(np.minimum(places, weights.shape[1] - 1))


@functools.lru_cache(maxsize=16)
def _points(count: int, dimensions: int) -> Floats:
    """Evenly spread points of the unit cube (Kronecker's sequence, by the generalised golden ratio)."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    return np.asarray((0.5 + np.outer(np.arange(1, count + 1), ratio ** -np.arange(1.0, dimensions + 1))) % 1)
