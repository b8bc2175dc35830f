"""From a form to a `Choice`: what a table offers to pick, by what is declared of it, and what was picked.

Columns and listed values are named by their places, since names may hold whatever a form would change.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence

from sfumato._dataclasses import dataclass
from sfumato.errors import QueryRefused
from sfumato.numeric.moments import as_clock, as_moment
from sfumato.plan.expressions.size import check_text
from sfumato.render import key
from sfumato.schema import Bool, ColumnType, Date, Enum, Float, Int, PrivateTable, Text, Time, Timestamp
from sfumato.server.page.ask.wording import (
    LENGTHS,
    OPERATORS,
    STATISTICS,
    Choice,
    Condition,
    Constant,
    Figure,
    Group,
    Number,
)
from sfumato.server.page.forms import place_in

__all__ = ["Offer", "Picked", "Unfinished", "picked"]

FIGURES, GROUPS, CONDITIONS = 3, 3, 6
"""How many of each a form has, at most."""
_MANY, _LONGEST = 400, 10_000
_DIGITS = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_WHOLE = re.compile(r"-?[0-9]{1,15}")
_ORDERED = ("eq", "ne", "lt", "le", "ge", "gt")
_GAPS = ("missing", "present")
_PLAIN = ("true", "false", *_GAPS)


class Unfinished(Exception):
    """Something is still to be chosen, or cannot be used as it was typed: in one sentence."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be picked of a table.

    Attributes:
        table: Which.
        columns: Its columns, in the order of their places.
    """

    table: PrivateTable
    columns: tuple[tuple[str, ColumnType], ...]

    @classmethod
    def of(cls, table: PrivateTable) -> Offer:
        """All that is declared of a table."""
        return cls(table, tuple(table.schema.items()))

    @property
    def statistics(self) -> list[tuple[str, str]]:
        """What can be computed, by key and in words."""
        unit = self.table.unit
        people = not unit.is_row and not unit.is_via
        numbers = bool(self.numbers)
        counts = {"rows": True, "people": people}
        return [(name, words[0]) for name, words in STATISTICS.items() if counts.get(name, numbers)]

    @property
    def numbers(self) -> list[tuple[int, str, bool]]:
        """The columns that can be added up: place, name, and whether bounds are declared."""
        return [
            (place, name, kind.lower is not None)
            for place, (name, kind) in enumerate(self.columns)
            if isinstance(kind, Int | Float)
        ]

    @property
    def groups(self) -> list[tuple[str, str]]:
        """What it can be split by: place and stretch, and in words."""
        return [
            (f"{place}:{length}", f"{name}, by {length}" if length else name)
            for place, (name, kind) in enumerate(self.columns)
            for length in _lengths(kind)
        ]

    def operators(self, place: int) -> list[tuple[str, str]]:
        """What a column can be held against, by key and in words."""
        kind = self.columns[place][1]
        keys: tuple[str, ...] = _ORDERED
        if isinstance(kind, Bool):
            keys = ("true", "false")
        elif isinstance(kind, Enum):
            keys = ("eq", "ne")
        elif isinstance(kind, Text):
            keys = ("eq", "ne", "starts", "contains")
        return [(name, OPERATORS[name][0]) for name in (*keys, *(_GAPS if kind.nullable else ()))]

    def values(self, place: int) -> list[str] | None:
        """The declared values of a column; None: what it is held against is typed."""
        kind = self.columns[place][1]
        return [key(value) for value in kind.values] if isinstance(kind, Enum) else None

    def typed(self, place: int) -> dict[str, str]:
        """The kind of field in which a value is typed, and its declared ends."""
        kind = self.columns[place][1]
        match kind:
            case Int() | Float():
                ends = {"min": kind.lower, "max": kind.upper} if kind.lower is not None else {}
                said = {name: str(end) for name, end in ends.items() if "/" not in str(end)}
                return {"type": "number", "step": "1" if isinstance(kind, Int) else "any", **said}
            case Date():
                days = {"min": kind.start, "max": kind.end} if kind.start is not None else {}
                return {"type": "date", **{name: str(day) for name, day in days.items()}}
            case Timestamp():
                return {"type": "datetime-local", "step": "1"}
            case Time():
                return {"type": "time", "step": "1"}
        return {"type": "text"}


def _lengths(kind: ColumnType) -> Sequence[str]:
    """By which stretches a column can be split into groups that are public; "" is the column itself."""
    match kind:
        case Enum() | Bool():
            return ("",)
        case Int(lower=int(low), upper=int(high)) if high - low < _MANY:
            return ("",)
        case Date(start=datetime.date()):
            return (*LENGTHS[:4], "") if _days(kind) <= 10 * _MANY else LENGTHS[:3]
        case Timestamp(start=datetime.datetime()):
            return LENGTHS[:5]
    return ()


def _days(kind: Date) -> int:
    assert kind.start is not None
    assert kind.end is not None
    return (kind.end - kind.start).days


@dataclass(frozen=True, slots=True)
class Picked:
    """What a form says, as it says it: for the form that is shown next, and for the question.

    Attributes:
        offer: What there is to pick.
        figures: For each its statistic, the place of its column, and its limits, as text.
        groups: For each a key of `Offer.groups`.
        conditions: For each the place of its column, its operator and its value, as text.
        order: A place in the answer and a direction, as text.
        limit: A number, as text.
    """

    offer: Offer
    figures: tuple[tuple[str, str, str, str], ...]
    groups: tuple[str, ...]
    conditions: tuple[tuple[str, str, str], ...]
    order: str
    limit: str

    @property
    def names(self) -> list[str]:
        """What the columns of the answer are called, also while something is still to be chosen."""
        columns = {str(place): name for place, name, _ in self.offer.numbers}
        figures = tuple(Figure(statistic, columns.get(place, "…")) for statistic, place, *_ in self.figures)
        groups = tuple(dict.fromkeys(map(self._group, self.groups)))
        return Choice(self.offer.table, figures, groups).names

    def choice(self) -> Choice:
        """The question.

        Raises:
            Unfinished: where something is missing or cannot be used.
        """
        groups = tuple(dict.fromkeys(map(self._group, self.groups)))
        return Choice(
            table=self.offer.table,
            figures=tuple(self._figure(*figure) for figure in self.figures),
            groups=groups,
            conditions=tuple(self._condition(*condition) for condition in self.conditions),
            order=self._order(len(groups) + len(self.figures)) if groups else None,
            limit=self._limit() if groups else None,
        )

    def _figure(self, statistic: str, place: str, low: str, high: str) -> Figure:
        if statistic in ("rows", "people"):
            return Figure(statistic)
        numbers = {str(at): (name, bounded) for at, name, bounded in self.offer.numbers}
        words = STATISTICS[statistic][0]
        if place not in numbers:
            raise Unfinished(f"Choose a column for the {words.removesuffix(' of')}.")
        name, bounded = numbers[place]
        if not low and not high:
            if bounded:
                return Figure(statistic, name)
            raise Unfinished(f"{name} has no declared bounds: say between which numbers its values are held.")
        ends = _number(low, name), _number(high, name)
        if float(ends[0].text) > float(ends[1].text):
            raise Unfinished(f"The limits of {name} are the wrong way round.")
        return Figure(statistic, name, ends)

    def _group(self, group: str) -> Group:
        place, _, length = group.partition(":")
        return Group(self.offer.columns[int(place)][0], length)

    def _condition(self, place: str, operator: str, value: str) -> Condition:
        name, kind = self.offer.columns[int(place)]
        if operator not in dict(self.offer.operators(int(place))):
            raise Unfinished(f"Choose what {name} is held against.")
        if operator in _PLAIN:
            return Condition(name, operator)
        if value == "":
            raise Unfinished(f"Give a value for the filter on {name}.")
        return Condition(name, operator, _constant(kind, value, name))

    def _order(self, many: int) -> tuple[int, bool] | None:
        said, _, way = self.order.partition(":")
        place = place_in(said, many)
        return None if place is None else (place, way == "down")

    def _limit(self) -> int | None:
        if not self.limit:
            return None
        limit = place_in(self.limit, 10**6)
        if not limit:
            raise Unfinished("How many lines to keep is a whole number above 0, below a million.")
        return limit


def _number(text: str, name: str, form: re.Pattern[str] = _DIGITS) -> Number:
    if form.fullmatch(text) is None:
        whole = "whole number" if form is _WHOLE else "number"
        raise Unfinished(f"{name} takes a {whole}, such as 42.")
    return Number(text)


def _constant(kind: ColumnType, text: str, name: str) -> Constant:
    """What was typed or picked, as a value of a column's type."""
    try:
        match kind:
            case Enum():
                place = place_in(text, len(kind.values))
                if place is None:
                    raise Unfinished(f"Choose a value for the filter on {name}.")
                listed = kind.values[place]
                return listed if isinstance(listed, str) else Number(str(listed))
            case Int():
                return _number(text, name, _WHOLE)
            case Float():
                return _number(text, name)
            case Date():
                return datetime.date.fromisoformat(text)
            case Timestamp():
                return as_moment(text)
            case Time():
                return as_clock(text)
        check_text(text[: _LONGEST + 1])
    except (ValueError, QueryRefused):
        raise Unfinished(f"This value of {name} cannot be used: choose another.") from None
    return text


def picked(offer: Offer, sent: Mapping[str, str]) -> Picked:
    """What a form says; whatever is not offered counts as not picked."""
    statistics, groups = dict(offer.statistics), dict(offer.groups)

    def told(word: str, most: int) -> Iterator[tuple[int, str]]:
        return ((at, sent.get(f"{word}{at}", "")) for at in range(most))

    figures = [
        (name, *(sent.get(f"{word}{at}", "").strip() for word in ("of", "low", "high")))
        for at, name in told("what", FIGURES)
        if name in statistics
    ]
    conditions = [
        (str(place), sent.get(f"is{at}") or offer.operators(place)[0][0], sent.get(f"value{at}", ""))
        for at, said in told("where", CONDITIONS)
        if (place := place_in(said, len(offer.columns))) is not None
    ]
    return Picked(
        offer,
        tuple(figures) or (("rows", "", "", ""),),  # type: ignore[arg-type]
        tuple(group for _, group in told("by", GROUPS) if group in groups),
        tuple(conditions),
        sent.get("order", ""),
        sent.get("limit", "").strip(),
    )
