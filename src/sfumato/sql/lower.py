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
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from sfumato.engines.base import RANK_COLUMN, UNIT_COLUMN
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions import Expression
from sfumato.plan.facts import Facts
from sfumato.plan.nodes import Measured, Measurement
from sfumato.plan.relations import Readable, Rows, rows_of
from sfumato.plan.sensitivity import WEIGHT, rows_in_group
from sfumato.schema import PrivacyUnit, PrivateTable
from sfumato.sql.fixed_point import clamped, fixed_point, is_present, weighted
from sfumato.sql.members import among
from sfumato.sql.sources import lower_source
from sfumato.sql.typed import Typed, typed

__all__ = ["CELL", "UNITS", "lower"]

CELL, UNITS = "cell", "s"
"""The names of the columns that hold the number of a cell, and the number of units of a group."""
_WIDEST = 2**53


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
        The sensitivities of `plan.sensitivity` rely on three things that hold here by construction, whatever
        the rows are: each row's contribution is clamped to the measurement's [lower, upper]; with a unit
        column, rows without a unit are dropped and the weights of one unit's rows add up to at most
        max_rows·WEIGHT, since w = (max_rows·WEIGHT) // max(n, max_rows) for n rows; and a unit counts in its
        g groups with (max_groups·WEIGHT) // max(g, max_groups) each. Rows outside the public keys are left
        out of both the groups and n. Units are told apart by the engine's `UNIT_COLUMN`, never by a cast.
        Where groups are chosen, a pair of unit and group has a rank among its unit's pairs that follows from
        the pairs themselves: a hash of unit, group and salt, ties broken by the group. Nothing of another
        unit, of row order or of arrival enters, and at most max_groups pairs of a unit are kept.
        Conditions: the engine's integer sums are exact (wider than 64 bits).
    """
    if dialect != "duckdb":
        raise InvalidParameter(f"No statement can be made for the dialect {dialect[:40]!r} yet; use duckdb.")
    unit = PrivacyUnit.from_dict(dict(measured.unit))
    known = {tables.name: tables} if isinstance(tables, PrivateTable) else tables
    rows = known if isinstance(known, Rows) else rows_of(measured.rows, known)
    parts = _Parts(measured, rows, unit, dialect)
    if any(each.kind == "values" for each in measured.measurements):
        return _by_values(parts, salt)
    if measured.bounding == "choose" and unit.column is not None:
        return _by_choice(parts, salt)
    if unit.column is None or measured.bounding == "prepared":
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
        self._keys = [typed(key.expression, columns, dialect) for key in measured.keys]
        self._measured = measured
        self._cell = self._cell_of(measured, columns, dialect)
        if measured.is_open:
            self._keys = [_canonical(each) for each in self._keys]
        self._arguments: dict[Expression, Typed] = {}
        for each in measured.measurements:
            if each.kind == "cells" or each.argument is None or each.argument in self._arguments:
                continue
            argument = typed(each.argument, columns, dialect)
            self._arguments[each.argument] = (
                _canonical(argument) if each.kind == "values" else argument.number()
            )

    def argument(self, measurement: Measurement) -> Typed:
        """The column that holds a measurement's argument, with the argument's type."""
        assert measurement.argument is not None
        position = list(self._arguments).index(measurement.argument)
        return Typed(_column(f"v{position}"), self._arguments[measurement.argument].kind)

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

    def rows(self, *, units: bool = False, keys: bool = True, arguments: bool = True) -> exp.Select:
        """The rows as columns `u`, `k0`, …, `v0`, …; with `units` only those of a unit and a public key."""
        columns: list[exp.Expr] = []
        if units:
            columns.append(_as(self._unit(), "u"))
        if keys:
            columns += [_as(key.sql.copy(), name) for key, name in zip(self._keys, self.keys, strict=False)]
            columns += [] if self._cell is None else [_as(self._cell.copy(), CELL)]
        if arguments:
            columns += [_as(each.sql.copy(), f"v{i}") for i, each in enumerate(self._arguments.values())]
        select = exp.Select().from_(self._source.copy()).select(*columns, copy=False)
        if self._predicate is not None:
            select = select.where(self._predicate.sql.copy(), copy=False)
        if self._cell is not None:
            select = select.where(exp.Is(this=self._cell.copy(), expression=exp.Null()).not_(), copy=False)
        if self._measured.bounding == "prepared":
            most = _number(self.unit.max_rows)
            select = select.where(exp.LTE(this=_column(RANK_COLUMN), expression=most), copy=False)
        if units:
            select = select.where(exp.Is(this=self._unit(), expression=exp.Null()).not_(), copy=False)
            if self._keys and not self.is_open:
                select = select.where(self.member([key.copy() for key in self._keys]), copy=False)
        return select

    def present(self, measurement: Measurement) -> exp.Expr:
        """Whether a row of the source has a measurement's argument."""
        assert measurement.argument is not None
        return is_present(self._arguments[measurement.argument])

    def member(self, columns: Sequence[Typed]) -> exp.Expr:
        """Whether a row's keys are among the public combinations."""
        return among(columns, self._measured.keys, None if self._measured.levels else self._measured.combinations)

    def typed_keys(self) -> list[Typed]:
        """The key columns with their types."""
        return [Typed(_column(name), key.kind) for name, key in zip(self.keys, self._keys, strict=False)]

    def _unit(self) -> exp.Column:
        """The unit's id as the source has it: a declared column of that name may be cast, and merge ids."""
        return _column(UNIT_COLUMN)


