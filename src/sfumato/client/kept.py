"""What was made of a server's last documents, kept for when they come again: it saves work, no request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Lock
from typing import Any

from sfumato.plan.prices.quoting import Quote
from sfumato.session.carried.answers import unpack_quote, unpack_release
from sfumato.session.lately import Lately
from sfumato.session.release import Release

__all__ = ["Kept"]

_MOST, _LETTERS = 64, 2**16  # quotes, and how long each may be


class Kept:
    """The last quotes of one session over the same tables, and what was computed of their answers."""

    def __init__(self) -> None:
        self._lock, self._quotes, self._lately = Lock(), dict[str, Quote](), Lately()

    def quote(self, data: Mapping[str, Any], tables: Mapping[str, Any]) -> Quote:
        """The quote of a document; of the same one lately, the same object."""
        key = json.dumps(data)
        with self._lock:
            known = self._quotes.pop(key, None)
        quote = unpack_quote(data, tables) if known is None else known
        if len(key) <= _LETTERS:
            with self._lock:
                self._quotes[key] = quote  # now the last
                if len(self._quotes) > _MOST:
                    del self._quotes[next(iter(self._quotes))]
        return quote

    def release(self, data: Mapping[str, Any], tables: Mapping[str, Any]) -> Release:
        """The release of a document, with what was computed for an earlier one of the same answer."""
        release = unpack_release(data, tables, quoted=self.quote)
        if release.free:
            release = self._lately.shared(release, release._answer)
        _ = release.table  # made here, where what does not fit is said; it is kept with the release
        return release
