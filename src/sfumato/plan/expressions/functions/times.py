"""Functions of timestamps and times of day, which engines hold as whole seconds (`numeric.moments`).

They are arithmetic in doubles, exact up to 2**53, so that they mean the same in every engine. Timestamps are
of the years 1 to 9999 wherever they come from; what would leave them is NULL. A date becomes the first second
of its day where it meets a timestamp, and functions of dates take the day of a timestamp
(`as_dates_and_times`).
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.numeric.moments import DAY, FIRST, LAST, as_clock, as_moment
from sfumato.plan.expressions.functions.arithmetic import Bound, plus
from sfumato.plan.expressions.functions.base import Array, Function, Vector, need, refused, strict
from sfumato.plan.expressions.ranges import Facts, number
from sfumato.plan.expressions.tree import Expression, Literal, call, literal
from sfumato.schema import Kind

__all__ = ["TIMES", "as_dates_and_times"]

_X = "CAST({0} AS DOUBLE)"
_BOTH: tuple[Kind, ...] = ("timestamp", "time")
_DECLARE = "Declare the column as Timestamp to keep its hours."
_OF_DATES = {"year", "quarter", "month", "day", "dayofweek", "isodow", "dayofyear", "week"} | {
    *("trunc_year", "trunc_quarter", "trunc_month", "trunc_week")
}
_MEETING = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "in"} | {
    *("is_distinct", "is_not_distinct", "nullif")
}
_CHOOSING = {"case", "coalesce", "greatest", "least"}
_APART = {"seconds_between", "minutes_between", "hours_between"}


def _floor(bound: Bound, size: int) -> Bound:
    return bound if isinstance(bound, float) else Fraction(math.floor(bound / size))


def _needs(name: str, *facts: Facts) -> None:
    for one in facts:
        if one.kind not in (*_BOTH, None):
            raise refused(name, "a timestamp or a time of day", one, _DECLARE if one.kind == "date" else "")


def _field(name: str, size: int, around: int) -> Function:
    """A part of the clock: how many whole `size` there are since the last whole `around`."""

    def rule(facts: Facts) -> Facts:
        _needs(name, facts)
        low, high = Fraction(0), Fraction(around // size - 1)
        if facts.lower is not None and facts.upper is not None:
            first, last = math.floor(facts.lower / around), math.floor(facts.upper / around)
            if first == last:
                low, high = (Fraction(math.floor(end % around / size)) for end in (facts.lower, facts.upper))
        return number("integer", low, high, nullable=facts.nullable)

    left = f"{_X} - FLOOR({_X} / {around}e0) * {around}e0"
    return Function(
        name,
        (1, 1),
        rule,
        f"FLOOR(({left}) / {size}e0)",
        _over_seconds(lambda x: np.floor(np.mod(x, around) / size)),
        {name.capitalize(): ("this",)},
        doc=f"The {name} of a timestamp or a time of day.",
    )


def _start(name: str, size: int) -> Function:
    def rule(facts: Facts) -> Facts:
        _needs(f"DATE_TRUNC to {name}", facts)
        kind = facts.kind or "timestamp"
        if facts.lower is None or facts.upper is None:
            return Facts(kind, facts.nullable)
        low, high = (Fraction(math.floor(end / size) * size) for end in (facts.lower, facts.upper))
        return Facts(kind, facts.nullable, low, high, Fraction(size))

    def compute(vector: Vector) -> Vector:
        whole = (_seconds(vector.values) // size * size).astype(np.int64)
        return Vector(whole.astype(vector.values.dtype), vector.valid)

    sql = f"CAST(FLOOR({_X} / {size}e0) * {size}e0 AS BIGINT)"
    doc = f"The first second of the {name} of a timestamp or a time of day."
    return Function(f"trunc_{name}", (1, 1), rule, sql, compute, listed=False, doc=doc)


def _between(name: str, size: int) -> Function:
    def rule(first: Facts, second: Facts) -> Facts:
        _needs(f"DATE_DIFF in {name}", first, second)
        if None not in (first.kind, second.kind) and first.kind != second.kind:
            raise QueryRefused("A timestamp and a time of day have no difference.", "Take two of one kind.")
        low = plus(_floor(first.low, size), -_floor(second.high, size))
        high = plus(_floor(first.high, size), -_floor(second.low, size))
        return number("integer", low, high, nullable=first.nullable or second.nullable)

    def compute(first: Vector, second: Vector) -> Vector:
        apart = np.floor(_seconds(first.values) / size) - np.floor(_seconds(second.values) / size)
        return Vector(apart, first.valid & second.valid)

    other = _X.replace("{0}", "{1}")
    sql = f"{_X} - {other}" if size == 1 else f"FLOOR({_X} / {size}e0) - FLOOR({other} / {size}e0)"
    doc = f"How many ends of {name} lie between the second and the first: DATE_DIFF."
    return Function(f"{name}_between", (2, 2), rule, sql, compute, doc=doc)


def _add_seconds(moment: Facts, more: Facts) -> Facts:
    need("An interval of hours, minutes or seconds", ("timestamp",), moment)
    if more.kind not in ("integer", None):
        raise refused("An interval", "a whole number of seconds", more)
    low, high = plus(moment.low, more.low), plus(moment.high, more.high)
    nullable = moment.nullable or more.nullable
    if isinstance(low, float) or isinstance(high, float) or low > LAST or high < FIRST:
        return Facts("timestamp", True)
    nullable = nullable or low < FIRST or high > LAST
    return Facts("timestamp", nullable, max(Fraction(FIRST), low), min(Fraction(LAST), high), Fraction(1))


def _compute_add(moment: Vector, more: Vector) -> Vector:
    later = _seconds(moment.values) + more.values
    held = (later >= FIRST) & (later <= LAST)
    moved = np.where(held, later, 0).astype(np.int64).astype("datetime64[s]")
    return Vector(moved, moment.valid & more.valid & held)


def _to_date(facts: Facts) -> Facts:
    need("A cast to DATE", ("timestamp",), facts)
    if facts.lower is None or facts.upper is None:
        return Facts("date", facts.nullable)
    low, high = (Fraction(math.floor(end / DAY)) for end in (facts.lower, facts.upper))
    return Facts("date", facts.nullable, low, high, Fraction(1))


def _to_time(facts: Facts) -> Facts:
    need("A cast to TIME", ("timestamp",), facts)
    low, high = Fraction(0), Fraction(DAY - 1)
    if facts.lower is not None and facts.upper is not None and facts.lower // DAY == facts.upper // DAY:
        low, high = facts.lower % DAY, facts.upper % DAY
    return Facts("time", facts.nullable, low, high, Fraction(1))


def _to_timestamp(facts: Facts) -> Facts:
    need("A cast to TIMESTAMP", ("date",), facts)
    if facts.lower is None or facts.upper is None:  # days beyond the calendar are NULL
        return Facts("timestamp", True)
    return Facts("timestamp", facts.nullable, facts.lower * DAY, facts.upper * DAY, Fraction(DAY))


def _epoch(facts: Facts) -> Facts:
    _needs("EPOCH", facts)
    return number("integer", facts.low, facts.high, nullable=facts.nullable, step=facts.step)


def _trunc_day(facts: Facts) -> Facts:
    need("DATE_TRUNC", ("date",), facts)  # of dates and timestamps it is written in another way
    return Facts("date", True)


def _same(word: str, kind: Kind) -> Callable[[Facts], Facts]:
    def rule(facts: Facts) -> Facts:
        if facts.kind == "text":
            raise QueryRefused(
                f"A cast of text to {word} is not supported.",
                f"Declare the column as {word.capitalize()}, or write {word} before a constant.",
            )
        need(f"A cast to {word}", (kind,), facts)
        return facts

    return rule


def _seconds(values: Array) -> Array:
    """Seconds of datetime64[s] and timedelta64[s], as doubles."""
    return values.astype(np.int64).astype(np.float64)


def _over_seconds(operation: Callable[[Array], Array]) -> Callable[..., Vector]:
    return strict(lambda values: operation(_seconds(values)))


def _compute_to_timestamp(vector: Vector) -> Vector:
    low, high = np.datetime64("0001-01-01", "D"), np.datetime64("9999-12-31", "D")
    days = vector.values.astype("datetime64[D]")  # a bare NULL has numbers
    held = (days >= low) & (days <= high)
    return Vector(np.where(held, days, low).astype("datetime64[s]"), vector.valid & held)


_DATE = "CASE WHEN {0} BETWEEN CAST('0001-01-01' AS DATE) AND CAST('9999-12-31' AS DATE) THEN {0} END"
_SUM = f"{_X} + CAST({{1}} AS DOUBLE)"

TIMES: tuple[Function, ...] = (
    _field("hour", 3600, DAY),
    _field("minute", 60, 3600),
    _field("second", 1, 60),
    _start("hour", 3600),
    _start("minute", 60),
    _between("seconds", 1),
    _between("minutes", 60),
    _between("hours", 3600),
    Function(
        "add_seconds", (2, 2), _add_seconds,
        f"CASE WHEN {_SUM} BETWEEN {FIRST}e0 AND {LAST}e0 THEN TRY_CAST({_SUM} AS BIGINT) END", _compute_add,
        listed=False, doc="The timestamp so many seconds later.",
    ),
    Function(
        "trunc_day", (1, 1), _trunc_day, "{0}", lambda vector: vector, listed=False,
        doc="The day of a date or a timestamp.",
    ),
    Function(
        "epoch", (1, 1), _epoch, _X, _over_seconds(lambda x: x), {"TimeToUnix": ("this",)}, listed=False,
        doc="Seconds since 1970-01-01 of a timestamp, since midnight of a time of day.",
    ),
    Function(
        "timestamp_to_date", (1, 1), _to_date,
        f"CAST('1970-01-01' AS DATE) + CAST(FLOOR({_X} / {DAY}e0) AS INTEGER)",
        lambda vector: Vector(vector.values.astype("datetime64[D]"), vector.valid),
        listed=False, guarded=True, doc="The day of a timestamp.",
    ),
    Function(
        "timestamp_to_time", (1, 1), _to_time, f"CAST({_X} - FLOOR({_X} / {DAY}e0) * {DAY}e0 AS BIGINT)",
        lambda vector: Vector((_seconds(vector.values) % DAY).astype("timedelta64[s]"), vector.valid),
        listed=False, doc="The time of day of a timestamp.",
    ),
    Function(
        "date_to_timestamp", (1, 1), _to_timestamp,
        f"CAST(CAST({{0}} AS DATE) - CAST('1970-01-01' AS DATE) AS BIGINT) * {DAY}", _compute_to_timestamp,
        guard=_DATE, guards=(0,), listed=False, doc="The first second of a date.",
    ),
    Function(
        "to_timestamp", (1, 1), _same("TIMESTAMP", "timestamp"), "{0}", lambda vector: vector,
        {"Timestamp": ("this",)}, listed=False, doc="As a timestamp: the first second of a date.",
    ),
    Function(
        "to_time", (1, 1), _same("TIME", "time"), "{0}", lambda vector: vector, {"Time": ("this",)},
        listed=False, doc="As a time of day: that of a timestamp.",
    ),
)  # fmt: skip


def as_dates_and_times(
    function: str, parts: Sequence[tuple[Expression, Facts]]
) -> tuple[str, tuple[Expression, ...]] | None:
    """The same call where kinds of times meet, with casts written out; None: nothing is to be done.

    Raises:
        QueryRefused: for a text that is no time where it meets one.
    """
    kinds = {facts.kind for _, facts in parts}
    if not kinds & {"date", *_BOTH}:
        return None
    arguments = tuple(part for part, _ in parts)
    wanted = next((kind for kind in ("timestamp", "time", "date") if kind in kinds), None)
    changed = arguments
    if function in _MEETING and "text" in kinds and wanted is not None:
        changed = tuple(_read(part, wanted) for part in arguments)
    if {"date", "timestamp"} <= kinds and function in {*_MEETING, *_CHOOSING, *_APART}:
        changed = tuple(
            _as_timestamp(part) if facts.kind == "date" else part
            for part, (_, facts) in zip(changed, parts, strict=True)
        )
    if function in _APART and kinds == {"date"}:
        changed = tuple(_as_timestamp(part) for part in arguments)
    if function == "add_seconds" and parts[0][1].kind == "date":  # day + INTERVAL 3 HOUR
        changed = (_as_timestamp(arguments[0]), *arguments[1:])
    if function == "trunc_day" and len(parts) == 1 and kinds <= {"date", "timestamp"}:
        return (
            ("add_days", (*arguments, literal(0))) if kinds == {"date"} else ("timestamp_to_date", arguments)
        )
    if function in ("to_timestamp", "to_date", "to_time") and len(parts) == 1:
        source, target = parts[0][1].kind, function.removeprefix("to_")
        if (source, target) in _CASTS:
            return f"{source}_to_{target}", arguments
    if "timestamp" in kinds:
        if function in _OF_DATES or function == "days_between":
            changed = tuple(
                call("timestamp_to_date", part) if facts.kind == "timestamp" else part
                for part, facts in parts
            )
        if function in ("add", "subtract") and len(parts) == 2:
            raise _no_sum(function, parts)
        moves = function in ("add_days", "subtract_days", "add_months") and len(parts) == 2
        if moves and parts[0][1].kind == "timestamp":
            return _moved(function, *arguments)
    if "time" in kinds and function in ("add", "subtract"):
        raise _no_sum(function, parts)
    return None if changed == arguments else (function, changed)


_CASTS = {("timestamp", "date"), ("timestamp", "time"), ("date", "timestamp")}


def _as_timestamp(part: Expression) -> Expression:
    if isinstance(part, Literal) and isinstance(part.value, datetime.date):
        return Literal(as_moment(part.value), "timestamp")
    return call("date_to_timestamp", part)


def _moved(function: str, moment: Expression, count: Expression) -> tuple[str, tuple[Expression, ...]]:
    """A timestamp some days or months later: by days as seconds, by months as its day and its time."""
    if function == "add_months":
        day = call("date_to_timestamp", call("add_months", call("timestamp_to_date", moment), count))
        return "add_seconds", (day, call("epoch", call("timestamp_to_time", moment)))
    sign = -1 if function == "subtract_days" else 1
    if isinstance(count, Literal) and isinstance(count.value, int):
        return "add_seconds", (moment, literal(sign * DAY * count.value))
    return "add_seconds", (moment, call("multiply", count, literal(sign * DAY)))


def _no_sum(function: str, parts: Sequence[tuple[Expression, Facts]]) -> QueryRefused:
    if function == "subtract" and all(facts.kind in ("timestamp", "time", "date") for _, facts in parts):
        return QueryRefused(
            "The difference of two times is an interval, and no number.",
            "Write DATE_DIFF('second', first, last), or 'minute', 'hour' or 'day'.",
        )
    return QueryRefused(
        "Numbers cannot be added to times, nor taken from them.", "Write x + INTERVAL 3 HOUR."
    )


def _read(part: Expression, kind: str) -> Expression:
    """A text that is compared with a time, as that time; anything else as it is."""
    if not isinstance(part, Literal) or not isinstance(part.value, str):
        return part
    text, (wanted, such) = part.value, _SUCH[kind]
    try:
        if kind == "date":
            return Literal(datetime.date.fromisoformat(text), "date")
        return (
            Literal(as_moment(text), "timestamp") if kind == "timestamp" else Literal(as_clock(text), "time")
        )
    except ValueError:
        raise QueryRefused(
            f"{wanted.capitalize()} is compared with {text[:20]!r}, which is not {wanted}.", f"Write {such}."
        ) from None


_SUCH = {
    "date": ("a date", "days as '2024-01-31'"),
    "timestamp": ("a timestamp", "timestamps as '2024-01-31 08:30:00', in whole seconds"),
    "time": ("a time of day", "times of day as '08:30' or '08:30:59', in whole seconds"),
}
