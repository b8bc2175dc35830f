"""Arrow arrays made without `pyarrow.array` are those that it makes."""

import datetime
import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato.session.arrays import from_list, from_numbers, kind_of

VALUES = [
    "a", "", "ü€\0", 0, 7, -(2**63), 2**63 - 1, True, False, 1.5, -0.0, float("inf"), None,
    datetime.date(2020, 2, 29), datetime.date(1, 1, 1), datetime.datetime(2020, 1, 1), b"x",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_lists(value):
    kind = pa.array([value]).type
    assert kind_of(value) == kind
    for values in ([], [value], [None], [value, None, value], [value] * 100):
        made = from_list(values, kind)
        made.validate(full=True)
        assert made.equals(pa.array(values, kind))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.bool_(), pa.date32(), pa.string()])
@pytest.mark.parametrize("values", [[1, 2.5], [True, 2], [2**63], ["a", 1], [1.0, 2], [None, None], []])
def test_what_does_not_fit_is_refused_or_read_as_usual(values, kind):
    try:
        usual = pa.array(values, kind)
    except (pa.ArrowException, OverflowError) as reason:
        with pytest.raises(type(reason)):
            from_list(values, kind)
    else:
        assert from_list(values, kind).equals(usual)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, np.bool_])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 64, 100])
def test_numbers(dtype, size):
    rng = random.Random(size)
    numbers = np.array([rng.choice([-3.7, 0.0, 1.0, 2.5e9]) for _ in range(size)])
    values = np.nan_to_num(np.clip(numbers, -1e9, 1e9)).astype(dtype)
    if dtype is np.float64:
        values[::5] = np.nan
    for missing in (np.zeros(size, dtype=bool), np.arange(size) % 3 == 0, np.ones(size, dtype=bool)):
        for given in (values, values[::-1]):  # and where the numbers do not lie one after the other
            made, usual = from_numbers(given, missing), pa.array(given, mask=missing)
            made.validate(full=True)
            assert (made.type, made.null_count) == (usual.type, usual.null_count)
            assert repr(made.to_pylist()) == repr(usual.to_pylist())
