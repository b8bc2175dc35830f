"""The discrete Gaussian mechanism: Gaussian-like noise on integers."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import Any, overload

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from sfumato import random
from sfumato._dataclasses import dataclass
from sfumato.accounting import calibrate, discrete_gaussian_variance, gaussian_sigma
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import ConcentratedLoss, DiscreteGaussianLoss, PrivacyLoss
from sfumato.mechanisms._density import Dense, discrete_gaussian_log
from sfumato.mechanisms._grid import bounded, bounded_input, bounded_sum, check_reach
from sfumato.mechanisms._numbers import integer_of, integers_of
from sfumato.mechanisms.base import Example, Mechanism, Side
from sfumato.mechanisms.gaussian import drawable_price, one_calibration
from sfumato.numeric.exact import Rational, as_fraction, as_integer, positive, probability
from sfumato.numeric.figures import PRECISION, ball, ceiling, failure, up
from sfumato.numeric.frozen import freeze, shown

__all__ = [
    "DiscreteGaussian",
    "discrete_gaussian_variance_up",
    "discrete_gaussian_width",
    "examples",
    "sigma_of",
]

# Up to this variance the tails are summed term by term; beyond, an integral bounds them to within one unit.
_SUMMED = 2**20


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DiscreteGaussian(Dense, Mechanism):
    """Adds noise P(k) ∝ exp(−k²/(2σ²)) to integers, calibrated to (epsilon, delta), to rho or to sigma.

    Integers in and integers out; arrays are int64. Values beyond ±2**61 are clamped there, and answers at
    ±2**62.

    Attributes:
        squared_sensitivity: The square of the L2 sensitivity, a whole number.
        scalar: Whether only single integers are released, which buys the exact curve.
        epsilon: The epsilon it was calibrated to, or None.
        delta: The delta it was calibrated to, or None.

    Privacy:
        Claim: `release` is Δ²/(2σ²)-zCDP for integer values that differ by at most Δ in L2, in any
        dimension. Source: Canonne, Kamath, Steinke 2020, for vectors and for one coordinate. The law is
        *not* dominated by the continuous Gaussian of the same sigma (at σ = Δ = 1, δ(1) is 0.141 and not
        0.127), so it carries no μ. With `scalar=True` arrays are refused and the loss is the exact curve of
        the shifted law (their exact δ), and calibration to (ε, δ) uses that curve; otherwise it uses what
        ρ-zCDP implies, which holds in any dimension.
    """

    squared_sensitivity: int
    scalar: bool
    epsilon: Fraction | None
    delta: Fraction | None
    _variance: Fraction
    _told: str = field(compare=False)
    _loss: DiscreteGaussianLoss | ConcentratedLoss = field(compare=False)

    def __init__(
        self,
        epsilon: Rational | None = None,
        delta: Rational | None = None,
        *,
        sensitivity: int | None = None,
        squared_sensitivity: int | None = None,
        rho: Rational | None = None,
        sigma: Rational | None = None,
        scalar: bool = False,
    ) -> None:
        """Fix the noise from the L2 sensitivity and exactly one of epsilon with delta, rho, or sigma.

        Args:
            epsilon: Together with `delta`, the price.
            delta: Strictly between 0 and 1.
            sensitivity: The L2 sensitivity, a whole number. An irrational one, such as √2 for a histogram
                under exchange, is given by its square instead.
            squared_sensitivity: The square of the L2 sensitivity, a whole number.
            rho: The price in zero-concentrated terms.
            sigma: The parameter of the law (close to its standard deviation).
            scalar: Refuse arrays, and carry the exact curve of one integer instead of rho alone.

        Raises:
            InvalidParameter: for unusable numbers or none or several of the three ways.
        """
        one_calibration(epsilon, delta, rho, sigma)
        square = _square_of(sensitivity, squared_sensitivity)
        if not isinstance(scalar, bool):
            raise InvalidParameter("scalar must be True (single integers only) or False.")
        if scalar and math.isqrt(square) ** 2 != square:
            raise InvalidParameter(
                "A single integer moves by whole numbers: give a sensitivity, not its square."
            )
        point = None
        if epsilon is not None and delta is not None:
            point = drawable_price(positive(epsilon, "epsilon")), probability(delta, "delta")
            variance = _least_variance(square, *point, scalar=scalar)
        elif rho is not None:
            variance = square / (2 * positive(rho, "rho"))
        elif sigma is not None:
            variance = positive(sigma, "sigma") ** 2
        check_reach(sigma_of(variance))
        told = shown(
            "DiscreteGaussian",
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            sigma=sigma,
            sensitivity=sensitivity,
            squared_sensitivity=squared_sensitivity,
            scalar=scalar or None,
        )
        freeze(self, squared_sensitivity=square, scalar=scalar, epsilon=point and point[0], _told=told)
        freeze(
            self,
            delta=point and point[1],
            _variance=variance,
            _loss=_loss_of(square, variance, scalar=scalar, point=point),
        )

    def __repr__(self) -> str:
        return self._told

    @property
    def loss(self) -> DiscreteGaussianLoss | ConcentratedLoss:
        """What one release costs: of any shape, or of a single integer if `scalar`."""
        return self._loss

    @property
    def rho(self) -> Fraction:
        """The price in zero-concentrated terms, exact."""
        return Fraction(self.squared_sensitivity) / (2 * self._variance)

    @property
    def sigma(self) -> float:
        """The parameter of the law, to within a float's rounding."""
        return math.sqrt(self._variance)

    @property
    def scale(self) -> float:
        """The same as `sigma`."""
        return self.sigma

    @property
    def variance(self) -> float:
        """The variance of the noise, rounded up: at most sigma², and visibly less only for sigma below 1."""
        return discrete_gaussian_variance_up(self._variance)

    @property
    def bias(self) -> float:
        """Zero: the noise is symmetric."""
        return 0.0

    def error(self, confidence: Rational, *, size: int = 1) -> float:
        """The least whole w with P(|noise| ≤ w for all of `size` coordinates) ≥ confidence.

        Above a sigma of 1024 it may be one too large.
        """
        return float(discrete_gaussian_width(self._variance, confidence, size))

    def _log_law(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        return discrete_gaussian_log(noise, float(self._variance))

    @overload
    def release(self, value: int | np.integer[Any]) -> int: ...
    @overload
    def release(self, value: ArrayLike) -> NDArray[np.int64]: ...
    def release(self, value: Any) -> int | NDArray[np.int64]:
        """The value with noise: an int for an integer, an int64 array of the same shape for an array.

        Raises:
            InvalidValue: for floats, truth values, arrays that do not fit in int64, and arrays if `scalar`;
                outside the claim.
        """
        if type(value) is int or isinstance(value, int | float | np.generic):
            return bounded(random.add_discrete_gaussian(bounded_input(integer_of(value)), self._variance))
        array = integers_of(value)
        if self.scalar and array.ndim:
            raise InvalidValue(
                "This mechanism was priced for single integers: construct it without scalar=True."
            )
        if not array.size:
            return np.zeros(array.shape, np.int64)
        return bounded_sum(array, random.discrete_gaussian(self._variance, array.shape))


def sigma_of(variance: Fraction) -> Fraction:
    """The integer part of sigma in units of 2**-16: close enough to tell whether draws fit."""
    return Fraction(math.isqrt(math.floor(variance * 2**32)), 2**16)


def _square_of(sensitivity: int | None, squared: int | None) -> int:
    if (sensitivity is None) == (squared is None):
        raise InvalidParameter("Give the sensitivity, or its square as squared_sensitivity, and not both.")
    if sensitivity is not None:
        return as_integer(sensitivity, "sensitivity") ** 2
    return as_integer(squared, "squared_sensitivity") if squared is not None else 0


def _loss_of(
    square: int, variance: Fraction, *, scalar: bool, point: tuple[Fraction, Fraction] | None = None
) -> DiscreteGaussianLoss | ConcentratedLoss:
    root = math.isqrt(square)
    if root * root != square:  # no exact rational sensitivity exists, and rho is all that is known anyway
        return ConcentratedLoss(square / (2 * variance), point=point)
    return DiscreteGaussianLoss(variance, Fraction(root), scalar, point)


def _least_variance(square: int, epsilon: Fraction, delta: Fraction, *, scalar: bool) -> Fraction:
    """The least variance whose loss is proven to meet (ε, δ), rounded up."""
    if square > (delta * 2**57) ** 2:  # σ is below Δ/(2δ): otherwise it surely fits
        check_reach(max(gaussian_sigma(epsilon, delta) * math.isqrt(square), Fraction(1)))
    if scalar:
        return discrete_gaussian_variance(epsilon, delta, math.isqrt(square))

    def make(variance: Fraction) -> PrivacyLoss:
        return _loss_of(square, variance, scalar=False)

    # What rho implies is looser than the curve of the continuous law, so its variance is a place to start.
    low = gaussian_sigma(epsilon, delta) ** 2 * square
    high = 2 * low
    while Fraction(make(high).delta(epsilon)) > delta:
        check_reach(max(sigma_of(high), Fraction(1)))  # not even this much is enough
        high *= 2
    return as_fraction(calibrate(make, epsilon, delta, low=low, high=high, tolerance=1e-9), "variance")


def discrete_gaussian_width(variance: Fraction, confidence: Rational, size: int) -> int:
    """The least whole w with P(|X| ≤ w)^size ≥ confidence for a discrete Gaussian; at most one more."""
    with ctx.workprec(PRECISION):
        allowed = failure(confidence, size)
        if variance <= _SUMMED and allowed > 1e-280:
            return _summed_width(float(variance), float(allowed.lower()))
        # Z ≥ √(2πσ²) by Poisson summation, and for w + 1/2 ≥ σ the density is convex beyond w + 1/2, so that
        # each term is at most the integral over the unit interval around it; below, it is at most the one
        # before it.
        sigma = ball(variance).sqrt()
        quantile = (2 * ball(variance)).sqrt() * allowed.erfcinv()
        near = max(0, ceiling(quantile - arb(1) / 2))
        return near if near + arb(1) / 2 >= sigma else max(0, ceiling(quantile))


def _summed_width(variance: float, allowed: float) -> int:
    k = np.arange(math.ceil(38 * math.sqrt(variance)) + 3, dtype=np.float64)
    terms = np.exp(-k * k / (2 * variance))
    # Relative errors: below 2e-13 in a term, below 1e-11 in a sum of at most 2**16 of them.
    beyond = np.append(2 * np.cumsum(terms[:0:-1])[::-1], 0.0)
    mass = terms[0] + beyond[0]
    return int(np.argmax(beyond <= allowed * mass * (1 - 1e-10)))


def discrete_gaussian_variance_up(variance: Fraction) -> float:
    """The variance of the discrete Gaussian law with this parameter, rounded up."""
    if variance > 64:  # the difference is below σ²·exp(-2π²·64)·1000, far below a float's last place
        return math.nextafter(float(variance), math.inf)
    with ctx.workprec(PRECISION):
        mass, moment = arb(1), arb(0)
        last = math.ceil(40 * math.sqrt(variance)) + 3
        for k in range(1, last + 1):
            term = 2 * (-ball(k * k / (2 * variance))).exp()
            mass += term
            moment += k * k * term
        # Dropped terms raise the moment by less than 2**-1000 of the largest term kept.
        return up(moment / mass + arb(2) ** -1000)


def _singles(mechanism: DiscreteGaussian, left: int, right: int) -> Example:
    def draw(side: Side, count: int) -> NDArray[np.int64]:
        value = left if side == "left" else right
        return np.array([mechanism.release(value) for _ in range(count)])

    return Example("discrete gaussian: scalar", mechanism, left, right, draw)


def examples() -> tuple[Example, ...]:
    """Pairs of neighbours that come close to the claim; `Example` says for what."""
    return (
        Example.of_release("discrete gaussian: rho", DiscreteGaussian(rho="0.5", sensitivity=1), 0, 1),
        Example.of_release(
            "discrete gaussian: vector", DiscreteGaussian(sigma=5, sensitivity=5), (0, 0), (3, 4)
        ),
        _singles(DiscreteGaussian(sigma=1, sensitivity=1, scalar=True), 0, 1),
    )
