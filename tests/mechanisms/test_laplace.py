"""The Laplace mechanism: its worked numbers, its law, its grid, and what a careless one would leak."""

from __future__ import annotations

import math
import pickle
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.testing import assert_continuous, assert_coverage, seeded

COUNT = 20_000


def drawn(mechanism: Laplace, value: float, seed: int, count: int = COUNT) -> np.ndarray:
    with seeded(seed):
        return mechanism.release(np.full(count, value))


def test_average_age() -> None:
    """10,000 people (public), ages in [0, 100]: one person moves the average by at most 0.01."""
    sensitivity = Fraction(100, 10_000)
    assert Laplace(0.5, sensitivity).error(0.95) == pytest.approx(0.0599, abs=5e-5)
    assert Laplace(1, sensitivity).error(0.95) == pytest.approx(0.0300, abs=5e-5)


def test_a_histogram_under_exchange_has_sensitivity_two() -> None:
    assert Laplace(1, 2).scale == 2.0
    assert Laplace(0.5, 1).scale == 2.0  # the same noise under add/remove at half the price


def test_scale_and_variance() -> None:
    mechanism = Laplace(0.1, 3)
    assert mechanism.scale == 30.0
    assert mechanism.variance == pytest.approx(2 * (3 / 0.1) ** 2, rel=1e-15)
    assert mechanism.bias == 0.0
    assert Laplace(1, 1).scale == 1.0
    assert Laplace(1, 1).variance == 2.0


