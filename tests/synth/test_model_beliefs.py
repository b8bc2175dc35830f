"""Junction trees, belief propagation and models against the explicit joint table of a few columns."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joint_tables import drawn, explicit, grid, lifted, structures, summed
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.synth._model.beliefs import Beliefs
from sfumato.synth._model.model import Model
from sfumato.synth._model.trees import cells_of, tree_of


@settings(max_examples=60)
@given(structures(most=8))
def test_a_junction_tree_holds_each_clique_and_its_cliques_with_a_column_are_connected(structure):
    domain, cliques = structure
    tree = tree_of(domain, cliques)
    assert all(tree.home(clique) >= 0 for clique in cliques)
    assert set().union(*tree.cliques) == set(range(len(domain)))
    assert not any(set(a) <= set(b) for a, b in itertools.permutations(tree.cliques, 2))
    for place, (parent, shared) in enumerate(zip(tree.parents, tree.separators, strict=True)):
        assert parent < place
        before = set().union(*tree.cliques[:place])
        assert set(shared) == set(tree.cliques[place]) & before  # the running intersection
        assert not shared if parent < 0 else set(shared) <= set(tree.cliques[parent])
    assert cells_of(domain, cliques) == sum(domain.cells(clique) for clique in tree.cliques)
    assert tree_of(domain, cliques[::-1]) == tree


def test_trees_are_small_where_they_can_be():
    domain = grid([2] * 100)
    assert cells_of(domain, []) == 200
    assert cells_of(domain, [(place, place + 1) for place in range(99)]) == 99 * 4
    ring = [(place, place + 1) for place in range(99)] + [(0, 99)]
    assert cells_of(domain, ring) == 98 * 8
    grid_edges = [(5 * i + j, 5 * i + j + 1) for i in range(20) for j in range(4)]
    grid_edges += [(5 * i + j, 5 * i + j + 5) for i in range(19) for j in range(5)]
    assert max(map(len, tree_of(domain, grid_edges).cliques)) == 6  # the treewidth of such a grid is 5
    assert cells_of(grid([2, 1000, 2, 1000]), [(0, 1), (1, 2), (2, 3), (0, 3)]) == 2 * 4000


@settings(max_examples=60)
@given(structures(), st.integers(0, 2**32), st.sampled_from([1, 30, 1000]), st.sampled_from([0, 0.15]))
def test_beliefs_are_those_of_the_joint_table(structure, seed, scale, holes):
    domain, cliques = structure
    potentials = drawn(domain, cliques, seed, scale, holes)
    joint, log_partition = explicit(domain, potentials, 7.0)
    beliefs = Beliefs(domain, tree_of(domain, cliques), cliques)
    counts = beliefs.counts(list(potentials.values()), 7.0)
    assert counts.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-12)
    if joint is None:
        return
    for clique, marginal in zip(cliques, counts.marginals, strict=True):
        np.testing.assert_allclose(marginal, summed(joint, clique), rtol=1e-9, atol=1e-14)
    for columns, table in beliefs.tables():
        order = [columns.index(place) for place in sorted(columns)]
        np.testing.assert_allclose(table.transpose(order), summed(joint, columns), rtol=1e-9, atol=1e-14)
    highest = sum(lifted(domain, c, p) for c, p in potentials.items()) if potentials else np.zeros(1)
    assert beliefs.highest(list(potentials.values())) == pytest.approx(np.max(highest), rel=1e-12, abs=1e-12)


@settings(max_examples=30)
@given(structures(), st.integers(0, 2**32), st.sampled_from([1, 1000]), st.sampled_from([0, 0.15]))
def test_a_model_has_the_marginals_of_the_joint_table_for_all_columns(structure, seed, scale, holes):
    domain, cliques = structure
    potentials = drawn(domain, cliques, seed, scale, holes)
    joint, _ = explicit(domain, potentials, 1e4)
    model = Model(domain, 1e4, potentials)
    if joint is None:
        with pytest.raises(InvalidParameter, match="no cell"):
            model.marginal((0,))
        return
    for size in range(min(len(domain), 3) + 1):
        for clique in itertools.combinations(range(len(domain)), size):
            np.testing.assert_allclose(model.marginal(clique), summed(joint, clique), rtol=1e-9, atol=1e-10)


@settings(max_examples=20)
@given(structures(), st.integers(0, 2**32))
def test_a_model_comes_back_from_its_arrays_to_the_last_bit(structure, seed):
    domain, cliques = structure
    model = Model(domain, 12.3, drawn(domain, cliques, seed, 2, 0.05))
    again = Model.from_arrays(domain, model.to_arrays())
    assert again.total == model.total
    assert list(again.potentials) == list(model.potentials)
    try:
        rows = model.rows(50, simulation(seed))
    except InvalidParameter:
        return
    assert np.array_equal(again.rows(50, simulation(seed)), rows)
    for clique in model.potentials:
        assert again.marginal(clique).tobytes() == model.marginal(clique).tobytes()


def test_arrays_of_something_else_are_refused():
    arrays = Model(grid([2, 3]), 5, {(0, 1): np.zeros((2, 3))}).to_arrays()
    for changed in (
        {**arrays, "more": np.zeros(1)},
        {**arrays, "clique0": np.array([0, 7])},
        {**arrays, "potential0": np.zeros((3, 2))},
        {**arrays, "potential0": np.full((2, 3), math.nan)},
        {**arrays, "total": np.array(math.nan)},
    ):
        with pytest.raises(InvalidParameter):
            Model.from_arrays(grid([2, 3]), changed)


def test_a_marginal_that_needs_too_many_cells_is_refused():
    domain = grid([10] * 9)
    model = Model(domain, 5, {(place, place + 1): np.zeros((10, 10)) for place in range(8)})
    assert model.marginal((0, 8)).shape == (10, 10)
    with pytest.raises(InvalidParameter, match="too many cells"):
        model.marginal(tuple(range(9)), most_cells=10**6)


def test_a_hundred_columns_have_marginals_across_the_whole_chain():
    rng = simulation(1)
    links = [rng.dirichlet(np.ones(3), 3) for _ in range(99)]
    domain = grid([3] * 100)
    model = Model(domain, 1.0, {(k, k + 1): np.log(link) for k, link in enumerate(links)})
    expected = np.full((3, 3), 0.0)
    np.fill_diagonal(expected, 1 / 3)  # the first column is uniform, as each row of a link adds up to 1
    for link in links:
        expected = expected @ link
    np.testing.assert_allclose(model.marginal((0, 99)), expected, rtol=1e-10)
