"""Copies of a ledger's database, and putting one back where the anchor allows it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, LedgerTampered, LedgerUnusable
from sfumato.ledger.book import Book
from sfumato.ledger.files import replace_file, sync_folder, unusable
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.opening import POSTGRES, Wish, file_at, opened
from sfumato.ledger.verification import NO_ANCHOR

__all__ = ["Backup", "Restored", "back_up", "restore"]

MANIFEST = "backup.json"
_FORMAT = 1
_MOST = 1 << 20
_BESIDE = ("", "-wal", "-shm", "-journal")  # what SQLite may leave beside a database


@dataclass(frozen=True, slots=True)
class Backup:
    """A folder with a copy of a ledger's database.

    Attributes:
        folder: Where it is.
        ledger: The file of the ledger there.
        number: Its last receipt.
        time: When it was made, by the clock of the machine.
        files: The digest of each file, the ledger's among them.
    """

    folder: Path
    ledger: str
    number: int
    time: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Restored:
    """What `restore` did.

    Attributes:
        number: The last receipt of the ledger that is in place now.
        anchored: Whether the anchor vouches for it; else the steward must adopt it.
        aside: Where the files are that were in its place.
    """

    number: int
    anchored: bool
    aside: tuple[Path, ...]


def back_up(
    where: str | Path, folder: Path, *, state: str | Path | None = None, others: Sequence[Path] = ()
) -> Backup:
    """Copies a ledger's database into a new folder, also while it is written to.

    Neither its key nor its anchor is copied: whoever has those of the same moment could turn back the clock.

    Args:
        where: The path of the ledger, which must hold.
        folder: Is made; it may be there if it is empty.
        state: Where the ledger's key and anchor are, if not beside it.
        others: Other databases of SQLite to copy along.

    Raises:
        LedgerUnusable: if the ledger does not open, or the copy cannot be written.
    """
    path = _file(where, "pg_dump makes the copy")
    Ledger.open(path, state=state, create=False).close()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidParameter(f"{folder} is not empty: name a new folder for each backup.")
        for source in (path, *others):
            _copied(source, folder / source.name)
        number = _last(folder / path.name)
        files = {source.name: _digest(folder / source.name) for source in (path, *others)}
        made = Backup(folder, path.name, number, datetime.now(UTC).isoformat(timespec="seconds"), files)
        facts = {
            "format": _FORMAT,
            "ledger": made.ledger,
            "receipts": made.number,
            "time": made.time,
            "files": made.files,
        }
        replace_file(folder / MANIFEST, json.dumps(facts, indent=2).encode() + b"\n")
    except OSError as wrong:
        raise unusable("written", folder, wrong) from None
    return made


def read(folder: Path) -> Backup:
    """The backup in a folder, checked to be whole.

    Raises:
        InvalidParameter: if there is none.
        LedgerUnusable: if a file of it is missing, cut or changed.
    """
    try:
        facts = json.loads((folder / MANIFEST).read_bytes()[:_MOST])
        files = {str(name): str(digest) for name, digest in facts["files"].items()}
        made = Backup(folder, str(facts["ledger"]), int(facts["receipts"]), str(facts["time"]), files)
        plain = all(Path(name).name == name for name in files) and made.ledger in files
        if facts["format"] != _FORMAT or not plain:
            raise ValueError
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise InvalidParameter(
            f"{folder} is no backup of a ledger: name a folder that backup wrote."
        ) from None
    for name, digest in files.items():
        try:
            whole = _digest(folder / name) == digest
            whole = whole and (name != made.ledger or _last(folder / name) == made.number)
        except (OSError, sqlite3.Error):
            whole = False
        if not whole:
            raise LedgerUnusable(
                f"The backup {folder} is not whole: {name} is missing, cut or changed. Nothing was restored."
            )
    return made


def restore(folder: Path, where: str | Path, *, state: str | Path | None = None) -> Restored:
    """Puts the copy of a ledger in its place, if nothing was spent since.

    What is in its place stays beside it, under another name. Where the anchor is gone, too, the copy is put
    there and opens only once the steward adopts it.

    Args:
        folder: What `back_up` wrote.
        where: The path of the ledger.
        state: Where its key and anchor are, if not beside it.

    Raises:
        InvalidParameter: if the ledger is there and holds, or the folder holds no backup.
        LedgerTampered: if the anchor, the key or the chain is against it; nothing was changed.
        LedgerUnusable: if the backup is not whole, or the key is not there.

    Privacy:
        Claim: what is put in place ends where the anchor does, receipts of kept answers aside, or opens for
        nobody until a steward adopts it: nothing that was spent can be spent again, as far as the anchor can
        tell. The copy is held against anchor and key before it is put in place, and by whoever opens it.
        Condition: the anchor is not a copy of the backup's own time.
    """
    backup = read(folder)
    path = _file(where, "psql puts the copy back")
    _refuse_later(path, state, backup.number)
    try:
        with _staged(folder / backup.ledger, path) as staged:
            anchored = _vouched(staged, path.parent if state is None else Path(state))
            aside = _make_room(path)
            os.replace(staged, path)
            sync_folder(path.parent)
    except OSError as wrong:
        raise unusable("written", path, wrong) from None
    if anchored:
        Ledger.open(path, state=state, create=False).close()
    return Restored(backup.number, anchored, aside)


def _file(where: str | Path, instead: str) -> Path:
    if isinstance(where, str) and where.startswith(POSTGRES):
        raise InvalidParameter(f"This ledger is in PostgreSQL, where {instead}: see docs/ledger.md, Backup.")
    return file_at(where)


def _refuse_later(path: Path, state: str | Path | None, number: int) -> None:
    """Refuses to put a copy where a ledger holds, or where more receipts are whole than the copy has."""
    if not path.exists():
        return
    try:
        Ledger.open(path, state=state, create=False).close()
    except LedgerUnusable:
        there = _whole_up_to(path, None if state is None else Path(state))
    else:
        raise InvalidParameter(f"There is nothing to restore: the ledger {path} is there and holds.")
    if there > number:
        raise LedgerTampered(
            f"{path} holds up to receipt {there}, and the backup ends at {number}: what was spent since "
            "would be given back. Nothing was restored: sfumato ledger verify says what is wrong with it."
        )


def _whole_up_to(path: Path, state: Path | None) -> int:
    """The last receipt of a ledger up to which its chain holds, whatever its anchor says."""
    try:
        parts = opened(path, state, Wish(create=False, follow=False))
    except LedgerUnusable:
        return 0
    book = Book(parts.chain)
    try:
        book.follow(parts.store.walk(1))
    except LedgerUnusable:
        pass
    finally:
        parts.store.close()
    return book.number


@contextlib.contextmanager
def _staged(copy: Path, path: Path) -> Iterator[Path]:
    """The copy under the ledger's name, on its disk, not yet in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.restore-", dir=path.parent) as folder:
        staged = Path(folder) / path.name
        _copied(copy, staged)
        yield staged


