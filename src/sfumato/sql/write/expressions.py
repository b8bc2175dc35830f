"""Expressions to syntax trees, generated afresh.

They are built from the templates of `plan.expressions.functions`, with constants and names as nodes of their
own: nothing of the analyst's text or syntax tree is reused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import cast

import sqlglot
from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_by_name, resolve
from sfumato.plan.expressions.functions import FUNCTIONS, guard_of
from sfumato.plan.expressions.size import check_size
from sfumato.plan.expressions.tree import Column, Expression, Literal
from sfumato.schema import ColumnType
from sfumato.sql.write.constants import constant_node

__all__ = ["lower_expression"]


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
        expression = resolve(expression, facts_by_name(columns))
    else:
        check_size(expression)
    return cast(exp.Expression, _lowered(expression, dialect))  # every concrete node is one


def _lowered(expression: Expression, dialect: str) -> exp.Expr:
    """The tree of an expression, of its own in every place."""
    if isinstance(expression, Column):
        return exp.Column(this=exp.Identifier(this=expression.name, quoted=True))
    if isinstance(expression, Literal):
        return constant_node(expression.value)
    function = FUNCTIONS.get(expression.function)
    if function is None:
        raise QueryRefused(f"There is no function {expression.function[:60].upper()}.")
    arguments = function.arranged(expression.arguments)
    parts = [_atom(_lowered(each, dialect)) for each in arguments]
    for position, each in enumerate(arguments):
        if guard := guard_of(function, position, each):
            parts[position] = _atom(_filled(_template(guard, dialect), [parts[position]]))
    return _filled(_template(function.template(len(arguments), dialect), dialect), parts)


def _filled(template: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    fresh = template.copy()
    used: set[int] = set()
    for node in list(fresh.find_all(exp.Column, exp.Literal)):
        if (place := _hole(node)) is not None:
            filler = arguments[place].copy() if place in used else arguments[place]
            used.add(place)
            if node is fresh:
                return filler
            node.replace(filler)
    return fresh


def _hole(node: exp.Expr) -> int | None:
    # As a string where the grammar wants one.
    found = _HOLE.fullmatch(node.name) if isinstance(node, exp.Column | exp.Literal) else None
    return None if found is None else int(found[1])


_HOLE = re.compile(r"hole_(\d+)")


@functools.lru_cache(maxsize=1024)
def _template(text: str, dialect: str) -> exp.Expr:
    return sqlglot.parse_one(re.sub(r"\{(\d+)\}", r"hole_\1", text), dialect=dialect)


_ATOMS = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Boolean, exp.Null)


def _atom(node: exp.Expr) -> exp.Expr:
    closed = isinstance(node, _ATOMS) and not isinstance(node, exp.Binary | exp.Not | exp.Neg)
    if closed:
        return node
    return exp.Paren(this=node)
