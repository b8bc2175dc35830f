"""No way of writing numbers down lets NumPy round them behind the declared sensitivity's back."""

import os
from collections import UserList

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidValue, Spent

ROUNDED = [
    [2**54 + 3, float(2**54)],
    (2**54 + 3, 0.5),
    [2**63, -1, 2**63 - 513],
    [np.array(2**53 + 1), 0.5],
    UserList([2**53 + 1, 0.5]),
]
TAKES = {
    "Laplace": sf.Laplace(1, 1).release,
    "Gaussian": sf.Gaussian(sigma=1, sensitivity=1).release,
    "Exponential": sf.Exponential(1, 1).select,
    "PermuteAndFlip": sf.PermuteAndFlip(1, 1).select,
    "NoisyMax": sf.NoisyMax(1, 1).select,
    "TopK": sf.TopK(1, 1, count=1).select,
    "AboveThreshold": sf.AboveThreshold(1, 5, sensitivity=1).first,
    "SparseVector": sf.SparseVector(1, 5, count=1, sensitivity=1).above,
}


@pytest.mark.parametrize(
    "values", ROUNDED, ids=["list", "tuple", "unsigned", "zero-dimensional", "user list"]
)
@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
def test_integers_that_a_float_array_would_round_are_taken_exactly(take, values):
    take(values)


def test_no_number_of_a_list_is_rounded_for_the_sake_of_another():
    """One 0.5 used to decide that the list was refused, or that 2**53 + 1 became 2**53."""
    best = sf.Exponential(200, 1)
    for more in ([], [0.5], [True], [2**63]):
        for top in (2**53 + 1, 2**60 + 1):
            assert best.select([top - 1, top, *(each / 2**70 for each in more)]) == 1
    assert sf.SparseVector(200, "9007199254740992.5", count=2, sensitivity="0.1").above(
        [2**53, 2**53 + 1, 0.5]
    ) == [1]


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
def test_masks_are_never_dropped(take):
    with pytest.raises(InvalidValue, match="Masked arrays"):
        take(np.ma.array([1.0, 1000.0], mask=[0, 1]))


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
def test_small_integers_among_floats_are_exact_and_accepted(take):
    take([1, 2.5, np.float32(3)])


def test_truth_values_are_scores_of_0_and_1():
    picks = [sf.Exponential(100, 1).select([False, True, False]) for _ in range(20)]
    assert set(picks) == {1}
    assert sf.Exponential(100, 1).select(np.array([True, False])) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_counter_refuses_to_lead_a_second_life():
    counter = sf.TreeCounter(8, 1, sensitivity=1)
    counter.add(1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            counter.add(1)
            os.write(writer, b"counted")
        except Spent:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 20) == b"refused"
    counter.add(1)
    assert counter.time == 2


@pytest.mark.parametrize("scalar", [True, False])
def test_a_calibrated_discrete_gaussian_fits_a_fresh_budget_exactly_once(scalar):
    noise = sf.DiscreteGaussian(1, "1e-6", sensitivity=1, scalar=scalar)
    full = sf.accounting.BasicFilter(1, "1e-6").after(noise.loss)
    assert full.remaining == (0, 0)
    with pytest.raises(sf.errors.BudgetExceeded):
        full.after(noise.loss)
