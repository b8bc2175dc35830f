"""Tables that are odd: what could be taken for one value, or one column, though it is two."""

import datetime
import gzip
import math
import random
import struct
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.anonymity import Hierarchy, generalize, measure, mondrian, suggest, uniqueness
from sfumato.anonymity.tables import names_of, opened
from sfumato.errors import InvalidParameter, SourceUnusable
from slow_anonymity import distance


def written(folder, text, name="people.csv"):
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_k_is_the_size_of_the_smallest_group_and_not_the_number_of_groups():
    # "k groups" is a common slip: these are three groups, and the table is 2-anonymous.
    found = measure(pa.table({"q": [*"aa", *"bbb", *"cccc"]}), "q")
    assert (found.k, found.classes) == (2, 3)


# ── values


def test_long_numbers_of_a_csv_file_stay_apart(tmp_path):
    ids = ["12345678901234567890", "12345678901234567891"]
    path = written(tmp_path, f"id,v\n{ids[0]},1\n{ids[1]},2\n")
    assert measure(path, "id").k == 1
    assert mondrian(path, "v", 2).table["id"].to_pylist() == ids  # and what is not asked about is not rounded
    assert uniqueness(path, ["id"])["id"].unique == 1
    long = written(tmp_path, f"x\n0.{'1' * 30}\n0.{'1' * 29}2\n", "long.csv")
    assert measure(long, "x").k == 1


def test_numbers_as_floats_are_written_are_numbers(tmp_path):
    path = written(tmp_path, "x,q\n0.30000000000000004,1\n1.7976931348623157e+308,1\n1e-7,1\n-.5,1\n2,1\n")
    assert measure(path, "q", "x").sensitive["x"].ordered


def test_every_nan_is_the_same_value():
    bits = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x7FF8000000000000], dtype=np.uint64)
    table = pa.table({"q": bits.view(np.float64), "v": bits.view(np.float64)})
    found = measure(table, "q", "v")
    assert (found.k, found.classes, found.l) == (3, 1, 1)


def test_decimals_of_many_digits_stay_apart():
    table = pa.table({"q": pa.array([10**40, 10**40 + 1], pa.decimal256(60, 0))})
    assert measure(table, "q").k == 1
    assert uniqueness(table, ["q"])["q"].k == 1
    assert mondrian(table, "q", 1).classes == 2


@pytest.mark.parametrize(
    "column",
    [
        pa.array([10_000_000, 5], pa.int32()).cast(pa.date32()),
        pa.array([2**61, 5], pa.int64()).cast(pa.timestamp("s")),
        pa.array([2**62, 5], pa.int64()).cast(pa.timestamp("us")),
    ],
)
def test_days_that_no_calendar_has_are_counted_and_not_written(column):
    table = pa.table({"q": column})
    assert measure(table, "q").classes == 2
    for make in (lambda: mondrian(table, "q", 1), lambda: generalize(table, ["q"], 1)):
        with pytest.raises(InvalidParameter, match="beyond the years 1 to 9999") as refused:
            make()
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None


def test_numbers_as_far_apart_as_floats_go():
    table = pa.table({"q": [-1.7e308, 1.7e308, 1.0, 2.0]})
    done = mondrian(table, "q", 2)
    assert done.k == 2
    assert 0 < done.ncp < 1
    assert generalize(table, ["q"], 4).table["q"].to_pylist() == ["*"] * 4
    assert generalize(table, {"q": Hierarchy.intervals(1e300)}, 2, suppress=0.5).k == 2
    assert suggest(pa.table({"q": [0.0, 5e-324]}), "q")["q"].levels[0] == "exact"


def test_short_floats_are_told_as_they_are_written():
    table = pa.table({"q": pa.array([0.7, 0.75, 0.1, 0.15], pa.float32())})
    assert mondrian(table, "q", 2).table["q"].to_pylist() == ["[0.7, 0.75]"] * 2 + ["[0.1, 0.15]"] * 2
    tenths = generalize(table, {"q": Hierarchy.intervals("0.1")}, 2)
    assert tenths.table["q"].to_pylist() == ["[0.7, 0.8)"] * 2 + ["[0.1, 0.2)"] * 2


def test_text_that_is_not_utf8_is_not_quoted():
    offsets = struct.pack("<iii", 0, 3, 6)
    bad = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"S\xff\xfeS\xff\xff")]
    )
    assert measure(pa.table({"q": bad}), "q").classes == 2
    with pytest.raises(SourceUnusable, match='column "q" holds text that is not UTF-8'):
        mondrian(pa.table({"q": bad}), "q", 1)


