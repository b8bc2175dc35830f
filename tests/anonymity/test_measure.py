"""How anonymous a table is, against a slow reference that compares every row with every row."""

import contextlib
import datetime
import io
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.anonymity import closeness
from sfumato.anonymity._spread import Spread
from sfumato.anonymity.tables import opened
from sfumato.engines.native import _SHARED
from sfumato.errors import InvalidParameter, SourceUnusable
from slow_anonymity import classes_of, distance, is_recursive, measured

TEXTS = ["", "A", 'quo"te', "it's", "naïve 雪\n", None]
FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), None]
DAYS = [datetime.date(2020, 1, 1), datetime.date(1969, 12, 31), None]
NUMBERS = [0, 1, -1, 2**62, None]
KINDS = [
    (TEXTS, pa.string()),
    (FLOATS, pa.float64()),
    (DAYS, pa.date32()),
    (NUMBERS, pa.int64()),
    ([True, False, None], pa.bool_()),
    ([None], pa.string()),
    (TEXTS, pa.dictionary(pa.int32(), pa.string())),
    (FLOATS, pa.float32()),
    (NUMBERS, pa.dictionary(pa.int8(), pa.int64())),
]
NAMES = ["n", 'q"0', "Città e paese"]


@st.composite
def tables(draw):
    """A table with two or three quasi-identifiers and the sensitive column "v"."""
    size = draw(st.integers(1, 14))
    columns = {}
    for name in [*NAMES[: draw(st.integers(1, 3))], "v"]:
        values, kind = draw(st.sampled_from(KINDS))
        some = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
        columns[name] = pa.array(
            draw(st.lists(st.sampled_from(some), min_size=size, max_size=size)),
            kind.value_type if pa.types.is_dictionary(kind) else kind,
        )
        if pa.types.is_dictionary(kind):
            columns[name] = columns[name].dictionary_encode()
    return pa.table(columns)


def agree(found, table):
    quasi = [name for name in table.column_names if name != "v"]
    truth = measured(table.to_pylist(), quasi, "v")
    assert (found.rows, found.classes, found.k, found.l) == (
        truth.rows,
        truth.classes,
        truth.k,
        truth.l,
    )
    assert found.unique == float(truth.unique)
    assert found.entropy_l == pytest.approx(truth.entropy_l, rel=1e-12)
    assert found.t == pytest.approx(float(truth.t), rel=1e-12, abs=0 if not truth.t else 1e-15)


@given(table=tables())
@settings(max_examples=60)
def test_a_frame_in_memory_agrees_with_the_definitions(table):
    quasi = [name for name in table.column_names if name != "v"]
    agree(sf.anonymity.measure(table, quasi, "v"), table)
    alone = sf.anonymity.measure(table, quasi)
    assert alone.classes == len(classes_of(table.to_pylist(), quasi))
    assert alone.t is alone.l is alone.entropy_l is alone.recursive(2) is None


