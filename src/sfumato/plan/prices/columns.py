"""What the noise of a result column is made of, as far as that can be known before the data are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.numeric.exact import Rational
from sfumato.plan.expressions.tree import Column, Expression, Literal, columns_of
from sfumato.plan.intervals.forms import Blend
from sfumato.plan.intervals.noise import Noise, risk_of
from sfumato.plan.questions.aggregates import Estimator, Linear
from sfumato.plan.questions.nodes import Output
from sfumato.plan.questions.slots import Slot

__all__ = ["Form", "form_of"]


@dataclass(frozen=True, slots=True)
class Form:
    """A column's noise as a linear form of the measurements' noise.

    Attributes:
        name: The column.
        terms: Measurement and coefficient; empty for keys and other public columns, None where nothing can be
            said beforehand.
        per_row: Whether the coefficients are to be divided by the number of rows in a group: then they are
            those at a typical place, and the width is an expectation instead of a guarantee.
        most: What the width cannot exceed, if anything.
        rounding: What rounding the column to whole numbers adds.
    """

    name: str
    terms: tuple[tuple[int, float], ...] | None
    per_row: bool = False
    most: float = math.inf
    rounding: float = 0.0

    @property
    def public(self) -> bool:
        """Whether the column has no noise at all."""
        return self.terms == ()

    @property
    def single(self) -> tuple[int, float] | None:
        """The one measurement that it depends on, whatever the data are; None otherwise."""
        return self.terms[0] if self.terms is not None and len(self.terms) == 1 and not self.per_row else None

    def width(self, noises: Sequence[Noise], confidence: Rational, rows: float | None = None) -> float | None:
        """The half-width at this confidence; None where it cannot be told, as for ratios without `rows`."""
        if self.terms is None or (self.per_row and rows is None):
            return None
        if not self.terms:
            return 0.0
        if (only := self.single) is not None:
            return abs(only[1]) * noises[only[0]].quantile(confidence)
        blend = Blend(tuple(noises[index] for index, _ in self.terms))
        size = rows if self.per_row and rows is not None else 1.0
        form = np.array([[coefficient / size] for _, coefficient in self.terms])
        wide = float(blend.width(form, risk_of(confidence))[0]) + self.rounding
        return min(wide, self.most)


def form_of(output: Output, aggregates: Sequence[Estimator | Slot]) -> Form:
    """What is known about a column's noise from its expression over keys and aggregates."""
    used = {name for name in columns_of(output.expression) if name.startswith("a")}
    if not used:
        return Form(output.name, ())
    if isinstance(output.expression, Column):
        estimator = aggregates[int(output.expression.name[1:])]
        if isinstance(estimator, Slot):
            return Form(output.name, None)
        if not isinstance(estimator, Linear):
            return _ratio(output.name, estimator)
    combined = _linear(output.expression)
    if combined is None:
        return Form(output.name, None)
    terms: dict[int, float] = {}
    rounding = 0.0
    for index, factor in combined[0].items():
        estimator = aggregates[index]
        if not isinstance(estimator, Linear):
            return Form(output.name, None)
        if estimator.whole and len(estimator.parts) > 1:
            rounding += abs(float(factor)) / 2
        for part, weight in zip(estimator.parts, estimator.weights, strict=True):
            terms[part] = terms.get(part, 0.0) + float(factor * weight)
    return Form(output.name, tuple(sorted(terms.items())), rounding=rounding)


def _ratio(name: str, estimator: Estimator) -> Form:
    most = math.inf
    if estimator.lower is not None and estimator.upper is not None:
        most = float(estimator.upper - estimator.lower)
    terms: dict[int, float] = {}
    for part, gradient in zip(estimator.parts, estimator.gradients(), strict=True):
        terms[part] = terms.get(part, 0.0) + gradient * estimator.scale
    return Form(name, tuple(sorted(terms.items())), per_row=True, most=most)


# ── linear expressions over aggregates: their coefficients, and a constant ──

_Linear = tuple[dict[int, Fraction], Fraction]


def _linear(expression: Expression) -> _Linear | None:
    if isinstance(expression, Column):
        return ({int(expression.name[1:]): Fraction(1)}, Fraction(0)) if expression.name[0] == "a" else None
    if isinstance(expression, Literal):
        value = expression.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return {}, Fraction(value)
    if expression.function not in _RULES:
        return None
    arguments = [_linear(each) for each in expression.arguments]
    known = [each for each in arguments if each is not None]
    return _RULES[expression.function](*known) if len(known) == len(arguments) else None


def _scaled(side: _Linear, factor: Fraction) -> _Linear:
    return {index: value * factor for index, value in side[0].items()}, side[1] * factor


def _added(left: _Linear, right: _Linear) -> _Linear:
    both = {index: left[0].get(index, 0) + right[0].get(index, 0) for index in left[0] | right[0]}
    return {index: Fraction(value) for index, value in both.items() if value}, left[1] + right[1]


def _times(left: _Linear, right: _Linear) -> _Linear | None:
    if left[0] and right[0]:
        return None
    return _scaled(left, right[1]) if not right[0] else _scaled(right, left[1])


def _over(left: _Linear, right: _Linear) -> _Linear | None:
    return None if right[0] or not right[1] else _scaled(left, 1 / right[1])


_RULES: Mapping[str, Callable[..., _Linear | None]] = {
    "add": _added,
    "subtract": lambda left, right: _added(left, _scaled(right, Fraction(-1))),
    "negate": lambda side: _scaled(side, Fraction(-1)),
    "multiply": _times,
    "divide": _over,
}
