"""Random questions on two engines: are the integers before noise the same?

The worlds are those of `random_tables` and `random_shop` in other clothes: texts that differ in case, accents
or composition alone, columns in other types of the source (decimals, timestamps with parts of a second and in
zones, days as text, narrow numbers), ids of every type, tables of no rows or one.
"""

from __future__ import annotations

import datetime
import decimal
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from neighbours import _nodes, _questions, _readable
from random_queries import Asked, make_query
from random_shapes import FORMS, make_shape
from random_shop import make_shop
from random_tables import World, make_world
from sfumato.engines import DuckDB, Engine
from sfumato.engines.base import unread_column
from sfumato.engines.dialect import PORTABLE
from sfumato.errors import EngineFailed, QueryRefused
from sfumato.ledger import Budget
from sfumato.plan.expressions.tree import Call
from sfumato.plan.questions.nodes import Measured
from sfumato.schema import Enum, Int, PrivacyUnit, PrivateTable, Text, pointers_of
from sfumato.session import Session
from sfumato.session.reading import reading
from sfumato.session.vault import Vault
from sfumato.sql.write.pieces import column as column_of
from sfumato.sql.write.pieces import select
from sfumato.sql.write.pieces import table as table_of
from sfumato.sql.write.ranks import guard

__all__ = [
    "IDS",
    "SHAPES",
    "Compared",
    "answer_of_no_groups",
    "compare_prepared",
    "compare_queries",
    "compare_shapes",
    "compare_unread",
    "dressed",
    "same_integers",
]

SHAPES = sorted(set(FORMS) - {"prepared", "grouped"})
"""The forms that ask tables as they are."""

LETTERS = {
    "a": "Ä", "b": "A\u0308", "c": "ä", "A": "ß", "only": "SS", "zz": "ss", "A ": "Ä ",
    "Lyon": "Straße", "lyon": "STRASSE", "O'Hara": "ŒUVRE", "a%b_": "œuvre", "12.5": "\ufb00",
    "n": "É", "s": "E\u0301", "w": "é", "N": "e\u0301", "m1": "Ω", "m2": "\u2126", "m3": "ω", "m4": "ı",
    "new": "ǆ", "paid": "ǅ", "sent": "Ǆ", "east": "\xc5", "west": "\u212b", "u0": "ff", "u1": "İ",
    "u2": "i\u0307", "u10": "\U00010400", "u11": "\U00010428", "u12": "a\u200db", "u13": "ab",
    "u14": "\uffff", "u15": "\ue000", "u16": "Z", "u17": "z", "u18": "_", "u19": "-", "u20": "a b",
}  # fmt: skip
"""What letters are instead: other ones to a computer, and to some collations the same."""

_A_TABLE, _A_SHOP = 25, 4  # questions
_QUOTED = re.compile(r"'([^']*)'")
_PARTS = [decimal.Decimal(part) for part in ("0", "0", "0.25", "0.50", "-0.50", "0.49")]


@dataclass(slots=True)
class Compared:
    """What was asked, how often both engines answered, and the questions whose integers are not the same."""

    asked: int = 0
    answered: int = 0
    rows: int = 0
    different: list[str] = field(default_factory=list)
    functions: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)


def compare_queries(
    make: Callable[[], Engine], seed: str, count: int, *, ids: Collection[str] = (), stop: bool = False
) -> Compared:
    """Ask random queries about random tables, of DuckDB and of another engine.

    Questions with functions that its dialect lists as different are left out.

    Args:
        make: Makes the other engine, which takes tables of Arrow.
        seed: The same seed asks the same.
        count: How many queries.
        ids: The types of ids (of `IDS`) by which it chooses other rows.
        stop: At the first difference.
    """
    total = Compared()
    for part in range(0, count, _A_TABLE):
        if stop and total.different:
            break
        draw = random.Random(f"same {seed}/{part}")
        asked = [("people", min(_A_TABLE, count - part))]
        _compare(make, ids, draw, make_world(f"{seed}/{part}"), asked, total)
    return total


