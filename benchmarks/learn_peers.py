"""Published private regressions in plain numpy, after their papers; float noise, for comparison only."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr

__all__ = ["adassp", "boosted_adassp", "clipped_rows", "gradient_descent"]

Floats: TypeAlias = NDArray[np.float64]


def _mu(epsilon: float, delta: float) -> float:
    """The mu of the Gaussian mechanism at (epsilon, delta), exactly (Balle, Wang 2018)."""

    def above(mu: float) -> float:
        first = math.exp(log_ndtr(-epsilon / mu + mu / 2))
        return first - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)) - delta

    return float(brentq(above, 1e-6, 50))


def _one(X: Floats) -> Floats:
    return np.hstack([X, np.ones((len(X), 1))])


def _symmetric(rng: np.random.Generator, scale: float, width: int) -> Floats:
    noise = np.triu(rng.normal(0, scale, (width, width)))
    return noise + np.triu(noise, 1).T


def gradient_descent(X: Floats, y: Floats, epsilon: float, delta: float, seed: int, *, steps: int) -> Floats:
    """Noisy gradient descent on all rows, clipped to length 1, with momentum and averaging; divides by n."""
    rng, rows = np.random.default_rng(seed), _one(X)
    lengths, scale = np.linalg.norm(rows, axis=1), math.sqrt(steps) / _mu(epsilon, delta)
    weights, speed, later = (np.zeros(rows.shape[1]) for _ in range(3))
    for step in range(steps):
        residual = 1 / (1 + np.exp(-rows @ weights)) - y
        residual *= np.minimum(1, 1 / np.maximum(np.abs(residual) * lengths, 1e-12))
        slope = (rows.T @ residual + rng.normal(0, scale, len(weights))) / len(rows)
        speed = 0.8 * speed + slope
        weights = weights - 7.2 * speed
        if step >= steps // 2:
            later += weights
    return later / (steps - steps // 2)


def adassp(X: Floats, y: Floats, epsilon: float, delta: float, seed: int, *, squares: float) -> Floats:
    """AdaSSP (Wang 2018): noisy sufficient statistics with an adaptive ridge.

    Args:
        squares: What the squares of a row add up to at most, the intercept's too; the target is in [0, 1].
    """
    rng, rows = np.random.default_rng(seed), _one(X)
    scale, width = math.sqrt(3) / _mu(epsilon, delta), rows.shape[1]
    moments = rows.T @ rows
    least = max(0.0, np.linalg.eigvalsh(moments)[0] + scale * squares * (rng.normal() - 1.96))
    ridge = max(0.0, math.sqrt(width * math.log(2 * width**2 / 0.05)) * scale * squares - least)
    noisy = moments + _symmetric(rng, scale * squares, width) + ridge * np.eye(width)
    return np.linalg.solve(noisy, rows.T @ y + rng.normal(0, scale * math.sqrt(squares), width))


def boosted_adassp(X: Floats, y: Floats, epsilon: float, delta: float, seed: int, *, rounds: int) -> Floats:
    """Boosted AdaSSP (Tang et al. 2023) with its fixed clipping: rows and residuals to length 1.

    The weights are for rows that are clipped alike (`clipped_rows`).
    """
    rng = np.random.default_rng(seed)
    rows = clipped_rows(X)
    scale, width = math.sqrt(3) / _mu(epsilon, delta), rows.shape[1]
    moments = rows.T @ rows
    least = max(0.0, np.linalg.eigvalsh(moments)[0] + scale * (rng.normal() - 1.96))
    ridge = max(0.0, math.sqrt(width) * scale * 1.96 - least)
    noisy = moments + _symmetric(rng, scale, width) + ridge * np.eye(width)
    weights = np.zeros(width)
    for _ in range(rounds):
        residual = np.clip(y - rows @ weights, -1, 1)
        weights = weights + np.linalg.solve(
            noisy, rows.T @ residual + rng.normal(0, scale * math.sqrt(rounds), width)
        )
    return weights


def clipped_rows(X: Floats) -> Floats:
    """Rows with an intercept, each cut to length 1."""
    rows = _one(X)
    return rows * np.minimum(1, 1 / np.linalg.norm(rows, axis=1))[:, None]
