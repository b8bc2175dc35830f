"""What a method does not refuse beforehand, it can do: a fit that was paid ends with a model."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.fits.meter import Meter, price
from sfumato.random import simulation
from sfumato.synth import METHODS
from sfumato.synth._model.contrasts import MOST_CELLS
from sfumato.synth._model.domain import Domain
from sfumato.synth._model.room import BYTES, MEGABYTE, size_of
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import Candidates
from sfumato.synth.methods import Wanted, chosen_method, silent
from sfumato.testing.stream import seeded


def domain_of(*sizes):
    return Domain(tuple(f"x{at}" for at in range(len(sizes))), sizes)


def any_wishes(draw):
    """Columns, a workload of sets of them, and a limit that may be too small for it."""
    many = int(draw.integers(1, 7))
    domain = domain_of(*(int(size) for size in draw.integers(1, 6, many)))
    sets = [itertools.combinations(range(many), size) for size in range(1, min(many, 3) + 1)]
    every = [clique for listed in sets for clique in listed]
    chosen = [every[at] for at in draw.permutation(len(every))[: draw.integers(1, 5)]]
    alone = size_of(domain, [(place,) for place in range(many)])  # a plan has room for single columns
    most = alone + int(draw.choice([0, 1, 100, 600, 2000, 30_000]))
    return domain, Wanted(tuple((clique, 1.0) for clique in chosen), most)


def refused_or_fitted(method, seed):
    draw = simulation(seed)
    domain, wanted = any_wishes(draw)
    try:
        method.check(domain, wanted)
    except InvalidParameter:
        return "refused"
    rows = [draw.integers(0, size, 5) for size in domain.sizes]
    with seeded(seed):
        learned = method.learn(Cells(domain, rows), Meter.alone(price(1, "1e-6")), wanted, silent)
    assert size_of(domain, learned.model.potentials) <= wanted.most_cells
    assert all((learned.model.marginal((at,)) >= 0).all() for at in range(len(domain)))
    return "fitted"


@pytest.mark.parametrize("name", METHODS)
def test_what_is_not_refused_is_fitted(name):
    assert "fitted" in {refused_or_fitted(METHODS[name], seed) for seed in range(6)}


@pytest.mark.stats
@pytest.mark.parametrize("name", METHODS)
def test_what_is_not_refused_is_fitted_over_many_workloads(name):
    assert "fitted" in {refused_or_fitted(METHODS[name], seed) for seed in range(100, 400)}


def test_room_for_a_set_of_columns_is_room_beside_all_others():
    domain, workload = domain_of(*[8] * 40), (((0, 1), 1.0),)
    exact = Candidates.memory(domain, [(0, 1)]) // BYTES  # counts that scores are made of
    most = size_of(domain, [*((place,) for place in range(40)), (0, 1)]) + exact
    METHODS["adaptive"].check(domain, Wanted(workload, most))
    with pytest.raises(InvalidParameter, match="fits in this memory"):
        METHODS["adaptive"].check(domain, Wanted(workload, most - 1))


def test_a_set_of_columns_that_is_too_large_to_be_measured_is_refused():
    domain = domain_of(MOST_CELLS // 2, 2, 2)
    METHODS["fixed"].check(domain, Wanted((((0, 1), 1.0),), 2**40))
    with pytest.raises(InvalidParameter, match="too many cells"):
        METHODS["fixed"].check(domain, Wanted((((0, 1, 2), 1.0),), 2**40))


def needed(method, domain, wanted):
    """The memory that a refusal names, or None where there is none."""
    try:
        METHODS[method].check(domain, wanted)
    except InvalidParameter as refused:
        return int(re.search(r"memory=(\d+)", str(refused)).group(1))
    return None


@pytest.mark.parametrize("method", ["mst", "fixed"])
@pytest.mark.parametrize("columns", [2, 60])
def test_a_refusal_names_the_memory_that_would_do(method, columns):
    domain = domain_of(*[64] * columns)
    pairs = tuple((pair, 1.0) for pair in itertools.combinations(range(columns), 2))
    alone = size_of(domain, [(place,) for place in range(columns)])
    megabytes = needed(method, domain, Wanted(pairs, alone))
    assert needed(method, domain, Wanted(pairs, megabytes * MEGABYTE // BYTES)) is None
    assert needed(method, domain, Wanted(pairs, (megabytes - 1) * MEGABYTE // BYTES)) == megabytes


def test_auto_goes_by_the_number_of_columns():
    names = {columns: chosen_method("auto", domain_of(*[2] * columns)).name for columns in (1, 2, 30, 31)}
    assert names == {1: "independent", 2: "adaptive", 30: "adaptive", 31: "wide"}


def test_a_tree_leaves_out_pairs_whose_noise_is_more_than_they_say():
    """Two columns of many values are far from independent by luck alone: 2,304 cells for a thousand rows."""
    draw, rows, domain = simulation(0), 1000, domain_of(2, 2, 48, 48)
    one = draw.integers(0, 2, rows)
    other = np.where(draw.random(rows) < 0.9, one, 1 - one)
    cells = Cells(domain, [one, other, *(draw.integers(0, 48, rows) for _ in range(2))])
    for seed in range(4):
        with seeded(f"tree {seed}"):
            learned = METHODS["mst"].learn(cells, Meter.alone(price(1, "1e-9")), Wanted((), 10**6), silent)
        measured = {marginal.clique for marginal in learned.marginals}
        assert (0, 1) in measured
        assert (2, 3) not in measured
