"""`sample`: rows whose marginals are a model's with as little error of sampling as whole rows allow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.random import Simulation
from sfumato.synth._model.beliefs import Floats
from sfumato.synth._model.domain import Clique, Domain

__all__ = ["sample"]


def sample(
    domain: Domain, tables: Sequence[tuple[Clique, Floats, int]], n: int, rng: Simulation
) -> NDArray[np.int32]:
    """Rows of a model, each column as the number of its cell.

    Clique by clique, the rows that are alike in the columns drawn so far share out the cells of the others:
    a cell gets as many rows as it should on average, rounded up or down at random, and which of the rows
    get it is random.

    Args:
        domain: The columns.
        tables: The counts of each clique of a junction tree, parents first: its columns, those that are
            shared with the parent first, the table, and how many columns are shared.
        n: How many rows.
        rng: Where the randomness comes from.
    """
    rows = np.empty((n, len(domain)), np.int32, order="F")
    for columns, table, shared in tables:
        known, new = columns[:shared], columns[shared:]
        code = np.zeros(n, np.int64)
        for place in known:
            code *= domain.sizes[place]
            code += rows[:, place]
        order = rng.permutation(n)
        if shared:
            order = order[np.argsort(_narrow(code[order], domain.cells(known)), kind="stable")]
        drawn = _drawn(table.reshape(domain.cells(known), -1), np.bincount(code, minlength=1), rng)
        cells = np.empty(n, np.int64)
        cells[order] = drawn
        for place in reversed(new):
            cells, rows[:, place] = np.divmod(cells, domain.sizes[place])
    return rows


def _narrow(code: NDArray[np.int64], size: int) -> NDArray[np.int64] | NDArray[np.uint16]:
    """Codes in 16 bits where they fit: these are sorted in linear time."""
    return code.astype(np.uint16) if size <= 2**16 else code


def _drawn(table: Floats, wanted: NDArray[np.int64], rng: Simulation) -> NDArray[np.int64]:
    """For groups of rows, one after another, the cells that their rows get, by systematic sampling.

    A group of m rows takes the cells at (j + u) / m for j = 0 … m-1 of its distribution, so that each cell's
    number is its expectation rounded up or down. The u of different groups are spread over 0 … 1, so that
    the errors of small groups cancel.
    """
    shuffled = rng.permutation(table.shape[1])  # even steps through an even table would meet the same cells
    table = table[:, shuffled]
    groups = np.flatnonzero(wanted)
    sizes = wanted[groups]
    sums = np.cumsum(table[groups], axis=1)
    whole = sums[:, -1:]
    # A group that a model gives nothing can only come from rounding: its cells are all alike.
    even = np.arange(1, table.shape[1] + 1) / table.shape[1]
    sums = np.where(whole > 0, sums / np.where(whole > 0, whole, 1.0), even)
    last = np.argmax(sums >= sums[:, -1:], axis=1)  # the last cell that is not empty
    start = (rng.permutation(len(groups)) + rng.random(len(groups))) / max(len(groups), 1)
    group = np.repeat(np.arange(len(groups)), sizes)
    rank = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    at = (rank + start[group]) / sizes[group]
    flat = (sums + np.arange(len(groups))[:, np.newaxis]).ravel()
    found = np.searchsorted(flat, at + group, side="right") - group * table.shape[1]
    cells: NDArray[np.int64] = shuffled[np.minimum(np.maximum(found, 0), last[group])]
    return cells
