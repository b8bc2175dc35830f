"""Counts by a model of a table, with intervals where noisy counts say how far off they can be. All public."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.names import nearest
from sfumato.render import shown
from sfumato.synth.sums import Sums

if TYPE_CHECKING:
    from sfumato.synth._model.domain import Clique
    from sfumato.synth.columns.coarse import Coarse
    from sfumato.synth.columns.fine import Fine
    from sfumato.synth.released import Released

__all__ = ["clique_of", "labels", "marginal_table", "reach_of"]

Floats: TypeAlias = NDArray[np.float64]
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


def reach_of(level: float) -> float:
    """How many standard deviations an interval of Gaussian noise reaches to each side.

    Raises:
        InvalidParameter: if the level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise InvalidParameter("level must be between 0 and 1.")
    return float(ndtri((1 + level) / 2))


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
    found, reach = Sums(released.domain, released.learned, clique).counts(), reach_of(level)
    places = np.unravel_index(np.arange(size), released.domain.shape(clique))
    table = dict[str, Any]()
    for place, codes in zip(clique, places, strict=True):
        table[columns[place].name] = labels(columns[place], released.cuts[place]).take(pa.array(codes))
    ordered = sorted(table, key=list(names).index)
    count, lower, upper = (_free(name, ordered) for name in ("count", "low", "high"))
    table[count] = counts
    if found is None:
        table[lower], table[upper] = pa.nulls(size, pa.float64()), pa.nulls(size, pa.float64())
    else:
        middle, sigma = found[0].ravel(), found[1]
        # What the model says is shown, so an interval that misses it is made wider, never moved.
        table[lower] = np.minimum(np.maximum(middle - reach * sigma, 0.0), counts)
        table[upper] = np.maximum(middle + reach * sigma, counts)
    return pa.table(table).select([*ordered, count, lower, upper])


def _free(name: str, taken: Sequence[str]) -> str:
    """A name that no column has: `count`, or `count_2` where a column is called so."""
    names = (name if many < 2 else f"{name}_{many}" for many in itertools.count(1))
    return next(one for one in names if one not in taken)


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
    low, high = (shown(end) if column.kind in ("integer", "float") else str(end) for end in ends)
    return low if low == high else f"{low} to {high}"
