"""The Laplace mechanism: two Laplace laws a sensitivity apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.numeric.laws.base import Complexes, Floats, Law, Smooth
from sfumato.numeric.laws.decay import atoms_error, doubled
from sfumato.numeric.rounding import LIBRARY, down, up

__all__ = ["LAPLACE", "Laplace"]


class Laplace(Smooth):
    """Parameters (eps,): sensitivity over scale. Both directions have this law.

    The loss is eps with probability 1/2, -eps with probability e^-eps/2, and has density e^((l - eps)/2)/4
    in between.

    Privacy:
        delta(epsilon) = 1 - e^((epsilon - eps)/2) for |epsilon| ≤ eps (Balle, Barthe, Gaboardi 2018
        for epsilon ≥ 0; the swap gives the rest), exact, and increasing in eps: round eps up.
    """

    __slots__ = ()

    name = "Laplace"

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Log of (e^(eps z) + e^(-eps (z + 1)))/2 + e^(eps z)(1 - e^(-eps (2z + 1)))/(4z + 2)."""
        eps = parameters[:, 0]
        twice = 2 * z[:, None] + 1
        gone = np.expm1(-twice * eps)
        # With the larger atom divided out, 1 + gone·(1/2 - 1/(4z + 2)) is left, all of it well scaled.
        with np.errstate(divide="ignore", under="ignore"):  # a node may hit a zero of M exactly
            result: Complexes = z[:, None] * eps + np.log1p(gone * (0.5 - 0.5 / twice))
        return result

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """The rounding of z·eps and a few library calls."""
        return atoms_error(z, parameters[:, 0] @ counts, counts.sum())

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """Atoms do not decay, the middle does as 1/t; near t = 0 by doubling (see `decay.doubled`)."""
        return doubled(_ratio, c, t, parameters[:, 0])

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above max(0, 1 - e^epsilon, 1 - e^((epsilon - eps)/2))."""
        (eps,) = parameters
        x = np.asarray(epsilon, dtype=np.float64)
        middle = -np.expm1(np.clip((x - eps) / 2, -eps, 0.0))
        value = np.where(x >= eps, 0.0, np.where(x <= -eps, -np.expm1(np.minimum(x, 0.0)), middle))
        lower = np.maximum(down(value, 3 * LIBRARY), 0.0)
        return lower, np.where(value > 0, np.minimum(up(value, 3 * LIBRARY), 1.0), 0.0)

    def swap(self) -> Law:
        """The pair is its own swap."""
        return self

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """From -eps to eps."""
        return -parameters[0], parameters[0]


def _ratio(c: Floats, times: Floats, eps: Floats) -> Floats:
    """A decreasing bound on |M(c + it)|/M(c)."""
    left = np.exp(-(2 * c + 1) * eps)
    atoms = 0.5 + 0.5 * left
    middle = -np.expm1(-(2 * c + 1) * eps) / (4 * c + 2)
    # |sinh((z + 1/2) eps)| ≤ cosh((c + 1/2) eps), over |z + 1/2|.
    moved = np.minimum((1 + left) / (4 * np.hypot(c + 0.5, times)), middle)
    result: Floats = (atoms + moved) / (atoms + middle)
    return result


LAPLACE = Laplace()
