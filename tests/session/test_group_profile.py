"""Profiles of groups: in how many groups units are, its price, and what it bounds."""

import itertools
import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.prices.price import instruments
from sfumato.plan.questions.bounding.choose import Choose
from sfumato.plan.questions.profile import WEIGHT, Profile, ladder
from sfumato.session import intervals
from sfumato.session import profile as profiles
from sfumato.testing import seeded

MANY = 2**15  # of epsilon: no noise to speak of
SURE = 1 - 1e-9
LETTERS = "abcdefgh"
BY = {"listed twice": ["g", "h"], "found": ["city"]}


def rows_of(seed, units=60):
    """Units in one group or in many, with one row there or with twenty; some rows have no unit or no key."""
    draw = np.random.default_rng(seed)
    rows = []
    for who in range(units):
        groups = draw.choice(list(LETTERS), draw.choice([1] * 18 + [2, 8]), replace=False)
        for g in groups:
            many = int(draw.choice([1, 1, 2, 20]))
            rows += [(who, str(g), int(draw.integers(0, 3)), f"city {g}") for _ in range(many)]
    rows += [(None, "a", 0, "x")] * 3
    rows += [(0, None, 1, None)] * 2
    return rows


def table_of(rows, *, max_groups=1, max_rows=8, adjacency="add-remove", version="1", name="t", ceiling=1000):
    who, g, h, city = zip(*rows, strict=True)
    source = pa.table(
        {
            "who": pa.array(who, pa.int64()),
            "g": pa.array(g, pa.string()),
            "h": pa.array(h, pa.int64()),
            "city": pa.array(city, pa.string()),
        }
    )
    unit = sf.PrivacyUnit(
        "who", max_groups=max_groups, max_rows=max_rows, adjacency=adjacency, ceiling=ceiling
    )
    schema = {"g": sf.Enum(*LETTERS), "h": sf.Int(0, 2), "city": sf.Text()}
    return sf.PrivateTable(name, source=source, unit=unit, schema=schema, version=version, dataset="d")


def session_of(rows, *, epsilon=10**10, ledger=None, **more):
    return sf.Session(table_of(rows, **more), budget=sf.Budget(epsilon, "1e-3"), ledger=ledger)


def groups_by_hand(rows, by):
    places = [{"who": 0, "g": 1, "h": 2, "city": 3}[name] for name in by]
    pairs = {(row[0], *(row[place] for place in places)) for row in rows if row[0] is not None}
    return list(Counter(pair[0] for pair in pairs).values())


