"""Sample and aggregate: any function, made private by running it on disjoint parts of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms._figures import freeze, shown
from sfumato.mechanisms._grid import floor_log2
from sfumato.mechanisms._median import median_of
from sfumato.mechanisms._scores import nearest
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.smooth_sensitivity import SmoothSensitivity
from sfumato.numeric.exact import Rational, as_fraction, as_integer, float_up, positive

__all__ = ["EXAMPLES", "Aggregate", "SampleAndAggregate"]

Aggregate: TypeAlias = Literal["mean", "median"]

# Each part's answer is one of 2**30 or so levels between the bounds, so that 2**22 of them add up exactly
# in a float.
_BITS, _MOST_CHUNKS = 30, 2**22


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SampleAndAggregate(Mechanism):
    """Runs a function on `chunks` disjoint parts of the data and releases the mean or median of its answers.

    Nothing is asked of the function but to be a function of its part: it may be any statistic or model. The
    answer is as good as the function is stable on a `chunks`-th of the data.

    Attributes:
        epsilon: The pure price.
        lower: The public lower bound; answers below count as it.
        upper: The public upper bound; answers above count as it.
        chunks: How many parts; public, never derived from the private number of rows.
        aggregate: "mean" (Laplace noise of scale (upper − lower)/(chunks·ε)) or "median" (noise by smooth
            sensitivity: less where most parts agree).

    Privacy:
        Claim: ε-DP for adding, removing or replacing one unit, whatever the function does. Each unit's rows
        go to one part, drawn independently of everything else; fix those draws. Another unit more or less
        then leaves every other row in its part and in its order, so one of `chunks` answers changes
        (replacing a unit: the new one takes the place of the old). The clamped answers enter a mean of
        sensitivity (upper − lower)/chunks, or a median under exchange of one of a public number of values.
        An empty part, or NaN, counts as the middle of the bounds and the divisor is always `chunks`.
        Source: Nissim, Raskhodnikova, Smith 2007; Smith 2011. Slicing by position instead would
        move rows across all parts when one is inserted. Conditions: the function keeps no memory between
        parts and its errors do not reach the analyst.
    """

    epsilon: Fraction
    lower: Fraction
    upper: Fraction
    chunks: int
    aggregate: Aggregate
    _inner: Laplace | SmoothSensitivity = field(compare=False)
    _exponent: int = field(compare=False)
    _levels: int = field(compare=False)

    def __init__(
        self,
        epsilon: Rational,
        lower: Rational,
        *,
        upper: Rational,
        chunks: int,
        aggregate: Aggregate = "mean",
    ) -> None:
        """Fix the noise from the price, the bounds and the number of parts.

        Raises:
            InvalidParameter: for bounds out of order, a number of parts out of range or an unknown aggregate.
        """
        price, low, high = (
            positive(epsilon, "epsilon"),
            as_fraction(lower, "lower"),
            as_fraction(upper, "upper"),
        )
        parts = as_integer(chunks, "chunks")
        if not low < high:
            raise InvalidParameter("lower must be less than upper.")
        if parts > _MOST_CHUNKS:
            raise InvalidParameter(f"chunks must be at most {_MOST_CHUNKS}.")
        span = positive(high - low, "upper - lower")
        exponent = floor_log2(span) - _BITS
        levels = math.ceil(span / Fraction(2) ** exponent)
        inner: Laplace | SmoothSensitivity
        if aggregate == "mean":
            # The sum of the levels moves by at most `levels` when one part's answer changes.
            inner = Laplace(price, levels)
            if inner.grid * 2.0**62 < parts * levels:  # where it clamps
                raise InvalidParameter("epsilon is too large for so many parts: use a smaller one.")
        elif aggregate == "median":
            inner = SmoothSensitivity(price, levels)
        else:
            raise InvalidParameter('aggregate must be "mean" or "median".')
        freeze(self, epsilon=price, lower=low, upper=high, chunks=parts, aggregate=aggregate)
        freeze(self, _inner=inner, _exponent=exponent, _levels=levels)

    def __repr__(self) -> str:
        bounds = {"epsilon": self.epsilon, "lower": self.lower, "upper": self.upper}
        return shown("SampleAndAggregate", **bounds, chunks=self.chunks, aggregate=self.aggregate)

    @property
    def loss(self) -> PrivacyLoss:
        """That of the aggregate's noise: pure ε."""
        return self._inner.loss

    def release(
        self, function: Callable[[NDArray[Any]], float], values: ArrayLike, *, units: ArrayLike | None = None
    ) -> float:
        """The mean or median of the function's answers on the parts, with noise.

        Args:
            function: What to run on each non-empty part: takes rows, gives a number.
            values: The private rows, along the first axis.
            units: Whose row each one is; without it every row is a unit of its own.

        Raises:
            InvalidParameter: if the function is not one.
            InvalidValue: if the values are not an array with rows, the units not one for each row, or the
                answer on a part not one number.
        """
        if not callable(function):
            raise InvalidParameter("Give the function first, then the values.")
        levels = self.answers(function, values, units)
        if isinstance(self._inner, Laplace):
            noisy = self._inner.release(float(levels.sum())) / self.chunks
        else:
            # Beyond this many changes e^(−βk) times the span is below a grid step, and clamped to it.
            reach = min(self.chunks, math.ceil(30 / self._inner.beta))
            median = median_of(levels, 0.0, upper=float(self._levels), adjacency="exchange", reach=reach)
            noisy = self._inner.release(median.value, median.smooth(self._inner.beta))
        return nearest(self.lower + Fraction(noisy) * Fraction(2) ** self._exponent)

    def answers(
        self, function: Callable[[NDArray[Any]], float], values: ArrayLike, units: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """The answer of each part in whole levels above `lower`: private; one unit changes one of them."""
        try:
            rows = np.asarray(values)
        except ValueError:
            raise InvalidValue("Values must be an array with one row for each record.") from None
        if rows.ndim == 0:
            raise InvalidValue("Values must be an array with one row for each record.")
        homes = self._homes(len(rows), units)
        order = np.argsort(homes, kind="stable")
        cuts = np.searchsorted(homes[order], np.arange(1, self.chunks))
        parts = np.split(rows[order], cuts)
        return np.array([self._level(function(part)) if len(part) else self._levels // 2 for part in parts])

    def _homes(self, count: int, units: ArrayLike | None) -> NDArray[np.int64]:
        if units is None:
            return random.integers(self.chunks, count)
        whose = np.asarray(units)
        if whose.shape != (count,):
            raise InvalidValue("Units must be a flat array with one entry for each row.")
        try:
            distinct, inverse = np.unique(whose, return_inverse=True)
        except TypeError:
            raise InvalidValue("Units must all be of one kind that can be sorted, such as text.") from None
        return random.integers(self.chunks, len(distinct))[inverse]

    def _level(self, answer: float) -> int:
        number = _one_number(answer)
        if math.isnan(number):
            return self._levels // 2
        if math.isinf(number):
            return self._levels if number > 0 else 0
        return min(max((Fraction(number) - self.lower) // Fraction(2) ** self._exponent, 0), self._levels)

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The half-width of the noise around the mean of the parts' answers (not the function of all data).

        Raises:
            InvalidParameter: for the median, whose noise has a private scale.
        """
        if not isinstance(self._inner, Laplace):
            raise InvalidParameter(
                "The noise of a private median depends on the data, so its size cannot be told."
            )
        step = Fraction(2) ** self._exponent
        # One level for the rounding of the answers, one for that of the sum and its shift.
        return float_up((Fraction(self._inner.error(confidence, size=size)) / self.chunks + 2) * step)

    @property
    def variance(self) -> float | None:
        """The variance of the noise of a mean; None for a median."""
        if not isinstance(self._inner, Laplace):
            return None
        return math.ldexp(self._inner.variance, 2 * self._exponent) / self.chunks**2

    @property
    def bias(self) -> None:
        """None: it depends on how the function behaves on a part of the data."""
        return None


def _one_number(answer: Any) -> float:
    """What the function gave for a part, as a float; infinite where it is beyond them."""
    try:
        if isinstance(answer, str | bytes | np.complexfloating) or np.ndim(answer):
            raise TypeError
        return float(answer)
    except OverflowError:
        return math.inf if answer > 0 else -math.inf
    except (TypeError, ValueError):
        raise InvalidValue("The function must give one number for each part.") from None


def _mean(part: NDArray[Any]) -> float:
    return float(part.mean())


def _example(name: str, mechanism: SampleAndAggregate, left: list[float], right: list[float]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.float64]:
        rows = left if side == "left" else right
        return np.array([mechanism.release(_mean, rows) for _ in range(count)])

    return Example(name, mechanism, left, right, draw)


EXAMPLES = (
    # One part holds everything, so one row decides it. The median's noise is that of `SmoothSensitivity`.
    _example("sample-and-aggregate", SampleAndAggregate(1, 0, upper=1, chunks=1), [1.0], [0.0]),
)
