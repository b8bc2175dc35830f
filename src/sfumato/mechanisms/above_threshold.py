"""Above-threshold: the first of a stream of values that exceeds a threshold."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.loss import PureLoss
from sfumato.mechanisms._threshold import Gate, Values
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.numeric.exact import Rational, as_fraction, positive
from sfumato.numeric.frozen import freeze, shown

__all__ = ["AboveThreshold", "examples"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class AboveThreshold(Mechanism):
    """Finds the first value that (noisily) reaches the threshold; the price does not grow with the tries.

    An iterator is asked for one value at a time, so it may compute each when it is asked, and none is
    computed after the answer; lists and arrays are compared in blocks. Each call of `first` is a new run and
    costs `loss`, to be paid before the first value is read.

    Attributes:
        epsilon: The pure price of one run.
        threshold: What the values are compared with; public.
        sensitivity: The most that any one value moves between neighbours. "Does this user have more than
            100 logins?" is a value per user, and taking that user out moves it by all their logins, not by
            1.
        monotone: A promise that all values move the same way between any two neighbours (counts under
            add/remove).

    Privacy:
        Claim: `epsilon`-DP for the index, or for the answer that there was none; see `Gate`. How many
        values there are is taken as public. Sources: Dwork, Roth 2014, Thm. 3.23; Lyu, Su, Li 2017, Alg. 7.
        Nothing is made up when no value is found: the answer is None.
    """

    epsilon: Fraction
    threshold: Fraction
    sensitivity: Fraction
    monotone: bool
    _gate: Gate = field(compare=False)

    def __init__(
        self, epsilon: Rational, threshold: Rational, *, sensitivity: Rational, monotone: bool = False
    ) -> None:
        """Fix the noise from the price, the threshold and the sensitivity.

        Raises:
            InvalidParameter: if one of them is not a finite number, or the price or sensitivity not positive.
        """
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        bar = as_fraction(threshold, "threshold")
        freeze(self, epsilon=price, threshold=bar, sensitivity=bound, monotone=bool(monotone))
        freeze(self, _gate=Gate.of(price, bar, bound, count=1, monotone=monotone))

    def __repr__(self) -> str:
        parameters = {"epsilon": self.epsilon, "threshold": self.threshold, "sensitivity": self.sensitivity}
        return shown("AboveThreshold", **parameters, monotone=self.monotone)

    @property
    def loss(self) -> PureLoss:
        """Pure `epsilon` for a whole run."""
        return PureLoss(self.epsilon)

    def first(self, values: Values) -> int | None:
        """The index of the first value found above the threshold, None if the values end before.

        Raises:
            InvalidValue: for a value that is not a finite number; outside the claim.
        """
        for index, _ in self._gate.crossings(values):
            return index
        return None

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """α such that, with `confidence`, the one found is at least T − α and all before at most T + α.

        Args:
            confidence: The probability that both hold.
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


def _example(name: str, mechanism: AboveThreshold, left: list[int], right: list[int]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        values = left if side == "left" else right
        indices = (mechanism.first(values) for _ in range(count))
        return np.array([-1 if index is None else index for index in indices])

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # Near the worst: all values before the crossing rise, the crossing one falls.
        _example("above-threshold", AboveThreshold(2, 0, sensitivity=1), [0, 0, 0, 1], [1, 1, 1, 0]),
        _example(
            "above-threshold: monotone",
            AboveThreshold(2, 0, sensitivity=1, monotone=True),
            [0, 0, 0, 0, 1],
            [1, 1, 1, 1, 1],
        ),
    )
