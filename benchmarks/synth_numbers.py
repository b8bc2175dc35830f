"""Numbers in small synthetic tables: how far drawn values are from the true ones, by rows and rows a unit.

The table is made here: five numbers of different shapes and a category. Distances are Wasserstein's, in
standard deviations of the true column; the first two numbers have a correlation of 0.8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import Report

SIZES = ((1_000, 1), (6_000, 4), (50_000, 4))
EPSILON, DELTA, SEEDS = 1, 1e-9, 4
NUMBERS = ("even", "bell", "zeros", "lognormal", "rounds")


def made(rows: int, most: int, seed: int) -> pa.Table:
    """The table: so many rows, so many of each unit."""
    draw = np.random.default_rng(seed)
    even, apart = draw.random(rows), draw.standard_normal(rows)
    spent = np.minimum(draw.exponential(8_000, rows), 1e5)
    waited = draw.gamma(4, 10, rows)
    return pa.table(
        {
            "who": np.arange(rows) // most,
            "even": even * 1_000,
            "bell": np.clip(500 + 80 * np.sqrt(12) * (even - 0.5) + 60 * apart, 0, 1_000),
            "zeros": np.where(draw.random(rows) < 0.7, 0.0, spent),
            "lognormal": np.minimum(draw.lognormal(np.log(50), 0.8, rows), 10_000),
            "rounds": np.where(draw.random(rows) < 0.6, np.rint(waited / 10) * 10, waited)
            .astype(int)
            .clip(0, 400),
            "kind": draw.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]),
        }
    )


def fitted(rows: int, most: int, seed: int) -> dict[str, float]:
    """One fit: the distance of each number, and the correlation of the first two."""
    from scipy.stats import wasserstein_distance

    import sfumato as sf

    schema: dict[str, Any] = {
        "even": sf.Float(0, 1_000, nullable=False),
        "bell": sf.Float(0, 1_000, nullable=False),
        "zeros": sf.Float(0, 100_000, nullable=False),
        "lognormal": sf.Float(0, 10_000, nullable=False),
        "rounds": sf.Int(0, 400, nullable=False),
        "kind": sf.Enum("a", "b", "c", nullable=False),
    }
    true = made(rows, most, seed)
    table = sf.PrivateTable("small", source=true, schema=schema, unit=sf.PrivacyUnit("who", max_rows=most))
    with sf.Session(table, budget=sf.Budget(epsilon=10, delta="0.001")) as session:
        found = sf.synth.fit(session, epsilon=EPSILON, delta=DELTA, method="mst")
        drawn = found.sample(max(rows, 5_000))
    off = {
        name: float(wasserstein_distance(true[name].to_numpy(), drawn[name].to_numpy()))
        / float(np.std(true[name].to_numpy()))
        for name in NUMBERS
    }
    return off | {"correlation": float(np.corrcoef(drawn["even"], drawn["bell"])[0, 1])}


def numbers(report: Report) -> None:
    """Tables of some thousand rows, the mean of several fits."""
    report.heading(f"numbers, mst, epsilon {EPSILON}: distance in spreads", *NUMBERS, "correlation")
    for rows, most in SIZES:
        fits = [fitted(rows, most, seed) for seed in range(SEEDS)]
        mean = {name: float(np.mean([fit[name] for fit in fits])) for name in fits[0]}
        case = f"{rows:,} rows, {most} of a unit"
        report.row(case, "sfumato", *(f"{value:.2f}" for value in mean.values()), **mean)


PARTS = (numbers,)