@pytest.mark.parametrize("by", BY)
def test_units_and_their_groups_are_counted_in_one_cell_each(by):
    rows = rows_of(1)
    with session_of(rows) as session:
        found = session.profile("t", MANY, by=BY[by])
    ceiling = {"listed twice": 24}.get(by, 1000)
    assert found.rungs == ladder(ceiling)  # in no more groups than there are, where that is public
    held = np.minimum(groups_by_hand(rows, BY[by]), ceiling)
    cells = np.searchsorted(found.rungs, held)
    assert np.allclose(found.units, np.bincount(cells, minlength=len(found.rungs)))
    sums = np.bincount(cells, weights=held, minlength=len(found.rungs))
    assert np.allclose(found.rows, sums, rtol=0, atol=ceiling / 100)


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
def test_a_unit_moves_both_measurements_by_what_is_claimed(adjacency):
    """Whatever its rows and groups: one with all groups and many rows moves no more than one with one."""
    others = [(1, "a", 0, "x"), (2, "a", 0, "x"), (2, "b", 1, "x")]
    one = [(9, "a", 0, "x")] * 50
    all_ = [(9, g, 0, "x") for g in LETTERS for _ in range(30)]
    sides = {"add-remove": [([], one), ([], all_)], "exchange": [(one, all_)]}[adjacency]
    most = np.zeros(2)
    for before, after in sides:
        seen = []
        for own in (before, after):
            with session_of(others + own, adjacency=adjacency) as session:
                found = session.profile("t", MANY, by="g")
                (question, _), *_ = session.profiled.values()
            weights = np.array([WEIGHT // rung for rung in found.rungs])
            seen.append(np.array([np.rint(found.units), found.rows * weights]))
        claims = np.array([tool.sensitivity.l1 for tool in instruments(question)])
        moved = np.abs(seen[0] - seen[1]).sum(axis=1)
        assert (moved <= claims * 1.01).all()  # a little of the noise is left
        most = np.maximum(most, moved)
    assert (most >= claims * 0.99).all()


def test_its_noise_is_what_its_price_says():
    with session_of(rows_of(2)) as session, seeded("groups"):
        found = session.profile("t", 1, by="g")
        (receipt,) = session.releases()
    assert receipt.loss.pure == 1
    assert receipt.purpose.spender == "profile"
    assert [noise.scale for noise in found.noise] == [4.0, pytest.approx(4 / 3, rel=1e-5)]


def test_it_is_priced_by_itself_and_kept(tmp_path):
    place = tmp_path / "d.ledger"
    with session_of(rows_of(3), ledger=place, epsilon=10) as session:
        first = session.profile("t", 1, by=["g", "h"])
        assert np.array_equal(session.profile("t", 1, by=["h", "g"]).units, first.units)
        assert session.balance().spent == 1
        for spent, by in ((2, None), (3, [sf.col("city").str.to_uppercase()])):
            session.profile("t", 1, by=by)
            assert session.balance().spent == spent
    with session_of(rows_of(3), ledger=place, epsilon=10, version="2") as session:
        assert profiles.known_profile(session, session.tables["t"]) is None
        session.profile("t", 1, by=["g", "h"])
        assert session.balance().spent == 4


def asked(session, by="g", bounding="choose", text="COUNT(*) AS n, COUNT(DISTINCT who) AS u", epsilon=10**5):
    query = session.sql(f"SELECT {by} AS k, {text} FROM t GROUP BY 1")
    return query.release(epsilon=epsilon if by == "g" else 500, delta="1e-6", bounding=bounding)


def truth(rows, by="g"):
    place = {"g": 1, "city": 3}[by]
    kept = [row for row in rows if row[0] is not None and row[place] is not None]
    counts = Counter(row[place] for row in kept)
    units = Counter(key for _, key in {(row[0], row[place]) for row in kept})
    return {key: (counts[key], units[key]) for key in counts}


@pytest.mark.parametrize(
    ("by", "bounding", "limits"),
    [("g", "reweight", (2, 12)), ("city", "choose", (1, 12))],
)
def test_intervals_hold_and_are_narrower_with_it(by, bounding, limits):
    rows = rows_of(1)
    with session_of(rows, max_groups=limits[0], max_rows=limits[1], ceiling=200) as session:
        session.profile("t", MANY)
        plain = asked(session, by, bounding)
        session.profile("t", MANY, by=by)
        better = asked(session, by, bounding)
    assert better.groups is not None
    assert better.free
    known, seen = truth(rows, by), 0
    ends, before = (release.interval(SURE).to_pydict() for release in (better, plain))
    for at, key in enumerate(ends["k"]):
        n, u = known.get(key, (0, 0))
        assert ends["n_low"][at] - 1e-6 <= n <= ends["n_high"][at] + 1e-6
        assert ends["u_low"][at] - 1e-6 <= u <= ends["u_high"][at] + 1e-6
        assert ends["u_high"][at] < before["u_high"][at] - 10  # groups, not rows, are what is cut of units
        if bounding == "choose":
            assert ends["n_high"][at] < before["n_high"][at]
        seen += 1
    assert seen >= 5


def test_units_are_bounded_without_a_profile_of_rows():
    rows = rows_of(5)
    with session_of(rows, max_groups=2) as session:
        session.profile("t", MANY, by="g")
        release = asked(session)
    ends = release.interval(SURE).to_pydict()
    assert all(math.isfinite(end) for end in ends["u_high"])
    assert not any(math.isfinite(end) for end in ends["n_high"])
    assert all(
        low - 1e-6 <= truth(rows)[k][1] <= high + 1e-6
        for k, low, high in zip(ends["k"], ends["u_low"], ends["u_high"], strict=True)
    )


def test_a_profile_of_other_keys_table_or_version_is_not_used(tmp_path):
    rows = rows_of(6)
    place = tmp_path / "d.ledger"
    two = [table_of(rows), table_of(rows, name="s")]
    with sf.Session(*two, budget=sf.Budget(10**10, "1e-3"), ledger=place) as session:
        for table, by in (("t", ["g", "h"]), ("s", "g")):
            session.profile(table, MANY, by=by)
        assert asked(session).groups is None
        session.profile("t", MANY, by="g")
        assert asked(session).groups is not None
        narrow = session.sql("SELECT g AS k, COUNT(DISTINCT who) AS u FROM t WHERE h = 1 GROUP BY 1")
        assert narrow.release(epsilon=9).groups is not None
        assert narrow.release(epsilon=9, profile=False).groups is None
    two = [table_of(rows, version="2"), table_of(rows, name="s")]
    with sf.Session(*two, budget=sf.Budget(10**10, "1e-3"), ledger=place) as session:
        assert asked(session).groups is None


def exact(numbers, ceiling):
    """The profile of these numbers without noise to speak of."""
    rungs = np.array(ladder(ceiling))
    cells = np.searchsorted(rungs, np.minimum(numbers, ceiling))
    weighted = np.bincount(cells, weights=numbers, minlength=len(rungs)) * (WEIGHT // rungs)
    noises = (Noise("laplace", 1e-9), Noise("laplace", 1e-9 * WEIGHT))
    return Profile.of(ceiling, np.bincount(cells, minlength=len(rungs)), weighted, noises)


def lost(unit, k, r):
    """The most rows that a choice of k groups takes from a unit with these numbers of rows in its groups."""
    kept = min(
        sum(min(rows, r) for rows in chosen) for chosen in itertools.combinations(unit, min(k, len(unit)))
    )
    return sum(unit) - kept


@pytest.mark.parametrize(("k", "each"), [(1, 1), (1, 5), (1, 20), (2, 3), (2, 20), (3, 2), (3, 5)])
def test_the_bound_holds_for_the_worst_choice_of_groups(k, each):
    """Any units, whichever of their groups are kept: the lemma, without noise."""
    draw = np.random.default_rng(k * each)
    unit = sf.PrivacyUnit("who", max_groups=k, max_rows=k * each)
    measured = SimpleNamespace(unit=unit, keys=("g",), bounding=Choose())
    for _ in range(40):
        units = [list(draw.integers(1, draw.choice([2, 30]), draw.integers(1, 7))) for _ in range(6)]
        rows, groups = exact([sum(own) for own in units], 1000), exact([len(own) for own in units], 8)
        bound = intervals._rows_left_out(measured, rows, groups, 1e-6)
        assert bound >= sum(lost(own, k, each) for own in units) - 1e-3


def test_planted_bug_units_in_too_many_groups_that_are_forgotten_are_seen(monkeypatch):
    monkeypatch.setattr(Profile, "most_units", lambda self, limit, risk: 0.0)
    with pytest.raises(AssertionError):
        test_the_bound_holds_for_the_worst_choice_of_groups(1, 20)


def test_more_units_than_are_above_a_limit_for_all_limits_at_once():
    draw, risk, times, scale = np.random.default_rng(5), 0.05, 500, 4.0
    rungs = np.array(ladder(24))
    true = draw.integers(0, 30, len(rungs))
    missed = short = 0
    for noise in draw.laplace(scale=scale, size=(times, len(rungs))):
        profile = Profile(tuple(rungs.tolist()), true + noise, true * 1.0, (Noise("laplace", scale),) * 2)
        above = {limit: true[rungs > limit].sum() for limit in (0, 1, 3, 5, 9, 20)}
        missed += any(profile.most_units(limit, risk) < number for limit, number in above.items())
        short += any(profile.units[rungs > limit].sum() + scale < n for limit, n in above.items())
    assert missed <= times * risk + 4 * np.sqrt(times * risk)
    assert short > 2 * times * risk  # planted: the noise of one cell is not enough
    assert profile.most_units(24, risk) == 0
