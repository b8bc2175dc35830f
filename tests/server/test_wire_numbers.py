"""Numbers on the wire are those of the answer, however large: their type is decided before payment."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sfumato as sf
from served import house
from sfumato.server.wire.shapes import answer_fields, answer_table
from sfumato.server.wire.types import FLOAT8, INT8

WHOLE = [
    "COUNT(*)",
    "COUNT(*) * 1000",
    "-COUNT(*) + 7",
    "ROUND(COUNT(*) / 2)",
    "COUNT(*) // 3 + COUNT(*) % 3",
    "CAST(COUNT(*) * 1.5 AS INTEGER)",
    "SUM(CAST(amount AS INTEGER)) * 3",
    "FLOOR(AVG(amount))",
    "SUM(COUNT(*)) OVER ()",
    "RANK() OVER (ORDER BY COUNT(*))",
    "COUNT(DISTINCT user_id)",
    "CASE WHEN COUNT(*) > 3 THEN COUNT(*) ELSE 0 END",
]
LARGE = [
    "COUNT(*) * 1000000000000000",
    "COUNT(*) * 1000000000000000 * 1000000000000000",
    "-COUNT(*) * 1000000000000000000",
    "ROUND(EXP(COUNT(*)))",
    "FLOOR(POWER(COUNT(*), 9))",
    "COUNT(*) * COUNT(*) * COUNT(*)",
    "SUM(CAST(amount AS INTEGER)) * SUM(CAST(amount AS INTEGER))",
    "SUM(COUNT(*) * 1000000000) OVER ()",
    "CAST(EXP(AVG(amount)) AS BIGINT)",
]


@pytest.fixture(scope="module")
def place():
    with house(epsilon=1000) as made:
        yield made


def told(place, expression):
    """The type of the column, its values, and those of the answer itself."""
    query = place.session("ada").sql(f"SELECT country, {expression} AS n FROM visits GROUP BY country")
    fields = answer_fields(query, intervals=False)
    release = query.release(epsilon=1)
    shown = answer_table(release, fields, "0.95", intervals=False)
    return fields[1].oid, shown["n"].to_pylist(), release.table["n"].to_pylist()


@pytest.mark.parametrize("expression", WHOLE)
def test_whole_numbers_stay_whole(place, expression):
    kind, shown, answer = told(place, expression)
    assert kind == INT8
    assert shown == answer


@pytest.mark.parametrize("expression", LARGE)
def test_numbers_that_may_be_beyond_a_bigint_are_floats_and_the_same(place, expression):
    kind, shown, answer = told(place, expression)
    assert kind == FLOAT8
    assert shown == pytest.approx(answer, rel=1e-15)


def test_sums_of_large_numbers_are_floats():
    data = pa.table({"u": range(2_000), "x": [2**53] * 2_000})
    unit = sf.PrivacyUnit("u", max_rows=1)
    table = sf.PrivateTable("visits", source=data, unit=unit, schema={"x": sf.Int(0, 2**53)})
    with sf.Session(table, budget=sf.Budget(10)) as session:
        query = session.sql("SELECT SUM(x) AS n FROM visits")
        fields = answer_fields(query, intervals=False)
        shown = answer_table(query.release(epsilon=1), fields, "0.95", intervals=False)["n"][0].as_py()
    assert fields[0].oid == FLOAT8
    assert shown == pytest.approx(2_000 * 2**53, rel=0.05)  # 2^62 is a fourth of it
