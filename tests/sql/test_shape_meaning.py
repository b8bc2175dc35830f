"""Joins, subqueries, unions and windows mean what the SQL says: before noise, both give the same numbers."""

from __future__ import annotations

import datetime
import functools
import random
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from on_engine import rows_below
from sfumato.engines import pointer_column
from sfumato.plan.prices.recipe import recipe
from sfumato.plan.questions.relations import rows_of
from sfumato.plan.questions.sensitivity import step
from sfumato.schema import (
    Bool,
    Date,
    Enum,
    Float,
    Int,
    PrivacyUnit,
    PrivateTable,
    PublicTable,
    Text,
    pointers_of,
)
from sfumato.sql.read.parse import parse
from sfumato.sql.write.lower import lower

MANY = 4096
VISITS = PrivateTable(
    "visits",
    source=None,
    unit=PrivacyUnit("user_id", max_groups=MANY),
    dataset="shop",
    schema={
        "country": Enum("FR", "DE", "IT"),
        "city": Text(),
        "amount": Float(0, 64),
        "age": Int(18, 30),
        "day": Date("2024-01-01", "2024-01-31"),
        "member": Bool(),
        "region": Int(0, 4),
    },
)
PEOPLE = PrivateTable(
    "people",
    source=None,
    unit=PrivacyUnit("id", max_groups=MANY),
    dataset="shop",
    schema={"id": Int(0, 99), "age": Int(0, 120), "sex": Enum("F", "M"), "region": Int(0, 4)},
)
BASKETS = PrivateTable(
    "baskets",
    source=None,
    unit=PrivacyUnit.via("people", on={"person": "id"}, max_groups=MANY),
    schema={"basket": Int(0, 99), "person": Int(0, 99), "paid": Bool()},
)
ITEMS = PrivateTable(
    "items",
    source=None,
    unit=PrivacyUnit.via("baskets", on="basket", max_groups=MANY),
    schema={"basket": Int(0, 99), "price": Float(0, 64), "kind": Enum("a", "b")},
)
REGIONS = PublicTable(
    "regions",
    source=None,
    key="region",
    schema={"region": Int(0, 4), "name": Enum("north", "south", "west"), "zone": Int(0, 2)},
)
ZONES = PublicTable(
    "zones",
    source=None,
    key="zone",
    schema={"zone": Int(0, 2), "title": Enum("near", "far"), "tax": Float(0, 4)},
)
CODES = PublicTable("codes", source=None, schema={"code": Enum("FR", "IT"), "note": Text()})
TABLES = {each.name: each for each in (VISITS, PEOPLE, BASKETS, ITEMS, REGIONS, ZONES, CODES)}


@functools.cache
def make_rows(seed: int) -> duckdb.DuckDBPyConnection:
    """A small shop, with NULLs, people without visits and regions that no table lists."""
    draw = random.Random(seed)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")

    def some(value: Any) -> Any:
        return None if draw.random() < 0.1 else value

    def fill(name: str, columns: str, rows: list[tuple[Any, ...]]) -> None:
        connection.execute(f"CREATE TABLE {name} ({columns})")
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    visits = [
        (draw.randrange(24), some(draw.choice(("FR", "DE", "IT"))), some(draw.choice(("FR", "Rome", ""))),
         some(draw.randrange(256) / 4), some(draw.randrange(18, 31)),
         datetime.date(2024, 1, 1 + i % 31), some(draw.random() < 0.5), some(draw.randrange(5)))
        for i in range(90)
    ]  # fmt: skip
    fill(
        "visits",
        "user_id BIGINT, country TEXT, city TEXT, amount DOUBLE, age BIGINT, day DATE, member BOOLEAN,"
        " region BIGINT",
        visits,
    )
    people = [
        (i, some(draw.randrange(18, 80)), some(draw.choice("FM")), draw.randrange(5)) for i in range(30)
    ]
    fill("people", "id BIGINT, age BIGINT, sex TEXT, region BIGINT", people)
    fill(
        "baskets",
        "basket BIGINT, person BIGINT, paid BOOLEAN",
        [(i, draw.randrange(30), draw.random() < 0.5) for i in range(40)],
    )
    fill(
        "items",
        "basket BIGINT, price DOUBLE, kind TEXT",
        [(draw.randrange(40), draw.randrange(256) / 4, draw.choice("ab")) for _ in range(80)],
    )
    fill(
        "regions",
        "region BIGINT, name TEXT, zone BIGINT",
        [(0, "north", 0), (1, "south", 1), (2, "south", 2), (3, "west", None)],
    )
    fill("zones", "zone BIGINT, title TEXT, tax DOUBLE", [(0, "near", 0.5), (1, "far", 1.25)])
    fill("codes", "code TEXT, note TEXT", [("FR", "x"), ("FR", "y"), ("IT", "z")])
    connection.execute("CREATE SCHEMA engine")
    units = {"visits": "user_id", "people": "id"}
    pointers = pointers_of(each for each in TABLES.values() if isinstance(each, PrivateTable))
    for name in TABLES:
        ids = f', {units[name]} AS "sfumato unit"' if name in units else ""
        ids += "".join(f', {each} AS "{pointer_column(each)}"' for each in pointers.get(name, ()))
        connection.execute(f"CREATE VIEW engine.{name} AS SELECT *{ids} FROM main.{name}")
    return connection


