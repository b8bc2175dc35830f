"""Sparse vector: the first few of a stream of values that exceed a threshold, with or without their sizes."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.loss import PureLoss
from sfumato.mechanisms._scores import drawable, nearest
from sfumato.mechanisms._threshold import Gate, Values
from sfumato.mechanisms._utility import failure_of, outward, two_sided_width
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, as_fraction, as_integer, positive, probability
from sfumato.numeric.frozen import freeze, shown

__all__ = ["NumericSparseVector", "SparseVector", "examples"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SparseVector(Mechanism):
    """Finds the first `count` values that (noisily) reach the threshold, and stops; values below are free.

    An iterator is asked for one value at a time, for none after the last one found. It is not an exponential
    mechanism run over time: the order of the values decides, and each is compared with the threshold alone.
    Each call of `above` is a new run and costs `loss`.

    Attributes:
        epsilon: The pure price of one run, all `count` findings included.
        threshold: What the values are compared with; public.
        count: After how many findings it stops.
        sensitivity: The most that any one value moves between neighbours; see `AboveThreshold` for the trap.
        monotone: A promise that all values move the same way between any two neighbours.

    Privacy:
        Claim: `epsilon`-DP for the list of indices; see `Gate`. Source: Lyu, Su, Li 2017, Alg. 7.
        Conditions: theirs. Fewer than `count` findings give a shorter list, never a made-up index.
    """

    epsilon: Fraction
    threshold: Fraction
    count: int
    sensitivity: Fraction
    monotone: bool
    _gate: Gate = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        threshold: Rational,
        *,
        count: int,
        sensitivity: Rational,
        monotone: bool = False,
    ) -> None:
        """Fix the noise from the price of a whole run, the threshold, the count and the sensitivity.

        Raises:
            InvalidParameter: if one of them is not a finite number, or the price, count or sensitivity not
                positive.
        """
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        bar, limit = as_fraction(threshold, "threshold"), as_integer(count, "count")
        freeze(self, epsilon=price, threshold=bar, count=limit, sensitivity=bound, monotone=bool(monotone))
        freeze(self, _gate=Gate.of(price, bar, bound, count=limit, monotone=monotone))

    def __repr__(self) -> str:
        parameters = {"epsilon": self.epsilon, "threshold": self.threshold, "sensitivity": self.sensitivity}
        return shown("SparseVector", **parameters, count=self.count, monotone=self.monotone)

    @property
    def loss(self) -> PureLoss:
        """Pure `epsilon` for a whole run."""
        return PureLoss(self.epsilon)

    def above(self, values: Values) -> list[int]:
        """The indices of the first `count` values found above the threshold, fewer if the values end before.

        Raises:
            InvalidValue: for a value that is not a finite number; outside the claim.
        """
        return [index for index, _ in self._gate.crossings(values)]

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """α such that, with `confidence`, those found are at least T − α, those passed over at most T + α.

        Args:
            confidence: The probability that both hold for all of them.
            size: How many values are tried, at most.
        """
        return self._gate.error(confidence, size)

    @property
    def variance(self) -> None:
        """None: an index has none."""
        return None

    @property
    def bias(self) -> None:
        """None: an index has none."""
        return None


@dataclass(frozen=True, slots=True, init=False, repr=False)
class NumericSparseVector(Mechanism):
    """Finds the first `count` values that (noisily) reach the threshold and tells each with fresh noise.

    Attributes:
        epsilon: The pure price of one run: findings and numbers together.
        threshold: What the values are compared with; public.
        count: After how many findings it stops.
        sensitivity: The most that any one value moves between neighbours.
        monotone: A promise that all values move the same way between any two neighbours.
        share: The part of `epsilon` that goes to the numbers.

    Privacy:
        Claim: `epsilon` = (1 − share)·ε for the places (`Gate`) + share·ε for the numbers: `count` discrete
        Laplace releases of scale count·s/(share·ε) in grid units, composed. The noise that decided a
        comparison is never told: a number gets noise of its own. Sources: Lyu, Su, Li 2017, Alg. 7 with ε3;
        Dwork, Roth 2014, Alg. 3 (which states the same total for its own split).
    """

    epsilon: Fraction
    threshold: Fraction
    count: int
    sensitivity: Fraction
    monotone: bool
    share: Fraction
    _gate: Gate = field(compare=False)
    _scale: Fraction = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        threshold: Rational,
        *,
        count: int,
        sensitivity: Rational,
        monotone: bool = False,
        share: Rational = "1/2",
    ) -> None:
        """Fix both noises from the price of a whole run, the threshold, the count and the sensitivity.

        Raises:
            InvalidParameter: if one of them is out of range; `share` must lie strictly between 0 and 1.
        """
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        bar, limit = as_fraction(threshold, "threshold"), as_integer(count, "count")
        part = probability(share, "share")
        gate = Gate.of(price * (1 - part), bar, bound, count=limit, monotone=monotone)
        freeze(self, epsilon=price, threshold=bar, count=limit, sensitivity=bound, monotone=bool(monotone))
        freeze(self, share=part, _gate=gate, _scale=drawable(limit * gate.grid.sensitivity / (price * part)))

    def __repr__(self) -> str:
        parameters = {"epsilon": self.epsilon, "threshold": self.threshold, "sensitivity": self.sensitivity}
        told = {"count": self.count, "monotone": self.monotone, "share": self.share}
        return shown("NumericSparseVector", **parameters, **told)

    @property
    def loss(self) -> PureLoss:
        """Pure `epsilon` for a whole run, numbers included."""
        return PureLoss(self.epsilon)

    def above(self, values: Values) -> list[tuple[int, float]]:
        """Index and noisy size of the first `count` values found above the threshold, or of fewer.

        Raises:
            InvalidValue: for a value that is not a finite number; outside the claim.
        """
        step = self._gate.grid.step
        return [
            (index, nearest((level + random.discrete_laplace(self._scale)) * step))
            for index, level in self._gate.crossings(values)
        ]

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """α of the comparisons, as in `SparseVector.error`."""
        return self._gate.error(confidence, size)

    def number_error(self, confidence: Rational) -> float:
        """The half-width that holds for all `count` numbers at once with probability `confidence`."""
        width = two_sided_width(self._scale, failure_of(confidence, self.count))
        return outward(width, self._gate.grid.step)

    @property
    def variance(self) -> float:
        """The variance of each number's noise: 2q/(1−q)² grid steps squared, q = e^(−1/scale)."""
        rate, step = float(1 / self._scale), float(self._gate.grid.step)
        return step * step * 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def bias(self) -> None:
        """None: it depends on which values are found. A number alone is off by less than a grid step."""
        return None