def _by_rows(parts: _Parts) -> exp.Select:
    """Each row is a unit and has weight one."""
    measures = [_as(_plain(each, parts), f"m{i}") for i, each in enumerate(parts.measurements)]
    measures += [_as(_count(), UNITS)] if parts.is_open else []
    rows = parts.rows(units=parts.unit.column is not None)
    if not rows.expressions:
        return rows.select(*measures, copy=False)
    select = _grouped(parts.keys, measures).from_(rows.subquery(_name("r"), copy=False), copy=False)
    if parts.typed_keys() and not parts.is_open:
        # A filter on the keys alone would be pushed into the scan, which doubles the cost of a plain count;
        # one that also reads an aggregate stays above the grouping, where there are few rows left.
        found = exp.GT(this=_count(), expression=exp.Literal.number(0))
        kept = exp.Case(ifs=[exp.If(this=found, true=parts.member(parts.typed_keys()))])
        select = select.having(kept, copy=False)
    return select


def _plain(measurement: Measurement, parts: _Parts) -> exp.Expr:
    if measurement.kind in ("rows", "cells"):
        return _count()
    argument = parts.argument(measurement)
    if measurement.kind == "present":
        return exp.Count(this=exp.Case(ifs=[exp.If(this=is_present(argument), true=_number(1))]))
    return _or_zero(exp.Sum(this=fixed_point(argument, measurement)))


def _by_units(parts: _Parts) -> exp.Select:
    """One line a unit, which knows its own weight: nothing to join."""
    lines: list[exp.Expr] = []
    totals: list[exp.Expr] = []
    weight, weigh = _column("w"), False
    for i, each in enumerate(parts.measurements):
        if each.kind == "units":
            totals.append(_as(_count(), f"m{i}"))
            continue
        weigh = True
        lines.append(_as(_plain(each, parts), f"s{i}"))
        product = exp.Mul(this=_column(f"s{i}"), expression=weight.copy())
        totals.append(_as(_or_zero(exp.Sum(this=product)), f"m{i}"))
    if weigh:
        lines.append(_as(_share(parts.unit.max_rows, _count()), "w"))
    rows = parts.rows(units=True).subquery(_name("r"), copy=False)
    units = exp.Select().select(*lines or [_column("u")], copy=False).from_(rows, copy=False)
    units = units.group_by(_column("u"), copy=False)
    return exp.Select().select(*totals, copy=False).from_(units.subquery(_name("t"), copy=False), copy=False)


def _by_weighted_rows(parts: _Parts) -> exp.Select:
    """Every row finds the weight of its unit."""
    measures = [_as(_weighted_row(each, parts), f"m{i}") for i, each in enumerate(parts.measurements)]
    sizes = parts.rows(units=True, keys=False, arguments=False).subquery(_name("s"), copy=False)
    weight = _as(_share(parts.unit.max_rows, _count()), "w")
    weights = exp.Select().select(_column("u"), weight, copy=False).from_(sizes, copy=False)
    weights = weights.group_by(_column("u"), copy=False)
    rows = parts.rows(units=True).subquery(_name("r"), copy=False)
    select = _grouped(parts.keys, measures).from_(rows, copy=False)
    return _join(select, weights.subquery(_name("t"), copy=False))


