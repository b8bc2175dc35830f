"""Snowflake's `DP_INTERVAL_LOW(alias)` and `DP_INTERVAL_HIGH(alias)`, with an optional level."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from sqlglot import exp

from sfumato.sql.refusals import refuse
from sfumato.sql.text.tokens import number_of

__all__ = ["interval_call"]

_ENDS: dict[str, Literal["low", "high"]] = {"dp_interval_low": "low", "dp_interval_high": "high"}
_LEVEL = Fraction(95, 100)


def interval_call(node: exp.Expr) -> tuple[Literal["low", "high"], str, Fraction] | None:
    """Which end of the interval of which column a node asks for, and at what level; None if it asks for none.

    Args:
        node: A node as it was parsed, before aliases are written out.

    Raises:
        QueryRefused: if its arguments are not an alias and a level between 0 and 1.
    """
    if not isinstance(node, exp.Anonymous) or str(node.this).lower() not in _ENDS:
        return None
    name, arguments = str(node.this).upper(), node.expressions
    example = f"Write COUNT(*) AS n, {name}(n)."
    if not 1 <= len(arguments) <= 2:
        raise refuse(f"{name} takes the alias of an aggregate, and a level if you like.", example)
    column = _plain(arguments[0])
    if isinstance(column, exp.AggFunc):
        raise refuse(f"{name} takes the alias of an aggregate, not the aggregate itself.", example)
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier) or column.table:
        raise refuse(f"{name} takes the alias of an aggregate in SELECT.", example)
    return _ENDS[name.lower()], column.name, _LEVEL if len(arguments) == 1 else _level(arguments[1], name)


def _level(node: exp.Expr, name: str) -> Fraction:
    value = _plain(node)
    number = number_of(value.this) if isinstance(value, exp.Literal) and not value.is_string else None
    if number is None:
        raise refuse(f"The level of {name} is a number.", f"Write {name}(n, 0.95).")
    if not 0 < number < 1:
        raise refuse(f"The level of {name} lies between 0 and 1.", f"Write {name}(n, 0.95).")
    return number


def _plain(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node
