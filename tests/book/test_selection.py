import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import book
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import (
    AboveThreshold,
    Exponential,
    Laplace,
    NoisyMax,
    NumericSparseVector,
    SparseVector,
)
from sfumato.testing import seeded

JOBS = ["Sales"] * 6 + ["Tech"] * 4 + ["Farm"]
OPTIONS = ["Sales", "Tech", "Farm", "Court"]
AGES = pd.DataFrame({"Age": [20, 31, 35, 36, 47, 52, 52, 90]})


def constant(*answers):
    return [lambda _, value=value: value for value in answers]


@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, pl.Series, pa.array, lambda v: pa.chunked_array([v])]
)
def test_scores_are_thousands_and_an_option_of_nobody_has_none(kind):
    data = kind(JOBS)
    assert book.score(data, "Sales") == 0.006
    assert book.score(data, "Court") == 0.0
    with pytest.raises(KeyError):  # what the original does tells that nobody has it
        pd.Series(JOBS).value_counts()["Court"]


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("choose", "mechanism"), [(book.exponential, Exponential), (book.report_noisy_max, NoisyMax)]
)
def test_choices_are_those_of_the_mechanism(choose, mechanism, monotone):
    scores = [0.006, 0.004, 0.001, 0.0]
    for seed in range(40):
        with seeded(seed):
            ours = choose(JOBS, OPTIONS, book.score, "0.001", 1, monotone=monotone)
        with seeded(seed):
            expected = mechanism(1, "0.001", monotone=monotone).select(scores)
        assert ours == OPTIONS[expected]


@pytest.mark.parametrize("choose", [book.exponential, book.report_noisy_max])
def test_any_score_and_any_list_of_options_will_do(choose):
    def nearness(data, option):
        return -abs(float(np.median(data)) - option)

    with seeded(1):
        assert choose([3, 4, 5], np.arange(10), nearness, 1, 200) == 4
        assert choose([3, 4, 5], pd.Series([4, 9], index=[7, 8]), nearness, 1, 200) == 4


def test_the_books_exponentials_overflow_and_ours_do_not():
    scores = np.array([3000.0, 2000.0])
    with np.errstate(over="ignore", invalid="ignore"):
        weights = np.exp(1 * scores / 2)
        assert np.isnan(weights / weights.sum()).all()
    with seeded(1):
        assert book.exponential(None, [0, 1], lambda _, r: scores[r], 1, 1) == 0


def test_the_books_noisy_max_is_twice_as_dear_unless_scores_move_together():
    # Scores (0, t) and (1, t - 1): the first wins if a difference of two Laplace exceeds the gap.
    def wins(gap, scale):
        return (2 + gap / scale) * math.exp(-gap / scale) / 4

    def cost(scale, gap=20):
        return math.log(wins(gap - 2, scale) / wins(gap, scale))

    epsilon = 1
    assert cost(1 / epsilon) > 1.9 * epsilon  # the book's scale
    assert cost(NoisyMax(epsilon, 1).scale) <= epsilon  # ours
    assert NoisyMax(epsilon, 1).scale == pytest.approx(2, rel=1e-5)
    assert NoisyMax(epsilon, 1, monotone=True).scale == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("found", [book.above_threshold, book.above_threshold_fail_signal])
def test_above_threshold_is_its_mechanism_and_says_when_nothing_is_above(found):
    answers = [-50.0, -3.0, 1.0, 60.0]
    for seed in range(20):
        with seeded(seed):
            ours = found(constant(*answers), None, 0, 1)
        with seeded(seed):
            assert ours == AboveThreshold(1, 0, sensitivity=1).first(iter(answers))
    with seeded(1):
        assert found(constant(0, 0, 0), None, 10_000, 1) is None  # the book: a random index
        assert found([], None, 0, 1) is None
        assert found(constant(0, 10_000), None, 5_000, 1) == 1


def test_no_query_is_asked_after_the_answer():
    asked = []

    def query(name):
        def ask(df):
            asked.append(name)
            return df

        return ask

    with seeded(1):
        assert book.above_threshold([query(0), query(1)], 10_000, 0, 1) == 0
        assert book.sparse([query(2), query(3), query(4)], 10_000, 2, 0, 1) == [0, 1]
    assert asked == [0, 2, 3]


