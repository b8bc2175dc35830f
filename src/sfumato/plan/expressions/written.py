"""Expressions as people read them, much as SQL would have it."""

from __future__ import annotations

from sfumato.plan.expressions.tree import Column, Expression, Literal

__all__ = ["written"]

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and": "AND",
    "or": "OR",
}
_LONGEST = 44
_SYMBOLS = 400  # of an expression: beyond, nobody reads on


def written(expression: Expression, longest: int = _LONGEST) -> str:
    """An expression much as SQL would have it, cut to a length."""
    text = _written(expression)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _written(expression: Expression) -> str:
    if isinstance(expression, Column):
        return expression.name
    if isinstance(expression, Literal):
        value = expression.value
        return f"'{value}'" if isinstance(value, str) else "NULL" if value is None else f"{value}"
    arguments = [_written(argument) for argument in expression.arguments]
    if expression.function == "multiply" and arguments[0] == arguments[-1]:
        return f"({arguments[0]})²"
    if expression.function in _INFIX and len(arguments) == 2:
        sides = [
            f"({argument})" if " " in argument and argument[-1] != "²" else argument for argument in arguments
        ]
        return f" {_INFIX[expression.function]} ".join(sides)[:_SYMBOLS]
    return f"{expression.function}({', '.join(arguments)})"[:_SYMBOLS]
