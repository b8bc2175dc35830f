"""How a price is shared out between measurements so that the aggregates of a report come out best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

from sfumato.plan.questions.aggregates import Estimator, EstimatorKind, Part
from sfumato.plan.questions.nodes import Measurement

__all__ = ["POWERS", "Mechanics", "gradients", "importance", "least_cost", "shares"]

Mechanics: TypeAlias = Literal["laplace", "gaussian"]

# The variance of a measurement falls with its share of the price (of ε, or of μ²) to this power.
POWERS: dict[Mechanics, int] = {"laplace": 2, "gaussian": 1}

_FINE = 1000  # shares are whole weights with the largest at 1000: the optimum is flat, and prices stay short
_TYPICAL = 0.5  # a correlation that is neither none nor perfect


def _mean(estimator: Estimator) -> tuple[float, ...]:
    return 1.0, float(estimator.offset)


def _spread(estimator: Estimator) -> tuple[float, ...]:
    # v = Q/n + shift − θ²: by S −2θ/n, by Q 1/n, by n (shift − v + θ²)/n, at v = half²/3 (evenly spread).
    theta, half, shift = float(estimator.offset), float(estimator.half), float(estimator.shift)
    return 2 * theta, 1.0, abs(shift - half * half / 3 + theta * theta)


def _covariance(estimator: Estimator) -> tuple[float, ...]:
    # c = P/n − (S/n)(T/n): by S −b/n, by T −a/n, by P 1/n, by n (ab − c)/n, at c = 0 (unrelated columns).
    one, two = float(estimator.half) / 2, float(estimator.other_half) / 2
    return two, one, 1.0, one * two


def _correlation(estimator: Estimator) -> tuple[float, ...]:
    # `plan.answers.moments` has the derivatives, but for a factor of √(V·W)·n. Taken at r = 1/2 and a
    # quarter of the ranges off the middles, where either sign of r·a·b is as likely: roots of mean squares.
    half, other = float(estimator.half) or 1.0, float(estimator.other_half) or 1.0
    ratio, one, two = min(max(half / other, 1e-150), 1e150), half / 2, other / 2
    shifted = (float(estimator.shift) + one * one) / ratio + ratio * (
        float(estimator.other_shift) + two * two
    )
    return (
        math.hypot(two, _TYPICAL * one / ratio),
        math.hypot(one, _TYPICAL * two * ratio),
        1.0,
        _TYPICAL / (2 * ratio),
        _TYPICAL * ratio / 2,
        math.hypot(one * two, _TYPICAL * shifted / 2),
    )


_GRADIENTS: dict[EstimatorKind, Callable[[Estimator], tuple[float, ...]]] = {
    "mean": _mean,
    "var": _spread,
    "std": _spread,  # that of the variance over twice the deviation: the same but for a factor
    "covar": _covariance,
    "corr": _correlation,
}


def gradients(estimator: Estimator) -> tuple[float, ...]:
    """How strongly each part's noise moves the aggregate, at a typical place and but for a common factor.

    For counts, sums and averages over a public number of rows this is exact. Any other average depends on
    where the data lie: it is taken a quarter of the range off the middle, a variance as that of evenly spread
    numbers, a covariance as that of unrelated columns and a correlation at 1/2.
    """
    if estimator.affine is not None:
        return tuple(abs(float(weight)) for weight in estimator.affine[1])
    return _GRADIENTS[estimator.kind](estimator)


def importance(
    parts: Sequence[Part], yardsticks: Sequence[Part], size: Callable[[Measurement], float], law: Mechanics
) -> dict[Measurement, float]:
    """What the noise of each measurement costs: Σ over aggregates of its variance beside the best possible.

    Args:
        parts: The aggregates as they are measured.
        yardsticks: The aggregates as they would be measured if each were the only one.
        size: The sensitivity of a measurement in natural units, L1 for Laplace and L2 for Gaussian noise.
        law: The noise.

    Returns:
        c_j, so that a split with shares s_j costs Σ c_j/s_j^power.
    """
    costs: dict[Measurement, float] = {}
    for part, yardstick in zip(parts, yardsticks, strict=True):
        alone = least_cost(_squares(yardstick, size).values(), law)
        for measurement, square in _squares(part, size).items():
            costs[measurement] = costs.get(measurement, 0.0) + square / alone
    return costs


def _squares(part: Part, size: Callable[[Measurement], float]) -> dict[Measurement, float]:
    found: dict[Measurement, float] = {}
    for index, gradient in zip(part.estimator.parts, gradients(part.estimator), strict=True):
        measurement = part.measurements[index]
        found[measurement] = found.get(measurement, 0.0) + (gradient * size(measurement)) ** 2
    return found


def least_cost(costs: Iterable[float], law: Mechanics) -> float:
    """The least Σ c_j/s_j^p over shares that sum to 1: (Σ c_j^(1/(p+1)))^(p+1), by Hölder's inequality."""
    exponent = POWERS[law] + 1
    return math.fsum(cost ** (1 / exponent) for cost in costs) ** exponent


def shares(costs: Sequence[float], law: Mechanics) -> tuple[Fraction, ...]:
    """The shares that attain it, s_j ∝ c_j^(1/(p+1)): positive, short, and exactly 1 in sum."""
    roots = [cost ** (1 / (POWERS[law] + 1)) for cost in costs]
    largest = max(roots)
    weights = [max(1, round(_FINE * root / largest)) if largest else 1 for root in roots]
    return tuple(Fraction(weight, sum(weights)) for weight in weights)
