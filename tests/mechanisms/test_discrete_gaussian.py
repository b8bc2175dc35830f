"""The discrete Gaussian mechanism: its law, its two losses, and widths that are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import ConcentratedLoss
from sfumato.mechanisms import DiscreteGaussian, Gaussian
from sfumato.mechanisms.discrete_gaussian import discrete_gaussian_width
from sfumato.testing import assert_discrete, seeded


def pmf(variance: float, k: np.ndarray) -> np.ndarray:
    reach = np.arange(-math.ceil(40 * math.sqrt(variance)) - 5, math.ceil(40 * math.sqrt(variance)) + 6)
    return np.exp(-(k**2) / (2 * variance)) / np.exp(-(reach**2) / (2 * variance)).sum()


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("sigma", ["0.3", 1, 4, "37.5"])
def test_noise_follows_the_law_and_half_of_it_would_not(sigma: float | str) -> None:
    mechanism = DiscreteGaussian(sigma=sigma, sensitivity=1)
    variance = float(sigma) ** 2
    with seeded(1):
        noise = mechanism.release(np.full(20_000, -9)) + 9
    assert_discrete(noise, lambda k: pmf(variance, k))
    with pytest.raises(AssertionError):
        assert_discrete(noise, lambda k: pmf(variance * 1.3, k))


def test_it_is_not_dominated_by_the_continuous_law() -> None:
    """At σ = Δ = 1, δ(1) is 0.141 and not the 0.127 of continuous noise, and the loss says so."""
    mechanism = DiscreteGaussian(sigma=1, sensitivity=1, scalar=True)
    k = np.arange(-50, 51)
    exact = hockey_stick(pmf(1, k), pmf(1, k - 1), 1.0)
    assert exact == pytest.approx(0.141, abs=5e-4)
    assert exact <= mechanism.loss.delta(1) <= exact * (1 + 1e-6)
    assert Gaussian(sigma=1, sensitivity=1).loss.delta(1) == pytest.approx(0.127, abs=5e-4)
    assert mechanism.loss.mu is None


def test_calibration_follows_the_choice_of_scalars_or_vectors() -> None:
    scalar = DiscreteGaussian(1, 1e-6, sensitivity=1, scalar=True)
    vector = DiscreteGaussian(1, 1e-6, sensitivity=1)
    k = np.arange(-400, 401)
    variance = float(scalar._variance)
    assert hockey_stick(pmf(variance, k), pmf(variance, k - 1), 1.0) == pytest.approx(1e-6, rel=1e-5)
    assert scalar.loss.delta(1) <= 1e-6
    assert vector.loss.delta(1) <= 1e-6
    assert vector.sigma > scalar.sigma
    assert vector.loss.directions() is None
    # What rho implies (Canonne, Kamath, Steinke 2020, Prop. 7), minimised over the order on a grid: not
    # below delta.
    rho, orders = float(vector.rho), np.linspace(1.01, 200, 20_000)
    logs = (orders - 1) * (orders * rho - 1) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
    assert float(np.exp(logs.min())) == pytest.approx(1e-6, rel=1e-3)


def test_the_exact_curve_is_only_for_single_integers() -> None:
    scalar = DiscreteGaussian(sigma=1, sensitivity=1, scalar=True)
    assert type(scalar.release(3)) is int
    assert scalar.release(np.array(3)).shape == ()
    for array in (np.zeros(2, np.int64), [1], np.zeros((1, 1), np.int64)):
        with pytest.raises(InvalidValue, match="single integers"):
            scalar.release(array)


def test_a_vector_may_cost_more_than_the_scalar_curve_of_the_same_sensitivity() -> None:
    """Why vectors carry rho alone: (3, 4) and (5, 0) are both 5 long, and their curves differ."""
    k = np.arange(-60, 61)
    variance = 4.0
    split = np.multiply.outer(pmf(variance, k), pmf(variance, k))
    moved = np.multiply.outer(pmf(variance, k - 3), pmf(variance, k - 4))
    alone = [hockey_stick(pmf(variance, k), pmf(variance, k - 5), e) for e in np.linspace(0, 8, 81)]
    both = [hockey_stick(split, moved, e) for e in np.linspace(0, 8, 81)]
    assert max(b - a for a, b in zip(alone, both, strict=True)) > 1e-6
    loss = DiscreteGaussian(sigma=2, sensitivity=5).loss
    assert all(
        loss.delta(float(e)) >= b for e, b in zip(np.linspace(0, 8, 81)[::20], both[::20], strict=True)
    )


def test_rho_and_the_three_ways() -> None:
    assert DiscreteGaussian(rho="0.1", sensitivity=1).rho == Fraction(1, 10)
    assert DiscreteGaussian(sigma=2, sensitivity=3).rho == Fraction(9, 8)
    assert DiscreteGaussian(rho="0.1", sensitivity=1).loss.rho == Fraction(1, 10)
    assert DiscreteGaussian(1, 1e-6, sensitivity=1).epsilon == 1
    assert repr(DiscreteGaussian(rho=0.1, sensitivity=1)) == "DiscreteGaussian(rho=0.1, sensitivity=1)"


def test_a_histogram_under_exchange_has_the_root_of_two() -> None:
    mechanism = DiscreteGaussian(rho="0.5", squared_sensitivity=2)
    assert mechanism.loss == ConcentratedLoss(Fraction(1, 2))
    assert mechanism.sigma == pytest.approx(math.sqrt(2))
    assert DiscreteGaussian(rho=1, squared_sensitivity=9).loss == DiscreteGaussian(rho=1, sensitivity=3).loss
    with pytest.raises(InvalidParameter, match="whole numbers"):
        DiscreteGaussian(rho=1, squared_sensitivity=2, scalar=True)


@pytest.mark.parametrize("sigma", ["0.2", 1, "3.7", 100, 900])
@pytest.mark.parametrize("size", [1, 50])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99999])
def test_error_is_the_least_whole_number_that_covers(
    sigma: float | str, size: int, confidence: float
) -> None:
    width = DiscreteGaussian(sigma=sigma, sensitivity=1).error(confidence, size=size)
    variance = float(sigma) ** 2
    beyond = np.arange(1, math.ceil(40 * math.sqrt(variance)) + 5)
    tail = 2 * pmf(variance, beyond)[::-1].cumsum()[::-1]  # tail[w] = P(|X| > w)
    allowed = -math.expm1(math.log(confidence) / size)
    assert tail[int(width)] <= allowed * (1 + 1e-9)
    assert width == 0 or tail[int(width) - 1] > allowed


@pytest.mark.parametrize("confidence", [0.3, 0.6, 0.95, 0.9999999])
def test_large_widths_are_at_most_one_too_large(confidence: float) -> None:
    sigma = 5000
    width = discrete_gaussian_width(Fraction(sigma**2), confidence, 1)
    k = np.arange(-10 * sigma, 10 * sigma + 1)
    inside = pmf(sigma**2, k)
    assert inside[np.abs(k) <= width].sum() >= confidence * (1 - 1e-9)
    assert inside[np.abs(k) <= width - 2].sum() < confidence
    assert width == pytest.approx(stats.norm.isf((1 - confidence) / 2) * sigma, abs=1.5)


@pytest.mark.parametrize("sigma", ["0.2", "0.5", 1, 7, 20])
def test_variance_is_that_of_the_discrete_law(sigma: float | str) -> None:
    k = np.arange(-900, 901)
    exact = float((k**2 * pmf(float(sigma) ** 2, k)).sum())
    variance = DiscreteGaussian(sigma=sigma, sensitivity=1).variance
    assert variance == pytest.approx(exact, rel=1e-12)
    assert variance <= float(sigma) ** 2 * (1 + 1e-12)


@pytest.mark.parametrize("bad", [0, -1, 1.0, "1", True, Fraction(1, 2)])
def test_the_sensitivity_must_be_a_whole_number(bad: object) -> None:
    with pytest.raises(InvalidParameter):
        DiscreteGaussian(rho=1, sensitivity=bad)
    with pytest.raises(InvalidParameter):
        DiscreteGaussian(rho=1, squared_sensitivity=bad)


def test_parameters_must_be_said_once() -> None:
    for ways in ({}, {"sensitivity": 1, "squared_sensitivity": 1}):
        with pytest.raises(InvalidParameter, match="not both"):
            DiscreteGaussian(rho=1, **ways)
    for ways in ({}, {"epsilon": 1}, {"rho": 1, "sigma": 1}):
        with pytest.raises(InvalidParameter, match="exactly one way"):
            DiscreteGaussian(sensitivity=1, **ways)
    with pytest.raises(InvalidParameter, match="scalar must be"):
        DiscreteGaussian(rho=1, sensitivity=1, scalar=1)
    with pytest.raises(InvalidParameter, match="64-bit"):
        DiscreteGaussian(sigma="1e18", sensitivity=1)


@pytest.mark.parametrize("bad", [1.0, True, None, "1", [1.5], np.array([1], np.uint64)])
def test_floats_and_the_like_are_refused(bad: object) -> None:
    with pytest.raises(InvalidValue):
        DiscreteGaussian(rho=1, sensitivity=1).release(bad)


def test_integers_stay_integers_of_any_shape() -> None:
    mechanism = DiscreteGaussian(rho=1, sensitivity=1)
    for array in (np.zeros((2, 3), np.int8), np.zeros((0,), np.int64), np.array(5), [[1, 2]]):
        released = mechanism.release(array)
        assert released.dtype == np.int64
        assert released.shape == np.shape(array)
    assert mechanism.release(np.array([2**63 - 1]))[0] == pytest.approx(2**61, rel=1e-9)


def test_an_empty_list_gives_an_empty_array() -> None:
    answer = DiscreteGaussian(rho=1, sensitivity=1).release([])
    assert (answer.dtype, answer.shape) == (np.int64, (0,))
