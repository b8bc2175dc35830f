"""The law of the privacy loss: what it says, and what does not follow from it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from sfumato.errors import UnsupportedLoss
from sfumato.loss import (
    ApproximateLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    PureLoss,
    ResponseLoss,
)
from sfumato.mechanisms import Gaussian

KNOWN = (
    GaussianLoss("0.5"),
    GaussianLoss("0.1") * 3,
    LaplaceLoss(1),
    DiscreteLaplaceLoss("0.5", 2),
    DiscreteGaussianLoss(4),
    PureLoss(1),
    ResponseLoss(1, 5),
    ResponseLoss(1, 5) * 3,
    ApproximateLoss(1, "1e-3"),
    PureLoss(1) + DiscreteLaplaceLoss("0.5", 2),
)


@pytest.mark.parametrize("loss", KNOWN, ids=repr)
@pytest.mark.parametrize("epsilon", ["0", "0.3", "0.9", "1.7"])
def test_it_is_sufficient_and_not_necessary(loss: PrivacyLoss, epsilon: str) -> None:
    exceeds, delta = loss.law().exceeds(epsilon), loss.delta(epsilon)
    # Sufficient: Pr[L > ε] is itself a δ for this ε.
    assert delta <= exceeds * (1 + 1e-9)
    # Not necessary: the δ of the curve is smaller, strictly, where a finite loss exceeds ε.
    if exceeds > loss.law().infinity * (1 + 1e-9) + 1e-300:
        assert delta < exceeds


def test_the_trap_by_its_figures() -> None:
    # Laplace noise at ε = 1 is (0.9, 0.0488)-DP, though its loss exceeds 0.9 with probability 0.52.
    loss = LaplaceLoss(1)
    assert loss.delta("0.9") == pytest.approx(0.0488, abs=1e-4)
    assert loss.law().exceeds("0.9") == pytest.approx(0.5244, abs=1e-4)
    # Gaussian noise for (1, 1e-5): the loss exceeds 1 sixteen times as often as delta says.
    loss = Gaussian(1, 1e-5, sensitivity=1).loss
    assert loss.delta(1) == pytest.approx(1e-5)
    assert loss.law().exceeds(1) == pytest.approx(1.6e-4, abs=5e-6)


@pytest.mark.parametrize("loss", KNOWN, ids=repr)
def test_the_curve_follows_from_the_law(loss: PrivacyLoss) -> None:
    # δ(ε) = ∫ e^(ε−l)·Pr[L > l] dl over l > ε, by parts.
    found, epsilon = loss.law(), 0.25
    x = np.linspace(epsilon, 12.0, 2_001)
    tail = np.array([found.exceeds(one) for one in x]) - found.infinity
    by_parts = float(np.trapezoid(np.exp(epsilon - x) * tail, x)) + found.infinity
    assert by_parts == pytest.approx(loss.delta("0.25"), rel=2e-2, abs=6e-3)


def test_closed_forms() -> None:
    gauss = GaussianLoss(Fraction(1, 2)).law()
    assert gauss.exceeds(1) == pytest.approx(norm.sf(1, 0.5, 1), rel=1e-12)
    assert gauss.exceeds(1) >= norm.sf(1, 0.5, 1) * (1 - 1e-15)
    assert gauss.mean == pytest.approx(0.5)
    assert gauss.quantile("0.975") == pytest.approx(norm.ppf(0.975, 0.5, 1), rel=1e-9)
    assert gauss.density(0.5) == pytest.approx(1 / math.sqrt(2 * math.pi))
    laplace = LaplaceLoss(1).law()
    assert laplace.mean == pytest.approx(LaplaceLoss(1).rdp(1), rel=1e-4)
    assert laplace.quantile("0.6") == 1.0
    assert laplace.atoms == ((1.0, 0.5), (-1.0, 0.5 * math.exp(-1)))
    response = PureLoss(1).law()
    assert response.exceeds("0.5") == pytest.approx(math.e / (1 + math.e))
    assert response.exceeds(2) < 1e-300
    assert response.mean == pytest.approx(math.tanh(0.5))
    assert ApproximateLoss(1, "0.1").law().quantile("0.95") == math.inf
    assert DiscreteGaussianLoss(4).law().mean == pytest.approx(1 / 8, rel=1e-9)
    assert sum(mass for _, mass in DiscreteGaussianLoss(4).law().atoms) == pytest.approx(1)


def test_a_loss_without_a_law_is_refused() -> None:
    for loss in (ConcentratedLoss(1), LaplaceLoss(1) * 2, GaussianLoss(1).sampled("0.1")):
        with pytest.raises(
            UnsupportedLoss, match=r"no simple form here; read its curve with delta\(epsilon\)"
        ):
            loss.law()


@pytest.mark.parametrize("loss", KNOWN, ids=repr)
def test_every_atom_has_a_probability(loss: PrivacyLoss) -> None:
    assert all(mass > 0 for _, mass in loss.law().atoms)


def test_randomized_response_has_two_losses() -> None:
    assert [round(at, 9) for at, _ in ResponseLoss(1, 2).law().atoms] == [1, -1]
