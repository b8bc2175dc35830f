"""Questions written in Python as plain data: the calls of the builder, and what makes the question of them.

A client sends which methods it called, in their order, with columns, aggregates, keys and constants. Whoever
gets that calls the same methods again: of a closed list, with values that are made here and by nobody else.
So whatever is sent is a question that somebody could have written in Python, or is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.plan.builder import Selection
from sfumato.plan.expressions.tree import Expression, Literal, literal, names_of
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.terms import Agg, Col, level_of
from sfumato.schema import Keys
from sfumato.session.carried.values import Room, pack_expression, pack_scalar, unpack_scalar

if TYPE_CHECKING:
    from sfumato.session.query import Query

__all__ = ["GROUPS", "QUESTIONS", "ROWS", "Recorded", "pack_calls", "replayed"]

Recorded: TypeAlias = tuple[str, tuple[Any, ...], Mapping[str, Any]]
"""A method with its arguments."""

ROWS = frozenset({"filter", "with_columns", "join", "group_by"})
QUESTIONS = frozenset({"agg", "value_counts", "crosstab", "histogram", "unique", "describe"})
GROUPS = frozenset({"sort", "head", "filter"})

_MOST_CALLS, _MOST_PARTS = 200, 20_000
_MEANS = {"mean", "geometric_mean", "harmonic_mean"}
_OF_ONE = {
    "count",
    "count_distinct",
    "sum",
    "min",
    "max",
    "std_samp",
    "std_pop",
    "var_samp",
    "var_pop",
} | _MEANS
_OF_TWO = {"covar_samp", "covar_pop", "corr"}


def pack_calls(calls: Sequence[Recorded]) -> list[Any]:
    """The calls as plain data.

    Raises:
        InvalidParameter: if an argument has no such form.
    """
    try:
        return [
            [method, [_pack(one) for one in given], {name: _pack(one) for name, one in named.items()}]
            for method, given, named in calls
        ]
    except TypeError as error:
        raise InvalidParameter(f"A question over HTTP cannot hold this: {error}.") from None


def _pack(value: object) -> Any:
    match value:
        case Col():
            return {"col": pack_expression(value.expression), "as": value.name}
        case Agg():
            calls = [_pack_aggregate(call) for call in value.calls]
            return {"agg": calls, "of": pack_expression(value.expression), "as": value.name}
        case Keys():
            rows = [[pack_scalar(one) for one in row] for row in value.rows]
            return {"keys": list(value.columns), "rows": rows}
        case np.ndarray() | range():
            return [pack_scalar(one) for one in value]
        case list() | tuple():
            return [_pack(one) for one in value]
    return pack_scalar(value)


def _pack_aggregate(call: AggregateCall) -> list[Any]:
    if call.bounds is not None:
        raise TypeError("an aggregate with bounds of its own")
    arguments = [pack_expression(one) for one in (call.argument, call.other) if one is not None]
    return [call.function, arguments, None if call.level is None else str(call.level)]


def replayed(asked: Selection[Query] | Query, calls: Sequence[Any]) -> Query:
    """The question that these calls ask.

    Args:
        asked: A table of a session, or a question already: then its groups are sorted and chosen.
        calls: What `pack_calls` gave, or anything else.

    Privacy:
        Nothing rests on who wrote the calls: each is one that `Session.table` offers to an analyst, and is
        checked there. No name in them is looked up but in the lists of this file, and nothing is run.

    Raises:
        InvalidParameter: if they are no calls of the builder.
        QueryRefused: as the builder refuses.
    """
    if len(calls) > _MOST_CALLS:
        raise InvalidParameter(f"A question has at most {_MOST_CALLS} calls.")
    room = Room(longest=_MOST_PARTS)
    for call in calls:
        method, given, named = _call(call, room)
        if method not in (ROWS | QUESTIONS if isinstance(asked, Selection) else GROUPS):
            raise InvalidParameter(f"A question has no call {method[:40]!r} there.")
        asked = _called(getattr(asked, method), given, named)
    if isinstance(asked, Selection):
        raise InvalidParameter("A question ends with what is asked of its rows, such as agg.")
    return asked


def _call(data: Any, room: Room) -> tuple[str, list[Any], dict[str, Any]]:
    match data:
        case [str(method), list(given), dict(named)]:
            return (
                method,
                [_read(one, room) for one in given],
                {name: _read(one, room) for name, one in named.items()},
            )
    raise InvalidParameter("A call is its name, a list of arguments, and those that have names.")


def _called(method: Any, given: list[Any], named: dict[str, Any]) -> Any:
    try:
        inspect.signature(method).bind(*given, **named)
        return method(*given, **named)
    except SfumatoError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError):
        raise InvalidParameter(f"{method.__name__} does not take such arguments.") from None


def _read(data: Any, room: Room) -> Any:
    """An argument.

    Raises:
        InvalidParameter: if it is none.
    """
    try:
        match data:
            case {"col": list(parts), "as": None | str() as name, **rest} if not rest:
                return Col(room.expression(parts, _constant), name)
            case {"agg": list(calls), "of": list(parts), "as": None | str() as name, **rest} if not rest:
                return _aggregate(
                    [_aggregated(call, room) for call in calls], room.expression(parts, _constant), name
                )
            case {"keys": list(columns), "rows": list(rows), **rest} if not rest:
                if not all(isinstance(column, str) for column in columns):
                    raise TypeError("no names")
                return Keys.of(columns, [[unpack_scalar(one) for one in row] for row in rows])
            case list():
                return [unpack_scalar(one) if not isinstance(one, list) else _read(one, room) for one in data]
        return unpack_scalar(data)
    except SfumatoError:
        raise
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        raise InvalidParameter("An argument of a call cannot be read.") from None


def _aggregate(calls: list[AggregateCall], expression: Expression, name: str | None) -> Agg:
    known = {f"a{place}" for place in range(len(calls))}
    if not calls or not known.issuperset(names_of(expression)):
        raise ValueError("aggregates that are not there")
    return Agg(tuple(calls), expression, name)


def _aggregated(data: Any, room: Room) -> AggregateCall:
    match data:
        case ["count", [], None]:
            return AggregateCall("count")
        case ["quantile", [list(argument)], str(level)]:
            return AggregateCall("quantile", room.expression(argument, _constant), level=level_of(level))
        case [str(function), [list(argument)], None] if function in _OF_ONE:
            return AggregateCall(function, room.expression(argument, _constant))
        case [str(function), [list(first), list(second)], None] if function in _OF_TWO:
            return AggregateCall(
                function, room.expression(first, _constant), room.expression(second, _constant)
            )
    raise ValueError("no aggregate")


def _constant(value: Any, _: Any) -> Literal:
    """A constant, of the kind that its value says, whatever is said of it."""
    constant = unpack_scalar(value)
    return Literal(None, None) if constant is None else literal(constant)
