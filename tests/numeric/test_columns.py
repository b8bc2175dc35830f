"""Arrow arrays made without `pyarrow.array` are those that it makes; columns come back as they are."""

import datetime
import math
import random

import numpy as np
import pyarrow as pa
import pytest

from sfumato.mechanisms._grid import bounded_input, bounded_inputs
from sfumato.numeric import columns
from sfumato.numeric.columns import from_list, from_numbers, kind_of, sorted_rows, to_list

VALUES = [
    "a", "", "ü€\0", 0, 7, -(2**63), 2**63 - 1, True, False, 1.5, -0.0, float("inf"), None,
    datetime.date(2020, 2, 29), datetime.date(1, 1, 1), datetime.datetime(2020, 1, 1), b"x",
    datetime.datetime(1, 1, 1, 0, 0, 1), datetime.time(23, 59, 59), datetime.time(),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_lists(value):
    seconds = {datetime.datetime: pa.timestamp("s"), datetime.time: pa.time32("s")}  # whole ones, as keys are
    kind = seconds.get(type(value), pa.array([value]).type)
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


def chunked(values, kind):
    """In several chunks, of which some begin within a buffer."""
    whole = pa.array(values, kind)
    parts = [whole.slice(0, len(whole) // 3), whole.slice(len(whole) // 3), pa.array([], kind)]
    return pa.chunked_array(parts, kind)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [0, 7, -(2**63), 2**63 - 1]),
        (pa.int32(), [0, 7, -(2**31)]),
        (pa.bool_(), [True, False, True, True]),
        (pa.float64(), [1.5, -0.0, float("inf")]),
        (pa.string(), ["a", "", "ü€\0", "b"]),
        (pa.date32(), [datetime.date(2020, 2, 29), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
        (pa.timestamp("us"), [datetime.datetime(2020, 1, 1)]),
        (pa.decimal128(38, 0), [0, -1, 2**63, -(2**63) - 1, 2**64 - 1, 10**38 - 1, 1 - 10**38]),
        (pa.decimal128(38, 0), [0, -1, 2**63 - 1, -(2**63)]),
        (pa.decimal128(38, 2), [0, -1]),
    ],
)
def test_columns_come_back_as_they_are(kind, values):
    for given in ([], values, values * 9, [None, *values, None]):
        column = chunked(given, kind)
        found, usual = to_list(column), column.to_pylist()
        assert found == usual
        exact = pa.types.is_decimal128(kind)
        assert exact or [*map(type, found)] == [*map(type, usual)]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.date32(), pa.decimal128(38, 0), pa.bool_()])
def test_what_lies_where_nothing_is_does_not_matter(kind):
    rubbish, some = pa.py_buffer(b"\x7f" * 64), pa.py_buffer(b"\x00")
    chunk = pa.Array.from_buffers(kind, 4, [some, rubbish])
    assert to_list(pa.chunked_array([chunk])) == [None] * 4


def test_found_groups_are_sorted_with_what_is_missing_last():
    draw = random.Random(4)
    for _ in range(100):
        size = draw.randint(0, 12)
        some = [("a", "B", "É", None), (3, -1, 10), (None, False, True), (datetime.date.min, None)]
        drawn = draw.sample(some, draw.randint(1, 3))
        keys = [[draw.choice(values) for _ in range(size)] for values in drawn]
        usual = sorted(
            range(size),
            key=lambda row: [(key[row] is None, "" if key[row] is None else key[row]) for key in keys],
        )
        assert sorted_rows([pa.array(key) for key in keys]).tolist() == usual


def test_whole_numbers_of_any_size_are_held_one_by_one():
    values = [0, -1, 2**61, 2**61 + 1, -(2**61) - 1, 10**40, -(10**40), 2**63]
    assert bounded_inputs(values).tolist() == [*map(bounded_input, values)]
    assert bounded_inputs([]).dtype == np.int64


