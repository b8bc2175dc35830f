import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import book
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.loss import compose
from sfumato.mechanisms import Laplace, ProposeTestRelease, SampleAndAggregate
from sfumato.testing import seeded

AGES = np.random.default_rng(5).integers(17, 91, 20_000)
FRAME = pd.DataFrame({"Name": "x", "Age": AGES})


def mean(values):
    return sum(values) / len(values) if values else 0.0


def test_the_average_by_global_sensitivity_is_near_and_stays_where_averages_are():
    with seeded(1):
        assert book.gs_avg(FRAME, 100, 1) == pytest.approx(AGES.mean(), abs=0.5)
        few = [book.gs_avg([], 100, "0.1") for _ in range(40)]
    # The book's quotient of two noises leaves the range about half of the time.
    assert all(0 <= answer <= 100 for answer in few)


def test_the_average_by_global_sensitivity_is_two_mechanisms_at_a_half_each():
    parts = [Laplace("1/2", 70), Laplace("1/2", 1)]
    with seeded(9):
        answer = book.gs_avg(AGES, 70, 1)
    with seeded(9):
        total, count = parts[0].release(float(AGES.clip(0, 70).sum())), parts[1].release(AGES.size)
    assert answer == pytest.approx(total / count, rel=1e-9)
    assert compose([part.loss for part in parts]) == book.price("gs_avg", epsilon=1)


def test_every_kind_of_table_gives_the_same_answer():
    kinds = [
        FRAME, FRAME["Age"], AGES, AGES.tolist(), {"Age": AGES}, pl.from_pandas(FRAME), pl.Series(AGES),
        pa.Table.from_pandas(FRAME), pa.array(AGES), pa.chunked_array([AGES[:7], AGES[7:]]),
    ]  # fmt: skip
    answers = set()
    for kind in kinds:
        with seeded(2):
            answers.add(book.gs_avg(kind, 100, 1))
    assert len(answers) == 1


def test_one_row_moves_the_clamped_sum_by_at_most_the_bound_and_never_below_zero():
    # The originals clip from above alone: this row would move the sum by 10**9.
    with seeded(3):
        plain = book.gs_avg(AGES.tolist(), 100, 1)
    with seeded(3):
        more = book.gs_avg([*AGES.tolist(), -(10**9)], 100, 1)
    assert abs(plain - more) < 0.01


@pytest.mark.parametrize(("bound", "proposed"), [(4, 1.0), (4, 1.5), (3, "0.7"), (2, "1.99")])
def test_the_distance_keeps_the_two_conditions_of_propose_test_release(bound, proposed):
    limit = float(proposed)
    for size in range(6):
        for values in itertools.product([0.0, bound / 2, float(bound)], repeat=size):
            for extra in (0.0, float(bound)):
                here, there = list(values), [*values, extra]
                apart = abs(mean(here) - mean(there))
                near, far = (book.dist_to_high_ls(rows, bound, proposed) for rows in (here, there))
                assert abs(near - far) <= 1
                if apart > limit + 1e-9:
                    assert near == far == 0
                assert apart <= book.ls_at_distance(here, bound, 0) + 1e-12
                assert apart <= book.ls_at_distance(there, bound, 0) + 1e-12


def test_the_books_local_sensitivity_is_off_by_one_and_turns_round():
    def original(n, u, k):
        return abs(u / (n - k + 1))

    rows = [0.0, 0.0, 0.0, 100.0]
    moved = abs(mean(rows) - mean(rows[:3]))
    assert moved == 25 == book.ls_at_distance(rows, 100, 0)
    assert original(4, 100, 0) == 20 < moved
    assert original(4, 100, 100) < 2 < 100 == book.ls_at_distance(rows, 100, 100)


def test_distances_are_those_of_the_loop_over_distances():
    rows = list(range(50))
    for u, b in [(10, 1), (10, 3), (100, 7), (7, "0.5")]:
        steps = (k for k in itertools.count() if book.ls_at_distance(rows, u, k) > float(b))
        assert book.dist_to_high_ls(rows, u, b) == next(steps)


def test_propose_test_release_draws_from_its_mechanism():
    with seeded(4):
        answer = book.ptr_avg(FRAME, 100, "0.01", 1, 1e-9)
    mechanism = ProposeTestRelease(1, 1e-9, bound="0.01")
    with seeded(4):
        expected = mechanism.release(AGES.mean(), book.dist_to_high_ls(AGES, 100, "0.01"))
    assert answer == pytest.approx(expected, abs=1e-6)
    assert book.price("ptr_avg", epsilon=1, delta=1e-9) == mechanism.loss
    with seeded(5):
        assert book.ptr_avg(AGES[:500], 100, "0.01", 1, 1e-9) is None


