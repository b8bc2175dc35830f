"""Units in windows of time: which window a row is in, and what may not be put together then."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Mapping
from typing import Any

from sfumato.errors import QueryRefused
from sfumato.numeric.moments import moment_at
from sfumato.numeric.zones import UTC, Offsets, offsets_of
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal
from sfumato.plan.questions.relations import looks_up
from sfumato.plan.questions.sources import Source, tables_of
from sfumato.schema import Kind, PrivacyUnit, PrivateTable

__all__ = ["AHEAD", "check_windows", "is_shifted", "is_time_of", "offset_of", "window_of"]

AHEAD = "sfumato ahead"
"""The column in which rows have the offset of their unit's zone, where windows end by it."""

_FIRST = datetime.date(1970, 1, 1)


def is_shifted(unit: PrivacyUnit, kind: Kind) -> bool:
    """Whether windows end by a zone's clocks, and not by those of the column: dates are days of the zone."""
    return unit.window is not None and unit.zone != UTC and kind == "timestamp"


def offset_of(unit: PrivacyUnit) -> Expression:
    """How many seconds the clocks of the unit's zone are ahead of UTC at the time of a row.

    Privacy:
        A fixed function of the row's own time, written out in the statement: no engine's tables of zones
        decide, so that a row is in one window on every engine and at each reading. The offsets are on record
        with the unit, and others are refused (`session.attaching.declaration_of`).
    """
    return _chosen(Column(str(unit.time)), offsets_of(unit.zone))


def _chosen(time: Expression, offsets: Offsets) -> Expression:
    """The offset at a time, in two steps: few comparisons lead to one of many."""
    changes, ahead = offsets.changes, offsets.ahead
    many = math.isqrt(len(changes)) + 1
    parts = list[Expression]()
    for begin in range(0, len(ahead), many):
        end = begin + many
        some = _listed(time, Offsets(changes[begin : end - 1], ahead[begin:end]))
        parts += [some] if end >= len(ahead) else [_before(time, changes[end - 1]), some]
    return parts[0] if len(parts) == 1 else call("case", *parts)


def _listed(time: Expression, offsets: Offsets) -> Expression:
    parts = [
        (_before(time, at), literal(ahead)) for at, ahead in zip(offsets.changes, offsets.ahead, strict=False)
    ]
    last = literal(offsets.ahead[-1])
    return call("case", *itertools.chain.from_iterable(parts), last) if parts else last


def _before(time: Expression, seconds: int) -> Expression:
    return call("less", time, literal(moment_at(seconds)))


def _day_of(unit: PrivacyUnit, kind: Kind) -> Expression:
    """The day of a row: in its unit's zone, if it has a timestamp."""
    time: Expression = Column(str(unit.time))
    if is_shifted(unit, kind):
        time = call("add_seconds", time, Column(AHEAD))
    return time if kind == "date" else call("timestamp_to_date", time)


def window_of(unit: PrivacyUnit, kind: Kind) -> Expression:
    """The first day of the window that a row is in, or the window's number; NULL where a row has no time.

    Privacy:
        It follows from the row's own time alone, by the statement: when a row came does not matter. Where
        `is_shifted`, the rows have `offset_of` as their column `AHEAD`.
    """
    assert unit.window is not None
    assert unit.time is not None
    day = _day_of(unit, kind)
    if isinstance(unit.window, int):
        since = call("days_between", day, literal(_FIRST))
        return call("floor", call("divide", since, literal(unit.window)))
    if unit.window == "day":
        return _within_calendars(day) if kind == "date" else day
    return call(f"trunc_{unit.window}", day)


def _within_calendars(day: Expression) -> Expression:
    """A day of the years 1 to 9999, else NULL: the beginnings of all longer windows are so by themselves."""
    first, last = literal(datetime.date.min), literal(datetime.date.max)
    known = call("and", call("greater_equal", day, first), call("less_equal", day, last))
    return call("case", known, day, literal(None))


def is_time_of(unit: PrivacyUnit, expression: Expression) -> bool:
    """Whether an expression is the time that decides windows, or the beginning of a step that it is in.

    Of a beginning of another one it is not: a month in which a week begins may be the one before.
    """
    if isinstance(expression, Call) and expression.function.startswith("trunc_"):
        (expression,) = expression.arguments
    if isinstance(expression, Call) and expression.function == "timestamp_to_date":
        (expression,) = expression.arguments
    return unit.window is not None and expression == Column(str(unit.time))


def check_windows(source: Source, tables: Mapping[str, Any]) -> None:
    """Refuse to put rows of one person together where each window of theirs is a unit by itself.

    Raises:
        QueryRefused: with what would work.
    """
    for name in tables_of(source):
        table = tables[name]
        if isinstance(table, PrivateTable) and table.unit.window is not None and not looks_up(source):
            raise QueryRefused(
                f"{table.name} protects {table.unit} by itself, so that rows of several windows cannot "
                "be put together: no figures of each person, and no joins of private rows.",
                "Ask about its rows, also joined with public tables.",
            )
