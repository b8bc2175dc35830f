"""Counts around selected cells: a partition, intervals that hold quantiles whatever the data, estimates."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantile_bars import SMOOTH, TIED, drawn, table
from sfumato.mechanisms import Gaussian, Geometric, Laplace
from sfumato.plan.intervals import rings as module
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.intervals.rings import Aim, Rings, cuts_around, weights_between
from sfumato.testing import seeded
from sfumato.testing.statistics import bernoulli_finding

RISK = 0.05


def check(inside: np.ndarray, least: float, most: float = 1.0) -> None:
    """Coverage is between these, at alpha 1e-9."""
    count = int(np.count_nonzero(inside))
    bernoulli_finding(count, inside.size, least, most, "intervals that hold the quantile").require(1e-9)


# Cuts.


@given(st.integers(1, 300), st.integers(1, 6), st.integers(0, 10**6))
def test_cuts_are_a_partition_with_each_selected_cell_apart(cells: int, levels: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    selected = draw.integers(0, cells, (4, levels))
    cuts = cuts_around(selected, cells)
    assert (np.diff(cuts, axis=1) >= 0).all()
    assert (cuts[:, 0] == 0).all()
    assert (cuts[:, -1] == cells).all()
    for row, own in zip(cuts, selected, strict=True):
        assert {*own.tolist(), *(own + 1).tolist()} <= {*row.tolist()}
    weights = draw.integers(0, 9, (4, cells))
    parts = weights_between(weights, cuts)
    assert (parts.sum(axis=1) == weights.sum(axis=1)).all()
    # A unit of weight 3 anywhere moves the pieces by 3 in all.
    moved = weights.copy()
    np.add.at(moved, (slice(None), draw.integers(0, cells, 3)), 1)
    assert (np.abs(weights_between(moved, cuts) - parts).sum(axis=1) == 3).all()


def test_cuts_follow_from_what_was_selected_alone() -> None:
    assert cuts_around(np.array([[7]]), 20).tolist() == [[*[0] * 4, *range(4, 12), 15, *[20] * 3]]
    assert cuts_around(np.zeros((0, 2), np.int64), 20).shape[0] == 0
    assert set(cuts_around(np.array([[3, 3]]), 5)[0].tolist()) == {0, 1, 2, 3, 4, 5}


def test_large_integers_are_summed_exactly() -> None:
    weights = np.array([[1 << 70, 1, 0, 5]], dtype=object)
    assert weights_between(weights, np.array([[0, 1, 1, 4]])).tolist() == [[1 << 70, 0, 6]]


# Coverage.

LEVELS = ("0", "1/4", "1/2", "99/100")


@pytest.mark.parametrize("kind", [*SMOOTH, *TIED])
def test_every_quantile_is_held_whatever_the_data(kind: str) -> None:
    exchange = kind in ("uniform", "two ends")
    for rows in (50, 1000):
        answers = drawn(table(kind, rows, 100), LEVELS, 2.0, 200, exchange=exchange)
        for place in range(len(LEVELS)):
            for held in answers.held(place, RISK):
                check(held, 1 - RISK)


@pytest.mark.parametrize("kind", ["uniform", "lognormal"])
def test_bars_are_not_much_wider_than_errors(kind: str) -> None:
    for levels in (("1/2",), ("1/4", "3/4")):
        answers = drawn(table(kind, 3000, 1024), levels, 1.0, 300)
        for place in range(len(levels)):
            assert answers.ratio(place, RISK) < 2.5


def sharp(noise: Noise, aim: Aim, risk: float, weights: list[int], groups: int = 4_000) -> np.ndarray:
    """Whether intervals hold an empty cell with exactly the rank aimed at on its left."""
    mechanism = Laplace(1, 4)
    cells = len(weights)
    with seeded("sharp"):
        cuts = np.broadcast_to(np.arange(cells + 1), (groups, cells + 1))
        noisy = mechanism.release(np.broadcast_to(np.array(weights), (groups, cells)))
    low, high = Rings(cells, cuts, noisy, noise).intervals(aim, risk)
    cell = weights.index(0)
    return (low <= cell) & (cell <= high)


HALF = [500] * 6 + [0] + [500] * 6
TOP = [500] * 10 + [0, 30, 20]
BOTTOM = TOP[::-1]
SHARP = {
    "median": (HALF, Aim(Fraction(1, 2), None, 1.0), 0.95),
    "greatest": (TOP, Aim(Fraction(1), 50.0, 1.0), 0.98),
    "least": (BOTTOM, Aim(Fraction(0), 50.0, 1.0), 0.98),
    "inner": ([300] * 3 + [0] + [700] * 3, Aim(Fraction(3, 10), None, 1.0), 0.95),
}


@pytest.mark.parametrize("name", SHARP)
def test_intervals_at_the_edge_keep_their_risk_and_use_most_of_it(name: str) -> None:
    weights, aim, most = SHARP[name]
    honest = Noise.of(Laplace(1, 4))
    check(sharp(honest, aim, 0.1, weights), 0.9, most)
    # Half the noise, more risk and ranks that are off are all found out.
    off = Aim(aim.level + Fraction(1, 50), None, 1.0) if aim.guard is None else aim._replace(guard=80.0)
    for planted in (
        sharp(replace(honest, scale=honest.scale / 2), aim, 0.1, weights),
        sharp(honest, aim, 0.25 if aim.guard is None else 0.5, weights),
        sharp(honest, off, 0.1, weights),
    ):
        with pytest.raises(AssertionError):
            check(planted, 0.9)


@pytest.mark.parametrize("law", [Laplace(1, 4), Geometric("1/4", 1), Gaussian(sigma=4, sensitivity=1)])
def test_any_noise_of_a_known_law_will_do(law: Laplace | Geometric | Gaussian) -> None:
    weights = table("normal", 400, 32)
    cuts = cuts_around(np.full((2000, 1), 13), 32)
    with seeded("laws"):
        exact = weights_between(np.broadcast_to(weights, (2000, 32)), cuts)
        noisy = np.asarray(law.release(exact), dtype=float)
    rings = Rings(32, cuts, noisy, Noise.of(law))
    low, high = rings.intervals(Aim(Fraction(1, 2), None, 1.0), RISK)
    upto = np.cumsum(weights)
    cell = int(np.argmax(upto >= weights.sum() / 2))
    check((low <= cell) & (cell <= high), 1 - RISK)


def test_less_risk_is_never_narrower_and_nothing_is_empty() -> None:
    answers = drawn(table("lognormal", 40, 64), ("0", "1/2"), 0.5, 50)
    for aim in answers.aims:
        boxes = [answers.rings.intervals(aim, risk) for risk in (0.9, 0.5, 0.1, 1e-3, 1e-12)]
        for low, high in boxes:
            assert ((low >= 0) & (low <= high) & (high < 64)).all()
        for (low, high), (lower, higher) in pairwise(boxes):
            assert (lower <= low).all()
            assert (high <= higher).all()


def test_one_cell_and_no_group_have_intervals_too() -> None:
    answers = drawn(np.array([30]), ("1/2", "1"), 1.0, 3)
    for place, aim in enumerate(answers.aims):
        assert [ends.tolist() for ends in answers.rings.intervals(aim, RISK)] == [[0] * 3] * 2
        assert answers.cells(place).tolist() == [0] * 3
    none = Rings(9, cuts_around(np.zeros((0, 1), np.int64), 9), np.zeros((0, 12)), Noise("laplace", 1.0))
    aim = Aim(Fraction(1, 2), None, 1.0)
    none = replace(none, noisy=np.zeros((0, none.cuts.shape[1] - 1)))
    assert none.intervals(aim, RISK)[0].shape == none.estimates(aim, np.zeros(0, np.int64)).shape == (0,)


def test_counts_of_noises_are_rounded_up_and_by_little() -> None:
    counts = np.arange(5000)
    rounded = module._rounded_up(counts)
    assert (rounded >= counts).all()
    assert (rounded[:17] == counts[:17]).all()
    assert (rounded <= np.maximum(counts * 9 / 8, counts)).all()


# Estimates.


def test_without_noise_to_speak_of_estimates_are_quantiles() -> None:
    for kind in (*SMOOTH, *TIED):
        answers = drawn(table(kind, 1000, 128), ("0", "1/4", "1/2", "9/10"), 50_000.0, 20)
        for place in range(4):
            assert np.isin(answers.cells(place), answers.truth(place)).all()


def test_counts_bring_estimates_nearer() -> None:
    levels = tuple(f"{k}/10" for k in range(1, 10))
    answers = drawn(table("normal", 3000, 1024), levels, 1.0, 100)
    before, after = (
        np.mean([answers.rank_errors(place, cells).mean() for place, cells in enumerate(each)])
        for each in (answers.selected.T, map(answers.cells, range(9)))
    )
    assert after < before / 2


@pytest.mark.parametrize("kind", TIED)
@pytest.mark.parametrize("levels", [("1/2",), tuple(f"{k}/10" for k in range(1, 10))])
def test_where_cells_hold_many_rows_counts_never_make_estimates_worse(
    kind: str, levels: tuple[str, ...]
) -> None:
    answers = drawn(table(kind, 1000, 128), levels, 1.0, 60)
    for place in range(len(levels)):
        right = [
            np.isin(cells, answers.truth(place)).mean()
            for cells in (answers.cells(place), answers.selected[:, place])
        ]
        assert right[0] >= right[1] - 0.02
        assert right[0] > 0.9 or kind != "one value"


def slow_median(over: float, held: float, deviation: float, rate: float) -> float:
    """The median of the law of `_posterior_median`, by adding up."""
    x = np.linspace(min(over, -held) - 60, max(over, 0) + 60, 400_001)
    away = np.maximum(0, np.maximum(x, -held - x))
    logs = -rate * away - (x - over) ** 2 / (2 * deviation**2)
    upto = np.cumsum(np.exp(logs - logs.max()))
    middle = float(x[np.searchsorted(upto, upto[-1] / 2)])
    return middle if middle > 0 else min(middle + held, 0.0)


@pytest.mark.parametrize("rate", [0.01, 0.3, 2.0])
def test_the_posterior_median_is_that_of_the_law(rate: float) -> None:
    for over, held, deviation in ((3.0, 0.0, 2.0), (-7.0, 4.0, 3.0), (1.0, 30.0, 5.0), (-2.0, 9.0, 1.0)):
        arguments = np.array([over]), np.array([held]), np.array([deviation])
        (found,) = module._posterior_median(*arguments, rate)
        assert abs(found - slow_median(over, held, deviation, rate)) < 2e-3


def test_the_posterior_median_is_finite_however_sure_it_is() -> None:
    over = np.array([-1e6, -3.0, 0.0, 3.0, 1e6] * 2)
    held = np.repeat([0.0, 1e3], 5)
    for rate in (1e-6, 1.0, 1e6):
        for deviation in (1e-60, 1e-6, 1.0, 1e6):
            found = module._posterior_median(over, held, np.full(10, deviation), rate)
            assert np.isfinite(found).all()
            assert (found[[0, 5]] <= 0).all()
            assert (found[[4, 9]] >= 0).all()
