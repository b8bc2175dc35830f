"""From what is measured to the one statement that an engine runs, generated afresh.

The analyst's text never reaches an engine. Each shape reads every row once, or twice where a unit's weight
must be known before its rows can be summed:

```
each row is a unit       rows → groups
units, no keys           rows → one line a unit, with its weight → total
units, keys              rows ⋈ (rows → one line a unit, with its weight) → groups
… and units are counted  rows → (unit, group) pairs ⋈ (pairs → one line a unit, with its weights) → groups
a choice of groups       rows → (unit, group) pairs, ranked by a hash within their unit → groups
distinct values          rows → (unit, group, value) triples, ranked likewise → groups
a prepared table         rows of low rank → groups
… for its own grouping   rows of low rank in a group of low rank → groups
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from sfumato.engines.base import PLACE_COLUMN, UNIT_COLUMN
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import Expression
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.relations import Readable, Rows, rows_of
from sfumato.plan.questions.sensitivity import WEIGHT, rows_in_group
from sfumato.schema import PrivacyUnit, PrivateTable
from sfumato.sql.write.choice import UNITS, by_choice, by_values, canonical
from sfumato.sql.write.fixed_point import fixed_point, is_present, weighted
from sfumato.sql.write.members import among
from sfumato.sql.write.pieces import column, count, grouped, named, number, or_zero, quoted
from sfumato.sql.write.pieces import share as _share
from sfumato.sql.write.ranks import kept, keys_of
from sfumato.sql.write.sources import lower_source
from sfumato.sql.write.typed import Typed, typed

__all__ = ["CELL", "UNITS", "lower"]

CELL = "cell"
"""The name of the column that holds the number of a cell."""


def lower(
    measured: Measured, tables: Readable | Mapping[str, Any], dialect: str = "duckdb", *, salt: int = 0
) -> exp.Select:
    """One SELECT with the columns `k0`, … and `m0`, …: exact integers, one row for each group that exists.

    Groups without rows are absent, except that a question without keys always gives one row. Tables are read
    by their attached names.

    Args:
        measured: The question.
        tables: The tables by name; or the one table, or its rows.
        dialect: The engine's.
        salt: The key of the hash that chooses groups, of 63 bits.

    Privacy:
        The sensitivities of `plan.questions.sensitivity` rely on three things that hold here by
        construction, whatever the rows are: each row's contribution is clamped to the measurement's [lower,
        upper]; with a unit column, rows without a unit are dropped and the weights of one unit's rows add up
        to at most max_rows·WEIGHT, since w = (max_rows·WEIGHT) // max(n, max_rows) for n rows; and a unit
        counts in its g groups with (max_groups·WEIGHT) // max(g, max_groups) each. Rows outside the public
        keys are left out of both the groups and n. Units are told apart by the engine's `UNIT_COLUMN`, never
        by a cast. Where groups are chosen, a pair of unit and group has a rank among its unit's pairs that
        follows from the pairs themselves: a hash of unit, group and salt, ties broken by the group. Nothing
        of another unit, of row order or of arrival enters, and at most max_groups pairs of a unit are kept.
        Of a prepared table rows of ranks up to max_rows are read, or those of groups of ranks up to
        max_groups with places up to `rows_in_group` there: what the ranks are is for `engines.prepare`, and
        what they leave of a unit is enforced by `sql.write.ranks.guard`.
        Conditions: the engine's integer sums are exact (wider than 64 bits).
    """
    if dialect != "duckdb":
        raise InvalidParameter(f"No statement can be made for the dialect {dialect[:40]!r} yet; use duckdb.")
    unit = PrivacyUnit.from_dict(dict(measured.unit))
    known = {tables.name: tables} if isinstance(tables, PrivateTable) else tables
    rows = known if isinstance(known, Rows) else rows_of(measured.rows, known)
    parts = _Parts(measured, rows, unit, dialect)
    if any(each.kind == "values" for each in measured.measurements):
        return by_values(parts, salt)
    if measured.bounding == "choose" and unit.column is not None:
        return by_choice(parts, salt)
    if unit.column is None or measured.bounding in ("prepared", "grouped"):
        return _by_rows(parts)
    if not parts.keys:
        return _by_units(parts)
    if any(each.kind == "units" for each in measured.measurements):
        return _by_pairs(parts)
    return _by_weighted_rows(parts)


class _Parts:
    """The pieces that all shapes are put together from."""

    def __init__(self, measured: Measured, rows: Rows, unit: PrivacyUnit, dialect: str) -> None:
        self.measurements, self.unit = measured.measurements, unit
        columns = rows.columns
        self._source = lower_source(measured.rows, rows.tables, dialect)
        self._predicate = None if measured.predicate is None else typed(measured.predicate, columns, dialect)
        self._keys = keys_of(measured, columns, dialect)
        self._measured = measured
        self._cell = self._cell_of(measured, columns, dialect)
        self._arguments: dict[Expression, Typed] = {}
        for each in measured.measurements:
            if each.kind == "cells" or each.argument is None or each.argument in self._arguments:
                continue
            argument = typed(each.argument, columns, dialect)
            self._arguments[each.argument] = (
                canonical(argument) if each.kind == "values" else argument.number()
            )

    def argument(self, measurement: Measurement) -> Typed:
        """The column that holds a measurement's argument, with the argument's type."""
        assert measurement.argument is not None
        position = list(self._arguments).index(measurement.argument)
        return Typed(column(f"v{position}"), self._arguments[measurement.argument].kind)

    @staticmethod
    def _cell_of(measured: Measured, columns: Mapping[str, Facts], dialect: str) -> exp.Expr | None:
        """The number of the cell that a row is counted in, where cells are."""
        for each in measured.measurements:
            if each.kind == "cells" and each.argument is not None:
                return fixed_point(typed(each.argument, columns, dialect).number(), each)
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
            columns += [named(key.sql.copy(), name) for key, name in zip(self._keys, self.keys, strict=False)]
            columns += [] if self._cell is None else [named(self._cell.copy(), CELL)]
        if arguments:
            columns += [named(each.sql.copy(), f"v{i}") for i, each in enumerate(self._arguments.values())]
        if self._shows_place:
            columns.append(named(column(PLACE_COLUMN), "i"))
        select = exp.Select().from_(self._source.copy()).select(*columns, copy=False)
        if self._predicate is not None:
            select = select.where(self._predicate.sql.copy(), copy=False)
        if self._cell is not None:
            select = select.where(exp.Is(this=self._cell.copy(), expression=exp.Null()).not_(), copy=False)
        for rank, most in kept(self._measured, self.unit).items():
            select = select.where(exp.LTE(this=column(rank), expression=number(most)), copy=False)
        if self.is_open:
            select = self._among_public(select)
        if units and owned:
            select = select.where(exp.Is(this=self._unit(), expression=exp.Null()).not_(), copy=False)
        if units and listed and self._keys and not self.is_open:
            select = select.where(self.member([key.copy() for key in self._keys]), copy=False)
        return select

    def _among_public(self, select: exp.Select) -> exp.Select:
        """The rows whose public keys have listed values, where others are found in the data."""
        pairs = zip(self._measured.keys, self._keys, strict=True)
        public = [(key, each.copy()) for key, each in pairs if key.values is not None]
        if self._measured.together is not None:
            keys, columns = zip(*public, strict=True)
            return select.where(among(columns, keys, self._measured.together), copy=False)
        for key, each in public:
            select = select.where(among([each], [key], None), copy=False)
        return select

    def present(self, measurement: Measurement) -> exp.Expr:
        """Whether a row of the source has a measurement's argument."""
        assert measurement.argument is not None
        return is_present(self._arguments[measurement.argument])

    def member(self, columns: Sequence[Typed]) -> exp.Expr:
        """Whether a row's keys are among the public combinations."""
        measured = self._measured
        return among(columns, measured.keys, measured.together if measured.levels else measured.combinations)

    def plain(self, measurement: Measurement) -> exp.Expr:
        """A measurement of rows of weight one."""
        if measurement.kind in ("rows", "cells"):
            return count()
        if measurement.kind == "units":
            return self.units()
        argument = self.argument(measurement)
        if measurement.kind == "present":
            return exp.Count(this=exp.Case(ifs=[exp.If(this=is_present(argument), true=number(1))]))
        return or_zero(exp.Sum(this=fixed_point(argument, measurement)))

    def units(self) -> exp.Expr:
        """The number of units among rows of weight one: each has one row, or one of place 1 in each group."""
        if not self._shows_place:
            return count()
        first = exp.EQ(this=column("i"), expression=number(1))
        return exp.Count(this=exp.Case(ifs=[exp.If(this=first, true=number(1))]))

    @property
    def _shows_place(self) -> bool:
        """Whether units are counted by their first rows; where all rows are such, they need not be told."""
        counts = self.is_open or any(each.kind == "units" for each in self.measurements)
        return self._measured.bounding == "grouped" and counts and rows_in_group(self.unit) > 1

    def typed_keys(self) -> list[Typed]:
        """The key columns with their types."""
        return [Typed(column(name), key.kind) for name, key in zip(self.keys, self._keys, strict=False)]

    def _unit(self) -> exp.Column:
        """The unit's id as the source has it: a declared column of that name may be cast, and merge ids."""
        return column(UNIT_COLUMN)


