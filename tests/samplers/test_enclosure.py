from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb, fmpz
from hypothesis import given
from hypothesis import strategies as st

from sfumato.samplers.enclosure import _series, _squared, below_one, exp_minus, quotient

BITS = [1, 8, 64, 128, 176, 512, 1024]
ARGUMENTS = [
    Fraction(0),
    Fraction(1, 10**30),
    Fraction(1, 2**70),
    Fraction(1, 3),
    Fraction(1),
    Fraction(137, 100),
    Fraction(44361419555836, 10**12) / 64,  # near ln 2
    Fraction(10**9 + 7, 10**7),
    Fraction(10**30),
    Fraction(2**600, 3),
]


def encloses(tools, x: Fraction, bits: int, bounds: tuple[int, int]) -> bool:
    truth = tools.exp_ball(x) * arb(2) ** bits
    return bool(arb(fmpz(bounds[0])) <= truth) and bool(truth <= arb(fmpz(bounds[1])))


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("x", ARGUMENTS, ids=lambda x: f"{float(x):.3g}")
def test_exp_is_enclosed_tightly(precise, tools, x, bits):
    bounds = exp_minus(x, bits)
    assert bounds[1] - bounds[0] <= 3
    if x <= 10**6:  # beyond, ball arithmetic gives a ball around zero
        assert encloses(tools, x, bits, bounds)
    else:
        assert bounds == (0, 1)


@given(st.fractions(min_value=0, max_value=400, max_denominator=10**12), st.integers(1, 300))
def test_exp_is_enclosed_for_any_fraction(x, bits):
    lower, upper = exp_minus(x, bits)
    finer = exp_minus(x, bits + 200)
    # The finer enclosure is checked against ball arithmetic above and must lie inside the coarser one.
    assert lower << 200 <= finer[0] <= finer[1] <= upper << 200
    assert upper - lower <= 3


def test_a_bound_moved_by_its_width_is_noticed(precise, tools):
    """The check of this file has power: an enclosure rounded the wrong way fails it."""
    x, bits = Fraction(137, 100), 128
    lower, upper = exp_minus(x, bits)
    assert encloses(tools, x, bits, (lower, upper))
    assert not encloses(tools, x, bits, (upper, upper))
    assert not encloses(tools, x, bits, (lower, lower))


def test_complement_and_quotient_are_outward():
    bits = 64
    x = exp_minus(Fraction(1, 3), bits)
    inner = below_one(x, bits)
    assert inner[0] + x[1] == 1 << bits
    lower, upper = quotient(inner, x, bits)
    truth = (1 << bits) * 0.3956124250860895  # e^(1/3) - 1
    assert lower <= upper
    assert abs(lower - truth) < 2**16
    assert quotient((0, 5), (0, 3), bits) == (0, 1 << bits)


def test_each_stage_is_enclosed_before_guard_bits_hide_it(precise, tools):
    """At few bits, where every rounding shows: the series alone, and the argument's own rounding with it."""
    for precision in (12, 13, 16, 20):
        one = 1 << precision
        for y in range(0, one >> 8, max(1, one >> 14)):
            lower, upper = _series(y, precision, one)
            truth = tools.exp_ball(Fraction(y, one)) * arb(2) ** precision
            assert arb(fmpz(lower)) <= truth
            assert truth <= arb(fmpz(upper))
    for k in range(1, 2000):
        x = Fraction(k, 1999) / 3
        lower, upper = _squared(x.numerator, x.denominator, 8, 16)
        truth = tools.exp_ball(x) * arb(2) ** 16
        assert arb(fmpz(lower)) <= truth
        assert truth <= arb(fmpz(upper))
