"""Arrow tables as Spark takes them: no value decides whether a table can be opened.

PySpark converts a whole table when it is given one, and fails on a single value that its types cannot hold,
declared or not. Here such a value is NULL, and types that Spark lacks become near ones.

| type | becomes |
| --- | --- |
| timestamps in seconds, milliseconds or nanoseconds | microseconds, rounded down; NULL where there is none |
| days in milliseconds | days |
| whole numbers without a sign | wider ones; of 64 bits decimals of 20 digits |
| floats of half precision | single precision |
| decimals with more digits than their type says | NULL |
| times of day, durations | a type that no column can be declared of |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["inexact", "openable"]

_FACTORS = {"s": 10**6, "ms": 10**3}
_DAY_MILLIS = 86_400_000
_MOST_DAYS = 2**31 - 1


def openable(table: pa.Table) -> pa.Table:
    """The table in types that Spark has, with values that they hold; columns that need nothing stay."""
    import pyarrow as pa

    columns = [_column(column) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def inexact(table: pa.Table) -> frozenset[str]:
    """The columns in which two values that differ may be one once they are opened: no ids of units."""
    import pyarrow as pa

    def is_cut(native: pa.DataType) -> bool:
        if pa.types.is_dictionary(native):
            return is_cut(native.value_type)
        return bool(pa.types.is_date64(native) or (pa.types.is_timestamp(native) and native.unit == "ns"))

    return frozenset(field.name for field in table.schema if is_cut(field.type))


def _column(column: pa.ChunkedArray) -> Any:
    import pyarrow as pa

    native = column.type
    if pa.types.is_dictionary(native):
        return _column(column.cast(native.value_type))
    if pa.types.is_timestamp(native) and native.unit != "us":
        return _moments(column)
    if pa.types.is_date64(native):
        return _days(column)
    if pa.types.is_decimal128(native):
        return _digits(column)
    if pa.types.is_time(native) or pa.types.is_duration(native):
        return pa.nulls(len(column), pa.list_(pa.int8()))
    target = _near(native)
    return column if target is None else column.cast(target)


def _near(native: pa.DataType) -> pa.DataType | None:
    """A type of Spark that holds all values of one that it lacks; None: it is left as it is."""
    import pyarrow as pa

    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
    }
    return wider.get(native)


def _moments(column: pa.ChunkedArray) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    native, numbers = column.type, column.cast(pa.int64())
    if native.unit == "ns":
        micros = _floored(numbers, 1000)
    else:
        factor = _FACTORS[native.unit]
        most = (2**63 - 1) // factor
        micros = pc.multiply(_within(numbers, -most, most), factor)
    return micros.cast(pa.timestamp("us", native.tz))


def _days(column: pa.ChunkedArray) -> Any:
    import pyarrow as pa

    days = _floored(column.cast(pa.int64()), _DAY_MILLIS)
    return _within(days, -_MOST_DAYS, _MOST_DAYS).cast(pa.int32()).cast(pa.date32())


def _digits(column: pa.ChunkedArray) -> Any:
    import decimal

    import pyarrow as pa

    native = column.type
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        most = decimal.Decimal((0, (9,) * native.precision, -native.scale))
        values = [None if value is None or abs(value) > most else value for value in column.to_pylist()]
        return pa.array(values, native)
    return column


def _floored(numbers: pa.ChunkedArray, size: int) -> Any:
    """Whole quotients, rounded down."""
    import pyarrow.compute as pc

    # Division cuts off what is left; below zero that rounds up.
    cut = pc.divide(numbers, size)
    is_below = pc.less(numbers, pc.multiply(cut, size))
    return pc.subtract(cut, is_below.cast("int64"))


def _within(numbers: Any, least: int, most: int) -> Any:
    """The numbers, NULL beyond two ends."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))
    return pc.if_else(fits, numbers, pa.scalar(None, pa.int64()))
