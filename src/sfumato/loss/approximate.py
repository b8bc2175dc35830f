"""Losses known by a bound alone: one (ε, δ) point, a concentrated bound, a Rényi curve."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import renyi
from sfumato.loss.base import PrivacyLoss, proven_point, register
from sfumato.loss.pure import PureLoss
from sfumato.numeric.exact import Rational, as_fraction, delta_of, float_up, listed, nonnegative, positive
from sfumato.numeric.laws import DOUBLE, Term

__all__ = ["ApproximateLoss", "ConcentratedLoss", "RenyiLoss"]


@register
@dataclass(frozen=True, slots=True, init=False)
class ApproximateLoss(PrivacyLoss):
    """(ε, δ)-differential privacy and nothing more.

    Privacy:
        Claim: the pair that reveals everything with probability δ and otherwise is randomized response at ε
        dominates every (ε, δ)-DP mechanism, in both orders. Source: Kairouz, Oh, Viswanath 2015, proof of
        Thm. 3.3. So it is also δ-approximately (ε²/2)-zCDP (Bun, Steinke 2016). Note that (ε, δ) is a
        statement about *events*: a bound on each output's probability alone proves nothing, and "loss above
        ε with probability at most δ" implies it but is not implied by it.
    """

    wire: ClassVar[str] = "approximate.1"
    point: tuple[Fraction, Fraction]

    def __init__(self, epsilon: Rational, delta: Rational) -> None:
        object.__setattr__(self, "point", (nonnegative(epsilon, "epsilon"), delta_of(delta)))

    @classmethod
    def _build(cls, fields: dict[str, Any]) -> PrivacyLoss:
        epsilon, delta = fields.pop("point")
        return cls(epsilon, delta, **fields)

    @property
    def pure(self) -> Fraction | None:
        """ε where δ is 0."""
        return None if self.point[1] else self.point[0]

    @property
    def concentrated(self) -> tuple[Fraction, Fraction]:
        """(ε²/2, δ)."""
        epsilon, delta = self.point
        return min(epsilon * epsilon / 2, epsilon), delta

    @property
    def approximate(self) -> tuple[Fraction, Fraction]:
        """The point itself."""
        return self.point

    def renyi(self, alpha: float) -> float:
        """The Rényi divergence of randomized response at ε, which holds outside probability δ, rounded up."""
        return PureLoss(self.point[0]).renyi(alpha)

    def directions(self) -> tuple[tuple[Term, ...], ...]:
        """One term, which is its own swap."""
        epsilon, delta = self.point
        if not (epsilon or delta):
            return ((),)
        return ((Term(DOUBLE, (float_up(epsilon), float_up(delta))),),)


@register
@dataclass(frozen=True, slots=True, init=False)
class ConcentratedLoss(PrivacyLoss):
    """ρ-zero-concentrated privacy, or its approximate form with a δ set aside.

    Args:
        rho: ρ, exact.
        delta: the δ set aside.
        point: the exact (ε, δ) that it was calibrated to, if it was: the price under basic composition. It is
            refused unless ρ implies it.

    Privacy:
        Claim: every Rényi divergence of order α is at most αρ, outside an event of probability δ in both
        inputs.
        Source: Bun, Steinke 2016, Def. 1.1 and 8.1; ρ and δ add up (Lemma 8.2); group k costs k²ρ (Prop.
        1.9).
    """

    wire: ClassVar[str] = "concentrated.2"
    _former: ClassVar[str] = "concentrated.1"
    concentrated: tuple[Fraction, Fraction] = field()
    point: tuple[Fraction, Fraction] | None

    def __init__(
        self, rho: Rational, delta: Rational = 0, point: tuple[Rational, Rational] | None = None
    ) -> None:
        object.__setattr__(self, "concentrated", (nonnegative(rho, "rho"), delta_of(delta)))
        object.__setattr__(self, "point", None if point is None else proven_point(point, self._delta))

    @classmethod
    def _build(cls, fields: dict[str, Any]) -> PrivacyLoss:
        rho, delta = fields.pop("concentrated")
        return cls(rho, delta, **fields)

    @property
    def pure(self) -> Fraction | None:
        """0 where nothing is lost at all; otherwise no pure bound follows from ρ."""
        return None if any(self.concentrated) else Fraction(0)

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The point it was calibrated to."""
        return (Fraction(0), Fraction(0)) if self.pure is not None else self.point

    def renyi(self, alpha: float) -> float:
        """αρ, rounded up."""
        return renyi.product_up(alpha, self.concentrated[0])

    def _group(self, size: int) -> PrivacyLoss | None:
        rho, delta = self.concentrated
        return None if delta else ConcentratedLoss(rho * size * size)


@register
@dataclass(frozen=True, slots=True, init=False)
class RenyiLoss(PrivacyLoss):
    """A Rényi curve known at some orders.

    Args:
        orders: increasing orders, each above 1.
        values: the divergence at each, not decreasing.
        point: the exact (ε, δ) that it was calibrated to, if it was: the price under basic composition. It is
            refused unless the curve implies it.

    Privacy:
        Claim: the divergence of order `orders[i]` is at most `values[i]` in both directions. Between two
        orders (α−1)·D_α is convex (van Erven, Harremoës 2014, Cor. 2), so the chord bounds it; below the
        first order D_α is monotone; above the last nothing is known, unless it is repeated at order infinity
        as a pure bound (`PureLoss`).
    """

    wire: ClassVar[str] = "renyi.2"
    _former: ClassVar[str] = "renyi.1"
    orders: tuple[Fraction, ...]
    values: tuple[Fraction, ...]
    point: tuple[Fraction, Fraction] | None

    def __init__(
        self,
        orders: Sequence[Rational],
        values: Sequence[Rational],
        point: tuple[Rational, Rational] | None = None,
    ) -> None:
        exact_orders = tuple(positive(order, "an order") for order in listed(orders, "orders"))
        exact_values = tuple(nonnegative(value, "a Rényi divergence") for value in listed(values, "values"))
        if not exact_orders or len(exact_orders) != len(exact_values):
            raise InvalidParameter("A Rényi curve needs at least one order, and one value for each order.")
        if exact_orders[0] <= 1 or any(a >= b for a, b in pairwise(exact_orders)):
            raise InvalidParameter("The orders of a Rényi curve must be increasing and above 1.")
        if any(a > b for a, b in pairwise(exact_values)):
            raise InvalidParameter(
                "A Rényi divergence never decreases with its order: lower the earlier values."
            )
        object.__setattr__(self, "orders", exact_orders)
        object.__setattr__(self, "values", exact_values)
        object.__setattr__(self, "point", None if point is None else proven_point(point, self._delta))

    @property
    def approximate(self) -> tuple[Fraction, Fraction] | None:
        """The point it was calibrated to."""
        return self.point

    def renyi(self, alpha: float) -> float:
        """The bound at any order, by the chord between its neighbours, rounded up."""
        if alpha == math.inf or Fraction(alpha) > self.orders[-1]:
            return math.inf
        order = as_fraction(Fraction(alpha), "alpha")
        right = bisect.bisect_left(self.orders, order)
        if right == 0 or self.orders[right] == order:
            return float_up(self.values[right])
        (a, b), (u, v) = self.orders[right - 1 : right + 1], self.values[right - 1 : right + 1]
        share = (order - a) / (b - a)
        chord = ((1 - share) * (a - 1) * u + share * (b - 1) * v) / (order - 1)
        return float_up(min(chord, v))
