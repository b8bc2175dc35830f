"""A small census: age × sex × region in whole, non-negative, consistent counts, for one price.

Two histograms are measured with discrete Gaussian noise: the regions, and every cell. What follows uses
nothing but those noisy numbers, so it is post-processing and costs nothing: the two estimates of each region
are combined by their variances, its cells are moved onto the non-negative counts with that total, and
fractions are rounded so that all sums still hold. The 2020 Census measured with this noise too.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import sfumato as sf

REGIONS, AGES, SEXES = ("north", "east", "south", "west"), 10, 2


def people(seed: int = 7) -> NDArray[np.int64]:
    """True counts by region, decade of age and sex, made up: one region is large and one nearly empty."""
    draw = sf.random.simulation(seed)
    decades = np.exp(-np.arange(AGES) / 4)[:, None] * np.ones(SEXES)
    shares = np.array([40_000, 9_000, 2_500, 60])[:, None, None] * decades / decades.sum()
    return draw.poisson(shares).astype(np.int64)


def measure(
    truth: NDArray[np.int64], rho: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], sf.PrivacyLoss]:
    """Noisy regions, noisy cells, and what both cost: a person is in one region and in one cell."""
    half = sf.DiscreteGaussian(rho=Fraction(rho) / 2, sensitivity=1)
    return half.release(truth.sum(axis=(1, 2))), half.release(truth), half.loss * 2


def consistent(regions: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole non-negative cells that add up to the best estimate of their region: post-processing."""
    flat = cells.reshape(len(regions), -1)
    weight = flat.shape[1] / (1 + flat.shape[1])  # of the direct measurement: inverse variances n : 1
    totals = np.maximum(np.rint(weight * regions + (1 - weight) * flat.sum(axis=1)), 0)
    rows = [
        whole(onto_total(row, total), int(total))
        for row, total in zip(flat.astype(float), totals, strict=True)
    ]
    return np.array(rows).reshape(cells.shape)


def onto_total(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """The nearest non-negative numbers with this sum: all are lowered alike, and stop at 0."""
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    kept = np.flatnonzero(falling > excess)
    return np.maximum(values - excess[kept[-1] if kept.size else 0], 0.0)


def whole(values: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """The same sum in whole numbers: the largest fractions are rounded up."""
    down = np.floor(values).astype(np.int64)
    up = np.argsort(down - values, kind="stable")[: total - int(down.sum())]
    down[up] += 1
    return down


def main() -> None:
    truth = people()
    regions, cells, loss = measure(truth, "0.1")
    table = consistent(regions, cells)
    print(f"rho = {float(loss.rho or 0)}, which is epsilon = {loss.epsilon(1e-9):.3f} at delta = 1e-9")
    print(f"\n{'region':<8}{'true':>9}{'noisy':>9}{'released':>10}   cells below 0, noisy → released")
    for name, true, noisy, before, after in zip(REGIONS, truth, regions, cells, table, strict=True):
        print(
            f"{name:<8}{true.sum():>9,}{noisy:>9,}{after.sum():>10,}"
            f"   {(before < 0).sum():>13} → {(after < 0).sum()}"
        )
    print(f"{'total':<8}{truth.sum():>9,}{regions.sum():>9,}{table.sum():>10,}")
    off, raw = np.abs(table - truth).mean(), np.abs(cells - truth).mean()
    print(f"\nOn average a cell is off by {off:.2f} people; the raw noise was off by {raw:.2f}.")


if __name__ == "__main__":
    main()
