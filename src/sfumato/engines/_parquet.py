"""Parquet files: which of them have columns of the same types, from their footers alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.engines._paths import key_columns, listed
from sfumato.engines.scans import Scan, quoted
from sfumato.engines.sources import Files
from sfumato.errors import SourceUnusable

__all__ = ["check_keys", "parquet_parts", "parquet_whole"]

_FIELDS = (
    "name, type, logical_type, converted_type, num_children, precision, scale, repetition_type, type_length"
)
_MOST_DIGITS = 38  # of DuckDB's decimals; longer ones become floats

Field = tuple[str, ...]
Fields = tuple[Field, ...]
"""The fields of a file in their order, each before those within it, with how many these are."""


def parquet_parts(connection: Any, files: Files) -> list[Scan]:
    """The files, those with the same fields in the same order together: each set is read in its own types.

    DuckDB takes the types of the first file for those of all, or casts files to a type for all of them, which
    fails on a row that it cannot hold and makes one id of two. The footers tell before a row is read.
    """
    held = _footers(connection, files)
    check_keys(files, files.above, frozenset(_name(field) for some in held.values() for field in some))
    groups: dict[Fields, list[str]] = {}
    for path in files.paths:
        groups.setdefault(held.get(path, ()), []).append(path)
    return [_scan(files, tuple(paths), fields) for fields, paths in groups.items()]


def parquet_whole(connection: Any, files: Files) -> Scan:
    """All files at once, those of different types in one that DuckDB finds for all: for the steward alone."""
    parts = parquet_parts(connection, files)
    if len(parts) == 1:
        return parts[0]
    if not files.partitions:
        return Scan(_read(files.paths, ", union_by_name = true"), (), files.paths)
    shown = [", ".join(f"c{i} AS {quoted(name)}" for i, name in enumerate(part.names)) for part in parts]
    named = [f"SELECT {names} FROM {part.text}" for names, part in zip(shown, parts, strict=True)]
    return Scan(f"({' UNION ALL BY NAME '.join(named)})", (), files.paths)


def check_keys(files: Files, keys: tuple[str, ...], fields: frozenset[str]) -> None:
    """Check that none of `keys` takes a field's place for other readers of the same files.

    They take every `key=value` folder of a path for a column, and prefer it to one in the file.

    Raises:
        SourceUnusable: if one does.
    """
    taken = sorted(key for key in keys if key.casefold() in fields)
    if taken:
        where = "above it" if taken[0] in files.above else "in it"
        raise SourceUnusable(
            f'{files.shown} has a folder "{taken[0][:100]}=…" {where} that would hide a column; rename it.'
        )


def _footers(connection: Any, files: Files) -> dict[str, Fields]:
    """The fields of each file; empty if they cannot be read: DESCRIBE meets the same trouble and says so."""
    held: dict[str, list[Field]] = {}
    try:
        query = f"SELECT file_name, {_FIELDS} FROM parquet_schema({listed(files.paths)})"
        for path, *field in connection.execute(query).fetchall():
            held.setdefault(path, []).append(tuple(map(str, field)))
    except Exception:  # its text may hold data
        return {}
    return {path: tuple(fields[1 : _end(fields, 0)]) for path, fields in held.items()}  # the first holds all


def _scan(files: Files, paths: tuple[str, ...], fields: Fields) -> Scan:
    text, names = _read(paths), _names(fields)
    if files.partitions:
        text, names = _with_keys(text, names, paths, files.partitions)
    return Scan(
        text,
        names,
        paths,
        by_arrow=frozenset(_name(field) for field in fields if _is_by_arrow(field)),
        vague=frozenset(_name(field) for field in fields if _is_vague(field)),
    )


def _read(paths: tuple[str, ...], more: str = "") -> str:
    return f"read_parquet({listed(paths)}, hive_partitioning = false{more})"


def _with_keys(
    text: str, names: tuple[str, ...], paths: tuple[str, ...], keys: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """A read and its columns, with the keys of folders, each in place of a column of its name.

    The columns have other names inside, so that none can be taken for the place of a file in the list.
    """
    taken = {key.casefold() for key in keys}
    kept = [i for i, name in enumerate(names) if name.casefold() not in taken]
    inner = ", ".join(f"c{i}" for i in range(len(names)))
    values = [*(f"c{i}" for i in kept), *key_columns(paths, keys)]
    picked = ", ".join(f"{value} AS c{i}" for i, value in enumerate(values))
    return f"(SELECT {picked} FROM {text} AS files({inner}))", (*(names[i] for i in kept), *keys)


def _names(fields: Fields) -> tuple[str, ...]:
    """The columns of a file by position: DuckDB renames those that differ in upper and lower case only."""
    names, at = [], 0
    while at < len(fields):
        names.append(fields[at][0])
        at = _end(fields, at)
    return tuple(names)


def _end(fields: Sequence[Field], at: int) -> int:
    """Where a field and all those within it end."""
    left = 1
    while left and at < len(fields):
        children = fields[at][4]
        left += (int(children) if children.isdigit() else 0) - 1
        at += 1
    return at


def _name(field: Field) -> str:
    return field[0].casefold()


def _is_by_arrow(field: Field) -> bool:
    """Timestamps in milliseconds and times of day of any unit: DuckDB's own scan of them fails on a row."""
    millis = "Timestamp" in field[2] and "MILLIS=MilliSeconds" in field[2]
    return millis or "TimeType" in field[2] or field[3] in ("TIMESTAMP_MILLIS", "TIME_MILLIS", "TIME_MICROS")


def _is_vague(field: Field) -> bool:
    """Times of 96 bits lose their nanoseconds, and decimals of more digits become floats."""
    return field[1] == "INT96" or (field[5].isdigit() and int(field[5]) > _MOST_DIGITS)