def compare_shapes(
    make: Callable[[], Engine], seed: str, count: int, *, ids: Collection[str] = ()
) -> Compared:
    """Ask so many random questions of each form about random shops, of DuckDB and of another engine."""
    total = Compared()
    for part in range(0, count, _A_SHOP):
        draw = random.Random(f"same shapes {seed}/{part}")
        asked = [(form, min(_A_SHOP, count - part)) for form in SHAPES]
        _compare(make, ids, draw, make_shop(f"{seed}/{part}"), asked, total)
    return total


def compare_prepared(
    places: tuple[Any, Any],
    seed: str,
    count: int,
    *,
    ids: Collection[str] = (),
    held: Callable[[pa.Table], pa.Table] = lambda rows: rows,
) -> Compared:
    """Ask so many random questions of tables that were prepared in two places by one salt.

    Args:
        places: The two.
        seed: Which questions.
        count: How many.
        ids: The types of ids that no unit has.
        held: The rows as both can have them. A rank reads the whole row.
    """
    total = Compared()
    for part in range(0, count, _A_SHOP):
        draw, world = random.Random(f"same prepared {seed}/{part}"), make_shop(f"{seed}/{part}")
        tables, rows, letters = dressed(world, draw, ids)
        ranked = {
            name: (PrivateTable(name, source=None, unit=orders.unit, schema=orders.schema), groups)
            for orders in (tables["orders"],)
            for name, groups in world.prepared.items()
        }
        with places[0].engine() as first, places[1].engine() as second:
            for place, engine in zip(places, (first, second), strict=True):
                source = place.source(held(rows["orders"]))
                for name, (table, groups) in ranked.items():
                    kinds = {column: kind.kind for column, kind in table.schema.items()}
                    here = replace(table, source=source)
                    made = place.prepare(here, place.target(), group_by=groups, salt=b"shared")
                    engine.attach(name, made, kinds, unit=table.unit.column)
            declared = {name: table for name, (table, _) in ranked.items()}
            salt, chosen_by = dict.fromkeys(declared, 5), dict.fromkeys(declared, PORTABLE.name)
            vaults = [Vault(engine, declared, salt, chosen_by) for engine in (first, second)]
            for form in ("prepared", "grouped") * min(_A_SHOP, count - part):
                question = make_shape(draw, form)
                text = _worded(question.text, letters)
                total.asked += 1
                total.different += same_integers(vaults, replace(question, text=text), draw, total)
    return total


def compare_unread(make: Callable[[], Engine], seed: str, count: int) -> Compared:
    """Ask of random tables how many cells could not be read: none where an engine does not say."""
    total = Compared()
    for part in range(count):
        draw = random.Random(f"unread {seed}/{part}")
        tables, rows, _ = dressed(make_world(f"{seed}/{part}"), draw)
        name, table = next(iter(tables.items()))
        kinds = {column: kind.kind for column, kind in table.schema.items()}
        counts = []
        with DuckDB(threads=1) as first, make() as second:  # type: ignore[attr-defined]
            for engine in (first, second):
                engine.attach(name, rows[name], kinds)
                told = sorted(engine.unread(name))
                cells = [count_if(engine, unread_column(column)) for column in told]
                found = engine.fetch(select(list(zip(told, cells, strict=True)), table_of(name)))
                counts.append({column: int(found.column(column)[0].as_py() or 0) for column in told})
        for column in kinds:
            total.asked += 1
            mine, its = (each.get(column, 0) for each in counts)
            total.answered += mine > 0
            if mine != its:
                native = rows[name].schema.field(column).type
                total.different.append(f"{column} ({native} as {kinds[column]}): {mine} and {its}")
    return total


def answer_of_no_groups(engine: Engine, keys: str) -> pa.Table:
    """What is released of groups that are too small to be found, with questions that follow about them."""
    rows = pa.table({"u": [1, 2, 3], "g": ["a", "b", "b"], "h": [1, 2, 2], "x": [1, 2, 3]})
    schema = {"g": Text(), "h": Int(), "x": Int(0, 8)}
    declared = PrivateTable("t", source=rows, unit=PrivacyUnit("u", max_groups=1), schema=schema)
    text = f"SELECT {keys}, MEDIAN(x) AS m, COUNT(DISTINCT x) AS d FROM t GROUP BY {keys}"
    with Session(declared, budget=Budget(1, "1e-6"), engine=engine) as session:
        return session.sql(text).release(epsilon="0.01", delta="1e-9").table