def ours(connection: duckdb.DuckDBPyConnection, query: str) -> dict[tuple[Any, ...], list[Fraction]]:
    report = parse(query, TABLES)
    rows = rows_of(report.child.source, TABLES)
    plan = recipe(report, rows)
    measured = plan.measured
    connection.execute("SET search_path = 'engine'")
    found = {}
    for row in rows_below(connection, lambda dialect: lower(measured, rows, dialect), TABLES):
        width = len(measured.keys)
        values = [row[width + i] * step(each, rows.unit) for i, each in enumerate(measured.measurements)]
        numbers = [  # counts and sums alone are asked for, and are linear
            each.constant + sum(w * values[part] for w, part in zip(each.weights, each.parts, strict=True))  # type: ignore[union-attr]
            for each in plan.aggregates
        ]
        places = [
            int(each.expression.name[1:])  # type: ignore[union-attr]
            for each in report.columns[width:]
        ]
        found[tuple(row[i] for i in plan.key_order)] = [numbers[place] for place in places]
    connection.execute("SET search_path = 'main'")
    return found


def theirs(
    connection: duckdb.DuckDBPyConnection, query: str, width: int
) -> dict[tuple[Any, ...], list[Fraction]]:
    return {
        row[:width]: [Fraction(each or 0) for each in row[width:]]
        for row in connection.execute(query).fetchall()
        if None not in row[:width]
    }


