"""The most common value and the first question above: chosen, paid, free again, and refused unpaid."""

from __future__ import annotations

import datetime
import random
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit import registry
from sfumato.audit.choices import CHOICES
from sfumato.engines import DuckDB
from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter, QueryRefused, UnsupportedLoss
from sfumato.ledger import Steps
from sfumato.loss import PureLoss
from sfumato.mechanisms import PermuteAndFlip
from sfumato.plan.prices.terms import Terms
from sfumato.plan.questions import sensitivity
from sfumato.session import choices
from sfumato.testing import seeded

F = Fraction
CITIES = ("Lyon", "Nice", "Paris", "Brest")
NUMBERS = (40, 25, 10, 0)
LARGE = 10**6


class Watching(DuckDB):
    """Counts what it is asked."""

    def __init__(self):
        super().__init__()
        self.reads = 0

    def fetch(self, statement, **more):
        self.reads += 1
        return super().fetch(statement, **more)


def visits(rows=None, unit=None, **more):
    city = [each for each, many in zip(CITIES, NUMBERS, strict=True) for _ in range(many)]
    source = pa.table(
        {
            "person": list(range(len(city))),
            "city": [*city[:-5], *[None] * 5],
            "ward": ["east"] * 70 + ["west"] * 5,
            "cost": [each % 11 for each in range(len(city))],
        }
    )
    return sf.PrivateTable(
        more.get("name", "visits"),
        source=source if rows is None else rows,
        unit=unit or sf.PrivacyUnit("person"),
        schema={"city": sf.Enum(*CITIES), "ward": sf.Text(), "cost": sf.Int(0, 10)},
    )


@pytest.fixture
def session():
    engine = Watching()
    with sf.Session(visits(), budget=sf.Budget(10 * LARGE, "1e-2"), engine=engine) as opened:
        engine.reads = 0
        yield opened
    engine.close()


def test_the_most_common_is_chosen_paid_and_free_again(session):
    first = session.most_common("city", LARGE)
    assert (first.value, first.free, first.epsilon) == ("Lyon", False, LARGE)
    assert set(first.among) == set(CITIES)  # and not NULL, which is nobody's choice
    assert first.error(0.95) < 1
    assert "Lyon" in str(first)
    assert session.balance().spent == LARGE
    again = session.most_common("city", LARGE - 1)
    assert (again.value, again.free, again.receipt) == ("Lyon", True, first.receipt)
    assert session._engine.reads == 1
    assert first.receipt.purpose.spender == "most common"
    assert str(first.receipt.purpose) == "most common: city of visits"
    better = session.most_common("city", LARGE + 1)
    assert not better.free
    assert session.balance().spent == 2 * LARGE + 1


def test_several_are_chosen_one_after_the_other_in_one_debit(session):
    found = session.most_common("city", 3 * LARGE, count=3)
    assert found.values == ("Lyon", "Nice", "Paris")
    assert [each.kind for each in session.ledger.entries("visits")].count("debit") == 1
    assert session.most_common("city", LARGE, count=3).free
    assert not session.most_common("city", LARGE, count=2).free


def test_a_choice_and_a_table_of_counts_are_two_questions(session):
    counts = session.table("visits").group_by("city").agg(n=sf.count())
    counts.release(epsilon=1)
    assert not session.most_common("city", 1).free
    assert counts.release(epsilon=1).free
    assert session.most_common("city", 1).free


def test_values_of_the_data_are_no_candidates(session):
    with pytest.raises(QueryRefused, match="not public"):
        session.most_common("ward", 1)
    assert session.balance().spent == 0
    assert session._engine.reads == 0
    listed = session.most_common("ward", LARGE, among=["west", "north"])
    assert (listed.value, listed.among) == ("west", ("north", "west"))
    bought = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward").release(
        epsilon=9, delta="1e-3"
    )
    assert session.most_common("ward", LARGE, among=bought).value == "east"


