"""Accounts that are put back from a copy: names and roles, no token, and nobody who has gone since."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sfumato.errors import LedgerUnusable
from sfumato.server.access.record import Record
from sfumato.server.access.roles import Account, Role
from sfumato.server.access.tables import AccountRow

__all__ = ["listed", "put_back"]


def listed(copy: Path) -> tuple[Account, ...]:
    """Who is in a copy of the accounts.

    Raises:
        LedgerUnusable: if it is damaged.
    """
    with (
        _read(copy),
        contextlib.closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro", uri=True)) as old,
    ):
        return tuple(Account(row.name, Role(row.role)) for row in _rows(old))


def put_back(copy: Path, path: Path, record: Record) -> tuple[str, ...]:
    """Puts a copy of the accounts in their place, where there are none; the names of those left out.

    Args:
        copy: Of their file.
        path: Where they are to be.
        record: What the ledger says of them.

    Raises:
        LedgerUnusable: if the copy is damaged, or cannot be written there.

    Privacy:
        A token that was revoked after the copy was made would be valid again. So all of them are revoked:
        whoever should log in gets a new one. An account that was removed since, or given another role, would
        be there again for whoever logs in by a provider. So it is left out.
    """
    with _read(copy), tempfile.TemporaryDirectory(prefix=f".{path.name}.restore-", dir=path.parent) as folder:
        staged = Path(folder) / path.name
        staged.write_bytes(copy.read_bytes())
        staged.chmod(0o600)
        with contextlib.closing(sqlite3.connect(staged, isolation_level=None)) as database:
            gone = [row for row in _rows(database) if not record.admits(row)]
            for table in ("sfumato_tokens", "sfumato_accounts"):
                database.executemany(f"DELETE FROM {table} WHERE person = ?", [(row.person,) for row in gone])
            database.execute(
                "UPDATE sfumato_tokens SET revoked = coalesce(revoked, ?), hash = ?, stored = ?, "
                "server = ?, seal = ?",
                (int(time.time()), b"", b"", b"", b""),
            )
        for end in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        os.replace(staged, path)
    return tuple(row.name for row in gone)


def _rows(database: sqlite3.Connection) -> list[AccountRow]:
    found = database.execute(
        "SELECT person, name, role, created, seal FROM sfumato_accounts ORDER BY created, name"
    )
    return [
        AccountRow(str(person), str(name), str(role), int(created), bytes(seal))
        for person, name, role, created, seal in found
    ]


@contextlib.contextmanager
def _read(copy: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, sqlite3.Error):
        raise LedgerUnusable(f"The accounts cannot be put back from {copy}: it is damaged.") from None
