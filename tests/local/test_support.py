"""One estimator for all reports that support values: without bias, and intervals that hold."""

import json

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._tails import variance
from sfumato.local.base import aggregate_from
from sfumato.local.estimates import Frequencies
from sfumato.local.response import KaryResponse
from sfumato.local.support import intervals
from sfumato.testing import seeded

PAIRS = [
    (0.6, 0.4),
    (0.731, 0.269),
    (0.99, 0.01),
    (0.5, 0.269),
    (0.5, 0.02),
    (0.05, 0.0001),
    (0.9999, 0.0001),
    (0.999, 0.5),
    (0.51, 0.499),
]


def mixture(people, m, p, q):
    """The exact law of Bin(m, p) + Bin(people − m, q)."""
    return np.convolve(
        stats.binom.pmf(np.arange(m + 1), m, p), stats.binom.pmf(np.arange(people - m + 1), people - m, q)
    )


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize(("p", "q"), PAIRS)
@pytest.mark.parametrize("people", [1, 5, 60, 300])
def test_intervals_hold_as_often_as_they_say_by_exact_count(people, p, q, confidence):
    low, high = intervals(np.arange(people + 1), people, p, q, confidence)
    assert np.all(low <= high)
    assert np.all((low >= 0) & (high <= people))
    for m in sorted({0, 1, people // 3, people // 2, people}):
        covered = (low <= m) & (m <= high)
        assert mixture(people, m, p, q)[covered].sum() >= confidence


@pytest.mark.parametrize(("p", "q"), [pair for pair in PAIRS if pair != (0.9999, 0.0001)])
def test_a_narrower_interval_would_fail(p, q):
    # The twin of the test above: with a tenth less on both sides some count of holders is missed too often.
    people, missed = 60, []
    low, high = intervals(np.arange(people + 1), people, p, q, 0.95)
    for m in range(people + 1):
        law = mixture(people, m, p, q)
        middle, half = (low + high) / 2, 0.9 * (high - low) / 2
        missed.append(1 - law[(middle - half <= m) & (m <= middle + half)].sum())
    assert max(missed) > 0.05


def test_intervals_where_coins_are_sure():
    # p is 1 and q almost 0: everybody's support is their own.
    counts = np.arange(41)
    for q in (0.0, 1e-12):
        low, high = intervals(counts, 40, 1.0, q, 0.95)
        assert np.array_equal(low, counts)
        assert np.array_equal(high, counts)
    low, high = intervals(counts, 40, 0.5, 0.5, 0.95)  # reports that say nothing
    assert (low[20], high[20]) == (0, 40)


@pytest.mark.parametrize(("p", "q"), [(0.731, 0.269), (0.5, 0.02), (0.99, 0.01)])
def test_intervals_of_many_people_are_as_wide_as_the_mixture_itself(p, q):
    people, m = 1_000_000, np.array([0.0, 50_000, 500_000, 1_000_000])
    counts = np.rint(people * q + m * (p - q)).astype(np.int64)
    low, high = intervals(counts, people, p, q, 0.95)
    half = 1.96 * np.sqrt(variance(m, people, p, q)) / (p - q)
    # Half as wide at the ends, where the truth cannot lie beyond.
    assert high - low == pytest.approx(half * [1, 2, 2, 1], rel=0.02)


def test_a_rejected_zero_leaves_zero():
    low, high = intervals(np.array([0, 1000]), 1000, 0.7, 0.3, 0.95)
    assert (low[0], high[0]) == (0, 0)
    assert (low[1], high[1]) == (1000, 1000)


def test_estimates_are_unbiased_and_intervals_cover():
    made, true = KaryResponse(1, 4), np.array([40, 25, 5, 0])
    values = np.repeat(np.arange(4), true)
    runs = 20_000
    with seeded("unbiased"):
        reports = made.encode(np.tile(values, runs)).reshape(runs, -1)
    supports = np.stack([made._supports(row) for row in reports])
    mean = ((supports - 70 * made.q) / made.gap).mean(axis=0)
    assert made.aggregate(reports[0]).estimate().counts == pytest.approx(
        (supports[0] - 70 * made.q) / made.gap
    )
    sd = np.sqrt(variance(true.astype(float), 70, made.p, made.q)) / made.gap / np.sqrt(runs)
    assert np.all(np.abs(mean - true) < 6.5 * sd)
    low, high = intervals(supports.ravel(), 70, made.p, made.q, 0.9)
    held = ((low.reshape(runs, 4) <= true) & (true <= high.reshape(runs, 4))).sum(axis=0)
    assert np.all(stats.binom.cdf(held, runs, 0.9) > 1e-9)
    assert np.all(held < runs)


def test_shares_tables_and_consistent_counts():
    made = KaryResponse(3, ["a", "b", "c"])
    with seeded("table"):
        found = made.aggregate(made.encode(["a"] * 700 + ["b"] * 300)).estimate()
    assert found.table.column_names == ["value", "count", "low", "high"]
    assert found.table["value"].to_pylist() == ["a", "b", "c"]
    assert found.shares == pytest.approx(found.counts / 1000)
    fixed = found.consistent()
    assert fixed.min() >= 0
    assert fixed.sum() == pytest.approx(1000)


def test_batches_of_any_size_and_merged_parts_say_the_same():
    made = KaryResponse(1, 7)
    with seeded("batches"):
        reports = made.encode(np.arange(1000) % 7)
    whole = made.aggregate(reports)
    parts = made.aggregate(reports[start : start + 37] for start in range(0, 1000, 37))
    merged = made.aggregate(reports[:1]) + made.aggregate(reports[1:]) + made.start()
    for each in (parts, merged):
        assert each.count == 1000
        assert np.array_equal(each.supports, whole.supports)
    again = aggregate_from(json.loads(json.dumps(whole.to_dict())))
    assert np.array_equal(again.estimate().counts, whole.estimate().counts)


def test_what_does_not_belong_is_refused_and_changes_nothing():
    made = KaryResponse(1, 7)
    whole = made.aggregate(np.array([1, 2, 3], np.uint8))
    for bad in (
        np.array([7], np.uint8),
        np.array([1, 2], np.int64),
        np.array([[1]], np.uint8),
        np.uint8(1),
    ):
        with pytest.raises(InvalidValue):
            whole.add(bad)
    for other in (KaryResponse(2, 7), KaryResponse(1, 8), KaryResponse(1, list("abcdefg"))):
        with pytest.raises(InvalidParameter, match="another epsilon, domain or kind"):
            whole + other.start()
    assert whole.count == 3
    assert whole.supports.tolist() == [0, 1, 1, 1, 0, 0, 0]
    with pytest.raises(InvalidValue, match="no reports"):
        made.start().estimate()
    with pytest.raises(InvalidParameter):
        whole.estimate(1.5)


@pytest.mark.parametrize(
    "change",
    [
        {"count": -1},
        {"count": 2.5},
        {"state": [1, 2]},
        {"state": [-1, 0, 0, 0, 0, 0, 0]},
        {"state": [9, 0, 0, 0, 0, 0, 0]},
        {"state": "x"},
        {"more": 1},
    ],
)
def test_aggregates_that_cannot_be_are_not_read(change):
    data = KaryResponse(1, 7).aggregate(np.array([1, 2, 3], np.uint8)).to_dict()
    with pytest.raises(InvalidValue):
        aggregate_from({**data, **change})


def test_a_domain_too_large_to_list_is_refused_by_the_server_alone():
    made = KaryResponse(1, 2**32)
    assert made.encode([2**32 - 1]).dtype == np.uint32
    with pytest.raises(InvalidParameter, match="too large"):
        made.start()


def test_consistent_counts_are_the_nearest_possible_ones():
    rng = np.random.default_rng(2)
    for _ in range(50):
        counts, people = rng.normal(20, 40, 6), int(rng.integers(1, 200))
        given = Frequencies(tuple(range(6)), counts, counts, counts, 0.95, people)
        nearest = given.consistent()
        assert nearest.sum() == pytest.approx(people)
        assert nearest.min() >= 0
        # No possible counts are on the other side: (counts − nearest)·(other − nearest) ≤ 0 for each corner.
        corners = people * np.eye(6) - nearest
        assert np.all(corners @ (counts - nearest) <= 1e-9 * people * 100)
