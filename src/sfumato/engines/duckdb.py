"""DuckDB inside this process: sources as views with canonical types, a locked instance, a cursor a read."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sqlglot import exp

from sfumato.engines._days import days_of
from sfumato.engines._door import FUNCTIONS, Functions, is_plain_select
from sfumato.engines._known_hash import is_known
from sfumato.engines._origins import describe
from sfumato.engines._paths import pattern
from sfumato.engines._scratch import Scratch
from sfumato.engines._skipping import Skipping
from sfumato.engines._tables import Table, plan_table
from sfumato.engines.base import Source, SourceKind
from sfumato.engines.dialect import DUCKDB, PORTABLE, Dialect
from sfumato.engines.kinds import kind_of
from sfumato.engines.limits import check_limits
from sfumato.engines.public import ShowsPublic
from sfumato.engines.running import run
from sfumato.engines.sources import Database, Stamp, are_settled, locate
from sfumato.engines.trees import nodes_of
from sfumato.engines.whole import check_whole
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.schema import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DuckDB"]

_T = TypeVar("_T")
_CLOSED = "The engine is closed; open a new session."
_STRANGE = "The engine runs one SELECT over attached tables and nothing else."
_STALE = "A file of the dataset changed since it was attached; open a new session on a new dataset."
_ALTERED = "A prepared file is not as it was written; prepare its table again. The price stays paid."
_CHANGED = "A file of the source changed while it was read; the price stays paid."

_SETTINGS: dict[str, str | int | bool] = {
    "python_enable_replacements": False,  # a table name never means a variable of the caller
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "preserve_insertion_order": False,  # no answer depends on the order of rows
    "enable_external_file_cache": False,  # nothing kept of a file that may be replaced
}
_AFTER = ("SET GLOBAL TimeZone = 'UTC'", "SET GLOBAL parquet_metadata_cache = false")
_OPTIMIZERS = frozenset(
    {
        "build_side_probe_side",
        "column_lifetime",
        "common_aggregate",
        "common_subexpressions",
        "duplicate_groups",
        "expression_rewriter",
        "in_clause",
        "reorder_filter",
        "unused_columns",
    }
)
"""The optimisers that stay on: those that see the statement and types alone, or change no more than an order.

