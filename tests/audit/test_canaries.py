"""Canaries: what leaks is caught after one run, what is private never exceeds its epsilon."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.canaries import canary_audit, many_runs
from sfumato.errors import InvalidParameter
from sfumato.testing import seeded

COUNT = 400
CANARIES = list(range(COUNT))


def leaky(inside):
    """A 'model' that is a plain mean of one-hot vectors: each canary shows in a coordinate of its own."""
    total = np.zeros(COUNT)
    total[inside] = 1
    return total / COUNT


def private(mechanism):
    def train(inside):
        total = np.zeros(COUNT)
        total[inside] = 1.0
        return mechanism.release(total)

    return train


def score(model, canary):
    return model[canary]


def test_what_leaks_is_caught_in_one_run():
    with seeded("leaky"):
        bound = canary_audit(leaky, score, CANARIES, delta=1e-5, confidence=0.999)
    assert (bound.correct, bound.guesses, bound.canaries) in {
        (k, COUNT, COUNT) for k in range(COUNT // 2, COUNT + 1)
    }
    assert bound.refutes(2.0)
    with seeded("leaky"):
        few = canary_audit(leaky, score, CANARIES, guesses=200, delta=1e-5, confidence=0.999)
    assert few.correct == few.guesses == 200  # about the surest half all is right
    assert few.refutes(3.0)


@pytest.mark.parametrize("family", [None, "gaussian"])
def test_what_is_private_stays_below_its_epsilon(family):
    # One-hot canaries: adding one moves the sum by 1 in L2, whatever the others are.
    delta, mechanism = 1e-3, sf.Gaussian(epsilon=2, delta=1e-3, sensitivity=1.0)
    for seed in range(5):
        with seeded(f"private {seed}"):
            bound = canary_audit(
                private(mechanism),
                score,
                CANARIES,
                guesses=[100, 400],
                delta=delta,
                confidence=1 - 1e-7,
                family=family,
            )
        assert not bound.refutes(2.0)


def test_the_curve_sees_most_of_a_gaussian():
    mechanism = sf.Gaussian(epsilon=2, delta=1e-3, sensitivity=1.0)
    with seeded("tight"):
        plain, curve = (
            canary_audit(private(mechanism), score, CANARIES, guesses=100, delta=1e-3, family=family)
            for family in (None, "gaussian")
        )
    assert curve.epsilon > 0.6
    assert curve.epsilon > plain.epsilon
    assert "Gaussian" in curve.assumption
    assert "fair coin" in plain.assumption


def test_a_third_of_the_noise_is_caught():
    delta, claim = 1e-3, sf.Gaussian(epsilon=2, delta=1e-3, sensitivity=1.0)
    with seeded("third"):
        bound = canary_audit(
            private(sf.Gaussian(sigma=float(claim.sigma) / 3, sensitivity=1.0)),
            score,
            CANARIES,
            guesses=200,
            delta=delta,
            confidence=0.999,
            family="gaussian",
        )
    assert bound.refutes(2.0)


def test_several_numbers_of_guesses_share_the_confidence():
    with seeded("share"):
        one = canary_audit(leaky, score, CANARIES, guesses=200)
    with seeded("share"):
        two = canary_audit(leaky, score, CANARIES, guesses=[200, 200])
    assert two.confidence == one.confidence == 0.95
    assert 0 < two.epsilon < one.epsilon


def test_coins_are_fair_and_reach_training_alone():
    seen = []
    with seeded("coins"):
        canary_audit(lambda inside: seen.append(inside), lambda model, canary: 0.0, list(range(10_000)))
    (inside,) = seen
    assert 4_700 < len(inside) < 5_300
    assert inside == sorted(inside)


def test_scores_that_say_nothing_prove_nothing():
    with seeded("nothing"):
        assert canary_audit(leaky, lambda model, canary: 0.0, CANARIES, confidence=1 - 1e-7).epsilon == 0.0


def test_many_runs_of_one_canary():
    def train(mechanism):
        return lambda inside: mechanism.release(float(len(inside)))

    laplace = sf.Laplace(epsilon=1, sensitivity=1)
    with seeded("many"):
        honest = many_runs(train(laplace), lambda model, _: model, "canary", runs=2000, confidence=1 - 1e-7)
    assert 0.3 < honest.epsilon <= 1.0
    with seeded("many"):
        planted = many_runs(
            train(sf.Laplace(epsilon=3, sensitivity=1)), lambda model, _: model, "canary", runs=500
        )
    assert planted.refutes(1.0)


def test_unusable_input_is_refused():
    with pytest.raises(InvalidParameter, match="at least 2 canaries"):
        canary_audit(leaky, score, [1])
    for guesses in (0, COUNT + 1, []):
        with pytest.raises(InvalidParameter, match="guesses"):
            canary_audit(leaky, score, CANARIES, guesses=guesses)
    for answer in (float("nan"), "high", None, [1.0, 2.0]):
        with pytest.raises(InvalidParameter, match="not a number"):
            canary_audit(leaky, lambda model, canary, answer=answer: answer, CANARIES)


def never(*_):
    pytest.fail("a training run is dear: parameters are checked before it")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"family": "normal", "delta": 1e-5}, "family is one of"),
        ({"family": ["gaussian"], "delta": 1e-5}, "family is one of"),
        ({"family": "gaussian"}, "no finite epsilon at delta 0"),
        ({"delta": 1.0}, "delta must be"),
        ({"delta": None}, "delta must be"),
        ({"confidence": 1.0}, "confidence must lie"),
        ({"confidence": "much"}, "confidence must be"),
        ({"guesses": 2.0}, "guesses must be a whole number"),
        ({"guesses": True}, "guesses must be a whole number"),
        ({"guesses": [5, COUNT + 1]}, "guesses must be between"),
    ],
)
def test_nothing_is_trained_for_parameters_that_are_refused(wrong, words):
    with pytest.raises(InvalidParameter, match=words):
        canary_audit(never, never, CANARIES, **wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"runs": 99}, "runs must be at least 100"), ({"delta": -1}, "delta"), ({"confidence": 0}, "confid")],
)
def test_no_run_of_many_is_started_for_parameters_that_are_refused(wrong, words):
    with pytest.raises(InvalidParameter, match=words):
        many_runs(never, never, "canary", **wrong)
    with pytest.raises(InvalidParameter, match="must be functions"):
        many_runs("train", never, "canary")


@pytest.mark.parametrize("guesses", [np.int64(200), np.array([200]), (np.int32(200),), range(200, 201)])
def test_numbers_of_numpy_are_numbers(guesses):
    with seeded("numpy"):
        expected = canary_audit(leaky, score, np.arange(COUNT), guesses=200, delta=1e-5)
    with seeded("numpy"):
        found = canary_audit(leaky, score, iter(CANARIES), guesses=guesses, delta=np.float64(1e-5))
    assert found == expected
    assert type(found.guesses) is int
