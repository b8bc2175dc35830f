"""The auditor catches what is less private than claimed and clears the honest, on outputs of every kind."""

import math

import numpy as np
import pytest

from sfumato.audit import Feature, lower_bound, lower_bounds, support_bound
from sfumato.errors import InvalidParameter


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)


def laplace(rng, epsilon, count):
    return rng.laplace(0, 1 / epsilon, count), rng.laplace(1, 1 / epsilon, count)


def response(rng, epsilon, count):
    truth = 1 / (1 + math.exp(-epsilon))
    return rng.random(count) < truth, rng.random(count) >= truth


@pytest.mark.parametrize("pair", [laplace, response])
def test_five_percent_are_caught_and_the_honest_one_is_cleared(pair, rng):
    caught = lower_bound(*pair(rng, 1.05, 1_000_000))
    assert caught.refutes(1.0)
    assert not caught.refutes(1.05)
    honest = lower_bound(*pair(rng, 1.0, 1_000_000))
    assert not honest.refutes(1.0)
    assert honest.epsilon > 0.97  # cleared because it is honest, not because the auditor is blind


def test_false_alarms_are_as_rare_as_stated(rng):
    alarms = sum(lower_bound(*response(rng, 1.0, 500), confidence=0.8).refutes(1.0) for _ in range(400))
    assert alarms <= 400 * 0.2  # Clopper–Pearson on both sides: usually far fewer
    assert alarms >= 1  # and not never: the bound is not vacuous


def test_both_directions_are_searched(rng):
    # Outputs of the right input are a fifth as likely on the left, but nothing the other way round.
    left, right = rng.random(50_000) < 0.02, rng.random(50_000) < 0.1
    assert lower_bound(left, right).direction == "right over left"
    assert lower_bound(right, left).direction == "left over right"
    assert lower_bound(left, right).epsilon == pytest.approx(math.log(5), abs=0.4)


def test_delta_is_taken_off(rng):
    # Reveals the input with probability 1/10 and nothing otherwise: (0, 1/10)-private.
    left = np.where(rng.random(100_000) < 0.1, 1, 0)
    right = np.where(rng.random(100_000) < 0.1, 2, 0)
    assert lower_bound(left, right, delta=0.1).epsilon == 0.0
    assert lower_bound(left, right, delta=0.05).refutes(4.0)
    assert lower_bound(left, right).refutes(5.0)


def test_gaussian_meets_its_curve(rng):
    left, right = rng.normal(0, 1, 500_000), rng.normal(1, 1, 500_000)
    bound = lower_bound(left, right, delta=0.1)
    truth = 1.1659  # delta(1.1659) = 0.1 for mu = 1 (Balle and Wang 2018, Theorem 8)
    assert 0.93 * truth < bound.epsilon < truth


def test_vectors_are_told_apart_by_all_their_coordinates(rng):
    # Each of 16 coordinates moves by 1/4: no one of them proves more than 1/4, together they prove far more.
    left, right = rng.laplace(0, 1, (100_000, 16)), rng.laplace(0.25, 1, (100_000, 16))
    together = lower_bound(left, right)
    assert together.epsilon > 1.8
    assert not lower_bound(left[:, 0], right[:, 0]).refutes(0.25)


def test_atoms_between_continuous_values_are_seen(rng):
    left, right = rng.random(100_000), rng.random(100_000)
    left[rng.random(100_000) < 0.05] = 0.37
    right[rng.random(100_000) < 0.01] = 0.37
    assert lower_bound(left, right).epsilon == pytest.approx(math.log(5), abs=0.3)


def objects(rng, chance, count):
    pool = [None, "stop", (), (1,), (1, 2)]
    rest = (1 - chance) / (len(pool) - 1)
    return [pool[i] for i in rng.choice(len(pool), size=count, p=[chance] + [rest] * 4)]


def test_categories_of_any_kind(rng):
    bound = lower_bound(objects(rng, 0.1, 20_000), objects(rng, 0.4, 20_000))
    assert bound.epsilon == pytest.approx(math.log(4), abs=0.25)
    assert "None" in bound.event


def test_lists_are_compared_by_their_parts_as_well(rng):
    # The whole list never repeats; its first part tells the inputs apart.
    def draw(chance, count):
        return [
            [bool(b), float(x)] for b, x in zip(rng.random(count) < chance, rng.random(count), strict=True)
        ]

    bound = lower_bound(draw(0.8, 5_000), draw(0.2, 5_000))
    assert bound.epsilon == pytest.approx(math.log(4), abs=0.4)


