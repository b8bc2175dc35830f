"""How a price is shared out between measurements so that the aggregates of a report come out best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Literal, TypeAlias

from sfumato.plan.questions.aggregates import Part
from sfumato.plan.questions.nodes import Measurement

__all__ = ["POWERS", "Mechanics", "importance", "least_cost", "shares", "squares"]

Mechanics: TypeAlias = Literal["laplace", "gaussian"]

# The variance of a measurement falls with its share of the price (of ε, or of μ²) to this power.
POWERS: dict[Mechanics, int] = {"laplace": 2, "gaussian": 1}

_FINE = 1000  # shares are whole weights with the largest at 1000: the optimum is flat, and prices stay short


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
    size = cache(size)
    for part, yardstick in zip(parts, yardsticks, strict=True):
        alone = least_cost(squares(yardstick, size).values(), law)
        for measurement, square in squares(part, size).items():
            costs[measurement] = costs.get(measurement, 0.0) + square / alone
    return costs


def squares(part: Part, size: Callable[[Measurement], float]) -> dict[Measurement, float]:
    """What the noise of each measurement of an aggregate adds to its variance, at equal shares."""
    found: dict[Measurement, float] = {}
    for index, gradient in zip(part.estimator.parts, part.estimator.gradients(), strict=True):
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
