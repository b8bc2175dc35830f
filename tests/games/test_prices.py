import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.games._prices import PriceGrid, bids_of, price_grid


def test_even_prices_print_as_the_decimals_they_are():
    assert list(price_grid(top=1, step="0.1")) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert list(price_grid(top=1, step=0.3)) == [0.3, 0.6, 0.9, 1.0]
    assert list(price_grid(low=2, top=5, step=1)) == [2.0, 3.0, 4.0, 5.0]
    assert list(price_grid(top=1, step=5)) == [1.0]


def test_geometric_prices_are_whole_ticks_and_never_further_apart_than_the_ratio_or_a_tick():
    assert list(price_grid(top=10, ratio=2)) == [
        0.01,
        0.02,
        0.04,
        0.08,
        0.16,
        0.32,
        0.64,
        1.28,
        2.56,
        5.12,
        10.0,
    ]
    grid = price_grid(low=1, top=1000, ratio="1.1")
    assert grid.ratio <= Fraction("1.1")
    assert grid.top == 1000
    assert np.all(np.diff(price_grid(top=1, ratio="1.001").whole) == 1)  # no step is smaller than a coin


def test_a_list_of_prices_finds_its_own_tick():
    grid = PriceGrid(["1.00", 1.01, Decimal("3.01")])
    assert grid.ticks == (100, 101, 301)
    assert grid.tick == Fraction(1, 100)
    assert (grid.gap, grid.ratio) == (2, Fraction(301, 101))
    assert PriceGrid([3, 6, 9]).tick == 3
    assert repr(grid) == "PriceGrid([1.0, 1.01, 3.01])"
    assert repr(price_grid(top=9, step=1)) == "PriceGrid(9 prices from 1.0 to 9.0)"
    assert grid == PriceGrid([1, "1.01", "3.01"])
    assert hash(grid) == hash(PriceGrid([1, "1.01", "3.01"]))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PriceGrid([]), "no prices"),
        (lambda: PriceGrid([0, 1]), "greater than 0"),
        (lambda: PriceGrid([-1]), "greater than 0"),
        (lambda: PriceGrid([2, 1]), "must increase"),
        (lambda: PriceGrid([1, 1]), "must increase"),
        (lambda: PriceGrid([1, float("nan")]), "finite"),
        (lambda: PriceGrid("12"), "list of prices"),
        (lambda: PriceGrid(["0.015"], tick="0.01"), "whole number of ticks"),
        (lambda: PriceGrid(["0.000000001", 10]), "coarser tick"),
        (lambda: price_grid(top=1), "either a step or a ratio"),
        (lambda: price_grid(top=1, step=1, ratio=2), "either a step or a ratio"),
        (lambda: price_grid(top=0, step=1), "greater than 0"),
        (lambda: price_grid(top="1.005", step=1), "whole number of ticks"),
        (lambda: price_grid(top=1, step="0.001"), "at least one tick"),
        (lambda: price_grid(top=1, ratio=1), "above 1"),
        (lambda: price_grid(top=1, step="0.1", low=2), "at most the top price"),
        (lambda: price_grid(top=1, ratio=2, low="0.001"), "at least one tick"),
        (lambda: price_grid(top=10**9, step=1), "2\\*\\*32 ticks"),
        (lambda: price_grid(top=4 * 10**7, step="0.01"), "ten million"),
    ],
)
def test_what_is_no_grid_is_refused(make, says):
    with pytest.raises(InvalidParameter, match=says):
        make()


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_bid_of_exactly_a_price_accepts_it(kind):
    grid = price_grid(top=20, step="0.01")
    bids = np.array([k / 100 for k in range(1, 2001)], kind)
    assert all(grid.accepted(bids, place).sum() == 2000 - place for place in range(0, 2000, 37))
    assert np.array_equal(grid.demand(bids), np.arange(2000, 0, -1))
    assert np.array_equal(grid.in_ticks(bids), np.arange(1, 2001))


def test_prices_beyond_a_narrow_type_are_refused_by_all_its_bids():
    assert PriceGrid([1, 100_000]).demand(np.array([1, 60_000], np.float16)).tolist() == [2, 0]


def test_whole_numbers_are_bids_too():
    assert PriceGrid([1, 2, 3]).demand(bids_of([3, 2, 2, 0])).tolist() == [3, 3, 1]


@given(st.lists(st.integers(0, 12_000), max_size=30))
def test_bids_in_ticks_are_rounded_down_and_capped(cents):
    grid = price_grid(top=100, step=1)
    assert grid.in_ticks(np.array([c / 100 for c in cents])).tolist() == [min(c, 10_000) for c in cents]
    finer = np.array([c / 100 + 0.004 for c in cents])
    assert grid.in_ticks(finer).tolist() == [min(c, 10_000) for c in cents]


@pytest.mark.parametrize(
    ("bids", "says"),
    [
        (np.array([[31337.0]]), "flat"),
        (np.array(["31337"]), "numbers"),
        (31337.0, "flat"),
        ("31337", "flat"),
        (np.array([True]), "numbers"),
        (np.array([31337], "datetime64[s]"), "numbers"),
        (pd.Series(["31337"], dtype="string"), "numbers"),
        (np.ma.array([31337], mask=[1]), "Masked"),
    ],
)
def test_bids_of_another_declared_type_or_shape_are_refused_and_never_quoted(bids, says):
    with pytest.raises(InvalidValue, match=says) as caught:
        bids_of(bids)
    assert "31337" not in str(caught.value)


NONE = [-1.0, float("nan"), [1.0], "1", None, pd.NA, 1j, float("-inf"), -(2**70), b"1", np.datetime64("NaT")]


@pytest.mark.parametrize("odd", NONE, ids=repr)
def test_what_is_no_bid_counts_as_zero_and_changes_no_other(odd):
    for container in (list, tuple, lambda given: np.array([*given, None], dtype=object)[:-1]):
        assert bids_of(container([1.01, 2, odd])).tolist() == [1.01, 2.0, 0.0]
        assert bids_of(container([1.01, 2, odd])).dtype == np.float64


def test_bids_are_read_each_by_itself():
    given = [2**70, 10**400, float("inf"), True, np.float32(0.5), Decimal("1.01"), Fraction(1, 4), np.int8(3)]
    assert bids_of(given).tolist() == [2.0**70, math.inf, math.inf, 1, 0.5, 1.01, 0.25, 3]
    assert bids_of(np.array([-1, 2], np.int8)).tolist() == [0, 2]
    assert bids_of(np.array([-1, np.nan, 2], np.float32)).dtype == np.float32
    assert bids_of(pd.Series([1, None, 3], dtype="Int64")).tolist() == [1, 0, 3]
    assert bids_of(pl.Series([1, None, 3])).tolist() == bids_of(pa.array([1, None, 3])).tolist() == [1, 0, 3]
    assert bids_of(pl.Series([1, 2])).dtype == bids_of(pa.array([1, 2])).dtype == np.float64
    assert PriceGrid([1, 2, 3]).demand(bids_of([2**70, math.inf, None])).tolist() == [2, 2, 2]
    assert PriceGrid([1, 2, 3]).in_ticks(bids_of([2**70, math.inf, None])).tolist() == [3, 3, 0]
