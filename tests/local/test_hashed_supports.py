"""Local hashing and Hadamard response are one protocol with two families: what holds for both of them."""

import math

import numpy as np
import pytest

from sfumato.audit import lower_bound
from sfumato.local import hadamard, hashing
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.hashing import LocalHashing
from sfumato.testing import assert_coverage, assert_discrete, seeded


@pytest.mark.parametrize("example", hashing.examples() + hadamard.examples(), ids=lambda each: each.name)
def test_reports_follow_their_law_and_the_auditor_agrees(example):
    with seeded(3):
        left, right = example.draw("left", 40_000), example.draw("right", 40_000)
    assert_discrete(left, example.pmf("left"))
    assert_discrete(right, example.pmf("right"))
    with pytest.raises(AssertionError):
        assert_discrete(left, example.pmf("right"))
    claim = float(example.randomizer.epsilon)
    assert 0.5 * claim < lower_bound(left, right).epsilon <= claim


@pytest.mark.parametrize(
    ("made", "many"),
    [
        (LocalHashing(1, 300), 40_000),
        (LocalHashing(1, 70_000), 2_000),
        (HadamardResponse(1, 1000), 100_000),
        (HadamardResponse(3, 1000), 100_000),
        (HadamardResponse("0.5", 70_000), 100_000),
        (HadamardResponse(8, 5000), 100_000),
    ],
    ids=repr,
)
def test_errors_are_those_of_theory(made, many):
    """A frequent value, some rarer ones, most never."""
    size = made.domain.size
    drawn = np.minimum(np.random.default_rng(1).geometric(0.05, many) - 1, size - 1)
    truth = np.where(np.arange(many) % 3 == 0, 7, drawn)
    with seeded(6):
        found = made.aggregate(made.encode(truth)).estimate()
    real = np.bincount(truth, minlength=size)
    theory = (many - real) * made.variance + real * made.p * (1 - made.p) / made.gap**2
    ratio = np.mean((found.counts - real) ** 2 / theory)
    assert ratio == pytest.approx(1, abs=7 * math.sqrt(2 / size))
    held = (found.low <= real) & (real <= found.high)
    assert_coverage(int(held.sum()), held.size, 0.95)
    assert found.counts[7] == pytest.approx(real[7], abs=6 * math.sqrt(theory[7]))