def test_what_cannot_be_chosen_costs_nothing(session):
    for wrong in (
        lambda: session.most_common("city", 0),
        lambda: session.most_common("city", 1, count=5),
        lambda: session.most_common("city", 1, count=0),
        lambda: session.most_common("city", 1, among="Lyon"),
        lambda: session.most_common("ward", 1, among=session.sql("SELECT COUNT(*) AS n FROM visits")),
        lambda: session.first_above("SELECT COUNT(*) AS n FROM visits", 1, 1),
        lambda: session.first_above([], 1, 1),
        lambda: session.first_above([3], 1, 1),
        lambda: session.first_above(["SELECT COUNT(*) AS n FROM visits"], "x", 1),
    ):
        with pytest.raises(InvalidParameter):
            wrong()
    for text in (
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
        "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits",
        "SELECT AVG(cost) AS m FROM visits",
        "SELECT 2 * COUNT(*) AS n FROM visits",
        "SELECT MEDIAN(cost) AS m FROM visits",
        "SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) > 3",
    ):
        with pytest.raises(QueryRefused):
            session.first_above([text], 1, 1)
    same = ["SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(*) AS k FROM visits"]
    with pytest.raises(QueryRefused, match="twice"):
        session.first_above(same, 1, 1)
    with pytest.raises(BudgetExceeded):
        session.most_common("city", 11 * LARGE)
    with pytest.raises(BudgetExceeded):
        session.first_above(same[:1], 1, 11 * LARGE)
    assert session.balance().spent == 0
    assert session._engine.reads == 0


def counts(*least):
    return [f"SELECT COUNT(*) AS n FROM visits WHERE cost >= {each}" for each in least]


def test_the_first_above_is_found_and_nothing_after_it_is_read(session):
    asked = counts(10, 8, 5, 3, 0)  # about 6, 20, 41, 55, 75
    found = session.first_above(asked, 30, LARGE)
    assert (found.place, found.free) == (2, False)
    assert found.query.text == asked[2]
    assert session._engine.reads == 3
    assert session.balance().spent == LARGE
    again = session.first_above([session.sql(each) for each in asked], 30, LARGE)
    assert (again.place, again.free) == (2, True)
    assert session._engine.reads == 3
    assert "number 3 of 5" in str(found)
    assert found.error(0.95) < 1
    assert not session.first_above(asked, 31, LARGE).free  # another threshold is another question
    assert not session.first_above(asked[::-1], 30, LARGE).free
    assert str(found.receipt.purpose) == "first above: 30, of 5 questions about visits"


def test_none_above_is_an_answer_too(session):
    found = session.first_above(counts(10, 8), 1000, LARGE)
    assert (found.place, found.query) == (None, None)
    assert "none" in str(found)
    assert session.first_above(counts(10, 8), 1000, LARGE).free


def test_sums_and_units_are_compared_in_their_own_size(session):
    asked = [
        "SELECT SUM(cost) AS s FROM visits WHERE cost < 2",
        "SELECT COUNT(DISTINCT person) AS u FROM visits WHERE cost < 2",
        "SELECT SUM(cost) AS s FROM visits",
    ]
    assert session.first_above(asked, 100, LARGE).place == 2
    assert session.first_above(asked, 10, LARGE).place == 1


@pytest.mark.parametrize("accountant", ["zcdp", "rdp"])
def test_budgets_that_add_up_something_else_pay_for_choices_too(accountant):
    with sf.Session(visits(), budget=sf.Budget(100, "1e-6", accountant)) as session:
        found = session.most_common("city", 20, count=2)
        assert found.values == ("Lyon", "Nice")
        assert found.receipt.purpose.mechanism == "exponential"
        assert session.first_above(counts(8, 0), 40, 5).place == 1


def test_a_budget_for_gaussian_noise_cannot_pay_for_a_choice():
    with sf.Session(visits(), budget=sf.Budget(100, "1e-6", "gaussian")) as session:
        with pytest.raises(UnsupportedLoss):
            session.most_common("city", 1)
        assert session.balance().entries == 0


def test_a_step_beyond_what_was_paid_is_not_taken(session, monkeypatch):
    monkeypatch.setattr(PermuteAndFlip, "loss", property(lambda self: PureLoss(self.epsilon * 2)))
    with pytest.raises(BudgetExceeded, match="beyond what was paid"):
        session.most_common("city", 1, count=2)
    assert session.balance().spent == 1


def test_every_choice_is_counted(session, monkeypatch):
    taken, take = [], Steps.take
    monkeypatch.setattr(
        Steps, "take", lambda self, loss, read=None: (taken.append(loss), take(self, loss, read))[1]
    )
    session.most_common("city", 3, count=3)
    assert [each.pure for each in taken] == [1, 1, 1]


