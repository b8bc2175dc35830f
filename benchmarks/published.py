"""Ways to limit what a user adds that were published without a library: here in numpy, with float noise.

They serve as yardsticks on benchmark tables only; nothing private should pass through them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["amin", "clipped_in_norm", "r2t"]

Floats: TypeAlias = NDArray[np.float64]

_SHARE = 0.2  # of epsilon: what Amin et al. spend on the limit; as much as a profile costs
_FAILS = 0.1  # the β of R2T


def amin(
    rows: Floats, own: Floats, *, top: float, ceiling: int, epsilon: float, draw: np.random.Generator
) -> Callable[[], float]:
    """A limit at the private (1 − 1/(εn))-quantile of users' rows, then a sum (Amin et al. 2019).

    Args:
        rows: How many rows each user has.
        own: What these add up to.
        top: The most that a row adds.
        ceiling: The largest limit.
        epsilon: The price of both.
        draw: Randomness.
    """
    rest = epsilon * (1 - _SHARE)
    limits = np.arange(1, ceiling + 1)
    above = len(rows) - np.searchsorted(np.sort(rows), limits, side="right")
    utility = -np.abs(above - 1 / rest) * epsilon * _SHARE / 2  # one user moves it by 1

    def answer() -> float:
        limit = limits[int(np.argmax(utility + draw.gumbel(size=len(limits))))]
        kept = float((own * np.minimum(1, limit / rows)).sum())
        return kept + float(draw.laplace(scale=top * limit / rest))

    return answer


def r2t(own: Floats, *, most: float, epsilon: float, draw: np.random.Generator) -> Callable[[], float]:
    """The race to the top over limits 2, 4, 8, … on what a user adds (Dong et al. 2022).

    Args:
        own: What each user adds; at least 0.
        most: The largest limit.
        epsilon: The price of the whole race.
        draw: Randomness.
    """
    runs = math.ceil(math.log2(most))
    limits = np.minimum(2.0 ** np.arange(1, runs + 1), most)
    kept = np.minimum(own[:, np.newaxis], limits).sum(axis=0)
    scales = runs * limits / epsilon

    def answer() -> float:
        raced = kept + draw.laplace(scale=scales) - math.log(runs / _FAILS) * scales
        return max(0.0, float(raced.max()))

    return answer


def clipped_in_norm(by_group: Floats, limit: float, sigma: float, draw: np.random.Generator) -> Floats:
    """Counts by group, each user's held within a Euclidean norm, with Gaussian noise; Qrlew's way.

    Args:
        by_group: Rows of each user (a line) in each group.
        limit: The norm.
        sigma: The noise for a norm of 1.
        draw: Randomness.
    """
    norms = np.sqrt((by_group**2).sum(axis=1))
    held = np.minimum(1, limit / np.maximum(norms, 1e-9)) @ by_group
    return np.asarray(held + draw.normal(scale=sigma * limit, size=by_group.shape[1]))