def count_if(engine: Engine, name: str) -> Any:
    return engine.dialect.fill("SUM(CASE WHEN {0} THEN 1 ELSE 0 END)", column_of(name))


def _compare(
    make: Callable[[], Engine],
    ids: Collection[str],
    draw: random.Random,
    world: World,
    asked: list[tuple[str, int]],
    total: Compared,
) -> None:
    tables, rows, letters = dressed(world, draw, ids)
    total.types.update(str(kind) for each in rows.values() for kind in each.schema.types)
    with DuckDB(threads=1) as first, make() as second:  # type: ignore[attr-defined]
        for engine in (first, second):
            _attach(engine, tables, rows)
        salt = dict.fromkeys(tables, draw.getrandbits(62))
        chosen_by = dict.fromkeys(tables, PORTABLE.name)
        vaults = [Vault(engine, tables, salt, chosen_by) for engine in (first, second)]
        for form in (form for form, count in asked for _ in range(count)):
            people = form == "people"
            question = make_query(draw, tables[form], plain=True) if people else make_shape(draw, form)
            text = _worded(question.text, letters)
            total.asked += 1
            total.different += same_integers(vaults, replace(question, text=text), draw, total)


def _worded(text: str, letters: Mapping[str, str]) -> str:
    return _QUOTED.sub(lambda found: f"'{letters.get(found[1], found[1])}'", text)


def same_integers(
    vaults: Sequence[Vault],
    asked: Asked,
    draw: random.Random,
    total: Compared,
) -> Iterator[str]:
    """Ask one question of two vaults, and tell where the integers are not the same."""
    tables, dialect = vaults[0]._tables, vaults[1]._engine.dialect
    try:
        report, questions = _questions(asked, tables)
        nodes = [node for part in (report, questions) for node in _nodes(part)]
        calls = {node.function for node in nodes if isinstance(node, Call)}
        if any(map(dialect.how_different, calls)):
            return
        for vault in vaults:
            vault.check(questions)
    except QueryRefused:
        return
    total.functions.update(calls)
    groups: list[tuple[Any, ...]] = []
    for measured in questions:
        wanted = _readable(measured, groups, draw)
        try:
            answers = [_fetched(vault, wanted) for vault in vaults]
        except EngineFailed as error:
            yield f"{asked.text}: {error}"
            return
        if wanted.is_open:
            groups = list(reading(answers[0], wanted, vaults[0].kinds(wanted)).groups)
        total.answered += 1
        total.rows += answers[0].num_rows
        if plain(answers[0]) != plain(answers[1]):
            yield f"{asked.text}: {_told(wanted, *answers)}"


def _fetched(vault: Vault, measured: Measured) -> pa.Table:
    held = guard(measured, vault._tables, vault._engine.dialect)
    more = {} if held is None else {"guard": held}
    return vault._engine.fetch(_statement(vault, measured), **more)


def _statement(vault: Vault, measured: Measured) -> Any:
    made = [statement for question, *_, statement in vault._made.values() if question is measured]
    return made[0] if made else vault._statement(measured)


def _told(measured: Measured, first: pa.Table, second: pa.Table) -> str:
    mine, its = (Counter(map(tuple, plain(each))) for each in (first, second))
    return f"{measured.bounding}, {list((mine - its).items())[:3]} and {list((its - mine).items())[:3]}"


def plain(found: pa.Table) -> list[list[str]]:
    """Rows in one order: whole numbers of any type, days as numbers, zero without a sign."""
    columns = []
    for column in found.columns:
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32())
        columns.append([_plain(value) for value in column.to_pylist()])
    return sorted(list(row) for row in zip(*columns, strict=True))


def _plain(value: Any) -> str:
    whole = value.is_integer() if isinstance(value, float) else isinstance(value, int | decimal.Decimal)
    return str(int(value)) if whole and not isinstance(value, bool) else repr(value)


