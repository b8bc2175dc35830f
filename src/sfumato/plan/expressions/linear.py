"""Linear forms: what an expression comes to if all it does is to add things up and to scale them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from sfumato.plan.expressions.tree import Call, Column, Expression, Literal

__all__ = ["LinearForm", "linear_form"]


class LinearForm(Protocol):
    """constant + Σ coefficient_i·variable_i, over fractions, or over arrays with an entry for each row."""

    @property
    def constant(self) -> Any:
        """What is added."""

    @property
    def fixed(self) -> bool:
        """Whether no variable enters."""

    def scaled(self, factor: Any) -> Self:
        """The form times a constant."""

    def plus(self, other: Self) -> Self:
        """The sum of two forms."""


F = TypeVar("F", bound=LinearForm)


def linear_form(expression: Expression, leaf: Callable[[Column | Literal], F | None]) -> F | None:
    """The linear form of an expression; None if it is not one.

    Args:
        expression: Over any columns.
        leaf: The form of a column or a constant, if it has one.
    """
    if not isinstance(expression, Call):
        return leaf(expression)
    if expression.function not in _RULES:
        return None
    arguments = [linear_form(argument, leaf) for argument in expression.arguments]
    known = [argument for argument in arguments if argument is not None]
    return _RULES[expression.function](*known) if len(known) == len(arguments) else None


def _product(first: Any, second: Any) -> Any:
    if first.fixed:
        return second.scaled(first.constant)
    return first.scaled(second.constant) if second.fixed else None


def _quotient(first: Any, second: Any) -> Any:
    return first.scaled(1 / second.constant) if second.fixed and np.all(second.constant) else None


_RULES: Mapping[str, Callable[..., Any]] = {
    "add": lambda first, second: first.plus(second),
    "subtract": lambda first, second: first.plus(second.scaled(-1)),
    "negate": lambda only: only.scaled(-1),
    "multiply": _product,
    "divide": _quotient,
    "to_float": lambda only: only,
}
