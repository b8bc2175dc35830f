"""For how many more windows a budget is enough."""

from __future__ import annotations

import datetime
import heapq
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from sfumato._dataclasses import dataclass
from sfumato.ledger.gates import Asked
from sfumato.publishing.entries import Entry
from sfumato.purchase import Forecast

__all__ = ["Outlook", "outlooks"]

_MOST = 1000  # windows of a dataset that are looked at
_FEW = 100  # where the budget is for each window: then each question is read, to see which it pays in


@dataclass(frozen=True, slots=True)
class Outlook:
    """How long a release can go on.

    Attributes:
        windows: For how many more windows.
        paid: Whether these are paid for: points of a series.
        more: Whether it may be enough for more, which nobody looked at.
        every: How long each is.
    """

    windows: int
    paid: bool
    more: bool
    every: str

    def __str__(self) -> str:
        """Such as `7 months`."""
        if not self.windows and not self.more:
            return "complete" if self.paid else f"no more {self.every}s"
        many = f"{'over ' if self.more else ''}{self.windows:,} {self.every}"
        many += "" if self.windows == 1 else "s"
        return f"{many}, paid" if self.paid else many


def outlooks(entries: Sequence[Entry], forecasts: Mapping[str, Forecast]) -> dict[str, Outlook]:
    """For each release how long it can go on, if all of them do and nobody else spends anything.

    Args:
        entries: All releases.
        forecasts: By dataset, what is going to be paid for windows that are over.
    """
    found = dict[str, Outlook]()
    for dataset, due in forecasts.items():
        own = [entry for entry in entries if entry.dataset == dataset]
        most = _MOST if own[0].paid_in(0) is None else _FEW
        once = {_bought(entry): entry for entry in reversed(own)}  # what is the same is paid by one of them
        coming = list(islice(heapq.merge(*map(_named, once.values()), key=lambda each: each[0]), most))
        fits = _fitting(due, [asked for _, _, asked in coming])
        counted = Counter(what for _, what, _ in coming[:fits])
        for entry in own:
            name, every = entry.wanted.name, entry.calendar.every
            if entry.wanted.kind == "series":
                found[name] = Outlook(entry.wanted.horizon - entry.over, True, False, every)
            else:
                found[name] = Outlook(counted[_bought(entry)], False, fits == len(coming), every)
    return found


def _named(entry: Entry) -> Iterator[tuple[datetime.datetime, str, Asked]]:
    for moment, asked in entry.coming():
        yield moment, _bought(entry), asked


def _bought(entry: Entry) -> str:
    """What an entry buys: the same for two of them whose windows to come are the same."""
    terms = entry.wanted.to_dict()
    if entry.wanted.kind == "question":
        del terms["start"]
    return json.dumps(terms, sort_keys=True)


def _fitting(due: Forecast, losses: Sequence[Asked]) -> int:
    """How many of the first of these fit."""
    if due.fits(losses):
        return len(losses)
    least, most = 0, len(losses)
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if due.fits(losses[:middle]) else (least, middle)
    return least
