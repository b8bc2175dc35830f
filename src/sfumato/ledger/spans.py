"""`Spans`: what is spent in each window of time, kept as stretches of windows with the same sums."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from sfumato.ledger.budget import Totals
from sfumato.ledger.sums import settled
from sfumato.schema import Windows

__all__ = ["Piece", "Spans", "added"]


class Piece(NamedTuple):
    """Windows one after the other that have the same sums.

    Attributes:
        first: The place of the first of them (`Windows`); None: there is no first one.
        sums: What is spent in each of them; empty: nothing.
        debits: In how many debits.
        reads: How many answers of others are counted among it.
    """

    first: int | None
    sums: Totals
    debits: int
    reads: int = 0


class Spans:
    """The sums of every window there is: those that no debit names have what debits without windows cost.

    Privacy:
        Claim: `over` tells, for each window, the exact sum of the prices of all debits that name it or name
        none, rounded as `settled` says. A debit that names no window counts in every one.
    """

    __slots__ = ("_begins", "_counts", "_sums", "last")

    def __init__(self) -> None:
        self.last = 0  # the receipt that was counted last
        self._begins: list[float] = [-math.inf]  # where stretches begin; each ends where the next one does
        self._sums: list[Totals] = [()]
        self._counts = [(0, 0)]  # of debits, and of answers of others

    def with_(self, windows: Windows | None, price: Totals, receipt: int, *, read: bool = False) -> Spans:
        """The same with what a receipt adds; itself if that is counted already.

        To be put in the place of this one: an interrupt then leaves one of the two, and nothing half done.
        """
        if self.last >= receipt:
            return self
        other = self.copy()
        other.add(windows, price, read=read)
        other.last = receipt
        return other

    def add(self, windows: Windows | None, price: Totals, *, read: bool = False) -> None:
        """Count a price in each of these windows; None: in all there are."""
        begin, end = (0, len(self._begins)) if windows is None else self._split(windows)
        for place in range(begin, end):
            self._sums[place] = added(self._sums[place], price)
            debits, reads = self._counts[place]
            self._counts[place] = (debits, reads + 1) if read else (debits + 1, reads)

    def over(self, windows: Windows | None) -> list[Piece]:
        """The stretches that these windows are in, in order; None: all there are."""
        begin, end = 0, len(self._begins)
        if windows is not None:
            begin = bisect_right(self._begins, windows.first) - 1
            end = bisect_left(self._begins, windows.last + 1)
        pieces = [self._piece(place) for place in range(begin, end)]
        if windows is not None:
            pieces[0] = pieces[0]._replace(first=windows.first)
        return pieces

    def fullest(self, windows: Windows | None) -> list[Piece]:
        """Of the stretches that these windows are in those of which no other one has spent more in all."""
        return _maximal(self.over(windows))

    @property
    def elsewhere(self) -> Totals:
        """What is spent in the windows that no receipt names: by debits that name none; empty: nothing."""
        return self._sums[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # it is changed

    def copy(self) -> Spans:
        """The same, to be changed by itself."""
        other = Spans()
        other._begins, other._sums, other._counts = self._begins[:], self._sums[:], self._counts[:]
        other.last = self.last
        return other

    @classmethod
    def together(cls, several: Sequence[Spans]) -> Spans:
        """The sums of several, window by window."""
        if len(several) == 1:
            return several[0]
        both = cls()
        both._begins = sorted({begin for one in several for begin in one._begins})
        both._sums = [()] * len(both._begins)
        both._counts = [(0, 0)] * len(both._begins)
        for place, begin in enumerate(both._begins):
            for one in several:
                at = bisect_right(one._begins, begin) - 1
                both._sums[place] = added(both._sums[place], one._sums[at])
                (a, b), (c, d) = both._counts[place], one._counts[at]
                both._counts[place] = a + c, b + d
        return both

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `from_dict` reads back."""
        pieces = map(self._piece, range(len(self._begins)))
        listed = [
            [piece.first, [str(total) for total in piece.sums], piece.debits, piece.reads] for piece in pieces
        ]
        return {"last": self.last, "pieces": listed}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Spans:
        """What `to_dict` wrote."""
        spans = cls()
        pieces, spans.last = data["pieces"], data["last"]
        spans._begins = [-math.inf if first is None else int(first) for first, _, _, _ in pieces]
        spans._sums = [tuple(map(Fraction, sums)) for _, sums, _, _ in pieces]
        spans._counts = [(int(debits), int(reads)) for _, _, debits, reads in pieces]
        return spans

    def _piece(self, place: int) -> Piece:
        begin = self._begins[place]
        return Piece(None if begin == -math.inf else int(begin), self._sums[place], *self._counts[place])

    def _split(self, windows: Windows) -> tuple[int, int]:
        """The places of the stretches that are just these windows, cut where they begin and end."""
        return self._cut(windows.first), self._cut(windows.last + 1)

    def _cut(self, begin: int) -> int:
        place = bisect_left(self._begins, begin)
        if place == len(self._begins) or self._begins[place] != begin:
            self._begins.insert(place, begin)
            self._sums.insert(place, self._sums[place - 1])
            self._counts.insert(place, self._counts[place - 1])
        return place


def added(sums: Totals, price: Totals) -> Totals:
    """Two sums together, as they are kept; an empty one is nothing."""
    if not sums or not price:
        return sums or price
    return tuple(settled(a + b) if b else a for a, b in zip(sums, price, strict=True))


def _maximal(pieces: list[Piece]) -> list[Piece]:
    """Those that no other one is as full as in everything that is added up, the first of equals."""
    kept = list[Piece]()
    order = sorted(pieces, key=lambda piece: piece.sums, reverse=True)  # stable: the first of equals leads
    for piece in order:
        if not any(all(a <= b for a, b in zip(piece.sums, other.sums, strict=False)) for other in kept):
            kept.append(piece)
    return kept
