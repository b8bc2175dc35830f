"""Heavy hitters: frequent values are found with honest counts, rare ones are not, a person reports once."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.audit import lower_bound
from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.local._symbols import Symbols
from sfumato.local.base import randomizer_from
from sfumato.local.heavy import HeavyHitters, examples
from sfumato.testing import assert_discrete, seeded

MANY = 60_000


def numbers(bits: int, size: int = MANY, seed: int = 1) -> tuple[np.ndarray, dict[int, int]]:
    """Some frequent numbers, of which two share a long prefix, among numbers that nobody shares."""
    generator = np.random.default_rng(seed)
    top = 2**bits
    frequent = [top - 1, top - 2, 12_345 % top, top // 3]
    rare = generator.integers(0, top - 2, size, dtype=np.uint64)
    values = np.where(np.arange(size) % 10 < 8, np.array(frequent, np.uint64)[np.arange(size) % 4], rare)
    return generator.permutation(values), {each: int((values == each).sum()) for each in frequent}


@pytest.mark.parametrize("bits", [1, 3, 4, 17, 32, 64])
def test_numbers_are_rows_of_symbols_and_come_back(bits: int) -> None:
    symbols = Symbols.of(bits, 0, None)
    values = np.random.default_rng(bits).integers(0, 2**bits - 1, 50, dtype=np.uint64, endpoint=True)
    digits = symbols.digits(values)
    assert symbols.values(digits) == tuple(values.tolist())
    assert digits.shape == (50, symbols.length)
    assert digits.max() < symbols.base


def test_texts_are_rows_of_symbols_and_come_back() -> None:
    symbols = Symbols.of(None, 5, "abé語 ")
    values = ["", "a", "ab", "語é a", "aaaaa", " "]
    assert symbols.values(symbols.digits(values)) == tuple(values)
    assert symbols.digits(np.array(values)).tolist() == symbols.digits(values).tolist()
    assert symbols.digits([]).shape == (0, 5)
    for wrong in (["abc", "abcdef"], ["z"], ["a\0"], [3], [None], ["語語語語語語"]):
        with pytest.raises(InvalidValue) as caught:
            symbols.digits(wrong)
        assert str(wrong[-1]) not in str(caught.value) or wrong[-1] == 3


@pytest.mark.parametrize(
    ("symbols", "every"),
    [
        (Symbols.of(6, 0, None), range(64)),
        (Symbols.of(3, 0, None), range(8)),
        (Symbols.of(None, 2, "ab"), ["", "a", "b", "aa", "ab", "ba", "bb"]),
    ],
)
def test_continuations_are_all_values_and_nothing_else(symbols: Symbols, every) -> None:
    listed = symbols.continued(np.zeros((1, 0), np.uint16), symbols.length)
    assert sorted(symbols.values(listed)) == sorted(every)


def test_levels_reach_the_whole_value() -> None:
    for made in (HeavyHitters(1, bits=1), HeavyHitters(1, bits=64), HeavyHitters(1, length=20)):
        assert made.levels[-1] == made._symbols.length
        assert list(made.levels) == sorted(set(made.levels))
        for table in made._tables:
            assert table.used + (len(made.levels) - 1).bit_length() <= 64
    assert HeavyHitters(1, bits=16).levels == (4,)
    assert HeavyHitters(1, bits=32).levels == (4, 6, 8)


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_reports_follow_their_law_and_the_auditor_agrees(example) -> None:
    with seeded(3):
        left, right = example.draw("left", 40_000), example.draw("right", 40_000)
    assert_discrete(left, example.pmf("left"))
    assert_discrete(right, example.pmf("right"))
    assert 0.5 < lower_bound(left, right).epsilon <= 1


def test_the_level_says_nothing_of_the_value() -> None:
    made = HeavyHitters(1, bits=32)
    for value in (0, 2**32 - 1):
        with seeded(value):
            reports = made.encode(np.full(30_000, value))
        levels = (reports >> np.uint64(made._tables[0].used)).astype(np.int64)
        assert_discrete(levels, dict.fromkeys(range(3), 1 / 3))
        rows = (reports >> np.uint64(made._tables[0]._answer)).astype(np.int64) % 256
        assert_discrete(rows, dict.fromkeys(range(256), 1 / 256))


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_frequent_numbers_are_found_and_others_are_not(bits: int) -> None:
    values, real = numbers(bits)
    made = HeavyHitters(4, bits=bits)
    with seeded(bits):
        found = made.aggregate(made.encode(values)).estimate(0.99)
    assert set(found.values) == set(real)
    for value, low, high in zip(found.values, found.low, found.high, strict=True):
        assert low <= real[value] <= high
    assert list(found.counts) == sorted(found.counts, reverse=True)
    assert found.resolution < 0.15
    assert found.people == MANY
    assert found.consistent().sum() <= MANY * (1 + 1e-12)


def test_frequent_texts_are_found() -> None:
    words = ["tea", "teapot", "coffee", "", "water melon"]
    values = [words[i % 5] for i in range(MANY)]
    made = HeavyHitters(4, length=12)
    with seeded(4):
        found = made.aggregate(made.encode(values)).find(0.15)
    assert set(found.values) == set(words)
    assert np.all((found.low <= MANY / 5) & (found.high >= MANY / 5))
    assert found.table.column_names == ["value", "count", "low", "high"]


def test_intervals_hold_together_as_often_as_they_say() -> None:
    """Forty surveys: lists with a wrong interval, or with a value that nobody has, are rare."""
    made, wrong, missed = HeavyHitters(2, bits=12), 0, 0
    generator = np.random.default_rng(1)
    for survey in range(40):
        shares = [0.3, 0.15, 0.08, 0.04]
        values = generator.choice(np.array([9, 700, 4_000, 4_095, 1]), 20_000, p=[*shares, 1 - sum(shares)])
        values[values == 1] = generator.integers(0, 2**12, int((values == 1).sum()))
        with seeded(survey):
            found = made.aggregate(made.encode(values)).estimate(0.9)
        real = np.bincount(values, minlength=2**12)
        mine = np.array([real[value] for value in found.values])
        wrong += bool(np.any((found.low > mine) | (found.high < mine)))
        frequent = np.flatnonzero(real >= found.resolution * 20_000)
        missed += len(set(frequent.tolist()) - set(found.values))
        assert frequent.size
    assert wrong <= 9  # 4 expected at most: 10 or more have probability 0.004
    assert missed <= 9


def test_a_value_at_the_resolution_survives_every_level() -> None:
    """Six surveys over two levels, with one value just as frequent as is promised to be found."""
    made, size, found_in = HeavyHitters(1, bits=20), 30_000, 0
    generator = np.random.default_rng(2)
    with seeded("resolution"):
        values = generator.integers(0, 2**20, size)
        resolution = made.aggregate(made.encode(values)).estimate(0.9).resolution
        for _ in range(6):
            values = generator.integers(0, 2**20, size)
            values[: int(1.03 * resolution * size)] = 777_777
            found_in += 777_777 in made.aggregate(made.encode(values)).estimate(0.9).values
    assert len(made.levels) == 2
    assert found_in >= 4  # 5.4 expected at least


def test_a_threshold_that_people_cannot_settle_is_refused() -> None:
    values, real = numbers(32)
    made = HeavyHitters(4, bits=32)
    with seeded(1):
        total = made.aggregate(made.encode(values))
    found = total.find(0.18)
    assert set(found.values) == {each for each, count in real.items() if count > 0.18 * MANY}
    with pytest.raises(InvalidValue, match="threshold below"):
        total.find(0.001)
    with pytest.raises(InvalidParameter):
        total.find(1.5)


def test_nothing_is_found_where_nothing_is_frequent() -> None:
    made = HeavyHitters(1, bits=32)
    with seeded(9):
        values = np.random.default_rng(3).integers(0, 2**32, 30_000)
        found = made.aggregate(made.encode(values)).estimate()
    assert found.values == ()
    assert found.counts.size == 0


def test_batches_merge_and_come_back() -> None:
    made = HeavyHitters(2, length=4, alphabet="ab")
    with seeded(8):
        reports = made.encode(["a", "ba", "abba", ""] * 500)
    whole = made.aggregate(reports)
    parts = made.aggregate(reports[:33]) + made.aggregate(iter([reports[33:34], reports[34:]]))
    assert parts.count == 2000
    assert parts.to_dict() == whole.to_dict()
    again = randomizer_from(made.to_dict())
    assert again == made
    assert again.fingerprint == made.fingerprint != HeavyHitters(2, length=4, alphabet="ba").fingerprint
    restored = again.start()
    restored.count = whole.count
    restored._restore(whole.to_dict()["state"])
    assert restored.estimate().values == whole.estimate().values
    for wrong in (None, [], whole.to_dict()["state"] * 2, [[1, 2]]):
        with pytest.raises(InvalidValue):
            restored._restore(wrong)
    restored.count += 1
    with pytest.raises(InvalidValue):
        restored._restore(whole.to_dict()["state"])


def test_others_are_refused() -> None:
    made = HeavyHitters(1, bits=20)
    for wrong in ([2**20], [-1], [0.5], ["a"], [[1]], [2**70]):
        with pytest.raises(InvalidValue):
            made.encode(wrong)
    total = made.start()
    with pytest.raises(InvalidValue):
        total.estimate()
    total.add(made.encode([1, 2, 3]))
    for wrong in (np.zeros(3, np.uint32), np.array([2**63], np.uint64), np.zeros((1, 2), np.uint64)):
        with pytest.raises(InvalidValue):
            total.add(wrong)
    assert total.count == 3
    with pytest.raises(InvalidParameter):
        total + HeavyHitters(1, bits=21).start()
    for wrong in (
        {},
        {"bits": 8, "length": 3},
        {"bits": 8, "alphabet": "ab"},
        {"bits": 65},
        {"bits": 0},
        {"length": 65},
        {"length": 3, "alphabet": "aba"},
        {"length": 3, "alphabet": ""},
        {"length": 3, "alphabet": "a\0"},
        {"bits": 8, "salt": -1},
    ):
        with pytest.raises(InvalidParameter):
            HeavyHitters(1, **wrong)
    with pytest.raises(InvalidParameter):
        randomizer_from({"kind": "heavy.1", "epsilon": "1", "bits": 8, "more": 1})
