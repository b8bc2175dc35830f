"""One condition each: which rows keep to it, where it can hold, and how it is kept in files."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.functions import evaluate
from sfumato.plan.expressions.tree import (
    Call,
    Column,
    Expression,
    Literal,
    from_wire,
    literal,
    names_of,
    to_wire,
)
from sfumato.synth._rules.values import Values

__all__ = ["Condition", "Follows", "Rule", "constants_of", "is_plain", "rule_from_data", "turns_at_constants"]

Bools = NDArray[np.bool_]
_FREE = object()
_PLAIN = {
    "and", "or", "not", "is_null", "less", "less_equal", "greater", "greater_equal",
    "add", "subtract", "negate", "add_days", "subtract_days", "days_between",
}  # fmt: skip


class Rule(Protocol):
    """What holds in every row."""

    @property
    def text(self) -> str:
        """As it was given, for people."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it is about."""
        ...

    @property
    def constants(self) -> tuple[Any, ...]:
        """Numbers and dates that it compares with."""
        ...

    @property
    def plain(self) -> bool:
        """Whether its truth in a cell of many numbers shows at `points`."""
        ...

    @property
    def steps(self) -> int:
        """How many operations it takes to try one row."""
        ...

    def holds(self, values: Mapping[str, Values]) -> Bools:
        """Which rows keep to it; a condition that is NULL holds, as that of a CHECK."""
        ...

    def to_data(self) -> Any:
        """Plain data that `rule_from_data` reads back."""
        ...


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of the house's own expressions.

    Attributes:
        text: As it was given.
        expression: What it means.
    """

    text: str
    expression: Expression

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it names."""
        return names_of(self.expression)

    @property
    def constants(self) -> tuple[Any, ...]:
        """All constants in it."""
        return tuple(constants_of(self.expression))

    @property
    def plain(self) -> bool:
        """Whether it compares sums of columns, and is equal to nothing but constants."""
        return is_plain(self.expression)

    @property
    def steps(self) -> int:
        """The calls in it."""
        return _calls(self.expression)

    def holds(self, values: Mapping[str, Values]) -> Bools:
        """See `Rule`."""
        return np.asarray(evaluate(self.expression, values).filled(True), bool)

    def to_data(self) -> Any:
        """See `Rule`."""
        return ["condition", self.text, to_wire(self.expression)]


@dataclass(frozen=True, slots=True)
class Follows:
    """A column whose value follows from another's.

    Attributes:
        text: As it was given.
        by: The column that decides.
        column: The column that follows.
        mapping: Pairs of values; a value of `by` that is not among them goes with any.
    """

    text: str
    by: str
    column: str
    mapping: tuple[tuple[Any, Any], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Both columns."""
        return self.by, self.column

    @property
    def constants(self) -> tuple[Any, ...]:
        """None: both have one value a cell."""
        return ()

    @property
    def plain(self) -> bool:
        """Both have one value a cell."""
        return True

    @property
    def steps(self) -> int:
        """It is looked up."""
        return 1

    def holds(self, values: Mapping[str, Values]) -> Bools:
        """See `Rule`."""
        wanted = {_same(one): _same(other) for one, other in self.mapping}
        first, second = values[self.by], values[self.column]
        known = ~(np.ma.getmaskarray(first) | np.ma.getmaskarray(second))
        found = np.ones(len(first), bool)
        pairs = zip(first.data[known].tolist(), second.data[known].tolist(), strict=True)
        found[known] = [wanted.get(one, _FREE) in (_FREE, other) for one, other in pairs]
        return found

    def to_data(self) -> Any:
        """See `Rule`."""
        pairs = [[to_wire(literal(one)), to_wire(literal(other))] for one, other in self.mapping]
        return ["follows", self.text, self.by, self.column, pairs]


def rule_from_data(data: Any) -> Rule:
    """The rule that `to_data` wrote."""
    match data:
        case ["condition", str(text), expression]:
            return Condition(text, from_wire(expression))
        case ["follows", str(text), str(by), str(column), list(pairs)]:
            mapping = tuple((_constant(one), _constant(other)) for one, other in pairs)
            return Follows(text, by, column, mapping)
    raise InvalidParameter("This is not a stored constraint.")


def _constant(data: Any) -> Any:
    found = from_wire(data)
    assert isinstance(found, Literal)
    return found.value


def _same(value: Any) -> Any:
    """A value as arrays hold it: whole numbers as doubles."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if number else value


def _calls(expression: Expression) -> int:
    return 1 + sum(map(_calls, expression.arguments)) if isinstance(expression, Call) else 0


def constants_of(expression: Expression) -> Iterator[Any]:
    """The numbers, dates and times that an expression holds."""
    if isinstance(expression, Literal):
        if isinstance(expression.value, int | float | datetime.date | datetime.time):
            yield expression.value
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from constants_of(argument)


def is_plain(expression: Expression) -> bool:
    """Whether a condition that changes its truth within cells of numbers shows that at their `points`.

    Sums are greatest and least at the ends of cells, and equality with a constant changes at that constant.
    Anything else, such as a remainder, can change in between alone.
    """
    if not isinstance(expression, Call):
        return True
    arguments, function = expression.arguments, expression.function
    varying = [argument for argument in arguments if names_of(argument)]
    if function in ("equal", "not_equal", "in"):
        return turns_at_constants(expression)
    if function in ("multiply", "divide"):
        is_linear = len(varying) <= 1 and (function == "multiply" or not names_of(arguments[1]))
        return is_linear and all(map(is_plain, arguments))
    if function in ("and", "or") and sum(not turns_at_constants(argument) for argument in arguments) > 1:
        return False
    return function in _PLAIN and all(map(is_plain, arguments))


def turns_at_constants(expression: Expression) -> bool:
    """Whether columns are compared with constants alone, each as it is."""
    if not isinstance(expression, Call):
        return True
    varying = [argument for argument in expression.arguments if names_of(argument)]
    if expression.function in ("and", "or", "not"):
        return all(map(turns_at_constants, varying))
    return len(varying) <= 1 and all(isinstance(argument, Column) for argument in varying)
