"""Factors and factorisations against whole matrices of fractions."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.continual import Banded, Buffered, Factorisation
from sfumato.errors import InvalidParameter
from sfumato.numeric.rounding import U
from streams_dense import inverted, largest, matrix, variance

FACTORS = {
    "identity": Banded(),
    "band of two": Banded.square_root(2),
    "band of five": Banded.square_root(5),
    "square root": Banded.square_root(9),
    "damped": Banded.square_root(9, 0.7),
    "flat": Banded([2**16] * 3),
    "buffered": Buffered.square_root(9),
    "buffered, damped": Buffered.square_root(4, 0.75),
    "one buffer": Buffered([(1, 3)], [(3, 2)]),
}


@pytest.mark.parametrize("name", FACTORS)
def test_coefficients_fall_and_are_as_exact_as_stated(name: str) -> None:
    factor, count = FACTORS[name], 12
    exact = factor.exact(count)
    assert exact[0] == 1
    assert all(a >= b >= 0 for a, b in pairwise(exact))
    for value, truth in zip(factor.coefficients(count).tolist(), exact, strict=True):
        assert abs(Fraction(value) - truth) <= (2 * count + 64) * Fraction(U) * truth


def test_square_root_coefficients_are_those_of_the_series_and_buffers_come_close() -> None:
    central = [1.0]
    for j in range(1, 400):
        central.append(central[-1] * (2 * j - 1) / (2 * j))
    assert np.abs(Banded.square_root(400).coefficients(400) - central).max() <= 2.0**-17
    close = Buffered.square_root(400).coefficients(400)
    assert np.abs(close / central - 1).max() < 0.15


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("wide", [False, True])
def test_what_is_carried_is_off_by_no_more_than_the_slack(name: str, wide: bool) -> None:
    """With 64 bits and with Python's integers, on noise that rises and falls."""
    factor, steps = FACTORS[name], 40
    draw = np.random.default_rng(3)
    noise = draw.integers(-(2**40), 2**40, (steps, 3))
    noise[::7] //= 2**30
    exact = factor.exact(steps)
    state = np.zeros((factor.words, 3), object if wide else np.int64)
    for t in range(steps):
        carried = factor.carried(state, t)
        for group in range(3):
            truth = sum((exact[j] * int(noise[t - j, group]) for j in range(1, t + 1)), Fraction(0))
            assert abs(truth - int(carried[group])) <= factor.slack
        state = factor.advanced(state, t, noise[t].astype(object) if wide else noise[t])


@pytest.mark.parametrize("name", FACTORS)
def test_noise_that_64_bits_do_not_hold_is_kept_whole(name: str) -> None:
    factor, exact = FACTORS[name], FACTORS[name].exact(6)
    noise = [
        np.array([sign * 2**power], object) for sign, power in [(1, 80), (-1, 62), (1, 70), (1, 3), (-1, 81)]
    ]
    state = np.zeros((factor.words, 1), np.int64)
    for t, one in enumerate(noise):
        truth = sum((exact[j] * int(noise[t - j][0]) for j in range(1, t + 1)), Fraction(0))
        assert abs(truth - int(factor.carried(state, t)[0])) <= factor.slack
        state = factor.advanced(state, t, one)


def test_64_bits_are_left_before_a_product_overflows() -> None:
    for factor in (Banded.square_root(64), Buffered.square_root(1000)):
        exact = factor.exact(120)
        for power in range(30, 63):
            state = np.zeros((factor.words, 1), np.int64)
            noise: list[int] = []
            for t in range(80):
                truth = sum((exact[j] * noise[t - j] for j in range(1, t + 1)), Fraction(0))
                assert abs(truth - int(factor.carried(state, t)[0])) <= factor.slack
                noise.append(2**power - 1)
                state = factor.advanced(state, t, np.array([noise[-1]], np.int64))


PLANS = [
    (horizon, name, touches, apart)
    for horizon in (1, 2, 6)
    for name in FACTORS
    for touches, apart in ((1, 1), (2, 1), (2, 3), (3, 2), (6, 1))
    if touches <= horizon
]


@pytest.mark.parametrize(("horizon", "name", "touches", "apart"), PLANS)
def test_the_norm_is_the_greatest_over_all_places_of_a_units_steps(
    horizon: int, name: str, touches: int, apart: int
) -> None:
    plan = Factorisation(horizon, FACTORS[name], touches=touches, apart=apart)
    found = largest(plan)
    assert found <= plan.norm**2 <= found * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("horizon", [1, 2, 7])
