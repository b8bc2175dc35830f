"""A stream with a fixed key, and what the tests of the samplers share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from flint import arb, ctx, fmpq
from scipy import stats

ALPHA = 1e-9


class Seeded:
    """AES-256-CTR under a key made from a seed; counts calls for single bits, which mark the exact paths."""

    def __init__(self, seed: int) -> None:
        self.singles = 0
        key = seed.to_bytes(32, "big")
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def _bytes(self, size: int) -> bytearray:
        return bytearray(self._encryptor.update(bytes(size)))

    def words32(self, count: int) -> np.ndarray:
        return np.frombuffer(self._bytes(4 * count), np.uint32)

    def words64(self, count: int) -> np.ndarray:
        return np.frombuffer(self._bytes(8 * count), np.uint64)

    def bits(self, count: int) -> int:
        self.singles += 1
        size = (count + 7) // 8
        return int.from_bytes(self._bytes(size), "little") >> (8 * size - count)


@pytest.fixture
def stream() -> Seeded:
    return Seeded(20_261_115)


def ball(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def exp_ball(x: Fraction) -> arb:
    """exp(-x) in ball arithmetic."""
    return (-ball(x)).exp()


@pytest.fixture
def precise() -> object:
    """Ball arithmetic at 3000 bits for the length of a test."""
    before = ctx.prec
    ctx.prec = 3000
    yield
    ctx.prec = before


def chi_square(
    values: np.ndarray, probability: Callable[[np.ndarray], np.ndarray], low: int, high: int
) -> float:
    """p-value of integer draws against a mass function on low … high; cells of small mass are pooled."""
    ks = np.arange(low, high + 1)
    expected = probability(ks) * values.size
    counts = np.bincount(np.clip(values - low, -1, high - low + 1) + 1, minlength=ks.size + 2)[1:-1]
    big = expected >= 10
    observed = np.append(counts[big], values.size - counts[big].sum())
    wanted = np.append(expected[big], values.size - expected[big].sum())
    if wanted[-1] < 5:  # too small for a cell of its own: any draw there would be judged by the exact tests
        observed[-2] += observed[-1]
        wanted[-2] += wanted[-1]
        observed, wanted = observed[:-1], wanted[:-1]
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    return float(stats.chi2.sf(statistic, max(observed.size - 1, 1)))


def laplace_mass(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    ratio = np.exp(-1 / scale)
    return lambda k: (1 - ratio) / (1 + ratio) * np.exp(-np.abs(k) / scale)


def gaussian_mass(variance: float) -> Callable[[np.ndarray], np.ndarray]:
    reach = int(20 * np.sqrt(variance)) + 20
    total = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance)).sum()
    return lambda k: np.exp(-(k.astype(float) ** 2) / (2 * variance)) / total


def geometric_mass(rate: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda k: np.where(k >= 0, -np.expm1(-rate) * np.exp(-rate * np.maximum(k, 0)), 0.0)


@pytest.fixture
def tools() -> SimpleNamespace:
    """The helpers above, for tests, which cannot import this file."""
    return SimpleNamespace(
        ALPHA=ALPHA,
        Seeded=Seeded,
        ball=ball,
        exp_ball=exp_ball,
        chi_square=chi_square,
        laplace_mass=laplace_mass,
        gaussian_mass=gaussian_mass,
        geometric_mass=geometric_mass,
    )
