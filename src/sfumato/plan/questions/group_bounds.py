"""Aggregates with bounds for what a unit adds to a group: its count, its total or its average there."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.questions.aggregates import Part, statistic
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.schema import PrivacyUnit

__all__ = ["per_group"]


def per_group(call: AggregateCall, columns: Mapping[str, Facts], unit: PrivacyUnit) -> Part:
    """How an aggregate with bounds per group is measured: the clamp is on the unit's own figure.

    Raises:
        QueryRefused: for other aggregates, and where each row is a unit.
    """
    assert call.bounds is not None
    _, lower, upper = call.bounds
    if lower == upper == 0:
        raise QueryRefused("Bounds from 0 to 0 leave nothing to measure.", "Give an upper bound above 0.")
    if unit.column is None:
        raise QueryRefused(
            "Bounds per group are for units with several rows; here each row is a unit.",
            "Give bounds for each row: LEAST(GREATEST(x, 0), 100).",
        )
    return statistic(call.function).per_group(call, columns, lower, upper)
