"""Two columns of one public table in GROUP BY: the combinations that its rows have, and no others."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.questions.sensitivity import WEIGHT
from sfumato.testing import exact, seeded

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
    "tag": ["p", "p", "p", "q", "q", "p", "p", "r"],
}
JOIN = "visits JOIN stores ON visits.store = stores.store"


def session(without: int | None = None) -> sf.Session:
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
        schema={"store": sf.Int(0, 20), "plan": sf.Enum("x", "y"), "tag": sf.Text()},
    )
    return sf.Session(visits, public, budget=sf.Budget(10**5, "1e-6"))


def groups(text: str, without: int | None = None) -> dict[tuple, float]:
    with session(without) as asked:
        found = exact(asked.sql(text)).table.to_pylist()
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


def test_levels_have_the_combinations_of_the_table_too():
    found = groups(f"SELECT region, city, COUNT(*) AS n FROM {JOIN} GROUP BY ROLLUP (region, city)")
    fine = {("n", "a"): 2, ("n", "b"): 1, ("s", "c"): 2}
    assert found == fine | {("n", None): 3, ("s", None): 2, (None, None): 5}
    found = groups(f"SELECT city, region, COUNT(*) AS n FROM {JOIN} GROUP BY CUBE (city, region)")
    single = {(city, None): n for (_, city), n in fine.items()} | {(None, "n"): 3, (None, "s"): 2}
    assert found == {(city, region): n for (region, city), n in fine.items()} | single | {(None, None): 5}
    found = groups(f"SELECT region, city, COUNT(*) AS n FROM {JOIN} GROUP BY GROUPING SETS (region, city)")
    assert set(found) == {("n", None), ("s", None), (None, "a"), (None, "b"), (None, "c")}


@pytest.mark.parametrize("grouping", ["ROLLUP (region, city)", "ROLLUP (region, city, tag)"])
def test_rows_of_combinations_that_the_table_did_not_have_count_on_no_level(grouping):
    """As if the public table had changed since its combinations were read."""
    with session() as asked:
        query = asked.sql(f"SELECT region, COUNT(*) AS n FROM {JOIN} GROUP BY {grouping}")
        measured = query.quote(epsilon=1).measured
        assert measured.together == (("a", "n"), ("b", "n"), ("c", "s"))
        for some, count in ((measured.together, 5), (measured.together[1:], 3), (measured.together[:1], 2)):
            found = asked.vault._read(replace(measured, together=some), 0)
            (weights,) = found.columns
            levels = len(measured.levels) if "tag" not in grouping else 1
            assert sum(weights) == levels * count * WEIGHT


def test_levels_of_found_keys_have_the_combinations_of_the_table():
    with session() as asked, seeded("levels"):
        text = f"SELECT region, city, tag, COUNT(*) AS n FROM {JOIN} GROUP BY CUBE (region, city, tag)"
        rows = asked.sql(text).release(epsilon=10**3).table.to_pylist()
    found = {
        (row["region"], row["city"]) for row in rows if row["level"] in ("region, city", "region, city, tag")
    }
    assert found == {("n", "a"), ("n", "b"), ("s", "c")}
    assert [row["n"] for row in rows if row["level"] == "region, city"] == [2, 1, 2]
    assert {row["region"] for row in rows if row["level"] == "region"} == {"n", "s"}
