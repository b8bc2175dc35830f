"""Expressions to syntax trees, built from the templates of the functions."""

from __future__ import annotations

import functools
import re

import sqlglot
from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions import Column, Expression, Literal
from sfumato.plan.functions import FUNCTIONS
from sfumato.sql.constants import constant_node

__all__ = ["lowered"]

_NODES = 50_000  # of a generated tree


def lowered(expression: Expression, dialect: str) -> tuple[exp.Expr, int]:
    """The tree of an expression, and its size."""
    if isinstance(expression, Column):
        return exp.Column(this=exp.Identifier(this=expression.name, quoted=True)), 1
    if isinstance(expression, Literal):
        return constant_node(expression.value), 1
    function = FUNCTIONS.get(expression.function)
    if function is None:
        raise QueryRefused(f"There is no function {expression.function[:60].upper()}.")
    arguments = function.arranged(expression.arguments)
    template, uses = _template(function.template(len(arguments), dialect), dialect)
    parts = [lowered(each, dialect) for each in arguments]
    size = 1 + sum(uses.get(position, 0) * count for position, (_, count) in enumerate(parts))
    if size > _NODES:
        raise QueryRefused("The expression is too large.", "Ask for less in one question.")
    return _filled(template, [_atom(node) for node, _ in parts]), size


def _filled(template: exp.Expr, arguments: list[exp.Expr]) -> exp.Expr:
    def fill(node: exp.Expr) -> exp.Expr:
        place = _hole(node)
        return node if place is None else arguments[place].copy()

    return template.copy().transform(fill, copy=False)


def _hole(node: exp.Expr) -> int | None:
    # As a string where the grammar wants one.
    found = _HOLE.fullmatch(node.name) if isinstance(node, exp.Column | exp.Literal) else None
    return None if found is None else int(found[1])


_HOLE = re.compile(r"hole_(\d+)")


@functools.lru_cache(maxsize=1024)
def _template(text: str, dialect: str) -> tuple[exp.Expr, dict[int, int]]:
    """The parsed template, and how often each argument is used in it."""
    parsed = sqlglot.parse_one(re.sub(r"\{(\d+)\}", r"hole_\1", text), dialect=dialect)
    uses: dict[int, int] = {}
    for node in parsed.find_all(exp.Column, exp.Literal):
        if (place := _hole(node)) is not None:
            uses[place] = uses.get(place, 0) + 1
    return parsed, uses


_ATOMS = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Boolean, exp.Null)


def _atom(node: exp.Expr) -> exp.Expr:
    closed = isinstance(node, _ATOMS) and not isinstance(node, exp.Binary | exp.Not | exp.Neg)
    if closed:
        return node
    return exp.Paren(this=node)
