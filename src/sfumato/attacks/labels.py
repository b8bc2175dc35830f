"""What a generalised label covers: whether `19***` may be 19456, or `[30, 40)` be 31.

| label | covers | written by (`Hierarchy` or other) |
| --- | --- | --- |
| `*` | everything, also what is missing | all |
| `19***`, `1945*` | codes that begin so, of at most that length | `prefixes` |
| `[60, 70)`, `[62, 67]` | what lies between; a round bracket leaves its end out | `intervals`, `mondrian` |
| `60-70`, `60–70` | numbers, both ends included: nobody can tell which one is not | printed tables |
| `70+`, `<30`, `≤30`, `>70`, `≥70` | numbers on one side | printed tables |
| `2021-07-03`, `2021-07`, `2021-Q3`, `2021`, `2020s` | the days and times of it | `dates` |
| `{a, b, c}` | the values in it | `mondrian` |
| `a … m` | the texts between, in the order of their characters | `mondrian` |
| anything else | itself | |

The names of a tree (`single` for `Divorced`) mean what its `Hierarchy` says, which has to be given.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.anonymity import Hierarchy
from sfumato.anonymity.codes import text_of

__all__ = ["Known", "Meaning", "covers", "known", "meaning", "steps_of"]

_NUMBER = r"[-+]?[0-9]+(?:[.][0-9]*)?|[-+]?[.][0-9]+"
_PLAIN = re.compile(_NUMBER)
_INTERVAL = re.compile(r"([\[(])(.*), (.*)([\])])", re.S)
_RANGE = re.compile(rf"({_NUMBER})\s*[-–—]\s*({_NUMBER})")
_ABOVE = re.compile(rf"({_NUMBER})\s*\+")
_SIDE = re.compile(rf"(<=|>=|<|>|≤|≥)\s*({_NUMBER})")
_STARRED = re.compile(r"([^*]+)\*+", re.S)
_QUOTED = r'"(?:[^"]|"")*"'
# An item of a list; a text with a comma of its own is in quotes.
_ITEM = re.compile(rf"(?:^|, )({_QUOTED}(?=, |$)|[^,]*(?:,(?! )[^,]*)*(?=, |$))")
_SPAN = re.compile(rf"({_QUOTED}|(?:(?! … ).)+) … ({_QUOTED}|(?:(?! … ).)+)")
_PERIOD = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}|[0-9]{4}-Q[1-4]|[0-9]{3}0s")


@dataclass(frozen=True, slots=True)
class Known:
    """A value that an attacker knows, read once: as text, as a number, and as a day where it is one."""

    text: str | None
    number: Fraction | None
    day: datetime.date | None
    whole: bool


Meaning: TypeAlias = Callable[[Known], bool]
"""Whether a label covers a value, among others."""


def covers(label: object, value: object, *, hierarchy: Hierarchy | None = None) -> bool:
    """Whether a label of a generalised table may cover this exact value.

    ```python
    covers("19***", "19456")        # True
    covers("[30, 40)", 40)          # False
    covers("30-40", 40)             # True: printed ranges do not say which end is left out
    ```

    Args:
        label: What the table shows; a value that was not generalised covers itself.
        value: What is known: text, a number, a day, a truth value, or None for a value that is missing.
        hierarchy: What the labels come from, for names that say nothing by themselves, such as those of a
            tree.
    """
    if hierarchy is not None:
        return text_of(label) in steps_of(value, hierarchy)
    told, exact = text_of(label), known(value)
    if told == exact.text:
        return True
    stands_for = None if told is None else meaning(told)
    return stands_for is not None and stands_for(exact)


def steps_of(value: object, hierarchy: Hierarchy) -> frozenset[str | None]:
    """All labels that a hierarchy has for a value."""
    return frozenset(hierarchy.labels([value], level)[0] for level in range(len(hierarchy.levels)))


def known(value: object) -> Known:
    """A value as labels are compared with it."""
    day = value.date() if isinstance(value, datetime.datetime) else value
    return Known(
        text_of(value),
        _exact(value),
        day if isinstance(day, datetime.date) else None,
        isinstance(value, int) and not isinstance(value, bool) and value >= 0,
    )


@lru_cache(maxsize=65_536)
def meaning(label: str) -> Meaning | None:
    """What a label covers besides itself; None if it covers nothing else."""
    if label == "*":
        return lambda _: True
    if match := _STARRED.fullmatch(label):
        return _prefix(match[1], len(label))
    if match := _INTERVAL.fullmatch(label):
        return _between(match[2], match[3], match[1] == "[", match[4] == "]")
    if label.startswith("{") and label.endswith("}"):
        inside = frozenset(_plain(item) for item in _ITEM.findall(label[1:-1]))
        bare = "" if '"' in label else f", {label[1:-1]}, "  # a list by another hand may have none
        return lambda value: value.text is not None and (value.text in inside or f", {value.text}, " in bare)
    if match := _SPAN.fullmatch(label):
        first, last = _plain(match[1]), _plain(match[2])
        return lambda value: value.text is not None and first <= value.text <= last
    if match := _SIDE.fullmatch(label):
        return _side(match[1], Fraction(match[2]))
    if match := _ABOVE.fullmatch(label):
        return _side(">=", Fraction(match[1]))
    ends = _RANGE.fullmatch(label)
    numbers = _between(ends[1], ends[2], True, True) if ends else None
    days = _period(label) if _PERIOD.fullmatch(label) else None
    if numbers is None or days is None:
        return numbers or days
    return lambda value: days(value) if value.day is not None else numbers(value)  # 2021-07


def _plain(item: str) -> str:
    """The text of a list's item, which is in double quotes where it would run into the next."""
    bare = item.strip()
    if len(bare) > 1 and bare.startswith('"') and bare.endswith('"'):
        return bare[1:-1].replace('""', '"')
    return bare


def _prefix(start: str, length: int) -> Meaning:
    def stands_for(value: Known) -> bool:
        if value.text is None:
            return False
        text = value.text.rjust(length, "0") if value.whole else value.text  # 2139 is the zip code 02139
        return text.startswith(start) and len(text) <= length

    return stands_for


def _between(low: str, high: str, has_low: bool, has_high: bool) -> Meaning:
    if _PLAIN.fullmatch(low) and _PLAIN.fullmatch(high):
        least, most = Fraction(low), Fraction(high)
        return lambda value: (
            value.number is not None
            and (least < value.number or (has_low and least == value.number))
            and (value.number < most or (has_high and most == value.number))
        )
    # Days and times are written so that their texts are in their order.
    return lambda value: (
        value.day is not None
        and value.text is not None
        and (low < value.text or (has_low and low == value.text))
        and (value.text < high or (has_high and high == value.text))
    )


def _side(sign: str, end: Fraction) -> Meaning:
    return lambda value: (
        value.number is not None
        and (
            (value.number == end and sign in ("<=", ">=", "≤", "≥"))
            or (value.number < end if sign in ("<", "<=", "≤") else value.number > end)
        )
    )


def _period(label: str) -> Meaning:
    def stands_for(value: Known) -> bool:
        day = value.day
        if day is None:
            return False
        if "Q" in label:
            return label == f"{day.year:04d}-Q{(day.month + 2) // 3}"
        return day.isoformat().startswith(label[:3] if label.endswith("s") else label)

    return stands_for


def _exact(value: object) -> Fraction | None:
    """The number that a value shows, also as text: 0.3 is 3/10."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float | Decimal):
        return Fraction(repr(value) if isinstance(value, float) else value) if math.isfinite(value) else None
    return Fraction(value) if isinstance(value, str) and _PLAIN.fullmatch(value) else None
