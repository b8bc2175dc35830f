"""Fits of two linked tables keep their claim on neighbours that differ by a parent with its children."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
NAMES = ["people", "visits"]
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


# ── any two tables, as an engine reads them

LINKS = ("via", "both named", "via another column", "via two columns", "via two tables")
SCHEMA = {"who": sf.Int(), "card": sf.Int(), "part": sf.Int()}
INTEGERS = ("who", "card", "part", "age")


def drawn(draw, many, **columns):
    """Rows with keys of hardly anybody: several of one, some of nobody, some missing."""
    keys = {name: [int(key) for key in draw.integers(0, top, many)] for name, top in
            (("who", 6), ("card", 5), ("part", 2))}  # fmt: skip
    held = keys | {
        name: [some[draw.integers(len(some))] for _ in range(many)] for name, some in columns.items()
    }
    kinds = {name: pa.int64() if name in INTEGERS else None for name in held}
    lost = {name: draw.random(many) < (0.1 if name in keys else 0.0) for name in held}
    return pa.table({name: pa.array(some, kinds[name], mask=lost[name]) for name, some in held.items()})


def declared(link, people, visits, roots, *, most, adjacency, nullable):
    alike = {"adjacency": adjacency}
    own, more = sf.PrivacyUnit("who", max_rows=1, **alike), []
    on = {"via another column": {"card": "card"}, "via two columns": {"card": "card", "part": "part"}}
    child = sf.PrivacyUnit.via("people", on=on.get(link, "who"), max_rows=most, **alike)
    if link == "both named":
        child = sf.PrivacyUnit("who", max_rows=most, **alike)
    if link == "via two tables":
        own = sf.PrivacyUnit.via("roots", on={"who": "card"}, max_rows=1, **alike)
        unit = sf.PrivacyUnit("who", max_rows=2, **alike)
        more = [sf.PrivateTable("roots", source=roots, unit=unit, schema=SCHEMA)]
    parents = {"age": sf.Int(0, 40, nullable=nullable), "sex": sf.Enum("F", "M", nullable=nullable)}
    children = {"kind": sf.Enum("a", "b", nullable=nullable), "cost": sf.Float(0, 100, nullable=nullable)}
    return (
        sf.PrivateTable("people", source=people, unit=own, schema=SCHEMA | parents),
        sf.PrivateTable(
            "visits", source=visits, unit=child, schema=SCHEMA | children,
            dataset="people" if link == "both named" else None,
        ),
        *more,
    )  # fmt: skip


def without(link, tables, unit):
    """The same where a unit never was; what pointed to it is nobody's now."""
    gone = {"via two tables": ("roots",), "both named": ("people", "visits")}.get(link, ("people",))
    return {
        name: table.filter(pc.fill_null(pc.not_equal(table["who"], unit), True)) if name in gone else table
        for name, table in tables.items()
    }


def check_read(monkeypatch, method, seed):
    draw, seen = simulation(seed), []
    link = LINKS[seed % len(LINKS)]
    tables = {
        "people": drawn(draw, draw.integers(1, 9), age=[None, -5, 0, 17, 40, 99], sex=["F", "M", "X", None]),
        "visits": drawn(
            draw,
            draw.integers(0, 25),
            kind=["a", "b", "z", None],
            cost=[None, 0.0, 5.5, 1e9, np.nan, -np.inf],
        ),
        "roots": drawn(draw, 5),
    }
    about = {
        "most": int(draw.choice([1, 2, 4])),
        "adjacency": str(draw.choice(["add-remove", "exchange"])),
        "nullable": bool(draw.integers(2)),
    }

    def spy(plan, read, *_):
        seen.append((plan, read))
        raise RuntimeError("seen")

    for held in (tables, without(link, tables, int(draw.integers(6)))):
        with monkeypatch.context() as watched, sf.Session(
            *declared(link, **held, **about), budget=sf.Budget(9, "0.01")
        ) as session:  # fmt: skip
            watched.setattr(linked, "linked_released", spy)
            monkeypatch.setattr(session.vault, "_salts", dict.fromkeys(session.vault._salts, 7))
            columns = {"people": ["age", "sex"], "visits": ["kind", "cost"]}
            with pytest.raises(sf.errors.EngineFailed):
                sf.synth.tables(
                    session, NAMES, epsilon=5, delta="0.001", method=method, columns=columns
                )  # fmt: skip
    (plan, left), (_, right) = seen
    assert np.bincount(left.units, minlength=1).max() <= about["most"]
    with np.errstate(all="ignore"), seeded(f"read {method} {seed}"):
        check_synth(LinkedFit("read", plan, left, right, price(5, "0.001")))


@pytest.mark.parametrize("link", range(len(LINKS)), ids=LINKS)
def test_claims_hold_for_any_tables_as_an_engine_reads_them(link, monkeypatch):
    check_read(monkeypatch, "mst", link + 10)


@pytest.mark.stats
@pytest.mark.parametrize("method", METHODS)
def test_claims_hold_for_many_tables_as_an_engine_reads_them(method, monkeypatch):
    for seed in range(40):
        check_read(monkeypatch, method, seed)


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


def test_a_planted_bug_is_seen_in_tables_that_an_engine_reads(monkeypatch):
    with planted_in_linked("children as if each were a unit"), pytest.raises(AssertionError, match="moves"):
        check_read(monkeypatch, "mst", 10)
