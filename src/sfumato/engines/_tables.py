"""A located source as a DuckDB view: which columns it has, and the SELECT that gives them canonical types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.engines._csv import read_header
from sfumato.engines._frames import Frame, is_text_valid, read_arrow_files
from sfumato.engines._prepared import METADATA, Note, read_note
from sfumato.engines._types import cast, identifies, kind_of
from sfumato.engines.base import GROUP_COLUMN, PLACE_COLUMN, RANK_COLUMN, UNIT_COLUMN
from sfumato.engines.sources import Database, Files, Located, Stamp, stamps_of
from sfumato.errors import SourceUnusable
from sfumato.schema import Kind

__all__ = ["Column", "Table", "describe", "plan_table", "quoted"]

_KEPT = {
    UNIT_COLUMN: "the unit",
    RANK_COLUMN: "ranks",
    GROUP_COLUMN: "ranks of groups",
    PLACE_COLUMN: "ranks in groups",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source: its public name, what DuckDB calls it, and its native type."""

    name: str
    inner: str
    native: str


@dataclass(frozen=True, slots=True)
class _Scan:
    """What can stand after FROM, with what must be set up for it: a database to attach, a frame to hold.

    Attributes:
        text: The SQL.
        names: The public names of the first columns, where DuckDB has others for them.
        paths: The files that DuckDB opens.
        database: The DuckDB file to attach.
        frame: What Arrow scans.
        files: The files that Arrow opens.
        seen: The state of those files when Arrow learned what is in them, if it remembers that.
        whole: Whether every read must use all columns.
        hidden: Columns that DuckDB adds and that are not the source's, in lower case.
        note: What a prepared file says about itself.
    """

    text: str
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    database: str | None = None
    frame: Any = None
    files: tuple[str, ...] = ()
    seen: tuple[Stamp, ...] | None = None
    whole: bool = False
    hidden: frozenset[str] = frozenset()
    note: Note | None = None

    def prepare(self, connection: Any, name: str) -> str:
        """Attach or register what is needed; the text to put after FROM."""
        if self.database is not None:
            alias = _alias(self.database)
            known = connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()
            if (alias,) not in known:
                connection.execute(f"ATTACH {_literal(self.database)} AS {quoted(alias)} (READ_ONLY)")
        if self.frame is not None:
            connection.from_arrow(self.frame).create_view(name)
            return quoted(name)
        return self.text


