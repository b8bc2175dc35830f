"""COUNT of rows, of values that are present, and of units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Literal

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.tree import Literal as Constant
from sfumato.plan.expressions.tree import call, literal
from sfumato.plan.expressions.written import written_rows
from sfumato.plan.questions.aggregates.base import (
    Linear,
    Part,
    Statistic,
    argument_of,
    arguments_of,
    nullable,
)
from sfumato.plan.questions.bounding import Bounding, Scope
from sfumato.plan.questions.cut import Cut
from sfumato.plan.questions.nodes import AggregateCall, Measurement
from sfumato.plan.questions.terms import Agg, Col, one

__all__ = ["STATISTICS", "count", "count_distinct", "count_if"]

_MOST = 2**40
_SOME = Cut.of_rows(Fraction(0), Fraction(1), some=True)


@dataclass(frozen=True, slots=True)
class Count(Statistic):
    """COUNT(*), or of the rows where the argument is present: all rows where it cannot be missing."""

    bounds: ClassVar[Literal["group"]] = "group"
    buys_bounds: ClassVar[bool] = False
    own: ClassVar[str] = "number"

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """One count."""
        return (Part((_counted(call, columns),), Linear((0,), whole=True)),)

    def ways_over_all(
        self, call: AggregateCall, columns: Mapping[str, Facts], rows: int
    ) -> tuple[Part, ...] | None:
        """The public number itself, which costs nothing."""
        if nullable(argument_of(call, columns), columns):
            return None
        return (Part((), Linear((), whole=True, constant=Fraction(rows), weights=(), rows=rows)),)

    def per_group(
        self, call: AggregateCall, columns: Mapping[str, Facts], lower: Fraction, upper: Fraction
    ) -> Part:
        """A unit's own count in each group, clamped."""
        clamped = replace(_counted(call, columns), lower=_whole(lower), upper=_whole(upper), per="total")
        return Part((clamped,), Linear((0,), whole=True))

    def what(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """Rows; or units, where a unit's rows in a group count as one."""
        if call.argument is not None:
            return written_rows(call.argument)
        units = scope.unit.column is not None and call.bounds is None and bounding.once(scope)
        return f"distinct {scope.whose}, not rows" if units else "rows"

    def limit(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """Of rows; or of a unit's groups."""
        if call.argument is not None or not bounding.once(scope):
            return bounding.rows_limit(scope)
        return bounding.units_limit(scope) or "each once in a group"

    def cut(self, call: AggregateCall, columns: Mapping[str, Facts]) -> Cut:
        """Each row that is left out would add 1, or nothing where the argument is missing.

        Bounds for a unit's own number raise it where they begin above what it has: 1, or 0 where the argument
        may be missing.
        """
        some = nullable(argument_of(call, columns), columns)
        rows = Cut.of_rows(Fraction(1), Fraction(1), some=some)
        raised = call.bounds is not None and call.bounds[1] > (0 if some else 1)
        return replace(rows, takes=math.inf) if raised else rows

    def result(self, argument: Facts | None) -> Facts:
        """A whole number, never missing."""
        del argument
        return Facts("integer", nullable=False)


def _counted(call: AggregateCall, columns: Mapping[str, Facts]) -> Measurement:
    argument = argument_of(call, columns)
    return Measurement("present", argument) if nullable(argument, columns) else Measurement("rows")


def _whole(bound: Fraction) -> int:
    if bound.denominator != 1 or not 0 <= bound <= _MOST:
        raise QueryRefused(
            "The bounds of a COUNT are whole numbers of at least 0.",
            "Write contribution_bounds_per_group => (0, 5).",
        )
    return int(bound)


@dataclass(frozen=True, slots=True)
class CountUnits(Statistic):
    """COUNT(DISTINCT unit), whatever the argument says: the parser lets only the unit's column through."""

    bounds: ClassVar[None] = None
    adds: ClassVar[bool] = False
    buys_bounds: ClassVar[bool] = False

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """One count of units."""
        del call, columns
        return (Part((Measurement("units"),), Linear((0,), whole=True)),)

    def what(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """Units, by their column; without one each row is a unit."""
        del call, bounding
        return "rows" if scope.unit.column is None else f"distinct {scope.whose}"

    def limit(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """Of a unit's groups."""
        del call
        return bounding.units_limit(scope)

    def cut(self, call: AggregateCall, columns: Mapping[str, Facts]) -> Cut:
        """Each group of a unit that is left out would add 1."""
        del call, columns
        return replace(_SOME, whole="all groups", by_groups=True)

    def result(self, argument: Facts | None) -> Facts:
        """A whole number, never missing."""
        del argument
        return Facts("integer", nullable=False)


@dataclass(frozen=True, slots=True)
class CountValues(Statistic):
    """COUNT(DISTINCT x) and APPROX_COUNT_DISTINCT: how many values units vouch for, a question of its own."""

    bounds: ClassVar[None] = None
    adds: ClassVar[bool] = False
    external: ClassVar[bool] = True
    buys_bounds: ClassVar[bool] = False

    def what(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """Distinct values."""
        del scope, bounding
        return f"distinct values of {arguments_of(call)}"

    def limit(self, call: AggregateCall, scope: Scope, bounding: Bounding) -> str:
        """Of the values that a unit vouches for, in all groups together."""
        del call, bounding
        return f"at most {scope.unit.max_rows} of each {scope.whose} counted"

    def cut(self, call: AggregateCall, columns: Mapping[str, Facts]) -> Cut:
        """Each value that nobody vouches for would add 1."""
        del call, columns
        return _SOME

    def result(self, argument: Facts | None) -> Facts:
        """A whole number, never missing."""
        del argument
        return Facts("integer", nullable=False)


STATISTICS = (Count("count", ("COUNT",)), CountUnits("count_distinct", ()), CountValues("count_values", ()))


def count(column: str | Col | None = None) -> Agg:
    """The number of rows, or of rows where the column is present."""
    return one("count", column)


def count_if(condition: Col) -> Agg:
    """The number of rows for which a condition holds: `count_if(col("age") >= 65)`.

    Raises:
        InvalidParameter: if it is no condition over columns.
    """
    if not isinstance(condition, Col):
        raise InvalidParameter('count_if takes a condition such as col("age") >= 65.')
    return one("count", Col(call("case", condition.expression, literal(1), Constant(None, None))))


def count_distinct(column: str | Col) -> Agg:
    """The number of distinct values; of the privacy unit's column, the number of units."""
    return one("count_distinct", column)
