"""From a Rényi curve to (ε, δ), with the order found by a search that cannot miss it.

Privacy:
    Claim: if every order α > 1 has D_α ≤ τ(α), then for each α the pair
    ε = τ(α) + log(1 − 1/α) − log(αδ)/(α − 1) holds. Source: Canonne, Kamath, Steinke 2020, Prop. 12 (the same
    curve: Balle, Barthe, Gaboardi, Hsu, Sato 2020, Thm. 21). Any order gives a valid answer, so the search
    can only be loose, not wrong.

    The search is also complete. For fixed ε the bound is
    log δ = (α−1)τ(α) − (α−1)ε + (α−1)log(α−1) − α log α. The first term is convex for a true Rényi curve (van
    Erven, Harremoës 2014, Cor. 2), and the last two have the second derivative 1/(α−1) − 1/α > 0. So log δ is
    convex in α, ε is quasi-convex in α, and a section search ends at the global minimum, whatever order that
    is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from sfumato.numeric.balls import ball, upper
from sfumato.numeric.exact import float_up

__all__ = ["LEAST_ORDER", "delta", "epsilon", "epsilon_at", "product_up"]

LEAST_ORDER = 1 + 2.0**-20
_GREATEST_ORDER = 2.0**40
_RATIO = (math.sqrt(5) - 1) / 2

Curve = Callable[[float], float]


def product_up(alpha: float, rho: Fraction) -> float:
    """α·ρ rounded up."""
    return math.inf if alpha == math.inf and rho else (float_up(Fraction(alpha) * rho) if rho else 0.0)


def epsilon_at(divergence: float, alpha: float, delta: Fraction) -> float:
    """The ε that one order gives, rounded up."""
    if divergence == math.inf:
        return math.inf
    a = arb(alpha)
    return max(0.0, upper(arb(divergence) + (1 - 1 / a).log() - (a * ball(delta)).log() / (a - 1)))


def _delta_at(divergence: float, alpha: float, epsilon: float) -> float:
    """The δ that one order gives, rounded up."""
    if divergence == math.inf:
        return 1.0
    a = arb(alpha)
    return min(
        1.0, upper(((a - 1) * (arb(divergence) - arb(epsilon)) + (a - 1) * (1 - 1 / a).log()).exp() / a)
    )


def epsilon(curve: Curve, delta: Fraction, guide: Curve | None = None) -> float:
    """The least ε over all orders for this δ > 0, rounded up.

    Args:
        curve: gives the Rényi divergence at an order, rounded up.
        delta: where ε is asked.
        guide: about the same in floats, to look for the order with; the answer is by `curve` at that order.
    """
    near = curve if guide is None else guide
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)

    def estimate(alpha: float) -> float:
        return near(alpha) + math.log1p(-1 / alpha) - (log_delta + math.log(alpha)) / (alpha - 1)

    best = _best_order(estimate)
    return epsilon_at(curve(best), best, delta)


def delta(curve: Curve, epsilon: float, failure: Fraction, guide: Curve | None = None) -> float:
    """The least δ over all orders for this ε, rounded up, with the probability `failure` added.

    `guide` is as in `epsilon`.
    """
    near = curve if guide is None else guide

    def estimate(alpha: float) -> float:
        divergence = near(alpha)
        return (alpha - 1) * (divergence - epsilon + math.log1p(-1 / alpha)) - math.log(alpha)

    best = _best_order(estimate)
    bound = _delta_at(curve(best), best, epsilon)
    return min(1.0, float_up(Fraction(bound) + failure))


def _best_order(objective: Callable[[float], float]) -> float:
    """The minimiser over (1, 2**40] of a quasi-convex objective: walk downhill, then golden section.

    The walk goes no further than one step past the minimum, since high orders may be costly to evaluate.
    Beyond the orders that a curve knows it is infinite, and ties go to the lower order.
    """

    def at(u: float) -> float:
        return objective(1 + math.exp(u))

    least, most = math.log(LEAST_ORDER - 1), math.log(_GREATEST_ORDER)
    middle, step = 1.0, 1.0
    value = at(middle)
    while value == math.inf and middle > least:
        middle = max(least, middle - step)
        value = at(middle)
    low, high = max(least, middle - step), min(most, middle + step)
    at_low, at_high = at(low), at(high)
    while at_low <= value and low > least:
        high, middle, value, step = middle, low, at_low, 1.5 * step
        low = max(least, low - step)
        at_low = at(low)
    while at_high < value and high < most:
        low, middle, value, step = middle, high, at_high, 1.5 * step
        high = min(most, high + step)
        at_high = at(high)
    best = min((value, middle), (at_low, low), (at_high, high))
    left, right = high - _RATIO * (high - low), low + _RATIO * (high - low)
    at_left, at_right = at(left), at(right)
    while high - low > 1e-8:
        if at_left <= at_right:
            best = min(best, (at_left, left))
            high, right, at_right = right, left, at_left
            left = high - _RATIO * (high - low)
            at_left = at(left)
        else:
            best = min(best, (at_right, right))
            low, left, at_left = left, right, at_right
            right = low + _RATIO * (high - low)
            at_right = at(right)
    return 1 + math.exp(min(best, (at_left, left), (at_right, right))[1])
