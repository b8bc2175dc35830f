from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.samplers import uniform


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 3 * 2**61, 2**63])
def test_integers_are_uniform(stream, tools, bound):
    """In cells by size, and by remainder, where a biased reduction would show."""
    values = uniform.integers(stream, bound, 100_000)
    assert values.min() >= 0
    assert values.max() < bound
    cells = min(bound, 12)
    high = np.array([int(v) * cells // bound for v in values.tolist()])
    sizes = (
        np.array([-(-(i + 1) * bound // cells) - -(-i * bound // cells) for i in range(cells)], float) / bound
    )
    if cells > 1:
        assert tools.chi_square(high, lambda k: sizes[k], 0, cells - 1) > tools.ALPHA
    rest = (
        np.array([len(range(i, bound, 3)) for i in range(3)], float) / bound
        if bound < 10**6
        else np.full(3, 1 / 3)
    )
    if bound > 2:
        assert tools.chi_square(values % 3, lambda k: rest[k], 0, 2) > tools.ALPHA


def test_a_reduction_without_rejection_is_noticed(stream, tools):
    """The cells of the test above show the bias of a plain remainder where it is large."""
    bound = 3 * 2**61
    words = (stream.words64(100_000) % np.uint64(bound)).astype(np.float64)
    cells = np.minimum((words / bound * 12).astype(int), 11)
    assert tools.chi_square(cells, lambda k: np.full(k.size, 1 / 12), 0, 11) < tools.ALPHA


class Script:
    """A stream whose words are given; its bits come from another."""

    def __init__(self, inner, **words) -> None:
        self.inner, self.words = inner, words

    def words32(self, count):
        return self.words["w32"].pop(0)

    def words64(self, count):
        return self.words["w64"].pop(0)

    def bits(self, count):
        return self.inner.bits(count)


def test_words_outside_the_largest_multiple_are_drawn_again(stream):
    bound = 3 * 2**61
    script = Script(stream, w64=[np.array([2**64 - 1, 5], np.uint64), np.array([7], np.uint64)])
    assert uniform.integers(script, bound, 2).tolist() == [7, 5]
    # Lemire: the word 0 has low half 0 < 2**32 mod 10 = 6.
    script = Script(stream, w32=[np.array([0, 2**31 + 1], np.uint32), np.array([2**32 - 1], np.uint32)])
    assert uniform.integers(script, 10, 2).tolist() == [9, 5]


@pytest.mark.parametrize("p", ["1/3", "1/1000", "999999/1000000"])
def test_coins(stream, tools, p):
    p = Fraction(p)
    values = uniform.coins(stream, p, 200_000).astype(int)
    assert tools.chi_square(values, lambda k: np.array([1 - float(p), float(p)])[k], 0, 1) > tools.ALPHA


def test_a_coin_whose_word_equals_its_threshold_is_decided_by_more_bits(stream, tools):
    """All words on the boundary of p = 1/3: heads with the probability that is left, 1/3 again."""
    script = Script(stream, w32=[np.full(20_000, 2**32 // 3, np.uint32)])
    values = uniform.coins(script, Fraction(1, 3), 20_000).astype(int)
    assert tools.chi_square(values, lambda k: np.array([2 / 3, 1 / 3])[k], 0, 1) > tools.ALPHA


@pytest.mark.parametrize("x", ["1/1000", "1", "5"])
def test_coins_exp(stream, tools, x):
    values = uniform.coins_exp(stream, Fraction(x), 200_000).astype(int)
    chance = float(np.exp(-float(Fraction(x))))
    assert tools.chi_square(values, lambda k: np.array([1 - chance, chance])[k], 0, 1) > tools.ALPHA


def test_an_exponential_coin_on_its_boundary_is_decided_by_more_bits(stream, tools):
    scaled = np.exp(-1.0) * 2**32
    script = Script(stream, w32=[np.full(3000, int(scaled), np.uint32)])
    values = uniform.coins_exp(script, Fraction(1), 3000).astype(int)
    left = scaled - int(scaled)
    assert tools.chi_square(values, lambda k: np.array([1 - left, left])[k], 0, 1) > tools.ALPHA


def test_a_nearly_impossible_coin(stream):
    assert not uniform.coins_exp(stream, Fraction(10**6), 1000).any()
    assert uniform.coins_exp(stream, Fraction(1, 10**30), 1000).all()


def test_permutations_are_uniform(stream, tools):
    codes = np.array([int("".join(map(str, uniform.permutation(stream, 4))), 4) for _ in range(12_000)])
    _, cells = np.unique(codes, return_inverse=True)
    assert cells.max() == 23
    assert tools.chi_square(cells, lambda k: np.full(k.size, 1 / 24), 0, 23) > tools.ALPHA
    assert uniform.permutation(stream, 0).size == 0
    assert sorted(uniform.permutation(stream, 1000).tolist()) == list(range(1000))


def test_equal_keys_are_drawn_again(stream):
    tied, distinct = np.array([4, 4, 1], np.uint64), np.array([2, 9, 5], np.uint64)
    script = Script(stream, w64=[tied, distinct])
    assert uniform.permutation(script, 3).tolist() == [0, 2, 1]
