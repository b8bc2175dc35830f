"""The law of the privacy loss itself: how likely it is to exceed an ε, its mean, its quantiles."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss.base import PrivacyLoss
from sfumato.loss.composed import ComposedLoss, fold
from sfumato.loss.gaussian import DiscreteGaussianLoss, GaussianLoss
from sfumato.loss.pure import LaplaceLoss
from sfumato.numeric import atoms
from sfumato.numeric.exact import Rational, as_fraction, float_down, float_up, probability
from sfumato.numeric.laws.discrete_gaussian import lattice_tail
from sfumato.numeric.rounding import LIBRARY, SPECIAL, Floats, U

__all__ = ["LossLaw", "law"]


@dataclass(frozen=True, slots=True, eq=False)
class LossLaw:
    """The law of L = log(P(Y)/Q(Y)) with Y drawn from P: the same in both directions of the losses here.

    Attributes:
        kind: "gaussian" (N(μ²/2, μ²)), "laplace" (two atoms at ±ε and a density between) or "discrete".
        losses: The losses of a discrete law, from the largest down.
        masses: Their probabilities.
        infinity: The probability of an infinite loss.

    Privacy:
        Claim: `exceeds(ε)` is not below Pr[L > ε]. If Pr[L > ε] ≤ δ in both directions, the mechanism is (ε,
        δ)-DP (Dwork, Roth 2014, Lemma 3.17). That is sufficient, not necessary: δ(ε) = E[(1 − e^(ε−L))+] is
        smaller wherever the loss can exceed ε at all, so that a figure read off here may be far too large.
    """

    kind: Literal["gaussian", "laplace", "discrete"]
    parameter: float
    losses: Floats
    masses: Floats
    infinity: float = 0.0

    def exceeds(self, epsilon: Rational) -> float:
        """Pr[L > ε], rounded up."""
        x = float_down(as_fraction(epsilon, "epsilon"))
        if self.kind == "gaussian":
            from scipy.special import ndtr

            y = self.parameter / 2 - x / self.parameter
            slip = 8 * U * (abs(x) / self.parameter + self.parameter) * (abs(y) + 2)
            return _raised(float(ndtr(y)), SPECIAL + 2 * slip)
        if self.kind == "laplace":
            e = self.parameter
            if x >= e:
                return 0.0
            if x < -e:
                return 1.0
            # The atom at ε, and the density e^((l−ε)/2)/4 above x.
            return _raised(0.5 - 0.5 * math.expm1((x - e) / 2), 8 * LIBRARY)
        slack = 16 * U * (abs(x) + float(np.max(np.abs(self.losses), initial=0.0)))
        # A loss within rounding of ε counts as above it.
        return _raised(float(self.masses[self.losses > x - slack].sum()) + self.infinity, _RELATIVE)

    def density(self, at: float) -> float:
        """The density of the continuous part at a loss; 0 for a discrete law."""
        if self.kind == "gaussian":
            mu = self.parameter
            return math.exp(-((at - mu * mu / 2) ** 2) / (2 * mu * mu)) / (mu * math.sqrt(2 * math.pi))
        if self.kind == "laplace" and abs(at) < self.parameter:
            return math.exp((at - self.parameter) / 2) / 4
        return 0.0

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """The losses that have a probability of their own, with it, from the largest down."""
        return tuple(zip(self.losses.tolist(), self.masses.tolist(), strict=True))

    @property
    def mean(self) -> float:
        """E[L], the Kullback–Leibler divergence; infinite where the loss can be."""
        if self.infinity:
            return math.inf
        if self.kind == "gaussian":
            return self.parameter**2 / 2
        if self.kind == "laplace":
            return self.parameter + math.expm1(-self.parameter)
        return float((self.losses * self.masses).sum())

    def quantile(self, level: Rational) -> float:
        """The least ε with Pr[L > ε] ≤ 1 − level, to about 1e-12, from above; infinite if there is none."""
        rest = 1 - float(probability(level, "level"))
        if self.infinity > rest:
            return math.inf
        if self.kind == "discrete":
            above = np.cumsum(self.masses) + self.infinity
            index = int(np.searchsorted(above, rest * (1 + 1e-12), side="right"))
            return float(self.losses[min(index, len(self.losses) - 1)])
        low, high = -1.0, 1.0
        while self.exceeds(high) > rest:
            high *= 2
        while self.exceeds(low) <= rest:
            low *= 2
        for _ in range(200):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if self.exceeds(middle) > rest else (low, middle)
        return high


_RELATIVE = 1e-11


def _raised(value: float, relative: float) -> float:
    return min(1.0, value * (1 + relative) + 5e-324)


def law(loss: PrivacyLoss) -> LossLaw:
    """The law of a loss that is known by its exact law.

    Raises:
        UnsupportedLoss: where only a bound is known, or the law has no simple form.
    """
    one = fold(loss)
    if isinstance(one, GaussianLoss):
        return LossLaw("gaussian", one.mu, np.zeros(0), np.zeros(0))
    if isinstance(one, LaplaceLoss):
        e = float_up(one.pure)
        return LossLaw("laplace", e, np.array([e, -e]), np.array([0.5, 0.5 * math.exp(-e)]))
    if isinstance(one, DiscreteGaussianLoss) and one.scalar:
        return _lattice(one)
    ways = None if isinstance(one, ComposedLoss) and len(one.parts) > 64 else one.directions()
    outcomes = atoms.outcomes(ways[0]) if ways is not None and len(ways) == 1 and ways[0] else None
    if ways is None or outcomes is None or outcomes[1] or one._envelope:
        raise UnsupportedLoss(
            f"The law of a {type(loss).__name__} has no simple form here; read its curve with "
            "delta(epsilon), or take the law of one event that is not sampled."
        )
    order = np.argsort(-outcomes[0].losses, kind="stable")
    order = order[outcomes[0].masses[order] > 0]
    kept = [1 - term.law.infinity(term.parameters) for term in ways[0] for _ in range(term.count)]
    return LossLaw(
        "discrete", 0.0, outcomes[0].losses[order], outcomes[0].masses[order], max(0.0, 1 - math.prod(kept))
    )


def _lattice(loss: DiscreteGaussianLoss) -> LossLaw:
    variance, shift = float(loss.variance), float(loss.sensitivity)
    # Further out no probability is a float above 0.
    reach = math.ceil(39 * math.sqrt(variance)) + 2
    if reach > 1 << 20:
        raise InvalidParameter("A discrete Gaussian this wide has too many losses to list.")
    k = np.arange(reach, -reach - 1, -1.0)
    tails = lattice_tail(variance, k)[0]
    masses = np.diff(tails, prepend=0.0)
    some = masses > 0
    return LossLaw("discrete", 0.0, (shift * (shift + 2 * k) / (2 * variance))[some], masses[some])
