"""Spark answers what DuckDB answers, bit for bit, or refuses; nothing that it says or logs holds a value."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import decimal
import itertools
import math
import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks import engine_spark, engines
from benchmarks.harness import Report
from pyarrow import orc
from sqlglot import parse_one

import first_steps
import sfumato as sf
import spark
from commands import invoke
from every_type import arrow_columns
from float_keys import compare_keys
from native_columns import AS_ID, differences
from native_columns import rows as columns_at_their_ends
from neighbours import examine, examine_form
from prepared_places import LAWS, DuckDBPlace, SparkPlace, portable_duckdb
from prepared_places import made as to_folder
from prepared_places import rows_of as rows_to_prepare
from prepared_places import table_of as table_like
from random_shapes import FORMS
from same_questions import Compared, answer_of_no_groups, compare_prepared, compare_queries, compare_shapes
from sfumato.cli import app
from sfumato.dossier.unopened import Unopened
from sfumato.engines import DuckDB, base, sources
from sfumato.engines.base import UNIT_COLUMN, pointer_column
from sfumato.engines.dialect import DUCKDB, PORTABLE
from sfumato.engines.prepare import prepare
from sfumato.engines.prepared import salt_of
from sfumato.engines.spark import SPARK, Spark, engine, settings, views
from sfumato.engines.spark import prepare as preparing
from sfumato.engines.spark import rows as rows_of_spark
from sfumato.engines.spark.conditions import with_typed_conditions
from sfumato.engines.spark.parts import _is_hashed, written
from sfumato.errors import EngineFailed, InvalidParameter, QueryRefused, SourceUnusable, TimedOut
from sfumato.plan.expressions.functions import FUNCTIONS
from sfumato.plan.expressions.tree import Call, Column, literal
from sfumato.session.drawing import Drawing
from sfumato.sql.write import members
from sfumato.sql.write.expressions import lower_expression
from sfumato.sql.write.pieces import column, select
from sfumato.sql.write.pieces import table as table_of
from sfumato.sql.write.typed import Typed
from sfumato.testing import check_engine, exact
from sfumato.testing.calls import accepted, check, inside, nasty
from sfumato.testing.engines import engine_faults
from transcripts import visits, wrong_lines
from unlucky import AsTheyAre, Broken, Unlucky
from windows_of_time import check_held, check_windows
from zones_of_time import check_zones

pytestmark = pytest.mark.slow  # the first one starts Spark
DIFFERENT = frozenset().union(*SPARK.different.values())
"""What Spark computes by other libraries than DuckDB: the same on ordinary values, and defined on all."""
SUPPORTED = sorted(SPARK.common | set(SPARK.forms))
TABLES = {"nasty": nasty(60), "inside": inside(60)}


@pytest.fixture(scope="module")
def one():
    with spark.started() as made:
        yield made


@pytest.fixture
def fresh(one):
    with spark.started() as made:
        yield made


def asked(made: Spark, text: str) -> list[tuple[object, ...]]:
    found = made.fetch(parse_one(text, dialect="spark"))
    return [tuple(row.values()) for row in found.to_pylist()]


def calls_of(expression) -> set[str]:
    if not isinstance(expression, Call):
        return set()
    return {expression.function}.union(*map(calls_of, expression.arguments))


def has_form(expression) -> bool:
    try:
        lower_expression(expression, SPARK)
    except QueryRefused:
        return False
    return True


def listed(expressions, dialect) -> str:
    trees = [lower_expression(each, dialect) for each in expressions]
    if dialect is SPARK:
        trees = list(map(with_typed_conditions, trees))
    texts = list(map(dialect.text, trees))
    return ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))


def values(column) -> list[object]:
    return (column.cast(pa.int32()) if pa.types.is_date32(column.type) else column).to_pylist()


def same(first, second, *, near: bool = False) -> bool:
    if isinstance(first, bool) or isinstance(second, bool) or None in (first, second):
        return first is second
    if isinstance(first, float) != isinstance(second, float):
        return False  # 8 and 8.0 have other texts, by which rows are chosen
    if isinstance(first, int | float) and isinstance(second, int | float):
        if near and math.isfinite(first) and math.isfinite(second):
            return math.isclose(first, second, rel_tol=1e-13)
        return first == second or (math.isnan(first) and math.isnan(second))
    return first == second


def compare(one: Spark, calls: dict[str, int], seed: int) -> list[str]:
    """Calls of functions that are not the same on DuckDB, over odd and ordinary rows; facts hold for all."""
    made = [
        (name, *call) for name, count in calls.items() for call in accepted(name, count, seed, only=has_form)
    ]
    connection, wrong = duckdb.connect(config={"threads": 1}), []
    expressions = [expression for _, expression, _ in made]
    for table, rows in TABLES.items():
        connection.register(table, rows)
        ours = connection.sql(f"SELECT {listed(expressions, DUCKDB)} FROM {table}").to_arrow_table()
        one._spark.createDataFrame(rows).createOrReplaceTempView(f"calls_{table}")
        its = one._spark.sql(f"SELECT {listed(expressions, SPARK)} FROM calls_{table}").toArrow()
        for place, (name, expression, facts) in enumerate(made):
            if table == "inside":
                check(its.column(place), facts, expression)
            is_other = bool(calls_of(expression) & DIFFERENT)
            if is_other and (table == "nasty" or name not in DIFFERENT):
                continue
            pairs = zip(values(ours.column(place)), values(its.column(place)), strict=True)
            if not all(same(a, b, near=is_other) for a, b in pairs):
                wrong.append(f"{table}: {DUCKDB.text(lower_expression(expression, DUCKDB))}")
    return wrong


def test_it_keeps_what_statements_rely_on(one):
    checks = ("shown", "dialect", "lists", "answers", "public", "refusal")
    assert engine_faults(spark.started, checks=checks) == []


@pytest.mark.stats
def test_it_keeps_all_of_it_with_files_and_several_threads(one, tmp_path):
    numbers = iter(range(10**6))

    def given(rows: pa.Table) -> str:
        pq.write_table(rows, path := tmp_path / f"{next(numbers)}.parquet")
        return str(path)

    check_engine(spark.started, given)


def test_what_it_refuses_is_this_list():
    refused = frozenset().union(*SPARK.refused.values())
    assert not set(SPARK.forms) & SPARK.common
    assert sorted(set(FUNCTIONS) - refused) == SUPPORTED
    assert set(SUPPORTED) >= DIFFERENT


def test_no_form_names_an_argument_more_often_than_the_common_one_or_one_that_is_not_there():
    for name, form in SPARK.forms.items():
        for count in range(FUNCTIONS[name].arity[0], (FUNCTIONS[name].arity[1] or 3) + 1):
            common = FUNCTIONS[name].common(count)
            written = form if isinstance(form, str) else form(count)
            assert set(map(int, re.findall(r"\{(\d+)\}", written))) <= set(range(count)), name
            for place in set(range(count)) - set(FUNCTIONS[name].literals):
                assert written.count(f"{{{place}}}") <= common.count(f"{{{place}}}"), name


@pytest.mark.parametrize("part", range(3))
def test_functions_are_the_same_on_odd_values(one, part):
    assert compare(one, dict.fromkeys(SUPPORTED[part::3], 1), seed=part) == []


@pytest.mark.stats
@pytest.mark.parametrize("name", SUPPORTED)
def test_many_calls_are_the_same_on_odd_values(one, name):
    assert compare(one, {name: 40}, seed=9) == []


def plain(found: pa.Table) -> list[list[object]]:
    """Rows in one order; whole numbers of any type are Python's, and zero has no sign."""
    whole = (int, decimal.Decimal)
    rows = [
        [int(v) if isinstance(v, whole) else v + 0.0 if isinstance(v, float) else v for v in row.values()]
        for row in found.to_pylist()
    ]
    return sorted(rows, key=repr)


class Untimed:
    """Spark for random tables, whose times of day come as moments: it reads no columns of such."""

    def __init__(self, one: Spark) -> None:
        self._one = one

    def __enter__(self) -> Untimed:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._one, name)

    def attach(self, name: str, rows: pa.Table, *more: Any, **options: Any) -> None:
        self._one.attach(name, spark.untimed(rows), *more, **options)


IDS = {"bytes", "zoned", "narrow float"}
"""The types of ids by which it chooses other rows."""


@pytest.fixture
def interpreted(one):
    """Spark that compiles nothing."""
    before = {name: one._spark.conf.get(name) for name in spark.INTERPRETED}
    for name, value in spark.INTERPRETED.items():
        one._spark.conf.set(name, value)
    yield one
    for name, value in before.items():
        one._spark.conf.set(name, value)


def keeps_to(found: Compared, least: int) -> None:
    assert found.different == []
    assert found.answered >= least


def test_random_questions_have_the_same_integers(interpreted):
    keeps_to(compare_queries(lambda: Untimed(interpreted), "few", 130, ids=IDS), 70)


def test_random_questions_have_the_same_integers_as_compiled_code(one):
    keeps_to(compare_queries(lambda: Untimed(one), "compiled", 20, ids=IDS), 8)


@pytest.mark.stats
@pytest.mark.parametrize("part", range(10))
def test_many_random_questions_have_the_same_integers(interpreted, part):
    keeps_to(compare_queries(lambda: Untimed(interpreted), f"many {part}", 1000, ids=IDS), 500)
    keeps_to(compare_shapes(lambda: Untimed(interpreted), f"many {part}", 10, ids=IDS), 150)


