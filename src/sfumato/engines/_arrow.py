"""Types of Arrow that DuckDB cannot read as they are, or reads so that one value makes the read fail."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "exact_as_id",
    "has_runs",
    "is_zoned",
    "readable",
    "scannable",
    "scannable_type",
    "valid_text",
]

_EXACT_EXTENSIONS = ("arrow.uuid", "arrow.json")


def _readable_type(native: Any) -> Any:
    """A type that DuckDB reads: two rare ones have a near one, others stay."""
    import pyarrow as pa

    if pa.types.is_float16(native):
        return pa.float32()
    return pa.float64() if pa.types.is_decimal256(native) else native


def readable(column: Any) -> Any:
    """The column in a type that DuckDB reads."""
    target = _readable_type(column.type)
    return column if target == column.type else column.cast(target)


def exact_as_id(native: Any) -> bool:
    """Whether two values of this type that differ still do in DuckDB, whatever the type is wrapped in.

    Days in milliseconds lose the part of a day, decimals of 76 digits become floats, and truth in bytes has
    254 ways to be true.
    """
    import pyarrow as pa

    if isinstance(native, pa.BaseExtensionType):
        return native.extension_name in _EXACT_EXTENSIONS
    inner = _inside(native)
    if inner is not None:
        return exact_as_id(inner)
    return not (pa.types.is_date64(native) or pa.types.is_decimal256(native))


def scannable_type(native: Any) -> Any:
    """The type in which a column is given to DuckDB, so that no value of it makes the scan fail.

    DuckDB has times with a zone in microseconds only and multiplies while it scans, which fails for one that
    is too large. Those in seconds or milliseconds are given without their zone, in their unit: the instants
    are the same. Of runs of dictionaries it would read the keys, so that runs are always decoded; what else
    is wrapped (a dictionary, an extension) stays so unless something inside has to change.
    """
    import pyarrow as pa

    inner = _inside(native)
    if inner is not None:
        target = scannable_type(inner)
        return native if target == inner and not pa.types.is_run_end_encoded(native) else target
    return pa.timestamp(native.unit) if is_zoned(native) else _readable_type(native)


def scannable(column: Any) -> Any:
    """The column in the type of `scannable_type`; without a copy where that only drops a zone."""
    import pyarrow as pa

    target = scannable_type(column.type)
    if target == column.type:
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array([_made(chunk, target) for chunk in chunks], target)


def is_zoned(native: Any) -> bool:
    """Whether these are times with a zone that `scannable_type` drops, whatever they are wrapped in."""
    import pyarrow as pa

    inner = _inside(native)
    if inner is not None:
        return is_zoned(inner)
    return bool(pa.types.is_timestamp(native) and native.tz is not None and native.unit in ("s", "ms"))


def has_runs(native: Any) -> bool:
    """Whether there are runs, which a dataset cannot decode, around what DuckDB cannot be given as it is."""
    import pyarrow as pa

    if not pa.types.is_run_end_encoded(native):
        inner = _inside(native)
        return inner is not None and has_runs(inner)
    inner = native.value_type
    return _inside(inner) is not None or scannable_type(inner) != inner


def _inside(native: Any) -> Any:
    """The type that a dictionary, runs or an extension hold; None for a type that is not such a wrapper."""
    import pyarrow as pa

    if pa.types.is_dictionary(native) or pa.types.is_run_end_encoded(native):
        return native.value_type
    return native.storage_type if isinstance(native, pa.BaseExtensionType) else None


def _made(chunk: Any, target: Any) -> Any:
    while chunk.type != target:
        chunk = chunk.cast(target) if _inside(chunk.type) is None else _opened(chunk)
    return chunk


def _opened(chunk: Any) -> Any:
    """The values that a dictionary, runs or an extension mean, one for each row."""
    import pyarrow as pa

    if pa.types.is_dictionary(chunk.type):
        return chunk.dictionary.take(chunk.indices)
    if not pa.types.is_run_end_encoded(chunk.type):
        return chunk.storage
    if not len(chunk):
        return chunk.values.slice(0, 0)
    rows = np.arange(chunk.offset, chunk.offset + len(chunk))
    places = np.searchsorted(chunk.run_ends.to_numpy(), rows, side="right")
    return chunk.values.take(pa.array(places))


def valid_text(column: Any) -> Any:
    """The column itself unless it is text with something that is not UTF-8, which becomes NULL.

    Functions of text fail on such bytes, and a read with them.
    """
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        plain = column.cast(kind) if pa.types.is_dictionary(column.type) else column
        return pa.array([_decoded(value) for value in plain], pa.string())
    return column


def _decoded(scalar: Any) -> str | None:
    try:
        text = scalar.as_py()
        return text if text is None or isinstance(text, str) else None
    except UnicodeDecodeError:
        return None
