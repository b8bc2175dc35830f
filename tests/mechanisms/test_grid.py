"""Inputs reach the grid exactly, and the sensitivity that this costs is the one that was paid for."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._grid import BIAS, LIMIT, WIDENING, Grid, _float_of, bounded_add, bounded_sum
from sfumato.mechanisms._numbers import integer_of, integers_of, numbers_of
from sfumato.numeric.exact import floor_log2

GRIDS = [Grid.below(Fraction(1), 30), Grid.below(Fraction(10) ** 6, 0), Grid.below(Fraction(1, 10**9), 20)]
GRIDS += [
    Grid.below(Fraction(2) ** 70, 0),
    Grid.below(Fraction(2) ** -40, 60),
    Grid.below(Fraction(2) ** 64, 0),
]
EDGE = 2**62
FINITE = st.floats(allow_nan=False, allow_infinity=False)
AWKWARD = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    2.0**-1022,
    -(2.0**-70),
    0.5,
    -0.5,
    1.5,
    2.0**53 + 2,
    -(2.0**62),
    1e308,
]


def units(grid: Grid, value: float | int) -> Fraction:
    """The value in grid units, in exact arithmetic."""
    return Fraction(value) / Fraction(2) ** grid.exponent


def held(value: int) -> int:
    return max(-EDGE, min(EDGE, value))


def rounded(grid: Grid, value: float | int) -> Fraction:
    whole, fraction = grid.split(value)
    assert 0 <= fraction < 2**64
    return whole + Fraction(fraction, 2**64)


@pytest.mark.parametrize("grid", GRIDS, ids=lambda g: f"2**{g.exponent}")
@given(value=FINITE | st.sampled_from(AWKWARD))
def test_split_is_within_its_rounding(grid: Grid, value: float) -> None:
    away = rounded(grid, value) - units(grid, value)
    # Towards zero by less than 2**-63; what underflowed is off by far less than that.
    assert abs(away) < Fraction(1, 2**63)
    assert away * value <= 0


@pytest.mark.parametrize("grid", GRIDS, ids=lambda g: f"2**{g.exponent}")
@given(pair=st.tuples(FINITE, FINITE) | FINITE.map(lambda x: (x, math.nextafter(x, math.inf))))
def test_two_inputs_never_move_further_apart_than_claimed(grid: Grid, pair: tuple[float, float]) -> None:
    x, y = pair
    if not math.isfinite(y):
        return
    apart = abs(units(grid, x) - units(grid, y))
    assert abs(rounded(grid, x) - rounded(grid, y)) <= apart + Fraction(1, 2**63)
    assert abs(grid.nearest(x) - grid.nearest(y)) <= math.ceil(apart)


@pytest.mark.parametrize("grid", GRIDS, ids=lambda g: f"2**{g.exponent}")
@given(value=FINITE | st.sampled_from(AWKWARD) | st.integers(-(2**80), 2**80))
def test_nearest_is_the_floor_of_a_half_more(grid: Grid, value: float | int) -> None:
    assert grid.nearest(value) == held(math.floor(units(grid, value) + Fraction(1, 2)))


@pytest.mark.parametrize("grid", GRIDS, ids=lambda g: f"2**{g.exponent}")
@given(values=st.lists(FINITE | st.sampled_from(AWKWARD), max_size=20))
def test_arrays_agree_with_single_floats(grid: Grid, values: list[float]) -> None:
    whole, fraction = grid.split_array(np.array(values, dtype=np.float64))
    assert list(zip(whole.tolist(), fraction.tolist(), strict=True)) == [grid.split(v) for v in values]
    assert grid.nearest_array(np.array(values, dtype=np.float64)).tolist() == [
        grid.nearest(v) for v in values
    ]


@pytest.mark.parametrize("grid", GRIDS, ids=lambda g: f"2**{g.exponent}")
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_arrays_agree_with_single_integers(grid: Grid, values: list[int]) -> None:
    whole, fraction = grid.split_array(np.array(values, dtype=np.int64))
    assert list(zip(whole.tolist(), fraction.tolist(), strict=True)) == [grid.split(v) for v in values]
    for value in values:
        assert abs(rounded(grid, value) - units(grid, value)) < Fraction(1, 2**63)


def test_integers_beyond_2_53_are_not_rounded_to_floats() -> None:
    grid = Grid.below(Fraction(1), 0)
    x, y = 2**60 + 64, 2**60 + 192  # 128 apart, and 256 apart or equal once they are floats
    assert abs(float(x) - float(y)) == 256
    assert rounded(grid, y) - rounded(grid, x) == 128
    whole, _ = grid.split_array(np.array([x, y]))
    assert whole.near[1] - whole.near[0] == 128


def test_a_list_holds_each_of_its_numbers_exactly() -> None:
    assert numbers_of([2**60 + 1, 0.5]).tolist() == [2**60 + 1, 0.5]
    assert numbers_of([2**60 + 1, 0.5]).dtype == object
    assert numbers_of([1.0, 2.5]).dtype == np.float64
    assert numbers_of([1, 2]).dtype == np.int64
    assert numbers_of([]).shape == (0,)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f8", np.int8, np.uint16, ">i4", np.uint64])
def test_other_widths_and_byte_orders_convert_exactly(dtype: type | str) -> None:
    grid = Grid.below(Fraction(1), 30)
    array = np.array([0, 1, 3, 100], dtype=dtype)
    assert grid.nearest_array(array).tolist() == [0, 2**30, 3 * 2**30, 100 * 2**30]


def test_awkward_arrays_are_read_without_being_written() -> None:
    grid = Grid.below(Fraction(1), 30)
    base = np.arange(12.0).reshape(3, 4)
    base.setflags(write=False)
    strided = base.T[::2]
    assert grid.nearest_array(strided).tolist() == [int(x) << 30 for x in strided.ravel()]
    assert grid.nearest_array(np.array(2.0)).tolist() == [2 << 30]
    assert grid.nearest_array(np.zeros((0, 3))).shape == (0,)


def test_large_unsigned_integers_are_what_they_are() -> None:
    grid = Grid.below(Fraction(2) ** 20, 0)
    assert grid.nearest_array(np.array([2**64 - 1, 2**63], dtype=np.uint64)).tolist() == [2**44, 2**43]


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, np.float64("nan"), True, np.True_, None, "1", 1j]
)
def test_unusable_numbers_are_refused(bad: object) -> None:
    with pytest.raises(InvalidValue):
        GRIDS[0].split(bad)


@pytest.mark.parametrize("bad", [[1.0, math.nan], [math.inf, 0.0], [0.0, -math.inf]])
def test_unusable_arrays_are_refused(bad: list[float]) -> None:
    with pytest.raises(InvalidValue, match="finite"):
        GRIDS[0].split_array(np.array(bad))


@pytest.mark.parametrize(
    "bad",
    [
        np.array([True]),
        np.array([1j]),
        np.array(["1"]),
        np.array([None]),
        np.array([Fraction(1, 2)], dtype=object),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        [[1.0], [1.0, 2.0]],
        [1, [2]],
        {"a": 1},
    ],
    ids=str,
)
def test_arrays_of_other_kinds_are_refused(bad: object) -> None:
    with pytest.raises(InvalidValue):
        numbers_of(bad)
    with pytest.raises(InvalidValue):
        integers_of(bad)


def test_integers_only_means_that() -> None:
    for bad in (1.0, np.float64(2), True, np.True_, "1", None):
        with pytest.raises(InvalidValue):
            integer_of(bad)
    for array in (np.array([1.0]), np.array([1], dtype=np.uint64)):
        with pytest.raises(InvalidValue):
            integers_of(array)
    assert integers_of(np.array([1], dtype=np.uint32)).dtype == np.int64


def test_grids_out_of_the_range_of_floats_are_refused() -> None:
    for scale in (Fraction(10) ** 300, Fraction(1, 10**297)):
        with pytest.raises(InvalidParameter, match="rescale"):
            Grid.below(scale, 20)


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30))
def test_floor_log2(exact: Fraction) -> None:
    exponent = floor_log2(exact) if exact > 0 else 0
    assert Fraction(2) ** exponent <= exact < Fraction(2) ** (exponent + 1)


def test_the_widening_pays_for_exactly_the_rounding_of_the_room() -> None:
    grid, bound = Grid.below(Fraction(1), 30), Fraction(1)
    room = grid.room_l1(bound)
    paid = grid.units(bound) * (WIDENING - 1)
    assert room * Fraction(1, 2**63) <= paid < (room + 1) * Fraction(1, 2**63)
    assert (
        grid.room_l2(bound) * Fraction(1, 2**126) <= paid**2 < (grid.room_l2(bound) + 1) * Fraction(1, 2**126)
    )


def test_rounding_really_widens_a_vector_and_the_widening_covers_it() -> None:
    """Each coordinate crosses a step of 2**-63 while moving by a fiftieth of it: that must be paid for."""
    grid, sensitivity = Grid.below(Fraction(1), 30), Fraction(1)
    step = grid.step * 2.0**-63
    left = np.full(1000, 0.99 * step)
    right = np.full(1000, 1.01 * step)
    left[0], right[0] = 0.0, 1.0 - 1000 * 0.02 * step - 2.0**-53
    moved = sum(abs(Fraction(x) - Fraction(y)) for x, y in zip(left, right, strict=True))
    assert moved <= sensitivity
    rest = sum(abs(rounded(grid, x) - rounded(grid, y)) for x, y in zip(left[1:], right[1:], strict=True))
    assert rest == Fraction(999, 2**63)
    plain = sum(abs(units(grid, x) - units(grid, y)) for x, y in zip(left[1:], right[1:], strict=True))
    assert rest > 40 * plain
    assert grid.room_l1(sensitivity) >= 1000
    assert rest - plain <= grid.units(sensitivity) * (WIDENING - 1)


@given(
    value=st.integers(-(2**63), 2**63 - 1),
    noise=st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(2**70), 2**70),
)
def test_sums_are_clamped_as_if_noise_were_unbounded(value: int, noise: int) -> None:
    held = max(-(2**61), min(2**61, value))
    expected = max(-LIMIT, min(LIMIT, held + noise))
    drawn = max(-(2**63) + 1, min(2**63 - 1, noise))  # what a sampler that saturates gives
    assert bounded_add(value, drawn) == expected
    assert bounded_sum(np.array([value]), np.array([drawn])).tolist() == [expected]


def test_sums_keep_shapes_and_cross_blocks() -> None:
    values = np.arange(70_000).reshape(2, -1)
    total = bounded_sum(values, np.ones_like(values))
    assert (total == values + 1).all()
    assert bounded_sum(np.zeros((0, 2), np.int64), np.zeros((0, 2), np.int64)).shape == (0, 2)


@given(
    st.integers(-(2**66), 2**66)
    | st.integers(-(2**54), 2**54)
    | st.sampled_from([0, 2**53 + 1, BIAS, -BIAS, 2**120 + 2**67 + 1])
)
def test_a_biased_integer_becomes_the_float_that_it_stands_for(y: int) -> None:
    assert _float_of(BIAS + y, Grid.below(Fraction(1), 0)) == float(y)
    assert _float_of(BIAS + y, Grid.below(Fraction(1), 300)) == math.ldexp(float(y), -300)
    assert _float_of(BIAS + y, Grid.below(Fraction(1), -300)) == math.ldexp(float(y), 300)


@pytest.mark.parametrize(
    "grid", [*GRIDS, Grid.below(Fraction(2) ** 130, 0)], ids=lambda g: f"2**{g.exponent}"
)
@given(value=st.integers(-(2**53), 2**53))
def test_an_integer_and_the_float_of_its_value_reach_the_same_place(grid: Grid, value: int) -> None:
    assert grid.split(value) == grid.split(float(value))
    for array in (np.array([value]), np.array([float(value)])):
        whole, fraction = grid.split_array(array)
        assert (whole.tolist()[0], int(fraction[0])) == grid.split(value)


def test_a_list_may_mix_integers_and_floats_where_nothing_is_rounded() -> None:
    mixed = numbers_of([2**53, -(2**53), 0.5, np.int64(3)])
    assert mixed.tolist() == [2.0**53, -(2.0**53), 0.5, 3.0]
    assert numbers_of([[1, 0.5], [2, 3]]).tolist() == [[1, 0.5], [2, 3]]
    for beyond in (2**53 + 1, -(2**53) - 1, np.int64(2**62), 2**63, 2**70):
        assert numbers_of([beyond, 0.5]).tolist() == [beyond, 0.5]
        assert GRIDS[0].split_array(numbers_of([beyond, 0.5]))[0].tolist() == [
            GRIDS[0].split(beyond)[0],
            GRIDS[0].split(0.5)[0],
        ]
    with pytest.raises(InvalidValue, match="truth values"):
        numbers_of([True, 0.5])


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("secret", "Values must be {}, not text: convert them first."),
        (b"secret", "Values must be {}, not text: convert them first."),
        (["secret", "x"], "Values must be {}, not text: convert them first."),
        (np.array([b"secret"]), "Values must be {}, not text: convert them first."),
        (None, "Values must be {}, not NoneType."),
        ({"a": 1}, "Values must be {}, not dict."),
        (Decimal("1.5"), "Values must be {}, not Decimal: convert it with float() first."),
        (Fraction(1, 2), "Values must be {}, not Fraction: convert it with float() first."),
        (1j, "Values must be {}, not complex numbers."),
        ([None, 1], "Values must be {}: the array holds other objects."),
        ([Fraction(1), 1], "Values must be {}: the array holds other objects."),
        ([True, 1], "Values must be {}, not truth values: convert them to 0 and 1 first."),
        ([True, False], "Values must be {}, not truth values: convert them to 0 and 1 first."),
        (np.array(["2020-01-01"], "datetime64[D]"), "Values must be {}, not dates."),
        (np.zeros(2, "i4,f8"), "Values must be {}, not records."),
    ],
    ids=str,
)
def test_refusals_name_the_kind_and_nothing_of_the_content(bad: object, told: str) -> None:
    for read, wanted in ((numbers_of, "numbers"), (integers_of, "integers")):
        with pytest.raises(InvalidValue) as refused:
            read(bad)
        assert str(refused.value) == told.format(wanted)


def test_refusals_of_single_values_read_the_same() -> None:
    for bad, kind in (
        (True, "truth values"),
        (np.True_, "truth values"),
        ("1", "text"),
        (np.str_("1"), "text"),
    ):
        for read in (GRIDS[0].split, integer_of):
            with pytest.raises(InvalidValue, match=f"not {kind}: convert"):
                read(bad)
    for bad in (1.5, np.float32(1.5)):
        with pytest.raises(InvalidValue, match="not floats: round them first"):
            integer_of(bad)
    with pytest.raises(InvalidValue, match="at most 64 bits"):
        GRIDS[0].split(np.longdouble(1))
    with pytest.raises(InvalidValue, match="fit in int64"):
        integers_of(np.array([1], dtype=np.uint64))
    assert integers_of([2**70, -(2**70), 1]).tolist() == [2**63 - 1, -(2**63), 1]


def test_an_empty_list_is_an_empty_array_of_integers() -> None:
    for empty, shape in (([], (0,)), ((), (0,)), ([[], []], (2, 0))):
        assert integers_of(empty).dtype == np.int64
        assert integers_of(empty).shape == shape
    with pytest.raises(InvalidValue):
        integers_of(np.array([], np.float64))
