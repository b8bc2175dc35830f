"""The database that answers what clients look up: it holds declarations, and has no way to anything else."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import sfumato as sf
from sfumato.server.wire.catalog import Catalog
from sfumato.server.wire.catalog_functions import NATIVE, PARSED
from sfumato.server.wire.rewriting import Asker, _check_functions, tree_of
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
    _, names = catalog.told("SELECT schema_name, table_name FROM duckdb_tables()")
    held = [catalog.told(f'SELECT * FROM {schema}."{name}"')[1] for schema, name in names]
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
    with pytest.raises(WireError):
        catalog.told(text.format(path=folder / "visits.parquet"))
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
        "SELECT random()",
        "SELECT gen_random_uuid()",
        "SELECT relname FROM pg_class ORDER BY random()",
        "SELECT relname FROM pg_class WHERE soundex(relname) IS NULL",
        "SELECT (SELECT variance(oid) FROM pg_class)",
        "SELECT json_extract_path('{}', 'a')",
    ],
)
def test_no_function_passes_that_is_not_listed(catalog: Catalog, text: str) -> None:
    tree = tree_of(text)
    assert tree is not None
    with pytest.raises(WireError) as refused:
        catalog.ask(tree, ASKER)
    assert refused.value.fields()["C"] == "42883"


def test_no_function_of_the_parser_passes_unless_it_is_listed(catalog: Catalog) -> None:
    known = {kind.sql_name().lower() for kind in exp.ALL_FUNCTIONS} - NATIVE - PARSED
    assert len(known) > 400
    for kind in exp.ALL_FUNCTIONS:
        if kind.sql_name().lower() in known:
            with pytest.raises(WireError):
                _check_functions(kind())


@pytest.mark.parametrize(
    "text", ["now()", "current_timestamp", "localtimestamp", "clock_timestamp()", "current_timestamp(0)"]
)
def test_the_time_is_told(catalog: Catalog, text: str) -> None:
    tree = tree_of(f"SELECT {text}, current_date, now() = current_timestamp, date_trunc('month', {text})")
    assert tree is not None
    fields, ((now, today, same, _),) = catalog.ask(tree, ASKER)
    zoned = not text.startswith("local")
    assert [field.oid for field in fields[:3]] == [1184 if zoned else 1114, 1082, 16]
    assert fields[0].name == text.partition("(")[0]
    assert (now.date(), same, now.tzinfo is not None) == (today, True, zoned)
    moment = now.replace(tzinfo=datetime.UTC)
    assert abs(moment - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(days=1)
