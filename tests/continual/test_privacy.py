"""The claim itself: on every view, neighbouring streams are no further apart than the price pays for.

A view of a stream is centred, step by step, at a mean that its values and the earlier steps of the view
decide. The noise around it is one exact Gaussian, so that the loss is that of the distance between the means
of two neighbouring streams on the same view (docs/proofs/continual.md). Nothing here is statistical: the
distance is computed.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from sfumato.continual import Banded, Buffered, Continual, Factorisation
from sfumato.continual.examples import examples
from sfumato.continual.factorisation import SCALE_BITS
from sfumato.errors import InvalidParameter
from sfumato.loss import GaussianLoss
from sfumato.testing import assert_continuous, assert_variance, seeded
from streams_dense import on_grid, placed, shift, view_of

STEPS = 6
PLANS = {
    "independent": Factorisation(STEPS, Banded()),
    "band": Factorisation(STEPS, Banded.square_root(3)),
    "square root, scaled": Factorisation(STEPS, Banded.square_root(STEPS), True),
    "buffered": Factorisation(STEPS, Buffered.square_root(STEPS)),
    "buffered, scaled": Factorisation(STEPS, Buffered.square_root(STEPS), True),
    "two steps": Factorisation(STEPS, Buffered.square_root(STEPS), touches=2),
    "two steps apart": Factorisation(STEPS, Banded.square_root(STEPS), touches=2, apart=3),
}
MU = 1.25


def places(plan: Factorisation) -> list[tuple[int, ...]]:
    found = itertools.combinations(range(plan.horizon), plan.touches)
    return [each for each in found if all(b - a >= plan.apart for a, b in itertools.pairwise(each))]


def worst(plan: Factorisation, *, sensitivity: int = 1) -> float:
    """The greatest distance over all places of a unit's rows, in sigmas, on some views."""
    stream = Continual(plan, rho=Fraction(MU) ** 2 / 2, sensitivity=sensitivity, groups=2)
    found = 0.0
    for steps in places(plan):
        left = [[3 * t, 5] for t in range(plan.horizon)]
        right = [[value + sensitivity * (t in steps), other] for t, (value, other) in enumerate(left)]
        found = max(
            found, *(shift(stream, a, b, Continual.secret()) for a, b in ((left, right), (right, left)))
        )
    return found


@pytest.mark.parametrize("sensitivity", [1, 12345677])
@pytest.mark.parametrize("name", PLANS)
def test_no_place_of_a_units_rows_is_further_than_the_price(name: str, sensitivity: int) -> None:
    distance = worst(PLANS[name], sensitivity=sensitivity)
    assert 0.99 * MU <= distance <= MU


def test_a_long_stream_whose_every_rounding_is_the_worst_is_still_paid_for() -> None:
    """The margin: slack of the recursion for each of many steps and groups, beside the exact norm."""
    plan = Factorisation(3000, Buffered.square_root(3000), True)
    stream = Continual(plan, rho=Fraction(MU) ** 2 / 2, sensitivity=1, groups=1)
    exact = plan.norm * 2 ** (stream.fine - stream.exponent)
    margin = 2 * plan.factor.slack * math.isqrt(3000)
    assert (exact + margin) ** 2 <= stream.variance * Fraction(MU) ** 2 <= (exact + 2 * margin) ** 2
    left = [[t % 7] for t in range(3000)]
    for at in (0, 1500, 2999):
        right = [[value + (t == at)] for t, [value] in enumerate(left)]
        assert shift(stream, left, right, Continual.secret()) <= MU


def test_a_sensitivity_without_the_column_is_seen() -> None:
    """Planted: noise for a norm of 1, as if a row moved one step of the view and no later one."""
    with mock.patch.object(Factorisation, "norm", Fraction(1)):
        assert worst(Factorisation(STEPS, Buffered.square_root(STEPS))) > 1.1 * MU


def test_a_unit_in_two_steps_that_pays_for_one_is_seen() -> None:
    """Planted: the norm of one column for a unit that touches two steps."""
    one = Factorisation(STEPS, Buffered.square_root(STEPS)).norm
    with mock.patch.object(Factorisation, "norm", one):
        assert worst(Factorisation(STEPS, Buffered.square_root(STEPS), touches=2)) > 1.5 * MU


def test_columns_scaled_by_too_much_at_the_end_are_seen() -> None:
    """Planted: the last step's factor as if nothing of its column lay within the horizon."""
    honest = PLANS["buffered, scaled"].scales
    assert honest is not None
    planted = np.append(honest[:-1], 2 * honest[-1])
    with mock.patch.object(Factorisation, "scales", planted):
        assert worst(Factorisation(STEPS, Buffered.square_root(STEPS), True)) > 1.5 * MU


