"""Ids and pointers compare as the source has them: across files, types, tables and both ends of a pointer."""

from __future__ import annotations

import decimal

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import UNIT_COLUMN, _tables
from sfumato.engines.prepare import prepare
from sfumato.errors import SourceUnusable
from sfumato.testing import exact

pytestmark = pytest.mark.duckdb  # files of several types

BIG = 2**53
A, B = BIG, BIG + 1


def _files(folder, *columns, name="id"):
    for i, column in enumerate(columns):
        pq.write_table(pa.table({name: column, "v": [1] * len(column)}), folder / f"{i}.parquet")
    return str(folder / "*.parquet")


INT, SMALL, FLOAT = pa.array([A, B, 7]), pa.array([7, 8], pa.int32()), pa.array([7.0, None, BIG, 0.5, 8])
MIXED = {
    "floats where one is missing": ((INT, FLOAT), 4),  # 2**53, 2**53 + 1, 7, 8
    "widths": ((INT, SMALL), 4),
    "unsigned": ((INT, pa.array([2**64 - 1, 7], pa.uint64())), 4),
    "short floats": ((INT, pa.array([7, 2**24], pa.float32())), 3),
    "nothing but NULL": ((INT, pa.nulls(2)), 3),
    "whole decimals": ((INT, pa.array([7, 9]).cast(pa.decimal128(19, 0))), 4),
}


@pytest.mark.parametrize("name", MIXED)
def test_whole_numbers_of_several_types_are_one_where_they_are_exact(one, rows, tmp_path, name):
    columns, wanted = MIXED[name]
    for source in (_files(tmp_path, *columns), ds.dataset(str(tmp_path))):
        one.attach("t", source, {"v": "integer"}, unit="id")
        assert rows(one, f'SELECT COUNT(DISTINCT "{UNIT_COLUMN}") FROM t') == [(wanted,)]
        assert rows(one, "SELECT COUNT(*) FROM t") == [(sum(map(len, columns)),)]


APART = {
    "text": pa.array(["7", "07"]),
    "dates": pa.array([1], pa.date32()),
    "decimals": pa.array([1]).cast(pa.decimal128(21, 2)),
    "truth": pa.array([True]),
    "times": pa.array([1], pa.timestamp("us")),
    "long decimals": pa.array([1]).cast(pa.decimal256(76, 0)),
}


@pytest.mark.parametrize("name", APART)
@pytest.mark.parametrize("empty", [False, True])
def test_types_alone_refuse_ids_that_cannot_be_compared(one, tmp_path, name, empty):
    column = APART[name].slice(0, 0) if empty else APART[name]
    with pytest.raises(SourceUnusable, match="write it as one type"):
        one.attach("t", _files(tmp_path, INT, column), {"v": "integer"}, unit="id")


VAGUE = {
    "days in milliseconds": pa.array([0, 1], pa.int64()).view(pa.date64()),
    "long decimals": pa.array([1, 2]).cast(pa.decimal256(76, 0)),
    "durations": pa.array([1, 2], pa.duration("s")),
    "truth in bytes": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 2], pa.int8())),
}


@pytest.mark.parametrize("name", VAGUE)
def test_types_of_arrow_that_would_merge_ids_are_refused(one, name):
    with pytest.raises(SourceUnusable, match="cannot be the ids"):
        one.attach("t", pa.table({"id": VAGUE[name]}), {}, unit="id")


def test_types_of_parquet_that_would_merge_ids_are_refused(one, tmp_path):
    pq.write_table(pa.table({"id": VAGUE["long decimals"]}), tmp_path / "a.parquet")
    times = pa.array([1, 2], pa.timestamp("ns"))
    pq.write_table(pa.table({"id": times}), tmp_path / "b.parquet", use_deprecated_int96_timestamps=True)
    for file in ("a.parquet", "b.parquet"):
        with pytest.raises(SourceUnusable, match="cannot be the ids"):
            one.attach("t", tmp_path / file, {}, unit="id")


