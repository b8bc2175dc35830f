"""Small pieces that statements share: quoted names, tables, subqueries, counts and shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlglot import exp

from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import Dialect
from sfumato.engines.trees import copied
from sfumato.errors import InvalidParameter
from sfumato.plan.questions.sensitivity import WEIGHT

__all__ = [
    "bigint",
    "check_names",
    "column",
    "count",
    "double",
    "grouped",
    "has_id",
    "named",
    "number",
    "picked",
    "quoted",
    "select",
    "share",
    "subquery",
    "table",
    "total",
]


def quoted(name: str) -> exp.Identifier:
    """A name that stands for itself."""
    return exp.to_identifier(name, quoted=True)


def column(name: str, of: str | None = None) -> exp.Column:
    """A column, of one of several tables by their alias."""
    return exp.Column(this=quoted(name), table=None if of is None else quoted(of))


def table(name: str, alias: str | None = None) -> exp.Table:
    """An attached table."""
    short = None if alias is None else exp.TableAlias(this=quoted(alias))
    return exp.Table(this=quoted(name), alias=short)


def select(
    columns: Iterable[tuple[str, exp.Expr]], source: exp.Expr, *conditions: exp.Expr | None
) -> exp.Select:
    """SELECT columns under names FROM source, where all conditions hold."""
    query = exp.Select().from_(source, copy=False)
    query = query.select(*(exp.Alias(this=value, alias=quoted(name)) for name, value in columns), copy=False)
    for condition in conditions:
        if condition is not None:
            query = query.where(condition, copy=False)
    return query


def subquery(query: exp.Query, alias: str) -> exp.Subquery:
    """A query inside FROM."""
    return query.subquery(quoted(alias), copy=False)


def has_id(of: str | None = None) -> exp.Expr:
    """Whether a row belongs to a unit at all."""
    return exp.Is(this=column(UNIT_COLUMN, of), expression=exp.Null()).not_()


def check_names(names: Sequence[str]) -> None:
    """Refuse names that the engine could take for one another, or for the unit.

    Raises:
        InvalidParameter: if two differ in upper and lower case at most, or one is kept for the unit.
    """
    folded = [name.casefold() for name in (*names, UNIT_COLUMN)]
    if len(set(folded)) != len(folded):
        raise InvalidParameter("The columns of a source need different names, and none that of the unit.")


def named(expression: exp.Expr, name: str) -> exp.Alias:
    """A column of a result."""
    return exp.Alias(this=expression, alias=quoted(name))


def number(value: int) -> exp.Expr:
    """A whole number."""
    return exp.Literal.number(value)


def bigint(value: exp.Expr | int) -> exp.Expr:
    """A value cast to a whole number of 64 bits."""
    return _cast(value, exp.DataType.Type.BIGINT)


def double(value: exp.Expr) -> exp.Expr:
    """A value cast to a double."""
    return _cast(value, exp.DataType.Type.DOUBLE)


def _cast(value: exp.Expr | int, kind: Any) -> exp.Expr:
    # What `exp.cast` gives, which reads the name of the type each time.
    if isinstance(value, exp.Cast) and value.to.this is kind:
        return copied(value)
    inner = number(value) if isinstance(value, int) else copied(value)
    return exp.Cast(this=inner, to=exp.DataType(this=kind))


def count() -> exp.Count:
    """How many rows there are."""
    return exp.Count(this=exp.Star(), big_int=True)


def total(value: exp.Expr, dialect: Dialect) -> exp.Expr:
    """The exact sum of integers; 0 over no rows."""
    return exp.Coalesce(this=dialect.total(value), expressions=[number(0)])


def picked(columns: Iterable[exp.Expr], rows: exp.Query, name: str) -> exp.Select:
    """These columns of a subquery, which the statement calls `name`."""
    return exp.Select().select(*columns, copy=False).from_(subquery(rows, name), copy=False)


def grouped(keys: Sequence[str], measures: Iterable[exp.Expr]) -> exp.Select:
    """The measures of each group, with its keys; without keys, of all rows."""
    select = exp.Select().select(*map(column, keys), *measures, copy=False)
    return select.group_by(*map(column, keys), copy=False) if keys else select


def share(most: int, size: exp.Expr, dialect: Dialect) -> exp.Expr:
    """The whole weight of `most` rows or groups, divided among `size` of them and rounded down."""
    among = dialect.fill(dialect.greatest, size, number(most))
    return dialect.fill(dialect.divide, bigint(most * WEIGHT), among)
