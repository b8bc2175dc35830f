"""The geometric mechanism: its exact law, the loss of vectors, and integers that stay integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms import Geometric
from sfumato.testing import assert_coverage, assert_discrete, seeded


def pmf(scale: float, k: np.ndarray) -> np.ndarray:
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * np.exp(-np.abs(k) / scale)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1, 1), ("0.1", 1), (2, 3), (5, 1)])
def test_noise_follows_the_law_and_half_of_it_would_not(epsilon: float | str, sensitivity: int) -> None:
    mechanism = Geometric(epsilon, sensitivity)
    with seeded(1):
        noise = mechanism.release(np.full(20_000, 41)) - 41
    scale = sensitivity / float(epsilon)
    assert_discrete(noise, lambda k: pmf(scale, k))
    with pytest.raises(AssertionError):
        assert_discrete(noise, lambda k: pmf(scale / 2, k))
    with pytest.raises(AssertionError):
        assert_discrete(noise + 1, lambda k: pmf(scale, k))


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", 1, 3, 50])
@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_error_is_the_least_whole_number_that_covers(
    epsilon: float | str, size: int, confidence: float
) -> None:
    mechanism = Geometric(epsilon, 1)
    width = mechanism.error(confidence, size=size)
    q = math.exp(-float(epsilon))

    def covered(w: float) -> float:
        return (1 - 2 * q ** (w + 1) / (1 + q)) ** size

    assert width == int(width)
    assert covered(width) >= confidence * (1 - 1e-12)
    assert width == 0 or covered(width - 1) < confidence


def test_error_covers_what_is_drawn() -> None:
    mechanism = Geometric("0.3", 2)
    with seeded(2):
        noise = np.abs(mechanism.release(np.zeros(20_000, np.int64)))
    width = mechanism.error(0.9)
    assert_coverage(noise, width, 0.9, exact=False)
    assert (noise <= width - 1).mean() < 0.9


def test_variance_is_that_of_the_discrete_law() -> None:
    for epsilon in ("0.1", 1, 4):
        k = np.arange(-3000, 3001)
        exact = float((k**2 * pmf(1 / float(epsilon), k)).sum())
        mechanism = Geometric(epsilon, 1)
        assert mechanism.variance == pytest.approx(exact, rel=1e-12)
        assert mechanism.variance < 2 * mechanism.scale**2


@pytest.mark.parametrize("shifts", [(1, 1), (2, 1), (0, 3)])
def test_a_vector_costs_no_more_than_one_shift_of_the_sum(shifts: tuple[int, int]) -> None:
    """The claim that the scalar curve holds in any dimension, by brute force over the product law."""
    mechanism = Geometric("1.5", 3)
    k = np.arange(-60, 61)
    scale, total = float(mechanism._scale), sum(shifts)
    joint = np.multiply.outer(pmf(scale, k), pmf(scale, k))
    moved = np.multiply.outer(pmf(scale, k - shifts[0]), pmf(scale, k - shifts[1]))
    alone, shifted = pmf(scale, k), pmf(scale, k - total)
    for epsilon in np.linspace(0, 1.5, 16):
        assert hockey_stick(joint, moved, epsilon) <= hockey_stick(alone, shifted, epsilon) + 1e-12
    assert np.log(joint / moved).max() <= mechanism.loss.epsilon(0) + 1e-12


def test_the_loss_is_that_of_the_law() -> None:
    mechanism = Geometric(1, 2)
    k = np.arange(-200, 201)
    p, q = pmf(2, k), pmf(2, k - 2)
    assert mechanism.loss.pure == 1
    for epsilon in (0.0, 0.25, 0.5, 0.9):
        exact = hockey_stick(p, q, epsilon)
        assert exact <= mechanism.loss.delta(epsilon) <= exact * (1 + 1e-6) + 1e-12


def test_integers_stay_integers_of_any_shape() -> None:
    mechanism = Geometric(1, 1)
    assert type(mechanism.release(3)) is int
    assert type(mechanism.release(np.int16(3))) is int
    for array in (
        np.zeros((2, 3), np.int32),
        np.array(5),
        np.zeros((0, 2), np.int64),
        [1, 2],
        np.arange(6)[::2],
    ):
        released = mechanism.release(array)
        assert released.dtype == np.int64
        assert released.shape == np.shape(array)


def test_the_ends_of_the_range_hold_and_never_wrap() -> None:
    mechanism = Geometric(1, 1)
    extremes = np.array([2**63 - 1, -(2**63), 2**62, 0])
    released = mechanism.release(extremes)
    assert (np.abs(released[:2]) > 2**60).all()
    assert released[0] > 0 > released[1]
    assert abs(mechanism.release(2**100) - 2**61) < 1000
    wide = Geometric(Fraction(1, 2**56), 1)
    with seeded(3):
        assert (np.abs(wide.release(np.full(2000, 2**61))) <= 2**62 - 1).all()


@pytest.mark.parametrize(
    "bad", [1.0, np.float32(1), True, None, "1", [1.5], np.array([1], np.uint64), [True], [2**64, 0.5]]
)
def test_floats_and_the_like_are_refused(bad: object) -> None:
    with pytest.raises(InvalidValue):
        Geometric(1, 1).release(bad)


@pytest.mark.parametrize("bad", [0, -1, 1.0, "1", True, None, Fraction(1, 2)])
def test_the_sensitivity_must_be_a_whole_number(bad: object) -> None:
    with pytest.raises(InvalidParameter):
        Geometric(1, bad)


def test_noise_that_does_not_fit_is_refused_at_construction() -> None:
    with pytest.raises(InvalidParameter, match="64-bit"):
        Geometric("1e-18", 1)
    assert repr(Geometric(0.5, 2)) == "Geometric(epsilon=0.5, sensitivity=2)"


def test_a_price_that_leaves_no_noise_is_refused() -> None:
    for epsilon in (10**5, "1e290"):
        with pytest.raises(InvalidParameter, match="no noise"):
            Geometric(epsilon, 1)
    assert Geometric(1000, 1).release(5) == 5


def test_an_empty_list_gives_an_empty_array() -> None:
    answer = Geometric(1, 1).release([])
    assert (answer.dtype, answer.shape) == (np.int64, (0,))
