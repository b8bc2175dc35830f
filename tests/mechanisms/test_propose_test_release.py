import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms.propose_test_release import ProposeTestRelease
from sfumato.mechanisms.smooth_sensitivity import median_of
from sfumato.testing import assert_bernoulli, assert_continuous, seeded


def passing(rate, distance, threshold):
    """P(distance + X > threshold) for a discrete Laplace X of this rate, to 40 digits."""
    with mpmath.workdps(40):
        q = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
        least = threshold - distance + 1  # X must be at least this
        return q**least / (1 + q) if least > 0 else 1 - q ** (1 - least) / (1 + q)


CASES = [(e, d, s) for e in ("0.1", 1, 7) for d in ("1e-12", "1e-6", "0.05") for s in ("1/2", "1/5")]


@pytest.mark.parametrize(("epsilon", "delta", "share"), CASES)
def test_data_that_breaks_the_bound_pass_with_probability_delta_at_most(epsilon, delta, share):
    mechanism = ProposeTestRelease(epsilon, delta, bound=1, share=share)
    rate, delta = mechanism.epsilon * Fraction(share), mpmath.mpf(delta)
    assert passing(rate, 0, mechanism.threshold) <= delta
    # And the threshold is no larger than that needs: one less would not do.
    if mechanism.threshold:
        assert passing(rate, 0, mechanism.threshold - 1) > delta * (1 - mpmath.mpf(10) ** -6)


@pytest.mark.parametrize(("epsilon", "delta", "share"), CASES)
def test_the_test_alone_costs_its_share(epsilon, delta, share):
    mechanism = ProposeTestRelease(epsilon, delta, bound=1, share=share)
    rate = mechanism.epsilon * Fraction(share)
    for distance in range(0, mechanism.threshold + 5, max(1, mechanism.threshold // 7)):
        p, q = (passing(rate, d, mechanism.threshold) for d in (distance, distance + 1))
        with mpmath.workdps(40):
            worst = max(abs(mpmath.log(p / q)), abs(mpmath.log((1 - p) / (1 - q))))
        assert float(worst) <= float(rate) * (1 + 1e-14)
    assert mechanism._laplace.epsilon + rate == mechanism.epsilon


def test_the_textbook_threshold_passes_broken_data_far_too_often():
    # ln(2/δ)/(2ε) with the test at ε: about √δ instead of δ.
    delta, epsilon = 1e-9, Fraction(1)
    threshold = math.log(2 / delta) / (2 * float(epsilon))
    chance = 0.5 * math.exp(-threshold * float(epsilon))
    assert chance == pytest.approx(0.5 * math.sqrt(delta / 2))
    assert chance > 10_000 * delta
    ours = ProposeTestRelease(2, "1e-9", bound=1)  # test at 1, release at 1: the total is stated as 2
    assert passing(Fraction(1), 0, ours.threshold) <= mpmath.mpf("1e-9")
    assert ours.loss.approximate == (2, Fraction(1, 10**9))


def test_broken_data_are_refused_as_often_as_claimed():
    mechanism = ProposeTestRelease(2, "0.05", bound=1)
    with seeded(1):
        passed = sum(mechanism.release(1e6, 0) is not None for _ in range(4000))
    assert_bernoulli(passed, 4000, float(passing(Fraction(1), 0, mechanism.threshold)))
    assert passed / 4000 < 0.07


def test_far_data_are_answered_with_laplace_noise_for_the_bound():
    mechanism = ProposeTestRelease(1, "1e-6", bound=3)
    with seeded(2):
        drawn = np.array([mechanism.release(10.0, 10_000) for _ in range(3000)], dtype=float)
    scale = 3 / 0.5

    def cdf(x):
        return np.where(
            x < 0, 0.5 * np.exp(np.minimum(x, 0) / scale), 1 - 0.5 * np.exp(-np.maximum(x, 0) / scale)
        )

    assert_continuous(drawn - 10, cdf)
    assert mechanism.error(0.95) == pytest.approx(scale * math.log(20), rel=1e-6)
    assert mechanism.variance == pytest.approx(2 * scale**2)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_from_the_reach_on_the_test_passes(confidence):
    mechanism = ProposeTestRelease(1, "1e-6", bound=1)
    reach = mechanism.reach(confidence)
    assert passing(Fraction(1, 2), reach, mechanism.threshold) >= confidence
    assert reach <= mechanism.threshold + math.ceil(2 * math.log(1 / (1 - confidence))) + 1


def test_a_private_median():
    values = np.random.default_rng(0).normal(50, 5, 4001)
    mechanism = ProposeTestRelease(1, "1e-6", bound=1)
    median = median_of(values, 0, upper=100)
    with seeded(3):
        answer = mechanism.release(median.value, median.distance(1.0))
        assert abs(answer - 50) < 40
        lonely = median_of([0.0, 100.0], 0, upper=100)
        assert mechanism.release(lonely.value, lonely.distance(1.0)) is None


def test_unusable_input_is_refused():
    for epsilon, delta, bound, share in (
        (0, 0.1, 1, 0.5),
        (1, 0, 1, 0.5),
        (1, 1, 1, 0.5),
        (1, 0.1, 0, 0.5),
        (1, 0.1, 1, 1),
    ):
        with pytest.raises(InvalidParameter):
            ProposeTestRelease(epsilon, delta, bound=bound, share=share)
    mechanism = ProposeTestRelease(1, "1e-6", bound=1)
    for value, distance in (
        (1.0, -1),
        (1.0, 1.5),
        (1.0, True),
        (float("nan"), 0),
        (float("nan"), 10**6),
        ([1.0], 5),
        ("1", 5),
    ):
        with pytest.raises(InvalidValue):
            mechanism.release(value, distance)
    assert repr(mechanism) == "ProposeTestRelease(epsilon=1, delta=1e-06, bound=1, share=0.5)"
