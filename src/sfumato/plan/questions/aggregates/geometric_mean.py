"""GEOMETRIC_MEAN: the exponential of the average logarithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import call as expression
from sfumato.plan.questions.aggregates._images import image_of, positive_range
from sfumato.plan.questions.aggregates.base import Part, Statistic
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sums import range_of
from sfumato.plan.questions.terms import Agg, Col, one

__all__ = ["STATISTICS", "geometric_mean"]


@dataclass(frozen=True, slots=True)
class GeometricMean(Statistic):
    """The geometric mean of a column or expression whose lower bound is above 0.

    Numbers outside of their bounds are held at these.
    """

    buys_bounds: ClassVar[bool] = False
    noun: ClassVar[str] = "geometric mean"

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """By the average of the logarithms."""
        numbers = positive_range(self.title, call, columns)
        logarithms = range_of(self.title, expression("ln", numbers.argument), columns)
        return image_of(logarithms, numbers, np.exp, np.exp)


STATISTICS = (GeometricMean("geometric_mean", ("GEOMETRIC_MEAN", "GEOMEAN")),)


def geometric_mean(column: str | Col) -> Agg:
    """The geometric mean of a column or expression whose lower bound is above 0."""
    return one("geometric_mean", column)
