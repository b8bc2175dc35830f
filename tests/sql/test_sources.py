"""The statements of sources against their meaning, on random rows full of surprises; whose rows are whose."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp
from tests.support.random_sources import ARROW, TABLES, Data, make_data, random_source, without
from tests.support.source_meaning import meaning

from sfumato.engines import UNIT_COLUMN, pointer_column
from sfumato.engines.dialect import DUCKDB
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.plan.questions.relations import rows_of, source_facts
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
from sfumato.schema import Int, PrivacyUnit, PrivateTable, pointers_of
from sfumato.sql.write.sources import id_types, lower_source

Rows = list[tuple[Any, dict[str, Any]]]
POINTERS = pointers_of(each for each in TABLES.values() if isinstance(each, PrivateTable))


def statement(source: Source) -> exp.Select:
    return exp.Select().select(exp.Star()).from_(lower_source(source, TABLES, DUCKDB))


@functools.cache
def opened(threads: int) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": threads})


HELD: dict[tuple[int, str], str] = {}


def connect(data: Data, threads: int = 2) -> duckdb.DuckDBPyConnection:
    """A connection whose tables hold these rows, until the next call; one that does already is left."""
    connection = opened(threads)
    for name, rows in data.items():
        if HELD.get((threads, name)) == (held := repr(rows)):  # to the last bit: -0.0 is not 0.0 here
            continue
        HELD[threads, name] = held
        connection.register("source", pa.Table.from_pylist(rows, schema=ARROW[name]))
        unit = f', who AS "{UNIT_COLUMN}"' if "who" in ARROW[name].names else ""
        pointers = "".join(f', "{each}" AS "{pointer_column(each)}"' for each in POINTERS.get(name, ()))
        connection.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT *{unit}{pointers} FROM source')
        connection.unregister("source")
    return connection


def engine(data: Data, threads: int = 2) -> DuckDB:
    made = DuckDB(threads=threads)
    for name, rows in data.items():
        unit = "who" if "who" in ARROW[name].names else None
        columns = {column: kind.kind for column, kind in TABLES[name].schema.items()}
        rows_ = pa.Table.from_pylist(rows, schema=ARROW[name])
        made.attach(name, rows_, columns, unit=unit, pointers=POINTERS.get(name, ()))
    return made


def split(rows: list[dict[str, Any]]) -> Rows:
    whose = [row.pop(UNIT_COLUMN) for row in rows]
    shown = [{name: value for name, value in row.items() if not name.startswith("sfumato ")} for row in rows]
    return list(zip(whose, shown, strict=True))


@functools.lru_cache(maxsize=4)
def text_of(source: Source) -> str:
    return statement(source).sql("duckdb")


def run(connection: duckdb.DuckDBPyConnection, source: Source) -> Rows:
    found = connection.sql(text_of(source)).to_arrow_table()
    return split(found.to_pylist())


def shown(rows: Rows, *, digits: bool = True) -> Counter[Any]:
    """The multiset of rows, bit by bit; without `digits` the last ones of floats are left out."""

    def text(value: Any) -> str:
        if isinstance(value, float) and math.isfinite(value) and not digits:
            return f"{value:.13e}"
        return f"{type(value).__name__} {value!r}"

    return Counter(
        (_unit(unit), tuple((name, text(value)) for name, value in sorted(row.items()))) for unit, row in rows
    )


def _unit(unit: Any) -> str:
    return repr(None if unit is None else unit + 0.0)


def depth(seed: int) -> int:
    return 1 + seed % 4


def some(count: int, of: int) -> list[Any]:
    """The first of so many seeds; the others have their turn in `make stats`."""
    rest = (pytest.param(seed, marks=pytest.mark.stats) for seed in range(count, of))
    return [*range(count), *rest]


@pytest.mark.parametrize("seed", some(60, of=90))
def test_a_statement_gives_what_its_source_means(seed):
    draw = random.Random(f"meaning {seed}")
    source, data = random_source(draw, depth(seed)), make_data(draw)
    assert shown(run(connect(data), source), digits=False) == shown(meaning(source, data), digits=False)


@pytest.mark.parametrize("seed", range(8))
def test_the_engine_runs_it(seed):
    """The whole way: the engine's own check lets the statement through, and casts of it change nothing."""
    draw = random.Random(f"engine {seed}")
    source, data = random_source(draw, depth(seed)), make_data(draw)
    with engine(data) as made:
        found = split(made.fetch(statement(source)).to_pylist())
    for row in itertools.chain(*data.values()):
        if row.get("who") != row.get("who"):
            row["who"] = None  # NaN is no id
    assert shown(found, digits=False) == shown(meaning(source, data), digits=False)


