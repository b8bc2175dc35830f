"""Scalar SQL whose syntax says more than a function's name: casts, intervals, parts of dates, patterns."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.tree import Call, Expression, Literal, call, literal
from sfumato.sql.read.casts import DECIMAL, cast_constant
from sfumato.sql.read.scalars import Handler, Parser, closed, exact, unknown

__all__ = ["SPECIAL"]

_CASTS = {
    "SMALLINT": "to_integer",
    "INT": "to_integer",
    "BIGINT": "to_integer",
    "FLOAT": "to_float",
    "DOUBLE": "to_float",
    "TEXT": "to_text",
    "VARCHAR": "to_text",
    "DATE": "to_date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME"), "to_timestamp"),
    "TIME": "to_time",
    "BOOLEAN": "to_boolean",
    "DECIMAL": DECIMAL,
}
_PARTS = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "DAY": "day",
    "DOW": "dayofweek",
    "DAYOFWEEK": "dayofweek",
    "WEEKDAY": "dayofweek",
    "ISODOW": "isodow",
    "DOY": "dayofyear",
    "DAYOFYEAR": "dayofyear",
    "WEEK": "week",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "EPOCH": "epoch",
}
_STARTS = {unit: f"trunc_{unit.lower()}" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "HOUR", "MINUTE")}
_INTERVALS = {
    "SECOND": ("seconds", 1),
    "MINUTE": ("seconds", 60),
    "HOUR": ("seconds", 3600),
    "DAY": ("days", 1),
    "WEEK": ("days", 7),
    "MONTH": ("months", 1),
    "QUARTER": ("months", 3),
    "YEAR": ("months", 12),
}


def _cast(parser: Parser, node: exp.Cast, depth: int) -> Expression:
    closed(node, ("this", "to"))
    kind = node.to.this
    name = str(getattr(kind, "value", kind)).upper()
    sizes = _sizes(node.to)
    unsupported = QueryRefused(
        f"A cast to {name[:40]} is not supported.",
        "Use INTEGER, DOUBLE, TEXT, DATE, TIMESTAMP, TIME or BOOLEAN; ROUND gives digits.",
    )
    if name not in _CASTS or (sizes != () and (sizes is None or _CASTS[name] not in ("to_text", DECIMAL))):
        raise unsupported
    value = parser.parse(node.this, depth)
    if isinstance(value, Literal) and value.value is not None:
        try:
            constant = cast_constant(
                value, _CASTS[name], name=name, sizes=sizes or (), written=_written(node.this)
            )
        except QueryRefused:
            if not isinstance(node, exp.TryCast) or _CASTS[name] in (DECIMAL, *_TIMES):
                raise
            constant = None
        if constant is not None:
            return constant
    if _CASTS[name] == DECIMAL:
        raise unsupported
    return call(_CASTS[name], value)


_TIMES = ("to_date", "to_timestamp", "to_time")


def _sizes(kind: exp.DataType) -> tuple[int, ...] | None:
    """The whole numbers behind a type; None if there is anything else."""
    written = [part.this if isinstance(part, exp.DataTypeParam) else None for part in kind.expressions]
    texts = [part.this for part in written if isinstance(part, exp.Literal) and not part.is_string]
    plain = len(texts) == len(written) and all(text.isdigit() and len(text) < 6 for text in texts)
    return tuple(map(int, texts)) if plain else None


def _written(node: exp.Expr) -> str | None:
    """The digits of a number as they are written; None for anything else."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return str(node.this) if isinstance(node, exp.Literal) and not node.is_string else None


def _unit(node: Any) -> str:
    name = str(node.name if isinstance(node, exp.Expr) else node or "").upper()
    return name[:-1] if name.endswith("S") and name[:-1] in _INTERVALS else name


def _whole(node: Any) -> int:
    while isinstance(node, exp.Paren):
        node = node.this
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this
    text = node.this.strip() if isinstance(node, exp.Literal) else ""
    if isinstance(text, str) and text[:1] in "+-" and text[1:].isdigit():
        sign, text = -sign if text[0] == "-" else sign, text[1:]
    if not text.isdigit() or not text.isascii() or len(text) > 7:
        raise QueryRefused("An interval takes a constant whole number.", "Write INTERVAL 3 DAY.")
    return sign * int(text)


