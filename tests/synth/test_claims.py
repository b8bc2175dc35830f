"""Fits of synthetic tables keep their claim on neighbours, whatever the noise says; planted bugs are seen."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import sfumato as sf
from forged_answers import ANSWERS, BROAD, COLUMNS, NARROW, cells_of, forging, picking
from sfumato.audit.registry import Subject, examined, subjects
from sfumato.errors import InvalidParameter
from sfumato.fits.meter import price
from sfumato.fits.searching import search_price
from sfumato.random import simulation
from sfumato.synth import METHODS
from sfumato.synth.fit_examples import SynthFit, fits, plan_of, read_of
from sfumato.testing.fits import check_synth
from sfumato.testing.mutants.synth import SYNTH_MUTANTS, planted_in_synth
from sfumato.testing.stream import seeded

NAMED = {fit.name: fit for fit in fits()}
ONE, MST = "synth independent: one more", "synth mst: one more"
ADAPTIVE, FIXED = "synth adaptive: a triple, one more", "synth fixed: a triple, one more"
TOTALS = "synth adaptive: totals and a rule that rows break, one more"
BROADER = "synth wide: three columns, one more"
WIDE, SWAP = "synth mst: many cells, somebody with three rows", "synth adaptive: two rows exchanged"
TEXTS = "synth mst: texts, somebody with three of which two are nobody else's"
OTHERS, REPEATED = "synth independent: texts, exchanged", "synth fixed: texts, somebody with one three times"
CASES = [
    *[("the exact number of rows", name) for name in (ONE, MST, ADAPTIVE, FIXED, BROADER, WIDE)],
    *[("single columns measured as if they were skipped", name) for name in (MST, ADAPTIVE, BROADER)],
    *[
        (mutant, TOTALS)
        for mutant in ("totals times the exact number of rows", "rules that some row breaks left out")
    ],
    *[("half of what a row moves scores by", name) for name in (MST, ADAPTIVE, BROADER, SWAP)],
    ("scores as if a unit had one row", WIDE),
    ("counts as if a unit had one row", WIDE),
    ("stretches of cells that overlap", WIDE),
    ("bins by exact counts", WIDE),
    ("bins between the least and the greatest row", WIDE),
    *[("half the noise", name) for name in (ONE, FIXED, WIDE)],
    ("sizes of units counted by rows", WIDE),
    *[("texts of one unit", name) for name in (TEXTS, OTHERS)],
    ("texts as if a unit had one", TEXTS),
    ("texts counted by rows", REPEATED),
    ("texts in the order of their counts", TEXTS),
]
UNITS = (
    sf.PrivacyUnit.row(),
    sf.PrivacyUnit.row(adjacency="exchange"),
    sf.PrivacyUnit("who", max_rows=3),
    sf.PrivacyUnit("who", max_rows=2, adjacency="exchange"),
)
SEVERAL = {  # whatever the table has: totals are declared, and these are as wrong as can be
    "few": {0: 1, 1: 500, 2: 0, 3: 499},
    "sex": {"F": 1000, "M": 0, None: 0},
    "on": {True: 1, False: 999},
    "day": {None: 0} | {datetime.date(2024, 1, day): 200 for day in range(1, 6)},
    "fixed": {7: 600, None: 400},
    "only": {"x": 1000},
}
RULES = (  # that can all be kept together; the rows that are drawn break them as they like
    ({"few"}, "few < 3"),
    ({"many"}, "many >= 0 AND many < 400"),
    ({"pay"}, "pay > 2.5"),
    ({"day"}, "day > DATE '2024-01-02'"),
    ({"few", "sex"}, "few > 0 OR sex = 'F'"),
    ({"few", "day"}, "day < DATE '2024-01-05' OR few = 2"),
    ({"few", "on"}, sf.synth.Never({"few": 1, "on": True})),
    ({"sex", "on"}, sf.synth.Determines("sex", "on", {"F": True})),
)


@pytest.mark.parametrize("name", NAMED)
def test_questions_stay_within_their_claims_on_neighbours(name):
    with seeded(name):
        check_synth(NAMED[name])


def test_all_methods_and_mutants_are_tried():
    assert {fit.plan.method.name for fit in NAMED.values()} == set(METHODS)
    assert {mutant for mutant, _ in CASES} == set(SYNTH_MUTANTS)


@pytest.mark.parametrize(("mutant", "name"), CASES)
def test_a_planted_bug_is_seen(mutant, name):
    with seeded(f"{mutant}: {name}"), planted_in_synth(mutant), pytest.raises(AssertionError):
        check_synth(NAMED[name])


@pytest.mark.stats
@pytest.mark.parametrize(
    ("mutant", "name", "samples"),
    [
        ("the exact number of rows", ONE, 500),
        ("the exact number of rows", ADAPTIVE, 500),
        ("bins by exact counts", WIDE, 500),
        ("half the noise", ONE, 4000),
    ],
)
def test_samples_alone_show_a_planted_bug(mutant, name, samples):
    registered = next(each for each in subjects() if each.name == name)
    subject = Subject(name, "fit", registered.open)  # as many samples as are asked for
    with seeded(f"samples: {mutant}: {name}"):
        with planted_in_synth(mutant):
            (planted,) = examined(subject, samples=samples, share=0.9999)
        (honest,) = examined(subject, samples=samples, share=1 - 1e-9)
    assert (planted.verdict, honest.verdict) == ("broken", "holds")


# ── any table, any answers


def neighbours(draw, method):
    """A fit and two tables that differ by one unit."""
    unit = UNITS[draw.integers(len(UNITS))]
    names = [str(name) for name in draw.permutation(NARROW)[: draw.integers(0, 4)]]
    names += [str(draw.choice(BROAD))] if not names or draw.integers(3) == 0 else []
    workload = [names[:3], names[-1:]] if draw.integers(2) else None
    rules = [rule for needed, rule in RULES if needed <= set(names) and draw.integers(4)]
    totals = [sf.synth.Totals(name, SEVERAL[name]) for name in names if name in SEVERAL and draw.integers(2)]
    ask = {"columns": names, "method": method, "workload": workload}
    try:
        plan = plan_of(unit, COLUMNS, **ask, constraints=[*rules, *totals])
    except InvalidParameter:  # the rules do not allow these totals
        plan = plan_of(unit, COLUMNS, **ask, constraints=totals if draw.integers(2) else rules)
    size, most = int(draw.choice([0, 1, 2, 17, 60])), plan.wanted.max_rows
    whose = np.arange(size) // most if draw.integers(2) else np.arange(size)
    rows = [cells_of(draw, column, size) for column in plan.columns]

    def with_one_more(many):
        more = [cells_of(draw, column, many) for column in plan.columns]
        units = [*whose, *[size] * many] if plan.wanted.has_units else None
        return read_of([[*held, *added] for held, added in zip(rows, more, strict=True)], units)

    pair = [with_one_more(1 if plan.wanted.exchange else 0), with_one_more(most)]
    left, right = pair if draw.integers(2) else pair[::-1]
    epsilon = int(draw.choice([1, 20, 300]))
    noise, rest, risk = search_price(epsilon, "1e-5")
    return SynthFit("any", plan, left, right, price(noise, rest), risk)


def check(method, seed):
    draw = simulation(seed)
    fit, pick = neighbours(draw, method), picking(draw)
    forge = forging(ANSWERS[seed % len(ANSWERS)], draw)
    with np.errstate(all="ignore"), seeded(f"{method} {seed}"):  # as fits on a session run
        check_synth(fit, forge=forge, pick=pick)


@pytest.mark.parametrize("method", METHODS)
def test_claims_hold_for_any_answers(method):
    for seed in range(2):
        check(method, 7 + seed + 2 * list(METHODS).index(method))


@pytest.mark.stats
@pytest.mark.parametrize("method", METHODS)
def test_claims_hold_for_any_answers_and_many_tables(method):
    for seed in range(100, 170):
        check(method, seed)
