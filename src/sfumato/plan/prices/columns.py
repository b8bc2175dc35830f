"""What the noise of a result column is made of, as far as that can be known before the data are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.numeric.exact import Rational
from sfumato.plan.expressions.linear import linear_form
from sfumato.plan.expressions.tree import Column, Literal, columns_of
from sfumato.plan.intervals.forms import Blend, Floats
from sfumato.plan.intervals.noise import Noise, risk_of
from sfumato.plan.questions.aggregates import Estimator, Linear
from sfumato.plan.questions.nodes import Output
from sfumato.plan.questions.slots import Slot

__all__ = ["Form", "form_of"]

_LARGEST = Fraction(10) ** 300  # beyond it, floats of sums could overflow


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
        blend, form = self._blended(noises, rows)
        wide = float(blend.width(form, risk_of(confidence))[0]) + self.rounding
        return min(wide, self.most)

    def within(
        self, wanted: float, noises: Sequence[Noise], confidence: Rational, rows: float | None = None
    ) -> bool:
        """Whether the half-width is known and at most `wanted`, without the search for it."""
        if self.terms is None or (self.per_row and rows is None):
            return False
        if not self.terms or self.single is not None:
            width = self.width(noises, confidence)
            return width is not None and width <= wanted
        blend, form = self._blended(noises, rows)
        return self.most <= wanted or blend.within(wanted - self.rounding, form, risk_of(confidence))

    def _blended(self, noises: Sequence[Noise], rows: float | None) -> tuple[Blend, Floats]:
        """The noises that it is made of, and how much of each."""
        terms = self.terms or ()
        size = rows if self.per_row and rows is not None else 1.0
        form = np.array([[coefficient / size] for _, coefficient in terms])
        return Blend(tuple(noises[index] for index, _ in terms)), form


def form_of(output: Output, aggregates: Sequence[Estimator | Slot]) -> Form:
    """What is known about a column's noise from its expression over keys and aggregates."""
    names = set(columns_of(output.expression))
    if any(name.startswith("w") for name in names):
        return Form(output.name, None)  # over other groups, which are not known yet
    used = {name for name in names if name.startswith("a")}
    if not used:
        return Form(output.name, ())
    if isinstance(output.expression, Column):
        estimator = aggregates[int(output.expression.name[1:])]
        if isinstance(estimator, Slot):
            return Form(output.name, None)
        if not isinstance(estimator, Linear):
            return _ratio(output.name, estimator)
    combined = linear_form(output.expression, _leaf)
    if combined is None:
        return Form(output.name, None)
    terms: dict[int, float] = {}
    rounding = 0.0
    for index, factor in combined.factors.items():
        estimator = aggregates[index]
        if not isinstance(estimator, Linear):
            return Form(output.name, None)
        if any(abs(factor * weight) > _LARGEST for weight in (Fraction(1), *estimator.weights)):
            return Form(output.name, None)  # infinite, or nearly so
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


@dataclass(frozen=True, slots=True)
class _Exact:
    """A linear form of the aggregates, by their numbers."""

    constant: Fraction
    factors: Mapping[int, Fraction]

    @property
    def fixed(self) -> bool:
        return not self.factors

    def scaled(self, factor: Fraction) -> _Exact:
        return _Exact(self.constant * factor, {at: value * factor for at, value in self.factors.items()})

    def plus(self, other: _Exact) -> _Exact:
        factors = dict(self.factors)
        for index, value in other.factors.items():
            factors[index] = factors.get(index, Fraction(0)) + value
        kept = {index: value for index, value in factors.items() if value}
        return _Exact(self.constant + other.constant, kept)


def _leaf(part: Column | Literal) -> _Exact | None:
    """An aggregate or a constant; what keys are worth is not known beforehand."""
    if isinstance(part, Column):
        return _Exact(Fraction(0), {int(part.name[1:]): Fraction(1)}) if part.name[0] == "a" else None
    if part.kind in ("integer", "float") and isinstance(part.value, int | float):
        return _Exact(Fraction(part.value), {})
    return None
