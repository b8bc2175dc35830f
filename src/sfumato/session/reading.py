"""What an engine returned for a question, put in the order of its groups: exact, and never shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.numeric.columns import (
    coded_texts,
    integers,
    is_text,
    missing_in,
    one_array,
    own_numbers,
    sorted_rows,
    taken,
    to_list,
)
from sfumato.plan.questions.found import Found
from sfumato.plan.questions.others import Line, places_in, shelf_of
from sfumato.sql.write.lower import CELL, UNIT, UNITS, WEIGHTS
from sfumato.sql.write.moments import Term, pairs_of

if TYPE_CHECKING:
    from sfumato.plan.questions.nodes import Measured
    from sfumato.schema import Kind

__all__ = [
    "Admit",
    "Reading",
    "RowsRead",
    "align",
    "moments_read",
    "on_lines",
    "reading",
    "reading_of_some",
    "rows_read",
]

Admit: TypeAlias = Callable[[Sequence[str]], NDArray[np.bool_]]
"""Which of some units count, by their ids as text."""

_LIMIT = 2**62  # sums below this fit, however floats round them


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reading:
    """The exact integers of a question.

    Attributes:
        groups: The combinations of keys, in a canonical order.
        columns: The integers of each measurement, aligned with them: int64, or Python's where one does not
            fit; empty for cells.
        units: The number of units of each group, where groups are not public.
        cells: Groups × cells of weights, where cells are counted.
        weights: The sum of units' weights in each group, where groups are found by weight.
    """

    groups: Sequence[tuple[Any, ...]]
    columns: tuple[NDArray[Any], ...]
    units: NDArray[Any] | None = None
    cells: NDArray[Any] | None = None
    weights: NDArray[Any] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowsRead:
    """The exact integers of single rows, in no order that means anything.

    Attributes:
        columns: One array for each measurement, of the narrowest of int16, int32 and int64 that holds its
            clamp, or of float64 where numbers are read as they are; 0 where a row has no value. Of texts
            the place among `texts`.
        missing: Where a row has none, for each of them.
        units: For each row the number of its unit, from 0, as int64; None: each row is a unit.
        texts: Of columns that are read as texts, by their place, all values that rows have, sorted.
    """

    columns: tuple[NDArray[Any], ...]
    missing: tuple[NDArray[np.bool_], ...]
    units: NDArray[np.int64] | None
    texts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.columns[0])


def rows_read(answer: pa.Table) -> RowsRead:
    """The lines of a statement that reads rows.

    Each column of Arrow is given back once it is an array, so that both are in memory for one column alone:
    whoever calls this keeps no other name for the table.
    """
    units, columns, missing = None, list[NDArray[Any]](), list[NDArray[np.bool_]]()
    texts = dict[int, tuple[str, ...]]()
    for name in answer.column_names:
        column = answer.column(name)
        answer = answer.drop_columns([name])
        if name == UNIT:
            units = integers(column) - 1
            continue
        missing.append(missing_in(column))
        if is_text(column.type):
            codes, texts[len(columns)] = coded_texts(column)
            columns.append(codes)
        else:
            columns.append(own_numbers(column))
    return RowsRead(tuple(columns), tuple(missing), units, texts)


def moments_read(answer: pa.Table, terms: Sequence[Term]) -> NDArray[Any]:
    """The sums of a statement of second moments, row by row of the upper triangle; int64 if all fit."""
    sums = iter(answer.columns)
    found = [0 if pair is None else int(integers(next(sums))[0]) for pair in pairs_of(terms)]
    fits = all(abs(value) < _LIMIT for value in found)
    return np.array(found, np.int64 if fits else object)


def reading(answer: pa.Table, measured: Measured, kinds: Sequence[Kind | None] = ()) -> Reading:
    """The answer to a question's statement, whatever order its rows came in.

    Args:
        answer: What the engine gave.
        measured: The question.
        kinds: Those of its keys, which timestamps and times of day are known by.
    """
    answer = _timed(answer, kinds)
    if measured.is_open:
        return _found(answer, measured)
    if any(measurement.kind == "cells" for measurement in measured.measurements):
        return Reading(measured.combinations, (), cells=_cells(answer, measured))
    return Reading(measured.combinations, align(answer, measured))


def reading_of_some(
    answer: pa.Table, measured: Measured, kinds: Sequence[Kind | None], admit: Admit
) -> Reading:
    """What the units that count add up to, of a statement with a line for each unit in a group.

    Args:
        answer: What the engine gave.
        measured: The question.
        kinds: Those of its keys.
        admit: Is asked once, about each unit that has a line; one whose id has no text counts nowhere.

    Privacy:
        A unit that counts adds what it adds to the question itself, one that does not adds nothing: with
        `admit` fixed, a unit moves the numbers by no more than the question's sensitivity.
    """
    owners = one_array(answer.column(UNIT)).dictionary_encode()
    ids = owners.dictionary.to_pylist()
    counts = np.append(admit(ids), False)  # the last is for a line without a unit
    lines = counts[owners.indices.fill_null(len(ids)).to_numpy(zero_copy_only=False)]
    some = reading(answer.filter(pa.array(lines)).drop_columns([UNIT]), measured, kinds)
    return some if some.units is None else _by_group(some)


def _by_group(some: Reading) -> Reading:
    """The same with one line for each group, where there were several of one after the other."""
    groups, units = [*some.groups], some.units
    assert units is not None
    ends = [i == 0 or not _alike(groups[i - 1], group) for i, group in enumerate(groups)]
    rows = np.cumsum(ends, dtype=np.int64) - 1
    size = sum(ends)
    return Reading(
        [group for group, first in zip(groups, ends, strict=True) if first],
        tuple(_added(column, rows, size) for column in some.columns),
        units=_added(units, rows, size),
    )


def _alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether two groups are one; a NaN is like itself."""
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def _timed(answer: pa.Table, kinds: Sequence[Kind | None]) -> pa.Table:
    """The same with timestamps and times of day where an engine has their seconds."""
    for place, kind in enumerate(kinds):
        if kind in ("timestamp", "time"):
            name = f"k{place}"
            seconds = one_array(answer.column(name)).cast(pa.int64() if kind == "timestamp" else pa.int32())
            timed = seconds.view(pa.timestamp("s") if kind == "timestamp" else pa.time32("s"))
            answer = answer.set_column(answer.column_names.index(name), name, timed)
    return answer


