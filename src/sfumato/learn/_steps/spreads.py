"""Exact sums for the mean and the spread of each column by itself."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Total
from sfumato.learn._core.design import UNIT
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import Adding, by_unit, clipped
from sfumato.numeric.balls import sqrt_up

__all__ = ["spreads"]


def spreads(rows: Rows, columns: Sequence[int]) -> Total:
    """The number of rows, then Σ x for each of these columns of numbers, then Σ (1 − x²).

    Args:
        rows: The private rows, of a signed design: −1 ≤ x ≤ 1.
        columns: Which columns.

    Privacy:
        Claim: adding or removing a unit moves the sums by at most √(1 + columns) in L2. Proof: a row's part
        is 1, and x and 1 − x² for each column; x² + (1 − x²)² = 1 − x²·(1 − x²) ≤ 1. That is why 1 − x² is
        summed and not x², with which it would be √(1 + 2·columns). What a unit with several rows adds is
        cut to that length (`clipped`). All are integers, and all sums exact.
    """
    at = [place for place, each in enumerate(rows.design.coordinates) if each.column in columns]
    bound = Fraction(sqrt_up(Fraction(1 + len(at)))) * UNIT**2
    total = Adding((1 + 2 * len(at),))
    if rows.units is None:
        for part in rows.slices():
            total.add(_lines(rows, part, at).sum(axis=0))
    else:
        for units in by_unit(rows, (_lines(rows, part, at) for part in rows.slices())):
            total.add(clipped(units, bound).sum(axis=0))
    return Total(total.values, bound, Fraction(1, UNIT**2))


def _lines(rows: Rows, part: slice, at: Sequence[int]) -> NDArray[np.int64]:
    """Each row's part of the sums, in whole multiples of 1/UNIT²."""
    numbers = rows.integers[part][:, at].astype(np.int64)
    ones = np.full((len(numbers), 1), UNIT**2)
    return np.hstack([ones, numbers * UNIT, UNIT**2 - numbers**2])
