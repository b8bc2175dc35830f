"""One table of a composed profile: nowhere below it, close to it, and quick to read."""

import numpy as np
import pytest

from sfumato.numeric import compose, laws
from sfumato.numeric.laws import Term
from sfumato.numeric.tabulated import tabulated

CASES = {
    "laplace": (Term(laws.LAPLACE, (1.0,), 2),),
    "laplace and gaussian": (Term(laws.LAPLACE, (1.0,)), Term(laws.GAUSSIAN, (0.5,))),
    "lattice and laplace": (Term(laws.DISCRETE_LAPLACE, (1.0, 1.0)), Term(laws.LAPLACE, (0.3,))),
    "atom at infinity": (Term(laws.DOUBLE, (0.5, 1e-6)), Term(laws.GAUSSIAN, (1.0,))),
    "sampled": (Term(laws.SAMPLED_GAUSSIAN_REMOVE, (0.1, 1.0), 3),),
}


@pytest.mark.parametrize("terms", CASES.values(), ids=CASES)
def test_a_table_is_above_the_composed_profile_and_close_to_it(terms):
    read = tabulated(terms)
    for epsilon in (-0.5, 0.1, 1.3):
        truth = compose.delta((terms,), epsilon)
        found = float(read(np.array([epsilon]))[0])
        assert found >= truth.lower
        assert found <= truth.upper * (1 + 1e-4) + 1e-10


def test_a_table_ends_at_the_mass_at_infinity():
    read = tabulated(CASES["atom at infinity"])
    assert 1e-6 <= float(read(np.array([60.0]))[0]) <= 1.0001e-6
    assert float(read(np.array([-800.0]))[0]) == 1.0


def test_a_table_that_forgets_a_law_falls_below():
    whole, part = tabulated(CASES["laplace"]), tabulated((Term(laws.LAPLACE, (1.0,)),))
    assert float(part(np.array([1.2]))[0]) < compose.delta((CASES["laplace"],), 1.2).lower
    assert float(whole(np.array([1.2]))[0]) >= compose.delta((CASES["laplace"],), 1.2).lower


def test_a_table_is_read_in_any_shape_and_never_rises():
    read = tabulated(CASES["laplace and gaussian"])
    grid = np.linspace(-5, 8, 4001)
    values = read(grid.reshape(-1, 1)).ravel()
    assert np.all(np.diff(values) <= 1e-15)
    assert np.array_equal(values, read(grid))
