"""Report noisy max: noise on every score, and only the winner's index is told."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import BoundedRangeLoss, PrivacyLoss, PureLoss
from sfumato.mechanisms._scores import ScoreGrid, drawable, rate_of
from sfumato.mechanisms._utility import candidates_of, failure_of, outward, race_failure, smallest_gap
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.mechanisms.permute_and_flip import flip_and_take, flip_gap
from sfumato.numeric.exact import Rational, positive
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Noise", "NoisyMax", "examples"]

Noise: TypeAlias = Literal["laplace", "gumbel", "exponential"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class NoisyMax(Mechanism):
    """Adds noise of scale 2Δ/ε to every score and tells which one came out largest, and nothing else.

    Gumbel noise gives the exponential mechanism and exponential noise gives permute-and-flip, both exactly,
    and they are drawn as such. Laplace noise is the textbook's; it is dominated by the other two and kept
    for comparison.

    Attributes:
        epsilon: The pure price of one choice.
        sensitivity: The most that any one score moves between neighbours.
        noise: "laplace", "gumbel" or "exponential".
        monotone: A promise that all scores move the same way between any two neighbours; only then is scale
            Δ/ε enough.

    Privacy:
        Claim: `epsilon`-DP; with Gumbel noise also of bounded range `epsilon` (ε²/8-zCDP).
        Laplace: integer scores v of sensitivity s (`ScoreGrid`), independent discrete Laplace X_j with
        P(X ≥ t+1) ≥ e^(−1/b)·P(X ≥ t), ties to the lowest index. Fix i and the noise of all others: i wins
        iff X_i ≥ T − v_i, where T is the greatest of v_j + X_j + 1 for j < i and v_j + X_j for j > i.
        Between neighbours T moves by at most s and v_i by at most s, so the whole threshold T − v_i rises
        by at most 2s (by at most s if all scores move one way), and P(i wins) falls by at most a factor
        e^(2s/b): b = 2s/ε, or s/ε. The tie rule is part of T and costs nothing. Source: Dwork, Roth 2014,
        Claim 3.9 (for counts, which are monotone); Ding, Kifer et al. 2021 for
        exponential noise = permute-and-flip. Lap(Δ/ε) without monotone scores is not `epsilon`-DP.
        Conditions: public candidates; the sensitivity bounds every score.
    """

    epsilon: Fraction
    sensitivity: Fraction
    noise: Noise
    monotone: bool
    _grid: ScoreGrid = field(compare=False)
    _rate: Fraction = field(compare=False)

    def __init__(
        self, epsilon: Rational, sensitivity: Rational, *, noise: Noise = "laplace", monotone: bool = False
    ) -> None:
        """Fix the noise from the price and the sensitivity.

        Raises:
            InvalidParameter: if either is not a positive finite number, or the noise is unknown.
        """
        if noise not in ("laplace", "gumbel", "exponential"):
            raise InvalidParameter('noise must be "laplace", "gumbel" or "exponential".')
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        grid = ScoreGrid.of(bound)
        drawable(1 / rate_of(price, grid, monotone=monotone))
        freeze(self, epsilon=price, sensitivity=bound, noise=noise, monotone=bool(monotone))
        freeze(self, _grid=grid, _rate=rate_of(price, grid, monotone=monotone))

    def __repr__(self) -> str:
        parameters = {"epsilon": self.epsilon, "sensitivity": self.sensitivity}
        return shown("NoisyMax", **parameters, noise=self.noise, monotone=self.monotone)

    @property
    def scale(self) -> float:
        """The scale of the noise on each score."""
        return float(self._grid.step / self._rate)

    @property
    def loss(self) -> PrivacyLoss:
        """Bounded range `epsilon` with Gumbel noise, otherwise pure `epsilon`."""
        return BoundedRangeLoss(self.epsilon) if self.noise == "gumbel" else PureLoss(self.epsilon)

    def select(self, scores: ArrayLike) -> int:
        """The index of the candidate whose noisy score is largest, the lowest of equals.

        Raises:
            InvalidValue: for scores that are not a flat, non-empty array of finite numbers;
                outside the claim.
        """
        relative = self._grid.relative(scores)
        if self.noise == "gumbel":
            return random.choose(relative, self._rate)
        if self.noise == "exponential":
            return flip_and_take(relative, self._rate)
        noisy = random.discrete_laplace(1 / self._rate, relative.size)
        noisy += relative
        return int(np.argmax(noisy))

    def error(self, confidence: Rational, *, size: int = 1, candidates: int | None = None) -> float:
        """How far below the best score the choice lies at most, with probability `confidence`.

        Exact for the worst scores with Gumbel and exponential noise; with Laplace noise by the union bound
        over the others, each against the best: P(difference of two draws ≥ t).

        Args:
            confidence: The probability that the bound holds.
            size: How many choices it holds for at once.
            candidates: How many there are to choose from (a public number).
        """
        total, beta = candidates_of(candidates), failure_of(confidence, size)
        if total == 1:
            return 0.0
        rate = float(self._rate)
        if self.noise == "laplace":
            units = smallest_gap(race_failure(rate, total - 1), beta)
        elif self.noise == "gumbel":
            units = max(math.log(total - 1) + math.log1p(-beta) - math.log(beta), 0.0) / rate
        else:
            units = flip_gap(total, beta) / rate
        return outward(units, self._grid.step)

    @property
    def variance(self) -> None:
        """None: an index has none."""
        return None

    @property
    def bias(self) -> None:
        """None: an index has none."""
        return None


def _example(name: str, mechanism: NoisyMax, left: list[float], right: list[float]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        scores = left if side == "left" else right
        return np.array([mechanism.select(scores) for _ in range(count)])

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        _example("noisy max: laplace", NoisyMax(2, 1), [0, 4], [1, 3]),
        _example("noisy max: laplace, monotone", NoisyMax(2, 1, monotone=True), [0, 2], [1, 2]),
        _example("noisy max: gumbel", NoisyMax(2, 1, noise="gumbel"), [0, 3], [1, 2]),
        _example("noisy max: exponential", NoisyMax(2, 1, noise="exponential"), [0, 2], [1, 1]),
    )
