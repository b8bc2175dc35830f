"""Asking again cancels noise that is fresh, and does nothing to an answer that a ledger remembers."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks.averaging import averaging
from sfumato.errors import InvalidParameter
from sfumato.testing import seeded
from verdicts import sure

CITIES = [f"city {number:03d}" for number in range(200)]
PEOPLE = 20  # in each
TIMES, NEAR = 12, 4
TEXT = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
EPSILON = Fraction(1, 10)


@pytest.fixture(autouse=True)
def repeatable():
    with seeded("averaging"):
        yield


def opened(budget):
    table = sf.PrivateTable(
        "people",
        source=pa.table({"city": np.repeat(CITIES, PEOPLE)}),
        unit=sf.PrivacyUnit.row(),
        schema={"city": sf.Enum(*CITIES, nullable=False)},
    )
    return sf.Session(table, budget=sf.Budget(budget))


def one_answer(epsilon, tolerance):
    """P(|noise| ≤ tolerance) of a count: the two-sided geometric law, summed by hand."""
    alpha = math.exp(-epsilon)
    return (1 - alpha) / (1 + alpha) * sum(alpha ** abs(k) for k in range(-tolerance, tolerance + 1))


def test_fresh_noise_without_a_ledger_is_averaged_away():
    noise = sf.Laplace(epsilon=EPSILON, sensitivity=1)
    outcome = averaging(
        lambda: noise.release(1_042.0),
        truth=1_042,
        tolerance=2,
        times=1_000,
        trials=20,
        once=1 - math.exp(-2 / noise.scale),
        target="fresh noise",
    )
    assert outcome.rate == 1
    assert outcome.baseline == pytest.approx(0.18, abs=0.01)
    assert sure(outcome).works
    assert outcome.detail["distinct_answers"] == 1_000
    # The deviation of the average, 14.1/√1000 = 0.45, and so of the count to the unit at a million answers.
    assert "the average of 1,000 answers is within ±2 of the truth" in outcome.words[0]


def counts(session, epsilon=EPSILON):
    return session.sql(TEXT).release(epsilon=epsilon).table["n"]


def test_a_session_gives_the_same_answer_again_for_nothing():
    truth = [PEOPLE] * len(CITIES)
    with opened(10) as session:
        given = {"truth": truth, "tolerance": NEAR, "times": TIMES, "trials": 1}
        known = averaging(lambda: counts(session), once=one_answer(0.1, NEAR), **given)
        assert sure(known).within
        assert known.detail["distinct_answers"] == 1
        counted = averaging(lambda: counts(session), **given)
        assert counted.rate == counted.baseline
        assert sure(counted).within
        assert session.balance().spent == EPSILON


def forgetful():
    fresh = iter(lambda: opened(1), None)

    def ask():
        with next(fresh) as session:  # a ledger that lives for one question
            return counts(session)

    return averaging(ask, truth=[PEOPLE] * len(CITIES), tolerance=NEAR, times=TIMES, trials=1)


def test_a_ledger_that_forgets_is_found_out():
    outcome = forgetful()
    assert outcome.works
    assert outcome.detail["distinct_answers"] == TIMES
    assert sure(replace(outcome, guess=one_answer(0.1, NEAR))).works


def test_noise_that_is_ten_times_too_small_is_found_out():
    with opened(10) as session:
        outcome = averaging(
            lambda: counts(session, epsilon=1),
            truth=[PEOPLE] * len(CITIES),
            tolerance=NEAR,
            times=2,
            trials=1,
            once=one_answer(0.1, NEAR),
        )
    assert sure(outcome).works


def test_answers_that_are_bought_end_with_the_budget_and_are_worse_than_one():
    prices = itertools.count(100, 10)  # far enough apart not to be answered by what was bought before
    with opened(1) as session:
        outcome = averaging(
            lambda: counts(session, epsilon=Fraction(next(prices), 1_000)),
            truth=[PEOPLE] * len(CITIES),
            tolerance=NEAR,
            times=50,
            trials=1,
            once=one_answer(1.0, NEAR),  # the whole budget for one answer
        )
        assert session.balance().spent == Fraction(sum(range(100, 170, 10)), 1_000)
    assert outcome.detail["refused_trials"] == 1
    assert outcome.detail["distinct_answers"] == 7
    assert not outcome.works
    assert outcome.rate < outcome.baseline


def test_each_trial_begins_anew():
    begun = []
    answers = itertools.count()
    outcome = averaging(
        lambda: next(answers), truth=1, tolerance=0, times=3, trials=4, renew=lambda: begun.append(1)
    )
    assert len(begun) == 4
    assert next(answers) == 12
    assert outcome.reached.hits == 1  # 0, 1, 2 average to 1; later trials do not
    assert outcome.guess.hits == 0


def _refused():
    raise sf.errors.BudgetExceeded("spent")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"times": 0}, "times must be at least 1"),
        ({"trials": 1.5}, "whole number"),
        ({"truth": "many"}, "truth must be a finite number"),
        ({"tolerance": float("nan")}, "tolerance must be a finite number"),
        ({"once": 1.5}, "from 0 to 1"),
        ({"renew": lambda: 1 / 0}, "renew must answer with finite numbers, but raised ZeroDivisionError"),
        ({"ask": lambda: [1, 2]}, "2 numbers where truth has 1"),
        ({"ask": lambda: "x"}, "what ask answers must be a finite number"),
        ({"ask": _refused}, "refused before its first answer"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(changed, words):
    given = {"ask": lambda: 1, "truth": 1, "tolerance": 1, "times": 2, "trials": 2, **changed}
    with pytest.raises(InvalidParameter, match=words):
        averaging(given.pop("ask"), **given)
