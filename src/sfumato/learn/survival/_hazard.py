"""`Hazard`: a public guess at the hazard over time, and three smooth terms that bend it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.learn._core.sums import RESIDUAL_BITS
from sfumato.learn.survival._curve import Curve
from sfumato.learn.survival._grid import Grid

__all__ = ["TERMS", "Hazard"]

Floats: TypeAlias = NDArray[np.float64]

TERMS = 3
"""A level, a slope and a bend over the share of events that has happened."""
_LOWEST = 1e-3  # survival is not taken to be less
_LEAST = 0.02  # nor a cell's hazard less than this part of their mean
_FARTHEST = 4.0  # what the terms may add to its logarithm


class Hazard:
    """The hazard of each cell of time, piecewise constant; all of it from noisy counts.

    Attributes:
        cells: The cells of time.
        start: The hazard of everybody in each cell, added up over it.
        terms: What bends its logarithm: a line for each cell.
        last: The tick of the horizon.
    """

    def __init__(self, cells: Grid, curve: Curve) -> None:
        self.cells = cells
        survival = np.maximum(np.concatenate([[1.0], curve.survival]), _LOWEST)
        raw = np.log(survival[:-1] / survival[1:])
        self.start = np.maximum(raw, _LEAST * raw.mean() + 1e-6)
        middle = (survival[:-1] + survival[1:]) / 2
        place = 2 * (1 - middle) / (1 - survival[-1] + 1e-9) - 1
        bend = np.sqrt(5) * (3 * place**2 - 1) / 2
        self.terms = np.column_stack([np.ones(len(cells)), np.sqrt(3) * place, bend])
        self.last = int(cells.ticks[-1])
        ticks = np.arange(self.last + 1)
        self._cell = np.searchsorted(cells.ticks, ticks, side="left")
        begin = np.concatenate([[0], cells.ticks[:-1]])
        whole = (cells.ticks - begin)[self._cell]
        self._part = (ticks - begin[self._cell]) / whole

    def bent(self, weights: Floats) -> Floats:
        """The hazard of each cell, with its terms so much."""
        return np.asarray(self.start * np.exp(np.clip(self.terms @ weights, -_FARTHEST, _FARTHEST)))

    def tables(self, weights: Floats) -> tuple[Floats, Floats]:
        """For each tick: the terms at an event then, and their sum over all time before; multiples of 2**-20.

        Somebody who is seen until then and has k times the hazard has the residuals event·first − k·second.
        """
        each = self.bent(weights)[:, None] * self.terms
        before = np.vstack([np.zeros(TERMS), np.cumsum(each, axis=0)[:-1]])
        seen = before[self._cell] + self._part[:, None] * each[self._cell]
        scale = 2.0**RESIDUAL_BITS
        return np.rint(self.terms[self._cell] * scale), np.rint(seen * scale)
