"""What a predicate says about the columns of the rows that satisfy it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.comparisons import FLIPPED, NEGATED
from sfumato.plan.expressions.deduce import facts_of, resolve_with_facts
from sfumato.plan.expressions.ranges import Facts, hull, place_of, truth
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal

__all__ = ["refine"]

Known: TypeAlias = dict[str, Facts]


def refine(predicate: Expression, columns: Mapping[str, Facts]) -> dict[str, Facts]:
    """What is known about the columns of rows for which the predicate is true.

    Comparisons with constants or other expressions, IN, IS NULL, and AND, OR, NOT of these narrow; anything
    else leaves the columns as they are. Where nothing would be left, they stay as they were too.

    Raises:
        QueryRefused: if the predicate is ill-typed or no truth value.
    """
    resolved, facts = resolve_with_facts(predicate, columns)
    if facts.kind not in ("boolean", None):
        raise QueryRefused("WHERE needs a condition that is true or false.", "Compare it with something.")
    return _narrow(resolved, dict(columns), True)


def _narrow(predicate: Expression, known: Known, holds: bool) -> Known:
    if isinstance(predicate, Column):
        return _only(predicate.name, known, truth(nullable=False, values=(holds,)))
    if not isinstance(predicate, Call):
        return known
    arguments = predicate.arguments
    match predicate.function:
        case "not":
            return _narrow(arguments[0], known, not holds)
        case "and" | "or" as word:
            if (word == "and") == holds:
                for argument in (*arguments, *arguments):  # twice: what one says may help another
                    known = _narrow(argument, known, holds)
                return known
            return _either([_narrow(argument, known, holds) for argument in arguments], known)
        case "is_null":
            return known if holds else _present(arguments[0], known)
        case "in":
            return _narrow_in(arguments, known, holds)
        case word if word in FLIPPED:
            word = word if holds else NEGATED[word]
            known = _compare(word, arguments[0], arguments[1], known)
            return _compare(FLIPPED[word], arguments[1], arguments[0], known)
    return known


def _present(expression: Expression, known: Known) -> Known:
    if isinstance(expression, Column):
        facts = known[expression.name]
        return {**known, expression.name: replace(facts, nullable=False)} if facts.nullable else known
    return known


def _compare(word: str, left: Expression, right: Expression, known: Known) -> Known:
    known = _present(left, known)
    if not isinstance(left, Column):
        return known
    other = facts_of(right, known)
    facts = known[left.name]
    if word == "equal":
        return _only(left.name, known, other)
    if facts.values is not None and other.single is not None:
        kept = tuple(value for value in facts.values if _TESTS[word](value, other.single))
        return {**known, left.name: _relisted(facts, kept)}
    if facts.kind in ("text", "boolean") or word == "not_equal":
        return known
    strictly = word in ("less", "greater")
    if word in ("less", "less_equal"):
        return {**known, left.name: _cut(facts, -math.inf, other.high, strictly)}
    return {**known, left.name: _cut(facts, other.low, math.inf, strictly)}


_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


def _cut(facts: Facts, low: Fraction | float, high: Fraction | float, strictly: bool) -> Facts:
    # A grid is cut to its points; without one, whole numbers still are.
    lower = facts.low if low == -math.inf else max(facts.low, low)
    upper = facts.high if high == math.inf else min(facts.high, high)
    step = facts.step or (Fraction(1) if facts.whole else None)
    anchor = facts.lower if facts.lower is not None else Fraction(0)
    if step is not None and isinstance(lower, Fraction) and lower == low:
        place = (lower - anchor) / step
        lower = anchor + step * (math.floor(place) + 1 if strictly else math.ceil(place))
    if step is not None and isinstance(upper, Fraction) and upper == high:
        place = (upper - anchor) / step
        upper = anchor + step * (math.ceil(place) - 1 if strictly else math.floor(place))
    if lower > upper:
        return facts
    low_, high_ = (None if isinstance(bound, float) else bound for bound in (lower, upper))
    values = facts.values
    if values is not None:
        kept = tuple(value for value in values if lower <= place_of(value) <= upper)
        values = kept or values
    step = None if low_ is None else step
    if (low_, high_, step, values) == (facts.lower, facts.upper, facts.step, facts.values):
        return facts
    return Facts(facts.kind, facts.nullable, low_, high_, step, values)


def _relisted(facts: Facts, kept: tuple[Any, ...]) -> Facts:
    if not kept:
        return facts
    if facts.kind == "text":
        return replace(facts, values=kept)
    places = [place_of(value) for value in kept]
    return replace(facts, values=kept, lower=Fraction(min(places)), upper=Fraction(max(places)))


def _only(name: str, known: Known, other: Facts) -> Known:
    facts = replace(known[name], nullable=False)
    if other.values is not None and other.values:
        allowed = set(other.values)
        if facts.values is not None:
            return {
                **known,
                name: _relisted(facts, tuple(value for value in facts.values if value in allowed)),
            }
        kept = tuple(dict.fromkeys(_as(value, facts) for value in other.values if _possible(value, facts)))
        return {**known, name: _relisted(facts, kept)}
    if facts.kind in ("text", "boolean"):
        return {**known, name: facts}
    return {**known, name: _cut(facts, other.low, other.high, False)}


def _as(value: Any, facts: Facts) -> Any:
    return int(value) if facts.kind == "integer" else float(value) if facts.kind == "float" else value


def _possible(value: Any, facts: Facts) -> bool:
    if facts.kind == "text":
        return True
    if isinstance(value, int):  # in whole numbers: lists are long, and fractions slow to compare
        lower, upper = facts.lower, facts.upper
        return (lower is None or lower.numerator <= value * lower.denominator) and (
            upper is None or value * upper.denominator <= upper.numerator
        )
    place = place_of(value)
    if not facts.low <= place <= facts.high:
        return False
    return not facts.whole or place.denominator == 1


def _narrow_in(arguments: tuple[Expression, ...], known: Known, holds: bool) -> Known:
    value, *options = arguments
    known = _present(value, known)
    if not isinstance(value, Column):
        return known
    listed = [option.value for option in options if isinstance(option, Literal) and option.value is not None]
    facts = known[value.name]
    if holds:
        kind = facts.kind
        return _only(value.name, known, Facts(kind, False, values=tuple(listed)))
    if facts.values is None:
        return known
    barred = set(listed)
    return {**known, value.name: _relisted(facts, tuple(own for own in facts.values if own not in barred))}


def _either(options: list[Known], before: Known) -> Known:
    return {name: _union([option[name] for option in options], facts) for name, facts in before.items()}


def _union(options: list[Facts], before: Facts) -> Facts:
    facts = hull(options, before.kind, nullable=any(option.nullable for option in options))
    if facts.values is None:
        return facts
    # In the declared order, if there is one.
    listed = set(facts.values)
    ordered = (
        sorted(facts.values)
        if before.values is None
        else [value for value in before.values if value in listed]
    )
    return replace(facts, values=tuple(ordered))
