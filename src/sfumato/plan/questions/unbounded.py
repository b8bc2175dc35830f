"""Aggregates whose numbers have no bounds: which they are, and the question that finds some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sfumato.plan.expressions.facts import facts_of
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal
from sfumato.plan.questions.aggregates import argument_of, statistic
from sfumato.plan.questions.autobounds import GROUP_CELLS, LogGrid
from sfumato.plan.questions.nodes import AggregateCall, Measured, Measurement, PerUnit, Report
from sfumato.plan.questions.relations import Readable, as_rows
from sfumato.schema import PrivacyUnit

__all__ = ["FALLBACK", "GRID", "bounded", "groups_of", "sizes_of", "unbounded", "with_groups"]

GRID = LogGrid()
FALLBACK = (Fraction(0), Fraction(1))
"""Public bounds for where nothing can be told from the noisy histogram."""


def unbounded(report: Report, table: Readable) -> tuple[AggregateCall, ...]:
    """The aggregates of a report that need bounds and have none."""
    node, rows = report.child, as_rows(table)
    columns = rows.where(node.predicate)
    lacking = []
    for aggregate in node.aggregates:
        argument = argument_of(aggregate, columns)
        if not statistic(aggregate.function).buys_bounds or aggregate.bounds is not None or argument is None:
            continue
        facts = facts_of(argument, columns)
        if facts.kind in ("integer", "float") and (facts.lower is None or facts.upper is None):
            lacking.append(aggregate)
    return tuple(lacking)


def sizes_of(argument: Expression, table: Readable) -> Measured:
    """The question how large the numbers are: rows in each cell of a logarithmic grid, over the whole table.

    It has no condition and no groups, so that its answer serves every later question about the same numbers;
    where the budget is for each window of time, every one about the windows that it was paid in.
    """
    rows = as_rows(table)
    cells = Measurement("cells", GRID.index_expression(argument), 0, GRID.cells - 1, marks=("sizes",))
    return Measured(
        table=rows.name,
        version=rows.version,
        unit=rows.unit,
        predicate=None,
        keys=(),
        combinations=((),),
        measurements=(cells,),
        source=None if rows.is_plain else rows.source,
    )


def groups_of(report: Report, table: Readable) -> Measured | None:
    """The question in how many groups units are, over the whole table; None where that limits nothing.

    One row for each unit and group, then one for each unit: its number of groups is in one public cell.
    """
    rows, node = as_rows(table), report.child
    if rows.unit.column is None or not node.keys:
        return None
    few = node.bounding is not None and node.bounding.few_groups
    if not few and all(key.values is not None for key in node.keys):
        return None
    keys = tuple((f"key {i}", key.expression) for i, key in enumerate(node.keys))
    pairs = PerUnit(rows.source, None, keys, ())
    source = PerUnit(pairs, None, (), (("groups", AggregateCall("count")),))
    branches: list[Expression] = []
    for cell, (_, end) in enumerate(GROUP_CELLS[:-1]):
        branches += [call("less_equal", Column("groups"), literal(end)), literal(cell)]
    index = Call("case", (*branches, literal(len(GROUP_CELLS) - 1)))
    return Measured(
        table=rows.name,
        version=rows.version,
        unit=PrivacyUnit.row(adjacency=rows.unit.adjacency),
        predicate=None,
        keys=(),
        combinations=((),),
        measurements=(Measurement("cells", index, 0, len(GROUP_CELLS) - 1, marks=("groups",)),),
        source=source,
    )


def with_groups(report: Report, groups: int) -> Report:
    """The report with this many groups for each unit, unless it has a limit of its own."""
    node = report.child
    return replace(report, child=replace(node, limits=(node.limits[0] or groups, node.limits[1])))


def bounded(report: Report, bounds: Mapping[AggregateCall, tuple[Fraction, Fraction]]) -> Report:
    """The report with bounds for each row of these aggregates."""
    node = report.child
    aggregates = tuple(
        replace(aggregate, bounds=("row", *bounds[aggregate])) if aggregate in bounds else aggregate
        for aggregate in node.aggregates
    )
    return replace(report, child=replace(node, aggregates=aggregates))
