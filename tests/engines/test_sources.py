"""Every kind of source gives the same table."""

from __future__ import annotations

import csv
import gzip
import os

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from sfumato.engines.base import unread_column
from sfumato.errors import SourceUnusable

KINDS = {"country": "text", "age": "integer", "amount": "float"}
ROWS = [("DE", 30, 1.5, 1), ("FR", 41, None, 1), ("FR", None, -2.25, 2), (None, 7, 0.0, None)]
TABLE = pa.table(
    {
        "country": pa.array([row[0] for row in ROWS], pa.string()),
        "age": pa.array([row[1] for row in ROWS], pa.int32()),
        "amount": pa.array([row[2] for row in ROWS], pa.float64()),
        "user": pa.array([row[3] for row in ROWS], pa.int64()),
    }
)


def write_csv(path, table=TABLE, delimiter=",", opener=open):
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(table.column_names)
        writer.writerows(["" if v is None else v for v in row.values()] for row in table.to_pylist())
    return path


def write_duckdb(path, tables=("visits",)):
    with duckdb.connect(str(path)) as connection:
        connection.register("origin", TABLE)
        for table in tables:
            connection.execute(f'CREATE TABLE "{table}" AS FROM origin')
    return path


def write_hive(folder, write, suffix):
    for country in ("DE", "FR", None):
        part = folder / f"country={country or '__HIVE_DEFAULT_PARTITION__'}"
        part.mkdir(parents=True)
        keep = pa.array([value == country for value in TABLE["country"].to_pylist()])
        write(TABLE.filter(keep).drop_columns(["country"]), part / f"part{suffix}")
    (folder / "_SUCCESS").write_text("")
    return folder


def stream(path):
    with pa.ipc.new_stream(path, TABLE.schema) as sink:
        sink.write_table(TABLE)
    return path


def halves(folder):
    for i in range(2):
        pq.write_table(TABLE.slice(2 * i, 2), folder / f"half-{i}.parquet")
    return folder


SOURCES = {
    "parquet": lambda d: (pq.write_table(TABLE, d / "a.parquet"), d / "a.parquet")[1],
    "parquet with wild characters": lambda d: (
        pq.write_table(TABLE, d / "a[1]*'.parquet"),
        d / "a[1]*'.parquet",
    )[1],
    "parquet glob": lambda d: str(halves(d) / "half-*.parquet"),
    "parquet folder": halves,
    "parquet list": lambda d: [halves(d) / "half-0.parquet", str(d / "half-1.parquet")],
    "parquet hive": lambda d: write_hive(d / "hive", pq.write_table, ".parquet"),
    "parquet hive glob": lambda d: str(
        write_hive(d / "hive", pq.write_table, ".parquet") / "*" / "*.parquet"
    ),
    "csv": lambda d: write_csv(d / "a.csv"),
    "csv with semicolons": lambda d: write_csv(d / "a.csv", delimiter=";"),
    "csv.gz": lambda d: write_csv(d / "a.csv.gz", opener=gzip.open),
    "tsv": lambda d: write_csv(d / "a.tsv", delimiter="\t"),
    "csv hive": lambda d: write_hive(d / "hive", lambda t, p: write_csv(p, t), ".csv"),
    "feather": lambda d: (feather.write_feather(TABLE, d / "a.feather"), d / "a.feather")[1],
    "arrow stream": lambda d: stream(d / "a.arrow"),
    "arrow hive": lambda d: write_hive(d / "hive", lambda t, p: feather.write_feather(t, str(p)), ".arrow"),
    "duckdb with one table": lambda d: write_duckdb(d / "a.duckdb"),
    "duckdb table": lambda d: f"{write_duckdb(d / 'a.duckdb', ('visits', 'Other one'))}::Other one",
    "duckdb schema.table": lambda d: f"{write_duckdb(d / 'a.duckdb', ('visits', 'b'))}::main.b",
    "pyarrow table": lambda d: TABLE,
    "pyarrow batch": lambda d: TABLE.combine_chunks().to_batches()[0],
    "pyarrow dataset": lambda d: ds.dataset(halves(d), format="parquet"),
    "pandas": lambda d: TABLE.to_pandas(),
    "pandas with objects": lambda d: TABLE.to_pandas().astype({"country": object}),
    "pandas with categories": lambda d: TABLE.to_pandas().astype({"country": "category"}),
    "polars": lambda d: pl.from_arrow(TABLE),
    "polars with categories": lambda d: pl.from_arrow(TABLE).with_columns(
        pl.col("country").cast(pl.Categorical)
    ),
}


