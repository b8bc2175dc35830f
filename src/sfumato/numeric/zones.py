"""Time zones as whole numbers: how far local clocks are ahead of UTC, from one second on and until another.

No engine is asked for a zone: all have tables of their own, of other years. From 1970 to 2099 the offsets are
those of Python's `zoneinfo`; before and after they stay what they are at the end: all times have one.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable
from zoneinfo import ZoneInfo

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.moments import DAY, seconds_of

__all__ = ["UTC", "Offsets", "offsets_of", "zone_of"]

UTC = "UTC"
_NOT_OF_A_PLACE = frozenset({"localtime", "posixrules", "Factory"})
_OTHER_CLOCKS = ("posix/", "right/")  # copies of all zones, of which one counts leap seconds
_END = seconds_of(datetime.datetime(2100, 1, 1))


@dataclass(frozen=True, slots=True)
class Offsets:
    """How far the clocks of a zone are ahead of UTC, in seconds: a function of all times.

    Attributes:
        changes: The seconds since 1970-01-01 in UTC at which the offset becomes another one, in order.
        ahead: The offsets: before the first change, and from each of them on.
    """

    changes: tuple[int, ...]
    ahead: tuple[int, ...]

    def at(self, seconds: int) -> int:
        """The offset at a time."""
        return self.ahead[bisect_right(self.changes, seconds)]

    @property
    def digest(self) -> str:
        """A short name that other offsets do not have."""
        written = json.dumps([self.changes, self.ahead]).encode()
        return hashlib.sha256(written).hexdigest()[:32]

    def within(self, days: int) -> set[tuple[int, int]]:
        """The least and the greatest offset of all that some days of local time can have, as pairs."""
        longest = days * DAY + max(self.ahead) - min(self.ahead)
        found = set[tuple[int, int]]()
        for place, offset in enumerate(self.ahead):
            least = most = offset
            found.add((least, most))
            for later in range(place, len(self.changes)):
                if self.changes[later] - self.changes[place] >= longest:
                    break
                least, most = min(least, self.ahead[later + 1]), max(most, self.ahead[later + 1])
                found.add((least, most))
        return found


def zone_of(name: str) -> ZoneInfo:
    """The time zone of a name, which is the same on every machine.

    Raises:
        InvalidParameter: for a name that is none, or that of whatever zone a machine is in.
    """
    try:
        if name in _NOT_OF_A_PLACE or name.startswith(_OTHER_CLOCKS):
            raise KeyError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError, TypeError, AttributeError):
        raise InvalidParameter(
            f"There is no time zone {str(name)[:60]!r}: write one such as Europe/Berlin."
        ) from None


def offsets_of(name: str) -> Offsets:
    """The offsets of a zone, as `zoneinfo` has them on this machine.

    Raises:
        InvalidParameter: for a name that is none.
    """
    zone_of(name)
    return _offsets(name)


@functools.lru_cache(maxsize=64)
def _offsets(name: str) -> Offsets:
    """Looked up once a day and, where a day begins and ends differently, second by second between them."""
    zone = zone_of(name)

    def ahead(seconds: int) -> int:
        there = datetime.datetime.fromtimestamp(seconds, zone).utcoffset() or datetime.timedelta()
        return there // datetime.timedelta(seconds=1)

    changes, found = list[int](), [ahead(0)]
    for after in range(DAY, _END, DAY):
        before = after - DAY
        while ahead(after) != found[-1]:
            before = _changed(ahead, before, after)
            changes.append(before)
            found.append(ahead(before))
    return Offsets(tuple(changes), tuple(found))


def _changed(ahead: Callable[[int], int], before: int, after: int) -> int:
    """The first second of another offset than at `before`, of which `after` has one."""
    old = ahead(before)
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if ahead(middle) == old else (before, middle)
    return after
