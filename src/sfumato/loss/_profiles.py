"""Privacy profiles as vectorised callables: δ at any real ε, below and above, and what sampling makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sfumato.numeric.laws import Term
from sfumato.numeric.rounding import LIBRARY, Floats, U, down, up

__all__ = ["Curve", "fixed_sample", "group", "of_terms", "poisson_add", "poisson_remove", "supremum"]

Curve = Callable[[Floats], tuple[Floats, Floats]]
"""Real epsilons → floats below and above δ at each."""

# A few rounded operations and at most four library calls beside the curve that is read.
_SLACK = 4 * LIBRARY + 16 * U


def of_terms(directions: Sequence[Sequence[Term]], way: int) -> Curve:
    """The profile of a composition in one direction.

    Privacy:
        For ε < 0 the swapped pair is read: H_α(P‖Q) = 1 − α + α·H_{1/α}(Q‖P), an identity.
    """
    terms, swapped = tuple(directions[way]), tuple(directions[len(directions) - 1 - way])
    if len(terms) == 1 and terms[0].count == 1:
        term = terms[0]
        return lambda epsilons: term.law.bounds(epsilons, term.parameters)

    from sfumato.numeric import compose

    def curve(epsilons: Floats) -> tuple[Floats, Floats]:
        low, high = np.empty_like(epsilons), np.empty_like(epsilons)
        for i, epsilon in enumerate(epsilons.tolist()):
            found = compose.delta((terms if epsilon >= 0 else swapped,), abs(epsilon))
            low[i], high[i] = found.lower, found.upper
        below = epsilons < 0
        alpha, gone = np.exp(np.minimum(epsilons, 0.0)), -np.expm1(np.minimum(epsilons, 0.0))
        low = np.where(below, down(gone + alpha * low, _SLACK), low)
        return low, np.where(below, up(gone + alpha * high, _SLACK), high)

    return curve


def poisson_remove(curve: Curve, rate: float) -> Curve:
    """H_α(qP + (1−q)Q ‖ Q) = q·H_β(P‖Q) with β = (α − 1 + q)/q, and 1 − α where β ≤ 0.

    Privacy:
        Exact; `curve` is that of (P, Q). The shifted order β is computed with a stated relative error and the curve is
        read at an ε lowered (raised) by it, since a profile decreases in ε.
    """

    def transformed(epsilons: Floats) -> tuple[Floats, Floats]:
        gain = np.expm1(epsilons)
        order = 1 + gain / rate
        inside = order > 0
        # log β by log1p; an error of a few library calls in (α−1)/q is that times |(α−1)/q|/β in log β.
        ratio = np.where(inside, gain / rate, 0.0)
        shifted = np.log1p(ratio)
        error = 2 * _SLACK * (np.abs(ratio) / (1 + ratio) + np.abs(shifted)) + np.finfo(float).tiny
        floor = np.maximum(0.0, -gain)
        high = np.where(inside, rate * curve(shifted - error)[1], 0.0)
        low = np.where(inside, rate * curve(shifted + error)[0], 0.0)
        return np.maximum(down(low, _SLACK), down(floor, _SLACK)), np.maximum(up(high, _SLACK), up(floor, _SLACK))

    return transformed


def poisson_add(curve: Curve, rate: float) -> Curve:
    """H_α(Q ‖ qP + (1−q)Q) = (1 − α + qα)·H_β(Q‖P) with β = qα/(1 − α + qα), and 0 where α ≥ 1/(1−q).

    Privacy:
        Exact; `curve` is that of (Q, P). Rounding as in `poisson_remove`.
    """

    def transformed(epsilons: Floats) -> tuple[Floats, Floats]:
        # 1 − α(1−q) = q − (1−q)(α−1), which does not cancel for small q and ε.
        gain = np.expm1(np.minimum(epsilons, 700.0))
        lost = (1 - rate) * gain
        weight = rate - lost
        # The relative error of a difference: that of its parts over what is left of them.
        spread = 2 * _SLACK * (rate + np.abs(lost))
        surely, perhaps = weight - spread > 0, weight + spread > 0
        upper_weight = np.where(perhaps, weight + spread, 1.0)
        lower_weight = np.where(surely, weight - spread, 1.0)
        product = np.log(rate) + epsilons
        error = 4 * _SLACK * (np.abs(np.log(rate)) + np.abs(epsilons) + 1)
        high = np.where(perhaps, upper_weight * curve(product - np.log(upper_weight) - error)[1], 0.0)
        low = np.where(surely, lower_weight * curve(product - np.log(lower_weight) + error)[0], 0.0)
        floor = np.maximum(0.0, -gain)
        return np.maximum(down(low, _SLACK), down(floor, _SLACK)), np.maximum(up(high, _SLACK), up(floor, _SLACK))

    return transformed


def fixed_sample(curve: Curve, rate: float) -> Curve:
    """The curve of a sample of fixed size under exchange: `poisson_remove` for ε ≥ 0, `poisson_add` below.

    Privacy:
        Zhu, Dong, Wang 2022, Prop. 30, for a pair (P, Q) that dominates the inner mechanism under exchange in both orders.
    """
    above, below = poisson_remove(curve, rate), poisson_add(curve, rate)

    def transformed(epsilons: Floats) -> tuple[Floats, Floats]:
        (low, high), (low_add, high_add) = above(np.maximum(epsilons, 0.0)), below(np.minimum(epsilons, 0.0))
        return np.where(epsilons >= 0, low, low_add), np.where(epsilons >= 0, high, high_add)

    return transformed


def group(curve: Curve, size: int) -> Curve:
    """(1 + e^ε/k + … + e^((k−1)ε/k))·δ(ε/k): a chain of k neighbours, read at ε/k each.

    Privacy:
        Vadhan 2017, Lemma 2.2, at every ε ≥ 0; for ε < 0 the swap of the value at −ε. `curve` must bound both orders.
    """

    def positive(epsilons: Floats) -> Floats:
        step = epsilons / size
        high = curve(step * (1 - 4 * U))[1]
        factor = np.where(step > 1e-9, np.expm1(size * step) / np.where(step > 1e-9, np.expm1(step), 1.0), size * np.exp(size * step))
        return np.minimum(up(factor * high, 4 * _SLACK), 1.0)

    def transformed(epsilons: Floats) -> tuple[Floats, Floats]:
        high = positive(np.minimum(np.abs(epsilons), 700.0))
        alpha, gone = np.exp(np.minimum(epsilons, 0.0)), -np.expm1(np.minimum(epsilons, 0.0))
        floor = down(gone, _SLACK)
        return np.maximum(floor, 0.0), np.where(epsilons >= 0, high, np.minimum(up(gone + alpha * high, _SLACK), 1.0))

    return transformed


def supremum(curves: Sequence[Curve]) -> Curve:
    """The pointwise supremum of curves, which is again the profile of a pair (Zhu, Dong, Wang 2022, Lemma 9)."""

    def transformed(epsilons: Floats) -> tuple[Floats, Floats]:
        ends = [curve(epsilons) for curve in curves]
        return np.max([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)

    return transformed
