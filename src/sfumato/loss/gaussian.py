"""Gaussian losses: of continuous noise (rounded or not), and of discrete noise, which is another law."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import ClassVar

from flint import arb, ctx

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import renyi
from sfumato.loss.base import PrivacyLoss, proven_point, register
from sfumato.numeric.balls import ball, sqrt_up
from sfumato.numeric.exact import (
    Rational,
    as_integer,
    float_down,
    float_up,
    listed,
    nonnegative,
    positive,
    probability,
)
from sfumato.numeric.laws import DISCRETE_GAUSSIAN, GAUSSIAN, Term

_CLOSE = 10**12

__all__ = ["DiscreteGaussianLoss", "GaussianLoss", "mu_of"]


def mu_of(rho: Fraction) -> float:
    """√(2ρ) rounded up."""
    return sqrt_up(2 * rho)


_PRECISIONS = (96, 192, 384, 768, 1536, 3072)


def gaussian_meets(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether Gaussian noise of this ρ = μ²/2 is (ε, δ)-DP, decided in ball arithmetic.

    Privacy:
        δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle, Wang 2018, Thm. 8) is compared with the target at
        rising precision. Where even the highest cannot tell them apart, the answer is no.
    """
    for bits in _PRECISIONS:
        with ctx.workprec(bits):
            mu, e = (2 * ball(rho)).sqrt(), ball(epsilon)
            near, far = (e / mu - mu / 2) / arb(2).sqrt(), (e / mu + mu / 2) / arb(2).sqrt()
            excess = (near.erfc() - e.exp() * far.erfc()) / 2 - ball(delta)
            if excess <= 0:
                return True
            if excess > 0:
                return False
    return False


@register
@dataclass(frozen=True, slots=True)
class GaussianLoss(PrivacyLoss):
    """Gaussian noise of variance sensitivity²/(2ρ), continuous or rounded to a grid afterwards.

    Args:
        rho: ρ = μ²/2, exact; μ is the L2 sensitivity in standard deviations.
        point: the exact (ε, δ) that it was calibrated to, if it was: the price under basic composition. It is
            refused unless ball arithmetic proves it.

    Privacy:
        Claim: N(μ, 1) against N(0, 1) dominates in any dimension (rotate the shift onto one axis), and
        δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ). Source: Balle, Wang 2018, Thm. 8; Dong, Roth, Su 2022, Thm.
        2.7.
        Rényi: αρ exactly (Mironov 2017, Prop. 7). Rounding is post-processing; a discrete Gaussian is another
        law.
        Group: a shift of k sensitivities is μ → kμ. Composition: μ² adds up (Dong, Roth, Su 2022, Cor. 3.3).
    """

    wire: ClassVar[str] = "gaussian.1"
    rho: Fraction = field()
    point: tuple[Fraction, Fraction] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", positive(self.rho, "rho"))
        if self.point is not None:
            epsilon, delta = listed(self.point, "point", length=2)
            point = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
            if not gaussian_meets(self.rho, *point):
                raise InvalidParameter(
                    "This loss does not meet the point it claims: leave it out, or calibrate the noise to it."
                )
            object.__setattr__(self, "point", point)

    @classmethod
    def of_mu(cls, mu: Rational) -> GaussianLoss:
        """The loss at an exact rational μ."""
        return cls(positive(mu, "mu") ** 2 / 2)

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        """(ρ, 0)."""
        return self.rho, Fraction(0)

    @property
    def mu(self) -> float:
        """√(2ρ) rounded up."""
        return mu_of(self.rho)

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The point it was calibrated to."""
        return self.point

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """One term, which is its own swap."""
        return ((Term(GAUSSIAN, (mu_of(self.rho),)),),)

    def renyi(self, alpha: float) -> float:
        """αρ, rounded up."""
        return renyi.product_up(alpha, self.rho)

    def _group(self, size: int) -> PrivacyLoss:
        return self if size == 1 else GaussianLoss(self.rho * size * size)

    def _size(self) -> Fraction:
        return self.rho

    def __hash__(self) -> int:
        # A fraction's own hash inverts its denominator modulo a prime, which is slow for thousands of losses.
        return hash((self.rho.numerator, self.rho.denominator))


@register
@dataclass(frozen=True, slots=True)
class DiscreteGaussianLoss(PrivacyLoss):
    """Discrete Gaussian noise P(k) ∝ exp(−k²/(2·variance)) on integers.

    Args:
        variance: the parameter σ² (not exactly the variance), exact.
        sensitivity: the L2 sensitivity; a whole number for a scalar.
        scalar: whether a release is one integer. A vector carries ρ only.
        point: the exact (ε, δ) that it was calibrated to, if it was: the price under basic composition. It is
            refused unless the curve (for a vector, ρ) implies it.

    Privacy:
        Claim: sensitivity²/(2σ²)-zCDP in any dimension. Source: Canonne, Kamath, Steinke 2020. A
        scalar release has the exact curve of the lattice pair at a shift of `sensitivity` (their exact δ;
        smaller shifts are dominated, since the noise is log-concave and tests are thresholds). It is *not*
        dominated by the Gaussian of the same σ: at σ = sensitivity = 1, δ(1) is 0.141 against 0.127. So it
        has no μ, and a vector has no curve here but ρ's.
    """

    wire: ClassVar[str] = "discrete-gaussian.2"
    _former: ClassVar[str] = "discrete-gaussian.1"
    variance: Fraction
    sensitivity: Fraction = Fraction(1)
    scalar: bool = True
    point: tuple[Fraction, Fraction] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive(self.variance, "variance"))
        object.__setattr__(self, "sensitivity", positive(self.sensitivity, "sensitivity"))
        if not isinstance(self.scalar, bool):
            raise InvalidParameter("scalar must be True (one integer a release) or False (a vector).")
        if self.scalar and self.sensitivity.denominator != 1:
            raise InvalidParameter("The sensitivity of a scalar discrete Gaussian must be a whole number.")
        if self.point is not None:
            object.__setattr__(self, "point", proven_point(self.point, self._shown))

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        """(sensitivity²/(2·variance), 0)."""
        return self.sensitivity**2 / (2 * self.variance), Fraction(0)

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The point it was calibrated to."""
        return self.point

    def renyi(self, alpha: float) -> float:
        """αρ, rounded up."""
        return renyi.product_up(alpha, self.concentrated[0])

    def directions(self) -> tuple[tuple[Term, ...], ...] | None:
        """One term on the lattice for a scalar; None for a vector."""
        if not self.scalar:
            return None
        shift = as_integer(int(self.sensitivity), "sensitivity")
        return ((Term(DISCRETE_GAUSSIAN, (float_down(self.variance), float_up(Fraction(shift)))),),)

    @property
    def _paired(self) -> bool:
        return self.scalar

    def _shown(self, epsilon: float) -> float:
        # Beyond this ρ the lattice has one point that matters, and nothing that a point could be about.
        return self._delta(epsilon) if self.concentrated[0] < _CLOSE else 1.0

    def _epsilon(self, delta: Fraction) -> float:
        # The concentrated bound is looser than the lattice curve, but never needs a grid: keep the smaller.
        exact = PrivacyLoss._epsilon(self, delta)
        return exact if math.isfinite(exact) else renyi.epsilon(self.renyi, delta)

    def _group(self, size: int) -> PrivacyLoss:
        return DiscreteGaussianLoss(self.variance, self.sensitivity * size, self.scalar)
