"""Expressions to syntax trees, generated afresh.

They are built from the templates of `plan.expressions.functions`, with constants and names as nodes of their
own: nothing of the analyst's text or syntax tree is reused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.engines.templates import atom
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_by_name, resolve
from sfumato.plan.expressions.functions import FUNCTIONS, guard_of
from sfumato.plan.expressions.size import check_size
from sfumato.plan.expressions.tree import Column, Expression, Literal
from sfumato.schema import ColumnType
from sfumato.sql.write.constants import constant_node
from sfumato.sql.write.lists import is_in
from sfumato.sql.write.many import MANY

__all__ = ["lower_expression"]

_SMALL = 1e290
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def lower_expression(
    expression: Expression,
    dialect: Dialect,
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


def _lowered(expression: Expression, dialect: Dialect) -> exp.Expr:
    """The tree of an expression, of its own in every place."""
    if isinstance(expression, Column):
        return exp.Column(this=exp.Identifier(this=expression.name, quoted=True))
    if isinstance(expression, Literal):
        return constant_node(expression.value)
    function = FUNCTIONS.get(expression.function)
    if function is None:
        raise QueryRefused(f"There is no function {expression.function[:60].upper()}.").about("function")
    if function.name == "in" and dialect.form("in", function.sql) is function.sql:
        value, *options = expression.arguments
        if all(isinstance(option, Literal) and option.value is not None for option in options):
            constants = [option.value for option in options if isinstance(option, Literal)]
            return is_in(atom(_lowered(value, dialect)), constants, dialect)
    arguments = function.arranged(expression.arguments)
    if function.name in MANY and dialect.form(function.name, function.sql) is function.sql:
        operand = atom if function.name == "in" else _operand
        return MANY[function.name]([operand(_lowered(argument, dialect)) for argument in arguments])
    parts = [atom(_lowered(argument, dialect)) for argument in arguments]
    for position, argument in enumerate(arguments):
        if guard := guard_of(function, position, argument):
            parts[position] = atom(dialect.called(guard, [parts[position]]))
    short = dialect.beside_constants.get(function.name) if any(map(_is_small, arguments)) else None
    return dialect.called(short or function.template(len(arguments), dialect), parts)


def _is_small(argument: Expression) -> bool:
    """Whether it is a constant number below 1e290 in size."""
    value = argument.value if isinstance(argument, Literal) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _SMALL


def _operand(node: exp.Expr) -> exp.Expr:
    """A part of AND, OR or CASE; a comparison needs no parentheses there, which engines are slow to read."""
    return node if type(node) in _COMPARISONS else atom(node)
