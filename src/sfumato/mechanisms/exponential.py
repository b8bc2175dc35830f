"""The exponential mechanism: the best of many candidates, chosen privately."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.loss import BoundedRangeLoss
from sfumato.mechanisms._scores import ScoreGrid, rate_of
from sfumato.mechanisms._utility import candidates_of, failure_of, outward
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, positive
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Exponential", "examples"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Exponential(Mechanism):
    """Chooses candidate i with probability proportional to exp(ε·score_i/(2Δ)), exactly.

    The candidates are public and their number is fixed: a list taken from the data's own values is itself a
    leak. A score moves by at most `sensitivity` when one unit comes or goes; whoever rescales scores
    rescales that too. Scores may be shifted by any constant; differences beyond 2**33 sensitivities count
    as that much.

    Attributes:
        epsilon: The pure price of one choice.
        sensitivity: The most that any one score moves between neighbours.
        monotone: A promise that all scores move the same way between any two neighbours (counts under
            add/remove do; distances and losses do not). It allows exp(ε·score/Δ), twice the rate, for the
            same price.

    Privacy:
        Claim: `epsilon`-DP, and of bounded range `epsilon`, hence ε²/8-zCDP. With integer scores v of
        sensitivity s (`ScoreGrid`) and rate r, the loss of output i is r(v_i − v'_i) minus a constant that
        does not depend on i; it ranges over an interval of length 2sr = ε, or sr = ε if all v_i − v'_i have
        one sign, and contains 0 because both laws sum to 1. Sources: McSherry, Talwar 2007; Durfee, Rogers
        2019 (bounded range); Cesar, Rogers 2021, Lemmas 3.2 and 3.4 (ε²/8). Conditions: the sensitivity
        bounds every score; the candidates are public. The choice is drawn from exactly this law
        (`random.choose`): no float exponentials, no normalisation.
    """

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool
    _grid: ScoreGrid = field(compare=False)
    _rate: Fraction = field(compare=False)

    def __init__(self, epsilon: Rational, sensitivity: Rational, *, monotone: bool = False) -> None:
        """Fix the law from the price and the sensitivity.

        Raises:
            InvalidParameter: if either is not a positive finite number.
        """
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        grid = ScoreGrid.of(bound)
        freeze(self, epsilon=price, sensitivity=bound, monotone=bool(monotone))
        freeze(self, _grid=grid, _rate=rate_of(price, grid, monotone=monotone))

    def __repr__(self) -> str:
        return shown(
            "Exponential", epsilon=self.epsilon, sensitivity=self.sensitivity, monotone=self.monotone
        )

    @property
    def loss(self) -> BoundedRangeLoss:
        """Bounded range `epsilon`: pure `epsilon` and ε²/8-zCDP."""
        return BoundedRangeLoss(self.epsilon)

    def select(self, scores: ArrayLike) -> int:
        """The index of one candidate, better ones exponentially more likely.

        Raises:
            InvalidValue: for scores that are not a flat, non-empty array of finite numbers;
                outside the claim.
        """
        return random.choose(self._grid.relative(scores), self._rate)

    def probabilities(self, scores: ArrayLike) -> NDArray[np.float64]:
        """With what probability `select` takes each candidate, to within 1e-12 of each.

        Nothing is drawn, so nothing is private: this is for reasoning about the mechanism, on scores that
        are made up, public, or the reader's own.

        Raises:
            InvalidValue: for scores that are not a flat, non-empty array of finite numbers;
                outside the claim.
        """
        # Relative scores are exact integers of at most 2**53, and the best one's weight is 1: what is lost
        # to rounding is a relative 2**-52 of the exponent, which matters only where the weight is nothing.
        weights = np.exp(float(self._rate) * self._grid.relative(scores))
        return np.asarray(weights / weights.sum())

    def error(self, confidence: Rational, *, size: int = 1, candidates: int | None = None) -> float:
        """How far below the best score the choice lies at most, with probability `confidence`.

        Exact for the worst scores (one best candidate, all others just beyond the bound):
        ln((n−1)(1−β)/β)/rate, never more than the textbook's 2Δ/ε·(ln n + ln 1/β).

        Args:
            confidence: 1 − β.
            size: How many choices it holds for at once.
            candidates: n, how many there are to choose from (a public number).
        """
        rivals, beta = candidates_of(candidates) - 1, failure_of(confidence, size)
        if rivals == 0:
            return 0.0
        gap = math.log(rivals) + math.log1p(-beta) - math.log(beta)
        return outward(max(gap, 0.0) / float(self._rate), self._grid.step)

    @property
    def variance(self) -> None:
        """None: an index has none."""
        return None

    @property
    def bias(self) -> None:
        """None: an index has none."""
        return None


def _example(name: str, mechanism: Exponential, left: list[float], right: list[float]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        scores = left if side == "left" else right
        return np.array([mechanism.select(scores) for _ in range(count)])

    def pmf(side: Side) -> dict[int, float]:
        law = mechanism.probabilities(left if side == "left" else right)
        return {i: float(p) for i, p in enumerate(law)}

    return Example(name, mechanism, left, right, draw, pmf)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # Near the worst: a rare candidate gains a full sensitivity while all others lose one.
        _example("exponential", Exponential(2, 1), [0, 3], [1, 2]),
        _example("exponential: monotone", Exponential(2, 1, monotone=True), [0, 1.5], [1, 1.5]),
        _example("exponential: five candidates", Exponential(3, 2), [0, 6, 2, 2, 3], [2, 4, 0, 0, 1]),
    )