# Clothes ---------------------------------------------------------------------------------------------------


def dressed(
    world: World, draw: random.Random, ids: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, pa.Table], Mapping[str, str]]:
    """The tables of a world, their rows, and what letters are in both: as they are, or other ones.

    Ids of units are of no type that is listed.
    """
    letters = LETTERS if draw.random() < 0.7 else {}
    names = [name for name in world.tables if name not in world.prepared]
    size = draw.choice((None,) * 12 + (0, 1))
    form = _id_form(draw, ids)
    tables, rows = {}, {}
    for name in names:
        table = world.tables[name]
        schema = {
            column: Enum(*(letters.get(v, v) for v in kind.values), nullable=kind.nullable)
            if isinstance(kind, Enum) and kind.kind == "text"
            else kind
            for column, kind in table.schema.items()
        }
        unit = getattr(table, "unit", None)
        own = None if unit is None or unit.column is None or unit.is_via else unit.column
        if own in schema and form is not None:
            del schema[own]
        tables[name] = replace(table, schema=schema)
        found = world.base[name] if size is None or unit is None else world.base[name].slice(0, size)
        columns = {}
        for column in found.column_names:
            cells = found.column(column)
            if pa.types.is_string(cells.type):
                texts = [letters.get(text, text) for text in cells.to_pylist()]
                cells = pa.chunked_array([pa.array(texts, pa.string())])
            if column == own:
                columns[column] = cells if form is None else form(cells)
            elif column in schema:
                kind = "id" if column.endswith("_id") else schema[column].kind
                columns[column] = _dressed(cells, kind, draw)
        rows[name] = pa.table(columns)
    return tables, rows, letters


def _attach(engine: Engine, tables: Mapping[str, Any], rows: Mapping[str, pa.Table]) -> None:
    private = [table for table in tables.values() if isinstance(table, PrivateTable)]
    pointers = pointers_of(private)
    for name, table in tables.items():
        kinds = {column: kind.kind for column, kind in table.schema.items()}
        has_ids = isinstance(table, PrivateTable) and not table.unit.is_via
        unit = table.unit.column if has_ids else None
        engine.attach(name, rows[name], kinds, unit=unit, pointers=pointers.get(name, ()))


def _id_form(draw: random.Random, without: Collection[str]) -> Callable[[pa.ChunkedArray], pa.Array] | None:
    """The type of all ids of units, if not that of the world: each old value has a new one."""
    kind = draw.choice([None, None, *(name for name in IDS if name not in without)])
    if kind is None:
        return None
    known: dict[Any, int] = {}

    def form(cells: pa.ChunkedArray) -> pa.Array:
        native, make = IDS[kind]
        texts = [None if cell is None else repr(cell) for cell in cells.to_pylist()]
        numbers = [None if text is None else known.setdefault(text, len(known)) for text in texts]
        return pa.array([None if number is None else make(number) for number in numbers], native)

    return form


