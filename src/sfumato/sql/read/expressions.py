"""Scalar SQL to expressions of the closed list.

Nothing of the analyst's text or syntax tree is reused: what is parsed becomes our own values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_by_name, resolve
from sfumato.plan.expressions.tree import Expression
from sfumato.schema import ColumnType
from sfumato.sql.read.scalars import HANDLERS, Parser, unknown_around
from sfumato.sql.read.special import SPECIAL

__all__ = ["parse_expression", "unknown_function"]


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


def unknown_function(node: exp.Expr) -> QueryRefused | None:
    """The refusal of a function without a rule around a node; None where there is none."""
    return unknown_around(node, HANDLERS.keys() | SPECIAL.keys())
