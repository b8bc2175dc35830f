"""Exact sums over rows by bins, in which all rows of a unit together weigh no more than one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Total
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import Adding

__all__ = ["PART", "Codes", "Tallies"]

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]

PART = 1 << 16
"""How many rows are added up at a time: integers below 2**37 add up exactly over them as floats."""
_WHOLE = 1 << 20  # the weight of a unit; no unit has more rows, so that none has weight 0


class Tallies:
    """Sums over the rows of a fit by a code that each row has.

    Privacy:
        Claim: adding or removing a unit moves the sums by at most `longest` in L2, where no row's values are
        longer. Proof: a unit with k rows gives each the weight ⌊2**20/k⌋/2**20; its part of the sums is a
        sum of its rows' values at their codes, each as long as that weight times what the row has; by the
        triangle inequality they add up to at most k·⌊2**20/k⌋·longest/2**20 ≤ longest. A row's values and
        code follow from that row (and what is public), its weight from its unit's number of rows. Sums are
        of integers below 2**16·2**20·2**16 ≤ 2**52 at a time, added up as floats, and exact.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._weights: NDArray[np.float64] | None = None
        self.whole = 1
        if rows.units is not None:
            _, places = np.unique(rows.units, return_inverse=True)
            sizes = np.maximum(np.bincount(places, minlength=1), 1)
            self._weights = (_WHOLE // sizes)[places].astype(np.float64)
            self.whole = _WHOLE

    def sums(
        self,
        codes: Callable[[slice], NDArray[Any]] | Codes,
        size: int,
        values: Callable[[slice], Sequence[Any]],
        longest: int,
        unit: int,
    ) -> Total:
        """Σ of each row's values at its code: a line for each code.

        Args:
            codes: Of all rows, or of those of a slice; each below `size`.
            size: How many codes there are.
            values: Of the rows of a slice: for each column of the sums, one integer a row, or one for all.
            longest: What the values of a row are at most in L2, as an integer up to 2**16.
            unit: Which integer 1 is.
        """
        total = Adding((len(values(slice(0, 0))), size))
        for part in self._rows.slices(PART):
            at = (codes(part) if callable(codes) else codes[part]).astype(np.intp)
            weights = None if self._weights is None else self._weights[part]
            lines = [
                np.bincount(
                    at, np.broadcast_to(value if weights is None else value * weights, at.shape), size
                )
                for value in values(part)
            ]
            total.add(np.array(lines))
        return Total(
            np.ascontiguousarray(total.values.T).ravel(),
            Fraction(longest * self.whole),
            Fraction(1, unit * self.whole),
        )
