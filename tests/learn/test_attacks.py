"""What is known to give rows away works on plain models, and stays within the price on private ones."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as PlainLogistic

import sfumato as sf
from sfumato import learn
from sfumato.fits.meter import Meter, price
from sfumato.learn._core.declared import number
from sfumato.learn._core.design import Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import gradients
from sfumato.learn._report.belonging import advantage_allowed
from sfumato.testing import seeded

EPSILON, DELTA = 1, "1e-5"


def exchanged(epsilon):
    """The epsilon of one row exchanged for another."""
    return price(epsilon, DELTA).group(2).epsilon(float(DELTA))


def private(epsilon=EPSILON):
    return learn.LogisticRegression(epsilon=epsilon, delta=DELTA, bounds=(0, 1), classes=[0, 1])


def plain(_epsilon=None):
    return PlainLogistic(C=1e6, max_iter=2000)


@pytest.mark.parametrize(("make", "works"), [(plain, True), (private, False)])
def test_membership_shows_in_a_plain_model_and_within_the_price_in_a_private_one(make, works):
    """Labels are coins: whatever a model knows of them, it knows by heart, and no better than 3 in 4 show."""
    epsilon = 0.2
    draw = np.random.default_rng(4)
    X, y = draw.random((240, 90)), draw.integers(0, 2, 240)

    def confidence(model, rows, labels):
        return model.predict_proba(rows)[np.arange(len(rows)), labels]

    with seeded("membership"):
        outcome = sf.attacks.shadow(
            lambda rows, labels, _: make(epsilon).fit(rows, labels),
            confidence,
            X,
            y,
            members=np.arange(60),
            others=np.arange(60, 120),
            shadows=2,
            seed=1,
        )
    assert outcome.works is works
    assert outcome.keeps(exchanged(epsilon), delta=float(DELTA)) is not works
    surely = 2 * outcome.interval[0] - 1  # the least that TPR − FPR is
    assert (surely > advantage_allowed(private(epsilon))) is works


def clipped_noisy(rows, labels, *, noisy):
    """What a fit may release of these records at its first step, if the whole price goes into that one."""
    columns = [number(f"x{at}", 0, 1) for at in range(rows.shape[1])]
    held = Rows(Design(columns), Design(columns).integers(rows), np.asarray(labels))
    weights = np.zeros((rows.shape[1] + 1, 1))

    def residuals(place, _):
        return (0.5 - held.target[place, None]) * 2.0**20

    total = gradients(held, weights, residuals, 1)
    released = (
        Meter.alone(price(EPSILON, DELTA)).noisy(total, 1) if noisy else total.values * float(total.step)
    )
    return released[:-1], released[-1:]


@pytest.mark.parametrize("noisy", [False, True])
def test_a_gradient_gives_its_record_away_without_noise_alone(noisy):
    draw = np.random.default_rng(5)
    X, y = draw.random((60, 12)), draw.integers(0, 2, 60)
    with seeded("gradients"):
        outcome = sf.attacks.gradient_leakage(
            lambda rows, labels: clipped_noisy(rows, labels, noisy=noisy), X, y, seed=1
        )
    assert outcome.works is not noisy
    assert outcome.keeps(exchanged(EPSILON), delta=float(DELTA)) is noisy
    assert outcome.detail["relative error"] < 1e-3 if not noisy else outcome.detail["relative error"] > 0.5


@pytest.mark.parametrize(("make", "found"), [(plain, True), (private, False)])
def test_canaries_show_in_a_plain_model_and_within_the_price_in_a_private_one(make, found):
    """Each canary has a column of its own: a weight that nothing else moves says whether it was there."""
    size = 80
    draw = np.random.default_rng(6)
    base, labels = np.zeros((60, size)), draw.integers(0, 2, 60)

    def train(inside):
        X = np.vstack([base, np.eye(size)[inside]])
        return make().fit(X, np.concatenate([labels, np.ones(len(inside), int)]))

    with seeded("canaries"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shown = sf.audit.canary_audit(
            train,
            lambda model, canary: float(model.coef_[0, canary]),
            range(size),
            delta=float(DELTA),
            confidence=0.999,
        )
    assert shown.epsilon > EPSILON if found else shown.epsilon <= EPSILON
