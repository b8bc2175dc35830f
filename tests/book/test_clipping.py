import numpy as np
import pytest

from sfumato import book
from sfumato.book.clipping import _beyond
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import compose
from sfumato.mechanisms import AboveThreshold, Laplace
from sfumato.testing import seeded

RNG = np.random.default_rng(11)
AGES = RNG.integers(17, 91, 20_000)


def test_sums_are_clamped_and_exact():
    assert book.age_sum_query([20, 30, -5, 200], 100) == 150.0
    assert book.age_sum_query({"Age": np.array([20, 30])}, 25) == 45.0
    assert book.age_sum_query([1e-300, 3e-300], "2e-300") == pytest.approx(3e-300)
    values = RNG.uniform(0, 100, 5000)
    shuffled = RNG.permutation(values)
    assert book.age_sum_query(values, 90) == book.age_sum_query(shuffled, 90)
    assert book.age_sum_query(values, 90) == pytest.approx(values.clip(0, 90).sum(), rel=1e-8)


def test_the_query_of_a_bound_is_the_difference_of_two_sums_and_moves_by_at_most_one():
    rows = [0.5, 3, 3.25, 7, 40, -2]
    for b in (1, 3, 4, 39, 50):
        query = book.create_query(b)
        assert query(rows) == pytest.approx(sum(min(max(v, 0), b) - min(max(v, 0), b + 1) for v in rows))
        for value in (-1e9, 0, 3.7, 1e9):
            assert -1 <= query([*rows, value]) - query(rows) <= 0


def test_one_pass_gives_what_a_scan_for_each_bound_gives():
    values = np.concatenate([RNG.uniform(-20, 200, 300), RNG.integers(0, 200, 300)])
    bounds = list(range(1, 150, 5))
    scans = [-book.create_query(b)(values) for b in bounds]
    assert _beyond(values, bounds) == pytest.approx(scans, abs=300 * 2**-20)
    for value in (-3.0, 5.5, 76.25, 1e18):
        moved = _beyond(np.append(values, value), bounds) - _beyond(values, bounds)
        assert moved.min() >= 0
        assert moved.max() <= 1


def test_the_automatic_average_is_near():
    with seeded(1):
        assert book.auto_avg(AGES, 1) == pytest.approx(AGES.mean(), abs=0.5)
        assert book.auto_avg(AGES / 10, 1, column="Age") == pytest.approx(AGES.mean() / 10, abs=0.1)


def test_the_automatic_average_is_three_mechanisms_at_a_third_each():
    finder = AboveThreshold("1/3", 0, sensitivity=1, monotone=True)
    bounds = range(1, 150, 5)
    with seeded(9):
        answer = book.auto_avg(AGES, 1, bs=bounds)
    with seeded(9):
        b = bounds[finder.first(-_beyond(AGES.astype(float), list(bounds)))]
        parts = [Laplace("1/3", b), Laplace("1/3", 1)]
        total, count = parts[0].release(float(AGES.clip(0, b).sum())), parts[1].release(AGES.size)
    assert answer == pytest.approx(total / count, rel=1e-9)
    assert compose([finder.loss, *(part.loss for part in parts)]) == book.price("auto_avg", epsilon=1)


def test_negative_values_have_a_lower_bound_to_be_named():
    degrees = AGES - 70.0
    with seeded(2):
        assert book.auto_avg(degrees, 1, lower=-60) == pytest.approx(degrees.mean(), abs=0.5)
        # The original clamps every one of them to 0, in silence.
        assert book.auto_avg(degrees, 1) > degrees.clip(min=0).mean() - 0.5 > degrees.mean() + 3


def test_few_rows_and_no_rows_still_give_an_average_within_bounds():
    with seeded(3):
        for rows in ([], [40.0], [1e12]):
            answers = [book.auto_avg(rows, "0.5", bs=range(1, 100, 9)) for _ in range(10)]
            assert all(0 <= answer <= 91 for answer in answers)


def test_the_naive_bound_costs_a_hundred_times_the_noise():
    with seeded(4):
        chosen = {book.naive_select_b(book.age_sum_query, AGES, 1) for _ in range(5)}
        clear = book.naive_select_b(book.age_sum_query, AGES, 10**6)
    assert clear == 101  # the first bound beyond 91: nothing grows
    assert chosen != {101}
    with seeded(5):
        # The last one if all grow: at a price that leaves no noise to speak of, sums of 10**12 people.
        assert book.naive_select_b(lambda df, b: df * b, 10**12, 10, bs=[1, 2, 3]) == 3


@pytest.mark.parametrize("bs", [[], [0, 1], [3, 2], [1.5, 2], range(1, 10**9, 10**8), 5])
def test_bounds_must_rise(bs):
    with pytest.raises(InvalidParameter, match="bs must be rising whole numbers"):
        book.auto_avg(AGES, 1, bs=bs)


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: book.auto_avg(np.array(["a"]), 1), InvalidValue, "flat column of numbers"),
        (lambda: book.auto_avg(AGES, -1), InvalidParameter, "epsilon must be"),
        (lambda: book.naive_select_b(5, AGES, 1), InvalidParameter, "query must be a function"),
        (lambda: book.age_sum_query(AGES, 0), InvalidParameter, "b must be"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()
