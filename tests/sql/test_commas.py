"""Tables between commas are joins, in whatever order they are listed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.relations import rows_of
from sfumato.sql.read import subqueries
from sfumato.sql.read.parse import parse

UNIT = sf.PrivacyUnit("user_id", max_groups=2, max_rows=5)
TABLES = {
    "users": sf.PrivateTable(
        "users", source="u", unit=sf.PrivacyUnit("user_id"), schema={"age": sf.Int(0, 99)}, dataset="d"
    ),
    "visits": sf.PrivateTable(
        "visits", source="v", unit=UNIT, schema={"shop": sf.Int(), "day": sf.Int(1, 7)}, dataset="d"
    ),
    "shops": sf.PublicTable(
        "shops", source="s", key="shop", schema={"shop": sf.Int(), "region": sf.Enum("N", "S"), "z": sf.Int()}
    ),
    "zones": sf.PublicTable("zones", source="z", key="z", schema={"z": sf.Int(), "name": sf.Enum("a", "b")}),
}
JOINED = (
    "SELECT name, COUNT(*) AS n FROM users u JOIN visits v ON u.user_id = v.user_id "
    "JOIN shops s ON v.shop = s.shop JOIN zones ON s.z = zones.z WHERE age > 17 AND day < 6 GROUP BY name"
)


def fingerprint(text: str) -> str:
    report = parse(text, TABLES)
    return measured_of(report, rows_of(report.child.source, TABLES)).fingerprint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name, COUNT(*) AS n FROM users u, visits v, shops s, zones WHERE u.user_id = v.user_id AND "
        "v.shop = s.shop AND s.z = zones.z AND age > 17 AND day < 6 GROUP BY name",
        "SELECT name, COUNT(*) AS n FROM users u, visits v JOIN shops s ON v.shop = s.shop, zones "
        "WHERE zones.z = s.z AND day < 6 AND v.user_id = u.user_id AND age > 17 GROUP BY name",
    ],
)
def test_commas_are_joins(text: str) -> None:
    assert fingerprint(text) == fingerprint(JOINED)


def test_any_order_will_do() -> None:
    first = (
        "SELECT COUNT(*) FROM visits v, zones z, shops s WHERE v.shop = s.shop AND s.z = z.z AND name = 'a'"
    )
    second = (
        "SELECT COUNT(*) FROM visits v, shops s, zones z WHERE v.shop = s.shop AND s.z = z.z AND name = 'a'"
    )
    assert fingerprint(first) == fingerprint(second)


def test_inside_a_subquery() -> None:
    inner = "SELECT day AS d FROM visits, shops WHERE visits.shop = shops.shop AND region = 'N'"
    outer = "SELECT day AS d FROM visits JOIN shops ON visits.shop = shops.shop WHERE region = 'N'"
    assert fingerprint(f"SELECT AVG(d) FROM ({inner}) AS x") == fingerprint(
        f"SELECT AVG(d) FROM ({outer}) AS x"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM users, visits",
        "SELECT COUNT(*) FROM users, visits WHERE age > 17",
        "SELECT COUNT(*) FROM visits, shops WHERE visits.shop > shops.shop",
        "SELECT COUNT(*) FROM users, visits WHERE users.user_id = visits.user_id OR age > 17",
    ],
)
def test_tables_without_a_comparison_are_refused(text: str) -> None:
    with pytest.raises(QueryRefused, match="Write"):
        parse(text, TABLES)


def test_a_join_has_the_largest_limits_of_its_tables() -> None:
    report = parse(JOINED, TABLES)
    unit = rows_of(report.child.source, TABLES).unit
    assert (unit.max_groups, unit.max_rows) == (2, 5)


def nested(depth: int, rng: random.Random, *, commas: bool) -> tuple[str, int]:
    """A query of so many levels, each a join of the one within it, and how many subqueries it has."""
    text, many = "SELECT user_id, shop, day FROM visits WHERE day < 7", 1
    for level in range(depth):
        item, public = (
            f"({text}) AS x",
            ("shops AS s", "(SELECT shop, region FROM shops) AS s")[rng.random() < 0.3],
        )
        many += public.startswith("(")
        items = [item, public] if rng.random() < 0.5 else [public, item]
        on, rest = "x.shop = s.shop", rng.choice(["s.region = 'N'", "x.day > 1", f"x.day <> {level % 7}"])
        joined = f"{', '.join(items)} WHERE {on} AND {rest}"
        if not commas:
            joined = f"{' JOIN '.join(items)} ON {on} WHERE {rest}"
        text, many = f"SELECT x.user_id, x.shop, x.day FROM {joined}", many + 1
    return f"SELECT COUNT(*), AVG(day) FROM ({text}) AS x", many


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every query in FROM that is read from here on."""
    seen: list[object] = []
    real: Callable[..., object] = subqueries.read_query

    def read_query(query: object, names: object) -> object:
        seen.append(query)
        return real(query, names)

    monkeypatch.setattr(subqueries, "read_query", read_query)
    return seen


@pytest.mark.parametrize(("depth", "seed"), [*((depth, depth) for depth in range(1, 7)), (30, 0), (30, 1)])
def test_each_subquery_is_read_once_however_deep(depth: int, seed: int, reads: list[object]) -> None:
    text, many = nested(depth, random.Random(seed), commas=True)
    plan = parse(text, TABLES)
    assert len(reads) == many
    assert plan == parse(nested(depth, random.Random(seed), commas=False)[0], TABLES)
    assert len(reads) == 2 * many


def test_equal_subqueries_in_one_from_stay_two(reads: list[object]) -> None:
    inner = "(SELECT user_id, day FROM visits WHERE day < 6 GROUP BY user_id, day)"
    text = f"SELECT COUNT(*) FROM {inner} AS a, {inner} AS b WHERE a.user_id = b.user_id AND a.day < b.day"
    other = (
        f"SELECT COUNT(*) FROM {inner} AS a JOIN {inner} AS b ON a.user_id = b.user_id WHERE a.day < b.day"
    )
    assert parse(text, TABLES) == parse(other, TABLES)
    assert len(reads) == 4
