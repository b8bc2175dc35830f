"""What columns hold: types with bounds, which choose clamps and keys."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, as_fraction, show
from sfumato.numeric.moments import as_clock, as_moment
from sfumato.render import is_text
from sfumato.schema._assign import assign

__all__ = [
    "Bool",
    "ColumnType",
    "Date",
    "Enum",
    "Float",
    "Int",
    "Kind",
    "Text",
    "Time",
    "Timestamp",
    "column_from_dict",
]

Kind: TypeAlias = Literal["integer", "float", "boolean", "text", "date", "timestamp", "time"]

_EXACT = 2**53  # beyond, engines that compute in floats would round whole numbers


class ColumnType(ABC):
    """What a column holds. Bounds choose clamps and keys; no guarantee relies on the data keeping them."""

    __slots__ = ()
    kind: ClassVar[Kind]
    nullable: bool

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""


def _bounds(
    lower: Rational | None, upper: Rational | None, word: str
) -> tuple[Fraction | None, Fraction | None]:
    if (lower is None) != (upper is None):
        raise InvalidParameter(f"{word} takes both bounds or neither: {word}(0, 100) or {word}().")
    if lower is None or upper is None:
        return None, None
    low, high = as_fraction(lower, "the lower bound"), as_fraction(upper, "the upper bound")
    if low > high:
        raise InvalidParameter(f"{word}: the lower bound {show(low)} is above the upper bound {show(high)}.")
    if max(abs(low), abs(high)) > _EXACT:
        raise InvalidParameter(f"{word}: bounds beyond 2**53 are not supported; rescale the column.")
    return low, high


def _plain(exact: Fraction | None) -> Any:
    if exact is None:
        return None
    return exact.numerator if exact.denominator == 1 else str(exact)


@dataclass(frozen=True, slots=True, init=False)
class Int(ColumnType):
    """Whole numbers from `lower` to `upper` inclusive; without bounds they can be filtered on, not summed."""

    lower: int | None
    upper: int | None
    nullable: bool
    kind: ClassVar[Kind] = "integer"

    def __init__(self, lower: int | None = None, upper: int | None = None, *, nullable: bool = True) -> None:
        low, high = _bounds(lower, upper, "Int")
        if any(bound is not None and bound.denominator != 1 for bound in (low, high)):
            raise InvalidParameter("Int takes whole bounds; use Float for a column of fractions.")
        assign(self, lower=None if low is None else int(low), upper=None if high is None else int(high))
        assign(self, nullable=bool(nullable))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {"type": "int", "lower": self.lower, "upper": self.upper, "nullable": self.nullable}


@dataclass(frozen=True, slots=True, init=False)
class Float(ColumnType):
    """Numbers from `lower` to `upper` inclusive; without bounds they can be filtered on, not summed."""

    lower: Fraction | None
    upper: Fraction | None
    nullable: bool
    kind: ClassVar[Kind] = "float"

    def __init__(
        self, lower: Rational | None = None, upper: Rational | None = None, *, nullable: bool = True
    ) -> None:
        low, high = _bounds(lower, upper, "Float")
        assign(self, lower=low, upper=high, nullable=bool(nullable))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {
            "type": "float",
            "lower": _plain(self.lower),
            "upper": _plain(self.upper),
            "nullable": self.nullable,
        }


@dataclass(frozen=True, slots=True, init=False)
class Enum(ColumnType):
    """A public list of values, all text or all whole numbers: the keys that a GROUP BY reports."""

    values: tuple[str, ...] | tuple[int, ...]
    nullable: bool

    def __init__(self, *values: str | int, nullable: bool = True) -> None:
        if len(values) == 1 and isinstance(values[0], list | tuple):
            values = tuple(values[0])
        kinds = {type(value) for value in values}
        if not values or kinds not in ({str}, {int}):
            raise InvalidParameter('Enum takes its values, all text or all whole numbers: Enum("FR", "DE").')
        if len(set(values)) != len(values):
            raise InvalidParameter("Enum: a value is listed twice.")
        if not all(is_text(value) for value in values if isinstance(value, str)):
            raise InvalidParameter("Enum: a value holds half a character, which no text can hold.")
        if kinds == {int} and any(abs(int(value)) > _EXACT for value in values):
            raise InvalidParameter("Enum: whole numbers beyond 2**53 are not supported; use text.")
        assign(self, values=tuple(values), nullable=bool(nullable))

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        """Text or integer, as the values are."""
        return "text" if isinstance(self.values[0], str) else "integer"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {"type": "enum", "values": list(self.values), "nullable": self.nullable}


@dataclass(frozen=True, slots=True)
class Text(ColumnType):
    """Text with no public list of values: groups are those that a query lists, or that enough units share."""

    nullable: bool = field(default=True, kw_only=True)
    kind: ClassVar[Kind] = "text"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {"type": "text", "nullable": self.nullable}


@dataclass(frozen=True, slots=True)
class Bool(ColumnType):
    """Truth values."""

    nullable: bool = field(default=True, kw_only=True)
    kind: ClassVar[Kind] = "boolean"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {"type": "bool", "nullable": self.nullable}


@dataclass(frozen=True, slots=True, init=False)
class Date(ColumnType):
    """Days, from `start` to `end` inclusive; with bounds every day is a public group."""

    start: datetime.date | None
    end: datetime.date | None
    nullable: bool
    kind: ClassVar[Kind] = "date"

    def __init__(
        self,
        start: str | datetime.date | None = None,
        end: str | datetime.date | None = None,
        *,
        nullable: bool = True,
    ) -> None:
        if (start is None) != (end is None):
            raise InvalidParameter('Date takes both ends or neither: Date("2020-01-01", "2024-12-31").')
        first, last = _day(start), _day(end)
        if first is not None and last is not None and first > last:
            raise InvalidParameter("Date: the first day is after the last.")
        assign(self, start=first, end=last, nullable=bool(nullable))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {
            "type": "date",
            "start": None if self.start is None else self.start.isoformat(),
            "end": None if self.end is None else self.end.isoformat(),
            "nullable": self.nullable,
        }


def _day(value: str | datetime.date | None) -> datetime.date | None:
    if isinstance(value, datetime.datetime):
        return value.date()
    if value is None or isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidParameter('A day is written like "2020-01-31".') from None


@dataclass(frozen=True, slots=True, init=False)
class Timestamp(ColumnType):
    """Moments in whole seconds, from `start` to `end` inclusive; a day as the end means all of it.

    Parts of seconds are cut off. A source with a zone is read in UTC, one without as it is: never in the
    machine's zone. Whole numbers in a source are seconds since 1970-01-01.
    """

    start: datetime.datetime | None
    end: datetime.datetime | None
    nullable: bool
    kind: ClassVar[Kind] = "timestamp"

    def __init__(
        self,
        start: str | datetime.date | None = None,
        end: str | datetime.date | None = None,
        *,
        nullable: bool = True,
    ) -> None:
        if (start is None) != (end is None):
            raise InvalidParameter(
                'Timestamp takes both ends or neither: Timestamp("2024-01-01", "2024-12-31").'
            )
        first, last = _moment(start, last=False), _moment(end, last=True)
        if first is not None and last is not None and first > last:
            raise InvalidParameter("Timestamp: the start is after the end.")
        assign(self, start=first, end=last, nullable=bool(nullable))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        return {
            "type": "timestamp",
            "start": None if self.start is None else self.start.isoformat(),
            "end": None if self.end is None else self.end.isoformat(),
            "nullable": self.nullable,
        }


def _moment(value: str | datetime.date | None, *, last: bool) -> datetime.datetime | None:
    if value is None:
        return None
    try:
        return as_moment(value, last=last)
    except ValueError:
        raise InvalidParameter(
            'A timestamp is written like "2024-01-31" or "2024-01-31T08:30:00", in whole seconds.'
        ) from None


@dataclass(frozen=True, slots=True, init=False)
class Time(ColumnType):
    """Times of day in whole seconds, from `start` to `end` inclusive: the whole day unless they are given."""

    start: datetime.time
    end: datetime.time
    nullable: bool
    kind: ClassVar[Kind] = "time"

    def __init__(
        self,
        start: str | datetime.time | None = None,
        end: str | datetime.time | None = None,
        *,
        nullable: bool = True,
    ) -> None:
        if (start is None) != (end is None):
            raise InvalidParameter('Time takes both ends or neither: Time("08:00", "18:00").')
        try:
            first = as_clock("00:00" if start is None else start)
            last = as_clock("23:59:59" if end is None else end)
        except ValueError:
            raise InvalidParameter(
                'A time of day is written like "08:00" or "18:30:59", in whole seconds and without a zone.'
            ) from None
        if first > last:
            raise InvalidParameter("Time: the start is after the end; for a night declare the whole day.")
        assign(self, start=first, end=last, nullable=bool(nullable))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `column_from_dict` reads back."""
        start, end = self.start.isoformat(), self.end.isoformat()
        return {"type": "time", "start": start, "end": end, "nullable": self.nullable}


