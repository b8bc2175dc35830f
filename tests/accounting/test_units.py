"""What a release cost one unit, against the law of its noise at the move of that unit."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import sfumato as sf
from sfumato.accounting import unit_loss
from sfumato.errors import InvalidParameter
from sfumato.loss import NO_LOSS, ConcentratedLoss, PureLoss


@pytest.mark.parametrize("share", ["0.1", "1/3", 0.7, 1])
def test_a_salary_of_a_tenth_of_the_bound_costs_a_tenth(share):
    mechanism = sf.Laplace(epsilon=1, sensitivity=500_000)
    part = float(Fraction(share))
    cost = unit_loss(mechanism.loss, share).epsilon(delta=0)
    assert part <= cost <= part * (1 + 1e-14)
    # The densities of the answers with and without the unit, at their furthest apart.
    answers = np.linspace(-2e6, 3e6, 1_001)
    ratio = (np.abs(answers) - np.abs(answers - part * 500_000)) / mechanism.scale
    assert np.abs(ratio).max() <= cost
    assert np.abs(ratio).max() == pytest.approx(cost)


def test_gaussian_noise_at_half_the_move_has_half_the_mean():
    mechanism = sf.Gaussian(epsilon=1, delta=1e-6, sensitivity=4)
    cost, mu = unit_loss(mechanism.loss, "1/2"), mechanism.loss.mu / 2
    for epsilon in (0.05, 0.3, 0.5):
        true = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert cost.delta(epsilon) == pytest.approx(true, rel=1e-6)
    assert unit_loss(mechanism.loss, 1) == mechanism.loss


def test_whole_numbers_move_by_whole_numbers():
    loss = sf.Geometric(epsilon=1, sensitivity=6).loss
    assert [unit_loss(loss, Fraction(rows, 6)).epsilon(delta=0) for rows in (1, 3, 6)] == [
        pytest.approx(rows / 6) for rows in (1, 3, 6)
    ]
    assert unit_loss(loss, 0.4) == unit_loss(loss, "1/2")  # 2.4 rows are 3
    assert unit_loss(loss, 1 / 3) == unit_loss(loss, "1/3")
    for scalar in (True, False):
        loss = sf.DiscreteGaussian(rho="1/8", sensitivity=4, scalar=scalar).loss
        rho, shift = unit_loss(loss, "1/4").concentrated
        assert Fraction(1, 8 * 16) <= rho <= Fraction(1, 8 * 16) * (1 + Fraction(1, 10**14))
        assert shift == 0
        assert unit_loss(loss, 1) == loss


def test_who_has_no_part_in_an_answer_pays_nothing():
    assert unit_loss(sf.Laplace(epsilon=1, sensitivity=1).loss, 0) is NO_LOSS


def test_a_wrong_share_is_below_the_ratio_of_the_answers():
    # The twin of the first test: forgetting the clamp (a share of 0.1 for a move of 0.2) is seen.
    mechanism = sf.Laplace(epsilon=1, sensitivity=10)
    assert unit_loss(mechanism.loss, "0.1").epsilon(delta=0) < 2 / mechanism.scale


@pytest.mark.parametrize(
    ("loss", "share", "words"),
    [
        (sf.Laplace(epsilon=1, sensitivity=1).loss, 1.5, "at most 1"),
        (sf.Laplace(epsilon=1, sensitivity=1).loss, -0.5, "at least 0"),
        (PureLoss(1), 0.5, "additive noise alone.*not a PureLoss"),
        (ConcentratedLoss(1), 0.5, "additive noise alone"),
        (sf.Exponential(epsilon=1, sensitivity=1).loss, 0.5, "additive noise alone"),
    ],
)
def test_where_a_mechanism_does_not_allow_it_it_is_refused(loss, share, words):
    with pytest.raises(InvalidParameter, match=words):
        unit_loss(loss, share)