@pytest.mark.parametrize("name", PLANS)
def test_a_release_is_a_rounding_of_the_view(name: str) -> None:
    """What is shown is a function of the view alone, in which the values are hidden."""
    stream, secret = Continual(PLANS[name], rho="0.5", sensitivity=3, groups=4), Continual.secret()
    values = [[t, -t, 1000 * t, 7] for t in range(STEPS)]
    running = stream.start(secret)
    for t, view in enumerate(view_of(stream, values, secret)):
        unit = Fraction(stream.plan.scale(t), 2**SCALE_BITS) * 2**stream.fine
        assert running.release(values[t]).tolist() == [
            math.floor(int(value) / unit + Fraction(1, 2)) for value in view
        ]


def test_values_are_placed_on_whole_units_of_the_noise_and_rounded_alike() -> None:
    stream = Continual(PLANS["buffered, scaled"], rho="0.5", sensitivity=10**9)
    assert stream.exponent > 0
    moves = [on_grid(stream, 10**9 + start) - on_grid(stream, start) for start in range(-5000, 5000, 37)]
    assert max(moves) <= 10**9 / stream.grid + 1
    assert placed(stream, STEPS - 1, 10**9) % 1 == 0


def test_prices() -> None:
    plan = PLANS["buffered, scaled"]
    priced = Continual(plan, 1, "1e-6", sensitivity=1)
    assert priced.loss.approximate == (1, Fraction("1e-6"))
    assert isinstance(priced.loss, GaussianLoss)
    assert Continual(plan, rho="0.3", sensitivity=1).rho == Fraction("0.3")
    assert Continual(plan, sigma=20, sensitivity=1).sigma == pytest.approx(20, rel=1e-6)
    assert Continual(plan, rho="0.3", sensitivity=8).sigma == pytest.approx(
        8 * Continual(plan, rho="0.3", sensitivity=1).sigma, rel=1e-6
    )
    assert repr(priced).startswith("Continual(epsilon=1, delta='1e-6', sensitivity=1, groups=1, plan=")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"epsilon": 1},
        {"rho": 1, "sigma": 1},
        {"rho": 0},
        {"rho": 1, "groups": 0},
        {"rho": 1, "groups": 10**9},
        {"rho": 1, "sensitivity": 0},
        {"rho": "1e-30"},
    ],
)
def test_unusable_prices_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Continual(PLANS["buffered"], **({"sensitivity": 1} | wrong))


@pytest.mark.parametrize("name", PLANS)
def test_noise_has_the_covariance_of_the_inverse(name: str) -> None:
    """Sums with random weights are Gaussian with the stated deviation, in both directions."""
    stream = Continual(PLANS[name], rho="0.5", sensitivity=1, groups=4000)
    with seeded(f"covariance {name}"):
        running = stream.start(Continual.secret())
    noise = np.array([stream.floats(running.release([0] * 4000)) for _ in range(STEPS)])
    draw = np.random.default_rng(1)
    for weights in [[1.0] * STEPS, [0, 0, 1, 0, 0, -1], *draw.normal(size=(3, STEPS))]:
        sums = np.asarray(weights) @ noise
        deviation = stream.deviation(weights)
        assert_variance(sums, deviation**2)
        assert_continuous(sums, lambda x, d=deviation: np.vectorize(math.erfc)(-x / d / math.sqrt(2)) / 2)
    with pytest.raises(AssertionError):
        assert_variance(sums * 1.2, deviation**2)


def test_deviations_of_totals_windows_and_differences() -> None:
    stream = Continual(PLANS["buffered, scaled"], rho="0.5", sensitivity=1)
    assert stream.deviation_running(4) == stream.deviation([1] * 4)
    assert stream.deviation_window(5, 2) == stream.deviation([0, 0, 0, 1, 1])
    assert stream.deviation_window(2, 9) == stream.deviation_running(2)
    assert stream.deviation_difference(2, 5) == pytest.approx(stream.deviation_window(5, 3))
    assert stream.deviation_difference(2, 5, window=1) == stream.deviation([0, -1, 0, 0, 1])
    for window in (None, 1, 4):
        each = [stream.deviation_window(t, window or STEPS) for t in range(1, STEPS + 1)]
        assert stream.deviations(window) == pytest.approx(each, rel=1e-12)
    assert stream.deviation_running(6) < math.sqrt(6) * stream.deviation([1])
    assert stream.width(1.0, 0.95) == pytest.approx(1.959964, rel=1e-5)
    assert stream.width(1.0, 0.95, size=10) > stream.width(1.0, 0.95)
    for wrong in (
        lambda: stream.deviation_running(7),
        lambda: stream.deviation_running(0),
        lambda: stream.deviation_difference(3, 2),
        lambda: stream.deviation_window(3, 0),
    ):
        with pytest.raises(InvalidParameter):
            wrong()


def test_examples_are_neighbours_that_the_claim_is_close_for() -> None:
    names = [example.name for example in examples()]
    assert len(set(names)) == len(names)
    for example in examples():
        left = [[0] for _ in range(example.plan.horizon)]
        right = [[int(t in example.steps)] for t in range(example.plan.horizon)]
        assert shift(example.mechanism(), left, right, Continual.secret()) <= 1
