"""Shuffling against brute force over everyone's answers, and the reduction against exact double sums."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc

from sfumato.accounting import _shuffle
from sfumato.errors import InvalidParameter
from sfumato.numeric.binomial import log_masses


def response(epsilon0: float, answers: int) -> list[list[float]]:
    """Randomized response over `answers` values: row v holds the law of the report on v."""
    total = math.exp(epsilon0) + answers - 1
    return [[(math.exp(epsilon0) if a == v else 1.0) / total for a in range(answers)] for v in range(answers)]


def histogram(rows: list[list[float]]) -> dict[tuple[int, ...], float]:
    """The law of the shuffled reports, that is of their histogram."""
    answers = len(rows[0])
    law = {(0,) * answers: 1.0}
    for row in rows:
        following: dict[tuple[int, ...], float] = {}
        for counts, mass in law.items():
            for a, p in enumerate(row):
                key = (*counts[:a], counts[a] + 1, *counts[a + 1 :])
                following[key] = following.get(key, 0.0) + mass * p
        law = following
    return law


def brute_epsilon(epsilon0: float, n: int, delta: float, answers: int) -> float:
    """The least ε over all neighbouring inputs, by enumeration and bisection."""
    laws = response(epsilon0, answers)
    pairs = []
    for others in itertools.combinations_with_replacement(range(answers), n - 1):
        for a, b in itertools.permutations(range(answers), 2):
            one = histogram([laws[a], *(laws[v] for v in others)])
            two = histogram([laws[b], *(laws[v] for v in others)])
            pairs.append([(one[key], two[key]) for key in one])

    def spent(epsilon: float) -> float:
        grown = math.exp(epsilon)
        return max(sum(max(p - grown * q, 0.0) for p, q in pair) for pair in pairs)

    low, high = 0.0, epsilon0
    if spent(0.0) <= delta:
        return 0.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if spent(middle) <= delta else (middle, high)
    return low


@pytest.mark.parametrize("epsilon0", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(("n", "delta"), [(1, 0.05), (2, 0.01), (8, 1e-3), (25, 1e-2), (25, 1e-5)])
def test_never_below_brute_force_on_binary_response(epsilon0: float, n: int, delta: float) -> None:
    brute = brute_epsilon(epsilon0, n, delta, 2)
    assert brute <= _shuffle.shuffled_response(epsilon0, n, delta) <= _shuffle.shuffled(epsilon0, n, delta)
    assert _shuffle.shuffled(epsilon0, n, delta) <= epsilon0


@pytest.mark.parametrize(("epsilon0", "n", "delta"), [(0.5, 6, 1e-2), (1.0, 7, 1e-3), (2.0, 5, 0.05)])
def test_never_below_brute_force_on_three_answers(epsilon0: float, n: int, delta: float) -> None:
    assert brute_epsilon(epsilon0, n, delta, 3) <= _shuffle.shuffled(epsilon0, n, delta)


def test_a_claim_of_more_clones_would_fall_below_brute_force() -> None:
    """The twin: were every other report a clone, the figure would be below what enumeration shows."""
    epsilon0, n, delta = 2.0, 25, 1e-3
    brute = brute_epsilon(epsilon0, n, delta, 2)
    assert _shuffle._profile(brute, epsilon0, n, 40.0) < delta
    assert _shuffle._profile(brute * 0.999, epsilon0, n, _shuffle._response_clones(epsilon0)) > delta


def double_sum(epsilon: float, epsilon0: float, n: int, clone: float) -> float:
    """The divergence of the two pairs of counts, term by term."""
    grown = math.exp(epsilon)
    p = 1 / (1 + math.exp(-epsilon0))
    total = 0.0
    for c in range(n):
        mass = math.comb(n - 1, c) * clone**c * (1 - clone) ** (n - 1 - c)
        half = [math.comb(c, a) / 2**c for a in range(c + 1)]
        for a in range(c + 2):
            zero = half[a - 1] if a >= 1 else 0.0
            one = half[a] if a <= c else 0.0
            total += mass * max(p * zero + (1 - p) * one - grown * ((1 - p) * zero + p * one), 0.0)
    return total


@settings(max_examples=60, deadline=None)
@given(epsilon0=st.floats(0.05, 5.0), n=st.integers(1, 40), share=st.floats(0.0, 0.99))
def test_the_two_tails_are_the_double_sum(epsilon0: float, n: int, share: float) -> None:
    odds = _shuffle._any_clones(epsilon0)
    value = _shuffle._profile(share * epsilon0, epsilon0, n, odds)
    truth = double_sum(share * epsilon0, epsilon0, n, math.exp(-epsilon0))
    assert value >= truth * (1 - 1e-11) - 1e-15
    assert value == pytest.approx(truth, rel=1e-6, abs=1e-12)


def test_binomial_tails_are_better_than_budgeted() -> None:
    for n, k in ((10, 3), (1000, 520), (5000, 2600)):
        truth = Fraction(sum(math.comb(n, i) for i in range(k + 1, n + 1)), 2**n)
        assert abs(Fraction(float(betainc(k + 1.0, float(n - k), 0.5))) / truth - 1) < _shuffle._TAIL / 20
    # For a million, the certified masses of the exact binomial are the reference.
    n, k = 10**6, 501_500
    masses, error = log_masses(np.arange(k + 1.0, k + 8000.0), n, 0.0)
    truth_float = float(np.exp(masses).sum())
    assert float(error.max()) < _shuffle._TAIL * 10
    assert abs(betainc(k + 1.0, float(n - k), 0.5) / truth_float - 1) < 2 * float(error.max())


def test_amplification_grows_with_the_crowd_and_beats_the_closed_form() -> None:
    figures = [_shuffle.shuffled(1, n, 1e-6) for n in (10, 100, 1000, 5000)]
    assert figures == sorted(figures, reverse=True)
    assert figures[-1] < 0.09
    for epsilon0, n in ((1, 5000), (2, 10_000), (4, 100_000)):
        ours, closed = _shuffle.shuffled(epsilon0, n, 1e-6), _shuffle.shuffled_closed_form(epsilon0, n, 1e-6)
        assert ours < closed < epsilon0
        assert _shuffle.shuffled_response(epsilon0, n, 1e-6) < ours


def test_the_closed_form_is_not_used_outside_its_range() -> None:
    assert _shuffle.shuffled_closed_form(5, 1000, 1e-6) == 5.0


def test_delta_and_epsilon_are_inverse() -> None:
    epsilon = _shuffle.shuffled(2, 5000, 1e-7)
    assert _shuffle.shuffled_delta(2, 5000, epsilon) <= 1e-7
    assert _shuffle.shuffled_delta(2, 5000, epsilon * (1 - 1e-6)) > 1e-7
    assert _shuffle.shuffled_delta(2, 5000, 2) == 0.0


def test_truncation_goes_to_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting the sum over clones short can only raise the figure."""
    full = _shuffle._profile(0.1, 1.0, 2000, _shuffle._any_clones(1.0))
    counts = _shuffle._clone_counts

    def short(n: int, odds: float) -> tuple[np.ndarray, np.ndarray, float]:
        clones, mass, _ = counts(n, odds)
        middle = slice(len(clones) // 2, len(clones) // 2 + 40)
        low, high = int(clones[middle][0]), int(clones[middle][-1])
        return clones[middle], mass[middle], _shuffle.outside(low, high, n, odds)

    monkeypatch.setattr(_shuffle, "_clone_counts", short)
    assert _shuffle._profile(0.1, 1.0, 2000, _shuffle._any_clones(1.0)) >= full


def test_unusable_parameters_are_refused() -> None:
    for bad in ((0, 10, 0.1), (1, 0, 0.1), (1, 10, 0), (60, 10, 0.1)):
        with pytest.raises(InvalidParameter):
            _shuffle.shuffled(*bad)


@pytest.mark.parametrize(
    "call",
    [_shuffle.shuffled, _shuffle.shuffled_response, _shuffle.shuffled_closed_form, _shuffle.shuffled_delta],
)
def test_numbers_beyond_reach_are_refused(call):
    with pytest.raises(InvalidParameter, match="n must be at most"):
        call(1, 10**18, "1e-6")


def test_a_useless_local_epsilon_is_refused_in_both_readings():
    for call in (_shuffle.shuffled, _shuffle.shuffled_delta):
        with pytest.raises(InvalidParameter, match="at most 50"):
            call(1000, 10, "1e-3")


def test_grouping_the_clones_stays_above_and_close(monkeypatch):
    grouped = _shuffle.shuffled(1, 40_000, "1e-6")
    monkeypatch.setattr(_shuffle, "_GROUPS", 10**9)
    exact = _shuffle.shuffled(1, 40_000, "1e-6")
    monkeypatch.setattr(_shuffle, "_GROUPS", 64)
    coarse = _shuffle.shuffled(1, 40_000, "1e-6")
    assert exact * (1 - 1e-8) <= grouped <= exact * (1 + 1e-5)
    assert exact < coarse < exact * (1 + 1e-2)
