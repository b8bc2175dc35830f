"""Where accounts and tokens are kept: an SQLite file beside the ledger, or the ledger's PostgreSQL."""

from __future__ import annotations

import contextlib
import hmac
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import LedgerTampered, LedgerUnusable
from sfumato.ledger.key import load_key, make_key
from sfumato.ledger.opening import POSTGRES, STATE, file_at
from sfumato.ledger.postgres import Postgres
from sfumato.ledger.sqlite import SQLite
from sfumato.ledger.store import Store
from sfumato.random import salt, token
from sfumato.server.access.tokens import ServerKey

__all__ = ["AccountRow", "Tables", "TokenRow", "opened"]

_VERSION = 1
_LOCK = 0x5F0A71  # the advisory lock under which accounts are written
_STATEMENTS = (
    "CREATE TABLE sfumato_access (one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL, "
    "id TEXT NOT NULL, seal {blob} NOT NULL)",
    "CREATE TABLE sfumato_accounts (person TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, "
    "created {integer} NOT NULL, seal {blob} NOT NULL)",
    "CREATE TABLE sfumato_tokens (id TEXT PRIMARY KEY, person TEXT NOT NULL, created {integer} NOT NULL, "
    "expires {integer} NOT NULL, revoked {integer}, hash {blob} NOT NULL, stored {blob} NOT NULL, "
    "server {blob} NOT NULL, seal {blob} NOT NULL)",
    "CREATE INDEX sfumato_tokens_person ON sfumato_tokens (person, created)",
)
_ENDED = "CREATE TABLE sfumato_ended (login {blob} PRIMARY KEY, until {integer} NOT NULL)"
_ACCOUNT = "a.person, a.name, a.role, a.created, a.seal"
_TOKEN = "t.id, t.person, t.created, t.expires, t.revoked, t.hash, t.stored, t.server, t.seal"


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account as it is kept."""

    person: str
    name: str
    role: str
    created: int
    seal: bytes = field(default=b"", repr=False)

    def sealed(self, key: ServerKey) -> bytes:
        """The seal that it should have."""
        return key.seal("account", self.person, self.name, self.role, self.created)

    def holds(self, key: ServerKey) -> bool:
        """Whether it has it."""
        return hmac.compare_digest(self.seal, self.sealed(key))


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token as it is kept: nothing that it could be used by."""

    id: str
    person: str
    created: int
    expires: int
    revoked: int | None
    hash: bytes = field(repr=False)
    stored: bytes = field(repr=False)
    server: bytes = field(repr=False)
    seal: bytes = field(default=b"", repr=False)

    def sealed(self, key: ServerKey) -> bytes:
        """The seal that it should have while it is not revoked."""
        figures = (self.created, self.expires, self.hash, self.stored, self.server)
        return key.seal("token", self.id, self.person, *figures)

    def holds(self, key: ServerKey) -> bool:
        """Whether it has it."""
        return hmac.compare_digest(self.seal, self.sealed(key))

    def live(self, now: float) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and now < self.expires


class _File(SQLite):
    """The file of accounts."""

    @property
    def name(self) -> str:
        """The path."""
        return "The accounts in memory" if self.path is None else f"The accounts {self.path}"

    def _not_foreign(self, connection: sqlite3.Connection) -> None:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if tables and "sfumato_access" not in tables:
            raise LedgerUnusable(f"{self.path} is a database of something else: move it away.")

    def version(self) -> int:
        """The version of the tables, 0 if there are none."""
        if not self.has("sfumato_access"):
            return 0
        return int(self.execute("SELECT version FROM sfumato_access")[0][0])

    def has(self, table: str) -> bool:
        """Whether there is such a table."""
        return bool(self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)))


class _Server(Postgres):
    """The database of the ledger, with tables of accounts in it."""

    @property
    def name(self) -> str:
        """Host and database, never a password."""
        return super().name.replace("The ledger", "The accounts", 1)

    def _wait(self) -> None:
        """For the one right to write accounts; not for the ledger's, which puts these acts on record."""
        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))

    def version(self) -> int:
        """The version of the tables, 0 if there are none."""
        if not self.has("sfumato_access"):
            return 0
        return int(self.execute("SELECT version FROM sfumato_access")[0][0])

    def has(self, table: str) -> bool:
        """Whether there is such a table."""
        found = self.execute(
            "SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = %s "
            "AND schemaname = ANY (current_schemas(false))",
            (table,),
        )
        return bool(found)


