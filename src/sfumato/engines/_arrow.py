"""Types of Arrow that DuckDB cannot read as they are, or reads so that one value makes the read fail."""

from __future__ import annotations

from typing import Any

__all__ = ["exact_as_id", "readable", "readable_type", "valid_text", "without_zone", "zoneless"]


def readable_type(native: Any) -> Any:
    """A type that DuckDB reads: two rare ones have a near one, others stay."""
    import pyarrow as pa

    if pa.types.is_float16(native):
        return pa.float32()
    return pa.float64() if pa.types.is_decimal256(native) else native


def readable(column: Any) -> Any:
    """The column in a type that DuckDB reads."""
    target = readable_type(column.type)
    return column if target == column.type else column.cast(target)


def exact_as_id(native: Any) -> bool:
    """Whether two values of this type that differ still do in DuckDB.

    Days in milliseconds lose the part of a day, decimals of 76 digits become floats, and truth in bytes has
    254 ways to be true.
    """
    import pyarrow as pa

    if isinstance(native, pa.BaseExtensionType):
        return native.extension_name in ("arrow.uuid", "arrow.json")
    inner = native.value_type if pa.types.is_dictionary(native) else native
    return not (pa.types.is_date64(inner) or pa.types.is_decimal256(inner))


def zoneless(native: Any) -> Any:
    """The type without its zone if it is a time in seconds or milliseconds.

    DuckDB has times with a zone in microseconds only and multiplies while it scans, which fails for one that
    is too large. Those without a zone stay in their unit. The instants are the same: a zone is for showing.
    """
    import pyarrow as pa

    if pa.types.is_timestamp(native) and native.tz is not None and native.unit in ("s", "ms"):
        return pa.timestamp(native.unit)
    return native


def without_zone(column: Any) -> Any:
    """The column in the type of `zoneless`, without a copy."""
    target = zoneless(column.type)
    return column if target == column.type else column.cast(target)


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
        return pa.array([_decoded(each) for each in plain], pa.string())
    return column


def _decoded(scalar: Any) -> str | None:
    try:
        text = scalar.as_py()
        return text if text is None or isinstance(text, str) else None
    except UnicodeDecodeError:
        return None