def people(data: Data) -> list[Any]:
    found = {_unit(row["who"]): row["who"] for name in ("visits", "baskets") for row in data[name]}
    return [unit for unit in found.values() if unit is not None]


@pytest.mark.parametrize("seed", some(50, of=80))
def test_a_unit_takes_its_own_rows_away_and_no_others(seed):
    draw = random.Random(f"locality {seed}")
    source, data = random_source(draw, depth(seed)), make_data(draw)
    full = shown(run(connect(data), source))
    for unit in draw.sample(people(data), min(2, len(people(data)))):
        expected = Counter({row: count for row, count in full.items() if row[0] != _unit(unit)})
        gone = without(data, unit, only_root=draw.random() < 0.5)
        assert shown(run(connect(gone), source)) == expected


@pytest.mark.parametrize("seed", some(25, of=40))
def test_neither_order_nor_threads_nor_who_is_called_what_can_show(seed):
    draw = random.Random(f"order {seed}")
    source, data = random_source(draw, depth(seed)), make_data(draw, most=20)
    full = shown(run(connect(data), source))
    mixed = {name: draw.sample(rows, len(rows)) for name, rows in data.items()}
    assert shown(run(connect(mixed, threads=1 + seed % 3), source)) == full


@pytest.mark.parametrize("seed", range(40))
def test_what_is_known_about_columns_holds_if_the_promises_do(seed):
    draw = random.Random(f"facts {seed}")
    source, data = random_source(draw, depth(seed)), make_data(draw)
    for row in data["visits"]:
        row |= {"k": draw.randint(0, 5), "x": draw.choice((-4.0, 10.0, 0.1, draw.uniform(-4, 10)))}
    for row in data["baskets"]:
        row["z"] = draw.choice((0.0, 1.0, draw.random()))
    found = run(connect(data), source)
    for name, known in source_facts(source, TABLES).items():
        for _, row in found:
            value = row[name]
            assert value is not None or known.nullable, name
            if isinstance(value, float | int) and value == value:
                assert known.low <= value <= known.high, name


def test_random_sources_cover_every_kind():
    seen: Counter[str] = Counter()
    for seed in range(80):
        draw = random.Random(f"locality {seed}")
        source, data = random_source(draw, depth(seed)), make_data(draw)
        if meaning(source, data):
            seen.update(_kinds(source))
    for kind in ("Scan", "United", "PerUnit", "Windowed", "inner private", "left private", "inner public"):
        assert seen[kind] >= 4, (kind, seen)


def _kinds(source: Any) -> Iterator[str]:
    if isinstance(source, Joined):
        yield f"{'left' if source.outer else 'inner'} {'public' if source.is_public else 'private'}"
        yield from _kinds(source.left.source)
        yield from _kinds(source.right.source)
    elif isinstance(source, United):
        yield "United"
        for part in source.parts:
            yield from _kinds(part.source)
    else:
        yield type(source).__name__
        if isinstance(source, PerUnit | Windowed):
            yield from _kinds(source.source)


# ── each promise by itself ──


def columns(*names: str) -> tuple[tuple[str, Column], ...]:
    return tuple((name, Column(name)) for name in names)


EMPTY: Data = {name: [] for name in TABLES}
VISIT = {"who": 1.0, "k": 1, "x": 0.0, "f": 0.0, "n": 0, "s": "", "b": True, "d": None}


def visits(*rows: dict[str, Any]) -> Data:
    return EMPTY | {"visits": [VISIT | row for row in rows]}


def only(source: Source, data: Data) -> list[dict[str, Any]]:
    return [row for _, row in run(connect(data), source)]


def test_private_rows_meet_rows_of_their_own_unit_only():
    data = visits({"who": 1.0, "s": "a"}, {"who": 2.0, "s": "a"}, {"who": None, "s": "a"})
    left = Block(Scan("visits"), None, columns("s"))
    right = Block(Scan("visits"), None, (("t", Column("s")),))
    for on in ((), (("s", "t"),)):
        units = [unit for unit, _ in run(connect(data), Joined(left, right, on))]
        assert sorted(units) == [1.0, 2.0]


