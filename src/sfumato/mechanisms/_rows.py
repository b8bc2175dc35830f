"""Rows handed to a function of the caller's: of a type that was declared, never of one that a row decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.numeric.private_values import MASKED, column_of, float_of, table_of, whole_of

__all__ = ["rows_of"]

_FLAT = "Values must be an array with one row for each record."
_OTHER = (
    "Values must be numbers: give a NumPy array of another type, or dtype=object, to keep them as they are."
)
_DTYPE = "dtype must be bool, int, float or object, or a pair such as (float, 3) for rows of three numbers."


def rows_of(values: Any, dtype: DTypeLike | None) -> NDArray[Any]:
    """Private rows, along the first axis, as an array.

    Args:
        values: a NumPy array, which keeps its type and shape unless a dtype is given, or other rows.
        dtype: the type that each value is converted to by itself; float64 for what is not a NumPy array.

    Raises:
        InvalidParameter: for another dtype.
        InvalidValue: for values without rows, by their declared type and shape alone.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidValue(MASKED)
    plain = getattr(values, "dtype", None)
    if dtype is None and isinstance(plain, np.dtype) and plain.kind != "O" and hasattr(values, "__array__"):
        array = np.asarray(values)
        if not array.ndim:
            raise InvalidValue(_FLAT)
        return array
    try:
        wanted = np.dtype(np.float64 if dtype is None else dtype)
    except TypeError:
        raise InvalidParameter(_DTYPE) from None
    if wanted.base.kind not in "biufO" or len(wanted.shape) > 1 or (wanted.base.kind == "O" and wanted.shape):
        raise InvalidParameter(_DTYPE)
    if wanted.kind == "O":
        return _objects(values)
    columns = wanted.shape[0] if wanted.shape else None
    if wanted.base.kind == "f":
        floats = table_of(values, columns, flat=_FLAT, other=_OTHER)
        with np.errstate(over="ignore"):
            return floats.astype(wanted.base)
    if columns is not None:
        cells = table_of(values, columns, flat=_FLAT, other=_OTHER)
        flat = [_whole(cell, wanted.base) for cell in cells.reshape(-1).tolist()]
        return np.array(flat, wanted.base).reshape(cells.shape)
    listed = list(column_of(values, _FLAT).data)
    return np.array([_whole(cell, wanted.base) for cell in listed], wanted.base)


def _objects(values: Any) -> NDArray[Any]:
    if isinstance(values, np.ndarray) and values.ndim:
        return values.astype(object)
    listed = list(column_of(values, _FLAT).data)
    array = np.empty(len(listed), object)
    for place, value in enumerate(listed):
        array[place] = value
    return array


def _whole(value: Any, wanted: np.dtype[Any]) -> int:
    """One value as a whole number of a type: cut towards zero, clamped to its ends, 0 if there is none."""
    whole = whole_of(value)
    if whole is None:
        number = float_of(value)
        whole = (
            0
            if math.isnan(number)
            else _WIDE
            if number == math.inf
            else -_WIDE
            if number == -math.inf
            else int(number)
        )
    if wanted.kind == "b":
        return int(whole == 1)
    ends = np.iinfo(wanted)
    return max(int(ends.min), min(int(ends.max), whole))


_WIDE = 2**64
