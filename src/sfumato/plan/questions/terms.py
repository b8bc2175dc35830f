"""Columns and aggregates written in Python, which the builder takes."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, call, literal
from sfumato.plan.questions.nodes import AggregateCall, AggregateName

__all__ = ["Agg", "Col", "col", "expression_of", "one", "two"]

Value: TypeAlias = "Col | bool | int | float | str | datetime.date | None"


@dataclass(frozen=True, slots=True, eq=False)
class Col:
    """An expression over the columns of a table, made with Python's operators: `col("age") >= 18`.

    Use `&`, `|` and `~` between conditions, in parentheses: `(col("age") >= 18) & (col("sex") == "M")`.
    """

    expression: Expression

    def __add__(self, other: Value) -> Col:
        return self._with("add", other)

    def __radd__(self, other: Value) -> Col:
        return self._after("add", other)

    def __sub__(self, other: Value) -> Col:
        return self._with("subtract", other)

    def __rsub__(self, other: Value) -> Col:
        return self._after("subtract", other)

    def __mul__(self, other: Value) -> Col:
        return self._with("multiply", other)

    def __rmul__(self, other: Value) -> Col:
        return self._after("multiply", other)

    def __truediv__(self, other: Value) -> Col:
        return self._with("divide", other)

    def __rtruediv__(self, other: Value) -> Col:
        return self._after("divide", other)

    def __floordiv__(self, other: Value) -> Col:
        return self._with("int_divide", other)

    def __mod__(self, other: Value) -> Col:
        return self._with("modulo", other)

    def __neg__(self) -> Col:
        return Col(call("negate", self.expression))

    def __eq__(self, other: object) -> Col:  # type: ignore[override]
        return self._with("equal", other)

    def __ne__(self, other: object) -> Col:  # type: ignore[override]
        return self._with("not_equal", other)

    def __lt__(self, other: Value) -> Col:
        return self._with("less", other)

    def __le__(self, other: Value) -> Col:
        return self._with("less_equal", other)

    def __gt__(self, other: Value) -> Col:
        return self._with("greater", other)

    def __ge__(self, other: Value) -> Col:
        return self._with("greater_equal", other)

    def __and__(self, other: Value) -> Col:
        return self._with("and", other)

    def __or__(self, other: Value) -> Col:
        return self._with("or", other)

    def __invert__(self) -> Col:
        return Col(call("not", self.expression))

    def __bool__(self) -> bool:
        raise InvalidParameter("Write & | ~ between conditions, in parentheses, instead of and, or, not.")

    def is_in(self, values: Iterable[Any]) -> Col:
        """Whether it is one of these constants."""
        return Col(Call("in", (self.expression, *(literal(value) for value in values))))

    def between(self, lower: Value, upper: Value) -> Col:
        """Whether it lies between two values, both included."""
        return (self >= lower) & (self <= upper)

    def is_null(self) -> Col:
        """Whether it is missing."""
        return Col(call("is_null", self.expression))

    def fill_null(self, value: Value) -> Col:
        """The value, or this one where it is missing."""
        return self._with("coalesce", value)

    def apply(self, function: str, *arguments: Value) -> Col:
        """Any function of the list in the SQL guide, by name: `col("day").apply("year")`."""
        return Col(Call(function, (self.expression, *(_expression(argument) for argument in arguments))))

    def clip(self, lower: Value, upper: Value) -> Col:
        """The value held within bounds, which lets a column without declared bounds be summed."""
        return Col(call("least", call("greatest", self.expression, _expression(lower)), _expression(upper)))

    def _with(self, function: str, other: object) -> Col:
        return Col(call(function, self.expression, _expression(other)))

    def _after(self, function: str, other: object) -> Col:
        return Col(call(function, _expression(other), self.expression))

    __hash__ = None  # type: ignore[assignment]


def col(name: str) -> Col:
    """The column of this name."""
    return Col(Column(name))


def _expression(value: object) -> Expression:
    if isinstance(value, Col):
        return value.expression
    return literal(value)  # type: ignore[arg-type]  # refused there if it is not a constant


def expression_of(value: str | Col) -> Expression:
    """The expression that a name or a column means."""
    return Column(value) if isinstance(value, str) else _expression(value)


@dataclass(frozen=True, slots=True, eq=False)
class Agg:
    """An aggregate, or arithmetic over aggregates: `sum("cost") / count()`.

    Attributes:
        calls: The aggregates in it.
        expression: What is made of them, over `a0`, … in their order.
    """

    calls: tuple[AggregateCall, ...]
    expression: Expression

    def __add__(self, other: Agg | float) -> Agg:
        return _joined("add", self, other)

    def __radd__(self, other: float) -> Agg:
        return _joined("add", other, self)

    def __sub__(self, other: Agg | float) -> Agg:
        return _joined("subtract", self, other)

    def __rsub__(self, other: float) -> Agg:
        return _joined("subtract", other, self)

    def __mul__(self, other: Agg | float) -> Agg:
        return _joined("multiply", self, other)

    def __rmul__(self, other: float) -> Agg:
        return _joined("multiply", other, self)

    def __truediv__(self, other: Agg | float) -> Agg:
        return _joined("divide", self, other)

    def __rtruediv__(self, other: float) -> Agg:
        return _joined("divide", other, self)

    def clip(self, lower: float, upper: float | None = None) -> Agg:
        """The released value held within bounds: post-processing, at no cost."""
        floor = _joined("greatest", self, lower)
        return floor if upper is None else _joined("least", floor, upper)


def _joined(function: str, left: Agg | float, right: Agg | float) -> Agg:
    calls: tuple[AggregateCall, ...] = ()
    parts: list[Expression] = []
    for side in (left, right):
        if isinstance(side, Agg):
            parts.append(_shifted(side.expression, len(calls)))
            calls += side.calls
        else:
            parts.append(literal(side))
    return Agg(calls, Call(function, tuple(parts)))


def _shifted(expression: Expression, by: int) -> Expression:
    if isinstance(expression, Column):
        return Column(f"a{int(expression.name[1:]) + by}")
    if isinstance(expression, Literal):
        return expression
    return Call(expression.function, tuple(_shifted(argument, by) for argument in expression.arguments))


def one(function: AggregateName, argument: str | Col | None) -> Agg:
    """An aggregate of one expression, or of all rows."""
    return Agg(
        (AggregateCall(function, None if argument is None else expression_of(argument)),), Column("a0")
    )


def two(function: AggregateName, first: str | Col, second: str | Col) -> Agg:
    """An aggregate of two expressions."""
    return Agg((AggregateCall(function, expression_of(first), expression_of(second)),), Column("a0"))
