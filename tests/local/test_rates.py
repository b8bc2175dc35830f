"""Measured errors follow the rates of theory: never below the bound, and as near it however many report."""

import math

import numpy as np
import pytest

from sfumato import local
from sfumato.errors import InvalidParameter
from sfumato.local.rates import minimax_frequencies, minimax_mean
from sfumato.testing import seeded

RUNS = 400
NEAR = 6 * math.sqrt(2 / RUNS)
"""Six deviations of a mean of squared normal errors: an alarm that means nothing comes once in 10**8."""


def totals(made, values, people):
    """Aggregates of so many people each, who are drawn from a population with half of either value."""
    drawn = np.random.default_rng(people).choice(values, RUNS * people)
    with seeded(f"{made} {people}"):
        reports = made.encode(drawn).reshape(RUNS, people)
    return [made.aggregate(each) for each in reports]


@pytest.mark.parametrize("epsilon", ["0.5", 1])
def test_the_error_of_a_mean_follows_the_rate(epsilon):
    made, ratios = local.DuchiMean(epsilon, -1, 1), []
    for people in (60, 250, 1000):
        best = minimax_mean(epsilon, people)
        found = float(np.mean([each.estimate().value ** 2 for each in totals(made, [-1.0, 1.0], people)]))
        assert found == pytest.approx(best.attained, rel=NEAR)
        assert best.lower < found
        ratios.append(found / best.rate)
    assert max(ratios) / min(ratios) < (1 + NEAR) / (1 - NEAR)
    assert max(ratios) < 8  # 1/tanh(1/2)² is 4.7, and 4 for small epsilon


@pytest.mark.parametrize("epsilon", ["0.5", 1])
def test_the_error_of_a_binary_response_follows_the_rate(epsilon):
    made, ratios = local.BinaryResponse(epsilon), []
    for people in (60, 250, 1000):
        best = minimax_frequencies(epsilon, people, values=2)
        drawn = totals(made, [False, True], people)
        shares = np.array([(each.supports / people - made.q) / made.gap for each in drawn])
        assert drawn[0].estimate().shares == pytest.approx(shares[0])
        found = float(np.mean(np.sum((shares - 0.5) ** 2, axis=1)))
        assert found == pytest.approx(best.attained, rel=NEAR)
        assert best.lower < found
        ratios.append(found * people * min(float(epsilon), 1) ** 2)
    assert max(ratios) / min(ratios) < (1 + NEAR) / (1 - NEAR)


def test_an_estimator_that_errs_by_a_constant_does_not_follow_it():
    # The twin: whoever forgets that answers are turned round has an error that more people do not lessen.
    made, ratios = local.BinaryResponse(1), []
    for people in (60, 1000):
        drawn = np.random.default_rng(people).random(people * RUNS) < 0.9
        with seeded(people):
            shares = made.encode(drawn).reshape(RUNS, people).mean(axis=1)
        ratios.append(float(np.mean((shares - 0.9) ** 2)) / minimax_mean(1, people).rate)
    assert ratios[1] > 5 * ratios[0]


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", 1, 3])
@pytest.mark.parametrize("people", [1, 10, 10_000, 10**9])
def test_bounds_are_in_order(epsilon, people):
    mean, e = minimax_mean(epsilon, people), float(epsilon)
    assert 0 < mean.lower <= mean.attained
    assert mean.lower <= 0.5
    wide = minimax_mean(epsilon, people, lower=0, upper=10)
    assert (wide.rate, wide.lower, wide.attained) == pytest.approx(
        (25 * mean.rate, 25 * mean.lower, 25 * mean.attained)
    )
    if e <= 1 and people * e * e > 10:
        # The constants that the theorem does not name: ours are these.
        assert 0.02 < mean.lower / mean.rate < 0.3
        assert 4 <= mean.attained / mean.rate < 4.7
    for values in (2, 16, 1000):
        shares = minimax_frequencies(epsilon, people, values=values)
        assert shares.lower == mean.lower / 2
        assert shares.lower < shares.attained
        assert shares.rate <= 1
        if values > 3 * math.exp(e) + 2:
            exact = values * 4 * math.exp(e) / math.expm1(e) ** 2 / people
            assert exact < shares.attained < exact * (1 + 2 / values * (1 + math.exp(e)))


def test_the_bound_is_le_cams_for_two_populations():
    # The best of all pairs ±δ, by search, for 50 people at epsilon 1/2.
    told = math.sqrt(50) * math.expm1(0.5) * math.exp(0.5) / 2
    delta = np.linspace(0, 1, 200_001)
    assert minimax_mean("0.5", 50).lower == pytest.approx((delta**2 * (1 - told * delta) / 2).max(), rel=1e-6)
    assert minimax_mean("0.001", 1).lower == pytest.approx(0.5, rel=1e-2)


@pytest.mark.parametrize("bad", [{"epsilon": 0}, {"epsilon": 51}, {"people": 0}, {"people": 1.5}])
def test_others_are_refused(bad):
    given = {"epsilon": 1, "people": 10} | bad
    with pytest.raises(InvalidParameter):
        minimax_mean(**given)
    with pytest.raises(InvalidParameter):
        minimax_frequencies(**given, values=4)
    with pytest.raises(InvalidParameter):
        minimax_frequencies(1, 10, values=1)
