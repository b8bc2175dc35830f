"""Poisson sampling: each unit takes part with a public probability, under adding or removing a unit.

For a pair (P, Q) and a rate q the sampled mechanism is dominated by ((1 - q)Q + qP, Q) when a unit is
removed and by (Q, (1 - q)Q + qP) when one is added (Zhu, Dong, Wang 2022, Theorem 11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from sfumato.numeric.laws.base import Complexes, Floats, Law, Smooth
from sfumato.numeric.laws.decay import atoms_error, doubled
from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.laws.laplace import LAPLACE
from sfumato.numeric.laws.mixture import Mixture, OfMixtures, effort
from sfumato.numeric.rounding import LIBRARY, U, down, up

__all__ = [
    "SAMPLED_GAUSSIAN_ADD",
    "SAMPLED_GAUSSIAN_REMOVE",
    "SAMPLED_LAPLACE_ADD",
    "SAMPLED_LAPLACE_REMOVE",
    "SampledGaussian",
    "SampledLaplace",
    "sampled_bounds",
]


def sampled_bounds(
    inner: Law, parameters: tuple[float, ...], rate: float, epsilon: npt.ArrayLike, *, remove: bool
) -> tuple[Floats, Floats]:
    """Floats below and above the profile of a pair sampled at a rate, from the profile of the pair.

    Privacy:
        Removing: the profile at x is q·delta(log(1 + (e^x - 1)/q)), and 1 - e^x where that logarithm has no
        argument. Adding: it is (1 - (1 - q)e^x)·delta(x + log q - log(1 - (1 - q)e^x)), and 0 where the
        bracket is not positive. Both are identities of hockey-stick divergences (compare Balle, Barthe,
        Gaboardi 2018, Theorem 2, for x ≥ 0); the inner profile is read at an argument moved down (for the
        upper bound) or up by its rounding error.
    """

    def around(x: Floats, moved: Floats) -> tuple[Floats, Floats]:
        return inner.bounds(x + moved, parameters)[0], inner.bounds(x - moved, parameters)[1]

    return _bounds_by(around, rate, epsilon, remove=remove)


def _bounds_by(
    around: Callable[[Floats, Floats], tuple[Floats, Floats]],
    rate: float,
    epsilon: npt.ArrayLike,
    *,
    remove: bool,
) -> tuple[Floats, Floats]:
    """The same from a function that bounds the inner profile within a distance of each point."""
    x = np.asarray(epsilon, dtype=np.float64)
    base = np.where(x < 0, -np.expm1(np.minimum(x, 0.0)), 0.0)  # no profile is below 1 - e^x
    floor = np.where(base > 0, up(base, 4 * LIBRARY), 0.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        factor, drift, inside, moved, gone = (_removed if remove else _added)(x, rate)
        usable = ~gone & np.isfinite(inside) & (moved < 1.0)
        safe, step = np.where(usable, inside, 0.0), np.where(usable, moved, 0.0)
        lower, upper = around(safe.ravel(), step.ravel())
        lower, upper = lower.reshape(x.shape), upper.reshape(x.shape)
        high = np.where(upper > 0, up((factor + drift) * upper, 4 * LIBRARY), floor)
        low = down((factor - drift) * lower, 4 * LIBRARY)
    # Where rounding drowns the argument, the inner profile is at most 1.
    coarse = np.maximum(floor, up(np.maximum(factor, 0.0) + drift, 4 * LIBRARY))
    high = np.where(usable, high, np.where(gone, floor, coarse))
    high = np.where(x == np.inf, 0.0, np.maximum(high, floor))
    low = np.minimum(np.maximum(np.where(usable, low, 0.0), down(base, 4 * LIBRARY)), high)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _removed(x: Floats, rate: float) -> tuple[Floats, Floats, Floats, Floats, npt.NDArray[np.bool_]]:
    """Factor and its error, inner argument and its error, and where the inner profile is not asked."""
    y = np.expm1(x) / rate
    # expm1 overflows for a large x, where the logarithm is x - log q to within rounding.
    large = x > 600.0
    inside = np.where(large, x - math.log(rate), np.log1p(np.maximum(y, -1.0)))
    steep = np.where(large, 1.0, np.abs(y) / np.maximum(1 + y, 1e-300))
    moved = 4 * LIBRARY * (steep + np.abs(inside) + np.where(large, abs(math.log(rate)), 0.0))
    # Beyond rounding below -1 there is no inner argument and the profile is 1 - e^x exactly.
    return np.full(x.shape, rate), np.zeros(x.shape), inside, moved, y < -1 - 4 * LIBRARY


def _added(x: Floats, rate: float) -> tuple[Floats, Floats, Floats, Floats, npt.NDArray[np.bool_]]:
    """The same for the other direction."""
    kept = math.log1p(-rate) if rate < 1 else -math.inf
    # From -log(1 - q) on, which is below 37 for a float q, nothing is left to tell.
    x = np.minimum(x, 500.0) if rate < 1 else x
    factor = -np.expm1(x + kept)
    # The factor is 1 - e^v; v errs by a few U of its parts, and e^v ≤ 1 where the factor is used.
    drift = 2 * LIBRARY * (np.abs(factor) + (np.abs(x) + abs(kept) if rate < 1 else 0.0))
    inside = x + math.log(rate) - np.log(np.maximum(factor, 0.0))
    steep = drift / np.maximum(factor, 1e-300)
    moved = 2 * steep + 4 * LIBRARY * (np.abs(x) + abs(math.log(rate)) + np.abs(inside))
    return factor, drift, inside, moved, factor < -drift


def _loss(x: float, rate: float) -> float:
    """Log(1 - q + q e^x)."""
    if x == math.inf:
        return math.inf
    if x > 1:
        return x + math.log(rate + (1 - rate) * math.exp(-x))
    y = rate * math.expm1(x)
    return math.log1p(y) if y > -1 else -math.inf


class _Sampled(Smooth):
    """What both sampled laws share: which way round, and the support."""

    __slots__ = ("name", "remove")

    def __init__(self, name: str, remove: bool) -> None:
        self.name = f"Poisson-sampled {name} ({'remove' if remove else 'add'})"
        self.remove = remove

    def _support(self, rate: float, largest: float) -> tuple[float, float]:
        low, high = _loss(-largest, rate), _loss(largest, rate)
        low, high = low - 8 * LIBRARY * abs(low), high + 8 * LIBRARY * abs(high)
        return (low, high) if self.remove else (-high, -low)


class SampledGaussian(_Sampled, OfMixtures):
    """Parameters (q, sigma): a Gaussian of sigma sensitivities on a Poisson sample of rate q.

    Privacy:
        The profile is exact in each direction (see `sampled_bounds`); increasing in q, decreasing in
        sigma: round the rate up and sigma down.
    """

    __slots__ = ()

    def _mixture(self, parameters: npt.ArrayLike) -> Mixture:
        q, sigma = np.asarray(parameters, dtype=np.float64).tolist()
        if q >= 1:
            return Mixture((1 / sigma,), (1.0,), self.remove)
        return Mixture((0.0, 1 / sigma), (1 - q, q), self.remove)

    def effort(self, t: float, parameters: Floats) -> float:
        """One quadrature a row."""
        return effort(t, 1 / parameters[:, 1])

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """See `sampled_bounds`; that 1/sigma is rounded is part of what `GAUSSIAN.around` bounds."""
        rate, sigma = parameters
        return _bounds_by(lambda x, y: GAUSSIAN.around(x, y, 1 / sigma), rate, epsilon, remove=self.remove)

    def swap(self) -> Law:
        """The other direction."""
        return SAMPLED_GAUSSIAN_ADD if self.remove else SAMPLED_GAUSSIAN_REMOVE

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """Bounded by log(1 - q) on one side."""
        return self._support(parameters[0], math.inf)


class SampledLaplace(_Sampled):
    """Parameters (q, eps): a Laplace mechanism of loss eps on a Poisson sample of rate q.

    Privacy:
        The profile is exact in each direction (see `sampled_bounds`) and increasing in both parameters:
        round both up.
    """

    __slots__ = ()

    def effort(self, t: float, parameters: Floats) -> float:
        """One quadrature a row."""
        return effort(t, parameters[:, 1])

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """Two atoms in closed form and a composite Gauss–Legendre rule between them."""
        return np.stack(
            [_laplace_moments(z, q, eps, self.remove)[0] for q, eps in parameters.tolist()], axis=1
        )

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """The rule's bound on its Bernstein ellipses, and rounding."""
        errors = [_laplace_moments(z, q, eps, self.remove)[1] for q, eps in parameters.tolist()]
        rule = np.stack(errors, axis=1)
        result: Floats = rule @ counts + atoms_error(z, parameters[:, 1] @ counts, 4 * counts.sum())
        return result

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """Atoms do not decay; between them, bounded variation gives 1/t, and doubling the rest."""
        parts = np.array(
            [[_laplace_parts(x, q, eps, self.remove) for q, eps in parameters.tolist()] for x in c.tolist()]
        )
        return doubled(partial(_flat, parts[..., 0], parts[..., 1]), c, t, parameters)

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """See `sampled_bounds`; exactly 0 from the largest loss."""
        low, high = sampled_bounds(LAPLACE, parameters[1:], parameters[0], epsilon, remove=self.remove)
        beyond = np.asarray(epsilon, dtype=np.float64) >= self.support(parameters)[1]
        return np.where(beyond, 0.0, low), np.where(beyond, 0.0, high)

    def swap(self) -> Law:
        """The other direction."""
        return SAMPLED_LAPLACE_ADD if self.remove else SAMPLED_LAPLACE_REMOVE

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """Bounded on both sides."""
        return self._support(*parameters)


