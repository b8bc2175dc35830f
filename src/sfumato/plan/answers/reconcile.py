"""Noisy sums on several levels, made to agree: a group is the sum of the groups below it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.questions.levels import Stage, stages_of
from sfumato.plan.questions.nodes import Measured
from sfumato.plan.questions.others import Group, Level, Line, shelf_of

__all__ = ["reconciled", "reconciled_lines"]

Floats: TypeAlias = NDArray[np.float64]
_STEPS = 400


def reconciled(
    measured: Measured, noisy: Sequence[NDArray[Any]], *, rounded: bool = True
) -> list[NDArray[np.float64]]:
    """The least-squares fit of the finest groups to all levels, added up again for each of them.

    All levels have noise of the same law, so that this is the best linear unbiased estimate (Gauss, Markov);
    by conjugate gradients, which need as many steps as the normal matrix has different eigenvalues: where all
    combinations of keys are there, no more than levels and one. Where the finest groups are reported and
    numbers are whole, those are rounded before they are added up, so that sums agree to the last digit,
    unless `rounded` is False. Post-processing, at no cost.
    """
    stages = stages_of(measured.keys, measured.levels, measured.together)
    ends = list(itertools.accumulate(len(stage.rows) for stage in stages))
    fits = []
    for array, measurement in zip(noisy, measured.measurements, strict=True):
        fit = _fitted(stages, [part.astype(np.float64) for part in np.split(array, ends[:-1])])
        if rounded and measurement.whole and any(stage.is_finest for stage in stages):
            fit = np.rint(fit)
        fits.append(np.concatenate([_added(stage, fit) for stage in stages]))
    return fits


def _added(stage: Stage, cells: Floats) -> Floats:
    """The sums of the cells in each group of a level."""
    return np.bincount(stage.index, weights=cells, minlength=len(stage.rows)).astype(np.float64)


def _fitted(stages: Sequence[Stage], parts: Sequence[Floats]) -> Floats:
    """The cells whose sums are nearest to the parts, one for each level."""
    nothing = np.zeros(len(stages[0].index))

    def spread(values: Sequence[Floats]) -> Floats:
        return sum((part[stage.index] for stage, part in zip(stages, values, strict=True)), nothing)

    fit, rest = nothing, spread(parts)
    step, size = rest.copy(), float((rest * rest).sum())
    start = size
    for _ in range(max(_STEPS, 4 * len(stages))):
        if size <= 1e-26 * start or not size:
            break
        image = spread([_added(stage, step) for stage in stages])
        length = size / float((step * image).sum())
        fit, rest = fit + length * step, rest - length * image
        size, old = float((rest * rest).sum()), size
        step = rest + size / old * step
    return fit


# ── levels of groups that were found: a tree of lines ──


def reconciled_lines(
    measured: Measured, lines: Sequence[Line], noisy: Sequence[NDArray[Any]], *, rounded: bool = True
) -> list[Floats]:
    """The least-squares fit of all lines to what was measured, such that each line is the sum of its parts.

    A line's parts are the lines that go on from it by one key more. So the lines of levels whose keys begin
    alike are a tree, also with levels between them that were not asked for, and two passes over it give the
    best linear unbiased estimate among those that keep every such sum: from the leaves up, each line has its
    own measurement and, for each level below it, the sum of its parts there, weighted by their precision;
    from the root down, what a line is more than its parts is shared out by their variance (Hay, Rastogi,
    Miklau, Suciu 2010, "Boosting the accuracy of differentially private histograms through consistency").
    Levels that begin with different keys have their total in common, and nothing else that is known: a group
    that was not found can be in any line of other keys. Whole numbers are rounded from the root down, so that
    sums agree to the last digit, unless `rounded` is False. Post-processing, at no cost.
    """
    root = _tree(lines)
    fits = []
    for array, measurement in zip(noisy, measured.measurements, strict=True):
        fit = np.zeros(len(lines))
        root.rise(array.astype(np.float64))
        root.settle(root.middle, fit, whole=rounded and measurement.whole)
        fits.append(fit)
    return fits


@dataclass(slots=True, eq=False)
class _Level:
    """The lines of a level, asked for or not, and the levels that have one key more.

    Attributes:
        places: Where its lines stand among the measurements; empty where it was not asked for.
        above: For each line, which one it is a part of on the level above.
        size: How many lines there are.
        below: The levels with one key more.
        middle: What each line is by itself and by its parts.
        spread: The variance of that, in units of one measurement's; it does not depend on what was measured.
    """

    places: NDArray[np.int64]
    above: NDArray[np.int64]
    size: int
    below: list[_Level] = field(default_factory=list)
    middle: Floats = field(default_factory=lambda: np.zeros(0))
    spread: Floats = field(default_factory=lambda: np.zeros(0))

    def rise(self, noisy: Floats) -> None:
        """From the leaves up: what each line is, as far as it and its parts say."""
        precision, total = np.zeros(self.size), np.zeros(self.size)
        if len(self.places):
            precision += 1.0
            total += noisy[self.places]
        for level in self.below:
            level.rise(noisy)
            spread = level.summed(level.spread, self.size)
            weight = np.divide(1.0, spread, out=np.zeros(self.size), where=spread > 0)  # 0: it has no parts
            precision += weight
            total += weight * level.summed(level.middle, self.size)
        self.middle, self.spread = total / precision, 1 / precision

    def settle(self, values: Floats, fit: Floats, *, whole: bool) -> None:
        """From the root down: these are the values here, and the parts are made to add up to them."""
        if whole and not len(self.above):
            values = np.rint(values)
        if len(self.places):
            fit[self.places] = values
        for level in self.below:
            missing = values - level.summed(level.middle, self.size)
            shares = level.spread / level.summed(level.spread, self.size)[level.above]
            parts = level.middle + shares * missing[level.above]
            level.settle(level.rounded(parts, values) if whole else parts, fit, whole=whole)

    def summed(self, values: Floats, size: int) -> Floats:
        """The sums of parts, for each line of the level above."""
        return np.bincount(self.above, weights=values, minlength=size).astype(np.float64)

    def rounded(self, parts: Floats, wholes: Floats) -> Floats:
        """Whole numbers within 1 of these, that add up to whole numbers: the largest remainders go up."""
        down = np.floor(parts)
        order = np.lexsort((down - parts, self.above))
        sizes = np.bincount(self.above, minlength=len(wholes))
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        rank = np.empty(self.size)
        rank[order] = np.arange(self.size) - starts
        share, more = np.divmod(wholes - self.summed(down, len(wholes)), np.maximum(sizes, 1))
        return down + share[self.above] + (rank < more[self.above])


def _tree(lines: Sequence[Line]) -> _Level:
    """All levels from the total down to those that were asked for."""
    shelf = shelf_of(lines)
    rows: dict[Level, dict[Group, None]] = {(): {(): None}}
    for level in sorted(shelf, key=len, reverse=True):
        for length in range(len(level), 0, -1):
            known = rows.setdefault(level[:length], {})
            known |= {values[:length]: None for values in shelf[level]}
    levels: dict[Level, _Level] = {}
    for level in sorted(rows, key=len):
        asked, own = shelf.get(level, {}), list(rows[level])
        above = {values: place for place, values in enumerate(rows[level[:-1]])} if level else {}
        levels[level] = _Level(
            np.array([asked[values] for values in own] if asked else [], dtype=np.int64),
            np.array([above[values[: len(level) - 1]] for values in own] if level else [], dtype=np.int64),
            len(own),
        )
        if level:
            levels[level[:-1]].below.append(levels[level])
    return levels[()]
