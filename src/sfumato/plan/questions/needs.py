"""Which way of bounding a question gets: what it asks for, what fits, or what a prepared table serves."""

from __future__ import annotations

from collections.abc import Collection

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.aggregates import statistic
from sfumato.plan.questions.bounding import Bounding, Needs, boundings
from sfumato.plan.questions.nodes import Aggregate, Scan

__all__ = ["fitting", "needs_of", "ready"]


def needs_of(node: Aggregate) -> Needs:
    """What a question needs of the way in which its units are bounded."""
    calls = node.aggregates
    return Needs(
        keyed=bool(node.keys),
        is_open=any(key.values is None for key in node.keys),
        totals=any(call.bounds is not None and call.bounds[0] == "group" for call in calls),
        units=any(call.function == "count_distinct" for call in calls),
        sums=not all(statistic(call.function).external for call in calls),
        condition=node.predicate is not None,
    )


def fitting(node: Aggregate) -> Bounding:
    """How the units of a question are bounded: as it asks, where that serves; else the first way that does.

    Raises:
        QueryRefused: if it asks for one that does not serve.
    """
    needs, wanted = needs_of(node), node.bounding
    if wanted is not None and wanted.serves(needs):
        return wanted
    if wanted is not None and wanted.asked:
        raise QueryRefused(*wanted.lacking)
    return next(way for way in boundings().values() if way.asked and way.serves(needs))


def ready(node: Aggregate, grouping: Collection[str]) -> Bounding | None:
    """How a question of a prepared table is held within its limits by ranks; None: as of any other table.

    The ranks of groups where the question groups by just the columns that the table was prepared for, else
    those of rows. Where groups are to be chosen among the rows that pass a condition (GoogleSQL), ranks that
    were given before serve only if there is none.

    Args:
        node: The question.
        grouping: The columns that the table was prepared to be grouped by; empty: none.
    """
    if not isinstance(node.source, Scan) or node.levels:
        return None
    keys = {key.expression.name if isinstance(key.expression, Column) else None for key in node.keys}
    needs, own = needs_of(node), bool(grouping) and keys == set(grouping)
    ways = boundings().values()
    return next((way for way in ways if way.replaces(node.bounding, needs, own=own)), None)
