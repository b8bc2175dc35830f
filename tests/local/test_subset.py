"""Subset selection: uniform sets, the right coin, and the variance of theory."""

import math
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local import KaryResponse, SubsetSelection, UnaryEncoding
from sfumato.local.subset import _subsets
from sfumato.testing import assert_discrete, seeded


@pytest.mark.parametrize(("bound", "size"), [(6, 1), (6, 3), (6, 6), (5, 2)])
def test_sets_are_uniform_and_any_place_in_them_is(bound, size):
    with seeded(f"{bound} {size}"):
        chosen = _subsets(200_000, bound, size)
    all_sets = {each: i for i, each in enumerate(combinations(range(bound), size))}
    codes = np.array([all_sets[tuple(row)] for row in np.sort(chosen, axis=1).tolist()])
    if len(all_sets) > 1:
        assert_discrete(codes, dict.fromkeys(range(len(all_sets)), 1 / len(all_sets)))


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
