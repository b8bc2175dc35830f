"""Scalar SQL to expressions of the closed list, and from these to a statement generated afresh.

Nothing of the analyst's text or syntax tree is reused: what is parsed becomes our own values, and what is
generated is built from the templates of `plan.functions`, with constants and names as nodes of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions import Expression
from sfumato.plan.facts import Facts, column_facts, resolve
from sfumato.plan.size import check_size
from sfumato.schema import ColumnType
from sfumato.sql.reading import HANDLERS, Parser, unknown_around
from sfumato.sql.special import SPECIAL
from sfumato.sql.writing import lowered

__all__ = ["lower_expression", "parse_expression", "unknown_function"]


def parse_expression(
    node: exp.Expr, columns: Collection[str] | Mapping[str, ColumnType] | Mapping[str, Facts]
) -> Expression:
    """The expression that a sqlglot node of DuckDB's dialect denotes.

    Args:
        node: A scalar expression. Aggregates must have been replaced by columns before.
        columns: The names it may use. Given with their types or facts, the expression is brought into normal
            form and type errors are refused, as `plan.facts.resolve` does.

    Raises:
        QueryRefused: for everything that has no proven rule, with the nearest thing that would work.
    """
    parsed = Parser(columns, HANDLERS | SPECIAL).parse(node, 0)
    if isinstance(columns, Mapping) and columns:
        return resolve(parsed, _known(columns))
    return parsed


def unknown_function(node: exp.Expr) -> QueryRefused | None:
    """The refusal of a function without a rule that a node stands in; None where there is none."""
    return unknown_around(node, HANDLERS.keys() | SPECIAL.keys())


def lower_expression(
    expression: Expression,
    dialect: str = "duckdb",
    *,
    columns: Mapping[str, ColumnType] | Mapping[str, Facts] | None = None,
) -> exp.Expression:
    """A fresh sqlglot tree for the expression, total on every row.

    Args:
        expression: What to compute; its columns must exist in the statement, and `facts_of` must accept it.
        dialect: The engine's dialect.
        columns: Their types or facts, if overloaded functions were not resolved yet.

    Raises:
        QueryRefused: where the dialect has no proven form of a function, or the statement would be too large.
    """
    if columns is not None:
        expression = resolve(expression, _known(columns))
    else:
        check_size(expression)
    return cast(exp.Expression, lowered(expression, dialect))  # every concrete node is one


def _known(columns: Mapping[str, ColumnType] | Mapping[str, Facts]) -> dict[str, Facts]:
    return {name: each if isinstance(each, Facts) else column_facts(each) for name, each in columns.items()}