def test_a_private_row_meets_at_most_one_public_row_whatever_the_key_holds():
    data = visits({"k": 1}, {"k": 2}) | {
        "regions": [{"k": 1, "w": w, "r": r, "big": None} for w, r in ((2.0, "a"), (-0.0, "b"), (None, None))]
    }
    right = Block(Public("regions"), None, (("key", Column("k")), ("w", Column("w")), ("r", Column("r"))))
    inner = Joined(Block(Scan("visits"), None, columns("k")), right, (("k", "key"),))
    assert only(inner, data) == [{"k": 1, "key": 1, "w": 0.0, "r": "a"}]
    outer = Joined(inner.left, right, inner.on, outer=True)
    assert sorted(row["k"] for row in only(outer, data)) == [1, 2]


def test_whole_numbers_that_are_one_fraction_are_one_key():
    """2**53 and 2**53 + 1 are the same DOUBLE: a float that is compared with both must not meet two rows."""
    data = visits({"f": 2.0**53}) | {
        "regions": [{"k": 2**53 + i, "w": 0.0, "r": "a", "big": None} for i in range(2)]
    }
    right = Block(Public("regions"), None, (("key", Column("k")),))
    source = Joined(Block(Scan("visits"), None, columns("f")), right, (("f", "key"),))
    assert only(source, data) == [{"f": 2.0**53, "key": 2**53}]


def test_nan_and_null_are_no_keys():
    odd = (math.nan, None)
    data = visits(*({"f": f} for f in odd)) | {
        "regions": [{"k": 1, "w": w, "r": "a", "big": None} for w in odd]
    }
    left = Block(Scan("visits"), None, columns("f"))
    public = Block(Public("regions"), None, columns("w"))
    private = Block(Scan("visits"), None, (("w", Column("f")),))
    for right in (public, private):
        assert only(Joined(left, right, (("f", "w"),)), data) == []
        assert len(only(Joined(left, right, (("f", "w"),), outer=True), data)) == 2


def aggregate(function: Any, name: str, rows: Data, **more: Any) -> Any:
    call_ = AggregateCall(function, Column(name), **more)
    (row,) = only(PerUnit(Scan("visits"), None, (), (("a", call_),)), rows)
    return row["a"]


def test_sums_are_exact_so_that_no_order_shows():
    values = [1e15, 0.1, -1e15, 0.2, 0.30000000000000004, 7e10, -7e10] * 3
    draw = random.Random(5)
    found = {
        aggregate("sum", "f", visits(*({"f": f} for f in draw.sample(values, len(values))))) for _ in range(6)
    }
    assert len(found) == 1
    assert found.pop() == pytest.approx(1.8, abs=len(values) * 2.0**-24)


def test_sums_of_bounded_fractions_are_as_fine_as_their_bounds_allow():
    values = [0.1, 3.3, 9.999999999999998, -2.7]
    expected = sum(Fraction(each) for each in values)
    found = aggregate("sum", "x", visits(*({"x": x} for x in values)))
    assert abs(Fraction(found) - expected) <= len(values) * Fraction(1, 2**49)


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([2**63 - 1] * 3, 2**63 - 1),
        ([-(2**63)] * 3, -(2**63)),
        ([2**63 - 1, -(2**63), 5], 4),
        ([None, None], None),
    ],
)
def test_sums_of_whole_numbers_never_overflow(values, total):
    assert aggregate("sum", "n", visits(*({"n": n} for n in values))) == total


def test_values_outside_their_bounds_are_clamped_as_a_measurement_would():
    data = visits({"x": math.inf}, {"x": -1e300}, {"x": math.nan}, {"x": None})
    assert aggregate("sum", "x", data) == 6.0
    assert aggregate("mean", "x", data) == 3.0
    assert aggregate("sum", "x", data, bounds=("row", Fraction(0), Fraction(1))) == 1.0
    assert aggregate("max", "x", data, bounds=("row", Fraction(0), Fraction(1))) == 1.0
    assert aggregate("min", "x", data, bounds=("row", Fraction(1, 2), Fraction(1))) == 0.5
    assert aggregate("max", "x", data) == math.inf
    assert aggregate("count", "x", data) == 2
    assert aggregate("count_values", "x", data) == 2


def test_equal_values_look_the_same_whichever_comes_first():
    """Minus zero is zero and NaN is NaN: which one stands for both must not tell the order of rows."""
    texts = (("t", call("to_text", Column("key"))),)
    for zeros in ((0.0, -0.0), (-0.0, 0.0)):
        data = visits(*({"f": f} for f in zeros))
        grouped = PerUnit(Scan("visits"), None, (("key", Column("f")),), (("c", AggregateCall("count")),))
        assert only(grouped, data) == [{"key": 0.0, "c": 2}]
        assert only(United((Block(grouped, None, texts),)), data) == [{"t": "0.0"}]
        assert str(aggregate("min", "f", data)) == str(aggregate("max", "f", data)) == "0.0"
        number = WindowCall("row_number", order=((Column("s"), False),))
        made = only(Windowed(Scan("visits"), None, (("i", number),)), data)
        assert sorted((str(row["f"]), row["i"]) for row in made) == [("0.0", 1), ("0.0", 2)]


