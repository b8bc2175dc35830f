"""Laws on a finite lattice of losses: the two-sided geometric mechanism and k-ary randomized response."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from sfumato.numeric.exact import float_up
from sfumato.numeric.laws.base import Complexes, Floats, Law, Smooth
from sfumato.numeric.laws.decay import atoms_error
from sfumato.numeric.rounding import LIBRARY, U, down, up

__all__ = ["DISCRETE_LAPLACE", "K_RESPONSE", "DiscreteLaplace", "KResponse"]


class DiscreteLaplace(Smooth):
    """Parameters (rate, shift): noise P(k) ∝ exp(-rate |k|) on the integers, sensitivity a whole number.

    With r = e^-rate the loss is rate·(shift - 2j): j = 0 with probability 1/(1+r), 0 < j < shift with
    (1-r)r^j/(1+r), j = shift with r^shift/(1+r).

    Privacy:
        Exact: the loss falls in the noise, so the best test is a threshold (Ghosh, Roughgarden,
        Sundararajan 2012 for the mechanism). Increasing in the rate: round it up.
    """

    __slots__ = ()

    name = "discrete Laplace"

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """The two ends, and a geometric sum between them."""
        rate, shift = parameters[:, 0], parameters[:, 1]
        step = rate * (1 + 2 * z[:, None])
        r = np.exp(-rate)
        with np.errstate(divide="ignore", under="ignore"):
            inside = np.exp(-step) * np.expm1(-(shift - 1) * step) / np.expm1(-step)
            sums = (1 + np.exp(-shift * step) - np.expm1(-rate) * inside) / (1 + r)
            result: Complexes = z[:, None] * (rate * shift) + np.log(sums)
        return result

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """The rounding of z·eps; the geometric sum is at most shift·(1 - r) ≤ eps of rounding more."""
        scale = (parameters[:, 0] * parameters[:, 1]) @ counts
        return 2 * atoms_error(z, scale, counts.sum())

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """None: losses on a lattice make |M| periodic."""
        del t
        return np.zeros((len(c), len(parameters)))

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above the profile.

        Privacy:
            The test j ≤ J gives (1 - e^(x - rate(shift - J)) + r(1 - r^J))/(1 + r) for 0 ≤ J < shift, all
            of whose parts are positive; the profile is the largest over J. The best J is floor((shift -
            x/rate)/2) up to one, and an exponent is moved down by its rounding error.
        """
        rate, shift = parameters
        x = np.asarray(epsilon, dtype=np.float64)
        top = float_up(Fraction(rate) * Fraction(shift))
        best = np.zeros(x.shape)
        floor = np.where(x < 0, -np.expm1(np.minimum(x, 0.0)), 0.0)
        raised = np.where(x < 0, up(floor, 4 * LIBRARY), 0.0)
        for offset in (-1, 0, 1):
            j = np.clip(np.floor((shift - np.clip(x / rate, -shift, shift)) / 2) + offset, 0, shift - 1)
            gap = x - rate * (shift - j)
            slip = 4 * U * (np.abs(x) + rate * shift)
            near = -np.expm1(np.minimum(gap, 700.0)) / (1 + np.exp(-rate))
            rest = np.exp(-rate) * -np.expm1(-rate * j) / (1 + np.exp(-rate))
            best = np.maximum(best, near + rest)
            moved = -np.expm1(np.minimum(gap, 700.0) - slip) / (1 + np.exp(-rate)) + rest
            raised = np.maximum(raised, np.minimum(up(np.maximum(moved, 0.0), 8 * LIBRARY), 1.0))
        slack = 8 * LIBRARY + 8 * U * (np.abs(x) + rate * shift)
        lower = np.maximum(down(np.maximum(best, floor), 8 * LIBRARY, slack * (x < top)), 0.0)
        return np.where(x >= top, 0.0, lower), np.where(x >= top, 0.0, raised)

    def swap(self) -> Law:
        """The pair is its own swap."""
        return self

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """±rate·shift."""
        top = float_up(Fraction(parameters[0]) * Fraction(parameters[1]))
        return -top, top

    def lattice(self, parameters: tuple[float, ...]) -> tuple[float, float] | None:
        """Steps of twice the rate."""
        return parameters[0] * parameters[1], 2 * parameters[0]

    def masses(self, parameters: tuple[float, ...]) -> Floats | None:
        """The two ends, which collect all that lies beyond, and what is between."""
        rate, shift = parameters
        if shift > 4096:
            return None
        j = np.arange(shift + 1)
        p = np.exp(-rate * j) * -np.expm1(-rate)
        p[0], p[-1] = 1.0, np.exp(-rate * shift)
        result: Floats = p / (1 + np.exp(-rate))
        return result


class KResponse(Smooth):
    """Parameters (eps, k): randomized response over k answers, the true one e^eps times as likely.

    Privacy:
        The loss is eps, 0, -eps with probability e^eps, k - 2, 1 over e^eps + k - 1 (Kairouz, Oh,
        Viswanath 2016): the law of the mechanism itself for two neighbouring answers. Increasing in eps:
        round it up.
    """

    __slots__ = ()

    name = "k-ary response"

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Three atoms, the largest divided out."""
        eps, k = parameters[:, 0], parameters[:, 1]
        zz = z[:, None]
        with np.errstate(divide="ignore", under="ignore"):
            rest = (k - 2) * np.exp(-(zz + 1) * eps) + np.exp(-(2 * zz + 1) * eps)
            result: Complexes = zz * eps + np.log1p(rest) - np.log1p((k - 1) * np.exp(-eps))
        return result

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """The rounding of z·eps in three atoms and a few library calls; both logarithms are above 0."""
        return 2 * atoms_error(z, parameters[:, 0] @ counts, counts.sum())

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """None: three atoms on a lattice make |M| periodic."""
        del t
        return np.zeros((len(c), len(parameters)))

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above the sum over the three atoms, all of whose parts are positive."""
        eps, k = parameters
        x = np.asarray(epsilon, dtype=np.float64)
        total = 1 + (k - 1) * np.exp(-eps)
        parts = -np.expm1(np.minimum(x - eps, 0.0)) - (k - 2) * np.exp(-eps) * np.expm1(np.minimum(x, 0.0))
        value = np.where(x <= -eps, -np.expm1(np.minimum(x, 0.0)), parts / total)
        lower = np.maximum(down(value, 8 * LIBRARY), 0.0)
        return lower, np.where(value > 0, np.minimum(up(value, 8 * LIBRARY), 1.0), 0.0)

    def swap(self) -> Law:
        """The pair is its own swap."""
        return self

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """±eps."""
        return -parameters[0], parameters[0]

    def lattice(self, parameters: tuple[float, ...]) -> tuple[float, float] | None:
        """Steps of eps."""
        return parameters[0], parameters[0]

    def masses(self, parameters: tuple[float, ...]) -> Floats | None:
        """The true answer, a third one, the neighbour's."""
        eps, k = parameters
        result: Floats = np.array([1.0, (k - 2) * np.exp(-eps), np.exp(-eps)]) / (1 + (k - 1) * np.exp(-eps))
        return result


DISCRETE_LAPLACE = DiscreteLaplace()
K_RESPONSE = KResponse()
