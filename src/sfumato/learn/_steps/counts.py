"""Exact histograms of columns, in which all rows of a unit together weigh no more than one row."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Total
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.numeric.balls import sqrt_up

__all__ = ["by_column", "cell_of", "counts"]

Floats: TypeAlias = NDArray[np.float64]

_WHOLE = 1 << 20  # the weight of a unit; none has more rows, so that no row weighs nothing
_PART = 1 << 16  # so many weights up to 2**20 add up exactly as floats


def cell_of(integers: NDArray[np.integer], cells: int) -> NDArray[np.int64]:
    """Which of so many equally wide cells a coordinate between 0 and UNIT is in."""
    return np.asarray(np.minimum(integers.astype(np.int64) * cells // UNIT, cells - 1))


def counts(rows: Rows, columns: Sequence[int], cells: int) -> Total:
    """How many rows are in each cell of each of these columns; of a unit with k rows, each weighs 1/k.

    Args:
        rows: The private rows, of a design that is not signed.
        columns: The places of the columns; a column of categories has a cell for each.
        cells: How many equally wide cells the range of a number has.

    Privacy:
        Claim: adding or removing a unit moves all counts together by at most √columns in L2. Proof: a unit
        with k rows gives each the weight ⌊2**20/k⌋/2**20, and a row is in at most one cell of a column, so
        that a unit's weights in one column add up to at most 1, and their L2 norm is no larger; columns are
        at right angles. A row's cell follows from that row, its weight from its unit's number of rows. Sums
        are of integers below 2**53, as floats and then in 64 bits, and exact: 2**28 rows weigh below 2**48.
    """
    whole, weights = (1, None) if rows.units is None else (_WHOLE, _weights(rows.units))
    found = [_column(rows, column, cells, weights) for column in columns]
    values = np.concatenate(found) if found else np.zeros(0, np.int64)
    return Total(values, Fraction(sqrt_up(Fraction(max(1, len(columns))))) * whole, Fraction(1, whole))


def _weights(units: NDArray[np.integer]) -> Floats:
    """What each row weighs: its part of its unit's weight, rounded down."""
    _, place = np.unique(units, return_inverse=True)
    sizes = np.maximum(np.bincount(place, minlength=1), 1)
    return np.asarray((_WHOLE // sizes)[place], np.float64)


def by_column(noisy: Floats, design: Design, columns: Sequence[int], cells: int) -> list[Floats]:
    """The counts of each of these columns."""
    widths = [_width(design, column, cells) for column in columns]
    return np.split(noisy, np.cumsum(widths)[:-1]) if widths else []


def _width(design: Design, column: int, cells: int) -> int:
    declared = design.columns[column]
    return cells if isinstance(declared, Number) else len(declared.values)


def _column(rows: Rows, column: int, cells: int, weights: Floats | None) -> NDArray[np.int64]:
    at = [place for place, each in enumerate(rows.design.coordinates) if each.column == column]
    size = _width(rows.design, column, cells)
    total = np.zeros(size, np.int64)
    for part in rows.slices(_PART):
        mine = None if weights is None else weights[part]
        if isinstance(rows.design.columns[column], Number):
            codes = cell_of(rows.integers[part, at[0]], cells)
            total += np.bincount(codes, mine, minlength=size).astype(np.int64)
        else:
            inside = rows.integers[part, at[0] : at[0] + size] > 0
            total += (inside.sum(axis=0) if mine is None else mine @ inside).astype(np.int64)
    return total
