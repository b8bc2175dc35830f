"""Logins of the page that were ended before their time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from sfumato.server.access.tables import Tables

__all__ = ["Logins"]

_MOST = 20_000


class Logins:
    """Which logins hold, and which were ended: kept with the accounts until they would be over anyway.

    Privacy:
        Claim: a login that was ended opens nothing more: at once in this process, within `fresh` seconds in
        all others that have the same accounts, and after a restart, too.
        Condition: the accounts are kept. Those in memory end with the process, and so does the key of logins.

    Args:
        tables: Where the accounts are kept.
        clock: Seconds since 1970.
        ticks: A time that never goes back.
        fresh: For how long a login that was looked up is believed, in ticks.
    """

    def __init__(
        self, tables: Tables, *, clock: Callable[[], float], ticks: Callable[[], float], fresh: float
    ) -> None:
        self._tables, self._clock, self._ticks, self._fresh = tables, clock, ticks, fresh
        self._held: OrderedDict[bytes, float] = OrderedDict()  # until when it is believed
        self._ends = 0
        self._lock = threading.Lock()

    def end(self, login: bytes, until: int) -> None:
        """Ends one that would be over at a time, and forgets those that are over by now."""
        with self._tables.writing():
            self._tables.end_login(login, until, int(self._clock()))
        with self._lock:
            self._ends += 1
            self._held.pop(login, None)

    def recent(self, login: bytes) -> bool:
        """Whether it was looked up a moment ago, and held; asks no database."""
        return self._ticks() < self._held.get(login, float("-inf"))

    def holds(self, login: bytes) -> bool:
        """Whether it was not ended."""
        begun, ends = self._ticks(), self._ends
        if self._tables.login_ended(login):
            return False
        with self._lock:
            if ends == self._ends:  # else it may have been ended since it was read
                self._held[login] = begun + self._fresh
                self._held.move_to_end(login)
                while len(self._held) > _MOST:
                    self._held.popitem(last=False)
        return True
