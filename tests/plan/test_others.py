"""The rows of levels whose keys are not public: which there are, what is on them, and how they agree."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.plan.answers.reconcile import reconciled_lines
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.bounding.choose import Choose
from sfumato.plan.questions.nodes import Key, Measured, Measurement
from sfumato.plan.questions.others import (
    Line,
    labels,
    least_lines,
    lines_of,
    picks_of,
    places_in,
    questions_of,
    searched_of,
    shares_of,
    shelf_of,
)
from sfumato.plan.questions.sensitivity import sensitivities
from sfumato.schema import PrivacyUnit
from sfumato.session.reading import Reading, on_lines
from sfumato.sql.asking import ask

SETS = {
    "rollup": ((0, 1, 2), (0, 1), (0,), ()),
    "rollup the other way": ((2, 1, 0), (2, 1), (2,), ()),
    "cube": tuple(level for size in (3, 2, 1, 0) for level in itertools.combinations(range(3), size)),
    "margins": ((0,), (1,), (2,)),
    "pairs": ((0, 1), (1, 2)),
    "the finest alone": ((0, 1, 2),),
}
OPEN = (None, None, None)
MIXED = (("x", "y"), None, (1, 2, 3))
FRESH = ("new", "new", 0)


def question(
    levels: tuple[tuple[int, ...], ...], values: Sequence[Any] = OPEN, *, whole: bool = False
) -> Measured:
    keys = tuple(Key(Column(name), listed) for name, listed in zip("abc", values, strict=True))
    return Measured(
        "t", "1", PrivacyUnit.row(), None, keys, (), (Measurement("rows", whole=whole),), levels=levels
    )


def world(draw: random.Random, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All groups that there can be: public values, or a few found ones, NULL and one that nobody selects."""
    found = [
        [*listed] if listed is not None else [*"pqr", None, "new"] if i != 2 else [1, 2, None, 0]
        for i, listed in enumerate(values)
    ]
    groups = list(itertools.product(*found))
    draw.shuffle(groups)
    return groups


