"""Prices beyond all reason are refused at construction, in a sentence, or work: none overflows or hangs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato import mechanisms as m
from sfumato.errors import InvalidParameter

PRICES = ["1e-290", "1e-200", "1e-20", "1e-12", "1e-9", 10**4, 10**6, "1e20", "1e290"]


def release(mechanism):
    return [*np.ravel(mechanism.release(1)).tolist(), mechanism.error("0.9"), mechanism.variance or 0.0]


def select(mechanism):
    return [*np.ravel(mechanism.select([1, 2.5, 1e300])).tolist(), mechanism.error("0.9", candidates=5)]


TRIALS = {
    "geometric": lambda e: release(m.Geometric(e, 1)),
    "laplace": lambda e: release(m.Laplace(e, 1)),
    "staircase": lambda e: release(m.Staircase(e, 1)),
    "truncated laplace": lambda e: release(m.TruncatedLaplace(e, "1e-290", sensitivity=1)),
    "bounded laplace": lambda e: release(m.BoundedLaplace(e, 1, lower=0, upper=1)),
    "bounded laplace: long": lambda e: release(m.BoundedLaplace(e, 1, lower=0, upper="1e200")),
    "gaussian": lambda e: release(m.Gaussian(e, "1e-290", sensitivity=1)),
    "gaussian: rho": lambda e: release(m.Gaussian(rho=e, sensitivity=1)),
    "discrete gaussian": lambda e: release(m.DiscreteGaussian(e, "1e-290", sensitivity=1)),
    "discrete gaussian: scalar": lambda e: release(
        m.DiscreteGaussian(e, "1e-290", sensitivity=1, scalar=True)
    ),
    "discrete gaussian: sigma": lambda e: release(m.DiscreteGaussian(sigma=e, sensitivity=1)),
    "randomized response": lambda e: release(m.RandomizedResponse(e)),
    "tree counter": lambda e: m.TreeCounter(7, e, sensitivity=1).release([1, 2]).tolist(),
    "tree counter: rho": lambda e: m.TreeCounter(7, rho=e, sensitivity=1).release([1, 2]).tolist(),
    "exponential": lambda e: select(m.Exponential(e, 1)),
    "permute-and-flip": lambda e: select(m.PermuteAndFlip(e, 1)),
    "noisy max": lambda e: select(m.NoisyMax(e, 1)),
    "noisy max: gumbel": lambda e: select(m.NoisyMax(e, 1, noise="gumbel")),
    "noisy max: exponential": lambda e: select(m.NoisyMax(e, 1, noise="exponential")),
    "top-k": lambda e: select(m.TopK(e, 1, count=2)),
    "above threshold": lambda e: [m.AboveThreshold(e, -1, sensitivity=1).error("0.9", size=9)],
    "sparse vector": lambda e: m.SparseVector(e, 1, count=2, sensitivity=1).above([1, 2, 3]),
    "sparse vector: numeric": lambda e: [
        m.NumericSparseVector(e, 1, count=2, sensitivity=1).variance,
        *(x for _, x in m.NumericSparseVector(e, 1, count=2, sensitivity=1).above([1, 2, 3])),
    ],
    "propose-test-release": lambda e: [
        m.ProposeTestRelease(e, "1e-6", bound=1).release(1.0, 3) or 0.0,
        m.ProposeTestRelease(e, "1e-6", bound=1).reach("0.9"),
    ],
    "smooth: student": lambda e: [m.SmoothSensitivity(e, 1).release(1.0, 1.0)],
    "smooth: cauchy": lambda e: [m.SmoothSensitivity(e, 1, noise="cauchy").release(1.0, 1.0)],
    "smooth: laplace": lambda e: [m.SmoothSensitivity(e, 1, delta="1e-6").release(1.0, 1.0)],
    "sample-and-aggregate": lambda e: [m.SampleAndAggregate(e, 0, upper=1, chunks=3).release(np.mean, [1.0])],
}


@pytest.mark.parametrize("price", PRICES, ids=str)
@pytest.mark.parametrize("trial", TRIALS.values(), ids=list(TRIALS))
def test_extreme_prices_work_or_are_refused_in_a_sentence(trial, price) -> None:
    try:
        figures = trial(price)
    except InvalidParameter as refused:
        assert str(refused).endswith(".")  # noqa: PT017
        return
    assert not any(math.isnan(x) for x in figures)


def test_noise_far_below_the_value_leaves_the_value() -> None:
    for mechanism in (
        m.Laplace("1e10", 1),
        m.Laplace("1e30", 1),
        m.Gaussian(sigma="1e-11", sensitivity=1),
        m.Gaussian(sigma="1e-30", sensitivity=1),
    ):
        assert mechanism.release(1.0) == pytest.approx(1, abs=1e-8)
        assert mechanism.release(np.ones(40)) == pytest.approx(1, abs=1e-8)
        assert mechanism.release_whole([10**18, -3]) == pytest.approx([1e18, -3])
    assert m.ProposeTestRelease("1e20", "1e-6", bound=1).release(1.0, 10**9) == pytest.approx(1)


def test_variances_beyond_floats_are_infinite() -> None:
    assert m.Laplace(1, "1e290").variance == math.inf
    assert m.Gaussian(sigma="1e290", sensitivity="1e290").variance == math.inf
