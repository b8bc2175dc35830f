"""The stated power is the power that is measured."""

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.testing import detectable, detectable_distance, power
from sfumato.testing.statistics import bernoulli_finding, continuous_finding


@pytest.mark.parametrize(
    ("claimed", "actual"), [(0.5, 0.55), (0.5, 0.45), (0.1, 0.2), (0.9, 0.97), (0.0, 0.01)]
)
def test_power_is_exact(claimed, actual):
    from scipy import stats

    trials, alpha = 300, 0.01
    rejected = [bernoulli_finding(k, trials, claimed, claimed).p < alpha for k in range(trials + 1)]
    exact = stats.binom.pmf(np.arange(trials + 1), trials, actual)[rejected].sum()
    assert power(trials, claimed, actual, alpha=alpha) == pytest.approx(exact, abs=1e-12)


def test_false_alarm_rate_is_the_power_at_the_claim():
    for claimed in (0.0, 0.02, 0.5, 1.0):
        assert power(1000, claimed, claimed, alpha=0.05) <= 0.05


def test_detectable_lies_on_both_sides():
    low, high = detectable(10_000, 0.3)
    assert low < 0.3 < high
    for actual in (low, high):
        assert power(10_000, 0.3, actual) == pytest.approx(0.99, abs=1e-3)
    assert detectable(10, 0.5) == (None, None)  # ten trials never reach 1e-9
    assert detectable(10_000, 0.0)[0] is None


def test_detectable_distance_is_detected():
    rng = np.random.default_rng(5)
    trials, alpha = 2000, 1e-6
    distance = detectable_distance(trials, alpha=alpha)
    caught = sum(
        continuous_finding(rng.random(trials) * (1 - distance), lambda x: np.clip(x, 0, 1)).p < alpha
        for _ in range(100)
    )
    assert caught >= 97
    assert detectable_distance(4 * trials, alpha=alpha) == pytest.approx(distance / 2)


def test_unusable_sizes_are_refused():
    for call in (
        lambda: power(0, 0.5, 0.5),
        lambda: power(10, 1.5, 0.5),
        lambda: detectable_distance(0),
        lambda: detectable_distance(10, wanted=1.0),
    ):
        with pytest.raises(InvalidParameter):
            call()
