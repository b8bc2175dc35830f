"""Coins with irrational probabilities are exact to the last bit that is ever asked for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from sfumato import random
from sfumato.errors import NotCertified
from sfumato.mechanisms._coins import Coin
from sfumato.mechanisms.randomized_response import _Share
from sfumato.testing import assert_bernoulli, seeded

HALF_OF_E = Coin(_Share(Fraction(1), 2))


def test_heads_come_with_the_stated_probability() -> None:
    with seeded(1):
        heads = int(HALF_OF_E.toss(40_000).sum())
        single = sum(HALF_OF_E.toss() for _ in range(4000))
    assert_bernoulli(heads, 40_000, 0.7310585786300049)
    assert_bernoulli(single, 4000, 0.7310585786300049)
    with pytest.raises(AssertionError):
        assert_bernoulli(heads, 40_000, 0.75)


def test_a_tie_is_decided_by_further_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The expansion of p itself ties for ever; one less or more in any later word decides."""
    words = [HALF_OF_E._digits(62 * i) - (HALF_OF_E._digits(62 * (i - 1)) << 62) for i in range(2, 5)]
    words.insert(0, HALF_OF_E._digits(62))
    for place in range(4):
        for change, expected in ((-1, True), (1, False)):
            queue = [*words[:place], words[place] + change]

            def next_word(_: int, size: int | None = None, queue: list[int] = queue) -> object:
                word = queue.pop(0)
                return word if size is None else np.full(size, word)

            monkeypatch.setattr(random, "integers", next_word)
            assert bool(HALF_OF_E.toss()) is expected
            queue[:] = [*words[:place], words[place] + change]
            assert bool(HALF_OF_E.toss(1)[0]) is expected


def test_digits_agree_with_each_other() -> None:
    for count in (1, 62, 124, 500):
        assert HALF_OF_E._digits(count) == HALF_OF_E._digits(600) >> (600 - count)


def test_a_probability_that_cannot_be_told_from_a_fraction_is_refused() -> None:
    with pytest.raises(NotCertified):
        Coin(lambda: arb(1) / 2 + (arb(2).sqrt() ** 2 - 2))
