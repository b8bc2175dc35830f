"""Whether a value is one of many constants, as a condition of the engine.

An engine takes long to read ten thousand constants, each a node of its own. Where its dialect can make rows
of one text, a long list is one constant: `x IN (SELECT UNNEST(CAST('[1, 2, …]' AS BIGINT[])))`.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.errors import QueryRefused
from sfumato.numeric.moments import seconds_of
from sfumato.plan.expressions.size import check_text
from sfumato.sql.write.constants import constant_node

__all__ = ["is_in"]

_FEW = 64  # so many are written out, whatever they are
_EXACT = 2**53  # whole numbers below are doubles
_KINDS = {int: "integer", float: "float", str: "text", datetime.date: "date"}
_MARKS = "\x1f\x1e\x1d\x1c"  # of which one is in none of the texts


def is_in(value: exp.Expr, constants: Sequence[Any], dialect: Dialect) -> exp.Expr:
    """Whether a value is one of these constants, none of them NULL; NULL where the value is. Of none: false.

    Args:
        value: An operand.
        constants: What it is compared with.
        dialect: The engine's.

    Raises:
        QueryRefused: for a constant that no engine can hold.
    """
    if not constants:
        return exp.false()  # some engines cannot read an empty list
    constants = [_plain(constant) for constant in constants]
    if not dialect.compares_alike and _has_zero(constants):
        value = dialect.comparable(value)
    rows = _rows(constants, dialect) if len(constants) > _FEW else None
    if rows is None:
        return exp.In(this=value, expressions=[constant_node(constant) for constant in constants])
    return exp.In(this=value, query=rows)


def _has_zero(constants: Sequence[Any]) -> bool:
    """Whether there is one among small numbers: what is compared may be a zero with a sign."""
    small = all(type(constant) in (int, float) and abs(constant) < _EXACT for constant in constants)
    return small and 0 in constants


def _plain(constant: Any) -> Any:
    """A float without -0.0; of a timestamp and a time of day the seconds that engines hold."""
    if isinstance(constant, datetime.datetime | datetime.time):
        return seconds_of(constant)
    return constant + 0.0 if type(constant) is float else constant


def _rows(constants: Sequence[Any], dialect: Dialect) -> exp.Expr | None:
    """The constants as rows, from one text; None where the dialect has no form, or the kinds differ."""
    types = {*map(type, constants)}
    kind = _KINDS.get(types.pop()) if len(types) == 1 else None
    template = None if kind is None else dialect.lists.get(kind)
    if template is None or not _fit(constants, kind):
        return None
    if kind != "text":
        shown = [day.isoformat() for day in constants] if kind == "date" else map(repr, constants)
        return dialect.fill(template, exp.Literal.string(f"[{', '.join(shown)}]"))
    mark = next((mark for mark in _MARKS if not any(mark in text for text in constants)), None)
    if mark is None:
        return None
    return dialect.fill(template, exp.Literal.string(mark.join(constants)), exp.Literal.string(mark))


def _fit(constants: Sequence[Any], kind: str | None) -> bool:
    """Whether an engine can hold them all; what does not fit is refused where it is written out."""
    if kind == "integer":
        return bool(min(constants) >= -(2**63) and max(constants) < 2**63)
    if kind == "float":
        return all(map(math.isfinite, constants))
    if kind != "text":
        return True
    try:
        for text in constants:
            check_text(text)
    except QueryRefused:
        return False
    return True
