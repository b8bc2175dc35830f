"""How much one account may ask for, and how many connections one address may have."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable

from sfumato.ledger.names import alike
from sfumato.server.access.tries import place_of

__all__ = ["Crowd", "Rates", "TooFast"]

_SECONDS = 10.0  # of requests that an account may save up
_REMEMBERED = 10_000


class TooFast(Exception):
    """An account asks more often than it may.

    Attributes:
        wait: Seconds after which it may ask again.
    """

    def __init__(self, wait: float) -> None:
        self.wait = max(1, math.ceil(wait))
        super().__init__(f"Too many requests of this account: ask again in {self.wait} s.")


class Rates:
    """A bucket of requests for each account, which fills at a steady rate.

    What is refused costs nothing. The same account over HTTP and over PostgreSQL's protocol has one bucket,
    in each process of the server.

    Args:
        rate: How many a second; None: as many as they like.
        ticks: A time that never goes back.
    """

    def __init__(self, rate: float | None = None, *, ticks: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._ticks, self._lock = rate, ticks, threading.Lock()
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def admit(self, name: str) -> None:
        """Takes one from an account's bucket.

        Raises:
            TooFast: if it is empty.
        """
        if self._rate is None:
            return
        most, key = max(1.0, self._rate * _SECONDS), alike(name)
        with self._lock:
            now = self._ticks()
            held, since = self._held.get(key, (most, now))
            held = min(most, held + (now - since) * self._rate)
            short = held < 1
            self._held[key] = (held if short else held - 1, now)
            self._held.move_to_end(key)
            while len(self._held) > _REMEMBERED:
                self._held.popitem(last=False)
        if short:
            raise TooFast((1 - held) / self._rate)


class Crowd:
    """The connections of each address; of IPv6 a network of 64 bits is one.

    Args:
        most: How many one may have; None: as many as it likes.
        total: How many all may have together.
    """

    def __init__(self, most: int | None = None, total: int | None = None) -> None:
        self._most, self._total, self._here, self._all = most, total, Counter[str](), 0

    def enter(self, address: str) -> bool:
        """Counts one more, unless it is one too many."""
        place = place_of(address)
        if self._most is not None and self._here[place] >= self._most:
            return False
        if self._total is not None and self._all >= self._total:
            return False
        self._here[place] += 1
        self._all += 1
        return True

    def leave(self, address: str) -> None:
        """Counts one less."""
        place = place_of(address)
        self._here[place] -= 1
        self._all -= 1
        if self._here[place] <= 0:
            del self._here[place]