_FEW = {"parquet", "parquet with wild characters", "pyarrow table"}
TAKEN = {"duckdb": set(SOURCES), "datafusion": _FEW, "postgres": _FEW}
"""What each engine takes as a source; all others are refused when they are attached."""


def taken(one, name):
    return name in TAKEN[one.dialect.name]


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_table(one, rows, tmp_path, name):
    source = SOURCES[name](tmp_path)
    if not taken(one, name):
        with pytest.raises(SourceUnusable):
            one.attach("visits", source, KINDS, unit="user")
        return
    one.attach("visits", source, KINDS, unit="user")
    text = 'SELECT country, age, amount, TRY_CAST("sfumato unit" AS BIGINT) FROM visits'
    assert one.fetch(_select(text)).schema.types == [pa.string(), pa.int64(), pa.float64(), pa.int64()]
    assert sorted(map(repr, rows(one, text))) == sorted(map(repr, ROWS))


@pytest.mark.parametrize("name", SOURCES)
def test_schema_lists_the_columns_without_attaching(one, tmp_path, name):
    source = SOURCES[name](tmp_path)
    if not taken(one, name):
        with pytest.raises(SourceUnusable):
            one.schema(source)
        return
    found = one.schema(source)
    assert set(found) == set(TABLE.column_names)
    assert found["country"] == "text"
    assert found["amount"] == ("text" if name.startswith(("csv", "tsv")) else "float")


def _select(text):
    from sqlglot import parse_one

    return parse_one(text, dialect="duckdb")


@pytest.mark.duckdb
def test_several_tables_join_and_a_late_one_keeps_the_earlier(one, rows, tmp_path):
    one.attach("a", SOURCES["parquet"](tmp_path), KINDS)
    assert rows(one, "SELECT COUNT(*) FROM a") == [(4,)]
    one.attach("b", TABLE, {"country": "text"})
    one.attach("c", SOURCES["duckdb table"](tmp_path), {"age": "integer"}, unit="user")
    one.attach("d", f"{tmp_path / 'a.duckdb'}::visits", {"age": "integer"}, unit="user")
    assert rows(one, "SELECT COUNT(*) FROM a JOIN b USING (country)") == [(5,)]
    assert rows(one, "SELECT SUM(c.age + d.age) FROM c JOIN d USING (age)") == [(156,)]


def test_attaching_a_name_again_replaces_it_and_a_failure_leaves_it(one, rows):
    one.attach("a", TABLE, KINDS)
    one.attach("A", TABLE.slice(1), KINDS)
    assert rows(one, "SELECT COUNT(*) FROM a") == [(3,)]
    with pytest.raises(SourceUnusable):
        one.attach("a", TABLE, {"absent": "text"})
    assert rows(one, "SELECT COUNT(*) FROM a") == [(3,)]


@pytest.mark.parametrize(
    "name", ["parquet", "csv", "pyarrow table", "duckdb with one table", "pandas", "feather"]
)
def test_a_missing_column_is_named(one, tmp_path, name):
    source = SOURCES[name](tmp_path)
    if not taken(one, name):
        return
    for columns, unit in (({"weight": "float"}, None), ({}, "weight")):
        with pytest.raises(SourceUnusable, match='"weight"'):
            one.attach("visits", source, columns, unit=unit)


