"""`Spellings`: under which spellings each analyst is on record, so that all of them are looked for."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.ledger.chain import Row
from sfumato.ledger.names import alike
from sfumato.ledger.store import Store

__all__ = ["Spellings"]


class Spellings:
    """The analysts of all receipts, for the one thread that looks at the book.

    A database cannot tell which spellings are one name. It lists them once, when somebody is first looked
    for, and receipts that come later add theirs. Receipts are found by it; no budget or limit is.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, set[str]] | None = None

    def of(self, analyst: str) -> list[str]:
        """The spellings on record of a name."""
        if self._known is None:
            self._known = _with({}, self._store.analysts())
        return sorted(self._known.get(alike(analyst), ()))

    def follow(self, rows: Iterable[Row]) -> None:
        """Takes in new receipts."""
        if self._known is not None:
            _with(self._known, (row.analyst for row in rows if row.analyst is not None))

    def clear(self) -> None:
        """Forgets everything."""
        self._known = None


def _with(known: dict[str, set[str]], analysts: Iterable[str]) -> dict[str, set[str]]:
    for analyst in analysts:
        known.setdefault(alike(analyst), set()).add(analyst)
    return known
