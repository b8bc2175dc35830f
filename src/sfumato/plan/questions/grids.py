"""Public grids over the range of a column, whose cells the engine counts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.tree import Expression, call
from sfumato.plan.expressions.tree import Literal as Constant
from sfumato.plan.questions.sums import Range

__all__ = ["CellGrid", "grid_of"]

_FINEST, _COARSEST = 4096, 64
_TOGETHER = 2**22  # cells of all groups

_NARROWEST = Fraction(1, 2**900)  # finer cells could not be counted in floats


@dataclass(frozen=True, slots=True)
class CellGrid:
    """Cells of equal width from `lower` on. A cell of whole numbers is one of them.

    Attributes:
        lower: Where the first cell begins.
        width: Of each cell.
        cells: How many there are.
        whole: Whether each cell holds one whole number alone.
    """

    lower: Fraction
    width: Fraction
    cells: int
    whole: bool

    def index(self, argument: Expression) -> Expression:
        """The number of the cell that a value lies in; what lies outside is clamped where it is counted."""
        whole = self.lower.denominator == 1
        start = Constant(int(self.lower), "integer") if whole else Constant(float(self.lower), "float")
        distance = call("subtract", argument, start) if self.lower else argument
        if self.whole:
            return distance
        return call("floor", call("multiply", distance, Constant(float(1 / self.width), "float")))

    def value(self, cell: NDArray[np.int64]) -> NDArray[np.float64]:
        """The number that represents a cell: itself, or its middle."""
        shift = 0.0 if self.whole else 0.5
        return np.asarray(float(self.lower) + (cell + shift) * float(self.width), np.float64)

    def ends(
        self, low: NDArray[np.int64], high: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and the greatest number in a range of cells."""
        last = 0.0 if self.whole else 1.0
        base, width = float(self.lower), float(self.width)
        return np.asarray(base + low * width), np.asarray(base + (high + last) * width)


def grid_of(known: Range, groups: int) -> CellGrid:
    """The grid for numbers of a known range: one cell for each whole number if they are few, else fine."""
    most = _FINEST
    while most > _COARSEST and most * groups > _TOGETHER:
        most //= 2
    if known.whole and known.upper - known.lower < most:
        return CellGrid(known.lower, Fraction(1), int(known.upper - known.lower) + 1, True)
    span = known.upper - known.lower
    span = span if span > _NARROWEST else Fraction(1)
    width = span / most
    if known.whole:  # cells of several whole numbers
        width = Fraction(math.ceil(width))
        return CellGrid(known.lower, width, math.ceil((span + 1) / width), False)
    return CellGrid(known.lower, width, most, False)
