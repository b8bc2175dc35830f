"""Descent and federated averaging: about as good as plain ones, with every round in the price."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from sklearn import linear_model

import sfumato as sf
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.fits.meter import Meter
from sfumato.learn import FederatedAveraging, NoisyGradientDescent, federated, gradient
from sfumato.learn._core.rows import Rows
from sfumato.testing import seeded
from sfumato.testing.fits import check_fit

CLASSES = {"bounds": (-1, 1), "classes": [0, 1]}


def clients(many, each=4, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (many * each, 3))
    chance = 1 / (1 + np.exp(-rows @ [4.0, -3.0, 1.0] - 0.5))
    return rows, (rng.random(many * each) < chance).astype(int), np.repeat(np.arange(many), each)


def test_many_clients_learn_about_as_much_as_one_who_has_all_rows():
    rows, labels, whose = clients(2000)
    plain = linear_model.LogisticRegression().fit(rows, labels).score(rows, labels)
    with seeded(1):
        ours = FederatedAveraging(1, "1e-6", **CLASSES, rounds=12).fit(rows, labels, units=whose)
        noisy = FederatedAveraging(
            1, "1e-6", **CLASSES, rounds=6, local_epsilon=6, local_delta="1e-6", enrolled=2000
        ).fit(rows, labels, units=whose)
    assert ours.score(rows, labels) > plain - 0.01
    assert noisy.score(rows, labels) > plain - 0.03
    assert ours.predict_proba(rows[:3]).sum(axis=1) == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("objective", ["logistic", "squared"])
def test_descent_learns(objective):
    rows, labels, _ = clients(2000, 1)
    plain = linear_model.LogisticRegression().fit(rows, labels).score(rows, labels)
    with seeded(1):
        ours = NoisyGradientDescent(2, "1e-6", **CLASSES, objective=objective, rate=0.7, steps=25)
        assert ours.fit(rows, labels).score(rows, labels) > plain - 0.03


@pytest.mark.parametrize(
    "model",
    [
        NoisyGradientDescent(2, "1e-6", **CLASSES, steps=7),
        FederatedAveraging(2, "1e-6", **CLASSES, rounds=5),
        FederatedAveraging(2, "1e-6", **CLASSES, rounds=5, enrolled=9),
    ],
    ids=["descent", "federated", "enrolled"],
)
def test_all_rounds_together_cost_what_is_said(model):
    rows, labels, whose = clients(5)
    taken = []
    model._learn(model._rows(rows, labels, whose), Meter(model.loss.rho, taken.append))
    assert len(taken) == (5 if getattr(model, "enrolled", None) else 6 if hasattr(model, "rounds") else 8)
    slow = sf.compose(taken).epsilon(1e-6)
    assert slow == pytest.approx(2, rel=1e-6)
    assert slow <= 2 + 1e-9


def test_both_promises_are_those_of_slow_composition():
    told = FederatedAveraging(
        1, "1e-6", **CLASSES, rounds=9, clip=3, local_epsilon="0.5", local_delta="1e-7", enrolled=100
    ).account()
    assert told["central"].epsilon == pytest.approx(1, rel=1e-6)
    one = sf.Gaussian("0.5", "1e-7", sensitivity=6).loss
    assert told["local"].epsilon == pytest.approx(sf.compose([one] * 9).epsilon(1e-7), rel=1e-9)
    assert told["local"].epsilon > 1.5
    assert math.isinf(FederatedAveraging(1, "1e-6", **CLASSES).account()["local"].epsilon)


def test_a_report_has_the_noise_that_the_account_counts():
    noise = sf.Gaussian(1, "1e-6", sensitivity=2 * 2**20)
    many, width = 50, 40
    with seeded(4):
        total = federated._summed(np.zeros((3, width)), Fraction(1), noise, many)
    found = np.std(total.values) / math.sqrt(many) / math.sqrt(noise.variance)
    # 40 squares of a normal law: beyond these ends with a probability below 1e-9.
    assert 0.35 < found < 1.9


def test_a_client_changes_the_same_whoever_else_there_is():
    rows, labels, whose = clients(6)
    model = FederatedAveraging(1, "1e-6", **CLASSES)
    weights = np.array([0.3, -2.0, 0.1, 0.7])
    together = federated._Clients(model._rows(rows, labels, whose)).trained(weights, 3, 2.0)
    for client in range(6):
        own = whose == client
        alone = federated._Clients(model._rows(rows[own], labels[own], whose[own])).trained(weights, 3, 2.0)
        assert (alone[0] == together[client]).all()


@pytest.mark.parametrize("model", [NoisyGradientDescent, FederatedAveraging])
def test_no_row_gives_a_model(model):
    made = model(1, "1e-6", **CLASSES)
    design = made._design(["a", "b"])
    rows = Rows(design, np.zeros((0, 2), np.int16), np.zeros(0, np.int64))
    assert np.isfinite(made._learn(rows, Meter.alone(made.loss))["weights"]).all()


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (federated, "clipped", lambda lines, bound: lines),
        (gradient, "gradients", lambda rows, weights, found, clip: GRADIENTS(rows, weights, found, 9)),
        (gradient, "units_in", lambda rows: COUNT(rows)._replace(values=2 * COUNT(rows).values)),
    ],
    ids=["updates are not cut", "a bound of nine for one", "everybody is counted twice"],
)
def test_a_planted_bug_is_seen(monkeypatch, where, name, bug):
    if name == "gradients":
        # The sums of a longer cut under the shorter claim.
        monkeypatch.setattr(
            where,
            name,
            lambda *given: bug(*given)._replace(sensitivity=GRADIENTS(*given).sensitivity),
        )
    else:
        monkeypatch.setattr(where, name, bug)
    with pytest.raises(AssertionError):
        check_all(where)


def check_all(where):
    for _ in range(4):
        for example in where.examples():
            check_fit(example)


GRADIENTS, COUNT = gradient.gradients, gradient.units_in


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"clip": 5000},
        {"rate": math.inf},
        {"local_epsilon": 1},
        {"local_epsilon": 1, "local_delta": "1e-6"},
        {"classes": [0, 1, 2]},
    ],
)
def test_unusable_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        FederatedAveraging(1, "1e-6", **{**CLASSES, **wrong}).fit(*clients(2)[:2])


def test_more_clients_than_are_enrolled_are_refused():
    with pytest.raises(InvalidValue, match="enrolled"):
        FederatedAveraging(1, "1e-6", **CLASSES, enrolled=3).fit(*clients(2)[:2])


def test_a_session_takes_no_enrolled_clients():
    held, schema = pa.table({"label": [0], "a": [1.0]}), {"label": sf.Int(0, 1), "a": sf.Float(0, 1)}
    people = sf.PrivateTable("people", source=held, unit=sf.PrivacyUnit.row(), schema=schema)
    session = sf.Session(people, budget=sf.Budget(9, "0.1"))
    with session, pytest.raises(InvalidParameter, match="leave enrolled out"):
        FederatedAveraging(1, "1e-6", **CLASSES, enrolled=3).fit(session, "people", target="label")


@pytest.mark.parametrize("noise", [0.5, -0.5, 1.5, 0.49])
def test_an_update_moves_the_sum_by_no_more_than_itself_whatever_the_noise(noise):
    class Fixed:
        def release(self, values):
            return values + noise

    step, clip = 2.0**-20, Fraction(3, 2**21)
    alone = federated._summed(np.zeros((0, 1)), clip, Fixed(), 3)
    for update in range(-2, 3):
        total = federated._summed(np.array([[update * step]]), clip, Fixed(), 3)
        assert abs(int(total.values[0]) - int(alone.values[0])) <= total.sensitivity


def test_how_many_add_noise_does_not_depend_on_how_many_have_rows():
    class Counting:
        def release(self, values):
            self.heard = len(values)
            return values + 1.0

    noise = Counting()
    for many in range(6):
        total = federated._summed(np.zeros((many, 1)), Fraction(1), noise, 3)
        assert (noise.heard, int(total.values[0])) == (3, 3)
