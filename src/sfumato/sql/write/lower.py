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
unit by unit             any of these but that groups are those of one unit: what each unit adds to each group
groups found by weight   … → (unit, group) pairs that count, with the weight of a unit in so many → groups
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.errors import InvalidParameter
from sfumato.plan.questions.bounding import Shape
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.relations import Readable, Rows, rows_of
from sfumato.plan.questions.sensitivity import WEIGHT
from sfumato.plan.questions.spread import Spread
from sfumato.schema import PrivateTable
from sfumato.sql.write.choice import by_choice, by_values, weighed
from sfumato.sql.write.fixed_point import fixed_point, is_present, weighted
from sfumato.sql.write.parts import CELL, UNIT, UNITS, WEIGHTS, Parts
from sfumato.sql.write.pieces import bigint, column, count, grouped, named, picked, quoted, subquery

__all__ = ["CELL", "UNIT", "UNITS", "WEIGHTS", "lower"]


def lower(
    measured: Measured,
    tables: Readable | Mapping[str, Any],
    dialect: Dialect,
    *,
    salt: int = 0,
    spread: Spread | None = None,
    by_unit: bool = False,
) -> exp.Select:
    """One SELECT with the columns `k0`, … and `m0`, …: exact integers, one row for each group that exists.

    Groups without rows are absent, except that a question without keys always gives one row. Tables are read
    by their attached names.

    Args:
        measured: The question.
        tables: The tables by name; or the one table, or its rows.
        dialect: The engine's.
        salt: The key of the hash that chooses groups, of 63 bits.
        spread: How units weigh in groups that are found by weight, where they count in few groups.
        by_unit: Whether a group has a line for each of its units, with the unit's id as text in `u`; what
            they have adds up to what the group has.

    Privacy:
        Each way of bounding (`plan.questions.bounding`) has the part of a statement that its proof rests on,
        and the shape that it names here has just that part. Of all shapes alike, whatever the rows are: each
        row's contribution is clamped to the measurement's [lower, upper]; with a unit column, rows without a
        unit are dropped; rows outside the public keys are left out of the groups and of what decides weights;
        units are told apart by the engine's `UNIT_COLUMN`, never by a cast; and nothing of another unit, of
        row order or of arrival decides what counts of a unit.
        Conditions: the dialect's sums are exact, and its casts, tests and order of NaN are as `Dialect` says.
    """
    known = {tables.name: tables} if isinstance(tables, PrivateTable) else tables
    rows = known if isinstance(known, Rows) else rows_of(measured.rows, known)
    parts = Parts(measured, rows, dialect, by_unit=by_unit)
    select = _shaped(parts, measured, salt, spread)
    if not by_unit:
        return select
    shown = [named(dialect.fill(dialect.shown, column(UNIT)), UNIT)]
    return picked([*shown, *(column(each.alias_or_name) for each in select.selects[1:])], select, "y")


def _shaped(parts: Parts, measured: Measured, salt: int, spread: Spread | None) -> exp.Select:
    """The statement in the shape of the way of bounding."""
    if any(measurement.kind == "values" for measurement in measured.measurements):
        return by_values(parts, salt)
    if measured.unit.column is None:
        return _by_rows(parts)
    match measured.bounding.shape:
        case Shape.WEIGHTS:
            return _by_weights(parts)
        case Shape.CHOICE:
            return by_choice(parts, salt, spread)
        case Shape.RANKS:
            return _by_rows(parts) if spread is None else _by_ranked_pairs(parts, spread)
        case unknown:
            assert_never(unknown)


def _by_rows(parts: Parts) -> exp.Select:
    """Each row is a unit, or has a rank that admits it, and has weight one."""
    measures = [named(parts.plain(measurement), f"m{i}") for i, measurement in enumerate(parts.measurements)]
    measures += [named(parts.units(), UNITS)] if parts.is_open else []
    rows = parts.rows(units=parts.by_unit)
    if not rows.expressions:
        return rows.select(*measures, copy=False)
    select = grouped(parts.lines, measures).from_(rows.subquery(quoted("r"), copy=False), copy=False)
    if parts.typed_keys() and not parts.is_open:
        # A filter on the keys alone would be pushed into the scan, which doubles the cost of a plain count;
        # one that also reads an aggregate stays above the grouping, where there are few rows left.
        any_rows = exp.GT(this=count(), expression=exp.Literal.number(0))
        kept = exp.Case(ifs=[exp.If(this=any_rows, true=parts.member(parts.typed_keys()))])
        select = select.having(kept, copy=False)
    return select


