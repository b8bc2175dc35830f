"""The values that people choose from."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.domain import Domain


def test_numbers_are_their_own_places():
    assert Domain(5).indices([0, 4, 2]).tolist() == [0, 4, 2]
    assert Domain(5).indices(np.array([3], np.uint64)).dtype == np.int64
    assert Domain(5).indices([]).size == 0
    assert Domain(5).to_json() == 5


def test_listed_values_have_the_places_of_the_list():
    drinks = Domain(["tea", "coffee"])
    assert drinks.indices(["coffee", "tea"]).tolist() == [1, 0]
    assert drinks.indices(np.array(["tea"])).tolist() == [0]
    assert drinks.indices(("tea", "tea")).tolist() == [0, 0]
    assert drinks.to_json() == ["tea", "coffee"]
    assert Domain([False, True]).indices(np.array([True, False])).tolist() == [1, 0]
    assert Domain([10, 20]).indices([20, 10]).tolist() == [1, 0]
    assert drinks.indices(pa.array(["tea", "coffee"])).tolist() == [0, 1]
    assert Domain(9).indices(pa.chunked_array([[1, 2], [3]])).tolist() == [1, 2, 3]
    assert drinks.indices(pd.Series(["tea", "coffee"])).tolist() == [0, 1]
    assert Domain(9).indices(pl.Series([4, 5])).tolist() == [4, 5]
    assert Domain(drinks) == drinks
    assert Domain(np.array(["x", "y"])).labels == ("x", "y")


@pytest.mark.parametrize(
    "bad",
    [
        0,
        1,
        2**32 + 1,
        -3,
        True,
        2.0,
        "tea",
        ["tea"],
        ["a", "a"],
        [1, True],
        [0, False],
        ["a", 1.5],
        [None, 1],
        None,
    ],
)
def test_unusable_domains(bad):
    with pytest.raises(InvalidParameter):
        Domain(bad)


@pytest.mark.parametrize(
    "bad",
    [
        [5],
        [-1],
        [1.0],
        [True],
        ["1"],
        [None],
        [[1]],
        3,
        "12",
        np.ma.array([1], mask=[True]),
        [[1], [1, 2]],
        [2**70],
    ],
    ids=repr,
)
def test_values_outside_a_number_of_values(bad):
    with pytest.raises(InvalidValue):
        Domain(5).indices(bad)


@pytest.mark.parametrize(
    "bad",
    [
        ["secret"],
        [0],
        [None],
        [["tea"]],
        [[]],
        3,
        "tea",
        np.array([["tea"]]),
        [float("nan")],
        pa.array(["tea", None]),
    ],
    ids=range(10),
)
def test_values_outside_a_list_are_refused_and_not_shown(bad):
    with pytest.raises(InvalidValue) as refused:
        Domain(["tea", "coffee"]).indices(bad)
    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__cause__ is None
