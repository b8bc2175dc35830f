"""Arrow arrays to and from plain values, a column at a time.

They are made without `pyarrow.array`, which imports pandas, if installed, to see what it was given: the
import takes longer than the whole release of a small answer.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.lib import StringBuilder

__all__ = ["from_list", "from_numbers", "kind_of", "to_list"]

_KINDS = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime.date: pa.date32(),
}
_DAY_0 = datetime.date(1970, 1, 1)


def kind_of(value: Any) -> pa.DataType:
    """The type that Arrow gives to an array of such values."""
    known = _KINDS.get(type(value))
    return pa.array([value]).type if known is None else known


def from_list(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Plain Python values as an array of this type; None is null."""
    types = {*map(type, values)} - {type(None)}
    if not all(_KINDS.get(plain) == kind for plain in types):
        return pa.array(values, kind)
    if pa.types.is_string(kind):
        builder = StringBuilder()
        builder.append_values(values)
        return builder.finish()
    missing = np.zeros(len(values), dtype=bool)
    if None in values:
        missing[:] = [value is None for value in values]
    if pa.types.is_date32(kind):
        days = [(value or _DAY_0).toordinal() - _DAY_0.toordinal() for value in values]
        return _from_buffer(kind, np.array(days, dtype=np.int32), missing)
    if kind in _KINDS.values():
        filled = [value or 0 for value in values] if missing.any() else values
        return from_numbers(np.array(filled, kind.to_pandas_dtype()), missing)
    return pa.array(values, kind)


def to_list(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as `to_pylist` gives them, without a scalar of Arrow's own for each."""
    kind = column.type
    if pa.types.is_string(kind) or (not column.null_count and _is_plain(kind)):
        values: list[Any] = column.to_numpy().tolist()
        return values
    if not column.null_count and pa.types.is_decimal128(kind) and kind.scale == 0:
        return [value for chunk in column.chunks for value in _from_words(chunk)]
    listed: list[Any] = column.to_pylist()
    return listed


def _is_plain(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_date32(kind)
    )


def _from_words(chunk: pa.Array) -> list[int]:
    """Whole numbers of 128 bits, which are two words each: the low one, and the high one with the sign."""
    words = np.frombuffer(chunk.buffers()[1], np.int64).reshape(-1, 2)
    low, high = words[chunk.offset : chunk.offset + len(chunk)].T
    if (high == low >> 63).all():
        short: list[int] = low.tolist()
        return short
    return [
        (top << 64) + bottom for top, bottom in zip(high.tolist(), low.view(np.uint64).tolist(), strict=True)
    ]


def from_numbers(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    """Numbers or booleans of NumPy as an array, null where they are missing."""
    plain = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return _from_buffer(pa.from_numpy_dtype(values.dtype), plain, missing)


def _from_buffer(kind: pa.DataType, plain: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    there = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.Array.from_buffers(kind, len(missing), [there, pa.py_buffer(plain)])
