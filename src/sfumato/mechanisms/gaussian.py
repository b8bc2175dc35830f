"""The Gaussian mechanism on a public grid: calibrated exactly, drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.accounting import gaussian_sigma
from sfumato.errors import InvalidParameter
from sfumato.loss import GaussianLoss
from sfumato.mechanisms._density import Dense, gaussian_log
from sfumato.mechanisms._grid import WIDENING, Grid, noisy, noisy_whole
from sfumato.mechanisms._numbers import Number
from sfumato.mechanisms.base import Example, Mechanism
from sfumato.numeric.exact import Rational, floor_log2, positive, probability
from sfumato.numeric.figures import gaussian_width
from sfumato.numeric.frozen import freeze, shown
from sfumato.samplers.wholes import Wholes

__all__ = ["Gaussian", "examples", "one_calibration"]

_BITS = 30  # sigma is 2**30 to 2**31 grid units: rounding to the grid is invisible in the answer


def one_calibration(
    epsilon: Rational | None, delta: Rational | None, rho: Rational | None, sigma: Rational | None
) -> None:
    """Refuse anything but exactly one of epsilon with delta, rho, or sigma.

    Raises:
        InvalidParameter: naming the three ways.
    """
    ways = (epsilon is not None or delta is not None) + (rho is not None) + (sigma is not None)
    if ways != 1 or (epsilon is None) != (delta is None):
        raise InvalidParameter("Calibrate in exactly one way: epsilon and delta, or rho, or sigma.")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Gaussian(Dense, Mechanism):
    """Adds Gaussian noise to numbers, calibrated to (epsilon, delta), to rho or to a given sigma.

    A release is a multiple of the public grid `grid`, a power of two between 2**-31 and 2**-30 of sigma: the
    exact sum of value and noise, rounded to the grid and then to the nearest float. Values of every size are
    answered, and none is clamped; a sum beyond all floats is released as the largest finite one.

    Attributes:
        sensitivity: The most that the value can move between neighbours, in L2 over all coordinates; exact.
        epsilon: The epsilon it was calibrated to, or None.
        delta: The delta it was calibrated to, or None.

    Privacy:
        Claim: `release` has the curve δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) with μ = Δ/σ, and is ρ-zCDP
        with ρ = μ²/2, for neighbours whose values differ by at most `sensitivity` in L2, in any dimension.
        Source: Balle, Wang 2018, Thm. 8; Bun, Steinke 2016, Prop. 1.6. The calibration to (ε, δ) inverts
        that curve, rounded up, and holds for every ε > 0 (the textbook σ = √(2·ln(1.25/δ))·Δ/ε does not:
        `accounting.gaussian_classic`). Proof of the rest: the input is rounded to 2**-63 grid units a
        coordinate, which widens the sensitivity by a factor of at most 1 + 2**-54 (`Grid`), and sigma is
        widened by the same factor; the noise drawn is the *continuous* Gaussian, and a release is one fixed
        function of the exact sum, whatever its size: rounding it to the grid and then to a float is
        post-processing (docs/proofs/sampling.md, lemma 13).
    """

    sensitivity: Fraction
    epsilon: Fraction | None
    delta: Fraction | None
    _told: str = field(compare=False)
    _variance: Fraction
    _units: Fraction = field(compare=False)
    _grid: Grid = field(compare=False)
    _room: int = field(compare=False)
    _loss: GaussianLoss = field(compare=False)

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        *,
        sensitivity: Rational,
        rho: Rational | None = None,
        sigma: Rational | None = None,
    ) -> None:
        """Fix the noise from the L2 sensitivity and exactly one of epsilon with delta, rho, or sigma.

        Raises:
            InvalidParameter: for unusable numbers or none or several of the three ways.
        """
        one_calibration(epsilon, delta, rho, sigma)
        bound = positive(sensitivity, "sensitivity")
        point = None
        if epsilon is not None and delta is not None:
            point = positive(epsilon, "epsilon"), probability(delta, "delta")
            price = 1 / (2 * gaussian_sigma(drawable_price(point[0]), point[1]) ** 2)
        elif rho is not None:
            price = positive(rho, "rho")
        elif sigma is not None:
            price = (bound / positive(sigma, "sigma")) ** 2 / 2
        variance = (bound * WIDENING) ** 2 / (2 * price)
        # The greatest power of two below sigma: half of that below the variance, rounded down.
        grid = Grid.below(Fraction(2) ** (floor_log2(variance) // 2), _BITS)
        room = grid.room_l2(bound)
        if not room:
            raise InvalidParameter("sigma is too large beside the sensitivity: rounding cannot be paid for.")
        told = shown("Gaussian", epsilon=epsilon, delta=delta, rho=rho, sigma=sigma, sensitivity=bound)
        freeze(self, sensitivity=bound, epsilon=point and point[0], delta=point and point[1], _told=told)
        freeze(self, _variance=variance, _units=grid.units(grid.units(variance)), _grid=grid, _room=room)
        freeze(self, _loss=GaussianLoss(price, point))

    def __repr__(self) -> str:
        return self._told

    @property
    def loss(self) -> GaussianLoss:
        """What one release costs, whatever its shape."""
        return self._loss

    @property
    def rho(self) -> Fraction:
        """The price in zero-concentrated terms, exact."""
        return self._loss.rho

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise, to within a float's rounding."""
        return math.sqrt(self._units) * self._grid.step

    @property
    def scale(self) -> float:
        """The same as `sigma`."""
        return self.sigma

    @property
    def room(self) -> int:
        """How many numbers one release may hold: as many as rounding is paid for."""
        return self._room

    @property
    def grid(self) -> float:
        """The power of two that every release is a multiple of."""
        return self._grid.step

    @property
    def variance(self) -> float:
        """The variance of the noise; rounding to the grid adds less than 2**-60 of it."""
        return self.sigma * self.sigma  # infinite where floats end

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric (rounding it moves the mean by less than 2**-31 of sigma)."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The half-width w with P(|noise| ≤ w for all of `size` coordinates) ≥ confidence, rounded up.

        The exact quantile of the normal law and half a grid step for the rounding. A released float beyond
        2**53 grid steps is also off by half its own last place.
        """
        slack = self._grid.length(Fraction(1, 2) + Fraction(1, 2**63))
        return gaussian_width(self._variance, confidence, size, slack=slack)

    def _log_law(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        return gaussian_log(noise, self.sigma)

    @overload
    def release(self, value: Number) -> float: ...
    @overload
    def release(self, value: ArrayLike) -> NDArray[np.float64]: ...
    def release(self, value: Any) -> float | NDArray[np.float64]:
        """The value with noise: a float for a number, an array of the same shape for an array.

        Raises:
            InvalidValue: for NaN, infinity, truth values and anything that is not an int or float of 64 bits;
                outside the claim.
        """
        return noisy(value, random.add_gaussian, self._units, grid=self._grid, room=self._room)

    def release_whole(self, values: Sequence[int] | Wholes) -> NDArray[np.float64]:
        """Integers of any size with noise, in one array of floats.

        Raises:
            InvalidValue: if there are more than the price covers the rounding of.
        """
        return noisy_whole(values, random.add_gaussian, self._units, grid=self._grid, room=self._room)


def drawable_price(epsilon: Fraction) -> Fraction:
    """An epsilon to calibrate to, refused where no noise is left and floats would overflow on the way."""
    if epsilon > 2**63:
        raise InvalidParameter("epsilon is too large: above 2**63 it leaves no noise to draw.")
    return epsilon


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        Example.of_release("gaussian: epsilon and delta", Gaussian(1, "1e-6", sensitivity=1), 0.0, 1.0),
        Example.of_release("gaussian: rho", Gaussian(rho="0.5", sensitivity="0.3"), 1.0, 1.3),
        Example.of_release("gaussian: vector", Gaussian(sigma=5, sensitivity=5), (0.0, 0.0), (3.0, -4.0)),
    )
