"""Timestamps of Parquet files in milliseconds: Spark multiplies them, and fails on one that is too large.

The footers tell which columns are such (`footers`). They are read as the numbers that they are, and those
that have a place among the microseconds become timestamps; the others are NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

from sfumato.engines.spark.views import quoted

__all__ = ["local_files", "without_millis"]

_MOST = (2**63 - 1) // 1000


def without_millis(frame: Any, names: frozenset[str], again: Callable[[Any], Any]) -> Any:
    """A frame in which these columns are timestamps that were read as numbers.

    Args:
        frame: What Spark would read.
        names: The columns in milliseconds.
        again: Reads the same files by another schema.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    natives = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    chosen = [name for name, native in natives.items() if name in names and native.startswith("timestamp")]
    fields = [
        StructField(field.name, LongType() if field.name in chosen else field.dataType, True, field.metadata)
        for field in frame.schema.fields
    ]
    return again(StructType(fields)).selectExpr(
        *(_moment(name, native) if name in chosen else quoted(name) for name, native in natives.items())
    )


def _moment(name: str, native: str) -> str:
    fits = f"{quoted(name)} BETWEEN {-_MOST} AND {_MOST}"
    moment = f"CAST(TIMESTAMP_MILLIS({quoted(name)}) AS {native.upper()})"
    return f"CASE WHEN {fits} THEN {moment} END AS {quoted(name)}"


def local_files(addresses: Iterable[str]) -> list[str]:
    """Of the addresses of files as Spark writes them, the paths of those on this machine."""
    return [
        unquote(address.removeprefix("file:").replace("///", "/", 1))
        for address in addresses
        if address.startswith("file:")
    ]