def opened(ledger: str | Path | None, state: Path | None, *, create: bool) -> tuple[Tables, ServerKey]:
    """The tables of the accounts that go with a ledger, and the key that they are sealed with.

    Raises:
        LedgerUnusable: if there are none and none are to be made, or they or the key cannot be used.
        LedgerTampered: if the key is another one.
    """
    if ledger is None or ledger == ":memory:":
        return _in_memory()
    store: _File | _Server
    if isinstance(ledger, str) and ledger.startswith(POSTGRES):
        folder = (Path(STATE) if state is None else state).absolute()
        store, at = _Server(ledger), lambda name: folder / f"{name}.serverkey"
    else:
        path = file_at(ledger)
        file = path.with_name(f"{path.name}.accounts")
        beside = path.parent if state is None else state.absolute()
        if not create and not file.exists():
            raise _none(f"beside {path}")
        store, at = _File(file), lambda _: beside / f"{path.name}.serverkey"
    try:
        return Tables(store), _key(store, at, create=create)
    except BaseException:
        store.close()
        raise


def _none(where: str) -> LedgerUnusable:
    return LedgerUnusable(
        f"There are no accounts {where} yet: make the first with sfumato account add NAME --role ROLE."
    )


def _in_memory() -> tuple[Tables, ServerKey]:
    store, key = _File(None), ServerKey(salt(32))
    _make(store, token(), key)
    return Tables(store, fleeting=True), key


@contextlib.contextmanager
def _transaction(store: Store) -> Iterator[None]:
    store.begin()
    try:
        yield
        store.commit()
    except BaseException:
        store.rollback()
        raise


def _key(store: _File | _Server, at: Callable[[str], Path], *, create: bool) -> ServerKey:
    """The key of the tables, which are made if there are none."""
    if store.version() == 0:
        if not create:
            raise _none("there")
        with _transaction(store):
            if store.version() == 0:
                name = token()
                _make(store, name, ServerKey(make_key(at(name)).secret))
    ((version, name, seal),) = store.execute("SELECT version, id, seal FROM sfumato_access")
    if version > _VERSION:
        raise LedgerUnusable(f"{store.name} were written by a newer Sfumato: upgrade to open them.")
    path = at(name if str(name).isalnum() else "")
    if not path.exists():
        raise LedgerUnusable(
            f"The key of the server is missing: put {path.name} back in {path.parent}. If it is lost, no "
            "token is valid any more: drop the tables of the accounts (of SQLite, the file) and begin anew."
        )
    key = ServerKey(load_key(path).secret)
    if not hmac.compare_digest(bytes(seal), key.seal("access", version, name)):
        raise LedgerTampered(f"The key {path.name} is not the one of these accounts: put the right one back.")
    if not store.has("sfumato_ended"):  # accounts of an older version have none
        with _transaction(store):
            if not store.has("sfumato_ended"):
                store.execute(_ENDED.format(**store.types))
    return key


def _make(store: Store, name: str, key: ServerKey) -> None:
    for statement in (*_STATEMENTS, _ENDED):
        store.execute(statement.format(**store.types))
    marks = ", ".join([store.mark] * 3)
    store.execute(
        f"INSERT INTO sfumato_access (one, version, id, seal) VALUES (1, {marks})",
        (_VERSION, name, key.seal("access", _VERSION, name)),
    )


