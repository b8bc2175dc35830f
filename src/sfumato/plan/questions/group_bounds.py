"""Aggregates with bounds for what a unit adds to a group: its count, its total or its average there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.questions.aggregates import Estimator, Part
from sfumato.plan.questions.nodes import AggregateCall, Measurement
from sfumato.plan.questions.sums import Range
from sfumato.schema import PrivacyUnit

__all__ = ["per_group"]


def per_group(each: AggregateCall, columns: Mapping[str, Facts], unit: PrivacyUnit) -> Part:
    """How an aggregate with bounds per group is measured: the clamp is on the unit's own figure.

    Raises:
        QueryRefused: for other aggregates, and where each row is a unit.
    """
    assert each.bounds is not None
    _, lower, upper = each.bounds
    if lower == upper == 0:
        raise QueryRefused("Bounds from 0 to 0 leave nothing to measure.", "Give an upper bound above 0.")
    if unit.column is None:
        raise QueryRefused(
            "Bounds per group are for units with several rows; here each row is a unit.",
            "Give bounds for each row: LEAST(GREATEST(x, 0), 100).",
        )
    if each.function == "count":
        nullable = each.argument is not None and facts_of(each.argument, columns).nullable
        counted = Measurement("present", each.argument) if nullable else Measurement("rows")
        clamped = replace(counted, lower=_whole(lower), upper=_whole(upper), per="total")
        return Part((clamped,), Estimator("count", (0,), whole=True))
    if each.function not in ("sum", "mean") or each.argument is None:
        raise QueryRefused(
            "Bounds per group are for COUNT, SUM and AVG.",
            "For others give bounds for each row, as contribution_bounds_per_row or in the expression.",
        )
    facts = facts_of(each.argument, columns)
    if not facts.numeric:
        raise QueryRefused("SUM and AVG are for numbers.", "Aggregate a number, or COUNT it.")
    whole = facts.kind == "integer" and lower.denominator == upper.denominator == 1
    known = Range(each.argument, lower, upper, whole, nullable=True)
    if each.function == "sum":
        total = replace(known.total(Fraction(0)), per="total")
        return Part((total,), Estimator("sum", (0,), half=known.reach(Fraction(0)), whole=whole))
    center = known.middle
    average = replace(replace(known, whole=False).total(center), per="average")
    estimator = Estimator("mean", (0, 1), center=center, half=known.reach(center), lower=lower, upper=upper)
    anyone = Measurement("present", each.argument, per="total")  # 1 for a unit that has a value there
    return Part((average, anyone), estimator)


def _whole(bound: Fraction) -> int:
    if bound.denominator != 1 or not 0 <= bound <= 2**40:
        raise QueryRefused(
            "The bounds of a COUNT are whole numbers from 0 on.",
            "Write contribution_bounds_per_group => (0, 5).",
        )
    return int(bound)
