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
    read_decimal,
    read_fraction,
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
    assert 1 - probability(1 - Fraction(1, 10**300), "confidence") == Fraction(1, 10**300)
    with pytest.raises(InvalidParameter, match="confidence must be at most 1 - 1e-300"):
        probability(1 - Fraction(1, 10**301), "confidence")
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


@given(st.fractions())
def test_what_is_written_is_read_again(x):
    assert read_fraction(str(x)) == read_fraction(f"{x.numerator}/{x.denominator}") == x
    assert read_fraction(f"{x.numerator}e-3") == x.numerator / Fraction(1000)
    assert read_decimal(f"{x.numerator}e-3") == Decimal(f"{x.numerator}e-3")


def test_the_longest_that_python_writes_is_read_again():
    for number in (10**4299, 10**4300 - 1):
        assert read_fraction(str(number)) == number
        assert read_fraction(f"1/{number}") == Fraction(1, number)


TOO_LONG = ["1e4300", "1e-4300", "9" * 4301, "1/" + "9" * 4301, "9" * 2200 + "e2200", "1e999999999"]
TOO_LONG += ["1e" + "9" * 30, "1" * 10**6, "0." + "1" * 10**6, "1/" + "3" * 10**6]


@pytest.mark.parametrize("written", TOO_LONG, ids=lambda text: text[:12])
def test_a_stored_number_takes_no_longer_than_its_text(written):
    with pytest.raises(ValueError, match="at most 4,300 digits"):
        read_fraction(written)
    if "/" not in written and len(written) not in (2205, 4301):
        with pytest.raises(ValueError, match="at most 4,300 digits"):
            read_decimal(written)


@pytest.mark.parametrize(
    "written", ["", "nan", "inf", "1/0", "1/-3", "0x10", "1_0", " 1", "\u0663", 3, 0.5, None]
)
def test_what_is_no_stored_number_is_refused(written):
    with pytest.raises(ValueError, match="such as 3/4"):
        read_fraction(written)
