"""Fits of two linked tables keep their claim on neighbours that differ by a parent with its children."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from forged_answers import ANSWERS, BROAD, COLUMNS, NARROW, cells_of, forging, picking
from sfumato.fits.meter import price
from sfumato.random import simulation
from sfumato.synth import METHODS, linked
from sfumato.synth.linked_examples import LinkedFit, family_rows, linked_fits, linked_plan_of
from sfumato.testing.fits import check_synth
from sfumato.testing.mutants.linked import LINKED_MUTANTS, planted_in_linked
from sfumato.testing.stream import seeded

NAMED = {fit.name: fit for fit in linked_fits()}
CROWD, ALONE, SWAP = NAMED
LISTED = [name for name in BROAD if name not in ("note", "sure")]


@pytest.mark.parametrize("name", NAMED)
def test_questions_stay_within_their_claims_on_neighbours(name):
    with seeded(name):
        check_synth(NAMED[name])


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("children as if each were a unit", CROWD),
        ("children as if there were two at most", CROWD),
        ("children counted for parents", CROWD),
        ("the exact number of parents", ALONE),
        ("the exact number of parents", SWAP),
    ],
)
def test_a_planted_bug_is_seen(mutant, name):
    with seeded(f"{mutant}: {name}"), planted_in_linked(mutant), pytest.raises(AssertionError):
        check_synth(NAMED[name])


def test_all_mutants_are_named_above():
    assert len(LINKED_MUTANTS) == 4


# ── any families, any answers


def family(draw, plan, most):
    """A parent with any number of children, all alike or not."""
    parent = [cells_of(draw, column, 1)[0] for column in plan.link.parents]
    many = int(draw.choice([0, 1, most]))
    columns = [cells_of(draw, column, many) for column in plan.link.children]
    return parent, [[column[at] for column in columns] for at in range(many)]


def neighbours(draw, method):
    broad = draw.integers(3) == 0  # a column that is held in bins
    names = [str(name) for name in draw.permutation(NARROW)[: 3 if broad else 4]]
    names = [str(name) for name in draw.permutation([*names, *([str(draw.choice(LISTED))] if broad else [])])]
    cut = int(draw.integers(1, 4))
    first, second = ({name: COLUMNS[name] for name in part} for part in (names[:cut], names[cut:]))
    most = int(draw.choice([1, 3, 20]))
    adjacency = str(draw.choice(["add-remove", "exchange"]))
    plan = linked_plan_of(first, second, most=most, adjacency=adjacency, method=method)
    families = [family(draw, plan, most) for _ in range(int(draw.choice([0, 1, 2, 12])))]
    one, other = (family(draw, plan, most) for _ in range(2))
    tables = [[*families, one], [*families, other] if plan.wanted.exchange else families]
    left, right = (family_rows(plan, rows) for rows in (tables if draw.integers(2) else tables[::-1]))
    return LinkedFit("any", plan, left, right, price(int(draw.choice([1, 20, 300])), "1e-5"))


def check(method, seed):
    draw = simulation(seed)
    fit, pick = neighbours(draw, method), picking(draw)
    forge = forging(ANSWERS[seed % len(ANSWERS)], draw)
    with np.errstate(all="ignore"), seeded(f"linked {method} {seed}"):  # as fits on a session run
        check_synth(fit, forge=forge, pick=pick)


@pytest.mark.parametrize("method", METHODS)
def test_claims_hold_for_any_answers(method):
    check(method, 8 + list(METHODS).index(method))


@pytest.mark.stats
@pytest.mark.parametrize("method", METHODS)
def test_claims_hold_for_any_answers_and_many_tables(method):
    for seed in range(100, 150):
        check(method, seed)


def test_claims_hold_for_tables_as_an_engine_reads_them(monkeypatch):
    """Somebody has twice in the table of parents, more children than may be read, and broken ones."""
    seen = []
    monkeypatch.setattr(
        linked, "linked_released", lambda plan, read, *more: seen.append((plan, read)) or _stop()
    )
    people = pa.table({"who": [1, 2, 2, 3], "age": [30, 40, 41, None]})
    visits = pa.table({"who": [1, *[2] * 9, 3, 9, 2], "kind": ["a", *"abcabcabc", "c", "a", None]})
    for keeps in (people, people.filter(np.array([True, False, False, True]))):
        tables = (
            sf.PrivateTable(
                "people",
                source=keeps,
                unit=sf.PrivacyUnit("who", max_rows=1),
                schema={"who": sf.Int(), "age": sf.Int(0, 99)},
            ),
            sf.PrivateTable(
                "visits",
                source=visits,
                unit=sf.PrivacyUnit.via("people", on="who", max_rows=4),
                schema={"who": sf.Int(), "kind": sf.Enum("a", "b", "c", nullable=False)},
            ),
        )
        with (
            sf.Session(*tables, budget=sf.Budget(1, "0.01")) as session,
            pytest.raises(sf.errors.EngineFailed),
        ):
            sf.synth.tables(session, ["people", "visits"], epsilon=1, delta="0.001")
    (plan, left), (_, right) = seen
    assert max(np.bincount(left.units)) == 4
    assert len(np.unique(left.units)) == 3  # a visit of nobody is not read
    monkeypatch.undo()
    with seeded("read"):
        check_synth(LinkedFit("read", plan, left, right, price(1, "0.01")))


def _stop():
    raise RuntimeError("seen")
