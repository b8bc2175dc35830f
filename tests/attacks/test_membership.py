"""Membership in a training set: told of a model that memorises, not told of a private one."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit

import sfumato as sf
from sfumato.attacks import membership
from sfumato.book import learning
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded
from verdicts import sure

# Few rows, many features, labels that are coins: all that a model can learn of them is who they were.
ROWS, COLUMNS, STEPS = 150, 600, 10
EPSILON, DELTA = 0.3, 1e-5
MEMBERS, OTHERS = np.arange(ROWS), np.arange(ROWS, 2 * ROWS)


@pytest.fixture(scope="module")
def records():
    generator = simulation(1)
    X = generator.normal(size=(4 * ROWS, COLUMNS)) / COLUMNS**0.5
    return X, generator.choice([-1, 1], 4 * ROWS)


def _confidence(theta, X, y):
    return expit(y * (X @ theta))


def _plain(X, y, seed):
    return learning.gradient_descent(STEPS, X, y, rate=5.0)


def _private(X, y, seed):
    return learning.noisy_gradient_descent(STEPS, EPSILON, DELTA, X=X, y=y, b="0.5", size=ROWS, rate=2.0)


ATTACKS = {
    "shadow": membership.shadow,
    "online": partial(membership.likelihood_ratio, shadows=12),
    "offline": partial(membership.likelihood_ratio, shadows=12, online=False),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_model_that_memorises_tells_its_members(records, name):
    outcome = ATTACKS[name](_plain, _confidence, *records, members=MEMBERS, others=OTHERS, seed=2)
    assert outcome.works
    assert outcome.rate > 0.8
    assert outcome.reached.trials == 2 * ROWS
    assert outcome.detail["advantage"] == pytest.approx(2 * outcome.rate - 1)
    assert outcome.detail["auc"] > 0.9
    assert outcome.detail["tpr at 1% fpr"] > 0.1
    # No mechanism of epsilon 1 (under exchange) lets anybody do so well.
    assert outcome.detail["epsilon at least"] > 1


@pytest.mark.parametrize("name", ["shadow", "online"])
def test_a_private_model_does_not(records, name):
    # Whoever attacks is right about at most (e^ε + δ)/(e^ε + 1) of the records: 57.4 % at epsilon 0.3, or
    # 64.6 % at the 0.6 of a row exchanged. A coin may reach 57.3 % in 300 tosses.
    with seeded(5):
        outcome = ATTACKS[name](_private, _confidence, *records, members=MEMBERS, others=OTHERS, seed=2)
    assert sure(outcome).within
    assert outcome.detail["epsilon at least"] <= 2 * EPSILON


@pytest.mark.parametrize("name", ["shadow", "online"])
def test_ten_times_too_little_noise_is_seen(records, name, monkeypatch):
    honest = learning.descent_noise

    def wrong(*given, b, **named):
        step, count = honest(*given, b=b, **named)
        return sf.Gaussian(rho=step.rho * 100, sensitivity=b), count

    monkeypatch.setattr(learning, "descent_noise", wrong)
    with seeded(5):
        outcome = ATTACKS[name](_private, _confidence, *records, members=MEMBERS, others=OTHERS, seed=2)
    assert outcome.works


def test_a_model_that_has_seen_nobody_gives_what_a_coin_gives(records):
    theta = simulation(8).normal(size=COLUMNS)
    outcome = membership.shadow(
        _plain,
        _confidence,
        *records,
        members=MEMBERS,
        others=OTHERS,
        model=theta,
        seed=1,
        target="a stranger",
    )
    assert sure(outcome).within
    assert outcome.target == "a stranger"
    assert outcome.detail["epsilon at least"] == 0


def test_figures_of_scores_that_are_known():
    inside, outside = np.array([3.0, 2.0, 2.0, -1.0]), np.array([2.0, 0.0, 0.0, -5.0])
    wins = sum((a > b) + (a == b) / 2 for a in inside for b in outside)
    assert membership._area(inside, outside) == pytest.approx(wins / 16)
    assert membership._found_at(inside, outside, 0.0) == 0.25
    assert membership._found_at(inside, outside, 0.25) == 0.75
    cut = membership._best_threshold(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.5, 2.5]))
    assert 0.5 < cut < 1.0
    # Every member above every other: all pairs are won; all equal: about half of them.
    assert membership._pairs_won(np.ones(100), np.zeros(100), simulation(1)) == 100
    assert 20 < membership._pairs_won(np.ones(100), np.ones(100), simulation(1)) < 80


def test_members_beyond_the_others_are_not_counted_but_trained_on(records):
    X, y = records
    seen = []

    def train(rows, labels, seed):
        seen.append(len(rows))
        return _plain(rows, labels, seed)

    outcome = membership.likelihood_ratio(
        train, _confidence, X, y, members=np.arange(40), others=np.arange(40, 60), shadows=4, seed=1
    )
    assert outcome.reached.trials == 40
    assert set(seen) == {40}  # shadows are as large as the attacked model


def test_what_cannot_be_used_is_refused_in_a_sentence(records):
    X, y = records
    attack = partial(membership.shadow, _plain, _confidence, seed=1)
    known = {"members": MEMBERS, "others": OTHERS}
    for given, words in (
        (lambda: attack(X, y[1:], **known), "one row each"),
        (lambda: attack(X * np.nan, y, **known), "finite"),
        (lambda: attack(X, y, members=MEMBERS, others=MEMBERS), "share a row"),
        (lambda: attack(X, y, members=[], others=OTHERS), "at least one row"),
        (lambda: attack(X, y, members=[0, 0], others=OTHERS), "each once"),
        (lambda: attack(X, y, members=[0, 10**6], others=OTHERS), "each once"),
        (lambda: attack(X[: 2 * ROWS], y[: 2 * ROWS], **known), "leave at least four"),
        (lambda: membership.likelihood_ratio(_plain, _confidence, X, y, **known, shadows=5), "even"),
        (lambda: membership.shadow(_plain, lambda m, X, y: 2 * y, X, y, **known), "from 0 to 1"),
        (lambda: membership.shadow(_plain, lambda m, X, y: [0.5], X, y, **known), "for each row"),
        (lambda: membership.shadow(lambda X, y, s: 1 / 0, _confidence, X, y, **known), "ZeroDivisionError"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            given()
