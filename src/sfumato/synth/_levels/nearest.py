"""The nearest table to what is known that has stated sums and nothing below 0: public, solved to the end."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.synth._levels.alike import Alike
from sfumato.synth._levels.grid import Floats, Grid, Part
from sfumato.synth._levels.linear import Known
from sfumato.synth._levels.tree import first_of

__all__ = ["Fit", "Group", "nearest"]

Integers: TypeAlias = NDArray[np.int64]

_CLOSE = 1e-3  # of a person: far less than rounding moves a count by
_STEPS = 5_000
_EASE = 1.6  # over-relaxation, between 1 and 2
_LOOK = 25  # after so many steps the pace is looked at
_SETTLED = 1_000  # after so many it stays, as convergence needs


@dataclass(frozen=True, slots=True)
class Fit:
    """A table that solves the problem, and how well.

    Attributes:
        table: Places × attributes, none below 0.
        steps: How many were taken.
        gap: By how many people a count is off from the stated sums, or was still moved by the last step.
    """

    table: Floats
    steps: int
    gap: float

    @property
    def converged(self) -> bool:
        """Whether rounding moves counts by more than what is left to solve."""
        return self.gap <= _CLOSE


@dataclass(frozen=True, slots=True)
class Group:
    """What the places of groups add up to.

    Attributes:
        parents: The group of each place, ascending.
        above: Groups × attributes.
        alike: What the places would have if those of a group were alike, and how far to trust it.
    """

    parents: Integers
    above: Floats
    alike: Alike


def nearest(grid: Grid, known: Known, totals: Floats, group: Group | None = None) -> Fit:
    """The table x ≥ 0 with these totals, and with these sums over groups, that is nearest to what is known.

    It is least in Σ_S |x_S − k_S|²/v_S + Σ w·(x − m)² over the parts S of the table: the first is how far it
    is from what is known, by variance, the second how far from places that are alike. By the alternating
    direction method of multipliers (Boyd et al. 2011): one step holds the sums and is solved part by part in
    closed form, the other holds the sign and is solved count by count; each place has a pace of its own,
    which is evened out between the two for a while.

    Args:
        grid: The cells.
        known: Of each place.
        totals: Of the places, none below 0.
        group: Sums over groups of places, whose totals they have; None: there is one place alone.
    """
    wide = (-1, *(1,) * len(grid.sizes))
    size = len(totals)
    sums = _Sums(grid, known, totals, group)
    if group is None:
        weights, toward = np.zeros((1,) * (1 + len(grid.sizes))), np.zeros((1,) * (1 + len(grid.sizes)))
        table = np.broadcast_to(sums.mean, (size, *grid.sizes)).copy()
    else:
        weights, toward = group.alike.weights, group.alike.weights * group.alike.table
        table = group.alike.table.copy()
    pace = 1 / known.variances[grid.parts[-1]] if grid.parts[-1] else np.ones(size)
    if group is not None:
        both = np.log(pace.reshape(wide) + weights).reshape(size, -1).mean(axis=1)
        pace = np.sqrt(pace * np.exp(both))
    pace = pace.reshape(wide)
    owed, gap, step = np.zeros_like(table), np.inf, 0
    sums.at(pace)
    while gap > _CLOSE and step < _STEPS:
        step += 1
        linear = sums.solved(table - owed)
        eased = _EASE * linear + (1 - _EASE) * table
        before = table
        table = np.maximum(0.0, (toward + pace * (eased + owed)) / (weights + pace))
        owed += eased - table
        off, moved = np.abs(linear - table), np.abs(table - before)
        gap = max(float(off.max()), float(moved.max()))
        if step % _LOOK == 0 and step <= _SETTLED:
            ratio = (off.reshape(size, -1).max(axis=1) + 1e-9) / (moved.reshape(size, -1).max(axis=1) + 1e-9)
            faster = np.clip(np.sqrt(ratio), 0.5, 2.0).reshape(wide)
            pace, owed = pace * faster, owed / faster
            sums.at(pace)
    return Fit(table, step, gap)


class _Sums:
    """The step that holds sums: the nearest table to what is known and to another, at some pace."""

    def __init__(self, grid: Grid, known: Known, totals: Floats, group: Group | None) -> None:
        wide = (-1, *(1,) * len(grid.sizes))
        self._grid, self._size, self._group = grid, len(totals), group
        self.mean = (totals / grid.cells).reshape(wide)
        self._pulls = {part: 1 / known.variances[part].reshape(wide) for part in grid.parts if part}
        self._steady = {part: pull * known.parts[part] for part, pull in self._pulls.items()}
        self._above = {} if group is None else grid.split(group.above)
        self._begins = None if group is None else first_of(group.parents, len(group.above))
        self._pace: Floats = np.ones(1)
        self._gives: dict[Part, Floats] = {}
        self._shares: dict[Part, Floats] = {}

    def at(self, pace: Floats) -> None:
        """Takes another pace."""
        self._pace = pace
        self._gives = {part: 1 / (pull + pace) for part, pull in self._pulls.items()}
        if self._group is not None and self._begins is not None:
            parents = self._group.parents
            self._shares = {
                part: give / np.add.reduceat(give, self._begins, axis=0)[parents]
                for part, give in self._gives.items()
            }

    def solved(self, other: Floats) -> Floats:
        """The table with the sums that is nearest to what is known and to this one."""
        parts = self._grid.split(other)
        parts[()] = self.mean
        for part in self._pulls:
            values = (self._steady[part] + self._pace * parts[part]) * self._gives[part]
            if self._group is not None and self._begins is not None:
                lacking = self._above[part] - np.add.reduceat(values, self._begins, axis=0)
                values += self._shares[part] * lacking[self._group.parents]
            parts[part] = values
        return self._grid.joined(parts, self._size)
