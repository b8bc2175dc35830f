"""The staircase mechanism: its law on the grid, its optimality, and why coordinates must be declared."""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import Laplace, Staircase
from sfumato.mechanisms._coins import Coin
from sfumato.mechanisms._grid import Grid
from sfumato.mechanisms.staircase import _High
from sfumato.testing import assert_continuous, assert_coverage, assert_discrete, seeded


def small(epsilon: Fraction, period: int, high: int) -> Staircase:
    """The same mechanism on a grid so coarse that its law can be listed."""
    mechanism = copy.copy(Staircase(epsilon, 1, coordinates=1))
    for name, value in (
        ("_grid", Grid.below(Fraction(1), 0)),
        ("_period", period),
        ("_high", high),
        ("_coin", Coin(_High(epsilon, period, high))),
    ):
        object.__setattr__(mechanism, name, value)
    return mechanism


def level(m: np.ndarray, period: int, high: int) -> np.ndarray:
    return m // period + (m % period >= high)


def pmf(epsilon: float, period: int, high: int, k: np.ndarray) -> np.ndarray:
    every = np.arange(-200 * period, 200 * period + 1)
    weights = np.exp(-epsilon * level(np.abs(every), period, high))
    return np.exp(-epsilon * level(np.abs(k), period, high)) / weights.sum()


