"""Scalar expressions: columns, literals and calls of functions from one closed list."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
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
    "only_column",
    "to_wire",
]

Scalar: TypeAlias = bool | int | float | str | datetime.date | None


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


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the closed list `plan.expressions.functions.FUNCTIONS`, applied to arguments.

    `case` takes condition, value, condition, value, …, default; `in` takes the value and the literals.
    """

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Column | Literal | Call


def call(function: str, *arguments: Expression) -> Call:
    """A call, with its arguments written out."""
    return Call(function, arguments)


def literal(value: Scalar) -> Literal:
    """The constant with the kind that its Python type says."""
    kinds: tuple[tuple[type, Kind], ...] = (
        (bool, "boolean"),
        (int, "integer"),
        (float, "float"),
        (str, "text"),
        (datetime.date, "date"),
    )
    if value is None:
        return Literal(None, None)
    for kind_type, kind in kinds:
        if isinstance(value, kind_type) and not isinstance(value, datetime.datetime):
            return Literal(value, kind)
    raise InvalidParameter(
        f"A constant must be a number, text, date or truth value, not {type(value).__name__}."
    )


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns that occur in it, with repetitions."""
    if isinstance(expression, Column):
        yield expression.name
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns_of(argument)


def only_column(expression: Expression) -> Column | None:
    """The one column that occurs in it; None if there are several, or none."""
    names = set(columns_of(expression))
    return Column(*names) if len(names) == 1 else None


def to_wire(expression: Expression) -> Any:
    """Plain lists and text: the same for equal expressions, different for different ones."""
    if isinstance(expression, Column):
        return ["column", expression.name]
    if isinstance(expression, Literal):
        value = expression.value
        shown = value.isoformat() if isinstance(value, datetime.date) else value
        return ["literal", expression.kind, float(shown).hex() if isinstance(shown, float) else shown]
    return ["call", expression.function, *(to_wire(argument) for argument in expression.arguments)]


def from_wire(data: Any) -> Expression:
    """The expression that `to_wire` wrote."""
    match data:
        case ["column", str(name)]:
            return Column(name)
        case ["literal", "date", str(text)]:
            return Literal(datetime.date.fromisoformat(text), "date")
        case ["literal", "float", str(text)]:
            return Literal(float.fromhex(text), "float")
        case ["literal", kind, value]:
            return Literal(value, kind)
        case ["call", str(name), *arguments]:
            return Call(name, tuple(from_wire(argument) for argument in arguments))
    raise InvalidParameter("This is not a stored expression.")
