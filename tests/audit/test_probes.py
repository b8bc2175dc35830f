"""The timing probe on a clock that is made up, and the probe of low bits on mechanisms."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit import floats, timing
from sfumato.errors import InvalidParameter
from sfumato.mechanisms.base import Example
from sfumato.testing import MUTANTS, seeded


class Clock:
    """Time that passes only where a run says so, with noise from a plain generator."""

    def __init__(self, seed=1):
        self.now, self.rng, self.seen = 0, np.random.default_rng(seed), []

    def __call__(self):
        return self.now

    def run(self, mean):
        """Takes about `mean` nanoseconds."""
        self.seen.append(mean)
        self.now += int(mean * (1 + self.rng.exponential()))


def test_times_that_differ_are_caught_in_either_direction():
    for slow in ("left", "right"):
        clock = Clock()
        inputs = (3000, 1000) if slow == "left" else (1000, 3000)
        with seeded("slow"):
            found = timing(clock.run, *inputs, repeats=400, clock=clock)
        assert found.tells
        # A run of 3000 or less happens on the quick input most of the time, and never on the slow one.
        assert found.bound.refutes(1.0)
        assert "Run time tells the inputs apart" in str(found)
        assert max(map(len, str(found).splitlines())) <= 80
        assert "µs" in found.bound.event
        assert (found.left > found.right) == (slow == "left")


def test_equal_times_are_cleared():
    for seed in range(20):
        clock = Clock(seed)
        with seeded(seed):
            found = timing(clock.run, 2000, 2000, repeats=100, confidence=1 - 1e-7, clock=clock)
        assert not found.tells
        assert found.bound.epsilon == 0.0
        assert "does not tell the inputs apart" in str(found)
        assert max(map(len, str(found).splitlines())) <= 80


def test_false_alarms_are_as_rare_as_stated():
    alarms = 0
    for seed in range(100):
        clock = Clock(seed)
        with seeded(seed):
            alarms += timing(clock.run, 2000, 2000, repeats=40, confidence=0.8, clock=clock).tells
    assert alarms <= 20  # a fifth at most; Clopper–Pearson on both sides makes them far rarer


def test_drift_falls_on_both_inputs_alike():
    clock, turns = Clock(), []

    def run(name):
        turns.append(name)
        clock.now += 1000 + 50 * len(turns)  # a machine that grows slower with every run

    with seeded("drift"):
        found = timing(run, "a", "b", repeats=500, clock=clock, confidence=1 - 1e-7)
    assert not found.tells
    pairs = [tuple(turns[at : at + 2]) for at in range(6, len(turns), 2)]  # after the first calls
    assert {("a", "b"), ("b", "a")} == set(pairs)
    assert 180 < pairs.count(("a", "b")) < 320


def test_delta_is_taken_off():
    clock = Clock()

    def run(rare):
        clock.now += 9000 if rare and clock.rng.random() < 0.1 else 1000

    with seeded("rare"):
        assert timing(run, True, False, repeats=2000, clock=clock).tells
        assert not timing(run, True, False, repeats=2000, delta=0.2, clock=clock).tells


def test_the_real_clock_runs():
    found = timing(math.sqrt, 4.0, 9.0, repeats=20, confidence=1 - 1e-9)
    assert found.repeats == 20
    assert found.left >= 0


def test_unusable_numbers_are_refused():
    for options, words in (
        ({"repeats": 19}, "at least 20"),
        ({"delta": 1}, "delta"),
        ({"confidence": 1}, "conf"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            timing(math.sqrt, 4.0, 9.0, **options)


def test_low_bits_of_float_noise_are_caught_and_the_grid_is_cleared():
    mutant = MUTANTS["float noise"]
    with seeded("floats"):
        assert floats(mutant.planted, samples=50_000).refutes(1.0)
        assert not floats(mutant.honest, samples=50_000, confidence=1 - 1e-9).refutes(1.0)


def test_low_bits_need_floats():
    counts = Example.of_release("geometric", sf.Geometric(epsilon=1, sensitivity=1), 0, 1)
    with pytest.raises(InvalidParameter, match="no floats"):
        floats(counts, samples=500)


@pytest.mark.parametrize("wrong", [{"delta": 1}, {"confidence": 0}, {"samples": 10}])
def test_no_float_is_drawn_for_parameters_that_are_refused(wrong):
    class Never:
        def draw(self, side, count):
            pytest.fail("drawn")

    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        floats(Never(), **wrong)
