"""The steps of a series: which values of a key they are, and when each of them is over."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.moments import DAY, as_moment
from sfumato.numeric.zones import UTC, Offsets, zone_of
from sfumato.plan.expressions.facts import Facts, facts_of
from sfumato.plan.expressions.tree import Call, Column, Expression, columns_of
from sfumato.plan.expressions.written import written
from sfumato.plan.questions.reads import columns_read
from sfumato.plan.questions.sources import Source

__all__ = [
    "EVERY",
    "Calendar",
    "Value",
    "calendar_from",
    "calendar_of",
    "every_of",
    "meets",
    "refuse_zone",
    "zone_of",
]

Value: TypeAlias = datetime.date | datetime.datetime | int

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
_PER_DAY = {"minute": 1440, "hour": 24, "day": 1}
EVERY = (*_SECONDS, *_MONTHS)
"""How long steps can be."""

_CALL_IT = "Group by a date, by DATE_TRUNC('month', date), or by a whole number that counts steps."


@dataclass(frozen=True, slots=True)
class Calendar:
    """Steps of time, one after the other.

    Attributes:
        start: The value of the key in the first of them.
        every: How long each is: "day", "month", …; or "number", where the key counts them itself.
        zone: The time zone in which a step ends.
    """

    start: Value
    every: str
    zone: str = "UTC"

    def value(self, step: int) -> Value:
        """The key of a step, counted from 0.

        Raises:
            InvalidParameter: beyond the year 9999.
        """
        if isinstance(self.start, int):
            return self.start + step
        try:
            if self.every in _MONTHS:
                months = self.start.year * 12 + self.start.month - 1 + step * _MONTHS[self.every]
                return self.start.replace(year=months // 12, month=months % 12 + 1)
            return self.start + datetime.timedelta(seconds=step * _SECONDS[self.every])
        except (ValueError, OverflowError):
            raise InvalidParameter(
                "The steps would go on beyond the year 9999: begin earlier, or shorten the horizon."
            ) from None

    def step_of(self, value: Value | str) -> int:
        """The step of a value that is one, or of a date or timestamp as text; −1 before the first.

        Raises:
            InvalidParameter: for a value that no step has.
        """
        first, named = self.start, f"A step is named by its key, such as {self.spoken(0)}."
        if isinstance(first, int):
            if not isinstance(value, int) or isinstance(value, bool):
                raise InvalidParameter(named)
            return max(value - first, -1)
        try:
            moment, begin = _moment(value), _moment(first)
        except (ValueError, TypeError):
            raise InvalidParameter(named) from None
        if self.every in _MONTHS:
            months = (moment.year - begin.year) * 12 + moment.month - begin.month
            step = months // _MONTHS[self.every]
        else:
            step = int((moment - begin).total_seconds() // _SECONDS[self.every])
        if step >= 0 and _moment(self.value(step)) != moment:
            raise InvalidParameter(
                f"No step begins there; the steps begin with {self.spoken(0)}, {self.spoken(1)}, …"
            )
        return max(step, -1)

    def closed(self, now: datetime.datetime) -> int:
        """How many steps are over at a moment, which has a time zone.

        Raises:
            InvalidParameter: for a moment at the end of all calendars.
        """
        assert not isinstance(self.start, int)
        try:
            local = now.astimezone(zone_of(self.zone)).replace(tzinfo=None)
        except OverflowError:
            raise InvalidParameter(
                f"now lies beyond the years 1 to 9999 in {self.zone}; nothing was read or spent. Set "
                "the clock."
            ) from None
        least, most = 0, 1
        while self._begun(most, local):
            least, most = most, most * 2
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if self._begun(middle, local) else (least, middle)
        return least

    def _begun(self, step: int, local: datetime.datetime) -> bool:
        """Whether a step has begun by a local clock; one beyond the year 9999 never does."""
        try:
            return _moment(self.value(step)) <= local
        except InvalidParameter:
            return False

    def spoken(self, step: int) -> str:
        """A step's key as text."""
        return str(self.value(step))


_LONGEST = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}  # days
_CYCLE = 146_097  # days of 400 years, after which dates, and days of the week with them, come again


