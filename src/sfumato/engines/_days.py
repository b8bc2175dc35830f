"""Statements about some days: which days these are, and the same statement over the rows of those alone."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.engines.trees import copied, nodes_of

__all__ = ["READ", "Days", "counts_of_days", "days_of", "of_days"]

READ = "sfumato read"
"""The column in which `of_days` says how many rows it read."""

_ROWS = "sfumato days"
_ONE = datetime.timedelta(days=1)
_NEVER = datetime.date.min


@dataclass(frozen=True, slots=True)
class Days:
    """A condition that every reader of a table in a statement has: a column is one of some days.

    Attributes:
        table: The table's name in lower case.
        column: The column.
        first: The first of the days.
        last: The last of them.
    """

    table: str
    column: str
    first: datetime.date
    last: datetime.date

    @property
    def many(self) -> int:
        """How many days."""
        return (self.last - self.first).days + 1


def days_of(statement: exp.Expr) -> list[Days]:
    """The days that a statement over one table is about: rows of other days do not change its result.

    Wherever the table is read, that is by a SELECT of it alone whose condition asks for the days among other
    things: rows for which it is not true are not in that SELECT, whatever the rest says. What names the
    fewest days comes first.
    """
    if not isinstance(statement, exp.Select) or statement.args.get("order") or statement.args.get("limit"):
        return []
    nodes = nodes_of(statement)
    tables = [node for node in nodes if isinstance(node, exp.Table)]
    readers = [node for node in nodes if isinstance(node, exp.Select) and _reads(node) is not None]
    if not tables or len(readers) != len(tables) or len({table.name.lower() for table in tables}) != 1:
        return []
    if not all(_is_plain(reader) for reader in readers):
        return []
    asked = [set(_asked(reader)) for reader in readers]
    name = tables[0].name.lower()
    if name == _ROWS:
        return []
    found = [Days(name, *each) for each in sorted(set.intersection(*asked))]
    return sorted(found, key=lambda days: days.many)


def _reads(query: exp.Select) -> exp.Table | None:
    """The only table that a SELECT is of."""
    origin = query.args.get("from_")
    table = None if origin is None else origin.this
    return table if isinstance(table, exp.Table) and not query.args.get("joins") else None


def _is_plain(reader: exp.Select) -> bool:
    """Whether all columns that a SELECT of a table names are the table's, each by its name."""
    inner = nodes_of(reader)
    nested = any(isinstance(node, exp.Select | exp.Subquery | exp.Unnest) for node in inner[1:])
    stars = any(isinstance(each, exp.Star) for each in reader.expressions)
    return not nested and not stars


def _asked(reader: exp.Select) -> Iterator[tuple[str, datetime.date, datetime.date]]:
    """The columns that the condition of a SELECT says are some days, with the first and the last of these."""
    where = reader.args.get("where")
    waiting = [] if where is None else [where.this]
    first: dict[str, datetime.date] = {}
    last: dict[str, datetime.date] = {}
    while waiting:
        term = waiting.pop()
        if isinstance(term, exp.And | exp.Paren):
            waiting += [part for part in term.args.values() if isinstance(part, exp.Expr)]
        elif isinstance(term, exp.EQ | exp.GTE | exp.LTE) and isinstance(term.this, exp.Column):
            name, day = term.this.name, _day(term.expression)
            if day is None:
                continue
            if isinstance(term, exp.EQ):
                yield name, day, day
            elif isinstance(term, exp.GTE):
                first[name] = max(day, first.get(name, day))
            else:
                last[name] = min(day, last.get(name, day))
    yield from ((name, day, last[name]) for name, day in first.items() if day <= last.get(name, _NEVER))


def _day(value: exp.Expr) -> datetime.date | None:
    """A date as statements have it, between the first and the last that there are."""
    if not (isinstance(value, exp.Cast) and value.to.this == exp.DataType.Type.DATE):
        return None
    if not isinstance(value.this, exp.Literal) or not value.this.is_string:
        return None
    try:
        day = datetime.date.fromisoformat(value.this.name)
    except ValueError:
        return None
    return day if datetime.date.min < day < datetime.date.max else None


def counts_of_days(asked: Days) -> exp.Select:
    """How many rows of a table each day has, as `d` and `n`, read whole."""
    column = _column(asked.column)
    return exp.Select(
        expressions=[_named(column, "d"), _named(exp.Count(this=exp.Star()), "n")],
        from_=exp.From(this=_table(asked.table)),
        group=exp.Group(expressions=[column.copy()]),
    )


def of_days(statement: exp.Expr, asked: Days, columns: Collection[str]) -> exp.Select:
    """The same statement over rows of the days, which are read first; how many these are is in `READ`.

    The condition by which they are read is the only one there: an engine that skips parts of files by it
    knows of no other. It asks for what lies between two days, so that no index of single values is used.

    Args:
        statement: The statement.
        asked: One of its `days_of`.
        columns: Those that the table has.
    """
    nodes = nodes_of(statement)
    named = {node.name for node in nodes if isinstance(node, exp.Column)} | {asked.column}
    names = [name for name in columns if name in named]
    instead: dict[int, exp.Expr] = {
        id(node): _table(_ROWS, node.alias or node.name) for node in nodes if isinstance(node, exp.Table)
    }
    column = _column(asked.column)
    between = exp.And(
        this=exp.GT(this=column, expression=_constant(asked.first - _ONE)),
        expression=exp.LT(this=column.copy(), expression=_constant(asked.last + _ONE)),
    )
    rows = exp.Select(
        expressions=[_column(name) for name in names],
        from_=exp.From(this=_table(asked.table)),
        where=exp.Where(this=between),
    )
    first = exp.CTE(this=rows, alias=_alias(_ROWS), materialized=True)
    inner = exp.Subquery(this=copied(statement, instead), alias=_alias("x"))
    counted = exp.Select(expressions=[exp.Count(this=exp.Star())], from_=exp.From(this=_table(_ROWS)))
    many = _named(exp.Subquery(this=counted), READ)
    return exp.Select(
        expressions=[exp.Star(), many], from_=exp.From(this=inner), with_=exp.With(expressions=[first])
    )


def _named(value: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))


def _table(name: str, alias: str = "") -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True), alias=_alias(alias) if alias else None)


def _column(name: str) -> exp.Column:
    return exp.Column(this=exp.to_identifier(name, quoted=True))


def _constant(day: datetime.date) -> exp.Cast:
    return exp.Cast(this=exp.Literal.string(day.isoformat()), to=exp.DataType(this=exp.DataType.Type.DATE))
