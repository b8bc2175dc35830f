"""Group privacy: inputs that differ in several units."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import _profiles
from sfumato.loss.base import Adjacency, PrivacyLoss, counted, register
from sfumato.numeric.balls import ball, exact_upper, sum_of_powers
from sfumato.numeric.exact import Rational, as_integer, delta_of, nonnegative
from sfumato.numeric.laws import Term

__all__ = ["GroupLoss", "group", "textbook_group"]


@register
@dataclass(frozen=True, slots=True)
class GroupLoss(PrivacyLoss):
    """The loss of any mechanism between inputs that are `size` neighbours apart.

    `approximate` is the textbook form (kε, k·e^((k−1)ε)·δ) of the inner point. The curve is tighter: at each
    ε it sums the chain exactly, (1 + e^(ε/k) + … + e^((k−1)ε/k))·δ(ε/k). Families that know their group law
    (Gaussian, Laplace, pure, zCDP, discrete ones) do not come here: `loss.group(k)` gives that law.

    Privacy:
        Claim: δ_k(kε) ≤ Σ_{j<k} e^(jε)·δ(ε) ≤ k·e^((k−1)ε)·δ(ε). Source: Vadhan 2017, Lemma 2.2; Dwork, Roth
        2014, Thm. 2.2 for δ = 0; k²ρ for zCDP: Bun, Steinke 2016, Prop. 1.9.
    """

    wire: ClassVar[str] = "group.1"
    inner: PrivacyLoss
    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.inner, PrivacyLoss):
            raise InvalidParameter("A group loss needs the loss for one unit.")
        object.__setattr__(self, "size", counted(self.size, "size", least=2))

    @property
    def adjacency(self) -> Adjacency | None:
        """That of one unit."""
        return self.inner.adjacency

    @property
    def pure(self) -> Fraction | None:
        """kε."""
        pure = self.inner.pure
        return None if pure is None else pure * self.size

    @property
    def concentrated(self) -> tuple[Fraction, Fraction] | None:
        """(k²ρ, 0) where no δ was set aside."""
        rho = self.inner.rho
        return None if rho is None else (rho * self.size**2, Fraction(0))

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The textbook form of the inner point."""
        point = self.inner.approximate
        return None if point is None else textbook_group(*point, self.size)

    def directions(self) -> tuple[tuple[Term, ...], ...] | None:
        """One curve that bounds both orders; None if the inner loss has no pair."""
        return _directions(self)

    @property
    def _paired(self) -> bool:
        return self.inner._paired

    def _delta(self, epsilon: float) -> float:
        if self.directions() is not None:
            return PrivacyLoss._delta(self, epsilon)
        # Without a pair the chain is summed on the inner curve itself, read a little earlier than ε/k.
        step = max(0.0, epsilon / self.size * (1 - 2**-50))
        bound = exact_upper(sum_of_powers(Fraction(step), self.size) * ball(self.inner.delta(Fraction(step))))
        return 1.0 if bound is None else min(1.0, math.nextafter(float(bound), math.inf))

    def _epsilon(self, delta: Fraction) -> float:
        if self.directions() is not None:
            return PrivacyLoss._epsilon(self, delta)
        # δ_k decreases in ε: bisect on the certified curve and keep the end that holds.
        target, low, high = float(delta) * (1 - 2**-50), 0.0, 1.0
        while self._delta(high) > target:
            low, high = high, 2 * high
            if high > 1e6:
                return math.inf
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._delta(middle) > target else (low, middle)
        return high


@lru_cache(maxsize=64)
def _directions(loss: GroupLoss) -> tuple[tuple[Term, ...], ...] | None:
    ways = loss.inner.directions()
    if ways is None:
        return None
    both = _profiles.supremum([_profiles.single(ways, way) for way in range(len(ways))])
    return ((_profiles.grouped(both, loss.size),),)


def group(loss: PrivacyLoss, size: int) -> PrivacyLoss:
    """The loss for groups of `size` units: the family's own law where it has one, else `GroupLoss`."""
    if size == 1:
        return loss
    own = loss._group(size)
    return GroupLoss(loss, size) if own is None else own


def textbook_group(epsilon: Rational, delta: Rational, size: int) -> tuple[Fraction, Fraction]:
    """(kε, k·e^((k−1)ε)·δ), the textbook form for groups of k; δ rounded up (and at most 1).

    Privacy:
        Claim: an (ε, δ)-DP mechanism has this guarantee between inputs k neighbours apart. Source: Dwork,
        Roth 2014, Thm. 2.2 for δ = 0; Vadhan 2017, Lemma 2.2, whose sum is no more.
    """
    exact, rest, k = nonnegative(epsilon, "epsilon"), delta_of(delta), as_integer(size, "size")
    if rest == 0:
        return exact * k, rest
    bound = exact_upper(k * ((k - 1) * ball(exact)).exp() * ball(rest))
    return exact * k, Fraction(1) if bound is None else min(bound, Fraction(1))
