"""Expressions as people read them, much as SQL would have it."""

from __future__ import annotations

import datetime
import re

from sfumato.engines.base import UNREAD_PREFIX
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal

__all__ = ["Phrase", "is_conditional", "written", "written_argument", "written_rows"]

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "int_divide": "//",
    "modulo": "%",
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "is_distinct": "IS DISTINCT FROM",
    "is_not_distinct": "IS NOT DISTINCT FROM",
    "and": "AND",
    "or": "OR",
    "append": "||",
    "like": "LIKE",
    "ilike": "ILIKE",
}
_STARTS = ("year", "quarter", "month", "week", "hour", "minute")
_FORMS = {
    "negate": "-{0}",
    "not": "NOT {0}",
    "is_null": "{0} IS NULL",
    "position": "strpos({0}, {1})",
    "add_days": "{0} + INTERVAL ({1}) DAY",
    "subtract_days": "{0} - INTERVAL ({1}) DAY",
    "add_months": "{0} + INTERVAL ({1}) MONTH",
    "days_between": "DATE_DIFF('day', {1}, {0})",
    **{f"trunc_{part}": f"DATE_TRUNC('{part}', {{0}})" for part in _STARTS},
    **{f"{part}s_between": f"DATE_DIFF('{part}', {{1}}, {{0}})" for part in ("second", "minute", "hour")},
    "add_seconds": "{0} + INTERVAL ({1}) SECOND",
    "trunc_day": "DATE_TRUNC('day', {0})",
    **dict.fromkeys(("to_timestamp", "date_to_timestamp"), "CAST({0} AS TIMESTAMP)"),
    **dict.fromkeys(("to_time", "timestamp_to_time"), "CAST({0} AS TIME)"),
    "timestamp_to_date": "CAST({0} AS DATE)",
    **dict.fromkeys(("to_text", "float_to_text", "integer_to_text"), "CAST({0} AS VARCHAR)"),
    "to_integer": "CAST({0} AS BIGINT)",
    "to_float": "CAST({0} AS DOUBLE)",
    "to_date": "CAST({0} AS DATE)",
    "to_boolean": "CAST({0} AS BOOLEAN)",
}
_TIMES = {datetime.datetime: "TIMESTAMP", datetime.date: "DATE", datetime.time: "TIME"}  # in this order
_NULL, _GREATEST = Literal(None, None), Literal(1e308, "float")  # the largest number that pairs take
_LONGEST = 44
_SYMBOLS = 400  # of an expression: beyond, nobody reads on
_MADE = re.compile(r"([a-z ]+) [0-9a-f]{10}")  # the name of a column that a subquery made
_WORDS = re.compile(r"[\w ()?]+")  # a name that nobody takes for arithmetic
_UNNAMED = ("column", "expression", "key")  # of them those that are no function


class Phrase(Column):
    """Words that stand for a column of a result: several of them have brackets beside others."""

    __slots__ = ()


def written(expression: Expression, longest: int = _LONGEST) -> str:
    """An expression much as SQL would have it, cut to a length."""
    return _cut(_written(expression), longest)


def written_argument(expression: Expression, longest: int = _LONGEST) -> str:
    """What an aggregate is over, to follow `with` or `of`: a value under a condition is `x where c`."""
    under = _conditional(expression)
    if under is None:
        return written(expression, longest)
    return _cut(f"{_written(under[1])} where {_written(under[0])}", longest)


def written_rows(expression: Expression, longest: int = _LONGEST) -> str:
    """Rows in which an expression has a value: `rows with x`, `rows where c`."""
    under = _conditional(expression)
    if under is not None and isinstance(under[1], Literal):
        return f"rows where {written(under[0], longest)}"
    return f"rows with {written_argument(expression, longest)}"


def is_conditional(expression: Expression) -> bool:
    """Whether it is NULL because a condition does not hold, whatever may be missing."""
    return _conditional(expression) is not None


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _conditional(expression: Expression) -> tuple[Expression, Expression] | None:
    """The condition and the value of an expression that is NULL wherever the condition does not hold."""
    if not isinstance(expression, Call) or expression.function != "case":
        return None
    condition, value, *rest = expression.arguments
    return (condition, value) if rest in ([], [_NULL]) else None


def _written(expression: Expression) -> str:
    if isinstance(expression, Column):
        return _name(expression.name)
    if isinstance(expression, Literal):
        return _constant(expression.value)
    return _called(expression)[:_SYMBOLS]


def _name(name: str) -> str:
    if name.startswith(UNREAD_PREFIX):
        return f"{name.removeprefix(UNREAD_PREFIX)} could not be read"
    made = _MADE.fullmatch(name)
    if made is None:
        return name
    return "an expression" if made[1] in _UNNAMED else f"{made[1]}(…)"


def _constant(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{value}'"
    for kind, word in _TIMES.items():
        if isinstance(value, kind):
            return f"{word} '{value}'"
    return f"{value}"


def _called(expression: Call) -> str:
    function, arguments = expression.function, expression.arguments[:_SYMBOLS]  # the rest is cut off
    if (present := _present(expression)) is not None:
        return f"{_side(present)} IS NOT NULL"
    if _is_square(expression):
        return f"({_written(arguments[0])})²"
    parts = [_written(argument) for argument in arguments]  # once: each level would double the work
    if function == "case":
        return _case(parts)
    sides = [_bracketed(argument, part) for argument, part in zip(arguments, parts, strict=True)]
    if function == "in":
        return f"{sides[0]} IN ({', '.join(parts[1:])})"
    if function in _INFIX and (len(arguments) == 2 or function in ("and", "or")):
        return f" {_INFIX[function]} ".join(sides)
    if function in _FORMS:
        return _FORMS[function].format(*sides)
    return f"{function}({', '.join(parts)})"


def _side(argument: Expression) -> str:
    return _bracketed(argument, _written(argument))


def _bracketed(argument: Expression, text: str) -> str:
    """A part of a larger expression, in brackets where it has several parts itself."""
    return text if _is_one(argument, text) and not text.startswith("-") else f"({text})"


def _is_one(argument: Expression, text: str) -> bool:
    """Whether nothing beside it can be taken for a part of it: a name, a constant, a function's brackets."""
    if isinstance(argument, Literal) or " " not in text or (text[-1] == "²" and _is_square(argument)):
        return True
    if isinstance(argument, Column):
        named = text == argument.name and _WORDS.fullmatch(text) and not isinstance(argument, Phrase)
        return bool(named) or text.endswith("(…)")
    if argument.function in ("case", "in", *_INFIX) or _present(argument) is not None:
        return False
    form = _FORMS.get(argument.function, "f()")
    return form[0].isalpha() and form[-1] == ")"


def _is_square(expression: Expression) -> bool:
    if not isinstance(expression, Call) or expression.function != "multiply":
        return False
    return expression.arguments[0] == expression.arguments[-1]


def _case(parts: list[str]) -> str:
    pairs = zip(parts[::2], parts[1::2], strict=False)
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    rest = f" ELSE {parts[-1]}" if len(parts) % 2 and parts[-1] != "NULL" else ""
    return f"CASE {branches}{rest} END"


def _present(expression: Call) -> Expression | None:
    """What an expression asks to be there: not missing, and of numbers that they are not endless."""
    first, *rest = expression.arguments
    if not isinstance(first, Call):
        return None
    is_there = expression.function == "not" and first.function == "is_null"
    is_finite = expression.function == "less_equal" and first.function == "abs" and rest == [_GREATEST]
    return first.arguments[0] if is_there or is_finite else None
