"""Exact coins: the law by counting all streams, not only by sampling."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from sfumato import random
from sfumato.errors import InvalidParameter, NotCertified
from sfumato.local.coins import Coins, Odds, nearest
from sfumato.testing import assert_bernoulli, seeded

E = Odds(Fraction(1))


class Counting:
    """A stream whose 256 lanes run through every sequence of eight bits: lane i has the digits of i."""

    def words64(self, count: int) -> np.ndarray:
        digits = np.arange(256) >> np.arange(7, 7 - count // 4, -1)[:, None] & 1
        return np.packbits(digits.astype(np.uint8), axis=1, bitorder="little").view(np.uint64).reshape(-1)


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setattr(random, "current", Counting)


PROBABILITIES = [
    Fraction(1, 3),
    Fraction(5, 7),
    Fraction(1, 2),
    Fraction(3, 4),
    Fraction(77, 256),
    Fraction(1, 1000),
    Fraction(999, 1000),
    Fraction(1, 65536),
    Odds(Fraction(1)),
    Odds(Fraction(-1)),
    Odds(Fraction(3), Fraction(9)),
    Odds(Fraction(-30)),
]


def digits(p, count):
    if isinstance(p, Fraction):
        return (p.numerator << count) // p.denominator
    return math.floor(nearest(p) * 2**count)


@pytest.mark.parametrize("p", PROBABILITIES, ids=str)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_of_all_sequences_of_eight_bits_the_right_number_are_heads(counting, p, level):
    heads, tied = Coins(p)._compare(level, 32)
    # Where the digits of a fraction have come to their end, what is undecided is tails.
    ended = isinstance(p, Fraction) and (p.numerator << 8 * (level + 1)) % p.denominator == 0
    # Of 256 equally likely sequences, as many are heads as the eight digits of p say; one ties.
    assert int(np.bitwise_count(heads).sum()) == digits(p, 8 * (level + 1)) & 255
    assert int(np.bitwise_count(tied).sum()) == (0 if ended else 1)
    assert not (heads & tied).any()


@pytest.mark.parametrize("p", PROBABILITIES, ids=str)
def test_tosses_are_heads_as_often_as_claimed(p):
    chance = float(p) if isinstance(p, Fraction) else nearest(p)
    with seeded(f"coins {p}"):
        heads = Coins(p).toss(1_000_003)
    assert heads.dtype == np.bool_
    assert heads.size == 1_000_003
    assert_bernoulli(int(heads.sum()), heads.size, chance)


def test_a_first_byte_alone_would_be_seen():
    # The twin: a coin that leaves ties undecided (tails) is biased by up to 1/256.
    coins = Coins(Fraction(255, 256) + Fraction(1, 300))
    with seeded("first byte"):
        heads, _ = coins._compare(0, 125_000)
    with pytest.raises(AssertionError):
        assert_bernoulli(int(np.bitwise_count(heads).sum()), 1_000_000, float(coins.probability))


def test_tosses_are_independent_of_their_neighbours():
    p = nearest(E)
    with seeded("neighbours"):
        bits = np.unpackbits(Coins(E).packed(400_000), bitorder="little")
    for lag in (1, 8, 64, 1 << 17):
        both = bits[:-lag] & bits[lag:]
        disjoint = both[: both.size // (2 * lag) * 2 * lag].reshape(-1, 2, lag)[:, 0]
        assert_bernoulli(int(disjoint.sum()), disjoint.size, p * p)


def test_ends_and_empty_tosses():
    assert Coins(Fraction(1)).toss(9).all()
    assert not Coins(Fraction(0)).toss(9).any()
    assert Coins(E).toss(0).size == 0
    assert Coins(E).packed(0).size == 0
    with pytest.raises(InvalidParameter):
        Coins(Fraction(3, 2))


@pytest.mark.parametrize(("p", "bits"), [(Fraction(1, 2), 1), (Fraction(3, 4), 2), (Fraction(1, 3), 8)])
def test_few_bits_are_used(p, bits, monkeypatch):
    drawn = []
    stream = random.current()

    class Watching:
        def words64(self, count):
            drawn.append(64 * count)
            return stream.words64(count)

    monkeypatch.setattr(random, "current", Watching)
    Coins(p).packed(8000)
    assert drawn[0] == 64_000 * bits
    assert sum(drawn) <= 64_000 * bits * 1.1


def test_a_fraction_given_as_a_ball_is_not_certified_where_its_digits_end():
    with pytest.raises(NotCertified):
        Coins(lambda: arb(1) / 2 + arb(0, 0) * 0 + (arb(1).exp() - arb(1).exp())).toss(64)


def test_extreme_odds_are_tossed():
    assert Coins(Odds(Fraction(700))).toss(10_000).all()
    assert not Coins(Odds(Fraction(-700), Fraction(2**32))).toss(10_000).any()
    assert nearest(Odds(Fraction(1, 10**300))) == 0.5


def test_odds_are_those_of_the_truth_against_others():
    assert nearest(Odds(Fraction(2), Fraction(4))) == pytest.approx(
        math.exp(2) / (math.exp(2) + 4), rel=1e-15
    )
    assert nearest(Odds(Fraction(-2))) == pytest.approx(1 / (math.exp(2) + 1), rel=1e-15)
