"""A single number takes another path than an array, and gets the same noise."""

import math

import numpy as np
import pytest
from scipy.stats import laplace, norm

import sfumato as sf
from sfumato.testing import assert_continuous, assert_discrete, seeded

COUNT = 30_000
FLOATS = {
    "Laplace": (sf.Laplace(epsilon=2, sensitivity=3), laplace(scale=1.5)),
    "Gaussian": (sf.Gaussian(sigma=2, sensitivity=1), norm(scale=2)),
}


def geometric(scale):
    q = math.exp(-1 / scale)
    return {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-200, 201)}


def gaussian(variance):
    weights = {k: math.exp(-k * k / (2 * variance)) for k in range(-200, 201)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


WHOLE = {
    "Geometric": (sf.Geometric(epsilon=1, sensitivity=3), geometric(3.0), geometric(1.5)),
    "DiscreteGaussian": (sf.DiscreteGaussian(sigma=3, sensitivity=1), gaussian(9.0), gaussian(4.5)),
}


def singles(mechanism, value):
    with seeded(5):
        return np.array([mechanism.release(value) for _ in range(COUNT)]) - value


@pytest.mark.parametrize("value", [0.0, -1234.5, 7], ids=["zero", "negative", "integer"])
@pytest.mark.parametrize(("mechanism", "law"), FLOATS.values(), ids=FLOATS)
def test_single_floats_follow_the_law(mechanism, law, value):
    noise = singles(mechanism, value)
    assert_continuous(noise, law.cdf)
    # Half the noise, or twice, is seen by the same test.
    for factor in (0.5, 2.0):
        with pytest.raises(AssertionError):
            assert_continuous(noise * factor, law.cdf)


@pytest.mark.parametrize("value", [0, -40, 10**12], ids=["zero", "negative", "large"])
@pytest.mark.parametrize(("mechanism", "law", "other"), WHOLE.values(), ids=WHOLE)
def test_single_integers_follow_the_law(mechanism, law, other, value):
    noise = singles(mechanism, value)
    assert_discrete(noise, law)
    with pytest.raises(AssertionError):
        assert_discrete(noise, other)
