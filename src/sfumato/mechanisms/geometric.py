"""The geometric mechanism: discrete Laplace noise on integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, overload

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.loss import DiscreteLaplaceLoss
from sfumato.mechanisms._density import Dense, discrete_laplace_log
from sfumato.mechanisms._grid import bounded, bounded_input, bounded_inputs, bounded_sum, check_reach
from sfumato.mechanisms._numbers import integer_of, integers_of
from sfumato.mechanisms.base import Example, Mechanism
from sfumato.numeric.exact import Rational, as_integer, positive
from sfumato.numeric.figures import PRECISION, ball, ceiling, failure, up
from sfumato.numeric.frozen import freeze, shown
from sfumato.samplers.wholes import Wholes

__all__ = ["Geometric", "discrete_laplace_variance", "discrete_laplace_width", "examples"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Geometric(Dense, Mechanism):
    """Adds two-sided geometric noise, P(k) ∝ exp(−|k|·epsilon/sensitivity), to integers.

    Integers in and integers out; arrays are int64. Values beyond ±2**61 are clamped there, and answers at
    ±2**62.

    Attributes:
        epsilon: The price, exact.
        sensitivity: The most that the value can move between neighbours, in L1 over all coordinates; a whole
            number.

    Privacy:
        Claim: `release` is ε-DP and its curve is that of the scalar mechanism, for integer values that
        differ by at most `sensitivity` in L1, in any dimension. Proof: the law on the integers has P(k)/P(k
        + s) ≤ exp(ε|s|/Δ), and coordinates are independent (Ghosh, Roughgarden, Sundararajan 2009). Its
        probabilities are log-concave, so threshold tests are optimal for all shifts at once and the
        trade-off function of several shifts is nowhere below that of their sum (as for `Laplace`: Dong,
        Roth, Su 2022, group privacy of trade-off functions, with tests randomised at the threshold).
    """

    epsilon: Fraction
    sensitivity: int
    _scale: Fraction = field(compare=False)
    _loss: DiscreteLaplaceLoss = field(compare=False)

    def __init__(self, epsilon: Rational, sensitivity: int) -> None:
        """Fix the noise from the price and the integer L1 sensitivity.

        Raises:
            InvalidParameter: if epsilon is not a positive finite number or the sensitivity not a positive
                integer.
        """
        price, bound = positive(epsilon, "epsilon"), as_integer(sensitivity, "sensitivity")
        freeze(self, epsilon=price, sensitivity=bound, _scale=check_reach(bound / price))
        freeze(self, _loss=DiscreteLaplaceLoss(price / bound, bound))

    def __repr__(self) -> str:
        return shown("Geometric", epsilon=self.epsilon, sensitivity=self.sensitivity)

    @property
    def loss(self) -> DiscreteLaplaceLoss:
        """What one release costs, whatever its shape."""
        return self._loss

    @property
    def scale(self) -> float:
        """sensitivity/epsilon: noise of magnitude k is less likely than none by exp(−k/scale)."""
        return float(self._scale)

    @property
    def variance(self) -> float:
        """The exact variance of the noise, rounded up: a little below the continuous 2·scale²."""
        return discrete_laplace_variance(self._scale)

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The least whole w with P(|noise| ≤ w for all of `size` coordinates) ≥ confidence."""
        return float(discrete_laplace_width(self._scale, confidence, size))

    def _log_law(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        return discrete_laplace_log(noise, self.scale)

    @overload
    def release(self, value: int | np.integer[Any]) -> int: ...
    @overload
    def release(self, value: ArrayLike) -> NDArray[np.int64]: ...
    def release(self, value: Any) -> int | NDArray[np.int64]:
        """The value with noise: an int for an integer, an int64 array of the same shape for an array.

        Raises:
            InvalidValue: for floats, truth values and arrays that do not fit in int64; outside the claim.
        """
        if type(value) is int or isinstance(value, int | float | np.generic):
            return bounded(random.add_discrete_laplace(bounded_input(integer_of(value)), self._scale))
        array = integers_of(value)
        if not array.size:
            return np.zeros(array.shape, np.int64)
        return bounded_sum(array, random.discrete_laplace(self._scale, array.shape))

    def release_whole(self, values: Sequence[int] | Wholes) -> NDArray[np.int64]:
        """Integers of any size with noise, in one array; they are clamped to ±2**61 first."""
        return self.release(bounded_inputs(values))


def discrete_laplace_width(scale: Fraction, confidence: Rational, size: int) -> int:
    """The least whole w with P(|X| ≤ w)^size ≥ confidence for a discrete Laplace X.

    P(|X| > w) = 2q^(w+1)/(1 + q) with q = exp(−1/scale); solved for w and rounded up.
    """
    with ctx.workprec(PRECISION):
        allowed = failure(confidence, size)
        q = (-1 / ball(scale)).exp()
        return max(0, ceiling((2 / (allowed * (1 + q))).log() * ball(scale) - 1))


def discrete_laplace_variance(scale: Fraction) -> float:
    """2q/(1 − q)² with q = exp(−1/scale), rounded up."""
    with ctx.workprec(PRECISION):
        q = (-1 / ball(scale)).exp()
        return up(2 * q / (1 - q) ** 2)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        Example.of_release("geometric", Geometric(1, 1), 0, 1),
        Example.of_release("geometric: sensitivity 3", Geometric("0.5", 3), 10, 13),
        Example.of_release("geometric: vector", Geometric(1, 2), (0, 0), (1, 1)),
    )
