"""Exact parameters: a float is the decimal it shows, and nonsense is refused in one sentence."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import (
    as_fraction,
    as_integer,
    decimal_up,
    delta_of,
    float_down,
    float_up,
    nonnegative,
    positive,
    probability,
)


@pytest.mark.parametrize(
    "written", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), np.float64(0.1), np.float32(0.1), "1/10", "1e-1"]
)
def test_a_tenth_is_a_tenth_however_it_is_written(written):
    assert as_fraction(written, "epsilon") == Fraction(1, 10)


def test_ten_tenths_are_one():
    assert sum((as_fraction(0.1, "epsilon") for _ in range(10)), Fraction(0)) == 1


NOT_NUMBERS = [math.nan, math.inf, -math.inf, "nan", "", "abc", None, [1], True, np.bool_(1), 1j, "1/0"]
NOT_NUMBERS += ["1e999999999", Decimal("1e-999999999"), "9" * 30_000, "1/" + "9" * 30_000, "0x10", "sNaN"]


@pytest.mark.parametrize("written", NOT_NUMBERS)
def test_what_is_no_number_is_refused(written):
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        as_fraction(written, "epsilon")


@pytest.mark.parametrize("written", [0, -1, 1e-320, "1e-400", "1e400"])
def test_positive_refuses_zero_negative_and_absurd(written):
    with pytest.raises(InvalidParameter, match="scale must"):
        positive(written, "scale")


def test_ranges():
    assert nonnegative(0, "x") == 0
    assert delta_of(0) == 0
    for wrong in (0, 1, 1.5, -0.1):
        with pytest.raises(InvalidParameter, match="strictly between 0 and 1"):
            probability(wrong, "delta")
    with pytest.raises(InvalidParameter, match="at least 0"):
        nonnegative(-1, "x")
    for wrong in (1, -0.1):
        with pytest.raises(InvalidParameter, match="at least 0 and below 1"):
            delta_of(wrong)


def test_whole_numbers():
    assert as_integer(np.int32(3), "count") == 3
    for wrong in (3.0, True, "3"):
        with pytest.raises(InvalidParameter, match="whole number"):
            as_integer(wrong, "count")
    with pytest.raises(InvalidParameter, match="at least 1"):
        as_integer(0, "count")


@given(st.fractions(min_value=-(10**20), max_value=10**20))
def test_directed_rounding_brackets_and_is_tight(x):
    low, high = float_down(x), float_up(x)
    assert Fraction(low) <= x <= Fraction(high)
    assert high == low or high == math.nextafter(low, math.inf)


def test_directed_rounding_beyond_the_floats():
    assert float_up(Fraction(10) ** 400) == math.inf
    assert float_down(Fraction(10) ** 400) == math.nextafter(math.inf, 0)
    assert float_down(-(Fraction(10) ** 400)) == -math.inf
    assert float_up(Fraction(1, 10**400)) == math.nextafter(0, 1)


@given(st.fractions(min_value=-(10**20), max_value=10**20))
def test_a_figure_that_is_read_as_its_decimal_is_not_below(x):
    shown = decimal_up(x)
    assert as_fraction(shown, "figure") >= x
    assert as_fraction(math.nextafter(shown, -math.inf), "figure") < x or shown == float(x)


def test_three_tenths_are_shown_as_three_tenths():
    assert decimal_up(Fraction(3, 10)) == 0.3
    assert float_up(Fraction(3, 10)) == 0.30000000000000004
    assert decimal_up(Fraction(1, 3)) > 1 / 3
    assert decimal_up(Fraction(10) ** 400) == math.inf
