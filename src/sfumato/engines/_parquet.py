"""Parquet files: which of them have columns of the same types, from their footers alone."""

from __future__ import annotations

from typing import Any

from sfumato.engines._scans import Scan, literal
from sfumato.engines.sources import Files
from sfumato.errors import SourceUnusable

__all__ = ["check_keys", "parquet_parts", "parquet_whole"]

_FIELDS = "name, type, logical_type, converted_type, num_children, precision, scale"
_MOST_DIGITS = 38  # of DuckDB's decimals; longer ones become floats

Field = tuple[str, ...]


def parquet_parts(connection: Any, files: Files) -> list[Scan]:
    """The files, those with fields of the same types together: each set is read in its own types.

    DuckDB takes the types of the first file for those of all, or casts files to a type for all of them, which
    fails on a row that it cannot hold and makes one id of two. The footers tell before a row is read.
    """
    held = _footers(connection, files)
    hidden = check_keys(files, files.above, frozenset(_name(each) for some in held.values() for each in some))
    groups: dict[frozenset[Field], list[str]] = {}
    for path in files.paths:
        groups.setdefault(held.get(path, frozenset()), []).append(path)
    return [_scan(files, tuple(paths), fields, hidden) for fields, paths in groups.items()]


def parquet_whole(connection: Any, files: Files) -> Scan:
    """All files at once, those of different types in one that DuckDB finds for all: for the steward alone."""
    parts = parquet_parts(connection, files)
    if len(parts) == 1:
        return parts[0]
    return Scan(_read(files, files.paths, ", union_by_name = true"), (), files.paths, hidden=parts[0].hidden)


def check_keys(files: Files, keys: tuple[str, ...], fields: frozenset[str]) -> frozenset[str]:
    """The keys above the source, in lower case, after a check that none of `keys` takes a field's place.

    A reader takes every `key=value` folder of a path for a column, and prefers it to one in the file.
    """
    taken = sorted(key for key in keys if key.casefold() in fields)
    if taken:
        where = "above it" if taken[0] in files.above else "in it"
        raise SourceUnusable(
            f'{files.shown} has a folder "{taken[0][:100]}=…" {where} that would hide a column; rename it.'
        )
    return frozenset(key.casefold() for key in files.above)


def _footers(connection: Any, files: Files) -> dict[str, frozenset[Field]]:
    """The fields of each file; empty if they cannot be read: DESCRIBE meets the same trouble and says so."""
    listed = ", ".join(literal(path) for path in files.paths)
    held: dict[str, set[Field]] = {}
    try:
        query = f"SELECT file_name, {_FIELDS} FROM parquet_schema([{listed}])"
        for path, *field in connection.execute(query).fetchall():
            held.setdefault(path, set()).add(tuple(map(str, field)))
    except Exception:  # its text may hold data
        return {}
    return {path: frozenset(fields) for path, fields in held.items()}


def _scan(files: Files, paths: tuple[str, ...], fields: frozenset[Field], hidden: frozenset[str]) -> Scan:
    return Scan(
        _read(files, paths),
        _names(paths[0]),
        paths,
        hidden=hidden,
        millis=frozenset(_name(each) for each in fields if _is_millis(each)),
        vague=frozenset(_name(each) for each in fields if _is_vague(each)),
    )


def _read(files: Files, paths: tuple[str, ...], more: str = "") -> str:
    listed = ", ".join(literal(path) for path in paths)
    options = f"hive_partitioning = {bool(files.partitions)}, hive_types_autocast = false{more}"
    return f"read_parquet([{listed}], {options})"


def _names(path: str) -> tuple[str, ...]:
    """The columns of a file by position: DuckDB renames those that differ in upper and lower case only."""
    try:
        import pyarrow.parquet as pq

        return tuple(pq.read_schema(path).names)
    except Exception:  # its text may hold data
        return ()


def _name(field: Field) -> str:
    return field[0].casefold()


def _is_millis(field: Field) -> bool:
    return field[3] == "TIMESTAMP_MILLIS" or ("Timestamp" in field[2] and "MILLIS=MilliSeconds" in field[2])


def _is_vague(field: Field) -> bool:
    """Times of 96 bits lose their nanoseconds, and decimals of more digits become floats."""
    return field[1] == "INT96" or (field[5].isdigit() and int(field[5]) > _MOST_DIGITS)
