"""Pieces of SQL with holes, read once and filled with trees: `CAST({0} AS BIGINT)`.

A template is read by sqlglot the first time and kept as what makes its nodes, so that filling it costs no
more than to write the nodes down.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp

from sfumato.engines.trees import copied, nodes_of

__all__ = ["atom", "bound", "doubles_among", "filled", "with_doubles"]

_Maker: TypeAlias = Callable[[Sequence[exp.Expr], set[int]], Any]

_ROWS = "sfumato bound"
_HOLE = re.compile(r"hole_(\d+)")
_ATOMS = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Boolean, exp.Null, exp.Subquery)
_CONSTANTS = (exp.Literal, exp.Boolean, exp.Null)
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


def bound(template: str, writer: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """The same, where what is named twice and is no column or constant is computed once, in a subquery.

    Without it nested calls would grow by multiplication. `OFFSET 0` keeps an engine from putting the argument
    back into each of its places. No column or table may have the names in it (`base.is_kept`): columns that
    stay where they are named would be taken for them.
    """
    checks = "PG_TYPEOF" in template
    again = [place for place in _repeated(template) if not _is_cheap(arguments[place], checks=checks)]
    if not again:
        return filled(template, writer, arguments)
    names = {place: exp.to_identifier(f"sfumato {place}", quoted=True) for place in again}
    given = [
        exp.Column(this=names[place].copy()) if place in names else argument
        for place, argument in enumerate(arguments)
    ]
    inner = exp.Select().select(
        *(exp.Alias(this=arguments[place], alias=name) for place, name in names.items()), copy=False
    )
    rows = inner.offset(0, copy=False).subquery(exp.to_identifier(_ROWS, quoted=True), copy=False)
    outer = exp.Select().select(filled(template, writer, given), copy=False).from_(rows, copy=False)
    return exp.Subquery(this=outer)


def _is_cheap(argument: exp.Expr, *, checks: bool) -> bool:
    """Whether it costs nothing to name it twice.

    Where a template asks for the type of what it casts, a constant is computed as a value of a row is: a text
    has no type of its own before, and an engine that reads constants when it plans would raise on one that a
    condition keeps out.
    """
    if isinstance(argument, exp.Paren | exp.Neg):
        return _is_cheap(argument.this, checks=checks)
    return isinstance(argument, exp.Column) or (not checks and isinstance(argument, _CONSTANTS))


@functools.lru_cache(maxsize=2048)
def _repeated(template: str) -> tuple[int, ...]:
    places = re.findall(r"\{(\d+)\}", template)
    return tuple(sorted({int(place) for place in places if places.count(place) > 1}))


def with_doubles(tree: exp.Expr) -> exp.Expr:
    """The tree, in which constants with an exponent say that they are doubles."""
    instead = doubles_among(nodes_of(tree))
    return copied(tree, instead) if instead else tree


def doubles_among(nodes: Iterable[exp.Expr]) -> dict[int, exp.Expr]:
    """What says that a constant with an exponent is a double, by the id of the constant."""
    return {
        id(node): exp.Cast(this=exp.Literal.string(node.name), to=exp.DataType(this=exp.DataType.Type.DOUBLE))
        for node in nodes
        if isinstance(node, exp.Literal) and not node.is_string and "e" in node.name.lower()
    }


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