@given(table=tables())
@settings(max_examples=15)
def test_a_file_agrees_with_the_definitions(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "people.parquet"
    pq.write_table(table, path)
    agree(sf.anonymity.measure(path, [name for name in table.column_names if name != "v"], "v"), table)


@given(table=tables(), c=st.fractions(min_value=Fraction(1, 10), max_value=10, max_denominator=12))
@settings(max_examples=25)
def test_recursive_diversity_agrees_with_its_definition(table, c):
    quasi = [name for name in table.column_names if name != "v"]
    found = sf.anonymity.measure(table, quasi, "v").recursive(c)
    rows = table.to_pylist()
    assert found == 0 or is_recursive(rows, quasi, "v", c, found)
    assert not is_recursive(rows, quasi, "v", c, found + 1)


def test_recursive_diversity_is_strict_and_takes_decimals_as_they_are_written():
    rows = pa.table({"q": ["x"] * 3, "v": ["a", "a", "b"]})
    found = sf.anonymity.measure(rows, "q", "v")
    assert [found.recursive(c) for c in (Fraction(2, 3), 0.7, 2, 2.1, Decimal("2.5"))] == [0, 1, 1, 2, 2]
    assert found.sensitive["v"].ratios == (Fraction(2, 3), Fraction(2))
    more = pa.table({"q": ["x"] * 7 + ["y"] * 6, "v": [*"aaaabbc", *"aabbcc"]})
    assert sf.anonymity.measure(more, "q", "v").sensitive["v"].ratios == (
        Fraction(4, 7),
        Fraction(4, 3),
        Fraction(4),
    )
    for c in (0, -1, float("nan"), float("inf"), "2", True):
        with pytest.raises(InvalidParameter, match="c must be a positive number"):
            found.recursive(c)


def test_the_ordered_distance_is_that_of_the_paper():
    # Li, Li and Venkatasubramanian, ICDE 2007, section 4.3: salaries 3k … 11k; {3k, 4k, 5k} is at 0.375 and
    # {6k, 8k, 11k} at 0.167.
    salaries = [3, 4, 5, 6, 11, 8, 7, 9, 10]
    low = pa.table({"q": [1, 1, 1, 2, 2, 2, 3, 3, 3], "v": salaries})
    assert sf.anonymity.measure(low, "q", "v").t == pytest.approx(0.375)
    rows = [{"v": v} for v in (6, 8, 11, 3, 4, 5, 7, 9, 10)]
    assert distance(rows[:3], rows, "v") == Fraction(1, 6)  # so the reference is the paper's, too


def test_missing_numbers_come_first_and_nan_last():
    for value in (None, float("nan"), -1.0):
        more = pa.table({"q": ["x", *"yyyy"], "v": pa.array([value, 0.0, 1.0, float("nan"), None])})
        truth = measured(more.to_pylist(), ["q"], "v").t
        assert sf.anonymity.measure(more, "q", "v").t == pytest.approx(float(truth))


def test_a_class_like_the_table_is_at_distance_nought_exactly():
    rows = pa.table({"q": [i % 7 for i in range(7 * 9)], "v": [i // 7 for i in range(7 * 9)]})
    assert sf.anonymity.measure(rows, "q", "v").t == 0
    texts = rows.set_column(1, "v", rows.column("v").cast(pa.string()))
    assert sf.anonymity.measure(texts, "q", "v").t == 0


def test_numbers_too_large_for_products_of_whole_numbers():
    few = Spread(*(np.array(each) for each in ([0, 2, 4], [3, 1, 1, 3], [0, 2, 1, 2], [3, 1, 4])), True)
    scale = 2**31
    many = Spread(few.starts, few.counts * scale, few.values, few.totals * scale, ordered=True)
    assert closeness.closeness(many) == pytest.approx(closeness.closeness(few), rel=1e-12)
    assert closeness.equal_distance(many) == pytest.approx(closeness.equal_distance(few), rel=1e-12)


def test_several_sensitive_columns_are_looked_at_one_by_one():
    rows = pa.table({"q": [1, 1, 2, 2], "a": ["x", "y", "x", "y"], "b": ["x", "x", "x", "y"]})
    both = sf.anonymity.measure(rows, ["q"], ["a", "b"])
    assert {name: each.l for name, each in both.sensitive.items()} == {"a": 2, "b": 1}
    assert (both.l, both.t) == (1, both.sensitive["b"].t)
    assert both.entropy_l == 1.0
    assert both.sensitive["a"] == sf.anonymity.measure(rows, "q", "a").sensitive["a"]


SOURCES = ["arrow", "batch", "pandas", "polars", "parquet", "csv", "arrow file", "database", "dataset"]


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_answer(kind, tmp_path):
    rows = pa.table(
        {
            "zip": ["02139", "02139", "2139", None, None, "10001"],
            "age": [30, 30, 30, 41, 41, None],
            "score": [1.5, 2.5, 2.5, 7.0, 7.0, None],
        }
    )
    found = sf.anonymity.measure(_as(kind, rows, tmp_path), ["zip", "age"], "score")
    assert (found.rows, found.classes, found.k, found.l) == (6, 4, 1, 1)
    assert found.unique == 2 / 6
    assert found.sensitive["score"].ordered
    assert found.t == pytest.approx(float(measured(rows.to_pylist(), ["zip", "age"], "score").t))


def _as(kind, rows, folder):
    import duckdb
    import pyarrow.csv
    import pyarrow.dataset

    if kind == "batch":
        return rows.to_batches()[0]
    if kind == "pandas":
        return rows.to_pandas()
    if kind == "polars":
        return pl.from_arrow(rows)
    if kind in ("parquet", "dataset"):
        pq.write_table(rows, folder / "people.parquet")
        return str(folder / "people.parquet") if kind == "parquet" else pyarrow.dataset.dataset(folder)
    if kind == "csv":
        pyarrow.csv.write_csv(rows, folder / "people.csv")
        return folder / "people.csv"
    if kind == "arrow file":
        with pa.OSFile(str(folder / "people.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as out:
            out.write_table(rows)
        return folder / "people.arrow"
    if kind == "database":
        connection = duckdb.connect(str(folder / "people.duckdb"))
        connection.register("source", rows)
        connection.execute("CREATE TABLE people AS SELECT * FROM source")
        connection.close()
        return folder / "people.duckdb"
    return rows


def test_a_database_can_be_written_again_after_it_was_measured(tmp_path):
    import duckdb

    path = _as("database", pa.table({"q": [1, 1]}), tmp_path)
    assert sf.anonymity.measure(path, "q").k == 2
    duckdb.connect(str(path)).execute("INSERT INTO people VALUES (2)").close()
    assert sf.anonymity.measure(path, "q").k == 1


def test_names_of_columns_may_be_anything_and_differ_in_case():
    rows = pa.table({"q0": [1, 1], "V": ["a", "b"], "n": [1, 1], "key": [2, 2], "": [0, 0]})
    found = sf.anonymity.measure(rows, ["Q0", "n", "key"], "v")
    assert (found.quasi, list(found.sensitive)) == (("q0", "n", "key"), ["V"])
    assert (found.k, found.l) == (2, 2)


def test_lists_and_bytes_are_values_too():
    rows = pa.table({"q": [[1, 2], [1, 2], [1], None], "v": [b"\xff", b"\x00", b"a", b"a"]})
    found = sf.anonymity.measure(rows, "q", "v")
    assert (found.classes, found.k, found.l) == (3, 1, 1)


def test_a_dictionary_may_hold_a_value_twice_or_a_missing_one():
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["x", "x", None]))
    found = sf.anonymity.measure(pa.table({"q": twice}), "q")
    assert (found.classes, found.k) == (2, 2)


def test_values_that_a_dictionary_lists_and_no_row_has_do_not_count():
    listed = pa.DictionaryArray.from_arrays(pa.array([1, 3, 1]), pa.array([0, 5, 6, 9, 12]))
    rows = pa.table({"q": ["x", "x", "y"], "v": listed})
    plain = pa.table({"q": ["x", "x", "y"], "v": [5, 9, 5]})
    assert sf.anonymity.measure(rows, "q", "v") == sf.anonymity.measure(plain, "q", "v")
    texts = pd.DataFrame({"q": pd.Categorical(["a", "b", None], categories=["z", "b", "a"])})
    assert sf.anonymity.measure(texts, "q").classes == 3


def test_many_columns_with_many_values_do_not_run_over():
    size = 3000
    rows = pa.table({f"c{i}": [(j * (i + 1)) % size for j in range(size)] for i in range(7)})
    found = sf.anonymity.measure(rows, rows.column_names)
    assert (found.classes, found.k) == (size, 1)
    doubled = pa.concat_tables([rows, rows])
    assert sf.anonymity.measure(doubled, rows.column_names).k == 2


def test_numbers_beyond_32_bits_are_told_apart():
    # With 2048 values a column, (0, 5, 5) and (1024, 5, 5) have numbers that differ by 2**32.
    ends = [0, 1024], [5, 5], [5, 5]
    rows = pa.table({name: [*range(2048), *more] for name, more in zip("abc", ends, strict=True)})
    assert sf.anonymity.measure(rows, ["a", "b", "c"]).classes == 2050


def test_a_missing_text_is_not_an_empty_one(tmp_path):
    rows = pa.table({"q": ["", None, "", None], "v": ["", None, None, ""]})
    pq.write_table(rows, tmp_path / "people.parquet")
    for source in (rows, tmp_path / "people.parquet"):
        found = sf.anonymity.measure(source, "q", "v")
        assert (found.classes, found.k, found.l) == (2, 2, 2)


def test_a_frame_long_enough_for_threads_agrees_with_pandas():
    size = 30_000
    rows = pa.table({"a": [f"x{i % 37}" for i in range(size)], "b": [(i * i) % 41 for i in range(size)]})
    truth = rows.to_pandas().groupby(["a", "b"]).size()
    found = sf.anonymity.measure(rows, ["a", "b"])
    assert (found.k, found.classes) == (truth.min(), len(truth))


def test_class_sizes_hold_no_value_of_the_data():
    rows = pa.table({"q": ["x", "x", "y", None, "z", "z"]})
    assert sf.anonymity.classes(rows, "q").to_pydict() == {
        "size": [1, 2],
        "classes": [2, 2],
        "rows": [2, 4],
    }


def test_what_is_wrong_is_said_in_one_sentence(tmp_path):
    rows = pa.table({"zip": [1, 2], "age": [1, 2]})
    empty = rows.slice(0, 0)
    for wrong, error, text in [
        (
            lambda: sf.anonymity.measure(rows, ["zipp"]),
            InvalidParameter,
            'no column "zipp"; did you mean "zip"',
        ),
        (
            lambda: sf.anonymity.measure(rows, ["town"]),
            InvalidParameter,
            'no column "town"; none of its 2 columns is like it',
        ),
        (lambda: sf.anonymity.measure(rows, ["zip"], "wealth"), InvalidParameter, 'no column "wealth"'),
        (lambda: sf.anonymity.measure(rows, []), InvalidParameter, "at least one column"),
        (lambda: sf.anonymity.measure(rows, ["zip", "zip"]), InvalidParameter, "twice"),
        (lambda: sf.anonymity.measure(rows, ["zip", "ZIP"]), InvalidParameter, "twice"),
        (lambda: sf.anonymity.measure(rows, ["zip"], "Zip"), InvalidParameter, "both quasi and sensitive"),
        (lambda: sf.anonymity.measure(rows, 3), InvalidParameter, "the name of a column"),
        (lambda: sf.anonymity.measure(empty, ["zip"]), InvalidParameter, "no rows"),
        (lambda: sf.anonymity.measure(empty, ["zip"], "age"), InvalidParameter, "no rows"),
        (lambda: sf.anonymity.classes(empty, ["zip"]), InvalidParameter, "no rows"),
        (lambda: sf.anonymity.uniqueness(empty, ["zip"]), InvalidParameter, "no rows"),
        (lambda: sf.anonymity.measure(tmp_path / "no.csv", ["zip"]), SourceUnusable, "does not exist"),
        (lambda: sf.anonymity.measure({"zip": [1]}, ["zip"]), SourceUnusable, "A source is a path"),
    ]:
        with pytest.raises(error, match=text) as caught:
            wrong()
        assert str(caught.value).count("\n") == 0


def test_a_csv_file_with_a_broken_row_is_not_measured_without_it(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("zip,age\n1,2\n1,2\n1,2,3,4\n")
    with pytest.raises(SourceUnusable, match="cannot be read"):
        sf.anonymity.measure(path, ["zip", "age"])


def test_numbers_in_a_csv_file_are_numbers_unless_one_has_a_leading_zero(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("zip,a,b,c,d\n02139,1,1.50,2020-01-01,1e3\n12345,-2,.5,2020-02-30,nan\n,,,,\n")
    with opened(path) as rows:
        assert dict(rows.kinds) == {"zip": "text", "a": "integer", "b": "float", "c": "text", "d": "text"}


def test_nothing_stays_behind():
    rows = pa.table({"q": [1]})
    sf.anonymity.measure(rows, "q")
    with pytest.raises(InvalidParameter), opened(rows, ["no"]):
        pass
    cursor = _SHARED.cursor()
    assert cursor.execute("SELECT * FROM duckdb_views() WHERE NOT internal").fetchall() == []
    assert cursor.execute("SELECT * FROM duckdb_tables()").fetchall() == []


def test_the_guide_prints_what_it_shows():
    guide = (Path(__file__).parents[2] / "docs" / "anonymity.md").read_text()
    (first,) = re.findall(r"^```python\n(import pyarrow.*?)^```", guide, flags=re.S | re.M)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(first, names := {})
        print(sf.anonymity.measure(names["people"], quasi=["zip", "age"], sensitive="score"))
    for block in re.findall(r"^```\n((?:columns|figure) .*?)^```", guide, flags=re.S | re.M):
        assert block in printed.getvalue()


def test_it_reads_well_in_eighty_columns():
    rows = pd.DataFrame({"zip": ["a", "a", "b", "b"], "a very long name of a sensitive column": [1, 2, 3, 4]})
    found = sf.anonymity.measure(
        rows, "zip", "a very long name of a sensitive column", population=rows[["zip"]]
    )
    assert max(map(len, str(found).splitlines())) <= 80
    assert "for the steward's eyes" in str(found)
    assert found.table.column_names == ["what", "column", "value"]
    assert found.table.num_rows == 11
    assert set(found.to_dict()) >= {"k", "l", "t", "delta_presence", "k_map"}


def test_a_missing_number_comes_before_all_others():
    table = pa.table({"q": ["a", "a", "b", "b"], "v": [None, 1, 2, 3]})
    # P − Q of class a is 1/4, 2/4, 1/4, 0 along missing, 1, 2, 3; at the other end it would be 1/6 in all.
    assert sf.anonymity.measure(table, "q", "v").t == pytest.approx(1 / 3)
    assert sf.anonymity.mondrian(table, "q", 2, t="1/3", sensitive="v").classes == 2