def test_ties_are_broken_by_all_columns():
    rows = [{"s": "a", "n": n, "x": x, "k": k} for n in (1, 2) for x in (0.0, 1.0) for k in (0, 1)]
    number = WindowCall("row_number", order=((Column("s"), True),))
    back = WindowCall("lag", Column("n"), order=((Column("s"), False),))
    source = Windowed(Scan("visits"), None, (("i", number), ("p", back)))
    found = []
    for seed in range(8):
        mixed = random.Random(seed).sample(rows, len(rows))
        found.append(shown(run(connect(visits(*mixed)), source)))
    assert all(each == found[0] for each in found)


def test_windows_agree_which_copy_of_a_row_is_which():
    """Two numbers of the same rows: how they go together must not tell the order of rows either."""
    up, down = (WindowCall("row_number", order=((Column("n"), way),)) for way in (False, True))
    source = Windowed(Scan("visits"), None, (("i", up), ("j", down)))
    rows = [{"n": n, "s": "a"} for n in (1, 1, 1, 2, 2)]
    assert sorted((row["i"], row["j"]) for row in only(source, visits(*rows))) == [
        (1, 3), (2, 4), (3, 5), (4, 1), (5, 2),
    ]  # fmt: skip


def test_what_windows_read_is_told_apart_by_what_orders_see():
    """The sign of a zero does not order rows, so that no argument may see it."""
    back = WindowCall("lag", call("float_to_text", Column("f")), order=((Column("s"), False),))
    for zeros in ((0.0, -0.0), (-0.0, 0.0)):
        made = only(Windowed(Scan("visits"), None, (("p", back),)), visits(*({"f": f} for f in zeros)))
        assert sorted(map(str, (row["p"] for row in made))) == ["0.0", "None"]


def test_ranks_share_a_place():
    order = ((Column("n"), True),)
    calls = (("r", WindowCall("rank", order=order)), ("e", WindowCall("dense_rank", order=order)))
    made = only(Windowed(Scan("visits"), None, calls), visits({"n": 2}, {"n": 2}, {"n": 1}, {"n": None}))
    assert [(row["r"], row["e"]) for row in sorted(made, key=lambda row: row["r"])] == [
        (1, 1), (1, 1), (3, 2), (4, 3),
    ]  # fmt: skip


def test_names_of_the_question_stand_for_columns_of_the_source():
    data = visits({"n": 1, "k": 2})
    swapped = Block(
        Scan("visits"), call("equal", Column("n"), literal(1)), (("n", Column("k")), ("k", Column("n")))
    )
    assert only(United((swapped,)), data) == [{"n": 2, "k": 1}]
    keys = (("k1", Column("n")), ("k0", Column("k")))
    grouped = PerUnit(Scan("visits"), None, keys, (("v0", AggregateCall("sum", Column("n"))),))
    assert only(grouped, data) == [{"k1": 1, "k0": 2, "v0": 1}]


def test_what_arithmetic_makes_of_whole_numbers_is_a_whole_number_or_nothing():
    """Arithmetic is in doubles: a column that passes for BIGINT further up must be one."""
    product = call("multiply", Column("n"), literal(2**40))
    source = United((Block(Scan("visits"), None, (("p", product),)),))
    found = run(connect(visits({"n": 3}, {"n": 2**60})), source)
    assert sorted(map(str, (row["p"] for _, row in found))) == [str(3 * 2**40), "None"]
    assert source_facts(source, TABLES)["p"].nullable
    assert all(type(row["p"]) in (int, type(None)) for _, row in found)


def test_a_row_that_reaches_two_owners_is_a_row_of_each():
    data = EMPTY | {
        "baskets": [{"who": who, "basket": 1, "z": 0.0} for who in (1.0, 2.0, None)],
        "lines": [{"basket": 1, "line": 7, "y": 1.0}, {"basket": 9, "line": 8, "y": 1.0}],
        "marks": [{"at": 7, "mark": "a"}, {"at": 8, "mark": "b"}],
    }
    assert sorted(run(connect(data), Scan("marks")), key=str) == [
        (1.0, {"at": 7, "mark": "a"}),
        (2.0, {"at": 7, "mark": "a"}),
    ]


