"""t-closeness: how far the values of a sensitive column in a class are from those in the whole table."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.anonymity._spread import Spread

__all__ = ["closeness", "equal_distance", "ordered_distance"]

_Numbers: TypeAlias = npt.NDArray[Any]
_LARGEST = 2**62  # beyond it whole numbers would overflow, and floats are near enough


def closeness(spread: Spread) -> float:
    """The largest distance of a class from the table: ordered for numbers, days and times, else equal.

    Source: Li, Li, Venkatasubramanian, t-Closeness: Privacy Beyond k-Anonymity and l-Diversity, ICDE 2007:
    the earth mover's distance, where all values are equally far apart, or as far as their ranks are.
    """
    distances = ordered_distance(spread) if spread.ordered else equal_distance(spread)
    return float(distances.max())


def equal_distance(spread: Spread) -> npt.NDArray[np.float64]:
    """For each class half of Σ |p_v − q_v|, p in the class and q in the table.

    That is the sum of p_v − q_v where it is positive, so that values outside the class need no look.
    """
    rows, sizes, counts = _numbers(spread)
    more = counts * rows - spread.totals[spread.values] * sizes[spread.owners]
    surplus = np.add.reduceat(np.maximum(more, 0), spread.starts[:-1])
    return _quotient(surplus, sizes, rows)


def ordered_distance(spread: Spread) -> npt.NDArray[np.float64]:
    """For each class Σ_i |P_i − Q_i| / (m − 1), P and Q the shares of values up to the i-th of m.

    Between two values of a class P stays as it is while Q rises: the sum over such a stretch splits at the
    one place where Q passes P, and running sums of Q give both parts at once.
    """
    kinds = len(spread.totals)
    if kinds == 1:
        return np.zeros(len(spread.starts) - 1)
    rows, sizes, counts = _numbers(spread, kinds)
    values, owners = spread.values, spread.owners
    size = sizes[owners]
    running = np.cumsum(counts)
    held = running - np.concatenate([running[:1] * 0, running])[spread.starts[:-1]][owners]  # P · size
    below = np.cumsum(spread.totals).astype(counts.dtype)  # Q · rows
    sums = np.concatenate([below[:1] * 0, np.cumsum(below)])
    until = np.append(values[1:], kinds)
    until[spread.starts[1:] - 1] = kinds
    passed = np.searchsorted(below, -(-held * rows // size)).clip(values, until)
    short = (passed - values) * held * rows - (sums[passed] - sums[values]) * size
    long = (sums[until] - sums[passed]) * size - (until - passed) * held * rows
    first = spread.starts[:-1]
    before = sums[values[first]] * sizes
    total = np.add.reduceat(short + long, first) + before
    # Divided once: 3/20 is then the float that 0.15 is, and a table at the limit is within it.
    return _quotient(total, sizes * (kinds - 1), rows)


def _numbers(spread: Spread, kinds: int = 1) -> tuple[float, _Numbers, _Numbers]:
    """Rows, sizes and counts: whole numbers where all products fit, else floats."""
    rows = int(spread.totals.sum())
    if rows * rows * kinds < _LARGEST:
        return rows, spread.sizes, spread.counts
    return float(rows), spread.sizes.astype(np.float64), spread.counts.astype(np.float64)


def _quotient(total: _Numbers, sizes: _Numbers, rows: float) -> npt.NDArray[np.float64]:
    result: npt.NDArray[np.float64] = total / (sizes * np.float64(rows))
    return result
