"""Aggregates that are a monotone function of an average: of logarithms, or of reciprocals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import Literal, call
from sfumato.plan.intervals.forms import Floats
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.aggregates._average import Average, averages
from sfumato.plan.questions.aggregates.base import Ends, Estimator, Part, argument_of
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sums import Range, range_of

__all__ = ["image_of", "positive_range"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Image(Estimator):
    """f(m), for an average m.

    Attributes:
        average: How m follows from the same parts.
        function: f, which only rises or only falls over the range of m.
        slope: The size of its derivative.
    """

    average: Average
    function: Callable[[Any], Any]
    slope: Callable[[Any], Any]

    names: ClassVar[tuple[str, ...]] = (".sum", ".count")

    @property
    def scale(self) -> float:
        """The derivative at the middle of the range of m."""
        lower, upper = self.average.limits
        return float(self.slope((lower + upper) / 2))

    def gradients(self) -> tuple[float, ...]:
        """Those of m."""
        return self.average.gradients()

    def value(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Within the declared range."""
        image: NDArray[Any] = np.clip(self.function(self.average.value(parts)), *self.limits)
        return image

    def interval(self, parts: Sequence[Floats], noises: Sequence[Noise], *, risk: float) -> Ends:
        """The images of the ends: f is monotone."""
        one, two = (self.function(end) for end in self.average.interval(parts, noises, risk=risk))
        return np.clip(np.minimum(one, two), *self.limits), np.clip(np.maximum(one, two), *self.limits)


def image_of(
    inner: Range, numbers: Range, function: Callable[[Any], Any], slope: Callable[[Any], Any]
) -> tuple[Part, ...]:
    """How f of an average is measured: as the average alone would be.

    Args:
        inner: What is averaged.
        numbers: The numbers that it was made of, which bound the result.
        function: f.
        slope: The size of its derivative.
    """
    best = averages(inner)[0]
    assert isinstance(best.estimator, Average)
    image = Image(
        best.estimator.parts,
        numbers.lower,
        numbers.upper,
        average=best.estimator,
        function=function,
        slope=slope,
    )
    return (Part(best.measurements, image),)


def positive_range(name: str, asked: AggregateCall, columns: Mapping[str, Facts]) -> Range:
    """The numbers of an aggregate that is for positive ones, held above their lower bound.

    Raises:
        QueryRefused: unless the range begins above 0.
    """
    known = range_of(name, argument_of(asked, columns), columns)
    if known.lower <= 0:
        raise QueryRefused(
            f"{name} needs a lower bound above 0: a number near 0 could move it by any amount.",
            f"Hold the numbers within such bounds, as in {name}(LEAST(GREATEST(x, 1), 100)).",
        )
    lowest = call("greatest", known.argument, _least(known))  # NaN is above all numbers, and stays missing
    if known.nullable:
        lowest = call("case", call("not", call("is_null", known.argument)), lowest, Literal(None, None))
    return replace(known, argument=lowest)


def _least(known: Range) -> Literal:
    return Literal(int(known.lower), "integer") if known.whole else Literal(float(known.lower), "float")
