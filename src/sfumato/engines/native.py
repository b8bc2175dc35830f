"""A source as it is: its columns under their own names and in their own types, for what the steward runs.

Questions of analysts never come here: they see declared columns in canonical types (`_tables.plan_table`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sfumato.engines._origins import columns_of, native_of, scan_of
from sfumato.engines._tables import Slice, Table
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.frames import Frame, is_text_valid, read_arrow_files
from sfumato.engines.scans import Column, Scan, quoted
from sfumato.engines.sources import Database, Files, Located
from sfumato.engines.whole import check_files
from sfumato.errors import SourceUnusable

__all__ = ["native_cursor", "native_table"]

Choose = Callable[[Sequence[str]], Sequence[int]]
"""Which columns are wanted, by position, given the names of all."""


class _Shared:
    """One instance for the process: to make one takes longer than to measure a small table."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        self._process = 0
        self._engine: DuckDB | None = None

    def cursor(self) -> Any:
        with self._lock:
            if self._connection is None or self._process != os.getpid():  # forked
                self._engine = DuckDB()
                self._connection, self._process = self._engine._connect(), os.getpid()
                self._connection.execute("SET GLOBAL preserve_insertion_order = true")
            return self._connection.cursor()


_SHARED = _Shared()


@contextmanager
def native_cursor(sources: Iterable[Located]) -> Iterator[Any]:
    """A cursor that can open these sources, closed afterwards.

    A database has to be attached: an instance of its own, so that none stays attached to the shared one.
    """
    own = DuckDB() if any(isinstance(source, Database) for source in sources) else None
    cursor = _SHARED.cursor() if own is None else own._connect()
    try:
        yield cursor
    finally:
        cursor.close()
        if own is not None:
            own.close()


def native_table(
    connection: Any, name: str, located: Located, choose: Choose
) -> tuple[Table, tuple[Column, ...]]:
    """How `name` is made from the source, and the columns it has: those at the chosen positions.

    The inner name of a column is what the view calls it. A CSV file is read strictly: a row that cannot be
    read makes the read fail instead of being left out, since a count without it would be wrong.

    Raises:
        SourceUnusable: if the source cannot be opened, or rows of a CSV file would be lost.
    """
    if isinstance(located, Files) and located.format == "csv":
        check_files(located)
    if isinstance(located, Files) and located.format == "arrow":
        located = read_arrow_files(located.paths, located.partitions, located.shown)
    if isinstance(located, Frame):
        scan, columns = _pick(connection, located, choose(located.names))
    else:
        scan = scan_of(connection, located, strict=True)
        held = columns_of(connection, scan, located.shown)
        columns = [held[i] for i in choose([column.name for column in held])]
    collated = isinstance(located, Database)
    select = tuple(
        f"{_as_it_is(column, collated=collated)} AS {quoted(f'c{i}')}" for i, column in enumerate(columns)
    )
    shown = tuple(Column(column.name, f"c{i}", column.native) for i, column in enumerate(columns))
    inner = tuple(dict.fromkeys(quoted(column.inner) for column in columns))
    return Table(name, (Slice(scan, select, inner),), has_unit=False), shown


def _as_it_is(column: Column, *, collated: bool) -> str:
    inner = quoted(column.inner)
    # A collation of the file would take two values for one.
    return f'({inner} COLLATE "binary")' if collated and column.native == "VARCHAR" else inner


def _pick(connection: Any, frame: Frame, positions: Sequence[int]) -> tuple[Scan, list[Column]]:
    wanted = list(positions)
    columns: list[Column] | None = None
    try:
        scannable, at = frame.pick(wanted)
        relation = connection.from_arrow(scannable)
        columns = [
            Column(frame.names[i], relation.columns[j], str(relation.types[j]))
            for i, j in zip(wanted, at, strict=True)
        ]
    except Exception:  # its text may hold data
        columns = None
    if columns is not None:
        for i, j in zip(wanted, at, strict=True):
            if not is_text_valid(scannable, j):
                raise SourceUnusable(
                    f'{frame.shown}: column "{frame.names[i][:100]}" holds text that is not UTF-8.'
                )
        return Scan("", frame=scannable, files=frame.files), columns
    for i in wanted:
        if native_of(connection, frame, i) is None:
            raise SourceUnusable(
                f'{frame.shown}: column "{frame.names[i][:100]}" has no single type that can be read.'
            )
    raise SourceUnusable(f"{frame.shown} cannot be read; check that it is whole.")
