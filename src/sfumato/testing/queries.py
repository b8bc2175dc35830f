"""What a query measures before noise, and what it claims: for tests alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from sfumato.numeric.exact import float_up
from sfumato.plan.expressions import Column, columns_of
from sfumato.plan.measure import recipe
from sfumato.plan.relations import rows_of
from sfumato.plan.sensitivity import sensitivities, step
from sfumato.testing.stream import require_test

if TYPE_CHECKING:
    from sfumato.plan.nodes import Measured
    from sfumato.session import Query

__all__ = ["Exact", "exact", "exact_units"]


class Exact(NamedTuple):
    """The aggregates of a query before noise, with the claimed sensitivities of each column.

    Attributes:
        table: Keys and one column a measurement, named after the output that uses it first: `n`, or
            `spend.sum` and `spend.count` for an average.
        l1: By column, how far removing one unit may move it, over all rows together.
        l2: The same in the Euclidean norm.
    """

    table: pa.Table
    l1: dict[str, float]
    l2: dict[str, float]


def exact(query: Query) -> Exact:
    """The pre-noise aggregates of a query and their claimed sensitivities, in natural units.

    Raises:
        SfumatoError: outside a test process.
    """
    require_test("exact")
    session = query._session
    rows = rows_of(query.report.child.source, session.tables)
    made = recipe(query.report, rows)
    measured = made.measured
    units = exact_units(session.vault, measured)
    names = _names(query, measured)
    order = made.row_order
    shown = {
        each.expression.name: each.name
        for each in query.report.columns
        if isinstance(each.expression, Column)
    }
    columns: dict[str, list[Any]] = {
        shown.get(f"k{i}", f"k{i}"): [measured.combinations[row][j] for row in order]
        for i, j in enumerate(made.key_order)
    }
    l1: dict[str, float] = {}
    l2: dict[str, float] = {}
    claims = sensitivities(measured)
    for name, values, measurement, claim in zip(names, units, measured.measurements, claims, strict=True):
        unit = step(measurement, rows.unit, keyed=bool(measured.keys))
        columns[name] = [int(values[row]) if unit == 1 else float(values[row] * unit) for row in order]
        l1[name], l2[name] = float_up(claim.l1 * unit), float_up(claim.l2 * unit)
    return Exact(pa.table(columns), l1, l2)


def exact_units(vault: Any, measured: Measured) -> tuple[list[int], ...]:
    """The exact integers that a vault would read, without a receipt.

    Raises:
        SfumatoError: outside a test process.
    """
    require_test("exact")
    read: tuple[list[int], ...] = vault._fetch(measured)
    return read


def _names(query: Query, measured: Measured) -> list[str]:
    made = recipe(query.report, rows_of(query.report.child.source, query._session.tables))
    names: dict[int, str] = {}
    parts = {"count": ("",), "sum": ("", ".count"), "mean": (".sum", ".count")}
    for output in query.report.columns:
        used = [name for name in columns_of(output.expression) if name.startswith("a")]
        for name in used:
            estimator = made.aggregates[int(name[1:])]
            words = parts.get(estimator.kind, (".sum", ".squares", ".count"))
            for index, word in zip(estimator.parts, words, strict=False):
                names.setdefault(index, f"{output.name}{word}")
    return [names.get(index, f"m{index}") for index in range(len(measured.measurements))]
