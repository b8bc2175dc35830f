"""Intervals of least squares: what they are made of keeps its claim, and they hold where spreads differ."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import NotCertified
from sfumato.fits.meter import Meter, price
from sfumato.learn import LinearRegression
from sfumato.learn._core.declared import Number
from sfumato.learn._core.design import UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._weights import standard
from sfumato.learn._weights.descent import Field
from sfumato.learn._weights.standard import REACH, Curvature, Standard
from sfumato.testing.fits import check_pair
from sfumato.testing.stream import seeded

SHARES = Fraction(1, 10), Fraction(1, 10)


class Asked(Meter):
    """Gives sums as they are, and keeps them."""

    def noisy(self, total, share):
        self.__dict__.setdefault("totals", []).append(total)
        return np.array([float(int(value) * total.step) for value in total.values])


def sandwich(integers, far):
    """What a field of standardised rows, each with a residual of its own, asks for."""
    width = integers.shape[1]
    design = Design([Number(f"z{at}", Fraction(-1), Fraction(1)) for at in range(width)], intercept=False)
    meter = Asked.alone(price(1, "1e-6"))
    rows = Rows(design, integers, np.zeros(len(integers), np.int16))
    scale = Standard(np.zeros(width - 1), np.ones(width - 1), 2.0, True)
    near = Field(rows, meter, scale, Curvature(np.ones(width), np.eye(width), 0.1, 1.0, 3.0), 10.0)
    made = near.sandwich(np.zeros((width, 1)), lambda place, _: far[place, None], 4.0, SHARES)
    return made, meter.totals, near


def drawn(seed):
    """Rows from none to as long as they can be, with residuals from none to the largest."""
    rng = np.random.default_rng(seed)
    integers = rng.choice([0, 40, 512, -700, 16384], (12, 3)).astype(np.int16)
    integers[0], integers[:, 2] = 16384, UNIT // REACH
    return integers, rng.choice([0.0, 3e3, 1e6, -3e6, 2.0**22], 12)


def moves(seed):
    """By how much each row moves the sums, over what is claimed, squared."""
    integers, far = drawn(seed)
    _, whole, _ = sandwich(integers, far)
    found = []
    for row in range(len(integers)):
        _, fewer, _ = sandwich(np.delete(integers, row, 0), np.delete(far, row))
        for mine, theirs in zip(whole, fewer, strict=True):
            assert mine.sensitivity == theirs.sensitivity
            moved = sum(int(value) ** 2 for value in mine.values - theirs.values)
            found.append(moved / mine.sensitivity**2)
    return max(found)


@pytest.mark.parametrize("seed", range(3))
def test_nobody_moves_what_intervals_are_made_of_beyond_the_claim(seed):
    assert moves(seed) <= 1


def test_rows_that_are_not_cut_are_seen(monkeypatch):
    monkeypatch.setattr(standard, "_SHORTER", 1.5)
    assert moves(0) > 1


def test_what_intervals_are_made_of_is_that_of_slow_arithmetic():
    integers, far = drawn(4)
    made, _, near = sandwich(integers, far)
    z = integers * (REACH / UNIT)
    lengths = np.linalg.norm(z, axis=1)
    residuals = far * 2.0**-20 * np.minimum(1, (3 / np.maximum(lengths, 1e-9)) ** 2)
    cut = residuals * lengths / 4
    assert near.lengths(slice(0, 12)) * 2 == pytest.approx(lengths * np.minimum(1, 9 / lengths**2))
    gradients = z * (residuals / np.maximum(1, np.abs(cut)))[:, None]
    assert made.spread == pytest.approx(gradients.T @ gradients / 10, rel=0.02, abs=0.02)
    lost = z[np.abs(cut) > 1] * np.minimum(1, 3 / lengths[np.abs(cut) > 1])[:, None]
    assert made.lost == pytest.approx(lost.T @ lost / 10, rel=0.02, abs=0.02)


def uneven(seed, size):
    """A tenth of all rows have a 1, and errors with a spread six times as large."""
    rng = np.random.default_rng(seed)
    X = (rng.random((size, 1)) < 0.1).astype(float)
    return X, 0.5 + X[:, 0] + rng.normal(size=size) * np.where(X[:, 0] > 0, 1.8, 0.3)


def line(epsilon):
    return LinearRegression(epsilon=epsilon, delta=1e-6, bounds=(0, 1), target_bounds=(-8, 10))


def test_a_fit_that_tells_intervals_keeps_its_claim():
    X, y = uneven(1, 2300)
    more = np.vstack([X, [[1.0]]]), np.append(y, 10.0)
    model, other = line(20), line(20)
    with seeded("told"):
        check_pair(model, model._rows(X, y, None), other, other._rows(*more, None))
        told = line(20).fit(X, y)
    assert (told.standard_errors_ > 0).all()


def test_standard_errors_follow_spreads_that_differ():
    X, y = uneven(2, 20_000)
    Z = np.column_stack([X, np.ones(len(X))])
    inverse = np.linalg.inv(Z.T @ Z)
    far = y - Z @ (inverse @ Z.T @ y)
    robust = np.sqrt(np.diag(inverse @ (Z * far[:, None] ** 2).T @ Z @ inverse))
    alike = np.sqrt(np.diag(inverse) * (far**2).mean())
    with seeded("uneven"):
        errors = line(20).fit(X, y).standard_errors_
    ratio = errors / robust  # with the noise
    assert ratio.min() > 0.9
    assert ratio.max() < 1.25
    assert (np.abs(np.log(alike / robust)) > 0.5).all()


def test_fewer_rows_than_are_simulated_have_no_intervals():
    X, y = uneven(3, 1500)
    with seeded("few"):
        model = line(50).fit(X, y)
    with pytest.raises(NotCertified, match="too few rows"):
        model.confidence_intervals()


@pytest.mark.stats
def test_intervals_hold_where_spreads_differ_and_rows_are_as_few_as_may_be():
    hits, truth = [], np.array([1.0, 0.5])
    for seed in range(600):
        X, y = uneven(100 + seed, 2100)
        with seeded(seed):
            ends = line(8).fit(X, y).confidence_intervals(0.95)
        hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert (np.mean(hits, axis=0) > 0.94 - 3 * (0.94 * 0.06 / len(hits)) ** 0.5).all()
