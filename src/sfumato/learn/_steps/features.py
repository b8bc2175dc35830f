"""Columns on their way through public steps: each a table from what was read of one column to a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.learn._core.declared import Declared, Number
from sfumato.learn._core.design import UNIT, Design, whole
from sfumato.learn._core.rows import Rows

__all__ = ["Feature", "Source", "features_of", "grid"]


class Feature(NamedTuple):
    """A column after some steps, as a public function of one column of the rows that are read.

    Attributes:
        column: What is public about it.
        source: The place of the column that it is a function of.
        values: What it is for each thing that was read there (`grid`): a number, or the code of a category.
    """

    column: Declared
    source: int
    values: NDArray[Any]


def grid(column: Declared) -> NDArray[Any]:
    """All that can be read of a column: its numbers from the lower bound up, or codes and then −1, none."""
    if isinstance(column, Number):
        lower, upper = float(column.lower), float(column.upper)
        return np.asarray(lower + np.arange(UNIT + 1) * ((upper - lower) / UNIT))
    return np.append(np.arange(len(column.values)), -1)


def features_of(design: Design) -> list[Feature]:
    """The columns as they are read."""
    return [Feature(column, place, grid(column)) for place, column in enumerate(design.columns)]


class Source:
    """The private rows of a fit, from which the rows of each of its steps are looked up.

    Privacy:
        Claim: a row of a step follows from the row that was read and what is public, whatever functions the
        steps are. Proof: functions are only ever applied to `grid`, which is public; a row is looked up in
        the table of what came out.
    """

    def __init__(self, rows: Rows) -> None:
        """Take rows of a design without signs and intercept."""
        self.rows = rows
        self._codes = dict[int, NDArray[Any]]()

    def _read(self, source: int) -> NDArray[Any]:
        """For each row, its place in the grid of a column."""
        at = [place for place, each in enumerate(self.rows.design.coordinates) if each.column == source]
        if isinstance(self.rows.design.columns[source], Number):
            return self.rows.integers[:, at[0]]
        if source not in self._codes:
            codes = np.full(len(self.rows), len(at), np.int16)
            for category, place in enumerate(at):
                codes[self.rows.integers[:, place] > 0] = category
            self._codes[source] = codes
        return self._codes[source]

    def rows_of(self, design: Design, features: Sequence[Feature]) -> Rows:
        """The rows of a step whose columns are these features."""
        integers = np.empty((len(self.rows), len(design.coordinates)), np.int16)
        for at, coordinate in enumerate(design.coordinates):
            column, feature = design.columns[coordinate.column], features[coordinate.column]
            if isinstance(column, Number):
                table = whole(feature.values, column, signed=design.is_signed(coordinate.column))
            else:
                table = np.where(feature.values == coordinate.category, UNIT, 0).astype(np.int16)
            integers[:, at] = table[self._read(feature.source)]
        rows = self.rows
        return Rows(design, integers, rows.target, rows.units, exchange=rows.exchange)
