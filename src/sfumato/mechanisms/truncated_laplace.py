"""Truncated Laplace noise: never beyond a public bound, at the price of a delta."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from typing import Any, overload

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import ApproximateLoss
from sfumato.mechanisms._density import Dense, per_step, truncated_log
from sfumato.mechanisms._grid import Grid
from sfumato.mechanisms._lattice import BITS, changed, checked, fold, release_on, shift_of, signed
from sfumato.mechanisms._numbers import Number
from sfumato.mechanisms.base import Example, Mechanism
from sfumato.numeric.exact import Rational, positive, probability
from sfumato.numeric.figures import PRECISION, ball, ceiling, failure, up
from sfumato.numeric.frozen import freeze, shown

__all__ = ["TruncatedLaplace", "examples"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TruncatedLaplace(Dense, Mechanism):
    """Adds Laplace noise that is cut off at ±`bound`: no answer is ever further off than that.

    In grid units the law is P(k) ∝ exp(−|k|·ε/D) for |k| ≤ A and 0 beyond. It bounds the *noise*; to bound
    the *answer* without a delta, see `BoundedLaplace`. Values beyond ±2**61 grid units are clamped.

    Attributes:
        epsilon: The price, exact.
        delta: The probability with which an answer may give its input away, exact; below 1/2.
        sensitivity: The most that the value can move between neighbours, in L1 over all coordinates; exact.
        coordinates: In how many coordinates of an array neighbours may differ; None: single numbers only.

    Privacy:
        Claim: (ε, δ)-DP for neighbours as above. Proof: rounded inputs move by at most D = ⌈Δ/Γ⌉ +
        coordinates − 1 grid units in L1. Where both laws are positive their ratio is at most e^(ε·shift/D).
        With q = e^(−ε/D), one law of a coordinate that moved by s has mass q^(A+1)·(q^−s − 1)/(1 + q −
        2q^(A+1)) where the other has none (s ≤ D ≤ A); that is convex in s and 0 at 0, so over several
        coordinates the masses add up to at most that of s = D, and A is the least integer for which this is
        at most δ. Outside that event the loss is at most ε. Source: Geng, Ding, Guo, Kumar 2020, "Tight
        analysis of privacy and utility tradeoff in approximate differential privacy", here for the
        integer law that is drawn.
    """

    epsilon: Fraction
    delta: Fraction
    sensitivity: Fraction
    coordinates: int | None
    _rate: Fraction = field(compare=False)
    _grid: Grid = field(compare=False)
    _reach: int = field(compare=False)
    _loss: ApproximateLoss = field(compare=False)

    def __init__(
        self, epsilon: Rational, delta: Rational, *, sensitivity: Rational, coordinates: int | None = None
    ) -> None:
        """Fix the noise and its bound from the price and the L1 sensitivity.

        Raises:
            InvalidParameter: for unusable numbers, or a delta of 1/2 or more.
        """
        price, risk = positive(epsilon, "epsilon"), probability(delta, "delta")
        if risk >= Fraction(1, 2):
            raise InvalidParameter("delta must be below 1/2 for truncated noise (and should be far below).")
        if price > 700:
            raise InvalidParameter("epsilon must be at most 700 for truncated noise.")
        length = positive(sensitivity, "sensitivity")
        grid = Grid.below(min(length, length / price), BITS)
        shift = shift_of(grid, length) + changed(coordinates) - 1
        rate = price / shift
        checked(1 / rate)
        freeze(self, epsilon=price, delta=risk, sensitivity=length, coordinates=coordinates, _rate=rate)
        freeze(self, _grid=grid, _reach=_least_reach(price, risk, shift), _loss=ApproximateLoss(price, risk))

    def __repr__(self) -> str:
        return shown(
            "TruncatedLaplace",
            epsilon=self.epsilon,
            delta=self.delta,
            sensitivity=self.sensitivity,
            coordinates=self.coordinates,
        )

    @property
    def loss(self) -> ApproximateLoss:
        """What one release costs."""
        return self._loss

    @property
    def grid(self) -> float:
        """The power of two that every release is a multiple of."""
        return self._grid.step

    @property
    def scale(self) -> float:
        """The scale that the noise falls with inside the bound, the nearest float."""
        return float(self._grid.length(1 / self._rate))

    @property
    def bound(self) -> float:
        """No noise is larger than this, rounded up; the rounding of a value to the grid adds half a step."""
        return up(ball(self._grid.length(self._reach)))

    @property
    def variance(self) -> float:
        """The variance of the noise on the grid, rounded up."""
        with ctx.workprec(4 * PRECISION):
            a, q = self._reach, (-ball(self._rate)).exp()
            end = (-ball(self._rate * (a + 1))).exp()
            sum_of_squares = q * (1 + q) - end * ((a + 1) ** 2 - (2 * a * a + 2 * a - 1) * q + a * a * q * q)
            moment = 2 * sum_of_squares / ((1 - q) ** 2 * (1 + q - 2 * end))
            return up(moment * ball(self._grid.length(1)) ** 2)

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric (and rounding a value to the grid moves it by half a step at most)."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The half-width w with P(|noise| ≤ w for all of `size` coordinates) ≥ confidence, rounded up.

        The exact quantile on the grid, never above `bound`, and half a step for rounding the input.
        """
        with ctx.workprec(PRECISION):
            q, end = (-ball(self._rate)).exp(), (-ball(self._rate * (self._reach + 1))).exp()
            # P(|k| > w) = 2(q^(w+1) − q^(A+1))/(1 + q − 2q^(A+1))
            tail = failure(confidence, size) * (1 + q - 2 * end) / 2 + end
            width = min(self._reach, max(0, ceiling(-tail.log() / ball(self._rate)) - 1))
            return up(ball(self._grid.length(width + Fraction(1, 2))))

    def _log_law(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        rate, reach = float(self._rate), self._reach
        return per_step(lambda units: truncated_log(units, rate, reach), noise, self.grid)

    @overload
    def release(self, value: Number) -> float: ...
    @overload
    def release(self, value: ArrayLike) -> NDArray[np.float64]: ...
    def release(self, value: Any) -> float | NDArray[np.float64]:
        """The value with noise: a float for a number, an array of the same shape for an array.

        Raises:
            InvalidValue: for NaN, infinity, truth values, and for arrays unless `coordinates` was given;
                outside the claim.
        """
        return release_on(self._grid, value, self._noise, arrays=self.coordinates is not None)

    def _noise(self, size: int) -> NDArray[np.int64]:
        return signed(self._magnitudes, size)

    def _magnitudes(self, size: int) -> NDArray[np.int64]:
        return fold(self._rate, self._reach + 1, size)


def _least_reach(epsilon: Fraction, delta: Fraction, shift: int) -> int:
    """The least A ≥ D with q^(A+1)·(e^ε − 1) ≤ δ(1 + q − 2q^(A+1)), q = e^(−ε/D); at most one too large."""
    with ctx.workprec(PRECISION):
        rate, risk = ball(epsilon / shift), ball(delta)
        gain: arb = ball(epsilon).expm1()
        reach = ceiling(((gain + 2 * risk) / (risk * (1 + (-rate).exp()))).log() / rate) - 1
        return max(reach, shift)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        Example.of_release(
            "truncated laplace", TruncatedLaplace(1, "0.01", sensitivity=1, coordinates=1), 0.0, 1.0
        ),
        Example.of_release(
            "truncated laplace: vector",
            TruncatedLaplace(1, "0.05", sensitivity=1, coordinates=2),
            (0.0, 0.0),
            (0.5, 0.5),
        ),
    )
