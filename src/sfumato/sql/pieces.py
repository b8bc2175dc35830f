"""Small pieces that the shapes of statements share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sfumato.plan.sensitivity import WEIGHT
from sfumato.sql.source_nodes import column, quoted, subquery

__all__ = [
    "column",
    "count",
    "grouped",
    "named",
    "number",
    "or_zero",
    "picked",
    "quoted",
    "share",
    "subquery",
]


def named(expression: exp.Expr, name: str) -> exp.Alias:
    """A column of a result."""
    return exp.Alias(this=expression, alias=quoted(name))


def number(value: int) -> exp.Expr:
    """A whole number."""
    return exp.Literal.number(value)


def count() -> exp.Count:
    """How many rows there are."""
    return exp.Count(this=exp.Star(), big_int=True)


def or_zero(total: exp.Expr) -> exp.Coalesce:
    """A sum, which is NULL over no rows."""
    return exp.Coalesce(this=total, expressions=[number(0)])


def picked(columns: Iterable[exp.Expr], rows: exp.Query, name: str) -> exp.Select:
    """These columns of a subquery, which the statement calls `name`."""
    return exp.Select().select(*columns, copy=False).from_(subquery(rows, name), copy=False)


def grouped(keys: Sequence[str], measures: Iterable[exp.Expr]) -> exp.Select:
    """The measures of each group, with its keys; without keys, of all rows."""
    select = exp.Select().select(*map(column, keys), *measures, copy=False)
    return select.group_by(*map(column, keys), copy=False) if keys else select


def share(most: int, size: exp.Expr) -> exp.Expr:
    """The whole weight of `most` rows or groups, divided among `size` of them and rounded down."""
    total = exp.cast(number(most * WEIGHT), "BIGINT")
    among = exp.Greatest(this=size, expressions=[number(most)], ignore_nulls=True)
    return exp.IntDiv(this=total, expression=among)
