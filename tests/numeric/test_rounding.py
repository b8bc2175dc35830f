"""The budget that every bound is stated in: the libraries must be at least twice as accurate as assumed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.special import erfc, erfcx, ndtr

from sfumato.numeric.rounding import LIBRARY, SMALLEST, SPECIAL, U, down, total_down, total_up, up

_RNG = np.random.default_rng(7)
_WIDE = _RNG.uniform(-30, 30, 1500)
_SMALL = _RNG.choice([-1.0, 1.0], 1500) * 10.0 ** _RNG.uniform(-15, -0.5, 1500)


@pytest.mark.parametrize(
    ("function", "exact", "points", "budget"),
    [
        (np.exp, mp.exp, np.concatenate([_WIDE, _RNG.uniform(-700, 700, 500)]), LIBRARY),
        (np.expm1, mp.expm1, np.concatenate([_WIDE, _SMALL]), LIBRARY),
        (np.log, mp.log, np.exp(_WIDE), LIBRARY),
        (np.log1p, mp.log1p, np.concatenate([np.abs(_WIDE), _SMALL]), LIBRARY),
        (np.cos, mp.cos, _RNG.uniform(-1.5, 1.5, 1000), LIBRARY),
        (np.sin, mp.sin, np.concatenate([_SMALL, _RNG.uniform(-3, 3, 500)]), LIBRARY),
        (erfc, mp.erfc, _RNG.uniform(-6, 1, 1500), SPECIAL),
        (erfcx, lambda x: mp.exp(x * x) * mp.erfc(x), _RNG.uniform(-0.5, 60, 3000), SPECIAL),
        (ndtr, mp.ncdf, _RNG.uniform(-2, 8, 1500), SPECIAL),
    ],
    ids=["exp", "expm1", "log", "log1p", "cos", "sin", "erfc", "erfcx", "ndtr"],
)
def test_library_functions_stay_well_within_their_budget(
    function: Callable[[Any], Any], exact: Callable[[Any], Any], points: np.ndarray, budget: float
) -> None:
    with mp.workdps(60):
        values = function(points)
        for point, value in zip(points.tolist(), values.tolist(), strict=True):
            truth = exact(mp.mpf(point))
            assert abs(mp.mpf(value) - truth) <= budget / 2 * abs(truth), point


def test_up_and_down_are_one_sided_for_every_size() -> None:
    values = np.array([0.0, 1.0, -1.0, 1e-310, 3.7, 1e300])
    for x, high, low in zip(values, up(values, 3 * U), down(values, 3 * U), strict=True):
        slack = Fraction(3) / 2**53 * abs(Fraction(x))
        assert Fraction(high) >= Fraction(x) + slack
        assert Fraction(low) <= Fraction(x) - slack
    assert up(0.0, U) >= SMALLEST


def test_totals_bracket_the_exact_sum() -> None:
    values = _RNG.normal(size=1000) * 10.0 ** _RNG.integers(-10, 10, 1000)
    exact = sum((Fraction(x) for x in values.tolist()), Fraction(0))
    assert Fraction(total_down(values)) <= exact <= Fraction(total_up(values))
    assert total_up([]) == 0.0
