"""A path is a name: no character in it makes a reader read another file, or a row twice, or fail."""

from __future__ import annotations

import itertools
import os
from collections import Counter

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import UNIT_COLUMN, _origins, _parquet, _paths
from sfumato.errors import SourceUnusable
from sfumato.testing import exact

pytestmark = pytest.mark.duckdb  # globs and folders

ODD = [
    *("Rome", "Oslo", "*", "?", "????", "[OR]*", "**", "[", "]", "[]", "[a", "a]b", "[!a]", "[*]", "[[]"),
    *("{a,b}", "a", "b", "a'b", 'a"b', "ü", "%", "%ff", "%2A", "a\\b", "\\", " x ", "a=b", "\n", "$x", "~"),
    *(".tsv", "NULL", "file_index", "c0"),
]
NUMBERS = {"n": "integer"}


def write_parquet(path, number):
    pq.write_table(pa.table({"n": [number], "file_index": [7]}), path)


def write_csv(path, number):
    with open(path, "w") as file:
        file.write(f"n,m\n{number},7\n")


def write_arrow(path, number):
    feather.write_feather(pa.table({"n": [number]}), path)


WRITERS = {".parquet": write_parquet, ".csv": write_csv, ".arrow": write_arrow}


def value_of(folder):
    return {"%ff": None, "%2A": "*"}.get(folder, folder)


def fill(root, suffix, *, as_folders):
    """A file for each odd name, its number in it, and what its key should be."""
    wanted, paths = [], []
    for i, name in enumerate(ODD):
        folder = root / f"u={name}" if as_folders else root
        folder.mkdir(parents=True, exist_ok=True)
        for j, stem in enumerate(("f", name) if as_folders else (f"f{name}",)):
            path = os.path.join(folder, stem + suffix)
            if os.path.basename(path)[0] in "._":
                continue  # bookkeeping
            WRITERS[suffix](path, 2 * i + j)
            wanted.append((2 * i + j, value_of(name)))
            paths.append(path)
    return wanted, paths


def wrong(one, rows, root, suffix, *, as_folders):
    """How many rows are missing, too many, or have a wrong key, over the ways to name the files."""
    wanted, paths = fill(root, suffix, as_folders=as_folders)
    ways = [root, paths, str(root / "**" / f"*{suffix}"), str(root / ("*/*" if as_folders else "*"))]
    missed = 0
    for way in ways:
        one.attach("t", way, {**NUMBERS, "u": "text"} if as_folders else NUMBERS)
        found = Counter(rows(one, f"SELECT n, {'u' if as_folders else 'NULL'} FROM t"))
        right = Counter(wanted if as_folders else [(number, None) for number, _ in wanted])
        missed += ((found - right) + (right - found)).total()
    return missed


@pytest.mark.parametrize(("suffix", "as_folders"), [*itertools.product(WRITERS, (False, True))])
def test_every_row_is_read_once_whatever_paths_are_called(one, rows, tmp_path, suffix, as_folders):
    assert wrong(one, rows, tmp_path / "t", suffix, as_folders=as_folders) == 0


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_search_finds_paths_that_are_patterns(one, rows, tmp_path, monkeypatch, suffix):
    def raw(paths):
        return f"[{', '.join(map(_paths.literal, paths))}]"

    monkeypatch.setattr(_parquet, "listed", raw)
    monkeypatch.setattr(_origins, "listed", raw)
    assert wrong(one, rows, tmp_path / "t", suffix, as_folders=False) > 0


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_folder_that_no_reader_can_name_is_left_out_with_its_rows_alone(one, rows, tmp_path, suffix):
    for i, name in enumerate((b"u=Rome", b"u=\\*", b"u=[\\]", b"u=\xff")):
        folder = os.path.join(os.fsencode(tmp_path / "t"), name)
        os.makedirs(folder)
        WRITERS[suffix](os.path.join(os.fsdecode(folder), "f" + suffix) if i < 3 else tmp_path / "x", i)
        if i == 3:
            os.rename(tmp_path / "x", os.path.join(folder, b"f" + suffix.encode()))
    one.attach("t", tmp_path / "t", {**NUMBERS, "u": "text"})
    assert rows(one, "SELECT n, u FROM t") == [(0, "Rome")]
    WRITERS[suffix](tmp_path / f"\\*{suffix}", 1)
    with pytest.raises(SourceUnusable, match="backslash"):
        one.attach("t", tmp_path / f"\\*{suffix}", NUMBERS)


