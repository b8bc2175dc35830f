"""Counts on several scales: least squares by hand, errors as told, densities that keep what is certain."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import wasserstein_distance

import sfumato as sf
from sfumato.random import simulation
from sfumato.synth.columns.coarse import WIDE, affordable
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.scales import Scales, widths
from sfumato.testing.stream import seeded

SIZES = [1, 3, 4, 5, 17, 65, 100, 256, 401]


def column_of(known: int, *, nullable: bool) -> Fine:
    return Fine("x", "integer", None, Fraction(0), Fraction(known - 1), known - 1, nullable)


def summing(column: Fine, scales: int) -> list[np.ndarray]:
    """For each scale, from cells to what is counted."""
    found = []
    for width in widths(column)[:scales]:
        many = -(-column.known // width)
        matrix = np.zeros((many + column.nullable, column.size))
        matrix[np.arange(column.known) // width, np.arange(column.known)] = 1
        matrix[many:, column.known :] = 1
        found.append(matrix)
    return found


def drawn(column: Fine, exact: np.ndarray, sigma: float, rng: Any, scales: int = 99) -> Scales:
    sums = [matrix @ exact for matrix in summing(column, scales)]
    return Scales(column.known, tuple(own + rng.normal(0, sigma, len(own)) for own in sums), sigma)


@pytest.mark.parametrize("known", SIZES)
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("scales", [1, 99])
def test_cells_and_errors_are_those_of_least_squares(known: int, nullable: bool, scales: int) -> None:
    rng = np.random.default_rng(known)
    column = column_of(known, nullable=nullable)
    told = drawn(column, rng.poisson(20, column.size).astype(float), 7.0, rng, scales)
    matrix = np.vstack(summing(column, scales))
    best = np.linalg.lstsq(matrix, np.concatenate(told.counts), rcond=None)[0]
    np.testing.assert_allclose(told.cells, best, atol=1e-8)
    lines = np.vstack([np.ones(column.size), rng.normal(size=(3, column.size)), np.arange(column.size) < 5])
    values, errors = told.told(lines)
    np.testing.assert_allclose(values, lines @ best, atol=1e-6)
    covariance = np.linalg.inv(matrix.T @ matrix)
    np.testing.assert_allclose(errors, 7.0 * np.sqrt(np.einsum("ij,jk,ik->i", lines, covariance, lines)))


@pytest.mark.parametrize("known", SIZES)
@pytest.mark.parametrize("sigma", [0.0, 1.0, 300.0, 1e12])
def test_densities_are_counts_of_at_least_0_where_rows_can_be(known: int, sigma: float) -> None:
    column = column_of(known, nullable=True)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        exact = rng.poisson(rng.choice([0.0, 3.0, 500.0], column.size)).astype(float)
        told = drawn(column, exact, sigma, rng)
        for allowed in (None, rng.random(column.size) < 0.7, np.zeros(column.size, bool)):
            found = told.density(allowed)
            assert found.shape == (known,)
            assert np.isfinite(found).all()
            assert (found >= 0).all()
            if allowed is not None:
                assert not found[~allowed[:known]].any()
            elif sigma == 0:
                np.testing.assert_allclose(found, exact[:known], atol=1e-9)
            else:
                total = max(float(told.cells[:known].sum()), 0.0)
                assert found.sum() == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_noise_alone_leaves_neighbours_alike_and_a_heap_stays() -> None:
    column, rng = column_of(1024, nullable=False), np.random.default_rng(0)
    even = np.full(1024, 5.0)
    heap = np.where(np.arange(1024) == 300, 3000.0, even)
    for _ in range(10):
        found = drawn(column, even, 50.0, rng).density()
        assert np.abs(np.cumsum(found / found.sum() - 1 / 1024)).max() < 0.2
        found = drawn(column, heap, 50.0, rng).density()
        assert abs(found[300] - 3000) < 300


@pytest.mark.parametrize(
    ("rows", "sigma", "bins"), [(0, 5, 4), (500, 20, 5), (10**4, 25, 20), (10**9, 1, WIDE)]
)
def test_there_are_as_many_bins_as_pairs_can_pay_for(rows: int, sigma: float, bins: int) -> None:
    assert affordable(Scales(4, (np.array([rows, 0.0, 0.0, 0.0]),), 1.0), sigma, WIDE) == bins


# ── drawn numbers of small tables, beside the true ones

SHAPES = {  # the upper bound, and how far drawn values may be from true ones, in standard deviations
    "even": (1000, 0.3),
    "bell": (1000, 0.5),
    "zeros": (100_000, 1.2),
    "money": (10_000, 6.0),
    "round": (400, 1.5),
}


def small(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    gamma = rng.gamma(4, 10, rows)
    even = rng.random(rows)
    return {
        "even": even * 1000,
        "bell": np.clip(500 + 277 * (even - 0.5) + 60 * rng.standard_normal(rows), 0, 1000),
        "zeros": np.where(rng.random(rows) < 0.7, 0.0, np.minimum(rng.exponential(8000, rows), 100_000)),
        "money": np.minimum(rng.lognormal(np.log(50), 0.8, rows), 10_000),
        "round": np.clip(np.where(rng.random(rows) < 0.6, np.rint(gamma / 10) * 10, gamma), 0, 400),
    }


@pytest.mark.parametrize(("rows", "most", "epsilon"), [(1000, 1, 1), (6000, 4, 1), (6000, 20, 3)])
def test_numbers_of_small_tables_are_near_the_true_ones(rows: int, most: int, epsilon: int) -> None:
    """With counts of cells alone, and 64 bins whatever the noise, each of the cases fails."""
    off, ties = {name: list[float]() for name in SHAPES}, list[float]()
    for seed in range(4):
        columns = small(rows, seed)
        table = sf.PrivateTable(
            "t",
            source=pa.table({"who": np.arange(rows) // most} | columns),
            unit=sf.PrivacyUnit("who", max_rows=most),
            schema={name: sf.Float(0, upper, nullable=False) for name, (upper, _) in SHAPES.items()},
        )
        with seeded(f"{rows} {most} {seed}"):
            session = sf.Session(table, budget=sf.Budget(epsilon=9, delta=1e-6))
            made = sf.synth.fit(session, epsilon=epsilon, delta=1e-9, method="mst").sample(5000, seed=seed)
        ties.append(float(np.corrcoef(made["even"], made["bell"])[0, 1]))
        for name, true in columns.items():
            off[name].append(wasserstein_distance(true, made[name].to_numpy()) / true.std())
    far = {name: float(np.median(own)) for name, own in off.items()}
    assert all(far[name] < allowed for name, (_, allowed) in SHAPES.items()), far
    assert np.median(ties) > 0.4  # of .8; between two numbers


def test_a_range_has_less_noise_than_its_cells() -> None:
    rng = np.random.default_rng(0)
    column = column_of(1024, nullable=False)
    told = drawn(column, np.full(1024, 5.0), 1.0, rng)
    half = (np.arange(1024) < 500).astype(float)
    _, errors = told.told(np.stack([half, np.eye(1024)[7]]))
    assert errors[0] < 4  # of one list of counts it would be 22
    assert errors[1] < 1


def test_what_earlier_versions_counted_is_read() -> None:
    from sfumato.synth.released import _scales

    counts = simulation(0).normal(0, 1, 70)
    told = _scales({"fine 3": counts}, 3, 2.0)
    assert (told.cells == counts).all()
    values, errors = told.told(np.eye(70)[:2])
    assert (values == counts[:2]).all()
    np.testing.assert_allclose(errors, 2.0)
