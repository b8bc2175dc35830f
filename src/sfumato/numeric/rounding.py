"""One-sided rounding of float arrays: what the last bits of a figure may be trusted for.

The budget. Basic operations and square roots are correctly rounded (IEEE 754), so one contributes a
relative error of at most U = 2**-53. The elementary functions of NumPy that the laws use (exp, expm1, log,
log1p, sin, cos) are budgeted `LIBRARY` = 8 U each, the special functions of SciPy (erfc, erfcx, ndtr,
where the laws call them) `SPECIAL` = 32 U: at least twice the worst error that
`tests/numeric/test_rounding.py` finds against 60-digit arithmetic. Every bound of this package is stated
in these terms.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = [
    "LIBRARY",
    "SMALLEST",
    "SPECIAL",
    "Floats",
    "U",
    "coarse",
    "down",
    "scaled",
    "total_down",
    "total_up",
    "up",
]

Floats = npt.NDArray[np.float64]

U = 2.0**-53
"""Half an ulp of 1: the relative error of one correctly rounded operation."""

LIBRARY = 8 * U
"""Relative error budgeted for one call of an elementary function."""

SPECIAL = 32 * U
"""Relative error budgeted for one call of a special function."""

SMALLEST = 5e-324
"""The least positive float: what a positive figure too small for a float is rounded up to."""


def up(value: npt.ArrayLike, relative: float | Floats, absolute: float | Floats = 0.0) -> Floats:
    """The values raised by a relative and an absolute error, and by the rounding of raising them.

    Values below the normal range lose relative accuracy: a subnormal unit is added for them.
    """
    x = np.asarray(value, dtype=np.float64)
    # A sum errs by at most U of its parts, and so does each operation on the error. Beside a normal value a
    # subnormal one vanishes.
    result: Floats = x + (np.abs(x) * (relative + 4 * U) + absolute * (1 + 8 * U)) + 17 * SMALLEST
    return result


def down(value: npt.ArrayLike, relative: float | Floats, absolute: float | Floats = 0.0) -> Floats:
    """The values lowered by a relative and an absolute error, and by the rounding of lowering them."""
    return -up(-np.asarray(value, dtype=np.float64), relative, absolute)


def total_up(values: npt.ArrayLike) -> float:
    """A float not below the exact sum of the values."""
    exact = math.fsum(np.asarray(values, dtype=np.float64).ravel().tolist())
    return math.nextafter(exact, math.inf) if exact else 0.0


def total_down(values: npt.ArrayLike) -> float:
    """A float not above the exact sum of the values."""
    return -total_up(-np.asarray(values, dtype=np.float64))


def scaled(tail: Floats, epsilon: Floats) -> tuple[Floats, Floats]:
    """e^epsilon times a small probability, at most 1e300, and its relative error.

    Where e^epsilon is beyond a float, the product of the two need not be.
    """
    x = np.minimum(epsilon, 1e6)
    large = x > 700.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log = np.where(large & (tail > 0), np.log(tail), 0.0)
        direct = np.exp(np.minimum(x, 700.0)) * tail
        value = np.minimum(np.where(large, np.exp(np.minimum(x + log, 700.0)), direct), 1e300)
    return np.where(tail > 0, value, 0.0), LIBRARY + (LIBRARY + U) * (np.abs(log) + np.abs(x))


def coarse(value: float, bits: int) -> float:
    """A positive figure rounded up to so many bits, so that what is left of its error hardly ever shows."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.ceil(mantissa * 2.0**bits), exponent - bits) if value > 1e-300 else value
