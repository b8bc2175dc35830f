"""What a query measures before noise, and what it claims: for tests alone."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from sfumato.numeric.exact import float_up
from sfumato.plan.expressions.tree import Column, columns_of
from sfumato.plan.prices.extras import Distinct
from sfumato.plan.prices.price import instrument
from sfumato.plan.prices.recipe import Recipe
from sfumato.plan.questions.nodes import LEVEL, Measurement
from sfumato.plan.questions.others import labels, picks_of
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
    recipe = query._asking.plan.recipe
    measured, reading = recipe.measured, None
    if measured.is_open:
        reading = session.vault._read(measured, 0)
        recipe = recipe.over(picks_of(measured, reading.groups) if measured.levels else reading.groups)
        if recipe.lines:
            reading = Reading(reading.groups, on_lines(reading, recipe.lines))
    order = recipe.row_order
    shown = {
        column.expression.name: column.name
        for column in query.report.columns
        if isinstance(column.expression, Column)
    }
    columns: dict[str, list[Any]] = {
        shown.get(f"k{i}", f"k{i}"): [recipe.measured.combinations[row][j] for row in order]
        for i, j in enumerate(recipe.key_order)
    }
    if recipe.lines:
        called = dict(zip(recipe.key_order, columns, strict=True))
        columns[shown[LEVEL]] = labels(recipe.lines, [called[key] for key in range(len(called))])
    l1: dict[str, float] = {}
    l2: dict[str, float] = {}
    if reading is not None and reading.units is not None:
        claim = sensitivity(Measurement("units"), measured.unit, groups=None, bounding=measured.bounding)
        columns["units"] = reading.units.tolist()
        l1["units"], l2["units"] = float_up(Fraction(claim.l1)), float_up(claim.l2)
    questions = [(measured, _names(query, recipe))] if measured.measurements else []
    questions += [
        (extra.measured, _extra_names(query, recipe, place))
        for place, extra in enumerate(recipe.extras)
        if isinstance(extra, Distinct) and not measured.is_open
    ]
    for question, names in questions:
        read = (
            exact_units(session.vault, question)
            if reading is None
            else tuple(column.tolist() for column in reading.columns)
        )
        claims = sensitivities(question)
        for name, values, measurement, claim in zip(names, read, question.measurements, claims, strict=True):
            unit_of = instrument(measurement, question).unit
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


def _names(query: Query, recipe: Recipe) -> list[str]:
    names: dict[int, str] = {}
    for output in query.report.columns:
        used = [name for name in columns_of(output.expression) if name.startswith("a")]
        for name in used:
            estimator = recipe.aggregates[int(name[1:])]
            if isinstance(estimator, Slot):
                continue
            for index, word in zip(estimator.parts, estimator.labels, strict=False):
                names.setdefault(index, f"{output.name}{word}")
    return [names.get(index, f"m{index}") for index in range(len(recipe.measured.measurements))]


def _extra_names(query: Query, recipe: Recipe, place: int) -> list[str]:
    for output in query.report.columns:
        for name in columns_of(output.expression):
            estimator = recipe.aggregates[int(name[1:])] if name.startswith("a") else None
            if isinstance(estimator, Slot) and estimator.extra == place:
                return [output.name]
    return [f"extra{place}"]
