"""Statements in which a unit counts in few groups, or vouches for few values, chosen by a keyed hash.

```
one key         rows → (unit, group) pairs, ranked by a hash within their unit → groups
several keys    rows, ranked by a hash of their group within their unit → (unit, group) pairs → groups
distinct values rows → (unit, group, value) triples, ranked likewise → groups
found by weight … the chosen pairs, each with the weight that its unit has for so many → groups
```

What is kept is the same either way. Ranking pairs is cheaper where units have many rows in each of a few
groups, ranking rows where nearly every row is a pair of its own; the number of keys is a public hint of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.plan.questions.nodes import Measurement
from sfumato.plan.questions.sensitivity import rows_in_group
from sfumato.plan.questions.spread import Spread
from sfumato.sql.write.fixed_point import clamped
from sfumato.sql.write.members import is_one_of
from sfumato.sql.write.parts import UNITS, WEIGHTS, Parts
from sfumato.sql.write.pieces import bigint, column, count, grouped, named, number, picked, subquery

__all__ = ["UNITS", "WEIGHTS", "by_choice", "by_values", "rank", "weighed"]

_WIDEST = 2**53


def by_choice(parts: Parts, salt: int, spread: Spread | None = None) -> exp.Select:
    """One line for each unit in each group; of a unit's lines those of the least hashes count.

    Privacy:
        At most max_groups groups of a unit count, and which ones follows from the unit's own rows and the
        salt: a group's rank among those of its unit is the number of different (hash, group) at or below it.
        Two groups are never the same there, also if their hashes are. Nothing of another unit, of row order
        or of arrival enters. Where groups are found by weight, each pair that counts has the weight that
        `spread` says for the number of such pairs of its unit: without those of groups that a round before
        found, which are public. So a unit's weights follow from its own rows, the salt and that list.
    """
    lines: list[exp.Expr] = []
    shown: list[exp.Expr] = [*map(column, parts.lines)]
    measures: list[exp.Expr] = []
    weight = parts.share(rows_in_group(parts.unit, keyed=bool(parts.keys)), column("n"))
    for i, measurement in enumerate(parts.measurements):
        name = f"s{i}"
        if measurement.kind == "units":
            measures.append(named(count(), f"m{i}"))
            continue
        if measurement.per != "row" and measurement.kind == "sum":
            lines.append(named(parts.plain(replace(measurement, kind="present")), f"p{i}"))
        if measurement.per == "row" or measurement.kind != "sum":
            lines.append(named(parts.plain(measurement), name))
        else:
            lines.append(named(parts.plain(replace(measurement, lower=-_WIDEST, upper=_WIDEST)), name))
        shown.append(named(_contribution(measurement, i, weight, parts.dialect), name))
        measures.append(named(parts.total(column(name)), f"m{i}"))
    measures += [named(count(), UNITS)] if parts.is_open else []
    rows, most = parts.rows(units=True), parts.unit.max_groups
    if len(parts.keys) > 1:
        rows = _first(most, picked([exp.Star(), _ranked(parts.keys, salt, parts.dialect)], rows, "a"))
    pairs = grouped(["u", *parts.keys], [*lines, named(count(), "n")])
    pairs = pairs.from_(subquery(rows, "r"), copy=False)
    if len(parts.keys) == 1:
        pairs = _first(most, picked([exp.Star(), _ranked(parts.keys, salt, parts.dialect)], pairs, "b"))
    if spread is not None:
        pairs = weighed(pairs, parts, spread)
        shown.append(column(WEIGHTS))
        measures.append(named(parts.total(column(WEIGHTS)), WEIGHTS))
    chosen = picked(shown, pairs, "p") if shown else pairs
    return grouped(parts.lines, measures).from_(subquery(chosen, "c"), copy=False)


def _contribution(measurement: Measurement, place: int, weight: exp.Expr, dialect: Dialect) -> exp.Expr:
    """What a unit adds to a group: its rows at their weight, or its clamped total or average."""
    total: exp.Expr = column(f"s{place}")
    match measurement.per:
        case "row":
            return exp.Mul(this=total, expression=exp.Paren(this=weight.copy()))
        case "total":
            pass
        case "average":
            total = dialect.fill(dialect.wide_divide, total, column(f"p{place}"))
        case unknown:
            assert_never(unknown)
    if measurement.kind == "sum":  # a unit without a value there adds nothing, whatever the bounds
        some = exp.GT(this=column(f"p{place}"), expression=number(0))
        total = exp.Case(ifs=[exp.If(this=some, true=total)])
    return clamped(total, measurement.lower, measurement.upper)


def weighed(pairs: exp.Select, parts: Parts, spread: Spread) -> exp.Select:
    """The pairs of unit and group that count, each with the weight of its unit there.

    Privacy:
        A unit's weights are those of `spread.steps` for the number of its own pairs that count, and nothing
        of another unit enters (`mechanisms.adaptive_selection` says what that is good for). The groups that
        count no more are public.
    """
    if spread.without:
        found = is_one_of(parts.typed_keys(), spread.without, parts.dialect)
        pairs = picked([exp.Star()], pairs, "o").where(exp.Not(this=found), copy=False)
    degree = exp.Window(this=count(), partition_by=[column("u")])
    pairs = picked([exp.Star(), named(degree, "d")], pairs, "e")
    steps = [
        exp.If(this=exp.LTE(this=column("d"), expression=number(end)), true=bigint(weight))
        for end, weight in spread.steps
    ]
    return picked([exp.Star(), named(exp.Case(ifs=steps, default=bigint(0)), WEIGHTS)], pairs, "g")


def by_values(parts: Parts, salt: int) -> exp.Select:
    """A value counts in a group if somebody vouches for it, and a unit vouches for few."""
    (measurement,) = parts.measurements
    value = parts.argument(measurement)
    counted = named(parts.plain(measurement), "m0")
    rows = parts.rows(units=parts.unit.column is not None).where(parts.present(measurement), copy=False)
    if parts.unit.column is None:
        select = grouped(parts.keys, [counted]).from_(subquery(rows, "r"), copy=False)
        listed = parts.keys and not parts.is_open
        return select.where(parts.member(parts.typed_keys()), copy=False) if listed else select
    triple = [*parts.keys, value.sql.name]
    triples = grouped(["u", *triple], []).from_(subquery(rows, "r"), copy=False)
    ranked = picked([*map(column, triple), _ranked(triple, salt, parts.dialect)], triples, "p")
    chosen = _first(parts.unit.max_rows, ranked)
    return grouped(parts.keys, [counted]).from_(subquery(chosen, "c"), copy=False)


def rank(columns: Sequence[str], salt: int, dialect: Dialect) -> exp.Expr:
    """The place of a line among those of its unit, by a digest of what it is about; the same for the same."""
    parts = [bigint(salt), column("u"), *map(column, columns)]
    lot = dialect.chosen_by(*parts)
    order = exp.Order(expressions=[exp.Ordered(this=term) for term in (lot, *map(column, columns))])
    return exp.Window(this=exp.DenseRank(), partition_by=[column("u")], order=order)


def _ranked(columns: Sequence[str], salt: int, dialect: Dialect) -> exp.Expr:
    return named(rank(columns, salt, dialect), "rank")


def _first(most: int, ranked: exp.Select) -> exp.Select:
    """The lines of the first ranks of each unit."""
    few = exp.LTE(this=column("rank"), expression=number(most))
    return picked([exp.Star()], ranked, "f").where(few, copy=False)
