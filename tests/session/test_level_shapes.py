"""Levels of every shape: which rows there are, their counts, that they add up, and what a unit moves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from level_shapes import KINDS, Kind, Shape, make_shape_of_levels, parts_add_up
from sfumato.plan.prices import bundle
from sfumato.plan.questions.others import lines_of, picks_of, searched_of
from sfumato.plan.questions.sensitivity import Sensitivity, sensitivities, sensitivity_in
from sfumato.session.reading import on_lines
from sfumato.testing import seeded

SHAPES = 6  # of each kind


def shapes(kind: Kind, *, cut: bool = False, count: int = SHAPES, start: str = "short") -> Iterator[Shape]:
    for number in range(count):
        yield make_shape_of_levels(f"{start} {number}", kind, cut=cut)


def sure(query: Any) -> Fraction:
    """A price at which groups of two units are found for certain, and noise is far below one half."""
    quote = query.quote(epsilon=1, mechanism="laplace")
    if not quote.selections:
        return Fraction(60 * len(quote.measured.levels) * 72)
    return 690 / max(per_group(each)[0] for each in quote.selections)  # at 700, no selection can be drawn


def per_group(selection: Any) -> tuple[Fraction, Fraction]:
    """What is paid for one of the groups that a unit may be in."""
    most = selection.groups * (2 if selection.exchange else 1)
    return selection.epsilon / most, selection.delta / most


def _sortable(row: tuple[Any, ...]) -> str:
    return repr(row)


def check_answer(shape: Shape) -> int:
    """The answer at a price at which nothing is left to chance; how many rows it has."""
    with shape.session() as asked, seeded(shape.text):
        query = asked.sql(shape.text)
        table = query.release(epsilon=sure(query), mechanism="laplace").table.to_pylist()
    if shape.is_open:
        found = [(row["level"], *(row[key] for key in shape.keys), row["n"]) for row in table]
        wanted = shape.answer()
    else:  # levels are told by what is missing: all values are there
        found = [(*(row[key] for key in shape.keys), row["n"]) for row in table]
        wanted = [row[1:] for row in shape.answer()]
    assert sorted(found, key=_sortable) == sorted(wanted, key=_sortable), shape.text
    return len(found)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_counts_are_those_of_a_slow_count(kind: Kind) -> None:
    assert sum(check_answer(shape) for shape in shapes(kind)) > 5 * SHAPES


@pytest.mark.parametrize("kind", KINDS)
def test_noisy_parts_add_up(kind: Kind) -> None:
    for shape in shapes(kind, cut=True):
        with shape.session() as asked, seeded(shape.text):
            rows = asked.sql(shape.text).release(epsilon=20, delta="1e-7").table.to_pylist()
        assert parts_add_up(shape, rows) == [], shape.text


def neighbours(shape: Shape, draw: random.Random, count: int = 3) -> Iterator[list[Any]]:
    """Tables without a unit, or with another in its place."""
    units = sorted({row["u"] for row in shape.visits})
    for gone in draw.sample(units, count):
        if shape.unit.column is None:
            rows = list(shape.visits)
            row = rows.pop(draw.randrange(len(rows)))
            yield rows + ([{**row, "tag": "new", "plan": "z"}] if shape.unit.adjacency == "exchange" else [])
            continue
        rest = [row for row in shape.visits if row["u"] != gone]
        if shape.unit.adjacency == "exchange":
            other = draw.choice([each for each in units if each != gone])
            rest += [{**row, "u": gone, "tag": "new"} for row in shape.visits if row["u"] == other]
        yield rest


def check_moves(shape: Shape, seed: str) -> float:
    """What one unit moves, against what is claimed and paid; the greatest part of a claim that is reached."""
    draw, most = random.Random(seed), 0.0
    tables, reads = list(neighbours(shape, draw)), []
    names = ["visits", *(f"visits_{number}" for number in range(1, len(tables) + 1))]
    with seeded("the same salt"):
        asked = shape.session(*tables)
    with asked:
        asked.vault._salts = dict.fromkeys(names, asked.vault._salts["visits"])
        for name in names:
            quote = asked.sql(shape.text.replace("visits", name)).quote(epsilon=1)
            reads.append([asked.vault._read(each, 0) for each in quote.recipe.questions])
    claims = sensitivities(quote.measured)
    few: tuple[Any, ...] = ()
    if shape.is_open:  # the list is public by then, and the same for all
        groups = dict.fromkeys(group for read in reads for group in read[0].groups)
        picks = picks_of(quote.measured, groups)
        few = tuple(draw.sample(picks, round(draw.choice((0.0, 0.3, 0.7, 1.0)) * len(picks))))
    for read in reads[1:]:
        columns = [
            on_lines(each[0], lines_of(quote.measured, few)) if shape.is_open else each[0].columns
            for each in (reads[0], read)
        ]
        for claim, mine, new in zip(claims, *columns, strict=True):
            moves = [abs(a - b) for a, b in zip(mine.tolist(), new.tolist(), strict=True)]
            assert sum(moves) <= claim.l1, f"claimed {claim.l1}: {shape.text}"
            assert sum(move * move for move in moves) <= claim.l2_squared, f"claimed: {shape.text}"
            most = max(most, sum(moves) / claim.l1)
        if shape.is_open:
            assert_paid(quote, reads[0], read)
    return most


def assert_paid(quote: Any, base: Any, other: Any) -> None:
    """All counts that a unit moves, each at the price of its selection, are within what is debited."""
    more, spent = iter(range(1, len(base))), [Fraction(0), Fraction(0)]
    for rank, selection in zip(searched_of(quote.measured), quote.selections, strict=True):
        for level in rank:
            place = 0 if len(level) == len(quote.measured.keys) else next(more)
            left, right = (
                dict(zip(each[place].groups, each[place].units.tolist(), strict=True))
                for each in (base, other)
            )
            moves = [abs(left.get(key, 0) - right.get(key, 0)) for key in left.keys() | right.keys()]
            assert max(moves, default=0) <= 1, "a unit is claimed to count once in a group"
            spent = [
                each + sum(moves) * price for each, price in zip(spent, per_group(selection), strict=True)
            ]
    assert next(more, None) is None
    debited = sf.Budget(10, "0.1").filter().price(quote.loss)
    claims = quote.recipe.estimators
    share = Fraction(1, 1 + len(dict.fromkeys(claims)))
    wanted = (debited[0] * share, debited[1] * (Fraction(1, 2) if quote.mechanism == "gaussian" else 1))
    assert spent[0] <= wanted[0], "claimed and paid for less"
    assert spent[1] <= wanted[1], "claimed and paid for less"


@pytest.mark.parametrize("kind", KINDS)
def test_no_unit_moves_more_than_is_claimed_and_paid_for(kind: Kind) -> None:
    reached = [check_moves(shape, f"{kind} {i}") for i, shape in enumerate(shapes(kind, cut=True, count=4))]
    assert max(reached) >= 0.5


# Planted bugs, each of which must turn one of these red.


def _one_search(measured: Any) -> Any:
    """Groups are looked for on the widest levels alone."""
    return searched_of(measured)[:1]


def _every_line(shelf: Any, group: Any) -> list[int]:
    """A group counts on its own line and on those of other keys beside it."""
    return [
        own[values]
        for level, own in shelf.items()
        for length in range(len(level) + 1)
        if (values := tuple(group[key] for key in level[:length])) in own
    ]


def _cross_product(_keys: Any, _rows: Any) -> None:
    """All combinations of public values, also those that no row of their table has."""


def _condition_alone(measured: Any, _level: Any) -> Any:
    """Groups are found among rows that do not count, too."""
    return measured.predicate


def _one_level(measurement: Any, measured: Any, unit: Any) -> Any:
    """The claim of one level for all."""
    found, count = sensitivity_in(measurement, measured, unit), len(measured.levels)
    return Sensitivity(found.l1 // count, found.l2_squared // count)


def _unpaid(ranks: Any) -> tuple[Fraction, ...]:
    """Every rank of levels is selected at the whole price, and one of them is debited."""
    return tuple(Fraction(1) for _ in ranks)


def _first_alone(main: Any, extras: Any, selections: Any) -> Any:
    return bundle.loss_of(main, extras, selections[:1])


def every_answer(kind: Kind) -> None:
    for shape in shapes(kind, count=40, start="planted"):
        check_answer(shape)


def every_move(kind: Kind) -> None:
    for number, shape in enumerate(shapes(kind, cut=True, count=40, start="planted")):
        check_moves(shape, f"planted {number}")


QUESTIONS, READING = "sfumato.plan.questions", "sfumato.session.reading"
SEARCHES = " ".join(
    f"sfumato.{module}.searched_of"
    for module in ("plan.questions.others", "plan.prices.bundle", "plan.prices.words", "session.noise")
)


@pytest.mark.parametrize(
    ("target", "planted", "kind"),
    [
        (SEARCHES, _one_search, "unknown"),
        (f"{READING}.places_in", _every_line, "unknown"),
        (f"{QUESTIONS}.others._held", _condition_alone, "mixed"),
        ("sfumato.plan.assemble.existing_among_public", _cross_product, "public columns"),
        ("sfumato.plan.assemble.existing_among_public", _cross_product, "public columns and others"),
    ],
)
def test_a_wrong_row_or_count_is_noticed(
    target: str, planted: Any, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in target.split():
        monkeypatch.setattr(each, planted)
    with pytest.raises((AssertionError, ValueError)):
        every_answer(kind)


@pytest.mark.parametrize(
    ("target", "planted", "kind"),
    [
        (f"{QUESTIONS}.sensitivity.sensitivity_in", _one_level, "public columns"),
        (f"{QUESTIONS}.sensitivity.sensitivity_in", _one_level, "unknown"),
        (f"{READING}.places_in", _every_line, "unknown"),
        ("sfumato.plan.prices.bundle.shares_of", _unpaid, "unknown"),
        ("sfumato.plan.prices.quoting.loss_of", _first_alone, "unknown"),
    ],
)
def test_a_wrong_claim_or_price_is_noticed(
    target: str, planted: Any, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, planted)
    with pytest.raises(AssertionError, match="claimed"):
        every_move(kind)
