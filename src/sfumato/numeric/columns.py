"""Arrow arrays to and from plain values, a column at a time.

They are made without `pyarrow.array` and read without `to_numpy`, which import pandas if it is installed: the
import takes longer than the whole release of a small answer.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.lib import StringBuilder

from sfumato.numeric.moments import seconds_of

__all__ = [
    "coded_texts",
    "from_list",
    "from_numbers",
    "from_parts",
    "integers",
    "is_text",
    "kind_of",
    "locked",
    "missing_in",
    "one_array",
    "own_numbers",
    "ranks",
    "sorted_rows",
    "taken",
    "to_list",
    "to_parts",
]

_KINDS = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    datetime.date: pa.date32(),
    datetime.datetime: pa.timestamp("s"),
    datetime.time: pa.time32("s"),
}
_MANY = 2000  # from so many rows on, Arrow's functions are worth their import
_WORD = 8  # bytes of a text that are compared at once
_OWN = np.array([2**64 - 2 ** (64 - 8 * length) for length in range(_WORD + 1)], np.uint64)
_DAY_0 = datetime.date(1970, 1, 1)
_FIRST = _DAY_0.toordinal()


_WORDS: dict[pa.DataType, Any] = {
    pa.date32(): np.int32,
    pa.time32("s"): np.int32,
    pa.timestamp("s"): np.int64,
}


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
    if pa.types.is_timestamp(kind) or pa.types.is_time32(kind):
        seconds = [0 if value is None else seconds_of(value) for value in values]
        return _from_buffer(kind, np.array(seconds, _WORDS[kind]), missing)
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
    listed: list[Any] = _words(chunk).tolist()
    return listed


def _words(chunk: pa.Array) -> npt.NDArray[Any]:
    """Whole numbers of 128 bits, which are two words each: the low one, and the high one with the sign."""
    if not len(chunk):
        return np.empty(0, np.int64)
    words = np.frombuffer(chunk.buffers()[1], np.int64).reshape(-1, 2)
    low: npt.NDArray[np.int64]
    low, high = words[chunk.offset : chunk.offset + len(chunk)].T
    if (high == low >> 63).all():
        return low
    pairs = zip(high.tolist(), low.astype(np.uint64).tolist(), strict=True)
    return np.array([(top << 64) + bottom for top, bottom in pairs], object)


def integers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column of whole numbers: int64 if all of them fit, else Python integers; what is missing is 0."""
    kind, parts = column.type, list[npt.NDArray[Any]]()
    signed = pa.types.is_signed_integer(kind)
    if not signed and not (pa.types.is_decimal128(kind) and kind.scale == 0):
        return _whole([int(value or 0) for value in to_list(column)])
    for chunk in column.chunks:
        part = _buffer(chunk, kind.to_pandas_dtype()).astype(np.int64) if signed else _words(chunk)
        parts.append(np.where(_bits(chunk, chunk.buffers()[0]), part, 0) if chunk.null_count else part)
    whole = np.concatenate(parts) if parts else np.empty(0, np.int64)
    # A long number where nothing is must not make all of them long.
    return _whole(whole.tolist()) if whole.dtype == object else np.ascontiguousarray(whole)


