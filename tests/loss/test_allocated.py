"""Random allocation: its curves against integrals and samples, what they must lie between, planted bugs."""

import math
from fractions import Fraction

import numpy as np
import pytest

import slow_allocation as reference
from sfumato.accounting import allocation_multiplier, noise_multiplier
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import NO_LOSS, AllocatedLoss, GaussianLoss, LaplaceLoss, PrivacyLoss, allocated
from sfumato.numeric import allocation, lognormal
from sfumato.numeric.allocation import Part
from sfumato.numeric.ratio_curves import Curves

F = Fraction
EPSILONS = [0.0, 0.3, 1.0, 3.0]


def _loss(sigma, bins):
    return GaussianLoss(1 / (2 * F(sigma) ** 2)).allocated(bins)


def _ends(loss, way, epsilon):
    """The curve from below and from above, in one direction."""
    below, above = (pair[way][0] for pair in (loss._beneath(), loss.directions()))
    return float(below.law.delta(epsilon, ())), float(above.law.delta(epsilon, ()))


@pytest.mark.parametrize(("sigma", "bins"), [("0.4", 2), ("1", 2), ("3", 2), ("1", 3), ("3", 3)])
def test_the_bracket_holds_the_integral(sigma, bins):
    loss, mu = _loss(sigma, bins), 1 / float(sigma)
    for epsilon in EPSILONS:
        for way, exact in enumerate((reference.remove(mu, bins, epsilon), reference.add(mu, bins, epsilon))):
            low, high = _ends(loss, way, epsilon)
            assert low <= exact * (1 + 1e-9) + 1e-15
            assert high >= exact * (1 - 1e-9) - 1e-15
            if exact > 1e-12:
                assert high < (1 + 1e-2) * exact
                assert low > (1 - 1e-2 * max(1, epsilon) ** 3) * exact


@pytest.mark.parametrize(("sigma", "bins"), [("0.5", 40), ("1", 100), ("2", 7)])
def test_the_bracket_holds_samples(sigma, bins):
    loss, mu = _loss(sigma, bins), 1 / float(sigma)
    for epsilon in (0.02, 0.1, 0.3):
        for way, (mean, deviation) in enumerate(reference.sampled(mu, bins, epsilon)):
            low, high = _ends(loss, way, epsilon)
            assert low - 6.2 * deviation <= mean <= high + 6.2 * deviation
            assert deviation < 0.3 * mean, "the sample says nothing"
            assert high - low < 2e-2 * high


def test_negative_epsilons_are_the_swapped_pair():
    loss = _loss(1, 5)
    for epsilon in (0.1, 0.7, 2.0):
        for way in (0, 1):
            swapped = 1 - math.exp(-epsilon) + math.exp(-epsilon) * loss.profile(1 - way, epsilon)
            assert loss.profile(way, -epsilon) == pytest.approx(swapped, rel=1e-9)


def test_one_ratio_is_the_gaussian():
    law = allocation.spread(1.0, 1)
    place, mass = law.atoms()
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        spread = float((mass * np.maximum(1 + place - math.exp(epsilon), 0)).sum()) + law.infinite
        exact = GaussianLoss(F(1, 2)).delta(epsilon)
        assert exact * (1 - 1e-12) <= spread <= exact * (1 + 1e-4)
    assert GaussianLoss(F(1, 2)).allocated(1) == GaussianLoss(F(1, 2))
    assert NO_LOSS.allocated(7) == NO_LOSS


@pytest.mark.parametrize(("sigma", "bins", "rounds"), [("1", 10, 1), ("0.8", 100, 5), ("2", 30, 20)])
def test_it_lies_between_what_is_known(sigma, bins, rounds):
    inner = GaussianLoss(1 / (2 * F(sigma) ** 2))
    cost = (inner.allocated(bins) * rounds).epsilon(1e-6)
    # More bins hide more; no allocation at all hides nothing; equal noise for everybody is the least.
    assert (inner.allocated(2 * bins) * rounds).epsilon(1e-6) < cost < (inner * rounds).epsilon(1e-6)
    assert cost > (GaussianLoss(inner.rho / bins) * rounds).epsilon(1e-6) * 0.999
    assert cost < (inner.sampled(F(1, bins)) * (bins * rounds)).epsilon(1e-6)


def test_rounds_compose_with_each_other_and_with_other_losses():
    loss = _loss(1, 50)
    assert loss.epsilon(1e-6) < (loss * 4).epsilon(1e-6) < 4 * loss.epsilon(2.5e-7)
    mixed = loss * 3 + GaussianLoss(F(1, 50)) + LaplaceLoss("0.1")
    assert (loss * 3).epsilon(1e-6) < mixed.epsilon(1e-6) < (loss * 3).epsilon(5e-7) + 1.2
    wide = (loss * 10).bracket(delta=1e-6)
    assert 0 < wide.lower < wide.upper < wide.lower * 1.002
    at = (loss * 10).bracket(epsilon=1)
    assert 0 < at.lower < at.upper < at.lower * 1.01
    # A few rounds by samples: the losses of 3 rounds of 2 steps add up.
    pair, draws = _loss(2, 2) * 3, 400_000
    generator = np.random.default_rng(5)
    ratio = np.exp(generator.standard_normal((draws, 3, 2)) / 2 - 1 / 8).mean(2).prod(1)
    gain = np.maximum(ratio - math.exp(0.5), 0)
    assert abs(pair.profile(0, 0.5) - gain.mean()) < 6.2 * gain.std() / math.sqrt(draws)


