"""Small pieces of the statements for sources: quoted names, subqueries, columns in the type of their kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.forms import one_form
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions import Column, Expression
from sfumato.plan.facts import Facts
from sfumato.schema import Kind
from sfumato.sql.typed import Typed, typed

__all__ = [
    "as_kind",
    "as_typed",
    "check_names",
    "column",
    "has_id",
    "plain",
    "quoted",
    "select",
    "select_plain",
    "subquery",
    "table",
]

_TYPES: dict[Kind, str] = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "date": "DATE",
}


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
    made = exp.Select().from_(source, copy=False)
    made = made.select(*(exp.Alias(this=each, alias=quoted(name)) for name, each in columns), copy=False)
    for each in conditions:
        if each is not None:
            made = made.where(each, copy=False)
    return made


def subquery(query: exp.Query, alias: str) -> exp.Subquery:
    """A query that stands in FROM."""
    return query.subquery(quoted(alias), copy=False)


def has_id(of: str | None = None) -> exp.Expr:
    """Whether a row belongs to a unit at all."""
    return exp.Is(this=column(UNIT_COLUMN, of), expression=exp.Null()).not_()


def check_names(names: Sequence[str]) -> None:
    """Refuse names that the engine could take for one another, or for the unit.

    Raises:
        InvalidParameter: if two differ in upper and lower case at most, or one is kept for the unit.
    """
    folded = [each.casefold() for each in (*names, UNIT_COLUMN)]
    if len(set(folded)) != len(folded):
        raise InvalidParameter("The columns of a source need different names, and none that of the unit.")


def as_typed(expression: Expression, columns: Mapping[str, Facts], dialect: str) -> Typed:
    """An expression in the canonical type of its kind, as columns of tables have it; NULL if it does not fit.

    A whole number that arithmetic made is a DOUBLE of the engine, which nobody may take for a BIGINT.
    """
    made = typed(expression, columns, dialect)
    if isinstance(expression, Column) or made.kind is None:
        return made
    return as_kind(made, made.kind, sure=False)


def as_kind(value: Typed, kind: Kind | None, *, sure: bool = True) -> Typed:
    """A value cast to the canonical type of a kind; `sure`: it has that of its own kind."""
    if kind is None or (sure and value.kind == kind):
        return value
    return Typed(exp.TryCast(this=value.sql, to=exp.DataType.build(_TYPES[kind])), kind)


def plain(value: Typed) -> exp.Expr:
    """The value in the one form that equal values have (`engines.forms`)."""
    return one_form(value.sql, value.kind)


def select_plain(
    columns: Iterable[tuple[str, Typed]], source: exp.Expr, *conditions: exp.Expr | None
) -> exp.Select:
    """SELECT columns under names, equal values in one form, from a source whose columns are so.

    Privacy:
        Claim: two rows that agree in all these columns, as the engine orders, hashes and groups them, are
        the same row to every expression over them. Reason: a column of the source stays as it is, and what
        is computed is brought into one form before anything can look at it: -0.0 may come of any
        arithmetic.
    """
    listed = list(columns)
    made = select([(name, each.sql) for name, each in listed], source, *conditions)
    if not any(_is_computed(each) for _, each in listed):
        return made
    shown = [
        (name, plain(Typed(column(name), each.kind if _is_computed(each) else None))) for name, each in listed
    ]
    return select(shown, subquery(made, "m"))


def _is_computed(value: Typed) -> bool:
    return value.kind == "float" and not isinstance(value.sql, exp.Column)
