"""Wrong queries as a newcomer writes them: the refusal says why and what to write, and that then works."""

from __future__ import annotations

import datetime
import re

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.sql.refusals import FUNCTIONS

DAY = datetime.date(2024, 5, 17)
HIDDEN = ("Zanzibar", "4711", "2024-05-17")
"""What is in the data and in no query: no message may hold it."""


def tables() -> list[sf.PrivateTable | sf.PublicTable]:
    visits = pa.table(
        {
            "user_id": ["u1", "u2", "u3"],
            "country": ["FR", "DE", "FR"],
            "city": ["Zanzibar", "Zanzibar", "Nice"],
            "amount": [47.11, 3.0, 4.0],
            "free": [4711.0, 2.0, 3.0],
            "age": [33, 44, 55],
            "day": [DAY, DAY, DAY],
            "member": [True, False, True],
        }
    )
    customers = pa.table({"user_id": ["u1", "u2"], "segment": ["A", "B"]})
    orders = pa.table({"order_id": [1, 2, 3], "user_id": ["u1", "u1", "u2"], "price": [1.0, 2.0, 3.0]})
    items = pa.table({"order_id": [1, 1, 3], "qty": [1, 2, 3]})
    countries = pa.table({"code": ["FR", "DE"], "continent": ["Europe", "Europe"]})
    limits = {"max_groups": 2, "max_rows": 5}
    codes = sf.Enum("FR", "DE")
    return [
        sf.PrivateTable(
            "visits",
            source=visits,
            unit=sf.PrivacyUnit("user_id", **limits),
            dataset="shop",
            schema={
                "country": codes,
                "city": sf.Text(),
                "amount": sf.Float(0, 200),
                "free": sf.Float(),
                "age": sf.Int(18, 99),
                "day": sf.Date("2024-01-01", "2024-12-31"),
                "member": sf.Bool(),
            },
        ),
        sf.PrivateTable(
            "customers",
            source=customers,
            unit=sf.PrivacyUnit("user_id", **limits),
            dataset="shop",
            schema={"user_id": sf.Text(), "segment": sf.Enum("A", "B")},
        ),
        sf.PrivateTable(
            "orders",
            source=orders,
            unit=sf.PrivacyUnit.via("customers", on="user_id", **limits),
            schema={"order_id": sf.Int(), "user_id": sf.Text(), "price": sf.Float(0, 100)},
        ),
        sf.PrivateTable(
            "items",
            source=items,
            unit=sf.PrivacyUnit.via("orders", on="order_id", **limits),
            schema={"order_id": sf.Int(), "qty": sf.Int(1, 10)},
        ),
        sf.PublicTable(
            "countries", source=countries, key="code", schema={"code": codes, "continent": sf.Text()}
        ),
    ]


@pytest.fixture(scope="module")
def shop():
    with sf.Session(*tables(), budget=sf.Budget(epsilon=10, delta=1e-6)) as session:
        yield session


BY_COUNTRY = "SELECT country, COUNT(*) FROM visits GROUP BY country"
EUROPE = "(SELECT DISTINCT code FROM countries WHERE continent = 'Europe') AS countries"
EACH = "JOIN (SELECT user_id, COUNT(*) AS n FROM orders GROUP BY user_id) AS o ON v.user_id = o.user_id"
ITEMS = "(SELECT order_id, COUNT(*) AS n FROM items GROUP BY order_id)"
LARGE = "JOIN (SELECT DISTINCT order_id FROM items WHERE qty > 3) AS i ON o.order_id = i.order_id"
WITHOUT = "(SELECT DISTINCT user_id, 1 AS found FROM orders) AS o ON visits.user_id = o.user_id"

