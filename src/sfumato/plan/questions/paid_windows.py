"""Which windows of time a question reads rows of, by the dates that it names.

Nothing in privacy rests on what is found here: it decides in which windows a question is paid, and the
statement reads rows of these alone (`sql.write.sources.in_paid_windows`). What is declared about the column
is not used: a row beyond its bounds would not be counted then, although its date is one that was asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.moments import DAY
from sfumato.numeric.zones import Offsets, offsets_of
from sfumato.plan.expressions.comparisons import FLIPPED, NEGATED
from sfumato.plan.expressions.facts import facts_of
from sfumato.plan.expressions.ranges import FIRST_DAY, LAST_DAY, Facts, day_of, days_of
from sfumato.plan.expressions.tree import Call, Column, Expression, names_of
from sfumato.plan.questions.sources import Joined, Public, Scan, Source, tables_of
from sfumato.plan.questions.windowing import is_shifted
from sfumato.schema import PrivateTable, Windows
from sfumato.schema.windows import Each, span_of, window_at

__all__ = ["windows_between", "windows_read"]

Range: TypeAlias = tuple[float, float]
"""The first and the last of some dates or timestamps, as `Facts` counts them; infinite where none is."""

_EVER: Range = (-math.inf, math.inf)
_NEVER: Range = (math.inf, -math.inf)
_UNITS = ("week", "month", "quarter", "year")
_WITHIN_A_DAY = {"minute": 60, "hour": 3600, "day": DAY}


def windows_read(
    each: Each, source: Source, predicate: Expression | None, tables: Mapping[str, Any]
) -> Windows:
    """The windows from the first to the last time that a condition leaves.

    Args:
        each: How long windows are.
        source: Where the rows come from.
        predicate: What they must satisfy.
        tables: The tables by name.

    Raises:
        QueryRefused: if the condition leaves times without end, with one that would do.
    """
    (begin, end), times = _left_of(source, predicate, tables)
    private = tables[tables_of(source)[0]]
    if math.isfinite(begin) and math.isfinite(end):
        try:
            return windows_between(each, private, int(begin), int(max(begin, end)))
        except (InvalidParameter, ValueError, OverflowError):
            pass  # beyond all calendars
    which, time = span_of(each) if isinstance(each, int) else f"{each}s", next(iter(times), "day")
    raise QueryRefused(
        f"The budget is for each {span_of(each)}, and the question does not say of which {which} it reads "
        "rows; nothing was spent.",
        f"Name the first and the last day: WHERE {time} >= DATE '2026-03-01' AND {time} < DATE '2026-04-01'.",
    )


def windows_between(each: Each, table: PrivateTable, begin: int, end: int) -> Windows:
    """The windows that rows are in whose time lies between two, as `Facts` counts dates or timestamps.

    Raises:
        InvalidParameter, ValueError or OverflowError: beyond the years 1 to 9999.
    """
    unit = table.unit
    kind = table.schema[str(unit.time)].kind
    if kind == "date":
        return Windows.of_days(each, day_of(begin), day_of(end))
    first, last = [begin], [end]
    offsets = offsets_of(unit.zone) if is_shifted(unit, kind) else Offsets((), (0,))
    # Where clocks are set back, a later time may be on an earlier day.
    first += [at for at in offsets.changes if begin < at <= min(begin + DAY, end)]
    last += [at - 1 for at in offsets.changes if max(end - DAY, begin) < at <= end]
    days = [[(at + offsets.at(at)) // DAY for at in some] for some in (first, last)]
    return Windows.of_days(each, day_of(min(days[0])), day_of(max(days[1])))


def _left_of(
    source: Source | Public, predicate: Expression | None, tables: Mapping[str, Any]
) -> tuple[Range, dict[str, bool]]:
    """The times of rows that satisfy a condition, and the columns that have them: whether as timestamps."""
    if isinstance(source, Scan):
        table = tables[source.table]
        time = table.unit.time
        times = {} if time is None else {time: table.schema[time].kind == "timestamp"}
        left = _EVER
    elif isinstance(source, Joined):
        left, inner = _left_of(source.left.source, source.left.predicate, tables)
        named = [(name, value.name) for name, value in source.left.columns if isinstance(value, Column)]
        times = {name: inner[value] for name, value in named if value in inner}
    else:
        return _EVER, {}
    return (left if predicate is None else _both([left, _left(predicate, times, True)])), times


def _left(predicate: Expression, times: Mapping[str, bool], holds: bool) -> Range:
    """The times of rows for which a condition is true, or false; all where it says nothing of them."""
    if not isinstance(predicate, Call):
        return _EVER
    arguments = predicate.arguments
    match predicate.function:
        case "not":
            return _left(arguments[0], times, not holds)
        case "and" | "or" as word:
            parts = [_left(argument, times, holds) for argument in arguments]
            return _both(parts) if (word == "and") == holds else _either(parts)
        case "in" if holds:
            return _either(_compared("equal", arguments[0], value, times) for value in arguments[1:])
        case word if word in FLIPPED:
            word = word if holds else NEGATED[word]
            left, right = arguments
            either_way = [(word, left, right), (FLIPPED[word], right, left)]
            return _both([_compared(*each, times) for each in either_way])
    return _EVER


def _both(parts: Iterable[Range]) -> Range:
    listed = list(parts)
    return max(begin for begin, _ in listed), min(end for _, end in listed)


def _either(parts: Iterable[Range]) -> Range:
    listed = [part for part in parts if part[0] <= part[1]] or [_NEVER]
    return min(begin for begin, _ in listed), max(end for _, end in listed)


def _compared(word: str, left: Expression, right: Expression, times: Mapping[str, bool]) -> Range:
    """The times of rows of which something about them compares so with a constant."""
    if word == "not_equal" or names_of(right):
        return _EVER
    other: Facts = facts_of(right, {})
    low, high = other.low, other.high
    if word in ("less", "less_equal"):
        low = -math.inf
        high = math.ceil(high) - 1 if word == "less" and high < math.inf else high
    elif word in ("greater", "greater_equal"):
        high = math.inf
        low = math.floor(low) + 1 if word == "greater" and low > -math.inf else low
    return _between(left, float(low), float(high), times)


def _between(value: Expression, low: float, high: float, times: Mapping[str, bool]) -> Range:
    """The times of rows of which this lies between two places, as `Facts` counts them."""
    if isinstance(value, Column):
        return (low, high) if value.name in times else _EVER
    if not isinstance(value, Call) or len(value.arguments) != 1:
        return _EVER
    (inner,), function = value.arguments, value.function
    unit = function.removeprefix("trunc_")
    if isinstance(inner, Column) and times.get(inner.name):  # a timestamp
        if function == "timestamp_to_date":
            return low * DAY, high * DAY + DAY - 1
        within = _WITHIN_A_DAY.get(unit) if function.startswith("trunc_") else None
        return _EVER if within is None else (low, high + within - 1)
    if function == "year":
        return _between(inner, _year(low, "first"), _year(high, "last"), times)
    if function.startswith("trunc_") and unit in _UNITS:
        return _between(inner, low, _last(unit, high), times)
    return _EVER


def _year(place: float, which: Literal["first", "last"]) -> float:
    """The first day of a year, or the last one."""
    at = math.ceil(place) if which == "first" and math.isfinite(place) else place
    if not 1 <= at <= 9998:
        return -math.inf if which == "first" else math.inf
    days = Windows("year", math.floor(at), math.floor(at)).days()
    return float(days_of(days[0] if which == "first" else days[1]))


def _last(unit: str, place: float) -> float:
    """The last day of the step that a day is in."""
    if not FIRST_DAY <= place <= LAST_DAY - 366:
        return math.inf
    at = window_at(unit, day_of(math.floor(place)))
    return float(days_of(Windows(unit, at, at).days()[1]))
