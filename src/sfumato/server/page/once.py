"""`Once`: a form is done once, however often it is sent."""

from __future__ import annotations

from collections import OrderedDict

from sfumato.random import token
from sfumato.server.access import Account

__all__ = ["Once"]

_MOST = 10_000


class Once:
    """Which forms were sent, of the last so many, and where what they did is shown.

    A second click, a second tab and a page that is loaded again all send the same word with the form.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[str, str], str] = OrderedDict()

    def word(self) -> str:
        """A new word for a form."""
        return token()

    def begin(self, who: Account, word: str, where: str) -> str | None:
        """None: it is sent for the first time. Otherwise, where to look for what it did."""
        key = who.name, word[:100]
        if key in self._sent:
            return self._sent[key]
        self._sent[key] = where
        while len(self._sent) > _MOST:
            self._sent.popitem(last=False)
        return None

    def done(self, who: Account, word: str, where: str) -> None:
        """Where to look for what a form did."""
        self._sent[who.name, word[:100]] = where

    def failed(self, who: Account, word: str) -> None:
        """That it did nothing, and may be sent again."""
        self._sent.pop((who.name, word[:100]), None)
