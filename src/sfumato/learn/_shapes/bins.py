"""Bins of columns: declared, or made of a noisy histogram of fine cells; all of it public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.learn._core.declared import Category, Declared, Number
from sfumato.learn._core.design import UNIT, whole

__all__ = [
    "FINEST",
    "MOST_BINS",
    "Cells",
    "Cuts",
    "bought_cuts",
    "cells_for",
    "cells_of",
    "codes_of",
    "declared_cuts",
    "merged",
    "own_edges",
]

Floats: TypeAlias = NDArray[np.float64]
Cuts: TypeAlias = NDArray[np.int64]
"""Where bins begin, but the first: ascending coordinates; a number is right of a cut that it reaches."""


class Cells(NamedTuple):
    """The cells that a column is looked at in.

    Attributes:
        cuts: Where they begin, but the first.
        parts: How many there are to a whole number, which the first of them is around.
    """

    cuts: Cuts
    parts: int


FINEST = 4096
"""The most cells that a column is looked at in."""
MOST_BINS = 255
"""The most bins that a user may declare for a column of numbers; bought ones are fewer."""
_COARSEST = 16
_VISIBLE = 50  # noise of a column's whole weight, over all its cells, stays below 1/50 of the rows
_PARTS = 120  # a bin is closed once it holds a 120th of the rows
_SPIKES = 60  # so that bins of both kinds are fewer than 255
_CLEAR = 2.0  # and by so many deviations is more than noise
_AROUND = 8  # how many cells on each side a spike is held against


def declared_cuts(bins: Any, columns: Sequence[Declared]) -> list[Cuts | None]:
    """What is declared of each column's bins; None: they are to be bought, or it has categories.

    Args:
        bins: None; a number of equally wide bins, for all columns of numbers; or a dictionary by column of
            such numbers, or of edges.
        columns: What is declared about the columns.

    Raises:
        InvalidParameter: for bins of no such column, or that are no bins.
    """
    numbers = [column.name for column in columns if not isinstance(column, Category)]
    given = bins if isinstance(bins, Mapping) else dict.fromkeys(numbers, bins)
    for name in given:
        if name not in numbers:
            raise InvalidParameter(f"bins names {str(name)[:60]!r}, which is no column of numbers.")
    return [_declared(column, given.get(column.name)) for column in columns]


def _declared(column: Declared, given: Any) -> Cuts | None:
    if given is None or isinstance(column, Category):
        return None
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if not 1 <= given <= MOST_BINS:
            raise InvalidParameter(f"The bins of {column.name[:60]!r} must be 1 to {MOST_BINS}.")
        return _equal(int(given))
    try:
        edges = np.unique(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        edges = np.array([np.nan])
    if np.ndim(given) != 1 or not np.isfinite(edges).all() or len(edges) > MOST_BINS - 1:
        raise InvalidParameter(
            f"The bins of {column.name[:60]!r} must be a number of bins, or a list of at most "
            f"{MOST_BINS - 1} finite edges."
        )
    if not isinstance(column, Number):
        return None  # its bounds are bought first
    inside = edges[(edges > float(column.lower)) & (edges <= float(column.upper))]
    return np.unique(np.asarray(whole(inside, column), np.int64))


def cells_for(count: float, sigma: float) -> int:
    """In how many cells a column is looked at, from a noisy number of rows and the noise of a cell."""
    return int(np.clip((max(count, 0.0) / (_VISIBLE * sigma)) ** 2, _COARSEST, FINEST))


def cells_of(column: Number, cells: int) -> Cells:
    """Cells of a column, at most so many; around whole numbers where its bounds are whole."""
    span = column.upper - column.lower
    if span.denominator == column.lower.denominator == 1 and 1 <= span < cells:
        return _around_whole(int(span), (cells - 1) // int(span))
    return Cells(_equal(cells), 1)


def _around_whole(span: int, parts: int) -> Cells:
    halves = 2 * span * parts
    return Cells(np.array([-(-at * UNIT // halves) for at in range(1, halves, 2)], dtype=np.int64), parts)


def bought_cuts(cells: Cells, noisy: Floats, sigma: float, count: float) -> Cuts:
    """The bins of a column from noisy weights of its cells.

    Where nearly all weight is on whole numbers, what lies between them is left out, and so is its noise.
    """
    if cells.parts > 1:
        between = float(noisy.sum() - noisy[:: cells.parts].sum())
        if abs(between) <= 4 * sigma * math.sqrt(len(noisy)):
            noisy = noisy[:: cells.parts]
            cells = _around_whole(len(noisy) - 1, 1)
    return cells.cuts[np.array(merged(noisy, sigma, count)[1:], np.intp) - 1]


def _equal(parts: int) -> Cuts:
    return np.array([-(-at * UNIT // parts) for at in range(1, parts)], dtype=np.int64)


def merged(noisy: Floats, sigma: float, count: float) -> list[int]:
    """At which cells bins begin, the first at 0: bins that can be told from noise.

    A cell far above those around it, as where many people earn exactly so much, has a bin of its own. Other
    cells are put together until they hold a 120th of all rows and twice their noise.

    Args:
        noisy: The cells' noisy weights.
        sigma: The noise of each.
        count: About how many rows there are.
    """
    spikes = _spikes(noisy, sigma)
    least = count / _PARTS
    begins = [0]
    weight, cells = 0.0, 0
    for at, cell in enumerate(noisy):
        if spikes[at]:
            if weight > least / 10:
                begins.append(at)  # else what is left of the spike goes with it
            begins.append(at + 1)
            weight, cells = 0.0, 0
            continue
        weight, cells = weight + cell, cells + 1
        if weight >= max(least, _CLEAR * sigma * math.sqrt(cells)):
            begins.append(at + 1)
            weight, cells = 0.0, 0
    if cells and weight <= 0:
        begins.pop()  # the rest has no weight of its own
    # Answers that contradict the count could ask for more bins than there may be.
    return sorted({0, *begins} - {len(noisy)})[:MOST_BINS]


def _spikes(noisy: Floats, sigma: float) -> NDArray[np.bool_]:
    if len(noisy) <= 2 * _AROUND:
        return np.zeros(len(noisy), bool)
    padded = np.pad(noisy, _AROUND, mode="reflect")
    sums = np.concatenate([[0.0], np.cumsum(padded)])
    around = (sums[2 * _AROUND + 1 :] - sums[: len(noisy)] - noisy) / (2 * _AROUND)
    found = (noisy >= 5 * sigma) & (noisy >= 4 * np.maximum(around, 0) + 4 * sigma)
    if found.sum() > _SPIKES:
        found &= noisy > np.sort(noisy[found])[-_SPIKES - 1]
    return np.asarray(found)


def codes_of(cuts: Cuts) -> NDArray[np.uint16]:
    """The bin of each coordinate from 0 to UNIT."""
    return np.searchsorted(cuts, np.arange(UNIT + 1), side="right").astype(np.uint16)


def own_edges(column: Number, cuts: Cuts) -> Floats:
    """Cuts in the column's own scale: halfway to the coordinate before."""
    span = float(column.upper - column.lower)
    return np.asarray(float(column.lower) + (cuts - 0.5) * (span / UNIT), dtype=np.float64)
