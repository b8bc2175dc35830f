"""What an engine returned for a question, put in the order of its groups: exact, and never shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.questions.others import Line, places_in, shelf_of
from sfumato.session.arrays import to_list
from sfumato.sql.write.lower import CELL, UNITS, WEIGHTS
from sfumato.sql.write.rows import UNIT

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.plan.questions.nodes import Measured

__all__ = ["Reading", "RowsRead", "align", "on_lines", "reading", "rows_read"]

_LIMIT = 2**62


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reading:
    """The exact integers of a question.

    Attributes:
        groups: The combinations of keys, in a canonical order.
        columns: One list of integers for each measurement, aligned with them; empty for cells.
        units: The number of units of each group, where groups are not public.
        cells: Groups × cells of weights, where cells are counted.
        weights: The sum of units' weights in each group, where groups are found by weight.
    """

    groups: tuple[tuple[Any, ...], ...]
    columns: tuple[list[int], ...]
    units: list[int] | None = None
    cells: NDArray[Any] | None = None
    weights: list[int] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowsRead:
    """The exact integers of single rows, in no order that means anything.

    Attributes:
        columns: One list for each measurement, None where a row has no value.
        units: For each row the number of its unit, from 0; None: each row is a unit.
    """

    columns: tuple[list[int | None], ...]
    units: list[int] | None


def rows_read(answer: pa.Table) -> RowsRead:
    """The lines of a statement that reads rows, units numbered by their ids."""
    names = [name for name in answer.column_names if name != UNIT]
    columns = tuple(answer.column(name).to_pylist() for name in names)
    if UNIT not in answer.column_names:
        return RowsRead(columns, None)
    codes: dict[Any, int] = {}
    return RowsRead(columns, [codes.setdefault(unit, len(codes)) for unit in answer.column(UNIT).to_pylist()])


def reading(answer: pa.Table, measured: Measured) -> Reading:
    """The answer to a question's statement, whatever order its rows came in."""
    if measured.is_open:
        return _found(answer, measured)
    if any(measurement.kind == "cells" for measurement in measured.measurements):
        return Reading(measured.combinations, (), cells=_cells(answer, measured))
    return Reading(measured.combinations, align(answer, measured))


def align(answer: pa.Table, measured: Measured) -> tuple[list[int], ...]:
    """The integers of each measurement, aligned with the public keys; empty groups are 0."""
    if measured.levels:
        return _levels(answer, measured)
    groups = len(measured.combinations)
    columns = [_integers(answer, f"m{j}") for j in range(len(measured.measurements))]
    rows = _rows(answer, measured)
    aligned = tuple([0] * groups for _ in columns)
    for source, target in zip(columns, aligned, strict=True):
        for row, value in zip(rows, source, strict=True):
            if row is not None:
                target[row] += value
    return aligned


def _levels(answer: pa.Table, measured: Measured) -> tuple[list[int], ...]:
    """The same on several levels: each finest group is added to one group of every level."""
    columns = [_integers(answer, f"m{j}") for j in range(len(measured.measurements))]
    place = {combination: row for row, combination in enumerate(measured.combinations)}
    aligned = tuple([0] * len(measured.combinations) for _ in columns)
    for source, key in enumerate(_keys(answer, measured)):
        for level in measured.levels:
            row = place.get(tuple(value if i in level else None for i, value in enumerate(key)))
            if row is not None:
                for target, column in zip(aligned, columns, strict=True):
                    target[row] += column[source]
    return aligned


def on_lines(exact: Reading, lines: Sequence[Line]) -> tuple[list[int], ...]:
    """What was read for each group that was found, added up on the line that it is on, level by level.

    Privacy:
        Each group, selected or not, is added to at most one line of each level, whole: with the lines fixed,
        a unit moves a level by no more than `plan.questions.sensitivity.sensitivity_in` says.
    """
    shelf, added = shelf_of(lines), tuple([0] * len(lines) for _ in exact.columns)
    for row, group in enumerate(exact.groups):
        for place in places_in(shelf, group):
            for target, column in zip(added, exact.columns, strict=True):
                target[place] += column[row]
    return added


def _rows(answer: pa.Table, measured: Measured) -> list[int | None]:
    """Which of the public groups each row of an answer is about."""
    if not measured.keys:
        return [0] * answer.num_rows
    place: dict[Any, int]
    if len(measured.keys) == 1:
        place = {value: row for row, (value,) in enumerate(measured.combinations)}
        return [*map(place.get, to_list(answer.column("k0")))]
    place = {combination: row for row, combination in enumerate(measured.combinations)}
    return [*map(place.get, _keys(answer, measured))]


def _keys(answer: pa.Table, measured: Measured) -> list[tuple[Any, ...]]:
    keys = [to_list(answer.column(f"k{i}")) for i in range(len(measured.keys))]
    return list(zip(*keys, strict=True))


def _integers(answer: pa.Table, name: str) -> list[int]:
    """A column of whole numbers; what is missing is 0."""
    column = answer.column(name)
    values = to_list(column)
    plain = not column.null_count and {*map(type, values)} <= {int}
    return values if plain else [int(value or 0) for value in values]


def _found(answer: pa.Table, measured: Measured) -> Reading:
    """Groups that were found in the data, sorted: nothing of the order in which they came is left."""
    keys = [to_list(answer.column(f"k{i}")) for i in range(len(measured.keys))]
    order = _ascending(keys)
    columns = [_integers(answer, f"m{j}") for j in range(len(measured.measurements))]
    ordered = [map(column.__getitem__, order) for column in keys]
    return Reading(
        tuple(zip(*ordered, strict=True)),
        tuple([*map(column.__getitem__, order)] for column in columns),
        units=[*map(_integers(answer, UNITS).__getitem__, order)],
        weights=[*map(_integers(answer, WEIGHTS).__getitem__, order)]
        if WEIGHTS in answer.column_names
        else None,
    )


def _ascending(keys: Sequence[Sequence[Any]]) -> list[int]:
    """The rows by their first key, then their second, …; what is missing comes last."""
    order = list(range(len(keys[0])))
    for column in reversed(keys):  # the last key first: equal values stay as they were
        if None in column:
            missing = [value is None for value in column]
            present = [row for row in order if not missing[row]]
            order = sorted(present, key=column.__getitem__) + [row for row in order if missing[row]]
        else:
            order.sort(key=column.__getitem__)
    return order


def _cells(answer: pa.Table, measured: Measured) -> NDArray[Any]:
    weights = _integers(answer, "m0")
    wide = np.int64 if sum(weights) < _LIMIT else object
    width = measured.measurements[0].upper + 1
    counts = np.zeros((len(measured.combinations), width), dtype=wide)
    rows = np.array([-1 if row is None else row for row in _rows(answer, measured)], dtype=np.int64)
    known = rows >= 0
    places = rows[known], np.array(to_list(answer.column(CELL)), dtype=np.int64)[known]
    np.add.at(counts, places, np.array(weights, dtype=wide)[known])
    return counts
