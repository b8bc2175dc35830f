"""SUM: of the numbers themselves, or of their distances from the middle of the range, and the count."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Literal

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.questions.aggregates.base import Linear, Part, Statistic, argument_of
from sfumato.plan.questions.cut import Cut
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sums import bounded_range, range_of
from sfumato.plan.questions.terms import Agg, Col, one

__all__ = ["STATISTICS", "sum"]

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True)
class Sum(Statistic):
    """SUM of numbers with a range."""

    bounds: ClassVar[Literal["group"]] = "group"
    noun: ClassVar[str] = "sum"
    own: ClassVar[str] = "total"

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """Measured directly; the second way is for reports that need the count or the average anyway."""
        known = range_of(self.title, argument_of(call, columns), columns)
        direct = Part((known.total(_ZERO),), Linear((0,), whole=known.whole, averages=True))
        if not known.middle:
            return (direct,)
        both = Linear((0, 1), whole=known.whole, weights=(_ONE, known.middle), averages=True)
        return direct, Part((known.total(known.middle), known.present()), both)

    def ways_over_all(
        self, call: AggregateCall, columns: Mapping[str, Facts], rows: int
    ) -> tuple[Part, ...] | None:
        """S + c·n of the sum S of the distances from a point c of the range."""
        known = range_of(self.title, argument_of(call, columns), columns)
        if known.nullable:
            return None
        center = known.center
        total = Linear((0,), whole=known.whole, constant=center * rows, rows=rows, averages=True)
        return (Part((known.total(center),), total),)

    def per_group(
        self, call: AggregateCall, columns: Mapping[str, Facts], lower: Fraction, upper: Fraction
    ) -> Part:
        """A unit's own total in each group, clamped."""
        known = bounded_range(call.argument, columns, lower, upper)
        total = replace(known.total(_ZERO), per="total")
        return Part((total,), Linear((0,), whole=known.whole, averages=True))

    def cut(self, call: AggregateCall, columns: Mapping[str, Facts]) -> Cut:
        """Each row that is left out would add its own number.

        A unit's own total is held, not its rows: where no number is below 0, only an upper bound cuts, as
        long as the lower one raises none; where none is above 0, the other way round.
        """
        if call.bounds is None or call.bounds[0] == "row":
            known = range_of(self.title, argument_of(call, columns), columns)
            return Cut.of_rows(known.lower, known.upper, some=known.nullable)
        assert call.argument is not None
        facts, (_, lower, upper) = facts_of(call.argument, columns), call.bounds
        if facts.lower is not None and facts.lower >= 0 and lower <= 0:
            return Cut((0.0, math.inf), takes=0.0, least=0.0)
        if facts.upper is not None and facts.upper <= 0 and upper >= 0:
            return Cut((-math.inf, 0.0), adds=0.0, most=0.0)
        return Cut()

    def result(self, argument: Facts | None) -> Facts:
        """A whole number if the argument is."""
        whole = argument is not None and argument.kind != "float"
        return Facts("integer" if whole else "float", nullable=True)


STATISTICS = (Sum("sum", ("SUM",)),)


def sum(column: str | Col) -> Agg:
    """The sum of a column or expression with bounds."""
    return one("sum", column)
