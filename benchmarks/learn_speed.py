"""Fits of a million rows beside scikit-learn's without noise: seconds and memory.

Each fit has a process of its own, which makes the rows, fits a hundred of them first, and holds all of them
while it fits: its peak memory is that of rows and fit together. Ours and theirs take turns, on one thread of
BLAS and OpenMP and on as many as there are cores. Neither process loads what only the other needs.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Report, Timing, best, seconds

ROWS, WIDTH, CLUSTERS, DELTA = 1_000_000, 50, 8, 1e-6
TURNS = {"logistic": 3, "linear": 3, "k-means": 3, "boosting": 1}
"""How often each is fitted, of which the fastest counts."""
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def speed(report: Report) -> None:
    """Seconds and peak memory of one fit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for threads in sorted({1, cores}):
        words = f"{threads} thread{'s' * (threads > 1)}"
        report.heading(f"{ROWS:,} x {WIDTH}, {words}: one fit", "wall", "CPU", "peak MiB")
        for family, turns in TURNS.items():
            _compared(report, family, threads, turns, words)


def _compared(report: Report, family: str, threads: int, turns: int, words: str) -> None:
    runs: dict[str, list[list[float]]] = {"scikit-learn": [], "sfumato": []}
    for _ in range(turns):
        for who, taken in runs.items():
            taken.append(_alone(family, who, threads))
    made: dict[str, tuple[Timing, float]] = {}
    for who, taken in runs.items():
        timing = best([wall for wall, *_ in taken], [cpu for _, cpu, _ in taken])
        peak = min(memory for *_, memory in taken)
        made[who] = timing, peak
        report.row(
            family, who, seconds(timing.wall), seconds(timing.cpu), f"{peak:.0f}",
            timing=timing, threads=threads, peak_mebibytes=peak,
        )  # fmt: skip
    (ours, mine), (theirs, their) = made["sfumato"], made["scikit-learn"]
    report.figure(
        f"{family}, {words}: time over scikit-learn's",
        ours.wall / theirs.wall, "<=", 3, unit="x", cpu=min(ours.cpus) / min(theirs.cpus),
    )  # fmt: skip
    report.figure(f"{family}, {words}: memory over scikit-learn's", mine / their, "<=", 1.5, unit="x")


def _alone(family: str, who: str, threads: int) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.learn_speed", family, who],
        capture_output=True, text=True, env=os.environ | dict.fromkeys(THREADS, str(threads)),
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{who}'s {family} failed: {done.stderr.strip().splitlines()[-1:]}")
    return [float(word) for word in done.stdout.split()[-3:]]


def made(family: str) -> tuple[Any, Any]:
    """Rows and a target; k-means gets rows around as many centres as it looks for, and no target."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (ROWS, WIDTH))
    if family == "k-means":
        near = rng.integers(0, CLUSTERS, ROWS)
        centres = rng.normal(0, 1, (CLUSTERS, WIDTH))
        for at in range(0, ROWS, 10_000):  # in steps: a sum of two whole tables would hold a third
            X[at : at + 10_000] += centres[near[at : at + 10_000]]
        return X, None
    margin = X @ (rng.normal(0, 1, WIDTH) / WIDTH**0.5)
    if family == "linear":
        return X, margin + rng.normal(0, 1, ROWS)
    return X, (rng.random(ROWS) < 1 / (1 + np.exp(-margin))).astype(int)


def _model(family: str, who: str) -> Callable[[], Any]:
    if who == "scikit-learn":
        from sklearn.cluster import KMeans
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LinearRegression, LogisticRegression

        return {
            "logistic": LogisticRegression,
            "linear": LinearRegression,
            "k-means": lambda: KMeans(CLUSTERS, random_state=0),
            "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
        }[family]
    from sfumato import learn

    paid: dict[str, Any] = {"epsilon": 1, "delta": DELTA, "bounds": (-5, 5)}
    return {
        "logistic": lambda: learn.LogisticRegression(**paid, classes=[0, 1]),
        "linear": lambda: learn.LinearRegression(**paid, target_bounds=(-8, 8)),
        "k-means": lambda: learn.KMeans(**paid, n_clusters=CLUSTERS),
        "boosting": lambda: learn.GradientBoostingClassifier(**paid, classes=[0, 1]),
    }[family]


def main() -> None:
    """Fit one model and print its wall and CPU seconds, and the peak memory of this process in MiB."""
    family, who = sys.argv[1:3]
    X, y = made(family)
    model = _model(family, who)
    model().fit(X[:100], None if y is None else y[:100])
    cpu, wall = time.process_time(), time.perf_counter()
    model().fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024 if sys.platform != "darwin" else 1024**2
    )
    print(wall, cpu, peak)


if __name__ == "__main__":
    main()
