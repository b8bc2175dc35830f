"""Scalar expressions: columns, literals and calls of functions from one closed list."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.moments import as_clock, as_moment
from sfumato.plan.expressions.names import in_sql
from sfumato.schema import Kind

__all__ = [
    "Call",
    "Column",
    "Expression",
    "Literal",
    "call",
    "columns_of",
    "from_wire",
    "literal",
    "names_of",
    "only_column",
    "to_wire",
]

Scalar: TypeAlias = bool | int | float | str | datetime.date | datetime.time | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table, or, over results, a key (`k0`, …) or an aggregate (`a0`, …)."""

    name: str

    def __str__(self) -> str:
        """As a query writes it."""
        return in_sql(self.name)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that the question itself holds.

    Attributes:
        value: The constant; None is NULL.
        kind: Its type; for NULL the type is open.
    """

    value: Scalar
    kind: Kind | None


class _Noted:
    """What was worked out about a value, kept with it: no field, so that it is not compared or stored."""

    __slots__ = ("_notes",)
    _notes: dict[str, Any]

    @property
    def notes(self) -> dict[str, Any]:
        """By name; each follows from the value alone, or holds what else it follows from."""
        try:
            return self._notes
        except AttributeError:
            object.__setattr__(self, "_notes", {})
            return self._notes


@dataclass(frozen=True, slots=True)
class Call(_Noted):
    """A function of the closed list `plan.expressions.functions.FUNCTIONS`, applied to arguments.

    `case` takes condition, value, condition, value, …, default; `in` takes the value and the literals.
    """

    function: str
    arguments: tuple[Expression, ...]

    def __hash__(self) -> int:
        """That of its parts, worked out once."""
        notes = self.notes
        if "hash" not in notes:
            notes["hash"] = hash((self.function, self.arguments))
        return int(notes["hash"])

    def replaced(self, function: str, arguments: tuple[Expression, ...]) -> Call:
        """A call of this function with these arguments; the same one where nothing changes."""
        same = function == self.function and len(arguments) == len(self.arguments)
        if same and all(map(operator.is_, arguments, self.arguments)):
            return self
        return Call(function, arguments)


Expression: TypeAlias = Column | Literal | Call
_KINDS: dict[type, Kind] = {
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "text",
    datetime.date: "date",
}
_TIMES: dict[type, tuple[Kind, Callable[[object], Scalar]]] = {
    datetime.datetime: ("timestamp", as_moment),
    datetime.time: ("time", as_clock),
}


def call(function: str, *arguments: Expression) -> Call:
    """A call, with its arguments written out."""
    return Call(function, arguments)


def literal(value: Scalar) -> Literal:
    """The constant with the kind that its Python type says."""
    if value is None:
        return Literal(None, None)
    if (kind := _KINDS.get(type(value))) is not None:
        return Literal(value, kind)
    for kind_type, (kind, whole) in _TIMES.items():
        if isinstance(value, kind_type):
            try:
                return Literal(whole(value), kind)
            except ValueError:
                raise InvalidParameter(
                    "A time must be in whole seconds: value.replace(microsecond=0)."
                ) from None
    for kind_type, kind in _KINDS.items():
        if isinstance(value, kind_type):
            return Literal(value, kind)
    raise InvalidParameter(
        f"A constant must be a number, text, date, time or truth value, not {type(value).__name__}."
    )


def names_of(expression: Expression) -> tuple[str, ...]:
    """The names of the columns that occur in it, each once, in the order in which they occur."""
    if isinstance(expression, Column):
        return (expression.name,)
    if isinstance(expression, Literal):
        return ()
    notes = expression.notes
    if "names" not in notes:
        named = (
            name for part in expression.arguments if not isinstance(part, Literal) for name in names_of(part)
        )
        notes["names"] = tuple(dict.fromkeys(named))
    names: tuple[str, ...] = notes["names"]
    return names


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns that occur in it, with repetitions."""
    if isinstance(expression, Column):
        yield expression.name
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns_of(argument)


def only_column(expression: Expression) -> Column | None:
    """The one column that occurs in it; None if there are several, or none."""
    names = names_of(expression)
    return Column(*names) if len(names) == 1 else None


def to_wire(expression: Expression) -> Any:
    """Plain lists and text: the same for equal expressions, different for different ones."""
    if isinstance(expression, Column):
        return ["column", expression.name]
    if isinstance(expression, Literal):
        value = expression.value
        shown = value.isoformat() if isinstance(value, datetime.date | datetime.time) else value
        return ["literal", expression.kind, float(shown).hex() if isinstance(shown, float) else shown]
    return ["call", expression.function, *(to_wire(argument) for argument in expression.arguments)]


def from_wire(data: Any) -> Expression:
    """The expression that `to_wire` wrote."""
    match data:
        case ["column", str(name)]:
            return Column(name)
        case ["literal", "date", str(text)]:
            return Literal(datetime.date.fromisoformat(text), "date")
        case ["literal", "timestamp", str(text)]:
            return Literal(as_moment(text), "timestamp")
        case ["literal", "time", str(text)]:
            return Literal(as_clock(text), "time")
        case ["literal", "float", str(text)]:
            return Literal(float.fromhex(text), "float")
        case ["literal", kind, value]:
            return Literal(value, kind)
        case ["call", str(name), *arguments]:
            return Call(name, tuple(from_wire(argument) for argument in arguments))
    raise InvalidParameter("This is not a stored expression.")
