"""`sf.connect`: the same questions in process and over HTTP, at a server that really runs."""

import datetime
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

import sfumato as sf
from served import known, started
from sfumato.client import RemoteQuery, RemoteSession
from sfumato.errors import SfumatoError
from sfumato.plan.prices.terms import Terms
from sfumato.server.house import House
from sfumato.server.http.app import make_app
from sfumato.session.carried.answers import unpack_quote

GUIDE = Path(__file__).parents[2] / "docs" / "server.md"
ROWS, DAY = 400, datetime.date(2026, 1, 1)
CITIES = pa.table({"city": ["Lyon", "Nice", "Bonn"], "land": ["FR", "FR", "DE"], "rank": [1, 2, 1]})


def visits(unit=None, **more):
    """A table in which units have several rows."""
    data = pa.table(
        {
            "user_id": [row // 3 for row in range(ROWS)],
            "country": ["FR", "DE"] * (ROWS // 2),
            "city": ["Lyon", "Nice", "Bonn", "Oulu"] * (ROWS // 4),
            "amount": [float(row % 50) for row in range(ROWS)],
            "age": [20 + row % 60 for row in range(ROWS)],
            "free": [float(row % 7) for row in range(ROWS)],
            "day": [DAY + datetime.timedelta(days=row % 90) for row in range(ROWS)],
            "seen": [datetime.datetime(2026, 1, 1 + row % 28, row % 24) for row in range(ROWS)],
        }
    )
    return sf.PrivateTable(
        "visits",
        source=data,
        unit=unit or sf.PrivacyUnit("user_id", max_groups=2, max_rows=3),
        schema={
            "country": sf.Enum("FR", "DE"),
            "city": sf.Text(),
            "amount": sf.Float(0, 200),
            "age": sf.Int(18, 99),
            "free": sf.Float(),
            "day": sf.Date("2026-01-01", "2026-03-31"),
            "seen": sf.Timestamp(),
        },
        **more,
    )


def cities():
    return sf.PublicTable(
        "cities",
        source=CITIES,
        schema={"city": sf.Text(), "land": sf.Text(), "rank": sf.Int(1, 3)},
        key="city",
    )


class Both:
    """One analyst at two doors: in process, and over HTTP."""

    def __init__(self, place, url, name="ada"):
        self.place, self.url = place, url
        self.local, self.remote = place.session(name), sf.connect(url, token=f"token-of-{name}")

    def same(self, ask):
        """What both give, or how both refuse, as text that can be compared."""
        return seen(lambda: ask(self.local)), seen(lambda: ask(self.remote))


def seen(ask):
    try:
        found = ask()
    except Exception as error:
        return type(error), str(error), getattr(error, "reason", ""), getattr(error, "fix", "")
    if isinstance(found, sf.session.Release):
        return read(found)
    return [
        *map(str, (type(found).__name__, found)),
        *(repr(getattr(found, name, None)) for name in ("loss", "extras", "report")),
        *(getattr(found, name)() for name in SHOWN if hasattr(found, name)),
    ]


SHOWN = ("to_dict", "_repr_html_", "error")


def read(release):
    """All that can be read off a release, again and again."""
    kinds, own = {}, release.receipt.analyst == "ada"
    for kind in ("covering", "noise", "fitted"):
        try:
            kinds[kind] = release.interval(Fraction(4, 5), kind=kind)
        except SfumatoError as error:
            kinds[kind] = str(error)
    return [
        str(release),
        release._repr_html_(),
        release.table,
        release.error(0.9),
        kinds,
        release.touched(),
        release.to_pandas(errors=True).to_csv(),
        release.receipt.to_dict() if own else release.receipt.number,  # others' are told of beside the data
        release.receipt if own else release.receipt.price,
        release.quote.to_dict(),
        dict(release.counted),
        dict(release.first),
        release.epsilon,
        release.state,
        release.nothing,
        release.free,
    ]


@contextmanager
def doors(*tables, budget=None, ledger=None):
    budget = budget or sf.Budget(1000, "1e-6")
    with sf.Session(*tables, budget=budget, ledger=ledger) as session:
        place = House(session)
        with started(make_app(place, known)) as url:
            both = Both(place, url)
            with both.remote:
                yield both


@pytest.fixture(scope="module")
def plain():
    with doors(visits(), cities()) as both:
        yield both


c = sf.col
TEXTS = [
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT country, COUNT(*) AS n, AVG(amount) AS m, SUM(age) AS s FROM visits GROUP BY country",
    "SELECT country, COUNT(DISTINCT user_id) AS u FROM visits GROUP BY country ORDER BY u DESC LIMIT 1",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city HAVING COUNT(*) > 3",
    "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1",
    "SELECT MEDIAN(age) AS m, MAX(amount) AS top, STDDEV(age) AS sd FROM visits WHERE amount BETWEEN 3 AND 9",
    "SELECT c.land, c.city, COUNT(*) AS n FROM visits v JOIN cities c ON v.city = c.city GROUP BY 1, 2",
    "SELECT COUNT(*) AS n FROM (SELECT user_id, SUM(amount) AS a FROM visits GROUP BY user_id) WHERE a > 10",
    "SELECT country, age >= 40 AS old, COUNT(*) AS n FROM visits GROUP BY ROLLUP (country, 2)",
    "SELECT country, COUNT(*) AS n, DP_INTERVAL_LOW(n, 0.9) AS low FROM visits GROUP BY country",
    "SELECT country, SUM(age) / COUNT(*) AS r, RANK() OVER (ORDER BY SUM(age)) FROM visits GROUP BY country",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon=0.25, max_groups_contributed=1) "
    "country, COUNT(*) AS n FROM visits GROUP BY country",
    "SELECT EXTRACT(HOUR FROM seen) AS h, COUNT(*) AS n FROM visits GROUP BY h",
]
TERMS = [
    {"epsilon": 0.3},
    {"epsilon": "1/3", "delta": "1e-7", "confidence": 0.9},
    {"epsilon": Decimal("0.7"), "mechanism": "gaussian", "confidence": Fraction(99, 100)},
    {"error": 30},
    {"error": {"n": 25.5}, "confidence": "0.8"},
    {"epsilon": 2, "touched": True},
    {"epsilon": 1, "bounding": "choose"},
    {"epsilon": 1, "bounds": "auto"},
    {"epsilon": 1, "profile": True},
    {},
    {"epsilon": 1e9},
]


def some(terms, place):
    """A few of the terms, others for each place."""
    return [terms[(place * 3 + 4 * step) % len(terms)] for step in range(3)]


@pytest.mark.parametrize("place", range(len(TEXTS)))
def test_a_quote_is_the_same_at_both_doors(plain, place):
    assert plain.remote.sql(TEXTS[place]).report == plain.local.sql(TEXTS[place]).report
    for terms in some(TERMS, place):
        here, there = plain.same(lambda session, terms=terms: session.sql(TEXTS[place]).quote(**terms))
        assert here == there, terms


@pytest.mark.stats
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_quotes_and_answers_on_all_terms_are_the_same_at_both_doors(plain, text):
    for terms in TERMS:
        here, there = plain.same(lambda session, terms=terms: session.sql(text).quote(**terms))
        assert here == there, terms
        for _ in range(2):  # a profile that was bought leaves more of the same price to the second
            seen(lambda terms=terms: plain.remote.sql(text).release(**terms))
        here, there = plain.same(lambda session, terms=terms: session.sql(text).release(**terms))
        assert here == there, terms


@pytest.mark.parametrize("place", range(len(TEXTS)))
def test_an_answer_that_was_paid_over_http_is_read_alike_at_both_doors(plain, place):
    terms = ({"epsilon": 0.3}, {"epsilon": 2, "delta": "1e-8", "touched": True})[place % 2]
    first = seen(lambda: plain.remote.sql(TEXTS[place]).release(**terms))
    here, there = plain.same(lambda session: session.sql(TEXTS[place]).release(**terms))
    assert here == there
    if len(first) > 4:
        assert first[2:9] == here[2:9]
        assert here[-1]  # free


QUESTIONS = [
    lambda t: t.agg(n=sf.count()),
    lambda t: t.filter(c("amount") > 5, c("city").is_in(["Lyon", "Nice"])).group_by("city").agg(n=sf.count()),
    lambda t: t.with_columns(old=c("age") >= 65).group_by("old").agg(sf.mean("amount").alias("m")),
    lambda t: t.group_by("country").agg(r=sf.sum("amount") / sf.count(), k=2 * sf.std("age") - 1).sort("r"),
    lambda t: t.group_by(sf.Keys(city=["Lyon"]), big=c("amount").clip(0, 20).round() > 10).agg(n=sf.count()),
    lambda t: t.group_by(sf.Keys.of(("country", "city"), [("FR", "Lyon"), ("DE", "Nice")])).agg(n=sf.count()),
    lambda t: t.value_counts("country").head(1),
    lambda t: t.value_counts(c("day").dt.month().alias("month"), sort=False, name="rows"),
    lambda t: t.crosstab("country", c("age") // 20 * 20).filter(c("count") > 1),
    lambda t: t.histogram("amount", 5),
    lambda t: t.histogram("free", [0, 2.5, 7]),
    lambda t: t.histogram("age", range(20, 80, 20)),
    lambda t: t.unique("city"),
    lambda t: t.describe("age", "amount"),
    lambda t: t.join("cities", on="city").group_by("land").agg(n=sf.count()),
    lambda t: t.join("cities", left_on=["city"], right_on=["city"], how="left").agg(n=sf.count("rank")),
    lambda t: t.filter(c("day") >= DAY, c("seen") < datetime.datetime(2026, 1, 20)).agg(
        q=sf.quantile("age", "0.3"), u=sf.count_distinct("user_id"), cov=sf.covar("age", "amount"),
        r=sf.corr("age", "amount"), many=sf.count_if(c("age") > 30), g=sf.geometric_mean("age"),
        h=sf.harmonic_mean("age"), v=sf.var("amount", sample=False), top=sf.max("age"), mid=sf.median("age"),
    ),
    lambda t: t.group_by("country").agg(a=sf.mean(c("amount").where(c("age") > 30).fill_null(0)).clip(0, 50)),
]  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS, ids=range(len(QUESTIONS)))
def test_questions_in_python_are_the_same_at_both_doors(plain, question):
    asked = question(plain.remote.table("visits"))
    assert isinstance(asked, RemoteQuery)
    assert repr(asked) == repr(question(plain.local.table("VISITS")))
    here, there = plain.same(lambda session: question(session.table("visits")).quote(epsilon=1))
    assert here == there
    asked.release(epsilon=1)
    here, there = plain.same(lambda session: question(session.table("visits")).release(epsilon=1))
    assert here == there
    assert here[-1]


REFUSED = [
    lambda s: s.sql("SELECT * FROM visits"),
    lambda s: s.sql("SELECT nothing FROM visits"),
    lambda s: s.sql("SELECT COUNT(*) FROM visit"),
    lambda s: s.sql("DROP TABLE visits"),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits WHERE age > ?"),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits WHERE age > ?", ["x", 2]),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits WHERE day > ?", [object()]),
    lambda s: s.sql("SELECT SUM(free) AS n FROM visits").quote(1),
    lambda s: s.sql("SELECT SUM(free) AS n FROM visits").release(1),
    lambda s: s.sql("EXPLAIN SELECT COUNT(*) AS n FROM visits").release(1),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(1, error=3),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release("0,3"),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(-1),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(True),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(float("nan")),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(10**6),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(1, delta=3),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(1, confidence=1),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(1, mechanism="cauchy"),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(1, bounding="all"),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").release(1, bounds="some"),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").quote(error={"m": 3}),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").quote(error={"n": "x"}),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").quote(error={"n": True}),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").quote(error={"n": [3]}),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").quote(error={"n": -3}),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").quote(error={}),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").quote(error=float("inf")),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").quote(error=object()),
    lambda s: s.sql("SELECT AVG(age) AS n FROM visits").quote(error=1),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").sort("m"),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").head(-1),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits").collect(),
    lambda s: s.sql("SELECT COUNT(*) AS n FROM visits")[0],
    lambda s: s.table("cities"),
    lambda s: s.table("visit"),
    lambda s: s.table("visits").filter("age > 3"),
    lambda s: s.table("visits").filter(c("agee") > 3),
    lambda s: s.table("visits").filter(c("age").apply("nonsense") > 3).agg(n=sf.count()),
    lambda s: s.table("visits").filter(c("city") > 3).agg(n=sf.count()),
    lambda s: s.table("visits").group_by("amount").agg(n=sf.count()),
    lambda s: s.table("visits").agg(sf.count()),
    lambda s: s.table("visits").agg(n=sf.sum("free")),
    lambda s: s.table("visits").histogram("age", 10**9),
    lambda s: s.table("visits").join("nowhere", on="city"),
    lambda s: s.table("visits").unique("country"),
    lambda s: s.table("visits").sort("age"),
    lambda s: s.table("visits").groupby("age"),
    lambda s: s.table("visits").age,
    lambda s: s.table("visits")["age"],
    lambda s: len(s.table("visits")),
    lambda s: s.balance("nowhere"),
    lambda s: s.balance(window="2026-03"),
    lambda s: s.at("2026"),
    lambda s: s.reread(10**6),
    lambda s: s.reread("x"),
    lambda s: s[0],
]


