"""From a report to the integers that are read for it, and back.

The question that a report asks is put in a normal form here, so that equivalent questions (other names,
another order of keys or aggregates) share a fingerprint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.expressions.names import in_sql
from sfumato.plan.expressions.size import check_sizes
from sfumato.plan.expressions.tree import Column, Expression, to_wire
from sfumato.plan.prices.extras import Extra, extras_of
from sfumato.plan.prices.price import instrument
from sfumato.plan.prices.touched import Touched, touched_of
from sfumato.plan.prices.ways import best_ways
from sfumato.plan.questions.aggregates import Estimator, Part, statistic, ways_of
from sfumato.plan.questions.bounding.reweight import Reweight
from sfumato.plan.questions.combining import all_in_order, in_order
from sfumato.plan.questions.group_bounds import per_group
from sfumato.plan.questions.levels import stages_of, told_apart
from sfumato.plan.questions.needs import fitting
from sfumato.plan.questions.nodes import (
    Aggregate,
    AggregateCall,
    Key,
    Measured,
    Measurement,
    Report,
    Where,
)
from sfumato.plan.questions.others import Line, least_lines, lines_of, questions_of
from sfumato.plan.questions.relations import Readable, Rows, as_rows
from sfumato.plan.questions.sensitivity import rows_in_group
from sfumato.plan.questions.slots import Slot
from sfumato.plan.questions.whole import whole_ways
from sfumato.schema import PrivacyUnit

__all__ = ["Estimator", "Recipe", "measured_of", "recipe", "rows_question"]

_MOST_ROWS = 1_000_000
_HEAVIEST = 2**60  # times 2**30 of weight: 2**37 units of this weight fit in 128 bits


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is measured for a report and how its aggregates follow.

    Attributes:
        measured: The question: keys, combinations and measurements in canonical order.
        aggregates: One estimator for each aggregate of the report (`a0`, …), in its order; or where it is
            found among the results of an extra question.
        key_order: The report's key `k{i}` is the question's key `key_order[i]`.
        row_order: The report's row r (before HAVING, ORDER BY and LIMIT) is the question's combination
            `row_order[r]`.
        yardsticks: For each aggregate with an estimator, how it would be measured if it were the only one.
        extras: The questions beside it.
        lines: The rows of several levels whose groups were found, aligned with the combinations.
    """

    measured: Measured
    aggregates: tuple[Estimator | Slot, ...]
    key_order: tuple[int, ...]
    row_order: Sequence[int]
    yardsticks: tuple[Part, ...]
    extras: tuple[Extra, ...] = ()
    lines: tuple[Line, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The aggregates of the main question as they are measured."""
        return tuple(Part(self.measured.measurements, estimator) for estimator in self.estimators)

    @property
    def estimators(self) -> tuple[Estimator, ...]:
        """The estimators alone."""
        return tuple(estimator for estimator in self.aggregates if isinstance(estimator, Estimator))

    @property
    def counts_found(self) -> bool:
        """Whether the noisy numbers of units that groups are selected by are shown."""
        return any(isinstance(aggregate, Slot) and aggregate.extra < 0 for aggregate in self.aggregates)

    @property
    def questions(self) -> tuple[Measured, ...]:
        """All that is read: the main question unless it is empty, the extra ones, and what finds groups."""
        main = (self.measured,) if self.measured.measurements or self.measured.is_open else ()
        return main + tuple(extra.measured for extra in self.extras) + self.finding

    @property
    def finding(self) -> tuple[Measured, ...]:
        """What is read to find the groups of several levels that no level has together."""
        return questions_of(self.measured) if self.measured.is_open and self.measured.levels else ()

    def over(self, combinations: Sequence[tuple[Any, ...]]) -> Recipe:
        """The same recipe once the groups of an open question are known; on several levels, the picks."""
        lines: tuple[Line, ...] = ()
        if self.measured.levels:
            lines = lines_of(self.measured, combinations)
            combinations = tuple(line.shown(len(self.measured.keys)) for line in lines)
        measured = replace(self.measured, combinations=combinations)
        extras = tuple(
            extra
            if isinstance(extra, Touched)
            else replace(extra, measured=replace(extra.measured, combinations=combinations))
            for extra in self.extras
        )
        order = range(len(combinations))
        return replace(self, measured=measured, row_order=order, extras=extras, lines=lines)


def recipe(report: Report, table: Readable) -> Recipe:
    """The measurements of a report and the way back from them.

    Raises:
        QueryRefused: if an aggregate's argument has no range, or there are too many groups.
    """
    node, read = report.child, as_rows(table)
    if not node.aggregates:
        raise QueryRefused("Nothing is measured here.", "Ask for an aggregate, such as COUNT(*).")
    columns = read.where(node.predicate)
    order = sorted(range(len(node.keys)), key=lambda index: _written(node.keys[index].expression))
    base, row_order = _question(node, read, order)
    unit = base.unit
    slots: dict[AggregateCall, Slot] = {}
    if base.is_open and not base.levels and not node.counted:
        slots = {call: Slot(-1, 0, True) for call in node.aggregates if _counts_units(call, unit)}
    if base.levels:
        _check_levels(node, base)
    outside = [call for call in dict.fromkeys(node.aggregates) if statistic(call.function).external]
    extras, placed = extras_of(
        outside, columns, replace(base, bounding=base.bounding.beside(is_open=base.is_open))
    )
    slots |= placed
    inside = [call for call in node.aggregates if call not in slots]
    count = read.count if node.predicate is None and not node.keys else None
    ways = {call: _ways(call, columns, unit, count) for call in inside}
    parts = best_ways(ways, lambda measurement: instrument(measurement, base).size("laplace")) if ways else {}
    needed = {part.measurements[index] for part in parts.values() for index in part.estimator.parts}
    _check_weight(needed, unit)
    measurements = tuple(sorted(needed, key=lambda measurement: json.dumps(measurement.to_wire())))
    measured = replace(base, measurements=measurements)
    if not (needed or extras or base.is_open):
        raise QueryRefused(
            f"Nothing has to be measured here: {read.name} has exactly {count:,} rows, which is public.",
            "Ask for something else beside the count.",
        )
    if node.touched and (diagnosis := touched_of(measured)) is not None:
        extras = (*extras, diagnosis)
    questions = (measured, *(extra.measured for extra in extras))
    read_for = dict.fromkeys(measurement for question in questions for measurement in question.measurements)
    asked = (
        node.predicate,
        *(key.expression for key in measured.keys),
        *(measurement.argument for measurement in read_for),
    )
    check_sizes(expression for expression in asked if expression is not None)
    places = {measurement: index for index, measurement in enumerate(measured.measurements)}
    aggregates = tuple(
        slots[call] if call in slots else _placed(parts[call], places) for call in node.aggregates
    )
    key_order = tuple(order.index(index) for index in range(len(order)))
    yardsticks = tuple(ways[call][0] for call in inside)
    return Recipe(measured, aggregates, key_order, row_order, yardsticks, extras)


def _question(node: Aggregate, read: Rows, order: Sequence[int]) -> tuple[Measured, tuple[int, ...]]:
    """The question about these rows and keys, without measurements yet; and where the report's rows are."""
    unit = _limited(read.unit, node.limits)
    keys = tuple(node.keys[index] for index in order)
    is_open = any(key.values is None for key in keys)
    levels = tuple(tuple(order.index(key) for key in sorted(level)) for level in node.levels)
    together = _together(node, order) if levels else None
    rows: tuple[tuple[Any, ...], ...] = ()
    row_order: tuple[int, ...] = ()
    if is_open:
        _check_count(least_lines(keys, levels, together), "Group by fewer keys.")
    elif levels:
        levels = tuple(tuple(sorted(level)) for level in levels)
        rows = _stacked(keys, levels, together)
        row_order = tuple(range(len(rows)))
    else:
        rows, row_order = _sorted_rows(node, order)
    bounding = Reweight() if unit.column is None else fitting(node)
    if bounding.few_groups and unit.max_groups > unit.max_rows:
        unit = _limited(unit, (unit.max_rows, unit.max_rows))
    measured = Measured(
        table=read.name,
        version=read.version,
        unit=unit,
        predicate=node.predicate,
        keys=keys,
        combinations=rows,
        measurements=(),
        source=None if read.is_plain else read.source,
        bounding=bounding,
        levels=levels,
        together=together,
    )
    return measured, row_order


def rows_question(read: Rows, predicate: Expression | None) -> Measured:
    """The question about single rows that satisfy a condition: without keys, and without measurements yet."""
    child = read.source if predicate is None else Where(read.source, predicate)
    return _question(Aggregate(child, (), (), bounding=Reweight()), read, ())[0]


def _together(node: Aggregate, order: Sequence[int]) -> tuple[tuple[Any, ...], ...] | None:
    """The combinations of public keys that there are, in canonical order; None: all."""
    if node.combinations is None:
        return None
    listed = [index for index, key in enumerate(node.keys) if key.values is not None]
    places = [listed.index(index) for index in order if index in listed]
    ranks = [{value: rank for rank, value in enumerate(node.keys[listed[at]].values or ())} for at in places]
    rows = {tuple(row[place] for place in places) for row in node.combinations}
    return tuple(sorted(rows, key=lambda row: [rank[value] for rank, value in zip(ranks, row, strict=True)]))


def _stacked(
    keys: Sequence[Key], levels: Sequence[tuple[int, ...]], together: Sequence[tuple[Any, ...]] | None
) -> tuple[tuple[Any, ...], ...]:
    """The groups of all levels, one level after the other, with None for keys that a level leaves out."""
    sizes = [len(told_apart(key.values or ())) for key in keys]
    most = math.prod(sizes) if together is None else len(together)
    least = (min(most, math.prod(sizes[key] for key in level)) if level else 1 for level in levels)
    _check_count(sum(least), "Group by fewer keys.")
    return tuple(row for stage in stages_of(keys, levels, together) for row in stage.rows)


def _check_count(count: int, fix: str) -> None:
    if count > _MOST_ROWS:
        raise QueryRefused(
            f"This has {count:,} groups, more than the {_MOST_ROWS:,} that one query may report.", fix
        )


def _check_levels(node: Aggregate, base: Measured) -> None:
    """Levels are added up from the finest groups, which fits sums over weighted rows or chosen groups."""
    fits = base.bounding.adds_up or base.is_open  # where groups are found, a unit counts in few of them
    if not fits or not all(statistic(call.function).adds for call in node.aggregates):
        raise QueryRefused(
            "ROLLUP, CUBE and GROUPING SETS are for COUNT, SUM, AVG and other sums over weighted rows.",
            "Ask distinct counts and quantiles for each grouping by itself.",
        )


def _limited(unit: PrivacyUnit, limits: tuple[int | None, int | None]) -> PrivacyUnit:
    """The unit with the question's own limits; as many rows a group as declared, unless it says how many."""
    groups, rows = limits
    if unit.column is None:
        return unit
    if limits == (None, None):
        return unit if unit.is_plain else unit.limited(unit.max_groups, unit.max_rows)
    many = unit.max_groups if groups is None else groups
    many = many if rows is None else min(many, rows)
    most = many * max(1, unit.max_rows // unit.max_groups) if rows is None else rows
    return unit.limited(many, most)


def _counts_units(call: AggregateCall, unit: PrivacyUnit) -> bool:
    """Whether an aggregate is the number of units, where each counts once in each of its groups."""
    if call.bounds is not None:
        return False
    if call.function == "count_distinct":
        return True
    alone = unit.column is None or rows_in_group(unit) == 1
    return call.function == "count" and call.argument is None and alone


def _check_weight(needed: Iterable[Measurement], unit: PrivacyUnit) -> None:
    heaviest = max((measurement.magnitude for measurement in needed), default=0)
    if unit.column is not None and heaviest * unit.max_rows > _HEAVIEST:
        raise QueryRefused(
            "One unit could weigh more than sums of 128 bits are sure to hold.",
            "Declare tighter bounds for the column, or a smaller max_rows.",
        )


def _placed(part: Part, places: Mapping[Measurement, int]) -> Estimator:
    parts = tuple(places[part.measurements[index]] for index in part.estimator.parts)
    return replace(part.estimator, parts=parts)


def measured_of(report: Report, table: Readable) -> Measured:
    """The part of a report that reads data."""
    return recipe(report, table).measured


def _ways(
    call: AggregateCall, columns: Mapping[str, Facts], unit: PrivacyUnit, count: int | None
) -> tuple[Part, ...]:
    if call.function == "count_distinct":
        own = None if unit.column is None else Column(unit.column)
        if call.argument not in (None, own):
            raise QueryRefused(
                "COUNT(DISTINCT …) is for the column whose values are the privacy units.",
                f"Write COUNT(DISTINCT {in_sql(unit.column)})."
                if unit.column
                else "Count rows with COUNT(*).",
            )
        call = AggregateCall("count" if own is None else call.function)  # without one, each row is a unit
    if call.bounds is not None and call.bounds[0] == "group":
        return (per_group(call, columns, unit),)
    whole = None if count is None else whole_ways(call, columns, count)
    return ways_of(call, columns) if whole is None else whole


def _written(expression: Expression) -> str:
    return json.dumps(to_wire(expression))


def _sorted_rows(
    node: Aggregate, order: Sequence[int]
) -> tuple[tuple[tuple[Any, ...], ...], tuple[int, ...]]:
    """The combinations in canonical order, and where each row of the report is among them."""
    fix = "Group by fewer keys, or list the combinations that matter."
    if node.combinations is not None:
        _check_count(len(node.combinations), fix)
        return in_order([tuple(row[index] for index in order) for row in node.combinations])
    lists = [key.values or () for key in node.keys]
    _check_count(math.prod(map(len, lists)), fix)
    return all_in_order(lists, order)
