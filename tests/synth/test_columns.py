"""Columns as cells: what is restored lies in the cell that it came from, whatever the kind of column."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.session.rows_wanted import WantedColumn
from sfumato.synth.columns.coarse import WIDE, as_it_is, coarse
from sfumato.synth.columns.fine import MOST_CELLS, Fine, fine
from sfumato.synth.columns.scales import Scales

COLUMNS = {
    "whole numbers": WantedColumn("x", "number", Fraction(17), Fraction(90), None, type="integer"),
    "one number": WantedColumn("x", "number", Fraction(5), Fraction(5), None, type="integer"),
    "many whole numbers": WantedColumn(
        "x", "number", Fraction(-(10**6)), Fraction(10**9), None, type="integer"
    ),
    "fractions": WantedColumn("x", "number", Fraction(-1, 3), Fraction(22, 7), None, type="float"),
    "one fraction": WantedColumn("x", "number", Fraction(1, 3), Fraction(1, 3), None, type="float"),
    "days": WantedColumn("x", "number", Fraction(18000), Fraction(19000), None, is_date=True, type="date"),
    "long ago": WantedColumn(
        "x", "number", Fraction(-90000), Fraction(30000), None, is_date=True, type="date"
    ),
    "texts": WantedColumn("x", "category", None, None, ("b", "a", ""), type="text"),
    "numbers in a list": WantedColumn("x", "category", None, None, (9, 3), type="integer"),
    "truth": WantedColumn("x", "category", None, None, None, type="boolean"),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("nullable", [True, False])
def test_what_is_restored_is_in_the_same_cell(name: str, nullable: bool) -> None:
    given = COLUMNS[name]
    column = fine(
        WantedColumn(
            given.name,
            given.kind,
            given.lower,
            given.upper,
            given.values,
            given.is_date,
            given.type,
            nullable,
        )
    )
    rng = simulation(1)
    assert Fine.from_dict(column.to_dict()) == column
    assert column.size <= MOST_CELLS + 1
    codes = np.concatenate([np.arange(column.size), rng.integers(0, column.size, 200)])
    values = column.restored(codes, rng)
    assert values.null_count == (codes >= column.known).sum()
    again = column.places(values)
    if name in ("many whole numbers", "long ago"):  # whole numbers are rounded, perhaps to the next cell
        assert np.abs(again.astype(int) - codes).max() <= 1
    else:
        assert (again == codes).all()
    if column.values is None:
        found = values.drop_null()
        numbers = found.cast(pa.int32()) if column.kind == "date" else found
        assert float(column.lower) <= min(numbers.to_pylist())
        assert max(numbers.to_pylist()) <= float(column.upper)


def test_days_and_truth_have_their_own_types() -> None:
    rng = simulation(0)
    day = fine(COLUMNS["days"]).restored(np.array([0]), rng)[0].as_py()
    assert day == datetime.date(1970, 1, 1) + datetime.timedelta(days=18000)
    assert fine(COLUMNS["truth"]).restored(np.array([0, 1, 2]), rng).to_pylist() == [False, True, None]


@pytest.mark.parametrize(
    "column",
    [
        WantedColumn("x", "number", None, None, None, type="float"),
        WantedColumn("x", "number", None, None, None, is_date=True, type="date"),
    ],
)
def test_a_column_of_which_nothing_is_declared_is_refused(column: WantedColumn) -> None:
    with pytest.raises(InvalidParameter, match="Nothing says"):
        fine(column)


SHAPES = ["nothing", "even", "heap", "heaps", "falling", "bell", "few"]


def _counts(kind: str, many: int, seed: int) -> np.ndarray:
    rng = simulation(seed)
    shapes = {
        "nothing": np.zeros(many),
        "even": np.full(many, 50.0),
        "heap": np.where(np.arange(many) == 0, 1e5, 20.0),
        "heaps": np.where(np.arange(many) % 50 == 0, 3000.0, 5.0),
        "falling": 1e5 / (1 + np.arange(many)),
        "bell": 1e4 * np.exp(-((np.linspace(-3, 3, many)) ** 2)),
        "few": np.where(rng.random(many) < 0.01, 500.0, 0.0),
    }
    return shapes[kind] + rng.normal(0, 10, many)


def noisy(column: Fine, kind: str, seed: int) -> Scales:
    return Scales(column.known, (_counts(kind, column.size, seed),), 10.0)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("many", [1, 2, 65, 1000])
def test_coarse_cells_hold_all_fine_ones_and_lead_back(
    kind: str, ordered: bool, nullable: bool, many: int
) -> None:
    values = None if ordered else tuple(str(place) for place in range(many))
    column = Fine(
        "x", "integer" if ordered else "text", values, Fraction(0), Fraction(many - 1), many - 1, nullable
    )
    for seed in range(3):
        cut = coarse(column, noisy(column, kind, seed), WIDE)
        assert cut.size <= WIDE
        assert sorted(set(cut.place.tolist())) == list(range(cut.size))
        if ordered:
            assert (np.diff(cut.place) >= 0).all()
        if nullable:
            assert (cut.place == cut.place[-1]).sum() == 1
        rng = simulation(seed)
        codes = rng.integers(0, cut.size, 500)
        back = cut.finer(codes, rng)
        assert (cut.codes(back) == codes).all()
        assert (cut.weight[back] > 0).all()


@pytest.mark.parametrize("kind", [kind for kind in SHAPES if kind not in ("nothing", "few")])
@pytest.mark.parametrize("many", [65, 75, 100, 130, 1000])
def test_no_run_of_several_cells_holds_more_than_twice_its_part(kind: str, many: int) -> None:
    """Two runs beside each other hold more than there is room for in one, so twice the even part is room."""
    column = Fine("x", "integer", None, Fraction(0), Fraction(many - 1), many - 1, False)
    for seed in range(3):
        cut = coarse(column, noisy(column, kind, seed), WIDE)
        shared = np.bincount(cut.place) > 1
        assert (_shares(cut.place, cut.weight)[shared] <= 2 / (WIDE - 1) + 1e-6).all()


def test_heaps_stand_by_themselves_and_cells_are_as_likely_as_their_weight() -> None:
    column = Fine("x", "integer", None, Fraction(0), Fraction(999), 999, False)
    cut = coarse(column, noisy(column, "heaps", 0), WIDE)
    heaps = np.arange(0, 1000, 50)
    rng = simulation(0)
    finer = cut.finer(rng.choice(cut.size, 200_000, p=_shares(cut.place, cut.weight)), rng)
    found = np.bincount(finer, minlength=1000) / 200_000
    assert abs(found[heaps].sum() - 20 * 3000 / (20 * 3000 + 980 * 5)) < 0.02


def _shares(place: np.ndarray, weight: np.ndarray) -> np.ndarray:
    sums = np.bincount(place, weight)
    return np.asarray(sums / sums.sum())


def test_a_column_as_it_is_has_each_cell_by_itself() -> None:
    column = fine(COLUMNS["texts"])
    cut = as_it_is(column)
    assert cut.size == column.size == 4
    assert (cut.finer(np.arange(4), simulation(0)) == np.arange(4)).all()
