"""What a model has room for: bounds against the best tree of all, and pairs in one walk."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joint_tables import drawn, explicit, structures, summed
from sfumato.synth._model.model import Model
from sfumato.synth._model.room import Room, size_of
from sfumato.synth._model.trees import CellCosts, FillCosts, cells_of


def least_cells(domain, cliques):
    """The fewest cells of a tree, over all orders in which columns can leave."""
    found = []
    for order in itertools.permutations(range(len(domain))):
        near = [set().union(*(c for c in cliques if at in c)) - {at} for at in range(len(domain))]
        masks = list[set[int]]()
        for at in order:
            whole = near[at] | {at}
            if not any(whole <= mask for mask in masks):
                masks.append(whole)
            for other in near[at]:
                near[other] = (near[other] | near[at]) - {other, at}
        found.append(sum(domain.cells(tuple(mask)) for mask in masks))
    return min(found)


@settings(max_examples=25)
@given(structures(most=5), st.integers(0, 3000))
def test_no_clique_that_fits_is_missed_and_no_pair_is_held_for_smaller_than_can_be(structure, more):
    domain, cliques = structure
    limit = size_of(domain, cliques) + more
    pairs = list(itertools.combinations(range(len(domain)), 2))
    room = Room(domain)
    found = {pairs[place] for place in room.within(cliques, pairs, limit)}
    numbers = size_of(domain, cliques) - cells_of(domain, cliques)
    for pair in pairs:
        fits = Room(domain).fits(cliques, pair, limit)
        assert fits == (pair in cliques or size_of(domain, [*cliques, pair]) <= limit)
        assert pair in found or not fits
        if pair in found and pair not in cliques:
            assert least_cells(domain, [*cliques, pair]) + numbers <= limit


@settings(max_examples=10)
@given(structures(most=6))
def test_what_was_too_large_stays_so_until_there_is_more_room(structure):
    domain, cliques = structure
    triples = list(itertools.combinations(range(len(domain)), 3))
    room, size = Room(domain), size_of(domain, cliques)
    for limit in (size, 10 * size + 10**6, 10 * size + 10**6):
        found = room.within(cliques, triples, limit)
        assert all(
            (place in found) == (clique in cliques or size_of(domain, [*cliques, clique]) <= limit)
            for place, clique in enumerate(triples)
            if not any(set(clique) <= set(held) for held in cliques)
        )


@settings(max_examples=30)
@given(structures(), st.integers(0, 2**32), st.sampled_from([1, 1000]), st.sampled_from([0, 0.15]))
def test_pairs_in_one_walk_are_those_of_the_joint_table(structure, seed, scale, holes):
    domain, cliques = structure
    potentials = drawn(domain, cliques, seed, scale, holes)
    joint, _ = explicit(domain, potentials, 1e4)
    if joint is None:
        return
    model = Model(domain, 1e4, potentials)
    wanted = [c for size in (1, 2, 3) for c in itertools.combinations(range(len(domain)), size)]
    for clique, counts in zip(wanted, model.marginals(wanted), strict=True):
        np.testing.assert_allclose(counts, summed(joint, clique), rtol=1e-9, atol=1e-10)
    small = model.marginals(wanted, most_cells=4)
    for clique, counts in zip(wanted, small, strict=True):
        assert counts is None or counts.shape == domain.shape(clique)


@settings(max_examples=50)
@given(structures(most=8), st.booleans())
def test_what_a_column_costs_next_is_what_it_costs_from_scratch(structure, by_fill):
    domain, cliques = structure
    graph = [set().union(*(c for c in cliques if at in c)) - {at} for at in range(len(domain))]
    kind = FillCosts if by_fill else CellCosts
    costs = kind(domain.sizes, [sum(1 << other for other in around) for around in graph])
    left = set(range(len(domain)))
    while left:
        for at in left:
            cells = domain.cells((at, *graph[at]))
            apart = [pair for pair in itertools.combinations(graph[at], 2) if pair[1] not in graph[pair[0]]]
            assert costs.of(at) == (sum(map(domain.cells, apart)) if by_fill else cells, cells, at)
        at = min(left, key=costs.of)
        costs.eliminate(at)
        left.remove(at)
        for other in graph[at]:
            graph[other] = (graph[other] | graph[at]) - {other, at}
