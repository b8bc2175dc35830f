"""The Gaussian mechanism: exact calibration, its law on the grid, and the textbook formula as a contrast."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.accounting import gaussian_classic
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import Gaussian
from sfumato.testing import assert_continuous, assert_coverage, seeded


def exact_delta(epsilon: float, mu: float) -> float:
    return float(
        stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1, 1e-6), (5, 1e-9), (12, 1e-5), (50, 0.1)])
def test_calibration_meets_its_point_and_wastes_nothing(epsilon: float, delta: float) -> None:
    mechanism = Gaussian(epsilon, delta, sensitivity=2)
    mu = 2 / mechanism.sigma
    assert exact_delta(epsilon, mu) == pytest.approx(delta, rel=1e-9)
    assert mechanism.loss.approximate == (Fraction(str(epsilon)), Fraction(str(delta)))
    assert float(mechanism.rho) == pytest.approx(mu**2 / 2, rel=1e-12)


def test_the_classic_formula_wastes_noise_below_one_and_is_false_at_ten() -> None:
    assert gaussian_classic(0.5, 1e-6) > Gaussian(0.5, 1e-6, sensitivity=1).sigma
    classic = Gaussian(sigma=gaussian_classic(10, 1e-5), sensitivity=1)
    assert exact_delta(10, 1 / classic.sigma) > 1e-5
    assert classic.loss.delta(10) > 1e-5
    assert classic.sigma < Gaussian(10, 1e-5, sensitivity=1).sigma


def test_ten_to_the_minus_five_times_ten_is_not_ten_to_the_minus_five() -> None:
    assert Gaussian(1, 10e-5, sensitivity=1).delta == Fraction(1, 10_000)
    assert Gaussian(1, 10e-5, sensitivity=1) == Gaussian(1, 1e-4, sensitivity=1)


def test_tails_decay_faster_than_those_of_laplace_noise() -> None:
    """Of equal standard deviation: the privacy loss is what is unbounded, not the noise."""
    gauss, laplace = stats.norm(scale=1), stats.laplace(scale=1 / math.sqrt(2))
    assert gauss.sf(6) < laplace.sf(6) / 1e4
    assert Gaussian(sigma=1, sensitivity=1).loss.pure is None


def test_three_ways_to_calibrate_agree() -> None:
    by_rho = Gaussian(rho=Fraction(1, 8), sensitivity=1)
    by_sigma = Gaussian(sigma=2, sensitivity=1)
    assert by_rho.rho == by_sigma.rho == Fraction(1, 8)
    assert by_rho.sigma == by_sigma.sigma == by_sigma.scale == 2.0
    assert by_sigma.variance == 4.0
    assert by_sigma.loss.approximate is None
    assert by_rho == by_sigma
    assert repr(by_sigma) == "Gaussian(sigma=2, sensitivity=1)"
    assert repr(Gaussian(1, 1e-6, sensitivity=0.5)) == "Gaussian(epsilon=1, delta=1e-06, sensitivity=0.5)"


@pytest.mark.parametrize(
    "ways",
    [{}, {"epsilon": 1}, {"delta": 0.1}, {"rho": 1, "sigma": 1}, {"epsilon": 1, "delta": 0.1, "rho": 1}],
    ids=str,
)
def test_no_or_several_calibrations_are_refused(ways: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match="exactly one way"):
        Gaussian(**ways, sensitivity=1)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan, 5e-324])
def test_unusable_deltas_are_refused(delta: float) -> None:
    with pytest.raises(InvalidParameter):
        Gaussian(1, delta, sensitivity=1)


@pytest.mark.parametrize("bad", [0, -1, math.inf, "x", True])
def test_unusable_parameters_are_refused(bad: object) -> None:
    for ways in ({"rho": bad}, {"sigma": bad}, {"epsilon": bad, "delta": 1e-6}):
        with pytest.raises(InvalidParameter):
            Gaussian(**ways, sensitivity=1)
    with pytest.raises(InvalidParameter):
        Gaussian(rho=1, sensitivity=bad)


def test_noise_follows_the_law_and_half_of_it_would_not() -> None:
    mechanism = Gaussian(sigma=3, sensitivity=1)
    with seeded(1):
        noise = mechanism.release(np.full(20_000, 0.3)) - 0.3
        single = np.array([mechanism.release(0.3) for _ in range(3000)]) - 0.3
    assert_continuous(noise, stats.norm(scale=3).cdf)
    assert_continuous(single, stats.norm(scale=3).cdf)
    with pytest.raises(AssertionError):
        assert_continuous(noise / 2, stats.norm(scale=3).cdf)


@pytest.mark.parametrize("size", [1, 12])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
def test_error_is_the_quantile(size: int, confidence: float) -> None:
    mechanism = Gaussian(sigma=2, sensitivity=1)
    exact = 2 * stats.norm.isf(-math.expm1(math.log(confidence) / size) / 2)
    assert (
        exact * (1 - 1e-12) <= mechanism.error(confidence, size=size) <= exact * (1 + 1e-12) + mechanism.grid
    )


def test_error_covers_what_is_drawn_all_at_once() -> None:
    mechanism = Gaussian(1, 1e-6, sensitivity=1)
    with seeded(2):
        noise = np.abs(mechanism.release(np.zeros((4000, 5))))
    assert_coverage(noise.ravel(), mechanism.error(0.9), 0.9)
    assert_coverage(noise.max(axis=1), mechanism.error(0.9, size=5), 0.9)


def test_every_release_lies_on_the_public_grid() -> None:
    mechanism = Gaussian(rho="0.37", sensitivity="0.11")
    assert math.frexp(mechanism.grid)[0] == 0.5
    assert 2.0**-31 <= mechanism.grid / mechanism.sigma <= 2.0**-30
    for value in (0.0, 0.1, 1 / 3, math.pi):
        assert (np.mod(mechanism.release(np.full(500, value)) / mechanism.grid, 1.0) == 0).all()


def test_the_sensitivity_after_rounding_never_exceeds_the_claim() -> None:
    mechanism = Gaussian(sigma=1, sensitivity=5)
    moved = mechanism._grid.units(Fraction(5)) * (1 + Fraction(1, 2**54))
    assert moved**2 / (2 * mechanism._units) == mechanism.rho
    assert mechanism._room > 10**12


def test_values_of_other_kinds_are_refused() -> None:
    mechanism = Gaussian(rho=1, sensitivity=1)
    for bad in (math.nan, math.inf, True, None, "1", [0.5, math.nan]):
        with pytest.raises(InvalidValue):
            mechanism.release(bad)
    with pytest.raises(InvalidParameter, match="too large beside"):
        Gaussian(sigma="1e13", sensitivity=1)