STRANGE = {
    "nothing there": "absent.parquet",
    "a glob without files": "*.nothing",
    "an unknown format": "a.xlsx",
    "remote": "s3://bucket/a.parquet",
    "a number": 3,
    "nothing": None,
    "an empty list": [],
    "a database that is none": "not.duckdb",
    "a Parquet file that is none": "not.parquet",
    "an Arrow file that is none": "not.arrow",
    "an empty CSV file": "empty.csv",
    "a gzip file that is none": "not.csv.gz",
    "mixed formats": "mixed",
    "an empty folder": "none",
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_cannot_be_read_is_refused_when_attached(one, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.xlsx").write_text("x")
    for each in ("not.duckdb", "not.parquet", "not.arrow", "not.csv.gz"):
        (tmp_path / each).write_text("canary-value, and nothing of the kind")
    (tmp_path / "empty.csv").write_text("")
    for folder in ("mixed", "none"):
        (tmp_path / folder).mkdir()
    for each in ("a.csv", "b.parquet"):
        (tmp_path / "mixed" / each).write_text("a\n1\n")
    with pytest.raises(SourceUnusable) as caught:
        one.attach("visits", STRANGE[name], {"a": "integer"})
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    with pytest.raises(SourceUnusable):
        one.schema(STRANGE[name])


def test_a_reader_that_can_be_read_once_is_refused(one):
    for source in (TABLE.to_reader(), pl.from_arrow(TABLE).lazy()):
        name = type(source).__name__ if one.dialect.name == "duckdb" else "cannot be opened"
        with pytest.raises(SourceUnusable, match=name):
            one.attach("visits", source, KINDS)


@pytest.mark.duckdb
def test_files_that_differ_in_their_columns(one, rows, tmp_path):
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", "y"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["z"], "a": ["not a number"], "c": [1.5]}), tmp_path / "2.parquet")
    one.attach("t", tmp_path, {"a": "integer", "b": "text", "c": "float"})
    got = sorted(rows(one, "SELECT b, a, c FROM t"))
    assert got == [("x", 1, None), ("y", 2, None), ("z", None, 1.5)]
    feather.write_feather(pa.table({"a": [1]}), str(tmp_path / "1.arrow"))
    feather.write_feather(pa.table({"a": ["x"]}), str(tmp_path / "2.arrow"))
    with pytest.raises(SourceUnusable, match="same columns"):
        one.attach("u", str(tmp_path / "*.arrow"), {"a": "integer"})
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b,a\n1,2\n")
    with pytest.raises(SourceUnusable, match="different headers"):
        one.attach("u", str(tmp_path / "*.csv"), {"a": "integer"})


NAMES = ['with "quotes"', "with space", "Größe", "select", "a.b", "x'y", "日本", "semi;colon", "c0"]


@pytest.mark.parametrize("kind", ["parquet", "csv", "pyarrow", "pandas", "polars", "duckdb", "feather"])
def test_names_that_need_quoting(one, tmp_path, kind):
    if one.dialect.name != "duckdb" and kind not in ("parquet", "pyarrow"):
        return
    table = pa.table({name: [i, i + 1] for i, name in enumerate(NAMES)})
    source = {
        "parquet": lambda: (pq.write_table(table, tmp_path / "n.parquet"), tmp_path / "n.parquet")[1],
        "csv": lambda: write_csv(tmp_path / "n.csv", table),
        "pyarrow": lambda: table,
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "feather": lambda: (feather.write_feather(table, str(tmp_path / "n.arrow")), tmp_path / "n.arrow")[1],
        "duckdb": lambda: _database_of(table, tmp_path / "n.duckdb"),
    }[kind]()
    one.attach("odd names", source, dict.fromkeys(reversed(NAMES), "integer"))
    got = one.fetch(_select('SELECT * FROM "odd names"')).to_pydict()
    assert {name: min(got[name]) for name in NAMES} == {name: i for i, name in enumerate(NAMES)}
    assert {*got} - {*NAMES} == {*map(unread_column, one.unread("odd names"))}


def _database_of(table, path):
    with duckdb.connect(str(path)) as connection:
        connection.register("origin", table)
        connection.execute("CREATE TABLE t AS FROM origin")
    return path


@pytest.mark.duckdb
@pytest.mark.parametrize("kind", ["parquet", "csv", "pyarrow", "pandas", "polars", "feather"])
def test_names_that_differ_in_case(one, rows, tmp_path, kind):
    table = pa.table({"a": [1], "A": [2], "a_1": [3], "B": [4]})
    source = {
        "parquet": lambda: (pq.write_table(table, tmp_path / "n.parquet"), tmp_path / "n.parquet")[1],
        "csv": lambda: write_csv(tmp_path / "n.csv", table),
        "pyarrow": lambda: table,
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "feather": lambda: (feather.write_feather(table, str(tmp_path / "n.arrow")), tmp_path / "n.arrow")[1],
    }[kind]()
    one.attach("t", source, {"A": "integer", "a_1": "integer", "b": "integer"})
    assert rows(one, 'SELECT "A", a_1, b FROM t') == [(2, 3, 4)]
    one.attach("t", source, {"a": "integer"})
    assert rows(one, "SELECT a FROM t") == [(1,)]


@pytest.mark.duckdb
def test_two_columns_of_one_name_are_refused(one):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SourceUnusable, match='several columns "a"'):
        one.attach("t", table, {"a": "integer"})
    with pytest.raises(SourceUnusable, match="several columns"):
        one.attach("t", pd.DataFrame({"Ab": [1], "aB": [2]}), {"AB": "integer"})


@pytest.mark.duckdb
def test_frames_are_not_copied(one):
    pa.default_memory_pool().release_unused()
    table = pa.table(
        {"a": pa.array(range(1_000_000), pa.int64()), "b": pa.array(range(1_000_000), pa.int64())}
    )
    frames = [table, table.to_pandas(), pl.from_arrow(table)]
    for frame in frames:
        before = pa.total_allocated_bytes()
        one.attach("t", frame, {"a": "integer"})
        assert pa.total_allocated_bytes() - before < 1_000_000


def test_a_relative_path_survives_a_change_of_folder(one, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SOURCES["parquet"](tmp_path)
    one.attach("t", "a.parquet", KINDS)
    monkeypatch.chdir(os.path.sep)
    assert rows(one, "SELECT COUNT(*) FROM t") == [(4,)]


@pytest.mark.duckdb
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_keys_above_the_source_are_no_columns(one, rows, tmp_path, suffix):
    write = {
        ".parquet": pq.write_table,
        ".csv": lambda t, p: write_csv(p, t),
        ".arrow": lambda t, p: feather.write_feather(t, str(p)),
    }[suffix]
    folder = write_hive(tmp_path / "run=7" / "hive", write, suffix)
    assert set(one.schema(folder)) == set(TABLE.column_names)
    one.attach("visits", folder, KINDS)
    assert sorted(map(repr, rows(one, "SELECT country, age, amount FROM visits"))) == sorted(
        repr(row[:3]) for row in ROWS
    )
    with pytest.raises(SourceUnusable, match='"run"'):
        one.attach("other", folder, {"run": "text"})


@pytest.mark.duckdb
def test_a_key_above_the_source_cannot_stand_for_a_column(one, rows, tmp_path):
    for key in ("age", "AGE", "country"):
        folder = write_hive(tmp_path / f"{key}=7" / "hive", pq.write_table, ".parquet")
        with pytest.raises(SourceUnusable, match="above"):
            one.attach("visits", folder, KINDS)
    alone = tmp_path / "age=7" / "alone.parquet"
    pq.write_table(TABLE, alone)
    one.attach("visits", alone, KINDS)
    assert rows(one, "SELECT SUM(age) FROM visits") == [(78,)]


@pytest.mark.duckdb
def test_a_key_cannot_stand_for_a_field_of_a_csv_file(one, tmp_path):
    part = tmp_path / "hive" / "c0=9"
    part.mkdir(parents=True)
    write_csv(part / "a.csv")
    with pytest.raises(SourceUnusable, match="c0"):
        one.attach("visits", tmp_path / "hive", KINDS)


@pytest.mark.duckdb
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_text_in_memory_that_is_not_utf_8_is_null(one, rows, kind):
    def table(last):
        held = pa.array([b"ok", b"fine", last], pa.binary())
        text = pa.Array.from_buffers(pa.string(), 3, held.buffers())
        if pa.types.is_dictionary(kind):
            codes = pa.array([0, 1, 2], pa.int8())
            return pa.table({"s": pa.DictionaryArray.from_arrays(codes, text), "n": [1, 2, 3]})
        large = pa.types.is_large_string(kind)
        return pa.table({"s": text.cast(kind) if large else text, "n": [1, 2, 3]})

    one.attach("t", table(b"\xc3\xa9"), {"s": "text"})
    assert rows(one, "SELECT COUNT(*) FROM t WHERE LOWER(s) = 'ok'") == [(1,)]
    one.attach("t", table(b"\xff\xfe\xc3"), {"s": "text", "n": "integer"})
    assert rows(one, "SELECT COUNT(UPPER(s)), SUM(n) FROM t") == [(2, 6)]


@pytest.mark.duckdb
@pytest.mark.parametrize("expression", ["1 / amount", "random()", "amount + 1"])
def test_a_generated_column_is_refused_when_it_is_used(one, tmp_path, expression):
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as file:
        file.execute(f"CREATE TABLE t (id INTEGER, amount INTEGER, name TEXT, Made AS ({expression}))")
        file.execute("INSERT INTO t (id, amount, name) VALUES (1, 0, 'x')")
    for columns, unit in (({"made": "float"}, "id"), ({"amount": "integer"}, "Made")):
        with pytest.raises(SourceUnusable, match="is generated"):
            one.attach("t", str(path), columns, unit=unit)
    one.attach("t", str(path), {"amount": "integer"}, unit="id")
