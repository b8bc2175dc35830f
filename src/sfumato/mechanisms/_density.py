"""The laws of additive noise as functions: the logarithm of the density, or of the probability."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter

__all__ = [
    "discrete_gaussian_log",
    "discrete_laplace_log",
    "gaussian_log",
    "laplace_log",
    "per_step",
    "shifted",
    "staircase_log",
    "truncated_log",
]

Floats: TypeAlias = NDArray[np.float64]


def shifted(law: Callable[[Floats], Floats], at: ArrayLike, value: float) -> float | Floats:
    """A law of noise at answers to a certain value: a float for a number, an array for an array.

    Raises:
        InvalidParameter: unless all of them are numbers.
    """
    try:
        places, middle = np.asarray(at, dtype=np.float64), float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("A density is taken at numbers.") from None
    if np.isnan(places).any() or not math.isfinite(middle):
        raise InvalidParameter("A density is taken at numbers, not at NaN, and around a finite one.")
    values = law(places - middle)
    return float(values) if values.ndim == 0 else values


def laplace_log(noise: Floats, scale: float) -> Floats:
    """Of the continuous Laplace law."""
    return -np.abs(noise) / scale - math.log(2 * scale)


def gaussian_log(noise: Floats, sigma: float) -> Floats:
    """Of the normal law."""
    return -np.square(noise / sigma) / 2 - math.log(sigma) - math.log(2 * math.pi) / 2


def discrete_laplace_log(noise: Floats, scale: float) -> Floats:
    """Of the two-sided geometric law: tanh(1/(2·scale))·e^(−|k|/scale) at whole numbers, 0 between them."""
    return _whole(noise, -np.abs(noise) / scale + math.log(math.tanh(0.5 / scale)))


def discrete_gaussian_log(noise: Floats, variance: float) -> Floats:
    """Of the discrete Gaussian law, at whole numbers; 0 between them."""
    if variance < 1:
        mass = 1 + 2 * math.fsum(math.exp(-k * k / (2 * variance)) for k in range(1, 40))
    else:  # by Poisson summation; the next term is below e^(−8π²)
        mass = math.sqrt(2 * math.pi * variance) * (1 + 2 * math.exp(-2 * math.pi**2 * variance))
    return _whole(noise, -np.square(noise) / (2 * variance) - math.log(mass))


def staircase_log(units: Floats, epsilon: float, period: int, high: int) -> Floats:
    """Of the staircase law on the whole numbers of grid units: e^(−ε·level) over the sum of all."""
    size = np.abs(units)
    whole = np.floor(size / period)
    level: Floats = whole + (size - whole * period >= high)
    total = (high + math.exp(-epsilon) * (period - high)) / -math.expm1(-epsilon)
    return -epsilon * level - math.log(2 * total - 1)


def truncated_log(units: Floats, rate: float, reach: int) -> Floats:
    """Of Laplace noise on the whole numbers of grid units up to a bound: e^(−rate·|k|) over the sum."""
    # (1 + q − 2q^(A+1))/(1 − q), q = e^−rate, with 1 + q − 2q^(A+1) = (1 − q^(A+1)) + q(1 − q^A).
    above = -math.expm1(-rate * (reach + 1)) - math.exp(-rate) * math.expm1(-rate * reach)
    mass = above / -math.expm1(-rate)
    return np.where(np.abs(units) <= reach, -rate * np.abs(units) - math.log(mass), -np.inf)


def per_step(law: Callable[[Floats], Floats], step: float) -> Callable[[Floats], Floats]:
    """A law on a grid as a density: the probability of the nearest grid point over the step of the grid."""
    return lambda noise: law(np.rint(noise / step)) - math.log(step)


def _whole(noise: Floats, log: Floats) -> Floats:
    return np.where(noise == np.rint(noise), log, -np.inf)