def _index_example(name: str, mechanism: SparseVector, left: list[float], right: list[float]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        values = left if side == "left" else right
        # A list of indices as one number: the sum of their powers of two.
        return np.array([sum(1 << index for index in mechanism.above(values)) for _ in range(count)])

    return Example(name, mechanism, left, right, draw)


def _numeric_example(
    name: str, mechanism: NumericSparseVector, left: list[float], right: list[float]
) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.float64]:
        values = left if side == "left" else right
        out = np.full((count, mechanism.count, 2), -1.0)
        for row in out:
            for place, answer in enumerate(mechanism.above(values)):
                row[place] = answer
        return out

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # Near the worst: all values before the findings rise, those found fall; both are likely enough.
        _index_example(
            "sparse vector",
            SparseVector(5, 0, count=2, sensitivity=1),
            [0, 0, 0, 0, 1.5, 1.5],
            [1, 1, 1, 1, 0.5, 0.5],
        ),
        _index_example(
            "sparse vector: monotone",
            SparseVector(4, 0, count=2, sensitivity=1, monotone=True),
            [0, 0, 0, 0, 1, 1],
            [1, 1, 1, 1, 1, 1],
        ),
        _numeric_example(
            "sparse vector: numeric",
            NumericSparseVector(4, 0, count=1, sensitivity=1, share="2/3"),
            [0, 1],
            [1, 0],
        ),
    )
