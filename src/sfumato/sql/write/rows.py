"""The statement that reads single rows for a fit: each value clamped, few rows of each unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.engines.forms import group_form
from sfumato.errors import InvalidParameter
from sfumato.plan.questions.nodes import Measured, Measurement
from sfumato.plan.questions.relations import rows_of
from sfumato.sql.write.fixed_point import fixed_point, is_present
from sfumato.sql.write.parts import UNIT, Parts
from sfumato.sql.write.pieces import bigint, column, double, named, number, picked

__all__ = ["AS_IT_IS", "AS_TEXT", "complete_lines", "lower_rows"]

AS_IT_IS = "as it is"
"""The mark of a measurement whose numbers are read as doubles, without a clamp."""

AS_TEXT = "as text"
"""The mark of a measurement whose values are read as texts."""

_NARROW = ((2**15, exp.DataType.Type.SMALLINT), (2**31, exp.DataType.Type.INT))


def lower_rows(
    measured: Measured,
    tables: Mapping[str, Any],
    dialect: Dialect,
    *,
    salt: int = 0,
    complete: Sequence[int] = (),
) -> exp.Select:
    """One SELECT with the columns `u`, where units have ids, and `m0`, …: one line for each row that counts.

    Units are numbered from 1, so that no id leaves the engine.

    Args:
        measured: The question whose sums and counts of values are wanted row by row, without groups.
        tables: The tables by name.
        dialect: The engine's.
        salt: The key of the hash that chooses rows, of 63 bits.
        complete: The measurements without which a row is no line, by their places. Such rows are left out
            before lines are chosen, each by itself.

    Privacy:
        Claim: a unit has at most max_rows lines, each of its numbers is NULL or an integer in [lower, upper]
        (where it is marked so, any double but NaN, or a text), and which lines they are follows from the
        unit's own rows and the salt: a row's place is that of a hash of salt, unit and its numbers, ties
        broken by the numbers; rows that tie there are alike in all that is read. So neighbours differ in the
        lines of one unit and in nothing else but the numbers of units, which tell units apart and say
        nothing else.
        Conditions: the engine's PARTITION BY and ORDER BY agree on which ids are one.

    Raises:
        InvalidParameter: for a question with groups, or one that counts units or distinct values.
    """
    lines = complete_lines(measured, tables, dialect, complete)
    if measured.unit.column is None:
        return lines
    names = [f"m{place}" for place in range(len(measured.measurements))]
    lot = dialect.chosen_by(bigint(salt), column(UNIT), *map(column, names))
    order = _ordered(lot, *map(column, names))
    place = exp.Window(this=exp.RowNumber(), partition_by=[column(UNIT)], order=order)
    ranked = picked([exp.Star(), named(place, "place")], lines, "a")
    few = exp.LTE(this=column("place"), expression=number(measured.unit.max_rows))
    kept = picked([column(UNIT), *map(column, names)], ranked, "f").where(few, copy=False)
    counted = exp.Window(this=exp.DenseRank(), order=_ordered(column(UNIT)))
    return picked([named(bigint(counted), UNIT), *map(column, names)], kept, "k")


def complete_lines(
    measured: Measured, tables: Mapping[str, Any], dialect: Dialect, complete: Sequence[int]
) -> exp.Select:
    """All lines, before some of a unit's are chosen: the columns `m0`, …, and `u`, the id, if there is one.

    Raises:
        InvalidParameter: for a question with groups, or one that counts units or distinct values.
    """
    if measured.keys or any(
        measurement.kind not in ("sum", "present") for measurement in measured.measurements
    ):
        raise InvalidParameter("Rows are read for sums and counts of values without groups.")
    parts = Parts(measured, rows_of(measured.rows, tables), dialect)
    values: list[exp.Expr] = [
        named(_narrow(_value(parts, measurement), measurement), f"m{place}")
        for place, measurement in enumerate(measured.measurements)
    ]
    if measured.unit.column is None:
        return _complete(picked(values, parts.rows(), "r"), complete)
    return _complete(picked([column(UNIT), *values], parts.rows(units=True), "r"), complete)


def _complete(lines: exp.Select, places: Sequence[int]) -> exp.Select:
    """The lines that have a value in all these places."""
    if not places:
        return lines
    whole = picked([exp.Star()], lines, "c")
    for place in places:
        present = exp.Is(this=column(f"m{place}"), expression=exp.Null()).not_()
        whole = whole.where(present, copy=False)
    return whole


def _ordered(*terms: exp.Expr) -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=term) for term in terms])


def _narrow(value: exp.Expr, measurement: Measurement) -> exp.Expr:
    """An integer within the clamp, in the narrowest type that holds all of them; doubles and texts stay."""
    if {AS_IT_IS, AS_TEXT} & set(measurement.marks):
        return value
    kind = next((kind for most, kind in _NARROW if measurement.magnitude < most), None)
    return value if kind is None else exp.Cast(this=value, to=exp.DataType(this=kind))


def _value(parts: Parts, measurement: Measurement) -> exp.Expr:
    argument = parts.argument(measurement)
    if AS_IT_IS in measurement.marks:  # in one form, so that rows that tie are alike
        return group_form(double(argument.sql), "float", parts.dialect)
    if AS_TEXT in measurement.marks:
        return argument.sql
    if measurement.kind == "present":
        present = exp.If(this=is_present(argument, parts.dialect), true=number(1))
        return exp.Case(ifs=[present], default=number(0))
    return fixed_point(argument, measurement, parts.dialect)
