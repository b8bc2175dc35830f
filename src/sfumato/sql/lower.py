"""From what is measured to the one statement that an engine runs, generated afresh.

The analyst's text never reaches an engine. Each shape reads every row once, or twice where a unit's weight
must be known before its rows can be summed:

```
each row is a unit       rows → groups
units, no keys           rows → one line a unit, with its weight → total
units, keys              rows ⋈ (rows → one line a unit, with its weight) → groups
… and units are counted  rows → (unit, group) pairs ⋈ (pairs → one line a unit, with its weights) → groups
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from sfumato.engines.base import UNIT_COLUMN
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions import Expression
from sfumato.plan.nodes import Measured, Measurement
from sfumato.plan.relations import Readable, Rows, rows_of
from sfumato.plan.sensitivity import WEIGHT
from sfumato.schema import PrivacyUnit, PrivateTable
from sfumato.sql.fixed_point import fixed_point, is_present, weighted
from sfumato.sql.members import among
from sfumato.sql.sources import lower_source
from sfumato.sql.typed import Typed, typed

__all__ = ["lower"]


def lower(measured: Measured, tables: Readable | Mapping[str, Any], dialect: str = "duckdb") -> exp.Select:
    """One SELECT with the columns `k0`, … and `m0`, …: exact integers, one row for each group that exists.

    Groups without rows are absent, except that a question without keys always gives one row. Tables are read
    by their attached names.

    Args:
        measured: The question.
        tables: The tables by name; or the one table, or its rows.
        dialect: The engine's.

    Privacy:
        The sensitivities of `plan.sensitivity` rely on three things that hold here by construction, whatever
        the rows are: each row's contribution is clamped to the measurement's [lower, upper]; with a unit
        column, rows without a unit are dropped and the weights of one unit's rows add up to at most
        max_rows·WEIGHT, since w = (max_rows·WEIGHT) // max(n, max_rows) for n rows; and a unit counts in its
        g groups with (max_groups·WEIGHT) // max(g, max_groups) each. Rows outside the public keys are left
        out of both the groups and n. Units are told apart by the engine's `UNIT_COLUMN`, never by a cast.
        Conditions: the engine's integer sums are exact (wider than 64 bits).
    """
    if dialect != "duckdb":
        raise InvalidParameter(f"No statement can be made for the dialect {dialect[:40]!r} yet; use duckdb.")
    unit = PrivacyUnit.from_dict(dict(measured.unit))
    known = {tables.name: tables} if isinstance(tables, PrivateTable) else tables
    rows = known if isinstance(known, Rows) else rows_of(measured.rows, known)
    parts = _Parts(measured, rows, unit, dialect)
    if unit.column is None:
        return _by_rows(parts)
    if not measured.keys:
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
        self._arguments: dict[Expression, Typed] = {}
        for each in measured.measurements:
            if each.argument is not None and each.argument not in self._arguments:
                self._arguments[each.argument] = typed(each.argument, columns, dialect).number()

    def argument(self, measurement: Measurement) -> Typed:
        """The column that holds a measurement's argument, with the argument's type."""
        assert measurement.argument is not None
        position = list(self._arguments).index(measurement.argument)
        return Typed(_column(f"v{position}"), self._arguments[measurement.argument].kind)

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return [f"k{i}" for i in range(len(self._keys))]

    def rows(self, *, units: bool = False, keys: bool = True, arguments: bool = True) -> exp.Select:
        """The rows as columns `u`, `k0`, …, `v0`, …; with `units` only those of a unit and a public key."""
        columns: list[exp.Expr] = []
        if units:
            columns.append(_as(self._unit(), "u"))
        if keys:
            columns += [_as(key.sql.copy(), name) for key, name in zip(self._keys, self.keys, strict=True)]
        if arguments:
            columns += [_as(each.sql.copy(), f"v{i}") for i, each in enumerate(self._arguments.values())]
        select = exp.Select().from_(self._source.copy()).select(*columns, copy=False)
        if self._predicate is not None:
            select = select.where(self._predicate.sql.copy(), copy=False)
        if units:
            select = select.where(exp.Is(this=self._unit(), expression=exp.Null()).not_(), copy=False)
            if self._keys:
                select = select.where(self.member([key.copy() for key in self._keys]), copy=False)
        return select

    def member(self, columns: Sequence[Typed]) -> exp.Expr:
        """Whether a row's keys are among the public combinations."""
        return among(columns, self._measured.keys, self._measured.combinations)

    def typed_keys(self) -> list[Typed]:
        """The key columns with their types."""
        return [Typed(_column(name), key.kind) for name, key in zip(self.keys, self._keys, strict=True)]

    def _unit(self) -> exp.Column:
        """The unit's id as the source has it: a declared column of that name may be cast, and merge ids."""
        return _column(UNIT_COLUMN)


def _by_rows(parts: _Parts) -> exp.Select:
    """Each row is a unit and has weight one."""
    measures = [_as(_plain(each, parts), f"m{i}") for i, each in enumerate(parts.measurements)]
    rows = parts.rows()
    if not rows.expressions:
        return rows.select(*measures, copy=False)
    select = _grouped(parts.keys, measures).from_(rows.subquery(_name("r"), copy=False), copy=False)
    if parts.keys:
        # A filter on the keys alone would be pushed into the scan, which doubles the cost of a plain count;
        # one that also reads an aggregate stays above the grouping, where there are few rows left.
        found = exp.GT(this=_count(), expression=exp.Literal.number(0))
        kept = exp.Case(ifs=[exp.If(this=found, true=parts.member(parts.typed_keys()))])
        select = select.having(kept, copy=False)
    return select


def _plain(measurement: Measurement, parts: _Parts) -> exp.Expr:
    if measurement.kind == "rows":
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
    if measurement.kind == "rows":
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
