"""Cells of a column of Python objects, each read by itself: as text, or as an id that tells its own type.

The type of such a column is whatever its cells are. Were it inferred from all of them, one odd cell could
change how every other is read, or keep a whole session from opening.
"""

from __future__ import annotations

import datetime
import decimal
import math
import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["ids_of", "texts_of"]

_MOST_BITS = 4096  # of a whole number, more than any declared kind can hold
_EXACT = 2**53
_TIMES = np.datetime64 | np.timedelta64  # in nanoseconds, `item` makes whole numbers of them


def texts_of(cells: Iterable[Any]) -> list[str | None]:
    """The cells as text, from which the declared kind is read; None for what has no text."""
    return [_text(_plain(cell)) for cell in cells]


def ids_of(cells: Iterable[Any]) -> list[bytes | None]:
    """The cells as ids; None for what is not an id.

    Privacy:
        Claim: two cells give the same bytes only if they are equal and of one sort: numbers that are the same
        number, or texts, days, times, bytes or UUIDs alike. 7 and "7" are two ids. Reason: the first byte is
        the sort, and the rest is a form of the value from which it can be read back: times have all digits of
        their seconds, and a year of any length. A float from 2**53 on may mean several whole numbers and
        is not an id; neither are NaN, spans of time, nor objects of other types.
    """
    return [_id(_plain(cell)) for cell in cells]


def _plain(cell: Any) -> Any:
    """A scalar of NumPy as Python's own, but for times, which Python may not have; others as they are."""
    is_number = isinstance(cell, np.generic) and not isinstance(cell, str | bytes | float | _TIMES)
    try:
        return cell.item() if is_number else cell
    except Exception:  # an odd cell has no value; its text may hold data
        return None


def _text(cell: Any) -> str | None:
    if isinstance(cell, str):
        return _valid(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int):
        return _digits(cell)
    if isinstance(cell, float):
        return None if math.isnan(cell) else float.__repr__(cell)
    if isinstance(cell, decimal.Decimal):
        return decimal.Decimal.__str__(cell) if cell.is_finite() else None
    if isinstance(cell, uuid.UUID):
        return str(uuid.UUID(int=cell.int))
    if isinstance(cell, datetime.time):  # with a zone it is no time of day
        return datetime.time.isoformat(cell) if cell.tzinfo is None else None
    return _moment(cell)


def _id(cell: Any) -> bytes | None:
    if isinstance(cell, str):
        return b"text " + str.encode(cell, "utf-8", "surrogatepass")
    if isinstance(cell, bytes):
        return b"bytes " + bytes.__getitem__(cell, slice(None))
    if isinstance(cell, bool):
        return b"truth 1" if cell else b"truth 0"
    if isinstance(cell, int):
        return _number(int.__index__(cell))
    if isinstance(cell, float):
        if not cell.is_integer():
            return f"float {float.__repr__(cell)}".encode() if math.isfinite(cell) else None
        return _number(int(cell)) if abs(cell) < _EXACT else None
    if isinstance(cell, decimal.Decimal):
        return _decimal(cell)
    if isinstance(cell, uuid.UUID):
        return b"uuid " + cell.bytes
    moment = _moment(cell)
    return None if moment is None else f"time {moment}".encode()


def _number(value: int) -> bytes | None:
    digits = _digits(value)
    return None if digits is None else f"number {digits}".encode()


def _decimal(value: decimal.Decimal) -> bytes | None:
    """Whole ones are numbers like any other; 1.50 and 1.5 are one."""
    if not value.is_finite() or value.adjusted() > 1000:
        return None
    if value == value.to_integral_value():
        return _number(int(value))
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    short = text.rstrip("0")
    return f"decimal {sign} {short.lstrip('0')} {int(exponent) + len(text) - len(short)}".encode()


def _digits(value: int) -> str | None:
    """The decimal digits; Python refuses to write very long numbers, and no kind can hold them."""
    return int.__repr__(value) if int.bit_length(value) <= _MOST_BITS else None


def _valid(text: str) -> str | None:
    """The text unless it has no form in UTF-8."""
    try:
        str.encode(text, "utf-8")
    except UnicodeEncodeError:
        return None
    return str.__str__(text)


def _moment(cell: Any) -> str | None:
    """A day or a time as it is written in ISO 8601, in UTC where it has a zone; None for anything else."""
    try:
        if isinstance(cell, np.datetime64):
            return _numpy_moment(cell)
        if isinstance(cell, datetime.datetime):
            if cell != cell:
                return None
            moment = cell if cell.tzinfo is None else cell.astimezone(datetime.UTC)
            if hasattr(moment, "nanosecond"):  # of pandas, which has more digits and longer years
                return str(moment.isoformat(" "))
            return datetime.datetime.isoformat(moment, " ")
        return datetime.date.isoformat(cell) if isinstance(cell, datetime.date) else None
    except Exception:  # a day that its zone moves out of the calendar
        return None


def _numpy_moment(cell: np.datetime64) -> str | None:
    """As Python and pandas write the same time: microseconds or nanoseconds where there are any."""
    plain = cell.item()
    if plain is None or isinstance(plain, datetime.date):
        return _moment(plain)
    day, _, clock = str(np.datetime_as_string(cell)).partition("T")
    whole, _, part = clock.partition(".")
    digits = part.rstrip("0")
    if digits:
        whole += "." + digits.ljust(6 if len(digits) <= 6 else 9, "0")
    return f"{day} {whole}" if clock else day
