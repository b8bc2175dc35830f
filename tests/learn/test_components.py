"""Means, correlations and components: right where noise is small, honest where not, total everywhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import decomposition

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn import PCA, Moments
from sfumato.learn import pca as module
from sfumato.learn._core import sums
from sfumato.learn._core.declared import declared
from sfumato.learn._core.design import Design
from sfumato.learn._core.rows import Rows
from sfumato.testing import seeded
from sfumato.testing.fits import check_fit

SURE = {"epsilon": 10_000, "delta": "1e-6"}


def spread(size, seed=0):
    rng = np.random.default_rng(seed)
    made = rng.multivariate_normal([3.0, -40, 0.5], [[1, 6, 0], [6, 100, 0], [0, 0, 0.01]], size)
    return pd.DataFrame(made, columns=["a", "b", "c"])


BOUNDS = {"a": (-3, 9), "b": (-100, 20), "c": (0, 1)}


def test_moments_are_those_of_the_rows_in_their_own_scale():
    frame = spread(4000).assign(kind=np.where(np.arange(4000) % 4 == 0, "x", "y"), same=7.0)
    fitted = Moments(**SURE, bounds={**BOUNDS, "kind": ["x", "y"], "same": (7, 7)}).fit(frame)
    assert list(fitted.feature_names_out_) == ["a", "b", "c", "kind=x", "kind=y", "same"]
    numbers = frame[["a", "b", "c"]].clip([-3, -100, 0], [9, 20, 1])
    assert fitted.mean_ == pytest.approx([*numbers.mean(), 0.25, 0.75, 7], abs=0.02)
    assert fitted.covariance_[:3, :3] == pytest.approx(numbers.cov().to_numpy(), rel=0.02, abs=0.02)
    assert fitted.correlation_[0, 1] == pytest.approx(numbers.corr().iloc[0, 1], abs=0.01)
    assert fitted.correlation_[5].tolist() == [0, 0, 0, 0, 0, 1]
    told = fitted.summary()
    assert "kind=x" in told
    assert "4,000 rows" in told


def noisy(count, noise, mean, covariance, draws, seed):
    """Models as they are fitted to a table with these moments, the noise drawn again and again."""
    size, rng = len(mean), np.random.default_rng(seed)
    model = Moments(epsilon=1, delta="1e-6", bounds=(-1, 1))
    model.design_ = Design(declared((-1, 1), [f"x{at}" for at in range(size)]), signed=True)
    whole = np.empty((size + 1, size + 1))
    whole[:-1, :-1] = count * (covariance + np.outer(mean, mean))
    whole[-1, :-1] = whole[:-1, -1] = count * mean
    whole[-1, -1] = count
    triangle = whole[np.triu_indices(size + 1)]
    for _ in range(draws):
        model._set(
            {
                "moments": sums.matrix(triangle + rng.normal(0, noise, len(triangle)), size + 1),
                "noise": np.array(noise),
            }
        )
        yield model


@pytest.mark.parametrize("related", [0.0, 0.95])
@pytest.mark.parametrize(("count", "noise"), [(3, 5.0), (100, 30.0), (10_000, 8.0)])
def test_intervals_hold_as_often_as_they_say(count, noise, related):
    mean = np.array([0.3, -0.8])
    covariance = 0.04 * np.array([[1, related], [related, 1]])
    of_mean, of_correlation, draws = 0, 0, 120
    for model in noisy(count, noise, mean, covariance, draws, seed=3):
        low, high = model.mean_interval(0.9).T
        of_mean += int(((low <= mean) & (mean <= high)).sum())
        low, high = model.correlation_interval(0.9)[0, 1]
        of_correlation += low <= related <= high
    # Of 240 means and 120 correlations; so few have a probability below 1e-9.
    assert of_mean > 175
    assert of_correlation > 80
    if count == 10_000:
        assert of_mean < 238
        assert high - low < 0.5


def test_variances_do_not_grow_with_the_noise():
    rng = np.random.default_rng(1)
    width, variances = 12, np.array([0.08, 0.04])
    turned = np.linalg.qr(rng.normal(size=(width, width)))[0][:, :2]
    rows = np.clip(rng.normal(size=(6000, 2)) * np.sqrt(variances) @ turned.T, -1, 1)
    with seeded(1):
        fits = [PCA(epsilon=1, delta="1e-6", bounds=(-1, 1)).fit(rows) for _ in range(8)]
        plain = [
            np.linalg.eigvalsh(Moments(epsilon=1, delta="1e-6", bounds=(-1, 1)).fit(rows).covariance_)[-2:]
            for _ in range(3)
        ]
    found = np.mean([model.explained_variance_[:2] for model in fits], axis=0)
    true = np.linalg.eigvalsh(np.cov(rows.T))[::-1][:2]
    assert found == pytest.approx(true, rel=0.12)
    assert np.mean(plain, axis=0)[0] > 1.15 * true[1]
    assert all(model.clear_components_ == 2 for model in fits)
    captured = [np.linalg.norm(turned.T @ model.components_[:2].T) ** 2 / 2 for model in fits]
    assert min(captured) > 0.9


def test_components_are_those_of_scikit_learn_where_there_is_hardly_noise():
    frame = spread(5000).clip([-3, -100, 0], [9, 20, 1], axis=1)
    ours, theirs = PCA(**SURE, bounds=BOUNDS, n_components=2).fit(frame), decomposition.PCA(2).fit(frame)
    assert np.abs(np.sum(ours.components_ * theirs.components_, axis=1)) == pytest.approx([1, 1], abs=1e-3)
    assert ours.explained_variance_ == pytest.approx(theirs.explained_variance_, rel=0.03)
    assert ours.explained_variance_ratio_ == pytest.approx(theirs.explained_variance_ratio_, rel=0.03)
    places = ours.transform(frame)
    assert places.shape == (5000, 2)
    assert np.abs(ours.inverse_transform(places) - frame.to_numpy()).mean() < 0.1
    assert ours.get_feature_names_out().tolist() == ["pca0", "pca1"]


@pytest.mark.parametrize("model", [Moments, PCA])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_odd_tables_give_a_model(model, size):
    made = model(epsilon=1, delta="1e-6", bounds={"a": (0, 1), "b": (5, 5), "c": ["x", "y"]})
    design = made._design(["a", "b", "c"])
    rows = Rows(design, design.integers([np.full(size, 0.5), np.full(size, 5.0), np.full(size, -1)]))
    made._keep(design, made._learn(rows, Meter.alone(made.loss)), made.loss, None)
    assert np.isfinite(made.mean_).all()


def test_too_many_components_are_refused_before_anything_is_read():
    with pytest.raises(InvalidParameter, match="there are 3"):
        PCA(epsilon=1, delta="1e-6", bounds=(0, 1), n_components=4)._design(["a", "b", "c"])


@pytest.mark.parametrize(
    ("where", "name", "bug"),
    [
        (sums, "_factors", lambda rows, *_: np.ones(len(rows))),
        (module, "lengths", lambda rows: LENGTHS(rows)._replace(values=3 * LENGTHS(rows).values)),
    ],
    ids=["long rows are not shortened", "a unit is counted three times"],
)
def test_a_planted_bug_is_seen(monkeypatch, where, name, bug):
    monkeypatch.setattr(where, name, bug)
    with seeded(5), pytest.raises(AssertionError):
        check_often()


def check_often():
    for _ in range(5):
        for example in module.examples():
            check_fit(example)


LENGTHS = module.lengths
