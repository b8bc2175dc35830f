"""What lies outside the database: the key of the chain, and the anchor that holds its head."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from sfumato.errors import LedgerTampered, LedgerUnusable
from sfumato.ledger.chain import Chain, canonical
from sfumato.random import salt

__all__ = ["Anchor", "FileAnchor", "Mark", "NoAnchor", "Pending", "load_key", "make_key", "write_new"]

_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Mark:
    """A receipt's number and mac: all that is needed to recognise the chain up to there."""

    number: int
    mac: bytes


class Pending(Protocol):
    """A mark that is ready to be set: nothing but a rename is missing."""

    def settle(self) -> None:
        """Sets it, durably, unless a later one is set."""
        ...

    def discard(self) -> None:
        """Forgets it."""
        ...


class Anchor(Protocol):
    """Where the head of the chain is remembered outside the database."""

    kept: ClassVar[bool]  # whether there must be one

    def read(self) -> Mark | None:
        """The mark, or None if there is none; `LedgerTampered` if it is not one of this ledger."""
        ...

    def prepare(self, mark: Mark) -> Pending:
        """Writes a mark beside the one in force, so that a full disk shows before the commit."""
        ...


class NoAnchor:
    """For a ledger in memory, which nothing outlives."""

    kept: ClassVar[bool] = False

    def read(self) -> Mark | None:
        """None."""
        return None

    def prepare(self, mark: Mark) -> Pending:
        """Nothing to write."""
        del mark
        return self

    def settle(self) -> None:
        """Nothing."""

    def discard(self) -> None:
        """Nothing."""


class FileAnchor:
    """A small sealed file, replaced as a whole and only by a later mark."""

    kept: ClassVar[bool] = True

    def __init__(self, path: Path, chain: Chain) -> None:
        self.path, self._chain = path, chain

    def read(self) -> Mark | None:
        """The mark in the file."""
        try:
            data = json.loads(self.path.read_bytes())
            mark = Mark(data["number"], bytes.fromhex(data["mac"]))
            sealed = hmac.compare_digest(data["seal"], self._seal(mark)) and type(mark.number) is int
        except FileNotFoundError:
            return None
        except OSError as wrong:
            raise _unusable("read", self.path, wrong) from None
        except (ValueError, LookupError, TypeError):
            sealed = False
        if not sealed:
            raise LedgerTampered(
                f"{self.path.name} is not the anchor of this ledger, or was changed: restore it from a "
                "backup (an older one will do)."
            )
        return mark

    def _seal(self, mark: Mark) -> str:
        return self._chain.seal("anchor", f"{mark.number}\n{mark.mac.hex()}")

    def prepare(self, mark: Mark) -> Pending:
        """Writes the mark to a file of this thread's own."""
        content = canonical(
            {
                "ledger": self._chain.ledger,
                "number": mark.number,
                "mac": mark.mac.hex(),
                "seal": self._seal(mark),
            }
        )
        return _Draft(self, mark, (content + "\n").encode("ascii"))


class _Draft:
    """A mark written beside the anchor, waiting for the commit."""

    def __init__(self, anchor: FileAnchor, mark: Mark, content: bytes) -> None:
        self._anchor, self._mark, self._content = anchor, mark, content
        name = f"{anchor.path.name}.{os.getpid()}.{threading.get_ident()}.tmp"
        self._path = anchor.path.with_name(name)
        try:
            self._write()
        except OSError as wrong:
            self.discard()
            raise _unusable("written", anchor.path, wrong) from None

    def _write(self) -> None:
        self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            if os.write(self._file, self._content) != len(self._content):
                raise OSError("a short write")
        except OSError:
            os.close(self._file)
            raise

    def settle(self) -> None:
        try:
            try:
                os.fsync(self._file)
            finally:
                os.close(self._file)
            with _locked(self._anchor.path):
                now = self._anchor.read()
                if now is not None and now.number >= self._mark.number:
                    self._path.unlink(missing_ok=True)
                    return
                os.replace(self._path, self._anchor.path)
                sync_folder(self._anchor.path.parent)
        except OSError as wrong:
            self._path.unlink(missing_ok=True)
            raise LedgerUnusable(
                f"What was just written to the ledger is on record and paid, but its anchor "
                f"{self._anchor.path.name} could not follow ({wrong.strerror}): make its folder writable."
            ) from None

    def discard(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            os.close(self._file)
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Removes what processes that died left beside an anchor."""
    with contextlib.suppress(OSError):
        for left in path.parent.glob(f"{glob_escape(path.name)}.*.tmp"):
            process = left.name.removeprefix(path.name + ".").split(".")[0]
            if process.isdigit() and not _alive(int(process)):
                left.unlink(missing_ok=True)


def glob_escape(name: str) -> str:
    """A file name as a pattern that matches itself alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _alive(process: int) -> bool:
    if sys.platform == "win32":  # pragma: no cover
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# ── files


def make_key(path: Path) -> bytes:
    """The key in the file, freshly drawn if there is none."""
    if not path.exists():
        write_new(path, salt(_KEY_BYTES).hex().encode("ascii") + b"\n")
    return load_key(path)


def load_key(path: Path) -> bytes:
    """The key in the file.

    Raises:
        LedgerUnusable: if it is missing, malformed or open to others.
    """
    try:
        content = path.read_bytes().strip()
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise LedgerUnusable(
            f"The key of this ledger is missing: put {path.name} back in {path.parent} (it was made there "
            "when the ledger was first opened)."
        ) from None
    except OSError as wrong:
        raise _unusable("read", path, wrong) from None
    if os.name == "posix" and mode & 0o027:
        raise LedgerUnusable(f"Others can read or change the key {path}: run chmod 600 on it.")
    try:
        key = bytes.fromhex(content.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise LedgerUnusable(f"{path.name} does not hold a key: restore it from a backup.")
    return key


def write_new(path: Path, content: bytes) -> None:
    """Creates a private file, whole and durable or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            if os.write(file, content) != len(content):
                raise OSError("a short write")
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(draft, path)
        sync_folder(path.parent)
    except OSError as wrong:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise _unusable("written", path, wrong) from None


def sync_folder(folder: Path) -> None:
    """Makes a rename in a folder durable."""
    if os.name != "posix":  # pragma: no cover
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _unusable(verb: str, path: Path, wrong: OSError) -> LedgerUnusable:
    return LedgerUnusable(
        f"{path} cannot be {verb} ({wrong.strerror or 'input/output error'}): make room and check who may "
        "write there. Nothing was spent."
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the lock beside a file against all other threads and processes of this machine."""
    file = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        if sys.platform == "win32":  # pragma: no cover
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)  # which releases it
