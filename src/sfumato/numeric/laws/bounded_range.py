"""Bounded range: what the exponential mechanism has, stronger than pure privacy of the same epsilon."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sfumato.numeric.laws.base import Complexes, Floats, Law, Smooth
from sfumato.numeric.laws.decay import atoms_error, doubled
from sfumato.numeric.rounding import LIBRARY, U, down, up

__all__ = ["BOUNDED_RANGE", "BoundedRange"]


class BoundedRange(Smooth):
    """Parameters (eps,): dominates every mechanism whose losses span an interval of length eps.

    For a fixed position t of the interval the worst pair has the two losses t and t - eps (Dong, Durfee,
    Rogers 2020); the supremum of their profiles over t is (e^(eps/2) - e^(epsilon/2))²/(e^eps -
    1), and that is the profile of the law whose loss has density e^(l/2)/(4 sinh(eps/2)) on [-eps, eps].

    Privacy:
        A supremum of profiles dominates each of them, so this pair composes adaptively (Zhu, Dong, Wang
        2022). It is increasing in eps: round eps up.
    """

    __slots__ = ()

    name = "bounded range"

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Log of sinh((z + 1/2) eps)/(2 (z + 1/2) sinh(eps/2))."""
        eps = parameters[:, 0]
        twice = 2 * z[:, None] + 1
        with np.errstate(divide="ignore", under="ignore"):
            top = np.log(np.expm1(-twice * eps) / (np.expm1(-eps) * twice))
        result: Complexes = z[:, None] * eps + top
        return result

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """The rounding of z·eps and a few library calls, over M(c) with the top divided out."""
        eps = parameters[:, 0]
        c = np.real(z)[:, None]
        # e^(-c eps) M(c) is what the absolute rounding is measured against.
        scaled = np.expm1(-(2 * c + 1) * eps) / (np.expm1(-eps) * (2 * c + 1))
        size = (16 * U * (2 * np.abs(z)[:, None] + 1) * eps + 8 * LIBRARY) / np.abs(2 * z[:, None] + 1)
        inner: Floats = (size / (-np.expm1(-eps) * scaled)) @ counts
        return atoms_error(z, eps @ counts, counts.sum()) + inner

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """|sinh| is at most cosh of the real part, over |z + 1/2|."""
        return doubled(_ratio, c, t, parameters[:, 0])

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above max(0, 1 - e^epsilon, (e^(eps/2) - e^(epsilon/2))²/(e^eps - 1))."""
        (eps,) = parameters
        x = np.asarray(epsilon, dtype=np.float64)
        middle = np.expm1(np.clip((x - eps) / 2, -eps, 0.0)) ** 2 / -np.expm1(-eps)
        value = np.where(x >= eps, 0.0, np.where(x <= -eps, -np.expm1(np.minimum(x, 0.0)), middle))
        lower = np.maximum(down(value, 6 * LIBRARY), 0.0)
        return lower, np.where(x < eps, np.minimum(up(value, 6 * LIBRARY), 1.0), 0.0)

    def swap(self) -> Law:
        """The pair is its own swap."""
        return self

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """From -eps to eps."""
        return -parameters[0], parameters[0]

    def renyi(self, alpha: float, parameters: tuple[float, ...]) -> float:
        """The largest Rényi divergence over all positions of the interval, rounded up.

        Privacy:
            With E = e^eps, a = e^t, k = alpha - 1 the moment of the pair at t is
            a^k ((E - E^-k) - a (1 - E^-k))/(E - 1), largest at a = k/(k+1)·(E - E^-k)/(1 - E^-k); Rényi
            bounds compose adaptively by themselves, so the position may differ between orders. For alpha
            near 1 an order of at least 1 + 2^-20 is used, which only raises the answer.
        """
        (eps,) = parameters
        if alpha == math.inf:
            return eps
        k = max(alpha - 1, 2.0**-20)
        # Everything divided by E: (1 - E^-(k+1)) and (1 - E^-k) lose no digits as differences.
        full, part = -math.expm1(-(k + 1) * eps), -math.expm1(-k * eps)
        t = min(max(eps + math.log(k / (k + 1) * full / part), 0.0), eps)
        moment = full - math.exp(t - eps) * part
        value = k * t + math.log(moment / -math.expm1(-eps))
        return min(float(up(value / k, 16 * LIBRARY, 16 * LIBRARY * (1 + eps) / k)), eps)


def _ratio(c: Floats, times: Floats, eps: Floats) -> Floats:
    """A decreasing bound on |M(c + it)|/M(c)."""
    h = c + 0.5
    far = np.hypot(h, times) / h
    result: Floats = np.minimum(1.0, (1 + np.exp(-2 * h * eps)) / (-np.expm1(-2 * h * eps) * far))
    return result


BOUNDED_RANGE = BoundedRange()
