"""HARMONIC_MEAN: one over the average reciprocal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import call as expression
from sfumato.plan.expressions.tree import literal
from sfumato.plan.questions.aggregates._images import image_of, positive_range
from sfumato.plan.questions.aggregates.base import Part, Statistic
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sums import range_of
from sfumato.plan.questions.terms import Agg, Col, one

__all__ = ["STATISTICS", "harmonic_mean"]


@dataclass(frozen=True, slots=True)
class HarmonicMean(Statistic):
    """The harmonic mean of a column or expression whose lower bound is above 0.

    Numbers outside of their bounds are held at these.
    """

    buys_bounds: ClassVar[bool] = False
    noun: ClassVar[str] = "harmonic mean"

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """By the average of the reciprocals."""
        numbers = positive_range(self.title, call, columns)
        reciprocals = range_of(self.title, expression("divide", literal(1.0), numbers.argument), columns)
        return image_of(reciprocals, numbers, np.reciprocal, lambda m: m**-2.0)


STATISTICS = (HarmonicMean("harmonic_mean", ("HARMONIC_MEAN",)),)


def harmonic_mean(column: str | Col) -> Agg:
    """The harmonic mean of a column or expression whose lower bound is above 0."""
    return one("harmonic_mean", column)
