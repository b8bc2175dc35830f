"""`Families`: private units, each a row of one table with its rows in another, as cells to be counted."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Total
from sfumato.synth._model.domain import Domain
from sfumato.synth._private.cells import WHOLE, Cells

__all__ = ["Families"]


class Families:
    """Units as a left join gives them: a line for each child, or one without a child.

    A unit is one parent: of several the first one in the order of their cells, with the children beside it.

    Args:
        units: The number of each line's unit.
        parents: The fine cell of each line's parent, column by column.
        children: The fine cell of its child.
        has_child: Whether there is one that counts.
        most: How many children a unit has at most; more are not counted.
        exchange: Whether neighbours have one unit exchanged.
    """

    def __init__(
        self,
        units: NDArray[np.int64],
        parents: Sequence[NDArray[Any]],
        children: Sequence[NDArray[Any]],
        has_child: NDArray[np.bool_],
        *,
        most: int,
        exchange: bool,
    ) -> None:
        known, units = np.unique(units, return_inverse=True)
        many = len(known)
        own = np.ones(len(units), bool)
        firsts = list[NDArray[Any]]()
        for column in parents:
            first = np.full(many, np.iinfo(column.dtype).max, column.dtype)
            np.minimum.at(first, units[own], column[own])
            own &= column == first[units]
            firsts.append(first)
        counts = own & has_child
        numbers = np.bincount(units[counts], minlength=many)
        with_some = numbers > 0
        rows = np.flatnonzero(counts)
        self._numbers = np.minimum(numbers, most)
        self._every = firsts
        self._childless = [first[~with_some] for first in firsts]
        number = self._numbers[units[rows]]
        # More lines than `most` are never read; here they would weigh no more than a unit may.
        self._weights = np.asarray(WHOLE // np.maximum(numbers[units[rows]], 1), np.int64)
        self._joined = [*(first[units[rows]] for first in firsts), number - 1]
        self._joined += [column[rows] for column in children]
        self._most, self._exchange = most, exchange

    def numbers(self) -> Total:
        """How many units have no child, 1, 2, … up to the most.

        Privacy:
            Claim: adding or removing a unit moves the counts by at most 1. Proof: it is counted once.
        """
        counts = np.bincount(self._numbers, minlength=self._most + 1)
        return Total(counts, Fraction(1), Fraction(1))

    def every(self, domain: Domain) -> Cells:
        """All parents by their fine cells, one row a unit."""
        return Cells(domain, self._every, exchange=self._exchange)

    def childless(self, domain: Domain, places: Sequence[NDArray[np.int64]]) -> Cells:
        """The parents without children, one row a unit.

        Args:
            domain: The parents' columns in coarse cells.
            places: The coarse cell of each fine one, column by column.
        """
        return Cells(domain, _coarse(self._childless, places), exchange=self._exchange)

    def joined(self, domain: Domain, places: Sequence[NDArray[np.int64]]) -> Cells:
        """Children beside their parents and how many siblings they are; all of a unit together weigh 1.

        Args:
            domain: The columns of parents, the number of children, and the columns of children.
            places: The coarse cell of each fine one, column by column; that of a number starts with 1.

        Privacy:
            Claim: a unit's rows weigh at most 1 in all, as `Cells` wants it. Proof: each of its k children
            weighs a k-th, rounded down to parts of `WHOLE`; all of it follows from the unit's own lines.
        """
        return Cells(domain, _coarse(self._joined, places), exchange=self._exchange, weights=self._weights)


def _coarse(columns: Sequence[NDArray[Any]], places: Sequence[NDArray[np.int64]]) -> list[NDArray[Any]]:
    return [
        place.astype(np.uint16)[np.minimum(column, len(place) - 1)]
        for column, place in zip(columns, places, strict=True)
    ]