def _weighted_row(measurement: Measurement, parts: _Parts) -> exp.Expr:
    weight = _column("w")
    if measurement.kind in ("rows", "cells"):
        return exp.Sum(this=weight)
    argument = parts.argument(measurement)
    if measurement.kind == "present":
        return _or_zero(exp.Sum(this=exp.Case(ifs=[exp.If(this=is_present(argument), true=weight)])))
    return _or_zero(exp.Sum(this=weighted(fixed_point(argument, measurement), weight, measurement, WEIGHT)))


def _by_pairs(parts: _Parts) -> exp.Select:
    """One line for each unit in each group; the unit's lines then give the weights for all of them."""
    lines: list[exp.Expr] = [_column("u"), *map(_column, parts.keys)]
    shares: list[exp.Expr] = [_column("u")]
    measures: list[exp.Expr] = []
    weigh = False
    for i, each in enumerate(parts.measurements):
        if each.kind == "units":
            shares.append(_as(_share(parts.unit.max_groups, _count()), "g"))
            measures.append(_as(exp.Sum(this=_column("g")), f"m{i}"))
            continue
        weigh = True
        lines.append(_as(_plain(each, parts), f"s{i}"))
        product = exp.Mul(this=_column(f"s{i}"), expression=_column("w"))
        measures.append(_as(exp.Sum(this=product), f"m{i}"))
    if weigh:
        lines.append(_as(_count(), "n"))
        total = exp.cast(exp.Sum(this=_column("n")), "BIGINT")
        shares.append(_as(_share(parts.unit.max_rows, total), "w"))
    pairs = exp.Select().select(*lines, copy=False)
    pairs = pairs.from_(parts.rows(units=True).subquery(_name("r"), copy=False), copy=False)
    pairs = pairs.group_by(_column("u"), *map(_column, parts.keys), copy=False)
    units = exp.Select().select(*shares, copy=False).from_(exp.Table(this=_name("p")), copy=False)
    units = units.group_by(_column("u"), copy=False)
    select = _grouped(parts.keys, measures).from_(exp.Table(this=_name("p")), copy=False)
    return _join(select, units.subquery(_name("t"), copy=False)).with_(
        _name("p"), as_=pairs, materialized=True, copy=False
    )


def _by_choice(parts: _Parts, salt: int) -> exp.Select:
    """One line for each unit in each group; of a unit's lines those of the least hashes count."""
    lines: list[exp.Expr] = [_column("u"), *map(_column, parts.keys)]
    shown: list[exp.Expr] = [*map(_column, parts.keys)]
    measures: list[exp.Expr] = []
    most = rows_in_group(parts.unit, keyed=bool(parts.keys))
    weight = _share(most, _column("n"))
    for i, each in enumerate(parts.measurements):
        name = f"s{i}"
        if each.kind == "units":
            measures.append(_as(_count(), f"m{i}"))
            continue
        if each.per == "average":
            lines.append(_as(_plain(replace(each, kind="present"), parts), f"p{i}"))
        if each.per == "row" or each.kind != "sum":
            lines.append(_as(_plain(each, parts), name))
        else:
            lines.append(_as(_plain(replace(each, lower=-_WIDEST, upper=_WIDEST), parts), name))
        shown.append(_as(_contribution(each, i, weight), name))
        measures.append(_as(_or_zero(exp.Sum(this=_column(name))), f"m{i}"))
    lines.append(_as(_count(), "n"))
    measures += [_as(_count(), UNITS)] if parts.is_open else []
    pairs = exp.Select().select(*lines, copy=False)
    pairs = pairs.from_(parts.rows(units=True).subquery(_name("r"), copy=False), copy=False)
    pairs = pairs.group_by(_column("u"), *map(_column, parts.keys), copy=False)
    chosen = exp.Select().select(*shown, copy=False).from_(pairs.subquery(_name("p"), copy=False), copy=False)
    if not parts.keys:
        return (
            exp.Select()
            .select(*measures, copy=False)
            .from_(chosen.subquery(_name("c"), copy=False), copy=False)
        )
    chosen = chosen.select(_as(_rank(parts.keys, salt), "r"), copy=False)
    select = _grouped(parts.keys, measures).from_(chosen.subquery(_name("c"), copy=False), copy=False)
    return select.where(exp.LTE(this=_column("r"), expression=_number(parts.unit.max_groups)), copy=False)


