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

from sfumato.plan.expressions.ranges import Facts, day_of, days_of, truth
from sfumato.schema import Kind
from sfumato.synth.columns.fine import Fine

__all__ = ["Points", "Values", "as_column", "as_values", "facts_of_columns", "points"]

Values: TypeAlias = np.ma.MaskedArray[Any, Any]
"""Numbers as float64, truth values, texts as objects, dates as days; masked where they are missing."""

_DTYPES: dict[Kind, Any] = {"boolean": bool, "text": object, "date": "datetime64[D]"}


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
    numbers = [days_of(value) if kind == "date" else Fraction(value) for value in column.values]
    return Facts(kind, nullable, min(numbers), max(numbers), None, column.values)


def as_values(column: pa.Array, kind: Kind) -> Values:
    """A drawn column as conditions are computed over it."""
    missing = np.asarray(column.is_null())
    if kind == "text":
        return np.ma.MaskedArray(column.fill_null("").to_numpy(zero_copy_only=False), mask=missing)
    if kind == "boolean":
        return np.ma.MaskedArray(column.fill_null(False).to_numpy(zero_copy_only=False), mask=missing)
    if kind == "date":
        days = column.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        return np.ma.MaskedArray(days.astype("datetime64[D]"), mask=missing)
    return np.ma.MaskedArray(
        column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False), mask=missing
    )


def as_column(values: Values, kind: Kind) -> pa.Array:
    """Such values as a column again."""
    missing, plain = np.ma.getmaskarray(values), values.data
    if kind == "date":
        return pa.array(plain.astype(np.int64).astype(np.int32), pa.int32(), mask=missing).cast(pa.date32())
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
    if column.values is None and column.kind == "date":
        plain = [day_of(number) for number in plain]
    if column.nullable:
        cells = np.append(cells, column.known)
    return Points(_masked(plain, column), np.asarray(cells, np.int64), single)


def _masked(plain: Sequence[Any], column: Fine) -> Values:
    dtype = _DTYPES.get(column.kind, np.float64)
    filler = {"text": "", "boolean": False, "date": datetime.date(1970, 1, 1)}.get(column.kind, 0.0)
    listed = [*plain, *([filler] if column.nullable else [])]
    if dtype is np.float64:
        listed = [float(value) for value in listed]
    values = np.empty(len(listed), dtype)
    values[:] = listed
    mask = np.zeros(len(listed), bool)
    if column.nullable:
        mask[-1] = True
    return np.ma.MaskedArray(values, mask=mask)


def _tried(column: Fine, constants: Iterable[Any], closed: bool) -> tuple[list[Any], NDArray[np.int64]]:
    """Numbers of cells that hold many, each with its cell."""
    whole, steps = column.kind != "float", max(column.steps, 1)
    found = [set(ends) for ends in (_whole_ends(column) if whole else _ends(column, closed))]
    for constant in constants:
        number = _number(constant)
        if number is None:
            continue
        for near in {math.floor(number), math.ceil(number)} if whole else {number}:
            if column.lower <= near <= column.upper:
                part = (near - column.lower) / max(column.upper - column.lower, Fraction(1, 2**1074))
                found[math.floor(part * steps + Fraction(1, 2))].add(near if whole else float(near))
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
    """The ends of each cell; the upper one is in the next cell unless they are closed."""
    lower, upper = float(column.lower), float(column.upper)
    edges = lower + (np.arange(column.known + 1) - 0.5) * ((upper - lower) / max(column.steps, 1))
    edges = np.clip(edges, lower, upper)
    low, high = edges[:-1], edges[1:]
    if not closed:
        high = np.append(np.maximum(np.nextafter(high[:-1], -np.inf), low[:-1]), high[-1:])
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _number(constant: Any) -> Any:
    """A constant as a number: days of a date; None if it is none."""
    if isinstance(constant, datetime.date):
        return days_of(constant)
    if isinstance(constant, bool) or not isinstance(constant, int | float | Fraction):
        return None
    return Fraction(constant) if math.isfinite(constant) else None