def _counts(folder, june):
    folder.mkdir()
    ids = pa.array([unit for unit, _ in june], pa.int64())
    pq.write_table(pa.table({"u": ids, "g": [group for _, group in june]}), folder / "june.parquet")
    may = pa.table({"u": pa.array([5.0, None], pa.float64()), "g": ["a", "a"]})
    pq.write_table(may, folder / "may.parquet")
    table = sf.PrivateTable(
        "t", source=str(folder / "*.parquet"), unit=sf.PrivacyUnit("u"), schema={"g": sf.Enum("a", "b")}
    )
    with sf.Session(table, budget=sf.Budget(1)) as session:
        found = exact(session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g"))
        return found.table["n"].to_pylist(), found.l1["n"]


def test_two_people_of_an_int64_file_stay_two_beside_floats(tmp_path):
    with_a, claimed = _counts(tmp_path / "a", [(A, "a")] * 1000 + [(B, "b")])
    without, _ = _counts(tmp_path / "b", [(B, "b")])
    assert sum(abs(x - y) for x, y in zip(with_a, without, strict=True)) <= claimed


def _shop(people, orders, lines, pointer=sf.Int):
    """Customers, orders and lines over tables or files whose first columns are pointers."""
    return (
        sf.PrivateTable("c", source=people, unit=sf.PrivacyUnit("id"), schema={"id": sf.Int()}),
        sf.PrivateTable(
            "o",
            source=orders,
            unit=sf.PrivacyUnit.via("c", on="id"),
            schema={"ok": pointer(), "id": sf.Int()},
        ),
        sf.PrivateTable(
            "l",
            source=lines,
            unit=sf.PrivacyUnit.via("o", on="ok"),
            schema={"ok": pointer(), "q": sf.Int(0, 9)},
        ),
    )


def _lines(tables):
    with sf.Session(*tables, budget=sf.Budget(1)) as session:
        found = exact(session.sql("SELECT COUNT(*) AS n FROM l"))
        return found.table["n"][0].as_py(), found.l1["n"]


def _written(folder, with_a, count=20):
    """Orders '1', '2', … of as many people, and '01', '02', … of A, to which all lines point."""
    many = range(1, count + 1)
    people = [*many, *([999] if with_a else [])]
    orders = [(str(i), i) for i in many] + ([(f"0{i}", 999) for i in many] if with_a else [])
    lines = [f"0{i}" for i in many] if with_a else []
    folder.mkdir()
    (folder / "c.csv").write_text("id\n" + "".join(f"{each}\n" for each in people))
    (folder / "o.csv").write_text("ok,id\n" + "".join(f"{ok},{who}\n" for ok, who in orders))
    (folder / "l.csv").write_text("ok,q\n" + "".join(f"{ok},1\n" for ok in lines))
    return _shop(*(str(folder / f"{name}.csv") for name in "col"))


def test_pointers_of_text_are_not_cast_before_they_meet(tmp_path):
    (with_a, claimed), (without, _) = (
        _lines(_written(tmp_path / "a", True)),
        _lines(_written(tmp_path / "b", False)),
    )
    assert abs(with_a - without) <= claimed


def _cast_before(columns, name, shown, *, points):
    return "BIGINT" if points else "VARCHAR"


def test_pointers_that_are_cast_are_found_out(tmp_path, monkeypatch):
    """The planted twin: the same measure, with pointers cast to what they are declared to be."""
    monkeypatch.setattr(_tables, "_form", _cast_before)
    (with_a, claimed), (without, _) = (
        _lines(_written(tmp_path / "a", True)),
        _lines(_written(tmp_path / "b", False)),
    )
    assert abs(with_a - without) > claimed


TYPES = {
    **{f"int{n}": pa.array([1, 2, None], getattr(pa, f"int{n}")()) for n in (8, 32, 64)},
    "uint32": pa.array([1, 2, None], pa.uint32()),
    "float64": pa.array([1.0, 2.0, None]),
    "decimal": pa.array([decimal.Decimal(1), decimal.Decimal(2), None], pa.decimal128(18, 0)),
    "text": pa.array(["1", "2", None]),
    "categories": pa.array(["1", "2", None]).dictionary_encode(),
    "uint64": pa.array([1, 2, None], pa.uint64()),
}
WHOLE = {"int8", "int32", "int64", "uint32", "float64", "decimal"}
ENDS = {**dict.fromkeys(WHOLE, "whole"), "text": "text", "categories": "text", "uint64": "wide"}


FEW = [
    ("int32", "float64"),
    ("decimal", "int64"),
    ("text", "categories"),
    ("int64", "text"),
    ("int64", "uint64"),
]


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param(FEW, id="few"),
        pytest.param([(a, b) for a in TYPES for b in TYPES], id="all", marks=pytest.mark.stats),
    ],
)
def test_types_alone_decide_whether_two_ends_of_a_pointer_meet(pairs):
    """Pairs of types (5 in `make test`, then all 81): they meet exactly or are refused, whatever the rows."""
    for here, there in pairs:
        for rows in (3, 0):
            people = pa.table({"id": pa.array([1, 2, 3][:rows])})
            orders = pa.table({"ok": TYPES[there][:rows], "id": pa.array([1, 2, 3][:rows])})
            lines = pa.table({"ok": TYPES[here][:rows], "q": pa.array([1] * rows, pa.int64())})
            tables = _shop(people, orders, lines, sf.Text if "text" in (ENDS[here], ENDS[there]) else sf.Int)
            if ENDS[here] != ENDS[there]:
                with pytest.raises(
                    SourceUnusable, match=r"l\.ok and o\.ok have different types|be read as text"
                ):
                    sf.Session(*tables, budget=sf.Budget(1))
            elif rows:
                assert _lines(tables)[0] == pytest.approx(2, abs=1e-6), f"{here} = {there}"