def test_it_is_stored_and_read_back():
    loss = _loss("1.25", 60) * 4
    assert PrivacyLoss.from_dict(loss.to_dict()) == loss
    assert loss.adjacency == "add-remove"
    assert _loss(1, 9).rho == F(1, 2)
    assert _loss(1, 9).rdp(2) == 1.0


def test_what_is_not_proven_is_refused():
    with pytest.raises(UnsupportedLoss, match="Gaussian noise only"):
        LaplaceLoss(1).allocated(4)
    with pytest.raises(UnsupportedLoss, match="sampled again"):
        _loss(1, 4).sampled("0.1")
    with pytest.raises(UnsupportedLoss, match="Gaussian noise only"):
        GaussianLoss(1).sampled("0.1").allocated(4)
    with pytest.raises(UnsupportedLoss, match="not for exchange"):
        GaussianLoss(1).under("exchange").allocated(4)
    with pytest.raises(InvalidParameter, match="bins"):
        GaussianLoss(1).allocated(0)
    with pytest.raises(InvalidParameter, match="at most 1e7"):
        AllocatedLoss(GaussianLoss(1), 10**8)


def test_next_to_no_noise_costs_what_one_release_does():
    inner = GaussianLoss(50)
    assert inner.allocated(10).delta(20) == inner.delta(20)
    for sigma in ("0.21", "0.25"):
        inner = GaussianLoss(1 / (2 * F(sigma) ** 2))
        assert (
            0.5 * inner.epsilon(1e-5) < inner.allocated(20).epsilon(1e-5) <= inner.epsilon(1e-5) * (1 + 1e-9)
        )


def test_far_out_it_still_holds():
    loss = _loss(1, 1000)
    values = [loss.delta(epsilon) for epsilon in (1, 2, 4, 6, 30)]
    assert values == sorted(values, reverse=True)
    assert 0 < values[-1] < 1e-40
    assert loss.epsilon(1e-30) < 6


def test_the_least_noise_for_a_target():
    sigma = allocation_multiplier(2, 1e-6, bins=60, rounds=10)
    loss = _loss(str(sigma), 60) * 10
    assert loss.epsilon(1e-6) <= 2
    assert (_loss(str(sigma * 0.9995), 60) * 10).epsilon(1e-6) > 2
    assert sigma < noise_multiplier(2, 1e-6, F(1, 60), 600)
    assert allocation_multiplier(1, 1e-6, bins=1, rounds=4) == noise_multiplier(1, 1e-6, 1, 4)


# Planted bugs: each puts the bracket beside the integral.


def _misses(monkeypatch, bins=3):
    allocated._above.cache_clear()
    loss = AllocatedLoss(GaussianLoss(F(1, 2)), bins)
    try:
        misses = []
        for epsilon in (0.3, 2.0):
            exact = reference.remove(1.0, 3, epsilon), reference.add(1.0, 3, epsilon)
            misses += [_ends(loss, way, epsilon)[1] < exact[way] * (1 - 1e-9) for way in (0, 1)]
        return any(misses)
    finally:
        monkeypatch.undo()
        allocated._above.cache_clear()


def _down(part):
    """Every odd point to the even one before it."""
    front = part.first & 1
    padded = np.concatenate((np.zeros(front), part.mass, np.zeros((len(part.mass) + front) % 2)))
    return Part(part.exponent + 1, part.first >> 1, padded.reshape(-1, 2).sum(1))


def test_without_a_bug_nothing_is_missed(monkeypatch):
    assert not _misses(monkeypatch)


def test_one_bin_too_many_is_seen(monkeypatch):
    assert _misses(monkeypatch, bins=4)


def test_rounding_in_the_wrong_direction_is_seen(monkeypatch):
    monkeypatch.setattr(Part, "coarser", _down)
    assert _misses(monkeypatch)


def test_cells_drawn_together_are_seen(monkeypatch):
    plain = lognormal.cells

    def left(mu, edges):
        mass, off = plain(mu, edges)
        return mass, off * 0.999

    monkeypatch.setattr(lognormal, "cells", left)
    assert _misses(monkeypatch)


def test_a_direction_forgotten_is_seen(monkeypatch):
    monkeypatch.setattr(Curves, "add", Curves.remove)
    allocated._above.cache_clear()
    try:
        low, high = _loss(1, 3).profile(1, -1.0), reference.add(1.0, 3, -1.0)
    finally:
        monkeypatch.undo()
        allocated._above.cache_clear()
    assert not high * (1 - 1e-9) <= low <= high * (1 + 1e-4)


def test_an_end_that_is_cut_off_is_seen(monkeypatch):
    monkeypatch.setattr(allocation, "_HIGHEST", 1.5)
    monkeypatch.setattr(lognormal, "above", lambda mu, edge: (0.0, 0.0))
    assert _misses(monkeypatch)
