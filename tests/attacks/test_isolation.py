"""Isolation by counts: exact ones single a person out every time, private ones as often as a blind guess."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.attacks import isolation
from sfumato.errors import BudgetExceeded, InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded


def crowd(count, seed=1):
    draw = simulation(seed)
    return pa.table({"age": draw.integers(18, 90, count), "income": draw.normal(size=count).round(6)})


PEOPLE = crowd(500)


def exact(who):
    return int(who.sum())


def test_exact_counts_isolate_somebody_every_time():
    found = isolation(PEOPLE, exact, seed=1, target="exact counts")
    assert found.works
    assert found.reached.hits >= 99
    assert found.detail == {"questions": 20, "weight": 2.0**-19, "people": 500}
    assert found.baseline == pytest.approx(500 * 2.0**-19, rel=1e-2)
    assert "isolation against exact counts: a description fits exactly one person in" in str(found)


def test_private_counts_isolate_nobody_and_the_attack_says_what_it_would_have_noticed():
    one = sf.Geometric(epsilon="1/20", sensitivity=1)  # 20 answers: epsilon 1 in all
    with seeded("isolation"):
        found = isolation(PEOPLE, lambda who: one.release(exact(who)), seed=1, target="epsilon 1")
    assert found.works is False
    assert found.within
    assert found.power.enough
    assert found.power.leak == "exact counts"


@pytest.mark.parametrize("epsilon", [1, 4])
def test_what_is_reached_stays_within_what_epsilon_allows(epsilon):
    # Few lines, so that a blind guess hits often and a larger chance would be seen.
    questions, trials = 9, 200
    noise = sf.Geometric(epsilon=Fraction(epsilon, questions), sensitivity=1)
    few = crowd(30, seed=2)
    with seeded(f"isolation {epsilon}"):
        found = isolation(
            few, lambda who: noise.release(exact(who)), questions=questions, trials=trials, seed=3
        )
    assert found.reached.hits > 2
    assert found.interval[0] <= math.exp(epsilon) * 30 * found.detail["weight"]


def test_a_blind_description_isolates_as_often_as_is_said():
    # Answers that say nothing lead down a path that depends on no row.
    few = crowd(60, seed=4)
    blind = isolation(few, lambda _: 7, questions=7, trials=200, seed=5, confidence=1 - 1e-9)
    assert blind.baseline == pytest.approx(60 / 64 * (63 / 64) ** 59)
    assert blind.interval[0] <= blind.baseline <= blind.interval[1]
    assert blind.works is False


def test_people_who_are_alike_are_not_isolated():
    twice = pa.concat_tables([PEOPLE, PEOPLE])
    found = isolation(twice, exact, seed=1)
    assert found.reached.hits == 0
    assert found.baseline == 0.0
    assert found.works is None
    assert "give more columns, so that people differ" in found.undecided


def test_some_columns_may_be_enough():
    assert isolation(PEOPLE, exact, columns="income", trials=20, seed=1).works
    ages = isolation(PEOPLE, exact, columns=["age"], trials=20, seed=1)
    assert ages.reached.hits < 10


def test_the_same_seed_asks_the_same_questions():
    def questions():
        said = []
        isolation(crowd(8), lambda who: said.append(who) or exact(who), trials=2, seed=9)
        return np.array(said)

    first = questions()
    assert first.shape == (2 * 14, 8)
    assert (first == questions()).all()
    assert first[0].all()
    assert first[14].all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"questions": 1}, "questions must be from 2 to 61"),
        ({"questions": 62}, "questions must be from 2 to 61"),
        ({"columns": "name"}, "name"),
        ({"people": PEOPLE.slice(0, 0)}, "row"),
        ({"ask": lambda who: [1, 2]}, "one number for a set of people"),
        ({"ask": lambda who: 1 / 0}, "raised ZeroDivisionError"),
        ({"ask": 5}, "must be a function"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(given, sentence):
    people, ask = given.pop("people", PEOPLE), given.pop("ask", exact)
    with pytest.raises(InvalidParameter, match=sentence):
        isolation(people, ask, **given)


def test_a_ledger_that_refuses_ends_it():
    table = sf.PrivateTable(
        "people",
        source=PEOPLE,
        unit=sf.PrivacyUnit.row(),
        schema={"age": sf.Int(18, 90), "income": sf.Float(-5, 5)},
    )
    session = sf.Session(table, budget=sf.Budget(epsilon=1), ledger=None)
    ages = iter(range(18, 90))

    def ask(_who):
        query = f"SELECT COUNT(*) AS n FROM people WHERE age > {next(ages)}"
        return session.sql(query).release(epsilon="1/5").table["n"]

    with pytest.raises(BudgetExceeded):
        isolation(PEOPLE, ask, trials=1)
