"""What was measured where no formula says how good a fit will be: Adult, 39,000 people, three prices.

The figures are those of benchmarks/results, rounded; `tests/advice/test_measured.py` holds them against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from sfumato.advice.result import Option

__all__ = [
    "CLASSES",
    "NUMBERS",
    "PEOPLE",
    "PLAIN",
    "PLAIN_NUMBER",
    "PRICES",
    "VARIATION",
    "comparable",
    "measured",
]

PEOPLE = 39_000
PRICES = (0.1, 1.0, 10.0)
CLASSES = {
    "GradientBoosting": (0.151, 0.140, 0.130),
    "LogisticRegression": (0.160, 0.147, 0.147),
    "NoisyGradientDescent": (0.167, 0.162, 0.162),
}
"""The share of predictions that are wrong, by model and price."""
PLAIN = 0.127
"""That of boosting without privacy."""
NUMBERS, PLAIN_NUMBER = (0.164, 0.181, 0.181), 0.181
"""R² of LinearRegression, and of a linear model without privacy."""
VARIATION = {
    "adaptive": (0.088, 0.028, 0.014),
    "fixed": (None, 0.037, None),
    "mst": (0.086, 0.044, 0.037),
    "independent": (None, 0.081, None),
}
"""How far the pairs of columns of a synthetic table are from the true ones, in total variation, by method."""


def comparable(epsilon: Fraction, people: int) -> int:
    """Which of the prices is most like this one for so many people: noise shrinks with epsilon × people."""
    wanted = math.log(float(epsilon) * people / PEOPLE)
    return min(range(len(PRICES)), key=lambda place: abs(math.log(PRICES[place]) - wanted))


def measured(figures: Mapping[str, tuple[float | None, ...]], place: int) -> list[Option]:
    """What was measured at one of the prices."""
    found = [(name, values[place]) for name, values in figures.items()]
    return [Option(name, value, told=f"{100 * value:.1f} %") for name, value in found if value is not None]
