"""Constants as nodes of a generated statement: never spliced into text."""

from __future__ import annotations

import datetime
import math
from typing import Any

from sqlglot import exp

from sfumato.errors import QueryRefused
from sfumato.numeric.moments import seconds_of
from sfumato.plan.expressions.size import check_text
from sfumato.sql.write.pieces import bigint

__all__ = ["constant_node"]


def constant_node(value: Any) -> exp.Expr:
    """The node of a constant, of a type that no engine can mistake."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            if not -(2**63) <= value < 2**63:
                raise QueryRefused(
                    "A whole number must fit in 64 bits.", "Write it as a fraction, such as 1e20."
                )
            if value == -(2**63):  # whose digits without the sign do not fit; a key that was found can be it
                return bigint(exp.Literal.string(str(value)))
            return _signed(str(abs(value)), value < 0)
        case float():
            if not math.isfinite(value):
                raise QueryRefused("A constant must be finite.", "Use a large number instead.")
            shown = repr(abs(value))  # with an exponent it is a double; without, a decimal of few digits
            return _signed(shown if "e" in shown else f"{shown}e0", math.copysign(1, value) < 0)
        case str():
            check_text(value)
            return exp.Literal.string(value)
        case datetime.datetime() | datetime.time():  # as engines hold them
            return constant_node(seconds_of(value))
        case datetime.date():
            return exp.Cast(this=exp.Literal.string(value.isoformat()), to=exp.DataType.build("date"))
    raise QueryRefused("A constant must be a number, text, date, time or truth value.")


def _signed(digits: str, negative: bool) -> exp.Expr:
    number = exp.Literal(this=digits, is_string=False)
    return exp.Paren(this=exp.Neg(this=number)) if negative else number
