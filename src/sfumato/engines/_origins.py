"""Where the rows of a source are, by the types of their columns, which its public metadata tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines._csv import header_of
from sfumato.engines._ids import OBJECT, ZONED
from sfumato.engines._parquet import check_keys, parquet_parts, parquet_whole
from sfumato.engines._paths import key_columns, listed, literal
from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.frames import Frame, Picked, read_arrow_files, read_parquet_files
from sfumato.engines.prepared import METADATA, Note, read_note
from sfumato.engines.scans import Column, Scan, alias_of, quoted
from sfumato.engines.sources import Database, Files, Located, stamps_of
from sfumato.errors import SourceUnusable
from sfumato.schema import Kind

__all__ = ["Origin", "columns_of", "describe", "native_of", "origins_of", "scan_of"]

_VAGUE = "VAGUE"  # marks a type that DuckDB does not keep apart


@dataclass(frozen=True, slots=True)
class Origin:
    """Rows of a source that have the same types, with the columns that are wanted; None: it has no such one.

    Attributes:
        scan: What follows FROM.
        values: The columns that are read as values.
        ids: The columns that are compared as they are: the unit, then pointers.
    """

    scan: Scan
    values: tuple[Column | None, ...]
    ids: tuple[Column | None, ...]


def describe(connection: Any, located: Located) -> tuple[Column, ...]:
    """The columns of a source, from its public metadata; a type that differs between files is one for all.

    Raises:
        SourceUnusable: if it cannot be opened.
    """
    if isinstance(located, Files) and located.format == "arrow":
        located = read_arrow_files(located.paths, located.partitions, located.shown)
    if isinstance(located, Frame):
        natives = [native_of(connection, located, i) or "OTHER" for i in range(len(located.names))]
        return tuple(Column(name, f"c{i}", natives[i]) for i, name in enumerate(located.names))
    return columns_of(connection, scan_of(connection, located), located.shown)


def origins_of(
    connection: Any, located: Located, values: list[str], ids: list[str], kinds: Mapping[str, Kind]
) -> list[Origin]:
    """The rows of a source by the types of their columns, which its public metadata tell.

    Raises:
        SourceUnusable: if it cannot be opened, or a column is in none of its parts.
    """
    if isinstance(located, Files) and located.format == "arrow":
        located = read_arrow_files(located.paths, located.partitions, located.shown)
    if isinstance(located, Frame):
        frames = located.pieces or (located,)
        _check_found([frame.names for frame in frames], [*values, *ids], located.shown)
        return [_picked(connection, frame, values, ids) for frame in frames]
    if isinstance(located, Database) or located.format == "csv":
        scans = [scan_of(connection, located)]
    else:
        scans = parquet_parts(connection, located)
    held = [columns_of(connection, scan, located.shown) for scan in scans]
    if scans[0].note is not None and ids:
        return [_prepared(scans[0], scans[0].note, held[0], values, ids, kinds, located.shown)]
    _check_found([[column.name for column in columns] for columns in held], [*values, *ids], located.shown)
    origins: list[Origin] = []
    for scan, columns in zip(scans, held, strict=True):
        if isinstance(located, Files) and any(name.casefold() in scan.by_arrow for name in (*values, *ids)):
            read = read_parquet_files(scan.paths, located.partitions, located.shown)
            origins += [_picked(connection, frame, values, ids) for frame in read.pieces or (read,)]
        else:
            names = [column.name for column in columns]
            places = [_place(name, names, located.shown) for name in (*values, *ids)]
            wanted = [None if place is None else columns[place] for place in places]
            _check_stored(wanted, scan.generated, located.shown)
            exact = [_exact(column, scan.vague) for column in wanted]
            shown_ids = [None if column is None else _as_id(column) for column in exact[len(values) :]]
            origins.append(Origin(scan, tuple(exact[: len(values)]), tuple(shown_ids)))
    return origins


def _check_stored(columns: Sequence[Column | None], generated: frozenset[str], shown: str) -> None:
    """An expression of the file may fail on one row, or give another value in each read."""
    for column in columns:
        if column is not None and column.inner.lower() in generated:
            raise SourceUnusable(
                f'{shown}: column "{column.name[:100]}" is generated; store its values in a table instead.'
            )


def _exact(column: Column | None, vague: frozenset[str]) -> Column | None:
    if column is None or column.name.casefold() not in vague:
        return column
    return replace(column, own=_VAGUE)


def _as_id(column: Column) -> Column:
    return column if column.own is None else replace(column, native=column.own)


def _prepared(
    scan: Scan,
    note: Note,
    columns: Sequence[Column],
    values: list[str],
    ids: list[str],
    kinds: Mapping[str, Kind],
    shown: str,
) -> Origin:
    """A prepared file: it has the ids as the source had them, and other columns in their canonical types."""
    note.check(kinds, ids[0], shown)
    unit = Column(note.unit, UNIT_COLUMN, note.ids)
    names = [column.name for column in columns]
    exact = {name.casefold() for name in note.exact}
    shown_values = [columns[_position(name, names, shown)] for name in values]
    shown_values = [
        column if column.name.casefold() in exact else replace(column, own=_VAGUE) for column in shown_values
    ]
    shown_ids = [unit]
    for pointer in ids[1:]:
        if pointer.casefold() == note.unit.casefold():
            shown_ids.append(unit)
        elif pointer.casefold() in exact:
            shown_ids.append(columns[_position(pointer, names, shown)])
        else:
            raise SourceUnusable(
                f'{shown} was prepared without "{pointer[:100]}" as its source has it, and other tables '
                "point to that column; name the source itself."
            )
    return Origin(scan, tuple(shown_values), tuple(shown_ids))


def _position(name: str, names: Sequence[str], shown: str) -> int:
    """Where the column is: the same name, else the only one that differs in upper and lower case."""
    place = _place(name, names, shown)
    if place is None:
        raise SourceUnusable(
            f'{shown} has no column "{name[:100]}"; correct the unit, the schema or the source.'
        )
    return place


def _check_found(parts: Sequence[Sequence[str]], wanted: Sequence[str], shown: str) -> None:
    """A column may be missing in some files, where it is NULL, but not in all."""
    for name in wanted:
        if all(_place(name, names, shown) is None for names in parts):
            raise SourceUnusable(
                f'{shown} has no column "{name[:100]}"; correct the unit, the schema or the source.'
            )


def _place(name: str, names: Sequence[str], shown: str) -> int | None:
    exact = [i for i, other in enumerate(names) if other == name]
    near = exact or [i for i, other in enumerate(names) if other.casefold() == name.casefold()]
    if len(near) > 1:
        raise SourceUnusable(f'{shown} has several columns "{name[:100]}"; rename them in the source.')
    return near[0] if near else None


def native_of(connection: Any, frame: Frame, position: int) -> str | None:
    """The type that DuckDB gives a column of a frame, None if it has none."""
    try:
        picked = (frame.pieces or (frame,))[0].read([position], [])
        return str(connection.from_arrow(picked.scannable).types[picked.values[0]])
    except Exception:  # its text may hold data
        return None


def _picked(connection: Any, frame: Frame, values: list[str], ids: list[str]) -> Origin:
    wanted = [*values, *ids]
    places = [_place(name, frame.names, frame.shown) for name in wanted]
    there = [place for place in places if place is not None]
    split = sum(place is not None for place in places[: len(values)])
    columns: list[Column] | None = None
    try:
        picked = frame.read(there[:split], there[split:])
        relation, at = connection.from_arrow(picked.scannable), (*picked.values, *picked.ids)
        columns = [
            Column(frame.names[i], relation.columns[j], str(relation.types[j]), not picked.checked)
            for i, j in zip(there, at, strict=True)
        ]
        columns = [
            replace(column, own=_own(column.native, picked, j)) for column, j in zip(columns, at, strict=True)
        ]
        columns[split:] = map(_as_id, columns[split:])
    except Exception:  # its text may hold data
        columns = None
    if columns is None:
        for name, place in zip(wanted, places, strict=True):
            if place is not None and native_of(connection, frame, place) is None:
                raise SourceUnusable(f'{frame.shown}: column "{name[:100]}" has a type that cannot be read.')
        raise SourceUnusable(f"{frame.shown} cannot be read; check that it is whole.")
    left = iter(columns)
    by_place = [None if place is None else next(left) for place in places]
    seen = stamps_of(frame.files) if frame.remembers else None
    scan = Scan("", frame=picked.scannable, files=frame.files, seen=seen)
    return Origin(scan, tuple(by_place[: len(values)]), tuple(by_place[len(values) :]))


def _own(native: str, picked: Picked, place: int) -> str | None:
    """The type of a column as an id, where it is not the one that DuckDB is given."""
    if place in picked.objects:
        return OBJECT
    if place in picked.vague:
        return _VAGUE
    return ZONED + native if place in picked.zoned else None


def columns_of(connection: Any, scan: Scan, shown: str) -> tuple[Column, ...]:
    rows: list[tuple[Any, ...]] = []
    try:
        origin = scan.prepare(connection, "source")
        rows = connection.execute(f"DESCRIBE SELECT * FROM {origin}").fetchall()
    except Exception:  # its text may hold data
        rows = []
    if not rows:
        raise SourceUnusable(f"{shown} cannot be opened; check that it is whole and readable.")
    if scan.note is not None:
        shown_as = [(scan.note.public_name(row[0]), row) for row in rows]
        return tuple(Column(name, row[0], row[1]) for name, row in shown_as if name is not None)
    names = (*scan.names, *(row[0] for row in rows[len(scan.names) :]))
    return tuple(Column(name, row[0], row[1]) for name, row in zip(names, rows, strict=True))


def scan_of(connection: Any, located: Files | Database, *, strict: bool = False) -> Scan:
    if isinstance(located, Database):
        return _database(connection, located)
    return _csv(located, strict=strict) if located.format == "csv" else parquet_whole(connection, located)


def _csv(files: Files, *, strict: bool) -> Scan:
    """Text columns in a dialect that the header alone decides; a malformed row is left out or fails.

    Not in parallel: a reader that starts inside a file has to guess whether it is inside quotes, so that the
    text of one row could pass for other rows. And whole: the reader looks at the fields that a statement uses
    and leaves out rows where one of those is not UTF-8, so that the view always uses all; otherwise two
    scans in one statement could see different rows, and a unit's weights would not add up.
    """
    header = header_of(files)
    has_header = files.csv is None or files.csv.header
    columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(header.names)))
    text = (
        f"read_csv({listed(files.paths)}, auto_detect = false, header = {has_header}, "
        f"columns = {{{columns}}}, delim = {literal(header.delimiter)}, quote = '\"', escape = '\"', "
        f"ignore_errors = {not strict}, strict_mode = {strict}, parallel = false, "
        "hive_partitioning = false)"
    )
    if files.partitions:
        keys = [f"{sql} AS k{i}" for i, sql in enumerate(key_columns(files.paths, files.partitions))]
        text = f"(SELECT *, {', '.join(keys)} FROM {text})"
    fields = frozenset(f"c{i}" for i in range(len(header.names)))
    check_keys(files, files.above + files.partitions, fields)
    return Scan(text, header.names + files.partitions, files.paths, whole=True)


def _database(connection: Any, database: Database) -> Scan:
    scan, alias = Scan("", paths=(), database=database.path), alias_of(database.path)
    tables: list[tuple[str, str]] = []
    try:
        scan.prepare(connection, "source")
        tables = connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?", [alias]
        ).fetchall()
    except Exception:  # its text may hold data
        tables = []
    note: Note | None = None
    if ("main", METADATA) in tables:
        note = read_note(connection, alias, database.shown)
        tables.remove(("main", METADATA))
    if database.table is not None:
        tables = [table for table in tables if database.table in (table[1], f"{table[0]}.{table[1]}")]
    if len(tables) != 1:
        raise SourceUnusable(
            f"{database.shown} must lead to one table of a DuckDB file; name it, as in shop.duckdb::visits."
        )
    path = ".".join(quoted(part) for part in (alias, *tables[0]))
    is_it = note is not None and tables[0] == ("main", note.table)
    generated = connection.execute(
        "SELECT lower(column_name) FROM duckdb_columns() WHERE is_generated AND database_name = ? "
        "AND schema_name = ? AND table_name = ?",
        [alias, *tables[0]],
    ).fetchall()
    names = frozenset(name for (name,) in generated)
    return Scan(path, database=database.path, note=note if is_it else None, generated=names)
