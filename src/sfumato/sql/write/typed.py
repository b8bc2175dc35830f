"""A generated expression together with the type that it has in the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sfumato._dataclasses import dataclass
from sfumato.engines.dialect import Dialect
from sfumato.engines.forms import group_form, one_form
from sfumato.engines.trees import copied
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.tree import Column, Expression
from sfumato.schema import Kind
from sfumato.sql.write.expressions import lower_expression
from sfumato.sql.write.pieces import column, double, select, subquery

__all__ = ["Typed", "as_kind", "as_typed", "canonical", "plain", "select_plain", "typed"]


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """An expression of the engine's language and its kind; None: the NULL constant, of any kind."""

    sql: exp.Expr
    kind: Kind | None

    def copy(self) -> Typed:
        """The same, with a tree of its own: a tree has one parent."""
        return Typed(copied(self.sql), self.kind)

    def number(self) -> Typed:
        """As a number of known type: a BIGINT column stays, whatever else counts as a number is a DOUBLE."""
        if isinstance(self.sql, exp.Column) or self.kind not in ("integer", "float"):
            return self
        return Typed(double(self.sql), "float")


def typed(expression: Expression, columns: Mapping[str, Facts], dialect: Dialect) -> Typed:
    """The expression in the engine's language, with the kind that its columns' types give it."""
    sql = lower_expression(expression, dialect, columns=columns)
    if isinstance(expression, Column):
        sql = exp.Column(this=exp.to_identifier(expression.name, quoted=True))
    return Typed(sql, facts_of(expression, columns).kind)


def as_typed(expression: Expression, columns: Mapping[str, Facts], dialect: Dialect) -> Typed:
    """An expression in the canonical type of its kind, as columns of tables have it; NULL if it does not fit.

    A whole number that arithmetic made is a DOUBLE of the engine, which nobody may take for a BIGINT.
    """
    value = typed(expression, columns, dialect)
    if isinstance(expression, Column) or value.kind is None:
        return value
    return as_kind(value, value.kind, dialect, sure=False)


def as_kind(value: Typed, kind: Kind | None, dialect: Dialect, *, sure: bool = True) -> Typed:
    """A value cast to the canonical type of a kind; `sure`: it has that of its own kind."""
    if kind is None or (sure and value.kind == kind):
        return value
    return Typed(dialect.attempt(value.sql, kind, value.kind), kind)


def plain(value: Typed, dialect: Dialect) -> exp.Expr:
    """The value in the one form that equal values have (`engines.forms`)."""
    return one_form(value.sql, value.kind, dialect)


def canonical(value: Typed, dialect: Dialect) -> Typed:
    """A value as the key of a group or as one to be counted: one form for values that are the same."""
    if value.kind == "integer" and not isinstance(value.sql, exp.Column):
        return as_kind(
            value, "integer", dialect, sure=False
        )  # arithmetic is in doubles, and may leave 64 bits
    return Typed(group_form(value.sql, value.kind, dialect), value.kind)


def select_plain(
    columns: Iterable[tuple[str, Typed]], source: exp.Expr, dialect: Dialect, *conditions: exp.Expr | None
) -> exp.Select:
    """SELECT columns under names, equal values in one form, from a source whose columns are so.

    Privacy:
        Claim: two rows that agree in all these columns, as the engine orders, hashes and groups them, are
        the same row to every expression over them. Reason: a column of the source stays as it is, and what
        is computed is brought into one form before anything can look at it: -0.0 may come of any
        arithmetic.
    """
    listed = list(columns)
    query = select([(name, value.sql) for name, value in listed], source, *conditions)
    if not any(_is_computed(value) for _, value in listed):
        return query
    shown = [
        (name, plain(Typed(column(name), value.kind if _is_computed(value) else None), dialect))
        for name, value in listed
    ]
    return select(shown, subquery(query, "m"))


def _is_computed(value: Typed) -> bool:
    return value.kind == "float" and not isinstance(value.sql, exp.Column)
