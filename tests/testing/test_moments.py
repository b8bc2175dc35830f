"""Coverage, mean and variance: false alarms, and failures in both directions."""

import math

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.testing import assert_coverage, assert_mean, assert_variance
from sfumato.testing.moments import coverage_finding, mean_finding, variance_finding


@pytest.fixture
def rng():
    return np.random.default_rng(20260103)


WIDTH = math.log(10)  # of Laplace(1) at 90 %


def test_false_alarms(rng):
    draws = [rng.laplace(size=2000) for _ in range(400)]
    for ps in (
        [coverage_finding(draw, WIDTH, 0.9).p for draw in draws],
        [mean_finding(draw, 0.0, deviation=math.sqrt(2)).p for draw in draws],
        [variance_finding(draw, 2.0, mean=0.0).p for draw in draws],
    ):
        assert np.mean(np.asarray(ps) < 0.05) <= 0.05
        assert min(ps) < 0.9


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_width_that_is_off_by_five_percent_fails_both_ways(rng, factor):
    noise = rng.laplace(size=100_000)
    assert_coverage(noise, WIDTH, 0.9)
    with pytest.raises(AssertionError, match="too wide" if factor > 1 else "too rarely"):
        assert_coverage(noise, WIDTH * factor, 0.9)


def test_a_bound_may_be_wide_but_never_narrow(rng):
    noise = rng.laplace(size=100_000)
    assert_coverage(noise, 2 * WIDTH, 0.9, exact=False)
    with pytest.raises(AssertionError):
        assert_coverage(noise, 0.9 * WIDTH, 0.9, exact=False)


def test_whole_number_widths_are_exact_though_no_width_has_the_confidence(rng):
    noise = rng.geometric(0.5, 100_000) - rng.geometric(0.5, 100_000)
    # P(|noise| <= 2) = 1 - 2/12 = 0.8333, P(|noise| <= 1) = 0.6667
    assert_coverage(noise, 2, 0.75)
    for width in (1, 3):
        with pytest.raises(AssertionError):
            assert_coverage(noise, width, 0.75)


def test_rounding_slack_is_allowed_for(rng):
    noise = np.round(rng.laplace(size=100_000), 3)
    assert_coverage(noise, WIDTH * (1 + 1e-3), 0.9, slack=2e-3)


@pytest.mark.parametrize("shift", [-0.06, 0.06])
def test_bias_fails_both_ways(rng, shift):
    noise = rng.laplace(size=100_000)
    assert_mean(noise, 0.0, deviation=math.sqrt(2))
    with pytest.raises(AssertionError, match="off by"):
        assert_mean(noise + shift, 0.0, deviation=math.sqrt(2))


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_variance_fails_both_ways(rng, factor):
    noise = rng.laplace(size=200_000)
    assert_variance(noise, 2.0)
    with pytest.raises(AssertionError, match="variance"):
        assert_variance(noise * factor, 2.0)


def test_no_noise_at_all_has_no_variance():
    with pytest.raises(AssertionError):
        assert_variance(np.zeros(1000), 2.0)
    assert_variance(np.zeros(1000), 0.0)


def test_unusable_input_is_refused(rng):
    with pytest.raises(InvalidParameter):
        assert_variance(rng.random(10), 1.0)
    with pytest.raises(InvalidParameter):
        assert_mean([], 0.0, deviation=1.0)
    with pytest.raises(InvalidParameter):
        assert_mean([1.0], 0.0, deviation=0.0)
