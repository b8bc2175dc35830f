"""Private folders for rows that do not fit in memory: they go with their process or when the next one starts.

Each folder holds a file that its process has locked. The system lets go of the lock when the process ends,
however it ends: a folder whose file can be locked is a dead process's, and whoever makes a folder there next
removes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import weakref
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without such locks: what a killed process leaves stays
    fcntl = None  # type: ignore[assignment]

__all__ = ["Scratch"]

_LOCK = "sfumato.lock"


class Scratch:
    """A new folder that its owner alone may enter.

    Attributes:
        path: Where it is.
    """

    def __init__(self, parent: str | Path | None = None, *, prefix: str = "sfumato-") -> None:
        """Remove what dead processes left there, and make a folder.

        Raises:
            OSError: if none can be made there.
        """
        place = Path(tempfile.gettempdir() if parent is None else parent)
        _sweep(place, prefix)
        draft = tempfile.mkdtemp(prefix=f".{prefix}", suffix=".new", dir=place)
        try:
            lock = _locked(Path(draft, _LOCK), make=True)
            # It has its name once it is locked: nobody takes it for a dead process's before.
            name = os.path.basename(draft)[1 : -len(".new")]
            self.path = place / name
            os.rename(draft, self.path)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        self.remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())
        """Remove the folder with all that is in it; a second call does nothing."""


def _sweep(place: Path, prefix: str) -> None:
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and _is_own(entry):
                with contextlib.suppress(OSError):
                    lock = _locked(Path(entry.path, _LOCK), make=False)
                    _remove(Path(entry.path), lock, os.getpid())


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder of this user that nobody else may enter, and not a link to one."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _locked(path: Path, *, make: bool) -> int:
    """An open file that no other process holds locked.

    Raises:
        OSError: if it is not there, or locked.
    """
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | (os.O_CREAT | os.O_EXCL if make else 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        if fcntl is None:
            if not make:
                raise OSError("without locks nobody knows whose a folder is")
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _remove(folder: Path, lock: int, process: int) -> None:
    if os.getpid() != process:  # a forked child, whose parent still uses it
        return
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.close(lock)
