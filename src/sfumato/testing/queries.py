"""What a query measures before noise, and what it claims: for tests alone."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from sfumato.numeric.exact import float_up
from sfumato.plan.expressions.tree import Column, columns_of
from sfumato.plan.prices.extras import Distinct
from sfumato.plan.prices.price import instrument
from sfumato.plan.prices.recipe import Recipe, recipe
from sfumato.plan.questions.nodes import LEVEL, Measurement
from sfumato.plan.questions.others import labels, picks_of
from sfumato.plan.questions.relations import rows_of
from sfumato.plan.questions.sensitivity import sensitivities, sensitivity
from sfumato.plan.questions.slots import Slot
from sfumato.session.reading import Reading, on_lines
from sfumato.testing.stream import require_test

if TYPE_CHECKING:
    from sfumato.plan.questions.nodes import Measured
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

    Where groups are not public, all that are found are there, with their numbers of units as `units`; on
    several levels, the lines that follow if all of them are selected, without those numbers.
    Distinct values are there too; quantiles are selections, and have no aggregate before noise.

    Raises:
        SfumatoError: outside a test process.
    """
    require_test("exact")
    session = query._session
    made = recipe(query.report, rows_of(query.report.child.source, session.tables))
    measured, found = made.measured, None
    if measured.is_open:
        found = session.vault._read(measured, 0)
        made = made.over(picks_of(measured, found.groups) if measured.levels else found.groups)
        if made.lines:
            found = Reading(found.groups, on_lines(found, made.lines))
    order = made.row_order
    shown = {
        each.expression.name: each.name
        for each in query.report.columns
        if isinstance(each.expression, Column)
    }
    columns: dict[str, list[Any]] = {
        shown.get(f"k{i}", f"k{i}"): [made.measured.combinations[row][j] for row in order]
        for i, j in enumerate(made.key_order)
    }
    if made.lines:
        called = dict(zip(made.key_order, columns, strict=True))
        columns[shown[LEVEL]] = labels(made.lines, [called[key] for key in range(len(called))])
    l1: dict[str, float] = {}
    l2: dict[str, float] = {}
    if found is not None and found.units is not None:
        claim = sensitivity(Measurement("units"), measured.unit, groups=None, bounding=measured.bounding)
        columns["units"] = list(found.units)
        l1["units"], l2["units"] = float_up(Fraction(claim.l1)), float_up(claim.l2)
    questions = [(measured, _names(query, made))] if measured.measurements else []
    questions += [
        (each.measured, _extra_names(query, made, place))
        for place, each in enumerate(made.extras)
        if isinstance(each, Distinct) and not measured.is_open
    ]
    for question, names in questions:
        read = exact_units(session.vault, question) if found is None else found.columns
        claims = sensitivities(question)
        for name, values, each, claim in zip(names, read, question.measurements, claims, strict=True):
            unit_of = instrument(each, question).unit
            columns[name] = [
                int(values[row]) if unit_of == 1 else float(values[row] * unit_of) for row in order
            ]
            l1[name], l2[name] = float_up(claim.l1 * unit_of), float_up(claim.l2 * unit_of)
    return Exact(pa.table(columns), l1, l2)


def exact_units(vault: Any, measured: Measured) -> tuple[list[int], ...]:
    """The exact integers that a vault would read, without a receipt.

    Raises:
        SfumatoError: outside a test process.
    """
    require_test("exact")
    read: tuple[list[int], ...] = vault._fetch(measured)
    return read


def _names(query: Query, made: Recipe) -> list[str]:
    names: dict[int, str] = {}
    for output in query.report.columns:
        used = [name for name in columns_of(output.expression) if name.startswith("a")]
        for name in used:
            estimator = made.aggregates[int(name[1:])]
            if isinstance(estimator, Slot):
                continue
            for index, word in zip(estimator.parts, estimator.labels, strict=False):
                names.setdefault(index, f"{output.name}{word}")
    return [names.get(index, f"m{index}") for index in range(len(made.measured.measurements))]


def _extra_names(query: Query, made: Recipe, place: int) -> list[str]:
    for output in query.report.columns:
        for name in columns_of(output.expression):
            found = made.aggregates[int(name[1:])] if name.startswith("a") else None
            if isinstance(found, Slot) and found.extra == place:
                return [output.name]
    return [f"extra{place}"]
