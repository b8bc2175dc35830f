"""From noisy counts of cells to a distribution: all of it post-processing."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

__all__ = ["below", "levels"]

Floats: TypeAlias = NDArray[np.float64]

_RAMP = 1e-6


def below(noisy: Floats) -> Floats:
    """The part of the rows below the end of each cell, from 0 to 1, strictly ascending.

    What the noise makes fall is levelled (the nearest ascending line in least squares); where nothing is
    left, as in a table without rows, all cells weigh alike.
    """
    rising = isotonic_regression(np.r_[0.0, np.cumsum(noisy)])
    rising = rising - rising[0]
    ramp = np.linspace(0.0, 1.0, len(rising))
    shares = rising / rising[-1] if rising[-1] > 0 else ramp
    # A little of an even spread, so that each part of the rows has one place where it ends.
    return np.asarray((1 - _RAMP) * shares + _RAMP * ramp)


def levels(noisy: Floats, wanted: Floats, lower: float, upper: float) -> Floats:
    """The numbers below which these parts of the rows are, ascending.

    Args:
        noisy: Counts of equally wide cells.
        wanted: Parts between 0 and 1, ascending.
        lower: Where the first cell begins.
        upper: Where the last one ends.
    """
    edges = np.linspace(lower, upper, len(noisy) + 1)
    return np.maximum.accumulate(np.interp(wanted, below(noisy), edges))
