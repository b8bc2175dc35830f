"""The laws of additive noise as functions: the logarithm of the density, or of the probability."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import InvalidParameter

__all__ = [
    "Dense",
    "discrete_gaussian_log",
    "discrete_laplace_log",
    "gaussian_log",
    "laplace_log",
    "per_step",
    "staircase_log",
    "truncated_log",
]

Floats: TypeAlias = NDArray[np.float64]


class Dense(ABC):
    """What has a density: answers are the value with noise of a law that is the same around each value."""

    __slots__ = ()

    @abstractmethod
    def _log_law(self, noise: Floats) -> Floats:
        """The natural logarithm of the density of the noise, or of its probability on whole numbers."""

    @overload
    def density(self, at: float, *, value: float = 0) -> float: ...
    @overload
    def density(self, at: ArrayLike, *, value: float = 0) -> NDArray[np.float64]: ...
    def density(self, at: Any, *, value: float = 0) -> float | NDArray[np.float64]:
        """How densely answers lie at `at` if the value is `value`.

        Of whole numbers it is the probability, and 0 between them. Of a law on a grid it is the probability
        of the grid point over the step; of a continuous one, the density before rounding to the grid.
        """
        densities = np.exp(self.log_density(at, value=value))
        return densities if isinstance(densities, np.ndarray) else float(densities)

    @overload
    def log_density(self, at: float, *, value: float = 0) -> float: ...
    @overload
    def log_density(self, at: ArrayLike, *, value: float = 0) -> NDArray[np.float64]: ...
    def log_density(self, at: Any, *, value: float = 0) -> float | NDArray[np.float64]:
        """The natural logarithm of `density`, also where that is too small for a float.

        Raises:
            InvalidParameter: unless all of them are numbers.
        """
        try:
            places, middle = np.asarray(at, dtype=np.float64), float(value)
        except (TypeError, ValueError, OverflowError):
            raise InvalidParameter("A density is taken at numbers.") from None
        if np.isnan(places).any() or not math.isfinite(middle):
            raise InvalidParameter("A density is taken at numbers, not at NaN, and around a finite one.")
        values = self._log_law(places - middle)
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


def per_step(law: Callable[[Floats], Floats], noise: Floats, step: float) -> Floats:
    """A law on a grid as a density: the probability of the nearest grid point over the step of the grid."""
    return law(np.rint(noise / step)) - math.log(step)


def _whole(noise: Floats, log: Floats) -> Floats:
    return np.where(noise == np.rint(noise), log, -np.inf)
