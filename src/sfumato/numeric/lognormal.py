"""The likelihood ratio of a Gaussian, cell by cell: how much of it lies in a cell, and how far from its edge.

Y = e^(μZ − μ²/2) with a standard normal Z is the ratio of N(μ, 1) to N(0, 1) under the latter; its mean is 1.
Places are those of Y − 1.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.numeric.laws.gaussian import GAUSSIAN
from sfumato.numeric.rounding import LIBRARY, SPECIAL, Floats

__all__ = ["ACCURATE", "LOWER", "LOWEST", "MOVED", "above", "below", "cells", "place"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)

LOWEST, LOWER = -16.0, 1e-56
"""How many deviations below 0 cells begin, and more than lies lower."""

ACCURATE = 2.0**-41
"""How far `cells` may be off, relatively."""

MOVED = 2.0**-42
"""How far `cells` may have moved Y, relatively: a few roundings of its logarithm, which is below 128."""

_PIECE = 1 / 64
"""No piece is longer, in deviations."""


def place(mu: float, deviations: float) -> float:
    """Y − 1 at so many deviations, about."""
    return math.expm1(mu * deviations - mu * mu / 2)


def below(mu: float, edge: float) -> float:
    """P[Y − 1 < edge], rounded up."""
    return _normal(mu, edge, 1.0)


def above(mu: float, edge: float) -> tuple[float, float]:
    """P[Y − 1 > edge] and E[(Y − 1 − edge)+] for an edge above 0, rounded up."""
    more = GAUSSIAN.bounds(math.log1p(edge) * (1 - 2 * LIBRARY), (mu,))[1]
    return _normal(mu, edge, -1.0), float(more)


def _normal(mu: float, edge: float, sign: float) -> float:
    from scipy.special import ndtr

    if edge <= -1:
        return 0.0
    ratio = math.log1p(edge)
    z = (ratio + mu * mu / 2) / mu
    hair = 4 * LIBRARY * (abs(ratio) + mu * mu) / mu
    return float(ndtr(sign * z + hair)) * (1 + 2 * SPECIAL) + 1e-300


def cells(mu: float, edges: Floats) -> tuple[Floats, Floats]:
    """Of each cell between rising edges: its mass, and the distances from its left edge, weighted with mass.

    What lies outside the edges, or below `LOWEST` deviations, is left out. Each number is off by at most
    `ACCURATE` of itself, for a Y that is moved by at most `MOVED` of itself.

    The rule: on a piece of half-width H ≤ 1/128 around z the integrand, e^(−z²/2) times 1 or e^(μz) less a
    constant, is entire. On the Bernstein ellipse of radius 32, which reaches 17H ≤ 0.14 beyond z, it is at
    most e^(0.14(|z| + μ) + 0.02) times its largest value on the piece, and twelve nodes err by (64/15)·32^−22
    times that (Trefethen 2013, Theorem 19.3): below 1e-28 for |z| + μ ≤ 64, against values on the piece that
    are within e^1.1 of each other. Distances fall to 0 at the left edge; the mean of those on a piece is at
    least a tenth of the largest, or all of them are above the piece's own length.
    """
    with np.errstate(divide="ignore"):
        ends = (np.log1p(edges) + mu * mu / 2) / mu
    first, last = max(float(ends[0]), LOWEST), float(ends[-1])
    cuts = np.unique(
        np.concatenate((np.arange(first, last, _PIECE), ends[(ends > first) & (ends < last)], [first, last]))
    )
    half, middle = np.diff(cuts) / 2, (cuts[1:] + cuts[:-1]) / 2
    where = np.searchsorted(edges, np.expm1(mu * middle - mu * mu / 2), "right") - 1
    where = np.clip(where, 0, len(edges) - 2)
    z = middle[:, None] + half[:, None] * _NODES
    weight = np.exp(-z * z / 2) * (half[:, None] * (_WEIGHTS / math.sqrt(2 * math.pi)))
    off = np.maximum(np.expm1(mu * z - mu * mu / 2) - edges[where][:, None], 0.0)
    count = len(edges) - 1
    mass: Floats = np.bincount(where, weight.sum(1), count).astype(np.float64)
    return mass, np.bincount(where, (weight * off).sum(1), count).astype(np.float64)
