"""Boosted shapes: sums that a unit moves by no more than claimed, a model for every table, quality."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from sfumato import learn
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn._core.design import UNIT
from sfumato.learn._core.rows import Rows
from sfumato.learn._shapes.outcomes import Classes, Numbers, chances
from sfumato.learn._shapes.tallies import Tallies
from sfumato.testing.fits import check_pair
from sfumato.testing.stream import seeded

BOUNDS = {"n": (0, 1), "w": (0, 9), "c": ["a", "b", "z"]}


def table(seed, size=None, units=True):
    """Rows with extremes among them, and a person with most of the rows."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 40)) if size is None else size
    frame = pd.DataFrame(
        {
            "n": rng.choice([-3.0, 0.0, 0.2, 0.5, 1.0], size),
            "w": rng.integers(0, 10, size),
            "c": rng.choice(["a", "b", "other"], size),
        }
    )
    whose = np.minimum(rng.integers(0, size, size), 5) if units else None
    return frame, rng.integers(0, 3, size), whose


def classifier(classes=2, epsilon=3, **given):
    return learn.GradientBoosting(epsilon, "1e-5", BOUNDS, list(range(classes)), **given)


def regressor(**given):
    return learn.GradientBoostingRegressor(3, "1e-5", BOUNDS, (0, 2), **given)


def rows_of(model, frame, target, whose):
    if isinstance(model, learn.GradientBoosting):
        target = np.minimum(target, len(model.classes) - 1)
    return model._rows(frame, target, whose)


def without(rows, unit):
    kept = np.arange(len(rows)) != unit if rows.units is None else rows.units != unit
    units = None if rows.units is None else rows.units[kept]
    return Rows(rows.design, rows.integers[kept], rows.target[kept], units)


@pytest.mark.parametrize("seed", range(6))
def test_sums_by_code_are_those_of_slow_arithmetic(seed):
    rows = rows_of(classifier(), *table(seed, units=seed % 2 == 0))
    rng = np.random.default_rng(seed)
    codes, values = (
        rng.integers(0, 4, len(rows)).astype(np.uint8),
        rng.integers(-(2**16), 2**16, (2, len(rows))),
    )
    total = Tallies(rows).sums(codes, 4, lambda part: list(values[:, part]), 2**17, UNIT)
    slow = [[0, 0] for _ in range(4)]
    whose = rows.units if rows.units is not None else np.arange(len(rows))
    for at, code in enumerate(codes):
        weight = 1 if rows.units is None else 2**20 // int((whose == whose[at]).sum())
        for column in range(2):
            slow[code][column] += int(values[column, at]) * weight
    assert total.values.reshape(4, 2).tolist() == slow
    assert total.step * (1 if rows.units is None else 2**20) == Fraction(1, UNIT)


