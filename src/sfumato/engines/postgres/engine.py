"""`Postgres`: reads on a server of PostgreSQL, each in a read-only transaction of its own."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from sfumato.engines.base import Source, SourceKind
from sfumato.engines.dialect import Dialect
from sfumato.engines.limits import check_limits
from sfumato.engines.postgres.address import SCHEMES, Address, locate, psycopg
from sfumato.engines.postgres.asking import (
    GUARD,
    OLDEST,
    Guard,
    fault,
    is_for_good,
    locking,
    look,
    parse_fault,
    relation_at,
    unusable,
)
from sfumato.engines.postgres.bolt import Bolt
from sfumato.engines.postgres.columns import kind_of
from sfumato.engines.postgres.dialect import POSTGRES, STALE
from sfumato.engines.postgres.door import is_plain
from sfumato.engines.postgres.failures import reason
from sfumato.engines.postgres.relations import Relation, Table, check, plan_table
from sfumato.engines.postgres.results import known_types, prepare_loaders, table_of
from sfumato.engines.postgres.statements import named_in, text_of
from sfumato.engines.postgres.transactions import beginning
from sfumato.engines.prepared import METADATA
from sfumato.engines.public import ShowsPublic
from sfumato.engines.running import run
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.schema import Kind

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Postgres"]

_STRANGE = "The engine runs one SELECT over attached tables and nothing else."
_CLOSED = "The engine is closed; open a new session."
_LOST = "The server of PostgreSQL could not be reached, or went away during the read; the price stays paid."
_ALTERED = "A prepared table is not as it was written; prepare its table again. The price stays paid."
_CHANGED = "A table changed its columns since it was attached; open a new session. The price stays paid."
_UNFIT = (
    "A table is no longer one that may be read: it has a part on another server, row security, or calls "
    "functions of a user; open a new session, which says what it is. The price stays paid."
)
_REFUSED = (
    "The server does not take the question, though no table changed: a right was taken away, say; open a new "
    "session. The price stays paid."
)
_SIZE = re.compile(r"[1-9][0-9]{0,8}([KMGT]?B)")
_NAME = "sfumato"
_UNSETTLED = "ROLLBACK; DEALLOCATE ALL"


class Postgres(ShowsPublic):
    """Runs reads on a server of PostgreSQL 17 or later, whose tables are the sources.

    Attributes:
        dialect: How statements are written for it.
        schemes: `postgresql` and `postgres`: `postgresql://role@host/database::schema.table`.
        threads: How many processes of the server one read may use; by default what the server says.
        memory: How much memory one step of a read may use there, like `"64MB"`; by default the server's
            own setting.
        timeout: How many seconds one read may take; by default any number.

    Privacy:
        A read returns the result of one SELECT over attached tables, or raises `EngineFailed`, `TimedOut` or
        `Cancelled` with a fixed sentence and an empty chain. Conditions: the transaction is read-only; the
        text holds words of `door` alone; the tables are locked, and before the text is run, the server is
        asked which tables it took the names for: one whose columns changed since it was attached, or that
        would not be attached now, is not read.
        What a row contributes is decided by that row: a table stands behind a fence (`relations`) that no
        constraint, key, index or statistic passes, views and row security are refused, and so is what runs
        functions of users (`strangers`); what is too long for a function is NULL (`columns`), and no
        arithmetic or cast of the dialect raises.
    """

    schemes: frozenset[str] = SCHEMES

    def __init__(
        self, *, threads: int | None = None, memory: str | None = None, timeout: float | None = None
    ) -> None:
        """Check the limits; nothing is opened before the first source.

        Raises:
            InvalidParameter: if a limit is invalid.
        """
        check_limits(threads, memory, timeout, size=_SIZE, such="64MB")
        self.threads, self.memory, self.timeout = threads, memory, timeout
        self._lock = threading.RLock()
        self._tables: dict[str, Table] = {}
        self._held: dict[str, tuple[Bolt, ...]] = {}  # guards, by the state in which they were found to hold
        self._server: Mapping[str, Any] | None = None
        self._idle: list[Any] = []
        self._closed = self._stale = False
        self._process = os.getpid()

    @property
    def dialect(self) -> Dialect:
        """How statements are written for it; once a read found that a table has changed, no question is."""
        return STALE if self._stale else POSTGRES

    def attach(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, Kind],
        *,
        unit: str | None = None,
        pointers: Sequence[str] = (),
    ) -> None:
        """Make `name` a table of the server, whose columns have canonical types.

        Raises:
            SourceUnusable: if the server or the table cannot be reached, the table is on another server than
                those before it, or a column is missing or cannot have that kind.
        """
        address = locate(source)
        self._check_open()
        with self._lock:
            self._check_open()
            key = name.lower()
            others = {other: table for other, table in self._tables.items() if other != key}
            if others and self._server != address.server:
                raise SourceUnusable(
                    f"{address.shown} is in another database or read as another role than the tables before "
                    "it; a session reads one database as one role."
                )
            relation = self._described(address)
            table = plan_table(address, relation, columns, unit=unit, pointers=pointers)
            if self._server != address.server:
                self._drop_idle()
            self._server, self._tables, self._held = address.server, {**others, key: table}, {}
            self._stale = False

    def schema(self, source: Source) -> dict[str, SourceKind]:
        """The columns of a table with their kinds, from the catalog.

        Raises:
            SourceUnusable: if it cannot be reached.
        """
        address = locate(source)
        self._check_open()
        return {column.name: kind_of(column) for column in self._described(address).columns}

    def fetch(self, statement: exp.Expression, *, guard: exp.Expression | None = None) -> pa.Table:
        """The result of one SELECT over attached tables, from a connection of its own, for any thread.

        Args:
            statement: The SELECT.
            guard: A SELECT of one number over the same tables that must be 0, or there is no result.

        Privacy:
            The guard is run before the statement, in the same transaction, which sees one state of all
            tables. It is not run again while all tables that it names have the bolt that they had then
            (`bolt`); without one it is run with every read.

        Raises:
            EngineFailed: if the statement is anything else, cannot be finished, or the guard is not 0.
            TimedOut: after `timeout` seconds.
            Cancelled: on Ctrl-C; the engine stays usable.
        """
        self._check_open()
        with self._lock:
            tables, server, holding = dict(self._tables), self._server, self._held
        if not tables or server is None:
            raise EngineFailed("No table is attached; attach one before reading.")
        asked = _understood(statement, tables)
        guarded = asked if guard is None else _understood(guard, tables)
        if asked is None or guarded is None:
            raise EngineFailed(_STRANGE)
        text, used = asked[0], list({id(table): table for table in asked[1] + guarded[1]}.values())
        held_to = None if guard is None else Guard(guarded[0], tuple(guarded[1]), holding)
        driver, held = psycopg(), list[Any]()

        def read() -> Any:
            try:
                return self._read(server, text, used, held, held_to)
            except driver.OperationalError as error:
                return None if error.sqlstate else _LOST
            except driver.ProgrammingError as error:
                return _REFUSED if is_for_good(error.sqlstate) else None

        def interrupt() -> None:
            for connection in held:
                with contextlib.suppress(Exception):
                    connection.cancel_safe(timeout=5)

        try:
            result = run(read, interrupt, timeout=self.timeout)
        finally:
            self._give_back(held)
        if isinstance(result, str):
            self._stale = self._stale or result in (_CHANGED, _UNFIT, _REFUSED)
            raise EngineFailed(result)
        return result

    def check_whole(self, source: Source) -> None:
        """Nothing to look for: a table of a server loses no rows."""

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

    def note(self, source: Source) -> str | None:
        """What a prepared table says about itself, from the catalog; None: it was not prepared.

        Raises:
            SourceUnusable: if it cannot be reached.
        """
        address = locate(source)
        self._check_open()
        note = self._described(address).note
        return None if note is None else note.removeprefix(METADATA)

    def unread(self, name: str) -> frozenset[str]:
        """The columns of which an attached table says which cells could not be read, as `unread_column`."""
        with self._lock:
            table = self._tables.get(name.lower())
        return frozenset() if table is None else table.unread

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        with self._lock:
            self._closed, self._tables = True, {}
            self._drop_idle()

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._process != os.getpid():  # two processes must not talk on one connection
            raise EngineFailed("The engine belongs to another process; open a session in this one.")
        if self._closed:
            raise EngineFailed(_CLOSED)

    def _has_unit(self, name: str) -> bool:
        with self._lock:
            table = self._tables.get(name.lower())
        return table is not None and table.has_unit

    def _described(self, address: Address) -> Relation:
        """What the catalog says of a table."""
        driver, held, why = psycopg(), list[Any](), ""
        relation: Relation | None = None
        try:
            connection = self._connection(address.server, held)
            why = unusable(connection)
            if not why:
                connection.execute(self._beginning(connection))
                relation = relation_at(connection, address)
        except driver.Error as error:
            why = reason(error)
        finally:
            self._give_back(held, keep=relation is not None and address.server == self._server)
        if relation is None:
            raise SourceUnusable(f"{address.shown} cannot be opened: {why}")
        check(relation, address.shown)
        return relation

    def _connection(self, server: Mapping[str, Any], held: list[Any]) -> Any:
        """A connection of nobody else's, noted in `held`."""
        driver = psycopg()
        with self._lock:
            while self._idle and server == self._server:
                connection = self._idle.pop()
                if not connection.closed:
                    held.append(connection)
                    return connection
        options = {"connect_timeout": 15, **server, "application_name": "sfumato", "client_encoding": "utf8"}
        connection = driver.connect("", autocommit=True, prepare_threshold=None, **options)
        held.append(connection)
        prepare_loaders(connection, driver)
        return connection

    def _give_back(self, held: list[Any], *, keep: bool = True) -> None:
        driver = psycopg()
        while held:
            connection = held.pop()
            try:
                connection.execute(_UNSETTLED)
            except driver.Error:
                connection.close()
            with self._lock:
                if connection.closed or self._closed or not keep:
                    connection.close()
                else:
                    self._idle.append(connection)

    def _drop_idle(self) -> None:
        while self._idle:
            connection = self._idle.pop()
            if self._process == os.getpid():
                connection.close()

    def _beginning(self, connection: Any, *, writes: bool = False) -> str:
        version = connection.info.server_version
        return beginning(version, self.threads, self.memory, self.timeout, writes=writes)

    def _locked(self, connection: Any, used: Sequence[Table]) -> str:
        """Begin a transaction in which no table changes any more; the code of what went wrong, if anything.

        In one message, since each answer that is waited for takes time.
        """
        return fault(connection.pgconn.exec_(f"{self._beginning(connection)}; {locking(used)}".encode()))

    def _read(
        self,
        server: Mapping[str, Any],
        text: str,
        used: Sequence[Table],
        held: list[Any],
        guard: Guard | None = None,
    ) -> Any:
        """The result, or a sentence that says why there is none."""
        driver = psycopg()
        connection = self._connection(server, held)
        texts = {_NAME: text} if guard is None else {_NAME: text, GUARD: guard.text}
        # No row decides whether this works.
        wrong = self._locked(connection, used)
        for name, each in texts.items():
            wrong = wrong or parse_fault(connection, name, each)
        if wrong:
            connection.execute("ROLLBACK")
            connection.execute(self._beginning(connection))
        seen = look(connection, used)
        if seen.has_changed or seen.is_unfit:
            return _CHANGED if seen.has_changed else _UNFIT
        if wrong:
            return _REFUSED if is_for_good(wrong) else None
        if not seen.is_known:
            return _STRANGE
        if guard is not None and not guard.holds(connection):
            return _ALTERED
        shape = connection.pgconn.describe_prepared(_NAME.encode())
        types = known_types([shape.ftype(i) for i in range(shape.nfields)])
        if types is None:
            return None
        names = [(shape.fname(i) or b"").decode() for i in range(shape.nfields)]
        with connection.cursor(binary=True) as cursor:
            many = {"size": 1000} if driver.pq.version() >= OLDEST else {}
            return table_of(names, types, cursor.stream(f"EXECUTE {_NAME}", binary=True, **many))


def _understood(statement: exp.Expression, tables: Mapping[str, Table]) -> tuple[str, list[Table]] | None:
    """The text of a statement, with the tables that it names; None if it is no plain SELECT over these."""
    if not isinstance(statement, exp.Select | exp.SetOperation):
        return None
    named = named_in(statement, tables)
    text = "" if named is None else text_of(statement, tables, named)
    if named is None or not is_plain(text):
        return None
    return text, [tables[key] for key in dict.fromkeys(named.values())]
