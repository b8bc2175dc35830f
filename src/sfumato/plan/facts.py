"""What the declared bounds say about an expression, what a predicate narrows, and the finite lists of keys."""

from __future__ import annotations

import datetime
import difflib
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.numeric.exact import float_down, float_up
from sfumato.plan.expressions import Call, Column, Expression, Literal
from sfumato.plan.functions import FUNCTIONS, evaluate
from sfumato.plan.ranges import Facts, constant, day_of, days_of, truth
from sfumato.schema import Bool, ColumnType, Date, Enum, Float, Int, Text

__all__ = ["Facts", "column_facts", "domain_of", "facts_of", "refine", "resolve"]

LIMIT = 100_000
_PRODUCT = 4096  # how many combinations of listed values are tried out


def column_facts(column: ColumnType) -> Facts:
    """What the declared type of a column says about it.

    Bounds of a float column are widened to the next doubles outside, since the engine holds doubles.
    """
    return _COLUMNS[type(column)](column)


def _int(column: Any) -> Facts:
    if column.lower is None:
        return Facts("integer", column.nullable)
    return Facts("integer", column.nullable, Fraction(column.lower), Fraction(column.upper), Fraction(1))


def _float(column: Any) -> Facts:
    if column.lower is None:
        return Facts("float", column.nullable)
    lower, upper = Fraction(float_down(column.lower)), Fraction(float_up(column.upper))
    return Facts("float", column.nullable, lower, upper)


def _enum(column: Any) -> Facts:
    if column.kind == "text":
        return Facts("text", column.nullable, values=column.values)
    lower, upper = Fraction(min(column.values)), Fraction(max(column.values))
    return Facts("integer", column.nullable, lower, upper, Fraction(1), column.values)


def _date(column: Any) -> Facts:
    if column.start is None:
        return Facts("date", column.nullable)
    return Facts("date", column.nullable, days_of(column.start), days_of(column.end), Fraction(1))


_COLUMNS: dict[type[ColumnType], Callable[[Any], Facts]] = {
    Int: _int,
    Float: _float,
    Enum: _enum,
    Date: _date,
    Text: lambda column: Facts("text", column.nullable),
    Bool: lambda column: truth(nullable=column.nullable),
}


def facts_of(expression: Expression, columns: Mapping[str, Facts]) -> Facts:
    """What is known about the values of an expression over columns of which this is known.

    Raises:
        QueryRefused: for an unknown column or function, and for arguments of the wrong kind or number.
    """
    if isinstance(expression, Column):
        if expression.name not in columns:
            raise QueryRefused(
                f"There is no column {expression.name[:60]!r}.", _nearest(expression.name, columns)
            )
        return columns[expression.name]
    if isinstance(expression, Literal):
        _check(expression)
        return constant(expression.value, expression.kind)
    function = FUNCTIONS.get(expression.function)
    if function is None:
        raise QueryRefused(
            f"There is no function {expression.function[:60].upper()}.",
            _nearest(expression.function, FUNCTIONS),
        )
    least, most = function.arity
    if not least <= len(expression.arguments) <= (most if most is not None else math.inf):
        count = str(least) if least == most else f"{least} to {most}" if most else f"at least {least}"
        raise QueryRefused(
            f"{function.name.upper()} takes {count} arguments, not {len(expression.arguments)}."
        )
    for position in function.literals:
        if position < len(expression.arguments) and not isinstance(expression.arguments[position], Literal):
            raise QueryRefused(
                f"Argument {position + 1} of {function.name.upper()} must be a constant.", function.doc
            )
    arguments = [facts_of(each, columns) for each in expression.arguments]
    return _listed(expression, arguments, function.rule(*arguments))


def _check(constant: Literal) -> None:
    value = constant.value
    if isinstance(value, float) and not math.isfinite(value):
        raise QueryRefused("A constant must be finite.", "Use a large number instead.")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise QueryRefused("A whole number must fit in 64 bits.", "Write it as a fraction, such as 1e20.")


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    found = difflib.get_close_matches(name.lower(), [each.lower() for each in known], 1)
    spelt = {each.lower(): each for each in known}
    if found:
        return f"Did you mean {spelt[found[0]]!r}?"
    return f"There are: {', '.join(sorted(known)[:20])}."


