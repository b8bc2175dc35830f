"""Declared types that contradict public metadata are refused before anything is paid."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import SourceUnusable

TEXT = pa.table({"id": ["a", "b"], "v": ["1.5", "high"]})
NUMBERS = pa.table({"id": ["a", "b"], "v": [1.5, 2.5]})
TYPES = {
    "int": sf.Int(0, 9),
    "float": sf.Float(0, 9),
    "enum": sf.Enum(1, 2),
    "text": sf.Text(),
    "date": sf.Date(),
}


def database(rows, folder):
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return str(folder / "t.duckdb::t")


def parquet(rows, folder):
    pq.write_table(rows, folder / "t.parquet")
    return folder / "t.parquet"


def arrow(rows, folder):
    feather.write_feather(rows, folder / "t.arrow", compression="uncompressed")
    return folder / "t.arrow"


def categories(rows, folder):
    place = rows.schema.get_field_index("v")
    return rows.set_column(place, "v", rows["v"].dictionary_encode()) if rows is TEXT else rows


SOURCES = {
    "parquet": parquet,
    "duckdb": database,
    "arrow": arrow,
    "memory": lambda rows, folder: rows,
    "polars": lambda rows, folder: pl.from_arrow(rows),
    "categories": categories,
}


def table(source, kind):
    return sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit("id"), schema={"v": kind})


@pytest.mark.parametrize("form", SOURCES)
def test_text_declared_a_number_is_refused_before_it_is_paid(tmp_path, form):
    ledger = tmp_path / "t.ledger"
    source = SOURCES[form](TEXT, tmp_path)
    for word, kind in TYPES.items():
        if kind.kind in ("integer", "float"):
            with pytest.raises(SourceUnusable, match="the source has it as text; declare it text"):
                sf.Session(table(source, kind), budget=sf.Budget(1), ledger=ledger)
            with pytest.raises(SourceUnusable):
                sf.Session(table(source, kind), budget=sf.Budget(1), ledger=ledger, analyst="ada")
        else:
            assert word in ("text", "date")
            sf.Session(table(source, kind), budget=sf.Budget(1)).close()
    assert not ledger.exists()


@pytest.mark.parametrize("form", SOURCES)
def test_what_fits_and_what_has_no_type_is_taken(tmp_path, form):
    sf.Session(table(SOURCES[form](NUMBERS, tmp_path), sf.Float(0, 9)), budget=sf.Budget(1)).close()


def test_text_without_a_type_of_its_own_may_be_a_number(tmp_path):
    """Fields of CSV files, names of folders and Python's objects: what they are is for `validate` to tell."""
    (tmp_path / "t.csv").write_text("id,v\na,1.5\nb,high\n")
    (tmp_path / "parts/v=7").mkdir(parents=True)
    pq.write_table(TEXT.select(["id"]), tmp_path / "parts/v=7/part.parquet")
    frame = pd.DataFrame({"id": ["a", "b"], "v": pd.Series([1.5, "high"], dtype=object)})
    for source in (tmp_path / "t.csv", tmp_path / "parts", frame):
        sf.Session(table(source, sf.Float(0, 9)), budget=sf.Budget(1)).close()


def test_a_column_that_is_not_there_is_refused_before_it_is_paid(tmp_path):
    ledger = tmp_path / "t.ledger"
    for schema, unit in (({"w": sf.Text()}, "id"), ({"v": sf.Text()}, "owner")):
        missing = sf.PrivateTable("t", source=TEXT, unit=sf.PrivacyUnit(unit), schema=schema)
        with pytest.raises(SourceUnusable, match=r"has no column .*; correct the unit, the schema or"):
            sf.Session(missing, budget=sf.Budget(1), ledger=ledger)
    assert not ledger.exists()
