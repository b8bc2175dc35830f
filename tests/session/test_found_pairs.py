"""Groups of two keys, of every pair of kinds that need no list: found, and left out of a second round."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf

KINDS = {
    "integer": (sf.Int(), pa.int64(), [1, -5, 3_000_000_000, None]),
    "text": (sf.Text(), pa.string(), ["p", "q", "é", None]),
}
QUERIES = {
    "one round": "SELECT a, b, COUNT(*) AS n, MEDIAN(x) AS m FROM t GROUP BY a, b",
    "two rounds": "SELECT a, b, SUM(x) AS n FROM t GROUP BY a, b",
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("kinds", list(itertools.combinations_with_replacement(KINDS, 2)), ids=" and ".join)
def test_groups_of_two_keys_are_found(kinds, query):
    """Two in three of all pairs of values, each of which every unit has; one that few have is not found."""
    first, second = (KINDS[kind] for kind in kinds)
    pairs = [pair for at, pair in enumerate(itertools.product(first[2], second[2])) if at % 3 != 1]
    rows = [(unit, *pair, 1.0) for unit in range(60) for pair in pairs[1:]] + [(0, *pairs[0], 1.0)]
    types = (pa.int64(), first[1], second[1], pa.float64())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    table = sf.PrivateTable(
        "t",
        source=pa.table(columns, names=list("uabx")),
        unit=sf.PrivacyUnit("u", max_groups=12, max_rows=12),
        schema={"a": first[0], "b": second[0], "x": sf.Float(0, 2)},
    )
    session = sf.Session(table, budget=sf.Budget(10**6, Fraction(9, 10)))
    release = session.sql(QUERIES[query]).release(epsilon=2000, delta=Fraction(1, 500))
    found = {tuple(row[:2]) for row in zip(*release.table.to_pydict().values(), strict=True)}
    assert found == set(pairs[1:])
    assert all(abs(count - 60) < 5 for count in release.table["n"].to_pylist())
