"""Names of datasets and analysts: which spellings are one name, and which may only look like one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from sfumato.errors import InvalidParameter
from sfumato.ledger.chain import text

__all__ = ["alike", "new_name", "spelled"]

_SPACES = re.compile(r"\s+")
_WORDS = re.compile(r"[^\W\d_]+")
# Drawn as nothing (Unicode's Default_Ignorable_Code_Point), less the format characters that `text` refuses.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Scripts with letters that are drawn like Latin ones.
_LATIN, _LOOKALIKES = "LATIN", frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC"})


def alike(name: str) -> str:
    """What the spellings of one name share: `Ada`, `ADA` and a full-width `ada` are one name.

    Case, width, the number of spaces and characters that are not seen make no difference.
    """
    wide = unicodedata.normalize("NFKC", _UNSEEN.sub("", name))
    folded = unicodedata.normalize("NFKC", wide.casefold())
    return _SPACES.sub(" ", folded).strip()


def spelled(name: str, known: Iterable[str]) -> str | None:
    """The spelling of a name that is on record, its own before others; None if there is none."""
    spellings = [other for other in known if alike(other) == alike(name)]
    return name if name in spellings else spellings[0] if spellings else None


def new_name(value: str, name: str) -> str:
    """A name that is to be put on record for the first time.

    Raises:
        InvalidParameter: if it shows nothing, or a word of it mixes letters that are drawn alike.
    """
    form = text(value, name)
    if not alike(form):
        raise InvalidParameter(f"{name} must have a character that can be seen.")
    for word in _WORDS.findall(unicodedata.normalize("NFKC", form)):
        scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in word}
        foreign = sorted(scripts & _LOOKALIKES)
        if foreign and (_LATIN in scripts or len(foreign) > 1):
            raise InvalidParameter(
                f"A word of {name} mixes letters of several scripts and may be taken for another name: write "
                "it in one."
            )
    return form
