"""Two averages give a person away, and private ones do not: against exact arithmetic and a real session."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks.differencing import difference, differencing, differencing_totals
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.testing import seeded
from verdicts import sure

SIZES = {"first_size": 25, "second_size": 26}
TOP = 1_000_000
COMPANIES = [f"company {number:03d}" for number in range(300)]


@pytest.fixture(autouse=True)
def repeatable():
    with seeded("differencing"):
        yield


def test_the_newcomer_earns_630_000():
    assert difference(500_000, 505_000, **SIZES) == 630_000.0
    assert difference(Decimal("500000"), "505000", **SIZES) == 630_000.0


@pytest.mark.parametrize("seed", range(5))
def test_exact_averages_give_exactly_whoever_came_or_left(seed):
    values = [Fraction(int(cents), 100) for cents in sf.random.simulation(seed).integers(0, 10**9, 40)]
    mean = [sum(values[:size]) / Fraction(size) for size in (30, 31, 40)]
    assert difference(mean[0], mean[1], first_size=30, second_size=31) == float(values[30])
    assert difference(mean[1], mean[0], first_size=31, second_size=30) == float(values[30])
    several = difference(mean[0], mean[2], first_size=30, second_size=40)
    assert several == float(sum(values[30:]) / Fraction(10))


def test_averages_as_floats_are_off_by_their_last_digits_only():
    values = sf.random.simulation(1).random(26)
    found = difference(values[:25].mean(), values.mean(), **SIZES)
    assert found == pytest.approx(values[25], abs=1e-13)


def test_it_works_on_the_two_printed_averages():
    outcome = differencing(lambda: 500_000, lambda: 505_000, truth=630_000, tolerance=0, **SIZES)
    assert outcome.rate == 1
    assert outcome.baseline == 0  # "like the rest" would be 500,000
    assert sure(outcome).works
    assert outcome.detail == {"tolerance": 0.0, "median_miss": 0.0}


def averages(others, newcomer, epsilon):
    """The average pay of each of many companies alike, from a session that is paid for."""
    pay = [*others, newcomer] if newcomer is not None else others
    table = sf.PrivateTable(
        "staff",
        source=pa.table(
            {"company": np.repeat(COMPANIES, len(pay)), "pay": np.tile(np.array(pay, float), len(COMPANIES))}
        ),
        unit=sf.PrivacyUnit.row(),
        schema={"company": sf.Enum(*COMPANIES, nullable=False), "pay": sf.Float(0, TOP, nullable=False)},
    )
    with sf.Session(table, budget=sf.Budget(epsilon)) as session:
        query = session.sql("SELECT company, AVG(pay) AS pay FROM staff GROUP BY company")
        return query.release(epsilon=epsilon).table["pay"]


def on_sessions(others, newcomer, epsilon, **more):
    return differencing(
        lambda: averages(others, None, epsilon),
        lambda: averages(others, newcomer, epsilon),
        truth=[newcomer] * len(COMPANIES),
        tolerance=TOP // 10,
        trials=1,
        **SIZES,
        **more,
    )


def apart(others, newcomer, epsilon):
    return on_sessions(
        others, newcomer, epsilon, ask_without=lambda: averages(others, None, epsilon), target="AVG"
    )


def test_private_averages_of_such_companies_tell_nothing():
    # Two releases at 1/2: everybody is in both, so that the total is 1.
    outcome = apart([500_000] * 25, 630_000, Fraction(1, 2))
    assert sure(outcome).within
    assert outcome.rate < 0.1
    assert outcome.detail["median_miss"] > TOP
    assert not on_sessions([500_000] * 25, 630_000, Fraction(1, 2), bounds=(0, TOP)).works


def test_nor_do_they_about_the_person_whom_they_could_harm_most():
    # Everybody else at one end of the bounds, the newcomer at the other; total epsilon 1.
    outcome = apart([0] * 25, TOP, Fraction(1, 2))
    assert sure(outcome).within
    bound = np.e * outcome.guess.interval(1 - 1e-6)[1]
    assert outcome.interval[0] <= bound


def test_noise_that_is_ten_times_too_small_is_found_out():
    assert sure(apart([0] * 25, TOP, 5)).works


def test_a_bit_is_the_difference_of_two_counts():
    answers = {"smokers": 1_042, "smokers but one": 1_041}
    outcome = differencing_totals(
        lambda: answers["smokers"], lambda: answers["smokers but one"], truth=1, tolerance=0.5
    )
    assert sure(outcome).works
    assert outcome.success == "the person's value is found within ±0.5"


@pytest.mark.parametrize(("epsilon", "found_out"), [("0.1", False), (5, True)])
def test_two_private_counts_tell_no_bit_unless_their_noise_is_too_small(epsilon, found_out):
    # At 0.1 each the total is 0.2: the rate with the person is at most e^0.1 of that without, here.
    noise = sf.Geometric(epsilon=epsilon, sensitivity=1)
    people = 500
    outcome = differencing_totals(
        lambda: noise.release(np.full(people, 1_042)),
        lambda: noise.release(np.full(people, 1_041)),
        ask_without=lambda: noise.release(np.full(people, 1_041)),
        truth=np.ones(people),
        tolerance=0,
        trials=1,
    )
    assert sure(outcome).works == found_out
    assert sure(outcome).within != found_out


def test_a_sum_within_bounds_is_as_good_as_a_uniform_guess():
    # At 1/20 each the noise is twenty times the bounds: folded into them it is uniform.
    noise, people = sf.Laplace(epsilon="0.05", sensitivity=100), 1_000
    ages = np.full(people, 37.0)
    outcome = differencing_totals(
        lambda: noise.release(5_000 + ages),
        lambda: noise.release(np.full(people, 5_000.0)),
        truth=ages,
        tolerance=10,
        trials=1,
        bounds=(0, 100),
    )
    assert outcome.baseline == 0.2
    assert sure(outcome).within


def test_a_uniform_guess_cannot_leave_the_bounds():
    def known(truth, bounds):
        return differencing_totals(
            lambda: 7, lambda: 4, truth=truth, tolerance=1, trials=1, bounds=bounds
        ).baseline

    assert known(0, (0, 10)) == pytest.approx(0.1)
    assert known(5, (0, 10)) == pytest.approx(0.2)
    assert known(5, (4.5, 5.5)) == 1


def test_answers_and_misses_may_be_beyond_all_floats():
    outcome = differencing_totals(lambda: 10**400, lambda: 0, truth=1, tolerance=1, trials=1)
    assert outcome.rate == 0
    assert outcome.detail["median_miss"] > 1e308


@pytest.mark.parametrize(
    ("estimate", "truth"), [(12, 8), (-3, 3), (23, 3), (-17, 3), (10, 10), (0, 0), (20, 0)]
)
def test_an_estimate_outside_is_mirrored_at_the_bounds(estimate, truth):
    outcome = differencing_totals(
        lambda: estimate, lambda: 0, truth=truth, tolerance=0, trials=1, bounds=(0, 10)
    )
    assert outcome.rate == 1


def _with(**changed):
    given = {
        "ask_first": lambda: 1,
        "ask_second": lambda: 2,
        "truth": 1,
        "tolerance": 1,
        "trials": 2,
        **SIZES,
        **changed,
    }
    return differencing(given.pop("ask_first"), given.pop("ask_second"), **given)


def _broken():
    raise KeyError("Rick earns 630000")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"first_size": 26}, "must differ"),
        ({"first_size": 0}, "at least 1"),
        ({"second_size": 2.5}, "whole number"),
        ({"truth": float("nan")}, "truth must be a finite number"),
        ({"truth": []}, "truth must be a finite number"),
        ({"truth": [[1]]}, "truth must be a finite number"),
        ({"tolerance": -1}, "not be negative"),
        ({"trials": 0}, "at least 1"),
        ({"ask_first": 5}, "ask_first must be a function"),
        ({"ask_first": None}, "must be functions"),
        ({"ask_second": lambda: float("inf")}, "what ask_second answers must be a finite number"),
        ({"ask_second": lambda: None}, "what ask_second answers must be a finite number"),
        ({"ask_second": lambda: [1, 2]}, "2 numbers where truth has 1"),
        ({"ask_without": lambda: np.ones((2, 2))}, "what ask_without answers"),
        ({"ask_second": _broken}, "ask_second must answer with finite numbers, but raised KeyError"),
        ({"bounds": (1, 1)}, "below the largest"),
        ({"bounds": (2, 3)}, "within the bounds"),
        ({"bounds": 3}, "two numbers"),
        ({"confidence": 2}, "strictly between"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(changed, words):
    with pytest.raises(InvalidParameter, match=words) as caught:
        _with(**changed)
    assert "630000" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_refusal_of_the_ledger_stays_one():
    table = sf.PrivateTable(
        "t", source=pa.table({"x": [1.0, 2.0]}), unit=sf.PrivacyUnit.row(), schema={"x": sf.Float(0, 9)}
    )
    with sf.Session(table, budget=sf.Budget(1)) as session, pytest.raises(BudgetExceeded):
        _with(ask_first=lambda: session.sql("SELECT SUM(x) AS s FROM t").release(epsilon=2).table["s"])
