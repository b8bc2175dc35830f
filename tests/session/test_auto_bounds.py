"""Bounds that are bought: their noise, their price, what is kept, and what happens if nothing fits."""

import threading
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidParameter, QueryRefused, SfumatoError
from sfumato.plan.questions.relations import rows_of
from sfumato.plan.questions.unbounded import groups_of
from sfumato.purchase import buying
from sfumato.session import auto
from sfumato.testing import assert_continuous, seeded

SUM = "SELECT SUM(x) AS s FROM t"
USERS = sf.PrivacyUnit("u", max_groups=2, max_rows=3)


def session_of(values, unit=USERS, *, budget=None, nullable=True, **more):
    values = list(values)
    source = pa.table(
        {
            "u": pa.array(range(len(values)), pa.int64()),
            "x": pa.array(values, pa.float64()),
            "y": pa.array([None if v is None else 3 * v for v in values], pa.float64()),
            "k": pa.array(["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2), pa.string()),
        }
    )
    schema = {"x": sf.Float(nullable=nullable), "y": sf.Float(), "k": sf.Enum("a", "b")}
    table = sf.PrivateTable("t", source=source, unit=unit, schema=schema)
    return sf.Session(table, budget=budget or sf.Budget(10**6, "1e-3"), **more)


def bought(unit, seed):
    with session_of([], unit) as session, seeded(seed):
        for place in range(3):  # other numbers are another question about sizes
            text = f"SELECT SUM(x + {place}) AS s FROM t"
            session.sql(text).release(epsilon=2, bounds="auto")
        kept = [receipt for receipt in session.releases() if receipt.purpose.spender == "bounds"]
        assert len(kept) == 3
        answers = []
        for receipt in kept:
            ((_, payload),) = session.ledger.recall("t", receipt.fingerprint)
            answer = auto.Answer.from_bytes(payload)
            assert answer.epsilon == Fraction(2, 5) == receipt.loss.pure
            answers.append(answer.noisy[0])
    return np.concatenate(answers)


@pytest.fixture(scope="module")
def histograms():
    return {"rows": bought(sf.PrivacyUnit.row(), "rows"), "users": bought(USERS, "users")}


@pytest.mark.parametrize(("who", "weight"), [("rows", 1), ("users", 3)])
def test_the_histogram_carries_the_noise_of_a_fifth_of_the_price(histograms, who, weight):
    law = stats.laplace(scale=weight / 0.4)
    assert histograms[who].size > 500
    assert_continuous(histograms[who], law.cdf)
    for share in (0.5, 1.5):
        with pytest.raises(AssertionError, match="claimed"):
            assert_continuous(histograms[who] * share, law.cdf)


def in_groups(each, *, units=60, unit=USERS, **more):
    """Every unit is in `each` groups with a row in each."""
    rows = [(u, f"g{(u + i) % 8}") for u in range(units) for i in range(each)]
    columns = {
        "u": pa.array([row[0] for row in rows], pa.int64()),
        "g": pa.array([row[1] for row in rows], pa.string()),
    }
    table = sf.PrivateTable("t", source=pa.table(columns), unit=unit, schema={"g": sf.Text()})
    return sf.Session(table, budget=sf.Budget(10**6, "1e-3"), **more)


FOUND = "SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g"


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_a_unit_counts_once_in_the_histogram_of_groups(adjacency):
    unit = sf.PrivacyUnit("u", max_groups=2, max_rows=6, adjacency=adjacency)
    with in_groups(0, unit=unit) as session, seeded(adjacency):
        report = session.sql(FOUND).report
        rows = rows_of(report.child.source, session.tables)
        question = groups_of(report, rows)
        wanted = replace(auto._purchase(session, report, question, Fraction(1, 2)), choose=lambda _kept: None)
        draws = [session.buy(wanted).answer.noisy[0] for _ in range(10)]
        assert session.balance().spent == 5
    noisy = np.concatenate(draws)
    assert noisy.size == 320
    law = stats.laplace(scale=(2 if adjacency == "exchange" else 1) / 0.5)
    assert_continuous(noisy, law.cdf)
    with pytest.raises(AssertionError, match="claimed"):
        assert_continuous(noisy / 2, law.cdf)


def test_the_limit_of_groups_is_bought_with_the_same_part():
    with in_groups(4) as session, seeded("groups"):
        release = session.sql(FOUND).release(epsilon=500, delta="1e-9", bounds="auto")
        assert sum(release.table["n"].to_pylist()) == 60 * 4
        assert [Fraction(dict(each.memo)["epsilon"]) for each in session.releases()] == [100, 400]
        assert session.balance().spent == 500
        assert release.quote.selection.groups == 4


def test_the_parts_add_up_to_the_price():
    with session_of(np.linspace(0, 90, 100), budget=sf.Budget(1)) as session, seeded("parts"):
        release = session.sql(SUM).release(epsilon=1, bounds="auto")
        debits = session.releases()
        assert [Fraction(dict(each.memo)["epsilon"]) for each in debits] == [Fraction(1, 5), Fraction(4, 5)]
        assert [each.loss.pure for each in debits] == [Fraction(1, 5), Fraction(4, 5)]
        assert session.balance().spent == 1
        assert release.quote.epsilon == Fraction(4, 5)
        assert session.ledger.verify().ok


def test_several_numbers_share_what_bounds_cost():
    with session_of(np.linspace(0, 90, 100), budget=sf.Budget(1)) as session, seeded("several"):
        text = "SELECT k, SUM(x) AS a, AVG(x) AS b, SUM(y) AS c, COUNT(*) AS n FROM t GROUP BY k"
        session.sql(text).release(epsilon=1, bounds="auto")
        prices = [Fraction(dict(each.memo)["epsilon"]) for each in session.releases()]
        assert prices == [Fraction(1, 10), Fraction(1, 10), Fraction(4, 5)]
        assert session.balance().spent == 1


def test_bounds_serve_later_questions_about_the_same_numbers():
    with session_of(np.linspace(0, 90, 100)) as session, seeded("later"):
        session.sql(SUM).release(epsilon=1, bounds="auto")
        spent = session.balance().spent
        other = session.sql("SELECT k, AVG(x) AS a FROM t WHERE x > 10 GROUP BY k")
        quoted = other.quote(epsilon=1, bounds="auto").epsilon
        other.release(epsilon=1, bounds="auto")
        assert session.balance().spent == spent + quoted <= spent + 1
        assert len(session.releases()) == 3


def test_a_quote_is_free_and_says_what_it_does_not_know():
    with session_of(np.linspace(0, 90, 100)) as session:
        quote = session.sql(SUM).quote(epsilon=1, bounds="auto")
        assert quote.epsilon == Fraction(4, 5)
        assert any("bought" in note for note in quote.notes)
        assert session.balance().spent == 0
        assert not session.releases()


@pytest.mark.parametrize("size", [1.0, 1e6, -250.0])
def test_what_is_found_fits_the_numbers(size):
    generator = np.random.default_rng(8)
    values = generator.uniform(0.2, 1, 1_000) * size
    with session_of(values) as session, seeded(f"size {size}"):
        release = session.sql("SELECT SUM(x) AS s, AVG(x) AS a FROM t").release(epsilon=20, bounds="auto")
        row = release.table.to_pylist()[0]
        assert row["s"] == pytest.approx(values.sum(), rel=0.1)
        assert row["a"] == pytest.approx(values.mean(), rel=0.1)
        assert any("clamped" in note for note in release.quote.notes)


@pytest.mark.parametrize("values", [[], [None] * 200, [5.0], [np.nan, np.inf, -np.inf] * 80], ids=str)
def test_where_nothing_is_found_there_is_a_public_answer_and_no_error(values):
    with session_of(values) as session, seeded("nothing"):
        release = session.sql("SELECT SUM(x) AS s, AVG(x) AS a FROM t").release(epsilon="0.01", bounds="auto")
        assert release.table.num_rows == 1
        assert release.table["s"].null_count == 0
        assert session.balance().spent == Fraction("0.01")


def test_declared_bounds_are_not_bought_again():
    with session_of(np.linspace(0, 9, 50)) as session, seeded("declared"):
        text = "SELECT SUM(LEAST(GREATEST(x, 0), 10)) AS s FROM t"
        price = session.sql(text).release(epsilon=1, bounds="auto").quote.epsilon
        assert len(session.releases()) == 1
        assert session.balance().spent == price <= 1
        assert session.sql(text).release(epsilon=price).free


def test_what_would_not_fit_buys_no_bounds():
    with session_of(np.linspace(0, 9, 50), budget=sf.Budget(1)) as session:
        with pytest.raises(BudgetExceeded):
            session.sql(SUM).release(epsilon="1.01", bounds="auto")
        with pytest.raises(InvalidParameter):
            session.sql(SUM).release(bounds="auto")
        with pytest.raises(InvalidParameter):
            session.sql(SUM).release(epsilon=1, bounds="guess")
        with pytest.raises(InvalidParameter):
            session.sql(SUM).release(error=5, bounds="auto")
        with pytest.raises(QueryRefused):
            session.sql(SUM).release(epsilon=1)
        assert session.balance().spent == 0
        assert not session.releases()


@pytest.mark.parametrize("accountant", ["zcdp", "rdp"])
def test_other_gates_are_charged_for_both_parts(accountant):
    budget = sf.Budget(3, "1e-6", accountant)
    with session_of(np.linspace(0, 9, 50), budget=budget) as session, seeded(accountant):
        session.sql(SUM).release(epsilon=1, bounds="auto")
        both = session.balance().spent
        first, second = session.releases()
        assert first.loss.pure == Fraction(1, 5)
        assert second.loss.delta(Fraction(4, 5)) <= 1e-8
        assert both > 0
    with session_of(np.linspace(0, 9, 50), budget=budget) as session, seeded(accountant):
        text = "SELECT SUM(LEAST(GREATEST(x, 0), 10)) AS s FROM t"
        session.sql(text).release(epsilon="0.8")
        assert session.balance().spent < both


# What was found wrong.


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("SELECT SUM(x) AS s FROM t", {"mechanism": "cauchy"}),
        ("SELECT SUM(x) AS s FROM t", {"mechanism": "gaussian", "delta": "0.5"}),
        ("SELECT SUM(x) AS s FROM t", {"confidence": 2}),
        ("SELECT CAST(y AS INTEGER) AS z, SUM(x) AS s FROM t GROUP BY z", {"delta": 0}),
        ("SELECT CAST(y AS INTEGER) AS z, SUM(x) AS s FROM t GROUP BY z", {"delta": "0.5"}),
    ],
    ids=["unknown noise", "delta", "confidence", "no delta", "delta of a selection"],
)
def test_a_refusal_comes_before_bounds_are_bought(text, arguments):
    with session_of(np.linspace(0, 9, 50), budget=sf.Budget(1, "1e-6")) as session:
        with pytest.raises(SfumatoError):
            session.sql(text).release(epsilon=1, bounds="auto", **arguments)
        assert session.balance().spent == 0


