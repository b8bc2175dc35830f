"""What a source means, row by row in plain Python: slow, and written apart from the statements."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tests.support.random_sources import TABLES, Data, same

from sfumato.plan.expressions.facts import Facts, refine
from sfumato.plan.expressions.tree import Call, Column, Expression, Literal
from sfumato.plan.questions.relations import argument_facts, block_facts, source_facts
from sfumato.plan.questions.sources import (
    AggregateCall,
    Block,
    Joined,
    PerUnit,
    Public,
    Scan,
    Source,
    United,
    WindowCall,
    Windowed,
)

__all__ = ["meaning"]

Row = tuple[Any, dict[str, Any]]


def meaning(source: Source | Public, data: Data) -> list[Row]:
    """The rows of a source, each with its unit."""
    if isinstance(source, Scan | Public):
        return _scan(source.table, data)
    if isinstance(source, Joined):
        return _joined(source, data)
    if isinstance(source, United):
        kinds = source_facts(source, TABLES)
        return [
            (unit, {name: _cast(row[name], kinds[name].kind) for name in kinds})
            for part in source.parts
            for unit, row in _block(part, data)
        ]
    facts = source_facts(source.source, TABLES)
    kept = [
        (_plain(unit), row)
        for unit, row in meaning(source.source, data)
        if unit is not None and _holds(source.predicate, row)
    ]
    if source.predicate is not None:
        facts = refine(source.predicate, facts)
    return _per_unit(source, kept, facts) if isinstance(source, PerUnit) else _windowed(source, kept, facts)


def _scan(name: str, data: Data) -> list[Row]:
    rows = [(row.get("who"), {key: _plain(row[key]) for key in TABLES[name].schema}) for row in data[name]]
    links = {"lines": ("basket", "baskets", "basket"), "marks": ("at", "lines", "line")}
    if name not in links:
        return rows
    here, above, there = links[name]
    owned = _scan(above, data)
    return [
        (unit, row)
        for _, row in rows
        for unit, other in owned
        if unit is not None and row[here] is not None and row[here] == other[there]
    ]


def _block(block: Block, data: Data) -> list[Row]:
    facts = source_facts(block.source, TABLES)
    return [
        (unit, {name: _plain(_value(each, row, facts)) for name, each in block.columns})
        for unit, row in meaning(block.source, data)
        if _holds(block.predicate, row)
    ]


def _joined(source: Joined, data: Data) -> list[Row]:
    left, right = _block(source.left, data), _block(source.right, data)
    if source.is_public:
        right = _reduced(source, right)
    made: list[Row] = []
    for unit, row in left:
        partners = [
            other
            for whose, other in right
            if (source.is_public or (unit is not None and whose is not None and same(unit, whose)))
            and all(_meets(row[a], other[b]) for a, b in source.on)
        ]
        if not partners and source.outer:
            partners = [{name: None for name, _ in source.right.columns}]
        made += [(unit, row | other) for other in partners]
    return made


def _meets(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return False
    if isinstance(first, float) or isinstance(second, float):
        first, second = float(first), float(second)
    return bool(first == second)


def _reduced(source: Joined, rows: list[Row]) -> list[Row]:
    left = block_facts(source.left, TABLES)
    groups: dict[Any, list[dict[str, Any]]] = {}
    for _, row in rows:
        key = tuple(
            float(row[b]) if left[a].kind == "float" and row[b] is not None else row[b] for a, b in source.on
        )
        if all(each is not None and each == each for each in key):
            groups.setdefault(key, []).append(row)
    return [
        (None, {name: _plain(_least([row[name] for row in group])) for name in group[0]})
        for group in groups.values()
    ]


def _least(values: list[Any]) -> Any:
    present = [each for each in values if each is not None]
    numbers = [each for each in present if each == each]
    return min(numbers) if numbers else present[0] if present else None


def _plain(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


def _per_unit(source: PerUnit, rows: list[Row], facts: Mapping[str, Facts]) -> list[Row]:
    groups: dict[Any, tuple[Any, list[Any], list[dict[str, Any]]]] = {}
    for unit, row in rows:
        keys = [_plain(_value(each, row, facts)) for _, each in source.keys]
        known = (repr(unit), *map(repr, keys))
        groups.setdefault(known, (unit, keys, []))[2].append(row)
    made: list[Row] = []
    for unit, keys, group in groups.values():
        values = {name: key for (name, _), key in zip(source.keys, keys, strict=True)}
        values |= {name: _aggregate(call, group, facts) for name, call in source.aggregates}
        if _holds(source.having, values):
            made.append((unit, values))
    return made


def _aggregate(call: AggregateCall, rows: list[dict[str, Any]], facts: Mapping[str, Facts]) -> Any:
    if call.argument is None:
        return len(rows)
    known = argument_facts(call, facts)
    values = [_value(call.argument, row, facts) for row in rows]
    present = [_plain(each) for each in values if each is not None and each == each]
    if call.function == "count":
        return len(present)
    if call.function == "count_values":
        return len(set(present))
    if call.function in ("min", "max"):
        return (min if call.function == "min" else max)(present, default=None)
    if not present:
        return None
    units, bits = zip(*(_units(each, known) for each in present), strict=True)
    total = Fraction(sum(units)) / Fraction(2) ** bits[0]
    if call.function == "mean":
        return _float(min(max(total / len(units), known.low), known.high))
    if known.kind == "float":
        return _float(total)
    return int(min(max(total, -(2**63)), 2**63 - 1))


def _float(exact: Fraction | float) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def _units(value: Any, facts: Facts) -> tuple[int, int]:
    """The value as a whole number of 2**-bits, by the rule that the module's docstring states."""
    low, high = facts.low, facts.high
    if facts.kind != "float":
        return int(min(max(int(value), low), high)), 0
    if isinstance(low, Fraction) and isinstance(high, Fraction):
        most = max(abs(low), abs(high))
        bits = 0
        if most:
            bits = 53 - math.ceil(math.log2(most)) if most >= Fraction(1, 2**500) else 1000
            while most * Fraction(2) ** bits > 2**53:
                bits -= 1
            while most * Fraction(2) ** (bits + 1) <= 2**53:
                bits += 1
            bits = min(bits, 1000)
        ends = math.floor(low * Fraction(2) ** bits), math.ceil(high * Fraction(2) ** bits)
    else:
        known = max((abs(each) for each in (low, high) if isinstance(each, Fraction)), default=0)
        assert known <= 2**53
        bits = 24
        ends = tuple(
            math.trunc(each * 2**24) if isinstance(each, Fraction) else int(math.copysign(2**77, each))
            for each in (low, high)
        )  # type: ignore[assignment]
    if math.isinf(value):
        return (ends[1] if value > 0 else ends[0]), bits
    exact = Fraction(value) * Fraction(2) ** bits
    return min(max(math.trunc(exact), ends[0]), ends[1]), bits


