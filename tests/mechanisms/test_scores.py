from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._scores import CEILING, ScoreGrid, drawable, exact_number, nearest

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SENSITIVITIES = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)


def brute(grid, scores):
    """Scores relative to the best in exact arithmetic, with the clamp that floats get."""
    edge = 2**1000
    levels = [min(max(Fraction(x) // grid.step, -edge), edge) for x in scores]
    return [max(level - max(levels), -CEILING) for level in levels]


@given(st.lists(FINITE, min_size=1, max_size=8), SENSITIVITIES)
def test_differences_are_exact_for_every_finite_float(scores, sensitivity):
    grid = ScoreGrid.of(sensitivity)
    assert grid.relative(scores).tolist() == brute(grid, scores)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8), SENSITIVITIES)
def test_differences_are_exact_for_every_64_bit_integer(scores, sensitivity):
    grid = ScoreGrid.of(sensitivity)
    assert grid.relative(np.array(scores, dtype=np.int64)).tolist() == brute(grid, scores)


@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8),
    st.sampled_from(["1e-30", "1", "1e9", "1e40"]),
)
def test_differences_are_exact_for_unsigned_integers(scores, sensitivity):
    grid = ScoreGrid.of(Fraction(sensitivity))
    assert grid.relative(np.array(scores, dtype=np.uint64)).tolist() == brute(grid, scores)


@given(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(2**63, 2**64 - 1), min_size=1, max_size=8),
    st.sampled_from([np.uint64, np.int64, np.int8]),
    st.sampled_from(["1e-30", "1", "1e9", "1e12", "1e40"]),
)
def test_levels_are_exact_for_every_type_of_integers(values, dtype, sensitivity):
    """A value that wraps around would move by far more than its sensitivity."""
    grid, array = ScoreGrid.of(Fraction(sensitivity)), np.array(values, np.uint64).astype(dtype)
    assert list(grid.levels(array)) == [x // grid.step for x in array.tolist()]


@given(
    st.lists(st.tuples(FINITE, st.fractions(-1, 1)), min_size=1, max_size=6),
    st.floats(min_value=1e-6, max_value=1e6),
)
def test_no_score_moves_by_more_than_the_integer_sensitivity(pairs, width):
    sensitivity = Fraction(width)
    grid = ScoreGrid.of(sensitivity)
    for x, share in pairs:
        y = Fraction(x) + share * sensitivity
        assert abs(grid.level(x) - y // grid.step) <= grid.sensitivity


def test_float_error_of_an_ulp_beyond_the_sensitivity_is_covered():
    # 0.3 − 0.2 and 1.1 − 1.0 as floats: the second differs from 0.1 by more than the first, upwards.
    grid = ScoreGrid.of(Fraction(1, 10))
    assert Fraction(1.1) - Fraction(1.0) > Fraction(1, 10)
    assert abs(grid.level(1.1) - grid.level(1.0)) <= grid.sensitivity
    # An integer ratio is where a sensitivity without the extra unit would be broken.
    one = ScoreGrid.of(Fraction(1))
    assert one.level(np.nextafter(2.0, 3)) - one.level(np.nextafter(1.0, 0)) == 2**20 + 1 == one.sensitivity


def test_the_cut_at_the_ceiling_keeps_the_sensitivity():
    grid = ScoreGrid.of(Fraction(1))
    left = np.array([0.0, 1e12, 5.0])
    right = left + np.array([1.0, -1.0, 0.5])
    absolute = [grid.relative(scores) + grid.level(scores.max()) for scores in (left, right)]
    assert np.abs(absolute[0] - absolute[1]).max() <= grid.sensitivity
    assert grid.relative(left).tolist() == [-CEILING, 0, -CEILING]


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64, np.float16, np.float32]
)
@pytest.mark.parametrize("sensitivity", ["1e-280", "1e-30", "0.3", "1", "1e7", "1e40", "1e280"])
def test_the_type_of_the_scores_does_not_show(dtype, sensitivity):
    grid = ScoreGrid.of(Fraction(sensitivity))
    scores = np.array([1, 7, 100, 3], dtype=dtype)
    assert grid.relative(scores).tolist() == grid.relative(scores.astype(float)).tolist()


def test_tiny_negative_scores_do_not_vanish_on_a_coarse_grid():
    grid = ScoreGrid.of(Fraction(10) ** 280)
    assert grid.relative([-5e-324, 0.0]).tolist() == [-1, 0] == brute(grid, [-5e-324, 0.0])


@pytest.mark.parametrize("exponent", [40, 62, 63, 64, 65, 900])
def test_the_widest_integers_on_coarse_grids(exponent):
    grid = ScoreGrid(exponent, 1)
    for scores in (np.array([2**64 - 1, 2**63, 0], np.uint64), np.array([-(2**63), -1, 2**63 - 1], np.int64)):
        assert grid.relative(scores).tolist() == brute(grid, scores.tolist())


def test_levels_agree_with_one_at_a_time():
    for sensitivity in ("0.001", "1", "1e30"):
        grid = ScoreGrid.of(Fraction(sensitivity))
        for values in ([1.5, -2.25, 1e300, -0.0], [3, -4, 2**62], [0.1, 0.2], [True, False]):
            array = np.array(values)
            assert list(grid.levels(array)) == [grid.level(x) for x in array]
    assert len(ScoreGrid.of(Fraction(1)).levels([])) == 0


@pytest.mark.parametrize(
    "scores",
    [
        [],
        [[1.0]],
        3.0,
        [np.nan, 1],
        [np.inf, 1],
        [-np.inf, 1],
        ["a"],
        [1j],
        [None],
        [[1], [2, 3]],
        [2**70, None],
    ],
)
def test_unusable_scores_are_refused_without_showing_them(scores):
    with pytest.raises(InvalidValue) as refused:
        ScoreGrid.of(Fraction(1)).relative(scores)
    assert "nan" not in str(refused.value).lower()


@pytest.mark.parametrize("value", ["1", None, 1j, float("nan"), float("inf"), np.longdouble(1), Fraction(1)])
def test_unusable_numbers_are_refused(value):
    if isinstance(value, np.longdouble) and value.dtype.itemsize <= 8:
        pytest.skip("long double is double here")
    with pytest.raises(InvalidValue):
        exact_number(value)


def test_nearest_float_never_overflows():
    assert nearest(Fraction(1, 3)) == 1 / 3
    assert nearest(Fraction(10) ** 400) == np.finfo(float).max == -nearest(-(Fraction(10) ** 400))


def test_a_scale_beyond_what_can_be_drawn_is_refused_at_construction():
    assert drawable(Fraction(2**56)) == 2**56
    with pytest.raises(InvalidParameter):
        drawable(Fraction(2**56 + 1))