@pytest.mark.stats
def test_many_random_questions_have_the_same_integers_as_compiled_code(one):
    keeps_to(compare_queries(lambda: Untimed(one), "many compiled", 500, ids=IDS), 250)
    keeps_to(compare_shapes(lambda: Untimed(one), "many compiled", 4, ids=IDS), 60)


@pytest.mark.parametrize("how_many", [5, pytest.param(240, marks=pytest.mark.stats)])
def test_no_unit_moves_a_query_further_than_claimed(one, how_many):
    found = examine("spark", how_many, plain=True, store=spark.SparkStore)
    assert found.broken == []
    assert found.accepted >= how_many // 3
    assert found.reached >= how_many // 24


@pytest.mark.stats
def test_a_sum_that_wraps_moves_further_than_claimed(one):
    broken = dataclasses.replace(SPARK, sum="CAST(MOD(SUM({0}), 2147483648) AS DECIMAL(38, 0))")
    found = examine("planted", 60, plain=True, stop=True, store=lambda: spark.SparkStore(broken))
    assert found.broken != []


SAMPLED = ("grouped", "per unit", "redefined")
"""Forms that are asked about in each run, all others among the statistical tests."""


@pytest.mark.parametrize(
    ("form", "how_many"),
    [
        *((form, 1) for form in SAMPLED),
        *(pytest.param(form, 8, marks=pytest.mark.stats) for form in sorted(FORMS)),
    ],
)
def test_no_unit_moves_a_question_of_any_form_further_than_claimed(one, form, how_many):
    found = examine_form(form, "spark", how_many, store=spark.SparkStore)
    assert found.broken == []
    assert found.accepted >= 1


@pytest.mark.parametrize("keys", ["g", "g, h"])
def test_where_no_group_is_found_the_answer_is_empty_and_not_lost(one, keys):
    with spark.started() as engine:
        found = answer_of_no_groups(engine, keys)
    assert (found.column_names, found.num_rows) == ([*keys.split(", "), "m", "d"], 0)


@pytest.mark.parametrize("many", [12, pytest.param(200, marks=pytest.mark.stats)])
def test_zeros_of_both_signs_are_one_key_and_so_are_all_nan(interpreted, many):
    keeps_to(compare_keys(interpreted, "few", many), many // 2)


def rows_of(seed: int) -> pa.Table:
    draw = random.Random(seed)
    odd = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 2.5, 7.25]
    cells = [
        (
            draw.choice([None, *range(30)]),
            draw.choice(["FR", "DE", "XX", None]),
            draw.choice(odd),
            draw.randrange(6),
        )
        for _ in range(400)
    ]
    types = (pa.int64(), pa.string(), pa.float64(), pa.int64())
    columns = [pa.array(cell, kind) for cell, kind in zip(zip(*cells, strict=True), types, strict=True)]
    return pa.table(columns, names=["user", "country", "x", "b"])


QUERIES = (
    "SELECT country, COUNT(*) AS n, SUM(x) AS s, AVG(b) AS a FROM t GROUP BY country",
    "SELECT b, COUNT(DISTINCT user) AS n FROM t GROUP BY b",
    "SELECT country, VARIANCE(x) AS v FROM t WHERE ABS(x) > 0.5 GROUP BY country",
    "SELECT COUNT(*) AS n FROM (SELECT user, SUM(x) AS s FROM t GROUP BY user) AS w WHERE s > 3",
    "SELECT COUNT(*) AS c FROM (SELECT x, ROW_NUMBER() OVER (PARTITION BY user ORDER BY x) AS r FROM t) AS w "
    "WHERE r = 1",
    "SELECT COUNT(*) AS c FROM t JOIN s ON t.user = s.user AND t.b = s.b",
    "SELECT n.w, COUNT(*) AS c FROM t JOIN n ON t.b = n.k GROUP BY n.w",
    "SELECT SUM(d) AS s FROM (SELECT b - LAG(b) OVER (PARTITION BY user ORDER BY x) AS d FROM t "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY user ORDER BY b) <= 3) AS w WHERE d BETWEEN -5 AND 5",
)


def test_sessions_measure_the_same_before_noise(one, tmp_path):
    unit = sf.PrivacyUnit("user", max_groups=2, max_rows=4)
    schema = {"country": sf.Enum("FR", "DE"), "x": sf.Float(0, 8), "b": sf.Int(0, 5)}
    pq.write_table(rows_of(3), tmp_path / "t.parquet")
    tables = [
        sf.PrivateTable(name, source=str(tmp_path / "t.parquet"), unit=unit, schema=schema, dataset="d")
        for name in ("t", "s")
    ]
    names = sf.PublicTable("n", source=pa.table({"k": list(range(6)), "w": list("abcabc")}), key=["k"],
                           schema={"k": sf.Int(), "w": sf.Text()})  # fmt: skip
    found = []
    for made in (None, spark.started()):
        with sf.Session(*tables, names, budget=sf.Budget(10**3), engine=made) as session:
            session.vault._salts = dict.fromkeys("ts", 7)
            session.vault._digests = dict.fromkeys("ts", PORTABLE.name)
            found.append([exact(session.sql(text)) for text in QUERIES])
            answer = session.sql(QUERIES[0]).release(epsilon=1)
            assert answer.table.num_rows == 2
    assert found[0] == found[1]


def test_no_row_makes_a_read_fail_and_what_does_not_fit_is_null(fresh):
    rows = pa.table(
        {
            "i": pa.array([decimal.Decimal(10**30), decimal.Decimal(7), None], pa.decimal128(38, 0)),
            "r": pa.array([decimal.Decimal("2.50"), decimal.Decimal("-2.50"), None], pa.decimal128(10, 2)),
            "x": pa.array([2.0**63, 2.5, math.nan], pa.float64()),
            "f": pa.array([1.5, math.inf, None], pa.float32()),
            "d": pa.array([-(2**31) + 2, 2**31 - 1, 0], pa.int32()).cast(pa.date32()),
            "t": pa.array([-(10**15), 0, 10**17], pa.timestamp("us", tz="UTC")),
            "s": pa.array(["a", "", None]),
        }
    )
    kinds = {
        "i": "integer",
        "r": "integer",
        "x": "integer",
        "f": "float",
        "d": "text",
        "t": "date",
        "s": "text",
    }
    fresh.attach("t", rows, kinds, unit="x", pointers=["x"])
    assert asked(fresh, "SELECT i, r, x, f, d, t, s FROM t ORDER BY f NULLS LAST") == [
        (None, 3, None, 1.5, "5877642-06-25 (BC)", datetime.date(1938, 4, 24), "a"),
        (7, -3, 2, math.inf, "infinity", datetime.date(1970, 1, 1), ""),
        (None, None, None, None, "1970-01-01", datetime.date(5138, 11, 16), None),
    ]
    assert asked(fresh, "SELECT `sfumato unit`, `sfumato pointer x` FROM t ORDER BY 1 NULLS LAST") == [
        (2.5, None),
        (2.0**63, None),
        (None, None),
    ]


OTHERWISE = {
    "words as timestamp", "moments as timestamp", "dictionary as timestamp", "moments as date",
    "words as time", "moments as time", "dictionary as time",
}  # fmt: skip
"""Columns of text that it refuses, or of which it reads fewer spellings."""
OTHER_IDS = {"decimal 38 38", "float", "double", "timestamp us", "timestamp us UTC", "timestamp s"}
"""Ids of which some have another text, and so another digest."""


@pytest.mark.parametrize("ids", [False, pytest.param(True, marks=pytest.mark.stats)])
def test_columns_of_every_type_are_read_alike_at_their_ends(interpreted, ids):
    found, failed = differences(interpreted, columns_at_their_ends(), ids=ids)
    assert failed == []
    assert found.keys() == OTHERWISE | ({f"{name} as {AS_ID}" for name in OTHER_IDS} if ids else set()), found
    assert all(line.endswith(", None") for line in found["moments as date"])


KINDS = ("integer", "float", "boolean", "text", "date", "timestamp", "time")


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_no_value_of_any_type_decides_whether_a_table_is_opened_or_read(interpreted, kind, tmp_path):
    """Timestamps that no microsecond is of, decimals of too many digits, durations: declared and not."""
    held = {name: cells for name, cells in arrow_columns().items() if name != "decimal256"}
    if kind == "parquet":
        lacking = ("timestamp s", "timestamp ns", "time", "duration", "halffloat", "broken")
        held = {
            name: cells
            for name, cells in held.items()
            if name.startswith("timestamp m") or not name.startswith(lacking)
        }
    source: Any = pa.table({"n": range(len(held["int64"])), **held})
    if kind == "parquet":
        pq.write_table(source, tmp_path / "all.parquet")
        source = str(tmp_path / "all.parquet")
    kinds = {name: views.kind_of(native) for name, native in interpreted._rows(source).natives.items()}
    for declared in KINDS:
        fits = views._FITTING[declared] - ({"text"} if declared in ("integer", "float") else set())
        names = [name for name, its in kinds.items() if its in fits]
        interpreted.attach("t", source, {"n": "integer", **dict.fromkeys(names, declared)})
        read = interpreted.fetch(select([(name, column(name)) for name in names], table_of("t")))
        assert (read.num_rows, read.num_columns > 5) == (7, True)
    ids = [name for name in kinds if name.startswith(("timestamp s", "timestamp m", "decimal"))]
    interpreted.attach("t", source, {"n": "integer"}, pointers=ids)
    read = interpreted.fetch(select([(name, column(pointer_column(name))) for name in ids], table_of("t")))
    assert read.num_rows == 7


