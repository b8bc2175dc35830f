"""Timestamps and times of day as whole seconds: since 1970-01-01 in UTC, and since midnight.

Every engine computes with the numbers, and Python shows `datetime.datetime` and `datetime.time`. The years
are 1 to 9999. What says a zone is taken to UTC, and what says none stays as it is: no machine's zone enters.
"""

from __future__ import annotations

import datetime

__all__ = ["DAY", "FIRST", "LAST", "as_clock", "as_moment", "clock_at", "moment_at", "seconds_of"]

DAY = 86_400
"""Seconds of a day: leap seconds are not counted, as no engine counts them."""

_EPOCH = datetime.datetime(1970, 1, 1)
_SECOND = datetime.timedelta(seconds=1)


def seconds_of(value: datetime.datetime | datetime.time) -> int:
    """Seconds since 1970-01-01 of a moment, since midnight of a time of day; both are whole seconds."""
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // _SECOND
    return value.hour * 3600 + value.minute * 60 + value.second


def moment_at(seconds: int) -> datetime.datetime:
    """The moment so many seconds after 1970-01-01."""
    return _EPOCH + seconds * _SECOND


def clock_at(seconds: int) -> datetime.time:
    """The time of day so many seconds after midnight."""
    return datetime.time(seconds // 3600, seconds // 60 % 60, seconds % 60)


FIRST = seconds_of(datetime.datetime.min)
LAST = seconds_of(datetime.datetime.max.replace(microsecond=0))


def as_moment(value: object, *, last: bool = False) -> datetime.datetime:
    """A moment in whole seconds, in UTC if the value has a zone.

    Args:
        value: A datetime, a date, or either as text.
        last: Whether a day means its last second, as the end of a range does; else its first.

    Raises:
        ValueError: for anything else, and for fractions of seconds.
    """
    at = _END if last else datetime.time()
    if isinstance(value, str):
        try:
            return datetime.datetime.combine(datetime.date.fromisoformat(value), at)
        except ValueError:
            value = datetime.datetime.fromisoformat(value)
    if isinstance(value, datetime.datetime):
        return _whole(value)
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, at)
    raise ValueError("no moment")


_END = datetime.time(23, 59, 59)


def _whole(value: datetime.datetime) -> datetime.datetime:
    if value != value or value.microsecond or getattr(value, "nanosecond", 0):
        raise ValueError("no whole second")
    try:
        plain = value if value.tzinfo is None else value.astimezone(datetime.UTC)
    except OverflowError:
        raise ValueError("beyond the calendar") from None
    return datetime.datetime(plain.year, plain.month, plain.day, plain.hour, plain.minute, plain.second)


def as_clock(value: object) -> datetime.time:
    """A time of day in whole seconds, from a time or its text.

    Raises:
        ValueError: for anything else, for fractions of seconds and for a time with a zone.
    """
    clock = datetime.time.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(clock, datetime.time) or clock.microsecond or clock.tzinfo is not None:
        raise ValueError("no time of day")
    return datetime.time(clock.hour, clock.minute, clock.second)
