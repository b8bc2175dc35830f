"""The database that answers what clients look up: it holds declarations, and has no way to anything else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.server.wire.catalog import Catalog
from sfumato.server.wire.rewriting import Asker, tree_of
from sfumato.server.wire.sqlstates import WireError

SECRET, NUMBER = "Zanzibar", 271828
ASKER = Asker({"user": "ada", "current_user": "ada"}, {})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def catalog(folder: Path) -> Iterator[Catalog]:
    rows = pa.table({"person": [NUMBER] * 3, "city": [SECRET] * 3, "cost": [float(NUMBER)] * 3})
    pq.write_table(rows, folder / "visits.parquet")
    table = sf.PrivateTable(
        "visits",
        source=str(folder / "visits.parquet"),
        unit=sf.PrivacyUnit("person", max_rows=1),
        schema={"city": sf.Text(), "cost": sf.Float(0, 100)},
    )
    made = Catalog("demo", [table], {"server_version": "16.0"})
    yield made
    made.close()


def test_it_holds_nothing_of_the_rows_nor_where_they_are(catalog: Catalog, folder: Path) -> None:
    connection = catalog._connection
    names = connection.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
    held = [connection.execute(f'SELECT * FROM {schema}."{name}"').fetchall() for schema, name in names]
    assert len(names) > 200
    text = repr(held)
    assert "visits" in text
    for secret in (SECRET, str(NUMBER), str(folder), "parquet"):
        assert secret not in text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_parquet('{path}')",
        "SELECT * FROM '{path}'",
        "ATTACH '{path}' AS other",
        "COPY (SELECT 1) TO '{path}.csv'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSTALL httpfs",
        "LOAD httpfs",
    ],
)
def test_its_doors_are_shut_for_whatever_text_gets_there(catalog: Catalog, folder: Path, text: str) -> None:
    with pytest.raises(duckdb.Error):
        catalog._connection.execute(text.format(path=folder / "visits.parquet"))
    assert [path.name for path in folder.iterdir()] == ["visits.parquet"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT getenv('HOME')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM pg_class, duckdb_functions()",
        "SELECT pg_read_file('/etc/passwd')",
        "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM x, pg_class",
    ],
)
def test_no_function_passes_that_is_not_listed(catalog: Catalog, text: str) -> None:
    tree = tree_of(text)
    assert tree is not None
    with pytest.raises(WireError):
        catalog.ask(tree, ASKER)
