"""Top-k: the k best of many candidates, in order, chosen privately."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import BoundedRangeLoss, PrivacyLoss
from sfumato.mechanisms._scores import ScoreGrid, rate_of
from sfumato.mechanisms._utility import candidates_of, failure_of, outward
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, as_integer, positive
from sfumato.numeric.frozen import freeze, shown

__all__ = ["TopK", "examples"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TopK(Mechanism):
    """Peels off `count` candidates one after the other, each by an exponential mechanism at ε/count.

    The same law as one round of Gumbel noise of scale 2·count·Δ/ε on all scores and the `count` largest in
    order.

    Attributes:
        epsilon: The pure price of the whole list.
        sensitivity: The most that any one score moves between neighbours.
        count: How many are chosen.
        monotone: A promise that all scores move the same way between any two neighbours; doubles the rate.

    Privacy:
        Claim: `count` adaptive choices of bounded range ε/count each: `epsilon`-DP by basic composition, and
        ε²/(8·count)-zCDP, which for long lists is worth much more. Each choice is an exponential mechanism
        on the candidates still there, which are public given the choices before. Sources: Durfee, Rogers
        2019 (one-shot Gumbel = peeling); Cesar, Rogers 2021, Lemmas 3.2 and 3.4 (a bounded range ε is
        ε²/8-zCDP), and ρ adds up adaptively (Bun, Steinke 2016). Conditions: those of `Exponential`.
    """

    epsilon: Fraction
    sensitivity: Fraction
    count: int
    monotone: bool
    _grid: ScoreGrid = field(compare=False)
    _rate: Fraction = field(compare=False)

    def __init__(
        self, epsilon: Rational, sensitivity: Rational, *, count: int, monotone: bool = False
    ) -> None:
        """Fix the law from the price of the whole list, the sensitivity and the length.

        Raises:
            InvalidParameter: if one of them is not positive and finite.
        """
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        grid, length = ScoreGrid.of(bound), as_integer(count, "count")
        freeze(self, epsilon=price, sensitivity=bound, count=length, monotone=bool(monotone))
        freeze(self, _grid=grid, _rate=rate_of(price / length, grid, monotone=monotone))

    def __repr__(self) -> str:
        parameters = {"epsilon": self.epsilon, "sensitivity": self.sensitivity}
        return shown("TopK", **parameters, count=self.count, monotone=self.monotone)

    @property
    def loss(self) -> PrivacyLoss:
        """`count` choices of bounded range ε/count."""
        return BoundedRangeLoss(self.epsilon / self.count) * self.count

    def select(self, scores: ArrayLike) -> list[int]:
        """The indices of `count` different candidates, the supposed best first.

        Raises:
            InvalidValue: for scores that are not a flat array of finite numbers; outside the claim.
            InvalidParameter: if there are fewer than `count` candidates.
        """
        left = self._grid.relative(scores)
        if left.size < self.count:
            raise InvalidParameter(
                f"There are only {left.size} candidates to choose {self.count} from; lower count."
            )
        index = np.arange(left.size)
        chosen = []
        for _ in range(self.count):
            place = random.choose(left, self._rate)
            chosen.append(int(index[place]))
            # The last one takes the place of the one that leaves: no copy of a million scores for each
            # choice.
            left[place], index[place] = left[-1], index[-1]
            left, index = left[:-1], index[:-1]
        return chosen

    def error(self, confidence: Rational, *, size: int = 1, candidates: int | None = None) -> float:
        """How far each choice lies below the best one still left, at most, for all of them with `confidence`.

        Args:
            confidence: The probability that the bound holds for the whole list.
            size: How many lists it holds for at once.
            candidates: How many there are to choose from (a public number).
        """
        total, beta = candidates_of(candidates), failure_of(confidence, size * self.count)
        if total == 1:
            return 0.0
        gap = math.log(total - 1) + math.log1p(-beta) - math.log(beta)
        return outward(max(gap, 0.0) / float(self._rate), self._grid.step)

    @property
    def variance(self) -> None:
        """None: an index has none."""
        return None

    @property
    def bias(self) -> None:
        """None: an index has none."""
        return None


def _example(name: str, mechanism: TopK, left: list[float], right: list[float]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        scores = left if side == "left" else right
        return np.array([mechanism.select(scores) for _ in range(count)])

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("top-k: 2 of 3", TopK(4, 1, count=2), [0, 0, 3], [1, 1, 2]),
        _example("top-k: 2 of 3, monotone", TopK(4, 1, count=2, monotone=True), [0, 0, 1.5], [1, 1, 1.5]),
    )
