"""A ledger in one SQLite file, or in memory."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from sfumato.errors import LedgerTampered, LedgerUnusable
from sfumato.ledger.files import sync_folder
from sfumato.ledger.store import Store
from sfumato.ledger.turns import claim_byte, yield_byte

__all__ = ["SQLite"]

_SYNCED, _QUICK = "PRAGMA synchronous = FULL", "PRAGMA synchronous = NORMAL"
_PATIENCE = 60.0  # seconds that one process waits for the others
_PAUSE = 0.001  # seconds between two looks, a small part of what one of them takes
# A connection must not be closed in a process that was forked after it was opened; so it is kept for ever.
_abandoned: list[sqlite3.Connection] = []


class SQLite(Store):
    """WAL, full sync, one immediate transaction at a time: what is committed survives a power cut.

    What is committed without a sync is in the log before whatever follows, and is synced with it.
    """

    types: ClassVar[dict[str, str]] = {"integer": "INTEGER", "blob": "BLOB"}

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._where = None if path is None else os.fspath(path)
        self._open: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self.execute("SELECT 1")

    @property
    def name(self) -> str:
        """The path."""
        return "The ledger in memory" if self.path is None else f"The ledger {self.path}"

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self._open = self._connect()
        elif self._where is not None and self._file != _inode(self._where):
            raise LedgerTampered(
                f"{self.name} was replaced or removed while it was open: close it, put the latest file back "
                "and open it again."
            )
        return self._open

    def _connect(self) -> sqlite3.Connection:
        if self.path is not None:
            self._create(self.path)
        connection = sqlite3.connect(
            ":memory:" if self.path is None else self.path,
            timeout=_PATIENCE,
            isolation_level=None,  # transactions begin and end where this file says so
            check_same_thread=False,  # the ledger's lock lets in one thread at a time
        )
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute(_SYNCED)
            self._synced = True
            if self.path is not None:
                self._not_foreign(connection)
                if _into_wal(connection) != "wal":
                    raise LedgerUnusable(
                        f"{self.name} lies on a file system without shared memory: put it on a local disk, "
                        "or use PostgreSQL."
                    )
                self._file = _inode(os.fspath(self.path))
        except BaseException:
            connection.close()
            raise
        return connection

    def _not_foreign(self, connection: sqlite3.Connection) -> None:
        """Leaves a database alone that is not a ledger."""
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if tables and "sfumato_ledger" not in tables:
            raise LedgerUnusable(
                f"{self.path} is a database of something else: give the ledger a file of its own."
            )

    def _create(self, path: Path) -> None:
        """An empty file for its owner alone, if there is none."""
        if not path.parent.is_dir():
            # A slip in the path would begin another ledger, with the whole budget to spend again.
            raise LedgerUnusable(
                f"There is no folder {path.parent} for a ledger: make it, or check the path."
            )
        with contextlib.suppress(FileExistsError):
            # Exclusive, so that never a file is opened here on which SQLite holds locks: closing it would
            # drop them.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            sync_folder(path.parent)

    @contextlib.contextmanager
    def _readable(self, outcome: str = "Nothing was spent.") -> Iterator[None]:
        """Turns whatever the database says into one sentence."""
        try:
            yield
        except sqlite3.Error as wrong:
            reason = _REASONS.get(
                getattr(wrong, "sqlite_errorcode", 0) & 0xFF, "it cannot be read or written"
            )
            raise LedgerUnusable(f"{self.name} cannot be used: {reason}. {outcome}") from None
        except OSError as wrong:
            raise LedgerUnusable(
                f"{self.name} cannot be used: {wrong.strerror or 'input/output error'}. {outcome}"
            ) from None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of one statement."""
        with self._readable():
            return self._connection.execute(statement, values).fetchall()

    def begin(self, *, synced: bool = True) -> None:
        """Waits for the one right to append."""
        with self._readable():
            _ = self._connection  # a new one syncs
        if synced != self._synced:
            self._synced = False  # whatever interrupts the next line, it is taken to sync no more
            self.execute(_SYNCED if synced else _QUICK)  # refused within a transaction
            self._synced = synced
        self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Begin, looking again and again: SQLite itself would sleep longer and longer, up to .1 s."""
        patience = time.monotonic() + _PATIENCE
        self.execute("PRAGMA busy_timeout = 0")
        try:
            with self._readable():
                while not _begun(self._connection, time.monotonic() > patience):
                    time.sleep(_PAUSE)
        finally:
            self.execute(f"PRAGMA busy_timeout = {1000 * _PATIENCE:.0f}")

    def commit(self) -> None:
        """Makes everything since `begin` durable, where that was wanted."""
        with self._readable("Whether the last step was written is uncertain: look at the balance."):
            self._connection.execute("COMMIT")

    def rollback(self) -> None:
        """Undoes everything since `begin`."""
        with contextlib.suppress(sqlite3.Error):
            if self._open is not None and self._open.in_transaction:
                self._open.execute("ROLLBACK")

    def claim(self, place: int) -> bool:
        """Locks one byte of a file beside the database; what lives in memory has one process."""
        with self._readable():
            return self.path is None or claim_byte(self._turns, place)

    def give_back(self, place: int) -> None:
        """Unlocks it."""
        if self.path is not None:
            yield_byte(self._turns, place)

    @functools.cached_property
    def _turns(self) -> str:
        return f"{os.path.realpath(str(self.path))}.turns"

    def version(self) -> int:
        """The version of the tables, 0 if there are none."""
        if not self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'sfumato_ledger'"):
            return 0
        return self.identity().version

    def has_index(self, name: str) -> bool:
        """Whether there is an index of this name."""
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", (name,)))

    def close(self) -> None:
        """Lets go of the file."""
        if self._open is not None:
            with contextlib.suppress(sqlite3.Error):
                self._open.close()
            self._open = None

    def another(self) -> Store | None:
        """The same file once more; what lives in memory has one connection."""
        return None if self.path is None else SQLite(self.path)

    def abandon(self) -> None:
        """Forgets the connection without touching it."""
        if self._open is not None:
            _abandoned.append(self._open)
            self._open = None


def _begun(connection: sqlite3.Connection, last: bool) -> bool:
    """Whether this connection may append now; the last time it looks, that it may not is an error."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as busy:
        if last or busy.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _into_wal(connection: sqlite3.Connection) -> str:
    """Turn the file to a write-ahead log, waiting where SQLite does not: as two connections do so at once."""
    patience = time.monotonic() + _PATIENCE
    while True:
        try:
            mode: str = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError as busy:
            if busy.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > patience:
                raise
            time.sleep(0.01)
        else:
            return mode


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_REASONS = {
    sqlite3.SQLITE_BUSY: f"other processes kept it busy for {_PATIENCE:.0f} seconds; try again",
    sqlite3.SQLITE_LOCKED: f"other processes kept it busy for {_PATIENCE:.0f} seconds; try again",
    sqlite3.SQLITE_FULL: "the disk is full; make room",
    sqlite3.SQLITE_READONLY: "it is read-only; check who may write to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check the path and who may write there",
    sqlite3.SQLITE_PERM: "permission was denied; check who may write there",
    sqlite3.SQLITE_IOERR: "the disk reported an error",
    sqlite3.SQLITE_NOTADB: "this file is not a ledger",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; restore it from a backup",
}
