"""Truncated Laplace noise: (ε, δ) by brute force, a bound that holds, and the law that is drawn."""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import Laplace, TruncatedLaplace
from sfumato.mechanisms._grid import Grid
from sfumato.mechanisms.truncated_laplace import _least_reach
from sfumato.testing import assert_continuous, assert_coverage, assert_discrete, seeded


def law(rate: float, reach: int, k: np.ndarray) -> np.ndarray:
    every = np.arange(-reach, reach + 1)
    return np.where(np.abs(k) <= reach, np.exp(-np.abs(k) * rate), 0) / np.exp(-np.abs(every) * rate).sum()


def small(rate: Fraction, reach: int) -> TruncatedLaplace:
    """The same mechanism on a grid so coarse that its law can be listed."""
    mechanism = copy.copy(TruncatedLaplace(1, "0.1", sensitivity=1, coordinates=1))
    for name, value in (("_grid", Grid.below(Fraction(1), 0)), ("_rate", rate), ("_reach", reach)):
        object.__setattr__(mechanism, name, value)
    return mechanism


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


CASES = [("1", "0.01", 5), ("0.1", "0.2", 7), ("3", "1e-6", 4), ("0.5", "0.45", 6), ("2", "0.49", 3)]


@pytest.mark.parametrize(("epsilon", "delta", "shift"), CASES)
def test_the_claim_by_brute_force_over_all_shifts(epsilon: str, delta: str, shift: int) -> None:
    reach = _least_reach(Fraction(epsilon), Fraction(delta), shift)
    price, risk, rate = float(epsilon), float(delta), float(epsilon) / shift
    k = np.arange(-reach - shift, reach + shift + 1)
    for moved in range(1, shift + 1):
        assert hockey_stick(law(rate, reach, k), law(rate, reach, k - moved), price) <= risk * (1 + 1e-12)
    if reach > shift:  # one less would not do: nothing is wasted
        shorter = law(rate, reach - 1, k), law(rate, reach - 1, k - shift)
        assert hockey_stick(*shorter, price) > risk * (1 - 1e-9)


@pytest.mark.parametrize("moves", [(1, 4), (2, 3), (0, 5)])
def test_two_coordinates_cost_no_more_than_their_sum_in_one(moves: tuple[int, int]) -> None:
    reach, rate = _least_reach(Fraction(1), Fraction(1, 20), 5), 0.2
    k = np.arange(-reach - 5, reach + 6)
    p = law(rate, reach, k)
    joint = np.multiply.outer(p, p)
    moved = np.multiply.outer(law(rate, reach, k - moves[0]), law(rate, reach, k - moves[1]))
    assert hockey_stick(joint, moved, 1.0) <= 0.05 * (1 + 1e-12)


def test_rounding_several_coordinates_is_paid_for() -> None:
    one = TruncatedLaplace(1, "0.01", sensitivity="0.3", coordinates=1)
    many = TruncatedLaplace(1, "0.01", sensitivity="0.3", coordinates=1000)
    assert one._rate == 1 / Fraction(math.ceil(one._grid.units(Fraction("0.3"))))
    assert 1 / many._rate - 1 / one._rate == 999


@pytest.mark.parametrize("reach", [1, 4, 40])
def test_noise_follows_the_law_exactly(reach: int) -> None:
    mechanism = small(Fraction(1, 4), reach)
    with seeded(1):
        noise = mechanism._noise(20_000)
    assert np.abs(noise).max() <= reach
    assert_discrete(noise, lambda k: law(0.25, reach, k))
    with pytest.raises(AssertionError):
        assert_discrete(noise, lambda k: law(0.3, 2 * reach, k))


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.9, 0.999999])
@pytest.mark.parametrize("size", [1, 10])
def test_error_is_the_least_width_that_covers(confidence: float, size: int) -> None:
    mechanism = small(Fraction(1, 4), 12)
    width = mechanism.error(confidence, size=size) - 0.5
    k = np.arange(-12, 13)
    p = law(0.25, 12, k)
    assert float(p[np.abs(k) <= width].sum()) ** size >= confidence * (1 - 1e-9)
    assert width == 0 or float(p[np.abs(k) <= width - 1].sum()) ** size < confidence
    assert mechanism.variance == pytest.approx(float((k**2 * p).sum()), rel=1e-12)


def test_the_bound_is_the_published_one_and_holds() -> None:
    """Geng, Ding, Guo, Kumar 2020: Δ/ε·ln(1 + (e^ε − 1)/(2δ))."""
    mechanism = TruncatedLaplace(1, "0.01", sensitivity=1, coordinates=1)
    assert mechanism.bound == pytest.approx(math.log(1 + math.expm1(1) / 0.02), rel=1e-6)
    assert mechanism.scale == pytest.approx(1.0, rel=1e-5)
    with seeded(2):
        noise = mechanism.release(np.full(20_000, 0.5)) - 0.5
    assert np.abs(noise).max() <= mechanism.bound
    assert_coverage(np.abs(noise), mechanism.error(0.9), 0.9)
    end = math.exp(-mechanism.bound)
    assert_continuous(np.abs(noise), lambda x: np.clip((1 - np.exp(-np.maximum(x, 0))) / (1 - end), 0, 1))
    assert mechanism.variance < Laplace(1, 1).variance
    assert mechanism.error(0.999999999) <= mechanism.bound + mechanism.grid


def test_the_price_is_approximate() -> None:
    mechanism = TruncatedLaplace(1, "0.01", sensitivity=1)
    assert mechanism.loss.approximate == (1, Fraction(1, 100))
    assert mechanism.loss.pure is None
    assert repr(mechanism) == "TruncatedLaplace(epsilon=1, delta=0.01, sensitivity=1)"


def test_arrays_need_their_coordinates_declared() -> None:
    with pytest.raises(InvalidValue, match="coordinates"):
        TruncatedLaplace(1, "0.01", sensitivity=1).release(np.zeros(3))
    assert type(TruncatedLaplace(1, "0.01", sensitivity=1).release(3)) is float
    assert TruncatedLaplace(1, "0.01", sensitivity=1, coordinates=3).release(np.zeros((3, 1))).shape == (3, 1)
    for bad in (math.nan, math.inf, True, None, "1"):
        with pytest.raises(InvalidValue):
            TruncatedLaplace(1, "0.01", sensitivity=1).release(bad)


def test_unusable_parameters_are_refused() -> None:
    for epsilon, delta in (
        (0, "0.1"),
        (1, 0),
        (1, 1),
        (1, "0.5"),
        ("1e-12", "0.1"),
        (800, "0.1"),
        (-1, "0.1"),
    ):
        with pytest.raises(InvalidParameter):
            TruncatedLaplace(epsilon, delta, sensitivity=1)
    with pytest.raises(InvalidParameter):
        TruncatedLaplace(1, "0.1", sensitivity=0)


@pytest.mark.parametrize(("epsilon", "delta"), [("1e-6", "1e-9"), ("0.001", "0.4"), (100, "1e-100")])
def test_extreme_prices_still_draw(epsilon: str | int, delta: str) -> None:
    mechanism = TruncatedLaplace(epsilon, delta, sensitivity=1, coordinates=1)
    with seeded(3):
        noise = np.abs(mechanism.release(np.zeros(300)))
    assert noise.max() <= mechanism.bound
    assert 0 < mechanism.variance <= mechanism.bound**2