def test_the_books_threshold_lets_far_too_many_pass():
    epsilon, delta = 1.0, 1e-9
    threshold = math.log(2 / delta) / (2 * epsilon)
    passes = math.exp(-epsilon * threshold) / 2  # Laplace noise of scale 1/epsilon on a distance of 0
    assert passes == pytest.approx(math.sqrt(delta / 2) / 2)
    assert passes > 10_000 * delta
    ours = ProposeTestRelease(epsilon, delta, bound=1)
    rate = epsilon / 2
    tail = math.exp(-rate * (ours.threshold + 1)) / (1 + math.exp(-rate))
    assert delta / 2 < tail <= delta


def test_logging_tells_nothing_that_the_answer_does_not(capsys):
    with seeded(6):
        book.ptr_avg(AGES, 100, "0.05", 1, 1e-6, True)
        book.saa_avg_age(50, 1, True, df=AGES)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["The test asks for a noisy distance above 26; it passed.", "50 parts; noise of scale 2."]


def test_sample_and_aggregate_draws_from_its_mechanism():
    with seeded(8):
        answer = book.saa_avg_age(40, 1, df=FRAME)
    with seeded(8):
        expected = SampleAndAggregate(1, 0, upper=100, chunks=40).release(np.mean, AGES)
    assert answer == expected


MOST = np.finfo(np.float64).max


@pytest.mark.parametrize("ages", [[MOST] * 50, [-MOST] * 50, [MOST, -MOST, 40.0] * 9, [MOST], [5e-324], []])
@pytest.mark.parametrize(
    "ask",
    [
        lambda ages: book.saa_avg_age(4, 1, df=ages),
        lambda ages: book.gs_avg(ages, 100, 1),
        lambda ages: book.ptr_avg(ages, 100, "0.05", 1, 1e-6),
        lambda ages: book.auto_avg(ages, 1, lower=-1.7e308, bs=[10]),
        lambda ages: book.create_query(-1.7e308)(ages),
    ],
    ids=["saa", "gs", "ptr", "auto", "create"],
)
def test_extreme_ages_neither_warn_nor_fail(ask, ages):
    # A warning or an error is an answer that nobody paid for: the suite turns the first into the second.
    with seeded("extreme"), np.errstate(over="raise", invalid="raise"):
        answer = ask(np.array(ages, dtype=np.float64))
    assert answer is None or math.isfinite(answer)


def test_extreme_parts_count_as_the_bounds():
    with seeded("bounds"):
        high, low = (book.saa_avg_age(4, 50, df=[sign * MOST] * 60) for sign in (1, -1))
    assert abs(high - 100) < 20
    assert abs(low) < 20


@pytest.mark.skipif(np.finfo(np.longdouble).max <= MOST, reason="no wider floats on this machine")
def test_numbers_beyond_all_floats_are_clamped_without_a_warning():
    for values in (np.array([np.finfo(np.longdouble).max] * 999), [10**400] * 999, [math.inf] * 999):
        assert book.gs_avg(values, 100, 9) > 90
        assert book.saa_avg_age(1, 900, df=values) > 90
    book.saa_avg_age(1, 9, df=[math.inf, -math.inf] * 9)


@pytest.mark.parametrize("odd", [None, "a", math.nan, [1], 1j, b"1"], ids=repr)
def test_rows_without_a_number_are_left_out(odd):
    assert book.ls_at_distance([1, 2, odd], 100, 0) == book.ls_at_distance([1, 2], 100, 0) == 50
    assert book.dist_to_high_ls([*[1] * 9, odd], 100, 20) == book.dist_to_high_ls([1] * 9, 100, 20)
    assert book.age_sum_query([1, 2, odd], 10) == 3
    assert book.range_query([1, 2, odd], "Age", 0, 5) == 2


def test_slicing_by_position_changes_every_chunk():
    def answers(rows, k):
        size = math.ceil(len(rows) / k)
        return [mean(rows[i : i + size]) for i in range(0, len(rows), size)]

    ages = AGES[:1000].tolist()
    before, after = answers(ages, 10), answers([90, *ages[:-1]], 10)
    assert sum(a != b for a, b in zip(before, after, strict=True)) > 5
    assert len(answers(ages[:12], 8)) == 6  # but the noise is for a mean of 8


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: book.ptr_avg(AGES, 100, 100, 1, 1e-6), InvalidParameter, "b must be less than u"),
        (lambda: book.gs_avg(FRAME, 100, 1, column="Years"), InvalidParameter, 'no column "Years"; it has'),
        (lambda: book.gs_avg(np.array(["a", "b"]), 100, 1), InvalidValue, "flat column of numbers"),
        (lambda: book.gs_avg(np.array([[1, 2]]), 100, 1), InvalidValue, "flat column of numbers"),
        (lambda: book.gs_avg(3, 100, 1), InvalidValue, "flat column of numbers"),
        (lambda: book.ls_at_distance(AGES, 100, -1), InvalidParameter, "k must be"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()
