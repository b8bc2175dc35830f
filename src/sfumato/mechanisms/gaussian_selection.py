"""Partition selection by Gaussian noise: which of many unknown groups to show where units are in several."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.accounting import gaussian_sigma
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import ApproximateLoss
from sfumato.mechanisms._numbers import integers_of
from sfumato.mechanisms._survivors import (
    MARGIN,
    Counts,
    above,
    beyond,
    counts_of,
    erfc,
    example_of,
    for_noise,
    limits,
    places_of,
    with_gaussian,
)
from sfumato.mechanisms.base import Example, Mechanism
from sfumato.numeric.exact import Rational, as_integer, float_down, positive, probability
from sfumato.numeric.figures import PRECISION, ball, ceiling, failure, up, upper
from sfumato.numeric.frozen import freeze, shown

__all__ = ["GaussianSelection", "examples"]

_WIDEST = 2**49  # sigma: counts with noise fit in int64
_FAR = 40  # standard deviations beyond which floats have no tail left


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GaussianSelection(Mechanism):
    """Shows the groups that enough units are in, each with a noisy count, where a unit is in several groups.

    Does what `PartitionSelection` does, with the same arguments: each unit counts 1 in at most `groups`
    groups, and a group survives if its count plus noise is above a public threshold, strictly. The price is
    not divided by the number of groups: the noise grows with its square root alone. So from about three
    groups a unit on it finds smaller groups; for one, nothing is better than `PartitionSelection`.

    Attributes:
        epsilon: The price of the whole release, exact.
        delta: The probability with which a unit may give itself away, in all its groups together, exact.
        groups: In how many groups one unit counts, at most.
        exchange: Whether neighbours differ in *exchanging* one unit for another rather than in adding or
            removing one.

    Privacy:
        Claim: `release` (the survivors *and* their noisy counts) is (ε, δ)-DP, if each unit adds 1 to the
        counts of at most g = `groups` groups and nothing to others. Source of the idea: Gopi, Gulhane,
        Kulkarni, Shen, Shokouhi, Yekhanin 2020, "Differentially private set union". Proof. Let r = δ/2.

        *Groups of one unit.* A group of count 1 is above the threshold with some probability p, and it was
        chosen so that 1 − (1 − p)^g ≤ r: of at most g such groups none survives, but for a probability of r.

        *Other groups.* Let D and E be neighbours, K the groups in both, and f(D) what is shown of K for D.
        With g ones, or under exchange 2g, the counts on K move by at most √g or √(2g) in L2. Noise is the
        continuous Gaussian, calibrated for that to (ε − r/(1 − r), r), and what is shown is a function of
        counts plus noise: so P(f(D) ∈ S) ≤ e^(ε − r/(1 − r))·P(f(E) ∈ S) + r for every S.

        *Together.* The groups of D that E does not have are of count 1 and at most g; so are those of E that
        D does not have. Unless one of the first survives all that is shown of D is f(D), which gives
        P(D shows S) ≤ P(f(D) ∈ S) + r. All that is shown of E is f(E) unless one of the second survives,
        whose noise is independent of f(E), which gives (1 − r)·P(f(E) ∈ S) ≤ P(E shows S). Since 1/(1 − r)
        ≤ e^(r/(1 − r)), P(D shows S) ≤ e^ε·P(E shows S) + 2r. Groups of no unit are never shown, so that keys
        which do not occur need not be listed. Sigma is rounded up, and so is the threshold, in ball
        arithmetic; noise is drawn exactly and rounded with the count, which is post-processing.
    """

    epsilon: Fraction
    delta: Fraction
    groups: int
    exchange: bool
    _variance: Fraction = field(compare=False)
    _threshold: int = field(compare=False)
    _loss: ApproximateLoss = field(compare=False)

    def __init__(
        self, epsilon: Rational, delta: Rational, *, groups: int = 1, exchange: bool = False
    ) -> None:
        """Fix the noise and the threshold from the price and the number of groups that one unit is in.

        Raises:
            InvalidParameter: for unusable numbers, or a delta that is too large beside epsilon.
        """
        price, risk = positive(epsilon, "epsilon"), probability(delta, "delta")
        own = as_integer(groups, "groups")
        half = risk / 2
        variance = gaussian_sigma(for_noise(price, half), half) ** 2 * own * (2 if exchange else 1)
        if variance > _WIDEST**2:
            raise InvalidParameter("epsilon is too small for so many groups: the noise would not fit.")
        freeze(self, epsilon=price, delta=risk, groups=own, exchange=bool(exchange))
        freeze(self, _variance=variance, _threshold=_threshold(variance, half, own))
        freeze(self, _loss=ApproximateLoss(price, risk))

    def __repr__(self) -> str:
        price = {"epsilon": self.epsilon, "delta": self.delta}
        return shown("GaussianSelection", **price, groups=self.groups, exchange=self.exchange or None)

    @property
    def loss(self) -> ApproximateLoss:
        """What one release costs, whatever the number of groups in the data."""
        return self._loss

    @property
    def sigma(self) -> float:
        """The standard deviation of a count's noise before it is rounded, to within a float's rounding."""
        return math.sqrt(self._variance)

    @property
    def rho(self) -> Fraction:
        """What the noise alone costs in zero-concentrated terms, exact; not the price of what is shown."""
        return self.groups * (2 if self.exchange else 1) / (2 * self._variance)

    @property
    def threshold(self) -> int:
        """A group survives if its noisy count is above this, strictly."""
        return self._threshold

    @property
    def certain(self) -> None:
        """No count survives always; `least` says which one nearly always does."""
        return

    @property
    def variance(self) -> float:
        """The variance of a count's noise, survival aside, rounded up."""
        # Rounding moves X by at most 1/2. From σ = 1 on, by Poisson summation, it adds 1/12 to within 1e-7.
        if self._variance < 1:
            return up((ball(self._variance).sqrt() + arb(1) / 2) ** 2)
        return up(ball(self._variance + Fraction(1, 12) + Fraction(1, 10**7)))

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric. The counts of *survivors* are biased upwards (see `interval`)."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The least whole w with P(|noise| ≤ w for all of `size` groups) ≥ confidence, survival aside."""
        with ctx.workprec(PRECISION):
            quantile = (2 * ball(self._variance)).sqrt() * failure(confidence, size).erfcinv()
            return float(max(0, ceiling(quantile - arb(1) / 2)))

    def keep_probability(self, count: int) -> float:
        """The probability that a group of so many units survives, rounded down."""
        units = as_integer(count, "count", least=0)
        if not units:
            return 0.0
        with ctx.workprec(PRECISION):
            place = ball(self._threshold - units) + arb(1) / 2
            return max(0.0, float_down(-upper(-above(place, self._variance))))

    def least(self, chance: Rational) -> int:
        """The least count that survives with at least this probability, or one more."""
        with ctx.workprec(PRECISION):
            drop = 2 * ball(1 - probability(chance, "chance"))
            return max(1, ceiling(places_of(drop, self._variance) + self._threshold + arb(1) / 2))

    def release(self, counts: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which groups survive, and their noisy counts (0 for the others), in the shape of `counts`.

        Args:
            counts: How many units are in each group, integers of at least 0; those beyond 2**61 are clamped.

        Raises:
            InvalidValue: for anything but integers, and for negative ones; outside the claim.
        """
        true = counts_of(counts)
        noisy = with_gaussian(true, self._variance)
        kept = (true > 0) & (noisy > self._threshold)
        return kept, np.where(kept, noisy, 0)

    def interval(self, noisy: ArrayLike, confidence: Rational) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Limits of the true counts of survivors, from their noisy counts (post-processing, free).

        For each survivor the interval holds its true count with at least this probability *given that it
        survived*, whatever the count: half of the failure on either side of the law of noise given survival,
        which is log-concave, so that the upper tail grows with the count and the lower one falls. Rounded
        wide (by less than 1e-10 of a probability).

        Args:
            noisy: Noisy counts of groups that survived.
            confidence: The probability for each interval, on its own.

        Raises:
            InvalidValue: if one of them is not above the threshold.
        """
        alpha = float(1 - probability(confidence, "confidence")) / 2
        seen, place = np.unique(integers_of(noisy), return_inverse=True)
        if seen.size and seen.min() <= self._threshold:
            raise InvalidValue("Only groups that survived have an interval: give their noisy counts alone.")
        sigma, reach = self.sigma, math.ceil(_FAR * self.sigma) + 1

        def tail(least: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.float64]:
            """P(noisy ≥ least | survived), where the group has `count` units; 1 where that is not known."""
            z = (np.array([least - count, np.full_like(count, self._threshold + 1) - count]) - 0.5) / sigma
            seen_or_more, kept = erfc(z / math.sqrt(2))
            return np.where(kept > 0, seen_or_more / np.where(kept > 0, kept, 1), 1.0)

        low, high = limits(
            (np.maximum(seen - reach, 0), seen + 1, lambda n: tail(seen, n) * (1 + MARGIN) <= alpha),
            (seen, seen + reach + 1, lambda n: 1 - tail(seen + 1, n) + MARGIN <= alpha),
        )
        shape = np.shape(noisy)
        return low[place].reshape(shape), high[place].reshape(shape)


def _threshold(variance: Fraction, risk: Fraction, groups: int) -> int:
    """The least whole T with P(one of so many groups of count 1 is above T) ≤ risk, or one more.

    A count of 1 is above T if floor(1 + X + 1/2) ≥ T + 1, that is if X ≥ T − 1/2. The groups are independent,
    and all of a unit's together are the worst case: more of them give more chances.
    """
    with ctx.workprec(PRECISION):
        return ceiling(beyond(variance, risk, groups) + arb(1) / 2)


def _example(name: str, mechanism: GaussianSelection, left: Counts, right: Counts) -> Example:
    def law(n: int) -> dict[int, float]:
        places = np.arange(mechanism.threshold + 1, n + math.ceil(_FAR * mechanism.sigma))
        tails = erfc((np.append(places, places[-1] + 1) - n - 0.5) / (mechanism.sigma * math.sqrt(2))) / 2
        steps = dict(zip(places.tolist(), (-np.diff(tails)).tolist(), strict=True))
        return {0: 1 - mechanism.keep_probability(n)} | {count: p for count, p in steps.items() if p > 0}

    return example_of(name, mechanism, mechanism.release, left, right, law)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("gaussian selection", GaussianSelection(4, "0.02"), 29, 30),
        _example(
            "gaussian selection: four groups", GaussianSelection(2, "0.02", groups=4), (29,) * 4, (30,) * 4
        ),
        _example(
            "gaussian selection: exchange", GaussianSelection(4, "0.02", exchange=True), (30, 29), (29, 30)
        ),
    )
