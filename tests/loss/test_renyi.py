"""From Rényi curves to (ε, δ): the best order is found, and no answer is below the truth."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting import BasicFilter, RenyiFilter
from sfumato.errors import InvalidParameter
from sfumato.loss import (
    ApproximateLoss,
    BoundedRangeLoss,
    ConcentratedLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
    RenyiLoss,
    compose,
    renyi,
)


def by_list(curve, delta, orders):
    """The common shortcut: the best of a fixed list of orders."""
    return min(renyi.epsilon_at(curve(a), a, Fraction(delta)) for a in orders)


@given(st.floats(1e-4, 20), st.floats(1e-12, 0.3))
def test_best_order_is_found_not_guessed(rho, delta):
    loss = ConcentratedLoss(rho)
    fine = [1 + 10 ** (k / 20) for k in range(-80, 100)]
    found = loss.epsilon(delta)
    assert found <= by_list(loss.renyi, delta, fine) * (1 + 1e-12) + 1e-15


def test_short_list_of_orders_is_loose():
    # Twin: the customary integer orders miss the optimum by far for a large ρ, the search does not.
    loss = ConcentratedLoss(50)
    assert by_list(loss.renyi, 1e-6, range(2, 65)) > loss.epsilon(1e-6) * 1.01


@pytest.mark.parametrize(("rho", "delta"), [(0.1, 1e-6), (0.5, 1e-3), (2, 1e-9)])
def test_conversion_is_above_the_gaussian_truth(rho, delta):
    assert ConcentratedLoss(rho).epsilon(delta) >= GaussianLoss(rho).epsilon(delta)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_epsilon_and_delta_invert_each_other(epsilon):
    loss = ConcentratedLoss(Fraction(1, 8))
    delta = loss.delta(epsilon)
    assert loss.epsilon(delta) == pytest.approx(epsilon, rel=1e-7)
    assert loss.delta(loss.epsilon(delta)) <= delta * (1 + 1e-6)


def test_published_pure_curve_at_orders_2_to_32():
    # Google dp_accounting: a constant curve of 1.1 known at orders 2..32, δ = 1e-5.
    assert RenyiLoss(range(2, 33), [1.1] * 31).epsilon(1e-5) == pytest.approx(1.32783806176, abs=1e-7)


def test_published_gaussian_and_opendp_values():
    assert ConcentratedLoss(1 / (2 * Fraction("4.530877117") ** 2)).epsilon(1e-6) == pytest.approx(
        1.0, abs=1e-7
    )
    # OpenDP's curve of ρ = (1/4)²/2; the exact Gaussian is smaller.
    assert ConcentratedLoss(Fraction(1, 32)).epsilon(1e-3) == pytest.approx(0.6880024554878085, rel=1e-14)
    assert ConcentratedLoss(Fraction(1, 32)).delta(0) == pytest.approx(0.1508457845622862, rel=1e-14)
    assert GaussianLoss(Fraction(1, 32)).epsilon(1e-3) < 0.6880


def test_curve_between_known_orders_is_the_chord():
    loss = RenyiLoss([2, 4], [1, 2])
    # (α−1)D is convex: at order 3 it is at most the mean of 1·1 and 3·2, so D_3 ≤ 3.5/2.
    assert loss.rdp(3) == pytest.approx(1.75)
    assert loss.rdp(1.5) == 1.0
    assert loss.rdp(4.5) == math.inf


@given(st.floats(1.01, 60))
def test_chord_bounds_the_true_curve(alpha):
    # Laplace divergences (Mironov 2017, Prop. 6), known at a few orders only.
    def truth(a):
        return math.log(a / (2 * a - 1) * math.exp(a - 1) + (a - 1) / (2 * a - 1) * math.exp(-a)) / (a - 1)

    orders = [1.5, 2, 3, 5, 9, 20, 64]
    assert RenyiLoss(orders, [truth(a) for a in orders]).rdp(alpha) >= truth(alpha) * (1 - 1e-12)


def test_orders_are_checked():
    for orders, values in [([], []), ([1], [1]), ([2, 2], [1, 1]), ([2, 3], [2, 1]), ([2], [1, 2])]:
        with pytest.raises(InvalidParameter):
            RenyiLoss(orders, values)
    with pytest.raises(InvalidParameter):
        PureLoss(1).rdp(0.5)


def test_a_curve_may_be_calibrated_to_a_point_that_it_implies():
    bare = RenyiLoss([2, 8], ["0.1", "0.2"])
    least = Fraction(bare.epsilon("1e-3")) * Fraction(1_000_001, 1_000_000)
    loss = RenyiLoss([2, 8], ["0.1", "0.2"], (least, "1e-3"))
    assert loss.approximate == (least, Fraction("1e-3"))
    assert BasicFilter(least, "1e-3").after(loss).spent == loss.approximate
    assert RenyiFilter(8, 1).after(loss).spent == RenyiFilter(8, 1).after(bare).spent
    assert (loss.failure, loss.rdp(8)) == (0, bare.rdp(8))
    for epsilon in (0, "0.1", 1, 3):
        assert loss.delta(epsilon) <= bare.delta(epsilon)
    assert RenyiLoss.from_dict(bare.to_dict()) == bare
    assert bare.to_dict()["loss"] == "renyi.1"
    for wrong in ((least * Fraction(9, 10), "1e-3"), (least, "1e-4"), (0, 0)):
        with pytest.raises(InvalidParameter):
            RenyiLoss([2, 8], ["0.1", "0.2"], wrong)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_order_one_is_kullback_leibler_and_order_infinity_is_max_divergence(epsilon):
    # Randomized response: KL = ε·tanh(ε/2). Laplace: ε + e^−ε − 1. Exponential mechanism: Dong, Durfee,
    # Rogers 2020.
    top = math.exp(epsilon)
    for loss, kl in [
        (PureLoss(epsilon), epsilon * math.tanh(epsilon / 2)),
        (LaplaceLoss(epsilon), epsilon + math.exp(-epsilon) - 1),
        (BoundedRangeLoss(epsilon), epsilon / (top - 1) - 1 + math.log((top - 1) / epsilon)),
    ]:
        assert kl <= loss.rdp(1) <= kl * (1 + 1e-5)
        assert loss.rdp(math.inf) == epsilon
        assert loss.rdp(1) <= loss.rdp(2) <= loss.rdp(50) <= epsilon
        assert loss.rdp(1e6) == pytest.approx(epsilon, rel=1e-4)
    assert GaussianLoss(Fraction(1, 2)).rdp(1) == pytest.approx(0.5, rel=1e-5)
    assert GaussianLoss(Fraction(1, 2)).rdp(math.inf) == math.inf


def test_bounded_range_divergence_is_the_supremum_over_offsets():
    epsilon, alpha = 1.3, 7.0

    def at(t):
        q = (math.exp(-t) - math.exp(-epsilon)) / (1 - math.exp(-epsilon))
        return math.log(q * math.exp(alpha * t) + (1 - q) * math.exp(alpha * (t - epsilon))) / (alpha - 1)

    brute = max(at(epsilon * k / 20000) for k in range(20001))
    assert brute <= BoundedRangeLoss("1.3").rdp(alpha) <= brute * (1 + 1e-6)


def test_bounded_range_published_orders():
    assert BoundedRangeLoss(1).rdp(1) == pytest.approx(0.123301561, abs=1e-9)
    # The published figure at order 1000 is the pure bound 1.0; the supremum over offsets is a little less.
    assert 0.99 < BoundedRangeLoss(1).rdp(1000) <= 1.0


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
def test_pure_and_bounded_range_are_concentrated(epsilon):
    # Bun, Steinke: ε²/2 for pure, ε²/8 for bounded range; the sharper one is false for plain ε-DP.
    pure, ranged = PureLoss(epsilon), BoundedRangeLoss(epsilon)
    for alpha in (1.01, 1.5, 2, 5, 20):
        assert pure.rdp(alpha) <= alpha * float(pure.rho) * (1 + 1e-12)
        assert ranged.rdp(alpha) <= alpha * float(ranged.rho) * (1 + 1e-12)
    assert pure.rdp(1.01) > 1.01 * float(ranged.rho)


def test_failure_probability_goes_to_delta_not_into_the_curve():
    loss = ConcentratedLoss(Fraction(1, 8), "1e-6")
    assert loss.rho is None
    assert loss.concentrated == (Fraction(1, 8), Fraction(1, 10**6))
    assert loss.rdp(2) == math.inf
    assert loss.epsilon("1e-6") == math.inf
    assert loss.epsilon("2e-6") == pytest.approx(ConcentratedLoss(Fraction(1, 8)).epsilon("1e-6"))
    both = compose([loss, loss, ApproximateLoss(1, "1e-6")])
    assert both.failure == Fraction(3, 10**6)
    assert both.epsilon("2e-6") == math.inf
    assert math.isfinite(both.epsilon("1e-5"))
