"""Arithmetic in doubles: what is undefined (division by zero, the root of a negative number) is NULL."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from sfumato.plan.expressions.functions.base import Function, Rule, need, refused, strict
from sfumato.plan.expressions.ranges import Facts, common_step, number
from sfumato.schema import Kind

__all__ = ["ARITHMETIC", "Bound", "numbers", "some_null", "times"]

Bound = Fraction | float  # a float only for the infinities


def numbers(name: str, *arguments: Facts) -> Kind:
    """Refuse what is not a number; whole if all are."""
    need(name, ("integer", "float"), *arguments)
    return "float" if any(argument.kind == "float" for argument in arguments) else "integer"


def some_null(*arguments: Facts) -> bool:
    """Whether any can be NULL."""
    return any(argument.nullable for argument in arguments)


def times(first: Bound, second: Bound) -> Bound:
    """The product of two bounds, where 0 times infinity is 0: no value is infinite."""
    if first == 0 or second == 0:
        return Fraction(0)
    if isinstance(first, float) or isinstance(second, float):
        return math.inf if (first > 0) == (second > 0) else -math.inf
    return first * second


def plus(first: Bound, second: Bound) -> Bound:
    """The sum of two bounds of the same side."""
    if isinstance(first, float) or isinstance(second, float):
        return first if isinstance(first, float) else second
    return first + second


def _step(facts: Facts) -> Fraction | None:
    # A constant lies on every grid.
    return Fraction(0) if facts.lower is not None and facts.lower == facts.upper else facts.step


def _add(first: Facts, second: Facts) -> Facts:
    kind = numbers("+", first, second)
    steps = (_step(first), _step(second))
    step = None if None in steps else common_step(steps[0] or Fraction(0), steps[1] or Fraction(0)) or None
    return number(
        kind,
        plus(first.low, second.low),
        plus(first.high, second.high),
        nullable=some_null(first, second),
        step=step,
    )


def _negate(facts: Facts) -> Facts:
    kind = numbers("-", facts)
    return number(kind, -facts.high, -facts.low, nullable=facts.nullable, step=facts.step)


def _subtract(first: Facts, second: Facts) -> Facts:
    numbers("-", first, second)
    return _add(first, _negate(second))


def _multiply(first: Facts, second: Facts) -> Facts:
    kind = numbers("*", first, second)
    corners = [times(a, b) for a in (first.low, first.high) for b in (second.low, second.high)]
    step = None
    for one, other in ((first, second), (second, first)):
        if one.lower is not None and one.lower == one.upper and other.step is not None:
            step = abs(one.lower) * other.step or None
    return number(kind, min(corners), max(corners), nullable=some_null(first, second), step=step)


def _reciprocal(facts: Facts) -> tuple[Bound, Bound]:
    # Zero is left out, since dividing by it gives NULL; a whole number is then at least 1 away from it.
    low, high = facts.low, facts.high
    nearest = Fraction(1) if facts.whole else None
    if low >= 0:
        low = max(low, nearest) if nearest else low
        return _inverse(high, math.inf), _inverse(low, math.inf)
    if high <= 0:
        high = min(high, -nearest) if nearest else high
        return _inverse(high, -math.inf), _inverse(low, -math.inf)
    return (-nearest, nearest) if nearest else (-math.inf, math.inf)


def _inverse(bound: Bound, at_zero: float) -> Bound:
    if isinstance(bound, float):
        return Fraction(0)
    return 1 / bound if bound else at_zero


def _holds_zero(facts: Facts) -> bool:
    return facts.low <= 0 <= facts.high


def _divide(first: Facts, second: Facts) -> Facts:
    numbers("/", first, second)
    corners = [times(a, b) for a in (first.low, first.high) for b in _reciprocal(second)]
    nullable = some_null(first, second) or _holds_zero(second)
    return number("float", min(corners), max(corners), nullable=nullable)


def _whole_only(name: str, *arguments: Facts) -> None:
    for argument in arguments:
        if argument.kind not in ("integer", None):
            raise refused(name, "whole numbers", argument, "FLOOR(a / b) works on any numbers.")


def _int_divide(first: Facts, second: Facts) -> Facts:
    _whole_only("//", first, second)
    exact = _divide(first, second)
    return number("integer", _trunc(exact.low), _trunc(exact.high), nullable=exact.nullable)


def _modulo(first: Facts, second: Facts) -> Facts:
    kind = numbers("%", first, second)
    widest: Bound = max(-second.low, second.high)
    if kind == "integer" and isinstance(widest, Fraction):
        widest = max(widest - 1, Fraction(0))
    low = Fraction(0) if first.low >= 0 else max(first.low, -widest)
    high = Fraction(0) if first.high <= 0 else min(first.high, widest)
    return number(kind, low, high, nullable=some_null(first, second) or _holds_zero(second))


def _abs(facts: Facts) -> Facts:
    kind = numbers("ABS", facts)
    if facts.low >= 0:
        return number(kind, facts.low, facts.high, nullable=facts.nullable, step=facts.step)
    if facts.high <= 0:
        return _negate(facts)
    return number(kind, Fraction(0), max(-facts.low, facts.high), nullable=facts.nullable)


def _sign(facts: Facts) -> Facts:
    numbers("SIGN", facts)
    low = Fraction((facts.low > 0) - (facts.low < 0))
    high = Fraction((facts.high > 0) - (facts.high < 0))
    return number("integer", low, high, nullable=facts.nullable)


def _floor(bound: Bound) -> Bound:
    return bound if isinstance(bound, float) else Fraction(math.floor(bound))


def _ceil(bound: Bound) -> Bound:
    return bound if isinstance(bound, float) else Fraction(math.ceil(bound))


def _trunc(bound: Bound) -> Bound:
    return bound if isinstance(bound, float) else Fraction(math.trunc(bound))


def _rounding(name: str, to: Callable[[Bound], Bound]) -> Rule:
    def rule(facts: Facts) -> Facts:
        numbers(name, facts)
        if facts.kind == "integer":
            return facts
        return number("integer", to(facts.low), to(facts.high), nullable=facts.nullable)

    return rule


_BINARY = ("this", "expression")


def _binary(operator: str) -> str:
    return f"CAST({{0}} AS DOUBLE) {operator} CAST({{1}} AS DOUBLE)"


def _unary(function: str) -> str:
    return f"{function}(CAST({{0}} AS DOUBLE))"


ARITHMETIC: tuple[Function, ...] = (
    Function("add", (2, 2), _add, _binary("+"), strict(np.add), {"Add": _BINARY}, doc="The sum."),
    Function(
        "subtract", (2, 2), _subtract, _binary("-"), strict(np.subtract), {"Sub": _BINARY},
        doc="The difference.",
    ),
    Function(
        "multiply", (2, 2), _multiply, _binary("*"), strict(np.multiply), {"Mul": _BINARY}, doc="The product."
    ),
    Function(
        "divide",
        (2, 2),
        _divide,
        "CASE WHEN {1} <> 0 THEN CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE) END",
        strict(lambda a, b: (np.divide(a, b), b != 0)),
        {"Div": _BINARY},
        doc="The quotient as a fraction; NULL if the divisor is 0.",
    ),
    Function(
        "int_divide",
        (2, 2),
        _int_divide,
        "CASE WHEN {1} <> 0 THEN TRUNC(CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE)) END",
        strict(lambda a, b: (np.trunc(np.divide(a, b)), b != 0)),
        {"IntDiv": _BINARY},
        doc="The quotient of whole numbers, rounded toward zero; NULL if the divisor is 0.",
    ),
    Function(
        "modulo",
        (2, 2),
        _modulo,
        "CASE WHEN {1} <> 0 THEN CAST({0} AS DOUBLE) % CAST({1} AS DOUBLE) END",
        strict(lambda a, b: (np.fmod(a, b), b != 0)),
        {"Mod": _BINARY},
        doc="The remainder, with the sign of the first number; NULL if the divisor is 0.",
    ),
    Function(
        "negate", (1, 1), _negate, "-CAST({0} AS DOUBLE)", strict(np.negative), {"Neg": ("this",)},
        doc="The number with the other sign.",
    ),
    Function("abs", (1, 1), _abs, _unary("ABS"), strict(np.abs), {"Abs": ("this",)}, doc="Its size."),
    Function(
        "sign",
        (1, 1),
        _sign,
        "CAST(SIGN(CAST({0} AS DOUBLE)) AS DOUBLE)",
        strict(np.sign),
        {"Sign": ("this",)},
        doc="-1, 0 or 1.",
    ),
    Function(
        "floor", (1, 1), _rounding("FLOOR", _floor), _unary("FLOOR"), strict(np.floor), {"Floor": ("this",)},
        doc="The greatest whole number that is not above it.",
    ),
    Function(
        "ceil", (1, 1), _rounding("CEIL", _ceil), _unary("CEIL"), strict(np.ceil), {"Ceil": ("this",)},
        doc="The least whole number that is not below it.",
    ),
    Function(
        "trunc", (1, 1), _rounding("TRUNC", _trunc), _unary("TRUNC"), strict(np.trunc), {"Trunc": ("this",)},
        doc="It, rounded toward zero.",
    ),
)  # fmt: skip