def own_numbers(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """A column of signed whole numbers or floats of at most 64 bits in its own type; what is missing is 0."""
    dtype, parts = column.type.to_pandas_dtype(), list[npt.NDArray[Any]]()
    for chunk in column.chunks:
        part = _buffer(chunk, dtype)
        parts.append(np.where(_bits(chunk, chunk.buffers()[0]), part, dtype(0)) if chunk.null_count else part)
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def _whole(values: list[int]) -> npt.NDArray[Any]:
    fits = all(-(2**63) <= value < 2**63 for value in values)
    return np.array(values, np.int64 if fits else object)


def missing_in(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Where nothing is."""
    parts = [
        ~_bits(chunk, chunk.buffers()[0]) if chunk.null_count else np.zeros(len(chunk), bool)
        for chunk in column.chunks
    ]
    return np.concatenate(parts) if parts else np.empty(0, bool)


def is_text(kind: pa.DataType) -> bool:
    """Whether it is a type of texts, short or long ones."""
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def coded_texts(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Texts as places among all that there are, which are sorted; what is missing is 0.

    Bytes that are no text are read as the sign for that: no value makes it fail.
    """
    encoded = column.cast(pa.large_binary()).combine_chunks().dictionary_encode()
    texts = [value.decode("utf-8", "replace") for value in encoded.dictionary.to_pylist()]
    known = sorted(set(texts))
    place = {text: at for at, text in enumerate(known)}
    table = np.array([0, *(place[text] for text in texts)], np.int32)
    codes = np.where(missing_in(pa.chunked_array([encoded.indices])), -1, _buffer(encoded.indices, np.int32))
    return table[codes + 1], tuple(known)


def locked(column: pa.Array) -> pa.Array:
    """The same column in the same memory, which cannot be written to through its buffers."""
    buffers = [buffer and pa.py_buffer(memoryview(buffer).toreadonly()) for buffer in column.buffers()]
    return pa.Array.from_buffers(column.type, len(column), buffers, offset=column.offset)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece; whole numbers have 64 bits if all of them fit."""
    kind = column.type
    if pa.types.is_integer(kind) or (pa.types.is_decimal128(kind) and kind.scale == 0):
        numbers = integers(column)
        if numbers.dtype != object:
            return from_numbers(numbers, missing_in(column))
    if pa.types.is_string(kind) and sum(chunk.nbytes for chunk in column.chunks) >= 2**31:
        column = column.cast(pa.large_string())
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else from_list([], kind)


def sorted_rows(columns: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """The rows by their first column, then their second, …; what is missing comes last.

    Texts are sorted by their code points; rows that are equal stay as they were.
    """
    if len(columns) == 1:
        return _ascending(columns[0])
    codes = [ranks(column) for column in columns]
    return np.lexsort(codes[::-1])


def ranks(column: pa.Array) -> npt.NDArray[np.float64]:
    """Numbers that sort like the values: equal ones have one, and what is missing is infinite."""
    if _ascends(column):
        return np.arange(len(column), dtype=np.float64)
    order = _ascending(column)
    present = order[: len(column) - column.null_count]
    there = taken(column, present)
    codes = np.full(len(column), np.inf)
    codes[present] = np.cumsum(_differ(there)) - 1
    return codes


def _ascends(column: pa.Array) -> bool:
    """Whether each value is surely above the one before it: found keys are stored so."""
    if column.null_count or len(column) < _MANY:
        return False
    codes = _first_words(column) if pa.types.is_string(column.type) else _numbers(column)
    return codes is not None and bool((codes[1:] > codes[:-1]).all())


def _ascending(column: pa.Array) -> npt.NDArray[np.int64]:
    if len(column) < _MANY:
        return _sorted_list(_listed(column))
    if pa.types.is_string(column.type):
        words = _first_words(column)
        order = np.argsort(words, kind="stable")
        ordered = words[order]
        if not column.null_count and bool((ordered[1:] != ordered[:-1]).all()):
            return order
    elif not column.null_count and (number := _numbers(column)) is not None:
        return np.argsort(number, kind="stable")
    import pyarrow.compute

    found = pyarrow.compute.array_sort_indices(column)  # what is missing comes last
    return _buffer(found, np.uint64).astype(np.int64)


def _first_words(column: pa.Array) -> npt.NDArray[np.uint64]:
    """The first bytes of each text as a number that sorts like them; texts that differ later on share one."""
    offsets, data = column.buffers()[1:]
    ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    written = b"" if data is None else data.to_pybytes()
    # A word begins at each byte: they overlap.
    words = np.ndarray((len(written) + 1,), ">u8", written + bytes(_WORD), strides=(1,))
    return words[ends[:-1]].astype(np.uint64) & _OWN[np.minimum(np.diff(ends), _WORD)]


def _sorted_list(values: list[Any]) -> npt.NDArray[np.int64]:
    present = [row for row, value in enumerate(values) if value is not None]
    missing = [row for row, value in enumerate(values) if value is None]
    return np.array(sorted(present, key=values.__getitem__) + missing, np.int64)


def _differ(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a value is not the one before it; none is missing."""
    differ = np.ones(len(column), bool)
    if len(column) < _MANY:
        differ[1:] = [one != other for one, other in pairwise(_listed(column))]
    elif (number := _numbers(column)) is not None:
        differ[1:] = number[1:] != number[:-1]
    else:
        import pyarrow.compute

        found = pyarrow.compute.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        differ[1:] = _bits(found, found.buffers()[1])
    return differ


def _numbers(column: pa.Array) -> npt.NDArray[Any] | None:
    """The numbers, days or seconds of a column, whatever is where nothing is; None: it has none."""
    if pa.types.is_integer(column.type):
        return _buffer(column, column.type.to_pandas_dtype())
    if column.type in _WORDS:
        return _buffer(column, _WORDS[column.type])
    return _bits(column, column.buffers()[1]) if pa.types.is_boolean(column.type) else None


def taken(column: pa.Array, rows: npt.NDArray[np.int64]) -> pa.Array:
    """Some rows of a column, in this order."""
    if len(column) < _MANY:
        values = _listed(column)
        return from_list([values[row] for row in rows.tolist()], column.type)
    if len(rows) == len(column) and bool((rows == np.arange(len(rows))).all()):
        return column  # all of them, as they are
    number = _numbers(column)
    if number is None or column.null_count:
        return column.take(from_numbers(rows, np.zeros(len(rows), bool)))
    plain = number[rows]
    return _from_buffer(column.type, _packed(plain), np.zeros(len(rows), bool))


_STORED = {"text": pa.string(), "whole": pa.int64(), "day": pa.date32(), "truth": pa.bool_()} | {
    "moment": pa.timestamp("s"),
    "clock": pa.time32("s"),
}


def to_parts(column: pa.Array) -> tuple[str, dict[str, npt.NDArray[Any]]] | None:
    """A column as plain arrays by name, and what it holds; None: no such column is kept so."""
    known = next((name for name, kind in _STORED.items() if kind == column.type), None)
    if known is None:
        return None
    parts: dict[str, npt.NDArray[Any]] = {}
    if column.null_count:
        parts["missing"] = ~_bits(column, column.buffers()[0])
    if known != "text":
        numbers = _numbers(column)
        assert numbers is not None
        return known, parts | {"values": numbers}
    offsets, data = column.buffers()[1:]
    ends = np.zeros(1, np.int32)
    if len(column):
        ends = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    written = np.frombuffer(b"" if data is None else data, np.uint8)[ends[0] : ends[-1]]
    return known, parts | {"ends": ends - ends[0], "text": written}


def from_parts(holds: str, parts: Mapping[str, npt.NDArray[Any]]) -> pa.Array:
    """The column that `to_parts` took apart.

    Raises:
        ValueError: for parts that are not those of a column.
    """
    kind, last = _STORED[holds], parts["ends" if holds == "text" else "values"]
    size = len(last) - (holds == "text")
    missing = parts.get("missing", np.zeros(size, bool)).astype(bool)
    if len(missing) != size:
        raise ValueError("a part of another length")
    if holds == "text":
        there = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
        buffers = [there, *(pa.py_buffer(np.ascontiguousarray(part)) for part in (last, parts["text"]))]
        column = pa.Array.from_buffers(kind, size, buffers)
    else:
        column = _from_buffer(kind, _packed(last), missing)
    column.validate(full=True)
    return column


def _listed(column: pa.Array) -> list[Any]:
    return to_list(pa.chunked_array([column], column.type))


def from_numbers(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    """Numbers or booleans of NumPy as an array, null where they are missing."""
    return _from_buffer(pa.from_numpy_dtype(values.dtype), _packed(values), missing)


def _packed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)


def _from_buffer(kind: pa.DataType, plain: npt.NDArray[Any], missing: npt.NDArray[np.bool_]) -> pa.Array:
    there = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.Array.from_buffers(kind, len(missing), [there, pa.py_buffer(plain)])
