"""Levels that agree: the least-squares fit, its sums, and its gain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.plan.answers.reconcile import reconciled
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.levels import stages_of
from sfumato.plan.questions.nodes import Key, Measured, Measurement
from sfumato.schema import PrivacyUnit

A, B, C = (Column(name) for name in "abc")
SETS = {
    "rollup": ((0, 1, 2), (0, 1), (0,), ()),
    "cube": tuple(level for size in (3, 2, 1, 0) for level in itertools.combinations(range(3), size)),
    "margins": ((0,), (1,), (2,)),
    "pairs": ((0, 1), (1, 2)),
}


CELLS = tuple(itertools.product((1, 2, 3), (1, 2), (1, 2, 3, 4)))
SOME = {
    "all": None,
    "a few": CELLS[::5],
    "one": CELLS[7:8],
    "most": tuple(cell for cell in CELLS if sum(cell) % 5),
    "a tree": tuple(cell for cell in CELLS if cell[0] == cell[1] or cell[2] == cell[0] + 1),
}
"""Which combinations of keys there are."""


def question(levels: tuple[tuple[int, ...], ...], *, whole: bool, some: str = "all") -> Measured:
    keys = (Key(A, (1, 2, 3)), Key(B, (1, 2)), Key(C, (1, 2, 3, 4)))
    rows: list[tuple[int | None, ...]] = []
    for level in levels:
        cells = SOME[some] or CELLS
        shown = {tuple(value if i in level else None for i, value in enumerate(cell)) for cell in cells}
        rows += sorted(shown, key=lambda row: [value or 0 for value in row])
    measurements = (Measurement("rows", whole=whole),)
    return Measured(
        "t", "1", PrivacyUnit.row(), None, keys, tuple(rows), measurements, levels=levels, together=SOME[some]
    )


def matrix(measured: Measured) -> np.ndarray:
    cells = CELLS if measured.together is None else measured.together
    return np.array(
        [
            [float(all(a is None or a == b for a, b in zip(row, cell, strict=True))) for cell in cells]
            for row in measured.combinations
        ]
    )


@pytest.mark.parametrize("some", SOME)
@pytest.mark.parametrize("name", SETS)
def test_the_groups_of_a_level_are_those_of_its_cells_in_the_order_of_the_lists(name: str, some: str) -> None:
    measured = question(SETS[name], whole=False, some=some)
    stages = stages_of(measured.keys, measured.levels, measured.together)
    assert tuple(row for stage in stages for row in stage.rows) == measured.combinations
    sums, start = matrix(measured), 0
    for stage in stages:
        own = sums[start : start + len(stage.rows)]
        assert (own.argmax(axis=0) == stage.index).all()
        assert stage.is_finest == (own.sum(axis=1) == 1).all()
        start += len(stage.rows)


@pytest.mark.parametrize("some", SOME)
@pytest.mark.parametrize("name", SETS)
def test_it_is_the_least_squares_fit(name: str, some: str) -> None:
    measured = question(SETS[name], whole=False, some=some)
    sums = matrix(measured)
    noisy = np.random.default_rng(1).normal(100, 30, len(sums))
    (found,) = reconciled(measured, [noisy])
    wanted = sums @ np.linalg.lstsq(sums, noisy, rcond=None)[0]
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
def test_many_combinations_with_gaps_are_fitted_too(name: str) -> None:
    draw = np.random.default_rng(4)
    sizes = (9, 13, 11)
    keys = tuple(Key(each, tuple(range(size))) for each, size in zip((A, B, C), sizes, strict=True))
    cells = tuple(cell for cell in itertools.product(*map(range, sizes)) if draw.random() < 0.15)
    stages = stages_of(keys, SETS[name], cells)
    rows = tuple(row for stage in stages for row in stage.rows)
    measurements = (Measurement("rows", whole=False),)
    measured = Measured(
        "t", "1", PrivacyUnit.row(), None, keys, rows, measurements, levels=SETS[name], together=cells
    )
    sums = matrix(measured)
    noisy = draw.normal(100, 30, len(sums))
    (found,) = reconciled(measured, [noisy])
    wanted = sums @ np.linalg.lstsq(sums, noisy, rcond=None)[0]
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("some", SOME)
@pytest.mark.parametrize("name", ["rollup", "cube"])
def test_whole_numbers_add_up_to_the_last_digit(name: str, some: str) -> None:
    measured = question(SETS[name], whole=True, some=some)
    sums = matrix(measured)
    noisy = np.random.default_rng(2).normal(1000, 40, len(sums))
    (found,) = reconciled(measured, [noisy])
    finest = found[: sums.shape[1]]
    assert (finest == np.rint(finest)).all()
    assert (sums @ finest == found).all()
    (smooth,) = reconciled(measured, [noisy], rounded=False)
    assert (smooth != np.rint(smooth)).any()


def test_agreeing_levels_have_less_error() -> None:
    measured = question(SETS["cube"], whole=False)
    sums = matrix(measured)
    draw = np.random.default_rng(3)
    truth = sums @ draw.uniform(0, 500, sums.shape[1])
    errors, raw = np.zeros(len(truth)), np.zeros(len(truth))
    for _ in range(300):
        noisy = truth + draw.laplace(0, 10, len(truth))
        errors += (reconciled(measured, [noisy])[0] - truth) ** 2
        raw += (noisy - truth) ** 2
    assert (errors < 1.02 * raw).all()
    assert errors.sum() < 0.6 * raw.sum()
