"""Several quantiles at once: rank errors beside the recursive exponential mechanism, and the size of bars.

Each row is a unit and the price is epsilon 1. The rank error of an answer is how many rows lie between its
cell of the grid and the rank that was asked for. The peer is that of Kaplan, Schnapp and Stemmer (2022), on
the same cells and with the whole price: the middle level by the exponential mechanism, the others in the rows
before and after it. It gives no bars.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import sfumato as sf
from benchmarks.harness import Report
from benchmarks.visits import forgetting

SIZES = (1_000, 10_000, 100_000)
LEVELS = (1, 3, 9, 40)
CELLS = 4096
"""Of a column of floats; whole years have one each."""
TIMES = {1: 100, 3: 50, 9: 20, 40: 8}
RISK = 0.05


@dataclass(frozen=True, slots=True)
class Column:
    """A column with declared bounds, and the weights of its cells."""

    name: str
    values: NDArray[np.float64]
    upper: float
    whole: bool = False

    @property
    def cells(self) -> int:
        """How many cells its grid has."""
        return int(self.upper) + 1 if self.whole else CELLS

    def cell(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cells that values lie in."""
        width = 1.0 if self.whole else self.upper / CELLS
        return np.clip(np.floor(np.asarray(values, float) / width), 0, self.cells - 1).astype(np.int64)


def columns(rows: int) -> tuple[Column, ...]:
    """A uniform one, a log-normal one and whole years, of so many rows."""
    draw = np.random.default_rng([20240601, rows])
    years = np.clip(draw.normal(45, 17, rows), 0, 99).astype(int)
    return (
        Column("uniform", draw.random(rows) * 1000, 1000.0),
        Column("log-normal", np.clip(draw.lognormal(3.5, 1.0, rows), 0, 999), 1000.0),
        Column("age", years.astype(float), 99.0, whole=True),
    )


def off(
    weights: NDArray[np.int64], cells: NDArray[np.int64], targets: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How many rows lie between each cell and the rank it was chosen for."""
    upto = np.cumsum(weights)
    below = upto - weights
    return np.maximum(0.0, np.maximum(below[cells] - targets, targets - upto[cells]))


def recursive(
    weights: NDArray[np.int64], levels: list[float], epsilon: float, draw: np.random.Generator
) -> NDArray[np.int64]:
    """The recursive exponential mechanism on cells: scores that move by max(p, 1 − p), rows without ties."""
    share = epsilon / len(levels).bit_length()
    chosen = np.zeros(len(levels), np.int64)

    def descend(first: int, last: int, start: int, end: int, low: float, high: float) -> None:
        if first > last:
            return
        middle = (first + last) // 2
        part = (levels[middle] - low) / (high - low)
        upto = np.cumsum(weights[start:end])
        if end <= start:
            chosen[first : last + 1] = min(start, len(weights) - 1)
            return
        target = part * upto[-1]
        gaps = np.maximum(0.0, np.maximum(upto - weights[start:end] - target, target - upto))
        scores = -share * gaps / (2 * max(part, 1 - part))
        cell = start + int(np.argmax(scores + draw.gumbel(size=scores.size)))
        chosen[middle] = cell
        descend(first, middle - 1, start, cell, low, levels[middle])
        descend(middle + 1, last, cell + 1, end, levels[middle], high)

    descend(0, len(levels) - 1, 0, len(weights), 0.0, 1.0)
    return chosen


def ours(
    column: Column, levels: list[float], times: int, targets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Rank errors, the rows from the rank to the further end of each bar, and how often bars hold it."""
    kind = sf.Int(0, int(column.upper), nullable=False) if column.whole else sf.Float(0, 1000, nullable=False)
    values = column.values.astype(np.int64) if column.whole else column.values
    source = pa.table({"x": values})
    table = sf.PrivateTable("t", source=source, unit=sf.PrivacyUnit.row(), schema={"x": kind})
    text = ", ".join(f"QUANTILE_CONT(x, {level}) AS q{i}" for i, level in enumerate(levels))
    weights = np.bincount(column.cell(column.values), minlength=column.cells)
    upto = np.cumsum(weights)
    errors, wide, held = [], [], []
    with sf.Session(table, budget=sf.Budget(10**7)) as one:
        renew = forgetting(one)
        for _ in range(times):
            renew()
            release = one.sql(f"SELECT {text} FROM t").release(epsilon=1)
            row, bars = release.table.to_pylist()[0], release.interval(1 - RISK, "noise").to_pylist()[0]
            answer = column.cell(np.array([row[f"q{i}"] for i in range(len(levels))]))
            step = 0.0 if column.whole else 0.5 * column.upper / CELLS  # from an end into its cell
            low = column.cell(np.array([bars[f"q{i}_low"] for i in range(len(levels))]) + step)
            high = column.cell(np.array([bars[f"q{i}_high"] for i in range(len(levels))]) - step)
            errors.append(off(weights, answer, targets))
            wide.append(np.maximum(upto[high] - targets, targets - (upto - weights)[low]))
            held.append(((upto - weights)[low] <= targets) & (targets <= upto[high]))
    return np.concatenate(errors), np.concatenate(wide), float(np.mean(held))


def ranks(report: Report) -> None:
    """Rank errors and bars of 1, 3, 9 and 40 levels of three columns of three sizes."""
    report.heading(
        "quantiles at once, epsilon 1: mean rank error in rows",
        "ours",
        "recursive",
        "bar / 95 % error",
        "held",
    )
    draw = np.random.default_rng(7)
    for count in LEVELS:
        levels = [round((place + 1) / (count + 1), 4) for place in range(count)]
        sums: dict[str, list[float]] = {}
        for rows in SIZES:
            for column in columns(rows):
                weights = np.bincount(column.cell(column.values), minlength=column.cells)
                targets = np.array(levels) * rows
                errors, wide, held = ours(column, levels, TIMES[count], targets)
                theirs = [recursive(weights, levels, 1.0, draw) for _ in range(200)]
                peer = float(np.mean([off(weights, cells, targets) for cells in theirs]))
                mine, most = float(errors.mean()), float(np.quantile(errors, 1 - RISK))
                ratio = float(wide.mean()) / most if most else math.nan
                report.row(
                    f"{count} levels of {column.name}, {rows:,} rows",
                    "sfumato",
                    f"{mine:.3g}",
                    f"{peer:.3g}",
                    f"{ratio:.2f}",
                    f"{held:.3f}",
                    levels=count,
                    rows=rows,
                    rank_error=mine,
                    recursive=peer,
                    bar_over_error=ratio if most else None,
                    covered=held,
                )
                total = sums.setdefault(column.name, [0.0, 0.0])
                total[0] += mine
                total[1] += peer
        for name, (mine, peer) in sums.items():
            report.figure(
                f"{count} levels of {name}: our rank error over the recursive mechanism's",
                mine / peer,
                "<=",
                1.0,
                unit=" ×",
            )
