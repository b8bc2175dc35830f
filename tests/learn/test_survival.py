"""Survival curves: right without noise, total on odd tables, and planted bugs are seen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.learn_coverage_survival import Case, held, rejected

import sfumato as sf
from sfumato.errors import InvalidParameter, InvalidValue, NotCertified
from sfumato.learn import KaplanMeier
from sfumato.learn.survival import _cells, _grid, kaplan_meier
from sfumato.learn.survival._cells import counting
from sfumato.learn.survival._curve import Curve
from sfumato.learn.survival._grid import grid
from sfumato.learn.survival._logrank import logrank
from sfumato.learn.survival._ratio import hazard_ratio
from sfumato.random import simulation
from sfumato.testing import seeded
from sfumato.testing.fits import check_fit


def people(seed, size, *, rate=0.15):
    chance = simulation(seed)
    time, left = chance.exponential(1 / rate, size), np.minimum(chance.exponential(16, size), 20)
    return np.minimum(time, left), time <= left


def curve(cells, time, event, noise=1e-9, chance=None, **options):
    how = counting(len(cells))
    counts = np.bincount(cells.cells(cells.coded(time, event)), minlength=2 * len(cells) + 1)
    off = 0 if chance is None else noise * (how.spread @ chance.normal(size=len(counts)))
    return Curve(counts + off, noise * how.spread, discrete=options.get("discrete", False))


def slow_kaplan_meier(time, event, at):
    found = 1.0
    for moment in np.unique(time[event & (time <= at)]):
        found *= 1 - (event & (time == moment)).sum() / (time >= moment).sum()
    return found


@pytest.mark.parametrize("seed", range(4))
def test_discrete_times_give_kaplan_and_meiers_own_estimate(seed):
    time, event = people(seed, 300)
    time = np.ceil(time)
    cells = grid(list(range(1, 11)), None, None)
    found = curve(cells, time, event, discrete=True).survival
    assert found == pytest.approx([slow_kaplan_meier(time, event, at) for at in cells.edges], abs=1e-6)


def test_fine_cells_come_close_to_kaplan_and_meiers_estimate():
    time, event = people(1, 600)
    cells = grid(None, 10, 40)
    found = curve(cells, time, event).survival
    assert found == pytest.approx([slow_kaplan_meier(time, event, at) for at in cells.edges], abs=2e-3)


def slow_logrank(time, event, group):
    excess = variance = 0.0
    for moment in np.unique(time[event]):
        risk, mine = (time >= moment), (time >= moment) & group
        died = (event & (time == moment)).sum()
        share = mine.sum() / risk.sum()
        excess += (event & (time == moment) & group).sum() - died * share
        if risk.sum() > 1:
            variance += died * share * (1 - share) * (risk.sum() - died) / (risk.sum() - 1)
    return excess**2 / variance


def test_the_log_rank_statistic_is_that_of_slow_arithmetic():
    time, event = people(2, 600)
    time = np.minimum(np.ceil(time), 10)
    event &= time < 10
    group = simulation(3).random(600) < 0.4
    cells = grid(list(range(1, 10)), None, None)
    pair = [curve(cells, time[part], event[part], discrete=True) for part in (~group, group)]
    assert logrank(pair).statistic == pytest.approx(slow_logrank(time, event, group), rel=0.02)


@pytest.mark.parametrize("until", [7.0, 7.05, 7.5, 7.95])
def test_all_leaving_at_one_moment_is_no_trap(until):
    """A study that ends within a cell: its people are at risk for an unknown part of it."""
    size, cells = 50_000, grid(None, 10, 20)
    time = simulation(6).exponential(1 / 0.15, size)
    ended = curve(cells, np.minimum(time, until), time <= until)
    truth = np.exp(-0.15 * cells.edges)
    for low, high in (ended.pointwise(0.9999), ended.simultaneous(0.9999)):
        assert (low <= truth).all()
        assert (truth <= high).all()
    others = simulation(7).exponential(1 / 0.15, size)
    followed = curve(cells, np.minimum(others, 10), others <= 10)
    assert logrank([ended, followed]).p_value > 1e-3


ODD = {
    "nobody": ([], []),
    "no events": ([1.0, 2.0, 99.0], [0, 0, 0]),
    "all at time 0": ([0.0] * 20, [1] * 20),
    "before 0": ([-5.0, 3.0], [1, 1]),
    "all beyond the horizon": ([50.0] * 20, [1] * 20),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("groups", [None, ["a", "b"]])
def test_odd_tables_give_a_curve(name, groups):
    time, event = ODD[name]
    model = KaplanMeier(epsilon=1, delta=1e-6, horizon=4, bins=3, groups=groups)
    model.fit(None if groups is None else ["a"] * len(time), (np.array(time), np.array(event)))
    curves = np.atleast_2d(model.survival_)
    assert ((curves >= 0) & (curves <= 1)).all()
    assert (np.diff(curves, axis=1) <= 0).all()
    with pytest.raises(InvalidParameter, match="Too few people"):
        model.band(group=None if groups is None else "b")


def test_targets_come_in_every_usual_form():
    time, event = np.array([1.0, 2.5, 7.0]), np.array([True, False, True])
    records = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
    cells = grid([2, 4], None, None)
    expected = cells.coded(time, event).tolist()
    frame = pa.table({"t": time, "e": event})
    for form in ((time, event), records, frame, np.column_stack([time, event]), frame.to_pandas()):
        assert cells.coded(*_grid.pair(form, 3)).tolist() == expected
    assert cells.cells(np.array(expected)).tolist() == [0, 3, 4]
    for wrong in ((time, event[:2]), (time, [0, 1, 2]), None, (time * np.nan, event)):
        with pytest.raises(InvalidValue):
            _grid.pair(wrong, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Say what the times are"),
        ({"times": [1, 1]}, "rising"),
        ({"times": [0, 1]}, "above 0"),
        ({"horizon": 5, "bins": 0}, "bins must be"),
        ({"horizon": 5, "groups": "ab"}, "list of values"),
        ({"times": [1, 10**9]}, "wider"),
    ],
)
def test_bad_declarations_are_refused(options, words):
    with pytest.raises(InvalidParameter, match=words):
        KaplanMeier(epsilon=1, delta=1e-6, **options).fit(None, ([1.0], [1]))


def test_a_session_pays_for_curves():
    time, event = people(4, 4000)
    arm = np.where(simulation(5).random(4000) < 0.5, "old", "new")
    table = sf.PrivateTable(
        "patients",
        source=pa.table({"arm": arm, "years": time, "died": event.astype(int)}),
        unit=sf.PrivacyUnit.row(),
        schema={"arm": sf.Enum("old", "new"), "years": sf.Float(0, 30), "died": sf.Int(0, 1)},
    )
    session = sf.Session(table, budget=sf.Budget(epsilon=20, delta=1e-5))
    model = KaplanMeier(epsilon=8, delta=1e-6, horizon=10, bins=10, groups=["old", "new"])
    alone = KaplanMeier(epsilon=8, delta=1e-6, horizon=10, bins=10)
    assert "the target alone" in str(
        alone.quote(session, "SELECT years, died FROM patients", target=("years", "died"))
    )
    with seeded(1):
        model.fit(session, "SELECT arm, years, died FROM patients", target=("years", "died"))
        alone.fit(session, "SELECT years, died FROM patients", target=("years", "died"))
    assert model.receipt is not None
    for found in (*model.survival_, alone.survival_):
        assert found == pytest.approx(np.exp(-0.15 * model.times_), abs=0.05)
    low, high = alone.median_interval()
    assert low < np.log(2) / 0.15 < high
    with pytest.raises(InvalidParameter, match="Name both"):
        model.fit(session, "SELECT arm, years, died FROM patients", target="years")


def _whole_parts(self, cells, groups, units, several):
    return TOTAL(self, cells, groups, None, several)


def _two_cells(self, cells, groups, units, several):
    both = [np.concatenate([part, part]) for part in (cells, groups)]
    return TOTAL(self, *both, None if units is None else np.concatenate([units, units]), several)


def _by_true_count(self, cells, groups, units, several):
    honest = TOTAL(self, cells, groups, units, several)
    return honest._replace(values=honest.values // max(1, len(cells)) * 1000)


TOTAL = _cells.Counting.total


@pytest.mark.parametrize("bug", [_whole_parts, _two_cells, _by_true_count])
def test_a_planted_bug_is_seen(monkeypatch, bug):
    """The clip of units left out; somebody in two cells; the true number of rows as normaliser."""
    monkeypatch.setattr(_cells.Counting, "total", bug)
    seen = 0
    for example in kaplan_meier.examples():
        with seeded(0):
            try:
                check_fit(example)
            except AssertionError:
                seen += 1
    assert seen


def test_a_hazard_ratio_of_many_people_is_the_true_one():
    """On a coarse grid too, with other follow-up in each group; and it is that of the other turned over."""
    cells, size = grid(None, 10, 5), 400_000
    slow, fast = simulation(8).exponential(10, size), simulation(9).exponential(4, size)
    pair = [curve(cells, np.minimum(fast, 7), fast <= 7), curve(cells, slow, slow >= 0)]
    ratio, low, high, cells_used = hazard_ratio(*pair, 0.99)
    assert ratio == pytest.approx(2.5, rel=0.01)
    assert low < 2.5 < high < 1.05 * low
    assert cells_used == 3
    turned = hazard_ratio(*pair[::-1], 0.99)
    assert turned[:3] == pytest.approx((1 / ratio, 1 / high, 1 / low))


def test_a_hazard_ratio_is_refused_where_too_little_is_seen():
    time = simulation(10).exponential(5, 4000)
    model = KaplanMeier(epsilon=1, delta=1e-6, horizon=10, bins=5, groups=["old", "new", "few"])
    model.fit(["old", "new"] * 1990 + ["few"] * 20, (time, np.ones(4000)))
    assert str(model.hazard_ratio("new", over="old")).startswith("Hazard ratio ")
    for pair in (("few", "old"), ("old", "few")):
        with pytest.raises(NotCertified, match="too few events"):
            model.hazard_ratio(pair[0], over=pair[1])
    with pytest.raises(InvalidParameter, match="two different"):
        model.hazard_ratio("old", over="old")
    with pytest.raises(InvalidParameter, match="declared groups"):
        model.hazard_ratio("old", over="none")


ROOM = 5 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.stats
@pytest.mark.parametrize("case", [("increasing", "none", 500, 1.0), ("constant", "all at 7.3", 2000, 10.0)])
def test_bands_hold_as_often_as_they_say(case):
    hazard, leaving, size, epsilon = case
    found = held(Case(hazard, (leaving,), 10, size, epsilon), 400, seed=5)
    assert min(found.points.min(), found.whole, found.median) > 0.94 - ROOM


@pytest.mark.stats
def test_equal_hazards_are_rejected_no_more_often_than_said():
    """At a number at risk that hovers about the least that counts: where to stop is then chosen by noise."""
    case = Case("some are cured", ("none", "none"), 50, 10_000, 0.1, (0.8, 0.2))
    assert rejected(case, 400, seed=5)[1] < 0.06
