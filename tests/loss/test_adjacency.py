"""Losses that hold for one kind of neighbours, and Poisson samples under exchange."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import UnsupportedLoss
from sfumato.games import ModelSelection, PrivateLearner
from sfumato.games.pac import thresholds
from sfumato.ledger import Budget, Ledger
from sfumato.loss import (
    ApproximateLoss,
    BoundedRangeLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    PureLoss,
    ResponseLoss,
    compose,
)

PLAIN = (
    PureLoss(1),
    LaplaceLoss("0.5"),
    BoundedRangeLoss(1),
    GaussianLoss("0.1"),
    DiscreteGaussianLoss(4),
    ResponseLoss(1, 3),
    ApproximateLoss(1, "1e-6"),
    ConcentratedLoss("0.1"),
    LaplaceLoss(1) + GaussianLoss("0.2"),
    LaplaceLoss(1) * 3,
)


@pytest.mark.parametrize("loss", PLAIN, ids=repr)
def test_stating_the_neighbours_changes_no_figure(loss: PrivacyLoss) -> None:
    stated = loss.under("add-remove")
    assert stated.adjacency == "add-remove"
    assert (stated.pure, stated.concentrated, stated.approximate, stated.mu) == (
        loss.pure,
        loss.concentrated,
        loss.approximate,
        loss.mu,
    )
    assert stated.delta("0.3") == loss.delta("0.3")
    assert stated.epsilon("1e-3") == loss.epsilon("1e-3")
    assert stated.rdp(3) == loss.rdp(3)
    assert stated.group(2).epsilon("1e-3") == loss.group(2).epsilon("1e-3")
    assert stated.group(2).adjacency == "add-remove"
    assert PrivacyLoss.from_dict(stated.to_dict()) == stated
    assert stated.under("add-remove") == stated
    assert "adjacent" not in repr(loss.to_dict())


def contradictory(one: PrivacyLoss, other: PrivacyLoss) -> list[str]:
    """Which ways of putting two losses together were not refused."""
    ways = {
        "+": lambda: one + other,
        "compose": lambda: compose([one, other, one]),
        "parallel": lambda: one.parallel(other),
        "parallel exchange": lambda: one.parallel(other, adjacency="exchange"),
        "filter": lambda: sf.accounting.BasicFilter(99, "0.1").after(one).after(other),
        "under": lambda: one.under("exchange" if one.adjacency == "add-remove" else "add-remove"),
    }
    found = []
    for name, put in ways.items():
        try:
            put()
        except UnsupportedLoss:
            continue
        found.append(name)
    return found


def test_losses_for_other_neighbours_do_not_combine() -> None:
    pure = [loss for loss in PLAIN if loss.approximate is not None]
    for one, other in itertools.product(pure, pure):
        assert contradictory(one.under("add-remove"), other.under("exchange")) == []
        assert contradictory(one.under("exchange"), other.under("add-remove")) == []


def test_the_search_would_see_a_combination() -> None:
    assert contradictory(PureLoss(1), PureLoss(2)) == [
        "+",
        "compose",
        "parallel",
        "parallel exchange",
        "filter",
        "under",
    ]


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_learners_and_selections_carry_their_neighbours(adjacency: sf.loss.Adjacency) -> None:
    learner = PrivateLearner(1, thresholds(range(5)), adjacency=adjacency)
    assert learner.loss.adjacency == adjacency
    for holdout in ("same", "apart"):
        chosen = ModelSelection(1, [PureLoss(1), PureLoss(2)], holdout=holdout, adjacency=adjacency)
        assert chosen.loss.adjacency == adjacency


def test_a_ledger_refuses_a_loss_for_other_neighbours() -> None:
    ledger = Ledger.open(None)
    ledger.register("people", {"unit": {"column": "id", "adjacency": "exchange"}}, Budget(9))
    with pytest.raises(UnsupportedLoss, match="add-remove neighbours and 'people' protects exchange"):
        ledger.debit("people", PureLoss(1).under("add-remove"), fingerprint="a")
    ledger.debit("people", PureLoss(1).under("exchange"), fingerprint="b")
    ledger.debit("people", PureLoss(1), fingerprint="c")
    assert len([entry for entry in ledger.entries() if entry.kind == "debit"]) == 2


# ── Poisson samples under exchange


def test_a_published_sample_under_exchange_is_far_below_group_privacy() -> None:
    loss = GaussianLoss(Fraction(1, 2))
    for rate in ("0.1", "0.01"):
        assert loss.sampled(rate, adjacency="exchange").delta(1) < loss.sampled(rate).group(2).delta(1) / 3


def positive_part(sigma: float, rate: float, alpha: float, u: float, v: float) -> float:
    """∫ (P − αQ)+ for shifts u and v of the two units, by quadrature."""
    x = np.linspace(-12 * sigma - 2, 12 * sigma + 2, 40_001)

    def bell(shift: float) -> np.ndarray:
        return np.exp(-((x - shift) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))

    difference = (1 - rate) * bell(0) * (1 - alpha) + rate * (bell(u) - alpha * bell(v))
    return float(np.trapezoid(np.maximum(difference, 0.0), x))


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.1), (0.6, 0.02), (3.0, 0.5)])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_no_pair_of_units_is_worse_than_the_two_ends(sigma: float, rate: float, epsilon: float) -> None:
    rho = 1 / (2 * Fraction(str(sigma)) ** 2)
    claimed = GaussianLoss(rho).sampled(str(rate), adjacency="exchange").delta(str(epsilon))
    alpha = math.exp(epsilon)
    found = {
        (u, v): positive_part(sigma, rate, alpha, u, v)
        for u, v in itertools.product(np.linspace(-1, 1, 9).tolist(), repeat=2)
    }
    assert max(found.values()) <= claimed * (1 + 1e-6)
    assert found[1.0, -1.0] == pytest.approx(claimed, rel=1e-5)


def test_the_quadrature_would_see_a_curve_that_is_too_low() -> None:
    low = GaussianLoss(Fraction(1, 2)).sampled("0.1").delta("0.2")  # the same sample under add/remove
    assert positive_part(1.0, 0.1, math.exp(0.2), 1.0, -1.0) > low * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_other_mechanisms_on_a_sample_under_exchange(epsilon: float) -> None:
    # Laplace noise of scale 1: the three laws on a line, by quadrature.
    loss, rate, alpha = LaplaceLoss(1).sampled("0.1", adjacency="exchange"), 0.1, math.exp(epsilon)
    x = np.linspace(-40, 40, 400_001)
    bell = {shift: np.exp(-np.abs(x - shift)) / 2 for shift in (-1, 0, 1)}
    difference = (1 - rate) * bell[0] * (1 - alpha) + rate * (bell[1] - alpha * bell[-1])
    truth = float(np.trapezoid(np.maximum(difference, 0.0), x))
    assert truth * (1 - 1e-6) <= loss.delta(str(epsilon)) <= loss.epsilon(0) + 1
    assert float(loss.pure or 0) == pytest.approx(math.log((0.9 + 0.1 * math.e) / (0.9 + 0.1 / math.e)))


def test_a_sample_under_exchange_composes_and_is_stored() -> None:
    step = GaussianLoss("0.5").sampled("0.01", adjacency="exchange")
    assert PrivacyLoss.from_dict(step.to_dict()) == step
    assert (step * 5).epsilon("1e-6") > (GaussianLoss("0.5").sampled("0.01") * 5).epsilon("1e-6")
    with pytest.raises(UnsupportedLoss):
        _ = step + GaussianLoss("0.5").sampled("0.01")
    with pytest.raises(UnsupportedLoss):
        step.sampled("0.5")
    with pytest.raises(UnsupportedLoss):
        GaussianLoss(1).under("exchange").sampled("0.5", adjacency="exchange")
    assert GaussianLoss("0.5").sampled(1, adjacency="exchange").epsilon("1e-6") == GaussianLoss(2).epsilon(
        "1e-6"
    )


def test_a_published_sample_under_exchange() -> None:
    # σ = Δ, rate 1/5: δ(1) is .004735, where two steps of add/remove (group privacy) give .0331.
    gaussian = GaussianLoss(Fraction(1, 2))
    assert gaussian.sampled("0.2", adjacency="exchange").delta(1) == pytest.approx(0.004735, abs=5e-7)
    assert gaussian.sampled("0.2").group(2).delta(1) == pytest.approx(0.0331, abs=5e-5)
