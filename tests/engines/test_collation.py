"""Ids of a file with a collation of its own: 'A' and 'a' are two people, whatever the file thinks."""

from __future__ import annotations

import duckdb
import pytest

import sfumato as sf
from sfumato.testing import exact

pytestmark = pytest.mark.duckdb  # collations of its files


def test_two_people_stay_two(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as file:
        file.execute("CREATE TABLE t (u VARCHAR COLLATE NOCASE, city VARCHAR COLLATE NOCASE)")
        file.execute("INSERT INTO t VALUES ('A', 'x'), ('a', 'X'), ('a', 'x')")
    table = sf.PrivateTable(
        "t",
        source=f"{path}::t",
        unit=sf.PrivacyUnit("u", max_groups=2),
        schema={"city": sf.Enum("x", "X", nullable=False)},
    )
    with sf.Session(table, budget=sf.Budget(1)) as session:
        found = exact(session.sql("SELECT COUNT(DISTINCT u) AS n, COUNT(*) AS rows FROM t")).table.to_pylist()
        assert found == [{"n": 2, "rows": 3.0}]
        by_city = exact(session.sql("SELECT city, COUNT(*) AS n FROM t GROUP BY city")).table.to_pylist()
        assert {row["city"]: row["n"] for row in by_city} == {"x": 2.0, "X": 1.0}
