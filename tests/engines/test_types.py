"""Declared kinds over native types: what fits is cast, what a row holds never decides, nothing raises."""

from __future__ import annotations

import datetime
import decimal
import math

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sfumato.engines import UNIT_COLUMN
from sfumato.errors import SourceUnusable

NAN, INF = math.nan, math.inf
DAY = datetime.date(2020, 2, 29)
NOON = datetime.datetime(2020, 2, 29, 12, 30)

# native values, their type, the declared kind, what is read
FITTING = {
    "unsigned 64 bits": ([1, 2**64 - 1, None], pa.uint64(), "integer", [1, None, None]),
    "small whole numbers": ([1, -128, None], pa.int8(), "integer", [1, -128, None]),
    "whole decimals of 38 digits": ([1, 10**37, None], pa.decimal128(38, 0), "integer", [1, None, None]),
    "floats as whole numbers": (
        [1.0, 2.5, NAN, INF, 1e300, None],
        pa.float64(),
        "integer",
        [1, 2] + [None] * 4,
    ),
    "truth as whole numbers": ([True, False, None], pa.bool_(), "integer", [1, 0, None]),
    "text as whole numbers": (
        ["12", " 7 ", "x", "", None, "9" * 40],
        pa.string(),
        "integer",
        [12, 7] + [None] * 4,
    ),
    "floats": ([0.5, -0.0, INF, -INF, None], pa.float64(), "float", [0.5, -0.0, INF, -INF, None]),
    "short floats": ([0.5, None], pa.float32(), "float", [0.5, None]),
    "half floats": ([0.5, None], pa.float16(), "float", [0.5, None]),
    "decimals": ([decimal.Decimal("1.25"), None], pa.decimal128(10, 2), "float", [1.25, None]),
    "long decimals": ([decimal.Decimal("1.25"), None], pa.decimal256(60, 2), "float", [1.25, None]),
    "unsigned as floats": ([2**63, None], pa.uint64(), "float", [2.0**63, None]),
    "text as floats": (
        ["1.5", "inf", "1e999", "1,5", None],
        pa.string(),
        "float",
        [1.5, INF, INF, None, None],
    ),
    "truth": ([True, False, None], pa.bool_(), "boolean", [True, False, None]),
    "text as truth": (
        ["true", "F", "1", "maybe", None],
        pa.string(),
        "boolean",
        [True, False, True, None, None],
    ),
    "whole numbers as truth": ([0, 1, 2, None], pa.int64(), "boolean", [False, True, True, None]),
    "floats as truth": ([0.0, 1.0, NAN, None], pa.float64(), "boolean", [False, True, None, None]),
    "text": (["é", "", None], pa.large_string(), "text", ["é", "", None]),
    "text views": (["é", "", None], pa.string_view(), "text", ["é", "", None]),
    "categories": (["a", "b", None], pa.dictionary(pa.int8(), pa.string()), "text", ["a", "b", None]),
    "whole numbers as text": ([75001, None], pa.int32(), "text", ["75001", None]),
    "days": ([DAY, None], pa.date32(), "date", [DAY, None]),
    "days in milliseconds": ([DAY, None], pa.date64(), "date", [DAY, None]),
    "seconds as days": ([NOON, None], pa.timestamp("s"), "date", [DAY, None]),
    "nanoseconds as days": ([NOON, None], pa.timestamp("ns"), "date", [DAY, None]),
    "zoned times as days": ([NOON, None], pa.timestamp("us", tz="America/New_York"), "date", [DAY, None]),
    "text as days": (
        ["2020-02-29", "2020-02-29 12:30:00", "2020-02-29T23:00:00Z", "2021-02-29", "infinity", "", None],
        pa.string(),
        "date",
        [DAY, DAY, DAY, None, None, None, None],
    ),
    "nothing but NULL": ([None, None], pa.null(), "integer", [None, None]),
    "nothing but NULL as days": ([None, None], pa.null(), "date", [None, None]),
    "no rows": ([], pa.int64(), "integer", []),
}
UNREAD: dict[str, set[str]] = {
    "duckdb": {"text as whole numbers", "text as floats"},
    "postgres": {"text as whole numbers", "text as floats", "nothing but NULL as days"},
    "datafusion": {
        *("whole decimals of 38 digits", "decimals", "long decimals"),
        *("floats as whole numbers", "text as whole numbers", "text as floats", "text as truth"),
        *("whole numbers as truth", "floats as truth", "text views", "categories"),
        *(
            "days in milliseconds",
            "seconds as days",
            "nanoseconds as days",
            "zoned times as days",
            "text as days",
        ),
    },
}
"""What each engine refuses when it is attached."""
RARE = {pa.float16(), pa.decimal256(60, 2), pa.null(), pa.string_view()}  # not written to Parquet as they are


