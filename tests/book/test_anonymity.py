import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import book
from sfumato.errors import InvalidParameter, SourceUnusable

PEOPLE = pd.DataFrame(
    {
        "Zip": [13, 13, 13, 47, 47],
        "Job": ["a b", "a b", "a b", None, None],
        "Ill": ["flu", "cold", "flu", "flu", "gout"],
    }
)


def by_hand(df, k):
    """The meaning of the original, with missing values equal to each other."""
    rows = [tuple(None if each is None or each != each else each for each in row) for row in df.to_numpy()]
    return all(rows.count(row) >= k for row in rows)


def test_only_quasi_identifiers_count():
    assert not book.isKAnonymized(PEOPLE, 2)  # the original's meaning: every column, diagnoses and all
    assert book.isKAnonymized(PEOPLE, 2, quasi=["Zip", "Job"])
    assert not book.isKAnonymized(PEOPLE, 3, quasi=["Zip", "Job"])
    assert book.isKAnonymized(PEOPLE, 2, quasi="Zip")


def test_it_agrees_with_a_search_for_each_row():
    rng = np.random.default_rng(1)
    for size in (3, 12, 60):
        table = pd.DataFrame({"a": rng.integers(0, 3, size), "b": rng.choice(["x", "y", None], size)})
        for k in (1, 2, 4):
            expected = by_hand(table, k)
            for kind in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
                assert book.isKAnonymized(kind, k) is expected


KINDS = {
    "pandas": lambda table: table,
    "short": lambda table: table.astype({"Age": "int8"}),
    "nullable": lambda table: table.astype({"Age": "Int8"}),
    "arrow in pandas": lambda table: table.astype({"Age": "int8[pyarrow]"}),
    "polars": pl.from_pandas,
    "short in polars": lambda table: pl.from_pandas(table.astype({"Age": "int8"})),
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_numbers_are_rounded_down_and_others_are_left(kind):
    ages = [-11, -5, 0, 5, 19, 100]
    table = kind(
        pd.DataFrame({"Age": ages, "Zip": [13501, 13502, 47905, 47999, 0, 9], "Ill": list("abcdef")})
    )
    coarse = book.generalize(table, {"Age": 1, "Zip": 3})
    assert type(coarse) is type(table)
    columns = {name: np.asarray(coarse[name]).tolist() for name in ("Age", "Zip", "Ill")}
    assert columns["Age"] == [-20, -10, 0, 0, 10, 100]
    assert columns["Zip"] == [13000, 13000, 47000, 47000, 0, 0]
    assert columns["Ill"] == list("abcdef")
    assert np.asarray(table["Age"]).tolist() == ages
    wide = np.asarray(book.generalize(table, {"Age": 4})["Age"]).tolist()
    assert wide == [-10000, -10000, 0, 0, 0, 0]


def test_the_original_makes_one_class_of_minus_nine_to_nine():
    def original(y, depth):
        return int(int(y / 10**depth) * 10**depth)

    table = pd.DataFrame({"x": range(-9, 10)})
    assert {original(y, 1) for y in table["x"]} == {0}
    assert set(book.generalize(table, {"x": 1})["x"]) == {-10, 0}
    large = 2**53 + 3
    assert book.generalize(pd.DataFrame({"x": [large]}), {"x": 0})["x"][0] == large != original(large, 0)


def test_floats_missing_values_and_large_integers():
    table = pa.table({"x": [25.5, None, -0.5], "y": pa.array([2**64 - 1, None, 7], pa.uint64())})
    coarse = book.generalize(table, {"x": 1, "y": 2})
    assert coarse["x"].to_pylist() == [20.0, None, -10.0]
    assert coarse["y"].to_pylist() == [18446744073709551600, None, 0]


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: book.generalize([1, 2], {"Zip": 1}), InvalidParameter, "pandas, Polars or Arrow table"),
        (lambda: book.generalize(PEOPLE, 1), InvalidParameter, "depths must tell the digits"),
        (lambda: book.generalize(PEOPLE, {"Age": 1}), InvalidParameter, 'no column "Age"'),
        (lambda: book.generalize(PEOPLE, {"Zip": -1}), InvalidParameter, "A depth must be"),
        (lambda: book.generalize(PEOPLE, {"Zip": 19}), InvalidParameter, "A depth is at most 18"),
        (lambda: book.generalize(PEOPLE, {"Job": 1}), InvalidParameter, '"Job" does not hold numbers'),
        (lambda: book.isKAnonymized(PEOPLE, 0), InvalidParameter, "k must be"),
        (lambda: book.isKAnonymized(PEOPLE, 2, quasi="Age"), InvalidParameter, 'no column "Age"'),
        (lambda: book.isKAnonymized(PEOPLE[:0], 2), InvalidParameter, "has no rows"),
        (lambda: book.isKAnonymized(5, 2), SourceUnusable, "source is a path"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()
