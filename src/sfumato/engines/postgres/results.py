"""Rows of a result as Arrow, batch by batch, from PostgreSQL's binary form."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

__all__ = ["known_types", "prepare_loaders", "table_of"]

_BATCH = 16_384
_TYPES = {
    16: pa.bool_(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    25: pa.string(),
    701: pa.float64(),
    1043: pa.string(),
    1082: pa.date32(),
    1700: pa.decimal128(38, 0),
    2950: pa.string(),
}
"""By the number of a type, what it is in Arrow; of decimals only whole ones are read."""
_EPOCH = 10_957  # days from 1970 to 2000, from which PostgreSQL counts
_ENDS = (-(2**31), 2**31 - 1)


def known_types(numbers: Sequence[int]) -> list[pa.DataType] | None:
    """The types of columns in Arrow; None if one has none."""
    types = [_TYPES.get(number) for number in numbers]
    return None if None in types else types


def prepare_loaders(connection: Any, driver: Any) -> None:
    """Days as numbers and ids as text: Python has no days beyond the year 9999."""

    class Day(driver.adapt.Loader):  # type: ignore[misc]
        format = driver.pq.Format.BINARY

        def load(self, data: bytes) -> int:
            days: int = struct.unpack("!i", data)[0]
            return max(days, -(2**31) + 1) if days in _ENDS else days + _EPOCH

    class Id(driver.adapt.Loader):  # type: ignore[misc]
        format = driver.pq.Format.BINARY

        def load(self, data: bytes) -> str:
            digits = bytes(data).hex()
            return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    connection.adapters.register_loader("date", Day)
    connection.adapters.register_loader("uuid", Id)


def table_of(names: Sequence[str], types: Sequence[pa.DataType], rows: Iterable[Sequence[Any]]) -> pa.Table:
    """The rows; no more than a batch of them is in Python's objects at a time."""
    schema = pa.schema(list(zip(names, types, strict=True)))
    batches, coming = [], iter(rows)
    while some := list(islice(coming, _BATCH)):
        columns = [_array(values, kind) for values, kind in zip(zip(*some, strict=True), types, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else value.to_integral_exact() for value in values], kind)
    return pa.array(values, kind)
