"""Tokens that this process has found valid, so that they need not be looked up each time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sfumato._dataclasses import dataclass
from sfumato.server.access.roles import Account

__all__ = ["Checked", "Remembered"]

_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Checked:
    """That a token was live at a time.

    Attributes:
        token: Its id.
        person: Whose it is.
        account: The same, with a name and a role.
        expires: When it ends, in seconds since 1970.
        until: When it is to be looked up again, in ticks.
    """

    token: str
    person: str
    account: Account
    expires: int
    until: float


class Remembered:
    """What was checked, by the keyed hash of a token and by its id; those longest ago are let go first."""

    def __init__(self, *, clock: Callable[[], float], ticks: Callable[[], float]) -> None:
        self._clock, self._ticks = clock, ticks
        self._held: dict[bytes | str, Checked] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: bytes | str) -> bool:
        """Whether it was ever found valid, and not found ended since."""
        return key in self._held

    def fresh(self, key: bytes | str) -> Account | None:
        """Whose it is, if it was looked up a moment ago; None for all others."""
        known = self._held.get(key)
        if known is None or self._ticks() >= known.until or self._clock() >= known.expires:
            return None
        return known.account

    def keep(self, key: bytes | str, checked: Checked) -> Account:
        """Remembers it."""
        with self._lock:
            self._held.pop(key, None)
            while len(self._held) >= _MOST:
                del self._held[next(iter(self._held))]
            self._held[key] = checked
        return checked.account

    def drop(self, *keys: bytes | str) -> None:
        """Forgets these."""
        with self._lock:
            for key in keys:
                self._held.pop(key, None)

    def forget(self, ended: Callable[[Checked], bool]) -> None:
        """Forgets what was ended, and nothing else: others may be let in by this alone."""
        with self._lock:
            self._held = {key: known for key, known in self._held.items() if not ended(known)}
