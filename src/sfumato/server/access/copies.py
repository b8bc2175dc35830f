"""Accounts that are put back from a copy: names and roles, and no token."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import time
from pathlib import Path

from sfumato.errors import LedgerUnusable

__all__ = ["put_back"]


def put_back(copy: Path, path: Path) -> bool:
    """Puts a copy of the accounts in their place, if there are none; whether it did.

    Privacy:
        A token that was revoked after the copy was made would be valid again. So all of them are revoked:
        whoever should log in gets a new one.
    """
    if path.exists():
        return False
    try:
        with tempfile.TemporaryDirectory(prefix=f".{path.name}.restore-", dir=path.parent) as folder:
            staged = Path(folder) / path.name
            staged.write_bytes(copy.read_bytes())
            staged.chmod(0o600)
            with contextlib.closing(sqlite3.connect(staged, isolation_level=None)) as database:
                database.execute(
                    "UPDATE sfumato_tokens SET revoked = coalesce(revoked, ?), hash = ?, stored = ?, "
                    "server = ?, seal = ?",
                    (int(time.time()), b"", b"", b"", b""),
                )
            for end in ("-wal", "-shm", "-journal"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            os.replace(staged, path)
    except (OSError, sqlite3.Error):
        raise LedgerUnusable(f"The accounts cannot be put back from {copy}: it is damaged.") from None
    return True
