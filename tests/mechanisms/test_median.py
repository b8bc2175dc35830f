import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter, InvalidValue
from sfumato.mechanisms._median import FAR, median_of

POINTS = (0.0, 0.1, 0.4, 1.0)
BETA = 0.3


def tables(most):
    return [t for n in range(most + 1) for t in combinations_with_replacement(POINTS, n)]


def neighbours(table, adjacency):
    removed = {tuple(sorted(table[:i] + table[i + 1 :])) for i in range(len(table))}
    if adjacency == "exchange":
        return {tuple(sorted((*rest, x))) for rest in removed for x in POINTS}
    return removed | {tuple(sorted((*table, x))) for x in POINTS}


def described(table, adjacency, reach=None):
    return median_of(np.array(table), 0, upper=1, adjacency=adjacency, reach=reach)


@pytest.mark.parametrize("reach", [None, 0, 1, 2])
@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_what_mechanisms_rely_on_holds_for_all_small_tables(adjacency, reach):
    for table in tables(4):
        if not table and adjacency == "exchange":
            continue
        here = described(table, adjacency, reach)
        for other in neighbours(table, adjacency):
            there = described(other, adjacency, reach)
            moved = abs(here.value - there.value)
            assert moved <= here.smooth(BETA) + 1e-12
            assert here.smooth(BETA) <= math.exp(BETA) * there.smooth(BETA) * (1 + 1e-12)
            for bound in (0.05, 0.2, 0.5, 0.99):
                assert here.distance(bound) - there.distance(bound) in (-1, 0, 1)
                if moved > bound:
                    assert here.distance(bound) == there.distance(bound) == 0


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_the_bounds_are_the_exact_local_sensitivities(adjacency):
    # Brute force over everything within reach, with the bounds of the domain among the points.
    for table in [(0.1, 0.4, 0.4), (0.0, 0.1, 1.0), (0.1, 0.1, 0.4, 1.0)]:
        ring = {table}
        for k in range(2):
            jumps = [
                abs(described(x, adjacency).value - described(y, adjacency).value)
                for x in ring
                for y in neighbours(x, adjacency)
            ]
            assert described(table, adjacency).moves[k] == pytest.approx(max(jumps))
            ring |= {y for x in ring for y in neighbours(x, adjacency)}


def test_a_bound_from_the_data_alone_is_not_smooth():
    # The planted bug: the local sensitivity itself, 0 for one table and 0.4 for its neighbour.
    calm, lonely = described((0.4, 0.4), "add-remove"), described((0.4,), "add-remove")
    assert (calm.moves[0], lonely.moves[0]) == (0, 0.4)
    assert calm.smooth(BETA) * math.exp(BETA) >= lonely.smooth(BETA) > 0


@given(st.lists(st.floats(-5, 15), max_size=12), st.integers(0, 3))
def test_cutting_the_list_short_only_raises_the_bound(values, reach):
    full, short = median_of(values, 0, upper=10), median_of(values, 0, upper=10, reach=reach)
    assert full.value == short.value
    assert full.smooth(BETA) <= short.smooth(BETA)
    assert full.distance(1.0) >= short.distance(1.0)


def test_values_outside_the_bounds_count_as_the_bounds_and_none_as_the_lower():
    assert median_of([-100, 50, 200, np.inf, -np.inf], 0, upper=100).value == 50
    empty = median_of([], 3, upper=4)
    assert (empty.value, empty.smooth(0.5), empty.distance(0.5)) == (3, 1, 0)
    assert median_of([1, 2, 3, 4], 0, upper=9).value == 2


def test_a_bound_that_cannot_be_exceeded_is_infinitely_far():
    assert {median_of(t, 0, upper=1).distance(1.0) for t in ([], [0.5], [0, 1])} == {FAR}


def test_concentrated_data_have_a_small_bound():
    values = np.random.default_rng(0).normal(50, 5, 4001)
    assert median_of(values, 0, upper=100).smooth(0.1) < 0.2


def test_unusable_input_is_refused():
    for lower, upper in product((0, math.nan, math.inf), (0, math.nan)):
        with pytest.raises(InvalidParameter):
            median_of([1.0], lower, upper=upper)
    with pytest.raises(InvalidParameter, match="adjacency"):
        median_of([1.0], 0, upper=1, adjacency="rows")
    for values in ([math.nan], [[1.0]], ["a"], 3.0):
        with pytest.raises(InvalidValue):
            median_of(values, 0, upper=1)
