"""Partition selection in two rounds: units with many groups turn from those that were found to the others."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.accounting import gaussian_sigma
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import ApproximateLoss
from sfumato.mechanisms._numbers import integers_of
from sfumato.mechanisms._survivors import above, beyond, for_noise, places_of, with_gaussian
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, as_integer, float_down, positive, probability
from sfumato.numeric.figures import PRECISION, ball, ceiling, gaussian_width, up, upper
from sfumato.numeric.frozen import freeze, shown

__all__ = ["WHOLE", "AdaptiveSelection", "examples"]

WHOLE = 2**20
"""The integer weight of a unit in one group; in d groups it has at most WHOLE/√d in each."""

Weights: TypeAlias = NDArray[np.int64]

_PARTS = 8  # of the noise's precision: one is for the first round, the others for the second
_FIRST_RISK = Fraction(1, 20)  # of the risk that a lone group is shown goes into the first round
_FINE = 16  # so many degrees have a weight of their own, and as many steps each doubling after that
_WIDEST = 2**49  # sigma in integer weights: with noise they fit in int64, eight times over
_MOST, _LEAST = 2**58, -(2**58)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class AdaptiveSelection(Mechanism):
    """Shows the groups that enough units are in, where a unit is in several; finds smaller ones than others.

    Each unit spreads a weight of norm 1 over its groups, 1/√d in each of d. In the first round weights with
    much noise show the largest groups. Then each unit spreads its weight anew over those of its groups that
    were not found, and a group is shown if both rounds together say so. A unit counts in at most `groups`
    groups. No counts are shown: `GaussianSelection` and `PartitionSelection` give them with the groups.

    Attributes:
        epsilon: The price of the whole release, exact.
        delta: The probability with which a unit may give itself away, in all its groups together, exact.
        groups: In how many groups one unit counts, at most.
        exchange: Whether neighbours differ in *exchanging* one unit for another rather than in adding or
            removing one.

    Privacy:
        Claim: what both rounds show, the survivors and their noisy weights, is (ε, δ)-DP, if each unit adds
        in both rounds what `steps` says for the number d of groups that it is in, counted without those that
        the first round found: w(d) to each of these d groups, and nothing to others or where d > k =
        `groups`. Sources: weights, Gopi et al. 2020, "Differentially private set union"; two rounds, Chen,
        Cohen-Addad, Epasto, Javanmard, Zadimoghaddam 2025, "Scalable private partition selection via
        adaptive weighting". Here no unit's weight depends on other units but through what was shown, so
        that the proof is short. Let r = δ/2, M = WHOLE, Δ² = M², or 2M² under exchange.

        *Weights.* w falls with d, and d·w(d)² ≤ M² in integers: w = ⌊√⌊M²/u⌋⌋ for the end u ≥ d of d's step.
        So a unit's weights have a norm of at most M in either round; added or removed, that is the change.
        Exchanged, a group moves by the difference of two such weights, squared at most the sum of their
        squares: 2M² in all.

        *Rounds.* Let D and E be neighbours, K the groups in both. Let f(D) be what is shown of K if no other
        group could be shown, in either round. The weights of all units but the one that differs are the
        same in D and E, given what of K was found in the first round. So f is a function of two Gaussian
        mechanisms on K, the second chosen by the first one's output, of sensitivity Δ each. With variances
        8V and 8V/7 they are μ-GDP with μ₁² = Δ²/8V and μ₂² = 7Δ²/8V, hence both together Δ/√V-GDP, as one
        Gaussian mechanism of variance V is (Dong, Roth, Su 2022, Thm. 3.2 and Cor. 3.3: composition with a
        choice by earlier outputs). V is calibrated for Δ to (ε − r/(1 − r), r), so
        P(f(D) ∈ S) ≤ e^(ε − r/(1 − r))·P(f(E) ∈ S) + r for every S.

        *Lone groups.* A group of D that E does not have is one of the differing unit alone; say there are t
        of them. Fix the noise on K. As long as none of the t is found in the first round, the unit has d ≥ t
        groups in the first round and d' ≥ t in the second, so that it adds at most w(t) to each of the t.
        Such a group is shown if z₁ > T₁, or z₁ + 7z₂ > T₂, where zᵢ are its weights with noise, rounded. z₁
        is at most w(t) + X₁ + 1/2, and z₁ + 7z₂ at most 8w(t) + X₁ + 7X₂ + 4, and X₁ + 7X₂ is Gaussian of
        variance 8V + 49·8V/7 = 64V. The thresholds are such that for no t ≤ k one of t independent groups
        passes T₁ with a probability above r/20, or T₂ above 19r/20, so that a lone group is shown with a
        probability of at most r, whatever the noise on K is. (Of the degrees of a step its end u has the most
        groups and the same weight: the ends are all that is looked at.)

        *Together.* Unless a lone group is shown D shows f(D), so P(D shows S) ≤ P(f(D) ∈ S) + r. And E shows
        f(E) unless one of its own lone groups is shown, which has a probability of at most r given the noise
        on K: (1 − r)·P(f(E) ∈ S) ≤ P(E shows S). Since 1/(1 − r) ≤ e^(r/(1 − r)), P(D shows S) ≤
        e^ε·P(E shows S) + 2r. Groups of no weight are never shown. Sigma and thresholds are rounded up, in
        ball arithmetic; noise is drawn exactly and rounded, which is post-processing on K, as are all limits
        on the size of numbers: those can only hide a lone group.
    """

    epsilon: Fraction
    delta: Fraction
    groups: int
    exchange: bool
    _variance: Fraction = field(compare=False)
    _steps: tuple[tuple[int, int], ...] = field(compare=False)
    _thresholds: tuple[int, int] = field(compare=False)
    _loss: ApproximateLoss = field(compare=False)

    def __init__(
        self, epsilon: Rational, delta: Rational, *, groups: int = 1, exchange: bool = False
    ) -> None:
        """Fix noise, weights and thresholds from the price and the number of groups that one unit is in.

        Raises:
            InvalidParameter: for unusable numbers, or a delta that is too large beside epsilon.
        """
        price, risk = positive(epsilon, "epsilon"), probability(delta, "delta")
        own = as_integer(groups, "groups")
        half = risk / 2
        variance = gaussian_sigma(for_noise(price, half), half) ** 2 * _squared(exchange)
        if variance * _PARTS > _WIDEST**2:
            raise InvalidParameter("epsilon is too small: the noise would not fit.")
        steps = _steps(own)
        first, second = half * _FIRST_RISK, half * (1 - _FIRST_RISK)
        freeze(self, epsilon=price, delta=risk, groups=own, exchange=bool(exchange))
        freeze(self, _variance=variance, _steps=steps, _loss=ApproximateLoss(price, risk))
        freeze(self, _thresholds=(_first(steps, variance, first), _second(steps, variance, second)))

    def __repr__(self) -> str:
        price = {"epsilon": self.epsilon, "delta": self.delta}
        return shown("AdaptiveSelection", **price, groups=self.groups, exchange=self.exchange or None)

    @property
    def loss(self) -> ApproximateLoss:
        """What both rounds cost together, whatever the number of groups in the data."""
        return self._loss

    @property
    def squared_sensitivity(self) -> int:
        """By how much neighbours' integer weights differ in either round, in squared L2."""
        return _squared(self.exchange)

    @property
    def rho(self) -> Fraction:
        """What the noise alone costs in zero-concentrated terms, exact; not the price of what is shown."""
        return self.squared_sensitivity / (2 * self._variance)

    @property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """Up to which number of groups a unit has which integer weight in each; beyond the last, none."""
        return self._steps

    @property
    def sigma(self) -> float:
        """The standard deviation of a group's noise, both rounds together, where a unit weighs 1 in one."""
        return math.sqrt(self._variance) / WHOLE

    @property
    def threshold(self) -> float:
        """A group survives if its noisy weight in both rounds is above this; a unit in d groups weighs 1/√d.

        Rounded to a float.
        """
        return self._thresholds[1] / (_PARTS * WHOLE)

    @property
    def certain(self) -> None:
        """No number of units survives always; `least` says which one nearly always does."""
        return

    @property
    def variance(self) -> float:
        """The variance of a group's noisy weight, both rounds together and survival aside, rounded up."""
        # Rounding moves either sum by at most half of a weight's unit, and so their mean.
        with ctx.workprec(PRECISION):
            return up(((ball(self._variance).sqrt() + arb(1) / 2) / WHOLE) ** 2)

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric. The weights of *survivors* are biased upwards."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The w with P(|noise| ≤ w for all of `size` groups' weights) ≥ confidence, survival aside."""
        return gaussian_width(self._variance / WHOLE**2, confidence, size, slack=Fraction(1, 2 * WHOLE))

    def weight(self, degree: int) -> int:
        """What a unit that is in so many groups adds to each."""
        own = as_integer(degree, "degree", least=0)
        return next((weight for end, weight in self._steps if 0 < own <= end), 0)

    def keep_probability(self, count: int, *, degree: int | None = None) -> float:
        """A lower bound of the probability that a group survives, rounded down.

        Args:
            count: How many units are in it.
            degree: In how many groups each of them is; by default in as many as it may.
        """
        units = as_integer(count, "count", least=0)
        total = units * self.weight(self.groups if degree is None else degree)
        if not total:
            return 0.0
        # As if nothing were found in the first round: weights only grow, and what was found is shown.
        with ctx.workprec(PRECISION):
            short = ball(self._thresholds[1] + _PARTS // 2 - _PARTS * total)
            return max(0.0, float_down(-upper(-above(short, self._variance * _PARTS**2))))

    def least(self, chance: Rational, *, degree: int | None = None) -> int:
        """A number of units, each in so many groups (or as many as may be), that survives so often."""
        weight = self.weight(self.groups if degree is None else degree)
        if not weight:
            raise InvalidParameter("Units in so many groups count nowhere.")
        with ctx.workprec(PRECISION):
            drop = 2 * ball(1 - probability(chance, "chance"))
            enough = places_of(drop, self._variance * _PARTS**2) + self._thresholds[1] + _PARTS // 2
            return max(1, ceiling(enough / (_PARTS * weight)))

    def first_round(self, weights: ArrayLike) -> tuple[NDArray[np.bool_], Weights]:
        """The first round: which groups are found, and the noisy weights of all, *not* to be shown.

        Args:
            weights: The sum of units' weights in each group.
        """
        true = _sums(weights)
        noisy = with_gaussian(true, self._variance * _PARTS)
        return (true > 0) & (noisy > self._thresholds[0]), noisy

    def second_round(self, before: Weights, weights: ArrayLike) -> tuple[NDArray[np.bool_], Weights]:
        """The second round, of groups that the first did not find: which are found, and noisy weights of all.

        Args:
            before: Their noisy weights in the first round.
            weights: The sum of units' weights in each, spread anew.
        """
        true = _sums(weights)
        noisy = with_gaussian(true, self._variance * _PARTS / (_PARTS - 1))
        inside = (before > _LEAST) & (noisy > _LEAST)
        both = np.clip(before, _LEAST, _MOST) + (_PARTS - 1) * np.clip(noisy, _LEAST, _MOST)
        return (true > 0) & inside & (both > self._thresholds[1]), both

    def release(self, members: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which groups survive, and their noisy weights (0 for the others).

        Args:
            members: Truth values, a row for each unit and a column for each group: whether it is in it. A
                unit that is in more than `groups` groups counts nowhere: choose some before.

        Raises:
            InvalidValue: for anything else.
        """
        given = np.asarray(members)
        if given.dtype != np.bool_ or given.ndim != 2:
            raise InvalidValue("Give truth values, a row for each unit and a column for each group.")
        kept, noisy = self._released(given, 1)
        return kept[0], noisy[0]

    def _released(
        self, members: NDArray[np.bool_], count: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """So many releases for the same units."""
        own, groups = members.astype(np.int64), members.shape[1]
        table = np.array([self.weight(degree) for degree in range(groups + 1)], np.int64)

        def spread(left: NDArray[np.bool_]) -> Weights:
            sums: Weights = table[left.astype(np.int64) @ own.T] @ own
            return np.where(left, sums, 0)

        found, before = self.first_round(spread(np.full((count, groups), True)))
        noisy = before * _PARTS
        more, both = self.second_round(before[~found], spread(~found)[~found])
        kept = found.copy()
        kept[~found], noisy[~found] = more, both
        return kept, np.where(kept, noisy / (_PARTS * WHOLE), 0.0)


def _squared(exchange: bool) -> int:
    """The squared sensitivity of weights in either round."""
    return WHOLE**2 * (2 if exchange else 1)


def _sums(weights: ArrayLike) -> Weights:
    return np.minimum(integers_of(weights), _MOST // 2)


def _steps(groups: int) -> tuple[tuple[int, int], ...]:
    """Numbers of groups that have one weight, by their last, and that weight: at most WHOLE over its root."""
    ends = [1]
    while ends[-1] < groups:
        ends.append(min(groups, ends[-1] + max(1, ends[-1] // _FINE)))
    return tuple((end, math.isqrt(WHOLE**2 // end)) for end in ends)


def _first(steps: tuple[tuple[int, int], ...], variance: Fraction, risk: Fraction) -> int:
    """A whole T with P(one of t lone groups has z₁ > T) ≤ risk for every t: z₁ > T means X₁ ≥ T + 1/2 − w."""
    with ctx.workprec(PRECISION):
        return max(ceiling(weight + beyond(variance * _PARTS, risk, end)) for end, weight in steps)


def _second(steps: tuple[tuple[int, int], ...], variance: Fraction, risk: Fraction) -> int:
    """The same for z₁ + 7z₂ > T, which needs X₁ + 7X₂ > T − 4 − 8w."""
    spread = variance * _PARTS**2
    with ctx.workprec(PRECISION):
        return max(
            ceiling(_PARTS * weight + _PARTS // 2 + beyond(spread, risk, end)) for end, weight in steps
        )


def _example(name: str, mechanism: AdaptiveSelection, left: list[str], right: list[str]) -> Example:
    """Two neighbouring inputs: for each unit the letters of its groups."""
    letters = sorted({letter for unit in (*left, *right) for letter in unit})
    sides = {
        "left": np.array([[letter in unit for letter in letters] for unit in left]),
        "right": np.array([[letter in unit for letter in letters] for unit in right]),
    }

    def draw(side: Side, count: int) -> NDArray[np.float64]:
        return mechanism._released(sides[side], count)[1]

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example(
            "adaptive selection",
            AdaptiveSelection(4, "0.02", groups=2),
            ["a"] * 5,
            ["a"] * 4,
        ),
        _example(
            "adaptive selection: large groups are left out",
            AdaptiveSelection(2, "0.02", groups=3),
            [*["a"] * 60, *["abc"] * 10],
            [*["a"] * 60, *["abc"] * 9],
        ),
        _example(
            "adaptive selection: exchange",
            AdaptiveSelection(4, "0.02", groups=2, exchange=True),
            [*["a"] * 6, *["b"] * 5],
            [*["a"] * 5, *["b"] * 6],
        ),
    )
