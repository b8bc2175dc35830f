"""One text for one id, whatever type a source has it in: 7, 7.0 and 7.00 are one person."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

__all__ = ["naming"]

_NUMBERS = re.compile(
    r"u?(tiny|small|big|huge)?int(eger)?\d*|int\d+|uint\d+|byte|short|long|float\d*|double( precision)?|real"
    r"|decimal\d*|numeric|bignum|varint"
)
_TIMES = re.compile(r"timestamp|datetime")
_MIDNIGHT = re.compile(r"[ T]00:00:00(\.0+)?([+-]00(:?00)?|Z)?$")


def naming(type_name: str, *, in_windows: bool) -> Callable[[str], str]:
    """How the text of an id becomes its name.

    Args:
        type_name: The type of the column of ids, as the engine calls it.
        in_windows: Whether the text has the window of the unit before the id, and a colon.

    Privacy:
        Ids of one type that differ have names that differ: a number is written without an exponent and
        without zeros behind its last digit, which is one text for one number; of a timestamp at midnight its
        day; text stays as it is. And one id has one name in each state of a table, where its column becomes
        another type of numbers, or days become timestamps, or numbers text: one row without an id makes
        floats of the whole numbers of a data frame.
    """
    plain = re.split(r"[(<\[]", type_name.strip('"').lower())[0].strip()
    if _NUMBERS.fullmatch(plain):
        name = _number
    elif _TIMES.match(plain):
        name = _day
    else:
        return str
    return (lambda text: _behind(text, name)) if in_windows else name


def _behind(text: str, name: Callable[[str], str]) -> str:
    window, _, rest = text.partition(":")
    return f"{window}:{name(rest)}"


def _number(text: str) -> str:
    if text.isdecimal() and text[0] != "0":
        return text
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    if not value.is_finite():
        return text
    if not value:
        return "0"
    whole = format(value, "f")
    return whole.rstrip("0").rstrip(".") if "." in whole else whole


def _day(text: str) -> str:
    return _MIDNIGHT.sub("", text)