def _flat(atoms: Floats, variation: Floats, c: Floats, times: Floats, parameters: Floats) -> Floats:
    """A decreasing bound on |M(c + it)|/M(c) from what does not decay and what decays as 1/t."""
    del c, parameters
    return atoms + np.minimum(variation / times, 1 - atoms)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


@lru_cache(maxsize=1024)
def _panels(c: float, tau: float, eps: float, remove: bool) -> tuple[int, float]:
    """How many panels make the rule's error negligible, and that error in absolute terms over e^scale.

    Twenty nodes on a panel of half-width H err by at most (64/15) m ρ^-38/(1 - ρ^-2) on a function bounded
    by m on the Bernstein ellipse of radius ρ (Trefethen 2013, Theorem 19.3). There |Im l| ≤ β = H(ρ -
    1/ρ)/2 < π bounds
    |arg w|, |w| is at most w at the rightmost point, and at least cos(β/2) times w at the leftmost.
    """
    for panels in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024):
        half = eps / panels
        rho = np.geomspace(1.5, 200.0, 60)
        beta = half * (rho - 1 / rho) / 2
        wide = half * ((rho + 1 / rho) / 2 - 1)
        if remove:
            # w grows at most as e^wide beyond the panel.
            growth = (c + 1) * wide
        else:
            growth = c * wide - c * np.log(np.cos(np.minimum(beta, 3.0) / 2))
        bound = growth + wide / 2 + tau * beta - 38 * np.log(rho) + 2.0
        bound = np.where(beta < 3.0, bound, np.inf)
        best = float(bound.min())
        if best < -42.0:
            return panels, math.exp(best)
    return 0, math.inf


