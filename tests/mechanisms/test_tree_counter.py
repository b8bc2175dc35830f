"""The tree counter: which blocks a step touches, what they cost together, and a stream that is used once."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from sfumato import random
from sfumato.errors import InvalidParameter, InvalidValue, Spent
from sfumato.mechanisms import TreeCounter
from sfumato.mechanisms.geometric import discrete_laplace_width
from sfumato.testing import assert_discrete, seeded


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """No noise, and a record of how often it would have been drawn."""
    draws: list[int] = []

    def nothing(_: Fraction) -> int:
        draws.append(0)
        return 0

    monkeypatch.setattr(random, "discrete_laplace", nothing)
    monkeypatch.setattr(random, "discrete_gaussian", nothing)
    return draws


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 13, 100])
def test_without_noise_it_counts_exactly_with_one_draw_a_step(quiet: list[int], horizon: int) -> None:
    values = [(-1) ** i * i for i in range(horizon)]
    assert TreeCounter(horizon, 1, sensitivity=1).release(values).tolist() == np.cumsum(values).tolist()
    assert len(quiet) == horizon


@pytest.mark.parametrize("horizon", range(1, 34))
def test_a_step_touches_at_most_one_block_of_each_length(horizon: int) -> None:
    """The sensitivity by brute force: every block sum released, for a one at each step in turn."""
    for position in range(horizon):
        touched, _ = blocks_of([int(t == position) for t in range(horizon)])
        assert sum(touched) <= TreeCounter(horizon, 1, sensitivity=1).levels
        assert all(value in (0, 1) for value in touched)
    at_most = max(sum(blocks_of([int(t == p) for t in range(horizon)])[0]) for p in range(horizon))
    if horizon & (horizon - 1) == 0:
        assert (
            at_most == TreeCounter(horizon, 1, sensitivity=1).levels
        )  # so that one level less would be a false claim


def blocks_of(values: list[int]) -> tuple[list[int], list[int]]:
    """The released block sums, and the most blocks in one total, written by intervals instead."""
    released, most = [], 0
    for t in range(1, len(values) + 1):
        length = t & -t
        released.append(sum(values[t - length : t]))
        most = max(most, t.bit_count())
    return released, most


@pytest.mark.parametrize("horizon", [*range(1, 40), 1000, 1023, 1024])
def test_the_number_of_blocks_in_an_answer(horizon: int) -> None:
    assert TreeCounter(horizon, 1, sensitivity=1).blocks == max(t.bit_count() for t in range(1, horizon + 1))


def test_noise_and_price() -> None:
    pure = TreeCounter(8, 2, sensitivity=3)
    assert pure.levels == 4
    assert pure.scale == 3 * 4 / 2
    assert pure.loss.pure == 2
    concentrated = TreeCounter(8, rho="0.5", sensitivity=3)
    assert concentrated.scale == pytest.approx(math.sqrt(4 * 9))
    assert concentrated.loss.rho == Fraction(1, 2)
    assert repr(pure) == "TreeCounter(horizon=8, epsilon=2, sensitivity=3)"
    assert pure.bias == 0.0


def test_a_block_keeps_its_noise_and_new_blocks_get_fresh_noise() -> None:
    """Answers at 4 and 5 share the noise of the first four steps: one block's is left in the difference."""
    with seeded(1):
        totals = np.array([TreeCounter(5, 4, sensitivity=1).release([0] * 5) for _ in range(6000)])
    q = math.exp(-4 / 3)

    def law(k: np.ndarray) -> np.ndarray:
        return (1 - q) / (1 + q) * q ** np.abs(k)

    assert_discrete(totals[:, 4] - totals[:, 3], law)
    assert_discrete(totals[:, 0], law)
    with pytest.raises(AssertionError):  # the totals at 1 and 2 share nothing
        assert_discrete(totals[:, 1] - totals[:, 0], law)


@pytest.mark.parametrize(
    "counter", [TreeCounter(7, 1, sensitivity=1), TreeCounter(7, rho="0.2", sensitivity=1)], ids=repr
)
def test_widths_cover_and_variance_is_that_of_the_noisiest_answer(counter: TreeCounter) -> None:
    with seeded(2):
        errors = np.abs([counter.fresh().release([0] * 7) for _ in range(1500)])
    assert (errors[:, 6] <= counter.error(0.9)).mean() > 0.9
    assert (errors.max(axis=1) <= counter.error(0.9, size=7)).mean() > 0.9
    assert (errors[:, 6] <= counter.error(0.9) / 4).mean() < 0.9
    assert float((errors[:, 6] ** 2).mean()) == pytest.approx(counter.variance, rel=0.3)


