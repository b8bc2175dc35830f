"""Proven tails of the number of reports that support a value: coins of one kind, and coins of another."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["lower_tail", "upper_tail", "variance"]

Floats: TypeAlias = NDArray[np.float64]

_PEAK = 0.468823
"""No number of heads is likelier than this over the deviation (Baillon, Cominetti, Vaisman 2016)."""

_SHEVTSOVA = 0.56
"""The constant of Berry and Esseen for independent terms that need not be alike (Shevtsova 2010)."""

_SAFE = 1 + 1e-9
"""What floats could lose on the way, many times over."""


def variance(m: Floats, people: int, p: float, q: float) -> Floats:
    """That of C = Bin(m, p) + Bin(people − m, q)."""
    return np.asarray(m * (p * (1 - p)) + (people - m) * (q * (1 - q)), np.float64)


def lower_tail(x: Floats, m: Floats, people: int, p: float, q: float, *, enough: float = 0.0) -> Floats:
    """An upper bound on P(C ≤ x); people − C is a sum of the same kind."""
    return upper_tail(people - x, m, people, 1 - p, 1 - q, enough=enough)


def upper_tail(x: Floats, m: Floats, people: int, p: float, q: float, *, enough: float = 0.0) -> Floats:
    """An upper bound on P(C ≥ x) for C = Bin(m, p) + Bin(people − m, q), for whole x and m.

    C is a sum of independent coins that are not alike (a Poisson-binomial law), with the mean μ. The bound is
    the lesser of two theorems, each of which holds for every such sum, so that no number of people is too
    small for it.

    1. Hoeffding 1956, Theorems 4 and 5: where x ≥ μ + 1, P(C ≥ x) is at most that of Bin(people, μ/people).
       It is close where one kind of coin is rare or the two are nearly alike.
    2. Exponential tilting (Esscher 1932; Bahadur, Rao 1960): for the t > 0 under which C has the mean x,
       P(C ≥ x) = e^(−E)·S, with E Chernoff's exponent and S the sum of e^(−tj)·P(C = x + j) over j ≥ 0, in
       the tilted law, a sum of independent coins as well. `_beyond` bounds S. It has the variance of C
       itself, and is close wherever that is large.

    The first takes longer, and is left out where the second is not above `enough`.
    """
    mean = m * p + (people - m) * q
    exponent, sums = _tilted(x, m, people, p, q)
    tail = np.where(x > mean, np.exp(-exponent) * sums * _SAFE, 1.0)
    tail[x > m * (p > 0) + (people - m) * (q > 0)] = 0.0  # more than all coins that can show heads
    far = (x >= mean + 1) & (x <= people) & (tail > enough)
    binomial = special.betainc(x[far], people - x[far] + 1, np.clip(mean[far] / people, 0.0, 1.0))
    tail[far] = np.minimum(tail[far], binomial * _SAFE)
    return np.minimum(tail, 1.0)


def _tilted(x: Floats, m: Floats, people: int, p: float, q: float) -> tuple[Floats, Floats]:
    """Chernoff's exponent at x, and a bound on the sum S that it is multiplied with.

    The exponent is the supremum of t·x − K(t) for the cumulant generating function K; it is attained where
    K'(t) = x, a quadratic in e^t. It equals m·KL(a, p) + (people − m)·KL(b, q) for tilted chances a and b.
    """
    x, others = np.clip(x, 0.0, people), people - m
    square = p * q * (people - x)
    linear = m * p * (1 - q) + others * q * (1 - p) - x * (q * (1 - p) + p * (1 - q))
    constant = x * (1 - p) * (1 - q)
    spread = np.sqrt(linear * linear + 4 * square * constant)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        tilt = np.where(linear > 0, 2 * constant / (linear + spread), (spread - linear) / (2 * square))
        tilt = np.nan_to_num(tilt, nan=np.inf, posinf=np.inf)
        # A coin that never shows heads does not under any tilt.
        own, other = (np.where(np.isinf(tilt), float(c > 0), c * tilt / (1 - c + c * tilt)) for c in (p, q))
    exponent = m * _divergence(own, p) + others * _divergence(other, q)
    parts = m * own * (1 - own), others * other * (1 - other)
    thirds = parts[0] * (own**2 + (1 - own) ** 2) + parts[1] * (other**2 + (1 - other) ** 2)
    return np.maximum(exponent, 0.0), _beyond(tilt, parts[0] + parts[1], thirds)


def _beyond(tilt: Floats, variance: Floats, thirds: Floats) -> Floats:
    """A bound on S = Σ e^(−tj)·P(C = x + j), j ≥ 0, for a sum of coins with the mean x, a whole number.

    No value is likelier than M = 0.468823/σ. x is the median (Jogdeo, Samuels 1968), so that all values from
    x on have at most 1/2 + M together: S is largest if the first ones have M each until that is used up. With
    many coins the law is nearly normal: P(x ≤ C ≤ x + j) is at most Φ(j/σ) − 1/2 + 2B, B the bound of Berry
    and Esseen, and so S is at most e^(a²/2)·Φ(−a) + 2B with a = tσ; by the median again, one B may be an M.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t, deviation = np.log(tilt), np.sqrt(variance)
        peak = np.minimum(_PEAK / deviation, 1.0)
        mass = np.minimum(0.5 + peak, 1.0)
        full = np.floor(mass / peak)
        filled = peak * -np.expm1(-t * full) / -np.expm1(-t) + (mass - full * peak) * np.exp(-t * full)
        error = _SHEVTSOVA * thirds / (variance * deviation)
        normal = special.erfcx(t * deviation / np.sqrt(2)) / 2 + error + np.minimum(error, peak)
    return np.asarray(np.fmin(mass, np.fmin(filled, normal)), np.float64)


def _divergence(a: Any, p: float) -> Floats:
    """KL(a, p) of two coins."""
    return np.asarray(special.rel_entr(a, p) + special.rel_entr(1 - a, 1 - p), np.float64)
