"""Native type by extreme value by declared kind by source: a value or NULL, and never an error at a read."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
import sqlglot
from tests.support.every_type import duckdb_sources, mixed_sources, object_frames, sources

from sfumato.engines import _arrow, _origins, _parquet, _tables, pointer_column
from sfumato.engines._ids import pointer_type
from sfumato.engines._origins import describe
from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.kinds import cast, kind_of
from sfumato.engines.sources import locate
from sfumato.errors import EngineFailed, SourceUnusable

pytestmark = pytest.mark.duckdb  # its types and their casts

KINDS = ("integer", "float", "boolean", "text", "date", "timestamp", "time")


def _uses(column: str, kind: str) -> list[str]:
    name = column.replace('"', '""')
    used = [f'COUNT(hash("{name}"))', f'COUNT(DISTINCT "{name}")']
    return [*used, f'COUNT(UPPER("{name}"))'] if kind == "text" else used


def _count(
    engine: DuckDB, names: Iterable[tuple[str, str]], condition: str = "TRUE", table: str = "t"
) -> list[int] | None:
    """Counts of what is there in each column; None if the read fails."""
    terms = ["COUNT(*)", *(use for name, kind in names for use in _uses(name, kind))]
    listed = ", ".join(f"{term} AS a{i}" for i, term in enumerate(terms))
    statement = sqlglot.parse_one(f'SELECT {listed} FROM "{table}" WHERE {condition}', dialect="duckdb")
    try:
        return [next(iter(column.to_pylist())) for column in engine.fetch(statement).columns]
    except EngineFailed:
        return None


class Search:
    """Attaches sources and reads every column, as each kind and as ids."""

    def __init__(self) -> None:
        self.read, self.refused, self.found = 0, 0, list[str]()

    def source(self, shown: str, source) -> None:
        """All roles of all columns: each is a table, and all are attached before the first read."""
        with DuckDB(threads=2) as engine:
            connection = engine._connect()
            try:
                natives = _natives(connection, source)
            finally:
                connection.close()
            taken = {}
            for kind in KINDS:
                fits = [name for name, types in natives.items() if all(_fits(each, kind) for each in types)]
                if kind in ("timestamp", "time"):  # whole numbers to DuckDB, and spans to Arrow
                    fits = [name for name in fits if "duration" not in name]
                self.refused += len(natives) - len(fits)
                if fits and self.attach(engine, kind, shown, source, dict.fromkeys(fits, kind)):
                    taken[kind] = fits
            ids = self._attach_ids(engine, shown, source, natives)
            for kind, fits in taken.items():
                self.look(engine, kind, shown, source, dict.fromkeys(fits, kind))
            self.read += len(ids)
            shown_as = [*((pointer_column(name), "id") for name in ids), (UNIT_COLUMN, "id")]
            if ids and _count(engine, shown_as, table="ids") is None:
                self.found.append(f"{shown}: as ids")

    def attach(self, engine: DuckDB, table: str, shown: str, source, columns: dict[str, str]) -> bool:
        """Whether the columns are taken; if not, that is found."""
        try:
            engine.attach(table, source, {"n": "integer", **columns})
        except SourceUnusable as refused:
            self.found.append(f"{shown}: {refused}")
            return False
        return True

    def look(self, engine: DuckDB, table: str, shown: str, source, columns: dict[str, str]) -> None:
        """Read all columns of an attached table; where that fails, each by itself."""
        self.read += len(columns)
        if _count(engine, columns.items(), table=table) is None:
            broken = []
            for name, kind in columns.items():
                engine.attach(table, source, {"n": "integer", **columns})
                if _count(engine, [(name, kind)], table=table) is None:
                    broken.append(f"{shown}: {name} as {kind}")
            self.found += broken or [f"{shown}: all columns as {set(columns.values())}"]

    def _attach_ids(self, engine: DuckDB, shown: str, source, natives: dict[str, set[str]]) -> list[str]:
        """The columns that are taken as pointers, in a table of their own."""
        fits = {name for name, types in natives.items() if pointer_type(types) is not None}
        fits &= {
            name for name, types in natives.items() if any(all(_fits(t, k) for t in types) for k in KINDS)
        }
        kinds = {
            name: next(kind for kind in KINDS if all(_fits(each, kind) for each in natives[name]))
            for name in fits
        }
        while kinds:  # some types of a source are refused though DuckDB's own would do
            try:
                engine.attach("ids", source, {"n": "integer", **kinds}, unit="n", pointers=list(kinds))
                break
            except SourceUnusable as refused:
                named = [name for name in kinds if f'column "{name}"' in str(refused)]
                if not named:
                    self.found.append(f"{shown}: {refused}")
                    return []
                self.refused += 1
                del kinds[named[0]]
        return list(kinds)


def _looked(shown: str, source, columns: dict[str, str]) -> list[str]:
    """What is found in some columns of one source."""
    search = Search()
    with DuckDB(threads=2) as engine:
        if search.attach(engine, "t", shown, source, columns):
            search.look(engine, "t", shown, source, columns)
    return search.found


def _natives(connection, source) -> dict[str, set[str]]:
    """The types of each column, of several files all of them."""
    located = locate(source)
    if getattr(located, "format", None) == "parquet":
        held = [
            _origins.columns_of(connection, part, "") for part in _parquet.parquet_parts(connection, located)
        ]
    elif getattr(located, "pieces", ()):
        held = [describe(connection, each) for each in located.pieces]
    else:
        held = [describe(connection, located)]
    found: dict[str, set[str]] = {}
    for columns in held:
        for column in columns:
            found.setdefault(column.name, set()).add(column.native)
    found.pop("n")
    return found


def _searched(made) -> Search:
    search = Search()
    for shown, source in made:
        search.source(shown, source)
    return search


QUICK = {"table", "parquet", "dataset", "pandas", "duckdb", "parquet by duckdb"}


@pytest.mark.parametrize(
    ("quick", "least"),
    [(True, 700), pytest.param(False, 1000, marks=pytest.mark.stats)],
)
def test_no_value_of_any_type_makes_a_read_fail(tmp_path, quick, least):
    """2,550 columns of 16 kinds of sources, over 700 of 6 kinds in `make test`; 1,636 are refused by type."""
    made = [*sources(tmp_path), *duckdb_sources(tmp_path)]
    search = _searched([each for each in made if (each[0] in QUICK) == quick])
    assert search.found == [], f"{search.read} columns read, {search.refused} refused"
    assert search.read > least


@pytest.mark.parametrize(
    ("few", "least"),
    [(True, 300), pytest.param(False, 3000, marks=pytest.mark.stats)],
)
def test_files_of_two_types_never_make_a_read_fail(tmp_path, few, least):
    """Each pair of types in two files of one source, in both orders: 12 types in `make test`, then all."""
    search = _searched(mixed_sources(tmp_path, few=few))
    assert search.found == [], f"{search.read} columns read, {search.refused} refused"
    assert search.read > least


@pytest.mark.parametrize(
    "firsts",
    [
        ("1",),
        pytest.param(("2020-01-01", True), marks=pytest.mark.stats),
    ],
)
def test_no_cell_of_python_objects_decides_how_another_is_read(firsts):
    """31 odd cells beside ordinary ones in columns of pandas and Polars, as 5 kinds and as ids."""
    searched = 0
    kinds = KINDS if len(firsts) > 1 else ("integer", "date", "timestamp", "time")
    with DuckDB(threads=2) as engine:
        for (shown, frame), kind in itertools.product(object_frames(firsts), kinds):
            names = [name for name in frame.columns if name != "n"]
            read = [*((name, kind) for name in names), *((pointer_column(name), "id") for name in names)]
            found = []
            for part in (frame, frame[:1]):
                engine.attach("t", part, {"n": "integer", **dict.fromkeys(names, kind)}, pointers=names)
                found.append(_count(engine, read, "n = 0"))
            assert found[0] == found[1] is not None, f"{shown} as {kind}"
            searched += 2 * len(names)
    assert searched > 200, f"{searched} columns"


def _fits(native: str, kind: str) -> bool:
    """Whether a column of that type may be declared so: text is no number."""
    is_number = kind in ("integer", "float")
    return cast("x", native, kind) is not None and not (is_number and kind_of(native) == "text")


def _bare(column: str, native: str, kind: str) -> str | None:
    made = cast(column, native, kind)
    return f"TRY_CAST({column} AS BIGINT)" if (native, kind) == ("BIGNUM", "integer") else made


def test_the_search_finds_a_cast_that_raises(tmp_path, monkeypatch):
    monkeypatch.setattr(_tables, "cast", _bare)
    file = dict(duckdb_sources(tmp_path))["duckdb"]
    assert _looked("duckdb", file, {"BIGNUM": "integer", "HUGEINT": "integer"}) == [
        "duckdb: BIGNUM as integer"
    ]


def test_the_search_finds_times_that_are_multiplied(tmp_path, monkeypatch):
    monkeypatch.setattr(_arrow, "is_zoned", lambda native: False)
    _, table = next(sources(tmp_path))
    columns = {"timestamp ms UTC": "date", "timestamp us UTC": "date"}
    assert _looked("table", table, columns) == ["table: timestamp ms UTC as date"]


def test_the_search_finds_files_that_are_cast_to_one_type(tmp_path, monkeypatch):
    monkeypatch.setattr(
        _origins, "parquet_parts", lambda connection, files: [_parquet.parquet_whole(connection, files)]
    )
    import pyarrow as pa
    import pyarrow.parquet as pq

    for i, native in enumerate((pa.timestamp("ns"), pa.timestamp("us"))):
        values = pa.array([0, 253402214400 * 10 ** (6 * i)], pa.int64()).view(native)
        pq.write_table(pa.table({"n": [0, 1], "c": values}), tmp_path / f"{i}.parquet")
    assert _looked("files", str(tmp_path / "*.parquet"), {"c": "date"}) == ["files: c as date"]