All others are off, also ones that a later DuckDB brings. Many of them trust statistics of columns (footers,
zone maps, dictionaries, minima of a join), which belong to all rows together and may be wrong: Parquet leaves
NaN out of them. Whether one row passes a filter, or is clamped, would then depend on the values of others.
"""
_SKIPPING = frozenset({"filter_pushdown"})
"""What is on besides in the instance for reads of some days, which are held to the count of all rows."""
_SIZE = re.compile(r"[1-9][0-9]{0,8}(\.[0-9]{1,3})?\s?([KMGT]i?B)")
_COPIES = (
    "ignore",
    re.compile("Arrow output on a DB-API result makes an extra copy", re.IGNORECASE),
    UserWarning,
    re.compile(r"sfumato\.engines\.duckdb$"),
    0,
)
_LOCK = ("SET enable_external_access = false", "SET lock_configuration = true")


class DuckDB(ShowsPublic):
    """Runs reads in DuckDB, within limits, with every door but the attached sources shut.

    Attributes:
        dialect: How statements are written for it.
        schemes: None: sources are files and frames.
        threads: How many threads a read may use; by default one a core.
        memory: How much memory reads may use together, like `"4GB"`; by default four fifths of the machine's.
            What does not fit is written to a private folder, removed when the engine is closed, or, after a
            kill, when the next one is opened.
        timeout: How many seconds one read may take; by default any number.

    Privacy:
        A read returns the result of one SELECT over attached tables or raises `EngineFailed`, `TimedOut` or
        `Cancelled` with a fixed sentence and an empty chain. Conditions: DuckDB's own lock (external access
        off but for the listed files, configuration locked, extensions and replacement scans off), and the
        check of each statement in `_door`, which does not rely on it.
        What a row contributes to an answer is decided by that row: no optimiser that reads statistics of
        columns is on, and a read during which a file changes gives no answer. Reads of some days may skip
        parts of Parquet files, and give an answer only if no row of those days was skipped (`_skipping`).
    """

    schemes: frozenset[str] = frozenset()
    _functions: ClassVar[frozenset[str]] = frozenset()  # the same for every instance of one DuckDB
    _dialect: ClassVar[Dialect | None] = None  # likewise

    def __init__(
        self,
        *,
        threads: int | None = None,
        memory: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Check the limits; nothing is opened before the first source.

        Raises:
            InvalidParameter: if a limit is invalid.
        """
        check_limits(threads, memory, timeout, size=_SIZE, such="4GB")
        self.threads, self.memory, self.timeout = threads, memory, timeout
        self._lock = threading.RLock()
        self._tables: dict[str, Table] = {}
        self._held: dict[str, tuple[Stamp, ...]] = {}
        self._connection: Any = None
        self._reads: dict[Any, int] = {}  # how many are under way on each instance, the left ones too
        self._locked = False
        self._closed = False
        self._process = os.getpid()
        self._scratch = Scratch()
        self._optimizers = _OPTIMIZERS
        self._days = self._skipping()

    @property
    def dialect(self) -> Dialect:
        """How statements are written for it: choices by its own hash where that is the one on record."""
        if DuckDB._dialect is None:
            with self._lock:
                self._check_open()
                if self._connection is None:
                    self._connection = self._connect()  # the first table goes on with it
        assert DuckDB._dialect is not None
        return DuckDB._dialect

    def attach(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, Kind],
        *,
        unit: str | None = None,
        pointers: Sequence[str] = (),
    ) -> None:
        """Make `name` a view of the source whose columns have canonical types; tables so far stay attached.

        The instance is locked before its first read. DuckDB cannot open another file after that, so that a
        table that is attached later makes a new instance, which takes the place of the old one; reads under
        way end on the old one.

        Raises:
            SourceUnusable: if the source cannot be opened, or a column is missing or cannot have that kind.
        """
        located = locate(source)
        self._check_open()
        with self._lock:
            self._check_open()
            key = name.lower()
            others = {other: table for other, table in self._tables.items() if other != key}
            connection, goes_on = self._connection, self._connection is not None and not self._locked
            if not goes_on or len(others) < len(self._tables):
                connection, goes_on = self._connect(), False
            try:
                planned = plan_table(connection, name, located, columns, unit=unit, pointers=pointers)
                new = [planned] if goes_on else [*others.values(), planned]
                built = _succeeds(lambda: _create(connection, new))
            except BaseException as error:
                # To look at files and frames leaves nothing in an instance; a database stays attached to it.
                is_clean = isinstance(error, SourceUnusable) and not isinstance(located, Database)
                if not (goes_on and is_clean):
                    self._drop(connection)
                raise
            if not built:
                self._drop(connection)
                raise SourceUnusable(
                    f"{located.shown} cannot be opened; check that it is whole and readable."
                )
            left = None if goes_on else self._connection
            self._connection, self._tables, self._held = connection, {**others, key: planned}, {}
            self._locked = self._locked and goes_on
            self._close_unused(left)
            days, self._days = self._days, self._skipping()
        days.close()

    def schema(self, source: Source) -> dict[str, SourceKind]:
        """The columns of a source with their kinds, from its public metadata; a CSV column is text.

        Raises:
            SourceUnusable: if the source cannot be opened.
        """
        located = locate(source)
        self._check_open()
        connection = self._connect()
        try:
            return {column.name: kind_of(column.native) for column in describe(connection, located)}
        finally:
            connection.close()

    def fetch(self, statement: exp.Expression, *, guard: exp.Expression | None = None) -> pa.Table:
        """The result of one SELECT over attached tables, from a cursor of its own: threads may call at once.

        Args:
            statement: The SELECT.
            guard: A SELECT of one number over the same tables that must be 0, or there is no result.

        Privacy:
            The guard is run before the statement, on the same instance, for each state of the files that is
            read: device, inode, size, time of writing and time of change, the last of which only the system
            can set. A state that is not settled (`sources.are_settled`) is not remembered, since a second
            write within one tick of the clock would look the same.

        Raises:
            EngineFailed: if the statement is anything else, cannot be finished, or the guard is not 0.
            TimedOut: after `timeout` seconds.
            Cancelled: on Ctrl-C; the engine stays usable.
        """
        if not all(
            isinstance(tree, exp.Select | exp.SetOperation) for tree in (statement, guard or statement)
        ):
            raise EngineFailed(_STRANGE)
        self._check_open()
        found = None if guard is not None else self._of_days(statement)
        return self._fetch(statement, guard) if found is None else found

    def _of_days(self, statement: exp.Expression) -> pa.Table | None:
        """The result of a statement about some days, where parts of files can be skipped for it; else None.

        Not where memory is limited: a second instance would have a limit of its own.
        """
        asked = days_of(statement) if self.memory is None else []
        with self._lock:
            table, days = self._tables.get(asked[0].table) if asked else None, self._days
        some = next((each for each in asked if table is not None and each.column in table.dates), None)
        return None if table is None or some is None else days.fetch(statement, some, table)

    def _skipping(self) -> Skipping:
        """What reads some days of the tables that are attached now, in an instance of its own."""

        def made() -> tuple[Callable[[exp.Expression], pa.Table], Callable[[], None]]:
            other = DuckDB(threads=self.threads, timeout=self.timeout)
            with self._lock:
                other._tables, other._optimizers = dict(self._tables), _OPTIMIZERS | _SKIPPING
            return other._fetch, other.close

        return Skipping(self._fetch, made)

    def _fetch(self, statement: exp.Expression, guard: exp.Expression | None = None) -> pa.Table:
        self._check_open()
        with self._lock:
            self._check_open()
            if not self._tables:
                raise EngineFailed("No table is attached; attach one before reading.")
            # Beside this thread, and to its end: Ctrl-C must not leave a door half shut.
            if not self._locked and not run(lambda: _succeeds(self._shut), lambda: None, timeout=None):
                raise EngineFailed(_STALE)
            connection, tables, held = self._connection, tuple(self._tables), self._held
            cursor = connection.cursor()
            self._reads[connection] = self._reads.get(connection, 0) + 1
            named = {node.name.lower() for node in nodes_of(statement) if isinstance(node, exp.Table)}
            watched = [table for key, table in self._tables.items() if key in named]

        def read() -> Any:
            before = [table.stamps() for table in watched]
            functions = Functions(lambda: _listed(cursor))
            texts = [self.dialect.text(tree) for tree in (statement, guard) if tree]
            for text in texts:
                parsed = cursor.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchall()[0][0]
                if not is_plain_select(parsed, tables, functions):
                    return _STRANGE
            if any(table.is_stale() for table in watched):
                return _STALE
            if guard is not None and not _holds(cursor, texts[1], tuple(itertools.chain(*before)), held):
                return _ALTERED
            result = _fetched(cursor, texts[0])
            return result if before == [table.stamps() for table in watched] else _CHANGED

        try:
            result = run(read, lambda: _succeeds(cursor.interrupt), timeout=self.timeout)
        finally:
            with self._lock:
                cursor.close()
                self._reads[connection] -= 1
                self._close_unused(connection)
        if isinstance(result, str):
            raise EngineFailed(result)
        return result

    def _close_unused(self, connection: Any) -> None:
        """Close an instance that was left, once no read is under way on it: DuckDB refuses before that."""
        if connection is None or connection is self._connection or self._reads.get(connection):
            return
        self._reads.pop(connection, None)
        connection.close()
        if self._closed and not self._reads:
            self._scratch.remove()

    def check_whole(self, source: Source) -> None:
        """Look through CSV files for what would lose rows: a quote that is not closed, text not in UTF-8.

        Raises:
            SourceUnusable: if there is any; of the file's content nothing is said.
        """
        check_whole(source)

    def is_prepared(self, name: str) -> bool:
        """Whether an attached table shows the ranks of its rows as `RANK_COLUMN`: see `engines.prepare`."""
        with self._lock:
            table = self._tables.get(name.lower())
        return table is not None and table.is_prepared

    def grouping(self, name: str) -> tuple[str, ...]:
        """The columns whose groups an attached table shows the ranks of; empty where there are none."""
        with self._lock:
            table = self._tables.get(name.lower())
        return () if table is None else table.grouping

    def unread(self, name: str) -> frozenset[str]:
        """The columns of which an attached table says which cells could not be read, as `unread_column`."""
        with self._lock:
            table = self._tables.get(name.lower())
        return frozenset() if table is None else frozenset(table.unread)

    def close(self) -> None:
        """Give back memory and the folder of spilled data; a second call does nothing.

        Reads that are under way in other threads end first.
        """
        with self._lock:
            self._closed = True
            left, self._connection, self._tables = self._connection, None, {}
            if self._process != os.getpid():
                self._reads = {}
            else:
                self._close_unused(left)
            if not any(self._reads.values()):
                self._scratch.remove()
            days = self._days
        days.close()

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._process != os.getpid():  # DuckDB's threads are not in a forked child
            raise EngineFailed("The engine belongs to another process; open a session in this one.")
        if self._closed:
            raise EngineFailed(_CLOSED)

    def _has_unit(self, name: str) -> bool:
        with self._lock:
            table = self._tables.get(name.lower())
        return table is not None and table.has_unit

    def _connect(self) -> Any:
        """A fresh instance in memory with our settings, not locked yet."""
        import duckdb

        settings: dict[str, Any] = dict(_SETTINGS)
        settings["temp_directory"] = tempfile.mkdtemp(dir=self._scratch.path)  # instances must not share one
        if self.threads is not None:
            settings["threads"] = self.threads
        if self.memory is not None:
            settings["memory_limit"] = self.memory
        connection = duckdb.connect(":memory:", config=settings)
        optimizers = {row[0] for row in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
        connection.execute(
            "SET GLOBAL disabled_optimizers = ?", [",".join(sorted(optimizers - self._optimizers))]
        )
        for command in _AFTER:
            connection.execute(command)
        if DuckDB._dialect is None:
            DuckDB._dialect = DUCKDB if is_known(connection) else DUCKDB.choosing_by(PORTABLE.name)
        return connection

    def _drop(self, connection: Any) -> None:
        """Close an instance in which a table could not be made; its tables are made again if needed."""
        connection.close()
        if connection is self._connection:
            self._connection = None

    def _shut(self) -> None:
        """Shut every door but the attached sources, before the first read."""
        connection = self._connection
        if connection is None:
            connection = self._connect()
            try:
                _create(connection, self._tables.values())
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        names = {path for table in self._tables.values() for path in table.paths}
        paths = sorted(names | {pattern(path) for path in names})
        connection.execute("SET allowed_paths = $paths", {"paths": paths})
        for command in _LOCK:
            connection.execute(command)
        self._locked = True


def _create(connection: Any, tables: Iterable[Table]) -> None:
    for table in tables:
        table.create(connection)


def _listed(cursor: Any) -> frozenset[str]:
    """The functions of their arguments alone, as this DuckDB lists them."""
    if not DuckDB._functions:
        DuckDB._functions = frozenset(row[0] for row in cursor.execute(FUNCTIONS).fetchall())
    return DuckDB._functions


def _fetched(cursor: Any, text: str) -> Any:
    """The result of a statement as Arrow, without binding it twice, as a relation of DuckDB would be.

    DuckDB warns that this copies the result once more. What is read here is small, and the warning, which it
    gives to this module alone, is switched off for it: where warnings are errors, no read may fail.
    """
    if _COPIES not in warnings.filters:
        _, message, category, module, _ = _COPIES
        warnings.filterwarnings("ignore", message.pattern, category, module.pattern)
    return cursor.execute(text).to_arrow_table()


def _succeeds(work: Callable[[], object]) -> bool:
    """Whether it runs through; the exception is dropped here, so that none of its text can travel on."""
    with contextlib.suppress(Exception):
        work()
        return True
    return False


def _holds(cursor: Any, guard: str, now: tuple[Stamp, ...], held: dict[str, tuple[Stamp, ...]]) -> bool:
    """Whether a guard is 0 in this state of the files; one that was remembered is not asked again."""
    if held.get(guard) == now:
        return True
    is_settled = are_settled(now)
    if cursor.sql(guard).fetchall() != [(0,)]:
        return False
    if is_settled and any(now):
        held[guard] = now
    return True
