"""How far a model is from the rows: exact means, over sets of columns, of what its counts are off by."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.fits.meter import Total
from sfumato.numeric.balls import sqrt_up
from sfumato.synth._model.domain import Clique
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import UNIT, misfit

__all__ = ["WHOLE", "Misfits", "parts_of"]

WHOLE = 2**32
"""What the weights of a mean add up to."""


def parts_of(weights: Sequence[float]) -> list[int]:
    """Weights of at least 0, one of them above it, as whole numbers that add up to `WHOLE`."""
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact, Fraction(0))
    ends = [0, *(int(reached * WHOLE / total) for reached in accumulate(exact))]
    return [high - low for low, high in pairwise(ends)]


class Misfits:
    """Σ |count − expected| of the cells of some sets of columns; private.

    Args:
        cells: The rows.
        cliques: The sets.
        expected: Public counts of each, in the shape of its cells.
    """

    def __init__(
        self, cells: Cells, cliques: Sequence[Clique], expected: Sequence[NDArray[np.float64]]
    ) -> None:
        self._most = cells.max_rows
        self._off = [
            misfit(cells.counts(clique).values, counts)
            for clique, counts in zip(cliques, expected, strict=True)
        ]

    def means(self, weights: Sequence[Sequence[int]]) -> Total:
        """Weighted means over the sets, exact, in rows.

        Args:
            weights: For each mean, whole weights of the sets that add up to `WHOLE`; public.

        Privacy:
            Claim: adding or removing a unit moves all of them together by at most `sensitivity` in L2.
            Proof: it has at most `max_rows` rows, so that it moves each misfit by at most UNIT·max_rows
            (`misfit`), and a mean in parts of 1/WHOLE by WHOLE times that; k means move by at most √k times
            as much. Condition: expected counts and weights are public.
        """
        values: list[Any] = [
            sum(part * off for part, off in zip(parts, self._off, strict=True)) for parts in weights
        ]
        longest = Fraction(sqrt_up(Fraction(len(values))))
        return Total(np.array(values, object), self._most * UNIT * WHOLE * longest, Fraction(1, UNIT * WHOLE))
