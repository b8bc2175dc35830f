"""Estimates from reports, with intervals."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import Rational, probability

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Frequencies", "Mean", "sure_of"]

Floats = NDArray[np.float64]


_SUREST = 1 - Fraction(1, 10**9)


def sure_of(confidence: Rational) -> float:
    """The confidence of intervals, as a float that leaves room for a failure.

    Raises:
        InvalidParameter: unless it is above 0 and at most 1 − 1e-9.
    """
    exact = probability(confidence, "confidence")
    if exact > _SUREST:
        raise InvalidParameter("confidence must be at most 0.999999999: nothing random is surer than that.")
    return float(exact)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How many people have each value.

    Attributes:
        values: The values, in the order of the domain.
        counts: Unbiased estimates: they may be negative, and do not add up to the number of people exactly.
        low: Where the intervals begin.
        high: Where they end; each interval holds by itself with the given confidence. Intervals keep to
            0 … people, where the truth is; a count may lie outside.
        confidence: Which that is.
        people: How many reported.
    """

    values: tuple[Any, ...]
    counts: Floats
    low: Floats
    high: Floats
    confidence: float
    people: int

    @property
    def shares(self) -> Floats:
        """The counts as shares of the people."""
        return self.counts / self.people

    @property
    def table(self) -> pa.Table:
        """Columns value, count, low, high."""
        import pyarrow as pa

        return pa.table(
            {"value": list(self.values), "count": self.counts, "low": self.low, "high": self.high}
        )

    def consistent(self) -> Floats:
        """The nearest counts (least squares) that are not negative and add up to the people; it is free."""
        ordered = np.sort(self.counts)[::-1]
        excess = (np.cumsum(ordered) - self.people) / np.arange(1, ordered.size + 1)
        kept = int(np.flatnonzero(ordered > excess)[-1]) if ordered.size else 0
        nearest: Floats = np.maximum(self.counts - excess[kept], 0.0)
        return nearest


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of people's numbers.

    Attributes:
        value: The unbiased estimate.
        low: Where the interval begins.
        high: Where it ends. The interval keeps to the bounds, where the mean is; `value` may lie outside.
        confidence: How often it holds the mean of these people's numbers.
        people: How many reported.
    """

    value: float
    low: float
    high: float
    confidence: float
    people: int
