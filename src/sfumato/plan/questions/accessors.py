"""`col("day").dt` and `col("city").str`: functions of dates and texts under Polars' names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.plan.expressions.names import nearest, no_method

if TYPE_CHECKING:
    from sfumato.plan.questions.terms import Col

__all__ = ["Dates", "Texts"]

_STARTS: Final = {
    **dict.fromkeys(("year", "1y"), "trunc_year"),
    **dict.fromkeys(("quarter", "1q"), "trunc_quarter"),
    **dict.fromkeys(("month", "1mo"), "trunc_month"),
    **dict.fromkeys(("week", "1w"), "trunc_week"),
    **dict.fromkeys(("day", "1d"), "trunc_day"),
    **dict.fromkeys(("hour", "1h"), "trunc_hour"),
    **dict.fromkeys(("minute", "1m"), "trunc_minute"),
}
_DATE_HABITS: Final = {
    "strftime": 'Write .dt.truncate("month"), or .dt.year() and .dt.month().',
    "to_period": 'Write .dt.truncate("month").',
    "floor": 'Write .dt.truncate("month").',
    "dayofweek": "Write .dt.weekday(), 1 for Monday to 7 for Sunday.",
    "dayofyear": "Write .dt.ordinal_day().",
    "normalize": "Write .dt.date().",
}
_TEXT_HABITS: Final = {
    "lower": "Write .str.to_lowercase().",
    "upper": "Write .str.to_uppercase().",
    "len": "Write .str.len_chars().",
    "strip": "Write .str.strip_chars().",
    "startswith": "Write .str.starts_with(text).",
    "endswith": "Write .str.ends_with(text).",
    "replace": "Write .str.replace_all(old, new).",
}


@dataclass(frozen=True, slots=True)
class Dates:
    """What can be made of dates, timestamps and times of day."""

    _column: Col

    def year(self) -> Col:
        """The year."""
        return self._column.apply("year")

    def quarter(self) -> Col:
        """The quarter, 1 to 4."""
        return self._column.apply("quarter")

    def month(self) -> Col:
        """The month, 1 to 12."""
        return self._column.apply("month")

    def week(self) -> Col:
        """The ISO week, 1 to 53."""
        return self._column.apply("week")

    def day(self) -> Col:
        """The day of the month, 1 to 31."""
        return self._column.apply("day")

    def weekday(self) -> Col:
        """The day of the week, 1 for Monday to 7 for Sunday."""
        return self._column.apply("isodow")

    def ordinal_day(self) -> Col:
        """The day of the year, 1 to 366."""
        return self._column.apply("dayofyear")

    def hour(self) -> Col:
        """The hour, 0 to 23, of a timestamp or a time of day."""
        return self._column.apply("hour")

    def minute(self) -> Col:
        """The minute, 0 to 59."""
        return self._column.apply("minute")

    def second(self) -> Col:
        """The second, 0 to 59."""
        return self._column.apply("second")

    def date(self) -> Col:
        """The day of a timestamp."""
        return self._column.apply("to_date")

    def time(self) -> Col:
        """The time of day of a timestamp."""
        return self._column.apply("to_time")

    def truncate(self, every: str) -> Col:
        """The first day of its year, quarter, month or week: `truncate("month")`, or "1mo" as Polars has it.

        Of a timestamp also its day, and the first second of its hour or minute.

        Raises:
            InvalidParameter: for any other length.
        """
        if every not in _STARTS:
            fix = nearest(
                str(every), ["year", "quarter", "month", "week", "day", "hour", "minute"], "Lengths"
            )
            raise InvalidParameter(f"truncate has no {str(every)[:40]!r}. {fix}")
        return self._column.apply(_STARTS[every])

    def offset_by(self, *, days: int = 0, months: int = 0, seconds: int = 0) -> Col:
        """The date or timestamp so many months, then days, later; earlier where they are below 0.

        Of a timestamp also so many seconds.
        """
        moved = self._column.apply("add_months", months) if months else self._column
        moved = moved.apply("add_days", days) if days else moved
        return moved.apply("add_seconds", seconds) if seconds else moved

    def __getattr__(self, name: str) -> Col:
        raise no_method(self, ".dt", name, _DATE_HABITS)


@dataclass(frozen=True, slots=True)
class Texts:
    """What can be made of texts."""

    _column: Col

    def to_lowercase(self) -> Col:
        """In small letters."""
        return self._column.apply("lower")

    def to_uppercase(self) -> Col:
        """In capital letters."""
        return self._column.apply("upper")

    def len_chars(self) -> Col:
        """How many characters it has."""
        return self._column.apply("length")

    def starts_with(self, text: str) -> Col:
        """Whether it begins with this text."""
        return self._column.apply("starts_with", text)

    def ends_with(self, text: str) -> Col:
        """Whether it ends with this text."""
        return self._column.apply("ends_with", text)

    def contains(self, text: str) -> Col:
        """Whether this very text occurs in it."""
        return self._column.apply("contains", text)

    def like(self, pattern: str) -> Col:
        """Whether it fits a pattern of SQL: % is any text, _ any character."""
        return self._column.apply("like", pattern)

    def ilike(self, pattern: str) -> Col:
        """The same, small and capital letters alike."""
        return self._column.apply("ilike", pattern)

    def slice(self, offset: int, length: int | None = None) -> Col:
        """The characters from a place on, counted from 0, at most so many."""
        places = (offset + 1,) if length is None else (offset + 1, length)
        return self._column.apply("substring", *places)

    def head(self, n: int) -> Col:
        """The first characters."""
        return self._column.apply("left", n)

    def tail(self, n: int) -> Col:
        """The last characters."""
        return self._column.apply("right", n)

    def strip_chars(self, characters: str | None = None) -> Col:
        """Without spaces at the ends, or without these characters."""
        return self._stripped("trim", characters)

    def strip_chars_start(self, characters: str | None = None) -> Col:
        """The same at the beginning."""
        return self._stripped("ltrim", characters)

    def strip_chars_end(self, characters: str | None = None) -> Col:
        """The same at the end."""
        return self._stripped("rtrim", characters)

    def replace_all(self, old: str, new: str) -> Col:
        """With one text in place of every other, which must not be shorter."""
        return self._column.apply("replace", old, new)

    def _stripped(self, function: str, characters: str | None) -> Col:
        return self._column.apply(function, *(() if characters is None else (characters,)))

    def __getattr__(self, name: str) -> Col:
        raise no_method(self, ".str", name, _TEXT_HABITS)
