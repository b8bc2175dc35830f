"""Choices are made by DuckDB's hash while it is the one on record, and by MD5 otherwise."""

from __future__ import annotations

import dataclasses

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import DuckDB, _known_hash
from sfumato.engines.dialect import DUCKDB, PORTABLE

pytestmark = pytest.mark.duckdb  # its hash


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDB, "_dialect", None)


def test_this_versions_hash_is_the_one_on_record(anew):
    assert DuckDB().dialect is DUCKDB


@pytest.mark.parametrize("arguments", _known_hash.KNOWN)
def test_each_digest_on_record_counts(anew, monkeypatch, arguments):
    other = {**_known_hash.KNOWN, arguments: _known_hash.KNOWN[arguments] ^ 1}
    monkeypatch.setattr(_known_hash, "KNOWN", other)
    assert DuckDB().dialect.digest.name == PORTABLE.name


@pytest.mark.parametrize("arguments", _known_hash.KNOWN)
def test_columns_have_the_digests_of_constants(arguments):
    parts = arguments.split(", ") if "::BIGINT, " in arguments else [arguments]
    columns = ", ".join(f"CASE WHEN i >= 0 THEN {part} END AS c{i}" for i, part in enumerate(parts))
    names = ", ".join(f"c{i}" for i in range(len(parts)))
    text = f"SELECT DISTINCT hash(hash({names})) FROM (SELECT {columns} FROM range(3000) AS r (i))"
    with duckdb.connect() as connection:
        assert connection.sql(text).fetchall() == [(_known_hash.KNOWN[arguments],)]


def test_a_hash_that_is_gone_is_not_the_one_on_record(anew, monkeypatch):
    gone = dataclasses.replace(
        DUCKDB, digest=dataclasses.replace(DUCKDB.digest, sql=lambda _: "no_hash({0})")
    )
    monkeypatch.setattr(_known_hash, "DUCKDB", gone)
    assert DuckDB().dialect.digest.name == PORTABLE.name


def test_a_session_goes_on_with_the_other_digest(anew, monkeypatch, tmp_path):
    monkeypatch.setattr(_known_hash, "KNOWN", {"0::BIGINT": 1})
    rows = pa.table({"u": [i // 4 for i in range(400)], "g": ["abcd"[i % 4] for i in range(400)]})
    unit = sf.PrivacyUnit("u", max_groups=1)
    table = sf.PrivateTable("t", source=rows, unit=unit, schema={"g": sf.Enum(*"abcd")})
    with sf.Session(table, budget=sf.Budget(10**6)) as session:
        asked = session.sql("SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g")
        found = asked.release(epsilon=1000, bounding="choose").table["n"].to_pylist()
        assert "MD5" in session._engine.dialect.digest.sql(2)
    assert sum(found) == 100
    assert all(10 <= each <= 40 for each in found)
