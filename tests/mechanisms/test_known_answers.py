"""Releases for a fixed stream of bits, to the last bit: what 64 bits hold must not change with the code."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

import numpy as np
import pytest

import sfumato as sf
from sfumato.testing import seeded

KNOWN = [
    (sf.Laplace(1, 1), "5acfc4bf0406ffdf"),
    (sf.Laplace("1e-6", 1), "9dc364c1b6cf29cd"),
    (sf.Laplace(7, "1e-40"), "652219a41840326a"),
    (sf.Laplace("0.3", 2**80), "33a257fa4b06604d"),
    (sf.Gaussian(rho="0.5", sensitivity=1), "2adf2d73773b3a4d"),
    (sf.Gaussian(sigma="3e20", sensitivity=2**60), "305013fcc7ab5cda"),
]


def numbers(grid: float, count: int) -> tuple[list[float], list[int]]:
    """Floats and integers of all sizes below 2**62 grid steps, the same on every machine."""
    generator = np.random.default_rng(8)
    most = math.frexp(grid)[1] + 61  # 2**62 steps are 2**most
    mantissas = generator.integers(-(2**53) + 1, 2**53, count).tolist()
    floats = [
        math.ldexp(m, int(e) - 53)
        for m, e in zip(mantissas, generator.integers(-1020, most, count), strict=True)
    ]
    top = max(0, min(62, most))
    shifts = generator.integers(53, 116, count)
    whole = [(abs(m) << top >> int(s)) * (-1) ** (m < 0) for m, s in zip(mantissas, shifts, strict=True)]
    return floats, whole


def answers(mechanism: sf.Laplace | sf.Gaussian) -> Iterator[object]:
    floats, whole = numbers(mechanism.grid, 4000)
    yield mechanism.release(np.array(floats))
    yield mechanism.release(floats[:5])
    yield mechanism.release(np.array(floats[:9], np.float64).reshape(3, 3))
    yield [mechanism.release(value) for value in floats[:300]]
    yield [mechanism.release(np.float64(value)) for value in floats[:40]]
    yield mechanism.release(np.array(whole, np.int64))
    yield mechanism.release_whole(whole)
    yield mechanism.release_whole(whole[:7])
    yield [mechanism.release(value) for value in whole[:60]]
    yield mechanism.release([whole[0], floats[0], floats[1]])
    yield mechanism.release(np.zeros(100_000))


@pytest.mark.parametrize(("mechanism", "known"), KNOWN, ids=lambda each: str(each)[:40])
def test_answers_to_values_within_64_bits_stay_as_they_are(
    mechanism: sf.Laplace | sf.Gaussian, known: str
) -> None:
    digest = hashlib.sha256()
    with seeded(11):
        for each in answers(mechanism):
            digest.update(np.asarray(each, "<f8").tobytes())
    assert digest.hexdigest()[:16] == known
