"""Whether a line is sure to hold the names of columns: by its own words alone, and in doubt not.

The first line of a CSV file without a header is a row. Were it taken for names, somebody's values would stand
in a file that others read. So a line must show that it holds names: every cell looks like one, and half of
them have a word that tables are known to have as a name and hardly ever as a value. Disease, ward, price and
street are not such words: people are ill, lie in wards, and are called Price.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sfumato.schema import _names as names
from sfumato.schema.classify import words_of

__all__ = ["doubt_about", "unique_names"]

_LONGEST, _MOST_WORDS = 48, 6
_NAME = re.compile(r"[^\W\d][\w .,:;/()%#&+°§$€£'’\[\]-]*")
_DATE = re.compile(r"\d{1,4}[-./ ]\d{1,2}[-./ ]\d{1,4}")
_LONG_NUMBER = re.compile(r"\d{5}")
_TOKEN = re.compile(r"[\w-]+")
_IDENTIFIER = re.compile(r"[A-Za-z]\w*")  # of several words: visit_date, visitDate, VisitID
_SHORTEST = 3  # a shorter word alone may be the code of a country, a language or a state: ID, no, is
_GERMAN = ("datum", "nummer")  # as in Aufnahmedatum
_KNOWN = (
    names.PEOPLE
    | names.IDS
    | names.NUMBERS
    | names.OWN_NUMBERS
    | names.IDENTIFIERS
    | names.QUASI
    | names.SENSITIVE
    | names.COUNTED
    | names.PERIODS
    | names.MEASURED
    | names.DAYS
    | names.TRUTHS
    | names.HEADINGS
    | names.SURE
)
_NUMBERED = names.PEOPLE | names.IDENTIFIERS | names.OWN_NUMBERS  # customer no is a number, smoker no a value


def doubt_about(cells: Sequence[str]) -> str | None:
    """Why a line of cells may be a row instead of names of columns, in a clause; None: it is names.

    Privacy:
        The clause tells a kind of cell and never what is in one. Whoever shows the cells asks this first.
    """
    trimmed = [cell.strip() for cell in cells]
    written = trimmed[1:] if trimmed and not trimmed[0] else trimmed  # numbers of rows often have no name
    if not any(trimmed):
        return "it is blank"
    if not all(written):
        return "a cell of it is blank"
    if any(cell[0].isdigit() or _number(cell) for cell in written):
        return "a cell of it begins like a number"
    if any("@" in cell or _DATE.search(cell) or _LONG_NUMBER.search(cell) for cell in written):
        return "a cell of it looks like a day, an address or a long number"
    if any(_is_long(cell) or not _NAME.fullmatch(cell) for cell in written):
        return "a cell of it does not look like a name"
    known = [_is_known(cell) for cell in written]
    if len({cell.casefold() for cell in written}) < len(written) and not all(known):
        return "two cells of it are the same"
    sure = [cell for cell in written if _is_sure(cell)]
    # A sure word may be somebody's after all (an income may be salary, a language id); two of them are not.
    enough = len({cell.casefold() for cell in sure}) > 1 or (all(known) and any(map(_ends_like_a_name, sure)))
    named = all(is_known or _TOKEN.fullmatch(cell) for cell, is_known in zip(written, known, strict=True))
    if not named or not enough or 2 * len(sure) < len(written):
        return "too few of its words are usual names of columns"
    return None


def unique_names(cells: Sequence[str]) -> tuple[str, ...]:
    """Names for columns from a header that has blanks or the same name twice: c1 for a blank, then city_2."""
    made: list[str] = []
    taken = {cell.strip().casefold() for cell in cells}
    last: dict[str, int] = {}  # the number that each name had last: the next one is tried from there on
    seen: set[str] = set()
    for place, cell in enumerate(cells, 1):
        base = cell.strip() or f"c{place}"
        name, number = base, last.get(base.casefold(), 1) + 1
        if base.casefold() in seen or (not cell.strip() and base.casefold() in taken):
            while (name := f"{base}_{number}").casefold() in taken or name.casefold() in seen:
                number += 1
            last[base.casefold()] = number
        seen.add(name.casefold())
        made.append(name)
    return tuple(made)


def _number(cell: str) -> bool:
    """Whether it could be a number, also one with a sign or in words of machines, such as nan."""
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _is_long(cell: str) -> bool:
    return len(cell) > _LONGEST or len(cell.split()) > _MOST_WORDS


def _is_known(cell: str) -> bool:
    """Whether each of its words is one that names of columns have, or stands between such words."""
    words = words_of(cell)
    if len(words) == 1 and words[0].isascii() and len(words[0]) < _SHORTEST:
        return words[0] in names.SURE and not cell.isupper()
    if "".join(words) in _KNOWN or _is_id_of_people(words):
        return True
    return not _KNOWN.isdisjoint(words) and all(word in _KNOWN or word in names.JOINERS for word in words)


def _is_sure(cell: str) -> bool:
    """Whether it is hardly ever a value: known words with a sure one, or an identifier with a usual end."""
    words = words_of(cell)
    if not _is_known(cell):
        return _ends_like_a_name(cell) and bool(_IDENTIFIER.fullmatch(cell))
    return _ends_like_a_name(cell) or not names.SURE.isdisjoint((*words, "".join(words)))


def _ends_like_a_name(cell: str) -> bool:
    """Whether the last of several words tells the kind, as in visit_date and userid, not in up-to-date."""
    words = words_of(cell)
    if len(words) < 2:
        return _is_id_of_people(words) or any(
            word.endswith(_GERMAN) and word not in _GERMAN for word in words
        )
    if words[-1] == "no":
        return words[-2] in _NUMBERED
    return words[-1] in names.ENDINGS and words[-2] not in names.JOINERS


def _is_id_of_people(words: Sequence[str]) -> bool:
    return len(words) == 1 and words[0].endswith("id") and words[0][:-2] in names.PEOPLE