def _by_ranked_pairs(parts: Parts, spread: Spread) -> exp.Select:
    """Rows that ranks admit, as lines of one unit in one group, where groups are found by weight."""
    lines, measures = list[exp.Expr](), list[exp.Expr]()
    for i, measurement in enumerate(parts.measurements):
        lines.append(named(parts.plain(measurement), f"s{i}"))
        measures.append(named(parts.total(column(f"s{i}")), f"m{i}"))
    lines.append(named(parts.units(), "n"))
    measures += [named(parts.total(column("n")), UNITS), named(parts.total(column(WEIGHTS)), WEIGHTS)]
    rows = parts.rows(units=True).subquery(quoted("r"), copy=False)
    pairs = weighed(grouped(["u", *parts.keys], lines).from_(rows, copy=False), parts, spread)
    return grouped(parts.keys, measures).from_(pairs.subquery(quoted("c"), copy=False), copy=False)


def _by_weights(parts: Parts) -> exp.Select:
    """Rows and units count for a part of one where there are many."""
    if not parts.keys:
        return _by_units(parts)
    if any(measurement.kind == "units" for measurement in parts.measurements):
        return _by_pairs(parts)
    return _by_weighted_rows(parts)


def _by_units(parts: Parts) -> exp.Select:
    """One line a unit, which knows its own weight: nothing to join."""
    lines: list[exp.Expr] = []
    totals: list[exp.Expr] = []
    weight, weigh = column("w"), False
    for i, measurement in enumerate(parts.measurements):
        if measurement.kind == "units":
            totals.append(named(count(), f"m{i}"))
            continue
        weigh = True
        lines.append(named(parts.plain(measurement), f"s{i}"))
        product = exp.Mul(this=column(f"s{i}"), expression=weight.copy())
        totals.append(named(parts.total(product), f"m{i}"))
    if weigh:
        lines.append(named(parts.share(parts.unit.max_rows, count()), "w"))
    rows = parts.rows(units=True).subquery(quoted("r"), copy=False)
    units = exp.Select().select(*lines or [column("u")], copy=False).from_(rows, copy=False)
    units = units.group_by(column("u"), copy=False)
    return exp.Select().select(*totals, copy=False).from_(units.subquery(quoted("t"), copy=False), copy=False)


def _by_weighted_rows(parts: Parts) -> exp.Select:
    """Every row finds the weight of its unit, by a join.

    A NULL joins nothing, so that rows without a unit are not tested for it; and rows outside the public keys,
    which are never counted in n, fall out with their groups, where there are few lines left.

    On DuckDB nothing else is as quick. With 1e7 rows of 1e6 units, in CPU seconds of the plain aggregate: to
    count by unit 3.3, the join 4, all of it 9 to 10; rows that are materialised once 10.5, a window by unit
    15, lines of unit and group 16.5, lists of a unit's rows 39, which could not be spilled either. Both
    halves wait for memory: each row looks up its unit in a table that no cache holds.
    """
    if parts.dialect.windowed:
        return _by_windowed_rows(parts)
    measures = [
        named(_weighted_row(measurement, parts), f"m{i}") for i, measurement in enumerate(parts.measurements)
    ]
    counted = parts.rows(units=True, keys=False, arguments=False, owned=False)
    sizes = counted.subquery(quoted("s"), copy=False)
    weight = named(parts.share(parts.unit.max_rows, count()), "w")
    weights = exp.Select().select(column("u"), weight, copy=False).from_(sizes, copy=False)
    weights = weights.group_by(column("u"), copy=False)
    rows = parts.rows(units=True, owned=False, listed=False).subquery(quoted("r"), copy=False)
    select = grouped(parts.lines, measures).from_(rows, copy=False)
    select = _join(select, weights.subquery(quoted("t"), copy=False))
    if parts.typed_keys() and not parts.is_open:
        select = select.having(parts.member(parts.typed_keys()), copy=False)
    return select


