"""Local hashing: an exactly pairwise independent family, the best variance, and no shared functions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.audit import lower_bound
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local.hashing import LocalHashing, examples, spread, supported
from sfumato.testing import assert_bernoulli, assert_discrete, seeded


def test_the_family_is_pairwise_independent_by_enumeration() -> None:
    """Words of 8 bits, indices of 3: each multiplier, each place of the own hash, each pair of values."""
    words = np.arange(256, dtype=np.uint8)
    for own, other in itertools.permutations(range(8), 2):
        for length in (4, 12, 68):
            for place in range(0, 256, 5):
                offsets = (words * np.uint8(own) - np.uint8(place)).astype(np.uint8)
                counts = supported(words, offsets, np.array([own, other], np.uint8), length)
                assert counts.tolist() == [256 * (place < length), length]


def test_a_slice_that_is_not_a_multiple_of_the_unit_would_not_be() -> None:
    words = np.arange(256, dtype=np.uint8)
    counts = supported(words, words * np.uint8(0), np.array([0, 4], np.uint8), 66)
    assert counts[1] != 66


@pytest.mark.parametrize("size", [2, 3, 1024, 5000, 65_536, 65_537, 2**32])
@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", 1, 4, 30, 700])
def test_the_slice_is_a_multiple_of_the_unit_and_near_the_best(size: int, epsilon: str | int) -> None:
    made = LocalHashing(epsilon, size)
    bits = (size - 1).bit_length()
    assert made.length % (1 << (bits - 1)) == 0
    assert 0 < made.length <= 1 << (made._word - 1)
    assert made.forced == pytest.approx(made.gap / (1 - made.q), rel=1e-12)
    if float(epsilon) < 8:
        grown = math.exp(float(epsilon))
        assert made.variance == pytest.approx(4 * grown / math.expm1(float(epsilon)) ** 2, rel=1e-4)


@pytest.mark.parametrize("epsilon", ["0.1", 1, 4, 9])
def test_the_ratio_of_the_law_is_the_claim(epsilon: str | int) -> None:
    made = LocalHashing(epsilon, 1000)
    inside, outside = made.p / made.q, (1 - made.p) / (1 - made.q)
    assert math.log(inside / outside) == pytest.approx(float(epsilon), rel=1e-9)
    # The loss is an upper bound on that of the pair: the probability that an answer shows.
    shows = made.p * (1 - made.q) + (1 - made.p) * made.q
    grown = math.exp(float(epsilon))
    bound = [(grown + 1) / (grown + made.loss.categories - less) for less in (1, 0)]
    assert bound[1] <= shows * (1 + 1e-9)
    assert shows <= bound[0] * (1 + 1e-9)
    assert made.loss.pure == Fraction(epsilon)


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 10, 16])
def test_spreading_is_a_bijection(bits: int) -> None:
    numbers = np.arange(1 << bits, dtype=np.uint32)
    assert np.array_equal(np.sort(spread(numbers, bits)), numbers)
    wide = spread(numbers.astype(np.uint64), bits)
    assert np.array_equal(wide, spread(numbers, bits))


def test_neighbours_are_no_progression() -> None:
    steps = np.diff(spread(np.arange(1024, dtype=np.uint32), 10).astype(np.int64)) % 1024
    assert np.unique(steps, return_counts=True)[1].max() < 32


def test_errors_of_neighbours_add_up_like_independent_ones() -> None:
    """Everybody has one value; the supports of 64 neighbours of it are added up in each report."""
    made = LocalHashing(1, 1024)
    with seeded(5):
        reports = made.encode(np.zeros(20_000, np.int64))
    keys = made._keys(np.arange(1, 65))
    inside = reports[:, :1] * keys - reports[:, 1:] < made.length
    assert inside.sum(1).var() / (64 * made.q * (1 - made.q)) == pytest.approx(1, abs=0.12)
    # In a progression they would not.
    line = np.arange(1, 65, dtype=np.uint32)
    own = reports[:, 1] + (reports[:, :1] * made._keys(np.array([0])) - reports[:, 1:])[:, 0]
    straight = (own - reports[:, 1])[:, None] + reports[:, :1] * line < made.length
    assert straight.sum(1).var() / (64 * made.q * (1 - made.q)) > 1.1


@pytest.mark.parametrize("made", [LocalHashing(1, 1000), LocalHashing(2, 100_000)], ids=["short", "long"])
def test_hashes_lie_as_stated(made: LocalHashing) -> None:
    """The multiplier is uniform, and so is the own hash inside the slice and outside it."""
    with seeded(2):
        reports = made.encode(np.full(60_000, 77))
    top = made._word - 4
    assert_discrete((reports[:, 0] >> top).astype(np.int64), dict.fromkeys(range(16), 1 / 16))
    hashes = reports[:, 0] * made._keys(np.array([77])) - reports[:, 1]
    inside = hashes < made.length
    assert_bernoulli(int(inside.sum()), inside.size, made.p)
    places = (hashes[inside].astype(np.float64) / made.length * 32).astype(np.int64)
    assert_discrete(places, dict.fromkeys(range(32), 1 / 32))
    rest = (hashes[~inside].astype(np.float64) - made.length) / (2.0**made._word - made.length)
    assert_discrete((rest * 32).astype(np.int64), dict.fromkeys(range(32), 1 / 32))
    assert_discrete((hashes[inside] & 15).astype(np.int64), dict.fromkeys(range(16), 1 / 16))


def test_a_client_that_always_supports_its_value_is_caught() -> None:
    made = LocalHashing(1, 1024)
    with seeded(4):
        drawn = {}
        for value in (3, 700):
            reports = made.encode(np.full(20_000, value))
            place = (reports[:, 0] * made._keys(np.array([value])) - reports[:, 1]) % made.length
            reports[:, 1] = reports[:, 0] * made._keys(np.array([value])) - place
            drawn[value] = examples()[0].read(reports)
    assert lower_bound(drawn[3], drawn[700]).epsilon > 1


def test_few_shared_functions_would_miss_theory() -> None:
    """What a popular short cut does: one of 100 functions for each person."""
    made, truth = LocalHashing(1, 300), np.full(40_000, 7)
    few = np.random.default_rng(1).integers(0, 2**32, 100, dtype=np.uint32)[np.arange(truth.size) % 100]
    with seeded(7):
        reports = made.encode(truth)
    key = made._keys(np.array([7]))[0]
    hashes = reports[:, 0] * key - reports[:, 1]
    reports[:, 0], reports[:, 1] = few, few * key - hashes
    # The same place of the slice for all who share a function.
    reports[:, 1] = np.where(hashes < made.length, few * key - np.uint32(5), reports[:, 1])
    found = made.aggregate(reports).estimate()
    others = np.delete(found.counts, 7)
    assert np.mean(others**2) / (truth.size * made.variance) > 5


def test_few_reports_are_counted_like_many() -> None:
    made = LocalHashing(1, 100)
    with seeded(9):
        reports = made.encode(np.arange(5000) % 100)
    whole = made.aggregate(reports).supports
    for size in (1, 7, 2048, 2049, 4999):
        batches = [reports[start : start + size] for start in range(0, 5000, size)]
        assert np.array_equal(made.aggregate(batches).supports, whole)
    keys = made._keys(np.arange(100))
    inside = reports[:, :1] * keys - reports[:, 1:] < made.length
    assert np.array_equal(inside.sum(0), whole)


def test_others_are_refused() -> None:
    made = LocalHashing(1, 10)
    with pytest.raises(InvalidValue):
        made.encode([3, 10])
    with pytest.raises(InvalidValue):
        made.encode([0.5])
    total = made.aggregate(made.encode([1, 2]))
    for wrong in (np.zeros((3, 2), np.uint64), np.zeros(3, np.uint32), np.zeros((2, 3), np.uint32)):
        with pytest.raises(InvalidValue):
            total.add(wrong)
    assert total.count == 2
    with pytest.raises(InvalidParameter):
        total + LocalHashing(1, 11).start()
    with pytest.raises(InvalidParameter):
        total + LocalHashing(2, 10).start()
    for epsilon in (0, -1, 701):
        with pytest.raises(InvalidParameter):
            LocalHashing(epsilon, 10)
    with pytest.raises(InvalidParameter, match="heavy hitters"):
        LocalHashing(1, 2**32).start()
    assert made.encode(np.zeros(0, np.int64)).shape == (0, 2)
