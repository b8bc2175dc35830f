"""What the declared bounds of columns say about an expression, and its normal form."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import QueryRefused
from sfumato.numeric.exact import float_down, float_up
from sfumato.numeric.moments import seconds_of
from sfumato.plan.expressions.functions import FUNCTIONS, evaluate, overload
from sfumato.plan.expressions.functions.times import as_dates_and_times
from sfumato.plan.expressions.names import in_sql, nearest
from sfumato.plan.expressions.ranges import Facts, constant, days_of, place_of, truth, value_at
from sfumato.plan.expressions.size import check_size, check_text
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal, names_of
from sfumato.schema import Bool, ColumnType, Date, Enum, Float, Int, Text, Time, Timestamp

__all__ = [
    "column_facts",
    "domain_of",
    "facts_by_name",
    "facts_of",
    "resolve",
    "resolve_with_facts",
    "size_of",
]

LIMIT = 100_000
_PRODUCT = 4096  # how many combinations of listed values are tried out
_LETTERS = 2_000_000  # and how long their texts are together


def column_facts(column: ColumnType) -> Facts:
    """What the declared type of a column says about it.

    Bounds of a float column are widened to the next doubles outside, since the engine holds doubles.
    """
    return _COLUMNS[type(column)](column)


def facts_by_name(columns: Mapping[str, ColumnType] | Mapping[str, Facts]) -> dict[str, Facts]:
    """The facts of columns that are given with their types or their facts."""
    return {
        name: known if isinstance(known, Facts) else column_facts(known) for name, known in columns.items()
    }


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


def _timestamp(column: Any) -> Facts:
    return Facts("timestamp", column.nullable) if column.start is None else _seconds(column)


def _seconds(column: Any) -> Facts:
    first, last = (Fraction(seconds_of(end)) for end in (column.start, column.end))
    return Facts(column.kind, column.nullable, first, last, Fraction(1))


_COLUMNS: dict[type[ColumnType], Callable[[Any], Facts]] = {
    Int: _int,
    Float: _float,
    Enum: _enum,
    Date: _date,
    Timestamp: _timestamp,
    Time: _seconds,
    Text: lambda column: Facts("text", column.nullable),
    Bool: lambda column: truth(nullable=column.nullable),
}


def facts_of(expression: Expression, columns: Mapping[str, Facts]) -> Facts:
    """What is known about the values of an expression over columns of which this is known.

    Raises:
        QueryRefused: for an unknown column or function, and for arguments of the wrong kind or number.
    """
    check_size(expression)
    return _typed(expression, columns)[1]


def resolve_with_facts(expression: Expression, columns: Mapping[str, Facts]) -> tuple[Expression, Facts]:
    """What `resolve` and `facts_of` give, at once."""
    check_size(expression)
    resolved, facts = _typed(expression, columns)
    check_size(resolved)
    return resolved, facts


def resolve(expression: Expression, columns: Mapping[str, Facts]) -> Expression:
    """The same expression in normal form, with every function named after the kinds of its arguments.

    `day + 1` becomes `add_days`, the difference of dates `days_between`, a text compared with a date a date;
    nested AND and OR are flat, and the constants of IN are sorted.

    Raises:
        QueryRefused: as `facts_of` does.
    """
    return resolve_with_facts(expression, columns)[0]


def _typed(expression: Expression, columns: Mapping[str, Facts]) -> tuple[Expression, Facts]:
    if isinstance(expression, Column):
        if expression.name not in columns:
            fix = nearest(expression.name, [in_sql(column) for column in columns], "Columns")
            raise QueryRefused(f"There is no column {expression.name[:60]!r}.", fix).about("column")
        return expression, columns[expression.name]
    if isinstance(expression, Literal):
        _check(expression)
        return expression, constant(expression.value, expression.kind)
    known: tuple[dict[str, Facts], tuple[Expression, Facts]] | None = expression.notes.get("typed")
    if known is not None and all(columns.get(name) is facts for name, facts in known[0].items()):
        return known[1]
    typed = _typed_call(expression, columns)
    # It follows from the facts of its own columns alone.
    expression.notes["typed"] = {name: columns[name] for name in names_of(expression)}, typed
    return typed


def _typed_call(expression: Call, columns: Mapping[str, Facts]) -> tuple[Expression, Facts]:
    if expression.function not in FUNCTIONS:
        fix = nearest(expression.function, sorted(FUNCTIONS), "Functions")
        raise QueryRefused(f"There is no function {expression.function[:60].upper()}.", fix).about("function")
    if (
        expression.function == "in"
        and expression.arguments
        and (typed := _typed_list(expression, columns)) is not None
    ):
        return typed
    parts = [_typed(argument, columns) for argument in expression.arguments]
    if (timed := as_dates_and_times(expression.function, parts)) is not None:
        return _typed(Call(*timed), columns)
    name, order = overload(expression.function, tuple(facts.kind for _, facts in parts))
    parts = [parts[place] for place in order]
    if name == "in" and parts:
        parts = [parts[0], *sorted(dict(parts[1:]).items(), key=_sorting)]
    resolved = expression.replaced(name, tuple(part for part, _ in parts))
    facts = _applied(resolved, [facts for _, facts in parts])
    if name in ("and", "or"):
        resolved = resolved.replaced(name, tuple(_flat(resolved)))
    arranged = resolved.replaced(name, FUNCTIONS[name].arranged(resolved.arguments))
    return (resolved, facts) if arranged == resolved else _typed(arranged, columns)


def _typed_list(expression: Call, columns: Mapping[str, Facts]) -> tuple[Expression, Facts] | None:
    """The same for a value among constants of its own kind, at once; None where each must be looked at."""
    options = expression.arguments[1:]
    kinds = {option.kind if isinstance(option, Literal) else None for option in options}
    if len(kinds) != 1 or None in kinds:
        return None
    value, facts = _typed(expression.arguments[0], columns)
    constants = [option for option in options if isinstance(option, Literal)]
    for option in constants:
        _check(option)
    if (
        facts.kind not in kinds
        or facts.values is not None
        or any(option.value is None for option in constants)
    ):
        return None
    ordered = sorted(dict.fromkeys(constants), key=_value)
    one = ordered[0]  # the rule of IN asks for kinds alone
    resolved = expression.replaced("in", (value, *ordered))
    return resolved, _applied(Call("in", (value, one)), [facts, constant(one.value, one.kind)])


def _value(constant: Literal) -> Any:
    return constant.value


def _sorting(option: tuple[Expression, Facts]) -> tuple[str, Any]:
    value = option[0].value if isinstance(option[0], Literal) else None
    return ("", value) if isinstance(value, int | float) else (type(value).__name__, str(value))


def _flat(expression: Call) -> Iterator[Expression]:
    for argument in expression.arguments:
        if isinstance(argument, Call) and argument.function == expression.function:
            yield from argument.arguments  # flat already
        else:
            yield argument


def _applied(expression: Call, arguments: list[Facts]) -> Facts:
    function = FUNCTIONS[expression.function]
    least, most = function.arity
    if not least <= len(arguments) <= (most if most is not None else math.inf):
        count = str(least) if least == most else f"{least} to {most}" if most else f"at least {least}"
        raise QueryRefused(f"{function.name.upper()} takes {count} arguments, not {len(arguments)}.")
    for position in function.literals:
        if position < len(arguments) and not isinstance(expression.arguments[position], Literal):
            name = function.name.upper()
            raise QueryRefused(f"Argument {position + 1} of {name} must be a constant.", "Write it out.")
    return _listed(expression, arguments, function.rule(*arguments))


def _check(constant: Literal) -> None:
    value = constant.value
    if isinstance(value, float) and not math.isfinite(value):
        raise QueryRefused("A constant must be finite.", "Use a large number instead.")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise QueryRefused("A whole number must fit in 64 bits.", "Write it as a fraction, such as 1e20.")
    if isinstance(value, str):
        check_text(value)


def _listed(expression: Call, arguments: list[Facts], facts: Facts) -> Facts:
    # Where all arguments are listed, so are the results: each combination is tried out. Not floats, since the
    # last digit may differ between engines.
    function = FUNCTIONS[expression.function]
    if not function.listed or facts.kind in ("float", None):
        return facts
    if facts.values is not None and facts.kind != "boolean":
        return facts
    if function.compute is None or any(
        argument.values is None or argument.kind is None for argument in arguments
    ):
        return facts
    lists = [(*(argument.values or ()), *((None,) if argument.nullable else ())) for argument in arguments]
    if not 0 < math.prod(map(len, lists)) <= _PRODUCT or (function.ascii and not _ascii(lists)):
        return facts
    if _written(lists) > _LETTERS:
        return facts
    names = [f"x{i}" for i in range(len(lists))]
    rows = list(itertools.product(*lists))
    table = {name: _column([row[i] for row in rows], arguments[i]) for i, name in enumerate(names)}
    result = evaluate(Call(expression.function, tuple(Column(name) for name in names)), table)
    results = result.compressed()
    if not len(results) or (facts.kind == "integer" and not np.isfinite(results).all()):
        return facts
    distinct = tuple(dict.fromkeys(_python(value, facts) for value in results))
    bounded = replace(facts, values=distinct, nullable=bool(np.ma.getmaskarray(result).any()))
    if facts.kind in (None, "text"):
        return bounded
    places = [Fraction(place_of(value)) for value in distinct]
    return replace(bounded, lower=min(places), upper=max(places), step=Fraction(1))


def _written(lists: list[tuple[Any, ...]]) -> int:
    """How many characters there are at most in all combinations together."""
    longest = sum(max(len(value) if isinstance(value, str) else 0 for value in values) for values in lists)
    return longest * math.prod(map(len, lists))


def _column(values: list[Any], facts: Facts) -> Any:
    fillers: dict[Any, Any] = {"text": "", "boolean": False, "date": datetime.date(1970, 1, 1)}
    dtypes: dict[Any, Any] = {"text": object, "boolean": bool, "date": "datetime64[D]"}
    if facts.kind in ("timestamp", "time"):
        values = [None if value is None else seconds_of(value) for value in values]
        dtypes[facts.kind] = "datetime64[s]" if facts.kind == "timestamp" else "timedelta64[s]"
    filler, dtype = fillers.get(facts.kind, 0), dtypes.get(facts.kind, np.float64)
    filled = np.array([filler if value is None else value for value in values], dtype=dtype)
    return np.ma.MaskedArray(filled, mask=[value is None for value in values])


def _ascii(lists: list[tuple[Any, ...]]) -> bool:
    return all(value.isascii() for values in lists for value in values if isinstance(value, str))


def _python(value: Any, facts: Facts) -> Any:
    match facts.kind:
        case "integer":
            return int(value)
        case "boolean":
            return bool(value)
        case "date" | "timestamp":
            return value.astype(object) if isinstance(value, np.datetime64) else value
        case "time":
            return value_at(int(value.astype(np.int64)), "time")
    return value


def size_of(facts: Facts) -> int | None:
    """How many values there are, public and finite; None where that is not known."""
    if facts.values is not None:
        return len(facts.values)
    if facts.lower is None or facts.upper is None or facts.step is None:
        return None
    return int((facts.upper - facts.lower) / facts.step) + 1


def domain_of(facts: Facts, limit: int = LIMIT) -> tuple[Any, ...] | None:
    """The finite list of values in the order of reports; None if there is none, or it is longer.

    Listed values keep their order, as an Enum declares them; ranges ascend.

    Raises:
        QueryRefused: for whole numbers beyond 64 bits, which no key can be.
    """
    listed = facts.values or ()
    if facts.kind == "integer" and any(abs(value) >= 2**63 for value in listed):
        raise QueryRefused("A key is a whole number beyond 64 bits.", "Divide it by a constant.")
    if facts.values is not None:
        return facts.values if len(facts.values) <= limit else None
    count = size_of(facts)
    if count is None or count > limit:
        return None
    assert facts.lower is not None
    assert facts.step is not None
    # In units of which all places are whole numbers: adding up fractions takes a hundred times as long.
    unit = math.lcm(facts.lower.denominator, facts.step.denominator)
    start, step = int(facts.lower * unit), int(facts.step * unit)
    places = range(start, start + count * step, step)
    if facts.kind == "float":
        return tuple(place / unit for place in places)
    if facts.kind == "integer" and unit == 1:
        return tuple(places)
    return tuple(value_at(Fraction(place, unit), facts.kind) for place in places)
