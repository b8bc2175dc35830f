"""A generated expression together with the type that it has in the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sfumato.plan.expressions import Column, Expression
from sfumato.plan.facts import Facts, facts_of
from sfumato.schema import Kind
from sfumato.sql.expressions import lower_expression

__all__ = ["Typed", "typed"]


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """An expression of the engine's language and its kind; None: the NULL constant, of any kind."""

    sql: exp.Expr
    kind: Kind | None

    def copy(self) -> Typed:
        """The same, with a tree of its own: a tree has one parent."""
        return Typed(self.sql.copy(), self.kind)

    def number(self) -> Typed:
        """As a number of known type: a BIGINT column stays, whatever else counts as a number is a DOUBLE."""
        if isinstance(self.sql, exp.Column) or self.kind not in ("integer", "float"):
            return self
        return Typed(exp.cast(self.sql, "DOUBLE"), "float")


def typed(expression: Expression, columns: Mapping[str, Facts], dialect: str) -> Typed:
    """The expression in the engine's language, with the kind that its columns' types give it."""
    sql = lower_expression(expression, dialect, columns=columns)
    if isinstance(expression, Column):
        sql = exp.Column(this=exp.to_identifier(expression.name, quoted=True))
    return Typed(sql, facts_of(expression, columns).kind)