def _by_windowed_rows(parts: Parts) -> exp.Select:
    """The same by a window over the rows of each unit, which are brought together once.

    A window counts what it is over: rows without a unit and outside the public keys are left out before. What
    a row adds is an integer by then, which takes less room on its way than a double.
    """
    weight = column("w")
    lines: list[exp.Expr] = [column("u"), *map(column, parts.keys)]
    measures: list[exp.Expr] = []
    for i, measurement in enumerate(parts.measurements):
        units: exp.Expr
        if measurement.kind == "sum":
            units = fixed_point(parts.argument(measurement), measurement, parts.dialect)
        elif measurement.kind == "present":
            present = is_present(parts.argument(measurement), parts.dialect)
            units = exp.Case(ifs=[exp.If(this=present, true=bigint(1))])
        else:
            measures.append(named(_weighted_row(measurement, parts), f"m{i}"))
            continue
        lines.append(named(units, f"q{i}"))
        product = weighted(column(f"q{i}"), weight.copy(), measurement, WEIGHT, parts.dialect)
        measures.append(named(parts.total(product), f"m{i}"))
    rows = picked(lines, parts.rows(units=True), "s")
    names = [part.alias_or_name for part in lines[1:]]
    size = exp.Window(this=count(), partition_by=[column("u")])
    kept = ["u", *names] if parts.by_unit else names
    shares = [*map(column, kept), named(parts.share(parts.unit.max_rows, size), "w")]
    return grouped(parts.lines, measures).from_(subquery(picked(shares, rows, "t"), "r"), copy=False)


def _weighted_row(measurement: Measurement, parts: Parts) -> exp.Expr:
    weight = column("w")
    match measurement.kind:
        case "rows" | "cells":
            return parts.dialect.total(weight)
        case "present":
            present = is_present(parts.argument(measurement), parts.dialect)
            return parts.total(exp.Case(ifs=[exp.If(this=present, true=weight)]))
        case "sum":
            units = fixed_point(parts.argument(measurement), measurement, parts.dialect)
            return parts.total(weighted(units, weight, measurement, WEIGHT, parts.dialect))
        case "units" | "values":
            raise InvalidParameter("Rows have weights; units and values have none of a row.")
        case unknown:
            assert_never(unknown)


def _by_pairs(parts: Parts) -> exp.Select:
    """One line for each unit in each group; the unit's lines then give the weights for all of them."""
    lines: list[exp.Expr] = [column("u"), *map(column, parts.keys)]
    shares: list[exp.Expr] = [column("u")]
    measures: list[exp.Expr] = []
    weigh = False
    for i, measurement in enumerate(parts.measurements):
        if measurement.kind == "units":
            shares.append(named(parts.share(parts.unit.max_groups, count()), "g"))
            measures.append(named(parts.dialect.total(column("g")), f"m{i}"))
            continue
        weigh = True
        lines.append(named(parts.plain(measurement), f"s{i}"))
        product = exp.Mul(this=column(f"s{i}"), expression=column("w"))
        measures.append(named(parts.dialect.total(product), f"m{i}"))
    if weigh:
        lines.append(named(count(), "n"))
        total = bigint(parts.dialect.total(column("n")))
        shares.append(named(parts.share(parts.unit.max_rows, total), "w"))
    pairs = exp.Select().select(*lines, copy=False)
    pairs = pairs.from_(parts.rows(units=True).subquery(quoted("r"), copy=False), copy=False)
    pairs = pairs.group_by(column("u"), *map(column, parts.keys), copy=False)
    units = exp.Select().select(*shares, copy=False).from_(exp.Table(this=quoted("p")), copy=False)
    units = units.group_by(column("u"), copy=False)
    select = grouped(parts.lines, measures).from_(exp.Table(this=quoted("p")), copy=False)
    return _join(select, units.subquery(quoted("t"), copy=False)).with_(
        quoted("p"), as_=pairs, materialized=parts.dialect.materialised or None, copy=False
    )


def _join(select: exp.Select, other: exp.Expr) -> exp.Select:
    return select.join(other, using=[column("u")], copy=False)
