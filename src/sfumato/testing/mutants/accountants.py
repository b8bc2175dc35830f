"""Accountants with one planted bug each, beside the honest rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sfumato._dataclasses import dataclass
from sfumato.errors import UnsupportedLoss
from sfumato.loss import PrivacyLoss
from sfumato.numeric.exact import delta_of

__all__ = ["Advanced", "Basic", "Discretised"]


def _points(losses: Sequence[PrivacyLoss]) -> list[tuple[Fraction, Fraction]]:
    points = []
    for loss in losses:
        if loss.approximate is None:
            raise UnsupportedLoss(f"{type(loss).__name__} has no exact point.")
        points.append(loss.approximate)
    return points


@dataclass(frozen=True, slots=True)
class Basic:
    """Sums of epsilon and delta; `forgetful` is the bug of adding up the epsilons alone."""

    forgetful: bool
    name: str = "basic"
    adaptive: bool = True

    def epsilon(self, losses: Sequence[PrivacyLoss], delta: float) -> float:
        """The sum of the epsilons, if the deltas fit."""
        points, exact = _points(losses), delta_of(delta)
        if not points:
            return 0.0
        fits = self.forgetful or sum((d for _, d in points), Fraction(0)) <= exact
        return math.nextafter(float(sum(e for e, _ in points)), math.inf) if fits else math.inf

    def delta(self, losses: Sequence[PrivacyLoss], epsilon: float) -> float:
        """The sum of the deltas, if the epsilons fit."""
        points = _points(losses)
        if float(sum(e for e, _ in points)) > epsilon:
            return 1.0
        return 0.0 if self.forgetful or not points else float(sum(d for _, d in points)) * (1 + 1e-12)


@dataclass(frozen=True, slots=True)
class Advanced:
    """Advanced composition of pure losses; `short` is the bug of dropping the term k·e·(exp(e) - 1)."""

    short: bool
    name: str = "advanced"
    adaptive: bool = False

    def _worst(self, losses: Sequence[PrivacyLoss]) -> tuple[float, int]:
        points = _points(losses)
        for loss, (_, delta) in zip(losses, points, strict=True):
            if delta:
                raise UnsupportedLoss(f"{type(loss).__name__} is not pure.")
        return float(max((e for e, _ in points), default=Fraction(0))), len(points)

    def epsilon(self, losses: Sequence[PrivacyLoss], delta: float) -> float:
        """Dwork, Rothblum, Vadhan 2010, Theorem III.3."""
        worst, count = self._worst(losses)
        slack = float(delta_of(delta))
        if not count:
            return 0.0
        if not slack:
            return math.inf
        second = 0.0 if self.short else count * worst * math.expm1(worst)
        return (worst * math.sqrt(2 * count * math.log(1 / slack)) + second) * (1 + 1e-12)

    def delta(self, losses: Sequence[PrivacyLoss], epsilon: float) -> float:
        """The same formula solved for the slack."""
        worst, count = self._worst(losses)
        room = epsilon - (0.0 if self.short else count * worst * math.expm1(worst))
        if not count:
            return 0.0
        return math.exp(-(room**2) / (2 * count * worst**2)) * (1 + 1e-12) if room > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Discretised:
    """Convolved privacy-loss distributions on a grid; `rounding` "nearest" is the bug, "up" the sound rule.

    A loss that is rounded down makes a mechanism look more private than it is; rounded up, less (Meiser,
    Mohammadi 2018; Koskela, Jälkö, Honkela 2020). Knows pure and Gaussian losses.
    """

    rounding: Literal["nearest", "up"]
    step: float = 0.03
    name: str = "discretised"
    adaptive: bool = False

    def _law(self, loss: PrivacyLoss) -> tuple[int, NDArray[np.float64], float]:
        """First grid index, masses, and the mass beyond the grid."""
        if loss.mu is not None:
            mean, spread = loss.mu**2 / 2, loss.mu
            low, high = (math.floor((mean + side * 8.5 * spread) / self.step) for side in (-1, 1))
            index = np.arange(low, high + 1)
            shift = (
                0.5 if self.rounding == "nearest" else 0.0
            )  # a cell ends here; all in it count as its index
            ends = special.ndtr(((index + shift) * self.step - mean) / spread)
            masses = np.diff(ends, prepend=0.0)
            return low, masses, float(special.ndtr(-((high + shift) * self.step - mean) / spread))
        if loss.pure is None:
            raise UnsupportedLoss(f"{type(loss).__name__} is neither pure nor Gaussian.")
        epsilon = float(loss.pure)
        truth = 1 / (1 + math.exp(-epsilon))
        place = [value / self.step for value in (-epsilon, epsilon)]
        low, high = (round(x) if self.rounding == "nearest" else math.ceil(x - 1e-12) for x in place)
        masses = np.zeros(high - low + 1)
        masses[0] += 1 - truth
        masses[-1] += truth
        return low, masses, 0.0

    def _curve(self, losses: Sequence[PrivacyLoss]) -> Callable[[float], float]:
        """The hockey-stick divergence of the convolution, as a function of epsilon."""
        start, total, kept = 0, np.ones(1), 1.0
        for loss in losses:
            low, masses, beyond = self._law(loss)
            start, total, kept = start + low, np.convolve(total, masses), kept * (1 - beyond)
        grid = (start + np.arange(len(total))) * self.step

        def delta(epsilon: float) -> float:
            gain = np.where(grid > epsilon, -np.expm1(np.minimum(0.0, epsilon - grid)), 0.0)
            return min(1.0, float((gain * total).sum()) * (1 + 1e-9) + (1 - kept))

        return delta

    def delta(self, losses: Sequence[PrivacyLoss], epsilon: float) -> float:
        """The curve itself."""
        return self._curve(losses)(epsilon)

    def epsilon(self, losses: Sequence[PrivacyLoss], delta: float) -> float:
        """The curve inverted by bisection, from above."""
        goal, curve = float(delta_of(delta)), self._curve(losses)
        if curve(0.0) <= goal:
            return 0.0
        low, high = 0.0, 64.0
        if curve(high) > goal:
            return math.inf
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if curve(middle) > goal else (low, middle)
        return high
