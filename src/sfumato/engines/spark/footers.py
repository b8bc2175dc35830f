"""What the footers of files on this machine tell before a row is read: what Spark reads otherwise, or not.

| in a file | what Spark does |
| --- | --- |
| timestamps in milliseconds | multiplies them, and fails on one that is too large: they are read as numbers |
| timestamps of 96 bits (INT96) | cuts nanoseconds off: no ids |
| timestamps of ORC | cuts nanoseconds off, and fails on one that microseconds cannot hold: not read |
| times of day, nanoseconds, floats of half precision | opens no such file |
| another type than its catalog says | fails at the first row, or wraps numbers |
| a name in other letters than in its catalog | gives NULL for every row |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from sfumato._dataclasses import dataclass

__all__ = ["Footers", "footers_of", "lacking", "orc_footers", "why_not_as"]

_DIGITS = re.compile(r"decimal\((\d+),(\d+)\)")
_LOGICAL_DIGITS = re.compile(r"Decimal\(precision=(\d+), scale=(\d+)\)")
_INTEGER = re.compile(r"Int\(bitWidth=(\d+), isSigned=(true|false)\)")
_INTEGERS = {
    ("8", "true"): "tinyint",
    ("16", "true"): "smallint",
    ("32", "true"): "int",
    ("64", "true"): "bigint",
    ("8", "false"): "smallint",
    ("16", "false"): "int",
    ("32", "false"): "bigint",
    ("64", "false"): "decimal(20,0)",
}
_PHYSICAL = {
    "BOOLEAN": "boolean",
    "INT32": "int",
    "INT64": "bigint",
    "INT96": "timestamp",
    "FLOAT": "float",
    "DOUBLE": "double",
    "BYTE_ARRAY": "string",
    "FIXED_LEN_BYTE_ARRAY": "string",
}
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_MOST_DIGITS = 38
_ARROW = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "string",
    "date32[day]": "date",
}


@dataclass(frozen=True, slots=True)
class Footers:
    """What the footers of some files tell.

    Attributes:
        types: The columns of each file with Spark's names of their types; of those that Spark lacks a
            description with a capital letter.
        millis: The timestamps that are in milliseconds in some file.
        others: The timestamps that are in microseconds in some file.
        coarse: The columns in which Spark makes one value of several.
        is_whole: Whether all files were seen.
    """

    types: tuple[Mapping[str, str], ...] = ()
    millis: frozenset[str] = field(default_factory=frozenset)
    others: frozenset[str] = field(default_factory=frozenset)
    coarse: frozenset[str] = field(default_factory=frozenset)
    is_whole: bool = False

    @property
    def exact(self) -> frozenset[str]:
        """The timestamps of which every value is one of its own in Spark.

        Privacy:
            Claim: a timestamp that is an id tells units apart as its source does. Only those are named that
            are in microseconds or milliseconds in every file that has them, all files having been seen.
        """
        return (self.millis | self.others) - self.coarse if self.is_whole else frozenset()


def footers_of(paths: Iterable[str]) -> Footers:
    """What the footers of Parquet files of this machine tell; one that cannot be read tells nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types, millis, others, coarse, is_whole = (
        list[Mapping[str, str]](),
        set[str](),
        set[str](),
        set[str](),
        True,
    )
    for path in paths:
        try:
            schema = pq.read_metadata(path).schema
        except (OSError, pa.ArrowException):
            is_whole = False
            continue
        columns = [schema.column(place) for place in range(len(schema))]
        types.append(_types_of(columns))
        for column in columns:
            if column.path != column.name:  # those within another cannot be declared
                continue
            logical = str(column.logical_type)
            if column.physical_type == "INT96" or "nanoseconds" in logical:
                coarse.add(column.name)
            elif logical.startswith("Timestamp"):
                (millis if "milliseconds" in logical else others).add(column.name)
    return Footers(tuple(types), frozenset(millis), frozenset(others), frozenset(coarse), is_whole)


