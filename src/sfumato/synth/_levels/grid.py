"""`Grid`: the cells of a few attributes, and the parts of a table that marginals keep or leave out."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass

__all__ = ["Floats", "Grid", "Part"]

Floats: TypeAlias = NDArray[np.float64]
Part: TypeAlias = tuple[int, ...]
"""Some of the attributes, by their places in ascending order."""


@dataclass(frozen=True, slots=True)
class Grid:
    """How many values each attribute has.

    A table x over the cells is the sum of one part for each set S of attributes: what of it varies with all
    of S and with nothing else. Parts are orthogonal, and a marginal over attributes A keeps those with S ⊆ A,
    each times a factor (the analysis of variance). So least squares over marginals are solved part by part.

    Attributes:
        names: Of the attributes.
        sizes: How many values each has.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.sizes)

    @property
    def parts(self) -> list[Part]:
        """All sets of attributes that can vary, the empty one first."""
        places = [at for at, size in enumerate(self.sizes) if size > 1]
        return [part for count in range(len(places) + 1) for part in combinations(places, count)]

    def cells_of(self, part: Part) -> int:
        """How many cells a marginal over some attributes has."""
        return math.prod(self.sizes[at] for at in part)

    def spread(self, part: Part) -> int:
        """How many cells add up to one of such a marginal."""
        return self.cells // self.cells_of(part)

    def dimension(self, part: Part) -> int:
        """How many numbers a part of a table has that are free."""
        return math.prod(self.sizes[at] - 1 for at in part)

    def marginal(self, table: NDArray[Any], part: Part) -> NDArray[Any]:
        """The sums over all other attributes, in a table's shape with 1 for each of these; exact."""
        left_out = tuple(1 + at for at in range(len(self.sizes)) if at not in part)
        return table.sum(axis=left_out, keepdims=True) if left_out else table

    def split(self, table: Floats) -> dict[Part, Floats]:
        """The parts of a table, each with 1 for the attributes that it does not vary with.

        Attributes that the table has 1 of are taken as not varied with: those parts are left out.
        """
        found: dict[Part, Floats] = {(): table}
        for at in range(len(self.sizes)):
            if table.shape[1 + at] == 1:
                continue
            for part, whole in list(found.items()):
                mean = whole.mean(axis=1 + at, keepdims=True)
                found[part] = mean
                found[(*part, at)] = whole - mean
        return found

    def joined(self, parts: dict[Part, Floats], places: int) -> Floats:
        """The table that parts add up to, over so many places."""
        table = np.zeros((places, *self.sizes))
        for values in parts.values():
            table += values
        return table
