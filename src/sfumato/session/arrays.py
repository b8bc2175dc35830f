"""Arrow arrays to and from plain values, a column at a time.

They are made without `pyarrow.array` and read without `to_numpy`, which import pandas if it is installed: the
import takes longer than the whole release of a small answer.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

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
_FIRST = _DAY_0.toordinal()


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
        if values and None not in values and (written := _written(values)) is not None:
            return written
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


def _written(texts: Sequence[str]) -> pa.Array | None:
    """Texts one after the other, and the places where they end; None: not ASCII, or more than fit."""
    joined = "".join(texts)
    if not joined.isascii() or len(joined) >= 2**31:
        return None
    ends = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, texts), np.int32, len(texts)), out=ends[1:])
    data = pa.py_buffer(joined.encode("ascii"))
    return pa.Array.from_buffers(pa.string(), len(texts), [None, pa.py_buffer(ends), data])


def to_list(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as `to_pylist` gives them, without a scalar of Arrow's own for each."""
    read = _reader(column.type)
    if read is None:
        listed: list[Any] = column.to_pylist()
        return listed
    return [value for chunk in column.chunks for value in _with_nulls(read(chunk), chunk)]


_Reader: TypeAlias = Callable[[pa.Array], list[Any]]


def _reader(kind: pa.DataType) -> _Reader | None:
    """What reads a chunk of this type, whatever it holds where nothing is; None: Arrow itself."""
    if pa.types.is_integer(kind) or pa.types.is_float64(kind):
        return lambda chunk: _buffer(chunk, kind.to_pandas_dtype()).tolist()
    if pa.types.is_string(kind):
        return _texts
    if pa.types.is_date32(kind):
        return _dates
    if pa.types.is_boolean(kind):
        return lambda chunk: _bits(chunk, chunk.buffers()[1]).tolist()
    return _from_words if pa.types.is_decimal128(kind) and kind.scale == 0 else None


def _with_nulls(values: list[Any], chunk: pa.Array) -> list[Any]:
    if chunk.null_count:
        for place in np.flatnonzero(~_bits(chunk, chunk.buffers()[0])).tolist():
            values[place] = None
    return values


def _dates(chunk: pa.Array) -> list[Any]:
    days = _buffer(chunk, np.int32)
    if chunk.null_count:  # where nothing is, there may be any number
        days = np.where(_bits(chunk, chunk.buffers()[0]), days, 0)
    return [*map(datetime.date.fromordinal, (days + _FIRST).tolist())]


def _buffer(chunk: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    if not len(chunk):
        return np.empty(0, dtype)
    return np.frombuffer(chunk.buffers()[1], dtype)[chunk.offset : chunk.offset + len(chunk)]


def _bits(chunk: pa.Array, buffer: Any) -> npt.NDArray[np.bool_]:
    if not len(chunk):
        return np.empty(0, np.bool_)
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[chunk.offset : chunk.offset + len(chunk)].astype(np.bool_)


def _texts(chunk: pa.Array) -> list[Any]:
    if not len(chunk):
        return []
    offsets, data = chunk.buffers()[1:]
    ends = np.frombuffer(offsets, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
    written = b"" if data is None else data.to_pybytes()
    if written.isascii():
        text = written.decode("ascii")
        return [text[start:end] for start, end in pairwise(ends)]
    return [written[start:end].decode() for start, end in pairwise(ends)]


def _from_words(chunk: pa.Array) -> list[Any]:
    """Whole numbers of 128 bits, which are two words each: the low one, and the high one with the sign."""
    if not len(chunk):
        return []
    words = np.frombuffer(chunk.buffers()[1], np.int64).reshape(-1, 2)
    low, high = words[chunk.offset : chunk.offset + len(chunk)].T
    if (high == low >> 63).all():
        short: list[Any] = low.tolist()
        return short
    pairs = zip(high.tolist(), low.astype(np.uint64).tolist(), strict=True)
    return [(top << 64) + bottom for top, bottom in pairs]


def from_numbers(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    """Numbers or booleans of NumPy as an array, null where they are missing."""
    plain = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return _from_buffer(pa.from_numpy_dtype(values.dtype), plain, missing)


def _from_buffer(kind: pa.DataType, plain: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    there = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.Array.from_buffers(kind, len(missing), [there, pa.py_buffer(plain)])
