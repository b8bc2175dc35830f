"""Counts by a model of a table, with intervals where noisy counts say how far off they can be. All public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.names import nearest
from sfumato.render import shown

if TYPE_CHECKING:
    from sfumato.synth._model.domain import Clique, Marginal
    from sfumato.synth.columns.coarse import Coarse
    from sfumato.synth.columns.fine import Fine
    from sfumato.synth.released import Released

__all__ = ["Bars", "bars", "clique_of", "labels", "marginal_table"]

Floats: TypeAlias = NDArray[np.float64]
Bars: TypeAlias = tuple[Floats, Floats]
"""The lower and the upper end of an interval for each number."""

_MOST_CELLS = 10**6


def clique_of(released: Released, names: Sequence[str]) -> Clique:
    """The places of columns that are named, in ascending order.

    Raises:
        InvalidParameter: if there is none of that name, with the nearest.
    """
    known = list(released.domain.names)
    for name in names:
        if name not in known:
            raise InvalidParameter(
                f"There is no column {str(name)[:60]!r}. {nearest(str(name), known, 'Columns')}"
            )
    return released.domain.clique(names)


def bars(released: Released, clique: Clique, weights: Floats, level: float) -> Bars | None:
    """Intervals for weighted sums of the table's counts in the cells of some columns; None: there are none.

    Args:
        released: The noisy counts.
        clique: The columns.
        weights: A line of weights, one for each of their cells, for each sum.
        level: How often each interval holds the sum over the rows that were read.

    Noisy counts of these columns, alone or together with others, each give the sums with Gaussian noise of a
    known size. They are averaged by the inverse of their variances, so that the error of the average is
    Gaussian, too; the model, whose error nobody knows, is not used.
    """
    if not 0 < level < 1:
        raise InvalidParameter("level must be between 0 and 1.")
    sums, certain = np.zeros(len(weights)), np.zeros(len(weights))
    squares = (weights**2).sum(axis=1)
    for marginal in released.learned.marginals:
        if not _serves(released, marginal, clique, single=bool((squares == 1).all())):
            continue
        others = tuple(axis for axis, place in enumerate(marginal.clique) if place not in clique)
        summed = math.prod(marginal.values.shape[axis] for axis in others)
        part = 1 / (marginal.sigma**2 * summed)
        sums += part * (weights @ marginal.values.sum(axis=others).ravel())
        certain += part
    if not certain.all():
        return None
    reach = float(ndtri((1 + level) / 2)) * np.sqrt(squares / certain)
    return sums / certain - reach, sums / certain + reach


def marginal_table(
    released: Released, columns: Sequence[Fine], names: Sequence[str], level: float
) -> pa.Table:
    """The model's counts of some columns, with intervals.

    Raises:
        InvalidParameter: if there is no such column, or too many cells.
    """
    clique = clique_of(released, names)
    size = released.domain.cells(clique)
    if size > _MOST_CELLS:
        raise InvalidParameter(f"These columns have {size:,} cells together: name fewer of them.")
    counts = released.learned.model.marginal(clique).ravel()
    found = bars(released, clique, np.eye(size), level) if size <= 2**12 else _wide(released, clique, level)
    places = np.unravel_index(np.arange(size), released.domain.shape(clique))
    table = dict[str, Any]()
    for place, codes in zip(clique, places, strict=True):
        table[columns[place].name] = labels(columns[place], released.cuts[place]).take(pa.array(codes))
    table["count"] = counts
    if found is None:
        table["low"], table["high"] = pa.nulls(size, pa.float64()), pa.nulls(size, pa.float64())
    else:
        low, high = found
        # What the model says is shown, so an interval that misses it is made wider, never moved.
        table["low"] = np.minimum(np.maximum(low, 0.0), counts)
        table["high"] = np.maximum(high, counts)
    ordered = [columns[place].name for place in clique]
    return pa.table(table).select([*sorted(ordered, key=list(names).index), "count", "low", "high"])


def _wide(released: Released, clique: Clique, level: float) -> Bars | None:
    """`bars` of each cell, where a line of weights for each of them would be too much."""
    size = released.domain.cells(clique)
    sums, certain = np.zeros(size), 0.0
    for marginal in released.learned.marginals:
        if _serves(released, marginal, clique, single=True):
            others = tuple(axis for axis, place in enumerate(marginal.clique) if place not in clique)
            part = 1 / (marginal.sigma**2 * math.prod(marginal.values.shape[axis] for axis in others))
            sums += part * marginal.values.sum(axis=others).ravel()
            certain += part
    if not certain:
        return None
    reach = float(ndtri((1 + level) / 2)) / math.sqrt(certain)
    return sums / certain - reach, sums / certain + reach


def _serves(released: Released, marginal: Marginal, clique: Clique, *, single: bool) -> bool:
    """Whether noisy counts tell of sums over some columns, with noise of a known size.

    Where noise is not independent, only single cells of counts of these columns themselves have that.
    """
    if released.learned.independent:
        return set(clique) <= set(marginal.clique)
    return single and clique == marginal.clique


def labels(column: Fine, cut: Coarse) -> pa.Array:
    """What each coarse cell of a column holds: its value, or which values as a text."""
    if len(cut.place) == cut.size and (column.values is not None or column.has_whole_steps):
        return column.exactly(np.arange(column.size))
    return pa.array(
        [_told(column, np.flatnonzero(cut.place == cell)) for cell in range(cut.size)], pa.string()
    )


def _told(column: Fine, cells: NDArray[np.int64]) -> str | None:
    """Such as `17 to 24`, `A` or `others`."""
    known = cells[cells < column.known]
    if not len(known):
        return None
    if column.values is not None:
        if len(cells) == 1:
            return str(column.values[known[0]])
        return "others" if not column.folds or known[-1] == column.known - 1 else "rarer ones"
    ends = column.edges(int(known[0]), int(known[-1]))
    low, high = (shown(end) if column.kind != "date" else str(end) for end in ends)
    return low if low == high else f"{low} to {high}"
