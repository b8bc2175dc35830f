"""The exact binomial against fifty-digit arithmetic and published values."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from sfumato.errors import InvalidParameter
from sfumato.numeric import binomial


def exact_delta(eps: float, count: int, epsilon: float, delta0: float = 0.0) -> mpmath.mpf:
    """The curve of Kairouz, Oh and Viswanath, summed in fifty digits."""
    with mpmath.workdps(50):
        e, x = mpmath.mpf(eps), mpmath.mpf(epsilon)
        p = 1 / (1 + mpmath.exp(-e))
        total = mpmath.mpf(0)
        for i in range(count + 1):
            loss = (2 * i - count) * e
            if loss > x:
                total += (
                    mpmath.binomial(count, i) * p**i * (1 - p) ** (count - i) * (1 - mpmath.exp(x - loss))
                )
        kept = (1 - mpmath.mpf(delta0)) ** count
        return 1 - kept + kept * total


def test_published_thousand_events_of_a_tenth() -> None:
    # Self-computed exact log-space binomial, given to 15 digits.
    bracket = binomial.epsilon(0.1, 1000, 1e-6)
    assert bracket.lower <= 19.3446714479934 <= bracket.upper + 1e-12
    assert bracket.width < 1e-11


def test_published_optimal_composition_rows() -> None:
    # google/differential-privacy, accountant_test.py::test_advanced_composition: least points of the lattice.
    assert binomial.epsilon(1.0, 30, 0.0).upper == pytest.approx(30, abs=1e-12)
    for total_delta, expected in ((0.06, 22), (0.1, 20)):
        assert expected - 2 < binomial.epsilon(1.0, 30, total_delta, delta0=0.001).upper <= expected
        assert binomial.delta(1.0, 30, expected, delta0=0.001).upper <= total_delta
        assert binomial.delta(1.0, 30, expected - 2, delta0=0.001).lower > total_delta
    assert binomial.epsilon(1.0, 1, 0.1, delta0=0.2).lower == math.inf
    assert binomial.epsilon(1.0, 30, 0.26, delta0=0.01).lower == math.inf


@settings(max_examples=60, deadline=None)
@given(
    eps=st.floats(8.0, 1e12),
    count=st.integers(1, 12),
    below=st.floats(0.0, 1e3),
    delta0=st.sampled_from([0.0, 1e-12, 1e-3, 0.2]),
)
def test_a_large_eps_is_bracketed_too(eps: float, count: int, below: float, delta0: float) -> None:
    epsilon = max(0.0, count * eps - below)
    bracket = binomial.delta(eps, count, epsilon, delta0=delta0)
    assert bracket.lower <= exact_delta(eps, count, epsilon, delta0) <= bracket.upper
    infinity = 1 - (1 - delta0) ** count
    wanted = infinity + (1 - infinity) * 0.3
    found = binomial.epsilon(eps, count, wanted, delta0=delta0)
    assert (
        exact_delta(eps, count, found.upper, delta0) <= wanted <= exact_delta(eps, count, found.lower, delta0)
    )
    assert found.width <= 1e-9 * found.upper


@settings(max_examples=60, deadline=None)
@given(
    eps=st.floats(1e-3, 8.0),
    count=st.integers(1, 60),
    share=st.floats(-0.2, 1.0),
    delta0=st.sampled_from([0.0, 1e-12, 1e-3, 0.2]),
)
def test_delta_brackets_the_exact_curve(eps: float, count: int, share: float, delta0: float) -> None:
    epsilon = share * count * eps
    bracket = binomial.delta(eps, count, epsilon, delta0=delta0)
    truth = exact_delta(eps, count, epsilon, delta0)
    assert bracket.lower <= truth <= bracket.upper
    assert bracket.width <= 1e-10 * float(truth) + 1e-12 * count * eps


@settings(max_examples=60, deadline=None)
@given(
    eps=st.floats(1e-3, 8.0),
    count=st.integers(1, 60),
    exponent=st.floats(-40, -0.1),
    delta0=st.sampled_from([0.0, 1e-6]),
)
def test_epsilon_meets_delta_and_no_smaller_one_does(
    eps: float, count: int, exponent: float, delta0: float
) -> None:
    delta = 10.0**exponent
    bracket = binomial.epsilon(eps, count, delta, delta0=delta0)
    if bracket.upper == math.inf:
        assert exact_delta(eps, count, count * eps, delta0) >= delta * (1 - 1e-9)
        return
    assert exact_delta(eps, count, bracket.upper, delta0) <= delta
    assert bracket.lower == 0.0 or exact_delta(eps, count, bracket.lower, delta0) >= delta
    assert bracket.meets(1e-10, 1e-12)


def test_a_million_events_keep_their_digits() -> None:
    index = np.array([502_500.0, 503_000.0, 510_000.0, 999_999.0])
    logs, error = binomial.log_masses(index, 10**6, 0.01)
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(0.01)))
        for i, value, bound in zip(index, logs, error, strict=True):
            n, k = mpmath.mpf(10**6), mpmath.mpf(int(i))
            truth = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
            truth += k * mpmath.log(p) + (n - k) * mpmath.log(1 - p)
            assert abs(truth - mpmath.mpf(value)) <= bound
    assert float(error[0]) < 1e-9
    bracket = binomial.epsilon(0.01, 10**6, 1e-10)
    assert bracket.meets(1e-9, 0.0)


def test_a_naive_logarithm_would_land_below_the_truth() -> None:
    """The twin: rounded to nearest from `gammaln`, the same sum is not an upper bound."""

    def naive(eps: float, count: int, epsilon: float) -> float:
        i = np.arange(count + 1)
        log_mass = gammaln(count + 1) - gammaln(i + 1) - gammaln(count - i + 1)
        log_mass = log_mass - i * np.log1p(np.exp(-eps)) - (count - i) * np.log1p(np.exp(eps))
        loss = (2 * i - count) * eps
        return float(np.sum((np.exp(log_mass) * -np.expm1(epsilon - loss))[loss > epsilon]))

    cases = [(0.1 + 0.01 * k, 50 + k, 1.0 + 0.05 * k) for k in range(12)]
    truths = [exact_delta(*case) for case in cases]
    assert any(naive(*case) < truth for case, truth in zip(cases, truths, strict=True))
    assert all(binomial.delta(*case).upper >= truth for case, truth in zip(cases, truths, strict=True))


@pytest.mark.parametrize(
    ("low", "high", "count", "eps"), [(20, 60, 60, 1.0), (0, 45, 60, 1.0), (30, 44, 60, 0.5)]
)
def test_outside_bounds_what_a_window_leaves_out(low: int, high: int, count: int, eps: float) -> None:
    index = np.array([float(i) for i in range(count + 1) if i < low or i > high])
    left_out = float(np.exp(binomial.log_masses(index, count, eps)[0]).sum())
    assert left_out <= binomial.outside(low, high, count, eps)


def test_unusable_parameters_are_refused() -> None:
    for bad in ((0.0, 1, 0.1), (1.0, 0, 0.1), (1.0, 1, 1.0), (math.inf, 1, 0.1)):
        with pytest.raises(InvalidParameter):
            binomial.epsilon(*bad)
    with pytest.raises(InvalidParameter):
        binomial.epsilon(1.0, 1, 0.1, delta0=1.0)
    with pytest.raises(InvalidParameter):
        binomial.delta(1.0, 1, math.nan)