QUERIES = """
SELECT COUNT(*), SUM(z) FROM (SELECT 2 * amount AS z, country FROM visits WHERE member) WHERE country = 'FR';
WITH a AS (SELECT * FROM visits WHERE age > 20), b AS (SELECT amount + age AS z FROM a) SELECT SUM(z), COUNT(z) FROM b;
SELECT SUM(amount) FROM (SELECT amount * 100 AS amount FROM visits);
SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id);
SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT user_id, COUNT(amount) AS n FROM visits WHERE member GROUP BY user_id HAVING COUNT(*) > 1);
SELECT COUNT(*), SUM(LEAST(n, 50)) FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id HAVING MAX(age) > 26) WHERE n > 2;
SELECT country, COUNT(*), SUM(LEAST(s, 500)) FROM (SELECT user_id, country, SUM(amount) AS s FROM visits GROUP BY user_id, country) GROUP BY country;
SELECT COUNT(*), SUM(span) FROM (SELECT user_id, LEAST(MAX(age) - MIN(age), 12) AS span FROM visits GROUP BY 1);
SELECT SUM(LEAST(k, 9)) FROM (SELECT user_id, COUNT(DISTINCT country) AS k FROM visits GROUP BY user_id);
SELECT SUM(LEAST(k, 9)) FROM (SELECT user_id, COUNT(*) FILTER (WHERE member) AS k FROM visits GROUP BY user_id);
SELECT COUNT(*) FROM (SELECT DISTINCT user_id, country FROM visits);
SELECT COUNT(DISTINCT user_id) FROM (SELECT DISTINCT user_id FROM visits WHERE age > 25);
SELECT COUNT(*), SUM(p.age) FROM visits v JOIN people p ON v.user_id = p.id;
SELECT sex, COUNT(*), SUM(v.age) FROM visits v JOIN people p ON v.user_id = p.id AND p.age > 30 WHERE v.member GROUP BY sex;
SELECT COUNT(*), COUNT(p.age), SUM(p.age) FROM visits v LEFT JOIN people p ON v.user_id = p.id AND p.sex = 'F';
SELECT COUNT(*), COUNT(v.age) FROM visits v RIGHT JOIN people p ON v.user_id = p.id AND v.age > 25;
SELECT COUNT(*), SUM(v.age) FROM people p LEFT JOIN visits v ON v.user_id = p.id WHERE p.sex = 'M';
SELECT COUNT(*), COUNT(b.age) FROM people p LEFT JOIN (SELECT user_id, 3 AS x, age FROM visits) b ON b.user_id = p.id AND b.x > 3;
SELECT COUNT(*) FROM visits v JOIN people p ON v.user_id = p.id AND v.age < p.age;
SELECT COUNT(*) FROM visits v JOIN people p ON v.user_id = p.id AND v.region = p.region;
SELECT COUNT(*) FROM visits v JOIN people p ON v.user_id = p.id AND v.region + 1 = p.region;
SELECT COUNT(*) FROM visits a JOIN visits b ON a.user_id = b.user_id WHERE a.day < b.day;
SELECT COUNT(*), SUM(c.age) FROM visits a JOIN visits b USING (user_id) JOIN visits c USING (user_id) WHERE a.age < b.age AND b.age < c.age;
SELECT name, COUNT(*) FROM visits JOIN regions USING (region) GROUP BY name;
SELECT name, COUNT(amount), SUM(amount) FROM regions r RIGHT JOIN visits v ON v.region = r.region GROUP BY name;
SELECT COUNT(*), COUNT(name), SUM(zone) FROM visits v LEFT JOIN regions r ON v.region = r.region AND r.name <> 'west';
SELECT title, COUNT(*), SUM(tax) FROM visits JOIN regions USING (region) JOIN zones USING (zone) GROUP BY title;
SELECT title, COUNT(*) FROM zones JOIN regions ON regions.zone = zones.zone JOIN visits ON visits.region = regions.region GROUP BY title;
SELECT name, COUNT(*) FROM people p JOIN regions r ON p.region = r.region JOIN visits v ON v.user_id = p.id WHERE v.age > 20 GROUP BY name;
SELECT COUNT(*), SUM(price) FROM people JOIN baskets ON id = person JOIN items USING (basket);
SELECT sex, COUNT(*), SUM(price) FROM items i JOIN baskets b ON i.basket = b.basket JOIN people p ON b.person = p.id WHERE kind = 'a' AND paid GROUP BY sex;
SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT basket, COUNT(*) AS n FROM items GROUP BY basket);
SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT person, COUNT(*) AS n FROM baskets WHERE paid GROUP BY person);
SELECT COUNT(*), SUM(LEAST(n, 9)) FROM (SELECT id, COUNT(basket) AS n FROM people LEFT JOIN baskets ON id = person GROUP BY id);
SELECT COUNT(*) FROM (SELECT price, MAX(price) OVER (PARTITION BY basket) AS most FROM items) WHERE price = most;
SELECT COUNT(*) FROM items a JOIN items b ON a.basket = b.basket WHERE a.price < b.price;
SELECT name, SUM(price) FROM people p JOIN regions r ON p.region = r.region JOIN baskets ON person = p.id JOIN items ON items.basket = baskets.basket GROUP BY name;
SELECT COUNT(*), SUM(x) FROM (SELECT user_id, age AS x FROM visits UNION ALL SELECT id, age FROM people WHERE sex = 'F') WHERE x > 25;
SELECT COUNT(*), SUM(x) FROM (SELECT user_id, amount AS x FROM visits UNION ALL (SELECT id, age * 0.5 FROM people UNION ALL SELECT user_id, 1 FROM visits));
SELECT COUNT(*), SUM(amount) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day, age) AS n FROM visits) WHERE n <= 2;
SELECT SUM(LEAST(gap, 31)) FROM (SELECT day - LAG(day) OVER (PARTITION BY user_id ORDER BY day) AS gap FROM visits);
SELECT COUNT(*) FROM (SELECT amount, AVG(amount) OVER (PARTITION BY user_id, country) AS usual FROM visits WHERE member) WHERE amount > usual;
SELECT COUNT(*) FROM (SELECT user_id, age FROM visits QUALIFY DENSE_RANK() OVER (PARTITION BY user_id ORDER BY age DESC) = 1);
SELECT COUNT(*), SUM(LEAST(v.n, 40)) FROM people p LEFT JOIN (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id) v ON v.user_id = p.id;
SELECT COUNT(*) FROM people p LEFT JOIN (SELECT DISTINCT user_id, 1 AS found FROM visits) v ON v.user_id = p.id WHERE found IS NULL;
SELECT COUNT(*), SUM(m) FROM people p LEFT JOIN (SELECT user_id, COALESCE(age, 20) AS m FROM visits WHERE member) v ON v.user_id = p.id;
SELECT COUNT(*), SUM(LEAST(n, 99)) FROM (SELECT user_id, MAX(n) AS n FROM (SELECT user_id, day, COUNT(*) AS n FROM visits GROUP BY user_id, day) GROUP BY user_id);
SELECT code, COUNT(*) FROM visits v JOIN (SELECT DISTINCT code FROM codes) c ON v.country = c.code GROUP BY code;
SELECT sex, COUNT(*) FROM (SELECT DISTINCT user_id, country FROM visits) v JOIN (SELECT id AS u, sex FROM people WHERE age > 20) p ON p.u = v.user_id GROUP BY sex
"""  # noqa: E501


