"""Rows that keep to rules: values within the cells that a model drew, drawn again until they do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato.random import Simulation
from sfumato.synth._rules.rules import Rule
from sfumato.synth._rules.tables import combined
from sfumato.synth._rules.values import Points, Values, as_column, as_values
from sfumato.synth.columns.coarse import Coarse
from sfumato.synth.columns.fine import Fine

__all__ = ["Drawing"]

_ROUNDS = 12
_SEPARATE = 1000  # combinations of cells that are looked through one by one
_SPREAD = 2**14  # values among which one is chosen for the last rows


class Drawing:
    """Columns of rows that are being drawn.

    Attributes:
        columns: The columns as cells.
        cuts: Their coarse cells.
        codes: The coarse cells of each row, as the model drew them.
        found: The values so far.
    """

    def __init__(
        self, columns: Sequence[Fine], cuts: Sequence[Coarse], codes: NDArray[Any], rng: Simulation
    ) -> None:
        self.columns, self.cuts, self.codes, self._rng = columns, cuts, codes, rng
        self._place = {column.name: at for at, column in enumerate(columns)}
        every = np.arange(len(codes))
        self.found = {column.name: self._drawn(at, every) for at, column in enumerate(columns)}

    def settle(
        self,
        names: Sequence[str],
        rules: Sequence[Rule],
        points: Mapping[str, Points],
        held: Collection[str] = (),
    ) -> None:
        """Make all rows keep to some rules.

        Values are drawn again within their cells, which leaves them as likely as they are among those that
        keep to the rules. Rows for which that fails often get one of the few combinations that were found
        in their cells; where there is none, one in which the columns that are held keep their cells; and
        where there is none either, the values of another row that keeps to the rules, or any that were found.

        Args:
            names: The columns of the rules; no other rule is about them.
            rules: The rules.
            points: Of each of the columns.
            held: Columns that others follow, if need be: those with public totals.
        """
        rows = np.flatnonzero(~self._holds(names, rules, None))
        for _ in range(_ROUNDS):
            if not len(rows):
                return
            for name in names:
                self._overwrite(name, rows, self._drawn(self._place[name], rows))
            rows = rows[~self._holds(names, rules, rows)]
        rows = self._from_cells(rows, names, rules, points, names)
        kept = [name for name in names if name in held]
        if kept:
            rows = self._from_cells(rows, names, rules, points, kept)
        if len(rows):
            self._from_elsewhere(rows, names, rules, points)

    def _drawn(self, at: int, rows: NDArray[np.int64]) -> pa.Array:
        fine = self.cuts[at].finer(self.codes[rows, at], self._rng)
        return self.columns[at].restored(fine, self._rng)

    def _holds(
        self, names: Sequence[str], rules: Sequence[Rule], rows: NDArray[np.int64] | None
    ) -> NDArray[np.bool_]:
        values = dict[str, Values]()
        for name in names:
            column = self.found[name] if rows is None else self.found[name].take(pa.array(rows))
            values[name] = as_values(column, self.columns[self._place[name]].kind)
        found = np.ones(len(self.codes) if rows is None else len(rows), bool)
        for rule in rules:
            found &= rule.holds({name: values[name] for name in rule.names})
        return found

    def _overwrite(self, name: str, rows: NDArray[np.int64], values: pa.Array) -> None:
        mask = np.zeros(len(self.codes), bool)
        mask[rows] = True
        self.found[name] = pc.replace_with_mask(self.found[name], pa.array(mask), values)

    def _from_cells(
        self,
        rows: NDArray[np.int64],
        names: Sequence[str],
        rules: Sequence[Rule],
        points: Mapping[str, Points],
        held: Sequence[str],
    ) -> NDArray[np.int64]:
        """Give rows values that were found in their cells of some columns; those for which there are none."""
        if not len(rows):
            return rows
        own = self.codes[rows][:, [self._place[name] for name in held]]
        every = {name: np.arange(len(points[name].cells)) for name in names}
        cells, which = np.unique(own, axis=0, return_inverse=True)
        which, lost = which.ravel(), np.zeros(len(rows), bool)
        picked = {name: np.zeros(len(rows), np.int64) for name in names}
        for number, cell in enumerate(cells):
            mine = np.flatnonzero(which == number)
            among = every | {
                name: np.flatnonzero(self.cuts[self._place[name]].place[points[name].cells] == code)
                for name, code in zip(held, cell, strict=True)
            }
            found = combined(names, rules, points, among) if number < _SEPARATE else []
            if not found or not len(found[0]):
                lost[mine] = True
                continue
            found = _spread(found)
            chosen = self._chosen(len(mine), names, found, points)
            for name, places in zip(names, found, strict=True):
                picked[name][mine] = places[chosen]
        for name in names:
            self._put(name, rows[~lost], picked[name][~lost], points)
        return rows[lost]

    def _from_elsewhere(
        self,
        rows: NDArray[np.int64],
        names: Sequence[str],
        rules: Sequence[Rule],
        points: Mapping[str, Points],
    ) -> None:
        """Give rows the values of others, or any that keep to the rules."""
        others = np.setdiff1d(np.arange(len(self.codes)), rows, assume_unique=True)
        if len(others):
            copied = pa.array(others[self._rng.integers(0, len(others), len(rows))])
            for name in names:
                self._overwrite(name, rows, self.found[name].take(copied))
            return
        found = combined(names, rules, points, {name: np.arange(len(points[name].cells)) for name in names})
        found = _spread(found)
        chosen = self._chosen(len(rows), names, found, points)
        for name, places in zip(names, found, strict=True):
            self._put(name, rows, places[chosen], points)

    def _chosen(
        self,
        many: int,
        names: Sequence[str],
        found: Sequence[NDArray[np.int64]],
        points: Mapping[str, Points],
    ) -> NDArray[np.int64]:
        """Combinations as likely as the cells of their values are."""
        weight = np.ones(len(found[0]))
        for name, places in zip(names, found, strict=True):
            cells = points[name].cells
            weight *= (self.cuts[self._place[name]].weight / np.bincount(cells))[cells[places]]
        if not weight.sum() > 0:
            weight = np.ones(len(weight))
        return np.asarray(self._rng.choice(len(weight), many, p=weight / weight.sum()), np.int64)

    def _put(
        self, name: str, rows: NDArray[np.int64], places: NDArray[np.int64], points: Mapping[str, Points]
    ) -> None:
        if len(rows):
            kind = self.columns[self._place[name]].kind
            self._overwrite(name, rows, as_column(points[name].values[places], kind))


def _spread(found: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Some of many combinations, evenly spread."""
    many = len(found[0])
    kept = np.linspace(0, many - 1, min(_SPREAD, many)).astype(np.int64)
    return [places[kept] for places in found]
