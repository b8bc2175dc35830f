"""Sums of rows: exact beside slow arithmetic, and held within their claims for every unit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.learn._core import sums
from sfumato.learn._core.declared import Category, declared, number
from sfumato.learn._core.design import BITS, UNIT, Design
from sfumato.learn._core.rows import Rows
from sfumato.learn._core.sums import RESIDUAL_BITS, WEIGHT_BITS, Adding, clipped, gradients, moments, on_grid


def made(seed, *, units=True, categories=True):
    """Some rows of a random design, with extremes among them, and a person with most of the rows."""
    rng = np.random.default_rng(seed)
    columns = [number(f"n{at}", -1, 1) for at in range(rng.integers(0 if categories else 1, 4))]
    columns += [Category(f"c{at}", tuple("abc")) for at in range(rng.integers(1, 3) if categories else 0)]
    design = Design(columns, intercept=bool(rng.integers(2)), signed=bool(rng.integers(2)))
    size = int(rng.integers(0, 30))
    values = [
        rng.integers(-1, 3, size)
        if isinstance(column, Category)
        else rng.choice([-9.0, -1, -0.3, 0, 1, 7], size)
        for column in columns
    ]
    whose = rng.integers(0, 1 + size // 3, size) if units else None
    target = rng.integers(0, UNIT + 1, size)
    return Rows(design, design.integers(values), target, whose)


def residuals(rows):
    """Any function of a row: as long as 4 here, so that clipping has work to do."""

    def found(part, margins):
        signs = np.where(rows.target[part] % 2 == 0, 1.0, -1.0)[:, None]
        return np.trunc(np.clip(margins, -4, 4) * 2.0**RESIDUAL_BITS) * signs + rows.target[part][:, None]

    return found


def without(rows, unit):
    kept = rows.units != unit if rows.units is not None else np.arange(len(rows)) != unit
    return Rows(
        rows.design, rows.integers[kept], rows.target[kept], None if rows.units is None else rows.units[kept]
    )


def everyone(rows):
    return range(len(rows)) if rows.units is None else np.unique(rows.units)


def length(one, other):
    return sum((int(a) - int(b)) ** 2 for a, b in zip(one.ravel(), other.ravel(), strict=True))


def slow_moments(rows):
    width = rows.design.width + 1
    lines = [
        [*map(int, row), *([UNIT] if rows.design.intercept else []), int(target)]
        for row, target in zip(rows.integers, rows.target, strict=True)
    ]
    return [sum(line[i] * line[j] for line in lines) for i in range(width) for j in range(i, width)]


@pytest.mark.parametrize("seed", range(8))
def test_moments_are_those_of_slow_arithmetic(seed):
    rows = made(seed, units=False)
    assert moments(rows, target=True).values.tolist() == slow_moments(rows)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bound", [None, 1, "0.37"])
def test_nobody_moves_moments_beyond_the_claim(seed, bound):
    rows = made(seed, units=seed % 2 == 0)
    whole = moments(rows, bound, target=True)
    for unit in everyone(rows):
        moved = length(whole.values, moments(without(rows, unit), bound, target=True).values)
        assert moved <= whole.sensitivity**2


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bound", ["0.01", 1, 60])
def test_nobody_moves_gradients_beyond_the_claim(seed, bound):
    rows = made(seed, units=seed % 2 == 0)
    weights = np.random.default_rng(seed).normal(0, 3, (rows.design.width, 2))
    whole = gradients(rows, weights, residuals(rows), bound)
    assert whole.sensitivity == Fraction(bound) * 2 ** (BITS + RESIDUAL_BITS)
    for unit in everyone(rows):
        fewer = without(rows, unit)
        moved = length(whole.values, gradients(fewer, weights, residuals(fewer), bound).values)
        assert moved <= whole.sensitivity**2


@pytest.mark.parametrize("seed", range(6))
def test_gradients_that_fit_are_those_of_slow_arithmetic(seed):
    rows = made(seed, units=seed % 2 == 0)
    weights = np.random.default_rng(seed).normal(0, 0.001, (rows.design.width, 1))
    grid = on_grid(weights).ravel().tolist()
    expected = [Fraction(0)] * rows.design.width
    for at in range(len(rows)):
        line = [*map(int, rows.integers[at]), *([UNIT] if rows.design.intercept else [])]
        margin = Fraction(sum(x * int(w) for x, w in zip(line, grid, strict=True)), 2 ** (BITS + WEIGHT_BITS))
        found = residuals(rows)(slice(at, at + 1), np.array([[float(margin)]]))[0, 0]
        expected = [have + x * int(found) for have, x in zip(expected, line, strict=True)]
    assert gradients(rows, weights, residuals(rows), 60).values.tolist() == expected


def test_a_row_gives_the_same_wherever_it_is():
    rows = made(5, units=False, categories=False)
    many = np.resize(rows.integers, (10_000, rows.integers.shape[1]))
    target = np.resize(rows.target, 10_000)
    weights = np.random.default_rng(0).normal(0, 3, (rows.design.width, 1))
    order = np.random.default_rng(1).permutation(10_000)
    one, other = (Rows(rows.design, many[at], target[at]) for at in (np.arange(10_000), order))
    assert (
        gradients(one, weights, residuals(one), 1).values
        == gradients(other, weights, residuals(other), 1).values
    ).all()


def _no_clip(lines, bound):
    return lines


def _without_intercept(found, squares, bound):
    return HELD(found, np.maximum(squares - UNIT**2, 1), bound)


HELD = sums._held


@pytest.mark.parametrize(
    ("name", "bug"),
    [("clipped", _no_clip), ("_held", lambda found, *_: found), ("_held", _without_intercept)],
    ids=["no clipping of units", "no clipping of rows", "the intercept is left out of the clip"],
)
def test_a_planted_bug_is_seen(monkeypatch, name, bug):
    monkeypatch.setattr(sums, name, bug)
    seen = 0
    for seed in range(30):
        try:
            test_nobody_moves_gradients_beyond_the_claim(seed, 1)
        except AssertionError:
            seen += 1
    assert seen


@given(st.lists(st.lists(st.integers(-(2**45), 2**45), min_size=3, max_size=3), min_size=1, max_size=5))
def test_a_line_is_cut_to_its_bound_and_not_turned(lines):
    bound = Fraction(2**40, 3)
    for line, cut in zip(lines, clipped(np.array(lines, np.int64), bound).tolist(), strict=True):
        assert sum(number**2 for number in cut) <= bound**2
        assert all(0 <= b <= a or a <= b <= 0 for a, b in zip(line, cut, strict=True))
        if sum(number**2 for number in line) < (bound * (1 - Fraction(1, 2**29))) ** 2:
            assert cut == line


def test_adding_stays_exact_beyond_64_bits():
    adding = Adding((1,))
    for _ in range(3000):
        adding.add(np.array([2.0**53 - 1]))
    assert adding.values.tolist() == [3000 * (2**53 - 1)]


def test_coordinates_end_where_the_bounds_do():
    design = Design(declared({"a": (0, 10), "b": ["x", "y"], "c": (3, 3)}, ["a", "b", "c"]))
    rows = design.integers([np.array([-5, 2.5, 99]), np.array([0, 1, -1]), np.array([3.0, 2, 9])])
    assert rows.tolist() == [[0, UNIT, 0, 0], [UNIT // 4, 0, UNIT, 0], [UNIT, 0, 0, 0]]
    slopes, start = design.own_scale(np.array([2.0, 0.5, -0.5, 7.0, 1.0]))
    assert slopes.tolist() == [0.2, 0.5, -0.5, 0.0]
    assert start == 1.0


def test_how_much_a_unit_is_shortened_does_not_depend_on_the_order_of_its_rows():
    class Long(Rows):
        def squares(self):
            return self.held.astype(np.float64)

    design = Design([number("a", 0, 1)], intercept=False)
    rows = Long(design, np.zeros((3, 1), np.int16), None, np.zeros(3, np.int64))
    found = set()
    for squares in ([2**53, 1, 1], [1, 1, 2**53], [1, 2**53, 1]):
        rows.held = np.array(squares)
        found |= set(sums._factors(rows, Fraction(1), target=False).tolist())
    assert found == {(1 - 2.0**-30) * np.sqrt(UNIT**2 / (2**53 + 2))}
