"""Rows out of a model: their marginals have little error, and none is in an empty cell."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joint_tables import drawn, explicit, grid, structures, summed
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.synth._model.model import Model


def counted(rows, domain, clique):
    code = np.ravel_multi_index(tuple(rows[:, place] for place in clique), domain.shape(clique))
    return np.bincount(code, minlength=domain.cells(clique)).reshape(domain.shape(clique))


@settings(max_examples=30)
@given(structures(), st.integers(0, 2**32), st.sampled_from([1, 40]), st.sampled_from([0, 0.15]))
def test_rows_have_the_marginals_of_the_model_and_avoid_empty_cells(structure, seed, scale, holes):
    domain, cliques = structure
    potentials = drawn(domain, cliques, seed, scale, holes)
    n = 20_000
    joint, _ = explicit(domain, potentials, n)
    if joint is None:
        return
    rows = Model(domain, 3.0, potentials).rows(n, simulation(seed))
    assert rows.shape == (n, len(domain))
    for size in range(1, min(len(domain), 3) + 1):
        for clique in itertools.combinations(range(len(domain)), size):
            expected = summed(joint, clique)
            found = counted(rows, domain, clique)
            assert not found[expected == 0].any()
            # 8 standard deviations of plain sampling, which is worse
            assert (np.abs(found - expected) <= 8 * np.sqrt(expected) + 8).all()


def test_the_first_clique_is_rounded_and_the_others_within_each_group():
    rng = simulation(3)
    domain = grid([4, 5, 6])
    potentials = {(0, 1): rng.normal(size=(4, 5)), (1, 2): rng.normal(size=(5, 6))}
    model = Model(domain, 1.0, potentials)
    n = 1003
    rows = model.rows(n, rng)
    root = model.tree.cliques[0]
    found = counted(rows, domain, root)
    assert (np.abs(found - n * model.marginal(root)) < 1).all()
    other = model.tree.cliques[1]
    pairs = counted(rows, domain, other)
    axis = 0 if other == (0, 1) else 1  # which of its columns is new
    groups = pairs.sum(axis=axis, keepdims=True)
    chances = model.marginal(other)
    chances = chances / chances.sum(axis=axis, keepdims=True)
    assert (np.abs(pairs - groups * chances) < 1).all()


def test_rows_that_share_a_group_are_shuffled():
    """Columns that are independent given a third stay so, in whatever order rows were."""
    domain = grid([2, 10, 10])
    rng = simulation(5)
    model = Model(domain, 1.0, {(0, 1): rng.normal(size=(2, 10)), (0, 2): rng.normal(size=(2, 10))})
    n = 40_000
    found = counted(model.rows(n, rng), domain, (0, 1, 2))
    expected = n * model.marginal((0, 1, 2))
    statistic = float(np.sum((found - expected) ** 2 / expected))
    assert statistic < 200 + 10 * math.sqrt(400)


def test_groups_of_one_row_have_no_common_luck():
    """Each of many small groups draws by itself: a column with a cell for each row is matched evenly."""
    domain = grid([2000, 4, 4])
    model = Model(domain, 1.0, {(0, 1): np.zeros((2000, 4)), (0, 2): np.zeros((2000, 4))})
    rows = model.rows(2000, simulation(0))
    for column in ((1,), (2,)):
        assert np.abs(counted(rows, domain, column) - 500).max() < 50
        assert np.abs(counted(rows[:1000], domain, column) - 250).max() < 100
    assert counted(rows, domain, (0,)).max() < 12  # the first clique's cells are not met in even steps
    assert 0.5 < counted(rows, domain, (0,)).var() < 2


def test_columns_that_nothing_tells_of_are_uniform_and_independent():
    domain = grid([3, 1, 4])
    rows = Model(domain, 1.0, {}).rows(12_000, simulation(0))
    assert np.abs(counted(rows, domain, (0, 1, 2)) - 1000).max() < 200


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_rows(n):
    domain = grid([3, 2])
    rows = Model(domain, 1.0, {(0, 1): np.zeros((3, 2))}).rows(n, simulation(0))
    assert rows.shape == (n, 2)
    with pytest.raises(InvalidParameter):
        Model(domain, 1.0, {}).rows(-1, simulation(0))


def test_sixty_columns_are_drawn_in_one_pass_for_each():
    domain = grid([7] * 60)
    rng = simulation(2)
    model = Model(domain, 1.0, {(k, k + 1): rng.normal(size=(7, 7)) for k in range(59)})
    rows = model.rows(5_000, rng)
    for clique in ((0, 1), (58, 59), (20, 40)):
        expected = 5_000 * model.marginal(clique)
        assert (np.abs(counted(rows, domain, clique) - expected) < 8 * np.sqrt(expected) + 8).all()
