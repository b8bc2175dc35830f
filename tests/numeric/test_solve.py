from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.numeric.solve import approach, fall, minimum


@given(st.floats(-8, 8))
def test_minimum_finds_the_valley(place: float) -> None:
    found = minimum(lambda x: (math.log2(x) - place) ** 2, 8.0, 2.0**-20, 2.0**20)
    assert abs(math.log2(found) - place) < 0.2


def test_minimum_turns_back_from_where_the_function_overflows() -> None:
    found = minimum(lambda x: (x - 1) ** 2 if x < 3 else math.inf, 8.0, 2.0**-20, 2.0**20)
    assert found == pytest.approx(1.0, rel=0.1)


@given(st.floats(0.01, 5), st.floats(1e-12, 0.5))
def test_fall_gives_two_ends_that_were_seen(rate: float, target: float) -> None:
    def f(x: float) -> float:
        return math.exp(-rate * x)

    truth = -math.log(target) / rate
    for guess in (truth, 0.5 * truth, truth + 1):
        low, high = fall(f, target, 0.0, truth + 2, guess=guess, tolerance=1e-12)
        assert f(low) > target >= f(high)
        assert high - low <= 3e-12 + 1e-15 * truth
    assert approach(f, target, 0.0, truth + 2) == pytest.approx(truth, rel=1e-12)


def test_fall_is_certain_even_for_a_function_that_jumps_about() -> None:
    def f(x: float) -> float:
        return 2.0 if x < 1 or 1.4 < x < 1.5 else 0.5

    low, high = fall(f, 1.0, 0.0, 3.0, guess=1.45, tolerance=1e-9)
    assert f(low) > 1.0 >= f(high)
    assert high - low < 1e-8
