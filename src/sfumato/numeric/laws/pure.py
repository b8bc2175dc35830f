"""Pure and approximate differential privacy: randomized response, with or without an atom at infinity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.numeric.laws.base import Complexes, Floats, Law, Smooth
from sfumato.numeric.laws.decay import atoms_error
from sfumato.numeric.rounding import LIBRARY, down, up

__all__ = ["DOUBLE", "PURE", "Double", "Pure"]


def _profile(x: Floats, eps: float) -> Floats:
    """The profile of randomized response, to a relative error of 6 library calls."""
    # (e^eps - e^x)/(1 + e^eps) between the atoms; the subtraction x - eps is exact where it is small.
    middle = -np.expm1(np.clip(x - eps, -2 * eps, 0.0)) / (1 + np.exp(-eps))
    return np.where(x >= eps, 0.0, np.where(x <= -eps, -np.expm1(np.minimum(x, 0.0)), middle))


class Pure(Smooth):
    """Parameters (eps,): randomized response, the pair that dominates every eps-DP mechanism.

    Privacy:
        Kairouz, Oh, Viswanath 2015 (proof of Theorem 3.3): between two neighbours any eps-DP mechanism is a
        post-processing of this pair, hence dominated by it under adaptive composition. Increasing in eps:
        round eps up.
    """

    __slots__ = ()

    name = "pure"

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Log of (e^(eps z) + e^(-eps (z + 1)))/(1 + e^-eps)."""
        eps = parameters[:, 0]
        with np.errstate(divide="ignore", under="ignore"):  # a node may hit a zero of M exactly
            tail = np.log1p(np.exp(-(2 * z[:, None] + 1) * eps))
        result: Complexes = z[:, None] * eps + tail - np.log1p(np.exp(-eps))
        return result

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """The rounding of z·eps in both atoms, and a few library calls."""
        return atoms_error(z, parameters[:, 0] @ counts, counts.sum())

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """None: two atoms make |M| periodic."""
        del t
        return np.zeros((len(c), len(parameters)))

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above max(0, 1 - e^epsilon, (e^eps - e^epsilon)/(1 + e^eps))."""
        value = _profile(np.asarray(epsilon, dtype=np.float64), parameters[0])
        lower = np.maximum(down(value, 6 * LIBRARY), 0.0)
        return lower, np.where(value > 0, np.minimum(up(value, 6 * LIBRARY), 1.0), 0.0)

    def swap(self) -> Law:
        """The pair is its own swap."""
        return self

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """Two atoms, at ±eps."""
        return -parameters[0], parameters[0]

    def lattice(self, parameters: tuple[float, ...]) -> tuple[float, float] | None:
        """The two atoms."""
        return parameters[0], 2 * parameters[0]

    def masses(self, parameters: tuple[float, ...]) -> Floats | None:
        """Truth and lie."""
        return _atoms(parameters[0])


class Double(Smooth):
    """Parameters (eps, delta): with probability delta everything is revealed, else randomized response.

    Privacy:
        Kairouz, Oh, Viswanath 2015 (proof of Theorem 3.3): this pair dominates every (eps, delta)-DP
        mechanism. Increasing in both parameters: round both up.
    """

    __slots__ = ()

    name = "approximate"

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """The finite part: that of randomized response times 1 - delta."""
        return PURE.log_mgf(z, parameters[:, :1]) + np.log1p(-parameters[:, 1])

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """As randomized response, and one logarithm more."""
        logs = np.abs(np.log1p(-parameters[:, 1])) @ counts
        return atoms_error(z, parameters[:, 0] @ counts, counts.sum()) + 2 * LIBRARY * logs

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """None: two atoms make |M| periodic."""
        del t
        return np.zeros((len(c), len(parameters)))

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above delta + (1 - delta) times the profile of randomized response."""
        eps, delta = parameters
        finite = _profile(np.asarray(epsilon, dtype=np.float64), eps)
        value = delta + (1 - delta) * finite
        # Beyond eps the answer is delta itself, exactly.
        lower = np.where(finite > 0, np.maximum(down(value, 8 * LIBRARY), delta), delta)
        return lower, np.where(finite > 0, np.minimum(up(value, 8 * LIBRARY), 1.0), delta)

    def infinity(self, parameters: tuple[float, ...]) -> float:
        """The probability of revealing everything."""
        return parameters[1]

    def swap(self) -> Law:
        """The pair is its own swap."""
        return self

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """Two finite atoms, at ±eps."""
        return -parameters[0], parameters[0]

    def lattice(self, parameters: tuple[float, ...]) -> tuple[float, float] | None:
        """The two finite atoms."""
        return parameters[0], 2 * parameters[0]

    def masses(self, parameters: tuple[float, ...]) -> Floats | None:
        """Truth and lie, where not everything is revealed."""
        return (1 - parameters[1]) * _atoms(parameters[0])


def _atoms(eps: float) -> Floats:
    """The probabilities of the losses eps and -eps."""
    result: Floats = np.array([1.0, np.exp(-eps)]) / (1 + np.exp(-eps))
    return result


PURE = Pure()
DOUBLE = Double()
