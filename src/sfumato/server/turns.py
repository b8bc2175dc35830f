"""`Turns`: whose work runs now and whose waits, so that no account takes all threads."""

from __future__ import annotations

import asyncio
from collections import Counter, deque

__all__ = ["TooBusy", "Turns"]

_WAITING = 128  # of one account


class TooBusy(Exception):
    """Too much of an account waits; nothing was begun, and nothing was spent."""

    def __init__(self) -> None:
        super().__init__("Too many requests of this account wait: ask again when some of them are answered.")


class Turns:
    """So many works at the same time, of one account half of them; the others wait.

    A turn goes to who has the fewest, and among those to who waits longest. It is for one event loop, which
    gives turns and takes them back; the work is done elsewhere.

    Args:
        most: How many at the same time.
        waiting: How many of one account may wait.
    """

    def __init__(self, most: int, *, waiting: int = _WAITING) -> None:
        self._most, self._each, self._may_wait = most, max(1, most // 2), waiting
        self._running, self._all = Counter[str](), 0
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def enter(self, name: str) -> None:
        """Waits for a turn of an account.

        Raises:
            TooBusy: if too many of it wait.
        """
        if name not in self._waiting and self._may_run(name):
            self._begin(name)
            return
        line = self._waiting.setdefault(name, deque())
        if len(line) >= self._may_wait:
            raise TooBusy
        turn = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(name)  # it was given, and nobody is there
            else:
                self._forget(name, turn)
            raise

    def leave(self, name: str) -> None:
        """Gives a turn back, to who is next."""
        self._all -= 1
        self._running[name] -= 1
        if not self._running[name]:
            del self._running[name]
        while able := [other for other in self._waiting if self._may_run(other)]:
            name = min(able, key=self._running.__getitem__)
            line = self._waiting.pop(name)
            turn = line.popleft()
            if line:
                self._waiting[name] = line  # behind the others
            if not turn.cancelled():
                self._begin(name)
                turn.set_result(None)

    def _may_run(self, name: str) -> bool:
        return self._all < self._most and self._running[name] < self._each

    def _begin(self, name: str) -> None:
        self._all += 1
        self._running[name] += 1

    def _forget(self, name: str, turn: asyncio.Future[None]) -> None:
        line = self._waiting.get(name)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._waiting[name]
