"""One at a time for one question: threads by a lock in memory, processes by a lock that dies with them.

Nothing is kept of a turn that is over, and of one whose process was killed nothing but the empty file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from sfumato.errors import InvalidParameter

__all__ = ["claim_byte", "place_of", "turn", "yield_byte"]

_SHORTEST, _LONGEST = 0.001, 0.05  # seconds between two looks at a lock that another process holds


class _Turn:
    """A lock that threads of this process wait for, with how many do."""

    __slots__ = ("holder", "lock", "waiting")

    def __init__(self) -> None:
        self.lock, self.waiting, self.holder = threading.Lock(), 0, 0


class _Locks:
    """The locks that this process holds or waits for; a forked child begins with none."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.turns: dict[tuple[str, ...], _Turn] = {}
        self.files: dict[str, tuple[int, set[int]]] = {}  # one open file a path, and the bytes held in it


_locks = _Locks()


def place_of(*names: str) -> int:
    """A number for a question, the same in every process."""
    return int.from_bytes(hashlib.sha256("\n".join(names).encode()).digest()[:8], "big") >> 2


@contextlib.contextmanager
def turn(
    names: tuple[str, ...], claim: Callable[[int], bool], give_back: Callable[[int], None]
) -> Iterator[None]:
    """Waits until no other thread or process has this question's turn, and has it until the end.

    Args:
        names: The ledger, the dataset and the question.
        claim: Takes the lock of that number against other processes, or says that one of them has it.
        give_back: Gives it back.

    Raises:
        InvalidParameter: in the thread that has the turn already: it would wait for itself.
    """
    locks, place = _locks, place_of(*names)
    with locks.mutex:
        mine = locks.turns.setdefault(names, _Turn())
        if mine.holder == threading.get_ident():
            raise InvalidParameter("This question is being answered: what reads for it cannot ask it again.")
        mine.waiting += 1
    try:
        with mine.lock:
            mine.holder = threading.get_ident()
            try:
                pause = _SHORTEST
                while not claim(place):
                    time.sleep(pause)
                    pause = min(2 * pause, _LONGEST)
                try:
                    yield
                finally:
                    give_back(place)
            finally:
                mine.holder = 0
    finally:
        if locks is _locks:  # and not a copy in a process that was forked meanwhile
            with locks.mutex:
                mine.waiting -= 1
                if not mine.waiting:
                    del locks.turns[names]


def claim_byte(path: str, place: int) -> bool:
    """Locks one byte of a file against other processes, unless one of them has it.

    The operating system drops the lock when the process dies, however it does. A process has one open file
    for each path: to close a second one would drop the locks of the first.
    """
    with _locks.mutex:
        file, held = _locks.files.get(path, (-1, set()))
        if file < 0:
            file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        if _lock_byte(file, place):
            held.add(place)
        if held:
            _locks.files[path] = (file, held)
        else:
            os.close(file)
        return place in held


def yield_byte(path: str, place: int) -> None:
    """Gives back the lock of a byte; nothing happens if this process does not have it."""
    with _locks.mutex:
        file, held = _locks.files.get(path, (-1, set()))
        if place not in held:
            return
        held.remove(place)
        if held:
            _unlock_byte(file, place)
        else:
            del _locks.files[path]
            os.close(file)  # which gives it back


if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _lock_byte(file: int, place: int) -> bool:
        os.lseek(file, place >> 32, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock_byte(file: int, place: int) -> None:
        os.lseek(file, place >> 32, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock_byte(file: int, place: int) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock_byte(file: int, place: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


def _after_fork() -> None:
    """In a forked child: the locks are the parent's, and closing its files here leaves them to it."""
    global _locks
    for file, _ in _locks.files.values():
        with contextlib.suppress(OSError):
            os.close(file)
    _locks = _Locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
