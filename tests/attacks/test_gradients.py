"""A gradient is its record: read off exactly where it is plain, not told from others where it is private."""

import numpy as np
import pytest
from scipy.special import softmax

import sfumato as sf
from sfumato.attacks.gradients import gradient_leakage, record_of
from sfumato.book import learning
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded
from verdicts import sure

RECORDS, FEATURES, DECOYS = 200, 40, 49
EPSILON, DELTA = 1, 1e-6


@pytest.fixture(scope="module")
def world():
    generator = simulation(3)
    rows = generator.normal(size=(RECORDS + DECOYS, FEATURES))
    return rows[:RECORDS], generator.choice([-1, 1], RECORDS), rows[RECORDS:]


def _plain(X, y):
    """What one client sends: the gradient of a logistic layer with a bias, at a model that means nothing."""
    theta = np.full(FEATURES + 1, 0.1)
    total = learning.gradient(theta, np.column_stack([X, np.ones(len(X))]), y).sum(axis=0)
    return total[:-1], total[-1]


def _private(noise):
    """The same, clipped to 1 and with noise for the exchange of a record, which moves it by at most 2."""

    def gradient(X, y):
        theta = np.full(FEATURES + 1, 0.1)
        total = learning.gradient_sum(theta, np.column_stack([X, np.ones(len(X))]), y, 1)
        sent = noise.release(total)
        return sent[:-1], sent[-1]

    return gradient


def test_a_plain_gradient_is_the_record(world):
    X, y, others = world
    outcome = gradient_leakage(_plain, X, y, candidates=others, seed=1)
    assert outcome.works
    assert outcome.rate == 1
    assert outcome.baseline < 0.1
    assert outcome.detail["read off"] == RECORDS
    assert outcome.detail["relative error"] < 1e-12
    assert record_of(*_plain(X[:1], y[:1])) == pytest.approx(X[0])


def test_a_layer_without_bias_gives_the_direction_and_that_is_enough(world):
    X, y, _ = world
    outcome = gradient_leakage(lambda X, y: _plain(X, y)[0], X, y, seed=1)
    assert outcome.rate == 1
    assert outcome.baseline == 1 / RECORDS
    assert outcome.detail["epsilon at least"] > 5
    assert "read off" not in outcome.detail


def test_a_private_gradient_is_not_told_from_others(world):
    # Whoever attacks: at most e^ε/200 + δ = 1.4 % on average at epsilon 1; a guess reaches 2 % in 200 trials.
    X, y, _ = world
    with seeded(7):
        outcome = gradient_leakage(_private(sf.Gaussian(EPSILON, DELTA, sensitivity=2)), X, y, seed=1)
    assert sure(outcome).within
    assert outcome.detail["read off"] == 0
    assert outcome.detail["epsilon at least"] <= EPSILON


def test_thirty_times_too_little_noise_is_seen(world):
    X, y, _ = world
    weak = sf.Gaussian(sigma=sf.Gaussian(EPSILON, DELTA, sensitivity=2).sigma / 30, sensitivity=2)
    with seeded(7):
        assert gradient_leakage(_private(weak), X, y, seed=1).works


def _classes(X, y):
    """A softmax layer of ten classes at zero weights, over a batch."""
    errors = softmax(np.zeros((len(X), 10)), axis=1) - np.eye(10)[y]
    return errors.T @ X, errors.sum(axis=0)


def test_a_batch_of_different_classes_is_read_class_by_class(world):
    X, _, others = world
    y = np.tile(np.arange(10), RECORDS // 10)
    outcome = gradient_leakage(_classes, X, y, candidates=others, batch=2, seed=1)
    assert outcome.works
    assert outcome.rate > 0.8
    assert outcome.baseline < 0.1


def test_a_step_on_a_private_batch_is_not(world):
    X, y, others = world
    with seeded(9):
        outcome = gradient_leakage(
            _private(sf.Gaussian(EPSILON, DELTA, sensitivity=2)), X, y, candidates=others, batch=4, seed=1
        )
    assert sure(outcome).within


def test_a_gradient_that_says_nothing_is_a_guess(world):
    X, y, _ = world
    assert sure(gradient_leakage(lambda X, y: np.zeros(FEATURES), X, y, seed=1)).within


def test_what_cannot_be_used_is_refused_in_a_sentence(world):
    X, y, others = world
    for given, words in (
        (lambda: gradient_leakage(_plain, X, y[1:]), "one for each"),
        (lambda: gradient_leakage(_plain, X * np.nan, y), "finite"),
        (lambda: gradient_leakage(_plain, X, y, candidates=others[:, 1:]), "columns"),
        (lambda: gradient_leakage(_plain, [["a"]], [1]), "numbers"),
        (lambda: gradient_leakage(_plain, X[:1], y[:1]), "more candidates"),
        (lambda: gradient_leakage(_plain, X, y, batch=3), "divide"),
        (lambda: gradient_leakage(lambda X, y: X[0, 1:], X, y), "each feature"),
        (lambda: gradient_leakage(lambda X, y: (X, [1, 2]), X, y), "one number a feature"),
        (lambda: gradient_leakage(lambda X, y: X[0] * np.inf, X, y), "finite"),
        (lambda: gradient_leakage(lambda X, y: 1 / 0, X, y), "ZeroDivisionError"),
        (lambda: record_of([1.0, 2.0], 0.0), "bias is zero"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            given()


def test_a_constant_gradient_tells_nothing_though_the_candidates_are_fixed():
    # One decoy for all records: by its direction alone it is named for all of them, or for none.
    for seed in range(6):
        draw = simulation(seed)
        constant = draw.normal(size=5)
        outcome = gradient_leakage(
            lambda rows, labels, constant=constant: constant,
            draw.normal(size=(100, 5)),
            np.zeros(100),
            candidates=draw.normal(size=(1, 5)),
            seed=seed,
        )
        assert sure(outcome).within
        assert "epsilon at least" not in outcome.detail
