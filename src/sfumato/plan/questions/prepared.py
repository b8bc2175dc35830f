"""Which questions a prepared table makes a plain filter of."""

from __future__ import annotations

from collections.abc import Collection

from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.aggregates import statistic
from sfumato.plan.questions.nodes import Aggregate, Bounding, Scan

__all__ = ["fits_groups", "ready"]


def ready(node: Aggregate, grouping: Collection[str]) -> Bounding | None:
    """How a question of a prepared table is held within its limits by ranks; None: as of any other table.

    The ranks of groups where the question groups by just the columns that the table was prepared for, else
    those of rows. Where groups are to be chosen among the rows that pass a condition (GoogleSQL), ranks that
    were given before serve only if there is none.

    Args:
        node: The question.
        grouping: The columns that the table was prepared to be grouped by; empty: none.
    """
    if not isinstance(node.source, Scan) or node.levels or node.bounding not in (None, "choose"):
        return None
    keys = {each.expression.name if isinstance(each.expression, Column) else None for each in node.keys}
    is_before = node.bounding is None or node.predicate is None
    if grouping and keys == set(grouping) and is_before and fits_groups(node):
        return "grouped"
    return "prepared" if node.bounding is None else None


def fits_groups(node: Aggregate) -> bool:
    """Whether ranks of groups, and of rows in them, can answer a question that groups by just these.

    Not where a unit's total or average in a group is bounded, since that is made of all its rows there; not
    for quantiles and distinct values alone, which are counted over all groups together; and not where units
    are counted behind a condition: a unit counts by its first row in a group, and one whose first row does
    not pass would be lost, however many others do.
    """
    totals = any(each.bounds is not None and each.bounds[0] == "group" for each in node.aggregates)
    if totals or not node.keys:
        return False
    is_open = any(key.values is None for key in node.keys)
    if not is_open and all(statistic(each.function).external for each in node.aggregates):
        return False
    counts_units = is_open or any(each.function == "count_distinct" for each in node.aggregates)
    return node.predicate is None or not counts_units
