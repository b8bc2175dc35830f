"""Wrong logins, counted: after some of them from one place, further ones are not looked at for a while."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from sfumato._dataclasses import dataclass
from sfumato.errors import TooManyTries

__all__ = ["Tries", "place_of"]


@dataclass(frozen=True, slots=True)
class _Allowance:
    """How many wrong tries are forgiven, and in how many seconds one of them is forgotten."""

    most: int
    seconds: float


_FOR_NAME = _Allowance(10, 10.0)  # one name, or token, from one address
_FOR_ADDRESS = _Allowance(100, 1.0)  # whatever names, from one address: many people may share it
_REMEMBERED = 10_000  # names, and addresses, of which wrong tries are remembered


class Tries:
    """Wrong tries of this process, by address, and by name and address together.

    Nothing is counted by the name alone: tokens have 256 bits, so guesses from many addresses find none, and
    a stranger who knows a name must not be able to lock its owner out. Nor does the address alone keep
    anybody out whose try is right: behind a proxy all clients have one. What an address has too many of is
    answered without being counted further, and guesses at one name from there stay few. Of IPv6 a network of
    64 bits is one address. What was longest without a try is forgotten when there are too many.
    """

    def __init__(self, *, ticks: Callable[[], float] = time.monotonic, most: int = _REMEMBERED) -> None:
        self._ticks = ticks
        self._lock = threading.Lock()
        self._addresses = _Counts(_FOR_ADDRESS, most)
        self._names = _Counts(_FOR_NAME, most)

    def admit(self, address: str, name: str = "") -> None:
        """Lets a try be looked at.

        Raises:
            TooManyTries: if too many from there were wrong.
        """
        place, now = place_of(address), self._ticks()
        with self._lock:
            wait = max(self._addresses.wait(place, now), self._names.wait((place, name), now))
        if wait > 0:
            raise TooManyTries(wait)

    def admit_name(self, address: str, name: str) -> None:
        """Lets a try by a name be looked at, whatever came by other names from there.

        Raises:
            TooManyTries: if too many by this name from there were wrong.
        """
        place, now = place_of(address), self._ticks()
        with self._lock:
            wait = self._names.wait((place, name), now)
        if wait > 0:
            raise TooManyTries(wait)

    def wrong(self, address: str, name: str = "") -> None:
        """Counts a try that was wrong."""
        place, now = place_of(address), self._ticks()
        with self._lock:
            self._addresses.add(place, now)
            self._names.add((place, name), now)

    def refuse(self, address: str, name: str = "", *, known: bool = True) -> None:
        """Counts a try that was looked at and was wrong.

        Args:
            address: Where it came from.
            name: By which name.
            known: Whether there is something by this name to guess at. Where the address has tried too often
                names that are made up are not remembered, so that they push out none that is guessed at.

        Raises:
            TooManyTries: if too many from there were wrong before: what was wrong now is not told.
        """
        place, now = place_of(address), self._ticks()
        with self._lock:
            by_name = self._names.wait((place, name), now)
            wait = max(self._addresses.wait(place, now), by_name)
            if wait <= 0:
                self._addresses.add(place, now)
            if by_name <= 0 and (known or wait <= 0):
                self._names.add((place, name), now)
        if wait > 0:
            raise TooManyTries(wait)


class _Counts:
    """For each key how many wrong tries are not forgotten yet, and as of when."""

    def __init__(self, allowance: _Allowance, most: int) -> None:
        self._allowance, self._most = allowance, most
        self._held: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def _count(self, key: Hashable, now: float) -> float:
        count, since = self._held.get(key, (0.0, now))
        return max(0.0, count - (now - since) / self._allowance.seconds)

    def wait(self, key: Hashable, now: float) -> float:
        """Seconds until a try is looked at."""
        return (self._count(key, now) - self._allowance.most + 1) * self._allowance.seconds

    def add(self, key: Hashable, now: float) -> None:
        self._held[key] = (min(self._count(key, now) + 1, self._allowance.most), now)
        self._held.move_to_end(key)
        while len(self._held) > self._most:
            self._held.popitem(last=False)


def place_of(address: str) -> str:
    """What counts as one address."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    return str(known.ipv4_mapped or ipaddress.IPv6Network((int(known), 64), strict=False))