@pytest.mark.parametrize("ask", REFUSED, ids=range(len(REFUSED)))
def test_a_refusal_is_the_same_exception_with_the_same_words(plain, ask):
    before = plain.local.balance().spent
    here, there = plain.same(ask)
    assert here == there
    assert issubclass(here[0], SfumatoError)
    assert plain.local.balance().spent == before


@contextmanager
def unreadable(folder):
    """A file in which some cells are not what is declared, with how many of them bought already."""
    lines = [f"{row // 3},{'old' if row % 9 == 0 else row % 60}" for row in range(300)]
    (folder / "visits.csv").write_text("user_id,age\n" + "\n".join(lines) + "\n")
    unit = sf.PrivacyUnit("user_id", max_rows=2)
    table = sf.PrivateTable("visits", source=folder / "visits.csv", unit=unit, schema={"age": sf.Int(0, 99)})
    with doors(table) as both:
        both.local.profile("visits", 5)
        both.local.unreadable("visits", "age", 5)
        yield both


@contextmanager
def profiled():
    """A table of which it is known in how many groups units are."""
    with doors(visits(sf.PrivacyUnit("user_id", max_groups=1))) as both:
        both.local.profile("visits", 5)
        both.local.profile("visits", 5, by="country")
        assert both.local.sql(ASKED[1][0]).release(epsilon=1, bounding="choose").groups is not None
        yield both


