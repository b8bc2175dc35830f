import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato import book
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.testing import assert_bernoulli, seeded

DOMAIN = ["Sales", "Tech", "Farm"]
JOBS = ["Sales"] * 3000 + ["Tech"] * 9000


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, lambda v: pl.Series(v), pa.array])
def test_columns_of_all_kinds_are_taken(kind):
    people = kind(["Sales", "Tech"] * 5)
    with seeded(1):
        first = book.rand_resp_sales(people)
        rows = book.encode(people, domain=DOMAIN)
    with seeded(1):
        assert first.tolist() == book.rand_resp_sales(["Sales", "Tech"] * 5).tolist()
    assert rows.tolist() == [[1, 0, 0], [0, 1, 0]] * 5


def test_two_coins_tell_the_truth_three_times_in_four():
    with seeded(2):
        answers = book.rand_resp_sales(JOBS)
        one = book.rand_resp_sales("Sales")
    assert isinstance(one, bool)
    assert answers.dtype == bool
    assert_bernoulli(int(answers[:3000].sum()), 3000, 0.75)
    assert_bernoulli(int(answers[3000:].sum()), 9000, 0.25)
    with pytest.raises(AssertionError):
        assert_bernoulli(int(answers[:3000].sum()), 3000, 0.5)


def test_the_estimate_is_the_books():
    with seeded(3):
        answers = book.rand_resp_sales(JOBS)
    assert book.debias_sales(answers) == pytest.approx((answers.sum() - len(JOBS) / 4) * 2)
    assert book.debias_sales(answers.tolist()) == book.debias_sales(answers.astype(int))
    assert book.debias_sales(answers) == pytest.approx(3000, abs=900)


def test_what_is_not_sales_is_not_sales():
    with seeded(4):
        odd = book.rand_resp_sales(pd.Series(["Sales", None, pd.NA, 3] * 500, dtype=object))
    assert_bernoulli(int(odd.reshape(-1, 4)[:, 1:].sum()), 1500, 0.25)
    with seeded(4):
        assert_bernoulli(int(book.rand_resp_sales(["Tech"] * 900, yes=np.str_("Tech")).sum()), 900, 0.75)


def test_every_bit_has_its_own_coin():
    with seeded(5):
        rows = book.perturb(book.encode(JOBS, domain=DOMAIN))
    assert rows.shape == (12_000, 3)
    for people, own in ((rows[:3000], 0), (rows[3000:], 1)):
        for bit in range(3):
            assert_bernoulli(int(people[:, bit].sum()), len(people), 0.75 if bit == own else 0.25)
    # Independent: the own bit and another are both 1 three times in sixteen.
    assert_bernoulli(int((rows[3000:, 1] & rows[3000:, 2]).sum()), 9000, 3 / 16)
    estimate = book.aggregate(rows)
    assert estimate == pytest.approx([(v - 12_000 * 0.25) / 0.5 for v in rows.sum(axis=0)])
    assert estimate == pytest.approx([3000, 9000, 0], abs=900)


def test_one_person_and_other_coins():
    with seeded(6):
        alone = book.perturb(book.encode("Tech", domain=DOMAIN))
        assert alone.shape == (3,)
        rows = book.perturb(book.encode(["Farm"] * 4000, domain=DOMAIN), p="0.9", q="0.2")
        bits = [book.perturb_bit(1) for _ in range(400)] + [book.perturb_bit(0) for _ in range(400)]
    assert_bernoulli(int(rows[:, 2].sum()), 4000, 0.9)
    assert_bernoulli(int(rows[:, 0].sum()), 4000, 0.2)
    assert book.aggregate(rows, p="0.9", q="0.2") == pytest.approx([0, 0, 4000], abs=300)
    assert_bernoulli(sum(bits[:400]), 400, 0.75)
    assert_bernoulli(sum(bits[400:]), 400, 0.25)


def test_two_bits_differ_so_the_price_is_ln_nine():
    def chance(row, own, p=0.75, q=0.25):
        return math.prod(
            (p if i == own else q) if bit else 1 - (p if i == own else q) for i, bit in enumerate(row)
        )

    rows = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    worst = max(math.log(chance(row, 0) / chance(row, 1)) for row in rows)
    assert worst == pytest.approx(math.log(9))
    assert book.unary_epsilon(0.75, 0.25) == pytest.approx(worst)
    assert book.unary_epsilon(0.75, 0.25) >= math.log(9)
    assert book.price("rand_resp_sales").epsilon(0) == pytest.approx(math.log(3))
    assert book.price("perturb", p="0.9", q="0.2").epsilon(0) == pytest.approx(
        math.log(0.9 * 0.8 / (0.1 * 0.2))
    )


def test_builtin_sums_of_rows_do_not_overflow():
    with seeded(7):
        rows = book.perturb(book.encode(["Farm"] * 1000, domain=DOMAIN))
    assert sum(rows).tolist() == rows.sum(axis=0).tolist()


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: book.encode("Court", domain=DOMAIN), InvalidValue, "domain"),
        (lambda: book.encode("Sales", domain=["Sales"]), InvalidParameter, "at least 2 values"),
        (lambda: book.perturb([1, 1, 0]), InvalidValue, "exactly one 1"),
        (lambda: book.perturb([0, 0, 0]), InvalidValue, "exactly one 1"),
        (lambda: book.perturb([2, -1, 0]), InvalidValue, "exactly one 1"),
        (lambda: book.perturb([0.5, 0.5]), InvalidValue, "rows of bits"),
        (lambda: book.perturb([1, 0], p=0.2, q=0.3), InvalidParameter, "p must exceed q"),
        (lambda: book.perturb([1, 0], p=1), InvalidParameter, "p must"),
        (lambda: book.perturb_bit(2), InvalidValue, "0 or 1"),
        (lambda: book.unary_epsilon(0.25, 0.75), InvalidParameter, "p must exceed q"),
        (lambda: book.aggregate([[1, 0], [1]]), InvalidValue, "all of one length"),
        (lambda: book.aggregate([0.5, 1]), InvalidValue, "a row of bits from each person"),
        (lambda: book.debias_sales([0.5, 1]), InvalidValue, "True and False"),
        (lambda: book.debias_sales([2, 1]), InvalidValue, "True and False"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()