def test_values_that_may_have_become_one_are_no_ids(fresh):
    for native in (pa.timestamp("ns"), pa.date64(), pa.dictionary(pa.int8(), pa.timestamp("ns"))):
        rows = pa.table({"u": pa.nulls(1, native)})
        fresh.attach("t", rows, {"u": "date"})
        with pytest.raises(SourceUnusable, match="cannot be the ids of units"):
            fresh.attach("t", rows, {}, unit="u")


NEIGHBOURS: dict[str, tuple[pa.DataType, list[int]]] = {
    **{
        f"timestamp {unit}": (pa.timestamp(unit), [0, 1, 2, 999, 1000, 1001, -1])
        for unit in ("s", "ms", "us", "ns")
    },
    "timestamp us UTC": (pa.timestamp("us", "UTC"), [0, 1, 999, 1000, -1]),
    "timestamp ns UTC": (pa.timestamp("ns", "UTC"), [0, 1, 999, 1000, -1]),
    "int64": (pa.int64(), [2**53, 2**53 + 1, -(2**63), 2**63 - 1]),
    "uint64": (pa.uint64(), [2**63 - 1, 2**63 - 2, 1]),
    "double": (pa.float64(), [4607182418800017408, 4607182418800017409]),
    "float": (pa.float32(), [1065353216, 1065353217]),
    "date": (pa.date32(), [0, 1, 2_932_896, 2_932_897]),
    "day in milliseconds": (pa.date64(), [0, 1, 86_400_000]),
}
"""Types of ids with values side by side, as the numbers that hold them."""


def neighbours() -> dict[str, pa.Array]:
    columns = {}
    for name, (native, cells) in NEIGHBOURS.items():
        held = {4: pa.int32(), 8: pa.int64()}[native.bit_width // 8]
        held = pa.uint64() if name == "uint64" else held
        columns[name] = pa.array([cells[i % len(cells)] for i in range(8)], held).view(native)
    decimals = [decimal.Decimal(each) for each in ("1.0000000000000001", "1.0000000000000002")]
    columns["decimal"] = pa.array([decimals[i % 2] for i in range(8)], pa.decimal128(38, 16))
    columns["text"] = pa.array(["a", "A", "a ", "\u00e1", "a\u0301", "", " ", "aa"])
    columns["bytes"] = pa.array([b"a", b"A", b"a\x00", b"\xff", b"\xfe", b"", b"\x00", b"aa"])
    return columns


@pytest.fixture(scope="module")
def placed(one, tmp_path_factory):
    """Puts rows where Spark reads them, in each way that it does; the tables of the catalog go in the end."""
    folder, names, made = tmp_path_factory.mktemp("placed"), itertools.count(), []

    def in_catalog(form: str, write) -> Any:
        def put(rows: pa.Table, columns: str = "") -> str:
            place, name = folder / f"{form}{next(names)}", f"placed_{os.getpid()}_{next(names)}"
            place.mkdir()
            write(rows, place / f"a.{form}")
            one._spark.sql(f"CREATE TABLE {name} {columns} USING {form} LOCATION '{place}'")
            made.append(name)
            return f"spark://spark_catalog.default.{name}"

        return put

    def to_file(**options: Any) -> Any:
        def put(rows: pa.Table) -> str:
            path = folder / f"{next(names)}.parquet"
            pq.write_table(rows, path, **options)
            return str(path)

        return put

    old = {"use_deprecated_int96_timestamps": True}
    yield {
        "arrow": lambda rows: rows,
        "file": to_file(),
        "file of 96 bits": to_file(**old),
        "address": lambda rows: f"file://{to_file(**old)(rows)}",
        "catalog": in_catalog("parquet", pq.write_table),
        "catalog of 96 bits": in_catalog("parquet", lambda rows, path: pq.write_table(rows, path, **old)),
        "catalog of ORC": in_catalog("orc", lambda rows, path: orc.write_table(rows, str(path))),
    }
    for name in made:
        one._spark.sql(f"DROP TABLE IF EXISTS {name}")


LACKING = {"file": ("ns",), "catalog": ("ns",), "catalog of ORC": ("uint64",)}
"""Types that a way of keeping rows does not have, or that Spark opens no file of."""


def merged_ids(made: Spark, where: str, put: Any) -> tuple[list[str], set[str]]:
    """Columns of which Spark takes two ids for one though it accepts them; and those that it accepts."""
    gone = (*LACKING.get(where, ()), *(() if where == "arrow" else ("milliseconds",)))
    columns = {name: cells for name, cells in neighbours().items() if not any(part in name for part in gone)}
    rows, ids = made._rows(put(pa.table(columns))), {}
    for name in columns:
        with contextlib.suppress(SourceUnusable):
            ids[name] = rows.selected({}, name)[0].removesuffix(f" AS `{UNIT_COLUMN}`")
    counted = [f"SIZE(COLLECT_SET({sql})) AS c{i}" for i, sql in enumerate(ids.values())]
    (found,) = rows.frame.selectExpr(*counted).toArrow().to_pylist()
    there = [len(columns[name].unique()) for name in ids]
    return [name for i, name in enumerate(ids) if found[f"c{i}"] != there[i]], set(ids)


SLOWER = ("address", "catalog")
WAYS = ("arrow", "file", "file of 96 bits", "address", "catalog", "catalog of 96 bits", "catalog of ORC")


@pytest.mark.parametrize(
    "where", [pytest.param(way, marks=pytest.mark.stats) if way in SLOWER else way for way in WAYS]
)
def test_ids_are_told_apart_as_in_the_source_or_refused(interpreted, placed, where):
    """Two units that became one would move an answer further than is claimed for one of them."""
    merged, accepted_ids = merged_ids(interpreted, where, placed[where])
    assert merged == []
    assert {"int64", "double", "text", "bytes", "date", "decimal"} <= accepted_ids
    assert ("timestamp us" in accepted_ids) is (where in ("arrow", "file", "catalog"))


def test_ids_that_become_one_are_found(interpreted, placed, monkeypatch):
    monkeypatch.setattr(rows_of_spark, "_with_footers", lambda session, rows, *_: rows)
    assert "timestamp ns" in merged_ids(interpreted, "file of 96 bits", placed["file of 96 bits"])[0]


def test_a_moment_of_orc_that_microseconds_cannot_hold_makes_no_read_fail(fresh, placed):
    moments = pa.array([0, 9223372036855], pa.int64()).view(pa.timestamp("s"))
    source = placed["catalog of ORC"](pa.table({"n": [1, 2], "m": moments}))
    fresh.attach("t", source, {"n": "integer"}, unit="n")
    assert asked(fresh, "SELECT SUM(n) AS n FROM t") == [(3,)]
    for kind in ("timestamp", "date", "time"):
        with pytest.raises(SourceUnusable, match="a row could make a read fail; write it as Parquet"):
            fresh.attach("t", source, {"m": kind})


UNLIKE = {
    "(ward STRING, K BIGINT)": {"ward": 'its files have it as "Ward"', "K": 'its files have it as "k"'},
    "(Ward STRING, k INT)": {"k": "as bigint, and the catalog as int"},
    "(Ward TIMESTAMP, k STRING)": {"Ward": "as string", "k": "as bigint, and the catalog as string"},
    "(Ward BINARY, k BIGINT, more INT)": {},
}
WIDER = {"i8": ("tinyint", pa.int8()), "i32": ("int", pa.int32()), "x": ("float", pa.float32())}


@pytest.mark.parametrize(
    ("form", "columns"), [*(("catalog", each) for each in UNLIKE), ("catalog of ORC", next(iter(UNLIKE)))]
)
def test_a_catalog_that_is_not_as_its_files_is_refused_before_a_row_is_read(fresh, placed, form, columns):
    rows = pa.table({"Ward": ["A", "B"], "k": pa.array([1, 2], pa.int64())})
    source = placed[form](rows, columns)
    for name, reason in UNLIKE[columns].items():
        with pytest.raises(SourceUnusable, match=reason):
            fresh.attach("t", source, {name: "text"})
        with pytest.raises(SourceUnusable, match=reason):
            fresh.attach("t", source, {}, unit=name)
    if not UNLIKE[columns]:
        fresh.attach("t", source, {"k": "integer"}, unit="Ward")
        assert asked(fresh, "SELECT SUM(k) AS n, COUNT(`sfumato unit`) AS m FROM t") == [(3, 2)]


def test_types_that_a_catalog_has_wider_than_its_files_are_read(fresh, placed):
    digits = pa.array([decimal.Decimal("1.25")], pa.decimal128(9, 2))
    rows = pa.table({**{name: pa.array([7], native) for name, (_, native) in WIDER.items()}, "d": digits})
    fresh.attach("t", placed["catalog"](rows, "(i8 INT, i32 BIGINT, x DOUBLE, d DECIMAL(20, 4))"),
                 {"i8": "integer", "i32": "integer", "x": "float", "d": "float"})  # fmt: skip
    assert asked(fresh, "SELECT i8, i32, x, d FROM t") == [(7, 7, 7.0, 1.25)]


ONLY_ELSEWHERE = {
    "TIME": pa.array([0], pa.time64("us")),
    "TIMESTAMP in nanoseconds": pa.array([0], pa.timestamp("ns")),
    "FLOAT16": pa.nulls(1, pa.float16()),
}


def test_a_column_that_spark_has_no_type_for_is_named(fresh, tmp_path):
    for native, cells in ONLY_ELSEWHERE.items():
        pq.write_table(pa.table({"n": [1], "odd": cells}), tmp_path / "a.parquet")
        for source in (str(tmp_path), f"file://{tmp_path}/a.parquet"):
            with pytest.raises(
                SourceUnusable, match=f'column "odd" is a {native}, which Spark does not have'
            ):
                fresh.attach("t", source, {"n": "integer"})


def test_moments_in_milliseconds_are_those_that_they_are(fresh, tmp_path):
    cells = [0, 1709251198999, -1, 2**63 - 1, -(2**63), None]
    for zone in (None, "UTC"):
        rows = pa.table({"n": range(6), "m": pa.array(cells, pa.int64()).view(pa.timestamp("ms", zone))})
        pq.write_table(rows, tmp_path / "0.parquet")
        for source in (str(tmp_path / "0.parquet"), f"file://{tmp_path}/0.parquet"):
            fresh.attach("t", source, {"n": "integer", "m": "timestamp"})
            assert asked(fresh, "SELECT m FROM t ORDER BY n") == [(0,), (1709251198,), (-1,), *[(None,)] * 3]
    pq.write_table(
        pa.table({"n": [6], "m": pa.array([0], pa.timestamp("us", "UTC"))}), tmp_path / "1.parquet"
    )
    fresh.attach("t", str(tmp_path), {"n": "integer"})
    assert asked(fresh, "SELECT COUNT(n) AS c FROM t") == [(7,)]
    with pytest.raises(SourceUnusable, match="cannot be read as timestamp"):
        fresh.attach("t", str(tmp_path), {"m": "timestamp"})


def test_files_that_spark_leaves_out_are_refused(fresh, tmp_path):
    for name in ("_a.parquet", "b.parquet", ".c.parquet"):
        pq.write_table(pa.table({"n": [1]}), tmp_path / name)
    for source in (str(tmp_path / "_a.parquet"), str(tmp_path / "*.parquet"), str(tmp_path / ".c.parquet")):
        with pytest.raises(SourceUnusable, match="whose names begin with _ or a dot"):
            fresh.attach("t", source, {"n": "integer"})


def test_pairs_of_constants_have_the_types_of_columns(fresh):
    day = datetime.date(2024, 2, 29)
    cells = {"i": -5, "j": 7, "k": -(2**63), "x": -0.5, "y": 1e300, "b": False, "d": day, "s": "-5"}
    kinds = {"x": "float", "y": "float", "b": "boolean", "d": "date", "s": "text"}
    fresh.attach("t", pa.table({name: [cell] for name, cell in cells.items()}),
                 {name: kinds.get(name, "integer") for name in cells})  # fmt: skip
    typed = {name: Typed(column(name), kinds.get(name, "integer")) for name in cells}
    pairs = list(itertools.combinations(cells, 2))
    listed = [members._listed([typed[a], typed[b]], [(cells[a], cells[b])] * 2, SPARK) for a, b in pairs]
    found = fresh.fetch(select([(f"c{i}", each) for i, each in enumerate(listed)], table_of("t")))
    assert found.to_pylist() == [{f"c{i}": True for i in range(len(pairs))}]


FORMATS = {
    "i INT) USING csv OPTIONS (path '{path}', mode 'FAILFAST'": "is not kept as Parquet",
    "i INT) USING json OPTIONS (path '{path}'": "is not kept as Parquet",
    "i DATE) USING parquet OPTIONS (datetimeRebaseMode 'EXCEPTION'": "has the option datetimerebasemode",
}


@pytest.mark.parametrize("made", FORMATS)
def test_tables_in_which_a_row_could_end_a_read_are_refused(fresh, tmp_path, made):
    (tmp_path / "a").write_text("1\ncanary\n")
    name = f"kept_{os.getpid()}"
    fresh._spark.sql(f"CREATE TABLE {name} ({made.format(path=tmp_path / 'a')})")
    try:
        with pytest.raises(SourceUnusable, match=FORMATS[made]):
            fresh.attach("t", f"spark://spark_catalog.default.{name}", {})
    finally:
        fresh._spark.sql(f"DROP TABLE {name}")


def test_a_table_that_changed_its_types_stays_charged_and_is_said(one, tmp_path):
    name = f"changed_{os.getpid()}"
    one._spark.sql(f"CREATE TABLE {name} (u INT, x INT) USING parquet")
    one._spark.sql(f"INSERT INTO {name} VALUES (1, 2)")
    source = f"spark://spark_catalog.default.{name}"
    private = sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit("u"), schema={"x": sf.Int(0, 8)})
    try:
        with sf.Session(
            private, budget=sf.Budget(3), engine=spark.started(), ledger=tmp_path / "t.ledger"
        ) as session:
            session.sql("SELECT SUM(x) AS s FROM t").release(epsilon=1)
            one._spark.sql(f"DROP TABLE {name}")
            one._spark.sql(f"CREATE TABLE {name} (u INT, x STRING) USING parquet")
            one._spark.sql(f"INSERT INTO {name} VALUES (1, 'canary-71')")
            with pytest.raises(EngineFailed, match="price stays paid") as failure:
                session.sql("SELECT COUNT(x) AS s FROM t").release(epsilon=1)
            assert failure.value.__context__ is failure.value.__cause__ is None
            assert "canary" not in str(failure.value)
            assert session.balance().spent == 2
            session.ledger.verify()
    finally:
        one._spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_the_transcript_of_the_documentation_is_what_is_printed(one, tmp_path):
    pq.write_table(visits(), tmp_path / "visits.parquet")
    assert wrong_lines("Apache Spark", str(tmp_path / "visits.parquet")) == []


