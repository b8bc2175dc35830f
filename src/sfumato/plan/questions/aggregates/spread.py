"""VARIANCE and STDDEV, from the centred sum, the centred squares and the count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.facts import Facts
from sfumato.plan.intervals.forms import Floats, variance_interval
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.aggregates.base import Ends, Estimator, Part, Statistic, argument_of
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.plan.questions.sums import range_of
from sfumato.plan.questions.terms import Agg, Col, one

__all__ = ["STATISTICS", "Deviation", "std", "var"]

_ZERO = Fraction(0)
_ROOT_OF_2 = Fraction(14143, 10000)  # rounded up


@dataclass(frozen=True, slots=True)
class Deviation(Estimator):
    """Q/n + shift − (S/n)², times n/(n − 1) for a sample; or its root.

    S is the sum of the distances from the center, Q that of their squares less `shift`, and n the count.

    Attributes:
        half: How far from the center a value can be.
        shift: What was taken off every square before summing.
        sample: Whether it divides by n − 1.
        root: Whether it is the standard deviation.
    """

    half: Fraction = _ZERO
    shift: Fraction = _ZERO
    sample: bool = False
    root: bool = False

    names: ClassVar[tuple[str, ...]] = (".sum", ".squares", ".count")

    @property
    def scale(self) -> float:
        """One over twice the deviation of evenly spread numbers, half/√3; 1 for a variance."""
        if not self.root:
            return 1.0
        return math.sqrt(3) / (2 * float(self.half)) if self.half else 0.0

    def gradients(self) -> tuple[float, ...]:
        """By S −2θ/n, by Q 1/n, by n (shift − v + θ²)/n, at v = half²/3 (evenly spread) and θ = half/2."""
        half, shift = float(self.half), float(self.shift)
        theta = float(self.half / 2)
        return 2 * theta, 1.0, abs(shift - half * half / 3 + theta * theta)

    def value(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Within what is possible; half of that without rows."""
        n = parts[2].astype(np.float64)
        some = np.maximum(n, 1.0)
        half, shift = float(self.half), float(self.shift)
        mean = np.clip(parts[0] / some, -half, half)
        spread = np.clip(parts[1] / some, -shift, half * half - shift) + shift - mean * mean
        if self.sample:
            spread = spread * some / np.maximum(some - 1, 1.0)
        spread = np.maximum(np.where(n > 0, spread, half * half / 2), 0.0)
        return np.clip(np.sqrt(spread) if self.root else spread, *self.limits)

    def interval(self, parts: Sequence[Floats], noises: Sequence[Noise], *, risk: float) -> Ends:
        """That of the variance, or its roots."""
        ends = variance_interval(
            parts[0],
            parts[1],
            parts[2],
            (noises[0], noises[1], noises[2]),
            half=float(self.half),
            shift=float(self.shift),
            sample=self.sample,
            risk=risk,
        )
        low, high = (np.clip(np.sqrt(end) if self.root else end, *self.limits) for end in ends)
        return low, high


@dataclass(frozen=True, slots=True)
class Spread(Statistic):
    """The variance or the standard deviation of numbers with a range.

    The population variance is at most half² (Popoviciu 1935); that of a sample is n/(n − 1) ≤ 2 times it.

    Attributes:
        sample: Whether it divides by n − 1.
        root: Whether it is the standard deviation.
    """

    sample: bool
    root: bool

    squares: ClassVar[bool] = True

    def named(self, call: AggregateCall) -> str:
        """By what it is."""
        del call
        return "standard deviation" if self.root else "variance"

    def ways(self, call: AggregateCall, columns: Mapping[str, Facts]) -> tuple[Part, ...]:
        """One way: the squares are taken around the middle of the range and shifted by half their own."""
        known = range_of(self.title, argument_of(call, columns), columns)
        squares, shift = known.squares()
        half = known.reach(known.middle)
        most = half * (_ROOT_OF_2 if self.sample else 1) if self.root else half**2 * (2 if self.sample else 1)
        estimator = Deviation(
            (0, 1, 2), _ZERO, most, half=half, shift=shift, sample=self.sample, root=self.root
        )
        return (Part((known.total(known.middle), squares, known.present()), estimator),)


STATISTICS = (
    Spread("var_pop", ("VAR_POP",), sample=False, root=False),
    Spread("var_samp", ("VARIANCE", "VAR_SAMP"), sample=True, root=False),
    Spread("std_pop", ("STDDEV_POP",), sample=False, root=True),
    Spread("std_samp", ("STDDEV", "STDDEV_SAMP"), sample=True, root=True),
)


def var(column: str | Col, *, sample: bool = True) -> Agg:
    """The variance of a column or expression with bounds."""
    return one("var_samp" if sample else "var_pop", column)


def std(column: str | Col, *, sample: bool = True) -> Agg:
    """The standard deviation of a column or expression with bounds."""
    return one("std_samp" if sample else "std_pop", column)