def align(answer: pa.Table, measured: Measured) -> tuple[NDArray[Any], ...]:
    """The integers of each measurement, aligned with the public keys; empty groups are 0."""
    columns = [integers(answer.column(f"m{j}")) for j in range(len(measured.measurements))]
    size = len(measured.combinations)
    if not measured.levels:
        rows = _rows(answer, measured)
        return tuple(_added(column, rows, size) for column in columns)
    # Each finest group is added to one group of every level.
    place = {combination: row for row, combination in enumerate(measured.combinations)}
    keys = _keys(answer, measured)
    found = [
        place.get(tuple(value if i in level else None for i, value in enumerate(key)), -1)
        for level in measured.levels
        for key in keys
    ]
    rows = np.array(found, dtype=np.int64)
    return tuple(_added(np.tile(column, len(measured.levels)), rows, size) for column in columns)


def _added(values: NDArray[Any], rows: NDArray[np.int64], size: int) -> NDArray[Any]:
    """What values add up to on each of so many rows, exactly; a row of −1 is none."""
    values = _roomy(values)
    added = np.zeros(size, dtype=values.dtype)
    known = rows >= 0
    np.add.at(added, rows[known], values[known])
    return added


def _roomy(values: NDArray[Any]) -> NDArray[Any]:
    """Integers that may be added up in any way: Python's, where all of them together may not fit."""
    fits = values.dtype != object and float(np.abs(values.astype(np.float64)).sum()) < _LIMIT
    return values if fits else values.astype(object)


def on_lines(exact: Reading, lines: Sequence[Line]) -> tuple[NDArray[Any], ...]:
    """What was read for each group that was found, added up on the line that it is on, level by level.

    Privacy:
        Each group, selected or not, is added to at most one line of each level, whole: with the lines fixed,
        a unit moves a level by no more than `plan.questions.sensitivity.sensitivity_in` says.
    """
    shelf = shelf_of(lines)
    pairs = [(row, place) for row, group in enumerate(exact.groups) for place in places_in(shelf, group)]
    rows, places = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return tuple(_added(column[rows], places, len(lines)) for column in exact.columns)


def _rows(answer: pa.Table, measured: Measured) -> NDArray[np.int64]:
    """Which of the public groups each row of an answer is about; −1: none of them."""
    if not measured.keys:
        return np.zeros(answer.num_rows, np.int64)
    place: dict[Any, int]
    if len(measured.keys) == 1:
        values = [value for (value,) in measured.combinations]
        column = answer.column("k0")
        if pa.types.is_signed_integer(column.type) and {*map(type, values)} == {int}:
            return _whole_rows(column, np.array(values, np.int64))
        place = {value: row for row, value in enumerate(values)}
        return np.array([place.get(value, -1) for value in to_list(column)], np.int64)
    place = {combination: row for row, combination in enumerate(measured.combinations)}
    return np.array([place.get(key, -1) for key in _keys(answer, measured)], np.int64)


def _whole_rows(column: pa.ChunkedArray, values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where whole numbers are among different ones; −1: nowhere, or nothing is there."""
    order = np.argsort(values, kind="stable")
    keys = integers(column)
    at = np.minimum(np.searchsorted(values, keys, sorter=order), len(values) - 1)
    rows = np.where(values[order[at]] == keys, order[at], -1)
    return np.where(missing_in(column), -1, rows)


def _keys(answer: pa.Table, measured: Measured) -> list[tuple[Any, ...]]:
    keys = [to_list(answer.column(f"k{i}")) for i in range(len(measured.keys))]
    return list(zip(*keys, strict=True))


def _found(answer: pa.Table, measured: Measured) -> Reading:
    """Groups that were found in the data, sorted: nothing of the order in which they came is left."""
    columns = [integers(answer.column(f"m{j}")) for j in range(len(measured.measurements))]
    keys = [one_array(answer.column(f"k{i}")) for i in range(len(measured.keys))]
    order = sorted_rows(keys)
    return Reading(
        Found([taken(key, order) for key in keys]),
        tuple(column[order] for column in columns),
        units=integers(answer.column(UNITS))[order],
        weights=integers(answer.column(WEIGHTS))[order] if WEIGHTS in answer.column_names else None,
    )


def _cells(answer: pa.Table, measured: Measured) -> NDArray[Any]:
    weights = _roomy(integers(answer.column("m0")))
    width = measured.measurements[0].upper + 1
    counts = np.zeros((len(measured.combinations), width), dtype=weights.dtype)
    rows = _rows(answer, measured)
    known = rows >= 0
    np.add.at(counts, (rows[known], integers(answer.column(CELL))[known]), weights[known])
    return counts
