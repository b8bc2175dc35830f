"""What a fit reads of a session: its columns between public bounds, and what is to be learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.learn._core.declared import AUTO, Category, Declared, Number, Unbought, is_auto
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.records import Records
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.session_rows import SessionRows, engine_moments
from sfumato.ledger import Right
from sfumato.session.rows_wanted import (
    Coded,
    MomentsTaken,
    Plain,
    RowsTaken,
    RowsWanted,
    Scaled,
    Taking,
    days,
)

__all__ = ["ReadTarget", "Reading", "public_bounds"]

ReadTarget: TypeAlias = Callable[[list[NDArray[Any]]], NDArray[Any] | None]


def public_bounds(bounds: Any, wanted: RowsWanted, names: Sequence[str]) -> Any:
    """The bounds that were given; by column, and without any, those that the table declares fill in.

    Days may be written as dates. Where all bounds are to be bought, declared categories stay.
    """
    if is_auto(bounds):
        columns = [wanted.column(name) for name in names]
        return {
            column.name: AUTO if column.values is None else Category(column.name, tuple(column.values))
            for column in columns
        }
    if bounds is not None and not isinstance(bounds, Mapping):
        return bounds
    places = {str(place): name for place, name in enumerate(names) if str(place) not in names}
    given = {places.get(str(name), str(name)): pair for name, pair in (bounds or {}).items()}
    for name in names:
        column = wanted.column(name)
        if name not in given and column.kind == "category" and column.values is not None:
            given[name] = Category(name, tuple(column.values))
        elif name not in given and column.lower is not None and column.upper is not None:
            given[name] = (column.lower, column.upper)
        elif column.is_date and isinstance(given.get(name), tuple) and len(given[name]) == 2:
            given[name] = tuple(map(days, given[name]))
    return given


@dataclass(frozen=True, slots=True)
class Reading:
    """What a fit reads of a session: its columns as coordinates, and what is to be learned.

    Attributes:
        wanted: The rows.
        design: The coordinates of the columns that are learned from.
        target: The columns of what is to be learned, each with what is declared of it.
        plain: Whether numbers are read as they are, to be put between bounds in memory.
    """

    wanted: RowsWanted
    design: Design
    target: tuple[Declared, ...]
    plain: bool = False

    @property
    def unbought(self) -> tuple[str, ...]:
        """The columns whose bounds the fit buys."""
        columns = (*self.design.columns, *self.target)
        return tuple(column.name for column in columns if isinstance(column, Unbought))

    @property
    def taken(self) -> RowsTaken:
        """The rows as integers. Those without a number or without what is to be learned are left out.

        Where bounds are bought, numbers are read as they are.
        """
        steps = UNIT * (1 + self.design.signed)
        ways = {column.name: _way(column, steps, plain=self._is_plain) for column in self.design.columns}
        for column in self.target:
            ways[column.name] = _way(column, UNIT, plain=isinstance(column, Unbought))
        needed = [column.name for column in self.design.columns if isinstance(column, Number)]
        return self.wanted.taking(ways, complete=[*needed, *(column.name for column in self.target)])

    @property
    def moments(self) -> MomentsTaken | None:
        """The second moments that the engine can add up; None: it cannot."""
        return None if self._is_plain else engine_moments(self.design, self.taken)

    @property
    def _is_plain(self) -> bool:
        return self.plain or bool(self.unbought)

    def rows(self, right: Right, target: ReadTarget) -> Rows | Records:
        """The rows of a fit, read once: when they are looked at, unless bounds are bought.

        Args:
            right: To `taken` and `moments`.
            target: From the columns of the target to what is to be learned, one a row.

        Privacy:
            Claim: neighbours differ in the rows of one unit (`Vault.rows`), and each row is what
            `Design.integers` makes of the same values: a category that is missing or not listed is none of
            them, and rows without a number are not there.
        """
        if self._is_plain:
            return self.records(right, target)
        return SessionRows(
            self.design,
            lambda: self._read(right, target),
            right,
            self.moments,
            exchange=self.wanted.exchange,
            has_units=self.wanted.has_units,
        )

    def records(self, right: Right, target: ReadTarget) -> Records:
        """The rows with numbers as they are, read now; as `rows`."""
        assert self._is_plain
        read, width = self.taken.read(right), len(self.design.columns)
        columns = [
            values if isinstance(column, Number) else np.where(missing, -1, values)
            for column, values, missing in zip(
                self.design.columns, read.columns[:width], read.missing[:width], strict=True
            )
        ]
        learned = target(list(read.columns[width:]))
        lacking = next((column for column in self.target if isinstance(column, Unbought)), None)
        return Records(
            self.design,
            columns,
            learned,
            read.units,
            exchange=self.wanted.exchange,
            target_column=lacking,
        )

    def _read(
        self, right: Right, target: ReadTarget
    ) -> tuple[NDArray[np.int16], NDArray[Any] | None, NDArray[np.int64] | None]:
        """The coordinates of each row, what is to be learned, and whose it is."""
        read = self.taken.read(right)
        integers = np.zeros((read.size, len(self.design.coordinates)), np.int16)
        for at, coordinate in enumerate(self.design.coordinates):
            values, missing = read.columns[coordinate.column], read.missing[coordinate.column]
            if coordinate.category is None:
                integers[:, at] = values - UNIT if self.design.signed else values
            else:
                integers[:, at] = np.where(~missing & (values == coordinate.category), UNIT, 0)
        return integers, target(list(read.columns[len(self.design.columns) :])), read.units


def _way(column: Declared, steps: int, *, plain: bool) -> Taking:
    if isinstance(column, Category):
        return Coded(column.values)
    return Plain() if plain else Scaled(float(column.lower), float(column.upper), steps)