def _by_rows(parts: _Parts) -> exp.Select:
    """Each row is a unit, or has a rank that admits it, and has weight one."""
    measures = [named(parts.plain(each), f"m{i}") for i, each in enumerate(parts.measurements)]
    measures += [named(parts.units(), UNITS)] if parts.is_open else []
    rows = parts.rows()
    if not rows.expressions:
        return rows.select(*measures, copy=False)
    select = grouped(parts.keys, measures).from_(rows.subquery(quoted("r"), copy=False), copy=False)
    if parts.typed_keys() and not parts.is_open:
        # A filter on the keys alone would be pushed into the scan, which doubles the cost of a plain count;
        # one that also reads an aggregate stays above the grouping, where there are few rows left.
        found = exp.GT(this=count(), expression=exp.Literal.number(0))
        kept = exp.Case(ifs=[exp.If(this=found, true=parts.member(parts.typed_keys()))])
        select = select.having(kept, copy=False)
    return select


def _by_units(parts: _Parts) -> exp.Select:
    """One line a unit, which knows its own weight: nothing to join."""
    lines: list[exp.Expr] = []
    totals: list[exp.Expr] = []
    weight, weigh = column("w"), False
    for i, each in enumerate(parts.measurements):
        if each.kind == "units":
            totals.append(named(count(), f"m{i}"))
            continue
        weigh = True
        lines.append(named(parts.plain(each), f"s{i}"))
        product = exp.Mul(this=column(f"s{i}"), expression=weight.copy())
        totals.append(named(or_zero(exp.Sum(this=product)), f"m{i}"))
    if weigh:
        lines.append(named(_share(parts.unit.max_rows, count()), "w"))
    rows = parts.rows(units=True).subquery(quoted("r"), copy=False)
    units = exp.Select().select(*lines or [column("u")], copy=False).from_(rows, copy=False)
    units = units.group_by(column("u"), copy=False)
    return exp.Select().select(*totals, copy=False).from_(units.subquery(quoted("t"), copy=False), copy=False)


