"""What a column probably is, from its name and type alone: the data is never read for it."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Mapping
from typing import Literal, TypeAlias

from sfumato.schema import _names as names

__all__ = ["ROLES", "Role", "role_of", "type_of", "units_of", "words_of"]

Role: TypeAlias = Literal["identifier", "quasi-identifier", "sensitive", "plain"]
ROLES: tuple[Role, ...] = ("identifier", "quasi-identifier", "sensitive", "plain")

_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ł": "l", "å": "aa"})
_TYPES = {
    "integer": "int",
    "float": "float",
    "boolean": "bool",
    "date": "date",
    "timestamp": "timestamp",
    "time": "time",
    "text": "text",
}


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column's name: `PatientID`, `patient_id` and `patient-id` are all patient, id."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    folded = unicodedata.normalize("NFKC", spaced).lower().translate(_UMLAUTS)
    bare = "".join(
        letter for letter in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(letter)
    )
    # Only Latin letters lose their marks: a Japanese voiced mark or the Russian й makes another letter.
    return tuple(part for part in re.split(r"[\W_]+", bare if bare.isascii() else folded) if part)


def _found(name: str) -> set[str]:
    """The words of a name, what they make when joined, and `user`, `id` for `userid`."""
    words = words_of(name)
    parts = {*words, "".join(words)}
    for word in words:
        if word.endswith("id") and word[:-2] in names.PEOPLE:
            parts |= {word[:-2], "id"}
    return parts


def role_of(name: str, kind: str) -> Role:
    """How a column is classified, from its name and its kind (`integer`, `text`, `date`, …)."""
    words = _found(name)
    nameable = kind in ("integer", "text", "other")
    numbered = nameable or kind == "float"  # pandas makes whole numbers floats where one is missing
    if numbered and (words & names.IDS or words & names.OWN_NUMBERS):
        return "identifier"
    if numbered and words & (names.PEOPLE | names.IDENTIFIERS) and words & names.NUMBERS:
        return "identifier"
    if words & names.SENSITIVE and not _says_when(name):
        return "sensitive"
    if words & names.QUASI:
        return "quasi-identifier"
    if nameable and words & (names.IDENTIFIERS | names.PEOPLE) and "count" not in words:
        return "identifier"
    return "quasi-identifier" if kind in ("date", "timestamp", "time") or _says_when(name) else "plain"


def _says_when(name: str) -> bool:
    """Whether a name ends in a time, such as `loan_year`; `cost_per_year` does not."""
    words = words_of(name)
    return bool(words) and words[-1] in names.PERIODS and not {"per", "pro", "par", "por"} & set(words)


def units_of(columns: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that may name the people to protect, likeliest first: `patient_id` before `email`."""
    listed = [name for name, kind in columns.items() if role_of(name, kind) == "identifier"]
    return tuple(sorted(listed, key=lambda name: -_rank(_found(name))))


def _rank(words: set[str]) -> int:
    if words & names.PEOPLE:
        return 4 if words & (names.IDS | names.NUMBERS) else 2
    if words & names.OWN_NUMBERS:
        return 3
    return 1 if words & {"email", "mail", "courriel", "correo", "邮箱", "メール"} else 0


def type_of(name: str, kind: str, *, untyped: bool = False) -> str | None:
    """The type to declare: the file's own, or for a file without types (CSV) what the name suggests.

    None for a kind that cannot be asked for.
    """
    typed = _TYPES.get(kind)
    if not untyped or typed != "text" or role_of(name, kind) == "identifier":
        return typed
    return _suggested(name) or "text"


_SUGGESTIONS = (
    ("date", names.DAYS),
    ("bool", names.TRUTHS),
    ("int", names.COUNTED),
    ("float", names.MEASURED),
)


def _suggested(name: str) -> str | None:
    """The type that the word says which a name is about: a visit_date is a date, a date_format is not.

    That is its last word, or the last one before `of`, `per` and their like; in some languages the first.
    Words that are something else elsewhere speak in few places: dia is a day and a diastole, data a day in
    Rome alone.
    """
    words = tuple(word for word in words_of(name) if not word.isdecimal())
    parts = [list(part) for join, part in itertools.groupby(words, names.JOINERS.__contains__) if not join]
    if not parts:
        return None
    several, first, head = len(words) > 1, words[0], parts[0][-1]
    if several and first in names.ASKING:
        return "bool"
    if several and words[-1] in ("at", "on"):
        return "date"  # created_at
    said = {"".join(words)}
    if several and head not in names.BEGINNING and not (head == "day" and len(parts) > 1):
        said.add(head)  # but a day of the week is not one
    said -= {*names.ASKING, "data", "est"}
    if several and first in names.BEGINNING | names.LEADING and not set(words[1:]) & names.PERIODS:
        said.add(first)
    if first in ("data", "date") and set(words) & names.QUASI:
        said.add("date")  # data_nascita, date_naissance
    return next((word for word, listed in _SUGGESTIONS if said & listed), None)
