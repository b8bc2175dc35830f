"""`Domain`: a table's columns as a grid of cells; `Marginal`: noisy counts of a few of them. All public."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter

__all__ = ["Clique", "Domain", "Marginal"]

Clique: TypeAlias = tuple[int, ...]
"""Some columns, by their places in ascending order."""


@dataclass(frozen=True, slots=True)
class Domain:
    """How many cells each column has.

    Attributes:
        names: Of the columns.
        sizes: How many cells each has, at least 1; a row is in one of them.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.sizes) or len(set(self.names)) < len(self.names):
            raise InvalidParameter("Columns need names that differ, and a number of cells each.")
        if any(size < 1 for size in self.sizes):
            raise InvalidParameter("A column has at least one cell.")

    def __len__(self) -> int:
        return len(self.sizes)

    def clique(self, names: Iterable[str]) -> Clique:
        """The places of columns that are named, in ascending order.

        Raises:
            InvalidParameter: if there is no such column, or one is named twice.
        """
        places = list[int]()
        for name in names:
            if name not in self.names:
                raise InvalidParameter(f"There is no column {str(name)[:60]!r}.")
            places.append(self.names.index(name))
        if len(set(places)) < len(places):
            raise InvalidParameter("A column is named twice.")
        return tuple(sorted(places))

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """How many cells each of some columns has."""
        return tuple(self.sizes[place] for place in clique)

    def cells(self, clique: Clique) -> int:
        """How many cells some columns have together."""
        return math.prod(self.shape(clique))


@dataclass(frozen=True, slots=True)
class Marginal:
    """Noisy counts of the rows in each cell of some columns; public.

    Attributes:
        clique: The columns.
        values: The counts with noise, in the shape of the columns' cells.
        sigma: The standard deviation of the noise of each.
    """

    clique: Clique
    values: NDArray[np.float64]
    sigma: float
