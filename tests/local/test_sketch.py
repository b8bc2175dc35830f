"""The count-mean sketch: unbiased over its functions, and honest about collisions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.audit import lower_bound
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._table import Sums, Table
from sfumato.local.base import randomizer_from
from sfumato.local.sketch import CountMeanSketch, examples
from sfumato.testing import assert_bernoulli, assert_coverage, assert_discrete, seeded


def people(size: int, domain: int) -> np.ndarray:
    drawn = np.random.default_rng(1).geometric(0.02, size) - 1
    return np.where(np.arange(size) % 3 == 0, 7, np.minimum(drawn, domain - 1))


def test_cells_of_two_keys_agree_in_one_row_of_so_many() -> None:
    pairs = np.array([[0, 1], [5, 2**47], [2**48 - 1, 2**48 - 2], [3, 3 + 2**20]], np.uint64)
    same = total = 0
    for salt in range(6):
        table = Table(1, 4096, 16, str(salt))
        rows = np.arange(4096)
        for one, other in pairs:
            left, right = (table.cells(rows, np.full(4096, key, np.uint64)) for key in (one, other))
            same += int((left == right).sum())
            total += 4096
            assert_discrete(left.astype(np.int64), dict.fromkeys(range(16), 1 / 16))
    assert_bernoulli(same, total, 1 / 16)


def test_supports_are_those_of_the_response_row_by_row() -> None:
    table = Table(2, 8, 16, "x")
    keys = np.random.default_rng(2).integers(0, 1000, 3000).astype(np.uint64)
    with seeded(1):
        reports = table.encode(keys)
    sums = Sums(table)
    for batch in np.array_split(reports, 7):  # some small beside the table, some not
        sums.add(batch)
    one = Sums(table)
    one.add(reports)
    assert np.array_equal(one.characters, sums.characters)
    tiny = Sums(table)
    for report in reports[:50]:
        tiny.add(np.array([report]))
    beginning = Sums(table)
    beginning.add(reports[:50])
    assert np.array_equal(tiny.characters, beginning.characters)
    rows = (reports >> np.uint64(table._answer)).astype(np.int64)
    answers = reports & np.uint64((1 << table._answer) - 1)
    for row in range(8):
        inner = table.response.aggregate(answers[rows == row].astype(table.response.report_dtype))
        assert np.array_equal(sums.supports()[row], inner.supports)
        assert sums.people[row] == inner.count
    asked = np.arange(20, dtype=np.uint64)
    slow = [sum(int(sums.supports()[r, table.cells(r, asked)[v]]) for r in range(8)) for v in range(20)]
    assert sums.counted(asked).tolist() == slow


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_reports_follow_their_law_and_the_auditor_agrees(example) -> None:
    with seeded(3):
        left, right = example.draw("left", 40_000), example.draw("right", 40_000)
        rows = example.randomizer.encode([0] * 40_000) >> example.randomizer._table._answer
    assert_discrete(left, example.pmf("left"))
    assert_discrete(right, example.pmf("right"))
    assert_discrete(rows.astype(np.int64), dict.fromkeys(range(4), 1 / 4))
    assert 0.5 < lower_bound(left, right).epsilon <= 1


@pytest.mark.parametrize("rows", [4, 64, 1024])
def test_errors_are_those_of_response_and_collisions(rows: int) -> None:
    """Over functions: a frequent value among rare ones, whose own error is that of the response."""
    size, many, ratios, held, estimates = 400, 60_000, [], 0, []
    truth = people(many, size)
    real = np.bincount(truth, minlength=size).astype(float)
    for salt in range(4):
        made = CountMeanSketch(1, size, rows=rows, width=128, salt=salt)
        with seeded(salt):
            found = made.aggregate(made.encode(truth)).estimate()
        # What one report adds is in `variance` already; beyond it, people of a value collide together.
        together = (real * real / rows).sum() * (1 - 1 / rows) - real * real / rows
        theory = many * made.variance + together / 128
        ratios.append(np.mean((found.counts - real) ** 2 / theory))
        held += int(((found.low <= real) & (real <= found.high)).sum())
        estimates.append(found.counts[7])
    # With 4 rows most values collide with the frequent one nowhere, and the few that do carry the variance.
    assert np.mean(ratios) == pytest.approx(1, abs=0.15 if rows > 4 else 0.6)
    assert held / (4 * size) > 0.94
    assert_coverage(held, 4 * size, 0.94)
    assert np.mean(estimates) == pytest.approx(real[7], abs=6 * math.sqrt(many * 4 + real[7] ** 2 / 512) / 2)


def test_collisions_are_estimated() -> None:
    made, truth = CountMeanSketch(1, 400, rows=16, width=256), people(200_000, 400)
    with seeded(1):
        sums = made.aggregate(made.encode(truth)).sums
    real = np.bincount(truth, minlength=400).astype(float)
    exact = (real * real / 16 + real * (15 / 16)).sum()
    assert exact * 0.95 < sums.collisions() < exact * 1.2


def test_the_estimate_is_unbiased_over_functions() -> None:
    truth = np.repeat([1, 2, 3], [3000, 200, 0])
    counts = []
    for salt in range(60):
        made = CountMeanSketch(2, 10, rows=4, width=4, salt=salt)
        with seeded(salt):
            counts.append(made.aggregate(made.encode(truth)).estimate().counts[1:4])
    error = np.std(counts, axis=0) / math.sqrt(len(counts))
    assert np.all(np.abs(np.mean(counts, axis=0) - [3000, 200, 0]) < 5 * error)
    # Without the correction for those who share a cell, the rare ones would be far off.
    assert abs(np.mean(counts, axis=0)[2] + 3200 / 4) > 5 * error[2]


def test_a_domain_too_large_to_list_can_be_asked() -> None:
    made = CountMeanSketch(2, 2**32)
    truth = np.repeat([2**31 + 5, 17], [6000, 4000])
    with seeded(2):
        total = made.aggregate(made.encode(truth))
    found = total.count_of([2**31 + 5, 17, 18], confidence=0.999)
    assert np.all((found.low <= [6000, 4000, 0]) & (found.high >= [6000, 4000, 0]))
    assert found.values == (2**31 + 5, 17, 18)
    assert found.low[0] > 5000
    with pytest.raises(InvalidParameter):
        total.estimate()


def test_batches_merge_and_come_back() -> None:
    made, truth = CountMeanSketch(2, ["a", "b", "c"], rows=4, width=8), ["a", "b", "c", "a"] * 50
    with seeded(8):
        reports = made.encode(truth)
    whole = made.aggregate(reports)
    parts = made.aggregate(reports[:33]) + made.aggregate(iter([reports[33:34], reports[34:]]))
    assert np.array_equal(whole.supports, parts.supports)
    assert np.array_equal(whole.supports, made._supports(reports))
    assert whole.estimate().values == ("a", "b", "c")
    again = randomizer_from(made.to_dict())
    assert again == made
    assert again.fingerprint == made.fingerprint
    restored = again.start()
    restored.count = whole.count
    restored._restore(whole.to_dict()["state"])
    assert np.array_equal(restored.supports, whole.supports)
    listed = whole.to_dict()["state"]
    for wrong in ([1, 2], listed[:-1], [listed[0] + 1, *listed[1:]], [*listed[:-1], 10**6], "no", None):
        with pytest.raises(InvalidValue):
            restored._restore(wrong)
    assert np.array_equal(restored.supports, whole.supports)


def test_others_are_refused() -> None:
    made = CountMeanSketch(1, 10, rows=4, width=8)
    with pytest.raises(InvalidValue):
        made.encode([3, 10])
    total = made.aggregate(made.encode([1, 2]))
    for wrong in (np.zeros(3, np.uint64), np.zeros((2, 2), np.uint16), np.array([1 << 15], np.uint16)):
        with pytest.raises(InvalidValue):
            total.add(wrong)
    assert total.count == 2
    with pytest.raises(InvalidParameter):
        total + CountMeanSketch(1, 10, rows=4, width=8, salt=1).start()
    with pytest.raises(InvalidValue):
        made.start().estimate()
    for wrong in ({"rows": 3}, {"width": 5}, {"rows": 1}, {"width": 2**17}, {"salt": -1}):
        with pytest.raises(InvalidParameter):
            CountMeanSketch(1, 10, **wrong)
    with pytest.raises(InvalidParameter):
        CountMeanSketch(0, 10)
