"""The learning chapter: gradients that are right, terms that are bounded, a price for the whole descent."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.book import learning
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.random import simulation
from sfumato.testing import assert_variance, seeded


def _separable(rows, columns, seed, gap=0.3):
    generator = simulation(seed)
    direction = generator.normal(size=columns)
    direction /= np.linalg.norm(direction)
    X = generator.normal(size=(rows, columns))
    side = X @ direction
    X += np.outer(np.sign(side) * gap, direction)
    return X, np.where(side >= 0, 1, -1)


def test_the_gradient_is_the_slope_of_the_loss():
    X, y = _separable(7, 4, 1)
    theta = simulation(2).normal(size=4)
    for i, row in enumerate(X):
        slope = [
            (learning.loss(theta + h, row, y[i]) - learning.loss(theta - h, row, y[i])) / 2e-5
            for h in np.eye(4) * 1e-5
        ]
        assert learning.gradient(theta, row, y[i]) == pytest.approx(slope, abs=1e-8)
    each = learning.gradient(theta, X, y)
    assert each.shape == X.shape
    assert learning.avg_grad(theta, X, y) == pytest.approx(each.mean(axis=0))
    # A bound that clips nothing leaves the sum, but for the grid of 2**-32 of the bound.
    assert learning.gradient_sum(theta, X, y, 100) == pytest.approx(each.sum(axis=0), abs=7 * 100 * 2**-32)


def test_a_row_the_model_is_sure_of_does_not_overflow():
    theta, row = np.array([1e4, 0.0]), np.array([1.0, 2.0])
    assert np.array_equal(learning.gradient(theta, row, 1), [0, 0])
    assert np.array_equal(learning.gradient(theta, row, -1), row)
    assert learning.loss(theta, row, -1) == 1e4
    assert learning.predict(theta, np.array([0.0, 1.0])) == 1  # on the boundary, still a label


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6),
    st.sampled_from([0.1, 1, 3, "0.7", 1e-50, 1e50]),
)
def test_a_clipped_vector_is_never_longer_than_the_bound(vector, b):
    clipped = learning.L2_clip(vector, b)
    bound = Fraction(str(b)) if not isinstance(b, int) else Fraction(b)
    assert sum(Fraction(float(x)) ** 2 for x in clipped) <= bound**2


def test_clipping_keeps_what_is_short_and_the_direction_of_what_is_long():
    assert np.array_equal(learning.L2_clip([0.3, 0.4], 1), [0.3, 0.4])
    assert learning.L2_clip([30.0, 40.0], 1) == pytest.approx([0.6, 0.8])
    assert learning.L2_clip([[30.0, 40.0], [0.0, 0.0]], 1) == pytest.approx(np.array([[0.6, 0.8], [0, 0]]))


@pytest.mark.parametrize("b", [0.1, 1, 3])
def test_one_row_moves_the_sum_by_at_most_the_bound_exactly(b):
    # In exact arithmetic, over rows that a float sum would round differently: the claim has no "about".
    generator = simulation(5)
    X = generator.normal(size=(300, 5)) * 10 ** generator.uniform(-6, 6, (300, 1))
    y = generator.choice([-1, 1], 300)
    theta = generator.normal(size=5)
    whole = learning.gradient_sum(theta, X, y, b)
    longest = Fraction(0)
    for gone in range(300):
        kept = np.arange(300) != gone
        rest = learning.gradient_sum(theta, X[kept], y[kept], b)
        longest = max(
            longest,
            sum((Fraction(float(p)) - Fraction(float(q))) ** 2 for p, q in zip(whole, rest, strict=True)),
        )
    assert (Fraction(str(b)) * Fraction(999, 1000)) ** 2 < longest <= Fraction(str(b)) ** 2


@pytest.mark.parametrize("counted", [True, False])
def test_the_price_is_the_whole_epsilon_and_delta(counted):
    step, count = learning.descent_noise(40, "0.8", "1e-6", b=3, counted=counted)
    losses = [step.loss] * 40 + ([count.loss] if counted else [])
    total = sf.compose(losses)
    assert total.epsilon(delta=1e-6) == pytest.approx(0.8, rel=1e-6)
    assert total.delta(epsilon=0.8) == pytest.approx(1e-6, rel=1e-4)
    whole = sf.Gaussian("0.8", "1e-6", sensitivity=1)
    assert sum(each.rho for each in losses) == whole.rho  # exactly: k steps are one of √k times the length
    assert (count is None) != counted
    # Without a count, a step's deviation is that of one release that moves by √40 times the bound.
    if not counted:
        assert step.sigma == pytest.approx(sf.Gaussian("0.8", "1e-6", sensitivity=3 * 40**0.5).sigma)


def test_the_noise_of_a_step_is_what_was_paid_for():
    # No rows: the model is the noise alone, over a public size. (A planted bug, noise ten times too small or
    # paid per step, fails here.)
    step, _ = learning.descent_noise(9, 1, "1e-6", b=2, counted=False)
    with seeded(11):
        theta = learning.noisy_gradient_descent(
            9, 1, "1e-6", X=np.zeros((0, 20_000)), y=np.zeros(0), b=2, size=100
        )
    assert_variance(theta * 100 / step.sigma, 9.0, mean=0.0)


@pytest.mark.parametrize("epsilon", [1, 3])
@pytest.mark.parametrize("size", [None, 5000])
def test_a_private_model_still_learns(epsilon, size):
    X, y = _separable(5000, 10, 3)
    other_X, other_y = X[4000:], y[4000:]
    with seeded(epsilon):
        theta = learning.noisy_gradient_descent(30, epsilon, "1e-6", X=X[:4000], y=y[:4000], b=2, size=size)
    assert learning.accuracy(theta, other_X, other_y) > 0.9
    plain = learning.gradient_descent(30, X[:4000], y[:4000])
    assert learning.accuracy(plain, other_X, other_y) > 0.95


def test_a_declared_size_need_not_be_true():
    X, y = _separable(5000, 10, 3)
    with seeded(4):
        theta = learning.noisy_gradient_descent(30, 2, "1e-6", X=X, y=y, b=2, size=7000)
    assert learning.accuracy(theta, X, y) > 0.9


def test_what_cannot_be_used_is_refused_in_a_sentence():
    X, y = _separable(20, 3, 1)
    with pytest.raises(InvalidValue, match="map them first"):
        learning.gradient_descent(1, X, np.where(y > 0, 1, 0))
    with pytest.raises(InvalidValue, match="finite"):
        learning.noisy_gradient_descent(1, 1, "1e-6", X=X * np.nan, y=y)
    with pytest.raises(InvalidParameter, match="one label"):
        learning.avg_grad(np.zeros(3), X, y[1:])
    with pytest.raises(InvalidParameter, match="one label"):
        learning.gradient(np.zeros(3), X, 1)
    with pytest.raises(InvalidParameter, match="theta"):
        learning.gradient(np.zeros(4), X, y)
    with pytest.raises(InvalidParameter, match="iterations"):
        learning.noisy_gradient_descent(0, 1, "1e-6", X=X, y=y)
    with pytest.raises(InvalidParameter, match="size"):
        learning.noisy_gradient_descent(1, 1, "1e-6", X=X, y=y, size=0)
    with pytest.raises(InvalidParameter, match="rate"):
        learning.gradient_descent(1, X, y, rate=-1)
    with pytest.raises(InvalidParameter, match="b must"):
        learning.gradient_sum(np.zeros(3), X, y, 0)


def test_a_model_beyond_all_floats_gives_no_warning_and_no_slope():
    rows = np.array([[1e300, -1e300]])
    assert np.array_equal(learning.gradient([1e300, 1e300], rows, [1]), [[0, 0]])
    assert np.abs(learning.gradient_sum([0, 0], rows, [1], 1)).max() <= 1
