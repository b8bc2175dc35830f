"""Rows by the nearest of several centres: exact sums and counts of each cell, with nobody beyond a length."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Total
from sfumato.learn._core.design import UNIT
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import Adding
from sfumato.numeric.balls import sqrt_up

__all__ = ["MOST_COLUMNS", "WIDEST", "Cells", "Lengths", "cells", "farthest", "nearest", "weights_of"]

Floats: TypeAlias = NDArray[np.float64]

WIDEST = 1 << 6
"""The weight of the widest column; others have smaller ones, in proportion, and at least 1."""
_SHORTER = 1 - 2.0**-30  # more than floats can be off in a norm of 2**10 numbers
MOST_COLUMNS = 1 << 10
"""How many coordinates rows may have."""


class Lengths(NamedTuple):
    """What a unit weighs in each part of the sums, as whole multiples of a column's grid; public.

    Attributes:
        radius: What a row's way from its centre is shortened to.
        number: What it counts as.
        square: What its squared way counts as, at most.
    """

    radius: int
    number: int
    square: int

    @property
    def sensitivity(self) -> Fraction:
        """The L2 norm of all three."""
        return Fraction(sqrt_up(Fraction(self.radius**2 + self.number**2 + self.square**2)))


class Cells(NamedTuple):
    """Sums of a cell each, exact or noisy.

    Attributes:
        ways: The sum of the ways from the centre, for each cell.
        counts: How many rows each has.
        squares: The sum of all squared ways, in parts of the squared radius.
    """

    ways: Floats
    counts: Floats
    squares: float

    @classmethod
    def of(cls, noisy: Floats, lengths: Lengths, number: int) -> Cells:
        """From the numbers of a `Total`."""
        table = noisy[:-1].reshape(number, -1)
        return cls(table[:, :-1], table[:, -1] / lengths.number, float(noisy[-1]) / max(1, lengths.square))


def nearest(block: Floats, centres: Floats) -> NDArray[np.intp]:
    """The number of the nearest centre of each row: exact, and the first one among equals.

    Args:
        block: Rows, as integers up to 2**20.
        centres: Likewise.
    """
    # ‖x − c‖² is least where 2·x·c − ‖c‖² is greatest: sums of integers below 2**53.
    scores = block @ (2 * centres.T)
    scores -= np.einsum("ij,ij->i", centres, centres)
    return np.asarray(scores.argmax(axis=1))


def cells(
    rows: Rows, weights: Floats, centres: Floats, lengths: Lengths, around: Floats | None = None
) -> Total:
    """For the cell of each centre the sum of the ways to its rows and their number, and all squared ways.

    Args:
        rows: The private rows.
        weights: What each coordinate is multiplied with: integers of 1 to `WIDEST`.
        centres: One a row, in weighted coordinates, as integers up to 2**20; public.
        lengths: What a unit weighs.
        around: One point from which all ways are measured; None: from the row's centre.

    Privacy:
        Claim: adding or removing a unit moves the sums by at most `lengths.sensitivity`, in L2, for any
        centres. Proof: a row is in one cell, since `nearest` is exact, and by its own numbers; there it adds
        a vector of its way, shortened to the radius, and its count, and it adds its squared way over r² to
        one sum over all cells; all of them times 1/m where its unit has m rows, and rounded towards zero. So
        the m vectors of a unit are together no longer than one (triangle inequality). Norms are computed from
        exact sums of squares (below 2**53 for 2**10 columns) and are right to 2**-50, which the factor
        1 − 2**-30 covers. Sums of integers are exact.
    """
    width = rows.integers.shape[1]
    if width > MOST_COLUMNS:
        raise InvalidParameter("Clusters take at most 1024 coordinates.")
    total, squares = Adding((len(centres), width + 1)), Adding((1,))
    most = lengths.radius * _SHORTER
    for part, block in rows.blocks():
        scaled = block[:, :width] * weights
        place = nearest(scaled, centres)
        scaled -= centres[place] if around is None else around
        long = np.einsum("ij,ij->i", scaled, scaled)
        share = _share(rows, part)
        factors = share.copy()
        far = long > most**2
        factors[far] *= most / np.sqrt(long[far])
        lines = np.empty((len(scaled), width + 1))
        np.trunc(scaled * factors[:, None], out=lines[:, :-1])
        lines[:, -1] = np.trunc(lengths.number * share)
        members = np.zeros((len(centres), len(scaled)))
        members[place, np.arange(len(scaled))] = 1.0
        total.add(members @ lines)
        parts = np.minimum(long / float(lengths.radius**2), 1.0) * (lengths.square * _SHORTER)
        squares.add(np.trunc(parts * share).sum(keepdims=True))
    values = np.concatenate([total.values.ravel(), squares.values])
    return Total(values, lengths.sensitivity, Fraction(1))


def _share(rows: Rows, part: slice) -> Floats:
    """What a row counts for: 1, or that divided by how many its unit has."""
    if rows.units is None:
        return np.ones(part.stop - part.start)
    first = np.searchsorted(rows.units, rows.units[part], side="left")
    last = np.searchsorted(rows.units, rows.units[part], side="right")
    return np.asarray(1.0 / (last - first))


def weights_of(widths: Floats) -> Floats:
    """Weights in proportion to the widths of columns; 1 where that is less than half."""
    widest = float(widths.max(initial=0.0))
    if widest <= 0:
        return np.ones_like(widths)
    return np.maximum(1.0, np.rint(widths / widest * WIDEST))


def farthest(weights: Floats) -> int:
    """The longest way there can be between two rows, in whole multiples."""
    return 2 * UNIT * (math.isqrt(int((weights**2).sum())) + 1)
