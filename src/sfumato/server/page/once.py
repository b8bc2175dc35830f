"""`Once`: a form is done once, however often it is sent."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping

from sfumato.errors import InvalidParameter
from sfumato.random import token
from sfumato.server.access import Account

__all__ = ["Once", "Reused"]

_MOST, _LONGEST = 10_000, 100
_ASIDE = ("form", "once", "sure")  # what says nothing of what is to be done


class Reused(InvalidParameter):
    """A form was sent already, and said something else then."""


class Once:
    """Which forms were sent, of the last so many, what they said, and where what they did is shown.

    A second click, a second tab and a page that is loaded again all send the same word with the form.
    """

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()

    def word(self) -> str:
        """A new word for a form."""
        return token()

    def begin(self, who: Account, act: str, values: Mapping[str, str], where: str) -> str | None:
        """None: it is sent for the first time. Otherwise, where to look for what it did.

        Args:
            who: Who sends it.
            act: What it is to do.
            values: Its fields; `once` is its word.
            where: Where to look until it is done.

        Raises:
            Reused: if a form with the same word was to do something else.
            InvalidParameter: if it has no word.
        """
        key, said = _key(who, values), _digest(act, values)
        if not 0 < len(key[1]) <= _LONGEST:
            raise InvalidParameter("Nothing was done: this form is not of this page. Send it once more.")
        if key in self._sent:
            before, place = self._sent[key]
            if before != said:
                raise Reused(
                    "Nothing was done: this form was sent before and said something else. Look at it, "
                    "and send it once more."
                )
            return place
        self._sent[key] = said, where
        while len(self._sent) > _MOST:
            self._sent.popitem(last=False)
        return None

    def done(self, who: Account, act: str, values: Mapping[str, str], where: str) -> None:
        """Where to look for what a form did."""
        self._sent[_key(who, values)] = _digest(act, values), where

    def failed(self, who: Account, values: Mapping[str, str]) -> None:
        """That it did nothing, and may be sent again."""
        self._sent.pop(_key(who, values), None)


def _key(who: Account, values: Mapping[str, str]) -> tuple[str, str]:
    return who.name, values.get("once", "")


def _digest(act: str, values: Mapping[str, str]) -> str:
    """What a form is to do."""
    said = sorted((name, value) for name, value in values.items() if name not in _ASIDE)
    return hashlib.sha256(json.dumps([act, said]).encode()).hexdigest()