def test_scaled_columns_are_all_as_long_as_the_first_and_none_is_longer(name: str, horizon: int) -> None:
    plan = Factorisation(horizon, FACTORS[name], True)
    dense = matrix(plan)
    for t in range(horizon):
        length = sum((row[t] ** 2 for row in dense), Fraction(0))
        assert plan.norm**2 * (1 - Fraction(1, 2**14)) <= length <= plan.norm**2


def test_a_norm_that_leaves_out_the_column_is_seen() -> None:
    """Planted: the norm of independent noise for a factor that is not the identity."""
    assert largest(Factorisation(6, FACTORS["buffered"])) > Factorisation(6, Banded()).norm ** 2


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", FACTORS)
def test_inverses_and_variances_are_those_of_the_dense_matrices(name: str, scaled: bool) -> None:
    plan = Factorisation(8, FACTORS[name], scaled)
    column = [row[0] for row in inverted(matrix(Factorisation(8, FACTORS[name])))]
    assert plan.factor.inverse(8) == pytest.approx([float(value) for value in column], abs=1e-12)
    for weights in ([1], [1] * 8, [0, 0, 1, 1, 1], [1, 1, 0, -1, -1], [0] * 7 + [5]):
        assert plan.variance(weights) == pytest.approx(float(variance(plan, weights)), rel=1e-9)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("name", ["identity", "square root", "buffered"])
def test_mean_squares_are_the_average_over_the_steps(name: str, scaled: bool, window: int | None) -> None:
    plan, steps = Factorisation(8, FACTORS[name], scaled), 8
    length = window or steps
    rows = [[int(t - length < i <= t) for i in range(t + 1)] for t in range(steps)]
    mean = sum(float(variance(plan, row)) for row in rows) / steps * float(plan.norm) ** 2
    assert plan.mean_square(window) == pytest.approx(mean, rel=1e-6)


def test_the_mean_over_some_steps_of_a_long_stream_is_that_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Factorisation(3000, Buffered.square_root(3000), True)
    all_steps = [plan.mean_square(window) for window in (None, 100)]
    monkeypatch.setattr("sfumato.continual.factorisation._SUMMED", 10)
    assert [plan.mean_square(window) for window in (None, 100)] == pytest.approx(all_steps, rel=0.01)


@pytest.mark.parametrize("name", FACTORS)
def test_a_record_makes_the_same_factorisation(name: str) -> None:
    plan = Factorisation(9, FACTORS[name], touches=2, apart=3)
    again = Factorisation.of_record(json.loads(json.dumps(plan.record())))
    assert again == plan
    assert again.norm == plan.norm
    scaled = Factorisation(9, FACTORS[name], True)
    assert np.array_equal(Factorisation.of_record(scaled.record()).scales, scaled.scales)


@pytest.mark.parametrize(
    "change",
    [
        {"form": "continual.0"},
        {"scaled": 1},
        {"horizon": 0},
        {"factor": {"kind": "other"}},
        {"factor": {"kind": "banded", "numerators": [1, 2]}},
        {"factor": {"kind": "buffered", "falls": [[1, 2]], "weights": [[9, 2]]}},
    ],
)
def test_a_record_of_another_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Factorisation.of_record(Factorisation(9, Banded.square_root(3)).record() | change)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Banded([2**16 + 1]),
        lambda: Banded([5, 6]),
        lambda: Banded([-1]),
        lambda: Banded([0.5]),
        lambda: Buffered([], []),
        lambda: Buffered([(1, 3)], [(3, 2), (1, 4)]),
        lambda: Buffered([(64, 7)], [(1, 2)]),
        lambda: Buffered([(1, 1)], [(1, 0)]),
        lambda: Buffered([(1, 3), (1, 4)], [(3, 2), (1, 1)]),
        lambda: Factorisation(0, Banded()),
        lambda: Factorisation(2**25, Banded()),
        lambda: Factorisation(4, Banded(), touches=5),
        lambda: Factorisation(4, Banded(), True, 2),
        lambda: Factorisation(4, Banded(), apart=0),
        lambda: Factorisation(4, Banded()).variance([1] * 5),
        lambda: Factorisation(4, Banded()).variance([]),
        lambda: Factorisation(4, Banded()).variances(0),
        lambda: Factorisation(2**16 + 1, Banded(), True).variances(),
        lambda: Factorisation(4, Banded()).variance([float("nan")]),
    ],
)
def test_unusable_numbers_are_refused_in_one_sentence(make: object) -> None:
    with pytest.raises(InvalidParameter) as refused:
        make()  # type: ignore[operator]
    assert str(refused.value).count(".") <= 2
