"""Tables that are attached before the first read share one instance; the doors are shut before that read."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.engines import DuckDB
from sfumato.errors import SourceUnusable

pytestmark = pytest.mark.duckdb  # its instances and their lock


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every instance that is made from now on."""
    found: list[object] = []
    connect = DuckDB._connect

    def counting(self: DuckDB) -> object:
        found.append(connect(self))
        return found[-1]

    monkeypatch.setattr(DuckDB, "_connect", counting)
    return found


def test_an_engine_that_was_asked_how_to_write_goes_on_with_that_instance(
    made: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DuckDB, "_dialect", None)  # as in a new process
    engine = DuckDB()
    assert engine.dialect is engine.dialect
    engine.attach("t", rows(1, 2), {"a": "integer"})
    assert numbers(engine, "t") == [1, 2]
    assert len(made) == 1
    engine.close()


def rows(*numbers: int) -> pa.Table:
    return pa.table({"a": list(numbers)})


def numbers(engine: DuckDB, name: str) -> list[int]:
    found = engine.values(name, "a", 100)
    assert found is not None
    return found


def test_a_session_of_several_tables_has_one_instance(made, tmp_path):
    people = {"user": [1, 2, 2], "x": [1.0, 2.0, 3.0]}
    pq.write_table(pa.table(people), tmp_path / "p.parquet")
    unit, schema = sf.PrivacyUnit("user", max_groups=2), {"x": sf.Float(0, 4)}
    private = [
        sf.PrivateTable(name, source=source, unit=unit, schema=schema, dataset="d")
        for name, source in (("one", pa.table(people)), ("two", str(tmp_path / "p.parquet")))
    ]
    public = [
        sf.PublicTable(name, source=rows(1, 2), schema={"a": sf.Int()}, key=["a"]) for name in ("k", "l")
    ]
    with sf.Session(public[0], *private, public[1], budget=sf.Budget(10)) as session:
        for name in ("one", "two"):
            session.sql(f"SELECT COUNT(*) AS n FROM {name}").release(epsilon=1)
        assert len(made) == 1


def test_a_table_after_a_read_makes_a_new_instance_with_all(made):
    with DuckDB() as engine:
        engine.attach("t", rows(1), {"a": "integer"})
        engine.attach("s", rows(2), {"a": "integer"})
        assert (numbers(engine, "t"), len(made)) == ([1], 1)
        engine.attach("r", rows(3), {"a": "integer"})
        assert [numbers(engine, name) for name in "tsr"] == [[1], [2], [3]]
        assert len(made) == 2


def test_a_name_that_is_attached_again_is_the_new_table(made):
    with DuckDB() as engine:
        engine.attach("t", rows(1), {"a": "integer"})
        engine.attach("s", rows(2), {"a": "integer"})
        engine.attach("T", rows(3), {"a": "integer"})
        assert [numbers(engine, name) for name in "ts"] == [[3], [2]]
        assert len(made) == 2


def held(connection: object) -> list[tuple[str, ...]]:
    """All that an instance has been given."""
    query = "SELECT database_name FROM duckdb_databases() UNION ALL SELECT view_name FROM duckdb_views()"
    return sorted(connection.execute(f"{query} UNION ALL SELECT table_name FROM duckdb_tables()").fetchall())


def test_a_refused_file_or_frame_leaves_nothing_in_the_instance(made, tmp_path):
    pq.write_table(pa.table({"u": [1.5], "a": ["x"]}), tmp_path / "p.parquet")
    feather.write_feather(pa.table({"u": [[1]]}), str(tmp_path / "f.feather"))
    (tmp_path / "c.csv").write_text("u\n1\n", encoding="utf-8")
    with DuckDB() as engine:
        engine.attach("t", rows(1), {"a": "integer"})
        before = held(made[0])
        for source in (rows(1), *(tmp_path / name for name in ("p.parquet", "f.feather", "c.csv"))):
            for columns, unit in (({"b": "integer"}, None), ({}, "b")):
                with pytest.raises(SourceUnusable):
                    engine.attach("s", source, columns, unit=unit)
        assert held(made[0]) == before
        with pytest.raises(SourceUnusable):
            engine.attach("s", tmp_path / "p.parquet", {"a": "integer"})
        assert held(made[0]) == before
        engine.attach("r", rows(2), {"a": "integer"})
        assert [numbers(engine, name) for name in "tr"] == [[1], [2]]
        assert len(made) == 1


def test_a_refused_database_does_not_stay_attached(made, tmp_path):
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute("CREATE TABLE d AS SELECT 1 AS a")
    with DuckDB() as engine:
        engine.attach("t", rows(1), {"a": "integer"})
        before = held(made[0])
        with pytest.raises(SourceUnusable):
            engine.attach("s", tmp_path / "d.duckdb", {"b": "integer"})
        engine.attach("r", rows(2), {"a": "integer"})
        assert ("d",) not in held(made[-1])
        assert len(held(made[-1])) == len(before) + 1 + 1  # the view and the frame below it


@pytest.mark.parametrize("read_before", [False, True])
def test_a_table_that_fails_leaves_the_others(read_before, tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"no")
    with DuckDB() as engine:
        engine.attach("t", rows(1), {"a": "integer"})
        if read_before:
            numbers(engine, "t")
        for source, columns in (
            (tmp_path / "broken.parquet", {"a": "integer"}),
            (rows(1), {"b": "integer"}),
            (tmp_path / "missing.parquet", {"a": "integer"}),
        ):
            with pytest.raises(SourceUnusable):
                engine.attach("s", source, columns)
        engine.attach("r", rows(2), {"a": "integer"})
        assert [numbers(engine, name) for name in "tr"] == [[1], [2]]


def test_a_table_that_fails_is_not_the_last_word():
    with DuckDB() as engine:
        engine.attach("t", rows(1), {"a": "integer"})
        with pytest.raises(SourceUnusable):
            engine.attach("s", rows(1), {"b": "integer"})
        assert numbers(engine, "t") == [1]


def test_the_first_read_finds_the_doors_shut(tmp_path):
    pq.write_table(rows(7), tmp_path / "other.parquet")
    with DuckDB() as engine:
        engine.attach("t", rows(1), {"a": "integer"})
        numbers(engine, "t")
        with engine._connection.cursor() as cursor, pytest.raises(duckdb.Error):
            cursor.execute(f"SELECT * FROM read_parquet('{tmp_path}/other.parquet')")
