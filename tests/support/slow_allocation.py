"""Slow references for random allocation: integrals for few bins, samples with intervals for many."""

import math

import numpy as np
from scipy.special import ndtr

__all__ = ["add", "remove", "sampled"]

_STEPS, _FAR = {2: 1 / 2048, 3: 1 / 64}, 12.0


def call(mu, x):
    """E[(Y − x)+] of one ratio, for any real x."""
    x = np.asarray(x, dtype=np.float64)
    safe = np.maximum(x, 1e-300)
    z = np.log(safe) / mu
    return np.where(x <= 0, 1 - x, ndtr(mu / 2 - z) - safe * ndtr(-mu / 2 - z))


def put(mu, x):
    """E[(x − Y)+] of one ratio."""
    x = np.asarray(x, dtype=np.float64)
    safe = np.maximum(x, 1e-300)
    z = np.log(safe) / mu
    return np.where(x <= 0, 0.0, safe * ndtr(z + mu / 2) - ndtr(z - mu / 2))


def _rest(mu, bins):
    """Sums of all ratios but one, with weights: the trapezoidal rule; for three bins, noise of 1 and more."""
    step = _STEPS[bins]
    z = np.arange(-_FAR, _FAR + mu, step)
    ratio, weight = np.exp(mu * z - mu * mu / 2), np.exp(-z * z / 2) * (step / math.sqrt(2 * math.pi))
    sums, weights = np.zeros(1), np.ones(1)
    for _ in range(bins - 1):
        sums, weights = np.add.outer(sums, ratio).ravel(), np.multiply.outer(weights, weight).ravel()
    return sums, weights


def remove(mu, bins, epsilon):
    """δ with the unit against without, by an integral over all ratios but one (up to three bins)."""
    sums, weights = _rest(mu, bins)
    return float(weights @ call(mu, bins * math.exp(epsilon) - sums)) / bins


def add(mu, bins, epsilon):
    """δ without the unit against with it."""
    sums, weights = _rest(mu, bins)
    return float(weights @ put(mu, bins * math.exp(-epsilon) - sums)) / bins * math.exp(epsilon)


def sampled(mu, bins, epsilon, draws=20_000, seed=0):
    """(remove, add), each a mean and its deviation: E_P[(1 − e^ε/X)+] and E_Q[(1 − e^ε X)+]."""
    normals = np.random.default_rng(seed).standard_normal((bins + 1, draws))
    ratios = np.exp(mu * normals - mu * mu / 2)
    rest = ratios[1:-1].sum(0)
    with_unit, without = (rest + ratios[0] * math.exp(mu * mu)) / bins, (rest + ratios[-1]) / bins
    removed = np.maximum(1 - math.exp(epsilon) / with_unit, 0)
    added = np.maximum(1 - math.exp(epsilon) * without, 0)
    return [(float(each.mean()), float(each.std()) / math.sqrt(draws)) for each in (removed, added)]
