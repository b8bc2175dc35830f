"""Descriptions by some columns of a synthetic row, and whom each of them fits alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.anonymity.codes import Codes
from sfumato.attacks._mixed import Column, Floats
from sfumato.attacks.matching import Flags

__all__ = ["Described", "by_one_column", "by_several_columns", "matrix"]

_BLOCK = 2_000_000  # pairs of a description and a person that are looked at together
_BEYOND = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True, eq=False)
class Described:
    """Descriptions, a row each: which columns they are about, and from where to where their values go.

    A value is equal where both ends are it, and at least or at most as large where one end is beyond all.
    What is missing is infinite, so that no end but its own reaches it.
    """

    columns: Codes
    low: Floats
    high: Floats

    def alone(self, values: Floats) -> Codes:
        """Whom each of them fits, and nobody else; -1 where it fits nobody or several.

        Args:
            values: A row for each column, an entry for each person.
        """
        whom = np.full(len(self.columns), -1)
        step = max(1, _BLOCK // values.shape[1])
        for start in range(0, len(whom), step):
            some = slice(start, start + step)
            fits: Flags = np.ones((len(whom[some]), values.shape[1]), dtype=bool)
            for place in range(self.columns.shape[1]):
                own = values[self.columns[some, place]]
                fits &= (own >= self.low[some, place, None]) & (own <= self.high[some, place, None])
            whom[some] = np.where(fits.sum(axis=1) == 1, fits.argmax(axis=1), -1)
        return whom

    def take(self, which: Codes) -> Described:
        """Some of them."""
        return Described(self.columns[which], self.low[which], self.high[which])

    def different(self) -> Described:
        """Each of them once."""
        _, first = np.unique(np.hstack([self.columns, self.low, self.high]), axis=0, return_index=True)
        return self.take(np.sort(first))


def matrix(columns: Sequence[Column], part: int) -> Floats:
    """The values of a table, a row for each column, with infinity for what is missing."""
    values = np.stack([column.parts[part] for column in columns])
    return np.where(np.isnan(values), np.inf, values)


def by_one_column(columns: Sequence[Column], part: int) -> Described:
    """Descriptions by one column: what occurs once in a table, and the ends of its numbers."""
    places, low, high = [], [], []
    table = matrix(columns, part)
    for place, (column, own) in enumerate(zip(columns, table, strict=True)):
        values, counts = np.unique(own, return_counts=True)
        ends = [(value, value) for value in values[counts == 1].tolist()]
        known = values[np.isfinite(values)].tolist()
        if column.ordered and known:
            ends += [(-_BEYOND, known[0]), (known[-1], _BEYOND)]
        places += [[place]] * len(ends)
        low += [[first] for first, _ in ends]
        high += [[last] for _, last in ends]
    if not places:
        return Described(np.zeros((0, 1), dtype=np.int64), np.zeros((0, 1)), np.zeros((0, 1)))
    ranges = Described(np.array(places), np.array(low), np.array(high)).different()
    return ranges.take(np.flatnonzero(ranges.alone(table) >= 0))


def by_several_columns(
    columns: Sequence[Column], part: int, rows: Codes, chosen: Codes, most: int
) -> Described:
    """Different descriptions by several columns, each of which fits one row of a table.

    Args:
        columns: All columns.
        part: Which table.
        rows: The rows to describe, one after the other.
        chosen: The columns to describe each by.
        most: How many descriptions are enough.
    """
    values = matrix(columns, part)
    low, high = values.copy(), values.copy()
    for place, column in enumerate(columns):
        known = values[place][np.isfinite(values[place])]
        if column.ordered and len(known):
            is_large, is_known = values[place] > np.median(known), np.isfinite(values[place])
            high[place][is_large & is_known] = _BEYOND
            low[place][~is_large & is_known] = -_BEYOND
    about = np.sort(chosen, axis=1)
    ranges = Described(about, low[about, rows[:, None]], high[about, rows[:, None]]).different()
    kept: list[int] = []
    # Many tables give enough of them soon; the others are then not looked at.
    for start in range(0, len(ranges.columns), most):
        some = np.arange(start, min(start + most, len(ranges.columns)))
        kept += some[ranges.take(some).alone(values) >= 0].tolist()
        if len(kept) >= most:
            break
    return ranges.take(np.array(kept[:most], dtype=np.int64))
