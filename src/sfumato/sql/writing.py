"""Expressions to syntax trees, built from the templates of the functions."""

from __future__ import annotations

import functools
import re

import sqlglot
from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions import Column, Expression, Literal
from sfumato.plan.functions import FUNCTIONS, guard_of
from sfumato.sql.constants import constant_node

__all__ = ["lowered"]


def lowered(expression: Expression, dialect: str) -> exp.Expr:
    """The tree of an expression, of its own in every place."""
    if isinstance(expression, Column):
        return exp.Column(this=exp.Identifier(this=expression.name, quoted=True))
    if isinstance(expression, Literal):
        return constant_node(expression.value)
    function = FUNCTIONS.get(expression.function)
    if function is None:
        raise QueryRefused(f"There is no function {expression.function[:60].upper()}.")
    arguments = function.arranged(expression.arguments)
    parts = [_atom(lowered(each, dialect)) for each in arguments]
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