class Tables:
    """The rows, for one thread of this process at a time."""

    def __init__(self, store: Store, *, fleeting: bool = False) -> None:
        self._store, self._fleeting = store, fleeting
        self._lock = threading.RLock()
        self._process = os.getpid()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if self._process != os.getpid():  # a fork: the connection and the lock are the parent's
            self._lock, self._process = threading.RLock(), os.getpid()
            if not self._fleeting:
                self._store.abandon()
        with self._lock:
            yield

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._store.execute(statement.replace("?", self._store.mark), values)

    def _read(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a question; asked once more if the connection was lost since the last one."""
        with self._alone():
            try:
                return self._run(statement, *values)
            except LedgerUnusable:
                return self._run(statement, *values)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """All that is done within, or nothing; by one process at a time."""
        with self._alone(), _transaction(self._store):
            yield

    def account(self, person: str) -> AccountRow | None:
        """The account of a person."""
        rows = self._read(f"SELECT {_ACCOUNT} FROM sfumato_accounts AS a WHERE a.person = ?", person)
        return _account(rows[0]) if rows else None

    def accounts(self) -> list[AccountRow]:
        """All of them, by name."""
        rows = self._read(f"SELECT {_ACCOUNT} FROM sfumato_accounts AS a ORDER BY a.created, a.name")
        return [_account(row) for row in rows]

    def token(self, name: str) -> tuple[TokenRow, AccountRow] | None:
        """A token by its id, and whose it is."""
        rows = self._read(
            f"SELECT {_TOKEN}, {_ACCOUNT} FROM sfumato_tokens AS t JOIN sfumato_accounts AS a "
            "ON a.person = t.person WHERE t.id = ?",
            name,
        )
        return (_token(rows[0][:9]), _account(rows[0][9:])) if rows else None

    def live(self, person: str, now: float, most: int) -> list[TokenRow]:
        """The tokens of a person that are neither revoked nor expired, newest first."""
        rows = self._read(
            f"SELECT {_TOKEN} FROM sfumato_tokens AS t WHERE t.person = ? AND t.revoked IS NULL "
            "AND t.expires > ? ORDER BY t.created DESC, t.id LIMIT ?",
            person,
            int(now),
            most,
        )
        return [_token(row) for row in rows]

    def tokens(self) -> list[TokenRow]:
        """All of them, oldest first."""
        rows = self._read(f"SELECT {_TOKEN} FROM sfumato_tokens AS t ORDER BY t.created, t.id")
        return [_token(row) for row in rows]

    def add_account(self, row: AccountRow) -> None:
        """Writes an account."""
        self._run(
            "INSERT INTO sfumato_accounts (person, name, role, created, seal) VALUES (?, ?, ?, ?, ?)",
            *(row.person, row.name, row.role, row.created, row.seal),
        )

    def add_token(self, row: TokenRow) -> None:
        """Writes a token."""
        self._run(
            "INSERT INTO sfumato_tokens (id, person, created, expires, revoked, hash, stored, server, seal) "
            "VALUES (?, ?, ?, ?, NULL, ?, ?, ?, ?)",
            *(row.id, row.person, row.created, row.expires, row.hash, row.stored, row.server, row.seal),
        )

    def revoke(self, name: str, now: int) -> None:
        """Ends a token for good: what could check it is gone with its seal."""
        self._run(
            "UPDATE sfumato_tokens SET revoked = ?, hash = ?, stored = ?, server = ?, seal = ? WHERE id = ?",
            *(now, b"", b"", b"", b"", name),
        )

    def remove(self, person: str) -> None:
        """Takes away an account and its tokens."""
        self._run("DELETE FROM sfumato_tokens WHERE person = ?", person)
        self._run("DELETE FROM sfumato_accounts WHERE person = ?", person)

    def end_login(self, login: bytes, until: int, now: int) -> None:
        """Keeps that a login was ended, until it would be over, and lets go of those that are."""
        self._run("DELETE FROM sfumato_ended WHERE until <= ?", now)
        self._run(
            "INSERT INTO sfumato_ended (login, until) VALUES (?, ?) ON CONFLICT (login) DO NOTHING",
            *(login, until),
        )

    def login_ended(self, login: bytes) -> bool:
        """Whether a login was ended."""
        return bool(self._read("SELECT 1 FROM sfumato_ended WHERE login = ?", login))

    def close(self) -> None:
        """Lets go of the database."""
        with self._alone():
            self._store.close()


def _account(row: tuple[Any, ...]) -> AccountRow:
    person, name, role, created, seal = row
    return AccountRow(str(person), str(name), str(role), int(created), bytes(seal))


def _token(row: tuple[Any, ...]) -> TokenRow:
    name, person, created, expires, revoked, *kept = row
    return TokenRow(
        str(name),
        str(person),
        int(created),
        int(expires),
        None if revoked is None else int(revoked),
        *(bytes(value) for value in kept),
    )
