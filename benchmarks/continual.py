"""Streams: the error of running totals beside the tree, the dense optimum and a lower bound; time of a step.

Errors are mean squared ones over all steps, at the same price, in units of the squared error of one number
that is released once. The *lower bound* is (‖A‖_*/n)², which no factorisation is below. The *dense optimum*
is the best of all matrices, by the fixed point of Denisov et al. 2022; at 4,096
steps it was computed once, on an accelerator, until its weights changed by 1e-7.
"""

from __future__ import annotations

import datetime
import os
import resource
import tempfile
import time
from collections.abc import Sequence

import duckdb
import numpy as np

import sfumato as sf
from benchmarks.harness import Report, Timing, best, once, seconds, times
from sfumato.continual import Banded, Buffered, Continual, Factorisation, choose, tree_error
from sfumato.engines import DuckDB

DENSE = (64, 256, 1024)
OPTIMUM = {4096: 11.490554}
STEPS, GROUPS = 10**6, 1_000
REPEATS = 300
YEAR, YEAR_ROWS, YEAR_THREADS = 365, int(float(os.environ.get("YEAR_ROWS", "1e7"))), 2


def lower_bound(steps: int) -> float:
    """The nuclear norm of the matrix of ones below the diagonal, over n, squared."""
    k = np.arange(1, steps + 1)
    return float(np.sum(1 / (2 * np.sin((2 * k - 1) * np.pi / (4 * steps + 2)))) / steps) ** 2


def dense_optimum(steps: int, rounds: int = 60) -> float:
    """The best factorisation of all."""
    counts = np.tril(np.ones((steps, steps)))
    gram, weights = counts.T @ counts, np.ones(steps)
    for _ in range(rounds):
        root = np.sqrt(weights)
        values, vectors = np.linalg.eigh(root[:, None] * gram * root)
        middle = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        weights = np.diag(middle).copy()
    strategy = middle / np.outer(root, root)
    return float(np.trace(np.linalg.solve(strategy / strategy.diagonal().max(), gram)) / steps)


def running(report: Report) -> None:
    """Running totals of streams of several lengths."""
    for steps in (*DENSE, 4096, STEPS):
        report.heading(f"mean squared error of {steps:,} running totals", "error", "over bound", "words")
        bound = lower_bound(steps)
        buffered = Buffered.square_root(steps)
        found: dict[str, tuple[float, int]] = {"lower bound": (bound, 0)}
        if steps in DENSE:
            found["dense optimum"] = dense_optimum(steps), steps
        if steps in OPTIMUM:
            found["dense optimum"] = OPTIMUM[steps], steps
        found["sfumato, chosen"] = _of(choose(steps))
        found["buffers, columns not scaled"] = _of(Factorisation(steps, buffered))
        if steps <= 4096:
            found["square root"] = _of(Factorisation(steps, Banded.square_root(steps)))
            found["square root, columns scaled"] = _of(Factorisation(steps, Banded.square_root(steps), True))
        found["band of 64"] = _of(Factorisation(steps, Banded.square_root(64)))
        found["binary tree, refined"] = tree_error(steps, refined=True), steps.bit_length()
        found["binary tree"] = tree_error(steps), steps.bit_length()
        found["independent noise"] = _of(Factorisation(steps, Banded()))
        for who, (error, words) in found.items():
            report.row(
                f"{steps:,} steps",
                who,
                f"{error:.4g}",
                times(error / bound),
                f"{words}",
                error=error,
                over_bound=error / bound,
            )
        ours = found["sfumato, chosen"][0]
        if "dense optimum" in found:
            report.figure(
                f"{steps:,} totals over the dense optimum",
                ours / found["dense optimum"][0],
                "<=",
                1.05,
                unit=" ×",
            )
        if steps >= 4096:
            report.figure(f"{steps:,} totals over the lower bound", ours / bound, "<=", 1.05, unit=" ×")
            report.figure(
                f"{steps:,} totals over the binary tree", ours / tree_error(steps), "<=", 0.5, unit=" ×"
            )
            report.figure(
                f"{steps:,} totals over the refined tree",
                ours / tree_error(steps, refined=True),
                "<=",
                0.5,
                unit=" ×",
            )


def _of(plan: Factorisation) -> tuple[float, int]:
    return plan.mean_square(), plan.factor.words


