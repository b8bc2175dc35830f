"""How FROM is read: the sources of plans, what is the same question, what is refused and in which words."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import QueryRefused
from sfumato.plan.expressions.tree import Column, call, literal
from sfumato.plan.prices.recipe import measured_of
from sfumato.plan.questions.nodes import Report, Where
from sfumato.plan.questions.relations import rows_of
from sfumato.plan.questions.sources import (
    AggregateCall,
    Block,
    Joined,
    PerUnit,
    Public,
    Scan,
    United,
    WindowCall,
    Windowed,
)
from sfumato.schema import Bool, Date, Enum, Float, Int, PrivacyUnit, PrivateTable, PublicTable, Text
from sfumato.sql.read.parse import parse

FIXTURES = Path(__file__).parent / "fixtures"


def private(name: str, unit: PrivacyUnit, /, *, dataset: str | None = None, **schema: object) -> PrivateTable:
    return PrivateTable(name, source=None, unit=unit, dataset=dataset, schema=schema)  # type: ignore[arg-type]


def public(name: str, key: str | None, /, **schema: object) -> PublicTable:
    return PublicTable(name, source=None, key=key, schema=schema)  # type: ignore[arg-type]


TABLES = {
    each.name: each
    for each in (
        private(
            "visits",
            PrivacyUnit("user_id", max_groups=3),
            dataset="shop",
            country=Enum("FR", "DE"),
            city=Text(),
            amount=Float(0, 200),
            age=Int(18, 99),
            day=Date("2024-01-01", "2024-12-31"),
            member=Bool(),
            region=Int(0, 9),
            free=Float(),
        ),
        private(
            "people", PrivacyUnit("id"), dataset="shop", age=Int(0, 120), sex=Enum("F", "M"), region=Int(0, 9)
        ),
        private("pets", PrivacyUnit("pet"), age=Int(0, 30)),
        private("rows", PrivacyUnit.row(), age=Int(0, 120), region=Int(0, 9)),
        public("regions", "region", region=Int(0, 9), name=Enum("N", "S"), big=Bool()),
        public("codes", None, code=Enum("FR", "DE", "IT"), zone=Enum("A", "B")),
        private(
            "customer",
            PrivacyUnit("c_custkey"),
            c_custkey=Int(),
            c_nationkey=Int(0, 24),
            c_mktsegment=Enum("AUTO", "BUILD"),
        ),
        private(
            "orders",
            PrivacyUnit.via("customer", on={"o_custkey": "c_custkey"}),
            o_orderkey=Int(),
            o_custkey=Int(),
            o_orderdate=Date("1992-01-01", "1998-12-31"),
        ),
        private(
            "lineitem",
            PrivacyUnit.via("orders", on={"l_orderkey": "o_orderkey"}),
            l_orderkey=Int(),
            l_extendedprice=Float(0, 1e5),
            l_shipdate=Date("1992-01-01", "1998-12-31"),
        ),
        public("nation", "n_nationkey", n_nationkey=Int(0, 24), n_name=Enum("PERU"), n_regionkey=Int(0, 4)),
        public("region", "r_regionkey", r_regionkey=Int(0, 4), r_name=Enum("ASIA", "EUROPE")),
    )
}


def ask(text: str) -> Report:
    return parse(text, TABLES)


def fingerprint(text: str) -> str:
    report = ask(text)
    return measured_of(report, rows_of(report.child.source, TABLES)).fingerprint


def lines(name: str) -> list[str]:
    text = (FIXTURES / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("--")]


def blocks(name: str) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for line in lines(name):
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [each for each in found if each]


def pairs(name: str) -> list[tuple[str, str]]:
    kept = [line for line in lines(name) if line.strip()]
    return list(zip(kept[::2], kept[1::2], strict=True))


SAME, REFUSED = blocks("shape_same.sql"), pairs("shape_refused.sql")


@pytest.mark.parametrize("queries", SAME, ids=lambda queries: queries[0][:60])
def test_same_question(queries: list[str]) -> None:
    assert len(queries) > 1
    assert len({fingerprint(each) for each in queries}) == 1


def test_different_questions_differ() -> None:
    assert len({fingerprint(queries[0]) for queries in SAME}) == len(SAME)


@pytest.mark.parametrize(("query", "expected"), REFUSED, ids=lambda text: str(text)[:60])
def test_refused(query: str, expected: str) -> None:
    with pytest.raises(QueryRefused) as refusal:
        ask(query)
    assert expected.removeprefix("refused: ") in str(refusal.value)
    assert refusal.value.fix
    assert len(str(refusal.value)) < 320
    assert refusal.value.__cause__ is None


# ── the sources of plans ──


def source_of(text: str) -> object:
    return ask(text).child.source


def test_a_plain_subquery_leaves_the_table() -> None:
    report = ask("SELECT SUM(z) FROM (SELECT amount * 3 AS z FROM visits WHERE member) WHERE z > 6")
    tripled = call("multiply", Column("amount"), literal(3))
    assert report.child.child == Where(
        Scan("visits"), call("and", call("greater", tripled, literal(6)), Column("member"))
    )
    assert report.child.aggregates == (AggregateCall("sum", tripled),)


def test_bounds_are_those_of_the_definition_not_of_the_name() -> None:
    query = "SELECT SUM(amount) FROM (SELECT amount * 1000 AS amount FROM visits)"
    report = ask(query)
    (measured,) = measured_of(report, rows_of(report.child.source, TABLES)).measurements
    assert Fraction(measured.upper, 2**measured.bits) == 200_000
    with pytest.raises(QueryRefused, match="needs bounds"):
        ask("SELECT SUM(amount) FROM (SELECT free AS amount FROM visits)")
    with pytest.raises(QueryRefused, match="needs bounds"):
        ask("SELECT SUM(age) FROM (SELECT user_id, SUM(age) AS age FROM visits GROUP BY user_id)")


def test_per_unit() -> None:
    source = source_of(
        "SELECT country, AVG(LEAST(n, 9)) FROM (SELECT country, COUNT(*) AS n, MAX(age) AS old FROM visits"
        " WHERE member GROUP BY user_id, country HAVING MIN(age) > 20) GROUP BY country"
    )
    assert isinstance(source, PerUnit)
    assert (source.source, source.predicate) == (Scan("visits"), Column("member"))
    assert [each for _, each in source.keys] == [Column("country")]
    calls = {each: name for name, each in source.aggregates}
    assert set(calls) == {AggregateCall("count"), AggregateCall("min", Column("age"))}  # MAX is not looked at
    least = Column(calls[AggregateCall("min", Column("age"))])
    assert source.having == call("greater", least, literal(20))


def test_each_unit_once_is_a_row_each() -> None:
    report = ask("SELECT COUNT(*) FROM (SELECT user_id, COUNT(*) AS n FROM visits GROUP BY user_id)")
    assert rows_of(report.child.source, TABLES).unit.is_row
    report = ask("SELECT COUNT(*) FROM (SELECT DISTINCT user_id, country FROM visits)")
    assert not rows_of(report.child.source, TABLES).unit.is_row


def test_a_join_of_units() -> None:
    source = source_of(
        "SELECT AVG(p.age) FROM visits v JOIN people p ON v.user_id = p.id AND v.region = p.region"
        " AND v.member AND p.sex = 'F' AND v.age < p.age"
    )
    assert source == Joined(
        Block(Scan("visits"), Column("member"), (("age", Column("age")), ("region", Column("region")))),
        Block(
            Scan("people"),
            call("equal", Column("sex"), literal("F")),
            (("age 2", Column("age")), ("region 2", Column("region"))),
        ),
        (("region", "region 2"),),
    )
    assert ask(
        "SELECT COUNT(*) FROM visits v JOIN people p ON v.user_id = p.id AND v.age < p.age"
    ).child.predicate == call("less", Column("age"), Column("age 2"))


def test_what_left_join_does_not_find_is_null_whatever_its_definition() -> None:
    source = source_of(
        "SELECT SUM(m) FROM people LEFT JOIN (SELECT user_id, COALESCE(age, 20) AS m FROM visits"
        " WHERE member) v ON v.user_id = id WHERE sex = 'F'"
    )
    assert isinstance(source, Joined)
    assert source.outer
    assert source.left.predicate == call("equal", Column("sex"), literal("F"))
    assert source.right.predicate == Column("member")
    ((name, definition),) = source.right.columns
    assert definition == call("coalesce", Column("age"), literal(20))
    assert rows_of(source, TABLES).columns[name].nullable


def test_a_condition_on_the_joined_side_stays_outside_of_left_join() -> None:
    report = ask("SELECT COUNT(*) FROM people p LEFT JOIN visits v ON v.user_id = p.id WHERE v.age IS NULL")
    assert report.child.predicate == call("is_null", Column("age 2"))
    assert isinstance(report.child.source, Joined)
    assert report.child.source.right.predicate is None


def test_a_public_table_gives_keys() -> None:
    report = ask("SELECT name, COUNT(*) FROM visits JOIN regions USING (region) GROUP BY name")
    assert [key.values for key in report.child.keys] == [("N", "S")]
    assert isinstance(report.child.source, Joined)
    assert report.child.source.right.source == Public("regions")
    listed = ask(
        "SELECT c, COUNT(*) FROM (SELECT DISTINCT code AS c FROM codes WHERE code <> 'IT') LEFT JOIN visits"
        " ON city = c GROUP BY c"
    )
    assert [key.values for key in listed.child.keys] == [("DE", "FR")]
    assert listed.child.source == Scan("visits")


def test_chains_of_owners() -> None:
    source = source_of(
        "SELECT n_name, SUM(l_extendedprice) FROM customer JOIN orders ON c_custkey = o_custkey"
        " JOIN lineitem ON l_orderkey = o_orderkey JOIN nation ON c_nationkey = n_nationkey"
        " WHERE o_orderdate >= DATE '1994-01-01' GROUP BY n_name"
    )
    assert isinstance(source, Joined)
    inner = source.left.source
    assert isinstance(inner, Joined)
    assert inner.on == (("o_orderkey", "l_orderkey"),)
    first = inner.left.source
    assert isinstance(first, Joined)
    assert first.on == ()  # the pointer to the customer is the unit
    assert first.right.predicate is not None  # conditions are judged before the join
    assert source.right.source == Public("nation")


def test_windows() -> None:
    source = source_of(
        "SELECT COUNT(*) FROM (SELECT day - LAG(day, 2) OVER (PARTITION BY country, user_id"
        " ORDER BY day DESC) AS gap FROM visits WHERE member) WHERE gap > 3"
    )
    assert isinstance(source, Windowed)
    assert (source.source, source.predicate) == (Scan("visits"), Column("member"))
    ((_, made),) = source.columns
    assert made == WindowCall("lag", Column("day"), (Column("country"),), ((Column("day"), True),), 2)
    whole = source_of(
        "SELECT COUNT(*) FROM (SELECT SUM(age) OVER (PARTITION BY user_id ORDER BY day ROWS BETWEEN UNBOUNDED"
        " PRECEDING AND UNBOUNDED FOLLOWING) AS s FROM visits) WHERE s > 3"
    )
    assert isinstance(whole, Windowed)
    assert whole.columns[0][1] == WindowCall("sum", Column("age"))


def test_unions() -> None:
    source = source_of(
        "SELECT AVG(x) FROM (SELECT user_id, age AS x FROM visits WHERE member UNION ALL SELECT id, age FROM"
        " people UNION ALL SELECT user_id, 2 * age FROM visits)"
    )
    assert isinstance(source, United)
    assert [part.source for part in source.parts] == [Scan("visits"), Scan("people"), Scan("visits")]
    assert [part.predicate for part in source.parts] == [Column("member"), None, None]
    assert len({part.columns[0][0] for part in source.parts}) == 1


def test_aliases_never_reach_the_plan() -> None:
    first = fingerprint("SELECT AVG(b.age) FROM visits a JOIN people b ON a.user_id = b.id")
    assert first == fingerprint('SELECT AVG("Ö x".age) FROM visits JOIN people "Ö x" ON user_id = "Ö x".id')
    assert first == fingerprint(
        "WITH q AS (SELECT id AS i, age AS years FROM people)"
        " SELECT AVG(years) FROM visits JOIN q ON user_id = i"
    )


def test_using_is_one_column() -> None:
    assert ask("SELECT COUNT(region) FROM visits JOIN regions USING (region)").child.aggregates == (
        AggregateCall("count", Column("region")),
    )
    assert ask("SELECT COUNT(regions.region) FROM visits JOIN regions USING (region)").child.aggregates == (
        AggregateCall("count", Column("region 2")),
    )
    with pytest.raises(QueryRefused, match="could be"):
        ask("SELECT COUNT(region) FROM visits v JOIN regions r ON v.region = r.region")


def test_a_public_join_leaves_rows_as_units() -> None:
    report = ask("SELECT name, COUNT(*) FROM rows JOIN regions USING (region) GROUP BY name")
    assert rows_of(report.child.source, TABLES).unit.is_row


# ── any text at all ──


@pytest.mark.parametrize(
    "text",
    [
        "WITH " + ", ".join(
            f"t{i} AS (SELECT a.user_id FROM t{i - 1} a JOIN t{i - 1} b ON a.user_id = b.user_id)" if i else
            "t0 AS (SELECT user_id FROM visits)" for i in range(40)
        ) + " SELECT COUNT(*) FROM t39",
        "WITH " + ", ".join(
            f"t{i} AS (SELECT z + z AS z FROM t{i - 1})" if i else "t0 AS (SELECT age AS z FROM visits)"
            for i in range(60)
        ) + " SELECT SUM(z) FROM t59",
        "WITH " + ", ".join(
            f"t{i} AS (SELECT user_id, MAX(z) AS z FROM t{i - 1} GROUP BY user_id)" if i else
            "t0 AS (SELECT user_id, age AS z FROM visits)" for i in range(200)
        ) + " SELECT SUM(LEAST(z, 3)) FROM t199",
        "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT age FROM visits"] * 500) + ")",
        "SELECT COUNT(*) FROM visits v0" + "".join(
            f" JOIN visits v{i} ON v0.user_id = v{i}.user_id" for i in range(1, 300)
        ),
        "SELECT COUNT(*) FROM " + "(" * 30 + "SELECT age FROM visits" + ")" * 30 + " JOIN",
        "WITH a AS (SELECT * FROM a) SELECT COUNT(*) FROM a",
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_monsters_are_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        ask(text)


def test_deep_subqueries_are_fine() -> None:
    text = "visits"
    for _ in range(15):
        text = f"(SELECT * FROM {text})"
    assert ask(f"SELECT COUNT(*) FROM {text}").child.child == Scan("visits")


def test_any_text_gives_a_plan_or_a_refusal() -> None:
    """Scrambled queries never fail in another way, whatever stands in FROM."""
    draw = random.Random(5)
    good = [query for each in SAME for query in each]
    seeds = good * 3 + [query for query, _ in REFUSED]
    words = sorted({word for query in seeds for word in query.split()})
    outcomes = [outcome(" ".join(scrambled(draw.choice(seeds).split(), words, draw))) for _ in range(1000)]
    assert outcomes.count("a plan") > 40
    assert len(set(outcomes)) > 80


def scrambled(query: list[str], words: list[str], draw: random.Random) -> list[str]:
    for _ in range(draw.randrange(1, 4)):
        place = draw.randrange(len(query) + 1)
        query[place : place + draw.randrange(2)] = draw.choice(([], [draw.choice(words)]))
    return query


def outcome(text: str) -> str:
    try:
        fingerprint(text)
    except QueryRefused as refusal:
        return str(refusal)
    return "a plan"