def test_functions_are_drawn_from(rng):
    asked = []

    def draw(shift):
        def of(count):
            asked.append(count)
            return rng.laplace(shift, 1, count)

        return of

    bound = lower_bound(draw(0), draw(1), samples=20_000)
    assert asked == [20_000, 20_000]
    assert bound.trials == bound.trials_other == 12_000  # three fifths are held out
    assert 0.8 < bound.epsilon < 1.05


def test_own_features_are_tried(rng):
    left, right = rng.integers(0, 1 << 60, 20_000), rng.integers(0, 1 << 60, 20_000) | 1
    assert lower_bound(left, right).epsilon < 0.1  # the lowest of 60 bits does not show in any bin
    parity = Feature("lowest bit", lambda outputs: outputs & 1)
    assert lower_bound(left, right, features=[parity]).epsilon > 6
    assert "lowest bit" in lower_bound(left, right, features=[parity]).event


def test_shapes_that_differ_are_compared_as_categories(rng):
    left = [(1,) if x else (1, 2) for x in rng.random(2_000) < 0.5]
    right = [(1,)] * 2_000
    assert lower_bound(left, right).epsilon > 4


def test_float_noise_is_caught_by_its_low_bits_and_the_grid_is_cleared(rng):
    left, right = laplace(rng, 1.0, 200_000)
    caught = support_bound(left, right)
    assert caught.refutes(5.0)
    assert "lowest set bit" in caught.event or "lowest bit" in caught.event
    step = 2.0**-30
    on_grid = [np.round(side / step) * step for side in (left, right)]
    assert not support_bound(*on_grid).refutes(1.0)


def test_float_noise_in_vectors_is_caught(rng):
    left = rng.laplace(0, 1, (100_000, 2))
    right = rng.laplace(0, 1, (100_000, 2)) + np.array([0.0, 1.0])
    assert support_bound(left, right).refutes(5.0)


def test_unusable_input_is_refused(rng):
    few, many = rng.random(50), rng.random(500)
    with pytest.raises(InvalidParameter, match="at least 100"):
        lower_bound(few, many)
    with pytest.raises(InvalidParameter, match="confidence"):
        lower_bound(many, many, confidence=1.0)
    with pytest.raises(InvalidParameter, match="delta"):
        lower_bound(many, many, delta=1.0)
    with pytest.raises(InvalidParameter, match="no samples"):
        lower_bound([], many)
    with pytest.raises(InvalidParameter, match="sequence"):
        lower_bound(np.float64(1.0).reshape(()), many)
    with pytest.raises(InvalidParameter, match="bits of numbers"):
        support_bound(["a"] * 200, ["b"] * 200)
    with pytest.raises(InvalidParameter, match="cannot be compared"):
        lower_bound([bytearray(b"x")] * 200, [bytearray(b"y")] * 200)


def test_what_is_counted_has_no_say_in_what_outputs_are_taken_for(rng):
    # The event is learned from two fifths. A None among the others makes no categories of all numbers: it
    # would let held-out samples choose between two events, each of which alone has the stated confidence.
    left, right = (rng.laplace(mean, 1, 1000).tolist() for mean in (0.0, 8.0))
    plain = lower_bound(left, right)
    left[3], right[999] = None, "late"
    found = lower_bound(left, right)
    assert found.event == plain.event
    assert (found.trials, found.trials_other) == (600, 600)
    assert found.inside in (plain.inside, plain.inside - 1)
    assert found.epsilon > 3


def test_rows_of_more_axes_are_counted_as_they_were_learned(rng):
    left = rng.integers(0, 2, (500, 2, 2))
    right = [tuple(row) for row in rng.integers(0, 2, (500, 4)).tolist()]  # tuples: so all are categories
    found = lower_bound(left, right, confidence=1 - 1e-7)
    assert found.epsilon == 0
    assert found.inside + found.inside_other > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [({"samples": 99}, "samples"), ({"samples": 2e5}, "samples"), ({"delta": "x"}, "delta")],
)
def test_nothing_is_drawn_for_parameters_that_are_refused(wrong, words):
    with pytest.raises(InvalidParameter, match=words):
        lower_bound(lambda count: pytest.fail("drawn"), [0.0] * 200, **wrong)
    with pytest.raises(InvalidParameter, match="at least one delta"):
        lower_bounds([0.0] * 200, [0.0] * 200, deltas=[])


def test_numbers_of_numpy_are_numbers(rng):
    found = lower_bound(
        lambda count: rng.random(count), lambda count: rng.random(count), samples=np.int64(500)
    )
    assert found.trials == 300
