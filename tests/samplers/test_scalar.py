from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.samplers import scalar
from sfumato.samplers.enclosure import exp_minus


def test_uniform_covers_every_value_equally(stream, tools):
    for bound in (1, 2, 3, 10, 2**70 + 1):
        values = np.array([scalar.uniform(stream, bound) * 10 // bound for _ in range(5000)])
        if bound in (10, 2**70 + 1):
            assert tools.chi_square(values, lambda k: np.full(k.size, 0.1), 0, 9) > tools.ALPHA
        assert values.min() >= 0
        assert values.max() <= 10 * (bound - 1) // bound


@pytest.mark.parametrize(
    "p", [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(2**64 - 1, 2**64), Fraction(1, 2**80)]
)
def test_bernoulli(stream, tools, p):
    values = np.array([scalar.bernoulli(stream, p) for _ in range(20_000)]).astype(int)
    if p in (0, 1) or p < Fraction(1, 2**60) or p > 1 - Fraction(1, 2**60):
        assert set(values.tolist()) == {round(p)}
    else:
        mass = [1 - float(p), float(p)]
        assert tools.chi_square(values, lambda k: np.array(mass)[k], 0, 1) > tools.ALPHA


class Scripted:
    """Hands out prescribed words."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def bits(self, count: int) -> int:
        return self.words.pop(0)


def test_bernoulli_compares_past_an_equal_word():
    p = Fraction(1, 3)
    digit = 2**64 // 3
    assert scalar.bernoulli(Scripted(digit, digit - 1), p)
    assert not scalar.bernoulli(Scripted(digit, digit + 1), p)
    assert scalar.bernoulli(Scripted(digit, digit, digit - 1), p)
    # A dyadic probability ends: equality with all of its bits is not below it.
    assert not scalar.bernoulli(Scripted(2**63), Fraction(1, 2))


def test_a_uniform_on_the_boundary_is_extended():
    """The first word of exp(-1) itself does not decide; the next one does, either way."""
    lower, upper = exp_minus(Fraction(1), 192)
    first, second = lower >> 128, (lower >> 64) & (2**64 - 1)
    assert upper >> 64 == lower >> 64
    bounds = lambda bits: exp_minus(Fraction(1), bits)  # noqa: E731
    assert scalar.is_below(Scripted(first, second - 1), bounds)
    assert not scalar.is_below(Scripted(first, second + 1), bounds)
    assert scalar.is_below(Scripted(first - 1), bounds)
    assert not scalar.is_below(Scripted(first + 1), bounds)


@pytest.mark.parametrize("x", ["0", "1/10", "1", "3"])
def test_bernoulli_exp(stream, tools, x):
    values = np.array([scalar.bernoulli_exp(stream, Fraction(x)) for _ in range(5000)]).astype(int)
    chance = float(np.exp(-float(Fraction(x))))
    if x == "0":
        assert values.all()
    else:
        assert tools.chi_square(values, lambda k: np.array([1 - chance, chance])[k], 0, 1) > tools.ALPHA
        wrong = chance * 0.8
        if x != "3":
            assert tools.chi_square(values, lambda k: np.array([1 - wrong, wrong])[k], 0, 1) < tools.ALPHA


@pytest.mark.parametrize("rate", ["7/3", "1/2", "3/100"])
def test_geometric(stream, tools, rate):
    values = np.array([scalar.geometric(stream, Fraction(rate)) for _ in range(3000)])
    assert tools.chi_square(values, tools.geometric_mass(float(Fraction(rate))), 0, 2000) > tools.ALPHA
    # A planted bug, counting from one, fails (more draws than these would be needed at the smallest rate).
    if rate != "3/100":
        assert (
            tools.chi_square(values + 1, tools.geometric_mass(float(Fraction(rate))), 0, 2000) < tools.ALPHA
        )