# What was typed, a part of the reason, a part of the advice, and the query that follows the advice.
WRONG = [
    # rows, and columns without a group
    (
        "SELECT * FROM visits",
        "would show the rows",
        "COUNT(*) or AVG(amount)",
        "SELECT AVG(amount) FROM visits",
    ),
    ("SELECT country, COUNT(*) FROM visits", "neither aggregated", "Add GROUP BY country", BY_COUNTRY),
    ("SELECT DISTINCT country FROM visits", "has no aggregate", f"Write {BY_COUNTRY}.", BY_COUNTRY),
    (
        "SELECT user_id, country, amount FROM visits ORDER BY amount DESC LIMIT 10",
        "single rows are never shown",
        "SELECT country, AVG(amount) FROM visits GROUP BY country",
        "SELECT country, AVG(amount) FROM visits GROUP BY country",
    ),
    (
        "SELECT country, age, COUNT(*) FROM visits GROUP BY country",
        "'age' is neither aggregated",
        "Add age to GROUP BY",
        "SELECT country, age, COUNT(*) FROM visits GROUP BY country, age",
    ),
    (
        "SELECT amount, COUNT(*) FROM visits GROUP BY amount",
        "fractions are rarely shared",
        "FLOOR(amount / 10) * 10",
        "SELECT FLOOR(amount / 10) * 10, COUNT(*) FROM visits GROUP BY FLOOR(amount / 10) * 10",
    ),
    (
        "SELECT user_id, COUNT(*) FROM visits GROUP BY user_id",
        "about one person",
        "SELECT AVG(LEAST(n, 20)) FROM (SELECT user_id, COUNT(*) AS n FROM … GROUP BY user_id)",
        "SELECT AVG(LEAST(n, 9)) FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id)",
    ),
    # names
    ("SELECT COUNT(*) FROM visit", "no table 'visit'", "Did you mean visits?", "SELECT COUNT(*) FROM visits"),
    ("SELECT county, COUNT(*) FROM visits GROUP BY county", "no declared column", "country?", BY_COUNTRY),
    (
        'SELECT COUNT(*) FROM visits WHERE country = "FR"',
        "column 'FR'",
        "in single quotes: 'FR'.",
        "SELECT COUNT(*) FROM visits WHERE country = 'FR'",
    ),
    ("SELECT COUNT(*) FROM shop.visits", "no schema", "Write visits.", "SELECT COUNT(*) FROM visits"),
    # functions
    (
        "SELECT PERCENTILE(amount, .95) FROM visits",
        "SQL has no function PERCENTILE",
        "Write QUANTILE_CONT(amount, 0.95).",
        "SELECT QUANTILE_CONT(amount, 0.95) FROM visits",
    ),
    ("SELECT AVGG(amount) FROM visits", "AVGG is not", "Did you mean AVG?", "SELECT AVG(amount) FROM visits"),
    (
        "SELECT COUNT(DISTINCT country, city) FROM visits",
        "takes one expression",
        "COUNT(DISTINCT country || '/' || city)",
        "SELECT COUNT(DISTINCT country || '/' || city) FROM visits",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE day > NOW()",
        "NOW is not a supported function",
        "DATE '2024-01-31'",
        "SELECT COUNT(*) FROM visits WHERE day > DATE '2024-01-31'",
    ),
    (
        "SELECT SUM(city) FROM visits",
        "is for numbers",
        "COUNT(DISTINCT city)",
        "SELECT COUNT(city) FROM visits",
    ),
    # values and conditions
    (
        "SELECT COUNT(*) FROM visits WHERE age > '30'",
        "mixes a whole number and text",
        "Write numbers without quotes",
        "SELECT COUNT(*) FROM visits WHERE age > 30",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE day > 20240101",
        "mixes a date and a whole number",
        "DATE '2024-01-31'",
        "SELECT COUNT(*) FROM visits WHERE day > DATE '2024-01-01'",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE age > 30 && member",
        "&& is not supported",
        "Write AND.",
        "SELECT COUNT(*) FROM visits WHERE age > 30 AND member",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE country = NULL",
        "never true",
        "Write IS NULL",
        "SELECT COUNT(*) FROM visits WHERE country IS NULL",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE country IN 'FR', 'DE'",
        "in parentheses",
        "Write IN ('FR', 'DE').",
        "SELECT COUNT(*) FROM visits WHERE country IN ('FR', 'DE')",
    ),
    (
        "SELECT country, COUNT(*) FROM visits WHERE COUNT(*) > 100 GROUP BY country",
        "WHERE judges single rows",
        "HAVING",
        f"{BY_COUNTRY} HAVING COUNT(*) > 100",
    ),
    (
        "SELECT country, COUNT(*) FROM visits GROUP BY country HAVING age > 30",
        "'age' is neither aggregated",
        "HAVING judges groups: put conditions on rows into WHERE",
        "SELECT country, COUNT(*) FROM visits WHERE age > 30 GROUP BY country",
    ),
    # subqueries
    (
        "SELECT COUNT(*) FROM visits "
        "WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = visits.user_id)",
        "NOT EXISTS is not supported",
        f"Write LEFT JOIN {WITHOUT}, and WHERE o.found IS NULL.",
        f"SELECT COUNT(*) FROM visits LEFT JOIN {WITHOUT} WHERE o.found IS NULL",
    ),
    (
        "SELECT COUNT(*) FROM orders o "
        "WHERE EXISTS (SELECT * FROM items i WHERE i.order_id = o.order_id AND i.qty > 3)",
        "EXISTS is not supported",
        f"Write {LARGE}.",
        f"SELECT COUNT(*) FROM orders o {LARGE}",
    ),
    (
        "SELECT COUNT(*) FROM visits "
        "WHERE country IN (SELECT code FROM countries WHERE continent = 'Europe')",
        "IN with a subquery",
        f"Write JOIN {EUROPE} ON visits.country = countries.code.",
        f"SELECT COUNT(*) FROM visits JOIN {EUROPE} ON visits.country = countries.code",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE (SELECT COUNT(*) FROM orders o WHERE o.user_id = v.user_id) > 3",
        "subquery inside an expression",
        f"{EACH}, and use o.n.",
        f"SELECT COUNT(*) FROM visits v {EACH} WHERE o.n > 3",
    ),
    (
        f"SELECT AVG(n) FROM {ITEMS}",
        "needs bounds for n:",
        "AVG(LEAST(GREATEST(n, LOW), HIGH))",
        f"SELECT AVG(LEAST(GREATEST(n, 0), 100)) FROM {ITEMS}",
    ),
    (
        "SELECT AVG(q) FROM (SELECT DISTINCT qty AS q FROM items)",
        "which people share a value",
        "SELECT DISTINCT order_id, x",
        "SELECT AVG(q) FROM (SELECT DISTINCT order_id, qty AS q FROM items)",
    ),
    # joins
    (
        "SELECT COUNT(*) FROM visits v JOIN orders o ON v.age = o.price",
        "rows of others",
        "Write ON v.user_id = o.user_id",
        "SELECT COUNT(*) FROM visits v JOIN orders o ON v.user_id = o.user_id",
    ),
    (
        "SELECT COUNT(*) FROM visits v JOIN items i ON v.age = i.qty",
        "rows of others",
        "First JOIN orders ON i.order_id = orders.order_id",
        "SELECT COUNT(*) FROM items i JOIN orders ON i.order_id = orders.order_id "
        "JOIN visits v ON v.user_id = orders.user_id",
    ),
    (
        "SELECT COUNT(*) FROM visits JOIN countries ON visits.country = countries.continent",
        "the key of countries",
        "Write ON countries.code = visits.country.",
        "SELECT COUNT(*) FROM visits JOIN countries ON countries.code = visits.country",
    ),
    # other dialects
    (
        "SELECT DATE_TRUNC(day, MONTH), COUNT(*) FROM visits GROUP BY 1",
        "column 'MONTH'",
        "DATE_TRUNC('month', day)",
        "SELECT DATE_TRUNC('month', day), COUNT(*) FROM visits GROUP BY 1",
    ),
    (
        "SELECT TOP 10 country, COUNT(*) FROM visits GROUP BY country",
        "TOP 10 is not supported",
        "Write LIMIT 10 at the end",
        f"{BY_COUNTRY} LIMIT 10",
    ),
    (
        "SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM orders",
        "of results",
        "SELECT COUNT(*) FROM (SELECT user_id FROM a UNION ALL SELECT user_id FROM b)",
        "SELECT COUNT(*) FROM (SELECT user_id FROM visits UNION ALL SELECT user_id FROM orders)",
    ),
    # slips of the pen
    ("SELCT COUNT(*) FROM visits", "begins with 'SELCT'", "Write SELECT.", "SELECT COUNT(*) FROM visits"),
    ("SELECT COUNT(*) FORM visits", "line 1", "FROM where it says 'FORM'", "SELECT COUNT(*) FROM visits"),
    (
        "SELECT COUNT(* FROM visits",
        "near 'FROM'",
        "A parenthesis is not closed.",
        "SELECT COUNT(*) FROM visits",
    ),
    ("SELECT country COUNT(*) FROM visits GROUP BY country", "near '('", "comma is missing", BY_COUNTRY),
    ("SELECT country, COUNT(*) FROM visits GROUP country", "near 'country'", "Write GROUP BY.", BY_COUNTRY),
    (
        "SELECT COUNT(*) FROM visits WHERE country = ‘FR’",
        "curly quotes",
        "Write straight ones: 'text'",
        "SELECT COUNT(*) FROM visits WHERE country = 'FR'",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE age > 30 AND < 40",
        "near '40'",
        "age > 30 AND age < 40",
        "SELECT COUNT(*) FROM visits WHERE age > 30 AND age < 40",
    ),
    (
        "SELECT CASE WHEN age > 30 THEN 'old' ELSE 'young' AS g, COUNT(*) FROM visits GROUP BY g",
        "near",
        "Close CASE with END.",
        "SELECT CASE WHEN age > 30 THEN 'old' ELSE 'young' END AS g, COUNT(*) FROM visits GROUP BY g",
    ),
    ("SELECT AVG amount FROM visits", "column 'AVG'", "Write AVG(x)", "SELECT AVG(amount) FROM visits"),
    ("DROP TABLE visits", "nothing is written here", "SELECT country, COUNT(*)", BY_COUNTRY),
    (
        "SELECT COUNT(*) FROM visits; SELECT 1",
        "several",
        "one SELECT at a time",
        "SELECT COUNT(*) FROM visits;",
    ),
    ("  ", "no query in this text", "SELECT country, COUNT(*)", BY_COUNTRY),
]


