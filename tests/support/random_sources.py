"""Random sources over one small shop of tables, and what they mean, row by row in plain Python.

The rows break every promise of the schemas: NULL, NaN, both zeros, infinities, duplicates, pointers that fit
two rows or none, ids that are missing.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa

from sfumato.plan.expressions import Call, Column, Expression, Literal, call, literal
from sfumato.plan.facts import Facts, refine
from sfumato.plan.relations import argument_facts, block_facts, source_facts
from sfumato.plan.sources import (
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
from sfumato.schema import Bool, Date, Float, Int, PrivacyUnit, PrivateTable, PublicTable, Text

__all__ = ["ARROW", "TABLES", "Data", "make_data", "meaning", "random_source", "without"]

Row = tuple[Any, dict[str, Any]]
Data = dict[str, list[dict[str, Any]]]

TABLES: dict[str, PrivateTable | PublicTable] = {
    each.name: each
    for each in (
        PrivateTable(
            "visits",
            source=None,
            unit=PrivacyUnit("who"),
            dataset="shop",
            schema={
                "k": Int(0, 5),
                "x": Float(-4, 10),
                "f": Float(),
                "n": Int(),
                "s": Text(),
                "b": Bool(),
                "d": Date(),
            },
        ),
        PrivateTable(
            "baskets",
            source=None,
            unit=PrivacyUnit("who"),
            dataset="shop",
            schema={"basket": Int(), "z": Float(0, 1)},
        ),
        PrivateTable(
            "lines",
            source=None,
            unit=PrivacyUnit.via("baskets", on="basket"),
            schema={"basket": Int(), "line": Int(), "y": Float()},
        ),
        PrivateTable(
            "marks",
            source=None,
            unit=PrivacyUnit.via("lines", on={"at": "line"}),
            schema={"at": Int(), "mark": Text()},
        ),
        PublicTable("regions", source=None, schema={"k": Int(), "w": Float(), "r": Text(), "big": Bool()}),
    )
}
ARROW: dict[str, pa.Schema] = {
    "visits": pa.schema(
        {
            "who": pa.float64(),
            "k": pa.int64(),
            "x": pa.float64(),
            "f": pa.float64(),
            "n": pa.int64(),
            "s": pa.string(),
            "b": pa.bool_(),
            "d": pa.date32(),
        }
    ),
    "baskets": pa.schema([("who", pa.float64()), ("basket", pa.int64()), ("z", pa.float64())]),
    "lines": pa.schema([("basket", pa.int64()), ("line", pa.int64()), ("y", pa.float64())]),
    "marks": pa.schema([("at", pa.int64()), ("mark", pa.string())]),
    "regions": pa.schema([("k", pa.int64()), ("w", pa.float64()), ("r", pa.string()), ("big", pa.bool_())]),
}
_FLOATS = (None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 0.2, 0.3, 1e16, -1e16, 1e300, 5e-324, 2.5)
_INTS = (None, 2**63 - 1, -(2**63), 2**53 + 1, 0, 1, 1, 2, -7)
_TEXTS = (None, "", "a", "a", "B", "é", "z'z")
_PEOPLE = (None, 0.0, -0.0, 1.0, 1.0, 2.0, 2.0, 3.0, math.nan, math.inf)


def make_data(draw: random.Random, most: int = 14) -> Data:
    """Rows for all tables."""

    def some(*values: Any) -> Any:
        return draw.choice(values)

    def size() -> int:
        return 0 if draw.random() < 0.05 else most

    day = datetime.date(2024, 1, 1)
    return {
        "visits": [
            {
                "who": some(*_PEOPLE),
                "k": some(None, 0, 1, 1, 2, 9),
                "x": some(*_FLOATS),
                "f": some(*_FLOATS, draw.uniform(-1, 1)),
                "n": some(*_INTS),
                "s": some(*_TEXTS),
                "b": some(None, True, False),
                "d": some(None, day, day + datetime.timedelta(draw.randrange(5))),
            }
            for _ in range(size())
        ],
        "baskets": [
            {"who": some(*_PEOPLE), "basket": some(None, 1, 2, 3, 4, 5, 6), "z": some(*_FLOATS)}
            for _ in range(size())
        ],
        "lines": [
            {"basket": some(None, *range(1, 8)), "line": some(None, 1, 2, 3, 4, 5), "y": some(*_FLOATS)}
            for _ in range(size())
        ],
        "marks": [{"at": some(None, 1, 2, 3, 4, 5, 6), "mark": some(*_TEXTS)} for _ in range(size())],
        "regions": [
            {
                "k": some(None, 0, 1, 2, 2**53 + 1, 2**53),
                "w": some(*_FLOATS),
                "r": some(*_TEXTS),
                "big": some(None, True, False),
            }
            for _ in range(draw.choice((0, 5, 12, 12, 12, 12)))
        ],
    }


def _same(first: Any, second: Any) -> bool:
    return first == second or (first != first and second != second)


def without(data: Data, unit: Any, *, only_root: bool) -> Data:
    """The tables after a unit is removed: where it is named, or also the rows that lead to nobody else."""
    kept = {
        name: [row for row in rows if "who" not in row or not _same(row["who"], unit)]
        for name, rows in data.items()
    }
    if only_root:
        return kept
    for name, pointer, above, target in (
        ("lines", "basket", "baskets", "basket"),
        ("marks", "at", "lines", "line"),
    ):
        before, after = ({row[target] for row in each[above]} for each in (data, kept))
        gone = before - after
        kept[name] = [row for row in kept[name] if row[pointer] is None or row[pointer] not in gone]
    return kept


# ── random sources ──


class _Maker:
    def __init__(self, draw: random.Random) -> None:
        self.draw, self._names = draw, itertools.count()

    def name(self) -> str:
        return f"{self.draw.choice('aKc p0 r l')}{next(self._names)}".replace(" ", "_")

    def source(self, depth: int) -> Source:
        if depth == 0:
            return Scan(self.draw.choice(("visits", "visits", "baskets", "lines", "marks")))
        nodes = (self.public, self.private, self.united, self.per_unit, self.per_unit, self.windowed)
        kind = self.draw.choice(nodes)
        return kind(depth - 1)

    def numbers(self, facts: Mapping[str, Facts]) -> list[str]:
        return [name for name, each in facts.items() if each.kind in ("integer", "float")]

    def expression(self, facts: Mapping[str, Facts]) -> Expression:
        numbers = self.numbers(facts)
        if numbers and self.draw.random() < 0.3:
            number = Column(self.draw.choice(numbers))
            return call(
                self.draw.choice(("add", "multiply")), number, literal(self.draw.choice((1, 3, 0.5, 2**40)))
            )
        return Column(self.draw.choice(list(facts)))

    def predicate(self, facts: Mapping[str, Facts]) -> Expression | None:
        if self.draw.random() < 0.75:
            return None
        numbers = self.numbers(facts)
        if numbers and self.draw.random() < 0.7:
            return call(
                self.draw.choice(("less", "greater_equal")),
                Column(self.draw.choice(numbers)),
                literal(self.draw.choice((0, 1, 0.25))),
            )
        return call("not", call("is_null", Column(self.draw.choice(list(facts)))))

    def block(self, source: Source | Public, need: list[Expression] | None = None) -> Block:
        facts = source_facts(source, TABLES)
        listed = [*(need or ()), *(self.expression(facts) for _ in range(self.draw.randint(1, 3)))]
        return Block(source, self.predicate(facts), tuple((self.name(), each) for each in listed))

    def public(self, depth: int) -> Source:
        inner = self.source(depth)
        numbers = self.numbers(source_facts(inner, TABLES))
        if not numbers:
            return self.per_unit(0)
        key = "k" if "k" in numbers and self.draw.random() < 0.7 else self.draw.choice(numbers)
        left = self.block(inner, [Column(key)])
        right = self.block(Public("regions"), [Column(self.draw.choice(("k", "k", "w")))])
        return Joined(left, right, ((left.columns[0][0], right.columns[0][0]),), self.draw.random() < 0.5)

    def private(self, depth: int) -> Source:
        left, right = self.block(self.source(depth)), self.block(self.source(0))
        kinds = block_facts(left, TABLES), block_facts(right, TABLES)
        pairs = [(a, b) for a in kinds[0] for b in kinds[1] if kinds[0][a].kind == kinds[1][b].kind]
        on = tuple(self.draw.sample(pairs, min(len(pairs), self.draw.choice((0, 0, 0, 1, 2)))))
        if len({a for a, _ in on}) < len(on) or len({b for _, b in on}) < len(on):
            on = on[:1]
        return Joined(left, right, on, self.draw.random() < 0.5)

    def united(self, depth: int) -> Source:
        parts = [self.source(depth), *(self.source(0) for _ in range(self.draw.randint(1, 2)))]
        facts = [source_facts(each, TABLES) for each in parts]
        names = [self.name() for _ in range(3)]
        lists: list[list[tuple[str, Expression]]] = [[] for _ in parts]
        for name in names:
            numeric = all(self.numbers(each) for each in facts) and self.draw.random() < 0.8
            for listed, each in zip(lists, facts, strict=True):
                chosen: Expression = Literal("none", "text")
                texts = [one for one, known in each.items() if known.kind == "text"]
                if numeric:
                    chosen = Column(self.draw.choice(self.numbers(each)))
                elif texts:
                    chosen = Column(self.draw.choice(texts))
                listed.append((name, chosen))
        for listed in lists:
            self.draw.shuffle(listed)
        return United(
            tuple(
                Block(part, self.predicate(known), tuple(listed))
                for part, known, listed in zip(parts, facts, lists, strict=True)
            )
        )

    def aggregate(self, facts: Mapping[str, Facts]) -> AggregateCall:
        numbers = self.numbers(facts)
        function: Any = self.draw.choice(
            ("count", "count_values", "min", "max") + (("sum", "mean") * 2 if numbers else ())
        )
        if function in ("sum", "mean"):
            return AggregateCall(function, Column(self.draw.choice(numbers)), bounds=self.bounds())
        argument = self.expression(facts)
        if function == "count" and self.draw.random() < 0.4:
            return AggregateCall("count")
        return AggregateCall(function, argument)

    def bounds(self) -> Any:
        return self.draw.choice(
            (None, None, ("row", Fraction(-3), Fraction(5)), ("row", Fraction(1, 3), Fraction(7, 2)))
        )

    def per_unit(self, depth: int) -> Source:
        inner = self.source(depth)
        before = source_facts(inner, TABLES)
        predicate = self.predicate(before)
        facts = before if predicate is None else refine(predicate, before)
        keys = tuple((self.name(), self.expression(facts)) for _ in range(self.draw.choice((0, 0, 1, 2))))
        calls = tuple((self.name(), self.aggregate(facts)) for _ in range(self.draw.randint(1, 4)))
        made = PerUnit(inner, predicate, keys, calls)
        return PerUnit(inner, predicate, keys, calls, self.predicate(source_facts(made, TABLES)))

    def windowed(self, depth: int) -> Source:
        inner = self.source(depth)
        before = source_facts(inner, TABLES)
        predicate = self.predicate(before)
        facts = before if predicate is None else refine(predicate, before)
        calls = tuple((self.name(), self.window(facts)) for _ in range(self.draw.randint(1, 3)))
        return Windowed(inner, predicate, calls)

    def window(self, facts: Mapping[str, Facts]) -> WindowCall:
        partition = tuple(self.expression(facts) for _ in range(self.draw.choice((0, 0, 1))))
        ordered: Any = ("row_number", "row_number", "rank", "dense_rank", "lag", "lead")
        if self.draw.random() < 0.6:
            function = self.draw.choice(ordered)
            order = tuple((self.expression(facts), self.draw.random() < 0.5) for _ in range(1))
            argument = self.expression(facts) if function in ("lag", "lead") else None
            return WindowCall(function, argument, partition, order, self.draw.choice((1, 1, 2)))
        made = self.aggregate(facts)
        if made.function == "count_values":
            made = AggregateCall("count")
        return WindowCall(made.function, made.argument, partition)  # type: ignore[arg-type]


def random_source(draw: random.Random, depth: int) -> Source:
    """A source of this many levels above tables."""
    return _Maker(draw).source(depth)


# ── what a source means ──


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
    rows = [(row.get("who"), {key: row[key] for key in TABLES[name].schema}) for row in data[name]]
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
        (unit, {name: _value(each, row, facts) for name, each in block.columns})
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
            if (source.is_public or (unit is not None and whose is not None and _same(unit, whose)))
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
