"""Chapter 10 of the textbook: a bound for clamping that is found privately, and an average with it.

The names and arguments are those of *Programming Differential Privacy* (Near and Abuah).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.book._data import Floats, above, numbers_of
from sfumato.book.local_sensitivity import average
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.above_threshold import AboveThreshold
from sfumato.mechanisms.laplace import Laplace
from sfumato.numeric.exact import Rational, as_fraction, positive

__all__ = ["auto_avg", "naive_select_b"]

_LARGEST = 10**7  # people are counted in a bin for each whole number up to the largest bound
_PARTS = 2.0**20


def naive_select_b(
    query: Callable[[Any, int], float],
    df: Any,
    epsilon: Rational,
    *,
    bs: Iterable[int] = range(1, 1000, 10),
    threshold: Rational = 10,
) -> int:
    """The first bound at which a noisy sum grows by no more than the threshold: what `auto_avg` saves.

    Trap of the original: each of a hundred bounds gets a hundredth of epsilon, so that a sum clamped to b has
    noise of scale 100·b/ε, thousands of times the threshold: it stops where the noise happens to fall. Kept
    for a contrast, with exact noise; `create_query` with `above_threshold` asks the same for a fixed price.

    Args:
        query: A function of the table and a bound b that moves by at most b, such as `age_sum_query`.
        df: The table, handed to the query as it is.
        epsilon: The price of the whole.
        bs: The bounds to try; public.
        threshold: The growth at which it stops; public.

    Privacy:
        Total: epsilon (pure), by basic composition of a share for each bound; stopping early saves nothing.

    Raises:
        InvalidParameter: if a parameter is out of range.
        InvalidValue: if an answer is not a finite number.
    """
    bounds = _bounds(bs)
    share, gain = positive(epsilon, "epsilon") / len(bounds), float(as_fraction(threshold, "threshold"))
    if not callable(query):
        raise InvalidParameter("query must be a function that takes the table and a bound.")
    best = 0.0
    for b in bounds:
        noisy = Laplace(share, b).release(query(df, b))
        if noisy - best <= gain:
            return b
        best = noisy
    return bounds[-1]


def auto_avg(
    df: Any,
    epsilon: Rational,
    *,
    lower: Rational = 0,
    bs: Iterable[int] = range(1, 150000, 5),
    column: str = "Age",
) -> float:
    """The average of values whose upper bound is not known: it is found by above-threshold, then used.

    Traps of the original: it goes through all rows twice for each of 30,000 bounds, where one pass counts for
    all; it takes values to be non-negative, and clamps others to 0 in silence; where no bound is found it
    takes a random one, and for few rows it divides by a count that may be 0 or negative. Its noise is more
    than its queries need, as they all move the same way.

    Args:
        df: The values, or a table with the column.
        epsilon: The price of the whole.
        lower: The public lower bound: values below count as it.
        bs: The bounds to try, in whole numbers above `lower`; public. The last one is taken if none is found.
        column: Its name in a table.

    Privacy:
        Total: epsilon (pure): a third to find the bound (`sfumato.mechanisms.AboveThreshold`, monotone
        queries of sensitivity 1), a third for the sum, a third for the count. The bound is an answer, and may
        be told.

    Raises:
        InvalidParameter: if a parameter is out of range.
        InvalidValue: if the values are not finite numbers.
    """
    share, floor = positive(epsilon, "epsilon") / 3, float(as_fraction(lower, "lower"))
    bounds = _bounds(bs)
    finder = bound_finder(share)
    values = above(numbers_of(df, column), floor)
    place = finder.first(-_beyond(values, bounds))
    bound = bounds[-1 if place is None else place]
    return floor + average(values, Fraction(bound), sum_price=share, count_price=share)


def bound_finder(epsilon: Fraction) -> AboveThreshold:
    """What finds the bound: monotone queries of sensitivity 1, none above 0."""
    return AboveThreshold(epsilon, 0, sensitivity=1, monotone=True)


def _beyond(values: Floats, bounds: list[int]) -> Floats:
    """For each bound b the sum over all rows of clamp(value − b, 0, 1), in one pass.

    Every row adds 1 for each bound that it exceeds by 1 or more, and its fraction, in whole parts of 2**-20,
    for the bound it lies just above: at most 1 each, and all sums are exact.
    """
    top = bounds[-1] + 1
    clamped = np.clip(values, 0.0, float(top))
    whole = np.floor(clamped).astype(np.int64)
    fractions = np.floor((clamped - whole) * _PARTS)
    counts = np.bincount(whole, minlength=top + 1)
    partial = np.bincount(whole, weights=fractions, minlength=top + 1)
    at_least = counts[::-1].cumsum()[::-1]
    places = np.array(bounds)
    return np.asarray(at_least[places + 1] + partial[places] / _PARTS, dtype=np.float64)


def _bounds(bs: Iterable[int]) -> list[int]:
    try:
        bounds = [int(b) if isinstance(b, int | np.integer) else 0 for b in bs]
    except TypeError:
        bounds = []
    rising = all(a < b for a, b in pairwise(bounds))
    if not bounds or bounds[0] < 1 or bounds[-1] > _LARGEST or not rising:
        raise InvalidParameter(
            f"bs must be rising whole numbers from 1 to {_LARGEST}, such as range(1, 150, 5)."
        )
    return bounds