@pytest.mark.parametrize(
    "budget",
    [
        sf.Budget(10),
        sf.Budget(1),
    ],
    ids=["plenty", "spent"],
)
def test_the_same_question_is_free_again(budget):
    with session_of(np.linspace(0, 90, 100), budget=budget) as session, seeded("again"):
        first = session.sql(SUM).release(epsilon=1, bounds="auto")
        again = session.sql(SUM).release(epsilon=1, bounds="auto")
        assert again.free
        assert again.table.equals(first.table)
        assert session.balance().spent == 1


def test_two_threads_buy_bounds_once(monkeypatch):
    both, looked, known = threading.Barrier(2, timeout=60), threading.local(), buying.known

    def together(*wanted):
        """Both look before either has the turn."""
        found = known(*wanted)
        if not getattr(looked, "once", False):
            looked.once = True
            both.wait()
        return found

    monkeypatch.setattr(buying, "known", together)
    with session_of(np.linspace(0, 90, 50)) as session:
        threads = [
            threading.Thread(target=session.sql(SUM).release, kwargs={"epsilon": 1, "bounds": "auto"})
            for _ in range(2)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sum(each.purpose.spender == "bounds" for each in session.releases()) == 1


def test_bounds_that_nothing_could_be_seen_of_are_bought_anew_at_a_larger_price():
    text, ages = "SELECT AVG(x) AS a FROM t", np.random.default_rng(4).integers(18, 90, 1_000).astype(float)
    with session_of(ages) as session, seeded("anew"):
        first = session.sql(text).release(epsilon="0.02", bounds="auto")
        assert any("nothing could be seen" in note and "larger epsilon" in note for note in first.quote.notes)
        assert session.sql(text).release(epsilon="0.02", bounds="auto").free
        quoted = session.sql(text).quote(epsilon=5, bounds="auto")
        assert any("bought" in note for note in quoted.notes)
        before = session.balance().spent
        second = session.sql(text).release(epsilon=5, bounds="auto")
        assert session.balance().spent == before + 5
        assert second.table["a"][0].as_py() == pytest.approx(ages.mean(), rel=0.1)
        # What could be seen serves later questions, at any price.
        third = session.sql("SELECT AVG(x) AS a FROM t WHERE x > 20").quote(epsilon=9, bounds="auto")
        assert any("bounds from" in note for note in third.notes)