KEYS = {
    "text": (pa.string(), ["", "a", "a\0", "ab", "b", "é", "€", "𐀀", "same start, one", "same start, two"]),
    "whole": (pa.int64(), [0, 7, -1, 2**63 - 1, -(2**63)]),
    "day": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(2020, 2, 29)]),
    "truth": (pa.bool_(), [True, False]),
}


def some_keys(name, draw, size):
    """Values with and without nothing among them, and the same as an array that begins within its buffers."""
    kind, pool = KEYS[name]
    values = [draw.choice([*pool, *([None] if draw.random() < 0.5 else [])]) for _ in range(size)]
    return values, pa.array([pool[0], None, *values, pool[-1]], kind).slice(2, size)


def place(value):
    return (value is None, "" if value is None else value)


@pytest.mark.parametrize("many", [0, 10**9])
@pytest.mark.parametrize("name", KEYS)
def test_rows_are_sorted_ranked_and_taken_as_python_does_it(name, many, monkeypatch):
    monkeypatch.setattr(columns, "_MANY", many)
    draw = random.Random(f"{name} {many}")
    for size in [*range(9), 40]:
        values, array = some_keys(name, draw, size)
        other, beside = some_keys(draw.choice([*KEYS]), draw, size)
        assert sorted_rows([array]).tolist() == sorted(range(size), key=lambda row: place(values[row]))
        assert sorted_rows([array, beside]).tolist() == sorted(
            range(size), key=lambda row: (place(values[row]), place(other[row]))
        )
        known = sorted({value for value in values if value is not None})
        assert columns.ranks(array).tolist() == [
            math.inf if value is None else known.index(value) for value in values
        ]
        rows = np.array([draw.randrange(size) for _ in range(size)], np.int64)
        some = columns.taken(array, rows)
        some.validate(full=True)
        assert some.equals(pa.array([values[row] for row in rows], array.type))
        ordered = columns.taken(array, sorted_rows([array]))
        assert np.argsort(columns.ranks(ordered), kind="stable").tolist() == [*range(size)]


@pytest.mark.parametrize("name", KEYS)
def test_columns_are_taken_apart_and_put_together(name):
    draw = random.Random(name)
    for size in (0, 1, 8, 30):
        values, array = some_keys(name, draw, size)
        holds, parts = columns.to_parts(array)
        assert holds == name
        copies = {part: numbers.copy() for part, numbers in parts.items()}
        assert columns.from_parts(holds, copies).equals(pa.array(values, array.type))
    assert columns.to_parts(pa.array([1.5])) is None


@pytest.mark.parametrize(
    "parts",
    [
        {"ends": [0, 3], "text": [97, 98]},
        {"ends": [0, 2, 1], "text": [97, 98]},
        {"ends": [0, 1], "text": [255]},
        {"ends": [0, 1], "text": [97], "missing": [True, False]},
    ],
)
def test_parts_that_do_not_fit_are_refused(parts):
    kinds = {"ends": np.int32, "text": np.uint8, "missing": bool}
    with pytest.raises(ValueError, match=r"length|Length|offset|UTF8"):
        columns.from_parts("text", {name: np.array(part, kinds[name]) for name, part in parts.items()})


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint64(), pa.decimal128(38, 0), pa.float64()])
def test_whole_numbers_are_64_bits_only_if_all_of_them_fit(kind):
    draw = random.Random(str(kind))
    pool = [0, 1, -(2**31), 2**31 - 1] if kind == pa.int32() else [0, 5, 2**40]
    wide = {"uint64": [2**63, 2**64 - 1], "decimal128(38, 0)": [2**63, -(2**63) - 1, 10**37]}
    for more in ([], wide.get(str(kind), [])):
        values = [draw.choice([None, *pool, *more]) for _ in range(20)] + more
        found = columns.integers(chunked(values, kind))
        assert found.tolist() == [value or 0 for value in values]
        assert found.dtype == (object if more else np.int64)
        one = columns.one_array(chunked(values, kind))
        assert one.to_pylist() == values