def test_text_that_is_not_utf8_is_null(fresh, tmp_path):
    raw = pa.array([b"ok", b"\xff\xfe", None], pa.binary())
    pq.write_table(pa.table({"b": raw}), tmp_path / "b.parquet")
    fresh._spark.read.parquet(str(tmp_path / "b.parquet")).selectExpr(
        "CAST(b AS STRING) AS t"
    ).createTempView("raw_text")
    fresh._spark.sql("SELECT * FROM raw_text").write.parquet(str(tmp_path / "out"))
    fresh.attach("t", str(tmp_path / "out"), {"t": "text"}, unit="t")
    assert asked(fresh, "SELECT t, `sfumato unit` FROM t ORDER BY t NULLS LAST") == [
        ("ok", "ok"),
        (None, None),
        (None, None),
    ]
    fresh._spark.catalog.dropTempView("raw_text")


def test_moments_and_times_of_day_are_those_of_duckdb(fresh):
    """Parts of seconds before 1970, zones, the ends of the calendar and beyond them."""
    micros = [0, -1, 999_999, -1_000_001, -62135596800 * 10**6, -62135596800 * 10**6 - 1,
              253402300799 * 10**6 + 999_999, 253402300800 * 10**6, 1709251198 * 10**6, None]  # fmt: skip
    seconds = [None if micro is None else micro // 10**6 for micro in micros]
    days = [None if second is None else second // 86400 for second in seconds]
    columns = {
        "n": list(range(len(micros))),
        "us": pa.array(micros, pa.timestamp("us")),
        "zoned": pa.array(micros, pa.timestamp("us", tz="America/New_York")),
        "s": pa.array(seconds, pa.timestamp("s")),
        "days": pa.array(days, pa.int32()).cast(pa.date32()),
        "whole": pa.array(seconds, pa.int64()),
        "long": pa.array([*map(decimal.Decimal, [10**30, 86_399, 86_400, -1, 0])] * 2, pa.decimal128(38, 0)),
        "short": pa.array([0, 1, -1, 32767, -32768] * 2, pa.int16()),
        "none": pa.nulls(len(micros)),
    }
    rows = pa.table(columns)
    for kind in ("timestamp", "time"):
        taken = [name for name in columns if name != "n" and (kind, name) != ("time", "days")]
        found = []
        with DuckDB(threads=1) as first:
            for each in (first, fresh):
                each.attach("t", rows, {"n": "integer", **dict.fromkeys(taken, kind)})
                listed = [(name, column(name)) for name in ("n", *taken)]
                found.append(sorted(each.fetch(select(listed, table_of("t"))).to_pylist(), key=str))
        assert found[0] == found[1]


def test_ids_that_are_fractions_have_the_text_that_duckdb_gives_them(fresh):
    draw = random.Random(4)
    odd = [0.0, -0.0, math.inf, -math.inf, 1e16, 1e15, 9999999.0, 1e7, 1e-3, 1e-4, 9.999e-5, 1e-5, 0.1, 123.0,
           12345678.9, 1.7e308, 2.0**63, 2.5e-300, 1234567890123456.7]  # fmt: skip
    drawn = [draw.choice([-1, 1]) * draw.random() * 10.0 ** draw.randint(-30, 30) for _ in range(300)]
    rows = pa.table({"n": range(len(odd + drawn)), "u": [*odd, *drawn]})
    fresh.attach("t", rows, {"n": "integer"}, unit="u")
    listed = [("n", column("n")), ("s", SPARK.fill(SPARK.shown, column(UNIT_COLUMN)))]
    its = fresh.fetch(select(listed, table_of("t"))).to_pylist()
    text = "SELECT n, CAST(u + CAST(0 AS DOUBLE) AS VARCHAR) AS s FROM rows"
    ours = duckdb.sql(text).to_arrow_table().to_pylist()
    assert sorted(its, key=str) == sorted(ours, key=str)


def test_conditions_of_nothing_but_null_are_null(fresh):
    fresh.attach("t", pa.table({"p": [True, False, None]}), {"p": "boolean"})
    for null in ("NULL", "(NULL)", "COALESCE(NULL, NULL)", "CASE WHEN TRUE THEN NULL END", "NULL AND NULL"):
        assert asked(fresh, f"SELECT COUNT(*) AS n FROM t WHERE {null}") == [(0,)]
        assert asked(fresh, f"SELECT SUM(CASE WHEN {null} THEN 1 ELSE 2 END) AS n FROM t") == [(6,)]
        assert asked(fresh, f"SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON {null}") == [(0,)]
    assert asked(fresh, "SELECT COUNT(*) AS n FROM (SELECT NULL AS q FROM t) AS s WHERE q") == [(0,)]
    assert asked(fresh, "SELECT CASE p WHEN NULL THEN 1 WHEN TRUE THEN 3 END AS n FROM t WHERE p") == [(3,)]


def test_texts_of_days_are_days(fresh):
    texts = [
        "2024-02-29",
        "2023-02-29",
        "0001-01-01",
        "9999-12-31",
        "2024-2-29",
        " 2024-02-29",
        "x",
        "",
        None,
    ]
    fresh.attach("t", pa.table({"t": texts}), {"t": "text"})
    day = lower_expression(Call("to_date", (Column("t"),)), SPARK)
    found = fresh.fetch(select([("t", column("t")), ("d", day)], table_of("t"))).to_pylist()
    days = {row["t"]: str(row["d"]) for row in found if row["d"] is not None}
    assert days == {text: text for text in (texts[0], texts[2], texts[3])}


def test_a_column_may_be_called_as_a_variable_of_our_forms_is(fresh):
    rows = pa.table({name: [2.0] for name in "vwtx"} | {"a": [3.0]})
    fresh.attach("t", rows, dict.fromkeys("vwtxa", "float"))
    for name in "vwtx":
        power = lower_expression(Call("power", (Column("a"), Column(name))), SPARK)
        rounded = lower_expression(Call("round", (Column(name), literal(1))), SPARK)
        found = fresh.fetch(select([("p", power), ("r", rounded)], table_of("t")))
        assert found.to_pylist() == [{"p": 9.0, "r": 2.0}]


def test_a_read_beyond_its_time_is_stopped(one):
    long = "SELECT COUNT(*) AS n FROM t AS a CROSS JOIN t AS b CROSS JOIN t AS c WHERE a.n + b.n * c.n = 7"
    with spark.started(timeout=0.5) as made:
        made.attach("t", pa.table({"n": range(5000)}), {"n": "integer"})
        with pytest.raises(TimedOut):
            made.fetch(parse_one(long, dialect="spark"))
        tracker, until = made._spark.sparkContext.statusTracker(), time.monotonic() + 60
        while tracker.getActiveJobsIds() and time.monotonic() < until:
            time.sleep(0.1)
        assert list(tracker.getActiveJobsIds()) == []


def test_ids_are_shown_as_the_source_has_them(fresh):
    apart = [b"\x00", b"\x00\x00", b"\xff"]
    fresh.attach("t", pa.table({"u": pa.array(apart, pa.binary())}), {}, unit="u")
    assert sorted(row[0] for row in asked(fresh, "SELECT `sfumato unit` FROM t")) == apart
    for native in (pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64())):
        nested = pa.table({"u": pa.array([None], native)})
        with pytest.raises(SourceUnusable, match="cannot be the ids of units"):
            fresh.attach("t", nested, {}, unit="u")
        with pytest.raises(SourceUnusable, match="cannot be read as integer; the source has it as other"):
            fresh.attach("t", nested, {"u": "integer"})


def test_a_footer_that_lies_changes_nothing(fresh, tmp_path):
    """The minimum and maximum of a file are those of other rows: filters and sums see the rows."""
    told, held = (
        pa.table({"n": pa.array(values, pa.int64())}) for values in ([1, 2, 3, 2] * 3, [1, 999_999, 3, 2] * 3)
    )
    options = {"compression": "none", "use_dictionary": False}
    for rows, name in ((told, "told"), (held, "held")):
        pq.write_table(rows, tmp_path / f"{name}.parquet", **options)
    first, second = ((tmp_path / f"{name}.parquet").read_bytes() for name in ("told", "held"))
    assert len(first) == len(second)
    end = len(first) - 8 - int.from_bytes(first[-8:-4], "little")
    (tmp_path / "lying.parquet").write_bytes(second[:end] + first[end:])
    fresh.attach("t", str(tmp_path / "lying.parquet"), {"n": "integer"})
    assert asked(fresh, "SELECT COUNT(*) AS n FROM t WHERE n > 1000") == [(3,)]
    assert asked(fresh, "SELECT MAX(n) AS n FROM t") == [(999_999,)]
    assert asked(fresh, "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.n = b.n WHERE a.n > 1000") == [
        (9,)
    ]


def test_sources_are_folders_with_keys_addresses_and_tables_of_a_catalog(fresh, tmp_path):
    for key, number in (("FR", 1), ("07", 2)):
        (tmp_path / "by" / f"country={key}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [number]}), tmp_path / "by" / f"country={key}" / "a [1]*.parquet")
    fresh.attach("p", str(tmp_path / "by"), {"country": "text", "n": "integer"})
    assert asked(fresh, "SELECT country, n FROM p ORDER BY n") == [("FR", 1), ("07", 2)]
    assert fresh.schema(str(tmp_path / "by")) == {"n": "integer", "country": "text"}
    fresh.attach("f", f"file://{tmp_path}/by", {"n": "integer"})
    assert asked(fresh, "SELECT SUM(n) AS s FROM f") == [(3,)]
    name = f"kept_{os.getpid()}"
    fresh._spark.sql(f"CREATE TABLE {name} (i INT, c CHAR(3), t STRING COLLATE UTF8_LCASE) USING parquet")
    try:
        fresh._spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'A'), (2, 'b', 'a')")
        source = f"spark://spark_catalog.default.{name}"
        fresh.attach("c", source, {"i": "integer", "c": "text", "t": "text"}, unit="t")
        assert asked(fresh, "SELECT i, c, t FROM c ORDER BY i") == [(1, "a  ", "A"), (2, "b  ", "a")]
        assert asked(fresh, "SELECT COUNT(DISTINCT `sfumato unit`) AS n FROM c WHERE t = 'a'") == [(1,)]
        fresh._spark.sql(f"CREATE VIEW {name}_view AS SELECT CAST(t AS INT) AS i FROM {name}")
        with pytest.raises(SourceUnusable, match="cannot be opened"):
            fresh.attach("v", f"{source}_view", {"i": "integer"})
    finally:
        fresh._spark.sql(f"DROP VIEW IF EXISTS {name}_view")
        fresh._spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_what_cannot_be_opened_is_said_in_one_sentence(fresh, tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 canary-71 PAR1")
    pq.write_table(pa.table({"t": ["canary-71"]}), tmp_path / "text.parquet")
    for source, kind, words in (
        (str(tmp_path / "broken.parquet"), "text", "cannot be opened"),
        ("spark://no.such.table", "text", "cannot be opened"),
        ("mysql://host/t", "text", "is remote"),
        (str(tmp_path / "text.parquet"), "integer", "declare it text"),
        (str(tmp_path / "none.parquet"), "text", "does not exist"),
        (object(), "text", "reads tables of a catalog"),
        (pa.table({"t": ["a"]}), "timestamp", "cannot be read as timestamp; the source has it as text"),
        (pa.table({"t": ["a"]}), "time", "cannot be read as time; the source has it as text"),
    ):
        with pytest.raises(SourceUnusable, match=words) as refusal:
            fresh.attach("t", source, {"t": kind})
        assert refusal.value.__cause__ is None
        assert refusal.value.__context__ is None
        assert "canary" not in str(refusal.value)


SMUGGLED = (
    "SELECT * FROM parquet.`/etc`",
    "SELECT rand() AS r FROM t",
    "SELECT current_timestamp() AS r FROM t",
    "SELECT reflect('java.lang.System', 'getenv', 'HOME') AS r FROM t",
    "SELECT java_method('java.lang.System', 'exit', 1) AS r FROM t",
    "SELECT input_file_name() AS r FROM t",
    "SELECT spark_partition_id() AS r FROM t",
    "SELECT monotonically_increasing_id() AS r FROM t",
    "SELECT * FROM range(5)",
    "SELECT * FROM t TABLESAMPLE (50 PERCENT)",
    "SELECT * FROM global_temp.t",
    "SELECT * FROM other",
    "SELECT raise_error(t) AS r FROM t",
    "SELECT session_user() AS r FROM t",
)


@pytest.mark.parametrize("text", SMUGGLED)
def test_anything_else_is_refused_at_the_door(one, text):
    one.attach("t", pa.table({"t": ["a"]}), {"t": "text"})
    with pytest.raises(EngineFailed, match="one SELECT over attached tables"):
        one.fetch(parse_one(text, dialect="spark"))


def test_constants_stay_what_they_are(fresh):
    odd = ["${env:HOME}", "${spark:spark.app.name}", "a\\b", "it's", "%_!", "\\u0041", "\n", '"']
    fresh.attach("t", pa.table({"t": odd}), {"t": "text"})
    for text in odd:
        test = lower_expression(Call("equal", (Column("t"), literal(text))), SPARK)
        found = fresh.fetch(select([("t", column("t"))], table_of("t"), test))
        assert found.column(0).to_pylist() == [text]


def test_views_are_ours_and_dropped_at_the_end(one):
    made = spark.started()
    before = len(made._spark.catalog.listTables())  # tables of the catalog, which other tests made
    made.attach("t", pa.table({"t": ["a"]}), {"t": "text"})
    made.attach("T", pa.table({"t": ["b"]}), {"t": "text"})
    assert asked(made, "SELECT t FROM t") == [("b",)]
    assert len(made._spark.catalog.listTables()) == before + 1
    assert [each for each in one._spark.catalog.listTables() if each.name.startswith(made._prefix)] == []
    made.close()
    made.close()
    assert len(made._spark.catalog.listTables()) == before
    with pytest.raises(EngineFailed, match="closed"):
        made.fetch(parse_one("SELECT t FROM t"))


def test_settings_of_a_given_session_do_not_count(one):
    given = one._spark.newSession()
    for key, value in (
        ("ansi.enabled", "false"),
        ("session.timeZone", "Asia/Tokyo"),
        ("caseSensitive", "false"),
        ("parquet.filterPushdown", "true"),
    ):
        given.conf.set(f"spark.sql.{key}", value)
    with base.engine("spark", session=given) as made:
        conf = {key: made._spark.conf.get(f"spark.sql.{key}") for key in
                ("ansi.enabled", "session.timeZone", "caseSensitive", "parquet.filterPushdown")}  # fmt: skip
    assert list(conf.values()) == ["true", "UTC", "true", "false"]
    assert given.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"


@pytest.mark.parametrize(
    "options",
    [
        {"session": 1, "remote": "sc://h"},
        {"remote": "http://h"},
        {"threads": 0},
        {"memory": "lots"},
        {"timeout": -1},
        {"session": object()},
    ],
)
def test_options_that_do_not_fit_are_refused(options):
    with pytest.raises(InvalidParameter):
        Spark(**options)


KILLED = """
import os, signal, sys, threading, time
sys.path[:0] = {paths!r}
import pyarrow as pa
import first_steps
import sfumato as sf
import spark
from sfumato.errors import EngineFailed

made = spark.started()
process = made._spark.sparkContext._gateway.proc.pid
rows = pa.table({{"u": list(range(4000)), "s": ["canary-71"] * 4000}})
unit = sf.PrivacyUnit("u", max_rows=1)
tables = [sf.PrivateTable("t", source=rows, unit=unit, schema={{"s": sf.Text()}}, dataset="d")]
reading = made.fetch

def killed(*arguments, **options):
    threading.Timer(0.2, lambda: os.kill(process, signal.SIGKILL)).start()
    return reading(*arguments, **options)

with sf.Session(*tables, budget=sf.Budget(3), engine=made, ledger={place!r}) as session:
    made.fetch = killed
    for times in ("during", "after"):
        try:
            session.sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1)
        except EngineFailed as error:
            print(times, error, error.__cause__, error.__context__)
        made.fetch = reading
    print("spent:", session.balance().spent)
    session.ledger.verify()
    print("verified")
"""


def test_a_spark_that_is_killed_is_said_and_stays_paid_and_leaves_no_file(one, tmp_path):
    paths = [str(Path(spark.__file__).parent), str(Path(sf.__file__).parents[1]), *sys.path]
    (tmp_path / "kept").mkdir()
    place, scratch = str(tmp_path / "kept" / "t.ledger"), tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-W", "error", "-c", KILLED.format(paths=paths, place=place)]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    run = subprocess.run(
        command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=300, check=False
    )
    said = "The engine could not finish the read; the price stays paid."
    for times in ("during", "after"):
        assert f"{times} {said} None None" in run.stdout, run.stderr
    assert "spent: 2" in run.stdout
    assert "verified" in run.stdout
    assert "canary" not in run.stdout + run.stderr
    assert list(scratch.iterdir()) == []


def test_what_may_not_be_read_and_what_does_not_answer_is_said_before_it_is_paid(fresh, monkeypatch):
    def denied(*_: Any) -> Any:
        raise PermissionError("canary-71: permission denied")

    with monkeypatch.context() as patch:
        for name in ("_parquet", "_table"):
            patch.setattr(rows_of_spark, name, denied)
        for source in ("hdfs://cluster/visits", "spark://lake.clinic.visits"):
            with pytest.raises(SourceUnusable, match="and that it may be read") as refusal:
                fresh.attach("t", source, {"n": "integer"})
            assert refusal.value.__context__ is refusal.value.__cause__ is None
            assert "canary" not in str(refusal.value)
    monkeypatch.setattr(settings, "_builder", lambda: SimpleNamespace(remote=denied))
    with pytest.raises(InvalidParameter, match="cannot be reached") as unreached:
        Spark(remote="sc://127.0.0.1:1")
    assert unreached.value.__context__ is unreached.value.__cause__ is None


def test_nothing_that_is_logged_holds_a_value(one, capfd, caplog):
    one.attach("t", pa.table({"t": ["canary-71"]}), {"t": "text"})
    with pytest.raises(EngineFailed) as failure:
        one.fetch(parse_one("SELECT CAST(t AS BIGINT) AS n FROM t", dialect="spark"))
    assert failure.value.__context__ is failure.value.__cause__ is None
    told = capfd.readouterr()
    assert "canary" not in told.out + told.err + caplog.text


def test_the_parser_forgets_shapes_of_questions(one):
    states = one._spark._jvm.org.apache.spark.sql.catalyst.parser.AbstractParser.getDFACacheNumStates
    settings, name = one._spark.conf, "spark.sql.parser.parserDfaCacheFlushThreshold"

    def asked(depth):
        term = "+".join(
            f"(({at} * (1 + {at})) - CASE WHEN {at} > 1 THEN 1 ELSE 0 END)" for at in range(depth)
        )
        one._spark.sql(f"SELECT {term} AS n").collect()
        return states()

    before = settings.get(name)
    assert asked(3) > 0
    settings.set(name, "1")
    try:
        assert asked(4) == 0
    finally:
        settings.set(name, before)
    assert 0 < asked(5) <= int(before)


@pytest.mark.parametrize("ci", [True, False])
def test_a_machine_that_must_have_spark_fails_without_it(monkeypatch, ci):
    monkeypatch.setenv("CI", str(ci).lower())
    monkeypatch.setattr(spark.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(pytest.fail.Exception if ci else pytest.skip.Exception, match="is not installed"):
        spark.started()


def spelled(**change):
    return lambda patch: patch.setattr(engine, "SPARK", dataclasses.replace(SPARK, **change))


def collated(collation: str):
    value = views._value

    def collating(name, native, kind, *others):
        inner = value(name, native, kind, *others)
        return f"COLLATE({inner}, '{collation}')" if kind == "text" else inner

    return lambda patch: patch.setattr(views, "_value", collating)


def wrapping(patch):
    patch.setitem(settings._FIXED, "spark.sql.ansi.enabled", "false")
    spelled(sum="SUM({0})")(patch)


PLANTED = {
    "whole numbers rounded down": (
        spelled(whole="TRY_CAST(FLOOR({0}) AS BIGINT)"),
        "dialect: the clamp of",
    ),
    "a cast that raises": (
        spelled(casts={**SPARK.casts, "integer": "CAST({0} AS BIGINT)"}),
        "dialect: EngineFailed",
    ),
    "a sum of 64 bits": (spelled(sum="SUM({0})"), "dialect: EngineFailed"),
    "a sum of 64 bits that wraps": (wrapping, "dialect: the sum of"),
    "NULL is not NaN": (spelled(is_nan="ISNAN({0})"), "dialect: is_nan of None"),
    "a locale's collation": (collated("UNICODE"), "lists: '' is in a list"),
    "letters of any case": (collated("UTF8_LCASE"), "lists: 'A' is in a list"),
}


@pytest.mark.parametrize("bug", sorted(PLANTED))
def test_planted_bugs_are_found(one, monkeypatch, bug):
    plant, fault = PLANTED[bug]
    plant(monkeypatch)
    found = engine_faults(spark.started, checks=[fault.split(":")[0]])
    assert any(fault in each for each in found), found


# What is drawn where the groups are.

GROUPS = pa.table({"u": [at % 300 for at in range(1200)], "g": [f"g{at * at % 37}" for at in range(1200)]})
BY_GROUP = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


@pytest.fixture
def parted(one, tmp_path):
    """Spark with more parts than cores, and a session over it."""
    plain = one._spark.newSession()
    plain.conf.set("spark.sql.shuffle.partitions", "5")
    pq.write_table(GROUPS, tmp_path / "t.parquet")
    unit = sf.PrivacyUnit("u", max_groups=8, max_rows=8)
    table = sf.PrivateTable("t", source=tmp_path / "t.parquet", unit=unit, schema={"g": sf.Text()})
    with (
        Spark(session=plain) as made,
        sf.Session(table, budget=sf.Budget(10**7, "0.1"), engine=made) as opened,
    ):
        yield opened


def test_what_is_written_is_what_would_be_released(parted, tmp_path):
    query = parted.sql(BY_GROUP)
    written = query.write(tmp_path / "out", epsilon=4000, delta="1e-6", bounding="choose")
    released = query.release(epsilon=4000, delta="1e-6", bounding="choose").table
    assert written.table().sort_by("g").equals(released.sort_by("g"))
    assert (written.rows, len(written.files), written.free) == (len(set(GROUPS["g"].to_pylist())), 5, False)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "sfumato.json", *(path.name for path in written.files)
    }  # fmt: skip
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    before = parted.balance()
    again = query.write(tmp_path / "out", epsilon=4000, delta="1e-6", bounding="choose")
    copied = query.write(tmp_path / "copy", epsilon=4000, delta="1e-6", bounding="choose")
    assert (again.free, copied.free, parted.balance()) == (True, True, before)
    assert copied.table().equals(written.table())
    with pytest.raises(InvalidParameter, match="has files already"):
        query.write(tmp_path / "copy", epsilon=3, delta="1e-6", bounding="choose")
    with pytest.raises(InvalidParameter, match="folder above"):
        query.write(tmp_path / "no" / "such", epsilon=3, delta="1e-6", bounding="choose")
    assert parted.balance() == before
    written.files[0].write_bytes(b"changed")
    with pytest.raises(InvalidParameter, match="was changed"):
        written.table()
    assert str(written).count(f"{written.rows} groups in 5 files") == 1


def drawn(session, seed=bytes(32)):
    quote = session.sql(BY_GROUP).quote(20, delta="1e-6", bounding="choose")
    return quote, Drawing(quote, session.vault.kinds(quote.measured), seed, errors=False)


def test_a_task_that_is_tried_again_draws_the_same_and_leaves_one_file(parted, tmp_path):
    quote, work = drawn(parted)
    statement = parted.vault._statement(quote.measured)
    found = []
    for name, each in {"smooth": work, "unlucky": Unlucky(work, tmp_path)}.items():
        folder = tmp_path / name
        folder.mkdir()
        parts = parted._engine.in_parts(statement, each, work.schema, folder, order=["k0"])
        assert [part.number for part in parts] == list(range(5))
        assert {path.name for path in folder.iterdir()} == {part.name for part in parts}
        found.append([(part.rows, part.digest) for part in parts])
    assert found[0] == found[1]
    assert {path.name for path in tmp_path.iterdir()} >= {"0", "2", "4"}  # or nothing was lost


def test_how_many_parts_there_are_and_where_a_group_is_follow_from_settings_alone(parted, tmp_path):
    places = list[dict[str, int]]()
    for at, (rows, files) in enumerate([(0, 1), (1, 1), (1200, 1), (1200, 7)]):
        (source := tmp_path / f"source{at}").mkdir()
        (folder := tmp_path / f"parts{at}").mkdir()
        for file in range(files):
            some = GROUPS.slice(rows * file // files, rows // files)
            pq.write_table(some, source / f"{file}.parquet")
        unit = sf.PrivacyUnit("u", max_groups=8, max_rows=8)
        table = sf.PrivateTable("t", source=source, unit=unit, schema={"g": sf.Text()})
        with sf.Session(table, budget=sf.Budget(100, "0.1"), engine=parted._engine) as opened:
            quote, work = drawn(opened)
            statement = opened.vault._statement(quote.measured)
            parts = parted._engine.in_parts(statement, work, work.schema, folder, order=["k0"])
        assert [part.number for part in parts] == list(range(5))
        shown = {part.number: pq.read_table(folder / part.name)["g"].to_pylist() for part in parts}
        places.append({key: number for number, keys in shown.items() for key in keys})
    assert len(set(places[-1].values())) == 5
    assert places[-2].items() & places[-1].items() == places[-1].items() | places[-2].items()


@pytest.mark.parametrize("divided", ["by ranges", "by a hash", "by another hash", "not at all"])
def test_however_spark_has_divided_groups_their_place_is_a_hash(parted, tmp_path, divided):
    keys = [f"g{at:03d}" for at in range(200)]
    frame = plain = parted._engine._spark.createDataFrame(pa.table({"k0": keys}))
    if divided == "by ranges":
        frame = plain.repartitionByRange(5, "k0")
    elif divided != "not at all":
        frame = plain.repartition(5 if divided == "by a hash" else 7, "k0")
    assert _is_hashed(frame, 5) == (divided == "by a hash")
    parts = written(frame, AsTheyAre(), pa.schema({"k0": pa.string()}), tmp_path, ["k0"], 5)
    assert [part.number for part in parts] == list(range(5))
    shown = [
        (part.number, key) for part in parts for key in pq.read_table(tmp_path / part.name)["k0"].to_pylist()
    ]
    hashed = plain.selectExpr("CAST(pmod(hash(k0), 5) AS INT) AS n", "k0").collect()
    assert sorted(shown) == sorted((row.n, row.k0) for row in hashed)


@pytest.mark.stats
def test_noise_drawn_anew_by_a_task_that_is_tried_again_is_found(parted, tmp_path):
    """The same test turns red where noise does not come from the key of the part."""
    quote, work = drawn(parted)
    fresh = dataclasses.replace(work, seed=os.urandom(32))
    statement = parted.vault._statement(quote.measured)
    digests = []
    for name, each in {"one": work, "other": fresh}.items():
        (tmp_path / name).mkdir()
        parts = parted._engine.in_parts(statement, each, work.schema, tmp_path / name, order=["k0"])
        digests.append([part.digest for part in parts])
    assert digests[0] != digests[1]


@pytest.mark.stats
def test_a_task_that_fails_for_good_says_nothing_and_stays_paid(parted, tmp_path, monkeypatch):
    lost = tmp_path / "lost"
    lost.mkdir()
    before = parted.balance().spent

    broken = lambda *facts, **more: Broken(Drawing(*facts, **more), "canary-19")  # noqa: E731
    monkeypatch.setattr("sfumato.session.writing.Drawing", broken)
    with pytest.raises(EngineFailed) as caught:
        parted.sql(BY_GROUP).write(lost / "out", epsilon=5, delta="1e-6", bounding="choose")
    assert "canary" not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert list(lost.iterdir()) == []
    assert parted.balance().spent > before


@pytest.mark.stats
def test_a_thousand_parts_with_lost_tasks_are_drawn_once(one, tmp_path):
    plain = one._spark.newSession()
    plain.conf.set("spark.sql.shuffle.partitions", "1000")
    rows = pa.table({"u": list(range(200_000)), "g": [f"g{at % 5000}" for at in range(200_000)]})
    pq.write_table(rows, tmp_path / "t.parquet")
    table = sf.PrivateTable(
        "t", source=tmp_path / "t.parquet", unit=sf.PrivacyUnit("u"), schema={"g": sf.Text()}
    )
    (tmp_path / "marks").mkdir()
    with Spark(session=plain) as made, sf.Session(table, budget=sf.Budget(100, "0.1"), engine=made) as opened:
        quote, work = drawn(opened)
        statement = opened.vault._statement(quote.measured)
        found = []
        for name, each in {"smooth": work, "unlucky": Unlucky(work, tmp_path / "marks")}.items():
            (tmp_path / name).mkdir()
            parts = made.in_parts(statement, each, work.schema, tmp_path / name, order=["k0"])
            assert {path.name for path in (tmp_path / name).iterdir()} == {part.name for part in parts}
            found.append([(part.number, part.rows, part.digest) for part in parts])
        assert found[0] == found[1]
        assert len(found[0]) == 1000
        assert sum(rows for _, rows, _ in found[0]) == 5000


# Spark Connect, before a server of its own.


def test_a_session_over_connect_answers_and_writes_as_one_in_this_machine(one, tmp_path):
    pq.write_table(GROUPS, tmp_path / "t.parquet")
    unit = sf.PrivacyUnit("u", max_groups=8, max_rows=8)
    table = sf.PrivateTable("t", source=tmp_path / "t.parquet", unit=unit, schema={"g": sf.Text()})
    found, terms = [], {"epsilon": 1000, "delta": "1e-6"}
    with spark.connect_server() as address, Spark(remote=address) as remote:
        for engine in (one, remote):
            with sf.Session(table, budget=sf.Budget(10**6, "0.1"), engine=engine) as session:
                found.append(session.sql(BY_GROUP).release(**terms).table.sort_by("g"))
                if engine is remote:
                    found.append(session.sql(BY_GROUP).write(tmp_path / "out", **terms).table().sort_by("g"))
    groups = [each["g"].to_pylist() for each in found]
    assert groups[0] == groups[1] == groups[2] == sorted(set(GROUPS["g"].to_pylist()))
    counts = [each["n"].to_pylist() for each in found]
    assert all(abs(first - other) <= 2 for row in zip(*counts, strict=True) for first in row for other in row)
    spark.started().close()  # Spark of this process is not kept from starting


@pytest.mark.parametrize("given", [True, False])
def test_sessions_of_connect_that_were_opened_are_stopped_once(monkeypatch, given):
    class Session:
        stops = 0

        def stop(self) -> None:
            self.stops += 1

    Session.__module__ = "pyspark.sql.connect.session"
    base, own = Session(), Session()
    monkeypatch.setattr(engine, "remote_session", lambda _: base)
    monkeypatch.setattr(engine, "own_session", lambda _: own)
    made = Spark(session=base) if given else Spark(remote="sc://somewhere:1")
    made.close()
    made.close()
    assert (own.stops, base.stops) == (1, 0 if given else 1)


def test_a_spark_of_this_process_is_not_stopped_by_an_engine(one):
    with spark.started():
        pass
    assert one._spark.sql("SELECT 1").collect() == [(1,)]
    assert not settings.is_remote(one._spark)


# The benchmarks of engines.


@pytest.mark.stats
def test_each_part_of_the_benchmark_on_spark_has_its_figures(one, monkeypatch, tmp_path):
    for name, value in {"WARM": 0, "REPEATS": 1}.items():
        monkeypatch.setattr(engine_spark, name, value)
    kept = dict[str, object]()

    def here(case, source, *who):
        if case not in kept:  # one run serves all parts that are about the same question
            more = [("plain", "by user", "sfumato", "prepared")] if case == "by country" else []
            kept[case] = engine_spark.CASES[case](one, source, *more, repeats=1)
        return kept[case]

    monkeypatch.setattr(engines, "_on_spark", here)
    monkeypatch.setattr(engines, "MOST", 3_000)
    monkeypatch.setenv("PEERS_TUMULT", str(tmp_path))
    report = Report("engines")
    parts = (engines.beside_tumult, engines.shuffled, engines.spark_overhead)
    for part in (*parts, engines.small_spark, engines.groups):
        part(report)
    found = {figure["what"]: figure["value"] for figure in report.figures}
    assert found["Spark: shuffled bytes, unprepared, over the plain query"] > 1
    assert found["Spark: a small question over the plain one, jobs"] <= 1
    assert found["Spark: 3,000 groups with noise over the aggregation"] > 0
    assert kept["groups"]["shown"] > 2_900
    assert {"plain", "by user", "sfumato"} <= {row["who"] for row in report.rows}
    assert 1 < kept["groups"]["peaks"]["driver"] < kept["groups"]["peaks"]["together"]


# Prepared tables -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.stats)])
@pytest.mark.parametrize("law", sorted(LAWS))
def test_law_of_prepared_tables(one, tmp_path, law, few):
    LAWS[law](SparkPlace(tmp_path, one, few=few))


def count_of(session) -> int:
    measured = session.sql("SELECT COUNT(*) AS n FROM visits").quote(epsilon=1).measured
    assert measured.bounding.name == "prepared"
    return int(session.vault._read(measured, 0).columns[0][0])


def test_half_a_prepared_folder_is_not_taken_for_one(one, tmp_path):
    path = to_folder(SparkPlace(tmp_path, one))
    (file,) = path.glob("*.parquet")
    twin = file.with_name("twin.parquet")
    kinds = {"age": "integer"}
    twin.write_bytes(file.read_bytes())
    with pytest.raises(SourceUnusable, match="does not have the files that were prepared"):
        one.attach("visits", path, kinds, unit="user")
    file.unlink()
    with pytest.raises(SourceUnusable, match="does not have the files that were prepared"):
        one.attach("visits", path, kinds)  # without a unit, too
    twin.rename(file)
    one.attach("visits", str(path), kinds, unit="user")
    assert one.is_prepared("visits")


def test_a_guard_is_run_once_on_files_that_are_settled(one, tmp_path, monkeypatch):
    place = SparkPlace(tmp_path, one)
    path = to_folder(place)
    session = sf.Session(table_like(path), budget=sf.Budget(9), engine=one)
    held = len(one._held)
    whole = count_of(session)
    assert len(one._held) == held  # written a moment ago
    monkeypatch.setattr(sources, "_SETTLED", 0)
    assert count_of(session) == whole
    assert len(one._held) == held + 1
    monkeypatch.setattr(engine, "_is_zero", lambda _: False)  # nothing asks it again
    assert count_of(session) == whole
    place.alter(path, 'INSERT INTO {t} SELECT * FROM {t} WHERE "sfumato rank" = 1')
    with pytest.raises(EngineFailed):
        count_of(session)
    session.close()


def test_a_file_that_is_written_between_guard_and_read_gives_no_answer(one, tmp_path, monkeypatch):
    path = to_folder(SparkPlace(tmp_path, one))
    session = sf.Session(table_like(path), budget=sf.Budget(9), engine=one)
    is_zero = engine._is_zero

    def then_touched(frame):
        held = is_zero(frame)
        for file in path.glob("*.parquet"):
            os.utime(file)
        return held

    monkeypatch.setattr(engine, "_is_zero", then_touched)
    with pytest.raises(EngineFailed, match="changed since it was attached"):
        count_of(session)
    session.close()


def test_of_a_prepared_folder_is_written_what_would_be_released(one, tmp_path):
    place = SparkPlace(tmp_path, one)
    path = to_folder(place, group_by="city")
    text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    terms = {"epsilon": 1000, "delta": "1e-3"}
    with sf.Session(table_like(path), budget=sf.Budget(10**4, "0.1"), engine=one) as session:
        assert session.sql(text).quote(**terms).measured.bounding.name == "grouped"
        written = session.sql(text).write(tmp_path / "out", **terms).table()
        assert written.sort_by("city").equals(session.sql(text).release(**terms).table.sort_by("city"))
        assert written.num_rows > 1
    place.alter(path, "INSERT INTO {t} SELECT {t}.* FROM {t}, range(9)")
    with (
        sf.Session(table_like(path), budget=sf.Budget(10**4, "0.1"), engine=one) as session,
        pytest.raises(EngineFailed, match="not as it was written"),
    ):
        session.sql(text).write(tmp_path / "no", **terms)
    assert not [each.name for each in tmp_path.iterdir() if each.name.lstrip(".").startswith("no")]


def test_a_table_that_cannot_be_prepared_leaves_nothing(one, tmp_path, monkeypatch):
    place = SparkPlace(tmp_path, one)
    table, target = table_like(place.source(rows_to_prepare())), place.target()
    (tmp_path / "other").mkdir()
    for where, words in (
        (tmp_path / "p.duckdb", "a folder, not to a file"),
        ("s3a://bucket/p", "a folder of this machine"),
        (tmp_path / "absent" / "p", "There is no folder"),
        (tmp_path / "other", "was not prepared; name another one"),
        (tmp_path, "is read from that folder"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            prepare(table, where, engine=one, force=True)
    with DuckDB() as wrong, pytest.raises(InvalidParameter, match="must be the engine Spark"):
        prepare(table, target, engine=wrong)
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(preparing, "by_windows", lambda *_, **__: "SELECT RAISE_ERROR('canary-4711') AS x")
    with pytest.raises(SourceUnusable, match="could not be prepared") as failure:
        prepare(table, target, engine=one)
    assert failure.value.__cause__ is failure.value.__context__ is None
    assert sorted(tmp_path.iterdir()) == before


def test_prepared_folders_are_known_to_audits_quotes_and_commands(one, tmp_path, monkeypatch):
    place = SparkPlace(tmp_path, one)
    path = to_folder(place, group_by="city")
    assert salt_of(path) == salt_of(str(to_folder(place))) is not None
    with sf.Session(table_like(path), budget=sf.Budget(1, "0.1"), engine=Unopened(one, public=[])) as quotes:
        asked = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
        assert quotes.sql(asked).quote(epsilon=1).measured.bounding.name == "grouped"
    monkeypatch.chdir(tmp_path)
    source = Path(place.source(rows_to_prepare())).name
    text = CATALOG.format(source=source)
    Path("sfumato.toml").write_text(text)
    found = invoke(app, ["prepare", "visits"])
    assert found.exit_code == 0, found.output
    assert 'source = "visits.prepared"' in found.output
    assert "is there already" in " ".join(invoke(app, ["prepare", "visits"]).output.split())
    Path("sfumato.toml").write_text(text.replace(source, "visits.prepared"))
    asked = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
    told = invoke(app, ["quote", asked, "--epsilon", "1"])
    assert "when the table was prepared" in " ".join(told.output.split()), told.output


CATALOG = """
[engine]
name = "spark"

[datasets.visits]
epsilon = 5

[tables.visits]
source = "{source}"
unit = "user"
max_rows = 2
dataset = "visits"
columns.country = {{ type = "enum", values = ["FR", "DE"] }}
columns.age = {{ type = "int", lower = 0, upper = 9 }}
"""


@pytest.mark.stats
def test_random_questions_of_prepared_tables_have_the_same_integers(one, tmp_path):
    with portable_duckdb():
        places = DuckDBPlace(tmp_path), SparkPlace(tmp_path, one)
        found = compare_prepared(places, "few", 12, ids=IDS)
    assert found.different == []
    assert found.answered >= 20


@pytest.mark.parametrize("kind", ["text", "decimal"])
def test_units_are_pairs_of_an_id_and_a_window(one, kind):
    check_windows(one, kind, ["week", 30])


def test_rows_of_windows_that_were_paid_for_are_read_and_no_others(one):
    check_held(one, ["month", 30])


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu"])
def test_windows_end_at_local_midnight(one, zone):
    check_zones(one, zone, ["day", "month"])


def test_states_are_read_apart(one, tmp_path):
    for number, many in ((1, 10), (2, 20), (3, 40)):
        rows = pa.table(
            {"u": [f"{number} {n}" for n in range(many)], "n": pa.array([number] * many, pa.int64())}
        )
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    by_files = {str(last): sf.State([f"{n}.parquet" for n in range(1, last + 1)]) for last in (1, 2, 3)}
    by_column = {str(last): sf.State(column="n", last=last) for last in (1, 2, 3)}
    for place, states in enumerate((by_files, by_column)):
        table = sf.PrivateTable(
            f"grows{place}",
            source=tmp_path,
            unit=sf.PrivacyUnit("u"),
            schema={"n": sf.Int(0, 9)},
            states=states,
        )
        with sf.Session(table, budget=sf.Budget(10**6), engine=one) as session:
            sessions = [session.at("1"), session.at("2"), session, session.growing()]
            asked = [each.sql(f"SELECT COUNT(*) AS n FROM grows{place}") for each in sessions]
            assert [exact(query)[0]["n"][0].as_py() for query in asked] == [10, 30, 70, 70]


def test_ids_of_other_types_are_the_same_people(one):
    states = [first_steps.FORMS[form] for form in ("int64", "float64", "decimal(10,2)", "text")]
    assert first_steps.counted(states, None, one) == [4, 0, 0, 0]
