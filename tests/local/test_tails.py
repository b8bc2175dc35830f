"""Tails of sums of two kinds of coins: the bounds hold for the exact law, and are close to it."""

import numpy as np
import pytest
from scipy import special, stats

from sfumato.local import _tails
from sfumato.local._tails import lower_tail, upper_tail

PAIRS = [
    (0.6, 0.4),
    (0.731, 0.269),
    (0.99, 0.01),
    (0.5, 0.02),
    (0.05, 0.0001),
    (0.9999, 0.0001),
    (0.999, 0.5),
    (0.51, 0.499),
    (1.0, 1e-10),
    (1.0, 0.0),
    (0.5, 0.5),
]


def exact(people, m, p, q):
    """P(C ≥ x) and P(C ≤ x) for x from 0 on, by adding up the law of Bin(m, p) + Bin(people − m, q)."""
    own, other = (stats.binom.pmf(np.arange(n + 1), n, chance) for n, chance in ((m, p), (people - m, q)))
    law = np.convolve(own, other)
    return np.cumsum(law[::-1])[::-1], np.cumsum(law)


def bounds(people, m, p, q):
    x, holders = np.arange(people + 1.0), np.full(people + 1, float(m))
    return upper_tail(x, holders, people, p, q), lower_tail(x, holders, people, p, q)


def broken(people, p, q):
    """Whether a bound is below what it bounds, for some count and some number of holders."""
    holders = range(people + 1) if people <= 20 else range(0, people + 1, 20)
    return any(
        np.any(bound < tail * (1 - 1e-9) - 1e-13)
        for m in holders
        for bound, tail in zip(bounds(people, m, p, q), exact(people, m, p, q), strict=True)
    )


@pytest.mark.parametrize(("p", "q"), PAIRS)
@pytest.mark.parametrize("people", [1, 2, 3, 20, 200])
def test_bounds_hold_for_the_exact_law(people, p, q):
    assert not broken(people, p, q)


@pytest.mark.parametrize(("p", "q"), PAIRS[:8])
@pytest.mark.parametrize("people", [40, 200])
def test_bounds_are_at_most_a_third_above_the_exact_tail(people, p, q):
    for m in range(0, people + 1, 20):
        for bound, tail in zip(bounds(people, m, p, q), exact(people, m, p, q), strict=True):
            tested = (tail > 1e-4) & (tail < 0.1)
            assert np.all(bound[tested] < 1.36 * tail[tested])


def test_planted_bounds_are_found_out(monkeypatch):
    assert not broken(20, 0.5, 0.02)
    with monkeypatch.context() as planted:
        planted.setattr(_tails, "_PEAK", 0.3989)  # as if the law were normal
        assert broken(20, 0.5, 0.02)
    with monkeypatch.context() as planted:
        planted.setattr(_tails, "_SHEVTSOVA", 0.0)
        assert broken(20, 0.5, 0.02)


def test_the_binomial_of_the_same_mean_needs_its_step_from_the_mean():
    # Hoeffding's theorem is not about the values next to the mean: there the mixture may have more beyond.
    people, m, p, q = 10, 5, 1.0, 0.0
    above, _ = exact(people, m, p, q)
    assert above[5] > special.betainc(5, people - 5 + 1, 0.5)
    assert bounds(people, m, p, q)[0][5] == 1


def test_no_number_of_successes_is_likelier_than_the_peak():
    # Two kinds of coins, one nearly sure and one rare, come close to the worst case (Skellam's law).
    m = 400
    chances = np.linspace(1e-4, 0.01, 60)
    most = max(
        np.convolve(
            stats.binom.pmf(np.arange(m + 1), m, 1 - c), stats.binom.pmf(np.arange(m + 1), m, c)
        ).max()
        * np.sqrt(2 * m * c * (1 - c))
        for c in chances
    )
    assert 0.468 < most < _tails._PEAK
