"""A Gaussian whose mean is itself drawn: Poisson sampling, and any mixture of shifts.

With y = x/sigma the likelihood ratio of the mixture against the centred Gaussian is

    w(y) = Σ_j p_j exp(s_j y - s_j²/2),    s_j = shift_j/sigma ≥ 0,

and both directions are moments of it under the standard normal density φ: removing a unit has loss log w
and M(z) = ∫ φ w^(z+1), adding one has loss -log w and M(z) = ∫ φ w^(-z).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.laws.base import Complexes, Floats, Law, Smooth
from sfumato.numeric.rounding import LIBRARY, SPECIAL, U, down, scaled, up

__all__ = [
    "GAUSSIAN_MIXTURE_ADD",
    "GAUSSIAN_MIXTURE_REMOVE",
    "GaussianMixture",
    "Mixture",
    "OfMixtures",
    "decay",
    "effort",
    "moment_errors",
    "moments",
]

# Quadrature errors are pushed below e^-44, which is less than 1e-19 of the answer.
_NEGLIGIBLE = 44.0
_ROOT = math.sqrt(2 * math.pi)
# Nodes evaluated together: bounds memory, and lets low nodes use coarser rules.
_CHUNK = 128


@dataclass(frozen=True, slots=True)
class Mixture:
    """Normalised shifts in increasing order, their probabilities, and the direction."""

    shifts: tuple[float, ...]
    weights: tuple[float, ...]
    remove: bool

    @property
    def widest(self) -> float:
        """The largest shift: the steepest slope of log w."""
        return self.shifts[-1]

    def exponents(self, y: Floats) -> Floats:
        """The exponents s_j y - s_j²/2, one row a shift."""
        s: Floats = np.array(self.shifts, dtype=np.float64)[:, None]
        return s * y - 0.5 * s * s

    def log_ratio(self, y: Floats) -> Floats:
        """Log w(y), to a few library calls of 1 + |log w|, and of |log w| where that is small."""
        u = self.exponents(y)
        p = np.array(self.weights)[:, None]
        # Near 0 the sum of p(e^u - 1) keeps the digits that the logarithm of a sum near 1 would lose.
        total = (p * np.expm1(np.minimum(u, 1.0))).sum(axis=0)
        close = (u <= 1.0).all(axis=0) & (total > -0.5)
        near: Floats = np.log1p(np.where(close, total, 0.0))
        if close.all():
            return near
        far: Floats = np.logaddexp.reduce(u + np.log(p), axis=0)
        return np.where(close, near, far)

    def sensitivity(self, y: Floats) -> Floats:
        """How much log w moves when all exponents move relatively: Σ p e^u |u| / w."""
        u = self.exponents(y)
        share = np.array(self.weights)[:, None] * np.exp(u - u.max(axis=0))
        result: Floats = (share * np.abs(u)).sum(axis=0) / share.sum(axis=0)
        return result


@dataclass(frozen=True, slots=True)
class Trapezoid:
    """Trapezoid nodes for ∫ φ w^A at Re z = c and |Im z| ≤ tau, and what they leave out relative to M(c)."""

    log_ratio: Floats
    log_weight: Floats  # of h φ(y)
    log_m: float  # log M(c) as the rule gives it
    error: float  # quadrature and cut tails, relative to M(c)
    size: float  # mean over the mass at c of the error of log w, in units of U
    squares: float  # mean over the mass at c of the size of log_weight
    ends: tuple[float, float]


def _step(mixture: Mixture, c: float, tau: float) -> tuple[float, float]:
    """The largest step whose error bound is negligible, and that bound.

    On Im y = b, |φ| grows by e^(b²/2), |arg w| ≤ b·widest, |w| ≤ w(Re y) and |w| ≥ cos(b·widest/2) w(Re
    y): the integrand is at most e^(b²/2 + tau·b·widest)·(cos(b·widest/2)^-c if adding)·φ w^A, so the
    trapezoid rule errs by at most 2 e^(…)/(e^(2πb/h) - 1) of M(c) (Trefethen and Weideman 2014, Theorem
    5.1).
    """
    s = mixture.widest
    b = np.geomspace(1e-3, 1.0, 40) * min(3.1 / s if s > 0 else math.inf, 2 * math.sqrt(2 * _NEGLIGIBLE))
    growth = b * b / 2 + tau * b * s
    if not mixture.remove:
        growth = growth - c * np.log(np.cos(b * s / 2))
    h = 2 * math.pi * b / (_NEGLIGIBLE + 1 + growth)
    k = int(np.argmax(h))
    return float(h[k]), 4 * math.exp(-_NEGLIGIBLE)


@lru_cache(maxsize=4096)
def plan(mixture: Mixture, c: float, tau: float) -> Trapezoid:
    """Nodes, weights and a rigorous account of what was left out."""
    exponent = c + 1 if mixture.remove else -c
    s = mixture.widest
    reach = abs(exponent) * s
    low, high = (-10.0, reach + 10.0) if mixture.remove else (-reach - 10.0, 10.0)
    cells = min(max(64, math.ceil((high - low) * 6)), 20_000)
    edges: Floats = np.linspace(low, high, cells + 1, dtype=np.float64)
    g = exponent * mixture.log_ratio(edges)
    # g is monotone, so on a cell φ e^g is at most the larger end of g and the y nearest to 0.
    nearest = np.where(edges[:-1] * edges[1:] <= 0, 0.0, np.minimum(np.abs(edges[:-1]), np.abs(edges[1:])))
    bound = np.maximum(g[:-1], g[1:]) - 0.5 * nearest**2 - math.log(_ROOT)
    rough = float((g - 0.5 * edges**2).max()) - math.log(_ROOT)
    kept = np.flatnonzero(bound > rough - _NEGLIGIBLE - math.log(cells) - 2)
    left, right = float(edges[kept[0]]), float(edges[kept[-1] + 1])
    h, error = _step(mixture, c, tau)
    count = math.ceil((right - left) / h) + 1
    y: Floats = left + h * np.arange(count, dtype=np.float64)
    log_ratio = mixture.log_ratio(y)
    log_weight = -0.5 * y * y + math.log(h / _ROOT)
    log_terms = exponent * log_ratio + log_weight
    top = float(log_terms.max())
    terms = np.exp(log_terms - top)
    total = float(terms.sum())
    log_m = top + math.log(total)
    dropped = np.ones(cells, dtype=bool)
    dropped[kept[0] : kept[-1] + 1] = False
    # A node of the infinite rule covers its own step, so a cell holds at most its width plus one step
    # of # nodes; every step here is below 1.
    outside = float(np.exp(bound[dropped] - log_m).sum()) * ((high - low) / cells + 1.0)
    outside += _beyond(float(g[0]), float(g[-1]), low, high, reach, mixture.remove, log_m)
    mass = terms / total
    size = float((8 * 6 * np.abs(log_ratio) + 8 * mixture.sensitivity(y)) @ mass)
    squares = float(np.abs(log_weight - log_m) @ mass)
    return Trapezoid(log_ratio, log_weight, log_m, error + 2 * outside, size, squares, (left, right))


def _beyond(
    g_low: float, g_high: float, low: float, high: float, reach: float, remove: bool, log_m: float
) -> float:
    """What lies beyond the scanned interval, relative to M(c), steps of at most 1 included.

    On the flat side e^g only falls away from the end, where |y| ≥ 10. On the steep side g grows by at most
    `reach` a unit, so beyond the end E = reach + 10 the integrand φ e^g falls, and integrates to at most
    its value there times √(π/2) erfcx((E - reach)/√2).
    """
    from scipy.special import erfcx, ndtr

    flat, steep, end = (g_low, g_high, high) if remove else (g_high, g_low, -low)
    density = math.exp(-50.0) / _ROOT
    quiet = math.exp(min(flat - log_m, 700.0)) * (float(ndtr(-10.0)) + density)
    peak = math.exp(min(steep - 0.5 * end * end - log_m, 700.0)) / _ROOT
    return quiet + peak * (float(erfcx((end - reach) / math.sqrt(2.0))) * math.sqrt(math.pi / 2) + 1)


def _rules(mixture: Mixture, z: Complexes) -> Iterator[tuple[npt.NDArray[np.intp], Complexes, Trapezoid]]:
    """The nodes in handfuls of one contour and similar height, with the power of w and the plan of each."""
    real, imaginary = np.real(z), np.abs(np.imag(z))
    for c in np.unique(real):
        here = np.flatnonzero(real == c)
        here = here[np.argsort(imaginary[here], kind="stable")]
        for start in range(0, len(here), _CHUNK):
            some = here[start : start + _CHUNK]
            power = z[some] + 1 if mixture.remove else -z[some]
            yield some, power, plan(mixture, float(c), float(imaginary[some[-1]]))


def effort(t: float, widths: Floats) -> float:
    """How many nodes quadratures of these widths have at height t: oscillations add to a few hundred."""
    return float((400 + 4 * t * widths).sum())


def moments(mixture: Mixture, z: Complexes) -> Complexes:
    """Log M(z) for nodes z that may lie on several contours."""
    value = np.empty(len(z), dtype=np.result_type(z.dtype, np.float64))
    for some, power, rule in _rules(mixture, z):
        exponent = power[:, None] * rule.log_ratio + (rule.log_weight - rule.log_m)
        with np.errstate(under="ignore", divide="ignore"):
            value[some] = np.log(np.exp(exponent).sum(axis=1)) + rule.log_m
    return value


def moment_errors(mixture: Mixture, z: Complexes) -> Floats:
    """The η of `Law.mgf_error` for the same nodes.

    Every term of the rule errs by its exponent's error; averaged over the terms at c, whose sizes the plan
    knows, that is what the sum errs by.
    """
    error = np.empty(len(z))
    for some, power, rule in _rules(mixture, z):
        rounding = np.abs(power) * (U * rule.size) + 8 * U * rule.squares + 4 * LIBRARY + 64 * U
        error[some] = 2 * rounding + 2 * rule.error
    return error


def decay(mixture: Mixture, c: float, t: float) -> float:
    """A bound on log|M(c + iτ)| - log M(c) for all |τ| ≥ t.

    Privacy:
        Moving the line of integration by ia turns the phase e^(iτ log w) into the factor e^(-τ θ), θ = arg
        w(y + ia) ≥ 0:
        |M(c + iτ)| ≤ e^(a²/2) ∫ φ |w(y + ia)|^A e^(-tθ) for every τ ≥ t. The integral is computed by the
        rule of the plan: its integrand extends to |Im y| ≤ b with (a + b)·widest ≤ π/2, where Re θ ≥ 0
        still, and is there at most e^((a² + b²)/2)·(cos(π/4)^-c if adding) times φ w^A.
    """
    s = mixture.widest
    if t <= 0 or s == 0:
        return 0.0
    rule = plan(mixture, c, 0.0)
    b = min(math.pi / (4 * s), math.sqrt(2 * _NEGLIGIBLE))
    a = np.geomspace(1e-4, 1.0, 24) * min(math.pi / (4 * s), 8.0)
    exponent = c + 1 if mixture.remove else -c
    grown = 0.5 * a * a - (0.0 if mixture.remove else c * np.log(np.cos(a * s / 2)))
    widest = 0.5 * (float(a[-1]) ** 2 + b * b) + (0.0 if mixture.remove else c * math.log(math.sqrt(2.0)))
    h = 2 * math.pi * b / (_NEGLIGIBLE + 1 + widest)
    if (rule.ends[1] - rule.ends[0]) / h > 20_000:
        return 0.0
    y = np.arange(rule.ends[0], rule.ends[1] + h, h)
    u = mixture.exponents(y)
    scale = u.max(axis=0)
    parts = np.array(mixture.weights)[:, None, None] * np.exp(u - scale)[:, None, :]
    w = (parts * np.exp(1j * np.array(mixture.shifts)[:, None] * a)[:, :, None]).sum(axis=0)
    log_terms = exponent * (np.log(np.abs(w)) + scale) - t * np.angle(w) - 0.5 * y * y
    log_terms += 0.5 * (a * a)[:, None] + (math.log(h / _ROOT) - rule.log_m)
    with np.errstate(under="ignore", over="ignore"):
        ratio = np.exp(log_terms).sum(axis=1)
        # Each term is at most e^grown times the term of M(c), whose mean sizes the plan knows.
        rough = abs(exponent) * (U * rule.size + 4 * LIBRARY) + 8 * U * rule.squares + 16 * LIBRARY + 64 * U
        bound = ratio + np.exp(grown) * 2 * (rough + rule.error) + 4 * math.exp(-_NEGLIGIBLE)
    best = float(bound.min()) * (1 + 2 * rough + 2 * rule.error)
    return min(0.0, math.log(best))


class OfMixtures(Smooth):
    """A law whose parameters are those of a mixture: its moments by quadrature."""

    __slots__ = ()

    def _mixture(self, parameters: npt.ArrayLike) -> Mixture:
        """The mixture of one row of parameters."""
        raise NotImplementedError

    def log_mgf(self, z: Complexes, parameters: Floats) -> Complexes:
        """One quadrature a row."""
        return np.stack([moments(self._mixture(row), z) for row in parameters], axis=1)

    def mgf_error(self, z: Complexes, parameters: Floats, counts: Floats) -> Floats:
        """What the quadratures state."""
        errors = np.stack([moment_errors(self._mixture(row), z) for row in parameters], axis=1)
        result: Floats = errors @ counts
        return result

    def log_decay(self, c: Floats, t: Floats, parameters: Floats) -> Floats:
        """A shifted line of integration; see `decay`."""
        mixtures = [self._mixture(row) for row in parameters]
        return np.array(
            [[decay(one, x, y) for one in mixtures] for x, y in zip(c.tolist(), t.tolist(), strict=True)]
        )


class GaussianMixture(OfMixtures):
    """Parameters (sigma, shifts…, weights…): N(0, sigma²) moved by a random shift, against not moved.

    Shifts are at least 0 (a two-sided one is not ordered by its likelihood ratio), weights sum to 1.

    Privacy:
        The pair of `remove` dominates a Gaussian mechanism whose sensitivity is random and independent of
        the noise (Choquette-Choo, Ganesh, Steinke, Thakurta 2024); `add` is the same pair the other way
        round.
    """

    __slots__ = ("name", "remove")

    def __init__(self, remove: bool) -> None:
        self.remove = remove
        self.name = f"Gaussian mixture ({'remove' if remove else 'add'})"

    def _mixture(self, parameters: npt.ArrayLike) -> Mixture:
        row = np.asarray(parameters, dtype=np.float64)
        sigma, (shifts, weights) = row[0], row[1:].reshape(2, -1)
        if not (sigma > 0 and np.all(shifts >= 0) and np.all(weights >= 0)):
            raise InvalidParameter(
                "A Gaussian mixture needs sigma above 0 and shifts and weights of at least 0."
            )
        keep = np.flatnonzero(weights > 0)
        order = keep[np.argsort(shifts[keep])]
        return Mixture(tuple(shifts[order] / sigma), tuple(weights[order]), self.remove)

    def effort(self, t: float, parameters: Floats) -> float:
        """One quadrature a row."""
        return effort(t, np.array([self._mixture(row).widest for row in parameters]))

    def bounds(self, epsilon: npt.ArrayLike, parameters: tuple[float, ...]) -> tuple[Floats, Floats]:
        """Floats below and above the profile.

        Privacy:
            The loss is monotone in y, so the best test is a threshold y* with log w(y*) = ±epsilon, and
            the profile is the difference of its two probabilities. A threshold found to |log w(y*) ∓
            epsilon| ≤ r misses at most r times the smaller probability; everything else is the rounding of
            the two.
        """
        from scipy.special import ndtr

        mixture = self._mixture(parameters)
        x = np.atleast_1d(np.asarray(epsilon, dtype=np.float64))
        target = x if self.remove else -x
        y, missed = _threshold(mixture, target)
        sign = -1.0 if self.remove else 1.0
        s = np.array(mixture.shifts)[:, None]
        plain = ndtr(sign * y)
        mixed = (np.array(mixture.weights)[:, None] * ndtr(sign * (y - s))).sum(axis=0)
        first, second = (mixed, plain) if self.remove else (plain, mixed)
        second, off = scaled(second, x)
        slack = (
            off + 2 * SPECIAL + 4 * LIBRARY + 8 * U * (np.square(y) + np.abs(x) + mixture.widest**2) + missed
        )
        with np.errstate(invalid="ignore"):  # an infinite slack of nothing is nothing
            error = np.where(first + second > 0, slack * (first + second), 0.0)
        value = first - second
        ceiling = np.minimum(up(np.maximum(value, 0.0), 4 * U, error), 1.0)
        # Where every loss is below epsilon there is nothing to sum.
        highest = self.support(parameters)[1]
        upper = np.where(x >= highest, 0.0, ceiling)
        lower = np.maximum(down(value, 4 * U, error), 0.0)
        return np.minimum(lower, upper).reshape(np.shape(epsilon)), upper.reshape(np.shape(epsilon))

    def swap(self) -> Law:
        """The other direction."""
        return GAUSSIAN_MIXTURE_ADD if self.remove else GAUSSIAN_MIXTURE_REMOVE

    def support(self, parameters: tuple[float, ...]) -> tuple[float, float]:
        """Bounded on the side of the unshifted part, if there is one."""
        mixture = self._mixture(parameters)
        if mixture.widest == 0:
            return 0.0, 0.0
        least = math.log(mixture.weights[0]) * (1 + 4 * U) if mixture.shifts[0] == 0 else -math.inf
        return (least, math.inf) if self.remove else (-math.inf, -least)


def _threshold(mixture: Mixture, target: Floats) -> tuple[Floats, Floats]:
    """Where log w crosses the targets, and by how much it misses them (0 where no crossing is wanted)."""
    reach = 40.0 + 2 * mixture.widest
    low = np.full(target.shape, -reach)
    high = np.maximum(
        reach, (np.maximum(target, 0.0) - math.log(mixture.weights[-1])) / mixture.widest + reach
    )
    for _ in range(90):
        middle = 0.5 * (low + high)
        above = mixture.log_ratio(middle) > target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    y = 0.5 * (low + high)
    miss = np.abs(mixture.log_ratio(y) - target) + 4 * LIBRARY * (1 + np.abs(target))
    # Where w is above the target everywhere, the threshold stays at the left end and nothing is missed:
    # less # than Φ(-40) lies further left. Elsewhere a miss that large is not rounding, and makes the
    # answer useless.
    return y, np.where(low == -reach, 0.0, np.where(miss < 1e-3, miss, 1.0))


GAUSSIAN_MIXTURE_REMOVE = GaussianMixture(True)
GAUSSIAN_MIXTURE_ADD = GaussianMixture(False)
