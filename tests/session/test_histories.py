"""What a series counts of one unit, over neighbouring histories of its table: exact, before any noise."""

from __future__ import annotations

import pytest

from histories import KINDS, examine
from sfumato.plan.expressions.tree import Column
from sfumato.plan.prices import bundle
from sfumato.session.series import pricing, stream
from sfumato.session.series.roster import Roster
from sfumato.sql.write import sources


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_moves_a_series_no_further_than_is_paid_for(kind):
    found = examine(kind, 0, 2)
    assert found.broken == []
    assert found.steps > 0
    assert (found.pairs > 0) == KINDS[kind].found


@pytest.mark.stats
@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_moves_a_series_no_further_than_is_paid_for_by_the_hundred(kind):
    found = examine(kind, "many", 100)
    assert found.broken == []
    assert found.reached > 0.5


# ── planted bugs

_stepped, _touches = pricing.stepped, stream.touches_of


def _step_twice(plan, place, calendar, step, many=1):
    """Each step is read for two points, a late row for both."""
    return _stepped(plan, place, calendar, step // 2, many)


_admit, _hiding = Roster.admit, pricing.hiding


def _admit_more(roster, units, more):
    roster.most += more
    try:
        return _admit(roster, units)
    finally:
        roster.most -= more


def _forgetful(roster, units):
    here = {roster._name(unit) for unit in units}
    for name in [name for name in roster._steps if name not in here]:
        del roster._steps[name]
    return _admit(roster, units)


MUTANTS = {
    "a step is read for two points": ("rows", "is in 2 steps", [(pricing, "stepped", _step_twice)]),
    "one step too few for a window": (
        "weeks by days",
        "is in 7 steps, claimed are 6",
        [(stream, "touches_of", lambda *facts: _touches(*facts) - 1)],
    ),
    "exchange as if it were addition": (
        "rows, exchanged",
        "is in 2 steps, claimed are 1",
        [(pricing, "is_exchange", lambda _: False)],
    ),
    "a window by arrival": (
        "days by weeks",
        "moves by",
        [(sources, "window_of", lambda *_: Column("arrived"))],
    ),
    "the one row of a unit is taken for a row": (
        "people on their latest day",
        "steps, claimed are 1",
        [(stream, "steps_of", lambda *_: 1)],
    ),
    "selection paid for one step of a week": (
        "found by weeks",
        "pairs, claimed are 2",
        [(stream, "steps_of", lambda *_: 1)],
    ),
    "groups found by rows of another step": (
        "found by rows",
        "is in 2 pairs, claimed are 1",
        [(pricing, "stepped", _step_twice)],
    ),
    "groups found by exchange as by addition": (
        "found by rows, exchanged",
        "is in 2 pairs, claimed are 1",
        [(bundle, "is_exchange", lambda _: False)],
    ),
    "one step too many": (
        "people in 2 steps",
        "is in 3 steps, claimed are 2",
        [(Roster, "admit", lambda self, units: _admit_more(self, units, 1))],
    ),
    "who has counted is known to one process": (
        "people in 1 step",
        "steps, claimed are 1",
        [(Roster, "follow", lambda *_: None)],
    ),
    "who is not there for a step is forgotten": (
        "people in 2 steps",
        "steps, claimed are 2",
        [(Roster, "admit", lambda self, units: _forgetful(self, units))],
    ),
    "the number of those who count is paid by nobody": (
        "people in 1 step",
        "the whole costs",
        [(pricing, "hiding", lambda horizon, touches, rho: _hiding(horizon, touches, 9 * rho))],
    ),
    "exchanged people count as often as one": (
        "people in 2 steps, exchanged",
        "steps, claimed are 2",
        [(pricing, "is_exchange", lambda _: False)],
    ),
    "steps of people as of rows": (
        "people",
        "claimed are 1",
        [(stream, "touches_of", lambda *_: 1)],
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_bug_is_found(name, monkeypatch):
    kind, words, patches = MUTANTS[name]
    for owner, what, new in patches:
        monkeypatch.setattr(owner, what, new)
    for seed in range(12):
        if any(words in each for each in examine(kind, seed, 1).broken):
            return
    pytest.fail("no neighbour has shown it")
