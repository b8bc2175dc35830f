"""Calibration: what is returned holds, and a little less does not."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import (
    calibrate,
    discrete_gaussian_variance,
    gaussian_classic,
    gaussian_sigma,
    laplace_scale,
    noise_multiplier,
)
from sfumato.errors import InvalidParameter
from sfumato.loss import DiscreteGaussianLoss, GaussianLoss, LaplaceLoss, PureLoss
from sfumato.mechanisms import Laplace

F = Fraction


def exact_delta(sigma, epsilon):
    """Balle, Wang 2018, Thm. 8, to 60 digits: an implementation apart from the one under test."""
    with mpmath.workdps(60):
        s, e = (
            mpmath.mpf(sigma.numerator) / sigma.denominator,
            mpmath.mpf(epsilon.numerator) / epsilon.denominator,
        )
        return mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.e**e * mpmath.ncdf(-1 / (2 * s) - e * s)


@settings(max_examples=60)
@given(st.floats(1e-4, 200), st.floats(-40, -0.05))
def test_gaussian_sigma_holds_and_is_the_least(epsilon, exponent):
    e, d = F(str(epsilon)), F(str(10**exponent))
    sigma = gaussian_sigma(e, d)
    target = mpmath.mpf(d.numerator) / d.denominator
    assert exact_delta(sigma, e) <= target * (1 + mpmath.mpf(10) ** -35)
    assert exact_delta(sigma * (1 - F(1, 10**12)), e) > target


def test_gaussian_sigma_scales_with_the_sensitivity():
    assert gaussian_sigma(1, "1e-6", 3) == 3 * gaussian_sigma(1, "1e-6")


def test_gaussian_sigma_at_the_edges():
    for epsilon, delta in [(0, "0.1"), ("1e-12", "1e-12"), (1, "1e-200"), (1, "0.999999"), (10**6, "1e-6")]:
        sigma = gaussian_sigma(epsilon, delta)
        assert 0 < sigma < F(10) ** 300
    # At ε = 0 it is total variation: δ = 2Φ(1/(2σ)) − 1.
    assert float(gaussian_sigma(0, "0.1")) == pytest.approx(1 / (2 * 0.12566134685507402), rel=1e-9)
    for epsilon, delta in [(-1, "1e-6"), (1, 0), (1, 1), (math.nan, "1e-6")]:
        with pytest.raises(InvalidParameter):
            gaussian_sigma(epsilon, delta)


def test_classic_formula_is_wasteful_below_one_and_false_at_ten():
    # Trap: √(2 ln(1.25/δ))/ε is unproven above ε = 1 and false from about 8 to 9 on.
    for epsilon in (F(1, 10), F(1, 2), F(1)):
        assert gaussian_classic(epsilon, "1e-6") > float(gaussian_sigma(epsilon, "1e-6")) * 1.15
    for epsilon in (10, 20, 100):
        sigma = F(gaussian_classic(epsilon, "1e-6"))
        assert sigma < gaussian_sigma(epsilon, "1e-6")
        assert exact_delta(sigma, F(epsilon)) > 1.1e-6


def test_ten_e_minus_five_is_one_e_minus_four():
    # Trap: a snippet writes `delta = 10e-5` for 1e-5.
    assert gaussian_sigma(1, 10e-5) == gaussian_sigma(1, "1e-4") < gaussian_sigma(1, "1e-5")


def test_laplace_scale_without_delta_is_exact():
    assert laplace_scale(3, k=10, sensitivity=21) == 70
    assert laplace_scale("0.5", sensitivity=1) == 2
    scale = laplace_scale(1, rate="0.1")
    assert LaplaceLoss(1 / scale).sampled("0.1").pure <= 1 + F(1, 10**14)
    with pytest.raises(InvalidParameter):
        laplace_scale(1, rate=2)


def test_laplace_scale_with_delta_holds_and_is_the_least():
    scale = laplace_scale(1, "1e-4", k=20)
    assert (LaplaceLoss(1 / scale) * 20).delta(1) <= 1e-4
    assert (LaplaceLoss(1 / (scale * F(999, 1000))) * 20).delta(1) > 1e-4
    # One query, closed form: 1 − e^((ε − ε0)/2) = δ.
    assert float(laplace_scale(1, "0.1")) == pytest.approx(1 / (1 - 2 * math.log(0.9)), rel=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"), [(1, "1e-6", 1), ("0.1", "1e-3", 3), (5, "1e-9", 2)]
)
def test_discrete_gaussian_variance_holds(epsilon, delta, sensitivity):
    variance = discrete_gaussian_variance(epsilon, delta, sensitivity)
    assert F(DiscreteGaussianLoss(variance, F(sensitivity)).delta(epsilon)) <= F(delta)
    assert DiscreteGaussianLoss(variance * F(99, 100), F(sensitivity)).delta(epsilon) > float(F(delta))


def test_continuous_calibration_is_too_small_for_the_discrete_gaussian():
    # Planted bug: reusing the analytic σ for integer noise misses the target.
    target = F("0.12693674")
    sigma = gaussian_sigma(1, target)
    assert DiscreteGaussianLoss(sigma * sigma, F(1)).delta(1) > float(target)
    assert discrete_gaussian_variance(1, target) > sigma * sigma


def test_noise_multiplier_holds_and_is_the_least():
    sigma = F(str(noise_multiplier(1, "1e-6", "0.01", 1000)))

    def loss(s):
        return GaussianLoss(1 / (2 * s * s)).sampled("0.01") * 1000

    assert loss(sigma).delta(1) <= 1e-6
    assert loss(sigma * (1 - F(1, 10**5))).delta(1) > 1e-6
    # Without sampling it is the analytic Gaussian times √steps.
    assert noise_multiplier(1, "1e-6", 1, 100) == pytest.approx(
        10 * float(gaussian_sigma(1, "1e-6")), rel=1e-12
    )


def test_generic_calibration_is_one_sided():
    found = calibrate(lambda x: PureLoss(1 / x) * 3, "0.7", 0, low="0.1", high=100)
    assert 3 / F(str(found)) <= F("0.7")
    assert found == pytest.approx(3 / 0.7, rel=1e-6)
    gaussian = calibrate(
        lambda x: GaussianLoss(1 / (2 * x * x)), 1, "1e-6", low="0.1", high=100, tolerance=1e-9
    )
    least = float(gaussian_sigma(1, "1e-6"))
    assert least <= gaussian <= least * (1 + 2e-9)


def test_generic_calibration_wants_losses():
    with pytest.raises(InvalidParameter, match=r"not Laplace; return mechanism\.loss\.$"):
        calibrate(lambda x: Laplace(epsilon=1 / x, sensitivity=1), 1, 0, low="0.1", high=10)


def test_generic_calibration_says_when_there_is_none():
    with pytest.raises(InvalidParameter, match="high"):
        calibrate(lambda x: PureLoss(1 / x), "0.001", 0, low=1, high=10)
    with pytest.raises(InvalidParameter, match="low"):
        calibrate(lambda x: PureLoss(1 / x), 1, 0, low=10, high=1)
    assert calibrate(lambda x: PureLoss(1 / x), 5, 0, low=1, high=10) == 1.0
