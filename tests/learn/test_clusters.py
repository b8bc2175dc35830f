"""Clusters: cells are exact and within their claim, centres near the true ones, odd tables no error."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import cluster

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter
from sfumato.learn import KMeans
from sfumato.learn import kmeans as module
from sfumato.learn._clusters import cells as core
from sfumato.learn._clusters.cells import Lengths, cells, nearest, weights_of
from sfumato.learn._core.declared import declared
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.testing import seeded
from sfumato.testing.fits import check_fit


def mixture(size, width, number, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.7, 0.7, (number, width))
    return np.clip(centres[rng.integers(0, number, size)] + rng.normal(0, 0.08, (size, width)), -1, 1)


def inertia(rows, centres):
    return np.min([((rows - centre) ** 2).sum(axis=1) for centre in centres], axis=0).mean()


def made(seed):
    """Some rows, weights and centres, with extremes among them and a person with most of the rows."""
    rng = np.random.default_rng(seed)
    width, size = int(rng.integers(1, 4)), int(rng.integers(0, 25))
    design = Design(declared((-1, 1), [f"x{at}" for at in range(width)]), signed=True)
    values = rng.choice([-1.0, -0.4, 0, 0.3, 1], (size, width))
    units = rng.integers(0, 1 + size // 4, size) if seed % 2 else None
    weights = weights_of(rng.choice([0.001, 0.5, 1, 100], width))
    centres = np.rint(rng.uniform(-1, 1, (int(rng.integers(1, 5)), width)) * UNIT * weights)
    return Rows(design, design.integers(values), None, units), weights, centres


@pytest.mark.parametrize("seed", range(0, 8, 2))
def test_cells_that_fit_are_those_of_slow_arithmetic(seed):
    rows, weights, centres = made(seed)
    given = Lengths(1 << 24, 1000, 1)
    found = cells(rows, weights, centres, given).values
    expected = [[0] * (len(weights) + 1) for _ in centres]
    for row in rows.integers.tolist():
        scaled = [x * int(w) for x, w in zip(row, weights, strict=True)]
        squares = [sum((x - int(c)) ** 2 for x, c in zip(scaled, centre, strict=True)) for centre in centres]
        place = squares.index(min(squares))
        for at, (x, c) in enumerate(zip(scaled, centres[place], strict=True)):
            expected[place][at] += x - int(c)
        expected[place][-1] += 1000
    assert found[:-1].tolist() == [number for line in expected for number in line]


def check_claim(seed, radius):
    rows, weights, centres = made(seed)
    given = Lengths(radius, max(1, radius // 2), max(1, radius // 3))
    around = centres[0] if seed % 3 == 0 else None
    whole = cells(rows, weights, centres, given, around)
    for unit in range(len(rows)) if rows.units is None else np.unique(rows.units):
        kept = np.arange(len(rows)) != unit if rows.units is None else rows.units != unit
        fewer = Rows(rows.design, rows.integers[kept], None, None if rows.units is None else rows.units[kept])
        other = cells(fewer, weights, centres, given, around)
        moved = sum((int(a) - int(b)) ** 2 for a, b in zip(whole.values, other.values, strict=True))
        assert moved <= whole.sensitivity**2


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("radius", [1, 5000, 1 << 20])
def test_nobody_moves_cells_beyond_the_claim(seed, radius):
    check_claim(seed, radius)


@pytest.mark.parametrize(
    ("name", "bug"),
    [
        ("_SHORTER", 2.0),
        ("_share", lambda rows, part: np.ones(part.stop - part.start)),
        ("nearest", lambda block, centres: np.full(len(block), len(block) % len(centres))),
    ],
    ids=["ways are not shortened", "somebody's rows all count", "a row's cell depends on the other rows"],
)
def test_a_planted_bug_is_seen(monkeypatch, name, bug):
    monkeypatch.setattr(core, name, bug)
    with pytest.raises(AssertionError):
        check_all()


def check_all():
    for seed in range(20):
        for radius in (1, 5000, 1 << 20):
            check_claim(seed, radius)


def _counted_exactly(self, state, share):
    moved = MOVED(self, state, share)
    return moved._replace(centres=moved.centres + len(self.rows))


MOVED = module._Lloyd.moved


def test_a_centre_that_knows_the_number_of_rows_is_seen(monkeypatch):
    monkeypatch.setattr(module._Lloyd, "moved", _counted_exactly)
    # The next round's sums differ, too, where such a centre takes a row from another cell.
    with pytest.raises(AssertionError, match=r"depends on the data|moves by"):
        check_fit(module.examples()[0])


@pytest.mark.parametrize(("size", "width", "number", "epsilon"), [(3000, 2, 3, 1), (4000, 10, 5, 3)])
def test_centres_are_about_as_good_as_those_of_scikit_learn(size, width, number, epsilon):
    rows = mixture(size, width, number)
    with seeded(2):
        ours = KMeans(epsilon, "1e-6", bounds=(-1, 1), n_clusters=number).fit(rows)
    theirs = cluster.KMeans(number, n_init=3, random_state=0).fit(rows)
    assert inertia(rows, ours.cluster_centers_) < 1.1 * inertia(rows, theirs.cluster_centers_)
    assert not hasattr(ours, "labels_")
    apart = ours.transform(rows[:50])
    assert (apart.argmin(axis=1) == ours.predict(rows[:50])).mean() > 0.95


def test_centres_are_in_the_columns_own_scale():
    rows = mixture(4000, 2, 3)
    with seeded(2):
        fitted = KMeans(20, "1e-6", bounds=([-10, 0], [10, 8]), n_clusters=3).fit(rows * [10, 4] + [0, 4])
    assert inertia(rows, (fitted.cluster_centers_ - [0, 4]) / [10, 4]) < 0.03


@pytest.mark.parametrize("size", [0, 1, 3])
def test_odd_tables_give_centres_within_the_bounds(size):
    made = KMeans(1, "1e-6", bounds={"a": (0, 1), "b": (5, 5), "c": ["x", "y"]}, n_clusters=4)
    design = made._design(["a", "b", "c"])
    rows = Rows(design, design.integers([np.full(size, 0.5), np.full(size, 5.0), np.full(size, -1)]))
    made._keep(design, made._learn(rows, Meter.alone(made.loss)), made.loss, None)
    assert made.cluster_centers_.shape == (4, 4)
    assert ((made.cluster_centers_ >= [0, 5, 0, 0]) & (made.cluster_centers_ <= [1, 5, 1, 1])).all()


def test_the_first_of_equal_centres_is_nearest():
    assert nearest(np.array([[0.0], [3.0]]), np.array([[-2.0], [2.0], [2.0]])).tolist() == [0, 1]


@pytest.mark.parametrize("wrong", [{"n_clusters": 0}, {"n_clusters": 2000}, {"random_state": -1}])
def test_unusable_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        KMeans(1, "1e-6", bounds=(0, 1), **wrong).fit(np.zeros((3, 1)))
