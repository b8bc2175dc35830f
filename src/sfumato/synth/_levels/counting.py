"""From what is known to whole counts, none below 0, that agree on all levels, from the top down: public."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.synth._levels.alike import alike
from sfumato.synth._levels.grid import Grid
from sfumato.synth._levels.linear import Known
from sfumato.synth._levels.nearest import Group, nearest
from sfumato.synth._levels.totals import PublicTotals
from sfumato.synth._levels.tree import Tree
from sfumato.synth._levels.whole import shared_out, whole_table, whole_totals

__all__ = ["counted"]

Integers: TypeAlias = NDArray[np.int64]


def counted(tree: Tree, grid: Grid, known: Sequence[Known], public: PublicTotals) -> list[Integers]:
    """Whole counts for all places and cells of each level, which add up to those of the level above.

    Level by level from the top, first the totals of places, then their cells: each time the nearest numbers
    to what is known of a level and of those below, none below 0, with the sums that the level above has by
    now; then they are rounded so that the sums still hold. Public totals are kept as they are.

    Args:
        tree: The places.
        grid: The cells.
        known: What each level and those below say of it (`linear.upward`).
        public: Totals that are declared.
    """
    counts = [_top(grid, known[0], public)]
    for level in range(1, len(tree)):
        counts.append(_below(tree, grid, level, known[level], public, counts[-1]))
    return counts


def _top(grid: Grid, known: Known, public: PublicTotals) -> Integers:
    least, fixed = public.least[0], public.fixed[0]
    wanted = np.rint(known.parts[()].reshape(1) * grid.cells).astype(np.int64)
    total = np.where(fixed, least, np.maximum(least, wanted))
    table = nearest(grid, known, total.astype(np.float64)).table.reshape(-1)
    nothing = np.zeros(grid.cells, np.int64)
    return whole_totals(table, nothing, nothing > 0, nothing, total).reshape(1, *grid.sizes)


def _below(
    tree: Tree, grid: Grid, level: int, known: Known, public: PublicTotals, above: Integers
) -> Integers:
    least, fixed, parents = public.least[level], public.fixed[level], tree.parents[level]
    sums = above.reshape(len(above), -1).sum(axis=1)
    wanted = known.parts[()].reshape(-1) * grid.cells
    variances = np.where(fixed, 0.0, known.variances[()] * grid.cells)
    shared = shared_out(wanted, variances, least.astype(np.float64), parents, sums.astype(np.float64))
    totals = whole_totals(shared, least, fixed, parents, sums)
    group = Group(parents, above.astype(np.float64), alike(grid, known, totals, parents, above))
    table = nearest(grid, known, totals.astype(np.float64), group).table
    flat = whole_table(table.reshape(len(parents), -1), totals, parents, above.reshape(len(above), -1))
    return flat.reshape(-1, *grid.sizes)
