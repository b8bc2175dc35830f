"""Counts and probabilities, exactly: limits from a count, and the counts that a probability gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

__all__ = ["clopper_pearson", "count_range"]

_WIDEN = 1e-9  # relative; far above the rounding error of the incomplete beta function, far below any figure


def clopper_pearson(inside: ArrayLike, trials: ArrayLike, alpha: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Lower and upper limits on a probability, each of which alone is wrong with probability at most `alpha`.

    Exact for every sample size and every probability (Clopper and Pearson 1934), then widened by 1e-9.
    """
    k, n = np.asarray(inside, dtype=float), np.asarray(trials, dtype=float)
    with np.errstate(invalid="ignore"):
        low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, alpha), 0.0)
        high = np.where(k < n, special.betainccinv(k + 1, np.maximum(n - k, 1), alpha), 1.0)
    return low * (1 - _WIDEN), np.minimum(1.0, high * (1 + _WIDEN))


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