def _compare(first: Any, second: Any) -> int:
    nan = first != first, second != second
    if any(nan):
        return nan[0] - nan[1]
    return (first > second) - (first < second)


def _windowed(source: Windowed, rows: list[Row], facts: Mapping[str, Facts]) -> list[Row]:
    made = [(unit, {name: _plain(value) for name, value in row.items()}) for unit, row in rows]
    seen = [dict(row) for _, row in made]
    for name, window in source.columns:
        groups: dict[Any, list[int]] = {}
        for i, (unit, _) in enumerate(made):
            partition = [repr(_plain(_value(each, seen[i], facts))) for each in window.partition]
            groups.setdefault((repr(unit), *partition), []).append(i)
        for group in groups.values():
            for i, value in zip(group, _over(window, [seen[i] for i in group], facts), strict=True):
                made[i][1][name] = value
    return made


def _over(window: WindowCall, rows: list[dict[str, Any]], facts: Mapping[str, Facts]) -> list[Any]:
    if not window.order:
        found = _aggregate(AggregateCall(window.function, window.argument), rows, facts)  # type: ignore[arg-type]
        return [found] * len(rows)
    keys = [[(_value(each, row, facts), down) for each, down in window.order] for row in rows]
    full = [key + [(value, False) for value in row.values()] for key, row in zip(keys, rows, strict=True)]
    if window.function == "row_number":
        ranked = sorted(range(len(rows)), key=functools.cmp_to_key(lambda i, j: _order(full[i], full[j])))
        places = {i: place for place, i in enumerate(ranked, 1)}
        return [places[i] for i in range(len(rows))]
    if window.function in ("rank", "dense_rank"):
        return [_rank(window.function, key, keys) for key in keys]
    ranked = sorted(range(len(rows)), key=functools.cmp_to_key(lambda i, j: _order(full[i], full[j])))
    step = -window.offset if window.function == "lag" else window.offset
    found: dict[int, Any] = {}
    for place, i in enumerate(ranked):
        inside = 0 <= place + step < len(ranked)
        assert window.argument is not None
        found[i] = _plain(_value(window.argument, rows[ranked[place + step]], facts)) if inside else None
    return [found[i] for i in range(len(rows))]


def _rank(function: str, key: list[Any], keys: list[list[Any]]) -> int:
    before = [each for each in keys if _order(each, key) < 0]
    if function == "rank":
        return len(before) + 1
    return 1 + len({tuple(repr(_plain(value)) for value, _ in each) for each in before})


def _order(first: list[tuple[Any, bool]], second: list[tuple[Any, bool]]) -> int:
    for (a, down), (b, _) in zip(first, second, strict=True):
        if a is None or b is None:
            found = (a is None) - (b is None)
        else:
            found = -_compare(a, b) if down else _compare(a, b)
        if found:
            return found
    return 0


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: float(a) + float(b),
    "multiply": lambda a, b: float(a) * float(b),
    "less": lambda a, b: _compare(a, b) < 0,
    "greater_equal": lambda a, b: _compare(a, b) >= 0,
    "not": lambda a: not a,
}


def _raw(expression: Expression, row: Mapping[str, Any]) -> Any:
    if isinstance(expression, Column):
        return row[expression.name]
    if isinstance(expression, Literal):
        return expression.value
    assert isinstance(expression, Call)
    arguments = [_raw(each, row) for each in expression.arguments]
    if expression.function == "is_null":
        return arguments[0] is None
    return None if None in arguments else _FUNCTIONS[expression.function](*arguments)


def _holds(predicate: Expression | None, row: Mapping[str, Any]) -> bool:
    return predicate is None or _raw(predicate, row) is True


def _value(expression: Expression, row: Mapping[str, Any], facts: Mapping[str, Facts]) -> Any:
    value = _raw(expression, row)
    if not isinstance(expression, Call) or not isinstance(value, float):
        return value
    whole = all(
        facts[each.name].kind == "integer" if isinstance(each, Column) else isinstance(each.value, int)
        for each in expression.arguments
        if isinstance(each, Column | Literal)
    )
    if not whole:
        return value
    return int(value) if -(2.0**63) <= value < 2.0**63 else None


def _cast(value: Any, kind: Any) -> Any:
    return float(value) if kind == "float" and value is not None else value
