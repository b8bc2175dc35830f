"""AVG: the middle of the range, plus the sum of the distances from it over the count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Literal

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.questions.aggregates._average import average_of, averages
from sfumato.plan.questions.aggregates.base import Linear, Part, Statistic, argument_of, arguments_of
from sfumato.plan.questions.bounding import Bounding, Scope
from sfumato.plan.questions.nodes import AggregateCall, Measurement
from sfumato.plan.questions.sums import Range, bounded_range, range_of
from sfumato.plan.questions.terms import Agg, Col, one

__all__ = ["STATISTICS", "mean"]


@dataclass(frozen=True, slots=True)
class Mean(Statistic):
    """AVG of numbers with a range."""

    bounds: ClassVar[Literal["group"]] = "group"
    noun: ClassVar[str] = "mean"
    own: ClassVar[str] = "average"

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """Around the middle of the range, or 0."""
        return averages(range_of(self.title, argument_of(call, columns), columns))

    def ways_over_all(
        self, call: AggregateCall, columns: Mapping[str, Facts], rows: int
    ) -> tuple[Part, ...] | None:
        """C + S/n of the sum S of the distances from a point c of the range."""
        known = range_of(self.title, argument_of(call, columns), columns)
        if known.nullable:
            return None
        # The middle itself is for reports that measure a variance as well, whose sum is around it.
        return tuple(_over_all(known, center, rows) for center in dict.fromkeys((known.center, known.middle)))

    def per_group(
        self, call: AggregateCall, columns: Mapping[str, Facts], lower: Fraction, upper: Fraction
    ) -> Part:
        """The average of units' own averages in each group, clamped."""
        known = replace(bounded_range(call.argument, columns, lower, upper), whole=False)
        center = bounded_range(call.argument, columns, lower, upper).middle
        figure = replace(known.total(center), per="average")
        anyone = Measurement("present", call.argument, per="total")  # 1 for a unit that has a value there
        return Part((figure, anyone), average_of(known, center))

    def what(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """Over rows; over units where each has one average in a group."""
        del bounding
        over = scope.whose if call.bounds is not None and call.bounds[0] == "group" else "rows"
        return f"mean of {arguments_of(call)} over {over}"


def _over_all(known: Range, center: Fraction, rows: int) -> Part:
    total = known.total(center)
    estimator = Linear(
        (0,),
        known.lower,
        known.upper,
        constant=center,
        weights=(Fraction(1, rows),),
        rows=rows,
        rounds=total.whole,  # sums of whole numbers are released as whole numbers
        averages=True,
    )
    return Part((total,), estimator)


STATISTICS = (Mean("mean", ("AVG", "MEAN")),)


def mean(column: str | Col) -> Agg:
    """The average of a column or expression with bounds."""
    return one("mean", column)
