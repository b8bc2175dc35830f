"""`Cells`: the private rows of a table as places in a public grid, and exact counts of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Total
from sfumato.synth._model.domain import Clique, Domain

__all__ = ["Cells"]


class Cells:
    """Private rows, each column of a row as the number of its cell.

    Attributes:
        domain: The public grid.
        max_rows: How many rows one unit has at most.
        exchange: Whether neighbours have one unit exchanged.
    """

    def __init__(
        self, domain: Domain, columns: Sequence[NDArray[Any]], *, max_rows: int = 1, exchange: bool = False
    ) -> None:
        self.domain, self.max_rows, self.exchange = domain, max_rows, exchange
        self._columns = list(columns)

    def counts(self, clique: Clique) -> Total:
        """How many rows are in each cell of some columns, in the order of their cells; exact.

        Privacy:
            Claim: adding or removing a unit moves the counts by at most `max_rows` in L2 (and in L1). Proof:
            it has at most so many rows, and each is in one cell.
        """
        size = self.domain.cells(clique)
        if not self._columns:
            return Total(np.zeros(size, np.int64), Fraction(self.max_rows), Fraction(1))
        place = np.zeros(len(self._columns[0]), np.int64)
        for at in clique:
            place *= self.domain.sizes[at]
            place += self._columns[at]
        return Total(np.bincount(place, minlength=size), Fraction(self.max_rows), Fraction(1))