_TYPES: dict[str, type[ColumnType]] = {
    "int": Int,
    "float": Float,
    "enum": Enum,
    "text": Text,
    "bool": Bool,
    "date": Date,
    "timestamp": Timestamp,
    "time": Time,
}
_ARGUMENTS = {
    **dict.fromkeys(("int", "float"), ("lower", "upper")),
    **dict.fromkeys(("date", "timestamp", "time"), ("start", "end")),
}


def column_from_dict(data: Mapping[str, Any]) -> ColumnType:
    """The column type that `to_dict` wrote, or that a catalog holds.

    Raises:
        InvalidParameter: for an unknown type or unfitting fields.
    """
    word = data.get("type")
    if word not in _TYPES:
        raise InvalidParameter(f"A column's type is one of {', '.join(_TYPES)}, not {str(word)[:40]!r}.")
    positional = (
        tuple(data.get("values", ()))
        if word == "enum"
        else tuple(data.get(name) for name in _ARGUMENTS.get(word, ()))
    )
    known = {"type", "nullable", "values" if word == "enum" else "", *_ARGUMENTS.get(word, ())}
    if unknown := sorted(set(data) - known):
        raise InvalidParameter(f"A column of type {word} has no setting {unknown[0]!r}.")
    make: Any = _TYPES[word]
    return make(*positional, nullable=data.get("nullable", True))  # type: ignore[no-any-return]