def same(got, wanted):
    return sorted(map(repr, got)) == sorted(map(repr, wanted))


@pytest.fixture(scope="module", params=["memory", "file"])
def whole(request, make_shared, tmp_path_factory, which):
    """An engine with a table for each case that it takes, all of them attached before the first read."""
    engine, folder, held = make_shared(), tmp_path_factory.mktemp("types"), set()
    for place, (name, (values, native, declared, _)) in enumerate(FITTING.items()):
        in_file = request.param == "file"
        stored = {pa.string_view(): pa.string()}.get(native) if in_file and native in RARE else native
        if stored is None:
            continue
        source = pa.table({"v": pa.array(values, stored)})
        if in_file:
            pq.write_table(source, folder / f"{place}.parquet")
            source = str(folder / f"{place}.parquet")
        kept = stored == native and not (in_file and native == pa.date64())  # Parquet has days alone
        if name in UNREAD[which] and kept:
            with pytest.raises(SourceUnusable):
                engine.attach(f"t{place}", source, {"v": declared})
        else:
            engine.attach(f"t{place}", source, {"v": declared})
            held.add(name)
    return engine, held


@pytest.mark.parametrize("name", FITTING)
def test_a_declared_kind_reads_native_values(whole, rows, name):
    one, held = whole
    if name in held:
        values, *_, wanted = FITTING[name]
        table = f"t{[*FITTING].index(name)}"
        assert same([row[0] for row in rows(one, f"SELECT v FROM {table}")], wanted)
        count = f"SELECT COUNT(*) FROM {table} WHERE v IS NULL OR v IS NOT NULL"
        assert rows(one, count) == [(len(values),)]


UNFITTING = {
    "a list": (pa.array([[1]], pa.list_(pa.int64())), "integer"),
    "a struct": (pa.array([{"a": 1}]), "text"),
    "bytes": (pa.array([b"x"]), "text"),
    "a duration": (pa.array([1], pa.duration("s")), "integer"),
    "a time": (pa.array([1], pa.time64("us")), "date"),
    "floats as text": (pa.array([1.5]), "text"),
    "whole numbers as days": (pa.array([1]), "date"),
    "days as whole numbers": (pa.array([DAY]), "integer"),
    "times as floats": (pa.array([NOON]), "float"),
}


@pytest.mark.parametrize("name", UNFITTING)
def test_a_native_type_that_cannot_serve_is_refused_when_attached(one, tmp_path, name):
    values, kind = UNFITTING[name]
    table = pa.table({"column of it": values})
    with pytest.raises(SourceUnusable, match=f'"column of it".*{kind}') as caught:
        one.attach("t", table, {"column of it": kind})
    assert caught.value.__context__ is None


def test_the_verdict_on_a_column_does_not_depend_on_rows(one):
    for values, kind in UNFITTING.values():
        with pytest.raises(SourceUnusable):
            one.attach("t", pa.table({"v": values.slice(0, 0)}), {"v": kind})


@pytest.mark.parametrize(
    "ids",
    [pa.array([1.5, NAN, NAN]), pa.array([b"a", b"b", b"b"]), pa.array([1, 2, 2], pa.timestamp("us"))],
)
def test_the_unit_keeps_its_type(one, rows, ids):
    table = pa.table({"id": ids, "v": [1, 2, 3]})
    if one.dialect.name == "datafusion" and not pa.types.is_floating(ids.type):
        with pytest.raises(SourceUnusable, match='"id"'):
            one.attach("t", table, {"v": "integer"}, unit="id")
        return
    one.attach("t", table, {"v": "integer"}, unit="id")
    assert sorted(rows(one, 'SELECT COUNT(*) FROM t GROUP BY "sfumato unit"')) == [(1,), (2,)]


