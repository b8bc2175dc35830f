"""Intervals for means of people's numbers: proven for every number of people, close to normal for many."""

from __future__ import annotations

import math

from scipy.special import betaincinv, ndtri

from sfumato._dataclasses import dataclass

__all__ = ["Spread", "half_width", "share_interval"]

_SHEVTSOVA = 0.56
"""The constant of Berry and Esseen for independent terms that need not be alike (Shevtsova 2010)."""

_ON_VARIANCE = 1 / 20
"""The part of the failure that is spent on measuring the variance."""

_WIDER = 1 + 1e-9
"""What floats could lose on the way, many times over."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What is known about a term y that estimates a number t in [0, 1] from one report.

    Its variance is `center + slope·(t − 1/2)²`, and y lies within `reach` of 1/2.
    """

    center: float
    slope: float
    reach: float

    @property
    def least(self) -> float:
        """The variance where it is least."""
        return min(self.center, self.center + self.slope / 4)

    @property
    def most(self) -> float:
        """The variance where it is most."""
        return max(self.center, self.center + self.slope / 4)

    def given(self, people: int, square: float, fails: float) -> float:
        """An upper bound on the mean variance, from the mean of (y − 1/2)² over all terms.

        (y − 1/2)² has the mean center + (slope + 1)·(t − 1/2)² and lies in [0, reach²], so that Hoeffding's
        inequality bounds the mean of (t − 1/2)² from above, but with probability `fails`.
        """
        if self.slope <= 0:
            return self.most
        slack = self.reach**2 * math.sqrt(math.log(1 / fails) / (2 * people))
        spread = (square + slack - self.center) / (self.slope + 1)
        return self.center + self.slope * min(max(spread, 0.0), 0.25)


def half_width(spread: Spread, people: int, square: float, confidence: float) -> float:
    """A half-width that the mean of any number of independent terms keeps with the given confidence.

    The least of three, chosen by the number of people and public parameters alone, so that each by itself has
    the confidence: Hoeffding's and Bernstein's inequalities with the greatest variance, and the normal
    quantile with all that can go wrong with it taken off the failure beforehand: 2·0.56·b/√(n·v) by the
    theorem of Berry and Esseen (a term is within b of its mean, so its third moment is at most b times its
    variance; v is the least variance), and a twentieth for the variance, which is bounded from the reports.
    """
    fails = 1 - confidence
    most, bound = spread.most, spread.reach + 0.5
    logs = math.log(2 / fails) / people
    sure = min(spread.reach * math.sqrt(2 * logs), _bernstein(most, bound, logs))
    root = math.sqrt(people * max(spread.least, 0.0))
    left = fails * (1 - _ON_VARIANCE) - (2 * _SHEVTSOVA * bound / root if root else 1.0)
    if left <= 0:
        return sure * _WIDER
    quantile = -float(ndtri(left / 2))
    if quantile * math.sqrt(most / people) >= sure:
        return sure * _WIDER
    return quantile * math.sqrt(spread.given(people, square, fails * _ON_VARIANCE) / people) * _WIDER


def _bernstein(variance: float, bound: float, logs: float) -> float:
    """The w with w² = 2·logs·(variance + bound·w/3)."""
    return bound * logs / 3 + math.sqrt((bound * logs / 3) ** 2 + 2 * logs * variance)


def share_interval(ones: int, people: int, confidence: float) -> tuple[float, float]:
    """An interval for the mean probability of independent yes-or-no answers, which need not be alike.

    Clopper and Pearson's. It holds for answers with different probabilities as for equal ones: a sum of them
    is less spread out than the binomial law with the same mean, at all points a whole step from the mean
    (Hoeffding 1956, Theorem 5), which the two outer bounds below see to.
    """
    fails = (1 - confidence) / 2
    low = float(betaincinv(ones, people - ones + 1, fails)) if ones else 0.0
    high = float(betaincinv(ones + 1, people - ones, 1 - fails)) if ones < people else 1.0
    low = min(low / _WIDER, (ones - 1) / people)
    high = max(high * _WIDER, (ones + 1) / people)
    return max(low, 0.0), min(high, 1.0)
