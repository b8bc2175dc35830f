"""The points of a series that are on record, read from the ledger as they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from sfumato.session.series.points import Point

__all__ = ["OnRecord"]

_BAND = 64  # points that are read at once
_MOST = 4  # bands that are kept in memory: for the two ends of a window, and the last points


class OnRecord(Sequence[Point]):
    """Points in their order: to be read like a list, of which a few are in memory.

    What was changed in the ledger is noticed where it is read.
    """

    def __init__(self, load: Callable[[int, int], list[bytes]]) -> None:
        """Begin with none; `load` gives those from one place up to another."""
        self._load, self._length = load, 0
        self._bands: dict[int, list[Point]] = {}

    def follow(self, length: int) -> None:
        """Take in that there are so many by now."""
        self._length = length

    def append(self, point: Point) -> None:
        """Add a point that was recorded just now."""
        band = self._bands.get(self._length // _BAND)
        if band is not None and len(band) == self._length % _BAND:
            band.append(point)
        self._length += 1

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Point: ...

    @overload
    def __getitem__(self, place: slice) -> list[Point]: ...

    def __getitem__(self, place: int | slice) -> Point | list[Point]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._length))]
        at = range(self._length)[place]
        return self._band(at // _BAND)[at % _BAND]

    def __iter__(self) -> Iterator[Point]:
        for band in range(-(-self._length // _BAND)):
            yield from self._band(band)

    def _band(self, place: int) -> list[Point]:
        first, end = place * _BAND, min((place + 1) * _BAND, self._length)
        known = self._bands.pop(place, [])
        if len(known) < end - first:
            known = known + [Point.from_bytes(each) for each in self._load(first + len(known), end)]
        self._bands[place] = known  # the last that was asked for
        while len(self._bands) > _MOST:
            del self._bands[next(iter(self._bands))]
        return known