def test_the_naive_form_pays_for_every_query():
    answers = [0.0, 100.0, 0.0, 400.0]
    for seed in range(20):
        with seeded(seed):
            ours = book.naive_above_threshold(constant(*answers), None, 100, 1)
        with seeded(seed):
            above = np.flatnonzero(Laplace(1, 4).release(answers) >= 100)
        assert ours == (above[0] if above.size else None)
    with seeded(1):
        assert book.naive_above_threshold(constant(0, 0), None, 10_000, 1) is None
        assert book.naive_above_threshold([], None, 0, 1) is None
    # Four releases at a quarter each, added up.
    assert 4 * Laplace("1/4", 1).epsilon == book.price("naive_above_threshold", epsilon=1).epsilon(0)


@pytest.mark.parametrize("monotone", [False, True])
def test_sparse_is_one_run_of_its_mechanism(monotone):
    answers = [-50.0, 40.0, 1.0, 60.0, 70.0, -5.0]
    for seed in range(20):
        with seeded(seed):
            ours = book.sparse(constant(*answers), None, 2, 0, 1, monotone=monotone)
        with seeded(seed):
            law = SparseVector(1, 0, count=2, sensitivity=1, monotone=monotone)
            assert ours == law.above(iter(answers))
    # The book starts anew for each finding, with noise of scale 4c/epsilon on each query.
    assert SparseVector(1, 0, count=5, sensitivity=1)._gate.inner * law._gate.grid.step < 4 * 5


def test_range_queries_are_about_the_table_that_was_given():
    queries = [book.create_age_range_query(low, low + 20) for low in (10, 30, 50)]
    with seeded(3):
        many = book.range_query_svt(queries, pd.concat([AGES] * 1000), 3, 500, 2)
    assert [round(answer, -3) for answer in many] == [1000, 4000, 2000]  # 20; 31 35 36 47; 52 52, not 90
    with seeded(3):
        assert book.range_query_svt(queries, AGES, 3, 500, 2) == []


def test_range_queries_draw_from_their_mechanism():
    for seed in range(10):
        with seeded(seed):
            ours = book.range_query_svt(constant(0, 50, 90), None, 2, 20, 1)
        with seeded(seed):
            law = NumericSparseVector(1, 20, count=2, sensitivity=1)
            assert ours == [answer for _, answer in law.above(iter([0, 50, 90]))]


def test_ranges_at_their_ends():
    assert book.age_range_query(AGES, 20, 52) == 4
    assert book.range_query(AGES, "Age", 20, 52) == 5
    assert book.range_query(pa.Table.from_pandas(AGES), "Age", 52, 100) == 3
    with pytest.raises(InvalidParameter, match='no column "Years"'):
        book.range_query(AGES, "Years", 0, 1)


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: book.exponential(JOBS, [], book.score, 1, 1), InvalidParameter, "at least one option"),
        (lambda: book.exponential(JOBS, "Sales", book.score, 1, 1), InvalidParameter, "public list"),
        (lambda: book.exponential(JOBS, OPTIONS, 3, 1, 1), InvalidParameter, "u must be a function"),
        (lambda: book.report_noisy_max("Sales", OPTIONS, book.score, 1, 1), InvalidValue, "one column"),
        (lambda: book.score(AGES, 3), InvalidValue, "one column"),
        (lambda: book.above_threshold([3], AGES, 0, 1), InvalidParameter, "must be a function"),
        (lambda: book.above_threshold(3, AGES, 0, 1), InvalidParameter, "functions of the table"),
        (lambda: book.naive_above_threshold(3, AGES, 0, 1), InvalidParameter, "functions of the table"),
        (lambda: book.sparse(constant(math.nan), AGES, 1, 0, 1), InvalidValue, "finite"),
        (lambda: book.sparse(constant(1), AGES, 0, 0, 1), InvalidParameter, "count must be"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()


def test_what_is_none_of_the_options_is_not_counted():
    for odd in ([1], None, 2.5, {}, np.array([1, 2])):
        assert book.score(["a", "a", odd], "a") == 0.002