MODELS = {
    "two classes": lambda: classifier(rounds=2),
    "three classes": lambda: classifier(3, rounds=1, interactions=[("n", "c")]),
    "declared bins": lambda: classifier(bins={"n": [0.3, 0.6], "w": 4}, rounds=1, interactions=0),
    "pairs are found": lambda: classifier(epsilon=10**4, rounds=2),
    "a number": lambda: regressor(rounds=1),
    "a number, with a pair": lambda: regressor(rounds=1, bins=3, interactions=[("w", "n")]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(2))
def test_nobody_moves_a_fit_beyond_its_claim(name, seed):
    model = MODELS[name]()
    rows = rows_of(model, *table(seed, units=seed % 2 == 0))
    whose = range(len(rows)) if rows.units is None else np.unique(rows.units)
    for unit in (whose[0], whose[-1]):
        check_pair(model, rows, model, without(rows, unit))


class Counting(Meter):
    spent = Fraction(0)

    def noisy(self, total, share):
        self.spent += share
        return super().noisy(total, share)


@pytest.mark.parametrize("name", MODELS)
def test_the_whole_price_is_spent(name):
    model = MODELS[name]()
    meter = Counting(model.loss.rho, lambda loss: None)
    model._learn(rows_of(model, *table(1)), meter)
    assert meter.spent == 1


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("far", [2, 14, 2000])
def test_residuals_are_of_the_row_itself_and_no_longer_than_claimed(classes, far):
    rng = np.random.default_rng(classes)
    outcome = Classes(classes, rng.normal(100, 50, classes), 1.0)
    scores = rng.integers(-far * 1024, far * 1024, (outcome.outputs, 300)).astype(np.int32)
    target = rng.integers(0, classes, 300)
    found = np.array(outcome.residuals(scores, target), dtype=np.int64)
    assert (found**2).sum(axis=0).max() <= outcome.longest**2
    alone = [
        np.array(outcome.residuals(scores[:, at : at + 1], target[at : at + 1]))[:, 0] for at in range(300)
    ]
    assert (found == np.array(alone, dtype=np.int64).T).all()


def test_residuals_of_numbers_are_cut():
    outcome = Numbers(np.r_[np.zeros(30), 400.0, 500.0, 300.0, np.zeros(31)], 5.0)
    assert outcome.longest < UNIT  # far less than the whole range, which is 2**16
    scores = np.array([[-(2**30), 0, 2**15, 2**30]], dtype=np.int32)
    found = outcome.residuals(scores, np.array([UNIT, UNIT, UNIT // 2, 0]))[0]
    assert found.tolist() == [outcome.longest, outcome.longest, 0, -outcome.longest]


@pytest.mark.parametrize("longest", [0.3, 0.5, 0.625, 1.0])
def test_a_chance_makes_cut_residuals_cancel(longest):
    scores = np.linspace(-9, 9, 101)
    plain, chance = 1 / (1 + np.exp(-scores)), chances(scores, longest)
    expected = chance * np.minimum(1 - plain, longest) - (1 - chance) * np.minimum(plain, longest)
    assert np.abs(expected).max() < 1e-12
    assert (np.diff(chance) >= 0).all()


def odd_tables():
    frame, target, _ = table(3, 12)
    return [
        ("no rows", frame[:0], target[:0], None),
        ("one row", frame[:1], target[:1], None),
        ("one class", frame, np.zeros(12, int), None),
        ("constant columns", frame.assign(n=0.5, w=3, c="b"), target, None),
        ("one person", frame, target, np.zeros(12, int)),
    ]


@pytest.mark.parametrize("odd", odd_tables(), ids=lambda odd: odd[0])
@pytest.mark.parametrize("epsilon", ["0.01", 10**5])
def test_every_table_has_a_model(odd, epsilon):
    _, frame, target, whose = odd
    for model in (classifier(), classifier(3), regressor()):
        model.set_params(epsilon=epsilon, rounds=2)
        design = model._design(["n", "w", "c"])
        columns = [np.array(frame["n"], float), np.array(frame["w"], float), np.full(len(frame), -1)]
        held = np.minimum(target, len(getattr(model, "classes", [0] * 3)) - 1)
        rows = Rows(design, design.integers(columns), held, whose)
        model._keep(design, model._learn(rows, Meter.alone(model.loss)), model.loss, None)
        shown = model.predict_proba if hasattr(model, "classes_") else model.predict
        told = shown(table(0)[0])
        assert np.isfinite(told).all()
        assert told.min() >= 0


def test_a_column_whose_bounds_are_one_number_has_a_model():
    model = learn.GradientBoosting(1, "1e-5", (2, 2), [0, 1]).fit([[2.0], [2.0]], [0, 1])
    assert np.isfinite(model.decision_function([[5.0]])).all()


def bent(size, rng):
    """A column that bends, one of categories, one of whole numbers with one that stands out, one of noise."""
    frame = pd.DataFrame(
        {
            "n": rng.random(size),
            "w": np.where(rng.random(size) < 0.2, 7, rng.integers(0, 10, size)),
            "c": rng.choice(["a", "b", "z"], size),
            "noise": rng.random(size),
        }
    )
    score = 3 * np.sin(7 * frame["n"]) + 2 * (frame["c"] == "z") - 2 * (frame["w"] == 7)
    return frame, score.to_numpy()


def test_what_bends_and_what_jumps_is_learned():
    rng = np.random.default_rng(0)
    frame, score = bent(20_000, rng)
    y = rng.random(20_000) < 1 / (1 + np.exp(-score))
    with seeded(1):
        model = learn.GradientBoosting(2, "1e-6", {**BOUNDS, "noise": (0, 1)}, [False, True]).fit(frame, y)
    test, truth = bent(2000, rng)
    best = 1 / (1 + np.exp(-truth))
    assert np.abs(model.predict_proba(test)[:, 1] - best).mean() < 0.06
    assert (model.predict(test) == (truth > 0)).mean() > 0.9
    shapes = {shape.name: shape for shape in model.shapes_}
    assert np.ptp(shapes["noise"].scores) < 0.6 < 3 < np.ptp(shapes["n"].scores)
    assert np.allclose(shapes["w"].edges, np.arange(9) + 0.5, atol=1e-3)
    whole = np.array([shapes["w"].scores[at, 0] for at in np.searchsorted(shapes["w"].edges, range(10))])
    assert whole.argmin() == 7
    again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function(test) == model.decision_function(test)).all()


def test_two_columns_that_matter_only_together_are_found():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (8000, 3))
    y = np.where(rng.random(8000) < 0.1, 1, 0) ^ (X[:, 0] * X[:, 2] > 0)
    with seeded(2):
        model = learn.GradientBoosting(1, "1e-6", (-1, 1), [0, 1], rounds=6).fit(X, y)
    assert [pair.names for pair in model.interactions_] == [("x0", "x2")]
    assert (model.predict(X) == (X[:, 0] * X[:, 2] > 0)).mean() > 0.9


def test_several_classes_and_numbers_are_learned():
    rng = np.random.default_rng(7)
    X = rng.uniform(0, 1, (5000, 2))
    kinds = np.array(["low", "mid", "top"])[(X[:, 0] * 3).astype(int)]
    with seeded(3):
        model = learn.GradientBoosting(2, "1e-6", (0, 1), ["top", "low", "mid"]).fit(X, kinds)
        assert model.score(X, kinds) > 0.93
        number = np.abs(X[:, 0] - 0.4) * 50 + 10 * (X[:, 1] > 0.5)
        regression = learn.GradientBoostingRegressor(2, "1e-6", (0, 1), (0, 100)).fit(X, number)
    assert regression.score(X, number) > 0.85


@pytest.mark.parametrize(
    "given",
    [
        {"rounds": 0},
        {"rounds": True},
        {"rounds": 2.5},
        {"interactions": -1},
        {"interactions": "n"},
        {"interactions": [("n", "n")]},
        {"interactions": [("n", "nowhere")]},
        {"interactions": [("n", "c", "w")]},
        {"interactions": None},
        {"bins": 0},
        {"bins": 256},
        {"bins": {"c": 3}},
        {"bins": {"nowhere": 3}},
        {"bins": {"n": "abc"}},
        {"bins": {"n": [0.1, float("nan")]}},
    ],
    ids=str,
)
def test_bad_parameters_are_refused(given):
    frame, target, _ = table(0)
    with pytest.raises(InvalidParameter):
        classifier(3, **given).fit(frame, target)