def test_values_without_order_are_counted_and_not_generalised():
    table = pa.table({"span": pa.array([1, 1, 2], pa.duration("s")), "list": [["a, b"], ["a", "b"], ["a"]]})
    assert measure(table, "span").classes == 2
    assert measure(table, "list").classes == 3
    for name in table.column_names:
        with pytest.raises(InvalidParameter, match="have no order"):
            mondrian(table, name, 1)


# ── columns


@pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
def test_names_that_differ_in_case_alone_are_two_columns(kind, tmp_path):
    table = pa.table([[1, 1, 2, 2], [1, 2, 1, 2], [0, 0, 0, 0]], names=["q", "Q", "n"])
    source = table
    if kind == "parquet":
        source = tmp_path / "people.parquet"
        pq.write_table(table, source)
    if kind == "csv":
        source = written(tmp_path, "q,Q,n\n1,1,0\n1,2,0\n2,1,0\n2,2,0\n")
    both = ["q", "Q"]
    assert (measure(source, both).k, measure(source, both, population=source).k_map) == (1, 1)
    assert measure(source, ["q"], ["n"]).k == 2
    assert uniqueness(source, both)["q", "Q"].unique == 1
    done = mondrian(source, both, 2)
    assert done.table.column_names == ["q", "Q", "n"]
    assert measure(done.table, both).k == 2
    assert mondrian(source, "n", 4).table["Q"].to_pylist() == [1, 2, 1, 2]


def test_blanks_around_a_name_need_not_be_typed(tmp_path):
    path = written(tmp_path, "name, zip, age\nA, 1, 2\nB, 1, 2\n")
    assert measure(path, ["zip", "Age"]).quasi == (" zip", " age")
    twice = pa.table([[1], [1]], names=["zip", " zip"])
    assert measure(twice, "zip").quasi == ("zip",)
    with pytest.raises(InvalidParameter, match="several columns"):
        measure(twice, "zip ")


def test_more_columns_than_can_be_told_apart_in_one_statement():
    table = pa.table({f"c{i}": [1, 2] for i in range(64)})
    assert len(uniqueness(table, table.column_names[:63], largest=1).sets) == 63
    with pytest.raises(InvalidParameter, match="at most 63 columns"):
        uniqueness(table, table.column_names, largest=1)
    with pytest.raises(InvalidParameter, match="share must be"):
        uniqueness(table, ["c0"]).telling("half")


# ── files that are not whole


@pytest.mark.parametrize("end", ['"cut off', '"cut\n3,4\n', '5,"said ""no""', '"', '""",2\n'])
def test_a_csv_file_that_ends_inside_quotes_is_not_measured_without_its_end(end, tmp_path):
    text = 'q,v\n1,"two\nlines"\n1,"x"\n' + end
    for name in ("people.csv", "people.csv.gz"):
        path = written(tmp_path, text, name)
        if name.endswith("gz"):
            path.write_bytes(gzip.compress(text.encode()))
        with pytest.raises(SourceUnusable, match="a quote that is not closed where a field ends") as refused:
            measure(path, "q")
        assert "cut" not in str(refused.value).replace("quoted", "")


# ── figures


def test_a_table_at_its_limit_is_within_it():
    # The distance is 3/20, and the float next to it must be that of 0.15.
    draw = random.Random(5)
    for _ in range(60):
        rows = [{"q": draw.randrange(2), "v": draw.randrange(8)} for _ in range(30)] + [
            {"q": 0, "v": 0},
            {"q": 1, "v": 0},
        ]
        truth = max(distance([row for row in rows if row["q"] == each], rows, "v") for each in (0, 1))
        assert measure(pa.Table.from_pylist(rows), "q", "v").t == float(Fraction(truth))


@pytest.mark.parametrize("values", range(1, 40))
def test_equally_frequent_values_have_their_number_as_entropy_l(values):
    table = pa.table({"v": list(range(values)) * 7}).append_column("q", pa.array([0] * 7 * values))
    assert measure(table, "q", "v").entropy_l == values


def test_figures_are_never_shown_better_than_they_are():
    table = pa.table({"q": [0] * 2001, "v": [0] + [1] * 2000})
    alone = pa.table({"q": [*range(1), *([1] * 4000)]})
    assert "<0.1 %" in str(measure(alone, "q"))
    assert "entropy l of v  1.004" in str(measure(table, "q", "v"))
    near = pa.table({"q": [0] * 2000 + [1] * 1000, "v": [*"ab"] * 1000 + ["a"] * 501 + ["b"] * 499})
    found = measure(near, "q", "v")
    assert 0 < found.t < 0.001
    assert "t of v          0.001" in str(found)