def test_a_nested_unit_is_refused(one):
    with pytest.raises(SourceUnusable, match='"id"'):
        one.attach("t", pa.table({"id": [[1], [2]]}), {}, unit="id")


def _written(table, folder):
    pq.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def _written_csv(table, folder):
    pyarrow.csv.write_csv(table, folder / "t.csv")
    return folder / "t.csv"


def _keeps_its_values(one, rows, tmp_path, write):
    ids = pa.array([2**60, 2**60 + 1, 2**60 + 1])
    one.attach("t", write(pa.table({"id": ids, "v": [1, 2, 3]}), tmp_path), {"id": "float"}, unit="id")
    assert rows(one, "SELECT COUNT(DISTINCT id) FROM t") == [(1,)]
    assert sorted(rows(one, f'SELECT COUNT(*) FROM t GROUP BY "{UNIT_COLUMN}"')) == [(1,), (2,)]


@pytest.mark.parametrize("write", [lambda t, _: t, _written], ids=["arrow", "parquet"])
def test_a_unit_that_is_also_declared_keeps_its_own_values(one, rows, tmp_path, write):
    _keeps_its_values(one, rows, tmp_path, write)


@pytest.mark.duckdb
def test_a_unit_of_a_csv_file_that_is_also_declared_keeps_its_own_values(one, rows, tmp_path):
    _keeps_its_values(one, rows, tmp_path, _written_csv)


@pytest.mark.duckdb  # text as whole numbers, names in another case
def test_text_ids_are_told_apart_as_they_are_written(one, rows):
    frame = pd.DataFrame({"ID": pd.Series(["1", "01", "x"], dtype=object)})  # has no type of its own
    one.attach("t", frame, {"ID": "integer"}, unit="id")
    assert sorted(rows(one, "SELECT COUNT(*) FROM t GROUP BY id")) == [(1,), (2,)]
    assert rows(one, f'SELECT COUNT(DISTINCT "{UNIT_COLUMN}"), COUNT("{UNIT_COLUMN}") FROM t') == [(3, 3)]


@pytest.mark.duckdb  # statements that write them without quotes
def test_names_that_differ_in_case_are_two_columns(one, rows):
    one.attach("t", pa.table({"id": [1, 2, 3], "ID": [7, 7, 7]}), {"ID": "integer"}, unit="id")
    assert rows(one, f'SELECT COUNT(DISTINCT id), COUNT(DISTINCT "{UNIT_COLUMN}") FROM t') == [(1, 3)]


def test_the_name_of_the_unit_cannot_be_declared(one, rows):
    table = pa.table({"id": [1, 2], "Sfumato Unit": [5, 5]})
    for unit in ("id", None):
        with pytest.raises(SourceUnusable, match="kept"):
            one.attach("t", table, {"Sfumato Unit": "integer"}, unit=unit)
    one.attach("t", table, {}, unit="id")
    assert sorted(rows(one, f'SELECT "{UNIT_COLUMN}" FROM t')) == [(1,), (2,)]


@pytest.mark.duckdb  # pandas
def test_object_columns_of_pandas(one, rows):
    frame = pd.DataFrame({"whole": [1, None], "days": [DAY, None], "mixed": ["a value", 3]}, dtype=object)
    one.attach("t", frame, {"whole": "integer", "days": "date", "mixed": "text"})
    assert sorted(map(repr, rows(one, "SELECT whole, days, mixed FROM t"))) == sorted(
        map(repr, [(1, DAY, "a value"), (None, None, "3")])
    )
    assert set(one.schema(frame).values()) == {"text"}


def test_frames_without_rows(one, rows):
    frames = [pa.table({"v": pa.nulls(0)})]
    if one.dialect.name == "duckdb":
        frames += [pd.DataFrame({"v": []}), pl.DataFrame({"v": []}, schema={"v": pl.Int8})]
    for frame in frames:
        one.attach("t", frame, {"v": "integer"})
        assert rows(one, "SELECT COUNT(*), SUM(v) FROM t") == [(0, None)]


def test_sums_of_whole_numbers_are_exact(one, rows):
    one.attach("t", pa.table({"v": [2**62] * 100}), {"v": "integer"})
    assert rows(one, f"SELECT {one.dialect.sum.format('v')} FROM t") == [(decimal.Decimal(100 * 2**62),)]