def _moved(parser: Parser, day: exp.Expr, interval: exp.Interval, sign: int, depth: int) -> Expression:
    closed(interval, ("this", "unit"))
    unit = _unit(interval.args.get("unit"))
    if unit not in _INTERVALS:
        raise QueryRefused(
            f"An interval of {unit[:20] or 'that kind'} is not supported.",
            "Use DAY, WEEK, MONTH or YEAR; of timestamps HOUR, MINUTE or SECOND, too.",
        )
    word, size = _INTERVALS[unit]
    count = literal(sign * size * _whole(interval.this))
    return call(f"add_{word}", parser.parse(day, depth), count)


def _sum(function: str, sign: int) -> Handler:
    def handler(parser: Parser, node: exp.Binary, depth: int) -> Expression:
        left, right = node.this, node.expression
        if isinstance(right, exp.Interval):
            return _moved(parser, left, right, sign, depth)
        if isinstance(left, exp.Interval) and sign > 0:
            return _moved(parser, right, left, sign, depth)
        arguments = parser.parse(left, depth), parser.parse(right, depth)
        return exact(function, arguments) or Call(function, arguments)

    return handler


def _date_add(sign: int) -> Handler:
    def handler(parser: Parser, node: Any, depth: int) -> Expression:
        if isinstance(node.expression, exp.Interval):
            closed(node, ("this", "expression"))
            return _moved(parser, node.this, node.expression, sign, depth)
        raise QueryRefused("DATE_ADD takes a date and an interval.", "Write day + INTERVAL 3 DAY.")

    return handler


def _part(parser: Parser, name: str, day: exp.Expr, depth: int) -> Expression:
    if name.upper() not in _PARTS:
        raise QueryRefused(f"EXTRACT of {name[:20]} is not supported.", f"Use one of {', '.join(_PARTS)}.")
    while isinstance(day, exp.Paren):
        day = day.this
    if name.upper() == "EPOCH" and isinstance(day, exp.Sub) and not isinstance(day.expression, exp.Interval):
        return call("seconds_between", parser.parse(day.this, depth), parser.parse(day.expression, depth))
    return call(_PARTS[name.upper()], parser.parse(day, depth))


def _extract(parser: Parser, node: exp.Extract, depth: int) -> Expression:
    closed(node, ("this", "expression"))
    return _part(parser, node.this.name, node.expression, depth)


def _trunc(parser: Parser, node: Any, depth: int) -> Expression:
    closed(node, ("this", "unit"))
    return _start(parser, _unit(node.args.get("unit")), node.this, depth)


def _start(parser: Parser, unit: str, day: exp.Expr, depth: int) -> Expression:
    if unit == "DAY":
        return call("trunc_day", parser.parse(day, depth))
    if unit not in _STARTS:
        raise QueryRefused(
            f"DATE_TRUNC to {unit[:20]} is not supported.",
            "Use DAY, WEEK, MONTH, QUARTER or YEAR; of timestamps HOUR or MINUTE, too.",
        )
    return call(_STARTS[unit], parser.parse(day, depth))


_LENGTHS = "Use DAY, MONTH, QUARTER or YEAR; of timestamps HOUR, MINUTE or SECOND, too."


def _date_diff(parser: Parser, node: exp.DateDiff, depth: int) -> Expression:
    closed(node, ("this", "expression", "unit"))
    unit = _unit(node.args.get("unit")) or "DAY"
    last, first = parser.parse(node.this, depth), parser.parse(node.expression, depth)
    match unit:
        case "DAY":
            return call("days_between", last, first)
        case "HOUR" | "MINUTE" | "SECOND":
            return call(f"{unit.lower()}s_between", last, first)
        case "YEAR":
            return call("subtract", call("year", last), call("year", first))
        case "QUARTER" | "MONTH":
            part = unit.lower()
            years = call("subtract", call("year", last), call("year", first))
            scaled = call("multiply", years, literal(4 if part == "quarter" else 12))
            return call("add", scaled, call("subtract", call(part, last), call(part, first)))
    raise QueryRefused(f"DATE_DIFF in {unit[:20]} is not supported.", _LENGTHS)


