"""A public grid for numbers of any size, whose cells the engine counts."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.tree import Expression, call, literal

__all__ = ["LogGrid"]


@dataclass(frozen=True, slots=True)
class LogGrid:
    """Public cells for numbers of any size: sign, exponent, and equal parts of each octave.

    From left to right: negative cells from the largest size to the smallest, one cell for everything that is
    smaller than 2**lowest, then the positive ones. What lies beyond 2**highest, infinities too, is in the
    outermost cells.

    Attributes:
        lowest: The exponent below which numbers count as zero.
        highest: The exponent above which they are only known to be large; at most 53, so that every edge can
            bound a sum.
        parts: The cells of an octave, a power of two: edges are exact in floats, and round numbers.
    """

    lowest: int = -20
    highest: int = 53
    parts: int = 4

    def __post_init__(self) -> None:
        if not -1000 <= self.lowest < self.highest <= 53:
            raise InvalidParameter("A grid needs exponents with lowest < highest, from -1000 to 53.")
        if self.parts not in (1, 2, 4, 8, 16):
            raise InvalidParameter("An octave has 1, 2, 4, 8 or 16 parts.")

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return 2 * self.side + 1

    @property
    def side(self) -> int:
        """How many of them are negative; also the index of the cell around zero."""
        return (self.highest - self.lowest) * self.parts

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """The cells' ends in ascending order: cell i lies between edges i and i + 1."""
        return _edges(self)

    def index_expression(self, argument: Expression) -> Expression:
        """The index of a number's cell, whole and from 0 to cells − 1; NULL for NULL and NaN.

        With e = ⌊log2|x|⌋, the cell within its sign is parts·e + ⌊parts·|x|/2**e⌋ − parts: exact also where
        the engine's logarithm is rounded to the next whole number, since the second term makes up for it.
        """
        size = call("abs", argument)
        exponent = call("floor", call("log2", size))
        power = call("power", literal(2.0), call("negate", exponent))
        part = call("floor", call("multiply", call("multiply", size, power), literal(self.parts)))
        offset = literal(1 - self.parts * (self.lowest + 1))
        place = call("add", call("add", call("multiply", exponent, literal(self.parts)), part), offset)
        signed = call("add", literal(self.side), call("multiply", call("sign", argument), place))
        held = call("greatest", literal(0.0), call("least", literal(float(self.cells - 1)), signed))
        inner = call(
            "case", call("less", size, literal(2.0**self.lowest)), literal(self.side), call("floor", held)
        )
        return call(
            "case",
            call("less_equal", argument, literal(-(2.0**self.highest))),
            literal(0),
            call("less", argument, literal(2.0**self.highest)),
            inner,
            # NaN passes for greater than every number, but its inverse is not small.
            call("less", call("divide", literal(1.0), argument), literal(1.0)),
            literal(self.cells - 1),
            literal(None),
        )

    def cell_of(self, values: ArrayLike) -> NDArray[np.int64]:
        """The same of an array, −1 for NaN."""
        x = np.asarray(values, dtype=np.float64)
        size = np.minimum(np.abs(x), np.nextafter(2.0**self.highest, 0))
        with np.errstate(invalid="ignore"):
            part, exponent = np.frexp(size)  # part from 1/2 to 1
            place = (exponent - 1 - self.lowest) * self.parts + np.floor((2 * part - 1) * self.parts) + 1
            cell = self.side + np.where(size < 2.0**self.lowest, 0, np.sign(x) * place)
        return np.where(np.isnan(x), -1, np.nan_to_num(cell)).astype(np.int64)


@functools.lru_cache(maxsize=16)
def _edges(grid: LogGrid) -> tuple[Fraction, ...]:
    octaves, parts = range(grid.lowest, grid.highest), range(grid.parts)
    sizes = [Fraction(2) ** e * (1 + Fraction(j, grid.parts)) for e in octaves for j in parts]
    sizes.append(Fraction(2) ** grid.highest)
    return (*(-size for size in reversed(sizes)), *sizes)