def _laplace_moments(z: Complexes, q: float, eps: float, remove: bool) -> tuple[Complexes, Floats]:
    """Log M(z) and the rule's error relative to M(c)."""
    value = np.empty(len(z), dtype=np.result_type(z.dtype, np.float64))
    error = np.empty(len(z))
    real, imaginary = np.real(z), np.abs(np.imag(z))
    for c in np.unique(real):
        here = real == c
        panels, bound = _panels(float(c), float(imaginary[here].max()), eps, remove)
        if panels == 0:
            value[here], error[here] = 0.0, np.inf
            continue
        log_w, log_weight = _nodes(panels, q, eps)
        power = z[here] + 1 if remove else -z[here]
        exponent = power[:, None] * log_w + log_weight
        top = float(np.real(exponent).max())
        with np.errstate(under="ignore", divide="ignore"):
            value[here] = np.log(np.exp(exponent - top).sum(axis=1)) + top
        # On each panel the bound is a multiple of the integrand's largest value there, which the panel's
        # own # values at c match up to the growth over its width; summed, at most (panels·growth) of M(c).
        spread = math.exp((abs(c) + 2) * 2 * eps / panels)
        error[here] = bound * spread * 2 + 64 * U + 8 * U * np.abs(power) * float(np.abs(log_w).max())
    return value, error


@lru_cache(maxsize=256)
def _nodes(panels: int, q: float, eps: float) -> tuple[Floats, Floats]:
    """Log w and the logarithm of the weight at every node, atoms first."""
    edges = np.linspace(-eps, eps, panels + 1)
    half = eps / panels
    inner = ((edges[:-1] + edges[1:]) / 2)[:, None] + half * _NODES
    losses = np.concatenate([[eps, -eps], inner.ravel()])
    middle = np.tile(np.log(_WEIGHTS * half / 4), panels) - (inner.ravel() + eps) / 2
    log_weight = np.concatenate([[-eps - math.log(2.0), -math.log(2.0)], middle])
    return np.array([_loss(float(x), q) for x in losses]), log_weight


def _laplace_parts(c: float, q: float, eps: float, remove: bool) -> tuple[float, float]:
    """The share of the atoms in M(c), and a bound on |middle at c + it|·t/M(c).

    In the variable log w the middle has density ψ = e^(-(3l + eps)/2) w^(A+1)/(4q), whose logarithm has the
    derivative -3/2 + (A+1)·(increasing): it falls and then rises, so it varies by at most ψ(-eps) +
    ψ(eps), and one integration by parts bounds the middle by 2(ψ(-eps) + ψ(eps))/t.
    """
    power = c + 1 if remove else -c
    value, _ = _laplace_moments(np.array([c]), q, eps, remove)
    log_m = float(value[0])
    high, low = _loss(eps, q), _loss(-eps, q)
    atoms = 0.5 * (math.exp(power * high - eps - log_m) + math.exp(power * low - log_m))
    right = (power + 1) * high - 2 * eps - log_m - math.log(4 * q)
    left = (power + 1) * low + eps - log_m - math.log(4 * q)
    variation = 2 * (math.exp(min(right, 700.0)) + math.exp(min(left, 700.0)))
    return min(atoms, 1.0), variation


SAMPLED_GAUSSIAN_REMOVE = SampledGaussian("Gaussian", True)
SAMPLED_GAUSSIAN_ADD = SampledGaussian("Gaussian", False)
SAMPLED_LAPLACE_REMOVE = SampledLaplace("Laplace", True)
SAMPLED_LAPLACE_ADD = SampledLaplace("Laplace", False)
