"""Two columns of one public table in GROUP BY: the combinations that its rows have, and no others."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.testing import exact

STORES = {
    "store": [1, 2, 3, 4, 5, 6],
    "region": ["n", "n", "s", "s", None, "w"],
    "city": ["a", "b", "c", "c", "d", None],
    "size": ["big", "small", "small", "small", "big", "big"],
}
VISITS = {
    "user": [0, 1, 2, 3, 4, 5, 6, 7],
    "store": [1, 1, 2, 3, 4, 5, 6, 9],
    "plan": ["x", "y", "x", "y", "x", "y", "x", "y"],
}
JOIN = "visits JOIN stores ON visits.store = stores.store"


def groups(text: str, without: int | None = None) -> dict[tuple, float]:
    public = sf.PublicTable(
        "stores",
        source=pa.table(STORES),
        schema={"store": sf.Int(), "region": sf.Text(), "city": sf.Text(), "size": sf.Text()},
        key="store",
    )
    visits = sf.PrivateTable(
        "visits",
        source=pa.table(VISITS).filter([user != without for user in VISITS["user"]]),
        unit=sf.PrivacyUnit("user"),
        schema={"store": sf.Int(0, 20), "plan": sf.Enum("x", "y")},
    )
    with sf.Session(visits, public, budget=sf.Budget(1)) as session:
        found = exact(session.sql(text)).table.to_pylist()
    return {tuple(value for name, value in row.items() if name != "n"): row["n"] for row in found}


def test_groups_are_those_of_the_table():
    found = groups(f"SELECT region, city, COUNT(*) AS n FROM {JOIN} GROUP BY region, city")
    assert found == {("n", "a"): 2, ("n", "b"): 1, ("s", "c"): 2}


@pytest.mark.parametrize("user", [0, 3, 5])
def test_one_unit_moves_its_own_row(user):
    asked = f"SELECT region, city, COUNT(*) AS n FROM {JOIN} GROUP BY region, city"
    whole, less = groups(asked), groups(asked, without=user)
    assert list(whole) == list(less)
    assert sum(abs(whole[group] - less[group]) for group in whole) <= 1


def test_groups_come_in_the_order_of_their_keys():
    found = groups(f"SELECT city, region, COUNT(*) AS n FROM {JOIN} GROUP BY city, region")
    assert list(found) == [("a", "n"), ("b", "n"), ("c", "s")]


def test_keys_of_other_origin_meet_in_every_combination():
    found = groups(f"SELECT region, plan, city, COUNT(*) AS n FROM {JOIN} GROUP BY region, plan, city")
    assert list(found) == [(r, p, c) for r, p, c in [
        ("n", "x", "a"), ("n", "x", "b"), ("n", "y", "a"), ("n", "y", "b"), ("s", "x", "c"), ("s", "y", "c"),
    ]]  # fmt: skip
    assert sum(found.values()) == 5


def test_a_condition_leaves_fewer():
    found = groups(f"SELECT region, city, COUNT(*) AS n FROM {JOIN} WHERE city <> 'b' GROUP BY region, city")
    assert found == {("n", "a"): 2, ("s", "c"): 2}


@pytest.mark.parametrize(
    "rows",
    [
        "visits LEFT JOIN stores ON visits.store = stores.store",
        "(SELECT user, region, city FROM visits JOIN stores ON visits.store = stores.store) AS s",
        "(SELECT user, region, city FROM visits JOIN stores ON visits.store = stores.store "
        "GROUP BY user, region, city) AS s",
    ],
)
def test_however_the_rows_are_written(rows):
    found = groups(f"SELECT region, city, COUNT(*) AS n FROM {rows} GROUP BY region, city")
    assert found == {("n", "a"): 2, ("n", "b"): 1, ("s", "c"): 2}


def test_two_lookups_in_one_table_are_two_origins():
    found = groups(
        "SELECT a.region AS r, b.city AS c, COUNT(*) AS n FROM visits "
        "JOIN stores AS a ON visits.store = a.store JOIN stores AS b ON visits.store = b.store GROUP BY r, c"
    )
    assert len(found) == 3 * 4


def test_levels_have_every_combination():
    found = groups(f"SELECT region, city, COUNT(*) AS n FROM {JOIN} GROUP BY ROLLUP (region, city)")
    assert len(found) == 3 * 4 + 3 + 1
