"""The ranks of a prepared table: the guard of what they leave of a unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, UNIT_COLUMN
from sfumato.engines.dialect import Dialect
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.questions.nodes import Measured
from sfumato.plan.questions.relations import Readable, Rows, rows_of
from sfumato.plan.questions.sensitivity import rows_in_group
from sfumato.schema import PrivacyUnit, PrivateTable
from sfumato.sql.write.pieces import column, count, grouped, named, number, picked, subquery
from sfumato.sql.write.sources import lower_source
from sfumato.sql.write.typed import Typed, canonical, typed

__all__ = ["guard", "keys_of"]


def keys_of(measured: Measured, columns: Mapping[str, Facts], dialect: Dialect) -> list[Typed]:
    """The keys of a question: in one form for the same value; public ones as comparisons must see them."""
    keys = [typed(key.expression, columns, dialect) for key in measured.keys]
    return [
        canonical(value, dialect) if key.found or measured.is_open else _compared(value, dialect)
        for key, value in zip(measured.keys, keys, strict=True)
    ]


def _compared(value: Typed, dialect: Dialect) -> Typed:
    """A value that a list has: zeros of both signs are in one group, on each engine."""
    if dialect.compares_alike:
        return value
    if value.kind == "integer":
        return canonical(value, dialect)
    return Typed(dialect.comparable(value.sql), value.kind) if value.kind == "float" else value


def guard(measured: Measured, tables: Readable | Mapping[str, Any], dialect: Dialect) -> exp.Select | None:
    """One number: how many units have more rows or groups of the ranks that a question keeps than they may.

    0 for a file as it was prepared. None: the question relies on no ranks.

    Privacy:
        Claim: where this is 0, the rows that the statement of `sql.write.lower` reads are at most max_rows
        of each unit; or, with ranks of groups, they are in at most max_groups groups of each unit, at most
        `rows_in_group` in each, one of them of place 1. So the proofs of `plan.questions.bounding`
        hold whatever the ranks say. Reason: it counts just those rows by unit, and by unit and group, with
        the statement's own filter, ids and keys; a condition only takes some of them away. That it is not 0
        says that the file was written to since it was prepared: it is 0 whatever rows a table had before.
        Condition: it is run on the same rows as the statement (`Engine.fetch`).
    """
    limits = measured.bounding.ranks(measured.unit)
    if not limits:
        return None
    known = {tables.name: tables} if isinstance(tables, PrivateTable) else tables
    rows = known if isinstance(known, Rows) else rows_of(measured.rows, known)
    keys = keys_of(measured, rows.columns, dialect) if GROUP_COLUMN in limits else []
    shown = [named(column(UNIT_COLUMN), "u"), *(named(key.sql, f"k{i}") for i, key in enumerate(keys))]
    shown += [named(column(PLACE_COLUMN), "i")] if keys else []
    read = exp.Select().select(*shown, copy=False)
    read = read.from_(lower_source(measured.rows, rows.tables, dialect), copy=False)
    for rank, most in limits.items():
        read = read.where(exp.LTE(this=column(rank), expression=number(most)), copy=False)
    return _beyond(read, [f"k{i}" for i in range(len(keys))], measured.unit)


def _beyond(read: exp.Select, keys: Sequence[str], unit: PrivacyUnit) -> exp.Select:
    """How many units are beyond their limits in rows `u`, `k0`, …, `i`; rows of nobody are, too."""
    units, limits = grouped(["u"], []), list[tuple[exp.Expr, int]]()
    if not keys:
        units = units.from_(subquery(read, "r"), copy=False)
        limits.append((count(), unit.max_rows))
    else:
        first = exp.EQ(this=column("i"), expression=number(1))
        firsts = exp.Count(this=exp.Case(ifs=[exp.If(this=first, true=number(1))]))
        pairs = grouped(["u", *keys], [named(count(), "n"), named(firsts, "f")])
        units = units.from_(subquery(pairs.from_(subquery(read, "r"), copy=False), "p"), copy=False)
        limits.append((count(), unit.max_groups))
        limits += [(exp.Max(this=column("n")), rows_in_group(unit)), (exp.Max(this=column("f")), 1)]
    beyond = [exp.GT(this=figure, expression=number(most)) for figure, most in limits]
    nobody = exp.Is(this=column("u"), expression=exp.Null())
    units = units.having(exp.or_(*beyond, nobody, copy=False), copy=False)
    return picked([named(count(), "n")], units, "g")
