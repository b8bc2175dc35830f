"""Comparisons with a value that a declared list does not have: no row is meant by them, so none is paid."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.deduce import facts_of
from sfumato.plan.expressions.ranges import Facts
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal
from sfumato.plan.expressions.written import written
from sfumato.plan.questions.nodes import Aggregate, Where
from sfumato.plan.questions.relations import source_facts
from sfumato.plan.questions.sources import (
    AggregateCall,
    Joined,
    PerUnit,
    Public,
    Scan,
    Source,
    United,
    Windowed,
)
from sfumato.schema import Enum

__all__ = ["check_listed"]

_SHOWN = 12


def check_listed(node: Aggregate, tables: Mapping[str, Any]) -> None:
    """Refuse `sex = 'X'` where sex is declared to be F or M, and `IN` with no other value; lists are public.

    Conditions that are wider than that stay: one that no row may satisfy for another reason, or that follows
    from an inner condition, is a question like any other.

    Raises:
        QueryRefused: with the nearest declared value.
    """
    arguments = [part for call in node.aggregates for part in _arguments(call)]
    predicate = node.child.predicate if isinstance(node.child, Where) else None
    keys = [key.expression for key in node.keys]
    _check(node.source, [predicate, *keys, *arguments], tables)
    _check_below(node.source, tables)


def _check_below(source: Source | Public, tables: Mapping[str, Any]) -> None:
    """The same for what is asked inside a source."""
    if isinstance(source, Joined | United):
        for block in (source.left, source.right) if isinstance(source, Joined) else source.parts:
            _check(block.source, [block.predicate, *(value for _, value in block.columns)], tables)
            _check_below(block.source, tables)
    elif isinstance(source, PerUnit):
        calls = [part for _, call in source.aggregates for part in _arguments(call)]
        _check(source.source, [source.predicate, *(key for _, key in source.keys), *calls], tables)
        _check(source, [source.having], tables)
        _check_below(source.source, tables)
    elif isinstance(source, Windowed):
        calls = [call.argument for _, call in source.columns]
        _check(source.source, [source.predicate, *calls], tables)
        _check_below(source.source, tables)


def _arguments(call: AggregateCall) -> tuple[Expression | None, ...]:
    return call.argument, call.other


def _check(source: Source | Public, asked: Iterable[Expression | None], tables: Mapping[str, Any]) -> None:
    compared = [pair for one in asked if one is not None for pair in _compared(one)]
    if not compared:
        return
    columns = source_facts(source, tables)
    plain = isinstance(source, Scan | Public)
    for expression, constants in compared:
        # Above other conditions only columns are looked at: what is left of an expression there is narrower
        # than what was declared.
        if plain or isinstance(expression, Column):
            _refuse(expression, constants, facts_of(expression, columns), _known(source, tables))


def _known(source: Source | Public, tables: Mapping[str, Any]) -> frozenset[Any]:
    """All that the lists of all tables have, where conditions below may have left some out."""
    if isinstance(source, Scan | Public):
        return frozenset()
    types = [kind for table in tables.values() for kind in table.schema.values()]
    return frozenset(value for kind in types if isinstance(kind, Enum) for value in kind.values)


def _compared(expression: Expression) -> Iterator[tuple[Expression, tuple[Any, ...]]]:
    """What is compared with constants, and with which, anywhere in an expression."""
    if not isinstance(expression, Call):
        return
    first, *rest = expression.arguments or (expression,)
    if expression.function == "equal" and isinstance(first, Literal):
        first, rest = rest[0], [first]
    constants = [one.value for one in rest if isinstance(one, Literal)]
    if expression.function in ("equal", "in") and len(constants) == len(rest) and None not in constants:
        yield first, tuple(constants)
    for argument in expression.arguments:
        yield from _compared(argument)


def _refuse(expression: Expression, constants: tuple[Any, ...], facts: Facts, known: frozenset[Any]) -> None:
    if facts.values is None or facts.kind not in ("text", "integer") or not constants:
        return
    if any(constant in facts.values or constant in known for constant in constants):
        return
    spelt = {str(value).casefold(): value for value in facts.values if facts.kind == "text"}
    near = difflib.get_close_matches(str(constants[0])[:60].casefold(), list(spelt), n=1, cutoff=0.6)
    raise QueryRefused(
        "{what} is declared without the value {wrong}, so that no row has it.",
        "Did you mean {near}?" if near else "Values: {listed}.",
        what=written(expression),
        wrong=_quoted(str(constants[0])[:60] if isinstance(constants[0], str) else constants[0]),
        listed=", ".join(map(_quoted, facts.values[:_SHOWN])) + (", …" if len(facts.values) > _SHOWN else ""),
        near=_quoted(spelt[near[0]]) if near else "",
    )


def _quoted(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else f"{value}"
