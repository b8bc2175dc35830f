"""Synthetic tables: how close they are to the table that they were learned from, and what they take.

On Adult: the mean total variation over all pairs of columns, the AUC of boosted trees that learn from the
synthetic rows and are tested on real ones, CPU seconds and memory, beside the reference implementation.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness import Report
from benchmarks.synth_adult import NUMBERS, Adult, adult, area, variation
from benchmarks.synth_marginals import closed_form, counted

DELTA, SEEDS = 1e-9, 5
EPSILONS = (0.1, 1.0, 10.0)
GOALS = {  # of CPU seconds, megabytes, variation and AUC; those of MST at 0.1 and 10 are to be beaten
    ("mst", 1.0): (3.0, 300.0, 0.045, 0.84),
    ("adaptive", 1.0): (25.0, None, 0.033, 0.905),
    ("adaptive", 0.1): (None, None, 0.104, None),
    ("adaptive", 10.0): (None, None, 0.039, 0.910),
}


def fitted(data: Adult, method: str, epsilon: float) -> tuple[Any, float]:
    """The cells of a synthetic table, and the CPU seconds of its fit and of drawing it."""
    import sfumato as sf

    columns = {
        name: sf.Int(0, size - 1, nullable=False)
        if name in NUMBERS
        else sf.Enum(*range(size), nullable=False)
        for name, size in zip(data.names, data.sizes, strict=True)
    }
    table = sf.PrivateTable("adult", source=data.table(), schema=columns, unit=sf.PrivacyUnit.row())
    with sf.Session(table, budget=sf.Budget(epsilon=1000, delta="0.001")) as session:
        start = time.process_time()
        made = sf.synth.fit(session, epsilon=epsilon, delta=DELTA, method=method)
        rows = made.sample()
        taken = time.process_time() - start
    return np.column_stack([rows[name].to_numpy() for name in data.names]), taken


def one(method: str, epsilon: float) -> dict[str, float]:
    """One fit in a process of its own, so that its memory is its own."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.synth", method, str(epsilon)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(run.stdout.splitlines()[-1]))


def quality(report: Report) -> None:
    """Ours at three prices."""
    report.heading("Adult", "CPU s", "MB", "2-way variation", "AUC")
    data = adult()
    if data is None:
        report.row("adult", "data", "not there", installed=False)
        return
    for method in ("independent", "mst", "adaptive", "fixed"):
        for epsilon in EPSILONS:
            found = [one(method, epsilon) for _ in range(SEEDS)]
            mean = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
            case = f"{method}, epsilon {epsilon:g}"
            report.row(
                case,
                "sfumato",
                f"{mean['cpu']:.1f}",
                f"{mean['megabytes']:.0f}",
                f"{mean['variation']:.4f}",
                f"{mean['auc']:.3f}",
                **mean,
            )
            _figures(report, case, GOALS.get((method, epsilon), (None,) * 4), mean)


def _figures(report: Report, case: str, goals: Sequence[float | None], mean: dict[str, float]) -> None:
    for (name, way), goal in zip(
        [("cpu", "<="), ("megabytes", "<="), ("variation", "<="), ("auc", ">=")], goals, strict=True
    ):
        if goal is not None:
            report.figure(f"{case}: {name}", mean[name], way, goal)


def main(method: str, epsilon: str) -> None:
    """One fit, scored."""
    data = adult()
    assert data is not None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cells, taken = fitted(data, method, float(epsilon))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {
                "cpu": taken,
                "megabytes": most,
                "megabytes_before": before,
                "variation": variation(data, cells),
                "auc": area(data, cells),
            }
        )
    )


PARTS = (quality, closed_form, counted)

if __name__ == "__main__":
    main(*sys.argv[1:])
