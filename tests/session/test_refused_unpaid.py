"""What is paid in steps, a profile and bounds before the answer, is refused before the first of them."""

import itertools
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, QueryRefused

ROWS = pa.table({"u": [i % 20 for i in range(60)], "x": [float(i % 7) for i in range(60)]})
DELTA = "1e-6"
PRICES = [Fraction(price) for price in ("12", "6.6", "0.3")]
COUNT, SUM = "SELECT COUNT(*) AS n FROM t", "SELECT SUM(x) AS v FROM t"


def session_of(budget, *, auto=True):
    unit = sf.PrivacyUnit("u", max_rows="auto" if auto else 3, ceiling=50)
    table = sf.PrivateTable("t", source=ROWS, unit=unit, schema={"x": sf.Float()})
    return sf.Session(table, budget=budget)


def limited(steward, name, budget):
    sf.Steward(steward.ledger).limit("t", name, budget, reason="a course")
    return steward.as_analyst(name)


def on_record(steward):
    return [receipt.number for receipt in steward.ledger.entries("t")]


WAYS = [
    pytest.param(
        accountant,
        bounds,
        whose,
        id=f"{accountant}-{bounds or 'declared'}-{whose}",
        # Those that are gated as zcdp is, in the long run.
        marks=[pytest.mark.stats] * (accountant in ("gaussian", "rdp") and whose != "reader"),
    )
    for accountant, bounds, whose in itertools.product(
        ("basic", "zcdp", "gaussian", "rdp"), (None, "auto"), ("steward", "analyst", "reader")
    )
    if not (accountant == "gaussian" and bounds)
]


@pytest.mark.parametrize(("accountant", "bounds", "whose"), WAYS)
def test_a_refusal_leaves_nothing_spent_and_nothing_counted(accountant, bounds, whose):
    small = sf.Budget(6, DELTA, accountant)
    wide = small if whose == "steward" else sf.Budget(10, DELTA, accountant)
    text, outcomes = SUM if bounds else COUNT, []
    with session_of(wide, auto=whose != "analyst") as steward:
        asker = steward if whose == "steward" else limited(steward, "ada", small)
        if whose == "reader":  # profiles that count where they are read
            for price in PRICES[-2::-1]:
                steward.as_analyst("bob").profile("t", price / 5)
        for price in PRICES:
            before, balance = on_record(steward), asker.balance()
            try:
                asker.sql(text).release(epsilon=price, profile=True, bounds=bounds)
                outcomes.append("paid")
            except BudgetExceeded as refused:
                outcomes.append(str(refused))
                assert on_record(steward) == before
                assert asker.balance() == balance
    assert "Nothing was spent" in outcomes[0]
    assert outcomes[-1] == "paid"


@pytest.mark.parametrize("accountant", ["zcdp", "gaussian", "rdp"])
def test_the_noise_of_a_profile_is_one_that_the_accountant_is_charged_least_for(accountant):
    with session_of(sf.Budget(1, DELTA, accountant)) as session:
        assert session.sql(COUNT).quote(epsilon=1).first == Fraction(1, 5)
        released = session.sql(COUNT).release(epsilon=1)
        assert {noise.law for noise in released.profile.noise} == {"gaussian"}
        profile, answer = session.releases()
        assert profile.loss.approximate == (Fraction(1, 5), Fraction("1e-8"))
        assert answer.loss.approximate == (Fraction(4, 5), Fraction("1e-8"))
        assert session.sql(COUNT).release(epsilon=1).free


def test_bounds_that_the_accountant_cannot_add_up_are_refused_when_they_are_priced():
    with session_of(sf.Budget(5, DELTA, "gaussian")) as session:
        for ask in (session.sql(SUM).quote, session.sql(SUM).release):
            with pytest.raises(QueryRefused, match="opened as zcdp"):
                ask(epsilon=1, bounds="auto")
        assert session.sql(COUNT).quote(epsilon=1, bounds="auto").first == Fraction(1, 5)
        assert session.releases() == []


@pytest.mark.parametrize(("theirs", "counted"), [("0.2", Fraction(1, 5)), ("0.3", 0), (5, 0)])
def test_anothers_profile_counts_no_more_than_ones_own_would_cost(theirs, counted):
    with session_of(sf.Budget(20)) as steward:
        ada = limited(steward, "ada", sf.Budget(10))
        steward.profile("t", theirs)
        quote = ada.sql(COUNT).quote(epsilon=1)
        assert ("epsilon 0.2 would count toward your limit" in " ".join(str(quote).split())) == bool(counted)
        released = ada.sql(COUNT).release(epsilon=1)
        assert released.counted.get("epsilon", 0) == counted
        assert "which somebody else paid for" not in str(released)  # the answer is one's own
        assert ada.balance().spent == 1 == quote.epsilon + quote.first
        assert steward.balance().spent == Fraction(theirs) + 1 - counted


def test_anothers_bounds_count_no_more_than_ones_own_would_cost():
    mean = "SELECT AVG(x) AS v FROM t"  # of the same numbers
    with session_of(sf.Budget(20)) as steward:
        steward.sql(SUM).release(epsilon=10, bounds="auto", profile=False)
        ada = limited(steward, "ada", sf.Budget(10))
        released = ada.sql(mean).release(epsilon=1, bounds="auto", profile=False)
        assert released.counted.get("epsilon", 0) == 0
        assert ada.balance().spent == 1
        carol = limited(steward, "carol", sf.Budget(10))
        released = carol.sql(mean).release(epsilon=1, bounds="auto", profile=False)
        assert released.counted["epsilon"] == carol.balance().spent == 1


@pytest.mark.parametrize("left", [True, False])
def test_noise_that_bounds_would_choose_is_left_out_where_its_delta_is_spent(left):
    many = 80
    rows = pa.table({"u": [i // many for i in range(300 * many)], "k": [i % many for i in range(300 * many)]})
    rows = rows.append_column("x", pa.array([float(i % 7) for i in range(len(rows))]))
    schema = {"k": sf.Int(0, many - 1), "x": sf.Float()}
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit("u"), schema=schema)
    with sf.Session(table, budget=sf.Budget(1000, DELTA)) as session:
        if not left:
            session.sql(COUNT).release(epsilon=1, delta=DELTA, mechanism="gaussian")
        asked = session.sql("SELECT k, SUM(x) AS v FROM t GROUP BY k")
        terms = {"epsilon": 20, "bounds": "auto", "bounding": "choose"}
        assert asked.quote(**terms).mechanism == "laplace"
        assert asked.release(**terms).quote.mechanism == ("gaussian" if left else "laplace")