def test_one_row_in_a_folder_called_as_a_pattern_moves_a_count_by_one(tmp_path):
    def count(cities):
        root = tmp_path / str(len(cities))
        for city in set(cities):
            (root / f"city={city}").mkdir(parents=True)
            pq.write_table(
                pa.table({"g": ["a"] * cities.count(city)}), root / f"city={city}" / "part-0.parquet"
            )
        schema = {"g": sf.Enum("a", "b"), "city": sf.Text()}
        table = sf.PrivateTable("t", source=root, unit=sf.PrivacyUnit.row(), schema=schema)
        with sf.Session(table, budget=sf.Budget(10)) as session:
            return exact(session.sql("SELECT COUNT(*) AS n FROM t")).table["n"].to_pylist()

    many = ["Rome"] * 5 + ["Oslo"] * 5
    assert [count(many), count([*many, "*"])] == [[10], [11]]


def test_a_file_counts_once_however_many_symbolic_links_lead_to_it(one, rows, tmp_path):
    write_parquet(tmp_path / "b.parquet", 1)
    (tmp_path / "a.parquet").symlink_to(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").symlink_to(tmp_path / "a.parquet")
    one.attach("t", tmp_path, NUMBERS)
    assert rows(one, "SELECT n FROM t") == [(1,)]


def test_files_are_told_apart_by_the_order_and_the_nesting_of_their_fields(one, rows, tmp_path):
    big = 2**53
    whole, broken = pa.struct([("u", pa.int64())]), pa.struct([("u", pa.float64())])
    first = pa.table({"u": [7.0], "s": pa.array([{"u": 1}], whole)})
    second = pa.table({"u": [big, big + 1], "s": pa.array([{"u": 1.0}] * 2, broken)})
    pq.write_table(first, tmp_path / "a.parquet")
    pq.write_table(second, tmp_path / "b.parquet")
    one.attach("t", tmp_path, {"u": "integer"}, unit="u")
    assert rows(one, f'SELECT COUNT(DISTINCT "{UNIT_COLUMN}") FROM t') == [(3,)]


@pytest.mark.parametrize("partitioned", [False, True])
def test_columns_that_differ_in_case_are_found_by_the_order_of_each_file(one, rows, tmp_path, partitioned):
    held = {"a": {"u": [1, 2], "U": [10, 20]}, "b": {"U": [30, 40], "u": [3, 4]}}
    for name, columns in held.items():
        folder = tmp_path / "t" / (f"k={name}" if partitioned else "")
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    one.attach("t", tmp_path / "t", {"u": "integer"})
    assert sorted(rows(one, "SELECT u FROM t")) == [(1,), (2,), (3,), (4,)]
    one.attach("t", tmp_path / "t", {"U": "integer"})
    assert sorted(rows(one, "SELECT U FROM t")) == [(10,), (20,), (30,), (40,)]


def test_a_key_stands_in_place_of_a_column_of_its_name(one, rows, tmp_path):
    for name, kind in (("7", pa.int64()), ("x", pa.string())):
        folder = tmp_path / f"k={name}"
        folder.mkdir()
        pq.write_table(pa.table({"k": pa.array([1]).cast(kind), "n": [2]}), folder / "f.parquet")
    assert set(one.schema(tmp_path)) == {"k", "n"}
    one.attach("t", tmp_path, {**NUMBERS, "k": "text"}, unit="k")
    assert sorted(rows(one, "SELECT n, k FROM t")) == [(2, "7"), (2, "x")]


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        ("s3a://bucket/t.parquet", 'give its path, or read it where it is with engine="spark".'),
        ("s3://bucket/t.parquet", 'with engine="spark" as s3a://….'),
        ("https://example.org/t.parquet", "copy it to this machine and give its path."),
    ],
)
def test_what_is_kept_elsewhere_is_refused_with_the_engine_that_reads_it(source, advice):
    table = sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit.row(), schema={"x": sf.Int(0, 1)})
    with pytest.raises(SourceUnusable) as caught, sf.Session(table, budget=sf.Budget(1)):
        pass
    assert str(caught.value).endswith(advice)
