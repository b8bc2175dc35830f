"""The key of a chain, in a file outside the database; it remembers which ledger it has signed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sfumato._dataclasses import dataclass
from sfumato.errors import LedgerTampered, LedgerUnusable
from sfumato.ledger.files import replace_file, unusable, write_new
from sfumato.random import salt

__all__ = ["Key", "load_key", "make_key", "remember", "signed_at"]

_BYTES = 32
_SIGNED = "signed"


@dataclass(frozen=True, slots=True)
class Key:
    """A key and its memory.

    Attributes:
        secret: What receipts are signed with.
        ledger: The id of the ledger that was begun with it; None before, and in files of earlier versions.
        place: A short name of the server and database where that ledger is; empty beside an SQLite file.
    """

    secret: bytes
    ledger: str | None = None
    place: str = ""


def make_key(path: Path) -> Key:
    """The key in the file, freshly drawn if there is none.

    Raises:
        LedgerTampered: if it has signed a ledger: that one is gone, and a new one must not take its place.
    """
    if not path.exists():
        write_new(path, salt(_BYTES).hex().encode("ascii") + b"\n")
    key = load_key(path)
    if key.ledger is not None:
        raise LedgerTampered(
            f"The key {path.name} has signed a ledger that is gone: restore the latest copy of the ledger. "
            "To begin a new one on purpose, with a budget of its own, move the key away."
        )
    return key


def load_key(path: Path) -> Key:
    """The key in the file.

    Raises:
        LedgerUnusable: if it is missing, malformed or open to others.
    """
    try:
        content = path.read_bytes()
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise LedgerUnusable(
            f"The key of this ledger is missing: put {path.name} back in {path.parent} (it was made there "
            "when the ledger was first opened)."
        ) from None
    except OSError as wrong:
        raise unusable("read", path, wrong) from None
    if os.name == "posix" and mode & 0o027:
        raise LedgerUnusable(f"Others can read or change the key {path}: run chmod 600 on it.")
    try:
        first, *rest = content.decode("ascii").split()
        secret = bytes.fromhex(first)
    except ValueError:
        secret, rest = b"", []
    if len(secret) != _BYTES or (rest and (rest[0] != _SIGNED or len(rest) not in (2, 3))):
        raise LedgerUnusable(f"{path.name} does not hold a key: restore it from a backup.")
    return Key(secret, *rest[1:])


def remember(path: Path, key: Key, ledger: str, place: str = "") -> None:
    """Writes into a key's file that it has signed this ledger, if that is not there and the file is ours."""
    try:
        target = path.resolve()
        status = target.stat()
        if key.ledger is None and (os.name != "posix" or status.st_uid == os.geteuid()):
            words = f"{key.secret.hex()}\n{_SIGNED} {ledger} {place}".rstrip() + "\n"
            replace_file(target, words.encode("ascii"), status.st_mode & 0o777)
    except OSError:
        return  # on read-only storage: a key of an earlier version, which cannot learn to remember


def signed_at(folder: Path, place: str) -> Path | None:
    """The key in a folder that has signed a ledger at this place."""
    for path in sorted(folder.glob("*.key")):
        with contextlib.suppress(LedgerUnusable):
            if load_key(path).place == place:
                return path
    return None
