"""The Gaussian mechanism: N(mu, 1) against N(0, 1)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.numeric.laws.base import Complexes, Floats, Law, Smooth
from sfumato.numeric.rounding import LIBRARY, SPECIAL, U, down, up

__all__ = ["GAUSSIAN", "Gaussian"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
# Up to this half distance of the two arguments the difference of erfcx is integrated, not subtracted.
_CLOSE = 0.25
# Up to this distance, in units of mu, the profile moves as its slope says, to within a hundredth: where it is
# not 0, a is below 32, and e^(-a²) moves by at most 64 times the distance over √2.
_TINY = 1e-5


class Gaussian(Smooth):
    """Parameters (mu,), sensitivity over sigma: losses N(mu²/2, mu²) in both directions.

    Privacy:
        delta(epsilon) = Φ(mu/2 - epsilon/mu) - e^epsilon Φ(-mu/2 - epsilon/mu) (Balle and Wang 2018,
        Theorem 8), exact for every mu and every real epsilon, and increasing in mu: round mu up.
    """

    __slots__ = ()

    name = "Gaussian"

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Log M(z) = mu² z(z + 1)/2."""
        half = 0.5 * parameters[:, 0] ** 2
        result: Complexes = (z * (z + 1))[:, None] * half
        return result

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """Six rounded operations in the exponent, and a mu that may itself be rounded twice."""
        half = 0.5 * parameters[:, 0] ** 2 @ counts
        size: Floats = np.abs(z) * (np.abs(z) + 1) * half
        return 12 * U * size

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """Exactly -mu² t²/2, rounded up."""
        del c
        result: Floats = -0.5 * (parameters[:, 0] * t[:, None]) ** 2 * (1 - 8 * U)
        return result

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above the profile, for every real epsilon.

        Privacy:
            With a, b = (epsilon/mu ∓ mu/2)/√2 the profile is e^(-a²)(erfcx(a) - erfcx(b))/2 for epsilon ≥
            0, and 1 - e^epsilon + e^epsilon·delta(-epsilon) below 0 (the pair is symmetric). The argument
            a is exact to a few U relative to epsilon/mu + mu, so e^(-a²) is exact to that times 2|a|;
            where b - a is small the difference is the Gauss–Legendre integral of -erfcx' ≥ 0 (12 nodes:
            |erfcx'(z)| ≤ |erfcx'(Re z)| bounds it on the Bernstein ellipse of radius 16, so the rule errs
            by less than 1e-24 of the answer).
        """
        (mu,) = parameters
        x = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        if mu == 0:
            exact = np.where(x < 0, -np.expm1(np.minimum(x, 0.0)), 0.0)
            shape = np.shape(epsilon)
            return down(exact, LIBRARY).clip(0.0).reshape(shape), np.where(
                x < 0, up(exact, LIBRARY), 0.0
            ).reshape(shape)
        lower, upper = _around(x, mu, 0.0)
        return lower.reshape(np.shape(epsilon)), upper.reshape(np.shape(epsilon))

    def around(self, epsilon: Floats, moved: Floats, mu: float) -> tuple[Floats, Floats]:
        """Floats below and above the profile at every point within `moved` of each epsilon.

        One evaluation gives both ends, for a rounded argument and a mu > 0 that is off by up to 2 U of it.

        Privacy:
            At epsilon ≥ 0 a distance of the argument moves a and b alike, and counts as their rounding does;
            below 0 the profile falls by at most e^epsilon a unit. Both are of first order, so where the
            distance is not tiny, the profile, which falls in epsilon and rises in mu, is read at its ends.
        """
        lower, upper = _around(epsilon, mu, moved)
        far = moved > _TINY * min(mu, 1.0)
        if far.any():
            lower[far] = self.bounds(epsilon[far] + moved[far], (mu * (1 - 4 * U),))[0]
            upper[far] = self.bounds(epsilon[far] - moved[far], (mu * (1 + 4 * U),))[1]
        return lower, upper

    def swap(self) -> Law:
        """The pair is its own swap."""
        return self

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """All reals, unless there is no noise to speak of."""
        return (-math.inf, math.inf) if parameters[0] > 0 else (0.0, 0.0)


def _around(x: Floats, mu: float, moved: float | Floats) -> tuple[Floats, Floats]:
    """Bounds on the profile within `moved` of x, to first order in it."""
    value, error = _upper_half(np.abs(x), mu, moved)
    negative = x < 0
    if negative.any():
        below = np.exp(np.minimum(x, 0.0))
        value = np.where(negative, -np.expm1(np.minimum(x, 0.0)) + below * value, value)
        # The arguments' own rounding is in both errors.
        error = np.where(negative, 3 * LIBRARY * np.abs(value) + below * (error + 1.01 * moved), error)
    upper = np.minimum(up(value, 4 * U, error), 1.0)
    upper[x == np.inf] = 0.0
    return down(value, 4 * U, error).clip(0.0, 1.0), upper


def _upper_half(x: Floats, mu: float, moved: float | Floats) -> tuple[Floats, Floats]:
    """The profile at epsilons x ≥ 0 and a bound on its absolute error, within `moved` of them."""
    far, near = np.minimum(x / (mu * math.sqrt(2.0)), 1e150), mu / (2 * math.sqrt(2.0))
    a, b = far - near, far + near
    # The error of a and of b, 2 U of mu included.
    shift = 6 * U * (far + near) + moved * (1.01 / (mu * math.sqrt(2.0)))
    with np.errstate(under="ignore", over="ignore"):
        weight = 0.5 * np.exp(-np.minimum(a * a, 1000.0))
        value, error = _close(a, near, weight, shift) if near <= _CLOSE else _apart(a, b, weight, shift)
    infinite = np.isinf(x)
    return np.where(infinite, 0.0, value), np.where(infinite, 0.0, error)


def _close(a: Floats, near: float, weight: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """The difference of erfcx as an integral of its slope: no digits cancel however small mu is."""
    from scipy.special import erfcx

    y = a[:, None] + near * (1 + _NODES)
    steep = 2 * y * erfcx(y)
    flat = 2 / math.sqrt(math.pi)
    value = weight * (near * ((flat - steep) @ _WEIGHTS))
    # The slope is the difference of two parts that approach each other as y grows: its error is that of
    # the parts.
    rough = weight * (near * ((flat + np.abs(steep)) @ _WEIGHTS)) * (SPECIAL + LIBRARY)
    # On y ≥ -0.5 the slope changes by at most 2.5 times itself a unit; e^(-a²) by 2|a|.
    return value, rough + value * (2 * LIBRARY + shift * (2 * np.abs(a) + 2.5))


def _apart(a: Floats, b: Floats, weight: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """The difference itself; where a is negative, erfc(a) in place of e^(-a²) erfcx(a), which overflows."""
    from scipy.special import erfc, erfcx

    right = weight * erfcx(b)
    positive = a > 0
    left = np.empty_like(a)
    left[positive] = weight[positive] * erfcx(a[positive])
    left[~positive] = 0.5 * erfc(a[~positive])
    value = np.maximum(left - right, 0.0)
    # e^(-a²) moves by 2|a| a unit, both parts alike for a > 0; x·erfcx(x) increases, so |erfcx'| ≤ erfcx/x.
    alike = np.where(positive, value, right)
    slopes = np.where(positive, np.minimum(left / np.maximum(a, 1e-3), 2 * weight), 2 * weight)
    moved = shift * (2 * np.abs(a) * alike + 2 * slopes)
    return value, (SPECIAL + 2 * LIBRARY) * (left + right) + moved


GAUSSIAN = Gaussian()