@pytest.mark.parametrize("query", [each.strip() for each in QUERIES.split(";")], ids=lambda query: query[:70])
def test_numbers_before_noise_equal_those_of_the_query(query: str) -> None:
    filled = 0
    for seed in range(2):
        connection = make_rows(seed)
        answer = ours(connection, query)
        width = len(next(iter(answer))) if answer else 1
        expected = theirs(connection, query, width)
        assert set(answer) == set(expected)
        for key, values in expected.items():
            assert answer[key] == values, (query, key)
        filled += sum(any(values) for values in expected.values())
    assert filled


CONDITIONS = (
    "age > 24",
    "x IS NULL",
    "x > 2",
    "age IS NOT NULL AND x < 20",
    "age = 22 OR x = 3",
    "NOT (x > 10)",
    "COALESCE(x, 1) > 5",
    "age < x",
)
WINDOWS = (
    "SUM(x) OVER (PARTITION BY u)",
    "MAX(x) OVER (PARTITION BY u, age)",
    "DENSE_RANK() OVER (PARTITION BY u ORDER BY x)",
    "COUNT(*) OVER (PARTITION BY u)",
    "RANK() OVER (PARTITION BY u ORDER BY age DESC, x)",
)
RESULTS = ("COUNT(*)", "COUNT(x)", "LEAST(SUM(x), 50)", "MIN(x)", "COUNT(DISTINCT x)", "MAX(x) - MIN(x)")


def relation(draw: random.Random, depth: int) -> str:
    """A random subquery with the columns u (the unit), age and x."""
    where = draw.choice(("", f" WHERE {draw.choice(CONDITIONS)}"))
    match draw.randrange(9) if depth else draw.randrange(2):
        case 0:
            where = draw.choice(("", " WHERE member", " WHERE country = 'FR'"))
            return f"(SELECT user_id AS u, age, amount AS x FROM visits{where})"
        case 1:
            where = draw.choice(("", " WHERE sex = 'F'"))
            return f"(SELECT id AS u, age, region * 2 AS x FROM people{where})"
        case 2:
            age = draw.choice(("age", "COALESCE(age, 19)", "LEAST(age, x)"))
            x = draw.choice(("x", "x + 1", "COALESCE(x, 2)", "3", "x * age"))
            return f"(SELECT u, {age} AS age, {x} AS x FROM {relation(draw, depth - 1)}{where})"
        case 3:
            having = draw.choice(("", " HAVING COUNT(*) > 1", " HAVING MAX(age) > 25"))
            inner = f"FROM {relation(draw, depth - 1)}{where} GROUP BY u{having}"
            return f"(SELECT u, MAX(age) AS age, {draw.choice(RESULTS)} AS x {inner})"
        case 4:
            inner = f"FROM {relation(draw, depth - 1)}{where} GROUP BY u, age"
            return f"(SELECT u, age, COUNT(*) AS x {inner})"
        case 5:
            return (
                f"(SELECT DISTINCT u, age, {draw.choice('x1')} AS x FROM {relation(draw, depth - 1)}{where})"
            )
        case 6:
            first, second = relation(draw, depth - 1), relation(draw, depth - 1)
            return f"({first[1:-1]} UNION ALL {second[1:-1]})"
        case 7:
            return joined(draw, relation(draw, depth - 1), relation(draw, depth - 1))
    window = draw.choice(WINDOWS)
    return f"(SELECT u, age, {window} AS x FROM {relation(draw, depth - 1)}{where})"


def joined(draw: random.Random, first: str, second: str) -> str:
    kind = draw.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN"))
    kept, other = "ba" if kind == "RIGHT JOIN" else "ab"
    conditions = ["", f" AND {other}.x > 3", " AND a.age = b.age", f" AND COALESCE({other}.age, 20) > 21"]
    if kind == "JOIN":
        conditions += [" AND a.x < b.x", " AND a.age > 22"]
    x = draw.choice(("a.x", "b.x", "COALESCE(a.x, b.x)", "b.x + a.age"))
    on = f"ON a.u = b.u{draw.choice(conditions)}"
    columns = f"{kept}.u AS u, {draw.choice('ab')}.age AS age, {x} AS x"
    return f"(SELECT {columns} FROM {first} a {kind} {second} b {on})"


@pytest.mark.parametrize("seed", range(4))
def test_random_shapes_mean_what_they_say(seed: int) -> None:
    draw = random.Random(seed)
    connection = make_rows(seed % 2)
    filled = 0
    for _ in range(15):
        where = draw.choice(("", f" WHERE {draw.choice(CONDITIONS)}"))
        query = (
            "SELECT COUNT(*), COUNT(x), SUM(LEAST(GREATEST(x, -100), 1000)), SUM(LEAST(GREATEST(age, 0), 99))"
            f" FROM {relation(draw, draw.choice((1, 2, 3)))}{where}"
        )
        (found,) = ours(connection, query).values()
        (expected,) = theirs(connection, query, 0).values()
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-4), query  # type: ignore[comparison-overlap]
        filled += expected[0] > 0
    assert filled > 8
