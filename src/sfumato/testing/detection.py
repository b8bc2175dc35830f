"""What a test of a given size would catch: the other half of a stated false-alarm rate."""

from __future__ import annotations

import math

from scipy import special

from sfumato.errors import InvalidParameter
from sfumato.testing.statistics import ALPHA

__all__ = ["detectable", "detectable_distance", "power"]


def _tail_critical(trials: int, p: float, alpha: float) -> tuple[int, int]:
    """The largest and smallest counts that the two-sided exact test at `alpha` rejects on either side."""
    low, high = -1, trials  # bisection: rejected at low (or nothing is), accepted at high
    while high - low > 1:
        middle = (low + high) // 2
        rejected = special.betaincc(middle + 1, trials - middle, p) * 2 < alpha if middle < trials else False
        low, high = (middle, high) if rejected else (low, middle)
    lower = low
    low, high = 0, trials + 1  # accepted at low, rejected at high (or nothing is)
    while high - low > 1:
        middle = (low + high) // 2
        rejected = special.betainc(middle, trials - middle + 1, p) * 2 < alpha
        low, high = (low, middle) if rejected else (middle, high)
    return lower, high


def power(trials: int, claimed: float, actual: float, *, alpha: float = ALPHA) -> float:
    """The exact probability that `assert_bernoulli` fails on the claim when the truth is `actual`."""
    if trials < 1 or not (0 <= claimed <= 1 and 0 <= actual <= 1 and 0 < alpha < 1):
        raise InvalidParameter("power needs trials, two probabilities and an alpha between 0 and 1.")
    lower, upper = _tail_critical(trials, claimed, alpha)
    below = float(special.betaincc(lower + 1, trials - lower, actual)) if lower >= 0 else 0.0
    above = float(special.betainc(upper, trials - upper + 1, actual)) if upper <= trials else 0.0
    return min(1.0, below + above)


def detectable(
    trials: int, claimed: float, *, alpha: float = ALPHA, wanted: float = 0.99
) -> tuple[float | None, float | None]:
    """The nearest true probabilities below and above a claim that `assert_bernoulli` catches.

    "Catches" means with probability at least `wanted`. None where none on that side is caught, which is
    what too few trials look like.
    """

    def nearest(end: float) -> float | None:
        if power(trials, claimed, end, alpha=alpha) < wanted:
            return None
        near, far = claimed, end
        for _ in range(60):
            middle = (near + far) / 2
            caught = power(trials, claimed, middle, alpha=alpha) >= wanted
            near, far = (near, middle) if caught else (middle, far)
        return far

    return nearest(0.0), nearest(1.0)


def detectable_distance(trials: int, *, alpha: float = ALPHA, wanted: float = 0.99) -> float:
    """The distance between two distribution functions that `assert_continuous` is sure to see.

    A law whose distribution function is anywhere this far from the claimed one fails with probability at
    least `wanted`: the test needs sqrt(ln(8/alpha)/2n) (it pays a quarter of alpha for this part), and by
    Hoeffding's inequality the sample stays within sqrt(ln(1/(1-wanted))/2n) of its own law at that point.
    """
    if trials < 1 or not (0 < alpha < 1 and 0 < wanted < 1):
        raise InvalidParameter("The distance needs trials, an alpha and a wanted power between 0 and 1.")
    needed = math.sqrt(math.log(8 / alpha) / (2 * trials))
    return needed + math.sqrt(math.log(1 / (1 - wanted)) / (2 * trials))