@pytest.mark.parametrize(("query", "reason", "fix", "better"), WRONG, ids=[each[0][:60] for each in WRONG])
def test_a_wrong_query_is_answered_with_the_reason_and_a_query_that_works(shop, query, reason, fix, better):
    with pytest.raises(QueryRefused) as refusal:
        shop.sql(query).quote(epsilon=1)
    assert reason in refusal.value.reason
    assert fix in refusal.value.fix
    assert len(str(refusal.value)) <= 300
    assert not any(value in str(refusal.value) for value in HIDDEN)
    assert not re.search(r"owner in|number of rows|[0-9a-f]{10}", str(refusal.value))
    shop.sql(better).quote(epsilon=1)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT COUNT(*) FROM visits WHERE age > {threshold}", "{threshold}"),
        ("SELECT COUNT(*) FROM visits WHERE country = '{country}'", "{country}"),
        ("SELECT COUNT(*) FROM visits WHERE age > %s", "%s"),
    ],
)
def test_a_place_that_a_program_left_open_is_seen(shop, query, name):
    with pytest.raises(QueryRefused, match="nothing was put in its place") as refusal:
        shop.sql(query)
    assert refusal.value.reason.startswith(name)
    open_place = f"'{name}'" if "country" in name else name
    shop.sql(query.replace(open_place, "?"), ["FR" if "country" in name else 30]).quote(epsilon=1)


