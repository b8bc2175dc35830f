"""A synthetic table of sixty columns and a million rows: seconds, memory above reading it, and closeness."""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Report, seconds

COLUMNS, ROWS, EPSILON, DELTA, MEMORY = 60, 1_000_000, 1, 1e-9, 64
SIZES = (2, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
HUBS = 10  # columns that more than half of the others depend on


def made(columns: int, rows: int) -> tuple[tuple[int, ...], list[NDArray[np.uint8]]]:
    """Columns that each depend on an earlier one, a quarter of them on two together."""
    draw = np.random.default_rng(0)
    sizes = tuple(int(size) for size in draw.choice(SIZES, columns))
    cells = list[NDArray[np.uint8]]()
    for at, size in enumerate(sizes):
        near = min(at, HUBS) if draw.random() < 0.6 else at
        parents = draw.choice(near, min(near, 1 + int(draw.random() < 0.25)), replace=False).tolist()
        given, many = np.zeros(rows, np.int64), 1
        for parent in parents:
            given, many = given * sizes[parent] + cells[parent], many * sizes[parent]
        pull = draw.uniform(0.4, 0.95)
        base, own = draw.dirichlet(np.ones(size)), draw.dirichlet(np.full(size, 0.3), many)
        sums = np.cumsum((1 - pull) * base + pull * own, axis=1) + np.arange(many)[:, np.newaxis]
        place = np.searchsorted(sums.ravel(), draw.random(rows) + given, side="right") - given * size
        cells.append(np.clip(place, 0, size - 1).astype(np.uint8))
    return sizes, cells


def fitted(method: str, rows: int) -> dict[str, float]:
    """One fit: wall and CPU seconds, peak memory above the table, and the mean variation over all pairs."""
    import pyarrow as pa

    import sfumato as sf

    sizes, cells = made(COLUMNS, rows)
    names = [f"x{at}" for at in range(COLUMNS)]
    schema: dict[str, Any] = {
        name: sf.Int(0, size - 1, nullable=False) for name, size in zip(names, sizes, strict=True)
    }
    source = pa.table(dict(zip(names, cells, strict=True)))
    table = sf.PrivateTable("wide", source=source, schema=schema, unit=sf.PrivacyUnit.row())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with sf.Session(table, budget=sf.Budget(epsilon=10, delta="0.001")) as session:
        wall, cpu = time.perf_counter(), time.process_time()
        found = sf.synth.fit(session, epsilon=EPSILON, delta=DELTA, method=method, memory=MEMORY)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model, off = found.released.learned.model, list[float]()
    pairs = list(itertools.combinations(range(COLUMNS), 2))
    for (one, other), counts in zip(pairs, model.marginals(pairs), strict=True):
        assert counts is not None
        code = cells[one].astype(np.int64) * sizes[other] + cells[other]
        true = np.bincount(code, minlength=counts.size) / rows
        off.append(float(np.abs(counts.ravel() / model.total - true).sum()) / 2)
    return {"wall": wall, "cpu": cpu, "above": (most - before) / 1024, "variation": float(np.mean(off))}


def wide(report: Report) -> None:
    """Methods at the same price, each in a process of its own; independent columns are what reading takes."""
    report.heading(f"{COLUMNS} columns, {ROWS:,} rows", "wall", "CPU", "MB above table", "2-way variation")
    found = dict[str, dict[str, float]]()
    for method in ("independent", "mst", "auto"):
        run = subprocess.run(
            [sys.executable, "-m", "benchmarks.synth_wide", method, str(ROWS)],
            capture_output=True,
            text=True,
            check=True,
        )
        one = found[method] = dict(json.loads(run.stdout.splitlines()[-1]))
        report.row(
            method,
            "sfumato",
            seconds(one["wall"]),
            seconds(one["cpu"]),
            f"{one['above']:.0f}",
            f"{one['variation']:.4f}",
            **one,
        )
    auto, floor = found["auto"], found["independent"]
    report.figure("wide table: whole fit", auto["wall"], "<=", 600, unit=" s", cpu=auto["cpu"])
    beyond = auto["above"] - floor["above"]
    report.figure("wide table: memory beyond reading it", beyond, "<=", MEMORY, unit=" MB")
    report.figure("wide table: variation over independent", auto["variation"] / floor["variation"], "<=", 0.5)


PARTS = (wide,)

if __name__ == "__main__":
    print(json.dumps(fitted(sys.argv[1], int(sys.argv[2]))))