def test_rows_that_are_units_are_not_put_together():
    tables = {
        "rows": PrivateTable("rows", source=None, unit=PrivacyUnit.row(), schema={"a": Int()}),
        "regions": TABLES["regions"],
    }
    block = Block(Scan("rows"), None, columns("a"))
    public = Block(Public("regions"), None, columns("k"))
    assert rows_of(Joined(block, public, (("a", "k"),)), tables).unit.is_row
    assert UNIT_COLUMN not in lower_source(Joined(block, public, (("a", "k"),)), tables, DUCKDB).sql()
    for source in (
        Joined(block, Block(Scan("rows"), None, (("b", Column("a")),)), ()),
        United((block, block)),
        PerUnit(Scan("rows"), None, (), (("c", AggregateCall("count")),)),
        Windowed(Scan("rows"), None, (("c", WindowCall("count")),)),
    ):
        with pytest.raises(InvalidParameter):
            lower_source(source, tables, DUCKDB)
        with pytest.raises(QueryRefused, match="protected by itself"):
            rows_of(source, tables)


def test_tables_about_different_units_are_refused():
    other = PrivateTable("other", source=None, unit=PrivacyUnit("id"), schema={"a": Int()})
    source = Joined(Block(Scan("visits"), None, columns("k")), Block(Scan("other"), None, columns("a")), ())
    with pytest.raises(QueryRefused, match="not declared to be about the same units"):
        rows_of(source, TABLES | {"other": other})


def test_owners_and_versions_come_with_the_rows():
    rows = rows_of(Scan("marks"), TABLES)
    assert set(rows.tables) == {"marks", "lines", "baskets"}
    assert '"baskets": "1"' in rows.version
    assert rows_of(Scan("visits"), TABLES).version == "1"


@pytest.mark.parametrize(
    "source",
    [
        United((Block(Scan("visits"), None, (("Sfumato Unit", Column("k")),)),)),
        United((Block(Scan("visits"), None, (("a", Column("k")), ("A", Column("n")))),)),
        United((Block(Public("regions"), None, (("a", Column("k")),)),)),
        United((Block(Scan("visits"), None, columns("k")), Block(Scan("visits"), None, columns("n")))),
        Joined(Block(Scan("visits"), None, columns("k")), Block(Public("regions"), None, columns("r")), ()),
        Joined(Block(Scan("visits"), None, columns("k")), Block(Scan("visits"), None, columns("k")), ()),
        PerUnit(Scan("visits"), None, (), (("a", AggregateCall("count_distinct")),)),
        PerUnit(Scan("visits"), None, (), (("a", AggregateCall("sum")),)),
        PerUnit(Scan("regions"), None, (), (("a", AggregateCall("count")),)),
        Windowed(Scan("visits"), None, (("a", WindowCall("rank")),)),
        Windowed(Scan("visits"), None, (("k", WindowCall("count")),)),
        Windowed(Scan("visits"), None, (("a", WindowCall("lag", order=((Column("k"), False),))),)),
        Windowed(
            Scan("visits"), None, (("a", WindowCall("sum", Column("k"), order=((Column("k"), False),))),)
        ),
    ],
)
def test_what_has_no_meaning_has_no_statement(source):
    with pytest.raises(InvalidParameter):
        lower_source(source, TABLES, DUCKDB)


def test_numbers_are_needed_where_they_are_added_and_kinds_must_agree():
    for function in ("sum", "mean"):
        made = PerUnit(Scan("visits"), None, (), (("a", AggregateCall(function, Column("s"))),))
        with pytest.raises(QueryRefused, match="needs numbers"):
            source_facts(made, TABLES)
    left = Block(Scan("visits"), None, columns("s"))
    right = Block(Public("regions"), None, (("key", Column("k")),))
    with pytest.raises(QueryRefused, match="different types"):
        source_facts(Joined(left, right, (("s", "key"),)), TABLES)


def test_types_of_ids_are_known_without_a_row():
    with DuckDB() as made:
        made.attach("a", pa.table({"u": pa.array([], pa.int32())}), {}, unit="u")
        made.attach("b", pa.table({"u": pa.array([], pa.string())}), {}, unit="u")
        assert made.fetch(id_types([("a", UNIT_COLUMN), ("b", UNIT_COLUMN)], made.dialect)).to_pylist() == [
            {"0": "INTEGER", "1": "VARCHAR"}
        ]