def _make_date(parser: Parser, node: exp.DateFromParts, depth: int) -> Expression:
    parts = [parser.parse(node.args.get(name), depth) for name in ("year", "month", "day")]
    numbers = [part.value for part in parts if isinstance(part, Literal) and part.kind == "integer"]
    try:
        return literal(datetime.date(*numbers))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise QueryRefused(
            "MAKE_DATE takes three constants that form a date.", "Write DATE '2024-01-31'."
        ) from None


def _trim(parser: Parser, node: exp.Trim, depth: int) -> Expression:
    closed(node, ("this", "expression", "position"))
    names = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names[str(node.args.get("position") or "").upper()]
    characters = node.args.get("expression")
    parts = [node.this] if characters is None else [node.this, characters]
    return Call(name, tuple(parser.parse(part, depth) for part in parts))


def _like(function: str) -> Handler:
    def handler(parser: Parser, node: exp.Binary, depth: int) -> Expression:
        closed(node, ("this", "expression", "negate"))
        matched = call(function, parser.parse(node.this, depth), parser.parse(node.expression, depth))
        return call("not", matched) if node.args.get("negate") else matched

    return handler


def _escape(parser: Parser, node: exp.Escape, depth: int) -> Expression:
    inner, mark = node.this, parser.parse(node.expression, depth)
    if not isinstance(inner, exp.Like | exp.ILike):
        raise unknown(node)
    parsed = parser.parse(inner, depth)
    negated = isinstance(parsed, Call) and parsed.function == "not"
    match = parsed.arguments[0] if isinstance(parsed, Call) and negated else parsed
    assert isinstance(match, Call)  # LIKE gives nothing else
    escaped = Call(match.function, (*match.arguments, mark))
    return call("not", escaped) if negated else escaped


def _log(parser: Parser, node: exp.Log, depth: int) -> Expression:
    closed(node, ("this", "expression"))
    if node.expression is None:
        return call("log10", parser.parse(node.this, depth))
    base = node.this.this if isinstance(node.this, exp.Literal) else ""
    if base not in ("2", "10"):
        raise QueryRefused("LOG takes base 2 or 10.", "Write LN(x) / LN(base).")
    return call(f"log{base}", parser.parse(node.expression, depth))


def _named(parser: Parser, node: exp.Anonymous, depth: int) -> Expression:
    name, parts = str(node.this).lower(), node.expressions
    if name in ("date_part", "datepart") and len(parts) == 2:
        part = parser.parse(parts[0], depth)
        if isinstance(part, Literal) and isinstance(part.value, str):
            return _part(parser, part.value, parts[1], depth)
    if name.upper() in _PARTS and len(parts) == 1:
        return _part(parser, name, parts[0], depth)
    if name in _NAMES:
        return Call(_NAMES[name], tuple(parser.parse(part, depth) for part in parts))
    raise unknown(node)


_NAMES = {name: function.name for function in FUNCTIONS.values() for name in (function.name, *function.names)}


def _date(parser: Parser, node: exp.Date, depth: int) -> Expression:
    closed(node, ("this",))
    value = parser.parse(node.this, depth)
    if isinstance(value, Literal) and isinstance(value.value, str):
        return cast_constant(value, "to_date", name="DATE") or value
    return call("to_date", value)


def _interval(_: Parser, __: exp.Interval, ___: int) -> Expression:
    raise QueryRefused(
        "An interval can only be added to a date or taken from it.", "Write day + INTERVAL 3 DAY."
    )


SPECIAL: dict[str, Callable[[Parser, Any, int], Expression]] = {
    "Add": _sum("add", 1),
    "Anonymous": _named,
    "Cast": _cast,
    "Date": _date,
    "DateAdd": _date_add(1),
    "DateDiff": _date_diff,
    "DateFromParts": _make_date,
    "DateSub": _date_add(-1),
    "DateTrunc": _trunc,
    "Escape": _escape,
    "Extract": _extract,
    "ILike": _like("ilike"),
    "Interval": _interval,
    "Like": _like("like"),
    "Log": _log,
    "Sub": _sum("subtract", -1),
    "TimestampTrunc": _trunc,
    "Trim": _trim,
    "TryCast": _cast,
}
