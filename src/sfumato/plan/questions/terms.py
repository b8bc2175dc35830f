"""Columns and aggregates written in Python, which the builder takes."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, show
from sfumato.plan.expressions.names import NotAList, nearest, no_method
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, call, literal
from sfumato.plan.questions.accessors import Dates, Texts
from sfumato.plan.questions.nodes import AggregateCall, AggregateName

__all__ = ["Agg", "Col", "col", "expression_of", "level_of", "one", "shorter_level", "two"]

Name: TypeAlias = str  # in a class with a method `str`
Value: TypeAlias = "Col | bool | int | float | str | datetime.date | datetime.time | None"

_FINEST: Final = 2**30  # denominators of levels that quantiles are selected at: `mechanisms._ranks.FINEST`
_KINDS: Final = {
    **dict.fromkeys((int, "int", "integer"), "to_integer"),
    **dict.fromkeys((float, "float", "double"), "to_float"),
    **dict.fromkeys((str, "str", "text"), "to_text"),
    **dict.fromkeys((bool, "bool", "boolean"), "to_boolean"),
    **dict.fromkeys((datetime.date, "date"), "to_date"),
    **dict.fromkeys((datetime.datetime, "timestamp"), "to_timestamp"),
    **dict.fromkeys((datetime.time, "time"), "to_time"),
}
_HABITS: Final = {
    "isin": "Write is_in([…]).",
    "isna": "Write is_null().",
    "isnull": "Write is_null().",
    "notna": "Write is_not_null().",
    "fillna": "Write fill_null(value).",
    "astype": "Write cast(float).",
    "avg": "Write mean().",
    "nunique": "Write n_unique().",
    "unique": 'Groups are found for a price: s.table("t").unique("x"); or count them: n_unique().',
    "value_counts": 'Write s.table("t").value_counts("x").',
    "floordiv": "Write //.",
    "name": 'Write alias("name").',
}
_AGG_HABITS: Final = {
    "over": "Aggregates are of groups; shares and ranks of released groups are free in SQL.",
    "filter": 'Write sf.count_if(condition), or sf.col("x").where(condition).sum().',
    "round": "Round the released numbers: r.to_pandas().round().",
}

_NOT_COMPARED: Final = (
    'An aggregate is compared once it is released: .agg(n=sf.count()).filter(sf.col("n") > 5).'
)


@dataclass(frozen=True, slots=True, eq=False)
class Col(NotAList):
    """An expression over the columns of a table, made with Python's operators: `col("age") >= 18`.

    Use `&`, `|` and `~` between conditions, in parentheses: `(col("age") >= 18) & (col("sex") == "M")`.

    Attributes:
        expression: What it computes.
        name: What a group or a new column made of it is called, where `alias` said so.
    """

    _not_a_list = (
        'A column has no values that can be shown or gone through. Write conditions such as sf.col("x") > 1 '
        'or sf.col("x").is_in([1, 2]), and .str.slice(0, 3) for a part of text.'
    )
    expression: Expression
    name: Name | None = None

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

    def __abs__(self) -> Col:
        return self.abs()

    def __getattr__(self, name: Name) -> Col:
        raise no_method(self, "A column", name, _HABITS)

    def alias(self, name: Name) -> Col:
        """The same under a name, for `group_by` and `with_columns`."""
        return replace(self, name=name)

    @property
    def dt(self) -> Dates:
        """What can be made of dates: `col("day").dt.month()`."""
        return Dates(self)

    @property
    def str(self) -> Texts:
        """What can be made of texts: `col("city").str.to_uppercase()`."""
        return Texts(self)

    def is_in(self, values: Iterable[Any], *others: Any) -> Col:
        """Whether it is one of these constants.

        Raises:
            InvalidParameter: unless they are a list.
        """
        if others or isinstance(values, Name) or not isinstance(values, Iterable):
            raise InvalidParameter("is_in takes a list of constants: is_in([1, 2]).")
        return Col(Call("in", (self.expression, *(literal(value) for value in values))))

    def between(self, lower: Value, upper: Value) -> Col:
        """Whether it lies between two values, both included."""
        return (self >= lower) & (self <= upper)

    def is_null(self) -> Col:
        """Whether it is missing."""
        return Col(call("is_null", self.expression))

    def is_not_null(self) -> Col:
        """Whether it is present."""
        return ~self.is_null()

    def where(self, condition: Col) -> Col:
        """The value where the condition holds, else missing: what an aggregate then leaves out."""
        return Col(call("case", _expression(condition), self.expression, Literal(None, None)))

    def abs(self) -> Col:
        """Its absolute value."""
        return self.apply("abs")

    def floor(self) -> Col:
        """The greatest whole number that is not above it."""
        return self.apply("floor")

    def ceil(self) -> Col:
        """The least whole number that is not below it."""
        return self.apply("ceil")

    def round(self, decimals: int = 0) -> Col:
        """Rounded to so many decimals."""
        return self.apply("round", *((decimals,) if decimals else ()))

    def cast(self, kind: object) -> Col:
        """Converted to another type; missing where that is impossible.

        Types: `int`, `float`, `str`, `bool`, and of `datetime` `date`, `datetime` and `time`.

        Raises:
            InvalidParameter: for any other type.
        """
        if kind not in _KINDS:
            fix = nearest(f"{kind}", ["int", "float", "str", "bool", "date", "timestamp", "time"], "Types")
            raise InvalidParameter(f"cast has no type {f'{kind}'[:40]!r}. {fix}")
        return self.apply(_KINDS[kind])

    def sum(self) -> Agg:
        """Its sum, for `agg`."""
        return one("sum", self)

    def mean(self) -> Agg:
        """Its mean, for `agg`."""
        return one("mean", self)

    def min(self) -> Agg:
        """Its least value, for `agg`."""
        return one("min", self)

    def max(self) -> Agg:
        """Its greatest value, for `agg`."""
        return one("max", self)

    def median(self) -> Agg:
        """Its middle value, for `agg`."""
        return self.quantile(Fraction(1, 2))

    def quantile(self, level: Rational) -> Agg:
        """The value that this share of all values does not exceed, for `agg`."""
        return Agg((AggregateCall("quantile", self.expression, level=level_of(level)),), Column("a0"))

    def std(self) -> Agg:
        """Its standard deviation, for `agg`."""
        return one("std_samp", self)

    def var(self) -> Agg:
        """Its variance, for `agg`."""
        return one("var_samp", self)

    def count(self) -> Agg:
        """In how many rows it is present, for `agg`."""
        return one("count", self)

    def n_unique(self) -> Agg:
        """How many distinct values it has, for `agg`; of the privacy unit's column, how many units."""
        return one("count_distinct", self)

    def fill_null(self, value: Value) -> Col:
        """The value, or this one where it is missing."""
        return self._with("coalesce", value)

    def apply(self, function: Name, *arguments: Value) -> Col:
        """Any function of the list in the SQL guide, by name: `col("day").apply("year")`."""
        return Col(
            Call(function.lower(), (self.expression, *(_expression(argument) for argument in arguments)))
        )

    def clip(self, lower: Value, upper: Value) -> Col:
        """The value held within bounds, which lets a column without declared bounds be summed; NULL stays."""
        held = call("least", call("greatest", self.expression, _expression(lower)), _expression(upper))
        return Col(Call("case", (call("is_null", self.expression), literal(None), held)))

    def _with(self, function: Name, other: object) -> Col:
        return Col(call(function, self.expression, _expression(other)))

    def _after(self, function: Name, other: object) -> Col:
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
class Agg(NotAList):
    """An aggregate, or arithmetic over aggregates: `sum("cost") / count()`.

    Attributes:
        calls: The aggregates in it.
        expression: What is made of them, over `a0`, … in their order.
        name: What it is called, where `alias` said so.
    """

    _not_a_list = "An aggregate is one number of each group, known once it is released: .agg(n=sf.count())."
    calls: tuple[AggregateCall, ...]
    expression: Expression
    name: str | None = None

    def __getattr__(self, name: str) -> Agg:
        raise no_method(self, "An aggregate", name, _AGG_HABITS)

    def alias(self, name: str) -> Agg:
        """The same under a name, for `agg`."""
        return replace(self, name=name)

    def __lt__(self, other: object) -> bool:
        raise InvalidParameter(_NOT_COMPARED)

    __le__ = __gt__ = __ge__ = __lt__

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


def level_of(level: Rational) -> Fraction:
    """The level of a quantile.

    Raises:
        InvalidParameter: unless 0 ≤ level ≤ 1, in nine digits.
    """
    exact = as_fraction(level, "level")
    if not 0 <= exact <= 1:
        raise InvalidParameter(f"The level of a quantile must lie between 0 and 1, not {show(exact)}.")
    if (nearest := shorter_level(exact)) is not None:
        raise InvalidParameter(f"The level of a quantile has at most nine digits: write {nearest}.")
    return exact


def shorter_level(level: Fraction) -> str | None:
    """The nearest level that can be asked for, where this one has too many digits."""
    if level.denominator <= _FINEST:
        return None
    digits = min(max(round(level * 10**9), 1), 10**9 - 1)
    return f"0.{digits:09}".rstrip("0")


def one(function: AggregateName, argument: str | Col | None) -> Agg:
    """An aggregate of one expression, or of all rows."""
    return Agg(
        (AggregateCall(function, None if argument is None else expression_of(argument)),), Column("a0")
    )


def two(function: AggregateName, first: str | Col, second: str | Col) -> Agg:
    """An aggregate of two expressions."""
    return Agg((AggregateCall(function, expression_of(first), expression_of(second)),), Column("a0"))
