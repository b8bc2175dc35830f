"""Random worlds of several tables about the same people, each with neighbours in which one of them differs.

Customers with orders, the items of orders and notes about items, whose owners are one, two and three pointers
away; visits that are units by themselves; a public table with gaps and repetitions. All of them break every
promise of their schema: bounds, keys, uniqueness, pointers that lead nowhere or to two people.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from random_tables import Side, World
from sfumato.schema import (
    Bool,
    ColumnType,
    Date,
    Enum,
    Float,
    Int,
    PrivacyUnit,
    PrivateTable,
    PublicTable,
    Text,
)

__all__ = ["GROUPINGS", "make_shop"]

GROUPINGS = {
    "by_status": ("status",),
    "by_memo": ("memo",),
    "by_loose": ("loose",),
    "by_day": ("day",),
    "by_both": ("memo", "paid"),
}
"""The orders again, prepared to be grouped by these columns."""

Row = dict[str, Any]
Rows = dict[str, list[Row]]

_ARROW: dict[str, pa.DataType] = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
}
_KEYS = {"region", "status", "sort", "topic", "purpose", "memo", "place", "paid"}
_WILD = {
    "integer": (2**63 - 1, -(2**63), 2**53 + 1, 0),
    "float": (math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308),
    "text": ("", "zz", "O'Hara", "ü"),
    "date": (2**31 - 1, -(2**31) + 2, 0, 2932897),
}


def _schemas(draw: random.Random) -> dict[str, dict[str, ColumnType]]:
    def one(make: Any, *choices: tuple[Any, ...]) -> ColumnType:
        return make(*draw.choice(choices), nullable=draw.random() < 0.6)  # type: ignore[no-any-return]

    place = Int(0, 9)
    return {
        "customers": {
            "region": one(Enum, ("n", "s", "w"), ("s", "N", "")),
            "age": one(Int, (0, 110), (18, 99)),
            "income": one(Float, (0, 200), (-50, 40)),
            "since": one(Date, ("2024-01-01", "2024-02-29")),
        },
        "orders": {
            "order_id": Int(),
            "status": one(Enum, ("new", "paid", "sent"), ("s", "n", "w")),
            "amount": one(Float, (0, 500), (-20, 100), (0.1, 0.7)),
            "qty": one(Int, (0, 12), (-7, 3)),
            "day": one(Date, ("2024-01-01", "2024-01-31"), ("2019-12-30", "2020-02-02")),
            "place": place,
            "memo": Text(),
            "loose": draw.choice((Int(), Float())),
            "paid": one(Bool, ()),
        },
        "items": {
            "item_id": Int(),
            "order_id": Int(),
            "sort": one(Enum, ("a", "b", "c"), (1, 2, 40)),
            "price": one(Float, (0, 30), (-1, 3)),
            "count": one(Int, (0, 5), (1, 1000)),
        },
        "notes": {
            "item_id": Int(),
            "topic": one(Enum, ("t", "u"), ("only",)),
            "stars": one(Int, (1, 5), (-3, 2)),
        },
        "visits": {
            "place": place,
            "purpose": one(Enum, ("x", "y"), ("p", "q", "r")),
            "grade": one(Float, (0, 10), (-4, 4)),
        },
        "places": {
            "place": place,
            "zone": one(Enum, ("east", "west"), ("x", "y", "z")),
            "rate": one(Float, (0, 5), (-2, 1)),
            "level": one(Int, (-3, 3), (0, 4)),
        },
    }


def make_shop(seed: int | str, *, adjacency: str | None = None) -> World:
    """A random shop, the same for the same seed; with this adjacency if one is given."""
    draw = random.Random(f"shop {seed}")
    schemas = _schemas(draw)
    kind = draw.choice(("integer", "text", "float"))
    how: Any = adjacency or draw.choice(("add-remove", "add-remove", "exchange"))
    maker = _Maker(draw, schemas, kind)
    rows = maker.population()
    tables = _tables(draw, schemas, kind, how)
    base = maker.arrow(rows)
    sides = []
    for name, new in maker.exchanged(rows) if how == "exchange" else maker.removed(rows):
        sides.append(Side(name, maker.arrow(new)))
    mixed = {name: draw.sample(each, len(each)) for name, each in rows.items()}
    sides.append(Side("mixed", maker.arrow(mixed), moves=False))
    named = {name: [row for row in each if row.get("user", 0) is not None] for name, each in rows.items()}
    sides.append(Side("nobody", maker.arrow(named), moves=False))
    places = _arrow(maker.places(), maker.kinds("places"))
    prepared = {"ranked": (), **GROUPINGS}
    tables |= {name: _again(name, tables["orders"]) for name in prepared}
    return World(tables, base | {"places": places}, tuple(sides), prepared=prepared)


def _tables(
    draw: random.Random, schemas: Mapping[str, dict[str, ColumnType]], kind: str, adjacency: Any
) -> dict[str, Any]:
    declared = {"integer": Int(), "text": Text(), "float": Float()}[kind] if draw.random() < 0.3 else None

    def limits() -> dict[str, Any]:
        groups = draw.randint(1, 4)
        return {
            "max_groups": groups,
            "max_rows": draw.choice((None, 1, 3, 12, groups)),
            "adjacency": adjacency,
        }

    def table(name: str, unit: PrivacyUnit, dataset: str | None = None) -> PrivateTable:
        schema = dict(schemas[name])
        if declared is not None and unit.column == "user":
            schema["user"] = declared
        return PrivateTable(name, source=None, unit=unit, schema=schema, dataset=dataset)

    made = [
        table("customers", PrivacyUnit("user", **limits()), "shop"),
        table("orders", PrivacyUnit("user", **limits()), "shop"),
        table("items", PrivacyUnit.via("orders", on="order_id", **limits())),
        table("notes", PrivacyUnit.via("items", on="item_id", **limits())),
        table("visits", PrivacyUnit.row(adjacency=adjacency)),
        PublicTable("places", source=None, schema=schemas["places"], key="place"),
    ]
    return {each.name: each for each in made}


def _again(name: str, orders: PrivateTable) -> PrivateTable:
    """The orders again, as a prepared table."""
    return PrivateTable(name, source=None, unit=orders.unit, schema=orders.schema, dataset="shop")


class _Maker:
    """Makes the rows of people: usual ones, and heavy ones at the ends of the schemas."""

    def __init__(
        self, draw: random.Random, schemas: Mapping[str, dict[str, ColumnType]], id_kind: str
    ) -> None:
        self.draw, self.schemas, self.id_kind = draw, schemas, id_kind
        self.heavy = {mood: self.identity(i) for i, mood in enumerate(("high", "low", "wide"))}
        if draw.random() < 0.3:
            strange = {"integer": (0, -1), "text": ("", "NULL"), "float": (0.0, math.nan)}[id_kind]
            self.heavy["high"], self.heavy["low"] = draw.sample(strange, 2)
        self._ids = 0

    def identity(self, number: int) -> Any:
        return {"integer": 1000 + number, "text": f"u{number}", "float": 1000.25 + number}[self.id_kind]

    def kinds(self, table: str) -> dict[str, str]:
        made = {name: str(each.kind) for name, each in self.schemas[table].items()}
        return made | {"user": self.id_kind} if table in ("customers", "orders") else made

    def arrow(self, rows: Rows) -> dict[str, pa.Table]:
        made = {name: _arrow(each, self.kinds(name)) for name, each in rows.items()}
        return made | dict.fromkeys(("ranked", *GROUPINGS), made["orders"])

    def population(self) -> Rows:
        """Three heavy people, a dozen others, and rows of nobody."""
        rows: Rows = {name: [] for name in self.schemas if name != "places"}
        for mood, identity in self.heavy.items():
            _add(rows, self.person(mood, identity))
        for number in range(10, 10 + self.draw.randint(8, 16)):
            _add(rows, self.person("usual", self.identity(number)))
        for _ in range(3):
            _add(rows, self.person(self.draw.choice(("usual", "high", "low")), None))
        taken = [row["order_id"] for row in rows["orders"]]
        for row in self.draw.sample(rows["orders"], len(rows["orders"]) // 8):
            row["order_id"] = self.draw.choice(taken)  # one order of two people
        for row in self.draw.sample(rows["items"], len(rows["items"]) // 10):
            row["order_id"] = self.draw.choice((None, -5, *taken))
        for row in self.draw.sample(rows["notes"], len(rows["notes"]) // 10):
            row["item_id"] = self.draw.choice((None, -5))
        return rows

    def person(self, mood: str, identity: Any, *, keys: str | None = None) -> Rows:
        """All that one person has; `keys`: with the groups of another mood."""
        draw, heavy = self.draw, mood != "usual"
        ids = (identity, -identity) if identity == 0.0 and self.id_kind == "float" else (identity,)
        rows: Rows = {
            "customers": [
                self.row("customers", mood, keys) | {"user": draw.choice(ids)}
                for _ in range(draw.choice((1, 4, 9)) if heavy else draw.choice((1, 1, 1, 0, 2)))
            ]
        }
        rows["orders"] = [
            self.row("orders", mood, keys) | {"user": ids[i % len(ids)], "order_id": self.next()}
            for i in range(draw.choice((4, 14, 21)) if heavy else draw.choice((0, 1, 1, 2, 4)))
        ]
        orders = [row["order_id"] for row in rows["orders"]]
        rows["items"] = [
            self.row("items", mood, keys) | {"order_id": draw.choice(orders[:4]), "item_id": self.next()}
            for _ in range((draw.choice((6, 20)) if heavy else draw.choice((0, 1, 3))) if orders else 0)
        ]
        items = [row["item_id"] for row in rows["items"]]
        rows["notes"] = [
            self.row("notes", mood, keys) | {"item_id": draw.choice(items[:5])}
            for _ in range((draw.choice((5, 15)) if heavy else draw.choice((0, 1, 2))) if items else 0)
        ]
        rows["visits"] = [self.row("visits", mood, keys)]
        return rows

    def next(self) -> int:
        self._ids += 1
        return self._ids

    def row(self, table: str, mood: str, keys: str | None = None) -> Row:
        return {
            name: self.value(name, column, (keys or mood) if name in _KEYS else mood)
            for name, column in self.schemas[table].items()
        }

    def value(self, name: str, column: ColumnType, mood: str) -> Any:
        draw = self.draw
        if mood == "usual" or (mood == "wide" and name in _KEYS):
            return self.usual(name, column)
        top = mood != "low"
        match column:
            case Enum(values=values):
                return values[0] if top else values[-1]
            case Bool():
                return top
            case Text():
                return "m1" if top else "m2"
            case Date(start=start, end=end):
                return ((end if top else start).toordinal()) - 719163
            case Int(lower=None) | Float(lower=None):
                return draw.choice((1000, 7)) if top else draw.choice((-1000, -7))
        if name == "place":
            return 1 if top else 2
        end = column.upper if top else column.lower  # type: ignore[attr-defined]
        beyond = (2**62 if top else -(2**62)) if isinstance(column, Int) else (1e300 if top else -1e300)
        return draw.choice((int(end) if isinstance(column, Int) else float(end), beyond, beyond))

    def usual(self, name: str, column: ColumnType) -> Any:
        draw = self.draw
        if draw.random() < 0.08:
            return None
        wild = draw.random() < 0.06
        if wild and column.kind in _WILD:
            return (
                None
                if isinstance(column, Enum) and column.kind != "text"
                else draw.choice(_WILD[str(column.kind)])
            )
        match column:
            case Enum(values=values):
                return draw.choice(values)
            case Bool():
                return draw.random() < 0.5
            case Text():
                return draw.choice(("m1", "m2", "m3", "m4", "", None))
            case Date(start=start, end=end):
                return draw.randint(start.toordinal(), end.toordinal()) - 719163
            case Int(lower=lower, upper=upper):
                return draw.randint(-50, 50) if lower is None else draw.randint(lower, min(upper, lower + 20))
            case Float(lower=lower, upper=upper):
                return draw.uniform(-9, 9) if lower is None else draw.uniform(float(lower), float(upper))
        raise AssertionError(name)

    def places(self) -> list[Row]:
        """The public table: a row each for most places, gaps, and keys that are there twice or NULL."""
        listed = (0, 1, 2, 3, 3, 3, 4, 5, 1, 2, 8, None, None, 77)
        moods = ("usual", "high", "low")
        return [self.row("places", self.draw.choice(moods)) | {"place": place} for place in listed]

    # ── neighbours ──

    def without(self, rows: Rows, identity: Any, *, dangling: bool) -> Rows:
        """All rows of one person gone; with `dangling` what was theirs stays behind and is nobody's."""

        def theirs(row: Row) -> bool:
            user = row["user"]
            return user == identity or (user != user and identity != identity)

        left = {name: list(each) for name, each in rows.items()}
        left["customers"] = [row for row in rows["customers"] if not theirs(row)]
        left["orders"] = [row for row in rows["orders"] if not theirs(row)]
        if dangling:
            return left
        orders = {row["order_id"] for row in left["orders"]}
        gone = {row["order_id"] for row in rows["orders"] if theirs(row)} - orders
        left["items"] = [row for row in rows["items"] if row["order_id"] not in gone]
        items = {row["item_id"] for row in left["items"]}
        lost = {row["item_id"] for row in rows["items"]} - items
        left["notes"] = [row for row in rows["notes"] if row["item_id"] not in lost]
        return left

    def removed(self, rows: Rows) -> Iterator[tuple[str, Rows]]:
        """One person gone: each heavy one, and any other; and one visit."""
        others = [row["user"] for row in rows["orders"] if row["user"] is not None]
        for place, (name, identity) in enumerate({**self.heavy, "any": self.draw.choice(others)}.items()):
            left = self.without(rows, identity, dangling=self.draw.random() < 0.3)
            yield name, left | {"visits": rows["visits"][:place] + rows["visits"][place + 1 :]}

    def exchanged(self, rows: Rows) -> Iterator[tuple[str, Rows]]:
        """One person has quite other rows: in another group, of the other sign, or is somebody else."""
        high, low = self.heavy["high"], self.heavy["low"]
        found = [
            ("turned", high, self.person("low", high, keys="high")),
            ("elsewhere", high, self.person("high", high, keys="low")),
            ("swapped", low, self.person("high", self.identity(5))),
            ("wider", high, self.person("wide", self.identity(6))),
        ]
        for place, (name, old, new) in enumerate(found):
            left = self.without(rows, old, dangling=self.draw.random() < 0.3)
            left["visits"] = rows["visits"][:place] + rows["visits"][place + 1 :]
            _add(left, new)
            yield name, left


def _add(rows: Rows, more: Rows) -> None:
    for name, each in more.items():
        rows[name] = rows[name] + each


def _arrow(rows: list[Row], kinds: Mapping[str, str]) -> pa.Table:
    def column(name: str, kind: str) -> pa.Array:
        values = [row[name] for row in rows]
        if kind == "date":
            return pa.array(values, pa.int32()).view(pa.date32())
        return pa.array(values, _ARROW[kind])

    return pa.table({name: column(name, kind) for name, kind in kinds.items()})
