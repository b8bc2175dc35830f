"""Values of plans, quotes and profiles as plain JSON, and back: a closed list of kinds and classes."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.numeric.exact import read_decimal, read_fraction
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, literal
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.quote import ColumnQuote, MeasurementQuote
from sfumato.plan.prices.terms import Terms
from sfumato.plan.questions.bounding import Bounding, boundings
from sfumato.plan.questions.declared import Declared
from sfumato.plan.questions.nodes import (
    Aggregate,
    AggregateCall,
    Bar,
    Block,
    Joined,
    Key,
    OrderItem,
    Output,
    PerUnit,
    Public,
    Report,
    Scan,
    United,
    Where,
    Windowed,
)
from sfumato.plan.questions.over import Over
from sfumato.plan.questions.profile import Profile
from sfumato.plan.questions.sources import WindowCall
from sfumato.session.carried.kinds import checked

__all__ = ["Room", "pack", "pack_expression", "pack_scalar", "unpack", "unpack_expression", "unpack_scalar"]

Plain: TypeAlias = Any
"""What JSON has."""

_MOST_PARTS, _DEEPEST = 200_000, 400
_CLASSES: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        Aggregate,
        AggregateCall,
        Bar,
        Block,
        ColumnQuote,
        Declared,
        Joined,
        Key,
        MeasurementQuote,
        Noise,
        OrderItem,
        Output,
        Over,
        PerUnit,
        Profile,
        Public,
        Report,
        Scan,
        Terms,
        United,
        Where,
        WindowCall,
        Windowed,
    )
}


_SCALARS: tuple[tuple[type, str, Callable[[Any], str], Callable[[str], Any]], ...] = (
    (float, "float", float.hex, float.fromhex),
    (Fraction, "fraction", str, read_fraction),
    (Decimal, "decimal", str, read_decimal),
    (datetime.datetime, "moment", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    (datetime.date, "date", datetime.date.isoformat, datetime.date.fromisoformat),
    (datetime.time, "clock", datetime.time.isoformat, datetime.time.fromisoformat),
)
_READ = {name: read for _, name, _, read in _SCALARS}


def pack_scalar(value: object) -> Plain:
    """A constant: JSON's own kinds as they are, others with their kind.

    Raises:
        TypeError: if it is no constant.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    for kind, name, write, _ in _SCALARS:
        if isinstance(value, kind):
            return {name: write(value)}
    raise TypeError(f"{type(value).__name__} is no constant")


def unpack_scalar(data: Plain) -> Any:
    """The constant that `pack_scalar` wrote; a number of JSON with a point is a float.

    Raises:
        ValueError or TypeError: if it is none.
    """
    if data is None or isinstance(data, bool | str | int | float):
        return data
    if isinstance(data, dict) and len(data) == 1:
        ((name, text),) = data.items()
        if name in _READ and isinstance(text, str):
            return _READ[name](text)
    raise ValueError("no constant")


def pack_expression(expression: Expression) -> list[Plain]:
    """Its parts, each after those that it is made of, which it names by their places; itself is the last."""
    parts: list[Plain] = []
    places: dict[int, int] = {}
    waiting: list[tuple[Expression, bool]] = [(expression, False)]
    while waiting:
        node, ready = waiting.pop()
        if id(node) in places:
            continue
        if isinstance(node, Call) and not ready:
            waiting.append((node, True))
            waiting += [(argument, False) for argument in reversed(node.arguments)]
            continue
        match node:
            case Column():
                part: list[Plain] = ["column", node.name]
            case Literal():
                part = ["literal", pack_scalar(node.value), node.kind]
            case Call():
                part = ["call", node.function, [places[id(argument)] for argument in node.arguments]]
        places[id(node)] = len(parts)
        parts.append(part)
    return parts


