"""Sample and aggregate: any function, made private by running it on disjoint parts of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import PrivacyLoss
from sfumato.mechanisms._median import median_of
from sfumato.mechanisms._rows import rows_of
from sfumato.mechanisms._scores import nearest
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.smooth_sensitivity import SmoothSensitivity
from sfumato.numeric.exact import Rational, as_fraction, as_integer, float_up, floor_log2, positive
from sfumato.numeric.frozen import freeze, shown
from sfumato.numeric.private_ids import ids_of
from sfumato.numeric.private_values import float_of

__all__ = ["Aggregate", "SampleAndAggregate", "examples"]

Aggregate: TypeAlias = Literal["mean", "median"]

# Each part's answer is one of 2**30 or so levels between the bounds, so that 2**22 of them add up exactly
# in a float.
_BITS, _MOST_CHUNKS = 30, 2**22


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SampleAndAggregate(Mechanism):
    """Runs a function on `chunks` disjoint parts of the data and releases the mean or median of its answers.

    Nothing is asked of the function but to be a function of its part: it may be any statistic or model. The
    answer is as good as the function is stable on a `chunks`-th of the data. Try it on made-up rows first:
    a part on which it fails counts as the middle of the bounds, and nobody is told.

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
        A part is an array of its own, which shares no memory with the others, of a type that no row decides:
        that of a NumPy array, or the declared `dtype`, to which every value of a list is converted by
        itself. Units are compared each by itself (`Ids`); a row whose unit is missing is left out.
        An empty part counts as the middle of the bounds, and so does one on which the function raises, or
        gives NaN or anything but one number; the divisor is always `chunks`.
        Source: Nissim, Raskhodnikova, Smith 2007; Smith 2011. Slicing by position instead would
        move rows across all parts when one is inserted. Conditions: the function keeps no memory between
        parts, and what it prints, warns of or takes time for does not reach the analyst. Refusals
        are by the declared type and shape alone.
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
        self,
        function: Callable[[NDArray[Any]], float],
        values: Any,
        *,
        units: Any = None,
        dtype: DTypeLike | None = None,
    ) -> float:
        """The mean or median of the function's answers on the parts, with noise.

        Args:
            function: What to run on each non-empty part: takes rows, gives a number.
            values: The private rows, along the first axis.
            units: Whose row each one is; without it every row is a unit of its own. A row whose unit is
                missing (None, NaN) is left out.
            dtype: The type of the parts: `bool`, `int`, `float` or `object`, or `(float, 3)` where each row
                is a list of three numbers. Every value is converted by itself: what is not a number is NaN, 0
                or False, what is too large for an integer is clamped. Without it NumPy arrays keep their own
                type, and all other values become floats.

        Raises:
            InvalidParameter: if the function is not one, or the dtype is another.
            InvalidValue: if the values are not an array with rows, or the units not one for each row.
        """
        levels = self.answers(function, values, units, dtype=dtype)
        if isinstance(self._inner, Laplace):
            noisy = self._inner.release(float(levels.sum())) / self.chunks
        else:
            # Beyond this many changes e^(−βk) times the span is below a grid step, and clamped to it.
            reach = min(self.chunks, math.ceil(30 / self._inner.beta))
            median = median_of(levels, 0.0, upper=float(self._levels), adjacency="exchange", reach=reach)
            noisy = self._inner.release(median.value, median.smooth(self._inner.beta))
        return nearest(self.lower + Fraction(noisy) * Fraction(2) ** self._exponent)

    def answers(
        self,
        function: Callable[[NDArray[Any]], float],
        values: Any,
        units: Any = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> NDArray[np.int64]:
        """The answer of each part in whole levels above `lower`: private; one unit changes one of them."""
        if not callable(function):
            raise InvalidParameter("Give the function first, then the values.")
        rows = rows_of(values, dtype)
        homes = self._homes(len(rows), units)
        placed = homes >= 0
        rows, homes = rows[placed], homes[placed]
        order = np.argsort(homes, kind="stable")
        ends = np.searchsorted(homes[order], np.arange(self.chunks + 1))
        levels = np.full(self.chunks, self._levels // 2, np.int64)
        for part in np.unique(homes).tolist():
            # A copy: a view would hand everybody's rows to the function, as its base.
            levels[part] = self._level(_tried(function, rows[order[ends[part] : ends[part + 1]]].copy()))
        return levels

    def _homes(self, count: int, units: Any) -> NDArray[np.int64]:
        """The part of each row; −1 for one without a unit."""
        if units is None:
            return random.integers(self.chunks, count)
        whose = ids_of(units, rows=count, uneven="Units must be a flat list with one entry for each row.")
        homes = np.append(random.integers(self.chunks, len(whose)), -1)
        return np.asarray(homes[whose.codes], np.int64)

    def _level(self, number: float) -> int:
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


def _tried(function: Callable[[NDArray[Any]], float], part: NDArray[Any]) -> float:
    """What the function gives for a part; NaN where it fails, or gives anything but one number."""
    try:
        answer = function(part)
        if isinstance(answer, str | bytes | complex | np.complexfloating) or np.ndim(answer):
            return math.nan
        return float_of(answer) if isinstance(answer, int | Fraction | np.generic) else float(answer)
    except Exception:  # which part fails, and how, is a fact about its rows
        return math.nan


def _mean(part: NDArray[Any]) -> float:
    return float(part.mean())


def _example(name: str, mechanism: SampleAndAggregate, left: list[float], right: list[float]) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.float64]:
        rows = left if side == "left" else right
        return np.array([mechanism.release(_mean, rows) for _ in range(count)])

    return Example(name, mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        # One part holds everything, so one row decides it. The median's noise is that of `SmoothSensitivity`.
        _example("sample-and-aggregate", SampleAndAggregate(1, 0, upper=1, chunks=1), [1.0], [0.0]),
    )