def _vouched(staged: Path, state: Path) -> bool:
    """Whether the anchor vouches for a copy; False if there is none.

    Raises:
        LedgerTampered: if something is against it.
    """
    found = Ledger.inspect(staged, state=state)
    against = [problem for problem in found.problems if problem != NO_ANCHOR]
    if against:
        raise LedgerTampered(
            f"{against[0].replace(f'The ledger {staged}', 'The backup')} Nothing was restored."
        )
    _settled(staged)
    return not found.problems


def _make_room(path: Path) -> tuple[Path, ...]:
    """Moves away what is in the ledger's place, and what SQLite left beside it, which belongs to no copy."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
    moved = list[Path]()
    for end in _BESIDE:
        left = path.with_name(path.name + end)
        if left.exists():
            moved.append(path.with_name(f"{path.name}.before-{stamp}{end}"))
            os.replace(left, moved[-1])
    return tuple(moved)


def _copied(source: Path, target: Path) -> None:
    """A copy of a database as it is at one moment, in one file, durable and for its owner alone."""
    if not source.exists():
        raise LedgerUnusable(f"There is no {source}: check the path.")
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
            contextlib.closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error:
        raise LedgerUnusable(f"{source} cannot be copied: it is damaged, or no database.") from None
    with target.open("rb") as file:
        os.fsync(file.fileno())


def _settled(path: Path) -> None:
    """Writes what looking at a database has left in its log into the one file."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")


def _last(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        found: Any = database.execute("SELECT coalesce(max(number), 0) FROM sfumato_receipts").fetchone()
    return int(found[0])


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
