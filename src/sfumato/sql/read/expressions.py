"""Scalar SQL to expressions of the closed list.

Nothing of the analyst's text or syntax tree is reused: what is parsed becomes our own values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_by_name, resolve
from sfumato.plan.expressions.tree import Expression, Literal
from sfumato.schema import ColumnType
from sfumato.sql.read.scalars import HANDLERS, Parser, unknown_around
from sfumato.sql.read.special import SPECIAL

__all__ = ["constant_of", "parse_expression", "unknown_function"]


def parse_expression(
    node: exp.Expr, columns: Collection[str] | Mapping[str, ColumnType] | Mapping[str, Facts]
) -> Expression:
    """The expression that a sqlglot node of DuckDB's dialect denotes.

    Args:
        node: A scalar expression. Aggregates must have been replaced by columns before.
        columns: The names it may use. Given with their types or facts, the expression is brought into normal
            form and type errors are refused, as `plan.expressions.facts.resolve` does.

    Raises:
        QueryRefused: for everything that has no proven rule, with the nearest thing that would work.
    """
    parsed = Parser(columns, HANDLERS | SPECIAL).parse(node, 0)
    if isinstance(columns, Mapping) and columns:
        return resolve(parsed, facts_by_name(columns))
    return parsed


def constant_of(node: object) -> Literal | None:
    """The constant that is written here, also in parentheses or with its type: `3`, `(3)`, `3::INTEGER`.

    None for anything else.

    Raises:
        QueryRefused: if the value is none of the type that is written with it.
    """
    inner = node
    while isinstance(inner, exp.Paren | exp.Neg | exp.Cast):
        inner = inner.this
    if not isinstance(inner, exp.Literal | exp.Boolean | exp.Null):
        return None
    parsed = Parser((), HANDLERS | SPECIAL).parse(node, 0)
    return parsed if isinstance(parsed, Literal) else None


def unknown_function(node: exp.Expr) -> QueryRefused | None:
    """The refusal of a function without a rule around a node; None where there is none."""
    return unknown_around(node, HANDLERS.keys() | SPECIAL.keys())
