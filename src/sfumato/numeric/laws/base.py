"""What a law is: one direction of a dominating pair, and everything composition asks of it.

A *direction* is a pair of distributions (P, Q) that dominates a mechanism on the neighbouring inputs (x,
x') taken in that order. Its privacy loss is L = log dP/dQ under P, and its privacy profile is

    delta(epsilon) = sup_S P(S) - e^epsilon Q(S) = E_P[(1 - e^(epsilon - L))+],

a convex, decreasing function of e^epsilon. Profiles of independent (even adaptively chosen) mechanisms
compose by adding their losses (Zhu, Dong, Wang 2022, Theorem 10), so a law is all that an accountant needs
to know about a mechanism.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.rounding import Floats, U, up

__all__ = ["Complexes", "Floats", "Law", "Smooth", "Term"]

Complexes = npt.NDArray[Any]
"""Points of a contour: complex, or real where only real ones are asked for."""


@runtime_checkable
class Law(Protocol):
    """One direction of a dominating pair, vectorised over its parameters.

    `parameters` is one row (a tuple of floats) where a method speaks of one law, and an array of shape (n,
    k), one row a law, in the methods that contours call for many laws at once.
    """

    @property
    def name(self) -> str:
        """A short name for messages."""
        ...

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Log E_P[exp(z L); L < inf] for Re z > 0: z (m,), parameters (n, k) → (m, n), on any branch.

        Real z gives a real answer.
        """
        ...

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """The sum over rows of counts·η, shape (m,), where |exp(log_mgf(z)) - M(z)| ≤ η M(Re z).

        Rounding and quadrature both count. The error is stated against M at the real point of the contour,
        because that is what composition needs: all factors of a product are at most 1 in these units.
        """
        ...

    def effort(self, t: float, parameters: Floats) -> float:
        """How many values `log_mgf` computes for one point at height t, about."""
        ...

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """Bounds, at most 0, on log|M(c + iτ)| - log M(c) for all |τ| ≥ t: c and t (m,) → (m, n)."""
        ...

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above delta(epsilon) for any real epsilons, the mass at infinity included."""
        ...

    def delta(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> Floats:
        """The profile at any real epsilons, rounded up, the mass at infinity included."""
        ...

    def infinity(self, parameters: tuple[float, ...]) -> float:
        """P[L = inf], rounded up."""
        ...

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """An interval that holds every finite loss; ends may be infinite."""
        ...

    def renyi(self, alpha: float, parameters: tuple[float, ...]) -> float:
        """The Rényi divergence of order alpha ≥ 1 (1: Kullback–Leibler, inf: largest loss), rounded up."""
        ...

    def lattice(self, parameters: tuple[float, ...]) -> tuple[float, float] | None:
        """(origin, step) where all finite losses lie on origin + step·Z, else None."""
        ...

    def masses(self, parameters: tuple[float, ...]) -> Floats | None:
        """P of the losses largest, largest - step, … of a finite lattice, to 8 library calls; else None."""
        ...

    def swap(self) -> Law | None:
        """The law of (Q, P) at the same parameters: itself where that is the same, None where not known."""
        ...


class Smooth:
    """What most laws share: no mass at infinity, no lattice, an upper bound that is the answer."""

    __slots__ = ()

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above delta(epsilon)."""
        raise NotImplementedError

    def delta(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> Floats:
        """The profile at any real epsilons, rounded up, the mass at infinity included.

        Privacy:
            The upper end of `bounds`, whose error budget each law states; never below the true profile.
        """
        return self.bounds(epsilon, parameters)[1]

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """See `Law.log_mgf`."""
        raise NotImplementedError

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """See `Law.mgf_error`."""
        raise NotImplementedError

    def effort(self, t: float, parameters: Floats) -> float:
        """One value a row: a closed form."""
        del t
        return float(len(parameters))

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """See `Law.support`."""
        raise NotImplementedError

    def renyi(self, alpha: float, parameters: tuple[float, ...]) -> float:
        """The Rényi divergence of order alpha, rounded up.

        Privacy:
            R(alpha) = log M(alpha - 1)/(alpha - 1), infinite where mass lies at infinity, increasing in
            alpha (van Erven and Harremoës 2014, Theorem 3), so that an order below 1 + 2^-20, whose
            quotient would lose its digits, is answered with the one at 1 + 2^-20, and infinity with the
            largest loss.
        """
        largest = self.support(parameters)[1]
        if self.infinity(parameters) > 0:
            return math.inf
        if alpha == math.inf:
            return max(largest, 0.0)
        # The exact order where it is not too small, and larger ones that dominate it.
        orders = np.array(
            [k for k in (alpha - 1, *2.0 ** np.arange(-24.0, -5.0, 2.0)) if k > 0 and k >= alpha - 1]
        )
        row = np.array([parameters], dtype=np.float64)
        values = np.real(self.log_mgf(orders, row))[:, 0]
        errors = self.mgf_error(orders, row, np.ones(1))
        usable = errors < 0.1
        bounds = up((values + 2 * errors)[usable] / orders[usable], 8 * U)
        return max(min(float(bounds.min(initial=math.inf)), largest), 0.0)

    def infinity(self, parameters: tuple[float, ...]) -> float:
        """P[L = inf]: none."""
        del parameters
        return 0.0

    def lattice(self, parameters: tuple[float, ...]) -> tuple[float, float] | None:
        """No common lattice of losses is known."""
        del parameters
        return None

    def masses(self, parameters: tuple[float, ...]) -> Floats | None:
        """Not finitely many losses."""
        del parameters
        return None

    def swap(self) -> Law | None:
        """Not known."""
        return None


@dataclass(frozen=True, slots=True)
class Term:
    """`count` independent events with the same law: the unit of composition."""

    law: Law
    parameters: tuple[float, ...]
    count: int = 1

    def __post_init__(self) -> None:
        for value in self.parameters:
            if type(value) is not float:
                # Plain floats: whatever reads a parameter exactly must not meet a NumPy scalar.
                object.__setattr__(self, "parameters", tuple(map(float, self.parameters)))
                break
        if self.count < 1:
            raise InvalidParameter(f"A term must count at least one event, not {self.count}.")
        for value in self.parameters:
            if value != value:
                raise InvalidParameter(f"The parameters of a {self.law.name} law must be numbers.")

    @property
    def row(self) -> Floats:
        """The parameters as an array of one row."""
        return np.array([self.parameters], dtype=np.float64)
