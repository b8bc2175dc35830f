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
    for values in (np.array([[1.0]]), np.array(["a"]), 3.0, "3"):
        with pytest.raises(InvalidValue):
            median_of(values, 0, upper=1)


def windows(values, low, high, reach):
    """The definition, window by window."""
    n, pad = len(values), 2 * len(values) + reach + 4
    ranks = [low] * pad + sorted(values) + [high] * pad
    m = pad - 1 + (n + 1) // 2
    return [max(ranks[m + t] - ranks[m + t - k - 1] for t in range(k + 2)) for k in range(reach)]


@given(
    st.lists(st.floats(0, 10) | st.sampled_from([0.0, 5.0, 10.0]), min_size=1, max_size=12),
    st.integers(0, 16),
    st.floats(0.01, 200),
    st.floats(0, 11),
)
def test_exchange_is_the_maximum_over_all_windows(values, reach, beta, bound):
    median, moves = (
        median_of(values, 0, upper=10, adjacency="exchange", reach=reach),
        windows(values, 0, 10, reach),
    )
    assert median.moves.tolist() == moves
    first = next((k for k, move in enumerate(moves) if move > bound), reach if bound < 10 else FAR)
    assert median.distance(bound) == first
    everything = [math.exp(-beta * k) * move for k, move in enumerate(moves)] + [math.exp(-beta * reach) * 10]
    smooth = median.smooth(beta)
    assert max(everything) * (1 - 1e-12) <= smooth <= max(everything) * (1 + 1e-12) + 10 * math.exp(-32)


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_many_values_take_no_time_and_what_lies_beyond_the_reach_of_beta_is_nothing(adjacency):
    values = np.random.default_rng(1).normal(50, 5, 100_001)
    median = median_of(values, 0, upper=100, adjacency=adjacency)  # seconds, were all of `moves` worked out
    near = median_of(values, 0, upper=100, adjacency=adjacency, reach=320)
    assert median.smooth(0.1) == near.smooth(0.1) < 0.02
    assert 10_000 < median.distance(5.0) < 50_000


@pytest.mark.parametrize("beta", [0, -0.5, math.nan, math.inf, "0.1", None])
def test_an_unusable_smoothness_is_refused(beta):
    with pytest.raises(InvalidParameter, match="beta must be a finite number above 0"):
        median_of([1.0, 2.0], 0, upper=3).smooth(beta)


def test_an_unusable_reach_is_refused():
    for reach in (-1, 1.5):
        with pytest.raises(InvalidParameter, match="reach"):
            median_of([1.0], 0, upper=3, reach=reach)
    with pytest.raises(InvalidValue, match="flat array"):
        median_of(np.ones((1, 2)), 0, upper=3)


@pytest.mark.parametrize("odd", [math.nan, None, "a", [1.0], 1j, b"5"], ids=repr)
def test_what_is_no_number_counts_as_the_lower_bound(odd):
    for container in (list, tuple):
        found, meant = (median_of(container([5, 7.5, each]), 1, upper=9) for each in (odd, 1))
        assert found.value == meant.value == 5
        assert found.moves.tolist() == meant.moves.tolist()
    assert median_of([10**400, 2, 3], 1, upper=9).value == 3
