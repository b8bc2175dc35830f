"""Losses with a pure bound: the worst case for an ε, and the laws that are known more closely."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from flint import arb

from sfumato._dataclasses import dataclass
from sfumato.loss.base import PrivacyLoss, register
from sfumato.numeric.balls import ball, upper
from sfumato.numeric.exact import as_integer, float_down, float_up, nonnegative, positive
from sfumato.numeric.laws import BOUNDED_RANGE, DISCRETE_LAPLACE, K_RESPONSE, LAPLACE, PURE, Term
from sfumato.numeric.rounding import Floats

__all__ = ["BoundedRangeLoss", "DiscreteLaplaceLoss", "LaplaceLoss", "PureLoss", "ResponseLoss"]

_SMALL = 1e-3


@register
@dataclass(frozen=True, slots=True)
class PureLoss(PrivacyLoss):
    """ε-differential privacy and nothing more: whatever has a ratio of probabilities within e^±ε.

    Privacy:
        Claim: binary randomized response at ε dominates every ε-DP mechanism. Source: Kairouz, Oh, Viswanath
        2015, proof of Thm. 3.3 (the composition curve is optimal for the class). Condition: ε holds in both
        orders.
    """

    wire: ClassVar[str] = "pure.1"
    _plain_pair = True
    pure: Fraction = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pure", nonnegative(self.pure, "epsilon"))

    def renyi(self, alpha: float) -> float:
        """That of randomized response (Mironov 2017, Prop. 5), rounded up."""
        if self.pure == 0 or not 1 < alpha < math.inf:
            return float_up(self.pure)
        a, e = arb(alpha), ball(self.pure)
        # M = (e^(αε) + e^((1−α)ε)) / (e^ε + 1), with e^((α−1)ε) taken out of the logarithm.
        rest = ((1 - 2 * a) * e).exp().log1p() - (-e).exp().log1p()
        return min(float_up(self.pure), upper(e + rest / (a - 1)))

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """One term: randomized response, which is its own swap."""
        return ((Term(PURE, (float_up(self.pure),)),),) if self.pure else ((),)

    def _group(self, size: int) -> PrivacyLoss:
        return PureLoss(self.pure * size)

    def _size(self) -> Fraction:
        return self.pure

    def __hash__(self) -> int:
        # A fraction's own hash inverts its denominator modulo a prime, which is slow for thousands of losses.
        return hash((self.wire, self.pure.numerator, self.pure.denominator))


@register
@dataclass(frozen=True, slots=True)
class LaplaceLoss(PrivacyLoss):
    """The Laplace mechanism at scale sensitivity/ε, for a scalar or an L1-bounded vector.

    Privacy:
        Claim: the scalar pair at a shift of one sensitivity dominates every shift in the L1 ball, in any
        dimension.
        Proof: 1 − H_α(P_s‖P_0) = ∫ min(p(x−s), α·p(x)) dx, and the integrand is log-concave in (x, s) as a
        minimum of log-concave functions, so the integral is log-concave in s (Prékopa 1973). Hence H_α is
        quasi-convex in s and its maximum over the ball is at a vertex, where one coordinate moves by the
        whole sensitivity.
        Group: a shift of k sensitivities is the same law at kε.
    """

    wire: ClassVar[str] = "laplace.1"
    _plain_pair = True
    pure: Fraction = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pure", positive(self.pure, "epsilon"))

    def renyi(self, alpha: float) -> float:
        """The closed form of Mironov 2017, Prop. 6, rounded up."""
        if not 1 < alpha < math.inf:
            return float_up(self.pure)
        a, e = arb(alpha), ball(self.pure)
        # M = (α·e^((α−1)ε) + (α−1)·e^(−αε)) / (2α−1), with e^((α−1)ε) taken out of the logarithm.
        rest = ((a - 1) * ((1 - 2 * a) * e).expm1() / (2 * a - 1)).log1p()
        return min(float_up(self.pure), upper(e + rest / (a - 1)))

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """One term: the continuous Laplace law, which is its own swap."""
        return ((Term(LAPLACE, (float_up(self.pure),)),),)

    def _group(self, size: int) -> PrivacyLoss:
        return LaplaceLoss(self.pure * size)

    def _size(self) -> Fraction:
        return self.pure

    def __hash__(self) -> int:
        # A fraction's own hash inverts its denominator modulo a prime, which is slow for thousands of losses.
        return hash((self.wire, self.pure.numerator, self.pure.denominator))


@register
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceLoss(PrivacyLoss):
    """Two-sided geometric noise P(k) ∝ exp(−rate·|k|) on integers at an integer L1 distance.

    Privacy:
        Claim: the scalar pair at a shift of `sensitivity` dominates every integer shift of that L1 norm, in
        any dimension. Proof: the loss of a scalar shift s lives on {rate·(2m−s): 0 ≤ m ≤ s}, and so does that
        of two coordinates shifted by a + b = s. With h = 1/(1+e^−rate) and c = 1−e^−rate the first puts h at
        m = 0, h·e^(−rate·s) at m = s and h·c·e^(−rate·m) between (under the unshifted law); the second h²,
        h²·e^(−rate·s), and between at least 2h²·c·e^(−rate·m), since the first and the last way to split m
        each have a coordinate at an end. As 1/2 ≤ h ≤ 1 it has less mass at both ends and more between, so
        its likelihood ratio is smaller in the convex order (Blackwell 1953), which is H_α smaller for every
        α. Smaller shifts: the noise is log-concave, tests are thresholds.
    """

    wire: ClassVar[str] = "discrete-laplace.1"
    rate: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive(self.rate, "rate"))
        object.__setattr__(self, "sensitivity", as_integer(self.sensitivity, "sensitivity"))

    @property
    def pure(self) -> Fraction:
        """The rate times the sensitivity."""
        return self.rate * self.sensitivity

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """One term on the lattice, which is its own swap."""
        return ((Term(DISCRETE_LAPLACE, (float_up(self.rate), float_up(Fraction(self.sensitivity)))),),)

    def _group(self, size: int) -> PrivacyLoss:
        return DiscreteLaplaceLoss(self.rate, self.sensitivity * size)


@register
@dataclass(frozen=True, slots=True)
class ResponseLoss(PrivacyLoss):
    """Randomized response over `categories` values: the truth with probability e^ε/(e^ε + categories − 1).

    Privacy:
        Claim: any two truths give the same pair, up to names: two outputs with losses ±ε and the rest with
        loss 0.
        Source: Kairouz, Oh, Viswanath 2016. Adding up over a group: the pure bound kε.
    """

    wire: ClassVar[str] = "response.1"
    pure: Fraction = field()
    categories: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "pure", positive(self.pure, "epsilon"))
        object.__setattr__(self, "categories", as_integer(self.categories, "categories", least=2))

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """One term, which is its own swap."""
        # More categories cost less, so their number is rounded down.
        return ((Term(K_RESPONSE, (float_up(self.pure), float_down(Fraction(self.categories)))),),)

    def _group(self, size: int) -> PrivacyLoss:
        return self if size == 1 else PureLoss(self.pure * size)


@register
@dataclass(frozen=True, slots=True)
class BoundedRangeLoss(PrivacyLoss):
    """A loss that varies by at most ε over the outputs, like that of the exponential mechanism at ε.

    Privacy:
        Claim: the exponential mechanism with parameter ε has log-ratios in some interval [t−ε, t] (bounded
        range), is ε-DP and ε²/8-zCDP. Source: Dong, Durfee, Rogers 2020; Cesar, Rogers 2021, Lemmas 3.2 and
        3.4 (ε²/8). Its Rényi divergence is the supremum over t of that of the two-point pair on {t−ε, t},
        taken in closed form.
        Condition: permute-and-flip and noisy max with Laplace noise do not have bounded range; they carry
        `PureLoss`.
        Group: the ranges along a chain of k neighbours add up.
    """

    wire: ClassVar[str] = "bounded-range.1"
    _envelope = True
    pure: Fraction = field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pure", positive(self.pure, "epsilon"))

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        """(ε²/8, 0)."""
        return min(self.pure * self.pure / 8, self.pure), Fraction(0)

    def renyi(self, alpha: float) -> float:
        """The supremum over t of the Rényi divergence of the pair on {t−ε, t}, rounded up."""
        if not 1 < alpha < math.inf:
            return float_up(self.pure)
        a, e = arb(alpha), ball(self.pure)
        # E_Q[e^(αL)] = (e^((α−1)t)·A − e^(αt)·B) / (1−e^−ε), largest at e^t = (α−1)A/(αB).
        outer, inner = -(-a * e).expm1(), (-e).exp() * -(-(a - 1) * e).expm1()
        t = ((a - 1) * outer / (a * inner)).log()
        closed = t + ((outer / a).log() - (-(-e).expm1()).log()) / (a - 1)
        linear = float_up(Fraction(alpha) * self.pure * self.pure / 8)
        return min(float_up(self.pure), linear, upper(closed))

    @staticmethod
    def about(epsilons: Floats, alpha: float) -> Floats:
        """The curves of many such losses at an order, in floats: neither above nor below, but near."""
        with np.errstate(all="ignore"):  # where a large ε leaves no digits, the other two count
            outer = -np.expm1(-alpha * epsilons)
            inner = np.exp(-epsilons) * -np.expm1(-(alpha - 1) * epsilons)
            shift = np.log((alpha - 1) * outer / (alpha * inner))
            closed = shift + np.log(outer / (alpha * -np.expm1(-epsilons))) / (alpha - 1)
        # The closed form of a small one is a difference of numbers near 0, and its limit is as good.
        closed[alpha * epsilons < _SMALL] = math.inf
        nearest: Floats = np.fmin(np.minimum(epsilons, alpha * epsilons**2 / 8), closed)
        return nearest

    def _kullback_leibler(self) -> float:
        # The limit of the closed form: ε/(e^ε − 1) − 1 + log((e^ε − 1)/ε).
        e = ball(self.pure)
        return min(upper(e / e.expm1() - 1 + (e.expm1() / e).log()), float_up(self.pure * self.pure / 8))

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """One term: the upper envelope over t, which is its own swap."""
        return ((Term(BOUNDED_RANGE, (float_up(self.pure),)),),)

    def _group(self, size: int) -> PrivacyLoss:
        return BoundedRangeLoss(self.pure * size)

    def _size(self) -> Fraction:
        return self.pure

    def __hash__(self) -> int:
        # A fraction's own hash inverts its denominator modulo a prime, which is slow for thousands of losses.
        return hash((self.wire, self.pure.numerator, self.pure.denominator))
