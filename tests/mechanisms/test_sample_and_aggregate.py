from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import random
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms.sample_and_aggregate import SampleAndAggregate
from sfumato.testing import assert_continuous, assert_discrete, seeded


def mean(part):
    return float(np.mean(part))


@pytest.fixture
def placed(monkeypatch):
    """Puts units into parts by a fixed list, as if the draws were fixed: what the proof does."""

    def place(homes):
        monkeypatch.setattr(random, "integers", lambda bound, size: np.array(homes[:size], dtype=np.int64))

    return place


ROWS = st.lists(st.floats(-5, 15), min_size=1, max_size=12)


@settings(deadline=None)
@given(ROWS, st.data())
def test_one_row_changes_one_answer_whatever_its_position(rows, data):
    mechanism = SampleAndAggregate(1, 0, upper=10, chunks=4)
    homes = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    gone = data.draw(st.integers(0, len(rows) - 1))

    def answers(kept_rows, kept_homes):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(random, "integers", lambda bound, size: np.array(kept_homes, dtype=np.int64))
            return mechanism.answers(mean, np.array(kept_rows))

    here = answers(rows, homes)
    there = answers(rows[:gone] + rows[gone + 1 :], homes[:gone] + homes[gone + 1 :])
    assert np.count_nonzero(here != there) <= 1
    assert here.min() >= 0
    assert max(here.max(), there.max()) <= mechanism._levels


def test_slicing_by_position_moves_every_part():
    # The planted bug: the textbook's chunks are slices, so that one row at the front shifts all of them.
    rows = np.arange(12.0)
    more = np.concatenate([[99.0], rows])
    changed = [rows[i : i + 3].mean() != more[i : i + 3].mean() for i in range(0, 12, 3)]
    assert sum(changed) == 4


def test_all_rows_of_a_unit_share_a_part():
    seen = []

    def collect(part):
        seen.append(set(part[:, 0].tolist()))
        return 0.0

    units = np.repeat(np.arange(30), 4)
    rows = np.stack([units, np.arange(120)], axis=1)
    with seeded(1):
        SampleAndAggregate(1, 0, upper=1, chunks=7).answers(collect, rows, units)
    assert sum(len(part) for part in seen) == 30
    assert set().union(*seen) == set(range(30))


def test_homes_are_uniform_and_fresh():
    mechanism = SampleAndAggregate(1, 0, upper=1, chunks=5)
    with seeded(2):
        homes = np.concatenate([mechanism._homes(100, None) for _ in range(30)])
        text = np.concatenate([mechanism._homes(100, [f"u{i}" for i in range(100)]) for _ in range(30)])
    for drawn in (homes, text):
        assert_discrete(drawn, dict.fromkeys(range(5), 0.2))
    assert len({tuple(row) for row in homes.reshape(30, 100).tolist()}) == 30


def test_empty_parts_and_nan_count_as_the_middle_and_infinity_as_a_bound(placed):
    mechanism = SampleAndAggregate(1, 0, upper=8, chunks=4)
    placed([0, 1, 2])
    answers = {0: float("nan"), 1: float("inf"), 2: float("-inf")}
    levels = mechanism.answers(lambda part: answers[int(part[0])], np.array([0, 1, 2]))
    assert (levels / mechanism._levels).tolist() == [0.5, 1, 0, 0.5]


def test_the_mean_follows_its_law_and_divides_by_all_parts():
    mechanism = SampleAndAggregate(2, 0, upper=10, chunks=5)
    with seeded(3):
        drawn = np.array([mechanism.release(lambda _: 10.0, np.zeros(200)) for _ in range(1500)])
        empty = [mechanism.release(mean, []) for _ in range(200)]
    scale = 10 / (5 * 2)

    def cdf(x):
        return np.where(
            x < 0, 0.5 * np.exp(np.minimum(x, 0) / scale), 1 - 0.5 * np.exp(-np.maximum(x, 0) / scale)
        )

    assert_continuous(drawn - 10, cdf)
    assert abs(np.median(empty) - 5) < 1
    assert mechanism.variance == pytest.approx(2 * scale**2, rel=1e-6)
    width = mechanism.error(0.95)
    assert width == pytest.approx(scale * np.log(20), rel=1e-6)
    with pytest.raises(AssertionError):
        assert_continuous(drawn - 10, lambda x: cdf(1.5 * x))


