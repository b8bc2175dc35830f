"""The truths are true, and each check of the accountants' kit bites."""

import math
from dataclasses import dataclass

import pytest
from scipy import integrate, stats

from sfumato.testing import check_accountant
from sfumato.testing.accountants import faults
from sfumato.testing.mutants.accountants import Advanced, Basic, Discretised
from sfumato.testing.truths import TRUTHS

BY_NAME = {truth.name: truth for truth in TRUTHS}


def test_single_curves_match_their_integrals():
    # δ(ε) = ∫ (p - e^ε q)+, from the densities alone.
    for name, density, points in (
        ("one Gaussian loss", stats.norm.pdf, None),
        ("one Laplace loss", lambda x: 0.5 * math.exp(-abs(x)), [0.0, 0.5, 1.0]),
    ):
        for epsilon in (0.0, 0.3, 0.8):
            exact, _ = integrate.quad(
                lambda x, e=epsilon, d=density: max(0.0, d(x) - math.exp(e) * d(x - 1)),
                -30,
                30,
                points=points,
                limit=500,
            )
            assert BY_NAME[name].delta(epsilon) == pytest.approx(exact, abs=1e-7)


def test_published_gaussian_value():
    assert BY_NAME["one Gaussian loss"].delta(1.0) == pytest.approx(
        0.12693674, abs=1e-8
    )  # Balle and Wang 2018


def test_mixed_curves_reduce_to_their_parts():
    # Composition is never below either part, and never above the sum of epsilons.
    for name in ("pure and Gaussian losses", "a Laplace and a Gaussian loss"):
        truth = BY_NAME[name]
        assert truth.delta(0.5) > 0.1
        assert truth.epsilon(1e-6) < 1.5 + 2.4 + 0.1
    ten = BY_NAME["ten pure losses"]
    assert ten.delta(0.0) == pytest.approx(
        stats.binom.cdf(4, 10, 1 / (1 + math.exp(0.1))) * 2 - 1 + _tie(), abs=1e-12
    )
    assert ten.delta(1.0) == pytest.approx(0.0, abs=1e-15)


def _tie():
    # The total variation of ten responses: P(more truths) - P(more lies), half of ties counting for neither.
    return stats.binom.pmf(5, 10, 1 / (1 + math.exp(0.1)))


def test_epsilon_inverts_delta():
    for truth in TRUTHS:
        for delta in (1e-6, 1e-3):
            epsilon = truth.epsilon(delta)
            if 0 < epsilon < math.inf:
                assert truth.delta(epsilon) == pytest.approx(delta, rel=1e-6)


@dataclass(frozen=True, slots=True)
class Bent:
    """An honest accountant with one thing bent."""

    bend: str
    inner: Discretised = Discretised("up")  # noqa: RUF009
    name: str = "bent"

    @property
    def adaptive(self):
        return "yes" if self.bend == "label" else False

    def epsilon(self, losses, delta):
        if self.bend == "nothing" and not losses:
            return 0.1
        if self.bend == "unknown" and any("Unknown" in type(loss).__name__ for loss in losses):
            return 1.0
        if self.bend == "delta" and not 0 <= delta < 1:
            return 0.0
        told = self.inner.epsilon(losses, delta)
        if self.bend == "monotone" and losses:
            return told + 100 * delta
        if self.bend == "turned" and losses:
            return told + float(losses[0].rho)
        return told

    def delta(self, losses, epsilon):
        told = self.inner.delta(losses, epsilon)
        return min(1.0, 2 * told) if self.bend == "inverse" else told


@pytest.mark.parametrize(
    ("bend", "check"),
    [
        ("label", "label"),
        ("nothing", "nothing"),
        ("unknown", "refusal"),
        ("delta", "refusal"),
        ("monotone", "order"),
        ("turned", "order"),
        ("inverse", "inverse"),
    ],
)
def test_each_check_bites(bend, check):
    assert {fault.split(":")[0] for fault in faults(Bent(bend))} == {check}


def test_straight_one_passes_and_is_not_tight():
    assert faults(Bent("")) == []
    with pytest.raises(AssertionError, match="tight:"):
        check_accountant(Bent(""), tight=1e-6)


def test_planted_bugs_fail():
    for planted in (Basic(True), Advanced(True), Discretised("nearest")):
        with pytest.raises(AssertionError, match="below the true"):
            check_accountant(planted)
