"""Randomized response: the coins of the classroom, exact irrational coins, and an estimator without bias."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import RandomizedResponse
from sfumato.testing import assert_bernoulli, assert_discrete, seeded


def test_two_coins_cost_the_logarithm_of_three() -> None:
    coins = RandomizedResponse.coins()
    assert coins.truth == 0.75
    assert coins.loss.epsilon(0) == pytest.approx(math.log(3), rel=1e-15)
    assert coins.loss.epsilon(0) >= math.log(3)
    assert repr(coins) == "RandomizedResponse(categories=2, truth=0.75)"


@pytest.mark.parametrize("epsilon", ["0.1", 1, 5])
@pytest.mark.parametrize("categories", [2, 3, 10])
def test_the_ratio_of_the_law_is_the_claim(epsilon: str | int, categories: int) -> None:
    mechanism = RandomizedResponse(epsilon, categories)
    lie = (1 - mechanism.truth) / (categories - 1)
    assert math.log(mechanism.truth / lie) == pytest.approx(float(epsilon), rel=1e-12)
    assert mechanism.loss.pure == Fraction(epsilon)
    same = RandomizedResponse(truth=Fraction(mechanism.truth), categories=categories)
    assert float(same.epsilon) == pytest.approx(float(epsilon), rel=1e-12)


@pytest.mark.parametrize("mechanism", [RandomizedResponse(1), RandomizedResponse.coins()], ids=repr)
def test_truth_values_are_kept_with_the_stated_probability(mechanism: RandomizedResponse) -> None:
    truths = np.arange(40_000) % 3 == 0
    with seeded(1):
        answers = mechanism.release(truths)
    assert answers.dtype == np.bool_
    kept = int((answers == truths).sum())
    assert_bernoulli(kept, truths.size, mechanism.truth)
    with pytest.raises(AssertionError):
        assert_bernoulli(kept, truths.size, (1 + mechanism.truth) / 2)


@pytest.mark.parametrize("truth", [0, 3])
def test_untruths_are_equally_likely(truth: int) -> None:
    mechanism = RandomizedResponse("1.5", 5)
    with seeded(2):
        answers = mechanism.release(np.full(20_000, truth))
    lie = (1 - mechanism.truth) / 4
    law = {i: mechanism.truth if i == truth else lie for i in range(5)}
    assert_discrete(answers, law)
    with pytest.raises(AssertionError):
        assert_discrete((answers + 1) % 5, law)


def test_the_estimator_is_unbiased_and_the_printed_one_is_not() -> None:
    """In expectation over the coins: a share s of ones gives s·p + (1 − s)(1 − p) yes-answers."""
    mechanism = RandomizedResponse.coins()
    p, share = 0.75, 0.2
    answers = np.zeros(1000, dtype=bool)
    answers[: round(1000 * (share * p + (1 - share) * (1 - p)))] = True
    assert mechanism.estimate(answers) == pytest.approx(share, abs=1e-12)
    printed = (answers.mean() - p) / (1 - 2 * p)
    assert printed == pytest.approx(1 - share)  # of the other answer: p is that of the truth


def test_the_estimator_of_many_categories_is_unbiased() -> None:
    mechanism = RandomizedResponse(truth=Fraction(6, 10), categories=5)
    shares = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    expected = np.rint((shares * 0.6 + (1 - shares) * 0.1) * 1000).astype(int)
    answers = np.repeat(np.arange(5), expected)
    assert mechanism.estimate(answers) == pytest.approx(shares, abs=1e-12)


@pytest.mark.parametrize(
    "mechanism", [RandomizedResponse.coins(), RandomizedResponse("0.5"), RandomizedResponse(2, 4)], ids=repr
)
def test_the_width_covers_the_estimate(mechanism: RandomizedResponse) -> None:
    people, trials = 400, 200
    truths = np.arange(people) % mechanism.categories
    shares = np.bincount(truths, minlength=mechanism.categories) / people
    width = mechanism.error(0.9, size=people)
    missed = 0
    with seeded(3):
        for _ in range(trials):
            estimate = mechanism.estimate(mechanism.release(truths))
            target = shares[1] if mechanism.categories == 2 else shares
            missed += bool(np.abs(estimate - target).max() > width)
    assert missed <= trials * 0.1 + 6 * math.sqrt(trials * 0.09)
    hoeffding = (
        math.sqrt(
            math.log(2 * (1 if mechanism.categories == 2 else mechanism.categories) / 0.1) / (2 * people)
        )
        * mechanism.scale
    )
    assert width <= hoeffding * 1.1


def test_the_width_falls_with_the_root_of_the_people() -> None:
    mechanism = RandomizedResponse(1)
    assert mechanism.error(0.95, size=100) == pytest.approx(10 * mechanism.error(0.95, size=10_000))


def test_variance_of_one_answer() -> None:
    mechanism = RandomizedResponse.coins()
    assert mechanism.variance == pytest.approx(0.75 * 0.25 / 0.25)
    assert mechanism.bias == 0.0
    assert mechanism.scale == 2.0
    assert RandomizedResponse(1, 3).variance is None


def test_shapes_and_types() -> None:
    mechanism = RandomizedResponse(1, 3)
    assert type(mechanism.release(2)) is int
    assert type(RandomizedResponse(1).release(True)) is bool
    assert type(RandomizedResponse(1).release(np.True_)) is bool
    assert mechanism.release(np.zeros((2, 3), np.uint8)).shape == (2, 3)
    assert mechanism.release(np.zeros((2, 3), np.uint8)).dtype == np.int64
    assert mechanism.release(np.zeros(0, np.int64)).shape == (0,)
    assert mechanism.release([]).shape == (0,)
    assert mechanism.release(np.array(1)).shape == ()
    huge = RandomizedResponse(1, 2**62)
    assert 0 <= huge.release(2**62 - 1) < 2**62


@pytest.mark.parametrize(
    "bad", [3, -1, 1.0, True, None, "1", [0.5], [0, 3], [-1], math.nan, np.array([None])]
)
def test_unusable_categories_are_refused(bad: object) -> None:
    with pytest.raises(InvalidValue):
        RandomizedResponse(1, 3).release(bad)


def test_unusable_answers_are_refused() -> None:
    for bad in ([], [0.5], [3], [-1]):
        with pytest.raises(InvalidValue):
            RandomizedResponse(1, 3).estimate(bad)


def test_unusable_parameters_are_refused() -> None:
    for bad in (0, -1, math.nan, 5e-324, True, 1000):
        with pytest.raises(InvalidParameter):
            RandomizedResponse(bad)
    for truth in (0, 1, "0.5", "0.2"):
        with pytest.raises(InvalidParameter):
            RandomizedResponse(truth=truth)
    for categories in (1, 2.0, 2**63):
        with pytest.raises(InvalidParameter):
            RandomizedResponse(1, categories)
    with pytest.raises(InvalidParameter):
        RandomizedResponse()
    with pytest.raises(InvalidParameter):
        RandomizedResponse(1, truth="0.75")


def test_prices_far_below_a_float_of_one_still_have_figures() -> None:
    mechanism = RandomizedResponse("1e-200")
    assert mechanism.scale == pytest.approx(2e200)
    assert mechanism.error(0.9) == pytest.approx(math.sqrt(math.log(20) / 2) * 2e200)
    assert mechanism.estimate([True, False]) == 0.0


def test_masked_answers_are_refused() -> None:
    with pytest.raises(InvalidValue, match="Masked"):
        RandomizedResponse(1).release(np.ma.masked_array([0, 1], [True, False]))


@pytest.mark.parametrize("more", [True, 1, 0, np.int8(1), np.False_])
def test_one_index_among_truth_values_changes_no_ones_answer_type(more: object) -> None:
    """One 1 among truth values used to give everybody an index."""
    mechanism = RandomizedResponse(1)
    for container in (list, tuple, lambda given: np.array(given, dtype=object)):
        assert mechanism.release(container([True] * 3)).dtype == np.int64
        assert mechanism.release(container([True] * 3 + [more])).dtype == np.int64
    assert mechanism.release(np.array([True] * 3)).dtype == np.bool_


def test_one_odd_category_is_refused_by_itself() -> None:
    for odd in (0.5, None, "1", 2, -1, 2**70, np.timedelta64(1)):
        for rest in ([], [True], [0, 1], [True, 0]):
            with pytest.raises(InvalidValue):
                RandomizedResponse(1).release([*rest, odd])