def test_the_sum_moves_by_the_declared_sensitivity_at_most():
    mechanism = SampleAndAggregate(1, -3, upper="4.7", chunks=3)
    low, high = mechanism._level(-1e9), mechanism._level(1e9)
    assert high - low == mechanism._levels == mechanism._inner.sensitivity
    assert Fraction(mechanism._levels) * Fraction(2) ** mechanism._exponent >= Fraction("7.7")


def test_the_median_is_near_when_parts_agree():
    mechanism = SampleAndAggregate(2, 0, upper=100, chunks=301, aggregate="median")
    rows = np.random.default_rng(1).normal(40, 3, 6000)
    with seeded(4):
        answers = [mechanism.release(mean, rows) for _ in range(15)]
    assert abs(np.median(answers) - 40) < 1
    assert mechanism.loss.pure == 2
    assert mechanism.variance is None
    with pytest.raises(InvalidParameter, match="depends on the data"):
        mechanism.error(0.95)


def test_bounds_beyond_floats_do_not_overflow():
    mechanism = SampleAndAggregate(1, "-1e299", upper="1e299", chunks=2)
    with seeded(5):
        assert np.isfinite(mechanism.release(mean, [1e308, -1e308, 0.0]))


def test_unusable_input_is_refused():
    for lower, upper, chunks in (
        (1, 1, 2),
        (2, 1, 2),
        (0, 1, 0),
        (0, 1, 2.5),
        (float("nan"), 1, 2),
        (0, 1, 2**23),
    ):
        with pytest.raises(InvalidParameter):
            SampleAndAggregate(1, lower, upper=upper, chunks=chunks)
    with pytest.raises(InvalidParameter, match="aggregate"):
        SampleAndAggregate(1, 0, upper=1, chunks=2, aggregate="mode")
    mechanism = SampleAndAggregate(1, 0, upper=1, chunks=2)
    with pytest.raises(InvalidValue):
        mechanism.release(mean, 3.0)
    with pytest.raises(InvalidValue):
        mechanism.release(mean, [1.0, 2.0], units=[1])
    with pytest.raises(InvalidValue):
        mechanism.release(mean, [1.0, 2.0], units=np.array([1, "a"], dtype=object))
    assert repr(mechanism) == "SampleAndAggregate(epsilon=1, lower=0, upper=1, chunks=2, aggregate='mean')"


@pytest.mark.parametrize(
    "answer", [None, "7", b"7", [7.0], np.array([7.0]), {}, 1j, np.complex64(1), [[1], [1, 2]]]
)
def test_a_function_that_gives_no_number_is_told_so(answer):
    with pytest.raises(InvalidValue) as refused:
        SampleAndAggregate(1, 0, upper=10, chunks=2).release(lambda _: answer, [1.0, 2.0])
    assert str(refused.value) == "The function must give one number for each part."


def test_numbers_of_any_make_will_do_and_huge_ones_are_clamped():
    mechanism = SampleAndAggregate(1, 0, upper=8, chunks=1)
    for answer in (4, 4.0, np.float32(4), np.array(4.0), Fraction(4), np.nan):
        assert mechanism.answers(lambda _, answer=answer: answer, [1.0]).tolist() == [mechanism._levels // 2]
    for answer, level in ((10**400, mechanism._levels), (-(10**400), 0)):
        assert mechanism.answers(lambda _, answer=answer: answer, [1.0]).tolist() == [level]


def test_errors_of_the_function_are_its_own():
    def fails(part):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        SampleAndAggregate(1, 0, upper=10, chunks=2).release(fails, [1.0, 2.0])


def test_the_function_comes_first():
    with pytest.raises(InvalidParameter, match=r"^Give the function first, then the values\.$"):
        SampleAndAggregate(1, 0, upper=10, chunks=2).release([1.0, 2.0], mean)


def test_a_price_at_which_answers_would_be_clamped_is_refused():
    with pytest.raises(InvalidParameter, match="too large for so many parts"):
        SampleAndAggregate(10**5, 0, upper=1, chunks=2**22)
    assert SampleAndAggregate(10**5, 0, upper=1, chunks=3).release(mean, [1.0] * 50) < 1.1