def _contribution(measurement: Measurement, place: int, weight: exp.Expr) -> exp.Expr:
    """What a unit adds to a group: its rows at their weight, or its clamped total or average."""
    total: exp.Expr = _column(f"s{place}")
    if measurement.per == "row":
        return exp.Mul(this=total, expression=exp.Paren(this=weight.copy()))
    if measurement.per == "average" and measurement.kind == "sum":
        some = exp.GT(this=_column(f"p{place}"), expression=_number(0))
        total = exp.Case(
            ifs=[exp.If(this=some, true=exp.IntDiv(this=total, expression=_column(f"p{place}")))]
        )
    return clamped(total, measurement.lower, measurement.upper)


def _by_values(parts: _Parts, salt: int) -> exp.Select:
    """A value counts in a group if somebody vouches for it, and a unit vouches for few."""
    (measurement,) = parts.measurements
    value = parts.argument(measurement)
    counted = _as(exp.Count(this=exp.Distinct(expressions=[value.sql.copy()])), "m0")
    rows = parts.rows(units=parts.unit.column is not None).where(parts.present(measurement), copy=False)
    if parts.unit.column is None:
        select = _grouped(parts.keys, [counted]).from_(rows.subquery(_name("r"), copy=False), copy=False)
        return select.where(parts.member(parts.typed_keys()), copy=False) if parts.keys else select
    triple = [*parts.keys, value.sql.name]
    triples = exp.Select().select(_column("u"), *map(_column, triple), copy=False)
    triples = triples.from_(rows.subquery(_name("r"), copy=False), copy=False)
    triples = triples.group_by(_column("u"), *map(_column, triple), copy=False)
    ranked = exp.Select().select(*map(_column, triple), _as(_rank(triple, salt), "r"), copy=False)
    ranked = ranked.from_(triples.subquery(_name("p"), copy=False), copy=False)
    select = _grouped(parts.keys, [counted]).from_(ranked.subquery(_name("c"), copy=False), copy=False)
    return select.where(exp.LTE(this=_column("r"), expression=_number(parts.unit.max_rows)), copy=False)


def _rank(columns: Sequence[str], salt: int) -> exp.Expr:
    """The place of a line among those of its unit, by a hash of what it is about.

    DuckDB's hash of several arguments is nearly linear: it is hashed once more, so that all choices are met.
    """
    parts = [exp.cast(_number(salt), "BIGINT"), _column("u"), *map(_column, columns)]
    once = exp.Anonymous(this="hash", expressions=parts)
    twice = exp.Anonymous(this="hash", expressions=[once])
    order = exp.Order(expressions=[exp.Ordered(this=each) for each in (twice, *map(_column, columns))])
    return exp.Window(this=exp.RowNumber(), partition_by=[_column("u")], order=order)


def _canonical(value: Typed) -> Typed:
    """One form for values that are the same: NaN is NULL, a zero has no sign, and a date has four digits."""
    if value.kind == "date":  # no calendar but the engine's has others, and a read must not fail on a row
        ends = [exp.cast(exp.Literal.string(day), "DATE") for day in ("0001-01-01", "9999-12-31")]
        known = exp.Between(this=value.sql.copy(), low=ends[0], high=ends[1])
        return Typed(exp.Case(ifs=[exp.If(this=known, true=value.sql.copy())]), "date")
    if value.kind != "float":
        return value
    number = exp.Add(this=exp.Paren(this=value.sql.copy()), expression=exp.cast(_number(0), "DOUBLE"))
    real = exp.not_(exp.IsNan(this=value.sql.copy()))
    return Typed(exp.Case(ifs=[exp.If(this=real, true=number)]), "float")


def _share(most: int, size: exp.Expr) -> exp.Expr:
    """The whole weight of `most` rows or groups, divided among `size` of them and rounded down."""
    total = exp.cast(_number(most * WEIGHT), "BIGINT")
    among = exp.Greatest(this=size, expressions=[_number(most)], ignore_nulls=True)
    return exp.IntDiv(this=total, expression=among)


def _grouped(keys: Sequence[str], measures: Iterable[exp.Expr]) -> exp.Select:
    select = exp.Select().select(*map(_column, keys), *measures, copy=False)
    return select.group_by(*map(_column, keys), copy=False) if keys else select


def _join(select: exp.Select, other: exp.Expr) -> exp.Select:
    return select.join(other, using=[_column("u")], copy=False)


def _count() -> exp.Count:
    return exp.Count(this=exp.Star(), big_int=True)


def _or_zero(total: exp.Expr) -> exp.Coalesce:
    return exp.Coalesce(this=total, expressions=[_number(0)])


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _column(name: str) -> exp.Column:
    return exp.Column(this=_name(name))


def _as(expression: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=expression, alias=_name(name))
