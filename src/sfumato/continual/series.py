"""Power series as arrays: bounds on norms that hold, and inverses and products for accuracy figures."""

from __future__ import annotations

import numpy as np

from sfumato.continual.base import Floats
from sfumato.numeric.rounding import U, up

__all__ = ["correlated", "inverse", "norm_squared_up", "trust"]


def trust(count: int) -> float:
    """A relative error that covers sums of `count` squares of coefficients, however they are added up.

    All numbers are sums and products of numbers that are not negative, so that relative errors add up:
    2·count + 64 roundings in each coefficient (`Factor.coefficients`) and its copies, twice for a square, and
    count more for the sum.
    """
    return (8 * count + 1024) * U


def norm_squared_up(coefficients: Floats, touches: int, apart: int) -> float:
    """A bound on the squared norm of the sum of columns 0, apart, 2·apart, … of the Toeplitz matrix.

    Privacy:
        Not below the exact one, for coefficients that are not negative (`trust`).
    """
    count = coefficients.size
    total = _repeated(coefficients, min(touches, -(-count // apart)), apart)
    return float(up(np.cumsum(total * total)[-1], trust(count), 1e-290))


def _repeated(column: Floats, times: int, apart: int) -> Floats:
    """The sum of the column, moved down by 0, apart, …, (times − 1)·apart; by doubling."""
    if times == 1:
        return column.copy()
    part = _repeated(column, times // 2, apart)
    moved = part.copy()
    at = (times // 2) * apart
    moved[at:] += part[: part.size - at]
    if times % 2:
        last = (times - 1) * apart
        moved[last:] += column[: column.size - last]
    return moved


def inverse(coefficients: Floats) -> Floats:
    """The first column of the inverse matrix, by Newton's iteration on power series; c_0 is 1."""
    count, known = coefficients.size, 1
    found = np.ones(1)
    while known < count:
        known = min(2 * known, count)
        rest = -_product(coefficients[:known], found, known)
        rest[0] += 2
        found = _product(found, rest, known)
    return found


def _product(left: Floats, right: Floats, count: int) -> Floats:
    size = 1 << (left.size + right.size - 1).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(left, size) * np.fft.rfft(right, size), size)[:count])


def correlated(series: Floats, weights: Floats) -> Floats:
    """Σ_{i≥s} series_{i−s}·weights_i for every s: the transposed Toeplitz matrix times the weights."""
    return _product(series[: weights.size], weights[::-1], weights.size)[::-1]
