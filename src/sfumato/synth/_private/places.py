"""`Places`: the exact counts of the smallest places, cell by cell, and what they add up to on each level."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from sfumato.fits.meter import Total
from sfumato.synth._levels.grid import Grid, Part
from sfumato.synth._levels.tree import Tree

__all__ = ["Places"]


class Places:
    """Private counts over the smallest places and all cells.

    Args:
        tree: The places; public.
        grid: The cells; public.
        counts: Places of the last level × attributes, in integers; private.
        sensitivity: The most that a unit moves any sums of disjoint groups of them, in L2; public, and proven
            where they are counted.
        step: What one of the integers is worth: a power of two.
    """

    def __init__(
        self,
        tree: Tree,
        grid: Grid,
        counts: NDArray[Any],
        sensitivity: Fraction,
        step: Fraction = Fraction(1),
    ) -> None:
        self.tree, self.grid, self._sensitivity, self._step = tree, grid, sensitivity, step
        self._levels = [counts]
        for level in reversed(range(len(tree) - 1)):
            self._levels.insert(0, tree.added_up(level, self._levels[0]))

    def total(self, level: int, part: Part) -> Total:
        """A marginal over some attributes for all places of a level, exact, as one list place by place.

        Privacy:
            Claim: a unit moves it by at most the sensitivity that was handed in. Proof: each count of it is
            the sum of some of the counts, and no count is in two of these sums.
        """
        counts = self.grid.marginal(self._levels[level], part)
        return Total(counts.reshape(-1), self._sensitivity, self._step)