@dataclass(frozen=True, slots=True)
class Table:
    """An attached table: everything that is needed to create its view in a fresh instance.

    Attributes:
        name: What statements call it.
        scan: What stands after FROM.
        select: The columns of the view.
        inner: What DuckDB calls the columns of the source that it uses.
        has_unit: Whether the ids of units are among the columns.
        is_prepared: Whether the ranks of rows are, too.
        grouping: The columns whose groups are ranked as well, as they are declared; empty: there are none.
    """

    name: str
    scan: _Scan
    select: tuple[str, ...]
    inner: tuple[str, ...]
    has_unit: bool
    is_prepared: bool = False
    grouping: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that reading it opens."""
        return self.scan.paths

    def stamps(self) -> tuple[Stamp, ...]:
        """The state of the files: the same before and after a read only if nobody wrote to them meanwhile.

        A statement may scan a source twice; weights of the old rows must not meet rows of the new ones.
        """
        return stamps_of(self.scan.paths + self.scan.files + self._prepared_files())

    def _prepared_files(self) -> tuple[str, ...]:
        """A prepared file, with the log of writes that DuckDB has not put into it yet."""
        path = self.scan.database
        return () if path is None or not self.is_prepared else (path, f"{path}.wal")

    def is_stale(self) -> bool:
        """Whether what Arrow remembers of the files is no longer what is in them."""
        return self.scan.seen is not None and self.scan.seen != stamps_of(self.scan.files)

    def create(self, connection: Any) -> None:
        """Create the view."""
        origin = self.scan.prepare(connection, f"{self.name} source")
        select = f"SELECT {', '.join(self.select)} FROM {origin}"
        if self.scan.whole and self.inner:
            select += f" WHERE hash({', '.join(self.inner)}) IS NOT NULL"
        connection.execute(f"CREATE VIEW {quoted(self.name)} AS {select}")


def describe(connection: Any, located: Located) -> tuple[Column, ...]:
    """The columns of a source, from its public metadata.

    Raises:
        SourceUnusable: if it cannot be opened.
    """
    if isinstance(located, Files) and located.format == "arrow":
        located = read_arrow_files(located.paths, located.partitions, located.shown)
    if isinstance(located, Frame):
        return tuple(
            Column(name, f"c{i}", _native(connection, located, i) or "OTHER")
            for i, name in enumerate(located.names)
        )
    return _columns(connection, _scan(connection, located), located.shown)


def plan_table(
    connection: Any, name: str, located: Located, columns: Mapping[str, Kind], *, unit: str | None
) -> Table:
    """How `name` is made from the source.

    Raises:
        SourceUnusable: if it cannot be opened, a column is missing or cannot have its kind, or one is
            declared under the name that is kept for the unit.
    """
    for kept, what in _KEPT.items():
        if any(each.casefold() == kept for each in columns):
            raise SourceUnusable(
                f'{located.shown}: the name "{kept}" is kept for {what}; rename that column.'
            )
    wanted = [*columns] if unit is None else [*columns, unit]
    if isinstance(located, Files) and located.format == "arrow":
        located = read_arrow_files(located.paths, located.partitions, located.shown)
    if isinstance(located, Frame):
        scan, found = _pick(connection, located, wanted)
    else:
        scan = _scan(connection, located)
        if scan.note is not None and unit is not None:
            scan.note.check(columns, unit, located.shown)
        held = _columns(connection, scan, located.shown)
        names = [column.name for column in held]
        found = [held[_position(each, names, located.shown)] for each in wanted]
    collated = isinstance(located, Database)  # no other source can have a collation of its own
    select = [
        f"{_expression(column, public, kind, located.shown, collated=collated)} AS {quoted(public)}"
        for (public, kind), column in zip(columns.items(), found, strict=False)
    ]
    grouping: tuple[str, ...] = ()
    is_prepared = scan.note is not None and unit is not None
    if scan.note is not None and unit is not None:
        grouping = scan.note.grouping(columns)
        ranks = [RANK_COLUMN, GROUP_COLUMN, PLACE_COLUMN] if grouping else [RANK_COLUMN]
        ids = Column(unit, UNIT_COLUMN, scan.note.ids)
        select.append(
            f"{_expression(ids, unit, None, located.shown, collated=True)} AS {quoted(UNIT_COLUMN)}"
        )
        select += map(quoted, ranks)
    elif unit is not None:
        id_ = _expression(found[-1], unit, None, located.shown, collated=collated)
        select.append(f"{id_} AS {quoted(UNIT_COLUMN)}")
    inner = dict.fromkeys(quoted(column.inner) for column in found)
    shown = tuple(select) or ("NULL AS nothing",)
    return Table(name, scan, shown, tuple(inner), unit is not None, is_prepared, grouping)


def quoted(name: str) -> str:
    """An identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _alias(path: str) -> str:
    return f"file {path}"


def _position(name: str, names: list[str], shown: str) -> int:
    """Where the column is: the same name, else the only one that differs in upper and lower case."""
    exact = [i for i, each in enumerate(names) if each == name]
    near = exact or [i for i, each in enumerate(names) if each.casefold() == name.casefold()]
    if not near:
        raise SourceUnusable(f'{shown} has no column "{name[:100]}"; correct the schema or the source.')
    if len(near) > 1:
        raise SourceUnusable(f'{shown} has several columns "{name[:100]}"; rename them in the source.')
    return near[0]


def _expression(column: Column, name: str, kind: Kind | None, shown: str, *, collated: bool = False) -> str:
    inner = quoted(column.inner)
    if collated and column.native == "VARCHAR":
        # A collation of the file would take two ids for one: 'A' and 'a' are two people.
        inner = f'({inner} COLLATE "binary")'
    if kind is None:
        if not identifies(column.native):
            raise SourceUnusable(f'{shown}: the values of column "{name[:100]}" cannot be the ids of units.')
        return inner
    made = cast(inner, column.native, kind)
    if made is None:
        is_now = kind_of(column.native)
        raise SourceUnusable(
            f'{shown}: column "{name[:100]}" cannot be read as {kind}; the source has it as {is_now}.'
        )
    return made


def _native(connection: Any, frame: Frame, position: int) -> str | None:
    """The type that DuckDB gives a column of a frame, None if it has none."""
    try:
        scannable, (at,) = frame.pick([position])
        relation = connection.from_arrow(scannable)
        return str(relation.types[at])
    except Exception:  # its text may hold data
        return None


def _pick(connection: Any, frame: Frame, wanted: list[str]) -> tuple[_Scan, list[Column]]:
    names = list(frame.names)
    positions = [_position(name, names, frame.shown) for name in wanted]
    distinct = list(dict.fromkeys(positions))  # the unit may be declared too
    made: list[Column] | None = None
    try:
        scannable, at = frame.pick(distinct)
        relation = connection.from_arrow(scannable)
        where = [at[distinct.index(position)] for position in positions]
        made = [Column(wanted[i], relation.columns[j], str(relation.types[j])) for i, j in enumerate(where)]
    except Exception:  # its text may hold data
        made = None
    if made is not None:
        for name, position in zip(wanted, where, strict=True):
            if not is_text_valid(scannable, position):
                raise SourceUnusable(f'{frame.shown}: column "{name[:100]}" holds text that is not UTF-8.')
        seen = stamps_of(frame.files) if frame.remembers else None
        return _Scan("", frame=scannable, files=frame.files, seen=seen), made
    for name, position in zip(wanted, positions, strict=True):
        if _native(connection, frame, position) is None:
            raise SourceUnusable(f'{frame.shown}: column "{name[:100]}" has no single type that can be read.')
    raise SourceUnusable(f"{frame.shown} cannot be read; check that it is whole.")


