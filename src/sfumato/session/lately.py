"""What was made of the answers that were read lately, kept for when they are read again."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.session.payload import Answer
    from sfumato.session.release import Release

__all__ = ["Lately"]

_MOST = 64  # releases
_NUMBERS = 10_000  # in one answer; of a larger one nothing is kept
_LETTERS = 2**14  # in the words of one question, whose quote is kept with it; likewise


class Lately:
    """The last releases of one session, for their estimates and tables.

    All of it is post-processing of answers that were released. None is handed out from here: a release is
    made of an answer that the ledger has just given, and only takes over what was computed from the very
    same one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[tuple[int, int], Release] = {}  # by the identities of quote and answer, kept alive

    def shared(self, release: Release, answer: Answer) -> Release:
        """The release of an answer, with what was computed for an earlier one."""
        if sum(array.size for array in answer.noisy) + len(answer.groups or ()) > _NUMBERS:
            return release
        if len(release.receipt.purpose.words) > _LETTERS:
            return release
        place = id(release.quote), id(answer)
        with self._lock:
            known = self._kept.pop(place, None)
            self._kept[place] = release  # now the last
            if len(self._kept) > _MOST:
                del self._kept[next(iter(self._kept))]
        if known is not None:
            release.take_over(known)
        return release
