"""The median of bounded values, and how much it may move some changes away from the data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.loss import Adjacency
from sfumato.numeric.exact import as_integer
from sfumato.numeric.private_values import floats_of

__all__ = ["FAR", "Median", "median_of"]

FAR = 2**62
"""The distance to data that does not exist."""


_FLAT = "Values must be a flat array of numbers."
_REACH = 32.0  # e^−32 is below 2**-46: `SmoothSensitivity` clamps at 2**-41 of the span or more


@dataclass(frozen=True, slots=True)
class Median:
    """A median with bounds on its local sensitivity: private, to be handed to a mechanism and to nobody else.

    Attributes:
        value: The order statistic of rank ⌈n/2⌉; `lower` if there are no values.
        span: upper − lower, the most it can ever move.
        reach: How many entries `moves` has; beyond the last one the bound is `span`.

    Privacy:
        What mechanisms rely on: moves[0] ≥ |median(x) − median(x')| for neighbours x, x', and
        moves(x)[k] ≤ moves(x')[k+1].
        Add or remove: with j changes the median reaches exactly the order statistics of ranks ⌈(n−j)/2⌉ to
        ⌈(n+j)/2⌉ (add below or remove above lowers the rank by a half each, and conversely), ranks outside
        1…n meaning the bounds. moves[k] is the length of that interval for j = k+1. The interval of x for j
        lies within that of x' for j+1, since what is j changes from x is at most j+1 from x'. Exchange:
        moves[k] = max over 0 ≤ t ≤ k+1 of x_(m+t) − x_(m+t−k−1), the exact local sensitivity at distance k
        (Nissim, Raskhodnikova, Smith 2007, section 3). Cutting the list short, at a place that does not
        depend on the data, keeps both properties.
    """

    value: float
    span: float
    reach: int
    _adjacency: Adjacency
    _odd: bool
    _below: NDArray[np.float64]  # the order statistics from the median downwards
    _above: NDArray[np.float64]  # and upwards

    @property
    def moves(self) -> NDArray[np.float64]:
        """moves[k] bounds how far the median jumps between two neighbours of which one is k changes away.

        Under exchange this takes time quadratic in `reach`; `smooth` and `distance` do not need all of it.
        """
        return self._first(self.reach)

    def smooth(self, beta: float) -> float:
        """The β-smooth bound max_k e^(−βk)·moves[k], up to a relative rounding of 2**-41.

        Entries from k = ⌈32/β⌉ on count as the span, which only matters below e^−32 of it. The place of the
        cut is public, so that the time taken does not tell the bound.

        Raises:
            InvalidParameter: unless beta is a finite number above 0.
        """
        if not isinstance(beta, int | float | np.integer | np.floating) or not 0 < beta < math.inf:
            raise InvalidParameter("beta must be a finite number above 0: use the mechanism's own, .beta.")
        count = math.ceil(min(float(self.reach), _REACH / beta))
        moves = self._first(count)
        peak = float((np.exp(-beta * np.arange(count)) * moves).max(initial=0.0))
        return max(peak, math.exp(-beta * count) * self.span)

    def distance(self, bound: float) -> int:
        """How many changes away the median may first move by more than `bound`; moves by at most 1 itself."""
        distance = self._pairs(bound) if self._adjacency == "exchange" else self._ranks(bound)
        if distance < self.reach:
            return distance
        return self.reach if self.span > bound else FAR

    def _first(self, count: int) -> NDArray[np.float64]:
        """The first entries of `moves`."""
        if self._adjacency == "exchange":
            below = self._below[::-1]
            windows = ((self._above[: k + 2] - below[-k - 2 :]).max() for k in range(count))
            return np.fromiter(windows, np.float64, count)
        j = np.arange(1, count + 1)
        shorter, longer = j // 2, (j + 1) // 2  # an odd table falls by the longer half, an even one rises
        up, down = (shorter, longer) if self._odd else (longer, shorter)
        moves: NDArray[np.float64] = self._above[up] - self._below[down]
        return moves

    def _ranks(self, bound: float) -> int:
        beyond = np.flatnonzero(self._first(self.reach) > bound)
        return int(beyond[0]) if beyond.size else self.reach

    def _pairs(self, bound: float) -> int:
        """The least k with x_(m+t) − x_(m+t−k−1) > bound for some t.

        Two pointers: the lower the one end, the lower the first that is far enough above it.
        """
        above, t, least = self._above.tolist(), self._above.size, self.reach
        for down, low in enumerate(self._below.tolist()):
            while t and above[t - 1] - low > bound:
                t -= 1
            if t < len(above):
                least = min(least, down + t - 1)
        return max(least, 0)


def median_of(
    values: Any,
    lower: float,
    *,
    upper: float,
    adjacency: Adjacency = "add-remove",
    reach: int | None = None,
) -> Median:
    """The median of values clamped to [lower, upper], with its local sensitivities.

    Args:
        values: The private values, a flat array or list. Each is read by itself; what is not a number (NaN,
            None, text in a list) counts as the lower bound.
        lower: The public lower bound.
        upper: The public upper bound.
        adjacency: "add-remove", or "exchange" where the number of values is public.
        reach: How many distances to work out (a public number); all of them by default. The rest count as
            the span.

    Raises:
        InvalidParameter: if the bounds are not finite and in order.
        InvalidValue: if the values are not a flat column, or of a declared type without numbers.
    """
    low, high = float(lower), float(upper)
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise InvalidParameter("lower and upper must be finite numbers with lower < upper.")
    if adjacency not in ("add-remove", "exchange"):
        raise InvalidParameter('adjacency must be "add-remove" or "exchange".')
    ordered = _ordered(values, low, high)
    n = ordered.size
    limit = n if reach is None else as_integer(reach, "reach", least=0)
    middle = (n + 1) // 2 - 1  # a place in `ordered`, -1 if that is empty
    value = float(ordered[middle]) if n else low
    # One entry for each rank that any distance below the limit can reach.
    below, above = np.full(limit + 2, low), np.full(limit + 2, high)
    near = ordered[max(0, middle - limit - 1) : middle + 1][::-1]
    below[: near.size] = near
    near = ordered[max(0, middle) : middle + limit + 2]
    above[: near.size] = near
    if not n:
        above[0] = low
    return Median(value, high - low, limit, adjacency, n % 2 == 1, below, above)


def _ordered(values: Any, low: float, high: float) -> NDArray[np.float64]:
    floats = floats_of(values, flat=_FLAT, other=_FLAT, kinds="biuf")
    return np.sort(np.clip(np.where(np.isnan(floats), low, floats), low, high))