@functools.lru_cache(maxsize=256)
def meets(window: str | int, every: str, offsets: Offsets | None = None) -> int:
    """In how many steps a window of time can have moments, at most.

    Args:
        window: How long windows are.
        every: How long steps are.
        offsets: How far the clocks by which windows end are ahead of those by which steps do; None: both end
            by the same.

    Privacy:
        A moment t is in the window of days d1..d2 if t plus its offset is, so that all of them lie from
        d1 less the greatest to the end of d2 less the least of those offsets that one window can have
        (`Offsets.within`). Steps that meet this stretch are counted: for every window of 400 years, after
        which the calendar begins anew; for a number of days, from each day of them.
    """
    days = window if isinstance(window, int) else _LONGEST[window]
    reaches = {(0, 0)} if offsets is None else offsets.within(days)
    if every in _PER_DAY and every != "day":
        size = _SECONDS[every]
        return max((days * DAY - least - 1) // size - -most // size + 1 for least, most in reaches)
    first, last = _windows(window)
    shifts = {(-most // DAY, (-least - 1) // DAY + 1) for least, most in reaches}
    return max(
        int((_steps(last + after, every) - _steps(first + before, every)).max()) + 1
        for before, after in shifts
    )


def _windows(window: str | int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last day of all windows of 400 years, as days since 1970-01-01."""
    days = np.arange(_CYCLE + 400)  # a year more, since the last window is left out
    if isinstance(window, int):
        return days, days + window - 1
    begin = days[np.diff(_steps(days, window), prepend=-1) != 0]
    return begin[:-1], begin[1:] - 1


def _steps(days: NDArray[np.int64], every: str) -> NDArray[np.int64]:
    """The number of the step that a day is in."""
    if every in _MONTHS:
        return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) // _MONTHS[every]
    return days if every == "day" else (days + 3) // 7  # 1970-01-01 was a Thursday


def every_of(expression: Expression, columns: Mapping[str, Facts]) -> str | None:
    """How long the steps of a key are; None: it is not time."""
    kind = facts_of(expression, columns).kind
    if kind == "integer":
        return "number" if isinstance(expression, Column) else None
    if kind not in ("date", "timestamp"):
        return None
    if isinstance(expression, Call) and expression.function.startswith("trunc_"):
        every = expression.function.removeprefix("trunc_")
        return every if every in EVERY else None
    return "day" if kind == "date" and len(set(columns_of(expression))) == 1 else None


def calendar_of(expression: Expression, columns: Mapping[str, Facts], start: object, zone: str) -> Calendar:
    """The steps of a key from a value on.

    Raises:
        QueryRefused: if the key is no time.
        InvalidParameter: for a start at which no step begins, or an unknown time zone.
    """
    every = every_of(expression, columns)
    if every is None:
        raise QueryRefused(f"{written(expression)} does not say in which step of time a row is.", _CALL_IT)
    zone_of(zone)
    if every == "number":
        if not isinstance(start, int) or isinstance(start, bool):
            raise InvalidParameter("start is the whole number of the first step: start=1.")
        return Calendar(start, every, zone)
    return calendar_from(start, every, zone, dates=facts_of(expression, columns).kind == "date")


def refuse_zone(
    zone: str, source: Source, expressions: Iterable[Expression], tables: Mapping[str, Any]
) -> None:
    """Refuse steps of timestamps that would end by other clocks than those that the timestamps are of.

    A date is the day of some place, and `zone` says of which. Timestamps are in UTC, and so are the hours and
    days that are made of them: by a clock east of it they would be published while rows still come.

    Args:
        zone: Where steps are said to end.
        source: The rows.
        expressions: What says in which step a row is, over the source's columns.
        tables: By their names.

    Raises:
        InvalidParameter: if a timestamp is among it, and the zone is not UTC.
    """
    if zone == UTC:
        return
    names = {name for expression in expressions for name in columns_of(expression)}
    for table, name in sorted(columns_read(source, names)):
        schema = tables[table].schema
        if name in schema and schema[name].kind == "timestamp":
            raise InvalidParameter(
                f"{name} is a timestamp, and timestamps are in UTC, so that steps made of it end there and "
                f"not in {zone}; nothing was spent. Leave zone out, or use a column that is declared a date."
            )


def calendar_from(start: object, every: str, zone: str, *, dates: bool) -> Calendar:
    """The steps of one length from a moment on.

    Args:
        start: Where the first of them begins.
        every: How long each is: one of `EVERY`.
        zone: The time zone in which a step ends.
        dates: Whether a step is named by its first day, and not by its first second.

    Raises:
        InvalidParameter: for a start at which no step begins, or an unknown time zone.
    """
    zone_of(zone)
    moment = _read(start)
    whole: dict[str, datetime.datetime] = {
        "minute": moment.replace(second=0),
        "hour": moment.replace(minute=0, second=0),
        "day": _day(moment),
        "week": _day(moment) - datetime.timedelta(days=moment.weekday()),
        "month": _day(moment).replace(day=1),
        "quarter": _day(moment).replace(day=1, month=(moment.month - 1) // 3 * 3 + 1),
        "year": _day(moment).replace(day=1, month=1),
    }
    if moment != whole[every]:
        raise InvalidParameter(f"start is not the beginning of a {every}: begin with {whole[every]}.")
    return Calendar(moment.date() if dates else moment, every, zone)


def _read(start: object) -> datetime.datetime:
    try:
        return as_moment(start)
    except (ValueError, TypeError):
        raise InvalidParameter('start is the date of the first step: start="2026-01-01".') from None


def _day(moment: datetime.datetime) -> datetime.datetime:
    return moment.replace(hour=0, minute=0, second=0)


def _moment(value: Any) -> datetime.datetime:
    return as_moment(value)
