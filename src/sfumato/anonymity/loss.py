"""What anonymising cost: how much wider the cells became, and how many rows now look the same.

Steward-only: the figures are exact functions of the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidParameter

__all__ = ["average_class", "discernibility", "ncp"]


def ncp(costs: Sequence[npt.ArrayLike], *, rows: int, suppressed: int = 0) -> float:
    """The normalised certainty penalty of a table: the mean over its cells of what each one lost.

    A cell that kept its value lost 0 and a cell that says nothing (`*`) lost 1. An interval lost its width
    over the width of the column, a set of d out of n values lost (d - 1) / (n - 1). Every cell of a
    suppressed row lost 1 (Xu, Wang, Pei, Wang, Shi and Fu, Utility-based anonymization using local recoding,
    KDD 2006).

    Args:
        costs: for each quasi-identifier what its cells lost, one number for each row that was kept.
        rows: how many rows there were before.
        suppressed: how many of them were left out.
    """
    if not costs or rows < 1:
        raise InvalidParameter("The penalty is a mean over cells: give at least one column and one row.")
    lost = math.fsum(float(np.sum(np.asarray(cost, dtype=np.float64))) for cost in costs)
    return min(1.0, (lost + suppressed * len(costs)) / (rows * len(costs)))


def discernibility(sizes: npt.ArrayLike, *, rows: int, suppressed: int = 0) -> int:
    """The number of pairs of rows that cannot be told apart: the sum of squared class sizes.

    A suppressed row cannot be told from any of the `rows` (Bayardo and Agrawal, Data privacy through optimal
    k-anonymization, ICDE 2005).
    """
    return sum(int(size) ** 2 for size in np.asarray(sizes)) + rows * suppressed


def average_class(sizes: npt.ArrayLike, k: int) -> float:
    """The mean size of a class over the k that was asked for: 1 is the best there is.

    LeFevre, DeWitt and Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE 2006.
    """
    array = np.asarray(sizes)
    return float(array.sum()) / len(array) / k if len(array) else math.nan
