"""Rows that an order cannot tell apart and an expression could, and questions that try to.

Zeros of both signs, NaN of both signs and several payloads, numbers next to zero, text that looks the same:
whoever reads such rows in another order, or with other threads, must find the same to the last bit.
"""

from __future__ import annotations

import functools
import hashlib
import random
import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa

from neighbours import Bench, Outcome, _one
from random_queries import Asked, make_query
from random_shapes import FORMS, Relation, _Maker
from random_shop import make_shop
from random_tables import Side, World, make_world

__all__ = ["FLOATS", "PLAIN", "TEXTS", "bits_of", "examine_ties", "mixed"]

PLAIN = "one table"
"""The form of questions that are about one table, beside those of `random_shapes.FORMS`."""

_BITS = (
    0x0000000000000000, 0x8000000000000000,  # zeros
    0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000123, 0xFFF0000000000001,  # NaN
    0x0000000000000001, 0x8000000000000001, 0x7FF0000000000000, 0xFFF0000000000000,  # next to zero; infinite
)  # fmt: skip
FLOATS = tuple(struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in _BITS)
TEXTS = ("é", "e\u0301", "a", "a ", "A", "a\x00", "", " ", "ß", "ss", "0.0", "-0.0")
_ZEROS_AND_NANS = 6
_INSTEAD: dict[pa.DataType, tuple[Any, ...]] = {
    pa.float64(): FLOATS,
    pa.string(): TEXTS,
    pa.int64(): (0, 1),
    pa.date32(): (19_740, 19_741),
}
_PARTS = 11  # questions of each world
_TELLING = (
    "POWER({0}, -1) > 0", "CAST({0} AS TEXT) = '0.0'", "CAST({0} AS TEXT) IN ('-0.0', '-nan')",
    "POWER(-{0}, -1) < 0", "CAST(CEIL({0} / 2) AS TEXT) <> '-0.0'", "POWER({0} * 0, -1) > 0",
    "CAST(-{0} AS TEXT) IN ('0.0', 'nan')",
)  # fmt: skip


def bits_of(value: Any) -> Any:
    """A value that is equal to another only if both are the same to the last bit."""
    return struct.pack("<d", value) if isinstance(value, float) else value


class _Telling(_Maker):
    """Writes conditions and numbers that see what orders do not."""

    def truth(self, relation: Relation) -> str:
        numbers = relation.of("n", "f")
        if not numbers or self.draw.random() < 0.25:
            return super().truth(relation)
        return self.draw.choice(_TELLING).format(self.draw.choice(numbers))

    def where(self, relation: Relation) -> str:
        return f" WHERE {self.truth(relation)}" if self.draw.random() < 0.8 else ""

    def number(self, relation: Relation, *, free: bool = False) -> str:
        numbers = relation.of("n", "f")
        if free or not numbers or self.draw.random() < 0.5:
            return super().number(relation, free=free)
        shape = self.draw.choice(("POWER({}, -1)", "POWER(-{}, -3)", "LENGTH(CAST({} AS TEXT))"))
        return f"LEAST(GREATEST({shape.format(self.draw.choice(numbers))}, -3), 9)"


def nasty(table: pa.Table, kept: set[str]) -> pa.Table:
    """The table with nasty values in most cells: which ones follows from the row, for neighbours alike."""
    days = [table.column(i) for i in range(table.num_columns)]
    numbers = [each.cast(pa.int32()) if pa.types.is_date32(each.type) else each for each in days]
    rows = pa.table(dict(zip(table.column_names, numbers, strict=True))).to_pylist()
    shown = [repr(row) for row in rows]
    columns = {}
    for place, field in enumerate(table.schema):
        columns[field.name] = table.column(place)
        if field.name not in kept and field.type in _INSTEAD:
            some = _INSTEAD[field.type]
            values = [
                None if row[field.name] is None else some[_lot(field.name, text, len(some))]
                for row, text in zip(rows, shown, strict=True)
            ]
            columns[field.name] = pa.array(values, field.type)
    return pa.table(columns)


@functools.lru_cache(maxsize=20_000)  # neighbours have most of their rows in common
def _lot(name: str, row: str, count: int) -> int:
    """Which of so many values stands in a column of a row."""
    lot = int.from_bytes(hashlib.sha256(f"{name} {row}".encode()).digest()[:8], "big")
    most = 2 if lot % 8 < 4 else _ZEROS_AND_NANS if lot % 8 < 7 else count
    return (lot >> 8) % min(most, count)


def mixed(table: pa.Table, draw: random.Random) -> pa.Table:
    """The same rows in another order."""
    return table.take(pa.array(draw.sample(range(table.num_rows), table.num_rows), pa.int64()))


def _world(form: str, seed: str, draw: random.Random) -> World:
    """A world of nasty values: two shuffles that may move nothing, then its neighbours."""
    world = make_world(seed) if form == PLAIN else make_shop(seed)
    kept = {"user", "uid", "order_id", "item_id", *(_keys(world))}
    known: dict[int, pa.Table] = {}  # several names mean the same rows

    def made(rows: pa.Table) -> pa.Table:
        if id(rows) not in known:
            known[id(rows)] = nasty(rows, kept)
        return known[id(rows)]

    base = {name: made(rows) for name, rows in world.base.items()}
    shuffles = [
        Side(f"shuffle{i}", {name: mixed(rows, draw) for name, rows in base.items()}, moves=False)
        for i in range(2)
    ]
    sides = [
        Side(side.name, {name: mixed(made(rows), draw) for name, rows in side.rows.items()}, side.moves)
        for side in world.sides
    ]
    return replace(world, base=base, sides=(*shuffles, *sides))


def _keys(world: World) -> list[str]:
    """Columns with few public values: most rows would be in no group."""
    return [
        name
        for table in world.tables.values()
        for name, column in table.schema.items()
        if getattr(column, "values", None)
    ]


def _asked(draw: random.Random, form: str, world: World) -> Asked:
    if form == PLAIN:
        return make_query(draw, world.tables["people"], plain=True)
    return FORMS[form](_Telling(draw))


def examine_ties(form: str, seed: int | str, count: int, *, threads: int = 1, stop: bool = False) -> Outcome:
    """Ask so many random questions of one form: of rows, two shuffles of them, and perhaps a neighbour."""
    total = Outcome()
    for part in range(0, count, _PARTS):
        draw = random.Random(f"ties {form}/{seed}/{part}")
        bench = Bench(
            _world(form, f"ties {form}/{seed}/{part}", draw),
            optimised=draw.random() < 0.4,
            salt=draw.getrandbits(63),
            threads=threads,
        )
        try:
            for _ in range(min(_PARTS, count - part)):
                total.add(_one(bench, draw, _asked(draw, form, bench.world)))
                if stop and total.broken:
                    return total
        finally:
            bench.close()
    return total
