"""Types inside others (dictionaries, runs, extensions) and cells of objects: as ids, pointers and values.

A search over wrappers, inner types and roles. A role is refused by types alone, or else: no value makes a
read fail, and ids and pointers keep apart what the source does, prepared or not.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import parse_one

import sfumato as sf
from sfumato.engines import UNIT_COLUMN, _origins, engine, frames
from sfumato.engines._arrow import scannable
from sfumato.engines._cells import ids_of, texts_of
from sfumato.engines.base import pointer_column
from sfumato.engines.prepare import prepare
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.testing import exact

pytestmark = pytest.mark.duckdb  # its view of Arrow's types


class Tagged(pa.ExtensionType):
    """An extension that nobody knows, over any type."""

    def __init__(self, storage: Any) -> None:
        super().__init__(storage, "test.tagged")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, _: bytes) -> Tagged:
        return cls(storage)


def _runs(column: Any) -> Any:
    """In runs of one and two rows, cut so that the first run is not at the start of the array."""
    ends = pa.array([1, *range(2, len(column) + 2)], pa.int32())
    values = pa.concat_arrays([column[:1], column]) if len(column) else column
    return pa.RunEndEncodedArray.from_arrays(ends, values).slice(1) if len(column) else _no_runs(column)


def _no_runs(column: Any) -> Any:
    return pa.RunEndEncodedArray.from_arrays(pa.array([], pa.int32()), column)


def _keyed(column: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(range(len(column)), pa.int32()), column)


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda column: column,
    "dictionary": _keyed,
    "runs": _runs,
    "runs of a dictionary": lambda column: _runs(_keyed(column)),
    "extension": lambda column: pa.ExtensionArray.from_storage(Tagged(column.type), column),
}


def _viewed(native: Any, *values: Any) -> Any:
    return pa.array(values, pa.int64()).view(native)


def _texts(*values: bytes) -> Any:
    return pa.array(values, pa.binary()).view(pa.string())


TIMES = [(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Paris")]
INNER: dict[str, tuple[Any, sf.Column]] = {
    **{
        f"{unit} {zone}": (_viewed(pa.timestamp(unit, zone), 1, 2, 86_400, 2**62, -(2**62)), sf.Date())
        for unit, zone in TIMES
    },
    "days in milliseconds": (_viewed(pa.date64(), 1, 2, 86_400_000), sf.Date()),
    "truth in bytes": (
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1, 2], pa.int8())),
        sf.Bool(),
    ),
    "long decimals": (
        pa.array([decimal.Decimal(10**30 + i) for i in range(3)], pa.decimal256(50, 0)),
        sf.Float(0, 1),
    ),
    "short floats": (pa.array(np.array([1, 2, 3], np.float16)), sf.Float(0, 1)),
    "whole numbers": (pa.array([2**53, 2**53 + 1, 7]), sf.Int()),
    "text": (pa.array(["a", "A", "a ", ""]), sf.Text()),
    "text that is not UTF-8": (_texts(b"a", b"\xff", b"b"), sf.Text()),
}


NO_RUNS = ("days in milliseconds", "text that is not UTF-8")  # Arrow looks at the values and refuses them


def _sources(folder: Any, wrapper: str, inner: str, rows: int | None) -> Iterator[tuple[str, Any]]:
    """A table and a file of Arrow with the column under "x", with all rows or as many as are said."""
    column = INNER[inner][0][:rows]
    count = len(column)
    table = pa.table({"u": pa.array(range(count), pa.int64()), "x": WRAPPERS[wrapper](column)})
    yield "table", table
    if wrapper != "extension":  # Arrow does not know it when it reads
        path = folder / f"{wrapper} {inner} {rows}.arrow".replace("/", " ")  # zones have it in their names
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        yield "file", str(path)


def _known(inner: str) -> int:
    return 2 if inner == "text that is not UTF-8" else len(INNER[inner][0])


def _attach(one: Any, name: str, source: Any, role: str, schema: dict[str, Any]) -> bool:
    """Whether a source is taken in a role."""
    try:
        if role == "id":
            one.attach(name, source, {}, unit="x")
        else:
            one.attach(name, source, schema, unit="u", pointers=["x"] if role == "pointer" else [])
    except SourceUnusable:
        return False
    return True


COUNTED = {
    "id": f'COUNT(DISTINCT "{UNIT_COLUMN}")',
    "pointer": f'COUNT(DISTINCT "{pointer_column("x")}")',
    "value": "COUNT(DISTINCT CAST(x AS VARCHAR))",
}


def _count(one: Any, name: str, role: str) -> int | str:
    """How many ids, pointers or values there are; or "failed"."""
    statement = parse_one(f'SELECT {COUNTED[role]} AS n FROM "{name}"', dialect="duckdb")
    try:
        return int(one.fetch(statement)["n"][0].as_py())
    except EngineFailed:
        return "failed"


def _read(one: Any, source: Any, role: str, schema: dict[str, Any]) -> int | str:
    """How many ids, pointers or values there are; "refused", or "failed"."""
    return _count(one, "t", role) if _attach(one, "t", source, role, schema) else "refused"


def _search(folder: Any, wrappers: Any = WRAPPERS, inners: Any = INNER) -> tuple[int, list[tuple[Any, ...]]]:
    """How many cases there were, and those in which a role fails, or merges, or rows decide on a refusal."""
    found: list[tuple[Any, ...]] = []
    searched = 0
    for wrapper, inner in itertools.product(wrappers, inners):
        if "runs" in wrapper and inner in NO_RUNS:
            continue
        kinds = {"x": INNER[inner][1].kind}
        full = dict(_sources(folder, wrapper, inner, None))
        bare = dict(_sources(folder, wrapper, inner, 0))
        cases = list(itertools.product(full, COUNTED))
        searched += len(cases)
        with engine("duckdb", threads=1) as one:  # all of them are attached before the first is read
            taken = {
                each: _attach(
                    one, " ".join(each), (full if each[2] == "all" else bare)[each[0]], each[1], kinds
                )
                for each in itertools.product(full, COUNTED, ("all", "none"))
            }
            for name, role in cases:
                got, none = (
                    _count(one, " ".join((name, role, rows)), role) if taken[name, role, rows] else "refused"
                    for rows in ("all", "none")
                )
                merged = role != "value" and got not in ("refused", _known(inner))
                if got == "failed" or merged or (got == "refused") != (none == "refused"):
                    found.append((wrapper, inner, name, role, got, none))
    return searched, found


FEW = ["s UTC", "ms None", "ns UTC", "truth in bytes", "long decimals", "text"]


@pytest.mark.parametrize(
    ("inners", "least"),
    [
        pytest.param(FEW, 140, id="few"),
        pytest.param(INNER, 400, id="all", marks=pytest.mark.stats),
    ],
)
def test_wrapped_types_are_read_or_refused_by_type(tmp_path, inners, least):
    searched, found = _search(tmp_path, inners=inners)
    assert searched > least
    assert found == []


def test_the_search_finds_a_guard_of_the_outer_type_alone(tmp_path, monkeypatch):
    """The planted twins: wrappers are not opened, or not looked into."""
    monkeypatch.setattr(frames, "scannable", lambda column: column)
    monkeypatch.setattr(frames, "is_zoned", lambda native: False)
    monkeypatch.setattr(frames, "exact_as_id", lambda native: not pa.types.is_date64(native))
    _, found = _search(tmp_path, ["dictionary", "runs"], ["ms UTC", "truth in bytes"])
    assert {
        (wrapper, inner) for wrapper, inner, name, role, *_ in found if (name, role) == ("table", "id")
    } == {*itertools.product(["dictionary", "runs"], ["ms UTC", "truth in bytes"])}


def _prepared(folder: Any, wrapper: str, inner: str) -> int | str:
    """How many pointers a file that was prepared twice has; or "refused"."""
    source = dict(_sources(folder, wrapper, inner, None))["table"]
    schema = {"x": INNER[inner][1]}
    with engine("duckdb", threads=1) as one:
        for i in range(2):
            path = folder / f"{i} {wrapper} {inner}.duckdb"
            table = sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit("u"), schema=schema)
            source = str(prepare(table, path, threads=1).path)
        return _read(one, source, "pointer", {"x": schema["x"].kind})


PREPARED = ["ms UTC", "ns None", "days in milliseconds", "truth in bytes", "whole numbers", "text"]


@pytest.mark.parametrize("wrapper", ["plain", "runs"])
def test_prepared_files_keep_apart_what_the_source_does_or_say_so(tmp_path, wrapper):
    inners = [each for each in PREPARED if wrapper == "plain" or each not in NO_RUNS]
    found = {inner: _prepared(tmp_path, wrapper, inner) for inner in inners}
    wanted = {"whole numbers": _known("whole numbers"), "text": _known("text")}
    assert found == {inner: wanted.get(inner, "refused") for inner in inners}


def test_prepared_files_that_go_by_the_types_of_values_are_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(_origins, "_own", lambda native, picked, place: None)
    assert _prepared(tmp_path, "plain", "truth in bytes") == 2  # of three


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_with_and_without_a_zone_are_never_one_id(tmp_path, unit):
    people = {zone: pa.table({"u": _viewed(pa.timestamp(unit, zone), 5)}) for zone in (None, "UTC")}
    tables = [
        sf.PrivateTable(f"t{zone}", source=source, unit=sf.PrivacyUnit("u"), schema={}, dataset="d")
        for zone, source in people.items()
    ]
    with pytest.raises(SourceUnusable, match="different types"):
        sf.Session(*tables, budget=sf.Budget(1))
    for zone, table in people.items():
        pq.write_table(table, tmp_path / f"{zone}.parquet")
    with engine("duckdb", threads=1) as one, pytest.raises(SourceUnusable, match="write it as one type"):
        one.attach("t", str(tmp_path / "*.parquet"), {}, unit="u")


BASE = 1_577_836_800_000_000_000
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
FINEST = {
    "D": 86_400 * 10**18,
    "h": 3_600 * 10**18,
    "m": 60 * 10**18,
    **{unit: 10 ** (18 - 3 * i) for i, unit in enumerate(UNITS[6:])},
}
CELLS: list[Any] = [
    *(np.datetime64(count, unit) for unit in UNITS for count in (0, 5)),
    *(np.datetime64(2**62 + i, unit) for unit in UNITS[3:] for i in (0, 1)),
    *(np.timedelta64(count, unit) for unit in UNITS for count in (0, 5)),
    *(pd.Timestamp(BASE + i, tz=zone) for i in (0, 1, 2, 1000) for zone in (None, "UTC", "Europe/Paris")),
    *(pd.Timestamp(np.datetime64(seconds, "s")) for seconds in (0, 10**11, 10**12, 10**13)),
    *(pd.Timedelta(5), pd.NaT, pd.NA, None, np.datetime64("NaT"), np.timedelta64("NaT", "ns"), float("nan")),
    *(datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1), datetime.date(1970, 1, 6)),
    *(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(5), datetime.time(5)),
    *(0, 5, True, 5.0, "5", b"5", decimal.Decimal(5), np.int8(5), np.float32(0.5), 0.5, BASE, 2**62),
    *(np.bool_(True), np.str_("5"), np.bytes_(b"5"), np.longdouble(5), np.array(5), np.array([5])),
]


def _sort(cell: Any) -> str:
    if isinstance(cell, datetime.date | np.datetime64):
        return "zoned" if getattr(cell, "tzinfo", None) is not None else "time"
    if isinstance(cell, bool | np.bool_):
        return "truth"
    if isinstance(cell, str | bytes):
        return "text" if isinstance(cell, str) else "bytes"
    return "number" if isinstance(cell, int | float | decimal.Decimal | np.number) else type(cell).__name__


def _instant(cell: Any) -> Any:
    """A time as a whole number of the finest unit, which does not overflow; other cells as they are."""
    if isinstance(cell, pd.Timestamp):
        cell = cell.asm8
    elif isinstance(cell, datetime.datetime):
        cell = np.datetime64(cell.replace(tzinfo=None), "us")  # those above are in UTC
    elif isinstance(cell, datetime.date):
        cell = np.datetime64(cell, "D")
    if not isinstance(cell, np.datetime64):
        return cell.item() if isinstance(cell, np.generic) else cell
    unit = np.datetime_data(cell)[0]
    if unit in ("Y", "M", "W"):
        cell, unit = cell.astype("datetime64[D]"), "D"
    return int(cell.astype(np.int64)) * FINEST[unit]


def _merged(ids: list[bytes | None]) -> list[tuple[Any, Any]]:
    """Pairs of cells that are one id though they are not equal, or not of one sort."""
    pairs = itertools.combinations(zip(CELLS, ids, strict=True), 2)
    alike = [(a, b) for (a, left), (b, right) in pairs if left is not None and left == right]
    return [(a, b) for a, b in alike if _sort(a) != _sort(b) or _instant(a) != _instant(b)]


def test_cells_are_one_id_only_if_they_are_equal_and_of_one_sort():
    ids = ids_of(CELLS)
    assert _merged(ids) == []
    spans = [each for each, cell in zip(ids, CELLS, strict=True) if isinstance(cell, np.timedelta64)]
    assert set(spans) == {None}
    assert ids_of([pd.NaT, np.datetime64("NaT"), pd.NA, np.array(5)]) == [None] * 4
    same = [pd.Timestamp(BASE), np.datetime64(BASE, "ns"), datetime.datetime(2020, 1, 1)]
    assert len(set(ids_of(same))) == 1
    assert (
        len({ids_of([make(BASE + 5)])[0] for make in (pd.Timestamp, lambda i: np.datetime64(i, "ns"))}) == 1
    )


def test_cells_that_lose_their_nanoseconds_are_found_out():
    """The planted twin: as Python has them."""

    def plain(cell: Any) -> Any:
        if isinstance(cell, pd.Timestamp) and cell.year < 9999:
            return cell.to_pydatetime(warn=False)
        return cell.item() if isinstance(cell, np.datetime64) else cell

    assert _merged(ids_of(map(plain, CELLS)))


def test_times_in_cells_are_read_with_all_their_digits():
    cells = [pd.Timestamp(BASE + 5), np.datetime64(BASE + 5, "ns"), np.timedelta64(5, "ns")]
    assert texts_of(cells) == ["2020-01-01 00:00:00.000000005"] * 2 + [None]
    frame = pd.DataFrame({"u": [1, 2, 3], "x": pd.Series(cells, dtype=object)})
    schema = {"x": sf.Date("2020-01-01", "2020-12-31")}
    table = sf.PrivateTable("t", source=frame, unit=sf.PrivacyUnit("u"), schema=schema)
    with sf.Session(table, budget=sf.Budget(1)) as session:
        found = exact(session.sql("SELECT COUNT(*) AS n FROM t WHERE x = DATE '2020-01-01'"))
    assert found.table["n"].to_pylist() == [pytest.approx(2)]


def test_runs_are_decoded_wherever_they_are_cut():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 6], pa.int32()), pa.array(["a", None, "b"]))
    for start, length in itertools.product(range(7), range(7)):
        cut = runs.slice(start, length)
        assert scannable(cut).to_pylist() == cut.to_pylist()


def test_a_category_of_times_with_a_zone_is_read(tmp_path):
    times = pd.Series(np.array([1, 2, 2**40], "datetime64[s]")).dt.tz_localize("UTC").astype("category")
    frame = pd.DataFrame({"u": times, "x": times})
    frame.to_feather(tmp_path / "f.feather")
    with engine("duckdb", threads=1) as one:
        for source in (frame, str(tmp_path / "f.feather")):
            assert _read(one, source, "id", {}) == 3
            assert _read(one, source, "value", {"x": "date"}) != "failed"
