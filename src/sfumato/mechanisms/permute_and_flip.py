"""Permute-and-flip: the private choice that is never worse than the exponential mechanism's."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.loss import PureLoss
from sfumato.mechanisms._scores import ScoreGrid, rate_of
from sfumato.mechanisms._utility import candidates_of, failure_of, outward, smallest_gap
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, positive
from sfumato.numeric.frozen import freeze, shown

__all__ = ["PermuteAndFlip", "examples"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PermuteAndFlip(Mechanism):
    """Takes the first candidate, in random order, whose coin of bias exp(−ε·gap/(2Δ)) shows heads.

    The best candidate's coin always does. Its expected error is at most that of the exponential mechanism
    at the same price and up to half of it; but its loss is not of bounded range, so that many of them
    compose less well.

    Attributes:
        epsilon: The pure price of one choice.
        sensitivity: The most that any one score moves between neighbours.
        monotone: A promise that all scores move the same way between any two neighbours; doubles the rate.

    Privacy:
        Claim: `epsilon`-DP; for zCDP only the ε²/2 of any such mechanism, as its loss is not of bounded
        range.
        Source: McKenna, Sheldon 2020, applied to the integer scores of `ScoreGrid` with their sensitivity s
        at rate r = ε/(2s), or ε/s if monotone. Proof: it is report-noisy-max with exponential noise (Ding,
        Kifer et al. 2021), whose tail min(1, e^(−rt)) falls by at most e^(−2sr) when the threshold that
        `NoisyMax` describes rises by 2s (monotone: by e^(−sr), s). Conditions: public candidates; the
        sensitivity bounds every score. Flipping all coins and taking one of the heads uniformly is the same
        law: given the heads, the first of them in a random order is uniform.
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
            "PermuteAndFlip", epsilon=self.epsilon, sensitivity=self.sensitivity, monotone=self.monotone
        )

    @property
    def loss(self) -> PureLoss:
        """Pure `epsilon`."""
        return PureLoss(self.epsilon)

    def select(self, scores: ArrayLike) -> int:
        """The index of one candidate.

        Raises:
            InvalidValue: for scores that are not a flat, non-empty array of finite numbers;
                outside the claim.
        """
        return flip_and_take(self._grid.relative(scores), self._rate)

    def error(self, confidence: Rational, *, size: int = 1, candidates: int | None = None) -> float:
        """How far below the best score the choice lies at most, with probability `confidence`.

        Exact for the worst scores, one best candidate and n−1 at the bound: with coins of bias p the choice
        is bad with probability 1 − (1 − (1−p)^n)/(np).

        Args:
            confidence: The probability that the bound holds.
            size: How many choices it holds for at once.
            candidates: n, how many there are to choose from (a public number).
        """
        gap = flip_gap(candidates_of(candidates), failure_of(confidence, size))
        return outward(gap / float(self._rate), self._grid.step) if gap else 0.0

    @property
    def variance(self) -> None:
        """None: an index has none."""
        return None

    @property
    def bias(self) -> None:
        """None: an index has none."""
        return None


def flip_and_take(scores: NDArray[np.int64], rate: Fraction) -> int:
    """One candidate by permute-and-flip, from scores in grid units."""
    heads = np.flatnonzero(random.flip(scores, rate))
    return int(heads[random.integers(len(heads))])


def flip_gap(candidates: int, beta: float) -> float:
    """rate·t such that a choice more than t below the best has probability at most `beta`, at worst."""
    if candidates == 1:
        return 0.0

    def failure(x: float) -> float:
        p = math.exp(-x)
        if candidates * p < 1e-3:  # where the formula below cancels: E[K/(K+1)] ≤ E[K]/2 for the K bad heads
            return (candidates - 1) * p / 2
        all_tails = 0.0 if p == 1 else math.exp(candidates * math.log1p(-p))
        return 1 - (1 - all_tails) / (candidates * p)

    return smallest_gap(failure, beta)


def _example(name: str, mechanism: PermuteAndFlip, left: list[float], right: list[float]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        scores = left if side == "left" else right
        return np.array([mechanism.select(scores) for _ in range(count)])

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("permute-and-flip", PermuteAndFlip(2, 1), [0, 2], [1, 1]),
        _example("permute-and-flip: monotone", PermuteAndFlip(2, 1, monotone=True), [0, 1, 0], [1, 1, 0]),
    )
