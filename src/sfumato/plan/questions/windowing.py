"""Units in windows of time: which window a row is in, and what may not be put together then."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.tree import Call, Column, Expression, call, literal
from sfumato.plan.questions.relations import looks_up
from sfumato.plan.questions.sources import Source, tables_of
from sfumato.schema import Kind, PrivacyUnit, PrivateTable

__all__ = ["check_windows", "day_of", "is_time_of", "window_of"]

_FIRST = datetime.date(1970, 1, 1)


def day_of(time: str, kind: Kind) -> Expression:
    """The day that a column of dates or timestamps names, in UTC."""
    return Column(time) if kind == "date" else call("timestamp_to_date", Column(time))


def window_of(unit: PrivacyUnit, kind: Kind) -> Expression:
    """The first day of the window that a row is in, or the window's number; NULL where a row has no time.

    Privacy:
        It follows from the row's own time alone, by the statement: when a row came does not matter.
    """
    assert unit.window is not None
    assert unit.time is not None
    day = day_of(unit.time, kind)
    if isinstance(unit.window, int):
        since = call("days_between", day, literal(_FIRST))
        return call("floor", call("divide", since, literal(unit.window)))
    return day if unit.window == "day" else call(f"trunc_{unit.window}", day)


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
