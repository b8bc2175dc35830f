"""The median of bounded values, and how much it may move some changes away from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import Adjacency

__all__ = ["FAR", "Median", "median_of"]

FAR = 2**62
"""The distance to data that does not exist."""


@dataclass(frozen=True, slots=True)
class Median:
    """A median with bounds on its local sensitivity: private, to be handed to a mechanism and to nobody else.

    Attributes:
        value: The order statistic of rank ⌈n/2⌉; `lower` if there are no values.
        moves: moves[k] bounds how far the median jumps between two neighbours of which one is k changes away;
            beyond the last entry the bound is `span`.
        span: upper − lower, the most it can ever move.

    Privacy:
        What mechanisms rely on: moves[0] ≥ |median(x) − median(x')| for neighbours x, x', and
        moves(x)[k] ≤ moves(x')[k+1].
        Add or remove: with j changes the median reaches exactly the order statistics of ranks ⌈(n−j)/2⌉ to
        ⌈(n+j)/2⌉ (add below or remove above lowers the rank by a half each, and conversely), ranks outside
        1…n meaning the bounds. moves[k] is the length of that interval for j = k+1. The interval of x for j
        lies within that of x' for j+1, since what is j changes from x is at most j+1 from x'. Exchange:
        moves[k] = max over 0 ≤ t ≤ k+1 of x_(m+t) − x_(m+t−k−1), the exact local sensitivity at distance k
        (Nissim, Raskhodnikova, Smith 2007, on the median). Cutting the list short keeps both properties.
    """

    value: float
    moves: NDArray[np.float64]
    span: float

    def smooth(self, beta: float) -> float:
        """The β-smooth bound max_k e^(−βk)·moves[k], up to a relative rounding of 2**-41."""
        k = np.arange(self.moves.size)
        peak = float((np.exp(-beta * k) * self.moves).max(initial=0.0))
        return max(peak, math.exp(-beta * self.moves.size) * self.span)

    def distance(self, bound: float) -> int:
        """How many changes away the median may first move by more than `bound`; moves by at most 1 itself."""
        beyond = np.flatnonzero(self.moves > bound)
        if beyond.size:
            return int(beyond[0])
        return self.moves.size if self.span > bound else FAR


def median_of(
    values: ArrayLike,
    lower: float,
    *,
    upper: float,
    adjacency: Adjacency = "add-remove",
    reach: int | None = None,
) -> Median:
    """The median of values clamped to [lower, upper], with its local sensitivities.

    Args:
        values: The private values, a flat array.
        lower: The public lower bound.
        upper: The public upper bound.
        adjacency: "add-remove", or "exchange" where the number of values is public.
        reach: How many distances to work out (a public number); all of them by default. The rest count as
            the span.

    Raises:
        InvalidParameter: if the bounds are not finite and in order.
        InvalidValue: if a value is NaN, or the values are not a flat array of numbers.
    """
    low, high = float(lower), float(upper)
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise InvalidParameter("lower and upper must be finite numbers with lower < upper.")
    if adjacency not in ("add-remove", "exchange"):
        raise InvalidParameter('adjacency must be "add-remove" or "exchange".')
    ordered = _ordered(values, low, high)
    n = ordered.size
    limit = n if reach is None else reach
    # One place for each rank that any distance below the limit can reach; ranks are 1-based, hence the
    # offset.
    pad = n + limit + 2
    ranks = np.concatenate([np.full(pad, low), ordered, np.full(pad, high)])
    middle = pad - 1 + (n + 1) // 2
    value = float(ranks[middle]) if n else low
    if adjacency == "add-remove":
        j = np.arange(1, limit + 1)
        moves = ranks[pad - 1 + (n + j + 1) // 2] - ranks[pad - 1 + (n - j + 1) // 2]
    else:
        moves = np.array(
            [
                (ranks[middle : middle + k + 2] - ranks[middle - k - 1 : middle + 1]).max()
                for k in range(limit)
            ]
        )
    return Median(value, moves.astype(np.float64), high - low)


def _ordered(values: ArrayLike, low: float, high: float) -> NDArray[np.float64]:
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise InvalidValue("Values must be a flat array of numbers.")
    floats = array.astype(np.float64)
    if np.isnan(floats).any():
        raise InvalidValue("Values must not be NaN: drop or replace such values before.")
    return np.sort(np.clip(floats, low, high))
