"""Membership by distance: copies are named, fresh rows leave a coin, and a guess is exactly a half."""

import numpy as np
import pyarrow as pa
import pytest

from crowds import crowd
from sfumato.attacks import nearest_records, nearness
from sfumato.errors import InvalidParameter

NAMES = ["zip", "age", "sex", "income"]
PEOPLE, OTHERS, FRESH = (crowd(600, seed).select(NAMES) for seed in (1, 2, 3))


def test_copies_name_their_people_and_prove_an_epsilon():
    found = nearness(PEOPLE, PEOPLE, OTHERS, attacks=300, seed=1)
    assert found.works
    assert found.baseline == 0.5
    assert found.rate > 0.95
    assert found.detail["people known to the attacker"] == 300
    assert found.detail["epsilon at least"] > 2
    assert found.detail["advantage"] == pytest.approx(2 * found.rate - 1)
    assert found.detail["median distance"] == 0


def test_rows_of_others_leave_a_coin_and_would_have_been_noticed():
    found = nearness(PEOPLE, FRESH, OTHERS, seed=1)
    assert found.works is False
    assert found.power.enough
    assert found.detail["epsilon at least"] == 0
    # Where rows say nothing at all, every pair is a tie, and tossed for.
    same = pa.table({name: FRESH[name].take(np.zeros(50, np.int64)) for name in ["sex"]})
    halves = [nearness(PEOPLE, same, OTHERS, columns="sex", seed=seed).rate for seed in range(3)]
    assert all(0.35 < rate < 0.65 for rate in halves)


def test_distances_are_those_of_gower():
    one = pa.table({"x": [0.0, 5.0, None], "c": ["a", "b", "b"]})
    other = pa.table({"x": [0.0, 10.0], "c": ["b", "b"]})
    (found,) = nearest_records(one, other)
    assert found.distances.tolist() == [0.5, 0.25, 0.5]
    (found,) = nearest_records(other, other)
    assert (found.distances.tolist(), found.places.tolist()) == ([0, 0], [0, 1])
    # A table that reaches far does not bring its own rows nearer.
    near, far = pa.table({"x": [0.0, 10.0]}), pa.table({"x": [0.0, 100.0]})
    for found in nearest_records(pa.table({"x": [4.0]}), near, far):
        assert found.distances.tolist() == [0.04]


def test_a_control_of_the_same_people_is_refused():
    with pytest.raises(InvalidParameter, match="control"):
        nearness(PEOPLE, FRESH, PEOPLE)
    with pytest.raises(InvalidParameter):
        nearness(PEOPLE, FRESH, OTHERS, attacks=0)
