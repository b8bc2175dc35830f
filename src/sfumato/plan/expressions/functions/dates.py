"""Functions of dates. Dates are taken from the years 1 to 9999; what lies beyond is NULL."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions.arithmetic import Bound, plus
from sfumato.plan.expressions.functions.base import Array, Function, Vector, need, refused
from sfumato.plan.expressions.ranges import FIRST_DAY, LAST_DAY, Facts, day_of, days_of, number
from sfumato.plan.expressions.tree import Call, Expression, Literal, literal

__all__ = ["DATES"]

_DAY = "CAST({0} AS DATE)"  # it is one already, but for a bare NULL
_ENDS = "CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE)"
_WITHIN = f"CASE WHEN {{0}} BETWEEN {_ENDS} THEN {{0}} END"  # the guard of a date that may be any
_MANY_DAYS, _MANY_MONTHS, _MOST_LISTED = 9_999_999, 120_000, 10_000
_FIRST, _LAST = np.datetime64("0001-01-01", "D"), np.datetime64("9999-12-31", "D")


def _held(result: str) -> str:
    """The template of a date that is NULL beyond the years 1 to 9999."""
    return _WITHIN.replace("{0}", result)


def _bounded(facts: Facts) -> bool:
    return facts.lower is not None and facts.upper is not None


def _ends(facts: Facts) -> tuple[datetime.date, datetime.date] | None:
    if facts.lower is None or facts.upper is None:
        return None
    return day_of(facts.lower), day_of(facts.upper)


def _each(operation: Callable[..., Any], dtype: Any) -> Callable[..., Vector]:
    """What computes day by day; beyond the years 1 to 9999 it is NULL."""

    def compute(*vectors: Vector) -> Vector:
        valid = np.logical_and.reduce([vector.valid & _years(vector.values) for vector in vectors])
        values: Array = np.zeros(len(valid), dtype=dtype)
        for i in np.flatnonzero(valid):
            row = (vector.values[i] for vector in vectors)
            values[i] = operation(
                *(day.astype(object) if isinstance(day, np.datetime64) else day for day in row)
            )
        return Vector(values, valid & _years(values))

    return compute


def _plain(value: Any) -> Any:
    return value.astype(object) if isinstance(value, np.datetime64) else value


def _years(values: Array) -> Array:
    if values.dtype.kind != "M":
        return np.ones(len(values), dtype=bool)
    return np.asarray((values >= _FIRST) & (values <= _LAST))


def _field(
    name: str, part: str, take: Callable[[datetime.date], int], bounds: tuple[int, int] | None, *nodes: str
) -> Function:
    def rule(facts: Facts) -> Facts:
        need(name.upper(), ("date",), facts)
        ends = _ends(facts)
        low, high = (Fraction(bound) for bound in bounds) if bounds else (-float("inf"), float("inf"))
        if ends is not None and (bounds is None or (name in _YEARLY and ends[0].year == ends[1].year)):
            low, high = Fraction(take(ends[0])), Fraction(take(ends[1]))
        return number("integer", low, high, nullable=facts.nullable or ends is None)

    return Function(
        name,
        (1, 1),
        rule,
        f"DATE_PART('{part}', {_DAY})",
        _each(take, np.float64),
        dict.fromkeys(nodes, ("this",)),
        guard=_WITHIN,
        guards=(0,),
        doc=f"The {part} of a date.",
    )


_YEARLY = {"month", "quarter", "dayofyear"}  # these grow within a year


def _trunc_year(day: datetime.date) -> datetime.date:
    return day.replace(month=1, day=1)


def _trunc_quarter(day: datetime.date) -> datetime.date:
    return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)


def _trunc_month(day: datetime.date) -> datetime.date:
    return day.replace(day=1)


def _trunc_week(day: datetime.date) -> datetime.date:
    return day - datetime.timedelta(days=day.weekday())


def _start(name: str, unit: str, truncate: Callable[[datetime.date], datetime.date]) -> Function:
    def rule(facts: Facts) -> Facts:
        need(name.upper(), ("date",), facts)
        ends = _ends(facts)
        if ends is None:
            return Facts("date", True)
        first, last = truncate(ends[0]), truncate(ends[1])
        if unit == "week":
            return Facts("date", facts.nullable, days_of(first), days_of(last), Fraction(7))
        values: list[datetime.date] | None = [last]
        while (
            values is not None and values[-1] > first
        ):  # backwards: the day before a start is in the part before
            values.append(truncate(values[-1] - datetime.timedelta(days=1)))
            values = values if len(values) <= _MOST_LISTED else None
        listed = None if values is None else tuple(reversed(values))
        return Facts("date", facts.nullable, days_of(first), days_of(last), Fraction(1), listed)

    sql = f"CAST(DATE_TRUNC('{unit}', {_DAY}) AS DATE)"
    doc = f"The first day of the {unit} of a date."
    compute = _each(truncate, "datetime64[D]")
    return Function(name, (1, 1), rule, sql, compute, guard=_WITHIN, guards=(0,), guarded=True, doc=doc)


def _moved(name: str, sign: int) -> Function:
    def rule(date: Facts, days: Facts) -> Facts:
        need(name.upper(), ("date",), date)
        if days.kind not in ("integer", None):
            raise refused(name, "a whole number of days", days)
        low, high = (days.low, days.high) if sign > 0 else (-days.high, -days.low)
        low, high = plus(date.low, low), plus(date.high, high)
        sure = _bounded(date) and days.low >= -_MANY_DAYS and days.high <= _MANY_DAYS
        return _dated(low, high, date.nullable or days.nullable or not sure)

    operator = "+" if sign > 0 else "-"
    days = f"CAST(TRY_CAST({{1}} AS DECIMAL({len(str(_MANY_DAYS))}, 0)) AS INTEGER)"  # NULL if there are more
    sql = _held(f"{_DAY} {operator} {days}")

    def compute(date: Vector, days: Vector) -> Vector:
        small = np.abs(days.values) <= _MANY_DAYS
        count = np.rint(np.where(small, days.values, 0)).astype("timedelta64[D]")
        moved = date.values.astype("datetime64[D]") + sign * count
        return Vector(moved, date.valid & days.valid & small & _years(date.values) & _years(moved))

    return Function(
        name,
        (2, 2),
        rule,
        sql,
        compute,
        guard=_WITHIN,
        guards=(0,),
        guarded=True,
        normal=_folded(sign),
        doc="The date so many days later or earlier.",
    )


def _folded(sign: int) -> Callable[[tuple[Expression, ...]], tuple[Expression, ...]]:
    """Days after days as one number of days: d + 1 + 1 is d + 2."""

    def normal(arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
        date, more = arguments
        if not isinstance(date, Call) or date.function not in _SIGNS or len(date.arguments) != 2:
            return arguments
        counts = [_count(term) for term in (date.arguments[1], more)]
        if counts[0] is None or counts[1] is None:
            return arguments
        days = sign * _SIGNS[date.function] * counts[0] + counts[1]
        return (date.arguments[0], literal(days)) if abs(days) <= _MANY_DAYS else arguments

    return normal


def _count(days: Expression) -> int | None:
    return days.value if isinstance(days, Literal) and type(days.value) is int else None


_SIGNS = {"add_days": 1, "subtract_days": -1}


def _dated(low: Bound, high: Bound, nullable: bool) -> Facts:
    if low > LAST_DAY or high < FIRST_DAY:
        return Facts("date", True)
    sure = low >= FIRST_DAY and high <= LAST_DAY
    return Facts("date", nullable or not sure, max(FIRST_DAY, low), min(LAST_DAY, high), Fraction(1))  # type: ignore[arg-type]


def _later(day: datetime.date, months: float) -> Any:
    # In datetime64, since the result may lie beyond the years of Python's dates.
    month = np.datetime64(day, "M") + int(months)
    last = (month + 1).astype("datetime64[D]") - 1
    return min(month.astype("datetime64[D]") + (day.day - 1), last)


def _add_months(date: Facts, months: Facts) -> Facts:
    need("ADD_MONTHS", ("date",), date)
    if months.kind != "integer" or not isinstance(months.single, int) or abs(months.single) > _MANY_MONTHS:
        raise QueryRefused(f"An interval takes a constant number of months, up to {_MANY_MONTHS}.")
    ends = _ends(date)
    if ends is None:
        return Facts("date", True)
    epoch = np.datetime64("1970-01-01", "D")
    low, high = (Fraction(int((_later(end, months.single) - epoch).astype(int))) for end in ends)
    return _dated(low, high, date.nullable)


def _days_between(first: Facts, second: Facts) -> Facts:
    need("DAYS_BETWEEN", ("date",), first, second)
    nullable = first.nullable or second.nullable or not (_bounded(first) and _bounded(second))
    return number("integer", plus(first.low, -second.high), plus(first.high, -second.low), nullable=nullable)


def _compute_between(first: Vector, second: Vector) -> Vector:
    valid = first.valid & second.valid & _years(first.values) & _years(second.values)
    days = first.values.astype("datetime64[D]") - second.values.astype("datetime64[D]")
    return Vector(days.astype(np.float64), valid)


def _day_of_year(day: datetime.date) -> int:
    return day.timetuple().tm_yday


DATES: tuple[Function, ...] = (
    _field("year", "year", lambda day: day.year, None, "Year"),
    _field("quarter", "quarter", lambda day: (day.month + 2) // 3, (1, 4), "Quarter"),
    _field("month", "month", lambda day: day.month, (1, 12), "Month"),
    _field("day", "day", lambda day: day.day, (1, 31), "Day", "DayOfMonth"),
    _field("dayofweek", "dow", lambda day: day.isoweekday() % 7, (0, 6), "DayOfWeek"),
    _field("isodow", "isodow", lambda day: day.isoweekday(), (1, 7), "DayOfWeekIso"),
    _field("dayofyear", "doy", _day_of_year, (1, 366), "DayOfYear"),
    _field("week", "week", lambda day: day.isocalendar().week, (1, 53), "Week", "WeekOfYear"),
    _start("trunc_year", "year", _trunc_year),
    _start("trunc_quarter", "quarter", _trunc_quarter),
    _start("trunc_month", "month", _trunc_month),
    _start("trunc_week", "week", _trunc_week),
    _moved("add_days", 1),
    _moved("subtract_days", -1),
    Function(
        "add_months",
        (2, 2),
        _add_months,
        _held(f"CAST({_DAY} + TO_MONTHS(CAST({{1}} AS INTEGER)) AS DATE)"),
        _each(_later, "datetime64[D]"),
        literals=(1,),
        guard=_WITHIN,
        guards=(0,),
        guarded=True,
        doc="The date so many months later, or the last day of that month if it is shorter.",
    ),
    Function(
        "days_between",
        (2, 2),
        _days_between,
        f"{_DAY} - {_DAY.replace('{0}', '{1}')}",
        _compute_between,
        guard=_WITHIN,
        guards=(0, 1),
        doc="How many days the first date is after the second.",
    ),
)
