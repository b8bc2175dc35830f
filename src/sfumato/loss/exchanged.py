"""A Poisson sample under exchange: one unit is replaced, and each is drawn by a coin of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter, UnsupportedLoss
from sfumato.loss import _profiles
from sfumato.loss.base import Adjacency, PrivacyLoss, register
from sfumato.loss.composed import fold
from sfumato.loss.gaussian import GaussianLoss
from sfumato.loss.sampled import SampledLoss
from sfumato.numeric.balls import ball, exact_upper
from sfumato.numeric.exact import float_up, positive
from sfumato.numeric.laws import Profile, Term
from sfumato.numeric.rounding import LIBRARY, SPECIAL, Floats, U, scaled, up

__all__ = ["ExchangedSampleLoss"]


@register
@dataclass(frozen=True, slots=True)
class ExchangedSampleLoss(PrivacyLoss):
    """A mechanism on a secret Poisson sample, between tables in which one unit was replaced by another.

    Args:
        inner: the loss of the mechanism on its sample under *add/remove*: with and without the unit.
        rate: the public probability that a given unit is in the sample.

    Privacy:
        Claim: let R, P, Q be the outputs without the unit, with the one and with the other. Then
        H_α((1−q)R + qP ‖ (1−q)R + qQ) = sup_S [qP(S) − (α−1)(1−q)R(S) − αqQ(S)] for α ≥ 1.
        Gaussian: the pair with P = N(1/σ, 1), R = N(0, 1), Q = N(−1/σ, 1) dominates, in any dimension.
        Proof: let p = P(S) and z = Φ⁻¹(p). By Neyman and Pearson R(S) ≥ Φ(z − 1/σ), as R is at most 1/σ
        from P, and Q(S) ≥ Φ(z − 2/σ), as Q is at most 2/σ from P; for the collinear pair one half-line has
        both with equality. It is its own swap, so that the curve holds in both orders.
        Others: q·[(1−β)·δ₁(ε̃) + β·δ₂(ε̃)] with e^ε̃ = 1 + (e^ε − 1)/q and β = e^(ε−ε̃), where δ₁ is the
        inner curve and δ₂ that of two units (advanced joint convexity: Balle, Barthe, Gaboardi 2018, Thm.
        2). Pure: log((1−q+qe^ε)/(1−q+qe^−ε)), since R(S) ≥ e^−ε P(S) and Q(S) ≥ e^−2ε P(S).
        Conditions: as for `SampledLoss`; the rate does not depend on the data.
    """

    wire: ClassVar[str] = "sampled-exchange.1"
    inner: PrivacyLoss
    rate: Fraction

    def __post_init__(self) -> None:
        rate = positive(self.rate, "rate")
        if not rate < 1:
            raise InvalidParameter("The sampling rate must be below 1; a rate of 1 is the loss of two units.")
        # The same conditions as for a sample under add/remove, and the same words.
        SampledLoss(self.inner, rate)
        if not self.inner.group(2)._paired:
            raise UnsupportedLoss(f"{type(self.inner).__name__} has no proven amplification under exchange.")
        object.__setattr__(self, "rate", rate)

    @property
    def adjacency(self) -> Adjacency:
        """Exchange."""
        return "exchange"

    @property
    def pure(self) -> Fraction | None:
        """log((1−q+qe^ε)/(1−q+qe^−ε)), rounded up."""
        pure = self.inner.pure
        if pure is None:
            return None
        q, e = ball(self.rate), ball(pure)
        bound = exact_upper((q * e.expm1()).log1p() - (q * (-e).expm1()).log1p())
        return 2 * pure if bound is None else min(bound, 2 * pure)

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """That of two units, which sampling cannot raise (quasi-convexity)."""
        known = self.inner.group(2).concentrated
        return known if known is not None and not known[1] else None

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """One curve, which bounds both orders."""
        return _directions(self)


@lru_cache(maxsize=256)
def _directions(loss: ExchangedSampleLoss) -> tuple[tuple[Term, ...], ...]:
    rate, inner = float_up(loss.rate), fold(loss.inner)
    top = math.inf if loss.pure is None else float_up(loss.pure)
    if isinstance(inner, GaussianLoss):
        return ((Term(Profile(_gaussian(inner.mu, rate), "Poisson sample (exchange)"), ()),),)
    one, two = _both(inner), _both(inner.group(2))
    mass = min(1.0, rate * max(one.law.infinity(one.parameters), two.law.infinity(two.parameters)))
    curve = _mixed(one, two, rate)
    return ((Term(Profile(curve, "Poisson sample (exchange)", mass, (-top, top)), ()),),)


def _both(loss: PrivacyLoss) -> Term:
    ways = loss.directions()
    assert ways is not None
    return _profiles.supremum([_profiles.single(ways, way) for way in range(len(ways))])


def _gaussian(shift: float, rate: float) -> Callable[[Floats], Floats]:
    """The curve of (1−q)N(0) + qN(±shift), by its threshold, rounded up."""
    stays, goes = math.log1p(-rate), math.log(rate)

    def ratio(y: Floats) -> Floats:
        half = shift * shift / 2
        ratios: Floats = np.logaddexp(stays, goes + shift * y - half) - np.logaddexp(
            stays, goes - shift * y - half
        )
        return ratios

    def beyond(x: Floats) -> Floats:
        from scipy.special import ndtr

        low = np.zeros(x.shape)
        high = (x + stays - goes) / shift + shift + 40.0
        for _ in range(80):
            middle = (low + high) / 2
            above = ratio(middle) > x
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        missed = np.minimum(np.abs(ratio(high) - x) + 8 * LIBRARY * (1 + x), 1.0)
        near, far = rate * ndtr(shift - high), rate * ndtr(-high - shift)
        middle = (1 - rate) * ndtr(-high)
        (more, off), (both, slip) = scaled(far, x), scaled(middle, x)
        kept = np.where(x < 1, np.expm1(np.minimum(x, 1.0)) * middle, both - middle)
        # A threshold that misses by r misses at most r of each mass between the two thresholds.
        slack = 4 * SPECIAL + 4 * LIBRARY + 8 * U * (high * high + shift * shift)
        error = (slack + off + slip) * (near + more + np.abs(kept)) + 2 * missed * (near + middle)
        error = np.where(missed < 1e-3, error, 1.0)
        return np.minimum(np.maximum(up(near - more - kept, 4 * U, error), 0.0), 1.0)

    return lambda epsilons: _profiles._mirrored(
        np.asarray(epsilons), beyond(np.minimum(np.abs(np.asarray(epsilons, dtype=np.float64)), 1e6))
    )


def _mixed(one: Term, two: Term, rate: float) -> Callable[[Floats], Floats]:
    """The bound by advanced joint convexity, rounded up."""

    def beyond(x: Floats) -> Floats:
        large = x > 600.0
        inside = np.where(large, x - math.log(rate), np.log1p(np.expm1(np.minimum(x, 600.0)) / rate))
        inside = inside * (1 - 8 * LIBRARY)
        beta = np.minimum(np.exp(np.minimum(x - inside, 0.0)) * (1 + 4 * LIBRARY), 1.0)
        first = one.law.delta(inside, one.parameters)
        second = np.maximum(two.law.delta(inside, two.parameters), first)
        tail = rate * (first + beta * (second - first))
        return np.minimum(up(tail, 16 * LIBRARY), 1.0)

    return lambda epsilons: _profiles._mirrored(
        np.asarray(epsilons), beyond(np.minimum(np.abs(np.asarray(epsilons, dtype=np.float64)), 1e6))
    )
