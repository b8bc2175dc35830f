"""Delta that nobody named: it never runs out, is never overdrawn, and makes no old question a new one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from html import unescape

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.ledger import Budget, Steward

MILLIONTH = Fraction(1, 10**6)
BY_DAY = "SELECT day, COUNT(DISTINCT who) AS n FROM trips GROUP BY day"
FORMS = {
    "a price": (BY_DAY, {"epsilon": "0.01"}),
    "an error": (BY_DAY, {"error": 3000}),
    "groups that are found": ("SELECT city, COUNT(*) AS n FROM trips GROUP BY city", {"epsilon": "0.01"}),
    "a law by name": ("SELECT COUNT(*) AS n FROM trips", {"epsilon": "0.01", "mechanism": "gaussian"}),
    "a profile": (BY_DAY, {"epsilon": "0.01", "profile": True}),
}


@pytest.fixture(scope="module")
def trips():
    """People on many days each: Gaussian noise is much better for a table by day."""
    rows = pa.table({"who": [1, 1, 2], "day": ["1", "2", "1"], "city": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
    return sf.PrivateTable(
        "trips",
        source=rows,
        unit=sf.PrivacyUnit("who", max_groups=20),
        schema={"day": sf.Enum(*map(str, range(60))), "city": sf.Text(), "x": sf.Float(0, 10)},
    )


def drained(session, part):
    """A question that names this part of the delta that is left."""
    named = part * session.balance().remaining_delta
    text = "SELECT COUNT(*) AS n FROM trips WHERE x > 5"
    session.sql(text).release(epsilon="0.001", delta=named, mechanism="gaussian")


def raised(session, factor):
    Steward(session.ledger).raise_budget("trips", Budget(10, factor * MILLIONTH), reason="more questions")


CHANGES = {
    "less is left": lambda session: drained(session, Fraction(3, 4)),
    "nearly nothing is left": lambda session: drained(session, 1 - Fraction(1, 10**9)),
    "nothing is left": lambda session: drained(session, 1),
    "there is more": lambda session: raised(session, 100),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_question_asked_again_is_free_whatever_delta_is_left(trips, form):
    text, price = FORMS[form]
    with sf.Session(trips, budget=Budget(10, MILLIONTH)) as session:
        question = session.sql(text)
        first = question.release(**price)
        for change, apply in CHANGES.items():
            apply(session)
            before = session.balance().entries
            again = question.release(**price)
            assert (again.free, again.table) == (True, first.table), change
            assert session.balance().entries == before
        assert dict(question.quote(**price).standing).keys() == {"record"}


def test_an_answer_with_pure_noise_is_still_the_answer_once_there_is_more_delta(trips):
    with sf.Session(trips, budget=Budget(10, MILLIONTH)) as session:
        drained(session, 1)
        first = session.sql(BY_DAY).release(epsilon="0.01")
        raised(session, 100)
        again = session.sql(BY_DAY).release(epsilon="0.01")
        assert again.quote.mechanism == "gaussian"
        assert first.quote.mechanism == "laplace"
        assert again.free
        assert again.table == first.table
        named = session.sql(BY_DAY).release(epsilon="0.01", mechanism="gaussian")
        assert not named.free


def test_whoever_names_a_worse_noise_answers_nobody_else(trips):
    with sf.Session(trips, budget=Budget(10, MILLIONTH)) as session:
        for named in ({"mechanism": "laplace"}, {"delta": 0}, {"delta": Fraction(1, 10**30)}):
            session.sql(BY_DAY).release(epsilon="0.01", **named)
        assert not session.sql(BY_DAY).release(epsilon="0.01").free


def test_a_quote_says_where_its_delta_comes_from(trips):
    with sf.Session(trips, budget=Budget(10, MILLIONTH)) as session:
        quote = session.sql(BY_DAY).quote(epsilon="0.01")
        assert "delta   a hundredth of the budget's: none was asked for." in str(quote)
        assert "Delta is a hundredth of the budget's: none was asked for." in unescape(quote._repr_html_())
        assert quote.to_dict()["delta_by_default"] == "a hundredth of the budget's"
        assert session.sql(BY_DAY).quote(epsilon="0.01") == quote
        drained(session, Fraction(1, 2))
        less = session.sql(BY_DAY).quote(epsilon="0.01")
        assert less.delta == quote.delta / 4
        assert "delta   1/400 of the budget's, as no more than half of it is left" in str(less)
        for named in (session.sql(BY_DAY).quote(epsilon="0.01", delta=MILLIONTH / 100), pure(session)):
            assert not named.delta_told
            assert "none was asked for" not in str(named)


def flat(shown):
    return " ".join(str(shown).split())


def test_a_quote_for_found_groups_says_what_its_delta_is_for(trips):
    text = "SELECT city, COUNT(*) AS n, AVG(x) AS x FROM trips GROUP BY city"
    once = sf.PrivateTable("trips", source=trips.source, unit=sf.PrivacyUnit("who"), schema=trips.schema)
    with sf.Session(once, budget=Budget(10, MILLIONTH)) as session:
        quote = session.sql(text).quote(epsilon=1)
        assert "the delta is for finding groups alone" in flat(quote)
        assert "it uses no delta" not in str(quote)
        assert "it uses no delta" in flat(pure(session))


def test_what_is_left_is_told_with_its_delta_where_that_is_short(trips):
    with sf.Session(trips, budget=Budget(10, MILLIONTH)) as session:
        Steward(session.ledger).limit("trips", "bob", Budget(5), reason="pure noise alone")
        found = session.as_analyst("bob").sql("SELECT city, COUNT(*) AS n FROM trips GROUP BY city")
        quote = found.quote(epsilon="0.01")
        assert "more than what is left, epsilon 5 and delta 0: it would be refused" in flat(quote)


def test_whoever_names_no_delta_at_all_for_groups_is_told_to_leave_it_out(trips):
    text = "SELECT city, COUNT(*) AS n FROM trips GROUP BY city"
    for budget, named, way in (
        (Budget(10, MILLIONTH), {"delta": 0}, "or leave delta out"),
        (Budget(10), {}, "have the steward open the budget with a delta"),
    ):
        with sf.Session(trips, budget=budget) as session:
            with pytest.raises(sf.errors.QueryRefused) as refusal:
                session.sql(text).quote(epsilon=1, **named)
            assert way in str(refusal.value)


def pure(session):
    return session.sql("SELECT COUNT(*) AS n FROM trips").quote(epsilon="0.01")


def test_what_needs_delta_is_refused_unpaid_where_none_is_left_and_the_rest_is_answered(trips):
    with sf.Session(trips, budget=Budget(10, MILLIONTH)) as session:
        drained(session, 1)
        found = session.sql("SELECT city, COUNT(*) AS n FROM trips GROUP BY city")
        quote = found.quote(epsilon="0.01")
        assert dict(quote.standing).keys() == {"left"}
        assert "a hundredth of the budget's, though nothing is left of the budget's" in flat(quote)
        with pytest.raises(sf.errors.BudgetExceeded, match="list the groups and take Laplace noise"):
            found.release(epsilon="0.01")
        assert session.sql(BY_DAY).release(epsilon="0.01").quote.mechanism == "laplace"
        assert session.balance().spent_delta == MILLIONTH


def test_threads_that_ask_at_once_never_overdraw(trips):
    texts = [BY_DAY.replace("GROUP", f"WHERE x > {number} GROUP") for number in range(6)]
    with sf.Session(trips, budget=Budget(10, MILLIONTH)) as session, ThreadPoolExecutor(3) as pool:
        drained(session, Fraction(999, 1000))
        before = session.balance().remaining_delta
        given = list(pool.map(lambda text: session.sql(text).release(epsilon="0.01"), texts))
        assert session.balance().remaining_delta == before - sum(each.quote.delta for each in given) > 0
        assert all(each.quote.mechanism == "gaussian" for each in given)


@pytest.mark.stats
def test_a_thousand_questions_in_a_row_are_answered(trips):
    with sf.Session(trips, budget=Budget(10, MILLIONTH)) as session:
        for number in range(1000):
            text = BY_DAY.replace("GROUP", f"WHERE x > {number / 100} GROUP")
            assert not session.sql(text).release(epsilon="0.001").free
        assert session.balance().remaining_delta > 0