def test_two_tables_need_a_name():
    with sf.Session(visits(), visits(name="others"), budget=sf.Budget(LARGE)) as session:
        with pytest.raises(InvalidParameter, match="which table"):
            session.most_common("city", 1)
        assert session.most_common("city", LARGE, table="visits").value == "Lyon"
        mixed = ["SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(*) AS n FROM others"]
        with pytest.raises(QueryRefused, match="datasets"):
            session.first_above(mixed, 1, 1)


def test_questions_of_another_session_are_refused_and_cost_nothing(session):
    """Their units and limits are those of another table of the same name."""
    loose = sf.PrivateTable(
        "visits", source=pa.table({"cost": [1]}), unit=sf.PrivacyUnit.row(), schema={"cost": sf.Int(0, 10)}
    )
    with sf.Session(loose, budget=sf.Budget(1)) as other:
        foreign = other.sql("SELECT COUNT(*) AS n FROM visits")
        for questions in ([foreign], ["SELECT COUNT(*) AS n FROM visits", foreign]):
            with pytest.raises(InvalidParameter, match="query of this session"):
                session.first_above(questions, 1, 1)
    assert session.balance().spent == 0


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("EXPLAIN SELECT COUNT(*) AS n FROM visits", "EXPLAIN"),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.01) COUNT(*) AS n FROM visits",
            "its own price",
        ),
    ],
)
def test_what_a_text_says_about_its_price_is_not_passed_over(session, text, match):
    with pytest.raises(QueryRefused, match=match):
        session.first_above([text], 1, 1)
    assert session.balance().spent == 0


@pytest.mark.parametrize("place", [-1, 1, -7, 5])
def test_a_place_outside_of_what_was_paid_reads_nothing(session, place):
    query = session.sql("SELECT COUNT(*) AS n FROM visits")
    quote = query.quote(epsilon=1)
    wanted = query.purchase(quote)
    right = session.ledger.debit(wanted.dataset, wanted.loss, fingerprint=wanted.fingerprint)
    with pytest.raises(AccessDenied, match="no such question"):
        session.vault.read(quote.recipe.questions, right, place=place)
    session.vault.read(quote.recipe.questions, right, place=0)
    with pytest.raises(AccessDenied, match="used before"):
        session.vault.read(quote.recipe.questions, right, place=0)


# ── how far one unit moves one group


def worlds(draws, adjacency):
    """Two small tables that differ in one person, who is missing or has another in their place."""

    def person(who):
        return [(who, draws.choice(CITIES), draws.randint(0, 10)) for _ in range(draws.randint(1, 6))]

    others = [row for who in range(draws.randint(0, 3)) for row in person(who)]
    left = others + person(9)
    return left, others + (person(8) if adjacency == "exchange" else [])


def worlds_asked(draws, adjacency, count):
    """Questions of chance: a text, a way of bounding, a salt and two neighbouring tables each."""
    for number in range(count):
        many = draws.randint(1, 3)
        limits = {"max_groups": many, "max_rows": many + draws.randint(0, 3)}
        text = draws.choice(
            ["COUNT(*)", "COUNT(cost)", "SUM(cost)", "SUM(cost - 5)", "COUNT(DISTINCT person)"]
        )
        grouped = draws.random() < 0.7
        bounding = draws.choice([None, "choose", "reweight"]) if grouped else None
        sql = (
            f"SELECT {'city, ' if grouped else ''}{text} AS x FROM {{}}{' GROUP BY city' if grouped else ''}"
        )
        salt, tables = draws.getrandbits(63), []
        for side, rows in enumerate(worlds(draws, adjacency)):
            names = ("person", "city", "cost")
            columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
            types = [pa.int64(), pa.string(), pa.int64()]
            arrays = [pa.array(columns[name], kind) for name, kind in zip(names, types, strict=True)]
            source = pa.table([*arrays, pa.array([None] * len(rows), pa.string())], [*names, "ward"])
            unit = sf.PrivacyUnit("person", adjacency=adjacency, **limits)
            tables.append(visits(source, unit, name=f"visits_{number}_{side}"))
        yield sql, bounding, salt, tables


