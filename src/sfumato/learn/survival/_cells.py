"""Counts of people in cells of time, measured so that sums over runs of cells carry little noise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Total

__all__ = ["Counting", "counting"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

_FINE = 12  # weights of cells are multiples of 2**-12
_PART = 20  # somebody with several rows counts in each for a part, in multiples of 2**-20


class Counting:
    """How counts in cells of time are measured: as weighted sums over the cells before, or after.

    Survival needs sums over runs of cells, not single cells. So what is measured is R·counts, where R is the
    square root of the matrix of running sums (Henzinger, Upadhyay, Upadhyay 2023): a running sum over J cells
    then has noise that grows with log J, where that of J single counts would grow with √J. Events are summed
    from the start, who left from the end.

    Attributes:
        size: How many cells of time there are.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.events = _root(size)
        self.left = _root(size + 1)[::-1, ::-1]

    @cached_property
    def sensitivity(self) -> Fraction:
        """The length of the longest column, in multiples of 2**-32, rounded up."""
        squares = max(int((matrix**2).sum(axis=0).max()) for matrix in (self.events, self.left))
        return Fraction(math.isqrt(squares << (2 * _PART)) + 1)

    def total(self, cells: Integers, groups: Integers, units: NDArray[Any] | None, several: int) -> Total:
        """The sums of all groups, one line each.

        Args:
            cells: In which cell of 2·size + 1 each row is; private.
            groups: In which group; −1: in none, and so not counted.
            units: Whose row it is, where somebody has several.
            several: How many groups there are.

        Privacy:
            Claim: adding or removing a unit moves the sums by at most `sensitivity`, in L2. Proof: each row
            adds a column of R to its group, times its part of its unit, and the parts of a unit add up to at
            most 1 (2**20 divided by their number, rounded down). By the triangle inequality that is no
            longer than the longest column. All are integers; with 2**28 rows the sums stay below 2**61.
        """
        parts = np.full(len(cells), 1 << _PART, np.int64)
        if units is not None and len(cells):
            _, place, many = np.unique(units, return_inverse=True, return_counts=True)
            parts = (np.int64(1 << _PART) // many)[place]
        width, known = 2 * self.size + 1, groups >= 0
        counts = np.zeros(several * width, np.int64)
        np.add.at(counts, groups[known] * width + cells[known], parts[known])
        lines = counts.reshape(several, width)
        measured = np.hstack([lines[:, : self.size] @ self.events.T, lines[:, self.size :] @ self.left.T])
        return Total(measured.ravel(), self.sensitivity, Fraction(1, 1 << (_PART + _FINE)))

    def counts(self, answer: Floats, several: int) -> Floats:
        """The counts that noisy sums stand for, one line a group."""
        lines = answer.reshape(several, 2 * self.size + 1).T
        fine = float(1 << _FINE)
        events = np.linalg.solve(self.events / fine, lines[: self.size])
        return np.vstack([events, np.linalg.solve(self.left / fine, lines[self.size :])]).T

    @cached_property
    def spread(self) -> Floats:
        """From independent noise of deviation 1 on the sums to that on the counts."""
        width, fine = 2 * self.size + 1, float(1 << _FINE)
        whole = np.zeros((width, width))
        whole[: self.size, : self.size] = np.linalg.inv(self.events / fine)
        whole[self.size :, self.size :] = np.linalg.inv(self.left / fine)
        return whole


@cache
def counting(size: int) -> Counting:
    """The one for so many cells."""
    return Counting(size)


def _root(size: int) -> Integers:
    """The square root of the matrix of running sums: its entry k below the diagonal is C(2k, k)/4^k."""
    terms = np.ones(size)
    for place in range(1, size):
        terms[place] = terms[place - 1] * (1 - 1 / (2 * place))
    whole = np.rint(terms * 2.0**_FINE).astype(np.int64)
    lag = np.subtract.outer(np.arange(size), np.arange(size))
    return np.where(lag >= 0, whole[np.maximum(lag, 0)], 0)
