"""How much a text may say: counted before anything in it is looked at, since looking is what costs time."""

from __future__ import annotations

import re
from itertools import islice

from sfumato.sql.refusals import refuse

__all__ = ["MOST_WORDS", "check_words"]

MOST_WORDS = 10_000
"""The most words and signs of a query; a text in quotes is one."""
# No text can be read in two ways here: it ends at its first quote, and two of them are two texts.
_WORD = re.compile(r"'[^']*'|\w+|[^\w\s]")


def check_words(text: str) -> None:
    """Refuse a text of too many words, in a time that does not grow with it beyond those.

    Raises:
        QueryRefused: if there are too many.
    """
    if len(text) > MOST_WORDS and next(islice(_WORD.finditer(text), MOST_WORDS, None), None) is not None:
        raise refuse(
            f"The query has more than {MOST_WORDS:,} words and signs.",
            "Ask for less at once; long lists of values go as plain constants after IN.",
        )
