"""Levels that agree: the least-squares fit, its sums, and its gain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sfumato.plan.answers.reconcile import reconciled
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.nodes import Key, Measured, Measurement

A, B, C = (Column(name) for name in "abc")
SETS = {
    "rollup": ((0, 1, 2), (0, 1), (0,), ()),
    "cube": tuple(level for size in (3, 2, 1, 0) for level in itertools.combinations(range(3), size)),
    "margins": ((0,), (1,), (2,)),
    "pairs": ((0, 1), (1, 2)),
}


def question(levels: tuple[tuple[int, ...], ...], *, whole: bool) -> Measured:
    keys = (Key(A, (1, 2, 3)), Key(B, (1, 2)), Key(C, (1, 2, 3, 4)))
    rows: list[tuple[int | None, ...]] = []
    for level in levels:
        rows += itertools.product(
            *(key.values if i in level else (None,) for i, key in enumerate(keys))  # type: ignore[arg-type]
        )
    return Measured("t", "1", (), None, keys, tuple(rows), (Measurement("rows", whole=whole),), levels=levels)


def matrix(measured: Measured) -> np.ndarray:
    cells = list(itertools.product((1, 2, 3), (1, 2), (1, 2, 3, 4)))
    return np.array(
        [
            [float(all(a is None or a == b for a, b in zip(row, cell, strict=True))) for cell in cells]
            for row in measured.combinations
        ]
    )


@pytest.mark.parametrize("name", SETS)
def test_it_is_the_least_squares_fit(name: str) -> None:
    measured = question(SETS[name], whole=False)
    sums = matrix(measured)
    noisy = np.random.default_rng(1).normal(100, 30, len(sums))
    (found,) = reconciled(measured, [noisy])
    wanted = sums @ np.linalg.lstsq(sums, noisy, rcond=None)[0]
    assert np.allclose(found, wanted, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", ["rollup", "cube"])
def test_whole_numbers_add_up_to_the_last_digit(name: str) -> None:
    measured = question(SETS[name], whole=True)
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