_DAY0 = datetime.datetime(1999, 12, 31, 23, 59, 59)
IDS: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "short": (pa.int16(), lambda i: i - 5),
    "whole decimal": (pa.decimal128(30, 0), lambda i: decimal.Decimal(10**20 + i * 7)),
    "decimal": (pa.decimal128(20, 3), lambda i: decimal.Decimal(i * 125 - 500) / 1000),
    "narrow float": (pa.float32(), lambda i: (0.0, -0.0, 0.1, 1e30, math.inf, 16777216.0)[i % 6] + i),
    "float": (pa.float64(), lambda i: (-0.0, 1e16, 1e-5, 0.1, math.nan, 123456789.125)[i % 6] * (i // 6 + 1)),
    "day": (pa.date32(), lambda i: (_DAY0 + datetime.timedelta(days=i * 37)).date()),
    "moment": (
        pa.timestamp("us"),
        lambda i: _DAY0 + datetime.timedelta(seconds=i * 3601, microseconds=i * 1250),
    ),
    "zoned": (pa.timestamp("us", "UTC"), lambda i: _DAY0 + datetime.timedelta(hours=i)),
    "bytes": (pa.binary(), lambda i: bytes((i % 256, 255 - i % 256, 92, 65))),
    "truth": (pa.bool_(), lambda i: i % 2 == 0),
    "text": (pa.string(), lambda i: list(LETTERS.values())[i % len(LETTERS)] + "x" * (i // len(LETTERS))),
}
"""Types of ids, and a value for each number."""


def _dressed(cells: pa.ChunkedArray, kind: str, draw: random.Random) -> pa.ChunkedArray | pa.Array:
    """A column in a type that its source may have it in."""
    choices = _CLOTHES.get(kind, ())
    if not choices or draw.random() < 0.4:
        return cells
    return draw.choice(choices)(cells, draw)


def _cast(native: pa.DataType, make: Callable[[Any, random.Random], Any]) -> Any:
    """Cells in another type; what it cannot hold is NULL."""

    def change(cells: pa.ChunkedArray, draw: random.Random) -> pa.Array:
        if pa.types.is_date32(cells.type):
            cells = cells.cast(pa.int32())
        return pa.array([None if cell is None else make(cell, draw) for cell in cells.to_pylist()], native)

    return change


def _decimal(digits: int, scale: int) -> Callable[[Any, random.Random], Any]:
    most = decimal.Decimal(10) ** (digits - scale)
    context = decimal.Context(prec=60)

    def make(value: Any, _: random.Random) -> Any:
        if not math.isfinite(value) or abs(made := decimal.Decimal(value)) >= most - 1:
            return None
        return made.quantize(decimal.Decimal(1).scaleb(-scale), context=context)

    return make


def _moment(value: int, draw: random.Random) -> int:
    return value * 10**6 + draw.choice((0, 0, 1, 500_000, 999_999))


def _written(days: int, draw: random.Random) -> str:
    if draw.random() < 0.1:
        return draw.choice(("", " ", "soon", "2024-02-30", "2024-13-01", "20240229", "2024-02-29x"))
    place = 719163 + days
    if not 1 <= place <= datetime.date.max.toordinal():
        return "never"
    return datetime.date.fromordinal(place).isoformat()


def _truth(value: bool, draw: random.Random) -> str:
    if draw.random() < 0.1:
        return draw.choice(("", "maybe", "2", "on"))
    return draw.choice(("true", "TRUE", "t", "1") if value else ("false", "False", "f", "0"))


_CLOTHES: dict[str, tuple[Any, ...]] = {
    "integer": (
        _cast(pa.int32(), lambda v, _: v if abs(v) < 2**31 else None),
        _cast(pa.decimal128(38, 0), lambda v, draw: decimal.Decimal(v) * draw.choice((1, 1, 1, 10**12))),
        _cast(pa.decimal128(30, 2), lambda v, draw: decimal.Decimal(v) + draw.choice(_PARTS)),
        _cast(pa.float64(), lambda v, draw: float(v) + draw.choice((0, 0, 0.25, 0.5, -0.5))),
    ),
    "float": (
        _cast(pa.float32(), lambda v, _: v if abs(v) < 1e38 or not math.isfinite(v) else None),
        _cast(pa.decimal128(38, 10), _decimal(38, 10)),
        _cast(pa.decimal128(12, 4), _decimal(12, 4)),
        _cast(pa.int64(), lambda v, _: int(v) if abs(v) < 2**62 else None),
    ),
    "timestamp": (
        _cast(pa.timestamp("us"), _moment),
        _cast(pa.timestamp("us", "UTC"), _moment),
        _cast(pa.timestamp("s"), lambda v, _: v),
        _cast(pa.date32(), lambda v, _: v // 86400),
    ),
    "time": (
        _cast(pa.time64("us"), _moment),
        _cast(pa.timestamp("us"), _moment),
    ),
    "date": (
        _cast(pa.timestamp("us"), lambda v, draw: _moment(v * 86400, draw) if abs(v) < 2_000_000 else None),
        _cast(pa.string(), _written),
    ),
    "boolean": (_cast(pa.string(), _truth), _cast(pa.int32(), lambda v, _: int(v))),
}