def by_column(last):
    return sf.State(column="day", last=last)


MONTHS = sf.PrivacyUnit("user_id", max_groups=2, max_rows=3, window="month", time="day")
GROWING = {"january": by_column("2026-01-31"), "march": by_column("2026-03-31")}
HOUSES = {
    "zcdp": lambda _: doors(visits(), budget=sf.Budget(50, "1e-6", "zcdp")),
    "gaussian": lambda _: doors(visits(), budget=sf.Budget(50, "1e-6", "gaussian")),
    "profile": lambda _: doors(visits(sf.PrivacyUnit("user_id", max_groups=2, max_rows="auto", ceiling=20))),
    "declared": lambda _: doors(visits(profile={2: 100, 5: 60})),
    "exchange": lambda _: doors(visits(sf.PrivacyUnit.row(adjacency="exchange"), rows=ROWS)),
    "sized": lambda _: doors(visits(size=ROWS // 3)),
    "months": lambda _: doors(visits(MONTHS), budget=sf.Budget(50, "1e-6", each="month")),
    "growing": lambda _: doors(visits(states=GROWING)),
    "unreadable": unreadable,
    "groups": lambda _: profiled(),
}
ASKED = [
    ("SELECT AVG(age) AS m, COUNT(*) AS n FROM visits", {"epsilon": 1}),
    ("SELECT country, SUM(age) AS s FROM visits GROUP BY country", {"epsilon": 2, "bounding": "choose"}),
    ("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", {"epsilon": 3, "profile": True}),
    ("SELECT SUM(free) AS s FROM visits", {"epsilon": 3, "bounds": "auto"}),
    ("SELECT COUNT(*) AS n FROM visits WHERE day BETWEEN '2026-02-01' AND '2026-02-28'", {"epsilon": 1}),
    ("SELECT COUNT(*) AS n FROM visits", {"error": 20}),
    ("SELECT MIN(age) AS a, MEDIAN(age) AS m, QUANTILE(age, 0.9) AS q FROM visits", {"epsilon": 2}),
]


OFTEN = {"zcdp": (0, 6), "profile": (2, 3), "months": (4,), "unreadable": (0,), "groups": (1,)}


@pytest.mark.parametrize("name", OFTEN)
def test_what_is_known_beside_an_answer_travels_with_it(name, tmp_path):
    with HOUSES[name](tmp_path) as both:
        assert [is_answered_alike(both, *ASKED[place]) for place in OFTEN[name]] == [True] * len(OFTEN[name])


@pytest.mark.stats
@pytest.mark.parametrize("name", HOUSES)
def test_everything_is_answered_alike_in_every_house(name, tmp_path):
    with HOUSES[name](tmp_path) as both:
        answered = [is_answered_alike(both, text, terms) for text, terms in ASKED]
        assert any(answered)


def is_answered_alike(both, text, terms):
    """Whether there is an answer; quotes, balances, answers and refusals are the same at both doors."""
    for ask in (
        lambda session: session.sql(text).quote(**terms),
        lambda session: session.balance().to_dict(),
    ):
        here, there = both.same(ask)
        assert here == there, text
    first = seen(lambda: both.remote.sql(text).release(**terms))
    here, there = both.same(lambda session: session.sql(text).release(**terms))
    assert here == there, text
    assert len(first) <= 4 or first[2:9] == here[2:9]
    return len(first) > 4


def test_states_of_a_table_are_asked_at_both_doors():
    with doors(visits(states=GROWING)) as both:
        text = "SELECT COUNT(*) AS n FROM visits"
        both.remote.at("january").sql(text).release(epsilon=1)
        for ask in (
            lambda session: session.at("january").sql(text).release(epsilon=1),
            lambda session: session.at("january", table="visits").table("visits").agg(n=sf.count()).quote(1),
            lambda session: session.sql(text).quote(epsilon=1),
            lambda session: session.at("june"),
        ):
            here, there = both.same(ask)
            assert here == there
        assert both.remote.at("january").sql(text).release(epsilon=1).state == "january"


def test_limits_and_answers_of_others_are_told_alike(tmp_path):
    with doors(visits(), ledger=tmp_path / "visits.ledger") as both:
        sf.Steward(both.place.ledger).limit("visits", "ada", sf.Budget(3, "1e-6"), reason="a course")
        text = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
        both.place.session("bob").sql(text).release(epsilon=2)
        here, there = both.same(lambda session: session.sql(text).quote(epsilon=2))
        assert here == there
        assert "Somebody else" in here[1]
        first = both.remote.sql(text).release(epsilon=2)
        assert first.free
        assert first.counted == {"epsilon": 2, "delta": 0}
        assert "somebody else paid" in first.paid
        for ask in (
            lambda session: session.sql(text).release(epsilon=2),
            lambda session: session.sql(text).release(epsilon=4),
            lambda session: session.balance(),
            lambda session: session.balance("visits").retrospective,
        ):
            here, there = both.same(ask)
            assert here == there


def test_a_profile_that_somebody_else_bought_counts_alike(tmp_path):
    unit = sf.PrivacyUnit("user_id", max_groups=2, max_rows="auto", ceiling=20)
    with doors(visits(unit), ledger=tmp_path / "visits.ledger") as both:
        both.place.session("bob").sql(TEXTS[0]).release(epsilon=2)
        here, there = both.same(lambda session: session.sql(TEXTS[0]).quote(epsilon=2))
        assert here == there
        first = both.remote.sql(TEXTS[0]).release(epsilon=2)
        assert first.counted["epsilon"] == both.local.balance().spent == 2


def test_parameters_of_every_kind_travel(plain):
    text = "SELECT COUNT(*) AS n FROM visits WHERE {}"
    for condition, values in (
        ("age > ? AND amount < $2", [30, 12.5]),
        ("city = :city", {"city": "Lyon"}),
        ("day >= @day AND seen < @then", {"day": DAY, "then": datetime.datetime(2026, 1, 9, 8)}),
        ("amount > ?", (Decimal("1.25"),)),
    ):
        here, there = plain.same(lambda s, w=condition, v=values: s.sql(text.format(w), v).quote(epsilon=1))
        assert here == there


def test_an_answer_is_read_again_by_its_receipt_and_by_nobody_else(plain):
    text = "SELECT country, COUNT(*) AS n FROM visits WHERE age > 33 GROUP BY country"
    paid = plain.remote.sql(text).release(epsilon="0.5")
    before = plain.local.balance().spent
    here, there = plain.same(lambda session: session.reread(paid.receipt))
    assert here == there
    assert here[2] == paid.table
    number = paid.receipt.number
    ask = {"headers": {"Authorization": "Bearer token-of-ada"}, "timeout": 20}
    found = httpx.get(f"{plain.url}/api/receipts/{number}/answer?confidence=0.9", **ask)
    assert [row["n"] for row in found.json()["rows"]] == paid.table["n"].to_pylist()
    assert found.json()["free"]
    ask["headers"]["Accept"] = "application/vnd.apache.arrow.stream"
    arrow = httpx.get(f"{plain.url}/api/receipts/{number}/answer", **ask)
    assert pa.ipc.open_stream(arrow.content).read_all()["n"] == paid.table["n"]
    replies = []
    for token in ("token-of-bob", "token-of-sam", "token-of-eve"):
        ask = {"headers": {"Authorization": f"Bearer {token}"}, "timeout": 20}
        for path in ("receipts/{}/answer", "session/receipts/{}"):
            replies += [
                httpx.get(f"{plain.url}/api/{path.format(which)}", **ask) for which in (number, 10**9)
            ]
    assert {(reply.status_code, reply.text) for reply in replies} == {(404, replies[0].text)}
    bob = sf.connect(plain.url, token="token-of-bob")
    with bob, pytest.raises(sf.errors.InvalidParameter, match="no receipt"):
        bob.reread(paid.receipt)
    assert plain.local.balance().spent == before


def test_receipts_and_balances_are_the_same_to_the_last_digit(plain):
    plain.remote.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 21").release(epsilon="1/7")
    theirs = {str(each): each for each in plain.local.releases() if each.analyst == "ada"}
    mine = plain.remote.releases()
    assert [str(each) for each in mine] == [*theirs]
    assert mine == [*theirs.values()]
    assert mine[-1].loss == plain.local.releases()[-1].loss
    assert plain.remote.releases(after=mine[0], most=1) == mine[1:2]
    assert plain.remote.balance() == plain.local.balance()
    assert plain.remote.balance("visits").retrospective == plain.local.balance().retrospective


def test_a_process_of_an_analyst_has_neither_rows_nor_paths_nor_keys(plain):
    session = plain.remote
    assert isinstance(session, RemoteSession)
    assert {table.source for table in session.tables.values()} == {"on the server"}
    assert not {"ledger", "vault", "_engine", "_attached"} & {*dir(session), *vars(session)}


def test_the_example_of_the_guide_runs(plain):
    (block,) = re.findall(r"^```py\n(.*?)^```", GUIDE.read_text(), flags=re.S | re.M)
    given = block.replace("https://answers.example.org", plain.url).replace("sfu_…", "token-of-ada")
    assert given.count(plain.url) == 1
    namespace = {}
    exec(compile(given, "docs/server.md", "exec"), namespace)
    namespace["s"].close()
    assert namespace["r"].table.column_names == ["country", "n", "spend"]


@pytest.mark.stats
def test_a_picture_is_drawn_here(plain, tmp_path):
    release = plain.remote.sql(TEXTS[1]).release(epsilon=0.3)
    release.plot(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_text().startswith("<?xml")


def test_several_threads_pay_once(plain):
    found = []
    text = "SELECT COUNT(*) AS n FROM visits WHERE age < 77"
    asking = [
        threading.Thread(
            target=lambda: found.append(plain.remote.sql(text).release(epsilon=1).table["n"][0].as_py())
        )
        for _ in range(6)
    ]
    before = plain.local.balance().entries
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    assert plain.local.balance().entries == before + 1


def test_what_a_server_tells_of_its_tables_holds_no_path_and_no_row(tmp_path):
    folder = tmp_path / "hidden"
    folder.mkdir()
    for month in ("january", "march"):
        (folder / f"{month}.csv").write_text("user_id,place\n1,Zanzibar\n")
    states = {month: sf.State([f"{month}.csv"]) for month in ("january", "march")}
    unit, schema = sf.PrivacyUnit("user_id"), {"place": sf.Text()}
    table = sf.PrivateTable("visits", source=folder, unit=unit, schema=schema, states=states)
    with doors(table) as both:
        found = httpx.get(f"{both.url}/api/session", headers={"Authorization": "Bearer token-of-ada"}).text
        assert '"place"' in found
        assert not any(word in found for word in ("hidden", ".csv", "Zanzibar", str(tmp_path)))
        text = "SELECT COUNT(*) AS n FROM visits"
        here, there = both.same(lambda session: session.sql(text).quote(epsilon=1))
        assert here[1] == there[1]
        assert both.remote.sql(text).release(epsilon=1).state == "march"


def test_an_auditor_pays_for_nothing(plain):
    before = plain.local.balance().spent
    with sf.connect(plain.url, token="token-of-eve") as eve:
        assert eve.sql(TEXTS[0]).quote(epsilon=1).epsilon == 1
        with pytest.raises(sf.errors.AccessDenied, match="may not release"):
            eve.sql(TEXTS[0]).release(epsilon=1)
    assert plain.local.balance().spent == before


def test_a_key_for_another_question_is_refused(plain):
    headers = {"Authorization": "Bearer token-of-ada", "Idempotency-Key": "one"}
    body = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE age > 44", "epsilon": "1"}
    path = f"{plain.url}/api/session/release"
    assert httpx.post(path, json=body, headers=headers).json()["free"] is False
    assert httpx.post(path, json=body, headers=headers).json()["free"]
    before = plain.local.balance().spent
    found = httpx.post(path, json=body | {"epsilon": "2"}, headers=headers)
    assert found.status_code == 422
    assert "Idempotency-Key" in found.json()["error"]["message"]
    assert plain.local.balance().spent == before


def test_a_quote_that_cannot_be_made_again_is_not_shown(plain):
    asked = plain.remote.sql("SELECT SUM(age) AS s FROM visits")
    sent = plain.remote.connection.post("/api/session/quote", asked._body(Terms.of(1)))
    assert unpack_quote(sent, plain.remote.tables).epsilon == 1
    other = {**plain.remote.tables, "visits": visits(sf.PrivacyUnit("user_id", max_groups=2, max_rows=9))}
    with pytest.raises(sf.errors.ServerUnreachable, match="connect anew"):
        unpack_quote(sent, other)


def test_of_an_answer_that_another_paid_nothing_is_told_but_the_answer(plain):
    text = "SELECT country, COUNT(*) AS n FROM visits WHERE age > 41 GROUP BY country"
    paid = plain.remote.sql(f"{text} -- asked by ada").release(epsilon=0.125)
    with sf.connect(plain.url, token="token-of-bob") as bob:
        read = bob.sql(text).release(epsilon=0.125)
    assert read.free
    assert read.table.equals(paid.table)
    receipt = read.receipt
    assert (receipt.number, receipt.price) == (paid.receipt.number, paid.receipt.price)
    assert (receipt.analyst, receipt.totals, receipt.mac) == (None, {}, "")
    assert receipt.time.year == 1970
    assert "ada" not in str(receipt.to_dict())
    assert paid.receipt.analyst == "ada"
    assert paid.receipt.totals


def test_the_library_is_loaded_when_it_is_used():
    code = "import sys, sfumato as sf; sf.connect; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