def _listed(expression: Call, arguments: list[Facts], facts: Facts) -> Facts:
    # Where all arguments are listed, so are the results: each combination is tried out. Floats are left, since
    # the last digit may differ between engines.
    function = FUNCTIONS[expression.function]
    if facts.values is not None and facts.kind != "boolean" or facts.kind in ("float", None):
        return facts
    if function.compute is None or any(each.values is None or each.kind is None for each in arguments):
        return facts
    lists = [(*(each.values or ()), *((None,) if each.nullable else ())) for each in arguments]
    if not 0 < math.prod(map(len, lists)) <= _PRODUCT or (function.ascii and not _ascii(lists)):
        return facts
    names = [f"x{i}" for i in range(len(lists))]
    rows = list(itertools.product(*lists))
    table = {name: _column([row[i] for row in rows], arguments[i]) for i, name in enumerate(names)}
    result = evaluate(Call(expression.function, tuple(Column(name) for name in names)), table)
    found = tuple(dict.fromkeys(_python(each, facts) for each in result.compressed()))
    if not found:
        return facts
    bounded = replace(facts, values=found, nullable=bool(np.ma.getmaskarray(result).any()))
    if facts.kind in (None, "text"):
        return bounded
    places = [days_of(each) if isinstance(each, datetime.date) else Fraction(each) for each in found]
    return replace(bounded, lower=min(places), upper=max(places), step=Fraction(1))


def _column(values: list[Any], facts: Facts) -> Any:
    fillers: dict[Any, Any] = {"text": "", "boolean": False, "date": datetime.date(1970, 1, 1)}
    dtypes: dict[Any, Any] = {"text": object, "boolean": bool, "date": "datetime64[D]"}
    filler, dtype = fillers.get(facts.kind, 0), dtypes.get(facts.kind, np.float64)
    filled = np.array([filler if each is None else each for each in values], dtype=dtype)
    return np.ma.MaskedArray(filled, mask=[each is None for each in values])


def _ascii(lists: list[tuple[Any, ...]]) -> bool:
    return all(each.isascii() for values in lists for each in values if isinstance(each, str))


def _python(value: Any, facts: Facts) -> Any:
    match facts.kind:
        case "integer":
            return int(value)
        case "boolean":
            return bool(value)
        case "date":
            return value.astype(object) if isinstance(value, np.datetime64) else value
    return value


def domain_of(facts: Facts, limit: int = LIMIT) -> tuple[Any, ...] | None:
    """The finite list of values, in the order in which they are reported; None if there is none or it is too long.

    Listed values keep their order, as an Enum declares them; ranges ascend.
    """
    if facts.values is not None:
        return facts.values if len(facts.values) <= limit else None
    if facts.lower is None or facts.upper is None or facts.step is None:
        return None
    count = int((facts.upper - facts.lower) / facts.step) + 1
    if count > limit:
        return None
    places = (facts.lower + i * facts.step for i in range(count))
    match facts.kind:
        case "date":
            return tuple(day_of(each) for each in places)
        case "boolean":
            return tuple(bool(each) for each in places)
        case "integer":
            return tuple(int(each) for each in places)
    return tuple(float(each) for each in places)


def resolve(expression: Expression, columns: Mapping[str, Facts]) -> Expression:
    """The same expression with every overloaded function named after the kinds of its arguments.

    `day + 1` becomes `add_days`, the difference of dates `days_between`, a text compared with a date a date. What
    cannot be typed is left as it is, for `facts_of` to refuse.
    """
    if not isinstance(expression, Call):
        return expression
    return Call(expression.function, tuple(resolve(each, columns) for each in expression.arguments))


Known: TypeAlias = dict[str, Facts]


def refine(predicate: Expression, columns: Mapping[str, Facts]) -> dict[str, Facts]:
    """What is known about the columns of rows for which the predicate is true.

    Comparisons with constants or other expressions, IN, IS NULL, and AND, OR, NOT of these narrow; anything else
    leaves the columns as they are. Where nothing would be left, the columns stay as they were too.

    Raises:
        QueryRefused: if the predicate is ill-typed or no truth value.
    """
    facts = facts_of(predicate, columns)
    if facts.kind not in ("boolean", None):
        raise QueryRefused("WHERE needs a condition that is true or false.", "Compare it with something.")
    return _narrow(predicate, dict(columns), True)


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
                for each in (*arguments, *arguments):  # twice: what one says may help another
                    known = _narrow(each, known, holds)
                return known
            return _either([_narrow(each, known, holds) for each in arguments])
        case "is_null":
            return known if holds else _present(arguments[0], known)
        case "in":
            return _narrow_in(arguments, known, holds)
        case word if word in _FLIPPED:
            word = word if holds else _NEGATED[word]
            known = _compare(word, arguments[0], arguments[1], known)
            return _compare(_FLIPPED[word], arguments[1], arguments[0], known)
    return known


