"""SQL text to plans: what is understood, what is the same question, what is refused and in which words."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import pytest

from sfumato.engines.dialect import DUCKDB
from sfumato.errors import QueryRefused
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.nodes import AggregateCall, OrderItem, Report
from sfumato.schema import Bool, Date, Enum, Float, Int, PrivacyUnit, PrivateTable, Text
from sfumato.sql.read.parse import parse
from sfumato.sql.write.lower import lower

SCHEMA = {
    "country": Enum("FR", "DE"),
    "city": Text(),
    "amount": Float(0, 200),
    "age": Int(18, 99),
    "day": Date("2024-01-01", "2024-12-31"),
    "member": Bool(),
    "free": Float(),
}
BY_UNIT = PrivateTable("visits", source=None, unit=PrivacyUnit("user_id", max_groups=3), schema=SCHEMA)
BY_ROW = PrivateTable("visits", source=None, unit=PrivacyUnit.row(), schema=SCHEMA)
FIXTURES = Path(__file__).parent / "fixtures"


def ask(text: str, table: PrivateTable = BY_UNIT) -> Report:
    return parse(text, {"visits": table})


def lines(name: str) -> list[str]:
    text = (FIXTURES / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("--")]


def pairs(name: str) -> list[tuple[str, str]]:
    kept = [line for line in lines(name) if line.strip()]
    return list(zip(kept[::2], kept[1::2], strict=True))


def blocks(name: str) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines(name):
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [each for each in found if each]


@pytest.mark.parametrize(("query", "expected"), pairs("refused.sql"), ids=lambda text: str(text)[:60])
def test_refused(query: str, expected: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        ask(query)
    assert expected.removeprefix("refused: ") in str(refusal.value)
    assert refusal.value.fix
    assert len(str(refusal.value)) < 300
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize("queries", blocks("same.sql"), ids=lambda queries: queries[0][:60])
def test_same_question(queries: list[str]) -> None:
    prints = {measured_of(ask(each), BY_UNIT).fingerprint for each in queries}
    assert len(queries) > 1
    assert len(prints) == 1


def test_different_questions_differ() -> None:
    firsts = [queries[0] for queries in blocks("same.sql")]
    assert len({measured_of(ask(each), BY_UNIT).fingerprint for each in firsts}) == len(firsts)


@pytest.mark.parametrize(("query", "expected"), pairs("lowered.sql"), ids=lambda text: str(text)[:60])
def test_lowered(query: str, expected: str) -> None:
    table = BY_UNIT if query.startswith("@unit ") else BY_ROW
    report = ask(query.removeprefix("@unit "), table)
    assert lower(measured_of(report, table), table, DUCKDB).sql("duckdb") == expected.rstrip(";")


def test_parts_of_a_report() -> None:
    report = ask(
        "SELECT v.country AS c, COUNT(*) AS n, SUM(amount) / COUNT(*) AS spend FROM visits v WHERE age > 30"
        " GROUP BY c HAVING n > 10 ORDER BY spend DESC NULLS FIRST, 1 LIMIT 3 OFFSET 1"
    )
    a0, a1, k0 = Column("a0"), Column("a1"), Column("k0")
    spend = call("divide", a1, a0)
    assert [each.name for each in report.columns] == ["c", "n", "spend"]
    assert [each.expression for each in report.columns] == [k0, a0, spend]
    assert report.child.aggregates == (AggregateCall("count"), AggregateCall("sum", Column("amount")))
    assert report.child.predicate == call("greater", Column("age"), literal(30))
    assert report.having == call("greater", a0, literal(10))
    assert report.order == (OrderItem(spend, descending=True, nulls_first=True), OrderItem(k0))
    assert (report.limit, report.offset) == (3, 1)


def test_public_keys() -> None:
    def keys(text: str) -> list[tuple[object, ...]]:
        return [key.values for key in ask(text).child.keys]

    assert keys("SELECT country, member, COUNT(*) FROM visits GROUP BY ALL") == [("FR", "DE"), (False, True)]
    assert keys("SELECT age, COUNT(*) FROM visits WHERE age < 21 GROUP BY 1") == [(18, 19, 20)]
    assert keys("SELECT city, COUNT(*) FROM visits WHERE city IN ('Nice', 'Lyon') GROUP BY 1") == [
        ("Lyon", "Nice")
    ]
    assert keys("SELECT country, COUNT(*) FROM visits WHERE country <> 'FR' GROUP BY 1") == [("DE",)]
    assert keys("SELECT EXTRACT(year FROM day), COUNT(*) FROM visits GROUP BY 1") == [(2024,)]
    assert keys("SELECT FLOOR(age / 10) * 10 AS d, COUNT(*) FROM visits GROUP BY d") == [
        tuple(range(10, 100, 10))
    ]
    days = keys("SELECT day, COUNT(*) FROM visits GROUP BY day")[0]
    assert (days[0], days[-1], len(days)) == (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31), 366)
    ages = "CASE WHEN age < 30 THEN 'young' ELSE 'old' END"
    assert set(keys(f"SELECT {ages}, COUNT(*) FROM visits GROUP BY 1")[0]) == {"young", "old"}


def test_aggregates() -> None:
    report = ask(
        "SELECT COUNT(*), COUNT(city), COUNT(DISTINCT user_id), SUM(age), AVG(age), MEAN(amount),"
        " VARIANCE(age), VAR_SAMP(amount), VAR_POP(age), STDDEV(age), STDDEV_SAMP(amount), STDDEV_POP(age),"
        " AVG(member) FROM visits"
    )
    assert [each.function for each in report.child.aggregates] == [
        *("count", "count", "count_distinct", "sum", "mean", "mean", "var_samp", "var_samp", "var_pop"),
        *("std_samp", "std_samp", "std_pop", "mean"),
    ]


def test_aggregates_are_measured_once() -> None:
    report = ask(
        "SELECT COUNT(*) AS n, COUNT(*) + n AS m, COUNT(1) FROM visits HAVING COUNT(*) > 1 ORDER BY COUNT(*)"
    )
    assert report.child.aggregates == (AggregateCall("count"),)


def test_output_names_are_unique_and_readable() -> None:
    report = ask("SELECT COUNT(*), COUNT(*), Country, country AS x, AVG(amount) FROM visits GROUP BY country")
    assert [each.name for each in report.columns] == ["count(*)", "count(*)_2", "country", "x", "avg(amount)"]


def test_a_column_hides_an_alias_except_in_order_by() -> None:
    grouped = ask(
        "SELECT UPPER(country) AS country, COUNT(*) AS age FROM visits GROUP BY country ORDER BY age"
    )
    assert grouped.child.keys[0].expression == Column("country")
    assert grouped.order == (OrderItem(Column("a0")),)
    with pytest.raises(QueryRefused, match="neither aggregated"):
        ask("SELECT country, COUNT(*) AS age FROM visits GROUP BY country HAVING age > 3")


def test_declared_unit_column_is_a_column_too() -> None:
    table = PrivateTable(
        "visits", source=None, unit=PrivacyUnit("user_id"), schema={**SCHEMA, "user_id": Int(0, 9)}
    )
    assert ask("SELECT COUNT(*) FROM visits WHERE user_id = 3", table).child.predicate is not None
    assert (
        ask("SELECT COUNT(DISTINCT user_id) FROM visits", table).child.aggregates[0].function
        == "count_distinct"
    )


def test_no_units_to_count_where_rows_are_units() -> None:
    with pytest.raises(QueryRefused, match="no declared column"):
        ask("SELECT COUNT(DISTINCT user_id) FROM visits", BY_ROW)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits WHERE " + "(" * 5000 + "age > 3" + ")" * 5000,
        "SELECT COUNT(*) FROM visits WHERE " + "NOT " * 5000 + "member",
        "SELECT COUNT(*) FROM visits WHERE " + "+".join(["age"] * 5000) + " > 3",
        "SELECT COUNT(*) FROM visits WHERE " + "age::int" + "::int" * 5000 + " > 3",
        "SELECT COUNT(*) FROM visits WHERE " + "x -> " * 5000 + "member",
        "SELECT COUNT(*) FROM visits WHERE " + "INTERVAL " * 5000 + "member",
        "SELECT COUNT(*) FROM visits WHERE " + "if " * 5000 + "member",
        "SELECT SUM(" + "CASE WHEN member THEN " * 5000 + "1" + " END" * 5000 + ") FROM visits",
        "SELECT COUNT(*) FROM visits WHERE city = '" + "a" * 1_000_000 + "'",
        "SELECT age + age AS a0, "
        + ", ".join(f"a{i} + a{i} AS a{i + 1}" for i in range(60))
        + ", COUNT(*) FROM visits",
        "SELECT " + ", ".join(f"SUM(age + {i})" for i in range(70)) + " FROM visits",
    ],
    ids=lambda text: text[:50],
)
def test_monsters_are_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        ask(text)


@pytest.mark.parametrize(
    "text", ["", "  ", ";", "--", "/*", "'", '"', "$$", "\x00", "(", ")", "SELECT", "\ud800", None, 3]
)
def test_no_query_at_all(text: object) -> None:
    with pytest.raises(QueryRefused):
        ask(text)  # type: ignore[arg-type]


def test_long_chains_of_conditions_are_fine() -> None:
    report = ask("SELECT COUNT(*) FROM visits WHERE " + " AND ".join(f"age <> {i}" for i in range(1000)))
    assert report.child.predicate is not None
    report = ask("SELECT COUNT(*) FROM visits HAVING " + " OR ".join(f"COUNT(*) = {i}" for i in range(1000)))
    assert report.having is not None


def test_any_text_gives_a_plan_or_a_refusal() -> None:
    """Scrambled queries never fail in another way, whatever the parser underneath makes of them."""
    draw = random.Random(3)
    good = [query for each in blocks("same.sql") for query in each]
    seeds = good * 3 + [query for query, _ in pairs("refused.sql")]
    words = sorted({word for query in seeds for word in query.split()})
    outcomes = [outcome(" ".join(scrambled(draw.choice(seeds).split(), words, draw))) for _ in range(800)]
    assert all(outcomes)
    assert outcomes.count("a plan") > 40
    assert len(set(outcomes)) > 40


def scrambled(query: list[str], words: list[str], draw: random.Random) -> list[str]:
    for _ in range(draw.randrange(1, 3)):
        place = draw.randrange(len(query) + 1)
        query[place : place + draw.randrange(2)] = draw.choice(([], [draw.choice(words)]))
    return query


def outcome(text: str) -> str:
    try:
        ask(text)
    except QueryRefused as refusal:
        return str(refusal)
    return "a plan"


def refusal(sql, *tables):
    with pytest.raises(QueryRefused) as caught:
        parse(sql, {table.name: table for table in tables})
    return str(caught.value)


def test_suggestions_can_be_followed_to_the_letter():
    fees = PrivateTable(
        "fees",
        source="fees.parquet",
        unit=PrivacyUnit.row(),
        schema={"Gebühr in €": Float(), "order": Text(), "day": Date(), "n": Int()},
    )
    quoted = refusal('SELECT "Gebühr in €", COUNT(*) FROM fees GROUP BY 1', fees)
    assert "enum" not in quoted.lower()
    assert 'WHERE "Gebühr in €" IN (1, 2, 3)' in quoted
    steps = 'FLOOR(LEAST(GREATEST("Gebühr in €", LOW), HIGH) / 10) * 10'
    assert steps in quoted
    assert refusal(f"SELECT {steps}, COUNT(*) FROM fees GROUP BY 1", fees).endswith("in the place of HIGH.")
    steps = steps.replace("LOW", "0").replace("HIGH", "100")
    parse(f"SELECT {steps}, COUNT(*) FROM fees GROUP BY {steps}", {"fees": fees})
    parse(
        'SELECT "Gebühr in €", COUNT(*) FROM fees WHERE "Gebühr in €" IN (1, 2, 3) GROUP BY 1', {"fees": fees}
    )
    parse("SELECT \"order\", COUNT(*) FROM fees WHERE \"order\" IN ('a', 'b') GROUP BY 1", {"fees": fees})
    assert 'GREATEST("Gebühr in €", LOW)' in refusal('SELECT SUM("Gebühr in €") FROM fees', fees)
    assert 'Did you mean "Gebühr in €"?' in refusal("SELECT SUM(Gebühr) FROM fees", fees)
    called = PrivateTable(
        "t", source="t", unit=PrivacyUnit.row(), schema={"Income (EUR)": Int(), "comment": Text()}
    )
    assert 'Write "Income (EUR)", with its double quotes.' in refusal(
        "SELECT SUM(Income (EUR)) FROM t", called
    )
    assert 'Did you mean "Income (EUR)"?' in refusal("SELECT SUM(Income) FROM t", called)
    wide = PrivateTable(
        "t", source="t", unit=PrivacyUnit.row(), schema={f"q{i}": Int() for i in range(1, 1015)}
    )
    assert "q11, q12 and 1,002 more. Others" in refusal("SELECT COUNT(email) FROM t", wide)


def test_functions_are_named_as_they_were_typed():
    table = PrivateTable("t", source="t.parquet", unit=PrivacyUnit.row(), schema={"d": Date()})
    typed = refusal("SELECT COUNT(*) FROM t WHERE strftime(d, '%Y') = '2020'", table)
    assert typed.startswith("strftime is not")
    assert "TIME_TO_STR" not in typed
    now = refusal("SELECT COUNT(*) FROM t WHERE Now() > d", table)
    assert now.startswith("Now is not")
    assert "POW" not in now
    assert "Write the day itself, DATE '2024-01-31'" in now
    assert "sfumato functions" in refusal("SELECT COUNT(*) FROM t WHERE frobnicate(d) > 1", table)
    assert "LENGTH" in refusal("SELECT COUNT(*) FROM t WHERE lenght('a') > 1", table)


def test_examples_name_the_declared_unit():
    table = PrivateTable("stays", source=None, unit=PrivacyUnit("patient"), schema={"age": Int(0, 99)})
    told = refusal("SELECT AVG(age) FROM (SELECT age FROM stays LIMIT 3)", table)
    assert "PARTITION BY patient ORDER BY" in told
    assert "SELECT DISTINCT patient FROM b" in refusal(
        "SELECT COUNT(*) FROM stays WHERE EXISTS (SELECT 1)", table
    )
    assert "user_id" in refusal("SELECT COUNT(*) FROM stays WHERE EXISTS (SELECT 1)", BY_ROW)
    shops = PrivateTable("shops", source=None, unit=PrivacyUnit("owner"), schema={"age": Int(0, 99)})
    assert "PARTITION BY owner" in refusal(
        "SELECT AVG(age) FROM (SELECT age FROM shops LIMIT 3)", table, shops
    )
