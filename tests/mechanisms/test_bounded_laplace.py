"""Bounded Laplace: pure by brute force, answers inside the interval, and the scale that this takes."""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import BoundedLaplace
from sfumato.mechanisms._grid import Grid
from sfumato.mechanisms.bounded_laplace import _greatest_rate
from sfumato.testing import assert_coverage, assert_discrete, seeded


def law(rate: float, points: int, centre: int) -> np.ndarray:
    weights = np.exp(-rate * np.abs(np.arange(points) - centre))
    return weights / weights.sum()


def worst(rate: float, shift: int, points: int) -> float:
    """The largest log-ratio over all pairs of inputs at most `shift` apart, and all outputs."""
    logs = [np.log(law(rate, points, centre)) for centre in range(points)]
    return max(
        float(np.abs(logs[x] - logs[y]).max())
        for x in range(points)
        for y in range(x, min(points, x + shift + 1))
    )


def small(rate: Fraction, points: int) -> BoundedLaplace:
    """The same mechanism on a grid so coarse that its law can be listed."""
    mechanism = copy.copy(BoundedLaplace(1, 1, lower=0, upper=1, coordinates=1))
    for name, value in (("_grid", Grid.below(Fraction(1), 0)), ("_rate", rate), ("_ends", (0, points - 1))):
        object.__setattr__(mechanism, name, value)
    return mechanism


@pytest.mark.parametrize(
    ("epsilon", "shift", "points"), [("1", 2, 9), ("0.2", 1, 30), ("4", 3, 4), ("2", 7, 8)]
)
def test_the_claim_by_brute_force_over_all_inputs(epsilon: str, shift: int, points: int) -> None:
    rate = float(_greatest_rate(Fraction(epsilon), shift, points))
    found = worst(rate, shift, points)
    assert found <= float(epsilon) * (1 + 1e-12)
    assert found == pytest.approx(float(epsilon), rel=1e-9)  # and nothing is wasted
    # The planted bug: conditioning plain Laplace noise on the interval without enlarging its scale. (Only
    # where a neighbour can lie at the other end of the interval is that enough, since both ends have the
    # same normaliser.)
    assert points == shift + 1 or worst(float(epsilon) / shift, shift, points) > float(epsilon) * 1.05


@pytest.mark.parametrize("centre", [0, 1, 5, 9])
@pytest.mark.parametrize("rate", [Fraction(1, 5), Fraction(1, 100)])
def test_answers_follow_the_law_exactly(centre: int, rate: Fraction) -> None:
    mechanism = small(rate, 10)
    with seeded(1):
        answers = mechanism._answers(np.full(6000, centre))
    assert_discrete(answers, dict(enumerate(law(float(rate), 10, centre))))
    with pytest.raises(AssertionError):
        assert_discrete(np.clip(answers - 1, 0, 9), dict(enumerate(law(float(rate), 10, centre))))


@pytest.mark.parametrize("points", [2, 3, 10, 41])
@pytest.mark.parametrize("confidence", [0.2, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(1, 20)])
def test_error_covers_wherever_the_value_lies(points: int, confidence: float, rate: Fraction) -> None:
    width = small(rate, points).error(confidence) - 1
    places = np.arange(points)
    covered = [law(float(rate), points, c)[np.abs(places - c) <= width].sum() for c in range(points)]
    assert min(covered) >= confidence * (1 - 1e-9)
    if width:
        less = [law(float(rate), points, c)[np.abs(places - c) <= width - 1].sum() for c in range(points)]
        # Exact at an end of the interval; in the middle only where the middle is a grid point.
        assert min(less) < confidence or points % 2 == 0


def test_answers_stay_in_the_interval_and_on_the_grid() -> None:
    mechanism = BoundedLaplace("0.5", 1, lower="-0.3", upper="2.7", coordinates=1)
    with seeded(2):
        for value in (-100.0, -0.3, 0.0, 1 / 3, 2.7, 1e300):
            answers = mechanism.release(np.full(500, value))
            assert answers.min() >= -0.3
            assert answers.max() <= 2.7
            assert (np.mod(answers / mechanism.grid, 1.0) == 0).all()
            assert len(np.unique(answers)) > 480  # no pile at the ends, as clamping would give


def test_the_scale_lies_between_one_and_two_of_the_plain_one() -> None:
    for upper in (1, 3, 100):
        mechanism = BoundedLaplace(1, 1, lower=0, upper=upper)
        assert 1 <= mechanism.scale <= 2 * (1 + 1e-5)
    # Holohan et al.: b = Δ/(ε − ln ΔC(b)), with ΔC(b) the ratio of normalisers at the end, for the
    # continuous law.
    b = BoundedLaplace(1, 1, lower=0, upper=3).scale
    ratio = (1 - 0.5 * (math.exp(-1 / b) + math.exp(-2 / b))) / (1 - 0.5 * (1 + math.exp(-3 / b)))
    assert b == pytest.approx(1 / (1 - math.log(ratio)), rel=1e-5)


def test_coverage_of_what_is_drawn() -> None:
    mechanism = BoundedLaplace(1, 1, lower=0, upper=30, coordinates=1)
    with seeded(3):
        for value in (0.0, 15.0):
            errors = np.abs(mechanism.release(np.full(5000, value)) - value)
            assert_coverage(errors, mechanism.error(0.9), 0.9, exact=False)


def test_properties_and_price() -> None:
    mechanism = BoundedLaplace(2, 1, lower=0, upper=4, coordinates=2)
    assert mechanism.loss.pure == 2
    assert mechanism.scale > 1 / 2  # each coordinate pays half
    assert mechanism.variance is None
    assert mechanism.bias is None
    assert repr(mechanism) == "BoundedLaplace(epsilon=2, sensitivity=1, lower=0, upper=4, coordinates=2)"


def test_arrays_need_their_coordinates_declared() -> None:
    mechanism = BoundedLaplace(1, 1, lower=0, upper=1)
    assert type(mechanism.release(0.5)) is float
    assert mechanism.release(np.array([0.5])).shape == (1,)
    assert mechanism.release(np.zeros(0)).shape == (0,)
    with pytest.raises(InvalidValue, match="coordinates"):
        mechanism.release(np.zeros(2))
    for bad in (math.nan, math.inf, True, None, "1"):
        with pytest.raises(InvalidValue):
            mechanism.release(bad)


def test_unusable_parameters_are_refused() -> None:
    for lower, upper in ((1, 1), (2, 1), (math.nan, 1), (0, math.inf), ("1e30", "1.1e30")):
        with pytest.raises(InvalidParameter):
            BoundedLaplace(1, 1, lower=lower, upper=upper)
    for epsilon in (0, -1, "1e-14", True):
        with pytest.raises(InvalidParameter):
            BoundedLaplace(epsilon, 1, lower=0, upper=1)


def test_extreme_prices_still_draw() -> None:
    for epsilon, upper in (("1e-4", 1), (60, 1), (1, 10**9)):
        mechanism = BoundedLaplace(epsilon, 1, lower=0, upper=upper)
        assert 0 <= mechanism.release(0.5) <= upper
