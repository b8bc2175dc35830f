"""One unit's rows cannot make a join of private rows grow without end."""

from __future__ import annotations

import pyarrow as pa

import sfumato as sf
from sfumato.sql.write.sources import MOST_JOINED, MOST_PARTNERS
from sfumato.testing import exact

PER_UNIT = "SELECT a.u, LEAST(COUNT(*), 10000000) AS n FROM t a JOIN t b ON a.u = b.u GROUP BY a.u"


def pairs(rows: int, chained: str = PER_UNIT) -> float:
    table = pa.table({"u": ["bob"] * rows + ["eve"], "x": [*range(rows), 0]})
    made = sf.PrivateTable("t", source=table, unit=sf.PrivacyUnit("u"), schema={"x": sf.Int(0, 9999)})
    with sf.Session(made, budget=sf.Budget(1)) as session:
        (row,) = exact(session.sql(f"SELECT SUM(n) AS s FROM ({chained}) AS p")).table.to_pylist()
    return float(row["s"])


def test_each_side_of_a_join_has_few_rows_of_a_unit() -> None:
    assert pairs(30) == 30 * 30 + 1
    assert pairs(MOST_JOINED + 500) == MOST_JOINED * MOST_PARTNERS + 1


def test_rows_that_meet_few_others_are_all_joined() -> None:
    keyed = PER_UNIT.replace("a.u = b.u", "a.u = b.u AND a.x = b.x")
    assert pairs(MOST_JOINED, keyed) == MOST_JOINED + 1


def test_a_row_meets_few_others_whichever_way_the_join_is_written() -> None:
    outer = PER_UNIT.replace("JOIN", "LEFT JOIN")
    assert pairs(MOST_PARTNERS + 1, outer) == (MOST_PARTNERS + 1) * MOST_PARTNERS + 1


def test_a_join_of_joins_does_not_grow_as_a_power() -> None:
    chained = (
        "SELECT a.u, LEAST(COUNT(*), 10000000) AS n FROM t a JOIN t b ON a.u = b.u JOIN t c ON a.u = c.u "
        "JOIN t d ON a.u = d.u GROUP BY a.u"
    )
    assert pairs(3, chained) == 3**4 + 1
    assert pairs(200, chained) <= MOST_JOINED * MOST_PARTNERS + 1
