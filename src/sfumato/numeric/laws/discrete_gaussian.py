"""The discrete Gaussian mechanism on the integers, for a scalar and a whole sensitivity."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.numeric.laws.base import Complexes, Floats, Law, Smooth
from sfumato.numeric.rounding import LIBRARY, SMALLEST, SPECIAL, U, down, scaled, up

__all__ = ["DISCRETE_GAUSSIAN", "DiscreteGaussian", "lattice_tail"]

# Up to this standard deviation tails are tables; beyond, Euler–Maclaurin is exact to better than a float.
_TABLE = 2000.0
_EXTENDED = float(np.finfo(np.longdouble).eps)
_DEEP = 39.0  # e^(-39²/2) is below the least positive float


class DiscreteGaussian(Smooth):
    """Parameters (variance, shift): P(k) ∝ exp(-k²/(2 variance)), sensitivity a whole number `shift`.

    Privacy:
        The loss (shift² + 2 shift·k)/(2 variance) is monotone in k, so the profile is the largest over
        whole K of P(k ≥ K) - e^epsilon P(k ≥ K + shift) (Canonne, Kamath, Steinke 2020). It is
        *not* below the continuous Gaussian's. The bounds allow for a variance that is half an ulp off.
    """

    __slots__ = ()

    name = "discrete Gaussian"

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Log of e^(z(z+1) shift²/2v) Θ(z·shift)/Θ(0), Θ(a) = Σ_k exp(-(k - a)²/2v)."""
        columns = [
            _log_theta(z, v, s) - float(_log_theta(np.zeros(1), v, s)[0]) for v, s in parameters.tolist()
        ]
        return np.stack(columns, axis=1)

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """The exponents' rounding, and sums of a few terms each at most M(c)."""
        v, s = parameters[:, 0], parameters[:, 1]
        size = (np.abs(z) + 1)[:, None] ** 2 * (s * s / v) + (np.abs(z)[:, None] + 1) * s * 8 + v
        result: Floats = (32 * U * size + 32 * LIBRARY) @ counts
        return result

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """None: losses on a lattice make |M| periodic."""
        del t
        return np.zeros((len(c), len(parameters)))

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above the profile; the best threshold is known up to one, both sides are tried."""
        variance, shift = parameters
        x = np.asarray(epsilon, dtype=np.float64)
        if shift == 0:
            floor = np.where(x < 0, -np.expm1(np.minimum(x, 0.0)), 0.0)
            return np.maximum(down(floor, 4 * LIBRARY), 0.0), np.where(x < 0, up(floor, 4 * LIBRARY), 0.0)
        sigma = math.sqrt(variance)
        reach = _DEEP * sigma + abs(shift) + 2
        centre = np.clip(np.floor(variance * x / shift - shift / 2) + 1, -reach, reach)
        floor = np.where(x < 0, -np.expm1(np.minimum(x, 0.0)), 0.0)
        lower, upper = down(floor, 4 * LIBRARY), np.where(x < 0, up(floor, 4 * LIBRARY), 0.0)
        for offset in (-1.0, 0.0, 1.0):
            first, slack = lattice_tail(variance, centre + offset)
            second, slip = lattice_tail(variance, centre + offset + shift)
            weighted, off = scaled(second, x)
            with np.errstate(invalid="ignore", over="ignore"):  # no tail at all has no error
                error = first * slack + np.where(weighted > 0, weighted * (slip + off), 0.0)
            lower = np.maximum(lower, down(first - weighted, 4 * U, error))
            upper = np.maximum(upper, up(first - weighted, 4 * U, error))
        upper = np.maximum(upper, 16 * SMALLEST)
        return np.minimum(np.clip(lower, 0.0, 1.0), np.minimum(upper, 1.0)), np.where(
            x == np.inf, 0.0, np.minimum(upper, 1.0)
        )

    def swap(self) -> Law:
        """The pair is its own swap."""
        return self

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """All of a lattice that is unbounded on both sides."""
        return (-math.inf, math.inf) if parameters[1] > 0 else (0.0, 0.0)

    def lattice(self, parameters: tuple[float, ...]) -> tuple[float, float] | None:
        """Steps of shift/variance."""
        variance, shift = parameters
        return shift * shift / (2 * variance), shift / variance


def _log_theta(z: Complexes, v: float, s: float) -> Complexes:
    """Log Σ_k exp(-k²/2v + z(2 s k + s²)/2v), the larger terms only, to within e^-40 of the sum at Re z.

    The sum is periodic in Im z up to a phase, so Im z is reduced first. By Poisson summation it equals
    √(2πv) Σ_j exp(z(z+1)s²/2v - 2π²v j² + 2πi j z s); for v ≥ 0.3 and a reduced z the terms |j| > 3 are
    negligible, below that the terms k more than 9 from the peak are.
    """
    if s == 0:
        return np.zeros_like(z)
    period = 2 * math.pi * v / s
    turns = np.round(np.imag(z) / period)
    phase = turns * period
    reduced = z - 1j * phase if np.iscomplexobj(z) else z
    if v >= 0.3:
        j = np.arange(-3.0, 4.0)
        exponent = (reduced * (reduced + 1))[:, None] * (s * s / (2 * v)) - 2 * math.pi**2 * v * j * j
        exponent = exponent + 2j * math.pi * j * s * reduced[:, None] + 0.5 * math.log(2 * math.pi * v)
    else:
        k = np.round(np.real(reduced) * s)[:, None] + np.arange(-9.0, 10.0)
        exponent = -k * k / (2 * v) + reduced[:, None] * ((2 * s * k + s * s) / (2 * v))
    top = np.real(exponent).max(axis=1)
    with np.errstate(under="ignore", divide="ignore"):
        total = np.log(np.exp(exponent - top[:, None]).sum(axis=1)) + top
    if not np.iscomplexobj(z):
        return np.real(total)
    # What the reduction turned: exp(i·phase·(s² + 2 s k)/2v) = exp(i·phase·s²/2v) on the lattice.
    result: Complexes = total + 1j * (phase * (s * s / (2 * v)))
    return result


@lru_cache(maxsize=32)
def _table(variance: float) -> Floats:
    """P(k ≥ K) for K = 0, 1, … beyond the last positive float, summed from the small end."""
    k = np.arange(math.ceil(_DEEP * math.sqrt(variance)) + 3, dtype=np.float64)
    with np.errstate(under="ignore"):
        mass = np.exp(-k * k / (2 * variance))
        # Sums in extended precision, where the platform has it: neighbouring tails are subtracted later.
        tails = np.cumsum(mass[::-1].astype(np.longdouble))[::-1]
        total = 2 * tails[0] - 1
        return np.append((tails / total).astype(np.float64), 0.0)


def lattice_tail(variance: float, k: Floats) -> tuple[Floats, Floats]:
    """P(noise ≥ k) and its relative error."""
    from scipy.special import erfcx

    sigma = math.sqrt(variance)
    size = np.abs(k) / sigma
    with np.errstate(over="ignore"):  # an infinite budget certifies nothing, which is right
        budget = SPECIAL + 4 * LIBRARY + 4 * U * size * size
    if sigma <= _TABLE:
        table = _table(variance)
        n = len(table) - 1
        right = table[np.minimum(np.abs(k), n).astype(np.int64)]
        # P(≥ -k) = 1 - P(≥ k + 1) for k ≥ 0.
        left = 1 - table[np.minimum(np.abs(k) + 1, n).astype(np.int64)]
        return np.where(k >= 0, right, left), budget + _EXTENDED * n
    # Σ_{j ≥ k} f(j) = ∫_{k-1/2} f + f'(k - 1/2)/24 - … with a remainder of at most (7/5760)∫|f''''|.
    far = np.where(k >= 0, k, 1 - k) - 0.5
    y = far / sigma
    with np.errstate(under="ignore"):
        density = np.exp(-y * y / 2) / (sigma * math.sqrt(2 * math.pi))
        tail = density * (sigma * math.sqrt(math.pi / 2) * erfcx(y / math.sqrt(2)) - y / (24 * sigma))
    rest = 0.01 * ((np.abs(y) + 3) / sigma) ** 4
    return np.where(k >= 0, tail, 1 - tail), budget + rest


DISCRETE_GAUSSIAN = DiscreteGaussian()