_FLIPPED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
_NEGATED = {
    "equal": "not_equal",
    "not_equal": "equal",
    "less": "greater_equal",
    "less_equal": "greater",
    "greater": "less_equal",
    "greater_equal": "less",
}


def _present(expression: Expression, known: Known) -> Known:
    if isinstance(expression, Column):
        return {**known, expression.name: replace(known[expression.name], nullable=False)}
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
        kept = tuple(each for each in facts.values if _TESTS[word](each, other.single))
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
    lower, upper = max(facts.low, low), min(facts.high, high)
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
    low_, high_ = (None if isinstance(each, float) else each for each in (lower, upper))
    values = facts.values
    if values is not None:
        kept = tuple(each for each in values if lower <= _place(each) <= upper)
        values = kept or values
    return replace(facts, lower=low_, upper=high_, step=None if low_ is None else step, values=values)


def _place(value: Any) -> Fraction:
    return days_of(value) if isinstance(value, datetime.date) else Fraction(value)


def _relisted(facts: Facts, kept: tuple[Any, ...]) -> Facts:
    if not kept:
        return facts
    if facts.kind == "text":
        return replace(facts, values=kept)
    places = [_place(each) for each in kept]
    return replace(facts, values=kept, lower=min(places), upper=max(places))


def _only(name: str, known: Known, other: Facts) -> Known:
    facts = replace(known[name], nullable=False)
    if other.values is not None and other.values:
        allowed = set(other.values)
        if facts.values is not None:
            return {**known, name: _relisted(facts, tuple(each for each in facts.values if each in allowed))}
        kept = tuple(dict.fromkeys(_as(each, facts) for each in other.values if _possible(each, facts)))
        if facts.kind == "float":  # −0.0 and 0.0 are one number, and the engine's doubles are no list of keys
            return {**known, name: _relisted(facts, kept)}
        return {**known, name: _relisted(facts, kept)}
    if facts.kind in ("text", "boolean"):
        return {**known, name: facts}
    return {**known, name: _cut(facts, other.low, other.high, False)}


def _as(value: Any, facts: Facts) -> Any:
    return int(value) if facts.kind == "integer" else float(value) if facts.kind == "float" else value


def _possible(value: Any, facts: Facts) -> bool:
    if facts.kind == "text":
        return True
    place = _place(value)
    if not facts.low <= place <= facts.high:
        return False
    return not facts.whole or place.denominator == 1


def _narrow_in(arguments: tuple[Expression, ...], known: Known, holds: bool) -> Known:
    value, *options = arguments
    known = _present(value, known)
    if not isinstance(value, Column):
        return known
    listed = [each.value for each in options if isinstance(each, Literal) and each.value is not None]
    facts = known[value.name]
    if holds:
        kind = facts.kind
        return _only(value.name, known, Facts(kind, False, values=tuple(listed)))
    if facts.values is None:
        return known
    return {**known, value.name: _relisted(facts, tuple(each for each in facts.values if each not in listed))}


def _either(options: list[Known]) -> Known:
    first, *others = options
    return {name: _union(facts, [each[name] for each in others]) for name, facts in first.items()}


def _union(facts: Facts, others: list[Facts]) -> Facts:
    if all(each == facts for each in others):
        return facts
    every = [facts, *others]
    nullable = any(each.nullable for each in every)
    values: tuple[Any, ...] | None = None
    if all(each.values is not None for each in every):
        values = tuple(dict.fromkeys(value for each in every for value in each.values or ()))
    low, high = min(each.low for each in every), max(each.high for each in every)
    lower, upper = (None if isinstance(each, float) else each for each in (low, high))
    step = Fraction(1) if facts.whole and lower is not None else None
    return Facts(facts.kind, nullable, lower, upper, step, values)
