"""From a report to the integers that are read for it, and back.

The question that a report asks is put in a normal form here, so that the same question in another dress
(other names, another order of keys or aggregates) is recognised.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sfumato.errors import QueryRefused
from sfumato.plan.aggregates import AGGREGATES, Estimator, EstimatorKind, Part
from sfumato.plan.expressions import Column, Expression, to_wire
from sfumato.plan.facts import Facts, refine
from sfumato.plan.names import in_sql
from sfumato.plan.nodes import Aggregate, AggregateCall, Measured, Measurement, Report
from sfumato.plan.price import instrument
from sfumato.plan.relations import Readable, Rows, as_rows
from sfumato.plan.size import check_sizes
from sfumato.plan.split import importance, least_cost
from sfumato.schema import PrivacyUnit

__all__ = ["Estimator", "EstimatorKind", "Recipe", "measured_of", "recipe"]

_MOST_ROWS = 1_000_000
_HEAVIEST = 2**60  # times 2**30 of weight: 2**37 units of this weight fit in 128 bits


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is measured for a report and how its aggregates follow.

    Attributes:
        measured: The question: keys, combinations and measurements in canonical order.
        aggregates: One estimator for each aggregate of the report (`a0`, …), in its order.
        key_order: The report's key `k{i}` is the question's key `key_order[i]`.
        row_order: The report's row r (before HAVING, ORDER BY and LIMIT) is the question's combination
            `row_order[r]`.
        yardsticks: For each aggregate, how it would be measured if it were the only one.
    """

    measured: Measured
    aggregates: tuple[Estimator, ...]
    key_order: tuple[int, ...]
    row_order: tuple[int, ...]
    yardsticks: tuple[Part, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The aggregates as they are measured."""
        return tuple(Part(self.measured.measurements, each) for each in self.aggregates)


def recipe(report: Report, table: Readable) -> Recipe:
    """The measurements of a report and the way back from them.

    Raises:
        QueryRefused: if an aggregate's argument has no range, or there are too many groups.
    """
    node, rows_read = report.child, as_rows(table)
    unit = rows_read.unit
    if not node.aggregates:
        raise QueryRefused("Nothing is measured here.", "Ask for an aggregate, such as COUNT(*).")
    columns = _known(rows_read, node.predicate)
    ways = [_ways(each, columns, unit) for each in node.aggregates]
    order = sorted(range(len(node.keys)), key=lambda index: _written(node.keys[index].expression))
    rows, row_order = _sorted_rows(node, order)
    tool = partial(instrument, unit=unit, groups=len(rows), keyed=bool(order))
    found = _choose(dict(zip(node.aggregates, ways, strict=True)), lambda each: tool(each).size("laplace"))
    chosen = [found[each] for each in node.aggregates]
    needed = {part.measurements[index] for part in chosen for index in part.estimator.parts}
    if unit.column is not None and max(each.magnitude for each in needed) * unit.max_rows > _HEAVIEST:
        raise QueryRefused(
            "One unit could weigh more than sums of 128 bits are sure to hold.",
            "Declare tighter bounds for the column, or a smaller max_rows.",
        )
    measured = Measured(
        table=rows_read.name,
        version=rows_read.version,
        unit=tuple(unit.to_dict().items()),
        predicate=node.predicate,
        keys=tuple(node.keys[index] for index in order),
        combinations=rows,
        measurements=tuple(sorted(needed, key=lambda each: json.dumps(each.to_wire()))),
        source=None if rows_read.is_plain else rows_read.source,
    )
    arguments = {each.argument for each in measured.measurements}
    asked = (node.predicate, *(key.expression for key in measured.keys), *arguments)
    check_sizes(each for each in asked if each is not None)
    places = {each: index for index, each in enumerate(measured.measurements)}
    aggregates = tuple(
        replace(
            part.estimator, parts=tuple(places[part.measurements[index]] for index in part.estimator.parts)
        )
        for part in chosen
    )
    key_order = tuple(order.index(index) for index in range(len(order)))
    return Recipe(measured, aggregates, key_order, row_order, tuple(each[0] for each in ways))


def measured_of(report: Report, table: Readable) -> Measured:
    """The part of a report that reads data."""
    return recipe(report, table).measured


def _known(rows: Rows, predicate: Expression | None) -> Mapping[str, Facts]:
    return rows.columns if predicate is None else refine(predicate, rows.columns)


def _ways(each: AggregateCall, columns: Mapping[str, Facts], unit: PrivacyUnit) -> tuple[Part, ...]:
    if each.function == "count_distinct":
        own = None if unit.column is None else Column(unit.column)
        if each.argument not in (None, own):
            raise QueryRefused(
                "COUNT(DISTINCT …) is for the column whose values are the privacy units.",
                f"Write COUNT(DISTINCT {in_sql(unit.column)})."
                if unit.column
                else "Count rows with COUNT(*).",
            )
        each = AggregateCall("count" if own is None else each.function)  # without one, each row is a unit
    return AGGREGATES[each.function].plan(each.argument, columns)


def _written(expression: Expression) -> str:
    return json.dumps(to_wire(expression))


def _sorted_rows(
    node: Aggregate, order: Sequence[int]
) -> tuple[tuple[tuple[Any, ...], ...], tuple[int, ...]]:
    """The combinations in canonical order, and where each row of the report is among them."""
    if node.combinations is None:
        lists = [key.values or () for key in node.keys]
        count = math.prod(map(len, lists))
        rows: Iterable[tuple[Any, ...]] = itertools.product(*lists)
    else:
        count, rows = len(node.combinations), node.combinations
    if count > _MOST_ROWS:
        raise QueryRefused(
            f"This has {count:,} groups, more than the {_MOST_ROWS:,} that one query may report.",
            "Group by fewer keys, or list the combinations that matter.",
        )
    listed = [tuple(row[index] for index in order) for row in rows]
    if any(value != value for row in listed for value in row):
        raise QueryRefused("NaN cannot be a key.", "Leave it out of the list.")
    # A group that is listed twice is measured once: two draws of its noise would cost twice.
    try:
        ranked = sorted(set(listed))
    except TypeError:  # values of several types in one column
        ranked = sorted(set(listed), key=lambda row: [(type(value).__name__, str(value)) for value in row])
    places = {row: place for place, row in enumerate(ranked)}
    return tuple(ranked), tuple(places[row] for row in listed)


def _choose(
    ways: Mapping[AggregateCall, tuple[Part, ...]], size: Callable[[Measurement], float]
) -> dict[AggregateCall, Part]:
    """For each aggregate one of the ways to measure it, so that all together come out best.

    Aggregates of the same argument are looked at together, one argument after the other in a fixed order.
    The choice is made for Laplace noise whatever is drawn in the end: it is part of the question, not of its
    price.
    """
    calls = sorted(ways, key=_call_written)
    chosen = {each: ways[each][0] for each in calls}
    yardsticks = list(chosen.values())

    def cost(parts: Mapping[AggregateCall, Part]) -> float:
        found = importance([parts[each] for each in calls], yardsticks, size, "laplace")
        return least_cost(found.values(), "laplace")

    alike: dict[Expression | None, list[AggregateCall]] = {}
    for each in calls:
        if len(ways[each]) > 1:
            alike.setdefault(each.argument, []).append(each)
    for group in alike.values():
        best = cost(chosen)
        for picks in itertools.product(*(ways[each] for each in group)):
            tried = chosen | dict(zip(group, picks, strict=True))
            if (found := cost(tried)) < best * (1 - 1e-9):
                best, chosen = found, tried
    return chosen


def _call_written(each: AggregateCall) -> str:
    return json.dumps([each.function, None if each.argument is None else to_wire(each.argument)])
