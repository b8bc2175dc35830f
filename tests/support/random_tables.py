"""Random private tables that break every promise of their schema, each with neighbouring tables.

A world is one table with a unit, and variants of its rows in which one unit is gone or exchanged. A few heavy
units sit where sensitivities are reached: all columns at their greatest or least values, in one group or in
all of them.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sfumato.numeric.moments import FIRST, LAST, seconds_of
from sfumato.schema import (
    Bool,
    ColumnType,
    Date,
    Enum,
    Float,
    Int,
    PrivacyUnit,
    PrivateTable,
    Text,
    Time,
    Timestamp,
)

__all__ = ["Side", "World", "make_world"]

Row = dict[str, Any]
Draw = random.Random

_EPOCH = datetime.date(1970, 1, 1)
_TEXTS = (
    "Lyon",
    "lyon",
    "",
    "O'Hara",
    "a%b_",
    "Ünïcödé 🦆",
    "2024-02-30",
    "2024-02-29",
    "12.5",
    "1e400",
    "x" * 300,
)
_DAYS = (
    2**31 - 1,
    -(2**31) + 2,
    2932896,
    2932897,
    -719162,
    -719163,
    0,
)  # ±infinity of DuckDB, years 1 and 9999
_WILD_INTS = (2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 0)
_WILD_FLOATS = (math.nan, math.inf, -math.inf, -0.0, 1e308, -1e308, 5e-324, 2.0**63)
_STRANGE_IDS: dict[str, tuple[Any, ...]] = {
    "integer": (2**63 - 1, -(2**63), 0, -1),
    "text": ("", "NULL", "ü", "a'b", "a'b "),
    "float": (0.0, math.nan, math.inf, 0.5),
}
_ARROW: dict[str, pa.DataType] = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.int64(),  # seconds, as engines show them
    "time": pa.int64(),
}


@dataclass(frozen=True, slots=True)
class Side:
    """Neighbouring tables: what was done to which unit, and whether any answer may move at all."""

    name: str
    rows: Mapping[str, pa.Table]
    moves: bool = True


@dataclass(frozen=True, slots=True)
class World:
    """Tables by name, with their rows and neighbours; those in `prepared` have ranks, also for a grouping."""

    tables: Mapping[str, Any]
    base: Mapping[str, pa.Table]
    sides: tuple[Side, ...]
    prepared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def make_world(seed: int | str, *, adjacency: str | None = None) -> World:
    """A random table `people`, the same for the same seed; with this adjacency if one is given."""
    draw = random.Random(f"world {seed}")
    schema = _schema(draw)
    unit = _unit(draw, adjacency)
    id_kind = draw.choice(("integer", "text", "float"))
    if draw.random() < 0.4:
        schema["uid"] = {"integer": Int(), "text": Text(), "float": Float()}[id_kind]
    maker = _Rows(draw, schema, id_kind)
    rows = maker.population()
    kinds = {name: kind.kind for name, kind in schema.items()} | {"uid": id_kind}
    # Any number may be declared where one may be at all: no claim rests on it.
    count = 1 + len(rows) // 2 if unit.is_row and unit.adjacency == "exchange" else None
    table = PrivateTable("people", source=None, unit=unit, schema=schema, rows=count)
    neighbours = _exchanged if unit.adjacency == "exchange" else _removed
    sides = [Side(name, {"people": _arrow(new, kinds)}) for name, new in neighbours(rows, unit, maker)]
    if unit.column is not None:
        named = [row for row in rows if row["uid"] is not None]
        sides.append(Side("nobody", {"people": _arrow(named, kinds)}, moves=False))
    draw.shuffle(rows)
    return World({"people": table}, {"people": _arrow(rows, kinds)}, tuple(sides))


def _schema(draw: Draw) -> dict[str, ColumnType]:
    def some(make: Callable[..., ColumnType], *choices: tuple[Any, ...]) -> ColumnType:
        return make(*draw.choice(choices), nullable=draw.random() < 0.6)

    return {
        "grp": some(Enum, ("a", "b", "c"), ("b", "A", "", "ü"), ("only",)),
        "code": some(Enum, (1, 2, 3, 5), (-7, 0, 40), (2**40, -(2**40))),
        "flag": some(Bool, ()),
        "day": some(
            Date, ("2024-01-01", "2024-02-29"), ("2019-12-30", "2021-01-02"), ("1969-12-01", "1970-01-31")
        ),
        "day_free": some(Date, ()),
        "name": some(Text, ()),
        "n_pos": some(Int, (0, 110), (18, 99), (1, 2000)),
        "n_neg": some(Int, (-40, -3), (-1000, -1), (-12, 0)),
        "n_mix": some(Int, (-7, 20), (-30, 4), (-5, 5)),
        "n_big": some(Int, (-(2**53), 2**53), (0, 2**53), (-(2**40), 2**33)),
        "n_one": some(Int, (4, 4), (0, 0), (-1, -1)),
        "n_free": some(Int, ()),
        "f_pos": some(Float, (0, 200), (0.1, 0.7), (3, 1000)),
        "f_neg": some(Float, (-3, -1), (-250, 0), (-1e-3, -1e-4)),
        "f_mix": some(Float, (-1, 3), (-1000, 10), (-0.3, 0.3)),
        "f_tiny": some(Float, (1e-12, 3e-9), (-1e-150, 1e-150), (0, 1e-300)),
        "f_huge": some(Float, (-1e15, 1e15), (0, 9e15), (-1e12, -1e3)),
        "f_one": some(Float, (5, 5), (0, 0), (-0.1, -0.1)),
        "f_free": some(Float, ()),
        "at": Timestamp(*draw.choice((("2024-02-28T22:00:00", "2024-03-01"), ("1969-12-31", "1970-01-02")))),
        "at_free": Timestamp(),
        "clock": Time(*draw.choice(((), ("08:30", "10:00:01"))), nullable=False),
    }


def _unit(draw: Draw, adjacency: str | None) -> PrivacyUnit:
    chosen: Any = adjacency or draw.choice(("add-remove", "add-remove", "exchange"))
    if draw.random() < 0.2:
        return PrivacyUnit.row(adjacency=chosen)
    groups = draw.randint(1, 5)
    rows = draw.choice((None, 1, 3, groups, 17, 100))
    return PrivacyUnit("uid", max_groups=groups, max_rows=rows, adjacency=chosen)


class _Rows:
    """Makes rows of a schema: usual ones, and those at the ends of it."""

    def __init__(self, draw: Draw, schema: dict[str, ColumnType], id_kind: str) -> None:
        self.draw, self.schema, self.id_kind = draw, schema, id_kind
        self.times = random.Random(f"times {id_kind} {len(schema)}")
        self.heavy = {mood: self.identity(i) for i, mood in enumerate(("high", "low", "wide"))}
        if draw.random() < 0.3:
            self.heavy["high"], self.heavy["low"] = _STRANGE_IDS[id_kind][:2]

    def identity(self, number: int) -> Any:
        return {"integer": 1000 + number, "text": f"u{number}", "float": 1000.25 + number}[self.id_kind]

    def population(self) -> list[Row]:
        """All rows: three heavy units, dozens of others of one row to a few, strange and missing ids."""
        rows = [row for mood in self.heavy for row in self.unit(mood)]
        for number in range(10, 10 + self.draw.randint(20, 45)):
            size = self.draw.choice((1, 1, 1, 2, 3, 6))
            rows += [self.row("usual", self.identity(number)) for _ in range(size)]
        rows += [self.row("usual", name) for name in _STRANGE_IDS[self.id_kind] for _ in range(2)]
        rows += [
            self.row(self.draw.choice(("usual", "high", "low")), None)
            for _ in range(self.draw.randint(5, 12))
        ]
        return rows

    def unit(self, mood: str, identity: Any = None, *, keys: str | None = None) -> list[Row]:
        """The rows of a heavy unit; `keys`: as those of another mood."""
        name = self.heavy[mood] if identity is None else identity
        sizes = (self.draw.randint(23, 61), self.draw.randint(130, 330), 7)
        count = self.draw.choices(sizes, (6, 1, 2))[0]
        names = (name, -name) if name == 0.0 and self.id_kind == "float" else (name,)  # one unit of two signs
        return [self.row(mood, names[i % len(names)], keys=keys) for i in range(count)]

    def row(self, mood: str, identity: Any, *, keys: str | None = None) -> Row:
        values = {
            name: self.value(name, kind, (keys or mood) if name in _KEYS else mood)
            for name, kind in self.schema.items()
        }
        return values | {"uid": identity}

    def value(self, name: str, column: ColumnType, mood: str) -> Any:
        if mood == "usual" or (mood == "wide" and name in _KEYS):
            return self.usual(name, column)
        top = mood != "low"
        match column:
            case Enum(values=values):
                return values[0] if top else values[-1]
            case Timestamp(start=None):
                return 1_709_164_799 if top else -1
            case Timestamp(start=start, end=end) | Time(start=start, end=end):
                return seconds_of(end if top else start)
            case Bool():
                return top
            case Text():
                return "Lyon" if top else ""
            case Date(start=None):
                return 19_800 if top else -3_000
            case Date(start=start, end=end):
                return ((end if top else start) - _EPOCH).days
            case Int(lower=None) | Float(lower=None):
                return self.draw.choice((1, 1000, 3)) if top else self.draw.choice((-1, -1000, 0))
        end = column.upper if top else column.lower  # type: ignore[attr-defined]
        if isinstance(column, Int):
            beyond = 2**63 - 1 if top else -(2**63)
            return (
                int(end)
                if self.draw.random() < 0.8
                else self.draw.choice((beyond, int(end) + (1 if top else -1)))
            )
        beyond_float = math.inf if top else -math.inf
        more = float(end) * 4 if (end > 0) == top else float(end) + (7.0 if top else -7.0)
        return float(end) if self.draw.random() < 0.8 else self.draw.choice((beyond_float, more))

    def usual(self, name: str, column: ColumnType) -> Any:
        draw = self.times if isinstance(column, Timestamp | Time) else self.draw
        if draw.random() < 0.07:
            return None
        wild = draw.random() < 0.1
        match column:
            case Enum(values=values):
                strange: Any = (
                    draw.choice(("zz", "A ", "")) if column.kind == "text" else draw.choice(_WILD_INTS)
                )
                return strange if wild else draw.choice(values)
            case Bool():
                return draw.random() < 0.5
            case Text():
                return draw.choice(_TEXTS)
            case Date(start=start, end=end):
                first, last = (0, 19_800) if start is None else ((start - _EPOCH).days, (end - _EPOCH).days)
                return draw.choice(_DAYS) if wild else draw.randint(first - 1, last + 1)
            case Timestamp(start=None):
                return draw.choice((FIRST, LAST, 0)) if wild else draw.randint(-(10**9), 2 * 10**9)
            case Timestamp(start=start, end=end):
                first, last = seconds_of(start), seconds_of(end)
                return draw.choice((FIRST, LAST, first - 1, last + 1)) if wild else draw.randint(first, last)
            case Time():
                return draw.choice((0, 86_399, 43_200)) if wild else draw.randint(8 * 3600, 10 * 3600)
            case Int(lower=lower, upper=upper):
                low, high = (-1000, 1000) if lower is None else (lower, upper)
                return draw.choice(_WILD_INTS) if wild else draw.randint(low, high)
            case Float(lower=lower, upper=upper):
                low, high = (-1000.0, 1000.0) if lower is None else (float(lower), float(upper))
                return draw.choice(_WILD_FLOATS) if wild else draw.uniform(low, high)
        raise AssertionError(name)


_KEYS = {"grp", "code", "flag", "day", "name", "n_mix", "at", "clock"}  # what most queries group by


def _same(identity: Any) -> Callable[[Row], bool]:
    """Whether a row is of this unit: the engine takes −0.0 for 0.0, and all NaN for one."""
    return lambda row: row["uid"] == identity or (row["uid"] != row["uid"] and identity != identity)


def _parted(rows: list[Row], unit: PrivacyUnit, identity: Any) -> tuple[list[Row], list[Row]]:
    """The rows of one unit (the first of them, where each row is one), and all others."""
    mine = [i for i, row in enumerate(rows) if _same(identity)(row)]
    taken = set(mine[:1] if unit.column is None else mine)
    return [rows[i] for i in sorted(taken)], [row for i, row in enumerate(rows) if i not in taken]


def _removed(rows: list[Row], unit: PrivacyUnit, maker: _Rows) -> list[tuple[str, list[Row]]]:
    """Tables without one unit: each heavy one, and any other."""
    other = maker.draw.choice([row["uid"] for row in rows if row["uid"] is not None])
    chosen = {**maker.heavy, "any": other}
    return [(name, _parted(rows, unit, identity)[1]) for name, identity in chosen.items()]


def _exchanged(rows: list[Row], unit: PrivacyUnit, maker: _Rows) -> list[tuple[str, list[Row]]]:
    """Tables where a unit has quite other rows: in another group, of the other sign, or none that counts."""
    high, low = maker.heavy["high"], maker.heavy["low"]
    other = maker.draw.choice([row["uid"] for row in rows if row["uid"] is not None])
    empty = [dict.fromkeys(maker.schema) | {"uid": high}]
    found = [
        ("elsewhere", high, maker.unit("high", high, keys="low")),
        ("turned", high, maker.unit("low", high, keys="high")),
        ("swapped", low, maker.unit("high", maker.identity(5))),
        ("emptied", high, empty),
        ("any", other, maker.unit("wide", other)),
    ]
    return [
        (name, _parted(rows, unit, old)[1] + (new if unit.column is not None else new[:1]))
        for name, old, new in found
    ]


def _arrow(rows: list[Row], kinds: dict[str, Any]) -> pa.Table:
    columns = {name: [row[name] for row in rows] for name in kinds}
    arrays = {
        name: pa.array(values, pa.int32()).view(pa.date32())
        if kinds[name] == "date"
        else pa.array(values, _ARROW[kinds[name]])
        for name, values in columns.items()
    }
    return pa.table(arrays)
