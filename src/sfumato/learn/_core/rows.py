"""`Rows`: the private rows of a fit as integers, in blocks over which products are exact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.learn._core.design import UNIT, Design

__all__ = ["BLOCK", "Rows"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

BLOCK = 1 << 12
"""How many rows are worked on at a time: integers below 2**41 add up exactly over them as floats."""
_MOST_OF_UNIT = 1 << 20


class Rows:
    """The rows that a fit learns from; sorted by unit where units have several.

    Attributes:
        design: What the coordinates are; public.
        integers: A row of coordinates each, without the intercept; private.
        target: What is to be learned, as an integer a row: a number as a multiple of 2**-14 of its range, or
            the code of a class; None: nothing.
        units: The number of each row's unit, ascending; None: each row is a unit.
        exchange: Whether neighbours have one unit exchanged, so that sums move by twice what a unit weighs.
    """

    def __init__(
        self,
        design: Design,
        integers: NDArray[np.int16],
        target: NDArray[np.integer] | None = None,
        units: NDArray[np.integer] | None = None,
        *,
        exchange: bool = False,
    ) -> None:
        self.design, self.exchange = design, exchange
        self._squares, self._squared = np.empty(0), 0
        if units is not None:
            if len(units) and np.bincount(np.unique(units, return_inverse=True)[1]).max() > _MOST_OF_UNIT:
                raise InvalidParameter("A unit has at most 2**20 rows.")
            units = np.asarray(units, np.int64)
            if (units[1:] < units[:-1]).any():
                order = np.argsort(units, kind="stable")
                integers, units = integers[order], units[order]
                target = None if target is None else target[order]
        self.integers, self.target, self.units = integers, target, units

    def __len__(self) -> int:
        return len(self.integers)

    def summed(self) -> NDArray[Any] | None:
        """The upper triangle of Σ v·vᵀ over all rows, where something else than these rows gives it."""
        return None

    def slices(self, size: int = BLOCK) -> Iterator[slice]:
        """Blocks of rows by their places."""
        for start in range(0, len(self), size):
            yield slice(start, min(start + size, len(self)))

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[slice, Floats]]:
        """Blocks of rows as floats that hold integers, the intercept last; each block is gone with the next.

        Privacy:
            Claim: a product of a block with a matrix of integers is exact, whatever order a library adds up
            in, as long as the sum of the magnitudes of its terms is below 2**53. So what a row gives does
            not depend on the rows beside it.
        """
        width = self.integers.shape[1]
        room = np.full((min(size, max(1, len(self))), self.design.width), float(UNIT))
        for part in self.slices(size):
            block = room[: part.stop - part.start]
            block[:, :width] = self.integers[part]
            yield part, block

    def squares(self) -> Floats:
        """The sum of squares of each row's coordinates with the intercept, in UNIT²: exact integers.

        They are found once, and not to be written to.
        """
        size = len(self)  # which reads the rows, where they are still to be read
        if self._squared < size:
            self._squared = 0
            for part, block in self.blocks():
                self.squares_of(part, block)
        return self._squares

    def squares_of(self, part: slice, block: Floats) -> Floats:
        """Those of a block that `blocks` gives, as it gives it; found on the way, by who goes through all."""
        if part.start == self._squared:
            if part.start == 0:
                self._squares = np.empty(len(self))
            np.einsum("ij,ij->i", block, block, out=self._squares[part])
            self._squared = part.stop
        return self._squares[part] if part.stop <= self._squared else np.einsum("ij,ij->i", block, block)
