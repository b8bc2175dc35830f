"""Every function takes every kind of table that docs/book.md promises, and gives the same for all of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import book
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.testing import seeded

AGES = np.array([17, 25, 31, 44, 58, 63, 71, 90] * 40)
JOBS = np.array(["Sales", "Tech", "Farm", "Sales"] * 80)
TABLES = {
    "pandas": lambda: pd.DataFrame({"Age": AGES, "Job": JOBS}),
    "polars": lambda: pl.DataFrame({"Age": AGES, "Job": JOBS}),
    "arrow": lambda: pa.table({"Age": AGES, "Job": JOBS}),
    "dictionary of arrays": lambda: {"Age": AGES, "Job": JOBS},
    "dictionary of lists": lambda: {"Age": AGES.tolist(), "Job": JOBS.tolist()},
    "dictionary of series": lambda: {"Age": pd.Series(AGES), "Job": pd.Series(JOBS)},
    "dictionary of Polars": lambda: {"Age": pl.Series(AGES), "Job": pl.Series(JOBS)},
    "dictionary of Arrow": lambda: {"Age": pa.array(AGES), "Job": pa.array(JOBS)},
}
COLUMNS = {
    "array": lambda values: values,
    "list": lambda values: values.tolist(),
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked": lambda values: pa.chunked_array([pa.array(values)]),
}
# Each of them reads "Age" of a table, or the ages themselves.
OF_AGES = {
    "auto_avg": lambda df: book.auto_avg(df, epsilon=1),
    "naive_select_b": lambda df: book.naive_select_b(book.age_sum_query, df, 1),
    "gs_avg": lambda df: book.gs_avg(df, 100, 1),
    "ls_at_distance": lambda df: book.ls_at_distance(df, 100, 3),
    "dist_to_high_ls": lambda df: book.dist_to_high_ls(df, 100, "0.3"),
    "ptr_avg": lambda df: book.ptr_avg(df, 100, 2, 1, "1e-6"),
    "saa_avg_age": lambda df: book.saa_avg_age(20, 1, df=df),
    "age_sum_query": lambda df: book.age_sum_query(df, 100),
    "create_query": lambda df: book.create_query(30)(df),
    "age_range_query": lambda df: book.age_range_query(df, 20, 60),
    "create_age_range_query": lambda df: book.create_age_range_query(20, 60)(df),
    "range_query": lambda df: book.range_query(df, "Age", 20, 60),
    "above_threshold": lambda df: book.above_threshold([book.create_age_range_query(0, 99)], df, 10, 1),
    "naive_above_threshold": lambda df: book.naive_above_threshold(
        [book.create_age_range_query(0, 99)], df, 10, 1
    ),
    "sparse": lambda df: book.sparse([book.create_age_range_query(0, 99)], df, 1, 10, 1),
    "range_query_svt": lambda df: book.range_query_svt([book.create_age_range_query(0, 99)], df, 1, 10, 1),
}
# These take one column of text.
OF_JOBS = {
    "score": lambda column: book.score(column, "Sales"),
    "exponential": lambda column: book.exponential(
        column, ["Sales", "Tech"], book.score, "0.001", 1, monotone=True
    ),
    "report_noisy_max": lambda column: book.report_noisy_max(
        column, ["Sales", "Tech"], book.score, "0.001", 1, monotone=True
    ),
    "rand_resp_sales": lambda column: list(book.rand_resp_sales(column)),
    "encode": lambda column: book.encode(column, domain=["Sales", "Tech", "Farm"]).tolist(),
}


def told(function, data):
    with seeded(7):
        return function(data)


@pytest.mark.parametrize("name", OF_AGES)
def test_every_table_and_column_of_ages_gives_the_same(name):
    expected = told(OF_AGES[name], pd.DataFrame({"Age": AGES, "Job": JOBS}))
    for table in TABLES.values():
        assert told(OF_AGES[name], table()) == expected
    for column in COLUMNS.values():
        assert told(OF_AGES[name], column(AGES)) == expected


@pytest.mark.parametrize("name", OF_JOBS)
def test_every_column_of_text_gives_the_same_and_a_table_is_refused(name):
    expected = told(OF_JOBS[name], JOBS)
    for column in COLUMNS.values():
        assert told(OF_JOBS[name], column(JOBS)) == expected
    for table in TABLES.values():
        with pytest.raises(InvalidValue, match="one column"):  # a dictionary is no list of its names
            told(OF_JOBS[name], table())


@pytest.mark.parametrize("kind", TABLES)
def test_anonymity_takes_every_table(kind):
    table = TABLES[kind]()
    assert book.isKAnonymized(table, 40, quasi=["Age", "Job"])
    assert not book.isKAnonymized(table, 41)
    coarse = book.generalize(table, {"Age": 1})
    assert type(coarse) is type(table)
    assert type(coarse["Age"]) is type(table["Age"])
    ages = coarse["Age"].to_pylist() if hasattr(coarse["Age"], "to_pylist") else list(coarse["Age"])
    assert ages == (AGES // 10 * 10).tolist()
    assert list(coarse["Job"]) == list(table["Job"])
    with pytest.raises(InvalidParameter, match="does not hold numbers"):
        book.generalize(table, {"Job": 1})
    with pytest.raises(InvalidParameter, match="no column"):
        book.generalize(table, {"Zip": 1})


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dictionary of arrays", "dictionary of lists"])
def test_learning_takes_every_table_of_numbers(kind):
    rows = np.array([[0.5, -1.0], [1.0, 0.25], [-0.5, 0.5], [0.1, 0.9]])
    frame = {"a": rows[:, 0], "b": rows[:, 1]}
    made = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": pa.table,
        "dictionary of arrays": dict,
        "dictionary of lists": lambda each: {name: column.tolist() for name, column in each.items()},
    }[kind](frame)
    signs, theta = [1, -1, 1, -1], [0.3, -0.2]
    for function in (
        lambda data: book.gradient(theta, data, signs),
        lambda data: book.avg_grad(theta, data, signs),
        lambda data: book.L2_clip(data, 1),
        lambda data: book.gradient_sum(theta, data, signs, 1),
        lambda data: book.gradient_descent(3, data, signs),
        lambda data: book.predict(theta, data),
        lambda data: book.loss(theta, data, signs),
        lambda data: book.accuracy(theta, data, signs),
        lambda data: book.noisy_gradient_descent(2, 1, "1e-5", X=data, y=signs, size=4),
    ):
        assert np.array_equal(told(function, made), told(function, rows))


@pytest.mark.parametrize(
    "broken", [{"a": [1, 2], "b": [1]}, {"a": 3}, {"a": [[1], 2]}, {"a": [object(), object()]}]
)
def test_a_dictionary_that_is_no_table_is_told_so(broken):
    with pytest.raises(InvalidParameter, match="columns of one length"):
        book.isKAnonymized(broken, 2)
