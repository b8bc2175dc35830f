"""Random sources over one small shop of tables, with rows for these.

The rows break every promise of the schemas: NULL, NaN, both zeros, infinities, duplicates, pointers that fit
two rows or none, ids that are missing.
"""

from __future__ import annotations

import datetime
import itertools
import math
import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pyarrow as pa

from sfumato.plan.expressions.facts import Facts, refine
from sfumato.plan.expressions.tree import Column, Expression, Literal, call, literal
from sfumato.plan.questions.relations import block_facts, source_facts
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
from sfumato.schema import Bool, Date, Float, Int, PrivacyUnit, PrivateTable, PublicTable, Text

__all__ = ["ARROW", "TABLES", "Data", "make_data", "random_source", "same", "without"]

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


def same(first: Any, second: Any) -> bool:
    """Whether two ids are one unit, as the engine has it."""
    return first == second or (first != first and second != second)


def without(data: Data, unit: Any, *, only_root: bool) -> Data:
    """The tables after a unit is removed: where it is named, or also the rows that lead to nobody else."""
    kept = {
        name: [row for row in rows if "who" not in row or not same(row["who"], unit)]
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
