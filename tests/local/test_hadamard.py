"""Hadamard response: the transform against its matrix, exact laws by enumeration, and theory's errors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.audit import lower_bound
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.hadamard import HadamardResponse, examples, parities, transform
from sfumato.testing import assert_discrete, seeded


@pytest.mark.parametrize("bits", range(8))
def test_the_transform_is_that_of_the_matrix(bits: int) -> None:
    numbers = np.arange(1 << bits)
    matrix = 1 - 2 * (np.bitwise_count(numbers[:, None] & numbers).astype(np.int64) & 1)
    values = np.random.default_rng(bits).integers(-(2**40), 2**40, 1 << bits)
    before = values.copy()
    assert np.array_equal(transform(values), matrix @ values)
    assert np.array_equal(transform(transform(values)), values << bits)
    assert np.array_equal(values, before)


def supported_slowly(report: int, value: int, count: int, bits: int) -> bool:
    for place in range(count):
        mask = (report >> (count + place * bits)) & ((1 << bits) - 1)
        if (mask & value).bit_count() % 2 != (report >> place) & 1:
            return False
    return True


@pytest.mark.parametrize(("size", "count"), [(4, 1), (3, 2), (8, 2), (5, 3)])
def test_each_other_value_is_supported_by_one_report_in_g_for_each_response(size: int, count: int) -> None:
    """Over all reports: supports are what the slow definition says, and pairs of them are independent."""
    made = HadamardResponse(1, size, parities=count)
    reports = np.arange(1 << (count * (made._bits + 1))).astype(made.report_dtype)
    slow = np.array([[supported_slowly(int(r), v, count, made._bits) for v in range(size)] for r in reports])
    assert np.array_equal(made.aggregate(reports).supports, slow.sum(0))
    for batch in np.array_split(np.random.default_rng(1).permutation(reports.size), 5):
        assert np.array_equal(made.aggregate(reports[batch]).supports, slow[batch].sum(0))
        assert np.array_equal(made._supports(reports[batch]), slow[batch].sum(0))
    together = slow.T.astype(np.int64) @ slow
    share = Fraction(1, 1 << count)
    for one in range(size):
        for other in range(size):
            expected = share if one == other else share * share
            assert Fraction(int(together[one, other]), reports.size) == expected


@pytest.mark.parametrize("made", [HadamardResponse(1, 4), HadamardResponse(2, 3, parities=1)], ids=repr)
def test_reports_follow_their_law_exactly(made: HadamardResponse) -> None:
    """All reports listed: e^ε times likelier where they support the value."""
    count = made.parities
    total = 1 << (count * (made._bits + 1))
    masks = 1 << (count * made._bits)
    for value in range(made.domain.size):
        law = {}
        for report in range(total):
            own = supported_slowly(report, value, count, made._bits)
            law[report] = (made.p if own else (1 - made.p) / ((1 << count) - 1)) / masks
        assert max(law.values()) / min(law.values()) == pytest.approx(
            math.exp(float(made.epsilon)), rel=1e-12
        )
        with seeded(value):
            drawn = made.encode(np.full(50_000, value)).astype(np.int64)
        assert_discrete(drawn, law)
        with seeded(value):
            drawn = made.encode(np.full(50_000, (value + 1) % made.domain.size)).astype(np.int64)
        with pytest.raises(AssertionError):
            assert_discrete(drawn, law)


def test_a_client_that_forgets_its_coin_is_caught() -> None:
    example, drawn = examples()[0], {}
    made = example.randomizer
    with seeded(4):
        for side in ("left", "right"):
            reports = made.encode(np.full(20_000, example.value(side)))
            keys = np.full_like(reports, example.value(side))
            reports &= ~np.uint32((1 << made.parities) - 1)
            reports |= parities(reports, keys, made.parities, made._bits)
            drawn[side] = example.read(reports)
    assert lower_bound(drawn["left"], drawn["right"]).epsilon > 1


@pytest.mark.parametrize(
    ("epsilon", "size", "wanted"), [("0.1", 1000, 1), (1, 1000, 2), (2, 1000, 3), (3, 1000, 4), (9, 1000, 5)]
)
def test_the_parities_are_those_of_least_variance(epsilon: str | int, size: int, wanted: int) -> None:
    made = HadamardResponse(epsilon, size)
    assert made.parities == wanted
    choices = [HadamardResponse(epsilon, size, parities=t).variance for t in range(1, 6)]
    assert made.variance == min(choices)
    best = 4 * math.exp(float(epsilon)) / math.expm1(float(epsilon)) ** 2
    assert made.variance >= best * (1 - 1e-12)
    if wanted < 5:
        assert made.variance < 1.08 * best


def test_others_are_refused() -> None:
    made = HadamardResponse(1, 10)
    with pytest.raises(InvalidValue):
        made.encode([3, 10])
    total = made.aggregate(made.encode([1, 2]))
    before = total.sums.copy()
    for wrong in (
        np.zeros(3, np.uint64),
        np.zeros((2, 2), np.uint16),
        np.array([0, 1 << 15], np.uint16),
    ):
        with pytest.raises(InvalidValue):
            total.add(wrong)
    assert total.count == 2
    assert np.array_equal(total.sums, before)
    with pytest.raises(InvalidParameter):
        total + HadamardResponse(1, 10, parities=1).start()
    for wrong in (0, 17, 13):
        with pytest.raises(InvalidParameter):
            HadamardResponse(1, 10, parities=wrong)
    with pytest.raises(InvalidParameter):
        HadamardResponse(701, 10)
    with pytest.raises(InvalidParameter):
        HadamardResponse(1, 2**24 + 1)
    assert made.encode(np.zeros(0, np.int64)).shape == (0,)
