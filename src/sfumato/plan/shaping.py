"""What is made of released groups: their order, the first of them, those that satisfy a condition. Free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.assemble import Assembly
from sfumato.plan.expressions.names import nearest
from sfumato.plan.expressions.normal import conjunction
from sfumato.plan.expressions.tree import Expression, columns_of
from sfumato.plan.prices.plan import Plan
from sfumato.plan.questions.nodes import OrderItem, Report
from sfumato.plan.questions.relations import substituted

__all__ = ["first", "keep", "put_in_order"]

_MOST = 2**53


def put_in_order(plan: Plan, columns: Sequence[str], descending: Sequence[bool]) -> Plan:
    """The groups in the order of these columns of the result.

    Raises:
        QueryRefused: if there is no such column, or only the first groups are left.
    """
    _check_whole(plan.report, "sort")
    named = _named(plan.report, columns)
    items = tuple(
        OrderItem(named[name], descending=down, nulls_first=False)
        for name, down in zip(columns, descending, strict=True)
    )
    return replace(plan, report=replace(plan.report, order=items))


def first(plan: Plan, count: int) -> Plan:
    """At most so many groups, the first in their order.

    Raises:
        InvalidParameter: unless it is a whole number of at least 0.
    """
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _MOST:
        raise InvalidParameter("head and limit take a whole number of groups, such as head(10).")
    limit = count if plan.report.limit is None else min(count, plan.report.limit)
    return replace(plan, report=replace(plan.report, limit=limit))


def keep(plan: Plan, conditions: Sequence[Expression]) -> Plan:
    """Those of the groups whose released values satisfy these conditions.

    Raises:
        QueryRefused: if there is no such column, it is no condition, or only the first groups are left.
    """
    report, node = plan.report, plan.report.child
    _check_whole(report, "filter")
    assembly = Assembly(
        plan.rows, [] if node.predicate is None else [node.predicate], [key.expression for key in node.keys]
    )
    for call in node.aggregates:
        assembly.aggregate(call)
    judged = [] if report.having is None else [report.having]
    for condition in conditions:
        named = _named(report, list(columns_of(condition)))
        judged.append(assembly.condition(substituted(condition, named)))
    return replace(plan, report=replace(report, having=conjunction(judged)))


def _named(report: Report, columns: Sequence[str]) -> dict[str, Expression]:
    known = {output.name: output.expression for output in report.columns}
    for name in columns:
        if name not in known:
            fix = nearest(str(name), list(known), "Columns")
            raise QueryRefused(f"The result has no column {str(name)[:60]!r}.", fix)
    return known


def _check_whole(report: Report, method: str) -> None:
    if report.limit is not None:
        raise QueryRefused(
            f"{method} comes after head or limit, which leave only the first groups.",
            f"Call {method} before head or limit.",
        )
