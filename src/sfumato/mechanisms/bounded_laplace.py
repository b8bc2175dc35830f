"""Bounded Laplace: every answer lies in a public interval, without a delta and at a larger scale."""

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
from sfumato.mechanisms._grid import Grid
from sfumato.mechanisms._lattice import BITS, changed, checked, fold, is_number, priced, shift_of
from sfumato.mechanisms._numbers import Number
from sfumato.mechanisms.base import Example, Mechanism
from sfumato.numeric.exact import Rational, as_fraction, positive
from sfumato.numeric.figures import PRECISION, ball, ceiling, failure, up
from sfumato.numeric.frozen import freeze, shown

__all__ = ["BoundedLaplace", "examples"]

_TRIES = 32  # candidates drawn for each answer, at least every second of which lies in the interval
_ROWS = 1 << 12


@dataclass(frozen=True, slots=True, init=False, repr=False)
class BoundedLaplace(Mechanism):
    """Answers from Laplace noise around the value, conditioned on lying in [lower, upper].

    Not the same as clamping a Laplace answer (which is free post-processing): here no answer piles up at the
    ends, and the scale is larger, because the condition itself depends on where the value lies. In grid
    units the law is P(y) ∝ exp(−|y − x|·rate) on the integers of the interval. Values outside the interval
    are clamped to it first.

    Attributes:
        epsilon: The price, exact.
        sensitivity: The most that one number can move between neighbours, exact.
        lower: The least answer.
        upper: The greatest answer.
        coordinates: In how many coordinates of an array neighbours may differ, each by at most
            `sensitivity`; None: single numbers only. The price is divided evenly between them.

    Privacy:
        Claim: ε-DP for neighbours as above, with no delta. Proof for one coordinate: rounded and clamped
        inputs move by at most D = min(⌈Δ/Γ⌉, N − 1) of the N grid points. With C(x) the normaliser, which is
        concave on the interval and changes by a factor of at most e^rate a step, P_x(y)/P_x'(y) ≤ e^(rate·|x
        − x'|)·C(x')/C(x), and this is largest at the end, x = lower and x' = x + D: D·rate + ln(C(lower +
        D)/C(lower)). The rate is the largest float for which that is at most ε, decided in ball arithmetic;
        ε/(2D) always is one. Source: Holohan, Antonatos, Braghin, Mac Aonghusa 2020, "The bounded Laplace
        mechanism in differential privacy", here for the integer law that is drawn. Drawing: as
        many candidates for every answer, the first that fits, so that the time does not tell where the value
        lies (but for an event of probability 2**-32).
    """

    epsilon: Fraction
    sensitivity: Fraction
    lower: Fraction
    upper: Fraction
    coordinates: int | None
    _rate: Fraction = field(compare=False)
    _grid: Grid = field(compare=False)
    _ends: tuple[int, int] = field(compare=False)
    _loss: PureLoss = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        sensitivity: Rational,
        *,
        lower: Rational,
        upper: Rational,
        coordinates: int | None = None,
    ) -> None:
        """Fix the noise from the price, the sensitivity of one number and the public interval.

        Raises:
            InvalidParameter: for unusable numbers, or an interval that is empty or far longer than the noise.
        """
        price, bound = positive(epsilon, "epsilon"), positive(sensitivity, "sensitivity")
        low, high = as_fraction(lower, "lower"), as_fraction(upper, "upper")
        if low >= high:
            raise InvalidParameter("lower must be less than upper.")
        single = price / changed(coordinates)
        grid = Grid.below(min(bound, bound / single, high - low), BITS)
        ends = -(-grid.units(low) // 1), grid.units(high) // 1
        if max(-ends[0], ends[1]) > 2**61:
            raise InvalidParameter("The interval is too far from zero, or too long, beside the noise.")
        points = ends[1] - ends[0] + 1
        rate = _greatest_rate(single, min(shift_of(grid, bound), points - 1), points)
        checked(1 / rate)
        freeze(self, epsilon=price, sensitivity=bound, lower=low, upper=high, coordinates=coordinates)
        freeze(self, _rate=rate, _grid=grid, _ends=ends, _loss=PureLoss(price))

    def __repr__(self) -> str:
        return shown(
            "BoundedLaplace",
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            lower=self.lower,
            upper=self.upper,
            coordinates=self.coordinates,
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
        """The scale that the answers fall off with around the value: between one and two times Δ/ε."""
        return float(self._grid.length(1 / self._rate))

    @property
    def variance(self) -> None:
        """None: it depends on where in the interval the value lies."""
        return None

    @property
    def bias(self) -> None:
        """None: answers are drawn towards the middle, by how much depends on where the value lies."""
        return None

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The half-width w with P(|answer − value| ≤ w for all of `size`) ≥ confidence, for every value.

        The value is meant within the interval. With A and B grid points to its left and right, the failure is
        largest at an end of the interval or in its middle; the larger of the two exact quantiles is given,
        rounded up, with a step for rounding the input.
        """
        low, high = self._ends
        points = high - low + 1
        with ctx.workprec(PRECISION):
            rate, allowed = ball(self._rate), failure(confidence, size)
            q, end, middle = (
                (-rate).exp(),
                (-rate * points).exp(),
                (-rate * (points + 1) / 2).exp(),
            )
            tail = (allowed * (1 - end) + end).min(allowed * (1 + q - 2 * middle) / 2 + middle)
            width = min(points - 1, max(0, ceiling(-tail.log() / rate) - 1))
            return up(ball(self._grid.length(width + 1)))

    @overload
    def release(self, value: Number) -> float: ...
    @overload
    def release(self, value: ArrayLike) -> NDArray[np.float64]: ...
    def release(self, value: Any) -> float | NDArray[np.float64]:
        """An answer from the interval: a float for a number, an array of the same shape for an array.

        Raises:
            InvalidValue: for NaN, infinity, truth values, and for arrays unless `coordinates` was given;
                outside the claim.
        """
        if is_number(value):
            return int(self._answers(np.array([self._grid.nearest(value)]))[0]) * self._grid.step
        array = priced(value, arrays=self.coordinates is not None)
        if not array.size:
            return np.zeros(array.shape)
        return self._grid.floats(self._answers(self._grid.nearest_array(array))).reshape(array.shape)

    def _answers(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        centres = np.clip(values, *self._ends)
        parts = [self._around(centres[start : start + _ROWS]) for start in range(0, centres.size, _ROWS)]
        return np.concatenate(parts)

    def _around(self, centres: NDArray[np.int64]) -> NDArray[np.int64]:
        """One answer for each centre: the first of `_TRIES` candidates that lies in the interval."""
        low, high = self._ends
        count = centres.size * _TRIES
        magnitudes = fold(self._rate, high - low + 1, count)
        negative = random.integers(2, count).astype(np.bool_)
        minus_zero = negative & (magnitudes == 0)
        np.negative(magnitudes, out=magnitudes, where=negative)
        candidates = centres[:, np.newaxis] + magnitudes.reshape(-1, _TRIES)
        fits = (candidates >= low) & (candidates <= high) & ~minus_zero.reshape(-1, _TRIES)
        first = fits.argmax(axis=1)
        rows = np.arange(centres.size)
        answers: NDArray[np.int64] = candidates[rows, first]
        missed = ~fits[rows, first]
        if missed.any():
            answers[missed] = self._around(centres[missed])
        return answers


def _greatest_rate(epsilon: Fraction, shift: int, points: int) -> Fraction:
    """The largest rate, to 40 bits, at which the worst log-ratio is proven to be at most ε."""

    def holds(rate: Fraction) -> bool:
        with ctx.workprec(PRECISION):
            a = ball(rate)
            worst: arb = (
                a * shift
                + (
                    (1 + (-a).exp() - (-a * (shift + 1)).exp() - (-a * (points - shift)).exp())
                    / (1 - (-a * points).exp())
                ).log()
            )
            return bool(worst <= ball(epsilon))

    low, high = epsilon / (2 * shift), epsilon / shift
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        Example.of_release(
            "bounded laplace",
            BoundedLaplace(1, 1, lower=0, upper=3, coordinates=1),
            0.0,
            1.0,
            additive=False,  # the width is that of the worst place in the interval
        ),
    )
