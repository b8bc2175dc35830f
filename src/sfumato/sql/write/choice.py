"""Statements in which a unit counts in few groups, or vouches for few values, chosen by a keyed hash.

```
one key         rows → (unit, group) pairs, ranked by a hash within their unit → groups
several keys    rows, ranked by a hash of their group within their unit → (unit, group) pairs → groups
distinct values rows → (unit, group, value) triples, ranked likewise → groups
```

What is kept is the same either way. Ranking pairs is cheaper where units have many rows in each of a few
groups, ranking rows where nearly every row is a pair of its own; the number of keys is a public hint of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from sfumato.engines.forms import group_form
from sfumato.plan.questions.nodes import Measurement
from sfumato.plan.questions.sensitivity import rows_in_group
from sfumato.schema import PrivacyUnit
from sfumato.sql.write.fixed_point import clamped
from sfumato.sql.write.pieces import column, count, grouped, named, number, or_zero, picked, share, subquery
from sfumato.sql.write.typed import Typed, as_kind

__all__ = ["UNITS", "Parts", "by_choice", "by_values", "canonical", "rank"]

UNITS = "s"
"""The name of the column that holds the number of units of a group."""
_WIDEST = 2**53


class Parts(Protocol):
    """The pieces that statements are put together from."""

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """What is read for each group."""

    @property
    def unit(self) -> PrivacyUnit:
        """Whose privacy is protected."""

    @property
    def is_open(self) -> bool:
        """Whether groups are found in the data: then the number of units is read too."""

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""

    def rows(self, *, units: bool = False) -> exp.Select:
        """The rows as columns `u`, `k0`, …, `v0`, …; with `units` only those of a unit and a public key."""

    def plain(self, measurement: Measurement) -> exp.Expr:
        """A measurement of rows of weight one."""

    def argument(self, measurement: Measurement) -> Typed:
        """The column that holds a measurement's argument."""

    def present(self, measurement: Measurement) -> exp.Expr:
        """Whether a row of the source has a measurement's argument."""

    def member(self, columns: Sequence[Typed]) -> exp.Expr:
        """Whether a row's keys are among the public combinations."""

    def typed_keys(self) -> list[Typed]:
        """The key columns with their types."""


def by_choice(parts: Parts, salt: int) -> exp.Select:
    """One line for each unit in each group; of a unit's lines those of the least hashes count.

    Privacy:
        At most max_groups groups of a unit count, and which ones follows from the unit's own rows and the
        salt: a group's rank among those of its unit is the number of different (hash, group) at or below it.
        Two groups are never the same there, also if their hashes are. Nothing of another unit, of row order
        or of arrival enters.
    """
    lines: list[exp.Expr] = []
    shown: list[exp.Expr] = [*map(column, parts.keys)]
    measures: list[exp.Expr] = []
    weight = share(rows_in_group(parts.unit, keyed=bool(parts.keys)), column("n"))
    for i, each in enumerate(parts.measurements):
        name = f"s{i}"
        if each.kind == "units":
            measures.append(named(count(), f"m{i}"))
            continue
        if each.per != "row" and each.kind == "sum":
            lines.append(named(parts.plain(replace(each, kind="present")), f"p{i}"))
        if each.per == "row" or each.kind != "sum":
            lines.append(named(parts.plain(each), name))
        else:
            lines.append(named(parts.plain(replace(each, lower=-_WIDEST, upper=_WIDEST)), name))
        shown.append(named(_contribution(each, i, weight), name))
        measures.append(named(or_zero(exp.Sum(this=column(name))), f"m{i}"))
    measures += [named(count(), UNITS)] if parts.is_open else []
    rows, most = parts.rows(units=True), parts.unit.max_groups
    if len(parts.keys) > 1:
        rows = _first(most, picked([exp.Star(), _ranked(parts.keys, salt)], rows, "a"))
    pairs = grouped(["u", *parts.keys], [*lines, named(count(), "n")])
    pairs = pairs.from_(subquery(rows, "r"), copy=False)
    if len(parts.keys) == 1:
        pairs = _first(most, picked([exp.Star(), _ranked(parts.keys, salt)], pairs, "b"))
    chosen = picked(shown, pairs, "p") if shown else pairs
    return grouped(parts.keys, measures).from_(subquery(chosen, "c"), copy=False)


def _contribution(measurement: Measurement, place: int, weight: exp.Expr) -> exp.Expr:
    """What a unit adds to a group: its rows at their weight, or its clamped total or average."""
    total: exp.Expr = column(f"s{place}")
    if measurement.per == "row":
        return exp.Mul(this=total, expression=exp.Paren(this=weight.copy()))
    if measurement.kind == "sum":  # a unit without a value there adds nothing, whatever the bounds
        some = exp.GT(this=column(f"p{place}"), expression=number(0))
        if measurement.per == "average":
            total = exp.IntDiv(this=total, expression=column(f"p{place}"))
        total = exp.Case(ifs=[exp.If(this=some, true=total)])
    return clamped(total, measurement.lower, measurement.upper)


def by_values(parts: Parts, salt: int) -> exp.Select:
    """A value counts in a group if somebody vouches for it, and a unit vouches for few."""
    (measurement,) = parts.measurements
    value = parts.argument(measurement)
    counted = named(exp.Count(this=exp.Distinct(expressions=[value.sql.copy()])), "m0")
    rows = parts.rows(units=parts.unit.column is not None).where(parts.present(measurement), copy=False)
    if parts.unit.column is None:
        select = grouped(parts.keys, [counted]).from_(subquery(rows, "r"), copy=False)
        listed = parts.keys and not parts.is_open
        return select.where(parts.member(parts.typed_keys()), copy=False) if listed else select
    triple = [*parts.keys, value.sql.name]
    triples = grouped(["u", *triple], []).from_(subquery(rows, "r"), copy=False)
    ranked = picked([*map(column, triple), _ranked(triple, salt)], triples, "p")
    chosen = _first(parts.unit.max_rows, ranked)
    return grouped(parts.keys, [counted]).from_(subquery(chosen, "c"), copy=False)


def rank(columns: Sequence[str], salt: int) -> exp.Expr:
    """The place of a line among those of its unit, by a hash of what it is about; the same for the same.

    DuckDB's hash of several arguments is nearly linear: it is hashed once more, so that all choices are met.
    """
    parts = [exp.cast(number(salt), "BIGINT"), column("u"), *map(column, columns)]
    once = exp.Anonymous(this="hash", expressions=parts)
    twice = exp.Anonymous(this="hash", expressions=[once])
    order = exp.Order(expressions=[exp.Ordered(this=each) for each in (twice, *map(column, columns))])
    return exp.Window(this=exp.DenseRank(), partition_by=[column("u")], order=order)


def _ranked(columns: Sequence[str], salt: int) -> exp.Expr:
    return named(rank(columns, salt), "rank")


def _first(most: int, ranked: exp.Select) -> exp.Select:
    """The lines of the first ranks of each unit."""
    few = exp.LTE(this=column("rank"), expression=number(most))
    return picked([exp.Star()], ranked, "f").where(few, copy=False)


def canonical(value: Typed) -> Typed:
    """A value as the key of a group or as one to be counted: one form for values that are the same."""
    if value.kind == "integer" and not isinstance(value.sql, exp.Column):
        return as_kind(value, "integer", sure=False)  # arithmetic is in doubles, and may leave 64 bits
    return Typed(group_form(value.sql, value.kind), value.kind)
