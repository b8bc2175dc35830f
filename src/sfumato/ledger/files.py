"""Small private files beside a ledger: written whole and durable, or not at all."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from sfumato.errors import LedgerUnusable

__all__ = [
    "BINARY",
    "locked",
    "read_file",
    "read_whole",
    "replace_file",
    "sweep",
    "sync_folder",
    "unusable",
    "write_new",
]

BINARY = getattr(os, "O_BINARY", 0)  # on Windows: every byte as it is
_LARGEST = 1 << 16  # bytes of an anchor, and more than any has


def replace_file(path: Path, content: bytes, mode: int = 0o600, *, synced: bool = True) -> None:
    """Puts a file in the place of another, durably if synced; the one before is whole until then."""
    where = os.fspath(path)
    draft = f"{where}.{_machine()}.{os.getpid()}.{threading.get_ident()}.tmp"
    try:
        file = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | BINARY, mode)
        try:
            if os.write(file, content) != len(content):
                raise OSError("a short write")
            if synced:
                os.fsync(file)
        finally:
            os.close(file)
        os.replace(draft, where)
        if synced:
            sync_folder(os.path.dirname(where) or os.curdir)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def read_file(path: Path) -> bytes:
    """What a small file holds, in as few steps as can be: it is read before and after each receipt."""
    file = os.open(path, os.O_RDONLY | BINARY)
    try:
        return os.read(file, _LARGEST)
    finally:
        os.close(file)


def read_whole(path: Path, most: int) -> bytes:
    """What a file of at most so many bytes holds; a larger one is cut."""
    with open(path, "rb") as file:
        return file.read(most)


def write_new(path: Path, content: bytes) -> None:
    """Creates a private file, whole and durable or not at all."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as wrong:
        raise unusable("written", path, wrong) from None


def sweep(path: Path) -> None:
    """Removes what processes of this machine that died left beside a file."""
    with contextlib.suppress(OSError):
        for left in path.parent.glob(f"{_pattern(path.name)}.*.tmp"):
            machine, _, rest = left.name.removeprefix(path.name + ".").partition(".")
            process = rest.split(".")[0]
            if machine == _machine() and process.isdecimal() and not _alive(int(process)):
                left.unlink(missing_ok=True)


def sync_folder(folder: Path | str) -> None:
    """Makes a rename in a folder durable."""
    if os.name != "posix":  # pragma: no cover
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def unusable(verb: str, path: Path, wrong: OSError) -> LedgerUnusable:
    """What to say about a file that cannot be read or written."""
    return LedgerUnusable(
        f"{path} cannot be {verb} ({wrong.strerror or 'input/output error'}): make room and check who may "
        "write there. Nothing was spent."
    )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock beside a file against all other threads and processes, of all machines that share it."""
    file = os.open(f"{os.fspath(path)}.lock", os.O_CREAT | os.O_RDWR, 0o600)
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


@functools.cache
def _machine() -> str:
    """A short name of this machine: the folder may be shared with others, whose processes are not seen."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _pattern(name: str) -> str:
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