def orc_footers(paths: Iterable[str]) -> Footers:
    """The same of ORC files: every timestamp has nanoseconds there."""
    import pyarrow as pa
    from pyarrow import orc

    types = []
    for path in paths:
        try:
            schema = orc.ORCFile(path).schema
        except (OSError, pa.ArrowException):
            continue
        types.append({each.name: _of_arrow(each.type) for each in schema})
    return Footers(tuple(types))


def _of_arrow(native: Any) -> str:
    import pyarrow as pa

    if pa.types.is_decimal(native):
        return f"decimal({native.precision},{native.scale})"
    return "timestamp" if pa.types.is_timestamp(native) else _ARROW.get(str(native), f"Type {native}"[:60])


def _types_of(columns: Iterable[Any]) -> dict[str, str]:
    """The types of a file's columns; of one that is nested, what is lacking of those within it."""
    types: dict[str, str] = {}
    for column in columns:
        if column.path == column.name:
            types[column.name] = _type_of(column)
        else:
            name = column.path.partition(".")[0]
            types[name] = _lacking(str(column.logical_type)) or types.get(name, "nested")
    return types


def _type_of(column: Any) -> str:
    """What Spark calls the type of a column of a file; what it lacks is described."""
    logical = str(column.logical_type)
    digits, integer = _LOGICAL_DIGITS.fullmatch(logical), _INTEGER.fullmatch(logical)
    if _lacking(logical):
        return _lacking(logical)
    if digits is not None:
        return f"decimal({digits[1]},{digits[2]})"
    if integer is not None:
        return _INTEGERS[integer[1], integer[2]]
    if logical.startswith("Timestamp"):
        return "timestamp"
    return "date" if logical == "Date" else _PHYSICAL[column.physical_type]


def _lacking(logical: str) -> str:
    """What Spark has no type for, in words; empty: it has one."""
    digits = _LOGICAL_DIGITS.fullmatch(logical)
    if logical.startswith("Time("):
        return "TIME"
    if "nanoseconds" in logical:
        return "TIMESTAMP in nanoseconds"
    if logical == "Float16":
        return "FLOAT16"
    if digits is not None and int(digits[1]) > _MOST_DIGITS:
        return f"DECIMAL of {digits[1]} digits"
    return ""


def lacking(footers: Footers) -> tuple[str, str] | None:
    """A column that Spark has no type for, with its type; files that have one are not opened."""
    for types in footers.types:
        for name, native in types.items():
            if native[:1].isupper():
                return name, native
    return None


def why_not_as(natives: Mapping[str, str], footers: Footers) -> dict[str, str]:
    """Why columns of a catalog cannot be read from its files, by their names.

    Args:
        natives: The types of the columns as the catalog has them.
        footers: What the files say.
    """
    reasons = {}
    for types in footers.types:
        folded = {name.casefold(): name for name in types}
        for name, native in natives.items():
            held = types.get(name)
            if held is None:
                other = folded.get(name.casefold())
                if other is not None:
                    reasons[name] = f'its files have it as "{other[:100]}", and case counts; rename it in one'
            elif not _serves(held, native):
                reasons[name] = f"its files have it as {held}, and the catalog as {native[:60]}; correct one"
    return reasons


def _serves(held: str, native: str) -> bool:
    """Whether Spark reads every value of a file's type as one of its own of a catalog's type."""
    if held == native or (held == "nested" and "<" in native):
        return True
    if native in ("timestamp", "timestamp_ntz"):
        return held == "timestamp"
    if native == "binary":
        return held == "string"
    if held in _WHOLE and native in _WHOLE:
        return _WHOLE.index(held) < _WHOLE.index(native)
    digits, wanted = _DIGITS.fullmatch(held), _DIGITS.fullmatch(native)
    if digits is not None and wanted is not None:
        whole, after = int(digits[1]) - int(digits[2]), int(digits[2])
        return int(wanted[1]) - int(wanted[2]) >= whole and int(wanted[2]) >= after
    return (held, native) == ("float", "double")
