"""Unary encoding: packed rows, both sets of coins, and the variance of theory."""

import math

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local import UnaryEncoding
from sfumato.local._bits import put, totals
from sfumato.testing import assert_bernoulli, seeded

BOTH = pytest.mark.parametrize("optimised", [True, False])


@pytest.mark.parametrize("epsilon", ["0.1", 1, 6])
@BOTH
def test_two_bits_together_spend_epsilon(epsilon, optimised):
    made, e = UnaryEncoding(epsilon, 20, optimised=optimised), math.exp(float(epsilon))
    assert math.log(made.p * (1 - made.q) / (made.q * (1 - made.p))) == pytest.approx(
        float(epsilon), rel=1e-9
    )
    assert made.gap == pytest.approx(made.p - made.q, rel=1e-12)
    theory = 4 * e / (e - 1) ** 2 if optimised else math.sqrt(e) / (math.sqrt(e) - 1) ** 2
    assert made.variance == pytest.approx(theory, rel=1e-9)


def test_a_report_of_1024_values_has_128_bytes():
    made = UnaryEncoding(1, 1024)
    assert made.report_shape == (128,)
    assert made.encode([0, 1023]).nbytes == 256
    assert UnaryEncoding(1, 1025).report_shape == (129,)


@pytest.mark.parametrize("size", [2, 7, 8, 9, 100])
@BOTH
def test_every_bit_has_its_own_probability(size, optimised):
    made, people = UnaryEncoding(2, size, optimised=optimised), 60_000
    for own in {0, size // 2, size - 1}:
        with seeded(f"{size} {own} {optimised}"):
            rows = made.encode(np.full(people, own))
        bits = np.unpackbits(rows, axis=1, bitorder="little")
        assert not bits[:, size:].any()
        for i, count in enumerate(bits[:, :size].sum(axis=0, dtype=np.int64)):
            assert_bernoulli(int(count), people, made.p if i == own else made.q)


@BOTH
def test_errors_have_the_variance_of_theory(optimised):
    people, size = 100_000, 1024
    made, values = UnaryEncoding(1, size, optimised=optimised), np.arange(people) % size
    with seeded(f"theory {optimised}"):
        found = made.aggregate(made.encode(values)).estimate()
    true = np.bincount(values, minlength=size)
    ratio = float(np.mean((found.counts - true) ** 2)) / (people * made.variance)
    assert abs(ratio - 1) < 6.5 * math.sqrt(2 / size)
    assert np.mean((found.low <= true) & (true <= found.high)) > 0.95 - 6 * math.sqrt(0.05 * 0.95 / size)


def test_bits_are_put_in_place_whatever_was_there():
    rows = np.array([[255, 255], [0, 0], [255, 0]], np.uint8)
    put(rows, np.array([9, 9, 0]), np.array([False, True, True]))
    assert rows.tolist() == [[255, 253], [0, 2], [255, 0]]


def test_totals_of_many_rows_do_not_wrap():
    rows = np.full((1000, 2), 255, np.uint8)
    assert totals(rows, 13).tolist() == [1000] * 13


def test_other_reports_are_refused():
    made = UnaryEncoding(1, 13)
    total = made.start()
    with pytest.raises(InvalidValue, match="beyond the values"):
        total.add(np.array([[0, 1], [0, 32]], np.uint8))
    for bad in (np.zeros((1, 3), np.uint8), np.zeros(2, np.uint8), np.zeros((1, 2), np.int8)):
        with pytest.raises(InvalidValue, match="arrays of uint8"):
            total.add(bad)
    assert total.count == 0
    assert not total.supports.any()
    with pytest.raises(InvalidParameter):
        total + UnaryEncoding(1, 13, optimised=False).start()
    with pytest.raises(InvalidParameter):
        UnaryEncoding(1, 13, optimised=1)
    with pytest.raises(InvalidValue):
        made.encode([13])
