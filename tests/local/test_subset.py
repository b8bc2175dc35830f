"""Subset selection: uniform sets, the right coin, and the variance of theory."""

import math
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local import KaryResponse, SubsetSelection, UnaryEncoding
from sfumato.local.subset import _sets_below
from sfumato.testing import assert_bernoulli, assert_discrete, seeded


@pytest.mark.parametrize(("bound", "size"), [(6, 1), (6, 3), (6, 6), (5, 4)])
def test_sets_and_members_are_uniform(bound, size):
    with seeded(f"{bound} {size}"):
        taken, member = _sets_below(bound, size, 100_000)
    assert not taken[:, bound].any()
    assert taken[np.arange(len(taken)), member].all()
    # Each pair of a set and a member of it is equally likely.
    codes = (taken[:, :bound] @ (1 << np.arange(bound))) * bound + member
    law = {
        sum(1 << i for i in chosen) * bound + i: 1 / math.comb(bound, size) / size
        for chosen in combinations(range(bound), size)
        for i in chosen
    }
    assert_discrete(codes, law)


@pytest.mark.parametrize(("size", "s"), [(5, 2), (40, 2)])
def test_reports_have_the_right_law(size, s):
    made, people = SubsetSelection(1, size, size=s), 100_000
    for own in (0, size - 1):
        with seeded(f"{size} {own}"):
            rows = np.unpackbits(made.encode(np.full(people, own)), axis=1, count=size, bitorder="little")
        for i, count in enumerate(rows.sum(axis=0, dtype=np.int64)):
            assert_bernoulli(int(count), people, made.p if i == own else made.q)


@pytest.mark.parametrize(("epsilon", "size"), [("0.1", 10), (1, 100), (3, 1024), (9, 50)])
def test_the_size_of_least_variance_is_taken(epsilon, size):
    made = SubsetSelection(epsilon, size)
    others = [SubsetSelection(epsilon, size, size=s).variance for s in range(1, min(size, 60 + made.size))]
    assert made.variance == pytest.approx(min(others), rel=1e-12)
    assert made.variance <= UnaryEncoding(epsilon, size).variance * (1 + 1e-12)


@pytest.mark.parametrize("s", [1, 2, 5, 9])
def test_figures(s):
    made, e, d = SubsetSelection(1, 10, size=s), math.e, 10
    p = s * e / (s * e + d - s)
    assert made.p == pytest.approx(p, rel=1e-14)
    assert made.q == pytest.approx((p * (s - 1) + (1 - p) * s) / (d - 1), rel=1e-13)
    assert made.gap == pytest.approx(made.p - made.q, rel=1e-12)


def test_sets_of_one_are_k_ary_response():
    one, direct = SubsetSelection(1, 10, size=1), KaryResponse(1, 10)
    assert (one.p, one.q, one.gap) == pytest.approx((direct.p, direct.q, direct.gap), rel=1e-14)


def test_every_report_names_as_many_values():
    made = SubsetSelection(1, 100)
    rows = made.encode(np.arange(5000) % 100)
    assert made.report_shape == (13,)
    assert np.all(np.bitwise_count(rows).sum(axis=1) == made.size)


def test_errors_have_the_variance_of_theory():
    people, size = 100_000, 200
    made, values = SubsetSelection(2, size), np.arange(people) % size
    with seeded("theory"):
        found = made.aggregate(made.encode(values)).estimate()
    true = np.bincount(values, minlength=size)
    ratio = float(np.mean((found.counts - true) ** 2)) / (people * made.variance)
    assert abs(ratio - 1) < 6.5 * math.sqrt(2 / size)
    assert np.mean((found.low <= true) & (true <= found.high)) > 0.95 - 6 * math.sqrt(0.05 * 0.95 / size)


def test_other_reports_and_parameters_are_refused():
    made = SubsetSelection(1, 12, size=3)
    total = made.start()
    for bad, why in (([[7, 16]], "beyond"), ([[1, 1]], "name 3 values"), ([[15, 0]], "name 3 values")):
        with pytest.raises(InvalidValue, match=why):
            total.add(np.array(bad, np.uint8))
    assert total.count == 0
    for size in (0, 12, 13, 1.0, True):
        with pytest.raises(InvalidParameter):
            SubsetSelection(1, 12, size=size)
    with pytest.raises(InvalidParameter, match="too large"):
        SubsetSelection(1, 2**21)