# ── hierarchies


@pytest.mark.parametrize(
    "make",
    [
        lambda: Hierarchy.tree(_looped()),
        lambda: Hierarchy.tree({"a": [["x"]]}),
        lambda: Hierarchy.tree({"a": [{"x": ["y"]}]}),
        lambda: Hierarchy.tree(["a"]),
        lambda: Hierarchy.steps({"a": 5}),
        lambda: Hierarchy.steps({"a": [None]}),
        lambda: Hierarchy.steps([("a", ["b"])]),
        lambda: Hierarchy.steps({"a": ["b"], "b": ["a"]}),  # a label that is a value, and another one
        lambda: Hierarchy.tree({"A": ["x"], "B": ["A"]}),
        lambda: generalize(pa.table({"q": [1]}), 5, 1),
    ],
)
def test_hierarchies_that_are_none_are_refused_in_one_sentence(make):
    with pytest.raises(InvalidParameter) as refused:
        make()
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


def _looped():
    branches = {}
    branches["a"] = branches
    return branches


def test_a_label_may_have_the_name_of_a_value_that_it_stands_for():
    region = Hierarchy.steps({"Paris": ["Paris"], "Meaux": ["Paris"], "Lyon": ["Rhône"]})
    assert region.labels(["Paris", "Meaux", "Lyon"], 1) == ["Paris", "Paris", "Rhône"]


def test_lists_of_values_can_be_read():
    for values, labels in [
        (["a, b", "c", "a", "b, c"], ['{"a, b", c}', '{a, "b, c"}']),
        ([" x", "{y", 'z"', '"z"'], ['{" x", "{y"}', '{"""z""", z"}']),
    ]:
        table = pa.table({"n": [0, 0, 1, 1], "q": values})
        assert mondrian(table, ["n", "q"], 2).table["q"].to_pylist()[::2] == labels


# ── what is written


@pytest.mark.parametrize("seed", range(8))
def test_a_written_table_is_as_anonymous_when_it_is_read_again(seed, tmp_path):
    from sfumato.cli.anonymity import _write

    draw = random.Random(seed)
    kinds = [
        (["1", "01", "1.0", "1e0", " 1", "+1", "-0", "0", None, "", "nan"], pa.string()),
        (["*", "{a, b}", "a", "b", "a, b", "[1, 2]", 'quo"te', "two\nlines"], pa.string()),
        ([0.1, 0.30000000000000004, 1e300, -0.0, 0.0, math.nan, math.inf, None], pa.float64()),
        ([datetime.date(2020, 1, 1), datetime.date(1, 1, 1), None], pa.date32()),
        ([2**63 - 1, 2**63 - 2, 10**17, -1, None], pa.int64()),
    ]
    columns = {}
    for name in ("a", "b"):
        values, kind = draw.choice(kinds)
        columns[name] = pa.array([draw.choice(values) for _ in range(24)], kind)
    table = pa.table(columns)
    for done in (mondrian(table, ["a", "b"], 3), generalize(table, ["a", "b"], 3)):
        for suffix in (".csv", ".parquet", ".arrow"):
            path = tmp_path / f"out{suffix}"
            _write(done.table, path, force=True)
            again = measure(path, ["a", "b"])
            assert (again.rows, again.k >= done.k >= 3) == (done.table.num_rows, True)


def test_the_first_row_of_a_file_without_names_stands_in_no_message(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("Ada,02139,4711\nBea,02138,1\n")
    with pytest.raises(InvalidParameter, match='no column "zip"; none of its 3 columns') as found:
        measure(path, ["zip"])
    assert not any(each in str(found.value) for each in ("Ada", "02139", "4711"))
    path.write_text("4711,4711,Ada\n1,2,Bea\n")
    with pytest.raises(InvalidParameter, match="several columns of one name") as found:
        mondrian(path, "Ada", 2)
    assert "4711" not in str(found.value)


def test_each_of_many_columns_has_its_own_type(tmp_path):
    # More than are looked at in one statement, so that none gets the type of another.
    cells = [["7", "1.5", "2020-02-29", "02139"][i % 4] for i in range(37)]
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"v{i}" for i in range(37)) + "\n" + 2 * (",".join(cells) + "\n"))
    with opened(path) as rows:
        kinds = list(rows.kinds.values())
    assert kinds == [["integer", "float", "date", "text"][i % 4] for i in range(37)]
    assert names_of(path) == [f"v{i}" for i in range(37)]
