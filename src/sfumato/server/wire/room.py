"""`Room`: how much a connection, an account and all together may keep, which lies, weighed, on shelves."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from sys import getsizeof
from typing import Any, Generic, TypeVar

from sfumato.server.wire.sqlstates import WireError

__all__ = ["MOST_BYTES", "MOST_OF_ACCOUNT", "MOST_OF_ALL", "Room", "Shelf", "given_back", "weight"]

T = TypeVar("T")
MOST_BYTES, MOST_OF_ACCOUNT, MOST_OF_ALL = 1 << 26, 1 << 28, 1 << 30
"""What a connection may keep, all connections of an account, and all connections of the process."""
_MOST = 500  # on one shelf
_EACH = 1_000  # bytes of any thing, for what lies around its values


def weight(thing: Any, most: int = MOST_BYTES) -> int:
    """How many bytes a value takes in memory, with all that is in it; beyond `most` it is not counted on."""
    size = getsizeof(thing)
    if isinstance(thing, list | tuple):
        for one in thing:
            size += weight(one, most)
            if size > most:
                break
    return size


def given_back() -> None:
    """Give memory that nothing uses back to the machine, where the C library is one that keeps it."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], object] | None:
    try:
        found: Callable[[int], object] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (OSError, TypeError):  # a machine whose C library is not found like this
        return None
    return found


class Room:
    """What is left for all that a connection keeps: prepared statements, bound values, answers.

    It is part of the room of the connection's account, and that of the room of the process.

    Privacy:
        What an answer weighs follows from the answer, which was paid for and is on record: that it is refused
        here tells nothing more, and the same question is free. Where the room of the process is full, others
        keep much; what they keep are such answers, too.

    Args:
        within: A larger room that it is part of.
        most: Bytes; None: what one connection may keep.
        of: Whose it is, in words.
    """

    def __init__(
        self, within: Room | None = None, *, most: int | None = None, of: str = "A connection"
    ) -> None:
        self._within, self._most, self._of = within, most, of
        self.used = 0
        self.lock: threading.RLock = threading.RLock() if within is None else within.lock

    def check(self, size: int = 0) -> None:
        """Refuse what there is no room for.

        Raises:
            WireError: if it is more than is left.
        """
        most = MOST_BYTES if self._most is None else self._most
        if self.used + size > most:
            raise WireError(
                "53200",
                f"{self._of} keeps at most {most >> 20} MiB of cursors, portals, values and prepared "
                "statements, and this would be more; an answer that was paid for is on record, and free.",
                hint="CLOSE cursors and DEALLOCATE statements, or read the answer at once, without a cursor "
                "or a fetch size.",
            )
        if self._within is not None:
            self._within.check(size)

    def exchange(self, old: int, new: int) -> None:
        """Put something of one size in the place of another.

        Raises:
            WireError: if there is no room; nothing was changed.
        """
        with self.lock:
            if new > old:
                self.check(new - old)
            self._add(new - old)

    def leave(self) -> int:
        """Give all of it back to the larger ones, and be part of none from then on; gives what was used.

        What a thread still puts here, whose connection is over, counts for nobody, and ends with it.
        """
        with self.lock:
            within, self._within = self._within, None
            if within is not None:
                within._add(-self.used)
            return self.used

    def _add(self, size: int) -> None:
        self.used += size
        if self._within is not None:
            self._within._add(size)


class Shelf(Generic[T]):
    """Things of one kind by name, each with its weight; a connection has few of each.

    Args:
        room: Shared with the other shelves of the connection.
        gone: Makes the error of a name that is not there.
    """

    def __init__(self, room: Room, gone: Callable[[], WireError]) -> None:
        self._room, self._gone = room, gone
        self._things: dict[str, tuple[T, int]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._things

    def __getitem__(self, name: str) -> T:
        """One of them.

        Raises:
            WireError: if there is none of this name.
        """
        if name not in self._things:
            raise self._gone()
        return self._things[name][0]

    def check(self) -> None:
        """Refuse to keep one more where there is no room for any.

        Raises:
            WireError: if there is none.
        """
        if len(self._things) >= _MOST:
            raise WireError("53400", f"At most {_MOST} are kept of a connection.", hint="Close some.")
        self._room.check(_EACH)

    def put(self, name: str, thing: T, size: int) -> None:
        """Keep something, also in the place of what had this name.

        Args:
            name: By which it is found.
            thing: What is kept.
            size: The weight of all in it that grows with what a client asks.

        Raises:
            WireError: if there is no room; what had the name is still there.
        """
        size += _EACH + getsizeof(name)
        with self._room.lock:
            old = self._things[name][1] if name in self._things else 0
            if not old:
                self.check()
            self._room.exchange(old, size)
            self._things[name] = thing, size

    def pop(self, name: str) -> T | None:
        """Let go of one; None: there was none."""
        with self._room.lock:
            thing, size = self._things.pop(name, (None, 0))
            self._room.exchange(size, 0)
        return thing

    def clear(self, *, only: Callable[[T], bool] = lambda _: True) -> None:
        """Let go of all, or of those that are meant."""
        for name, (thing, _) in list(self._things.items()):
            if only(thing):
                self.pop(name)
