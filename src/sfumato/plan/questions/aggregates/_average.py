"""The average of numbers with a range, from their sum and their count."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.intervals.forms import Floats, mean_interval
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.aggregates.base import Ends, Estimator, Part
from sfumato.plan.questions.sums import Range

__all__ = ["Average", "average_of", "averages"]

_ZERO = Fraction(0)


@dataclass(frozen=True, slots=True)
class Average(Estimator):
    """center + S/n, for the sum S of the distances from the center and the count n.

    Attributes:
        center: What was taken off every value before summing.
        half: How far from the center a value can be: half the width of its range where that is the middle.
    """

    center: Fraction = _ZERO
    half: Fraction = _ZERO

    names: ClassVar[tuple[str, ...]] = (".sum", ".count")

    def gradients(self) -> tuple[float, ...]:
        """By S 1/n, by n the distance from the center: taken a quarter of the range off its middle."""
        if self.lower is None or self.upper is None:
            return 1.0, float(self.half / 2)
        middle = (self.lower + self.upper) / 2
        return 1.0, float(abs(middle - self.center) + (self.upper - self.lower) / 4)

    def value(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Within the range; its middle without rows."""
        n = parts[1].astype(np.float64)
        half = float(self.half)
        lower, upper = self.limits
        distance = np.clip(parts[0] / np.maximum(n, 1.0), -half, half)
        return np.where(n > 0, np.clip(float(self.center) + distance, lower, upper), (lower + upper) / 2)

    def interval(self, parts: Sequence[Floats], noises: Sequence[Noise], *, risk: float) -> Ends:
        """That of a ratio."""
        center, (lower, upper) = float(self.center), self.limits
        low, high = mean_interval(
            parts[0], parts[1], (noises[0], noises[1]), lower=lower - center, upper=upper - center, risk=risk
        )
        return np.clip(low + center, lower, upper), np.clip(high + center, lower, upper)


def averages(known: Range) -> tuple[Part, ...]:
    """Centred; the second way takes the plain sum, for reports that measure that anyway."""
    return tuple(
        Part((known.total(center), known.present()), average_of(known, center))
        for center in dict.fromkeys((known.middle, _ZERO))
    )


def average_of(known: Range, center: Fraction) -> Average:
    """How an average follows from the sum of the distances from a center, and the count."""
    return Average((0, 1), known.lower, known.upper, center=center, half=known.reach(center))