def test_floats_that_stand_for_two_whole_numbers_point_nowhere():
    people = pa.table({"id": pa.array([1, 2])})
    orders = pa.table({"ok": pa.array([A, B]), "id": pa.array([1, 2])})
    lines = pa.table({"ok": pa.array([float(A), 7.5]), "q": pa.array([1, 1])})
    assert _lines(_shop(people, orders, lines))[0] == 0


def test_a_prepared_table_has_its_pointers_or_is_refused(tmp_path):
    people = pa.table({"who": pa.array([1, 2, 3]), "id": pa.array([1, 2, 3]), "code": [1.0, 1.2, 2.0]})
    table = sf.PrivateTable(
        "c", source=people, unit=sf.PrivacyUnit("who"), schema={"id": sf.Int(), "code": sf.Int()}
    )
    source = str(prepare(table, tmp_path / "c.duckdb").path)
    made = sf.PrivateTable("c", source=source, unit=sf.PrivacyUnit("who"), schema=table.schema)
    for on, column in (("id", pa.array([1, 2])), ("code", pa.array([1.0, 1.2]))):
        lines = sf.PrivateTable(
            "l",
            source=pa.table({on: column, "q": [1, 1]}),
            unit=sf.PrivacyUnit.via("c", on=on),
            schema={on: sf.Int(), "q": sf.Int(0, 9)},
        )
        if on == "code":
            with pytest.raises(SourceUnusable, match="name the source itself"):
                sf.Session(made, lines, budget=sf.Budget(1))
        else:
            with sf.Session(made, lines, budget=sf.Budget(1)) as session:
                found = exact(session.sql("SELECT COUNT(*) AS n FROM l"))
                assert found.table["n"][0].as_py() == pytest.approx(2, abs=1e-6)


def test_ids_of_objects_are_not_compared_with_text():
    pd = pytest.importorskip("pandas")
    one = pd.DataFrame({"u": pd.Series([7, "7", 7.0, None, float("nan"), "a"], dtype=object)})
    other = pa.table({"u": ["7", "a"]})
    unit, schema = sf.PrivacyUnit("u"), {}
    tables = [
        sf.PrivateTable(name, source=source, unit=unit, schema=schema, dataset="d")
        for name, source in (("a", one), ("b", other))
    ]
    with pytest.raises(SourceUnusable, match="different types"):
        sf.Session(*tables, budget=sf.Budget(1))
    with sf.Session(tables[0], budget=sf.Budget(1)) as session:
        found = exact(session.sql("SELECT COUNT(*) AS n FROM a"))
        assert found.table["n"][0].as_py() == pytest.approx(3, abs=1e-6)  # 7 and 7.0, "7", "a"


def test_a_dataset_that_takes_types_from_rows_is_refused(one, tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(SourceUnusable, match="give the paths"):
        one.attach("t", ds.dataset(str(tmp_path / "t.csv"), format="csv"), {"a": "integer"})