def known(groups: Sequence[tuple[Any, ...]], values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Those that may be selected."""
    fresh = [new if listed is None else object() for new, listed in zip(FRESH, values, strict=True)]
    return [each for each in groups if not any(a == b for a, b in zip(each, fresh, strict=True))]


def test_the_rows_are_found_groups_and_one_of_other_keys_beside_those_that_begin_alike() -> None:
    measured = question(((0, 1), (0,), ()))
    groups = [("IT", "Roma", 1), ("FR", "Paris", 1), (None, None, 2), ("FR", "Lyon", 2)]
    lines = lines_of(measured, picks_of(measured, groups))
    told = labels(lines, ["country", "city", "day"])
    assert [(*line.shown(2), word) for line, word in zip(lines, told, strict=True)] == [
        ("FR", "Lyon", "country, city"),
        ("FR", "Paris", "country, city"),
        ("FR", None, "country, other city"),
        ("IT", "Roma", "country, city"),
        ("IT", None, "country, other city"),
        (None, None, "country, city"),  # NULL is a value that was found
        (None, None, "country, other city"),
        (None, None, "other country, other city"),
        ("FR", None, "country"),
        ("IT", None, "country"),
        (None, None, "country"),
        (None, None, "other country"),
        (None, None, "all rows"),
    ]
    assert [line.is_other for line in lines].count(True) == 5


def test_groups_are_looked_for_on_every_level_with_such_a_key() -> None:
    public = (("x", "y"), None, None)
    for levels, values, ranks in (
        (SETS["rollup"], OPEN, (((0, 1, 2),), ((0, 1),), ((0,),))),
        (SETS["cube"], OPEN, (((0, 1, 2),), ((0, 1), (0, 2), (1, 2)), ((0,), (1,), (2,)))),
        (SETS["margins"], OPEN, (((0,), (1,), (2,)),)),
        (SETS["pairs"], OPEN, (((0, 1), (1, 2)),)),
        (SETS["margins"], public, (((1,), (2,)),)),
        (SETS["rollup"], public, (((0, 1, 2),), ((0, 1),))),
        (((0, 1), (0, 2), (0,)), public, (((0, 1), (0, 2)),)),
        (((0,), (1, 2)), public, (((1, 2),),)),
        (((0, 1), (2,), (0,), ()), OPEN, (((0, 1), (2,)), ((0,),))),
    ):
        measured = question(levels, values)
        assert searched_of(measured) == ranks
        asked = questions_of(measured)
        wanted = [len(level) for rank in ranks for level in rank if len(level) < 3]
        assert [len(each.keys) for each in asked] == wanted
        assert all(each.is_open and not each.levels and not each.measurements for each in asked)


def test_the_shares_of_levels_add_up_and_each_has_half_of_one_above() -> None:
    for levels in SETS.values():
        ranks = searched_of(question(levels))
        shares = shares_of(ranks)
        assert sum(shares) == 1
        each = [share / len(rank) for share, rank in zip(shares, ranks, strict=True)]
        assert all(above == 2 * below for above, below in itertools.pairwise(each))
    assert shares_of(searched_of(question(SETS["rollup"]))) == (
        Fraction(4, 7),
        Fraction(2, 7),
        Fraction(1, 7),
    )


def test_a_group_found_on_its_own_level_has_its_rest_on_those_below() -> None:
    measured = question(((0, 1), (0,), (1,), ()))
    lines = lines_of(measured, [(0, "FR", "Lyon"), (1, "IT"), (2, "Bonn")])
    told = labels(lines, ["country", "city", "day"])
    assert [(*line.shown(2), word) for line, word in zip(lines, told, strict=True)] == [
        ("FR", "Lyon", "country, city"),
        ("FR", None, "country, other city"),
        ("IT", None, "country, other city"),
        (None, None, "other country, other city"),
        ("FR", None, "country"),
        ("IT", None, "country"),
        (None, None, "other country"),
        (None, "Bonn", "city"),
        (None, "Lyon", "city"),
        (None, None, "other city"),
        (None, None, "all rows"),
    ]


def test_without_any_selected_group_there_are_other_keys_and_the_total() -> None:
    lines = lines_of(question(((1, 0), (1,), ())), [])
    assert labels(lines, ["a", "b"]) == ["other b, other a", "other b", "all rows"]


def test_public_values_are_all_there_and_have_no_others() -> None:
    measured = question(((0, 1), (0,), ()), (("y", "x"), None, None))
    lines = lines_of(measured, [(0, "y", "p")])
    told = labels(lines, ["sex", "all", "c"])
    assert [(line.shown(1)[0], word) for line, word in zip(lines, told, strict=True)] == [
        ("y", 'sex, "all"'),
        ("y", 'sex, other "all"'),
        ("x", 'sex, other "all"'),
        ("y", "sex"),
        ("x", "sex"),
        (None, "all rows"),
    ]
    assert least_lines(measured.keys, measured.levels, None) == 2 + 2 + 1


@pytest.mark.parametrize("values", [OPEN, MIXED, (None, ("x", "y"), None)])
@pytest.mark.parametrize("name", SETS)
def test_every_group_is_on_one_line_of_each_level_and_levels_have_the_same_total(
    name: str, values: Sequence[Any]
) -> None:
    draw = random.Random(f"{name} {values}")
    measured = question(SETS[name], values)
    for size in (0, 1, 4, 20):
        groups = world(draw, values)
        chosen = picks_of(measured, known(groups, values)[:size])
        lines = lines_of(measured, chosen)
        assert len(set(lines)) == len(lines)
        assert lines == lines_of(measured, draw.sample(chosen, len(chosen)))
        shelf = shelf_of(lines)
        for group in groups:
            on = [lines[place].level for place in places_in(shelf, group)]
            assert on == list(measured.levels)
        for number, *found in chosen:  # what was selected has a line of its own, there and below
            top = [*itertools.chain(*searched_of(measured))][number]
            for level in measured.levels:
                if set(level) <= set(top):
                    own = dict(zip(top, found, strict=True))
                    assert tuple(own[key] for key in level) in shelf[level]
        amounts = [draw.randrange(-(10**30), 10**30) for _ in groups]
        (added,) = on_lines(Reading(tuple(groups), (np.array(amounts, object),)), lines)
        for level in measured.levels:
            assert sum(added[place] for place in shelf[level].values()) == sum(amounts)


def incidence(lines: Sequence[Line], groups: Sequence[tuple[Any, ...]]) -> np.ndarray:
    """Lines × groups: which groups are on which lines."""
    shelf, found = shelf_of(lines), np.zeros((len(lines), len(groups)))
    for column, group in enumerate(groups):
        found[places_in(shelf, group), column] = 1
    return found


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("size", [0, 1, 3, 8])
def test_it_is_the_least_squares_fit_of_all_groups_that_there_could_be(name: str, size: int) -> None:
    draw = random.Random(f"{name} {size}")
    groups = world(draw, OPEN)
    measured = question(SETS[name])
    lines = lines_of(measured, picks_of(measured, known(groups, OPEN)[:size]))
    sums = incidence(lines, groups)
    noisy = np.random.default_rng(1).normal(100, 30, len(lines))
    (found,) = reconciled_lines(measured, lines, [noisy])
    wanted = sums @ np.linalg.lstsq(sums, noisy, rcond=None)[0]
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", ["rollup", "rollup the other way", "the finest alone"])
def test_with_public_keys_among_them_rollups_are_the_least_squares_fit_too(name: str) -> None:
    draw = random.Random(name)
    groups = world(draw, MIXED)
    measured = question(SETS[name], MIXED)
    lines = lines_of(measured, picks_of(measured, known(groups, MIXED)[:5]))
    sums = incidence(lines, groups)
    noisy = np.random.default_rng(2).normal(100, 30, len(lines))
    (found,) = reconciled_lines(measured, lines, [noisy])
    assert np.allclose(found, sums @ np.linalg.lstsq(sums, noisy, rcond=None)[0], rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("values", [OPEN, MIXED])
@pytest.mark.parametrize("name", SETS)
def test_whole_numbers_stay_whole_and_add_up(name: str, values: Sequence[Any]) -> None:
    draw = random.Random(f"{name} {values}")
    groups = world(draw, values)
    measured = question(SETS[name], values, whole=True)
    lines = lines_of(measured, picks_of(measured, known(groups, values)[:9]))
    noisy = np.random.default_rng(3).normal(1000, 40, len(lines))
    (found,) = reconciled_lines(measured, lines, [noisy])
    (smooth,) = reconciled_lines(measured, lines, [noisy], rounded=False)
    assert (found == np.rint(found)).all()
    assert (np.abs(found - smooth) < 1 + 1e-9).all()
    assert (smooth != np.rint(smooth)).any()
    place = {line: at for at, line in enumerate(lines)}
    totals = {
        level: sum(found[at] for line, at in place.items() if line.level == level) for level in SETS[name]
    }
    assert len(set(totals.values())) == 1
    for line, at in place.items():
        parts = [other for other in lines if other.level and other.above == line]
        for level in {other.level for other in parts}:
            assert found[at] == sum(found[place[other]] for other in parts if other.level == level)


def test_agreeing_levels_have_less_error() -> None:
    draw = random.Random(4)
    groups = world(draw, OPEN)
    measured = question(SETS["rollup"])
    lines = lines_of(measured, picks_of(measured, known(groups, OPEN)[:12]))
    numbers = np.random.default_rng(5)
    truth = incidence(lines, groups) @ numbers.uniform(0, 500, len(groups))
    errors, raw = np.zeros(len(truth)), np.zeros(len(truth))
    for _ in range(400):
        noisy = truth + numbers.laplace(0, 10, len(truth))
        errors += (reconciled_lines(measured, lines, [noisy])[0] - truth) ** 2
        raw += (noisy - truth) ** 2
    assert (errors < 1.02 * raw).all()
    assert errors.sum() < 0.8 * raw.sum()


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize(("lower", "upper"), [(0, 1), (-2, 3), (-5, 0), (2, 4), (-3, 3)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_placement_of_a_units_groups_moves_a_level_further_and_one_moves_it_as_far(
    adjacency: Any, lower: int, upper: int, k: int
) -> None:
    """All ways to put k contributions on three lines; convex functions are greatest at extreme ones."""
    unit = PrivacyUnit("u", max_groups=k, max_rows=k, adjacency=adjacency)
    ends = sorted({0, min(lower, 0), max(upper, 0)})
    terms = [(line, amount) for line in range(3) for amount in ends]
    vectors = {
        tuple(sum(amount for on, amount in chosen if on == line) for line in range(3))
        for chosen in itertools.combinations_with_replacement(terms, k)
    }
    others = vectors if adjacency == "exchange" else {(0, 0, 0)}
    moves = [[abs(a - b) for a, b in zip(v, w, strict=True)] for v in vectors for w in others]
    measurement = Measurement("sum", Column("x"), lower, upper, per="total")
    for levels in (((0, 1, 2),), ((0, 1, 2), (0,), ())):
        measured = replace(
            question(levels),
            unit=unit,
            measurements=(measurement,),
            bounding=Choose(),
        )
        (claim,) = sensitivities(measured)
        assert claim.l1 == len(levels) * max(map(sum, moves))
        assert claim.l2_squared == len(levels) * max(sum(x * x for x in move) for move in moves)


def test_the_listed_values_of_a_question_with_found_keys_are_part_of_it():
    """Rows are put together from them: another list, or another order, must not find a stored answer."""

    def asked(*countries: str) -> str:
        schema = {"country": sf.Enum(*countries), "city": sf.Text()}
        table = sf.PrivateTable(
            "t", source="t.parquet", unit=sf.PrivacyUnit("u", max_groups=2), schema=schema
        )
        asked = ask("SELECT country, city, COUNT(*) AS n FROM t GROUP BY country, city", {"t": table})
        return asked.plan.recipe.measured.fingerprint

    assert asked("FR", "DE") == asked("FR", "DE")
    assert len({asked("FR", "DE"), asked("DE", "FR"), asked("FR", "DE", "IT")}) == 3
