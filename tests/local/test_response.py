"""Randomized response for two values and for many: exact figures, no bias, and the variance of theory."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local import BinaryResponse, KaryResponse
from sfumato.loss import ResponseLoss
from sfumato.testing import assert_bernoulli, assert_discrete, seeded


def test_the_classroom_protocol_costs_the_logarithm_of_three():
    coins = BinaryResponse.coins()
    assert (coins.p, coins.q, coins.gap) == (0.75, 0.25, 0.5)
    assert math.log(3) <= coins.loss.epsilon(0) == pytest.approx(math.log(3), rel=1e-15)
    assert repr(coins) == "BinaryResponse(domain=[False, True], truth=0.75)"
    assert BinaryResponse.from_dict(coins.to_dict()) == coins
    with pytest.raises(InvalidParameter, match="not that of this probability"):
        BinaryResponse.from_dict({**coins.to_dict(), "epsilon": "1"})
    with pytest.raises(InvalidParameter, match="not complete"):
        BinaryResponse.from_dict({**coins.to_dict(), "more": "1"})


@pytest.mark.parametrize("epsilon", ["0.01", 1, 5, 40])
@pytest.mark.parametrize("size", [2, 3, 1024])
def test_probabilities_are_those_of_the_claim(epsilon, size):
    made, e = KaryResponse(epsilon, size), math.exp(float(epsilon))
    assert made.p == pytest.approx(e / (e + size - 1), rel=1e-15)
    assert made.q == pytest.approx(1 / (e + size - 1), rel=1e-15)
    assert made.gap == pytest.approx((e - 1) / (e + size - 1), rel=1e-13)
    assert made.variance == pytest.approx((size - 2 + e) / (e - 1) ** 2, rel=1e-9)
    assert made.loss == ResponseLoss(Fraction(epsilon), size)
    if size == 2:
        two = BinaryResponse(epsilon)
        assert (two.p, two.q, two.gap) == (made.p, made.q, made.gap)


def test_a_tiny_epsilon_keeps_its_gap():
    assert KaryResponse("1e-12", 4).gap == pytest.approx(2.5e-13, rel=1e-9)
    assert KaryResponse("1e-50", 4).variance == pytest.approx(3e100, rel=1e-9)


@pytest.mark.parametrize("made", [BinaryResponse(1), BinaryResponse.coins(), KaryResponse(1, [False, True])])
@pytest.mark.parametrize("value", [False, True])
def test_answers_are_true_as_often_as_claimed(made, value):
    with seeded(f"{made} {value}"):
        answers = made.encode(np.full(300_000, value))
    assert answers.dtype == np.uint8
    assert_bernoulli(int((answers == value).sum()), answers.size, made.p)


@pytest.mark.parametrize("value", [0, 3, 6])
def test_untruths_are_equally_likely(value):
    made = KaryResponse("0.7", 7)
    with seeded(value):
        reports = made.encode(np.full(300_000, value, np.uint8))
    assert_discrete(reports, {i: made.p if i == value else made.q for i in range(7)})


def test_the_estimator_as_printed_is_biased_and_ours_is_not():
    # In print one finds it with p − 1 added once to the sum of all answers, (Σ + p − 1)/((2p − 1)N), and p
    # taken for the probability of the untruth, (mean − p)/(1 − 2p). Ours is (mean + p − 1)/(2p − 1).
    made = BinaryResponse(truth="3/4")
    ones, people = 700_000, 1_000_000
    with seeded("survey"):
        total = made.aggregate(made.encode(np.arange(people) < ones))
    found, mean = total.estimate(), total.supports[1] / people
    assert found.shares[1] == pytest.approx((mean + 0.75 - 1) / (2 * 0.75 - 1), rel=1e-12)
    sd = math.sqrt(0.75 * 0.25 / people) / 0.5
    assert abs(found.shares[1] - 0.7) < 6.2 * sd
    once = (total.supports[1] + 0.75 - 1) / ((2 * 0.75 - 1) * people)
    assert once - 0.7 == pytest.approx(
        (1 - 0.75) / (2 * 0.75 - 1), abs=6.2 * sd
    )  # off by 1/2, for any number
    assert abs((mean - 0.75) / (1 - 1.5) - 0.7) > 100 * sd
    assert found.counts.sum() == pytest.approx(people)


@pytest.mark.parametrize(("epsilon", "size"), [(1, 1024), (3, 100), ("0.5", 4096)])
def test_errors_have_the_variance_of_theory(epsilon, size):
    people, made = 1_000_000, KaryResponse(epsilon, size)
    values = np.arange(people, dtype=np.int64) % size
    with seeded(f"{epsilon} {size}"):
        found = made.aggregate(made.encode(values)).estimate()
    errors = found.counts - np.bincount(values, minlength=size)
    ratio = float(np.mean(errors**2)) / (people * made.variance)
    assert abs(ratio - 1) < 6.5 * math.sqrt(2 / size)
    held = np.mean((found.low <= found.counts - errors) & (found.counts - errors <= found.high))
    assert held > 0.95 - 6 * math.sqrt(0.05 * 0.95 / size)


def test_types_are_the_narrowest():
    for size, kind in (
        (2, np.uint8),
        (256, np.uint8),
        (257, np.uint16),
        (65537, np.uint32),
        (2**32, np.uint32),
    ):
        made = KaryResponse(1, size)
        reports = made.encode(np.array([size - 1] * 50))
        assert reports.dtype == made.report_dtype == kind
        assert reports.max() <= size - 1


def test_long_arrays_are_whole():
    made = KaryResponse(700, 300)
    values = np.random.default_rng(1).integers(0, 300, 100_001)
    assert np.array_equal(made.encode(values), values)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: BinaryResponse(1, 3),
        lambda: BinaryResponse(),
        lambda: BinaryResponse(1, truth="3/4"),
        lambda: BinaryResponse(truth="1/2"),
        lambda: BinaryResponse(truth="0.3"),
        lambda: BinaryResponse(0),
        lambda: KaryResponse(-1, 3),
        lambda: KaryResponse(701, 3),
        lambda: KaryResponse(math.inf, 3),
        lambda: KaryResponse(1, 1),
        lambda: KaryResponse("x", 3),
    ],
)
def test_unusable_parameters(bad):
    with pytest.raises(InvalidParameter):
        bad()


def test_bad_values_and_reports():
    with pytest.raises(InvalidValue, match="not in the domain"):
        KaryResponse(1, 5).encode([1, 5])
    with pytest.raises(InvalidValue, match="not in the domain"):
        BinaryResponse(1).encode(["yes"])
    with pytest.raises(InvalidValue, match="0 or 1"):
        BinaryResponse(1).start().add(np.array([2], np.uint8))
    with pytest.raises(InvalidValue, match="arrays of uint8"):
        BinaryResponse(1).start().add(np.array([True]))
