from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.samplers import pool
from sfumato.samplers.pool import BIAS


@pytest.fixture
def pools(stream):
    return {kind: pool.Pools(kind, lambda: stream) for kind in pool.KINDS}


def test_pools_follow_the_law_before_and_after_the_table(pools, tools):
    scale = Fraction(9, 2)
    laplace = [pools["discrete laplace"].draw(scale, "scale") - BIAS for _ in range(6000)]
    assert tools.chi_square(np.array(laplace), tools.laplace_mass(4.5), -200, 200) > tools.ALPHA
    gaussian = [pools["discrete gaussian"].draw(scale, "variance") - BIAS for _ in range(6000)]
    assert tools.chi_square(np.array(gaussian), tools.gaussian_mass(4.5), -200, 200) > tools.ALPHA
    ones = [pools["geometric"].draw(scale, "rate") - BIAS for _ in range(6000)]
    assert tools.chi_square(np.array(ones), tools.geometric_mass(4.5), 0, 200) > tools.ALPHA


def test_the_first_draws_leave_no_table(pools):
    """A law drawn from a few times, perhaps with a private parameter, leaves no trace in the cache."""
    scale = Fraction(987_654_321, 1000)
    key = ("discrete laplace", scale.numerator, scale.denominator)
    for _ in range(pool._PATIENCE):
        pools["discrete laplace"].draw(scale, "scale")
    assert key not in pool._tables
    pools["discrete laplace"].draw(scale, "scale")
    assert key in pool._tables


def test_each_draw_leaves_the_pool(pools):
    scale = Fraction(77, 3)
    for _ in range(pool._PATIENCE + 1):
        pools["discrete laplace"].draw(scale, "scale")
    held = pools["discrete laplace"]._known[id(scale)]
    before = list(held.values)
    assert len(before) == pool._AHEAD - 1
    assert pools["discrete laplace"].draw(scale, "scale") == before[-1]
    assert held.values == before[:-1]
    values = held.values
    pools["discrete laplace"].clear()
    assert values == []


def test_equal_parameters_share_a_pool_and_recycled_identities_do_not(pools):
    laplace = pools["discrete laplace"]
    laplace.draw(Fraction(5), "scale")
    first = laplace._find(Fraction(5), "scale")
    assert laplace._find(Fraction(10, 2), "scale") is first
    assert laplace._find(5, "scale") is first
    # Objects that are gone may give their identity to others: each draw must be of the scale asked for.
    for i in range(1, 400):
        assert laplace._find(Fraction(i, 7), "scale").exact == Fraction(i, 7)
        assert laplace._find(i / 4, "scale").exact == Fraction(i, 4)


def test_pools_are_bounded(pools):
    for i in range(1, 3 * pool._POOLS):
        pools["discrete laplace"]._find(Fraction(i), "scale")
    assert len(pools["discrete laplace"]._values) <= pool._POOLS
    assert len(pools["discrete laplace"]._known) <= pool._POOLS


def test_tables_are_bounded_shared_and_the_oldest_goes_first():
    keep = pool.table_of("discrete laplace", Fraction(3, 2))
    for i in range(pool._TABLES + 5):
        pool.table_of("discrete laplace", Fraction(i + 1, 1000))
        assert pool.table_of("discrete laplace", Fraction(3, 2)) is keep
    assert len(pool._tables) <= pool._TABLES
    assert ("discrete laplace", 1, 1000) not in pool._tables


def test_tables_from_many_threads():
    found = []

    def work() -> None:
        for i in range(30):
            variance = Fraction(i % 5 + 1)
            table = pool.table_of("discrete gaussian", variance)
            found.append(table.law.curvature * 2 * variance)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 180


def test_unusable_parameters_are_refused(pools):
    for bad in (0, -1, Fraction(-1, 2), float("nan"), "x", 2**60, True):
        with pytest.raises(InvalidParameter):
            pools["discrete laplace"].draw(bad, "scale")