def step(report: Report) -> None:
    """One step of a long stream with many groups, its state, and what is done once a stream."""
    report.heading(f"a stream of {STEPS:,} steps, {GROUPS:,} groups", "wall", "CPU")
    plan = Factorisation(STEPS, Buffered.square_root(STEPS), True)
    made = once(lambda: (plan.norm, plan.scales))
    report.row("made once", "sfumato", seconds(made.wall), seconds(made.cpu), timing=made)
    stream = Continual(plan, 1, "1e-6", sensitivity=1, groups=GROUPS)
    course = stream.start(Continual.secret())
    values = np.arange(GROUPS)
    course.release(values)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    walls, cpus = [], []
    for _ in range(REPEATS):
        wall, cpu = time.perf_counter(), time.process_time()
        course.release(values)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    timing = best(walls, cpus)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    median = float(np.median(walls))
    report.row("one step, best", "sfumato", seconds(timing.wall), seconds(timing.cpu), timing=timing)
    report.row(
        "one step, median", "sfumato", seconds(median), seconds(float(np.median(cpus))), grown_kib=grown
    )
    saved = once(course.save)
    report.row(
        f"save, {len(course.save()):,} bytes",
        "sfumato",
        seconds(saved.wall),
        seconds(saved.cpu),
        timing=saved,
    )
    report.figure("one step of 1e6, 1,000 groups, median", median * 1000, "<=", 10, unit=" ms")
    report.figure("state of such a stream", stream.memory / 1000, "<=", 200, unit=" kB")


def year(report: Report) -> None:
    """A year of daily releases by group, beside the plain queries of each day.

    The year is caught up on at once, and taken day by day by a session that stays open. Plain DuckDB finds a
    day by the statistics of a file. Here none decide whether a row counts: what is read by them is held to
    the count of all rows. The last line is the plain queries without statistics.
    """
    report.heading(f"{YEAR} days of {YEAR_ROWS:,} rows, 50 groups", "wall", "CPU")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/visits.parquet"
        plain = duckdb.connect()
        plain.execute(f"SET threads = {YEAR_THREADS}")
        plain.execute(
            f"COPY (SELECT DATE '2024-01-01' + CAST(i * {YEAR} // {YEAR_ROWS} AS INT) AS day, "
            "CAST(hash(i + 7) % 50 AS INT) AS ward, CAST(hash(i + 9) % 100 AS INT) AS cost "
            f"FROM range({YEAR_ROWS}) AS t(i)) TO '{path}'"
        )
        scan = f"FROM '{path}' WHERE day = DATE '2024-01-01' + {{}}"
        asked = f"SELECT ward, COUNT(*), SUM(cost) {scan} GROUP BY ward"

        def days() -> None:
            for day in range(YEAR):
                plain.execute(asked.format(day)).fetchall()

        table = sf.PrivateTable(
            "visits",
            source=path,
            unit=sf.PrivacyUnit.row(),
            schema={
                "day": sf.Date("2024-01-01", "2024-12-31"),
                "ward": sf.Enum(list(range(50))),
                "cost": sf.Int(0, 99),
            },
        )

        def released(stops: Sequence[datetime.date]) -> Timing:
            budget = sf.Budget(epsilon=5, delta="1e-5")
            with sf.Session(table, budget=budget, engine=DuckDB(threads=YEAR_THREADS)) as session:
                series = session.stream(
                    "SELECT day, ward, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY day, ward",
                    start="2024-01-01",
                    horizon=365,
                    epsilon=1,
                    delta="1e-6",
                )
                return once(lambda: [series.advance(stop) for stop in stops])

        each = [datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(YEAR)]
        ours, daily = released(each[-1:]), released(each)
        theirs = once(days)
        off = plain.execute(
            "SELECT string_agg(name, ',') FROM duckdb_optimizers() "
            "WHERE name LIKE '%pushdown%' OR name LIKE 'statistics%'"
        )
        plain.execute("SET disabled_optimizers = ?", [off.fetchall()[0][0]])
        blind = once(days)
    rows = (
        ("sfumato, at once", ours),
        ("sfumato, day by day", daily),
        ("DuckDB", theirs),
        ("DuckDB without statistics", blind),
    )
    for who, timing in rows:
        report.row("a year", who, seconds(timing.wall), seconds(timing.cpu), timing=timing)
    for how, timing in (("", ours), (", day by day,", daily)):
        for base, plain_timing in (("", theirs), (" without statistics", blind)):
            what = f"a year of daily releases{how} over the plain queries{base}"
            over, cpu = timing.wall / plain_timing.wall, timing.cpu / plain_timing.cpu
            report.figure(what, over, "<=", 1.5, unit=" ×", cpu=cpu)


PARTS = (running, step, year)
