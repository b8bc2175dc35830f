"""Pieces of SQL with holes, read once and filled with trees: `CAST({0} AS BIGINT)`.

A template is read by sqlglot the first time and kept as what makes its nodes, so that filling it costs no
more than to write the nodes down.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp

from sfumato.engines.trees import copied

__all__ = ["atom", "filled"]

_Maker: TypeAlias = Callable[[Sequence[exp.Expr], set[int]], Any]

_HOLE = re.compile(r"hole_(\d+)")
_ATOMS = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Boolean, exp.Null)
_TIGHT = (exp.Binary, exp.Unary, exp.Predicate)


def filled(template: str, writer: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """A fresh tree of a template whose holes `{0}`, `{1}`, … are filled.

    Each argument is used as it is where it is named first, and copied wherever it is named again.

    Args:
        template: The text.
        writer: The sqlglot dialect that it is written in.
        arguments: What fills the holes.
    """
    node: exp.Expr = _maker(template, writer)(arguments, set())
    return node


def atom(node: exp.Expr) -> exp.Expr:
    """The node as an operand: in parentheses unless it is one already."""
    closed = isinstance(node, _ATOMS) and not isinstance(node, exp.Binary | exp.Not | exp.Neg)
    return node if closed else exp.Paren(this=node)


@functools.lru_cache(maxsize=2048)
def _maker(template: str, writer: str) -> _Maker:
    return _of_node(sqlglot.parse_one(re.sub(r"\{(\d+)\}", r"hole_\1", template), dialect=writer), False)


def _of_node(node: exp.Expr, tight: bool) -> _Maker:
    # As a string where the grammar wants one.
    hole = _HOLE.fullmatch(node.name) if isinstance(node, exp.Column | exp.Literal) else None
    if hole is not None:
        return _of_hole(int(hole[1]), tight)
    kind, inside = type(node), isinstance(node, _TIGHT) and not isinstance(node, exp.Paren | exp.Func)
    parts = [(name, _of_value(value, inside)) for name, value in node.args.items()]

    def make(arguments: Sequence[exp.Expr], used: set[int]) -> exp.Expr:
        return kind(**{name: part(arguments, used) for name, part in parts})

    return make


def _of_hole(place: int, tight: bool) -> _Maker:
    def make(arguments: Sequence[exp.Expr], used: set[int]) -> exp.Expr:
        filler = arguments[place]
        if place in used:
            filler = copied(filler)
        used.add(place)
        return atom(filler) if tight else filler

    return make


def _of_value(value: Any, tight: bool) -> _Maker:
    if isinstance(value, exp.Expr):
        return _of_node(value, tight)
    if isinstance(value, list):
        items = [_of_value(item, tight) for item in value]
        return lambda arguments, used: [item(arguments, used) for item in items]
    return lambda arguments, used: value  # noqa: ARG005 - a constant of the template