def moved(draws, adjacency, count):
    """The largest moves of one score between neighbours, over what is claimed, for questions of chance."""
    asked, found = list(worlds_asked(draws, adjacency, count)), []
    everything = [table for *_, tables in asked for table in tables]
    with sf.Session(*everything, budget=sf.Budget(1)) as session:
        for sql, bounding, salt, tables in asked:
            scores = []
            for table in tables:
                session.vault._salts = {table.name: salt}  # the same choices in every run
                query = session.sql(sql.format(table.name))
                node = query._planned(Terms.of(bounding=bounding)).recipe.measured
                scores.append(session.vault._read(node, 0).columns[0].tolist())
            claimed = sensitivity.in_one_group(node.measurements[0], node)
            found.append(max((abs(a - b) for a, b in zip(*scores, strict=True)), default=0) / claimed)
    return found


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_no_unit_moves_a_score_by_more_than_is_claimed(adjacency):
    draws = random.Random(adjacency)
    found = moved(draws, adjacency, 25)
    assert max(found) <= 1
    assert sum(each == 1 for each in found) > 2  # and the claim is not larger than it must be


# ── audits


def test_all_are_audited_with_the_rest():
    assert {example.name for example in CHOICES} <= {subject.name for subject in registry.subjects()}


@pytest.mark.parametrize("example", [CHOICES[0], CHOICES[-3]], ids=lambda each: each.name)
def test_an_audit_sees_a_sensitivity_that_is_too_small(example, monkeypatch):
    honest = choices.in_one_group
    monkeypatch.setattr(choices, "in_one_group", lambda *those: F(honest(*those), 12))
    subject = registry.Subject(example.name, "query", registry._asked(example.pair))
    with seeded(example.name):
        (found,) = registry.examined(subject, samples=500, share=0.9999)
    assert found.verdict == "broken"


# ── candidates that cannot be


@pytest.mark.parametrize(
    "among", [["Mars"], ["Mars", "Venus"], [CITIES[0], "Mars"], [CITIES[0].upper()], [3]]
)
def test_a_value_that_is_not_declared_is_refused_unpaid(among):
    with sf.Session(visits(), budget=sf.Budget(2)) as session:
        for ask in (
            lambda: session.most_common("city", 1, among=among),
            lambda: session.table("visits").group_by(sf.Keys(city=among)).agg(n=sf.count()),
        ):
            with pytest.raises(
                QueryRefused, match=r"city is declared without the value|IN mixes|another kind"
            ):
                ask()
        assert session.balance().spent == 0


@pytest.mark.parametrize(
    ("listed", "kept"),
    [
        ({"city": ["Lyon"]}, ["Lyon"]),
        ({"cost": [1, 2.0]}, [1, 2]),
        ({"cost": [None, 3]}, [3]),
        ({"day": ["2024-01-02"]}, [datetime.date(2024, 1, 2)]),
        ({"day": [datetime.date(2024, 1, 3)]}, [datetime.date(2024, 1, 3)]),
        ({"new": [True]}, [True]),
        ({"ward": ["anywhere"]}, ["anywhere"]),
        ({"many": list(range(0, 100_000, 50))}, list(range(0, 100_000, 50))),
    ],
    ids=lambda given: "".join(given) if isinstance(given, dict) else "",
)
def test_declared_values_are_taken_in_any_spelling(listed, kept):
    columns = {"city": sf.Enum(*CITIES), "ward": sf.Text(), "cost": sf.Int(0, 10), "new": sf.Bool()}
    columns |= {"day": sf.Date("2024-01-01", "2024-01-05"), "many": sf.Int(0, 99_999)}
    rows = pa.table({name: pa.array([], pa.int64()) for name in ("person", "cost", "many")})
    for name, kind in (
        ("city", pa.string()),
        ("ward", pa.string()),
        ("new", pa.bool_()),
        ("day", pa.date32()),
    ):
        rows = rows.append_column(name, pa.array([], kind))
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit("person"), schema=columns)
    with sf.Session(table, budget=sf.Budget(1)) as session:
        query = session.table("t").group_by(sf.Keys(**listed)).agg(n=sf.count())
        assert sorted(query.recipe().measured.combinations) == [(value,) for value in kept]
