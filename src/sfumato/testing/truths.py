"""Compositions whose exact curve is a short formula: what accountants are held against.

Nothing here uses the package's own numerics. The curves rest on the normal distribution function, finite
sums and one quadrature of an analytic integrand, and are good to about 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy import special

from sfumato._dataclasses import dataclass
from sfumato.loss import ApproximateLoss, GaussianLoss, LaplaceLoss, PrivacyLoss, PureLoss

__all__ = ["TRUTHS", "Truth"]

Curve = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Truth:
    """Some losses with the exact delta(epsilon) of their composition.

    Attributes:
        name: for messages.
        losses: what is composed.
        delta: the exact curve, for real epsilon.
        infinity: the part of delta that no epsilon removes.
    """

    name: str
    losses: tuple[PrivacyLoss, ...]
    delta: Curve
    infinity: float = 0.0

    def epsilon(self, delta: float) -> float:
        """The least epsilon >= 0 with delta(epsilon) <= delta, by bisection; infinity if there is none."""
        if delta <= self.infinity:
            return math.inf
        low, high = 0.0, 1.0
        if self.delta(0.0) <= delta:
            return 0.0
        while self.delta(high) > delta:
            high *= 2
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return low


def _gaussian(mu: float) -> Curve:
    """Balle, Wang 2018, Theorem 8; in logarithms, so that small deltas keep their digits."""

    def delta(epsilon: float) -> float:
        first = float(special.log_ndtr(mu / 2 - epsilon / mu))
        second = epsilon + float(special.log_ndtr(-mu / 2 - epsilon / mu))
        return math.exp(first) * -math.expm1(min(0.0, second - first))

    return delta


def _pure(epsilons: Sequence[float], rest: Curve | None = None) -> Curve:
    """Randomized responses, and anything independent of them: the mean over all patterns of truths and lies.

    Kairouz, Oh, Viswanath 2015, Theorem 3.3, and Murtagh, Vadhan 2016 for unequal epsilons.
    """
    totals = {0.0: 1.0}
    for epsilon in epsilons:
        grown: dict[float, float] = {}
        for loss, chance in totals.items():
            for sign in (1, -1):
                to = round(loss + sign * epsilon, 12)
                grown[to] = grown.get(to, 0.0) + chance / (1 + math.exp(-sign * epsilon))
        totals = grown
    one = rest or (lambda epsilon: max(0.0, -math.expm1(epsilon)))
    return lambda epsilon: math.fsum(chance * one(epsilon - loss) for loss, chance in totals.items())


def _laplace(epsilon_zero: float, rest: Curve | None = None) -> Curve:
    """The Laplace mechanism and anything independent of it.

    Its loss is epsilon_zero with probability 1/2, -epsilon_zero with probability e^-epsilon_zero/2, and
    between (1 - 2x)·epsilon_zero with density epsilon_zero/2 · e^(-epsilon_zero·x) for x in (0, 1).
    """
    if rest is None:
        return lambda epsilon: (
            -math.expm1(min(0.0, (epsilon - epsilon_zero) / 2)) if epsilon >= 0 else math.nan
        )
    nodes, weights = np.polynomial.legendre.leggauss(80)
    points, masses = (nodes + 1) / 2, weights / 2

    def delta(epsilon: float) -> float:
        ends = rest(epsilon - epsilon_zero) / 2 + math.exp(-epsilon_zero) * rest(epsilon + epsilon_zero) / 2
        middle = math.fsum(
            mass * epsilon_zero / 2 * math.exp(-epsilon_zero * x) * rest(epsilon - (1 - 2 * x) * epsilon_zero)
            for x, mass in zip(points.tolist(), masses.tolist(), strict=True)
        )
        return ends + middle

    return delta


def _approximate(epsilons: Sequence[float], deltas: Sequence[float]) -> Curve:
    """Pairs that reveal everything with probability delta and are randomized responses otherwise."""
    kept = math.prod(1 - delta for delta in deltas)
    inner = _pure(epsilons)
    return lambda epsilon: 1 - kept * (1 - inner(epsilon))


def _truths() -> tuple[Truth, ...]:
    half, tenth = Fraction(1, 2), Fraction(1, 10)
    some = (tenth, Fraction(1, 4), half, Fraction(1, 3), Fraction(1, 5))
    return (
        Truth("one pure loss", (PureLoss(Fraction(1)),), _pure([1.0])),
        Truth("one Laplace loss", (LaplaceLoss(Fraction(1)),), _laplace(1.0)),
        Truth("one Gaussian loss", (GaussianLoss(half),), _gaussian(1.0)),
        Truth("ten pure losses", (PureLoss(tenth),) * 10, _pure([0.1] * 10)),
        Truth("thirty large pure losses", (PureLoss(Fraction(1)),) * 30, _pure([1.0] * 30)),
        Truth("different pure losses", tuple(PureLoss(e) for e in some), _pure([float(e) for e in some])),
        Truth("a hundred Gaussian losses", (GaussianLoss(Fraction(1, 200)),) * 100, _gaussian(1.0)),
        Truth(
            "different Gaussian losses",
            tuple(GaussianLoss(Fraction(k, 100)) for k in range(1, 11)),
            _gaussian(math.sqrt(2 * 0.55)),
        ),
        Truth(
            "approximate losses",
            (ApproximateLoss(tenth, Fraction(1, 10**5)),) * 8,
            _approximate([0.1] * 8, [1e-5] * 8),
            -math.expm1(8 * math.log1p(-1e-5)),
        ),
        Truth(
            "pure and Gaussian losses",
            (PureLoss(half),) * 3 + (GaussianLoss(Fraction(1, 8)),),
            _pure([0.5] * 3, _gaussian(0.5)),
        ),
        Truth(
            "a Laplace and a Gaussian loss",
            (LaplaceLoss(half), GaussianLoss(Fraction(1, 8))),
            _laplace(0.5, _gaussian(0.5)),
        ),
    )


TRUTHS = _truths()
"""Compositions of every kind that has a closed form."""
