"""Aggregates whose numbers have no bounds: which they are, and the question that finds some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sfumato.plan.aggregates import argument_of
from sfumato.plan.autobounds import LogGrid
from sfumato.plan.expressions import Expression
from sfumato.plan.facts import facts_of, refine
from sfumato.plan.nodes import AggregateCall, Measured, Measurement, Report
from sfumato.plan.relations import Readable, as_rows

__all__ = ["FALLBACK", "GRID", "bounded", "sizes_of", "unbounded"]

GRID = LogGrid()
FALLBACK = (Fraction(0), Fraction(1))
"""Public bounds for where nothing can be told from the noisy histogram."""

_NUMERIC = {
    *("sum", "mean", "var_samp", "var_pop", "std_samp", "std_pop", "min", "max", "quantile"),
}


def unbounded(report: Report, table: Readable) -> tuple[AggregateCall, ...]:
    """The aggregates of a report that need bounds and have none."""
    node, rows = report.child, as_rows(table)
    columns = rows.columns if node.predicate is None else refine(node.predicate, rows.columns)
    found = []
    for each in node.aggregates:
        argument = argument_of(each, columns)
        if each.function not in _NUMERIC or each.bounds is not None or argument is None:
            continue
        facts = facts_of(argument, columns)
        if facts.kind in ("integer", "float") and (facts.lower is None or facts.upper is None):
            found.append(each)
    return tuple(found)


def sizes_of(argument: Expression, table: Readable) -> Measured:
    """The question how large the numbers are: rows in each cell of a logarithmic grid, over the whole table.

    It has no condition and no groups, so that its answer serves every later question about the same numbers.
    """
    rows = as_rows(table)
    cells = Measurement("cells", GRID.index_expression(argument), 0, GRID.cells - 1)
    return Measured(
        table=rows.name,
        version=rows.version,
        unit=tuple(rows.unit.to_dict().items()),
        predicate=None,
        keys=(),
        combinations=((),),
        measurements=(cells,),
        source=None if rows.is_plain else rows.source,
    )


def bounded(report: Report, bounds: Mapping[AggregateCall, tuple[Fraction, Fraction]]) -> Report:
    """The report with bounds for each row of these aggregates."""
    node = report.child
    aggregates = tuple(
        replace(each, bounds=("row", *bounds[each])) if each in bounds else each for each in node.aggregates
    )
    return replace(report, child=replace(node, aggregates=aggregates))
