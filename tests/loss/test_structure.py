"""Samples, groups, parallel parts: the rules, the ones that textbooks get wrong, planted bugs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import (
    NO_LOSS,
    ApproximateLoss,
    BoundedRangeLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    GroupLoss,
    LaplaceLoss,
    ParallelLoss,
    PureLoss,
    RenyiLoss,
    ResponseLoss,
    SampledLoss,
    compose,
    renyi,
    textbook_group,
)

F = Fraction
curved = st.sampled_from(
    [
        PureLoss(1),
        LaplaceLoss("0.7"),
        GaussianLoss(F(1, 2)),
        GaussianLoss(8),
        DiscreteLaplaceLoss("0.5", 3),
        DiscreteGaussianLoss(2, F(2)),
        ResponseLoss(2, 5),
        ApproximateLoss(1, "0.01"),
    ]
)
rates = st.sampled_from([F(1, 1000), F(1, 10), F(1, 2), F(9, 10)])


# ── the law that was drawn
# ───────────────────────────────────────────────────────────────────────────────────────────


def test_discrete_gaussian_is_not_dominated_by_the_gaussian():
    discrete, continuous = DiscreteGaussianLoss(1, F(1)), GaussianLoss(F(1, 2))
    assert discrete.rho == continuous.rho
    assert discrete.delta(1) == pytest.approx(0.14135, abs=1e-5)
    assert continuous.delta(1) == pytest.approx(0.12694, abs=1e-5)
    # A vector carries ρ only, so its curve is the concentrated one, above both.
    assert (
        DiscreteGaussianLoss(1, F(1), False).delta(1)
        == ConcentratedLoss(F(1, 2)).delta(1)
        > discrete.delta(1)
    )


def test_loss_above_epsilon_is_sufficient_not_necessary():
    # N(1, 1): the loss exceeds 1 with probability Φ(−1/2) = 0.309, yet the mechanism is (1, 0.127)-DP.
    loss = GaussianLoss(F(1, 2))
    exceeds = 0.5 * math.erfc((1 - 0.5) / math.sqrt(2))
    assert exceeds == pytest.approx(0.3085, abs=1e-4)
    assert loss.delta(1) < exceeds / 2


def test_epsilon_delta_is_about_events_not_outputs():
    # Releasing all of a uniform 20-bit value: each output's probability is below δ = 1e-5, so a check output
    # by output ("p(x) ≤ e^ε·q(x) + δ") passes. The event "the output is in the right half" shows that nothing
    # is private.
    outcomes, delta = 2**20, 1e-5
    p, q = np.zeros(outcomes), np.zeros(outcomes)
    p[: outcomes // 2], q[outcomes // 2 :] = 2 / outcomes, 2 / outcomes
    assert np.all(p <= q + delta)
    assert np.maximum(p - q, 0).sum() == 1.0


@pytest.mark.parametrize(
    ("rate", "shift", "split"),
    [("0.5", 3, (1, 2)), ("0.05", 4, (2, 2)), ("3", 5, (1, 4)), ("1", 4, (1, 1, 2))],
)
def test_discrete_laplace_vector_is_dominated_by_one_coordinate(rate, shift, split):
    whole = DiscreteLaplaceLoss(rate, shift)
    parts = compose([DiscreteLaplaceLoss(rate, s) for s in split])
    for share in (0.0, 0.1, 0.5, 0.9, 0.99):
        assert (
            parts.delta(share * float(whole.pure))
            <= whole.delta(share * float(whole.pure)) * (1 + 1e-4) + 1e-12
        )


@pytest.mark.parametrize("split", [(0.5, 0.5), (0.2, 0.8), (0.25, 0.25, 0.5)])
def test_laplace_vector_is_dominated_by_one_coordinate(split):
    whole, parts = LaplaceLoss(2), compose([LaplaceLoss(2 * F(s)) for s in split])
    for epsilon in (0.3, 1.7):
        assert parts.delta(epsilon) <= whole.delta(epsilon) * (1 + 1e-4)


# ── samples
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(curved, rates, st.sampled_from(["poisson", "fixed"]), st.floats(0, 3))
def test_a_sample_never_costs_more(loss, rate, scheme, epsilon):
    sample = loss.sampled(rate, scheme)
    assert sample.delta(epsilon) <= loss.delta(epsilon) * (1 + 1e-9)
    if loss.pure is not None:
        assert sample.pure < loss.pure
        assert sample.delta(sample.pure) == 0.0
    if rate > F(1, 10):
        assert loss.sampled(rate / 2, scheme).delta(epsilon) <= sample.delta(epsilon) * (1 + 1e-9)


@settings(max_examples=40)
@given(curved, rates, st.floats(0.01, 3))
def test_sampled_curve_is_the_mixture_identity(loss, rate, epsilon):
    # Removing: q·δ(log(1 + (e^ε − 1)/q)); adding: (1 − (1−q)e^ε)·δ(ε + log q − log(1 − (1−q)e^ε)).
    q, sample = float(rate), loss.sampled(rate)
    removed = q * loss.delta(math.log1p(math.expm1(epsilon) / q))
    assert sample.profile(0, epsilon) == pytest.approx(removed, rel=1e-9, abs=1e-12)
    weight = 1 - (1 - q) * math.exp(epsilon)
    added = weight * loss.delta(epsilon + math.log(q) - math.log(weight)) if weight > 0 else 0.0
    assert sample.profile(1, epsilon) == pytest.approx(added, rel=1e-6, abs=1e-12)
    both = max(sample.profile(0, epsilon), sample.profile(1, epsilon))
    assert sample.delta(epsilon) == pytest.approx(both, rel=1e-9)


def test_sampled_curve_against_a_sum_over_outputs():
    # k-ary randomized response on a sample: all distributions are finite, so the curve can be summed by hand.
    loss, q = ResponseLoss(1, 4), 0.3
    top = math.e / (math.e + 3)
    p, base = np.array([top, *[(1 - top) / 3] * 3]), np.array([(1 - top) / 3, top, *[(1 - top) / 3] * 2])
    mixed = q * p + (1 - q) * base
    for epsilon in (0.0, 0.1, 0.3, 0.5):
        remove = np.maximum(mixed - math.exp(epsilon) * base, 0).sum()
        add = np.maximum(base - math.exp(epsilon) * mixed, 0).sum()
        assert loss.sampled(F(3, 10)).profile(0, epsilon) == pytest.approx(remove, abs=1e-12)
        assert loss.sampled(F(3, 10)).profile(1, epsilon) == pytest.approx(add, abs=1e-12)
        # Fixed size: the larger of the two for ε ≥ 0 is the removal curve.
        assert loss.sampled(F(3, 10), "fixed").delta(epsilon) == pytest.approx(remove, abs=1e-12)


def test_planted_bug_amplifying_epsilon_by_the_rate_is_caught():
    # "ε becomes qε" is the folklore; the pure bound is log(1 + q(e^ε − 1)), which is more.
    loss, rate = PureLoss(2), F(1, 10)
    assert float(loss.sampled(rate).pure) > 0.1 * 2 * 1.5
    assert loss.sampled(rate).delta("0.2") > 0.01


def test_rate_one_is_the_loss_itself_and_nothing_costs_nothing():
    loss = GaussianLoss(1)
    assert loss.sampled(1) is loss
    assert NO_LOSS.sampled("0.1") == NO_LOSS
    for rate in (0, -1, 2):
        with pytest.raises(InvalidParameter):
            loss.sampled(rate)


def test_a_sample_of_a_sample_is_refused():
    with pytest.raises(UnsupportedLoss, match="again"):
        GaussianLoss(1).sampled("0.1").sampled("0.1")
    with pytest.raises(UnsupportedLoss, match="again"):
        (GaussianLoss(1).sampled("0.1") + LaplaceLoss(1)).sampled("0.1")


def test_amplification_needs_a_curve():
    for loss in (ConcentratedLoss(1), RenyiLoss([2], [1]), DiscreteGaussianLoss(1, F(1), False)):
        with pytest.raises(UnsupportedLoss, match="Rényi"):
            loss.sampled("0.1")


def test_one_sample_for_several_mechanisms_amplifies_once():
    # Two Gaussians on one sample are one Gaussian on it: not the composition of two amplified ones.
    shared = (GaussianLoss(F(1, 2)) * 2).sampled("0.1")
    assert shared.directions() == GaussianLoss(1).sampled("0.1").directions()
    fresh = GaussianLoss(F(1, 2)).sampled("0.1") * 2
    assert shared.epsilon("1e-5") > fresh.epsilon("1e-5") * 1.2
    mixed = (LaplaceLoss(1) + GaussianLoss(F(1, 2))).sampled("0.2")
    alone = LaplaceLoss(1) + GaussianLoss(F(1, 2))
    inner = math.log1p(math.expm1(0.5) / 0.2)
    assert mixed.delta("0.5") == pytest.approx(0.2 * alone.delta(inner), rel=1e-3)


def test_both_directions_are_composed_apart():
    loss = GaussianLoss(F(1, 2)).sampled("0.2") * 10
    remove, add = loss.profile(0, 1.0), loss.profile(1, 1.0)
    assert remove > add > 0
    assert loss.delta(1) == remove


# ── groups
# ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_group_privacy_of_pure_and_laplace_is_k_epsilon():
    assert PureLoss("0.5").group(3).epsilon(0) == 1.5
    assert LaplaceLoss("0.5").group(3) == LaplaceLoss("1.5")
    assert DiscreteLaplaceLoss("0.5", 2).group(3) == DiscreteLaplaceLoss("0.5", 6)
    assert LaplaceLoss(1).group(1) == LaplaceLoss(1)


def test_group_privacy_of_gaussians_and_zcdp_is_k_squared_rho():
    assert GaussianLoss(F(1, 8)).group(3) == GaussianLoss(F(9, 8))
    assert ConcentratedLoss(F(1, 8)).group(3) == ConcentratedLoss(F(9, 8))
    assert DiscreteGaussianLoss(4, F(1)).group(3) == DiscreteGaussianLoss(4, F(3))
    # A calibrated point belongs to one unit; a group must not inherit it.
    assert GaussianLoss(F(1, 8), (3, "1e-6")).group(2).approximate is None


@pytest.mark.parametrize("k", [2, 3, 5])
def test_textbook_group_form_and_the_tighter_profile(k):
    loss = ApproximateLoss("0.5", "1e-6").group(k)
    epsilon, delta = loss.approximate
    assert epsilon == F(k, 2)
    assert float(delta) == pytest.approx(k * math.exp((k - 1) * 0.5) * 1e-6, rel=1e-12)
    assert delta >= textbook_group("0.5", "1e-6", k)[1] * (1 - F(1, 10**12))
    # The sum of the chain is less than k times its last term.
    tight = sum(math.exp(j * 0.5) for j in range(k)) * 1e-6
    assert tight * (1 - 1e-12) <= loss.delta(epsilon) <= tight * (1 + 1e-3)
    assert loss.delta(epsilon) < float(delta)
    assert textbook_group(1, 0, k) == (k, 0)


def test_group_rule_is_above_the_family_law():
    # The general chain on a Gaussian must not beat the exact law at kμ (planted bug: reading δ at ε instead
    # of ε/k does).
    one = GaussianLoss(F(1, 8))
    general, law = GroupLoss(one, 3), one.group(3)
    for epsilon in (0.5, 1.0, 3.0):
        assert general.delta(epsilon) >= law.delta(epsilon)
        planted = one.delta(epsilon) * sum(math.exp(j * epsilon / 3) for j in range(3))
        assert planted < law.delta(epsilon)


def test_group_without_a_pair():
    loss = RenyiLoss([2, 8, 64], ["0.01", "0.05", "0.5"]).group(2)
    assert isinstance(loss, GroupLoss)
    epsilon = loss.epsilon("1e-3")
    assert loss.delta(epsilon) <= 1e-3
    assert epsilon >= 2 * RenyiLoss([2, 8, 64], ["0.01", "0.05", "0.5"]).epsilon("1e-3")


def test_group_of_a_composition_is_the_composition_of_groups():
    total = LaplaceLoss("0.1") * 5 + GaussianLoss(F(1, 8))
    assert total.group(2) == LaplaceLoss("0.2") * 5 + GaussianLoss(F(1, 2))


def test_group_of_a_sample():
    loss = GaussianLoss(F(1, 2)).sampled("0.1")
    assert loss.group(2).delta(1) >= loss.delta("0.5")
    assert isinstance(loss.group(2), GroupLoss)
    assert loss.group(2).adjacency == "add-remove"


# ── some parts with a curve, some without
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────

VECTOR = DiscreteGaussianLoss(50, F(1), False)


def test_fixed_deltas_that_add_up_to_delta_exactly_are_priced_at_their_points():
    point = (F(1), F(1, 10**6))
    calibrated = DiscreteGaussianLoss(50, F(1), False, point)
    total = compose([calibrated, ApproximateLoss(2, "1e-6"), PureLoss("0.5")])
    assert total.approximate == (F("3.5"), F(2, 10**6))
    assert total.epsilon("2e-6") <= 3.5
    assert total.delta("3.5") <= 2e-6
    bare = compose([ConcentratedLoss(F(1, 10**5), F(1, 10**7), point), ApproximateLoss(2, "1e-6")])
    assert bare.epsilon("2e-6") <= 3
    assert (ApproximateLoss(1, "1e-6") * 2).epsilon("2e-6") <= 2
    # Nothing is left for the part that needs some δ of its own: truly infinite.
    assert compose([VECTOR, ApproximateLoss(2, "1e-6")]).epsilon("1e-6") == math.inf
    assert compose([VECTOR, ApproximateLoss(2, "1e-6")]).epsilon("1.1e-6") < math.inf


@pytest.mark.parametrize(
    "losses",
    [
        # A sample's Rényi bound sets aside the whole inner δ, a hundred times too much.
        [ApproximateLoss(1, "1e-5").sampled("0.01"), VECTOR],
        # A group of a fixed δ has no Rényi bound at all, nor has a group of a Rényi curve.
        [ApproximateLoss("0.1", "1e-8").group(2), VECTOR],
        [RenyiLoss([2, 8, 64], ["0.01", "0.05", "0.5"]).group(2), VECTOR, LaplaceLoss(1)],
        [RenyiLoss([2, 8, 64], ["0.01", "0.05", "0.5"]).group(2)] * 3,
    ],
)
def test_a_bound_is_found_where_the_renyi_route_has_none(losses):
    total = compose(losses)
    found = total.epsilon("1e-6")
    assert found < math.inf
    # It is one that basic composition proves: the parts one by one with δ shared.
    assert found >= max(loss.epsilon("1e-6") for loss in losses)
    if not any(loss.directions() is None for loss in losses if isinstance(loss, GroupLoss)):  # those are slow
        assert total.delta(found) <= 1e-6 * (1 + 2e-6)


def test_the_better_of_the_proven_routes_is_taken():
    # Pure losses beside a small ρ: adding ε is far better than their Rényi curve.
    total = compose([PureLoss(3), ConcentratedLoss(F(1, 10**6))])
    assert total.epsilon("1e-6") <= 3 + ConcentratedLoss(F(1, 10**6)).epsilon("1e-6") + 1e-12
    # Gaussians beside a ρ: their Rényi curves together are better than ε and δ apart.
    mixed = compose([GaussianLoss(F(1, 50)), VECTOR])
    assert mixed.epsilon("1e-6") == pytest.approx(ConcentratedLoss(F(1, 50) + VECTOR.rho).epsilon("1e-6"))
    assert mixed.delta(mixed.epsilon("1e-6")) <= 1e-6 * (1 + 1e-6)


# ── parallel
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_parallel_parts_cost_the_largest_under_add_remove():
    loss = PureLoss(1).parallel(PureLoss(2), LaplaceLoss("1.5"))
    assert loss.pure == 2
    assert loss.epsilon(0) == 2
    assert loss.delta(1) == PureLoss(2).delta(1)
    assert loss.adjacency == "add-remove"
    gaussian = GaussianLoss(1).parallel(GaussianLoss(2), GaussianLoss(3))
    assert gaussian.rho == 3
    assert gaussian.mu == GaussianLoss(3).mu
    assert gaussian.epsilon("1e-6") == GaussianLoss(3).epsilon("1e-6")


def test_parallel_parts_cost_two_under_exchange():
    # Trap: under exchange a unit may leave one part and enter another.
    loss = PureLoss(1).parallel(PureLoss(2), PureLoss("0.5"), adjacency="exchange")
    assert loss.pure == 3
    assert loss.epsilon(0) == 3
    assert loss.delta(1) == (PureLoss(1) + PureLoss(2)).delta(1)
    twice = GaussianLoss(2).parallel(GaussianLoss(2), GaussianLoss(2), adjacency="exchange")
    assert twice.rho == 4
    assert twice.epsilon("1e-6") == pytest.approx(GaussianLoss(4).epsilon("1e-6"), rel=1e-12)
    assert LaplaceLoss(1).parallel(adjacency="exchange").epsilon(0) == 1


def test_parallel_of_incomparable_parts_is_the_supremum_and_composes():
    a, b = GaussianLoss(F(1, 2)), LaplaceLoss("1.5")
    loss = a.parallel(b)
    for epsilon in (0.0, 0.5, 1.4, 1.6, 3.0):
        assert loss.delta(epsilon) == max(a.delta(epsilon), b.delta(epsilon))
    assert loss.pure is None
    both = loss + loss
    for epsilon in (0.5, 2.0):
        least = max((a + a).delta(epsilon), (b + b).delta(epsilon), (a + b).delta(epsilon))
        assert least * (1 - 1e-4) <= both.delta(epsilon)


def test_parallel_refuses_losses_for_other_neighbours():
    with pytest.raises(UnsupportedLoss):
        LaplaceLoss(1).sampled("0.1").parallel(PureLoss(1), adjacency="exchange")
    with pytest.raises(InvalidParameter):
        PureLoss(1).parallel(PureLoss(1), adjacency="swap")
    with pytest.raises(InvalidParameter):
        ParallelLoss([])


def test_parallel_of_concentrated_parts():
    loss = ConcentratedLoss(1).parallel(ConcentratedLoss(2), adjacency="exchange")
    assert loss.rho == 3
    assert loss.epsilon("1e-6") == pytest.approx(ConcentratedLoss(3).epsilon("1e-6"), rel=1e-9)


def test_sampled_needs_matching_neighbours():
    with pytest.raises(UnsupportedLoss):
        SampledLoss(PureLoss(1).parallel(PureLoss(2), adjacency="exchange"), F(1, 2), "poisson")


def test_failure_probability_of_a_part_is_never_lost():
    # One part sets a δ aside, another knows only a Rényi curve: the δ must still be charged.
    loss = ApproximateLoss("0.1", "1e-4").parallel(RenyiLoss([2, 32], ["0.1", "1.6"]))
    assert loss.failure == F(1, 10**4)
    assert loss.rdp(2) == math.inf
    assert loss.epsilon("1e-5") == math.inf
    assert loss.delta(5) >= 1e-4


def test_an_estimate_only_leads_to_an_order():
    """What the search goes by is near the curve, and a wrong guide makes the answer larger, never smaller."""
    parts = [LaplaceLoss(F(k, 300)) for k in range(1, 9)] + [GaussianLoss(F(k, 9000)) for k in range(1, 9)]
    parts += [BoundedRangeLoss(F(k, 40)) for k in range(1, 41, 4)] + [PureLoss(F(1, 50)).under("add-remove")]
    whole = compose(parts)
    curve, guide = whole.curve(), whole._guide()
    for alpha in (1.001, 1.5, 4.0, 40.0, 1000.0, 1e6):
        assert guide(alpha) == pytest.approx(curve(alpha), rel=1e-5)
    delta = F(1, 10**6)
    exact = renyi.epsilon(curve, delta)
    assert renyi.epsilon(curve, delta, guide) == pytest.approx(exact, rel=1e-12)
    assert renyi.delta(curve, 2.0, F(0), guide) == pytest.approx(renyi.delta(curve, 2.0, F(0)), rel=1e-9)
    for wrong in (lambda alpha: 0.0, lambda alpha: 1 / alpha, lambda alpha: -guide(alpha)):
        assert renyi.epsilon(curve, delta, wrong) >= exact * (1 - 1e-12)
    assert whole.epsilon(delta) <= exact * (1 + 1e-12)
    assert compose([*parts, RenyiLoss([2], [F(1, 10)])])._guide() is None