def _by_weighted_rows(parts: _Parts) -> exp.Select:
    """Every row finds the weight of its unit.

    A NULL joins nothing, so that rows without a unit are not tested for it; and rows outside the public keys,
    which are never counted in n, fall out with their groups, where there are few lines left.
    """
    measures = [named(_weighted_row(each, parts), f"m{i}") for i, each in enumerate(parts.measurements)]
    counted = parts.rows(units=True, keys=False, arguments=False, owned=False)
    sizes = counted.subquery(quoted("s"), copy=False)
    weight = named(_share(parts.unit.max_rows, count()), "w")
    weights = exp.Select().select(column("u"), weight, copy=False).from_(sizes, copy=False)
    weights = weights.group_by(column("u"), copy=False)
    rows = parts.rows(units=True, owned=False, listed=False).subquery(quoted("r"), copy=False)
    select = grouped(parts.keys, measures).from_(rows, copy=False)
    select = _join(select, weights.subquery(quoted("t"), copy=False))
    if parts.typed_keys() and not parts.is_open:
        select = select.having(parts.member(parts.typed_keys()), copy=False)
    return select


def _weighted_row(measurement: Measurement, parts: _Parts) -> exp.Expr:
    weight = column("w")
    if measurement.kind in ("rows", "cells"):
        return exp.Sum(this=weight)
    argument = parts.argument(measurement)
    if measurement.kind == "present":
        return or_zero(exp.Sum(this=exp.Case(ifs=[exp.If(this=is_present(argument), true=weight)])))
    return or_zero(exp.Sum(this=weighted(fixed_point(argument, measurement), weight, measurement, WEIGHT)))


def _by_pairs(parts: _Parts) -> exp.Select:
    """One line for each unit in each group; the unit's lines then give the weights for all of them."""
    lines: list[exp.Expr] = [column("u"), *map(column, parts.keys)]
    shares: list[exp.Expr] = [column("u")]
    measures: list[exp.Expr] = []
    weigh = False
    for i, each in enumerate(parts.measurements):
        if each.kind == "units":
            shares.append(named(_share(parts.unit.max_groups, count()), "g"))
            measures.append(named(exp.Sum(this=column("g")), f"m{i}"))
            continue
        weigh = True
        lines.append(named(parts.plain(each), f"s{i}"))
        product = exp.Mul(this=column(f"s{i}"), expression=column("w"))
        measures.append(named(exp.Sum(this=product), f"m{i}"))
    if weigh:
        lines.append(named(count(), "n"))
        total = exp.cast(exp.Sum(this=column("n")), "BIGINT")
        shares.append(named(_share(parts.unit.max_rows, total), "w"))
    pairs = exp.Select().select(*lines, copy=False)
    pairs = pairs.from_(parts.rows(units=True).subquery(quoted("r"), copy=False), copy=False)
    pairs = pairs.group_by(column("u"), *map(column, parts.keys), copy=False)
    units = exp.Select().select(*shares, copy=False).from_(exp.Table(this=quoted("p")), copy=False)
    units = units.group_by(column("u"), copy=False)
    select = grouped(parts.keys, measures).from_(exp.Table(this=quoted("p")), copy=False)
    return _join(select, units.subquery(quoted("t"), copy=False)).with_(
        quoted("p"), as_=pairs, materialized=True, copy=False
    )


def _join(select: exp.Select, other: exp.Expr) -> exp.Select:
    return select.join(other, using=[column("u")], copy=False)
