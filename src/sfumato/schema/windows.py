"""`Windows`: windows of time one after the other, by their places in a calendar that anyone knows."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from functools import reduce
from typing import TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter

__all__ = ["Each", "Windows", "hull_of", "span_of", "window_at"]

Each: TypeAlias = str | int
"""How long each window is: "day", "week", "month", "quarter", "year", or a number of days."""

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows from one to another, both of them included.

    Attributes:
        each: How long each is.
        first: The place of the first one: quarters, say, are counted from the year 0, days from 1970-01-01.
        last: The place of the last one.

    Raises:
        InvalidParameter: if the last is before the first, or they reach beyond the years 1 to 9998.
    """

    each: Each
    first: int
    last: int

    def __post_init__(self) -> None:
        """Refuse what no receipt can name."""
        if any(not isinstance(place, int) or isinstance(place, bool) for place in (self.first, self.last)):
            raise InvalidParameter("The places of windows are whole numbers: Windows.named(each, name).")
        if isinstance(self.each, str) and self.each not in _MONTHS | _DAYS:
            raise InvalidParameter("each is one of day, week, month, quarter, year, or a number of days.")
        if self.last < self.first:
            raise InvalidParameter("The first window is after the last: give them in the order of time.")
        self.days()

    @classmethod
    def of_days(cls, each: Each, begin: datetime.date, end: datetime.date) -> Windows:
        """The windows that the days from `begin` to `end` are in.

        Raises:
            InvalidParameter: if they reach beyond the years 1 to 9999.
        """
        return cls(each, window_at(each, begin), window_at(each, end))

    @classmethod
    def named(cls, each: Each, name: object) -> Windows:
        """One window by its name, such as `2026-03`, or by any of its days.

        Raises:
            InvalidParameter: if it is the name of none.
        """
        example = cls(each, *2 * (window_at(each, datetime.date(2026, 3, 2)),))
        wrong = f"window names one {span_of(each)}, such as {example} or one of its days."
        if isinstance(name, datetime.date):
            return cls.of_days(each, name, name)
        if not isinstance(name, str):
            raise InvalidParameter(wrong)
        try:
            place = _read(each, name)
        except ValueError:
            raise InvalidParameter(wrong) from None
        return cls(each, place, place)

    @classmethod
    def read(cls, each: Each, names: object) -> Windows:
        """The windows that `names` wrote.

        Raises:
            ValueError: if they are not such.
        """
        if not isinstance(names, list | tuple) or len(names) != 2:
            raise ValueError("two names are needed")
        first, last = (_read(each, name) for name in names)
        if last < first:
            raise ValueError("the first window is after the last")
        return cls(each, first, last)

    @property
    def names(self) -> list[str]:
        """The first and the last by name, which `read` reads back."""
        return [_name(self.each, self.first), _name(self.each, self.last)]

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    def days(self) -> tuple[datetime.date, datetime.date]:
        """The first day of the first window and the last day of the last one.

        Raises:
            InvalidParameter: beyond the years 1 to 9999.
        """
        try:
            after = _first_day(self.each, self.last + 1).toordinal()
            return _first_day(self.each, self.first), datetime.date.fromordinal(after - 1)
        except (ValueError, OverflowError):
            raise InvalidParameter("Windows of time lie within the years 1 to 9998.") from None

    def begins(self) -> tuple[datetime.date, datetime.date]:
        """The first days of the first and of the last window."""
        return _first_day(self.each, self.first), _first_day(self.each, self.last)

    def with_(self, other: Windows) -> Windows:
        """All windows from the first of both to the last of both."""
        return Windows(self.each, min(self.first, other.first), max(self.last, other.last))

    def __str__(self) -> str:
        """Such as `2026-03`, or `2026-03 to 2026-05`."""
        first, last = self.names
        return first if self.count == 1 else f"{first} to {last}"


def hull_of(several: Iterable[Windows | None]) -> Windows | None:
    """All windows from the first of several to the last; None where there are none."""
    listed = [windows for windows in several if windows is not None]
    return None if not listed else reduce(Windows.with_, listed)


def span_of(each: Each) -> str:
    """How long a window is, in words: `month`, `30 days`."""
    return f"{each} days" if isinstance(each, int) else each


def window_at(each: Each, day: datetime.date) -> int:
    """The place of the window that a day is in."""
    if isinstance(each, str) and each in _MONTHS:
        return (day.year * 12 + day.month - 1) // _MONTHS[each]
    return _since(each, day.toordinal()) // _length(each)


def _length(each: Each) -> int:
    return each if isinstance(each, int) else _DAYS[each]


def _since(each: Each, ordinal: int) -> int:
    """Days since the first day of window 0; weeks begin on Mondays, and 1970-01-01 was a Thursday."""
    return ordinal - _EPOCH + (3 if each == "week" else 0)


def _first_day(each: Each, place: int) -> datetime.date:
    if isinstance(each, str) and each in _MONTHS:
        months = place * _MONTHS[each]
        return datetime.date(months // 12, months % 12 + 1, 1)
    return datetime.date.fromordinal(place * _length(each) - _since(each, 0))


def _name(each: Each, place: int) -> str:
    first = _first_day(each, place)
    match each:
        case "year":
            return f"{first.year:04d}"
        case "quarter":
            return f"{first.year:04d}-Q{(first.month + 2) // 3}"
        case "month":
            return f"{first.year:04d}-{first.month:02d}"
    return first.isoformat()


def _read(each: Each, name: object) -> int:
    """The place of a window by its name or one of its days.

    Raises:
        ValueError: if it is neither.
    """
    if not isinstance(name, str):
        raise ValueError("no name")
    if each == "quarter" and (quarter := _QUARTER.fullmatch(name)):
        day = datetime.date(int(quarter[1]), 3 * int(quarter[2]) - 2, 1)
    elif each in ("month", "year") and len(name) < len("2026-03-01"):
        filled = f"{name}-01-01" if each == "year" else f"{name}-01"
        day = datetime.date.fromisoformat(filled)
    else:
        day = datetime.date.fromisoformat(name)
    place = window_at(each, day)
    try:
        Windows(each, place, place)
    except InvalidParameter:
        raise ValueError("beyond all calendars") from None
    return place
