"""`Cells`: the private rows of a table as places in a public grid, and exact counts of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Total
from sfumato.synth._model.domain import Clique, Domain

__all__ = ["WHOLE", "Cells"]

WHOLE = 2**16
"""How many parts a row is counted in, where rows have weights."""


class Cells:
    """Private rows, each column of a row as the number of its cell.

    A column takes as many bytes a row as its number of cells needs: one below 256, two below 65,536.

    Attributes:
        domain: The public grid.
        max_rows: How many rows one unit has at most.
        exchange: Whether neighbours have one unit exchanged.
        parts: How many parts a row of weight 1 is counted in.
    """

    def __init__(
        self,
        domain: Domain,
        columns: Sequence[NDArray[Any]],
        *,
        max_rows: int = 1,
        exchange: bool = False,
        weights: NDArray[np.int64] | None = None,
    ) -> None:
        """Take the columns, in the domain's order; a number beyond a column's cells means its last one.

        Args:
            domain: The grid.
            columns: The cell of each row, column by column.
            max_rows: How many rows one unit has at most; where rows have weights, how many they weigh.
            exchange: Whether neighbours have one unit exchanged.
            weights: What each row weighs, at least 0, in parts of `WHOLE`; None: all of them 1.

        Raises:
            InvalidParameter: if there are not as many columns as the domain has.
        """
        if columns and len(columns) != len(domain):
            raise InvalidParameter("Rows need a cell in each of the domain's columns.")
        self.domain, self.max_rows, self.exchange = domain, max_rows, exchange
        self.parts, self._weights = 1 if weights is None else WHOLE, weights
        self._columns = [
            np.clip(column, 0, size - 1).astype(_narrowest(size))
            for column, size in zip(columns, domain.sizes, strict=False)
        ]

    def counts(self, clique: Clique) -> Total:
        """How many rows are in each cell of some columns, in the order of their cells; exact.

        Privacy:
            Claim: adding or removing a unit moves the counts by at most `max_rows` in L2 (and in L1). Proof:
            its rows weigh at most so much, and each is in one cell.
        """
        size = self.domain.cells(clique)
        values = np.bincount(self._places(clique, size), self._weights, minlength=size)
        # Weights are added up as floats, which are exact below 2**53: for as many as 2**37 units.
        whole = values.astype(np.int64, copy=False)
        return Total(whole, Fraction(self.max_rows * self.parts), Fraction(1, self.parts))

    def stretches(self, place: int, width: int, known: int) -> Total:
        """How many rows are in each stretch of so many cells of a column, and each cell behind them; exact.

        Args:
            place: The column.
            width: How many neighbouring cells are a stretch; the last one may have fewer.
            known: How many cells, from the first, are in stretches.

        Privacy:
            Claim: that of `counts`. Proof: each cell is in one stretch, so that each row is, too.
        """
        total = self.counts((place,))
        starts = [*range(0, known, width), *range(known, len(total.values))]
        return total._replace(values=np.add.reduceat(total.values, starts))

    def _places(self, clique: Clique, size: int) -> NDArray[Any]:
        """The number of each row's cell among those of the clique, in as few bytes as hold them all."""
        kind = _narrowest(size)
        if not self._columns:
            return np.zeros(0, kind)
        if not clique:
            return np.zeros(len(self._columns[0]), kind)
        place: NDArray[Any] = self._columns[clique[0]].astype(kind)
        for at in clique[1:]:
            place *= kind.type(self.domain.sizes[at])
            place += self._columns[at]
        return place


def _narrowest(size: int) -> np.dtype[Any]:
    """The unsigned integers that count to so many; they never overflow on the way to a cell's number.

    A partial place is at most the last one, divided by the cells that are still to come.
    """
    for kind in (np.uint8, np.uint16, np.uint32):
        if size <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)
