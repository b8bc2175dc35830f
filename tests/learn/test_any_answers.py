"""Claims hold for every table and whatever the noise says: noise has no bounds."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato import learn
from sfumato.learn._core.records import Records
from sfumato.learn.transforming import PrivateTransformer
from sfumato.testing.fits import check_pair

TWO, THREE, NUMBERS = {"classes": [0, 1]}, {"classes": [0, 1, 2]}, {"target_bounds": (0, 1)}
UNIT = {"bounds": (0, 1)}


def steps(*parts):
    return {"steps": [(f"s{place}", part) for place, part in enumerate(parts)]}


MODELS = {
    "two classes": (learn.LogisticRegression, {**UNIT, **TWO}),
    "three classes": (learn.LogisticRegression, {**UNIT, **THREE}),
    "least squares": (learn.LinearRegression, {**UNIT, **NUMBERS}),
    "ridge": (learn.Ridge, {**UNIT, **NUMBERS, "alpha": 2}),
    "counts": (learn.PoissonRegression, {**UNIT, **NUMBERS}),
    "boosting, bins bought": (learn.GradientBoostingClassifier, {**UNIT, **TWO, "rounds": 2}),
    "boosting, pairs": (learn.GradientBoostingClassifier, {**UNIT, **THREE, "rounds": 2, "bins": 4}),
    "boosting, a number": (learn.GradientBoostingRegressor, {**UNIT, **NUMBERS, "rounds": 2}),
    "clusters": (learn.KMeans, {**UNIT, "n_clusters": 3}),
    "components": (learn.PCA, UNIT),
    "moments": (learn.Moments, UNIT),
    "bounds bought": (learn.Moments, {"bounds": "auto"}),
    "scaler": (learn.StandardScaler, UNIT),
    "range": (learn.MinMaxScaler, {**UNIT, "quantile_range": (1, 99)}),
    "quantiles": (learn.QuantileTransformer, {**UNIT, "output_distribution": "normal"}),
    "bins": (learn.KBinsDiscretizer, UNIT),
    "descent": (learn.NoisyGradientDescent, {**UNIT, **TWO, "steps": 3, "objective": "squared"}),
    "federated": (learn.FederatedAveraging, {**UNIT, **TWO, "rounds": 2}),
    "scaled bins": (
        learn.Pipeline,
        steps(
            learn.StandardScaler(bounds=(0, 1), clip=3),
            learn.KBinsDiscretizer(n_bins=3),
            learn.LogisticRegression(**TWO),
        ),
    ),
    "bins of one column": (
        learn.Pipeline,
        steps(learn.KBinsDiscretizer(bounds=(0, 1), strategy="uniform", n_bins=3), learn.PCA()),
    ),
}
KINDS = ("noise", "nothing", "all", "none", "wild", "far", "any size", "plenty")


def forging(kind, draw):
    """What somebody who wants the claim to break could wish that the noise says."""
    said = {
        "nothing": lambda shape, _: np.zeros(shape),
        "all": lambda shape, _: np.full(shape, 1e12),
        "none": lambda shape, _: np.full(shape, -1e12),
        "wild": lambda shape, sigma: draw.standard_normal(shape) * sigma * 100,
        "far": lambda shape, _: draw.choice([-1.0, 1.0], shape) * 1e30,
        "any size": lambda shape, _: draw.choice([-1.0, 1.0], shape) * 10 ** draw.uniform(-3, 15, shape),
        "plenty": lambda shape, _: np.abs(draw.standard_normal(shape)) * 1e6,
    }
    if kind == "noise":
        return None
    return lambda total, sigma: said[kind](total.values.shape, sigma)


def cells(draw, size, width):
    kinds = (
        lambda: draw.uniform(0, 1, (size, width)),
        lambda: draw.choice([0.0, 1.0], (size, width)),
        lambda: np.zeros((size, width)),
        lambda: np.ones((size, width)),
        lambda: draw.choice([-1e9, 0.0, 0.5, 1.0, 1e9], (size, width)),
    )
    return kinds[draw.integers(5)]()


def targets(draw, size, model):
    if hasattr(model, "steps") and isinstance(model.steps, list):
        model = model.steps[-1][1]
    if hasattr(model, "target_bounds"):
        return draw.choice([0, 1, 8192, 16383, 16384], size)
    return draw.integers(0, len(model.classes), size) if hasattr(model, "classes") else None


def takes_categories(model):
    """Whether columns may be categories: steps and bought bounds take numbers."""
    return model.get_params(deep=False).get("bounds") == (0, 1) and not isinstance(model, PrivateTransformer)


def neighbours(draw, make):
    """Two unfitted models, each with one of two neighbouring tables."""
    size, width = int(draw.choice([0, 1, 2, 17, 60])), int(draw.choice([1, 2, 5]))
    exchange, several = draw.integers(3) == 0, bool(draw.integers(2))
    at = int(draw.integers(size + 1))
    categories = takes_categories(make()) and bool(draw.integers(2))
    whose = np.sort(draw.integers(0, size // 2 + 1, size))
    rows, target = cells(draw, size, width), targets(draw, size, make())

    def with_one_more(many):
        model = make()
        names = [f"x{place}" for place in range(width)]
        if categories:
            model.bounds = {**dict.fromkeys(names, (0, 1)), names[-1]: ["a", "b", "c"]}
        more = targets(draw, many, model)
        held = list(np.insert(rows, [at] * many, cells(draw, many, width), axis=0).T)
        if categories:
            held[-1] = (held[-1] * 3).clip(-1, 2).astype(np.int64)  # and -1: none of them
        records = Records(
            model._design_of(model._given_bounds(), names),
            held if categories else np.column_stack(held),
            None if target is None or more is None else np.insert(target, [at] * many, more),
            np.insert(whose, [at] * many, 999) if several else None,
            exchange=bool(exchange),
        )
        return model, records.rows() if records.bounded else records

    most = int(draw.choice([1, 3, 40])) if several else 1
    pair = [with_one_more(1 if exchange else 0), with_one_more(most)]
    return pair if draw.integers(2) else pair[::-1]


def check(name, seed):
    draw = np.random.default_rng(seed)
    kind, given = MODELS[name]
    epsilon = int(draw.choice([1, 50, 1000]))
    (model, left), (other, right) = neighbours(draw, lambda: kind(epsilon=epsilon, delta="1e-5", **given))
    forge = forging(KINDS[seed % len(KINDS)], draw)
    with np.errstate(all="ignore"):  # as fits on a session run
        check_pair(model, left, other, right, forge=forge)


@pytest.mark.parametrize("name", MODELS)
def test_claims_hold_for_any_answers(name):
    for seed in range(2):
        check(name, seed + 2 * list(MODELS).index(name))


@pytest.mark.stats
@pytest.mark.parametrize("name", MODELS)
def test_claims_hold_for_any_answers_and_many_tables(name):
    for seed in range(100, 140):
        check(name, seed)


def test_answers_that_contradict_each_other_ask_for_no_more_bins_than_there_may_be():
    def make():
        return learn.GradientBoostingRegressor(1, "1e-5", **UNIT, **NUMBERS, rounds=1)

    for kind in ("all", "plenty"):
        draw = np.random.default_rng(0)
        (model, left), (other, right) = neighbours(draw, make)
        check_pair(model, left, other, right, forge=forging(kind, draw))


@pytest.mark.parametrize("seed", [101, 109, 117])
def test_answers_that_leave_no_inverse_give_a_model(seed):
    check("least squares", seed)