def test_what_looks_like_an_open_place_can_be_asked_for_as_a_parameter(shop):
    shop.sql("SELECT COUNT(*) FROM visits WHERE city = ?", ["{city}"]).quote(epsilon=1)
    shop.sql("SELECT COUNT(*) FROM visits WHERE age %s = 1".replace("%s", "% 7")).quote(epsilon=1)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_from_elsewhere_have_advice_of_their_own(shop, name):
    two = re.match("ADD|DATE|DIV|REGEXP|RLIKE|SAFE|STRF|SUB", name)
    with pytest.raises(QueryRefused) as refusal:
        shop.sql(f"SELECT COUNT(*) FROM visits WHERE {name}({'day, 1' if two else 'day'}) = 1")
    subset = name in ("REGEXP_CONTAINS", "REGEXP_LIKE", "REGEXP_MATCHES")  # read where the pattern is plain
    assert refusal.value.reason.upper().startswith("A REGULAR EXPRESSION" if subset else name)


@pytest.mark.parametrize(
    "advised",
    [
        "day + INTERVAL 3 DAY > DATE '2024-01-31'",
        "day - INTERVAL 1 MONTH > DATE '2024-01-31'",
        "DATE_TRUNC('month', day) = DATE '2024-01-01' AND EXTRACT(year FROM day) = 2024",
        "city LIKE 'Ly%' OR CONTAINS(city, 'yo')",
        "age / NULLIF(amount, 0) > 1 AND COALESCE(amount, 0) > 1",
        "DATE_DIFF('year', day, DATE '2024-01-31') > 3",
        "CASE WHEN age = 20 THEN 'a' ELSE 'b' END = 'a'",
    ],
)
def test_what_is_advised_for_them_works(shop, advised):
    shop.sql(f"SELECT COUNT(*) FROM visits WHERE {advised}").quote(epsilon=1)


def test_advice_names_the_unit_as_the_table_has_it(shop):
    google = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, privacy_unit_column={}) COUNT(*) FROM orders"
    )
    shop.sql(google.format("user_id")).quote()
    with pytest.raises(QueryRefused, match="must be the declared one, user_id"):
        shop.sql(google.format("order_id"))
    told = str(shop.sql("SELECT COUNT(*) FROM items").quote(epsilon=1))
    assert "Each user_id counts as at most 5 rows" in told
    assert "owner in" not in told
