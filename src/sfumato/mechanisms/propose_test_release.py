"""Propose-test-release: an answer only if the data is far from breaking a proposed sensitivity."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidValue
from sfumato.loss import ApproximateLoss
from sfumato.mechanisms._scores import Number, exact_number
from sfumato.mechanisms._utility import failure_of
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.mechanisms.laplace import Laplace
from sfumato.numeric.exact import Rational, positive, probability
from sfumato.numeric.frozen import freeze, shown

__all__ = ["ProposeTestRelease", "examples"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ProposeTestRelease(Mechanism):
    """Answers with noise for a *proposed* sensitivity, or not at all if the data is close to exceeding it.

    The caller works out, for the data x, the distance D(x): how many changes away the answer could first
    move by more than `bound` (0: it may do so now). `median_of(…).distance(bound)` does it for medians.

    Attributes:
        epsilon: The price of test and release together.
        delta: The probability that the test wrongly passes.
        bound: The proposed sensitivity; public.
        share: The part of `epsilon` that goes to the test.
        threshold: The noisy distance that the test asks for.

    Privacy:
        Claim: (ε, δ)-DP in all, with ε1 = share·ε for the test and ε2 = ε − ε1 for the release.
        Conditions: D is a whole number that moves by at most 1 between neighbours, and D(x) = D(x') = 0
        whenever neighbours have |f(x) − f(x')| > bound. Proof: the test passes iff D + X > `threshold`,
        X discrete Laplace of rate ε1. If |f(x) − f(x')| ≤ bound, this is an ε1-DP test followed by an
        ε2-DP release: ε-DP. Otherwise both distances are 0, the test fails with one and the same
        probability on both sides, and passes with probability P(X > threshold) ≤ δ: (0, δ)-DP. Source:
        Dwork, Lei 2009; Vadhan 2017. A threshold of ln(2/δ)/(2ε), as one textbook has it,
        passes data at distance 0 with probability about √δ, and test and release at ε each cost 2ε.
    """

    epsilon: Fraction
    delta: Fraction
    bound: Fraction
    share: Fraction
    threshold: int = field(compare=False)
    _rate: Fraction = field(compare=False)
    _laplace: Laplace = field(compare=False)

    def __init__(
        self, epsilon: Rational, delta: Rational, *, bound: Rational, share: Rational = "1/2"
    ) -> None:
        """Fix threshold and noise from the price.

        Raises:
            InvalidParameter: for parameters out of range; delta and share must lie strictly between 0 and 1.
        """
        price, slip = positive(epsilon, "epsilon"), probability(delta, "delta")
        part = probability(share, "share")
        proposed, rate = positive(bound, "bound"), price * part
        freeze(self, epsilon=price, delta=slip, bound=proposed, share=part, _rate=rate)
        freeze(self, threshold=_threshold(rate, slip), _laplace=Laplace(price - rate, proposed))

    def __repr__(self) -> str:
        parameters = {"epsilon": self.epsilon, "delta": self.delta, "bound": self.bound, "share": self.share}
        return shown("ProposeTestRelease", **parameters)

    @property
    def loss(self) -> ApproximateLoss:
        """(ε, δ) for test and release together, whether or not there is an answer."""
        return ApproximateLoss(self.epsilon, self.delta)

    def release(self, value: Number, distance: int) -> float | None:
        """The value with noise, or None if the test failed: the proposed bound is too small for this data.

        Args:
            value: The exact answer.
            distance: D, how far the data is from data whose answer can move by more than `bound`; private.

        Raises:
            InvalidValue: if the value is not a finite number, or the distance not a whole number of at
                least 0; outside the claim.
        """
        if isinstance(distance, bool) or not isinstance(distance, int | np.integer) or distance < 0:
            raise InvalidValue("The distance must be a whole number of at least 0.")
        # Drawn in any case, so that a refused test takes no less time and a bad value fails the same way.
        answer = self._laplace.release(exact_number(value))
        passed = int(distance) + random.discrete_laplace(1 / self._rate) > self.threshold
        return answer if passed else None

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The half-width of the noise of an answer, where there is one."""
        return self._laplace.error(confidence, size=size)

    def reach(self, confidence: Rational) -> int:
        """A distance from which on the test passes with probability `confidence` or more."""
        # P(X > −m) ≥ 1 − q^m/(1+q) ≥ 1 − e^(−rate·m) for m ≥ 0.
        need = -math.log(failure_of(confidence, 1)) / float(self._rate)
        return self.threshold + math.ceil(need * (1 + 1e-9))

    @property
    def variance(self) -> float:
        """The variance of the noise of an answer, where there is one."""
        return self._laplace.variance

    @property
    def bias(self) -> float:
        """Zero for an answer, where there is one."""
        return self._laplace.bias


def _threshold(rate: Fraction, delta: Fraction) -> int:
    """The least whole t (or one more) with P(X > t) = q^(t+1)/(1+q) ≤ δ, q = e^−rate."""
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    need = -log_delta - math.log1p(math.exp(-float(rate)))
    # The logarithms are good to a few units in the last place; the slack is far more.
    return max(0, math.ceil((need + 1e-9 * (1 + abs(need))) / float(rate) * (1 + 1e-9)) - 1)


def _example(
    name: str, mechanism: ProposeTestRelease, left: tuple[float, int], right: tuple[float, int]
) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.float64]:
        value, distance = left if side == "left" else right
        answers = (mechanism.release(value, distance) for _ in range(count))
        return np.array([np.inf if answer is None else answer for answer in answers])

    return Example(name, mechanism, left, right, draw)


_USUAL = ProposeTestRelease(2, "1e-3", bound=1)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # At the threshold, where the test decides: it turns the most, the answer moves by the whole bound.
        _example("propose-test-release", _USUAL, (0.0, _USUAL.threshold), (1.0, _USUAL.threshold + 1)),
    )
