"""Values of columns as conditions are computed over them, and the few of each cell that they are tried at."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.plan.expressions.ranges import Facts, place_of, truth
from sfumato.schema import Kind
from sfumato.synth.columns.fine import Fine

__all__ = ["Points", "Values", "as_column", "as_values", "facts_of_columns", "points"]

Values: TypeAlias = np.ma.MaskedArray[Any, Any]
"""Numbers as float64, truth values, texts as objects, dates as days, times as seconds; masked if missing."""

_ROUNDED = 2.0**-48  # of the bounds: more than the few roundings on the way to a row's cell
_DTYPES: dict[Kind, Any] = {
    "boolean": bool,
    "text": object,
    "date": "datetime64[D]",
    "timestamp": "datetime64[s]",
    "time": "timedelta64[s]",
}
_TIMES: dict[Kind, tuple[pa.DataType, pa.DataType]] = {
    "date": (pa.int32(), pa.date32()),
    "timestamp": (pa.int64(), pa.timestamp("s")),
    "time": (pa.int32(), pa.time32("s")),
}


class Points(NamedTuple):
    """Some values of each cell of a column, in the order of its cells.

    Attributes:
        values: The values.
        cells: The fine cell of each.
        single: Whether each cell has one value alone, so that nothing of the column is left out.
    """

    values: Values
    cells: NDArray[np.int64]
    single: bool


def facts_of_columns(columns: Iterable[Fine]) -> dict[str, Facts]:
    """What is known of the values that can be drawn, by column."""
    return {column.name: _facts(column) for column in columns}


def _facts(column: Fine) -> Facts:
    kind, nullable = column.kind, column.nullable
    if kind == "boolean":
        return truth(nullable=nullable)
    if column.is_open:
        return Facts(kind, nullable)
    if column.values is None:
        step = None if kind == "float" else Fraction(1)
        return Facts(kind, nullable, column.lower, column.upper, step)
    if kind == "text" or not column.values:
        return Facts(kind, nullable, values=column.values)
    numbers = [Fraction(place_of(value)) for value in column.values]
    return Facts(kind, nullable, min(numbers), max(numbers), None, column.values)


def as_values(column: pa.Array, kind: Kind) -> Values:
    """A drawn column as conditions are computed over it."""
    missing = np.asarray(column.is_null())
    if kind == "text":
        return np.ma.MaskedArray(column.fill_null("").to_numpy(zero_copy_only=False), mask=missing)
    if kind == "boolean":
        return np.ma.MaskedArray(column.fill_null(False).to_numpy(zero_copy_only=False), mask=missing)
    if kind in _TIMES:
        numbers = column.cast(_TIMES[kind][0]).fill_null(0).to_numpy(zero_copy_only=False)
        return np.ma.MaskedArray(numbers.astype(np.int64).astype(_DTYPES[kind]), mask=missing)
    return np.ma.MaskedArray(
        column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False), mask=missing
    )


def as_column(values: Values, kind: Kind) -> pa.Array:
    """Such values as a column again."""
    missing, plain = np.ma.getmaskarray(values), values.data
    if kind in _TIMES:
        words, native = _TIMES[kind]
        whole = plain.astype(_DTYPES[kind]).astype(np.int64).astype(words.to_pandas_dtype())
        return pa.array(whole, words, mask=missing).cast(native)
    if kind == "integer":
        return pa.array(np.rint(plain).astype(np.int64), pa.int64(), mask=missing)
    types = {"text": pa.string(), "boolean": pa.bool_(), "float": pa.float64()}
    return pa.array(plain, types[kind], mask=missing)


def points(column: Fine, constants: Iterable[Any] = (), *, closed: bool = False) -> Points:
    """The values at which conditions on a column are tried.

    A cell with one value has that. Of a cell with many numbers these are both ends, the constants that lie
    in it, and one between each two: what comparisons of sums tell apart, they tell apart at these.

    Args:
        column: The column.
        constants: Of the conditions.
        closed: Whether a cell has its upper end, too, where the next one begins.
    """
    if column.values is not None:
        plain, cells, single = list(column.values), np.arange(column.known), True
    elif column.has_whole_steps:
        plain = [column.lower + step for step in range(column.known)]
        cells, single = np.arange(column.known), True
    else:
        plain, cells = _tried(column, constants, closed)
        single = False
    if column.nullable:
        cells = np.append(cells, column.known)
    return Points(_masked(plain, column), np.asarray(cells, np.int64), single)


def _masked(plain: Sequence[Any], column: Fine) -> Values:
    dtype = _DTYPES.get(column.kind, np.float64)
    filler = {"text": "", "boolean": False}.get(column.kind, 0)
    listed = [*plain, *([filler] if column.nullable else [])]
    if dtype is np.float64:
        listed = [float(value) for value in listed]
    elif column.kind in _TIMES:  # days or seconds
        listed = list(np.array([int(place_of(value)) for value in listed], np.int64).astype(dtype))
    values = np.empty(len(listed), dtype)
    values[:] = listed
    mask = np.zeros(len(listed), bool)
    if column.nullable:
        mask[-1] = True
    return np.ma.MaskedArray(values, mask=mask)


def _tried(column: Fine, constants: Iterable[Any], closed: bool) -> tuple[list[Any], NDArray[np.int64]]:
    """Numbers of cells that hold many, each with its cell."""
    whole, steps = column.kind != "float", max(column.steps, 1)
    ends = _whole_ends(column) if whole else _ends(column, closed)
    found = [set(pair) for pair in ends]
    for constant in constants:
        number = _number(constant)
        if number is None:
            continue
        for near in {math.floor(number), math.ceil(number)} if whole else {number}:
            if column.lower <= near <= column.upper:
                part = (near - column.lower) / max(column.upper - column.lower, Fraction(1, 2**1074))
                cell, value = math.floor(part * steps + Fraction(1, 2)), near if whole else float(near)
                found[cell].add(value)
                for other in {max(cell - 1, 0), min(cell + 1, column.known - 1)} if closed else ():
                    if ends[other][0] <= value <= ends[other][1]:
                        found[other].add(value)
    numbers, cells = list[Any](), list[int]()
    for cell, some in enumerate(found):
        pairs = itertools.pairwise(sorted(some))
        between = {(one + other) // 2 if whole else one + (other - one) / 2 for one, other in pairs}
        every = sorted(some | between)
        numbers += every
        cells += [cell] * len(every)
    return numbers, np.array(cells, np.int64)


def _whole_ends(column: Fine) -> list[tuple[int, int]]:
    """The least and the greatest whole number of each cell."""
    lower, span, twice = int(column.lower), int(column.upper - column.lower), 2 * max(column.steps, 1)
    return [
        (
            lower + max(-(-(2 * cell - 1) * span // twice), 0),
            lower + min((2 * cell + 1) * span // twice, span),
        )
        for cell in range(column.known)
    ]


def _ends(column: Fine, closed: bool) -> list[tuple[float, float]]:
    """The ends of each cell; the upper one is in the next cell unless they are closed.

    Closed cells reach a little farther: a row's cell is computed in doubles (`Scaled`), which may put one
    that lies at an end into either of two cells.
    """
    lower, upper = float(column.lower), float(column.upper)
    edges = lower + (np.arange(column.known + 1) - 0.5) * ((upper - lower) / max(column.steps, 1))
    reach = _ROUNDED * (abs(lower) + abs(upper)) if closed else 0.0
    low, high = (np.clip(ends, lower, upper) for ends in (edges[:-1] - reach, edges[1:] + reach))
    if not closed:
        high = np.append(np.maximum(np.nextafter(high[:-1], -np.inf), low[:-1]), high[-1:])
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _number(constant: Any) -> Any:
    """A constant as a number: days of a date, seconds of other times; None if it is none."""
    if isinstance(constant, datetime.date | datetime.time):
        return Fraction(place_of(constant))
    if isinstance(constant, bool) or not isinstance(constant, int | float | Fraction):
        return None
    return Fraction(constant) if math.isfinite(constant) else None