class Room:
    """How large the expressions of one document may become.

    A part may be used several times, and its own parts too: a few lines can stand for more calls than there
    are bytes in the world. So each use counts, over all expressions of a document.

    Args:
        most: How many parts there may be, each counted as often as it is used.
        longest: How many one expression may have.
    """

    def __init__(self, most: int = _MOST_PARTS, longest: int = _MOST_PARTS) -> None:
        self._left, self._longest = most, longest

    def expression(self, parts: Sequence[Plain], constant: Callable[[Plain, Plain], Literal]) -> Expression:
        """The expression of these parts.

        Args:
            parts: What `pack_expression` wrote, or anything else.
            constant: Makes a constant of its value and its kind.

        Raises:
            ValueError or TypeError: if it is none.
            QueryRefused: if it is too large.
        """
        made: list[tuple[Expression, int, int]] = []
        for part in parts:
            within: list[tuple[Expression, int, int]] = []
            match part:
                case ["column", str(name)]:
                    node: Expression = Column(name)
                case ["literal", value, kind]:
                    node = constant(value, kind)
                case ["call", str(name), list(places)]:
                    if not all(type(place) is int and 0 <= place < len(made) for place in places):
                        raise ValueError("a part that is not there yet")
                    within = [made[place] for place in places]
                    node = Call(name, tuple(one for one, _, _ in within))
                case _:
                    raise ValueError("no part of an expression")
            size = 1 + sum(one for _, one, _ in within)
            depth = 1 + max((one for _, _, one in within), default=0)
            if size > min(self._left, self._longest) or depth > _DEEPEST:
                raise QueryRefused("The expression is too large.", "Ask for less in one question.")
            made.append((node, size, depth))
        if not made:
            raise ValueError("no expression")
        self._left -= made[-1][1]
        return made[-1][0]


def unpack_expression(parts: Plain, room: Room | None = None) -> Expression:
    """The expression that `pack_expression` wrote.

    Raises:
        ValueError or TypeError: if it is none.
        QueryRefused: if it is too large.
    """
    return (room or Room()).expression(parts, _constant)


def _constant(value: Plain, kind: Plain) -> Literal:
    if kind is None:
        return Literal(unpack_scalar(value), None)
    if not isinstance(kind, str):
        raise ValueError("no kind")
    return _typed(unpack_scalar(value), kind)


def _typed(constant: Any, kind: str) -> Literal:
    """A constant of its own kind; a whole number may be a float's, and NULL any one's."""
    known = literal(constant)
    if constant is not None and kind != known.kind and (known.kind, kind) != ("integer", "float"):
        raise ValueError("a constant of another kind")
    return Literal(constant, kind)  # type: ignore[arg-type]


def pack(value: object) -> Plain:
    """Any value of the closed list; sequences are lists.

    Raises:
        TypeError: if it is of another kind.
    """
    if isinstance(value, Column | Literal | Call):
        return {"expression": pack_expression(value)}
    if isinstance(value, Bounding):
        return {"bounding": value.name}
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value, dtype=np.float64)
        return {"array": base64.b64encode(data.tobytes()).decode()}
    if isinstance(value, Mapping):
        return {"map": [[pack(key), pack(one)] for key, one in value.items()]}
    if is_dataclass(value) and _CLASSES.get(type(value).__name__) is type(value):
        return {"of": type(value).__name__, "with": [pack(getattr(value, one.name)) for one in fields(value)]}
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return [pack(one) for one in value]
    return pack_scalar(value)


def unpack(data: Plain, room: Room | None = None) -> Any:
    """The value that `pack` wrote; its sequences are tuples.

    Args:
        data: Plain data.
        room: What all expressions of a document share; by default those of this value.

    Raises:
        ValueError, TypeError or KeyError: if it is none.
        QueryRefused: if its expressions are too large.
    """
    room = room or Room()
    match data:
        case list():
            return tuple([unpack(one, room) for one in data])
        case {"expression": list(parts)}:
            return unpack_expression(parts, room)
        case {"bounding": str(name)}:
            return boundings()[name]
        case {"array": str(text)}:
            return np.frombuffer(base64.b64decode(text), dtype=np.float64)
        case {"map": pairs}:
            return {unpack(key, room): unpack(value, room) for key, value in pairs}
        case {"of": str(name), "with": values}:
            return checked(_CLASSES[name](*[unpack(one, room) for one in values]))
    return unpack_scalar(data)
