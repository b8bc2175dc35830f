"""Numbers in groups as whole ones with stated sums, none below 0: public, and exact for any numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.synth._levels.grid import Floats

__all__ = ["shared_out", "whole_table", "whole_totals"]

Integers: TypeAlias = NDArray[np.int64]

_NEARLY = 1e-6  # what solving leaves of a whole number


def shared_out(wanted: Floats, variances: Floats, least: Floats, parents: Integers, sums: Floats) -> Floats:
    """The numbers with these sums by group, none below its least, that are nearest to the wanted ones.

    Near by squares over variances: numbers of a group move in proportion to their variances until they reach
    their least. Those without variance stay.

    Args:
        wanted: Estimates.
        variances: Of them; 0 for what is fixed.
        least: Below which they may not be; no group's add up to more than its sum.
        parents: The group of each, ascending.
        sums: Of the groups.
    """
    groups = len(sums)
    free = variances > 0
    found = np.where(free, wanted, least)
    while True:  # what has reached its least stays there (Michelot 1986), so that this ends
        held = np.bincount(parents, np.where(free, 0.0, found), groups)
        open_sum = np.bincount(parents, np.where(free, wanted, 0.0), groups)
        room = np.bincount(parents, np.where(free, variances, 0.0), groups)
        move = np.divide(sums - held - open_sum, room, out=np.zeros(groups), where=room > 0)
        found = np.where(free, wanted + variances * move[parents], found)
        below = free & (found < least)
        if not below.any():
            return found
        found[below] = least[below]
        free &= ~below


def whole_totals(
    values: Floats, least: Integers, fixed: NDArray[np.bool_], parents: Integers, sums: Integers
) -> Integers:
    """Whole numbers near these with exactly these sums by group, none below its least; fixed ones stay.

    The largest fractions are rounded up. Where nothing but fixed numbers is in a group, they have its sum.
    """
    found = np.maximum(np.floor(values + _NEARLY).astype(np.int64), least)
    found[fixed] = least[fixed]
    return _evened(found, values, least, fixed, parents, sums)


def whole_table(table: Floats, totals: Integers, parents: Integers, above: Integers) -> Integers:
    """Whole counts near a table, none below 0, with both kinds of sums: of each place, and of each cell.

    Cells are rounded so that each has its sum over the places of a group. Then one person at a time is moved
    from a place that has too many to one that has too few, within one cell, where that moves the counts away
    from the table the least; a place with too many has somebody in some cell, so that this ends.

    Args:
        table: Places × cells, none below 0.
        totals: Of the places; by group they add up to what `above` does.
        parents: The group of each place, ascending.
        above: Groups × cells: what places add up to.
    """
    places, cells = table.shape
    groups = (parents[:, None] * cells + np.arange(cells)).ravel()
    order = np.argsort(groups, kind="stable")
    down = np.floor(table + _NEARLY).astype(np.int64).ravel()[order]
    none = np.zeros(len(down), np.int64)
    counts = np.empty_like(down)
    counts[order] = _evened(down, table.ravel()[order], none, none.astype(bool), groups[order], above.ravel())
    counts = counts.reshape(places, cells)
    begins = np.searchsorted(parents, np.arange(len(above) + 1))
    beyond = counts.sum(axis=1) - totals
    for group in np.unique(parents[beyond != 0]):
        part = slice(begins[group], begins[group + 1])
        _swapped(counts[part], table[part], beyond[part])
    return counts


def _swapped(counts: Integers, table: Floats, beyond: Integers) -> None:
    """Moves people within cells until no place of a group has too many or too few, in place."""
    while beyond.any():
        giver = int(beyond.argmax())
        lacking = table - counts
        takers = np.flatnonzero(beyond < 0)
        worth = lacking[takers] - lacking[giver]
        worth[:, counts[giver] == 0] = -np.inf
        taker, cell = np.unravel_index(int(worth.argmax()), worth.shape)
        counts[giver, cell] -= 1
        counts[takers[taker], cell] += 1
        beyond[giver] -= 1
        beyond[takers[taker]] += 1


def _evened(
    counts: Integers,
    values: Floats,
    least: Integers,
    fixed: NDArray[np.bool_],
    groups: Integers,
    sums: Integers,
) -> Integers:
    """Whole numbers changed by as little as gives each group its sum, none below its least."""
    while True:
        lacking = sums - np.bincount(groups, counts, len(sums)).astype(np.int64)
        if not lacking.any():
            return counts
        need = lacking[groups]
        can = ~fixed & ((need > 0) | ((need < 0) & (counts > least)))
        gain = np.where(need > 0, values - counts, counts - values)
        order = np.lexsort((-gain, ~can, groups))
        begins = np.searchsorted(groups, np.arange(len(sums)))
        rank = np.empty(len(counts), np.int64)
        rank[order] = np.arange(len(counts)) - begins[groups]
        counts = counts + np.where(can & (rank < np.abs(need)), np.sign(need), 0)
