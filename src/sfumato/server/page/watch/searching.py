"""The ledger, searched: newest first, a page at a time, as far back as one request may look."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from itertools import islice
from urllib.parse import urlencode

from sfumato._dataclasses import dataclass
from sfumato.ledger import Receipt
from sfumato.ledger.names import alike
from sfumato.server.access import Account, Act
from sfumato.server.house import House
from sfumato.server.page.watch.told import Told

__all__ = ["Found", "Wanted", "search"]

PAGE, REACH = 50, 20_000
"""Receipts on a page, and those that one request looks through."""
_NUMBER = re.compile(r"#?([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for; empty: anything.

    Attributes:
        words: In the question, the reason or what happened; or a number.
        analyst: Of whom, in any spelling.
        dataset: Its name.
        kind: What happened.
        since: The first day.
        until: The last one.
    """

    words: str = ""
    analyst: str = ""
    dataset: str = ""
    kind: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Wanted:
        """What an address asks for; a day that is none is left out."""
        texts = {name: asked.get(name, "").strip()[:200] for name in cls.__slots__}
        for name in ("since", "until"):
            texts[name] = texts[name] if _day(texts[name]) else ""
        return cls(**texts)

    @property
    def fields(self) -> dict[str, str]:
        """What is not empty, by name."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}

    def address(self, before: int = 0) -> str:
        """Where this is found, from a number backwards."""
        more = {"before": str(before)} if before else {}
        return f"/watch/ledger?{urlencode(self.fields | more)}"

    def fits(self, receipt: Receipt) -> bool:
        """Whether a receipt is looked for."""
        day, since, until = receipt.time.date(), _day(self.since), _day(self.until)
        return (
            (not self.dataset or receipt.dataset == self.dataset)
            and (not self.kind or receipt.kind == self.kind)
            and (not self.analyst or alike(receipt.analyst or "") == alike(self.analyst))
            and (since is None or day >= since)
            and (until is None or day <= until)
            and self._says(receipt)
        )

    def _says(self, receipt: Receipt) -> bool:
        number = _NUMBER.fullmatch(self.words)
        if number is not None and int(number[1]) == receipt.number:
            return True
        if not self.words or self.words.startswith("#"):
            return not self.words
        return self.words.casefold() in Told(receipt).searched


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        receipts: Newest first.
        older: From which number backwards it goes on; 0: there is no more.
        cut: Whether it ended because it had looked through `REACH` receipts.
    """

    receipts: tuple[Told, ...]
    older: int
    cut: bool = False


def search(house: House, who: Account, wanted: Wanted, before: int = 0) -> Found:
    """The newest receipts that fit, of those that somebody may see: an analyst their own."""
    name = None if who.may(Act.AUDIT) else who.name
    receipts, found = house.record(name, before=before or None, newest=True), list[Receipt]()
    for receipt in islice(receipts, REACH):
        if wanted.fits(receipt):
            if len(found) == PAGE:
                return Found(tuple(map(Told, found)), found[-1].number)
            found.append(receipt)
    more = next(receipts, None)
    older = 0 if more is None else more.number + 1
    return Found(tuple(map(Told, found)), older, cut=more is not None)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None
