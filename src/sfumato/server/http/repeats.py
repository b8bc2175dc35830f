"""Words that clients give their requests, so that a retry is known for one."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from sfumato.errors import InvalidParameter

__all__ = ["Repeats"]

_MOST = 100_000


class Repeats:
    """Which request a word was for, of the last so many: one for all addresses that are paid at.

    It knows the words that came to its own process since that began. What makes a retry free is the ledger:
    the same question is answered from it, by any process. A word that comes with another question is a
    mistake of the client's, which would pay twice: it is refused.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most, self._lock = most, threading.Lock()
        self._seen: OrderedDict[bytes, bytes] = OrderedDict()

    def check(self, whose: str, word: str, address: str, question: str) -> None:
        """Remembers what a word is for.

        Args:
            whose: The name of the account; each has words of its own.
            word: The `Idempotency-Key`.
            address: The path that is asked.
            question: All that is asked there, as text: the same for the same question.

        Raises:
            InvalidParameter: if it was for another question, or at another address.
        """
        key, held = (
            hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
            for parts in ((whose, word), (address, question))
        )
        with self._lock:
            known = self._seen.setdefault(key, held)
            self._seen.move_to_end(key)
            while len(self._seen) > self._most:
                self._seen.popitem(last=False)
        if known != held:
            raise InvalidParameter(
                "This Idempotency-Key came with another question before, or to another address;"
                " give each question its own."
            )