@pytest.mark.parametrize(("period", "high"), [(7, 3), (5, 1), (2, 1), (6, 5)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
def test_noise_follows_the_law_exactly(epsilon: Fraction, period: int, high: int) -> None:
    mechanism = small(epsilon, period, high)
    with seeded(1):
        noise = mechanism._noise(20_000)
    assert_discrete(noise, lambda k: pmf(float(epsilon), period, high, k))
    with pytest.raises(AssertionError):
        assert_discrete(noise, lambda k: pmf(float(epsilon) * 1.15, period, high, k))


def test_counting_zero_twice_would_be_noticed() -> None:
    """The planted bug: a sign for every magnitude, so that zero gets the weight of two."""
    mechanism = small(Fraction(1), 3, 1)
    with seeded(2):
        magnitudes = mechanism._magnitudes(20_000)
        signs = np.where(np.random.default_rng(0).random(20_000) < 0.5, -1, 1)
    with pytest.raises(AssertionError):
        assert_discrete(magnitudes * signs, lambda k: pmf(1.0, 3, 1, k))


@pytest.mark.parametrize(("period", "high"), [(7, 3), (5, 1), (4, 3), (2, 1)])
def test_the_claim_by_brute_force_over_all_shifts(period: int, high: int) -> None:
    k = np.arange(-10 * period, 10 * period + 1)
    for shift in range(1, period + 1):
        change = level(np.abs(k), period, high) - level(np.abs(k - shift), period, high)
        assert np.abs(change).max() == 1  # any shift up to the period costs epsilon, and none costs more
    change = level(np.abs(k), period, high) - level(np.abs(k - period - 1), period, high)
    assert np.abs(change).max() == 2


def test_the_period_covers_the_rounded_sensitivity() -> None:
    for epsilon, sensitivity in ((1, 1), ("0.1", "0.3"), (8, "1e-7"), (40, 3)):
        mechanism = Staircase(epsilon, sensitivity)
        assert mechanism._grid.length(mechanism._period) >= Fraction(sensitivity)
        assert mechanism._grid.length(mechanism._period - 1) < Fraction(sensitivity)
        assert 1 <= mechanism._high < mechanism._period


@pytest.mark.parametrize("epsilon", ["0.1", 1, 4, 10])
def test_expected_magnitude_is_the_optimum_and_below_laplace(epsilon: str | int) -> None:
    """Geng and Viswanath: e^(ε/2)·Δ/(e^ε − 1), against Δ/ε for Laplace noise."""
    price = float(epsilon)
    best = math.exp(price / 2) / math.expm1(price)
    mechanism = Staircase(epsilon, 1)
    assert mechanism.magnitude == pytest.approx(best, rel=1e-5)
    assert mechanism.magnitude < Laplace(epsilon, 1).scale
    assert float(mechanism.gamma) == pytest.approx(1 / (1 + math.exp(price / 2)), rel=1e-5)
    for gamma in ("0.05", "0.3", "0.8"):
        assert Staircase(epsilon, 1, gamma=gamma).magnitude >= mechanism.magnitude * (1 - 1e-6)


def test_moments_are_those_of_the_law() -> None:
    mechanism = small(Fraction(1), 7, 3)
    k = np.arange(-600, 601)
    p = pmf(1.0, 7, 3, k)
    assert mechanism.variance == pytest.approx(float((k**2 * p).sum()), rel=1e-12)
    assert mechanism.magnitude == pytest.approx(float((np.abs(k) * p).sum()), rel=1e-12)


@pytest.mark.parametrize(("period", "high"), [(7, 3), (2, 1), (9, 8)])
@pytest.mark.parametrize("confidence", [0.01, 0.3, 0.5, 0.9, 0.99, 0.99999])
@pytest.mark.parametrize("size", [1, 20])
def test_error_is_the_least_width_that_covers(period: int, high: int, confidence: float, size: int) -> None:
    width = small(Fraction(1), period, high).error(confidence, size=size) - 0.5
    k = np.arange(-60 * period, 60 * period + 1)
    p = pmf(1.0, period, high, k)

    def covered(w: float) -> float:
        return float(p[np.abs(k) <= w].sum()) ** size

    assert width == int(width)
    assert covered(width) >= confidence * (1 - 1e-9)
    assert width == 0 or covered(width - 1) < confidence


def test_what_is_drawn_has_the_shape_and_the_width() -> None:
    mechanism = Staircase(1, 1, coordinates=1)
    with seeded(3):
        noise = mechanism.release(np.full(20_000, 2.5)) - 2.5
    assert_coverage(np.abs(noise), mechanism.error(0.9), 0.9)
    gamma = 1 / (1 + math.exp(0.5))

    def cdf(x: np.ndarray) -> np.ndarray:
        b = math.exp(-1)
        m, place = np.divmod(np.abs(x), 1.0)
        part = np.minimum(place, gamma) + b * np.maximum(place - gamma, 0)
        beyond = b**m * (1 - (1 - b) * part / (gamma + b * (1 - gamma)))
        return np.where(x < 0, beyond / 2, 1 - beyond / 2)

    assert_continuous(noise, cdf)
    with pytest.raises(AssertionError):
        assert_continuous(noise * 0.8, cdf)


def test_a_shift_below_the_sensitivity_costs_all_of_epsilon() -> None:
    """Why an L1 sensitivity is not enough: half a shift in each of two coordinates costs 2ε together."""
    period, high = 8, 3
    k = np.arange(-80, 81)
    p = pmf(1.0, period, high, k)
    q = pmf(1.0, period, high, k - period // 2)
    assert np.log(p / q).max() == pytest.approx(1.0)
    assert np.log(np.multiply.outer(p, p) / np.multiply.outer(q, q)).max() == pytest.approx(2.0)
    with pytest.raises(InvalidValue, match="coordinates"):
        Staircase(1, 1).release(np.zeros(2))
    assert Staircase(1, 1, coordinates=2)._each == Fraction(1, 2)
    assert Staircase(1, 1, coordinates=2).loss.pure == 1


def test_shapes_grid_and_repr() -> None:
    mechanism = Staircase(1, "0.5")
    assert type(mechanism.release(1.0)) is float
    assert type(mechanism.release(1)) is float
    assert mechanism.release(np.array([1.0])).shape == (1,)
    assert mechanism.release(np.zeros((0,))).shape == (0,)
    answers = Staircase(1, "0.5", coordinates=3).release(np.full((4, 5), 1 / 3))
    assert answers.shape == (4, 5)
    assert (np.mod(answers / mechanism.grid, 1.0) == 0).all()
    assert repr(mechanism) == "Staircase(epsilon=1, sensitivity=0.5)"
    assert mechanism.scale == 0.5
    assert mechanism.bias == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, True, None, "1"])
def test_unusable_values_are_refused(bad: object) -> None:
    with pytest.raises(InvalidValue):
        Staircase(1, 1).release(bad)


def test_unusable_parameters_are_refused() -> None:
    for bad in (0, -1, math.nan, 5e-324, "x", True, 2000, "1e-12"):
        with pytest.raises(InvalidParameter):
            Staircase(bad, 1)
    for gamma in (0, 1, 2):
        with pytest.raises(InvalidParameter):
            Staircase(1, 1, gamma=gamma)
    with pytest.raises(InvalidParameter):
        Staircase(1, 1, coordinates=0)


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", 30, 100, 900])
def test_extreme_prices_still_draw(epsilon: str | int) -> None:
    mechanism = Staircase(epsilon, 1, coordinates=1)
    with seeded(4):
        noise = np.abs(mechanism.release(np.zeros(300)))
    assert (noise <= mechanism.error(0.999999, size=300)).all()