@pytest.mark.parametrize("size", [1, 10, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_error_is_the_quantile_and_below_the_union_bound(size: int, confidence: float) -> None:
    mechanism = Laplace(0.25, 2)
    exact = 8 * -math.log(-math.expm1(math.log(confidence) / size))
    width = mechanism.error(confidence, size=size)
    assert exact <= width * (1 + 1e-15)
    assert width <= exact + mechanism.grid
    union = math.log(size / (1 - confidence)) * 2 / 0.25
    assert width <= union + mechanism.grid
    assert union - width < 0.5 * mechanism.scale or confidence == 0.5


def test_noise_follows_the_law_and_half_of_it_would_not() -> None:
    mechanism = Laplace(0.5, 1)
    errors = drawn(mechanism, 7.25, 1) - 7.25
    assert_continuous(errors, stats.laplace(scale=2).cdf)
    with pytest.raises(AssertionError):
        assert_continuous(errors / 2, stats.laplace(scale=2).cdf)
    with pytest.raises(AssertionError):
        assert_continuous(errors, stats.laplace(scale=2.2).cdf)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_error_covers_what_is_drawn_one_and_many(confidence: float) -> None:
    mechanism = Laplace(1, "0.7")
    errors = np.abs(drawn(mechanism, -3.0, 2) + 3.0)
    assert_coverage(errors, mechanism.error(confidence), confidence)
    worst = errors.reshape(-1, 10).max(axis=1)
    assert_coverage(worst, mechanism.error(confidence, size=10), confidence)


def test_single_releases_follow_the_same_law() -> None:
    mechanism = Laplace(2, 1)
    with seeded(3):
        floats = np.array([mechanism.release(1.5) for _ in range(4000)])
        whole = np.array([mechanism.release(-7) for _ in range(4000)])
    assert_continuous(floats - 1.5, stats.laplace(scale=0.5).cdf)
    assert_continuous(whole + 7, stats.laplace(scale=0.5).cdf)


def test_every_release_lies_on_the_public_grid() -> None:
    """The support attack: with float noise the reachable outputs depend on the input; here they do not."""
    mechanism = Laplace(1, 1)
    assert math.frexp(mechanism.grid)[0] == 0.5
    for value in (0.0, 0.1, 1 / 3, 1.1, math.pi):
        answers = drawn(mechanism, value, 4, 2000)
        assert (np.mod(answers / mechanism.grid, 1.0) == 0).all()
    # The careless way: sums of floats fall on points that depend on the value added.
    careless = 0.1 + np.random.default_rng(0).laplace(size=2000)
    assert (np.mod(careless / mechanism.grid, 1.0) != 0).any()


def test_the_grid_depends_on_public_parameters_only() -> None:
    for epsilon, sensitivity in ((1, 1), (0.1, 5), (3, "1e-9"), ("1e-6", 1), (2, "1e12")):
        mechanism = Laplace(epsilon, sensitivity)
        assert 2.0**-31 <= mechanism.grid / mechanism.scale <= 2.0**-30


def test_neighbouring_floats_never_exceed_the_claim() -> None:
    """The loss of two inputs is their distance after rounding over the scale, exactly: at most epsilon."""
    generator = np.random.default_rng(5)
    for epsilon, sensitivity in (("0.3", "0.1"), (1, 1), (5, "1e-3")):
        mechanism = Laplace(epsilon, sensitivity)
        bound = Fraction(sensitivity)
        for _ in range(300):
            x = float(generator.normal() * 10.0 ** generator.integers(-12, 4))
            y = math.nextafter(x + float(bound) * (1 if generator.random() < 0.5 else -1), x)
            while abs(Fraction(x) - Fraction(y)) > bound:
                y = math.nextafter(y, x)
            apart = [w + Fraction(f, 2**64) for w, f in (mechanism._grid.split(x), mechanism._grid.split(y))]
            assert abs(apart[0] - apart[1]) / mechanism._units <= Fraction(epsilon)


def test_coordinates_at_the_limit_of_the_widening_never_exceed_the_claim() -> None:
    mechanism = Laplace(1, 1)
    moved = mechanism._grid.units(Fraction(1)) + mechanism._room * Fraction(1, 2**63)
    assert moved / mechanism._units <= 1
    unwidened = mechanism._grid.units(Fraction(1))
    assert moved / unwidened > 1


def test_an_array_whose_rounding_is_not_paid_for_is_refused() -> None:
    mechanism = Laplace("1e-9", 1)
    assert 500 < mechanism._room < 2000
    with pytest.raises(InvalidValue, match="too large for this price"):
        mechanism.release(np.zeros(2000))
    assert mechanism.release(np.zeros(500)).shape == (500,)
    with pytest.raises(InvalidParameter, match="too small"):
        Laplace("1e-13", 1)


def test_the_l2_error_grows_with_the_power_three_halves_of_the_dimension_against_one() -> None:
    """Averages of d yes/no columns over n people: L1 sensitivity d/n, L2 sensitivity √d/n."""

    def l2_error(mechanism: Laplace | Gaussian, d: int) -> float:
        errors = mechanism.release(np.zeros((400, d)))
        return float(np.sqrt((errors**2).sum(axis=1)).mean())

    n, small, large = 1000, 8, 128
    with seeded(6):
        laplace = [l2_error(Laplace(1, Fraction(d, n)), d) for d in (small, large)]
        root = {8: "2.8284271247461903", 128: "11.313708498984761"}
        gauss = [l2_error(Gaussian(1, 1e-6, sensitivity=Fraction(root[d]) / n), d) for d in (small, large)]
    growth = math.log(large / small)
    assert math.log(laplace[1] / laplace[0]) / growth == pytest.approx(1.5, abs=0.05)
    assert math.log(gauss[1] / gauss[0]) / growth == pytest.approx(1.0, abs=0.05)


def test_shapes_and_types() -> None:
    mechanism = Laplace(1, 1)
    assert type(mechanism.release(1.0)) is float
    assert type(mechanism.release(1)) is float
    assert type(mechanism.release(np.float64(1))) is float
    assert type(mechanism.release(np.float32(1))) is float
    assert type(mechanism.release(np.int8(1))) is float
    for array in (
        np.zeros((2, 3)),
        np.array(1.0),
        np.zeros((0, 4)),
        np.arange(6).reshape(3, 2).T,
        [1.0, 2.0],
        [1, 2],
    ):
        released = mechanism.release(array)
        assert isinstance(released, np.ndarray)
        assert released.shape == np.shape(array)
        assert released.dtype == np.float64


def test_huge_values_are_answered_and_stay_finite() -> None:
    mechanism, most = Laplace(1, 1), sys.float_info.max
    for value in (1e300, 2**70, 10**10, np.float64(1e308), -1e40, most):
        assert mechanism.release(value) == pytest.approx(float(value), abs=50, rel=1e-15)
    assert mechanism.release(10**400) == most
    assert mechanism.release(-(10**400)) == -most
    assert mechanism.release(np.array([1e308, -1e308])).tolist() == [1e308, -1e308]
    assert mechanism.release([10**400, 0.5])[0] == most
    assert abs(mechanism.release(5e-324)) < 100
    assert abs(mechanism.release(-0.0)) < 100


@pytest.mark.parametrize(
    "bad",
    [math.nan, math.inf, -math.inf, True, None, "1", 1j, [1.0, math.nan], np.array([True]), [[1.0], []]],
)
def test_unusable_values_are_refused(bad: object) -> None:
    with pytest.raises(InvalidValue):
        Laplace(1, 1).release(bad)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "x", None, True, 5e-324, "1e-301", "1e301"])
def test_unusable_parameters_are_refused(bad: object) -> None:
    with pytest.raises(InvalidParameter):
        Laplace(bad, 1)
    with pytest.raises(InvalidParameter):
        Laplace(1, bad)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, math.nan])
def test_unusable_confidences_are_refused(confidence: float) -> None:
    with pytest.raises(InvalidParameter):
        Laplace(1, 1).error(confidence)
    with pytest.raises(InvalidParameter):
        Laplace(1, 1).error(0.5, size=0)


def test_it_is_a_frozen_value() -> None:
    mechanism = Laplace(0.1, 2)
    assert repr(mechanism) == "Laplace(epsilon=0.1, sensitivity=2)"
    assert mechanism == Laplace("0.1", 2.0)
    assert mechanism != Laplace("0.2", 2)
    assert hash(mechanism) == hash(Laplace("0.1", 2))
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert mechanism.loss.pure == Fraction(1, 10)
    assert mechanism.loss.epsilon(0) == pytest.approx(0.1)
    with pytest.raises(AttributeError):
        mechanism.epsilon = Fraction(1)
