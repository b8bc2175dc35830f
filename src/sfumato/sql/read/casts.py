"""Casts of constants, worked out as a query is read: what is meant exactly, or a refusal.

Drivers write the type of a value behind it (`$1::VARCHAR`, `LIMIT $2::INTEGER`). Such a constant is the bare
one, so that the question is the same. Where a cast would change a value, the result is PostgreSQL's; where
that depends on what cannot be seen here, or differs from DuckDB's, the cast is refused.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable
from fractions import Fraction

from sfumato.errors import QueryRefused
from sfumato.numeric.moments import as_clock, as_moment
from sfumato.plan.expressions.tree import Literal, literal

__all__ = ["DECIMAL", "cast_constant"]

DECIMAL = "to_decimal"
"""The cast to NUMERIC, which only constants have."""

_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,40})\s*", re.ASCII)
_NUMBER = re.compile(r"\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*", re.ASCII)
_LONGEST = 40
_BITS = {"SMALLINT": 16, "INT": 32, "BIGINT": 64}
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_UNSAID = (18, 3)  # what the parser makes of a bare NUMERIC, as DuckDB does; PostgreSQL keeps all digits


def cast_constant(
    value: Literal, function: str, *, name: str, sizes: tuple[int, ...] = (), written: str | None = None
) -> Literal | None:
    """The constant that a cast of a constant is; None: there is no rule for it here.

    Args:
        value: What is cast.
        function: The function that such a cast of a column is.
        name: The type, as the parser calls it.
        sizes: What stands in parentheses behind the type.
        written: The digits of a number, as the query writes them; None for other values.

    Raises:
        QueryRefused: if the value is none of the type, or only a part of it would be left.
    """
    match function, value.kind:
        case "to_integer", "integer" | "float" | "text":
            return _whole(value, name)
        case "to_integer", "boolean" if name == "INT":  # PostgreSQL has no cast to its other whole numbers
            return literal(int(value.value is True))
        case "to_float", "integer" | "float" | "text":
            return literal(_float(value))
        case "to_decimal", "integer" | "float" | "text":
            return _decimal(value, sizes, written)
        case "to_text", "integer" | "float" | "text" | "boolean" | "date":
            return _text(value, sizes, written)
        case "to_boolean", "integer" | "float" | "text" | "boolean":
            return _truth(value)
        case "to_date" | "to_timestamp" | "to_time", "text":
            return literal(_READ[function](str(value.value)))
        case "to_date" | "to_timestamp" | "to_time", "date" | "timestamp" | "time":
            return _time(value, function)
    return None


def _shown(value: Literal) -> str:
    return repr(value.value)[:40]


def _none(value: Literal, what: str, fix: str) -> QueryRefused:
    return QueryRefused(f"{_shown(value)} is {what}.", fix)


def _whole(value: Literal, name: str) -> Literal:
    if isinstance(value.value, str):
        digits = _WHOLE.fullmatch(value.value)
        if digits is None:
            raise _none(value, "not a whole number", "Write it as '12', or cast it to DOUBLE.")
        number = Fraction(int(digits[1]))
    else:
        number = _fraction(value)
    if (
        number.denominator == 2
    ):  # PostgreSQL rounds it away from 0 or to even, by a type that is not seen here
        raise _none(value, "half-way between two whole numbers", "Write the one that is meant.")
    whole = round(number)
    bits = _BITS.get(name, 64)
    if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
        larger = "Write it as a fraction, such as 1e20." if bits == 64 else "Cast it to BIGINT."
        raise _none(value, f"beyond {'INTEGER' if name == 'INT' else name}, which has {bits} bits", larger)
    return literal(whole)


def _fraction(value: Literal) -> Fraction:
    return Fraction(repr(value.value)) if value.kind == "float" else Fraction(int(value.value))  # type: ignore[arg-type]


def _float(value: Literal) -> float:
    written = value.value
    if isinstance(written, str):
        found = _NUMBER.fullmatch(written)
        number = math.nan if found is None or len(found[1]) > _LONGEST else float(found[1])
    else:
        number = float(written)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise _none(value, "not a number that is supported", "Write it as 12, 1.5 or 1e6.")
    return number


def _decimal(value: Literal, sizes: tuple[int, ...], written: str | None) -> Literal:
    digits = value.value.strip() if isinstance(value.value, str) else written
    number = _float(value) + 0.0  # decimals have no -0
    exact = _fraction(value) if digits is None else abs(Fraction(digits))
    precision, scale = (*sizes, 0)[:2] if sizes else _UNSAID
    if (exact * 10 ** min(scale, 1000)).denominator != 1:
        raise _none(
            value,
            f"not kept by NUMERIC({precision}, {scale}), which has {scale} decimals",
            "Write the number with as many, or leave the cast out.",
        )
    if sizes != _UNSAID and abs(exact) >= Fraction(10) ** min(precision - scale, 1000):
        raise _none(value, f"beyond NUMERIC({precision}, {scale})", "Leave the cast out.")
    if isinstance(value.value, str) and (whole := _WHOLE.fullmatch(value.value)) is not None:
        return literal(int(whole[1])) if abs(exact) < 2**63 else literal(number)
    return literal(number) if value.kind != "integer" else value


def _text(value: Literal, sizes: tuple[int, ...], written: str | None) -> Literal:
    plain = value.value
    match plain:
        case bool():
            text = "true" if plain else "false"
        case float():
            text = repr(plain)
            if (
                written is None or text.removeprefix("-") != written
            ):  # 1e6, .5 and 2.50 are spelt in many ways
                raise _none(value, "a number that can be spelt in many ways", "Write the text in quotes.")
        case datetime.date():
            text = plain.isoformat()
        case _:
            text = str(plain)
    if sizes and len(text) > sizes[0]:
        raise QueryRefused(
            f"{text[:40]!r} is longer than {sizes[0]} characters, and the cast would cut it.",
            "Write the part that is meant.",
        )
    return literal(text)


def _truth(value: Literal) -> Literal | None:
    match value.value:
        case bool():
            return value
        case int(number):
            return literal(number != 0) if -(2**31) <= number < 2**31 else None
        case str(text):
            word = text.strip().lower()
            for truth, words in ((True, _TRUE), (False, _FALSE)):
                if word and word != "o" and any(one.startswith(word) for one in words):
                    return literal(truth)
    raise _none(value, "not a truth value", "Write TRUE or FALSE.")


def _time(value: Literal, function: str) -> Literal | None:
    moment = value.value
    match function, value.kind:
        case ("to_date", "date") | ("to_timestamp", "timestamp") | ("to_time", "time"):
            return value
        case "to_timestamp", "date":
            return literal(as_moment(moment))
        case "to_date", "timestamp":
            assert isinstance(moment, datetime.datetime)
            return literal(moment.date())
        case "to_time", "timestamp":
            assert isinstance(moment, datetime.datetime)
            return literal(moment.time())
    return None


def _moment(text: str) -> datetime.datetime:
    try:
        return as_moment(text)
    except ValueError:
        raise QueryRefused(
            f"{text[:40]!r} is not a timestamp in whole seconds.", "Write TIMESTAMP '2024-01-31 08:30:00'."
        ) from None


def _clock(text: str) -> datetime.time:
    try:
        return as_clock(text)
    except ValueError:
        raise QueryRefused(
            f"{text[:20]!r} is not a time of day in whole seconds.", "Write TIME '08:30'."
        ) from None


def _day(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise QueryRefused(f"{text[:20]!r} is not a date.", "Write DATE '2024-01-31'.") from None


_READ: dict[str, Callable[[str], datetime.date | datetime.time]] = {
    "to_date": _day,
    "to_timestamp": _moment,
    "to_time": _clock,
}
