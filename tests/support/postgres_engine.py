"""PostgreSQL for tests of engines: one server for a process, tables of Arrow put into it when asked for."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

from postgres import Server, running
from sfumato.engines.base import Source, SourceKind
from sfumato.engines.dialect import Dialect
from sfumato.engines.postgres import Postgres
from sfumato.engines.postgres.dialect import POSTGRES
from sfumato.errors import EngineFailed
from sfumato.schema import Kind

__all__ = ["FilledPostgres", "PostgresStore", "given", "held", "quoted", "server", "shared", "superuser"]

_numbers = itertools.count()
_NATIVE = {
    "int8": "smallint",
    "uint8": "smallint",
    "uint16": "integer",
    "uint32": "bigint",
    "uint64": "numeric(20, 0)",
    "binary": "bytea",
    "halffloat": "real",
    "date64[ms]": "date",
    "time64[us]": "time",
    "duration[s]": "interval",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "large_string": "text",
    "bool": "boolean",
    "date32[day]": "date",
    "null": "boolean",
}
_EPOCH, _FIRST, _LAST = datetime.date(1970, 1, 1), -2440588, 2145031948  # PostgreSQL has days between these


_open = contextlib.ExitStack()


@functools.cache
def server() -> Server:
    """The server of this process, stopped when it ends; its password is in the environment."""
    started = _open.enter_context(running(localised=True))
    atexit.register(_open.close)
    os.environ["PGPASSWORD"] = urlsplit(started.address()).password or ""
    return started


@functools.cache
def shared() -> str:
    """The address of a database that all tests of the process may use, without its password."""
    return _plain(_open.enter_context(server().database()))


def _plain(address: str) -> str:
    parts = urlsplit(address)
    return f"postgresql://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"


@functools.cache
def superuser(address: str | None = None) -> psycopg.Connection[Any]:
    """A connection that may do anything."""
    return _closed_last(address or shared())


@functools.cache
def _apart() -> psycopg.Connection[Any]:
    """A connection with tables of its own."""
    return _closed_last(shared())


def _closed_last(address: str) -> psycopg.Connection[Any]:
    """A connection that is closed before the server is stopped."""
    made = psycopg.connect(address, autocommit=True)
    _open.callback(made.close)
    return made


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def create(
    connection: psycopg.Connection[Any],
    name: str,
    rows: pa.Table,
    how: str = "UNLOGGED TABLE",
    collation: str = "",
) -> None:
    """Make a table of these rows."""
    natives = [_native(field.type) for field in rows.schema]
    columns = [
        f"{quoted(field.name)} {native}{collation if native == 'text' else ''}"
        for field, native in zip(rows.schema, natives, strict=True)
    ]
    connection.execute(f"CREATE {how} {quoted(name)} ({', '.join(columns)})")
    cells = [_cells(column) for column in rows.columns]
    listed = ", ".join(quoted(field.name) for field in rows.schema)
    if not rows.num_columns:
        return
    with connection.cursor().copy(f"COPY {quoted(name)} ({listed}) FROM STDIN") as copy:
        for row in zip(*cells, strict=True):
            copy.write_row(row)


def _native(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if pa.types.is_nested(kind):
        return "bigint[]" if pa.types.is_list(kind) else "point"
    if pa.types.is_dictionary(kind):
        return _native(kind.value_type)
    return _NATIVE.get(str(kind), "text")


def _cells(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_nested(column.type) or pa.types.is_duration(column.type):
        return [None] * len(column)
    if pa.types.is_timestamp(column.type):
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
        return [None if micro is None else _moment(micro) for micro in micros]
    if not pa.types.is_date32(column.type):
        values = column.to_pylist()
        return [value.replace("\x00", "") if isinstance(value, str) else value for value in values]
    return [None if day is None else _day(day) for day in column.cast(pa.int32()).to_pylist()]


def held(rows: pa.Table) -> pa.Table:
    """The rows as PostgreSQL can have them: a day that is not in its calendar is endless."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_date32(field.type):
            days = rows.column(place).cast(pa.int32()).to_pylist()
            known = pa.array([day if day is None else _endless(day) or day for day in days], pa.int32())
            rows = rows.set_column(place, field, known.cast(pa.date32()))
    return rows


def _endless(days: int) -> int | None:
    return None if _FIRST <= days <= _LAST else 2**31 - 1 if days > 0 else -(2**31) + 1


def _day(days: int) -> str:
    if endless := _endless(days):
        return "infinity" if endless > 0 else "-infinity"
    place = _EPOCH.toordinal() + days
    if 1 <= place <= datetime.date.max.toordinal():
        return datetime.date.fromordinal(place).isoformat()
    return f"J{days + 2440588}"  # the day by its Julian number


def _moment(micros: int) -> str:
    day, micro = divmod(micros, 86_400_000_000)
    second, part = divmod(micro, 10**6)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{part:06}"
    return f"J{day + 2440588} {clock}+00"  # a column without a zone does not look at it


def given(rows: pa.Table) -> str:
    """The address of a new table with these rows."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    create(superuser(), name, rows)
    return f"{shared()}::public.{name}"


class FilledPostgres(Postgres):
    """PostgreSQL that takes tables of Arrow and Parquet files too, and puts them into its server first."""

    def attach(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, Kind],
        *,
        unit: str | None = None,
        pointers: Sequence[str] = (),
    ) -> None:
        super().attach(name, _there(source), columns, unit=unit, pointers=pointers)

    def schema(self, source: Source) -> dict[str, SourceKind]:
        return super().schema(_there(source))


def _there(source: Source) -> Source:
    if isinstance(source, pa.Table):
        return given(source)
    if isinstance(source, str | Path) and str(source).endswith(".parquet") and Path(source).exists():
        with contextlib.suppress(pa.ArrowInvalid):
            return given(pq.read_table(source))
    return source


class PostgresStore:
    """PostgreSQL as what the search for broken sensitivities runs its statements on."""

    dialect: Dialect = POSTGRES
    quotes = '"'

    def text(self, statement: Any) -> str:
        """A statement as the server reads it."""
        return self.dialect.text(statement)

    def __init__(self, dialect: Dialect = POSTGRES) -> None:
        self.dialect = dialect
        self._connection = _apart()
        self._connection.execute("SET search_path = pg_temp, pg_catalog; SET TimeZone = 'UTC'; SET jit = off")
        for (name,) in self._connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'"
        ).fetchall():
            self._connection.execute(f"DROP TABLE pg_temp.{quoted(name)}")

    def fill(self, name: str, rows: pa.Table) -> None:
        """A table, whose texts are compared by their bytes as those of attached ones are."""
        create(self._connection, name, rows, "TEMP TABLE", ' COLLATE "C"')

    def execute(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """The names and rows of a result."""
        rows: list[tuple[Any, ...]] | None = None
        cursor = self._connection.cursor(binary=True)
        try:
            rows = cursor.execute(text.encode()).fetchall()
        except psycopg.Error:
            rows = None
        if rows is None:
            raise EngineFailed("PostgreSQL")
        return [column.name for column in cursor.description or ()], rows
