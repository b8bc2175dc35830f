"""Counts and probabilities, exactly: limits from a count, and the counts that a probability gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["clopper_pearson", "count_range", "dealt_range", "share_above", "share_below"]

_ROUNDED = 1e-6  # relative; above the rounding error of logarithms of factorials up to those of ten million
_WIDEN = 1e-9  # relative; far above the rounding error of the incomplete beta function, far below any figure


def clopper_pearson(inside: ArrayLike, trials: ArrayLike, alpha: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Lower and upper limits on a probability, each of which alone is wrong with probability at most `alpha`.

    Exact for every sample size and every probability (Clopper and Pearson 1934), then widened by 1e-9.
    """
    return share_above(inside, trials, alpha), share_below(inside, trials, alpha)


def share_above(inside: ArrayLike, trials: ArrayLike, alpha: float) -> NDArray[Any]:
    """The lower one of the limits of `clopper_pearson`."""
    from scipy import special

    k, n = np.asarray(inside, dtype=float), np.asarray(trials, dtype=float)
    with np.errstate(invalid="ignore"):
        low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, alpha), 0.0)
    return np.asarray(low * (1 - _WIDEN))


def share_below(inside: ArrayLike, trials: ArrayLike, alpha: float) -> NDArray[Any]:
    """The upper one of the limits of `clopper_pearson`."""
    from scipy import special

    k, n = np.asarray(inside, dtype=float), np.asarray(trials, dtype=float)
    with np.errstate(invalid="ignore"):
        high = np.where(k < n, special.betainccinv(k + 1, np.maximum(n - k, 1), alpha), 1.0)
    return np.asarray(np.minimum(1.0, high * (1 + _WIDEN)))


def count_range(low: float, high: float, trials: int, alpha: float) -> tuple[int, int]:
    """The successes to expect in trials of a probability in [low, high], but for `alpha` on each side.

    The smallest count c with P(X <= c) > alpha for the lower probability and the largest with P(X >= c) >
    alpha for the higher one: outside lies at most `alpha` on each side, whichever probability is the true
    one.
    """
    from scipy.stats import binom

    least = int(binom.ppf(min(1.0, alpha * (1 + _WIDEN)), trials, low))
    most = int(binom.isf(alpha * (1 - _WIDEN), trials, high))
    return max(0, least), min(trials, max(most, least))


def dealt_range(hits: int, trials: int, others: int, alpha: float) -> tuple[int, int]:
    """The hits to expect among some people beside those of others, if it was dealt out who is which.

    The largest count that Fisher's exact test (1935) does not find too large beside `hits` of `trials`, and
    the smallest that it does not find too small; each is left with probability at most `alpha`, since what
    is dealt out among all of them is hypergeometric (Thatcher 1964). Exact, whatever made somebody a hit, if
    that did not depend on the deal.

    Args:
        hits: Of the people that are known.
        trials: How many people those are.
        others: How many people the range is about.
        alpha: What may lie beyond on each side.
    """
    both, most_likely, limit = trials + others, round(hits * others / trials), alpha * (1 - _ROUNDED)

    def chances(some: NDArray[np.int64], count: int) -> float:
        """P(so many of `others` are hits), summed, where `hits + count` of `both` are."""
        logs = (
            _log_ways(hits + count, some)
            + _log_ways(both - hits - count, others - some)
            - _log_ways(both, np.array(others))
        )
        return float(np.exp(logs).sum())

    def reach(count: int) -> int:
        """How far a tail is summed: beyond is less than a rounding error, as it falls ever faster."""
        return 100 + 40 * math.isqrt(hits + count)

    def is_too_large(count: int) -> bool:
        last = min(hits + count, others, count + reach(count))
        return chances(np.arange(count, last + 1), count) <= limit

    def is_too_small(count: int) -> bool:
        first = max(0, hits + count - trials, count - reach(count))
        return chances(np.arange(first, count + 1), count) <= limit

    most = _last(lambda step: is_too_large(most_likely + step), others - most_likely)
    least = _last(lambda step: is_too_small(most_likely - step), most_likely)
    return most_likely - least, most_likely + most


def _log_ways(of: int, some: NDArray[np.int64]) -> NDArray[np.float64]:
    """The logarithm of how many ways there are to choose some of so many."""
    from scipy import special

    ways: NDArray[np.float64] = (
        special.gammaln(of + 1) - special.gammaln(some + 1) - special.gammaln(of - some + 1)
    )
    return ways


def _last(is_beyond: Callable[[int], bool], limit: int) -> int:
    """The last of 0 … limit that is not beyond, where all after the first that is are, and 0 is not."""
    inside, beyond = 0, limit + 1
    while beyond - inside > 1:
        middle = (inside + beyond) // 2
        inside, beyond = (inside, middle) if is_beyond(middle) else (middle, beyond)
    return inside