def test_the_width_is_not_far_from_the_quantile_of_one_block() -> None:
    counter = TreeCounter(1, 1, sensitivity=1)
    assert (
        discrete_laplace_width(Fraction(1), 0.99, 1)
        <= counter.error(0.99)
        <= 2 * discrete_laplace_width(Fraction(1), 0.99, 1)
    )


def test_concentrated_noise_is_smaller_for_long_streams() -> None:
    assert TreeCounter(10**6, rho="0.5", sensitivity=1).error(0.95) < TreeCounter(
        10**6, 1, sensitivity=1
    ).error(0.95)


def test_it_refuses_to_go_beyond_its_horizon() -> None:
    counter = TreeCounter(3, 1, sensitivity=1)
    counter.release([1, 2, 3])
    assert counter.time == 3
    with pytest.raises(Spent, match="horizon"):
        counter.add(1)
    with pytest.raises(Spent):
        TreeCounter(2, 1, sensitivity=1).release([1, 2, 3])


def test_a_refused_value_is_not_counted() -> None:
    counter = TreeCounter(3, 1, sensitivity=1)
    for bad in (1.0, True, None, "1", math.nan):
        with pytest.raises(InvalidValue):
            counter.add(bad)
    for bad in (None, 3, "12", math.nan):
        with pytest.raises(InvalidValue):
            counter.release(bad)
    assert counter.time == 0


def test_it_cannot_be_copied_pickled_or_changed() -> None:
    counter = TreeCounter(3, 1, sensitivity=1)
    for action in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="copied"):
            action(counter)
    with pytest.raises(AttributeError):
        counter.horizon = 5
    counter.add(1)
    assert counter.fresh().time == 0
    assert counter.fresh() != counter


def test_huge_values_are_clamped() -> None:
    counter = TreeCounter(3, 1, sensitivity=1)
    assert abs(counter.add(10**30) - 2**61) < 1000
    assert -(2**62) < counter.release([-(10**30), 2**63])[-1] < 2**62


def test_unusable_parameters_are_refused() -> None:
    for horizon in (0, -1, 1.0, True):
        with pytest.raises(InvalidParameter):
            TreeCounter(horizon, 1, sensitivity=1)
    for ways in ({}, {"epsilon": 1, "rho": 1}, {"epsilon": 0}, {"rho": -1}, {"epsilon": "1e-20"}):
        with pytest.raises(InvalidParameter):
            TreeCounter(4, **ways, sensitivity=1)
    with pytest.raises(InvalidParameter):
        TreeCounter(4, 1, sensitivity=0)


def test_the_sensitivity_must_be_said() -> None:
    with pytest.raises(TypeError, match="sensitivity"):
        TreeCounter(3, 1)


@pytest.mark.parametrize(
    "bad", [[1, 2, "3"], [1, 2.0], [1, None], [1, True], [[1], [2]], np.array(3)], ids=str
)
def test_a_stream_with_a_bad_value_is_refused_as_a_whole(quiet: list[int], bad: object) -> None:
    counter = TreeCounter(4, 1, sensitivity=1)
    counter.add(5)
    with pytest.raises(InvalidValue):
        counter.release(bad)
    assert (counter.time, len(quiet)) == (1, 1)
    assert counter.release([1, 1, 1]).tolist() == [6, 7, 8]


def test_a_stream_that_is_too_long_is_refused_as_a_whole(quiet: list[int]) -> None:
    counter = TreeCounter(4, 1, sensitivity=1)
    counter.add(5)
    for stream in ([1] * 4, itertools.repeat(1), np.ones(9, np.int64)):
        with pytest.raises(Spent, match="nothing of it was counted"):
            counter.release(stream)
    assert (counter.time, len(quiet)) == (1, 1)
    assert counter.release(iter([1, 1, 1])).tolist() == [6, 7, 8]
    assert counter.release([]).dtype == np.int64


@pytest.mark.parametrize("bad", ["3", [1], 1.0, True, None])
def test_one_step_is_one_integer(bad: object) -> None:
    with pytest.raises(InvalidValue) as refused:
        TreeCounter(3, 1, sensitivity=1).add(bad)
    assert str(refused.value) == "Values must be integers, one a step: release takes a list of them."
