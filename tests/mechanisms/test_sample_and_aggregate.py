import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
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
    with pytest.raises(InvalidValue, match="Masked"):
        mechanism.release(mean, np.ma.array([1.0, 2.0], mask=[0, 1]))
    for dtype in (str, "datetime64[s]", object(), (object, 2), (float, (2, 2))):
        with pytest.raises(InvalidParameter, match="dtype must be"):
            mechanism.release(mean, [1.0], dtype=dtype)
    assert repr(mechanism) == "SampleAndAggregate(epsilon=1, lower=0, upper=1, chunks=2, aggregate='mean')"


def middle(mechanism):
    return mechanism._levels // 2


@pytest.mark.parametrize(
    "answer", [None, "7", b"7", [7.0], np.array([7.0]), {}, 1j, np.complex64(1), [[1], [1, 2]], pd.NA, pd.NaT]
)
def test_an_answer_that_is_no_number_counts_as_the_middle(answer):
    """It is a fact about the rows of that part: an error would tell it."""
    mechanism = SampleAndAggregate(1, 0, upper=10, chunks=2)
    assert mechanism.answers(lambda _: answer, [1.0] * 40).tolist() == [middle(mechanism)] * 2


def test_numbers_of_any_make_will_do_and_huge_ones_are_clamped():
    mechanism = SampleAndAggregate(1, 0, upper=8, chunks=1)
    for answer in (4, 4.0, np.float32(4), np.array(4.0), Fraction(4), np.nan):
        assert mechanism.answers(lambda _, answer=answer: answer, [1.0]).tolist() == [mechanism._levels // 2]
    for answer, level in ((10**400, mechanism._levels), (-(10**400), 0)):
        assert mechanism.answers(lambda _, answer=answer: answer, [1.0]).tolist() == [level]


def test_an_error_of_the_function_counts_as_the_middle():
    def fails(part):
        if part.max() > 5:
            raise ZeroDivisionError("mine")
        return 10.0

    mechanism = SampleAndAggregate(1, 0, upper=10, chunks=20)
    with seeded(6):
        levels = mechanism.answers(fails, [1.0] * 400 + [6.0])
    assert sorted(set(levels.tolist())) == [middle(mechanism), mechanism._levels]
    assert np.count_nonzero(levels == middle(mechanism)) == 1


ODD = [0.5, True, None, "x", pd.NA, 2**70, np.float32(1), [1, 2], Decimal("NaN"), Fraction(1, 3), 1j]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("container", [list, tuple, lambda rows: pd.Series(rows, dtype=object)])
def test_one_odd_row_changes_the_type_of_no_part(odd, container):
    """It used to turn integers into floats, or all rows into text, in every part."""
    mechanism = SampleAndAggregate(1, 0, upper=1, chunks=5)
    seen = []

    def spy(part):
        seen.append((part.dtype, part.ndim))
        return 0.0

    mechanism.answers(spy, container([1, 2, 3] * 50))
    mechanism.answers(spy, container([1, 2, 3] * 50 + [odd]))
    assert set(seen) == {(np.dtype(np.float64), 1)}


def test_the_declared_type_is_what_each_value_is_converted_to():
    mechanism = SampleAndAggregate(1, 0, upper=1, chunks=1)
    values = [
        1,
        2.9,
        -2.9,
        None,
        "x",
        2**70,
        -(2**70),
        math.nan,
        math.inf,
        True,
        Decimal("1e400"),
        np.int8(7),
    ]
    seen = {}

    def parts(dtype, rows=values):
        mechanism.answers(lambda part: seen.__setitem__("part", part) or 0.0, rows, dtype=dtype)
        return seen["part"]

    top = 2**63 - 1
    assert parts(int).tolist() == [1, 2, -2, 0, 0, top, -top - 1, 0, top, 1, top, 7]
    assert parts(np.int8).tolist() == [1, 2, -2, 0, 0, 127, -128, 0, 127, 1, 127, 7]
    assert parts(bool).tolist() == [x == 1 for x in values]
    assert parts(object).tolist()[:5] == values[:5]
    assert parts(None).dtype == np.float64
    assert parts(np.float32).dtype == np.float32
    wide = parts((float, 2), [[1, 2], (3, 4), [5], "ab", 6, np.array([7, 8]), [None, 9]])
    assert wide.shape == (7, 2)
    np.testing.assert_array_equal(wide[[0, 1, 5]], [[1, 2], [3, 4], [7, 8]])
    assert np.isnan(wide[[2, 3, 4]]).all()
    assert parts((int, 2), [[1, 2], [3]]).tolist() == [[1, 2], [0, 0]]
    assert parts(None, np.arange(3, dtype=np.int16)).dtype == np.int16
    assert parts(float, np.arange(3, dtype=np.int16)).dtype == np.float64
    assert parts(None, pd.Series([1, 2], dtype="Int64")).dtype == np.float64
    assert parts(None, pd.DataFrame({"a": [1, 2], "b": [0.5, 1]})).shape == (2, 2)


def test_parts_share_no_memory():
    mechanism = SampleAndAggregate(1, 0, upper=1, chunks=3)
    rows, held = np.arange(60.0), []

    def vandal(part):
        held.append(part)
        assert part.base is None  # a view would show everybody's rows
        part[:] = -1
        return 0.0

    mechanism.answers(vandal, rows)
    assert rows.tolist() == list(range(60))
    assert sum(map(len, held)) == 60


def test_units_are_never_merged_by_another_ones_type():
    """One NaN among ids of 64 bits turned all of them into floats: 400 people became two."""
    mechanism = SampleAndAggregate(1, 0, upper=1, chunks=50)
    ids = [1_780_000_000_000_000_000 + i for i in range(400)]
    for odd in (math.nan, None, 0.5, "x", pd.NA, 2**63, 2**70, [1], b"x", Decimal("sNaN"), pd.NaT):
        answers = mechanism.answers(lambda _: 1.0, np.ones(401), units=[*ids, odd])
        assert np.count_nonzero(answers == mechanism._levels) > 30
    nullable = pd.Series([*ids, None], dtype="Int64")
    assert np.count_nonzero(mechanism.answers(lambda _: 1.0, np.ones(401), units=nullable) > 2**29) > 30


def test_rows_without_a_unit_are_left_out():
    mechanism = SampleAndAggregate(1, 0, upper=1, chunks=1)
    sizes = []
    mechanism.answers(
        lambda part: sizes.append(len(part)) or 0.0, [1.0] * 5, units=[1, None, math.nan, "a", 1.0]
    )
    assert sizes == [3]
    assert mechanism.answers(len, [1.0], units=[None]).tolist() == [middle(mechanism)]


def test_the_function_comes_first():
    with pytest.raises(InvalidParameter, match=r"^Give the function first, then the values\.$"):
        SampleAndAggregate(1, 0, upper=10, chunks=2).release([1.0, 2.0], mean)


def test_sums_that_are_large_beside_the_noise_are_answered():
    many = SampleAndAggregate(10**5, 0, upper=1, chunks=2**12)
    assert many.release(mean, [1.0] * 50) == pytest.approx(0.5, abs=0.02)  # empty parts count as the middle
    assert SampleAndAggregate(10**12, 0, upper=1, chunks=3).release(mean, [1.0] * 50) == pytest.approx(1)
