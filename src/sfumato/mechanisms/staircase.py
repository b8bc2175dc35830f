"""The staircase mechanism: the least expected noise of any pure mechanism for one number."""

from __future__ import annotations

from dataclasses import field
from fractions import Fraction
from typing import Any, overload

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import PureLoss
from sfumato.mechanisms._coins import Coin
from sfumato.mechanisms._density import Dense, per_step, staircase_log
from sfumato.mechanisms._grid import Grid
from sfumato.mechanisms._lattice import BITS, changed, checked, release_on, shift_of, signed
from sfumato.mechanisms._numbers import Number
from sfumato.mechanisms.base import Example, Mechanism
from sfumato.numeric.exact import Rational, positive, probability
from sfumato.numeric.figures import PRECISION, ball, ceiling, failure, up, upper
from sfumato.numeric.frozen import freeze, shown

__all__ = ["Staircase", "examples"]

_WIDEST = 50  # a period is at most 2**50 grid units or so


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Staircase(Dense, Mechanism):
    """Adds staircase noise: flat steps whose height falls by e^−ε once every `sensitivity`.

    In grid units the law is P(k) ∝ e^(−ε·level(|k|)), where level(m) = ⌊m/D⌋, plus one in the last D − R
    units of each period of D. A release is a multiple of the public grid `grid`; values beyond ±2**61 of it
    are clamped.

    Attributes:
        epsilon: The price, exact.
        sensitivity: The most that one number can move between neighbours, exact.
        coordinates: In how many coordinates of an array neighbours may differ, each by at most
            `sensitivity`; None: single numbers only. The price is divided evenly between them.

    Privacy:
        Claim: ε-DP for neighbours as above. Proof for one coordinate: rounded inputs move by at most D =
        ⌈Δ/Γ⌉ grid units, and levels of two integers at most D apart differ by at most 1 (on one side because
        level(m + D) = level(m) + 1 and level is monotone; across zero because |i| + |j| ≤ D leaves both
        levels in {0, 1}). Source: Geng, Viswanath 2016, "The optimal noise-adding mechanism in differential
        privacy", and its integer version. Condition: unlike Laplace noise, a shift by *less* than Δ can
        already cost all of ε, so an L1 sensitivity spread over several coordinates is not enough; hence
        `coordinates`.
    """

    epsilon: Fraction
    sensitivity: Fraction
    coordinates: int | None
    gamma: Fraction
    _each: Fraction = field(compare=False)
    _grid: Grid = field(compare=False)
    _period: int = field(compare=False)
    _high: int = field(compare=False)
    _coin: Coin = field(compare=False)
    _loss: PureLoss = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational,
        *,
        coordinates: int | None = None,
        gamma: Rational | None = None,
    ) -> None:
        """Fix the steps from the price and the sensitivity of one number.

        Args:
            epsilon: The price.
            sensitivity: The most that a number can move between neighbours.
            coordinates: Needed for arrays: in how many coordinates neighbours may differ.
            gamma: Which part of a period is the higher step; by default 1/(1 + e^(ε/2)), which makes the
                expected magnitude of the noise least.

        Raises:
            InvalidParameter: for unusable numbers.
        """
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        single = price / changed(coordinates)
        if single > 1000:
            raise InvalidParameter(
                "epsilon above 1000 for a coordinate leaves no noise to draw: use a smaller one."
            )
        share = _best(single) if gamma is None else probability(gamma, "gamma")
        grid = Grid.below(max(bound * share, bound / 2 ** (_WIDEST - BITS)), BITS)
        period = shift_of(grid, bound)
        checked(period / single)
        high = min(max(1, round(share * period)), period - 1)
        freeze(self, epsilon=price, sensitivity=bound, coordinates=coordinates, gamma=Fraction(high, period))
        freeze(self, _each=single, _grid=grid, _period=period, _high=high, _loss=PureLoss(price))
        freeze(self, _coin=Coin(_High(single, period, high)))

    def __repr__(self) -> str:
        return shown(
            "Staircase", epsilon=self.epsilon, sensitivity=self.sensitivity, coordinates=self.coordinates
        )

    @property
    def loss(self) -> PureLoss:
        """What one release costs."""
        return self._loss

    @property
    def grid(self) -> float:
        """The power of two that every release is a multiple of."""
        return self._grid.step

    @property
    def scale(self) -> float:
        """sensitivity/epsilon for one coordinate: over many periods the steps fall as Laplace noise does."""
        return float(self.sensitivity / self._each)

    @property
    def variance(self) -> float:
        """The variance of the noise on the grid, rounded up."""
        with ctx.workprec(PRECISION):
            return up(self._moment(2) * ball(self._grid.length(1)) ** 2)

    @property
    def magnitude(self) -> float:
        """The expected magnitude of the noise, rounded up: what `gamma` is chosen to make least."""
        with ctx.workprec(PRECISION):
            return up(self._moment(1) * ball(self._grid.length(1)))

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric (and rounding a value to the grid moves it by half a step at most)."""
        return 0.0

    def _moment(self, order: int) -> arb:
        """E|k|^order in grid units, order 1 or 2: a geometric number of periods, and a place in one."""
        d, r, b = self._period, self._high, (-ball(self._each)).exp()
        mass, first, second = (
            arb(high) + b * (whole - high) for high, whole in zip(_powers(r), _powers(d), strict=True)
        )
        periods, squares = b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3
        one = d * mass * periods + first / (1 - b)
        two = d * d * mass * squares + 2 * d * first * periods + second / (1 - b)
        return 2 * (one if order == 1 else two) / (2 * mass / (1 - b) - 1)

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The half-width w with P(|noise| ≤ w for all of `size` coordinates) ≥ confidence, rounded up.

        The exact quantile on the grid, and half a step for rounding the input.
        """
        with ctx.workprec(PRECISION):
            d, r, price = self._period, self._high, ball(self._each)
            b = (-price).exp()
            total = (r + b * (d - r)) / (1 - b)
            # The weight of all m ≥ K·D + j is b^K·(total − part(j)), and at most `allowed` is wanted.
            allowed = failure(confidence, size) * (2 * total - 1) / 2
            periods = max(0, ceiling((total / allowed).log() / price) - 1)
            missing = total - allowed * (price * periods).exp()
            inside = ceiling(missing)
            if inside > r:
                inside = r + ceiling((missing - r) / b)
            width = max(0, periods * d + inside - 1)
            return up(ball(self._grid.length(width + Fraction(1, 2))))

    def _log_law(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        single, period, high = float(self._each), self._period, self._high
        return per_step(lambda units: staircase_log(units, single, period, high), noise, self.grid)

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
        """A geometric number of periods, and a uniform place in the higher or the lower step of one.

        Periods are cut off where the noise is beyond 3·2**61 grid units, out of the reach of any answer.
        """
        periods = np.minimum(random.geometric(self._each, size), (2**63 - 1) // self._period - 1)
        low = self._high + random.integers(self._period - self._high, size)
        place = np.where(self._coin.toss(size), random.integers(self._high, size), low)
        return periods * self._period + place


@dataclass(frozen=True, slots=True)
class _High:
    """The probability of the higher step, R/(R + (D − R)e^−ε), as a ball."""

    epsilon: Fraction
    period: int
    high: int

    def __call__(self) -> arb:
        return self.high / (self.high + (self.period - self.high) * (-ball(self.epsilon)).exp())


def _best(epsilon: Fraction) -> Fraction:
    """1/(1 + e^(ε/2)): Geng, Viswanath 2016 (any value is private, this one is best)."""
    with ctx.workprec(PRECISION):
        return upper(1 / (1 + (ball(epsilon) / 2).exp()))


def _powers(n: int) -> tuple[int, int, int]:
    """Σ 1, Σ j, Σ j² over 0 ≤ j < n."""
    return n, n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        Example.of_release("staircase", Staircase(1, 1, coordinates=1), 0.0, 1.0),
        Example.of_release("staircase: large epsilon", Staircase(4, "0.3", coordinates=1), 2.0, 2.3),
        Example.of_release(
            "staircase: two coordinates", Staircase(2, 1, coordinates=2), (0.0, 0.0), (1.0, 1.0)
        ),
    )
