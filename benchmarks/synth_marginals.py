"""Marginals of wide tables: all pairs in closed form beside the published error, and all pairs counted."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np

from benchmarks.harness import Report, seconds
from sfumato.fits.meter import Meter, price
from sfumato.synth._model.domain import Domain
from sfumato.synth._private.cells import Cells
from sfumato.synth._private.scores import Candidates
from sfumato.synth.methods.residual import measured, planned

CLOSED = {"columns": 100, "cells": 16, "rows": 1_000_000}
COUNTED = {"columns": 60, "cells": 100, "rows": 1_000_000}


def _table(columns: int, cells: int, rows: int) -> Cells:
    draw = np.random.default_rng(1)
    domain = Domain(tuple(f"x{place}" for place in range(columns)), (cells,) * columns)
    return Cells(domain, [draw.integers(0, cells, rows, dtype=np.uint16) for _ in range(columns)])


def published(columns: int, cells: int, rho: float) -> float:
    """The mean variance of a count over all pairs: Xiao, He, Zhang, Kifer 2023, the sum of variances.

    (Σ √(p·v))²/(2ρ) over the total, the columns and the pairs. For k of them p is ((n−1)/n)^k, and v is p
    times the n² counts of each pair that holds them, divided by n^(2(2−k)): they are spread over the rest.
    """
    pairs = math.comb(columns, 2)
    held, alike = (pairs, columns - 1, 1), (1, columns, pairs)
    roots = 0.0
    for size in range(3):
        p = ((cells - 1) / cells) ** size
        roots += alike[size] * math.sqrt(p * p * held[size] * cells**2 / cells ** (2 * (2 - size)))
    return roots**2 / (2 * rho) / (pairs * cells**2)


def closed_form(report: Report) -> None:
    """All pairs of a hundred columns: seconds, and the error over that of the published formula."""
    report.heading("all pairs in closed form", "plan", "measure", "all counts", "over formula")
    cells, meter = _table(**CLOSED), Meter.alone(price(1, "1e-9"))
    pairs = dict.fromkeys(itertools.combinations(range(CLOSED["columns"]), 2), 1.0)
    clock = [time.process_time()]
    plan = planned(cells.domain, pairs)
    clock.append(time.process_time())
    parts = measured(cells, meter, plan)
    clock.append(time.process_time())
    marginals = [parts.marginal(pair) for pair in pairs]
    clock.append(time.process_time())
    steps = np.diff(clock).tolist()
    off = [
        np.mean((found.values.ravel() - cells.counts(found.clique).values) ** 2) for found in marginals[::10]
    ]
    formula = published(CLOSED["columns"], CLOSED["cells"], float(meter.rho))
    claimed = plan.variance(next(iter(pairs))) / (2 * float(meter.rho)) / formula
    case = f"{CLOSED['columns']} x {CLOSED['cells']}, {CLOSED['rows']:,} rows"
    seen = float(np.mean(off)) / formula
    report.row(case, "sfumato", *map(seconds, steps), f"{seen:.4f}", cpu=steps, claimed=claimed, seen=seen)
    report.figure("all pairs of 100 columns in closed form", sum(steps), "<=", 60, unit=" s", cpu=sum(steps))
    report.figure("variance over the published formula", claimed, "<=", 1 + 1e-6)


def counted(report: Report) -> None:
    """All pairs of sixty columns of a million rows, counted and scored once, and scored again."""
    report.heading("all pairs counted", "first scores", "scores again", "memory kept")
    cells = _table(**COUNTED)
    pairs = list(itertools.combinations(range(COUNTED["columns"]), 2))
    expected = [np.full(COUNTED["cells"] ** 2, COUNTED["rows"] / COUNTED["cells"] ** 2)] * len(pairs)
    candidates, taken = Candidates(cells, pairs), list[float]()
    for _ in range(2):
        start = time.process_time()
        candidates.scores(range(len(pairs)), expected)
        taken.append(time.process_time() - start)
    kept = Candidates.memory(cells.domain, pairs)
    case = f"{COUNTED['columns']} x {COUNTED['cells']}, {COUNTED['rows']:,} rows"
    report.row(case, "sfumato", *map(seconds, taken), f"{kept / 1e6:.0f} MB", cpu=taken, bytes=kept)
    report.figure("1,770 pairs of a million rows", taken[0], "<=", 60, unit=" s", cpu=taken[0])


PARTS = (closed_form, counted)