def _columns(connection: Any, scan: _Scan, shown: str) -> tuple[Column, ...]:
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
    found = [Column(name, row[0], row[1]) for name, row in zip(names, rows, strict=True)]
    known, added = found[: len(scan.names)], found[len(scan.names) :]
    return (*known, *(column for column in added if column.name.casefold() not in scan.hidden))


def _scan(connection: Any, located: Files | Database, *, strict: bool = False) -> _Scan:
    if isinstance(located, Database):
        return _database(connection, located)
    return _csv(located, strict=strict) if located.format == "csv" else _parquet(connection, located)


def _parquet(connection: Any, files: Files) -> _Scan:
    listed = ", ".join(_literal(path) for path in files.paths)
    names, alike, fields = _parquet_names(connection, files)
    hidden = _hidden(files, files.above, fields)
    options = f"hive_partitioning = {bool(files.partitions)}, hive_types_autocast = false"
    if not alike:
        options += ", union_by_name = true"
    return _Scan(f"read_parquet([{listed}], {options})", names, files.paths, hidden=hidden)


def _hidden(files: Files, keys: tuple[str, ...], fields: frozenset[str]) -> frozenset[str]:
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


def _parquet_names(connection: Any, files: Files) -> tuple[tuple[str, ...], bool, frozenset[str]]:
    """The names of the columns by position as the files have them, whether all have the same, and all names.

    DuckDB renames columns that differ in upper and lower case only, and takes the types of the first file for
    those of all; the footers tell both before a row is read.
    """
    listed = ", ".join(_literal(path) for path in files.paths)
    held: dict[str, set[Any]] = {}
    names: tuple[str, ...] = ()
    try:
        import pyarrow.parquet as pq

        query = "SELECT file_name, name, type, logical_type, converted_type, num_children, precision, scale"
        for path, *field in connection.execute(f"{query} FROM parquet_schema([{listed}])").fetchall():
            held.setdefault(path, set()).add(tuple(map(str, field)))
        names = tuple(pq.read_schema(files.paths[0]).names)
    except Exception:  # its text may hold data; DESCRIBE meets the same trouble and says so
        return (), True, frozenset()
    alike = len({frozenset(each) for each in held.values()}) == 1
    fields = frozenset(field[0].casefold() for each in held.values() for field in each)
    return (names if alike else ()), alike, fields


def _csv(files: Files, *, strict: bool) -> _Scan:
    """Text columns in a dialect that the header alone decides; a malformed row is left out or fails.

    Not in parallel: a reader that starts inside a file has to guess whether it is inside quotes, so that the
    text of one row could pass for other rows. And whole: the reader looks at the fields that a statement uses
    and leaves out rows where one of those is not UTF-8, so that the view always uses all; otherwise two
    scans in one statement could see different rows, and a unit's weights would not add up.
    """
    headers = {read_header(path, files.shown) for path in files.paths}
    if len(headers) > 1:
        raise SourceUnusable(f"{files.shown} has files with different headers; give them the same columns.")
    (header,) = headers
    listed = ", ".join(_literal(path) for path in files.paths)
    columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(header.names)))
    text = (
        f"read_csv([{listed}], auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = {_literal(header.delimiter)}, quote = '\"', escape = '\"', "
        f"ignore_errors = {not strict}, strict_mode = {strict}, parallel = false, "
        f"hive_partitioning = {bool(files.partitions)}, hive_types_autocast = false)"
    )
    fields = frozenset(f"c{i}" for i in range(len(header.names)))
    hidden = _hidden(files, files.above + files.partitions, fields)
    return _Scan(text, header.names, files.paths, whole=True, hidden=hidden)


def _database(connection: Any, database: Database) -> _Scan:
    scan, alias = _Scan("", paths=(), database=database.path), _alias(database.path)
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
        tables = [each for each in tables if database.table in (each[1], f"{each[0]}.{each[1]}")]
    if len(tables) != 1:
        raise SourceUnusable(
            f"{database.shown} must lead to one table of a DuckDB file; name it, as in shop.duckdb::visits."
        )
    path = ".".join(quoted(part) for part in (alias, *tables[0]))
    is_it = note is not None and tables[0] == ("main", note.table)
    return _Scan(path, database=database.path, note=note if is_it else None)
