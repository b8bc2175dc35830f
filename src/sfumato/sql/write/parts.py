"""The pieces that the statement of a question is put together from, whatever its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from sqlglot import exp

from sfumato.engines.base import PLACE_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import Dialect
from sfumato.engines.trees import copied
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import Expression
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.relations import Rows
from sfumato.plan.questions.sources import Scan
from sfumato.sql.write.fixed_point import fixed_point, is_present
from sfumato.sql.write.members import among
from sfumato.sql.write.pieces import column, count, named, number, share, total
from sfumato.sql.write.ranks import keys_of
from sfumato.sql.write.sources import in_paid_windows, lower_source, timed_table, unit_in_window
from sfumato.sql.write.typed import Typed, canonical, typed

__all__ = ["CELL", "UNIT", "UNITS", "WEIGHTS", "Parts"]

CELL = "cell"
"""The name of the column that holds the number of a cell."""
UNIT = "u"
"""The name of the column that holds the id of a unit."""
UNITS = "s"
"""The name of the column that holds the number of units of a group."""
WEIGHTS = "w"
"""The name of the column that holds their weights together, where groups are found by weight."""


class Parts:
    """What all shapes of statements share.

    Attributes:
        measurements: What is read for each group.
        unit: Whose privacy is protected.
        dialect: The engine's.
        by_unit: Whether a group has a line for each of its units.
    """

    def __init__(self, measured: Measured, rows: Rows, dialect: Dialect, *, by_unit: bool = False) -> None:
        self.measurements, self.unit, self.dialect = measured.measurements, measured.unit, dialect
        self.by_unit = by_unit
        columns = rows.columns
        # Where it is worked out for each row, that is after conditions have left out most of them.
        self._window = unit_in_window(measured.rows, rows.tables, dialect)
        self._paid = in_paid_windows(measured.rows, rows.tables, dialect)
        scan = measured.rows if self._window is not None else None
        self._source = (
            timed_table(rows.tables[scan.table], rows.tables, dialect)
            if isinstance(scan, Scan)
            else lower_source(measured.rows, rows.tables, dialect)
        )
        self._predicate = None if measured.predicate is None else typed(measured.predicate, columns, dialect)
        self._keys = keys_of(measured, columns, dialect)
        self._measured = measured
        self._cell = self._cell_of(measured, columns, dialect)
        self._arguments: dict[Expression, Typed] = {}
        for measurement in measured.measurements:
            if (
                measurement.kind == "cells"
                or measurement.argument is None
                or measurement.argument in self._arguments
            ):
                continue
            argument = typed(measurement.argument, columns, dialect)
            self._arguments[measurement.argument] = (
                canonical(argument, dialect) if measurement.kind == "values" else argument.number()
            )
        self._positions = {argument: place for place, argument in enumerate(self._arguments)}

    def argument(self, measurement: Measurement) -> Typed:
        """The column that holds a measurement's argument, with the argument's type."""
        assert measurement.argument is not None
        position = self._positions[measurement.argument]
        return Typed(column(f"v{position}"), self._arguments[measurement.argument].kind)

    @staticmethod
    def _cell_of(measured: Measured, columns: Mapping[str, Facts], dialect: Dialect) -> exp.Expr | None:
        """The number of the cell that a row is counted in, where cells are."""
        for measurement in measured.measurements:
            if measurement.kind == "cells" and measurement.argument is not None:
                return fixed_point(
                    typed(measurement.argument, columns, dialect).number(), measurement, dialect
                )
        return None

    @property
    def is_open(self) -> bool:
        """Whether groups are found in the data: then the number of units is read too, as `s`."""
        return self._measured.is_open

    @property
    def keys(self) -> list[str]:
        """The names of the key columns; a cell is one more."""
        cell = [] if self._cell is None else [CELL]
        return [f"k{i}" for i in range(len(self._keys))] + cell

    @property
    def lines(self) -> list[str]:
        """What a line of the result is about: a group, or a unit in it."""
        return [UNIT, *self.keys] if self.by_unit else self.keys

    def rows(
        self,
        *,
        units: bool = False,
        keys: bool = True,
        arguments: bool = True,
        owned: bool = True,
        listed: bool = True,
    ) -> exp.Select:
        """The rows as columns `u`, `k0`, …, `v0`, …; with `units` only those of a unit and a public key.

        What the statement around them leaves out anyway need not be tested here: rows without a unit
        (`owned=False`) and rows outside the public keys (`listed=False`).
        """
        columns: list[exp.Expr] = []
        if units:
            columns.append(named(self._unit(), "u"))
        if keys:
            columns += [
                named(copied(key.sql), name) for key, name in zip(self._keys, self.keys, strict=False)
            ]
            columns += [] if self._cell is None else [named(copied(self._cell), CELL)]
        if arguments:
            columns += [
                named(copied(argument.sql), f"v{i}") for i, argument in enumerate(self._arguments.values())
            ]
        if self._shows_place:
            columns.append(named(column(PLACE_COLUMN), "i"))
        select = exp.Select().from_(copied(self._source)).select(*columns, copy=False)
        if self._paid is not None:
            select = select.where(copied(self._paid), copy=False)
        if self._predicate is not None:
            select = select.where(copied(self._predicate.sql), copy=False)
        if self._cell is not None:
            select = select.where(exp.Is(this=copied(self._cell), expression=exp.Null()).not_(), copy=False)
        for rank, most in self._measured.bounding.ranks(self.unit).items():
            select = select.where(exp.LTE(this=column(rank), expression=number(most)), copy=False)
        if self.is_open:
            select = self._among_public(select)
        last: list[exp.Expr] = []
        if units and owned:
            last.append(exp.Is(this=self._unit(), expression=exp.Null()).not_())
        if units and (listed or self._window is not None) and self._keys and not self.is_open:
            last.append(self.member([key.copy() for key in self._keys]))
        for condition in last if self._window is None else reversed(last):  # the cheaper one first
            select = select.where(condition, copy=False)
        return select

    def _among_public(self, select: exp.Select) -> exp.Select:
        """The rows whose public keys have listed values, where others are found in the data."""
        pairs = zip(self._measured.keys, self._keys, strict=True)
        public = [(key, typed_key.copy()) for key, typed_key in pairs if key.values is not None]
        if self._measured.together is not None:
            keys, columns = zip(*public, strict=True)
            return select.where(among(columns, keys, self._measured.together, self.dialect), copy=False)
        for key, typed_key in public:
            select = select.where(among([typed_key], [key], None, self.dialect), copy=False)
        return select

    def present(self, measurement: Measurement) -> exp.Expr:
        """Whether a row of the source has a measurement's argument."""
        assert measurement.argument is not None
        return is_present(self._arguments[measurement.argument], self.dialect)

    def member(self, columns: Sequence[Typed]) -> exp.Expr:
        """Whether a row's keys are among the public combinations."""
        measured = self._measured
        groups = measured.together if measured.levels else measured.combinations
        return among(columns, measured.keys, groups, self.dialect)

    def plain(self, measurement: Measurement) -> exp.Expr:
        """A measurement of rows of weight one."""
        match measurement.kind:
            case "rows" | "cells":
                return count()
            case "units":
                return self.units()
            case "values":
                return exp.Count(this=exp.Distinct(expressions=[self.argument(measurement).sql]))
            case "present":
                present = is_present(self.argument(measurement), self.dialect)
                return exp.Count(this=exp.Case(ifs=[exp.If(this=present, true=number(1))]))
            case "sum":
                return self.total(fixed_point(self.argument(measurement), measurement, self.dialect))
            case unknown:
                assert_never(unknown)

    def total(self, value: exp.Expr) -> exp.Expr:
        """The exact sum of integers; 0 over no rows."""
        return total(value, self.dialect)

    def share(self, most: int, size: exp.Expr) -> exp.Expr:
        """The whole weight of `most` rows or groups, divided among `size` of them and rounded down."""
        return share(most, size, self.dialect)

    def units(self) -> exp.Expr:
        """The number of units among rows of weight one: each has one row, or one of place 1 in each group."""
        if not self._shows_place:
            return count()
        first = exp.EQ(this=column("i"), expression=number(1))
        return exp.Count(this=exp.Case(ifs=[exp.If(this=first, true=number(1))]))

    @property
    def _shows_place(self) -> bool:
        """Whether units are counted by their first rows; where all rows are such, they need not be told."""
        counts = self.is_open or any(measurement.kind == "units" for measurement in self.measurements)
        return counts and self._measured.bounding.ranks(self.unit).get(PLACE_COLUMN, 1) > 1

    def typed_keys(self) -> list[Typed]:
        """The key columns with their types."""
        return [Typed(column(name), key.kind) for name, key in zip(self.keys, self._keys, strict=False)]

    def _unit(self) -> exp.Expr:
        """The unit's id as the source has it: a declared column of that name may be cast, and merge ids."""
        return column(UNIT_COLUMN) if self._window is None else copied(self._window)
