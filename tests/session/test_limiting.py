"""The limit that a profile chooses for a question: by what is asked, the price and the law of the noise."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.terms import Terms
from sfumato.plan.questions.profile import Profile, ladder
from sfumato.session.limiting import chosen_limit
from sfumato.testing import seeded

ROWS = np.minimum(np.random.default_rng(3).zipf(2.0, 20_000), 5_000)


@pytest.fixture(scope="module")
def profile():
    rungs = np.array(ladder(10_000))
    cells = np.searchsorted(rungs, ROWS)
    units = np.bincount(cells, minlength=len(rungs)).astype(float)
    rows = np.bincount(cells, weights=ROWS, minlength=len(rungs))
    return Profile(tuple(map(int, rungs)), units, rows, (Noise("laplace", 4.0), Noise("laplace", 1.5)))


@pytest.fixture(scope="module")
def session():
    table = sf.PrivateTable(
        "t",
        source=pa.table({"u": [1], "g": ["a"], "city": ["b"], "x": [1], "y": [50]}),
        unit=sf.PrivacyUnit("u", max_rows="auto", ceiling=10_000),
        schema={
            "g": sf.Enum(*"abcdefghij"),
            "city": sf.Text(),
            "x": sf.Int(0, 100, nullable=False),
            "y": sf.Int(90, 100, nullable=False),
        },
    )
    with sf.Session(table, budget=sf.Budget(1, "1e-7")) as one:
        yield one


def limit(session, profile, columns, epsilon=1, *, keys="", budget=None, **terms):
    plan = session.sql(f"SELECT {columns} FROM t {keys}")._asking.plan
    budget = budget or sf.Budget(1, "1e-7")
    return chosen_limit(plan, Terms.of(epsilon, **terms), profile, budget)


def test_what_is_cut_weighs_as_much_as_it_is_worth(session, profile):
    count = limit(session, profile, "COUNT(*) AS n")
    assert (
        limit(session, profile, "SUM(x) AS s") < count
    )  # a row that is cut has less than the noise allows for
    assert limit(session, profile, "SUM(y) AS s") == count  # here it has as much
    for averaged in ("AVG(x) AS m", "MEDIAN(x) AS m"):
        assert limit(session, profile, averaged) < limit(session, profile, "SUM(x) AS s")


def test_each_of_several_aggregates_has_a_say(session, profile):
    """No one of them alone decides, and those of which rows of a unit say nothing have none."""
    half = Fraction(1, 2)
    count, mean = (limit(session, profile, column, half) for column in ("COUNT(*) AS n", "AVG(x) AS m"))
    assert mean < limit(session, profile, "COUNT(*) AS n, AVG(x) AS m") < count
    assert limit(session, profile, "COUNT(*) AS n, COUNT(DISTINCT u) AS k") == count
    assert limit(session, profile, "AVG(x) AS m, COUNT(DISTINCT u) AS k") == mean


def test_values_that_anybody_vouches_for_and_groups_that_are_found_take_low_limits(session, profile):
    """Few rows of a unit show which values there are; and a group has a small part of what is cut."""
    assert limit(session, profile, "COUNT(DISTINCT x) AS d") <= 5
    found = limit(session, profile, "city, COUNT(*) AS n", "0.1", keys="GROUP BY city")
    listed = limit(session, profile, "g, COUNT(*) AS n", "0.1", keys="GROUP BY g")
    assert found < listed < limit(session, profile, "COUNT(*) AS n", "0.1")


def test_more_noise_takes_lower_limits(session, profile):
    count = limit(session, profile, "COUNT(*) AS n")
    cheap = [limit(session, profile, "COUNT(*) AS n", epsilon) for epsilon in (1, "0.1", "0.01", "0.001")]
    assert cheap == sorted(cheap, reverse=True)
    assert cheap[-1] < count
    assert limit(session, profile, "g, COUNT(*) AS n", "0.01", keys="GROUP BY g") < limit(
        session, profile, "COUNT(*) AS n", "0.01"
    )
    gaussian = limit(session, profile, "COUNT(*) AS n", "0.01", mechanism="gaussian")
    assert gaussian < limit(session, profile, "COUNT(*) AS n", "0.01")
    kept = sf.Budget(1, "1e-7", accountant="zcdp")
    assert limit(session, profile, "COUNT(*) AS n", "0.01", budget=kept) == gaussian


def test_an_error_or_nothing_in_place_of_a_price(session, profile):
    assert limit(session, profile, "COUNT(*) AS n", None) is None
    few, many = (limit(session, profile, "COUNT(*) AS n", None, error=error) for error in (30_000, 10))
    assert few < many


def test_no_limit_is_chosen_that_bounds_rule_out():
    """Rows so large that many of one unit could not be added up exactly: a lower rung is taken, unpaid."""
    rows = pa.table({"u": [1, 2], "x": [5.0, 7.0]})
    for most, rung in ((2.0**53, 500), (100.0, 1000)):
        table = sf.PrivateTable(
            "t",
            source=rows,
            unit=sf.PrivacyUnit("u", max_rows="auto"),
            schema={"x": sf.Float(0, most)},
            profile=dict.fromkeys(ladder(1000)[:-1], 0) | {1000: 10**6},
        )
        with sf.Session(table, budget=sf.Budget(10)) as one:
            limited = one.sql("SELECT SUM(x) AS s FROM t").release(epsilon=1).quote.measured.unit.max_rows
        assert limited <= rung
        assert limited < 1000 or most == 100


def test_a_better_profile_makes_no_old_question_a_new_one():
    """The profile that chose a limit, bought or given, goes on choosing it; intervals have the better one."""
    counts = np.minimum(np.random.default_rng(1).zipf(1.6, 400), 800)
    rows = pa.table({"u": np.repeat(np.arange(400), counts)})
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit("u", max_rows="auto"), schema={})
    for given in (False, True):
        with sf.Session(table, budget=sf.Budget(100)) as one, seeded("profiles"):
            one.profile("t", "0.1")
            if given:
                debits = [entry.number for entry in one.ledger.entries() if entry.kind == "debit"]
                sf.Steward(one.ledger).give("t", debits, reason="for all")
            query = one.sql("SELECT COUNT(*) AS n FROM t")
            first = query.release(epsilon=2 if given else "0.4")
            one.profile("t", 20)
            again = query.release(epsilon=2 if given else "0.4")
            assert again.free
            wide, narrow = (each.interval().to_pylist()[0] for each in (first, again))
            assert narrow["n_high"] - narrow["n_low"] < wide["n_high"] - wide["n_low"]
