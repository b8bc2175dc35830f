"""`HazardRatio`: by what one group's hazard is another's, from counts that were measured already."""

from __future__ import annotations

import textwrap
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from sfumato.errors import NotCertified
from sfumato.learn.survival._curve import Curve, stops

__all__ = ["HazardRatio", "hazard_ratio"]

Floats: TypeAlias = NDArray[np.float64]

_CLEAR = 6.0  # each group's hazard, in its own deviations
_MOST = 2.0  # what a hazard may be for when people left, beside the estimate
_WIDER = 1.05  # what it adds that variances are estimated


class HazardRatio(NamedTuple):
    """How many times the hazard of one group is that of another, with an interval.

    Attributes:
        ratio: The estimate.
        low: The lower end of its interval.
        high: The upper end.
        until: Up to which time it compares them.
    """

    ratio: float
    low: float
    high: float
    until: float

    def __str__(self) -> str:
        """Such as `Hazard ratio 1.52, between 1.31 and 1.77; up to time 10.`."""
        told = f"Hazard ratio {self.ratio:.3g}, between {self.low:.3g} and {self.high:.3g}"
        return textwrap.fill(f"{told}; up to time {self.until:.6g}.", 80)

    def __repr__(self) -> str:
        return str(self)


def hazard_ratio(first: Curve, second: Curve, level: float) -> tuple[float, float, float, int]:
    """The ratio of the first group's hazard to the second's, its interval, and over how many cells.

    Sums over cells of the hazards in them, weighed by r₁·r₂/(r₁ + r₂) of the numbers at risk: where hazards
    are in proportion, so are these, on every grid. The interval is Fieller's, of sampling and noise; each end
    allows for people having left within cells whenever makes it worst.

    Raises:
        NotCertified: where too few events are seen beside the noise.
    """
    found = [_over(first, second, clear, level) for clear in stops([first, second])]
    told = [each for each in found if each is not None]
    if not told or found[-1] is None:
        raise NotCertified(
            "No hazard ratio here: some group has too few events beside the noise, or too many people who "
            "leave: raise epsilon, join groups, or take a finer grid."
        )
    ratio, _, _, clear = told[-1]
    return ratio, min(each[1] for each in told), max(each[2] for each in told), clear


def _over(first: Curve, second: Curve, clear: int, level: float) -> tuple[float, float, float, int] | None:
    """The same over so many cells; None: too few events, or too many who left."""
    above = _weighed(first, second.at_risk[:clear], clear)
    below = _weighed(second, first.at_risk[:clear], clear)
    if any(
        each.middle < _CLEAR * np.sqrt(each.variance) or each.most > _MOST * each.middle
        for each in (above, below)
    ):
        return None
    times = float(ndtri((1 + level) / 2)) * _WIDER
    low = _root(above._replace(middle=above.least), below._replace(middle=below.most), times, upper=False)
    high = _root(above._replace(middle=above.most), below._replace(middle=below.least), times, upper=True)
    return above.middle / below.middle, low, high, clear


class _Weighed(NamedTuple):
    """A weighed sum of hazards, what it may be for when people left, and its variance."""

    middle: float
    least: float
    most: float
    variance: float


def _weighed(curve: Curve, others: Floats, clear: int) -> _Weighed:
    risk = curve.at_risk[:clear]
    weights, share = risk * others / (risk + others), others / (risk + others)
    each, lower, upper = (
        -np.log1p(-curve.shares(part)[:clear]) for part in (curve.at_risk, curve.most, curve.least)
    )
    # Noise in numbers at risk bends the hazard log(r) − log(r − d), and moves with it in the product.
    at_risk, moved = curve.risk[:clear] @ curve.spread, curve.moved[:clear]
    after = at_risk - curve.spread[:clear]
    bent = (after**2).sum(axis=1) / (risk * np.exp(-each)) ** 2 - (at_risk**2).sum(axis=1) / risk**2
    drift = float(weights @ bent / 2 + share**2 @ (at_risk * moved).sum(axis=1))
    middle, least, most = (float(weights @ hazards) - drift for hazards in (each, lower, upper))
    noise = weights @ moved
    variance = max(float(weights**2 @ (np.expm1(each) / risk)), 0.0) + float(noise @ noise)
    return _Weighed(middle, min(least, middle), max(most, middle), variance)


def _root(above: _Weighed, below: _Weighed, times: float, *, upper: bool) -> float:
    """Where (above − θ·below)² is times² deviations of it, squared: the larger θ, or the smaller."""
    square = below.middle**2 - times**2 * below.variance
    rest = above.middle**2 - times**2 * above.variance
    half = above.middle * below.middle
    root = np.sqrt(max(half**2 - square * rest, 0.0))
    if upper:
        return float((half + root) / square) if square > 0 and below.middle > 0 else float("inf")
    return max(float(rest / (half + root)), 0.0) if half + root > 0 else 0.0
