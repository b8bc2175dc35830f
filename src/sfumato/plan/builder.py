"""Questions written in Python: the same plans as SQL gives, from columns, aggregates and keys."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, show
from sfumato.plan.assemble import Assembly, settled
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, call, literal
from sfumato.plan.questions.nodes import AggregateCall, AggregateName, Output, Report
from sfumato.schema import Keys, PrivateTable

__all__ = [
    "Agg",
    "Col",
    "Selection",
    "col",
    "corr",
    "count",
    "count_distinct",
    "covar",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "std",
    "sum",
    "var",
]

Q = TypeVar("Q")
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
        return Col(Call(function, (self.expression, *(_expression(each) for each in arguments))))

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
    return literal(value)  # type: ignore[arg-type]  # refused there if it is no constant


def _column(value: str | Col) -> Expression:
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
    return Call(expression.function, tuple(_shifted(each, by) for each in expression.arguments))


def _one(function: AggregateName, argument: str | Col | None) -> Agg:
    return Agg((AggregateCall(function, None if argument is None else _column(argument)),), Column("a0"))


def count(column: str | Col | None = None) -> Agg:
    """The number of rows, or of rows where the column is present."""
    return _one("count", column)


def count_distinct(column: str | Col) -> Agg:
    """The number of distinct values; of the privacy unit's column, the number of units."""
    return _one("count_distinct", column)


def sum(column: str | Col) -> Agg:
    """The sum of a column or expression with bounds."""
    return _one("sum", column)


def mean(column: str | Col) -> Agg:
    """The average of a column or expression with bounds."""
    return _one("mean", column)


def var(column: str | Col, *, sample: bool = True) -> Agg:
    """The variance of a column or expression with bounds."""
    return _one("var_samp" if sample else "var_pop", column)


def std(column: str | Col, *, sample: bool = True) -> Agg:
    """The standard deviation of a column or expression with bounds."""
    return _one("std_samp" if sample else "std_pop", column)


def covar(first: str | Col, second: str | Col, *, sample: bool = True) -> Agg:
    """The covariance of two columns or expressions with bounds, over the rows where both are present."""
    return _two("covar_samp" if sample else "covar_pop", first, second)


def corr(first: str | Col, second: str | Col) -> Agg:
    """The correlation of two columns or expressions with bounds, over the rows where both are present."""
    return _two("corr", first, second)


def min(column: str | Col) -> Agg:
    """The least value of a column or expression with bounds."""
    return _one("min", column)


def max(column: str | Col) -> Agg:
    """The greatest value of a column or expression with bounds."""
    return _one("max", column)


def quantile(column: str | Col, level: Rational) -> Agg:
    """The value that this part of all values of a column or expression with bounds does not exceed.

    Raises:
        InvalidParameter: unless 0 ≤ level ≤ 1.
    """
    exact = as_fraction(level, "level")
    if not 0 <= exact <= 1:
        raise InvalidParameter(f"The level of a quantile must lie between 0 and 1, not {show(exact)}.")
    return Agg((AggregateCall("quantile", _column(column), level=exact),), Column("a0"))


def median(column: str | Col) -> Agg:
    """The middle value of a column or expression with bounds."""
    return quantile(column, Fraction(1, 2))


def _two(function: AggregateName, first: str | Col, second: str | Col) -> Agg:
    return Agg((AggregateCall(function, _column(first), _column(second)),), Column("a0"))


@dataclass(frozen=True, slots=True)
class Selection(Generic[Q]):
    """Rows of one table on their way to an aggregate: `s.table("visits").filter(…).group_by(…).agg(…)`.

    Attributes:
        table: The private table.
        make: What turns a finished plan into a query.
        predicates: What rows must satisfy.
        groupings: What they are grouped by, under which names.
        keys: The public values of some of them, where the question lists them.
    """

    table: PrivateTable
    make: Callable[[Report], Q]
    predicates: tuple[Expression, ...] = ()
    groupings: tuple[tuple[str, Expression], ...] = ()
    keys: tuple[Keys, ...] = ()

    def filter(self, *predicates: Col) -> Selection[Q]:
        """Only the rows for which all of these hold."""
        if not all(isinstance(each, Col) for each in predicates):
            raise InvalidParameter('filter takes conditions such as col("age") >= 18.')
        return replace(self, predicates=self.predicates + tuple(each.expression for each in predicates))

    def group_by(self, *columns: str | Keys, **expressions: Col) -> Selection[Q]:
        """One result row for each public key: columns, `Keys` with their values, or named expressions."""
        added: list[tuple[str, Expression]] = []
        for each in columns:
            names = each.columns if isinstance(each, Keys) else (each,)
            added += [(name, Column(name)) for name in names]
        added += [(name, each.expression) for name, each in expressions.items()]
        listed = tuple(each for each in columns if isinstance(each, Keys))
        return replace(self, groupings=self.groupings + tuple(added), keys=self.keys + listed)

    def agg(self, *unnamed: Agg, **aggregates: Agg) -> Q:
        """The question: one named aggregate for each column of the result."""
        if unnamed or not aggregates or not all(isinstance(each, Agg) for each in aggregates.values()):
            raise InvalidParameter('agg takes named aggregates: agg(n=sf.count(), spend=sf.mean("amount")).')
        listed = [
            Call("in", (Column(name), *(literal(row[place]) for row in each.rows)))
            for each in self.keys
            for place, name in enumerate(each.columns)
        ]
        keys = [settled(expression, self.table) for _, expression in self.groupings]
        made = Assembly(self.table, [*self.predicates, *listed], keys)
        outputs = [Output(name, Column(f"k{i}")) for i, (name, _) in enumerate(self.groupings)]
        for name, each in aggregates.items():
            called = {f"a{i}": made.aggregate(self._known(call)) for i, call in enumerate(each.calls)}
            outputs.append(Output(name, made.over_results(_renamed(each.expression, called))))
        return self.make(made.report(tuple(outputs), combinations=self._combinations(made, len(keys))))

    def _known(self, asked: AggregateCall) -> AggregateCall:
        """The aggregate as plans have it: a count of units has no argument, that of other values has."""
        unit = self.table.unit.column
        if asked.function == "count_distinct":
            if unit is not None and asked.argument == Column(unit):
                return AggregateCall("count_distinct")
            asked = replace(asked, function="count_values")
        argument, other = (
            None if each is None else settled(each, self.table) for each in (asked.argument, asked.other)
        )
        return replace(asked, argument=argument, other=other)

    def _combinations(self, made: Assembly, count: int) -> tuple[tuple[Any, ...], ...] | None:
        """Only the combinations that `Keys.of` lists; None where all are meant."""
        names = [name for name, _ in self.groupings]
        allowed = [
            (tuple(names.index(name) for name in each.columns), set(each.rows))
            for each in self.keys
            if len(each.rows) < math.prod(len(set(values)) for values in zip(*each.rows, strict=True))
        ]
        if not allowed:
            return None
        return tuple(
            row
            for row in itertools.product(*(made.values(f"k{i}") for i in range(count)))
            if all(tuple(row[place] for place in places) in rows for places, rows in allowed)
        )


def _renamed(expression: Expression, names: dict[str, str]) -> Expression:
    if isinstance(expression, Column):
        return Column(names[expression.name])
    if isinstance(expression, Literal):
        return expression
    return Call(expression.function, tuple(_renamed(each, names) for each in expression.arguments))
