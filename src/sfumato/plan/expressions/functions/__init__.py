"""The closed list of scalar functions, and their evaluation over results.

One meaning for all engines:

- Numbers are computed in doubles, so whole numbers are exact up to 2**53; a result is BIGINT or DOUBLE.
- Timestamps and times of day are whole seconds, in UTC or as the source has them without a zone.
- What is undefined is NULL: division by zero, the logarithm of zero, a text that is not a date, a date beyond
  the years 1 to 9999. What is too large is infinite, and is clamped where it is measured.
- What makes a text of others reads their first 10,000 characters.
- NaN comes only from NaN (or infinities) in the data. Comparisons take it as equal to itself and greater than
  every number; where it is measured, it counts for nothing.
- Equal arguments give equal results: zero has no sign, and one NaN is like another.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.moments import seconds_of
from sfumato.plan.expressions.functions.arithmetic import ARITHMETIC
from sfumato.plan.expressions.functions.base import Array, Function, Vector
from sfumato.plan.expressions.functions.casts import CASTS
from sfumato.plan.expressions.functions.dates import DATES
from sfumato.plan.expressions.functions.logic import LOGIC
from sfumato.plan.expressions.functions.powers import POWERS
from sfumato.plan.expressions.functions.text import TEXT
from sfumato.plan.expressions.functions.times import TIMES
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, columns_of
from sfumato.schema import Kind

__all__ = ["FUNCTIONS", "Function", "Vector", "evaluate", "guard_of", "overload"]

FUNCTIONS: dict[str, Function] = {
    function.name: function for function in (*ARITHMETIC, *POWERS, *LOGIC, *TEXT, *DATES, *TIMES, *CASTS)
}
"""Every function that a plan may call, by name."""

_OVERLOADS: dict[tuple[str, tuple[str, ...]], tuple[str, tuple[int, ...]]] = {
    ("add", ("date", "number")): ("add_days", (0, 1)),
    ("add", ("number", "date")): ("add_days", (1, 0)),
    ("subtract", ("date", "number")): ("subtract_days", (0, 1)),
    ("subtract", ("date", "date")): ("days_between", (0, 1)),
}


def overload(function: str, kinds: tuple[Kind | None, ...]) -> tuple[str, tuple[int, ...]]:
    """Which function a name means for arguments of these kinds, and in which order it takes them."""
    if function == "to_text" and kinds in (("integer",), ("float",)):
        return f"{kinds[0]}_to_text", (0,)
    groups = tuple("number" if kind in ("integer", "float", None) else str(kind) for kind in kinds)
    return _OVERLOADS.get((function, groups), (function, tuple(range(len(kinds)))))


def guard_of(function: Function, position: int, argument: Expression) -> str:
    """The template that an argument needs around it; empty if none."""
    if position not in function.guards or isinstance(argument, Literal):
        return ""
    inner = FUNCTIONS.get(argument.function) if isinstance(argument, Call) else None
    return "" if inner is not None and inner.guarded else function.guard


def evaluate(expression: Expression, columns: Mapping[str, Array]) -> np.ma.MaskedArray[Any, Any]:
    """The expression over results (HAVING, arithmetic over aggregates): post-processing, total.

    Args:
        expression: What to compute.
        columns: Arrays of one length by name: numbers, truth values, text (object), dates and timestamps
            (datetime64 or object) or times of day (timedelta64 or object). NULL is what a masked array masks,
            NaN among floats and None among objects.

    Returns:
        A masked array, masked where the result is NULL: float64 for all numbers, bool, object (text),
        datetime64[D], datetime64[s], timedelta64[s]. `result.filled(False)` of a condition says where it
        holds.

    Raises:
        QueryRefused: for a function that has no form over results, or an unknown one.
    """
    used = {name: columns[name] for name in columns_of(expression) if name in columns}
    vectors = {name: _vector(np.ma.asanyarray(column)) for name, column in used.items()}
    count = len(next(iter(columns.values()))) if columns else 1
    result = _evaluate(expression, vectors, count)
    return np.ma.MaskedArray(result.values, mask=~result.valid)


def _evaluate(expression: Expression, vectors: Mapping[str, Vector], count: int) -> Vector:
    if isinstance(expression, Column):
        if expression.name not in vectors:
            raise InvalidParameter(f"The results have no column {expression.name[:40]!r}.")
        return vectors[expression.name]
    if isinstance(expression, Literal):
        return _repeated(expression, count)
    arguments = [_evaluate(argument, vectors, count) for argument in expression.arguments]
    kinds = tuple(_kind(argument.values.dtype) for argument in arguments)
    name, order = overload(expression.function, kinds)
    function = FUNCTIONS.get(name)
    if function is None or function.compute is None:
        raise QueryRefused(f"{expression.function[:40].upper()} is not supported over results.")
    try:
        return function.compute(*(arguments[place] for place in order))
    except (TypeError, ValueError, IndexError, AttributeError):  # wrong kinds or number of arguments
        raise QueryRefused(f"{name.upper()} cannot be computed from these results.", function.doc) from None


def _repeated(constant: Literal, count: int) -> Vector:
    if constant.value is None:
        return Vector(np.zeros(count), np.zeros(count, dtype=bool))
    dtype = _DTYPES.get(str(constant.kind), float)
    value = constant.value
    if isinstance(value, datetime.time):
        value = seconds_of(value)
    return _vector(np.ma.asanyarray(np.full(count, value, dtype=dtype)))


_KINDS: dict[str, Kind] = {"b": "boolean", "O": "text", "m": "time"}
_DTYPES: dict[str, Any] = {
    "boolean": bool,
    "text": object,
    "date": "datetime64[D]",
    "timestamp": "datetime64[s]",
    "time": "timedelta64[s]",
}


def _kind(dtype: np.dtype[Any]) -> Kind:
    if dtype.kind == "M":
        return "date" if dtype == np.dtype("datetime64[D]") else "timestamp"
    return _KINDS.get(dtype.kind, "float")


def _vector(column: np.ma.MaskedArray[Any, Any]) -> Vector:
    values, valid = column.data, ~np.ma.getmaskarray(column)
    if values.dtype.kind == "O":
        valid = valid & np.array([value is not None and value == value for value in values], dtype=bool)
        values = _from_objects(values, valid)
    elif values.dtype.kind in "iuf":
        values = values.astype(np.float64)
    elif values.dtype.kind in "mM":
        valid = valid & ~np.isnat(values)
        values = values.astype(_DTYPES[_kind(values.dtype)])
    elif values.dtype.kind in "UT":
        values = values.astype(object)
    if values.dtype.kind == "f":
        valid = valid & ~np.isnan(values)
    return Vector(values, valid)


def _from_objects(values: Array, valid: Array) -> Array:
    first = next(iter(values[valid]), None)
    if isinstance(first, datetime.time):
        listed = [seconds_of(value) if there else 0 for value, there in zip(values, valid, strict=True)]
        return np.array(listed, dtype="timedelta64[s]")
    for kind, dtype, filler in _OBJECTS:
        if isinstance(first, kind):
            return np.where(valid, values, filler).astype(dtype)
    return np.where(valid, values, "")


_OBJECTS: tuple[tuple[Any, Any, Any], ...] = (
    (bool | np.bool_, bool, False),
    (int | float | np.number, np.float64, 0.0),
    (datetime.datetime, "datetime64[s]", datetime.datetime(1970, 1, 1)),
    (datetime.date, "datetime64[D]", datetime.date(1970, 1, 1)),
)
