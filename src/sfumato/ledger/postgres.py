"""A ledger in PostgreSQL, through psycopg."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sfumato.errors import LedgerUnusable, MissingExtra
from sfumato.ledger.store import Store

if TYPE_CHECKING:
    import psycopg

__all__ = ["Postgres"]

_PATIENCE = 60  # seconds that one process waits for the others
_MAKING = 0x5F0A70  # the advisory lock under which tables are made or brought up to date
# A connection must not be closed in a process that was forked after it was opened; so it is kept for ever.
_abandoned: list[Any] = []


class Postgres(Store):
    """One row lock at a time, synchronous commit: what is committed survives a power cut of the server."""

    types: ClassVar[dict[str, str]] = {"integer": "BIGINT", "blob": "BYTEA"}
    mark: ClassVar[str] = "%s"

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra(
                "A ledger in PostgreSQL needs psycopg: pip install 'sfumato[postgres]'."
            ) from None
        self._psycopg = psycopg
        self._address = address
        self._open: psycopg.Connection[Any] | None = None
        self._writing = False
        with self._readable():
            self._connection.execute("SELECT 1")

    @property
    def name(self) -> str:
        """Host and database, never a password."""
        if self._open is None:
            return "The ledger in PostgreSQL"
        info = self._open.info
        return f"The ledger in PostgreSQL ({info.host}:{info.port}/{info.dbname})"

    @property
    def place(self) -> str:
        """A short name for the server and database, to remember which ledger was found there."""
        with self._readable():
            connection = self._connection
            info = connection.info
            schema = connection.execute("SELECT current_schema()").fetchone()
        where = f"{info.host}:{info.port}/{info.dbname}/{schema[0] if schema else ''}"
        return hashlib.sha256(where.encode()).hexdigest()[:16]

    @property
    def _connection(self) -> psycopg.Connection[Any]:
        if self._open is not None and self._open.broken and not self._writing:
            self.close()
        if self._open is None:
            self._open = self._connect()
        return self._open

    def _connect(self) -> psycopg.Connection[Any]:
        connection = self._psycopg.connect(
            self._address,
            autocommit=True,  # transactions begin and end where this file says so
            connect_timeout=15,
            application_name="sfumato",
        )
        try:
            connection.execute("SET synchronous_commit = on")
            connection.execute(f"SET lock_timeout = '{_PATIENCE}s'")
            connection.execute("SET default_transaction_isolation = 'read committed'")
            fsync = connection.execute("SHOW fsync").fetchone()
            if fsync is None or fsync[0] != "on":
                raise LedgerUnusable(
                    "This PostgreSQL runs with fsync off, so that a power cut could undo what was paid: turn "
                    "it on."
                )
        except BaseException:
            connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _readable(self, outcome: str = "Nothing was spent.") -> Iterator[None]:
        """Turns whatever the server says into one sentence without any of its words."""
        try:
            yield
        except self._psycopg.errors.LockNotAvailable:
            raise LedgerUnusable(
                f"{self.name} was kept busy by others for {_PATIENCE} seconds: try again. {outcome}"
            ) from None
        except self._psycopg.errors.InsufficientPrivilege:
            raise LedgerUnusable(
                f"{self.name} cannot be used: this role may not read or write its tables. {outcome}"
            ) from None
        except self._psycopg.errors.DiskFull:
            raise LedgerUnusable(f"{self.name} cannot be used: its disk is full. {outcome}") from None
        except self._psycopg.OperationalError:
            raise LedgerUnusable(
                f"{self.name} cannot be reached: check the address, the role and the server. {outcome}"
            ) from None
        except self._psycopg.Error:
            raise LedgerUnusable(
                f"{self.name} cannot be used: its tables are not as they should be, or the server refused. "
                f"{outcome}"
            ) from None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        with self._readable():
            cursor = self._connection.execute(statement.encode(), values or None)
            return [] if cursor.description is None else cursor.fetchall()

    def begin(self, *, synced: bool = True) -> None:
        """Waits for the one right to append."""
        with self._readable():
            try:
                self._connection.execute("BEGIN")
            except self._psycopg.OperationalError:
                # A server that was restarted since: nothing was asked of it yet.
                self.close()
                self._connection.execute("BEGIN")
            self._writing = True
            if not synced:
                self._connection.execute("SET LOCAL synchronous_commit = off")
            self._wait()

    def _wait(self) -> None:
        """For the lock on the row that says which ledger this is, or on making one."""
        if self._made():
            self._connection.execute("SELECT one FROM sfumato_ledger FOR UPDATE")
        else:
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))

    def _made(self) -> bool:
        # Through a snapshot of its own: `to_regclass` may remember within a transaction that there was none.
        tables = self._connection.execute(
            "SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = 'sfumato_ledger' "
            "AND schemaname = ANY (current_schemas(false))"
        )
        return tables.fetchone() is not None

    def commit(self) -> None:
        """Makes everything since `begin` durable, where that was wanted."""
        with self._readable("Whether the last step was written is uncertain: look at the balance."):
            self._connection.execute("COMMIT")
        self._writing = False

    def rollback(self) -> None:
        """Undoes everything since `begin`; a connection that cannot is dropped, which undoes it as well."""
        if not self._writing:
            return
        self._writing = False
        try:
            if self._open is not None:
                self._open.execute("ROLLBACK")
        except self._psycopg.Error:
            self.close()

    def claim(self, place: int) -> bool:
        """An advisory lock of this connection, which the server drops with it."""
        ((got,),) = self.execute("SELECT pg_try_advisory_lock(%s)", (place,))
        return bool(got)

    def give_back(self, place: int) -> None:
        """Gives it back; a connection that was lost since has none."""
        if self._open is not None:
            with contextlib.suppress(LedgerUnusable):
                self.execute("SELECT pg_advisory_unlock(%s)", (place,))

    def version(self) -> int:
        """The version of the tables, 0 if there are none."""
        with self._readable():
            return self.identity().version if self._made() else 0

    def has_index(self, name: str) -> bool:
        """Whether there is an index of this name, beside the tables."""
        found = self.execute(
            "SELECT 1 FROM pg_catalog.pg_indexes WHERE tablename = 'sfumato_receipts' AND indexname = %s "
            "AND schemaname = ANY (current_schemas(false))",
            (name,),
        )
        return bool(found)

    def close(self) -> None:
        """Lets go of the server."""
        if self._open is not None:
            with contextlib.suppress(self._psycopg.Error):
                self._open.close()
            self._open = None

    def another(self) -> Store | None:
        """The same server once more."""
        return Postgres(self._address)

    def abandon(self) -> None:
        """Forgets the connection without touching it; what holds its socket here is the parent alone."""
        if self._open is not None:
            # A socket that is open in a child, too, would keep the parent's locks when the parent dies.
            with contextlib.suppress(self._psycopg.Error, OSError), open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), self._open.fileno())
            _abandoned.append(self._open)
            self._open = None
        self._writing = False
