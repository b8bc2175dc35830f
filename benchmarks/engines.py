"""The same question on DuckDB, PostgreSQL and Spark, beside the plain one on each, and beside Tumult.

Sum and mean by country with user units (`engine_questions`), each time in a text that nobody has asked, on a
ledger in memory. CPU seconds are those of this process and of all that it started: the server of PostgreSQL,
the JVM of Spark, its workers. What runs on Spark has a process of its own for each part (`engine_spark`).
`ENGINES_MOST=1e5` makes every table that small.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb

import sfumato as sf
from benchmarks import engine_questions, engine_servers, tumult
from benchmarks.harness import Report, Timing, race, seconds, times
from benchmarks.processes import TICK, cpu_seconds
from benchmarks.query import plain as plain_duckdb
from benchmarks.visits import folder, visits

MOST = int(float(os.environ.get("ENGINES_MOST", "1e7")))
SIZES = {
    "Tumult": 10**5,
    "shuffled": 10**7,
    "DuckDB": 10**7,
    "PostgreSQL": 10**6,
    "Spark": 10**6,
    "small": 10**3,
    "groups": 10**7,
}
ROWS_A_GROUP = 2
REPEATS, SMALL = 5, 40  # of a question, and of a small one
THREADS = 2
UNPREPARED, PREPARED = 10, 1.5
COLUMNS = "wall", "CPU", "over plain"


def size(name: str) -> int:
    """How many rows, or groups, a part is about."""
    return min(SIZES[name], MOST)


def beside_tumult(report: Report) -> None:
    """Spark, after start-up, beside Tumult Analytics: a process of its own each, one after the other."""
    rows = size("Tumult")
    source = str(visits(rows))
    case = f"sum and mean, {rows:,} rows"
    report.heading("user-level sum and mean by country on Spark, beside Tumult", "wall", "CPU", "peak")
    found = _on_spark("by country", source, "sfumato")
    ours = _timing(found["sfumato"])
    together = found["peaks"]["together"]
    _versions(report, found["versions"])
    cells = seconds(ours.wall), seconds(min(ours.cpus)), f"{together:.0f} MB"
    report.row(case, "sfumato", *cells, timing=ours, megabytes=together, first=found["sfumato"]["first"])
    peer = tumult.measured(source, THREADS, "4g", warm=1, repeats=2)
    if peer is None:
        report.missing(case, "Tumult")
        wall, cpu, its = (tumult.CITED[name] for name in ("wall", "cpu", "together"))
        report.row(case, "Tumult, cited", seconds(wall), seconds(cpu), f"{its:.0f} MB", **tumult.CITED)
    else:
        _versions(report, {f"Tumult's {name}": version for name, version in peer["versions"].items()})
        timing, its = peer["timing"], peer["together"]
        wall, cpu = timing.wall, min(timing.cpus)
        cells = seconds(wall), seconds(cpu), f"{its:.0f} MB"
        report.row(case, "Tumult", *cells, timing=timing, megabytes=its)
    facts = {"peer": "cited" if peer is None else "same run", "by_wall": wall / ours.wall}
    what = f"Spark: Tumult's CPU seconds over ours, {rows:,} rows"
    report.figure(what, cpu / min(ours.cpus), ">=", 10, unit=" ×", **facts)


def shuffled(report: Report) -> None:
    """Spark with many rows: bytes that are shuffled and CPU seconds over the plain query."""
    rows = size("shuffled")
    report.heading(f"user-level sum and mean by country on Spark, {rows:,} rows", *COLUMNS, "shuffled")
    who = ("plain", "by user", "sfumato", "prepared")
    found = _on_spark("by country", str(visits(rows)), *who)
    base = found["plain"]
    for name in (*who, "plain, prepared"):
        if name not in found:
            report.row("sum and mean", name, "absent: the engine prepares no tables", absent=True)
            continue
        each, timing = found[name], _timing(found[name])
        over, volume = timing.wall / base["wall"], f"{each['shuffled']:,} B"
        cells = seconds(timing.wall), seconds(min(timing.cpus)), times(over), volume
        facts = {key: each[key] for key in ("jobs", "shuffled", "stages", "first")}
        report.row("sum and mean", name, *cells, timing=timing, **facts)
    for name, beside in (("sfumato", "plain"), ("sfumato", "by user"), ("prepared", "plain")):
        if name in found:
            over, cpu = (found[name][key] / found[beside][key] for key in ("shuffled", "cpu"))
            their = "the plain query" if beside == "plain" else "a plain query by user first"
            ours = "prepared" if name == "prepared" else "unprepared"
            report.figure(f"Spark: shuffled bytes, {ours}, over {their}", over, "<=", 1.2, unit=" ×")
            report.figures[-1]["cpu_seconds_over"] = cpu


def duckdb_overhead(report: Report) -> None:
    """DuckDB over Parquet, and on a table that was prepared."""
    rows = size("DuckDB")
    source, target = visits(rows), folder() / "engines.prepared.duckdb"
    calls = {"plain": plain_duckdb(rows, engine_questions.PLAIN)}
    with ExitStack() as stack:

        def ours(table: str | Path) -> Callable[[], object]:
            engine = stack.enter_context(sf.engines.DuckDB(threads=THREADS))
            return engine_questions.asked(stack.enter_context(engine_questions.session(table, engine)))

        calls["sfumato"] = ours(source)
        prepared = engine_questions.prepared(source, target)
        if prepared is not None:
            calls["plain, prepared"] = _in_file(target)
            calls["prepared"] = ours(prepared)
        found = race(calls, repeats=REPEATS, budget=60.0, clock=cpu_seconds)
    _overhead(report, "DuckDB", rows, found)


def _in_file(path: Path) -> Callable[[], object]:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
    connection.execute("CREATE VIEW visits AS SELECT * FROM file.main.visits")
    return lambda: connection.sql(engine_questions.PLAIN).to_arrow_table()


def postgres_overhead(report: Report) -> None:
    """A table of PostgreSQL, and one that was prepared there."""
    rows = size("PostgreSQL")
    try:
        _overhead(report, "PostgreSQL", rows, _on_postgres(report, rows, repeats=REPEATS, prepared=True))
    except ImportError:
        report.missing("sum and mean", "PostgreSQL")


def spark_overhead(report: Report) -> None:
    """Parquet on Spark, and a table that was prepared there."""
    rows = size("Spark")
    found = _on_spark("by country", str(visits(rows)), "plain", "sfumato", "prepared")
    timings = {name: _timing(each) for name, each in found.items() if "walls" in each}
    _overhead(report, "Spark", rows, timings)


def small_postgres(report: Report) -> None:
    """What a question costs on PostgreSQL where there are few rows."""
    rows = size("small")
    try:
        found = _on_postgres(report, rows, repeats=SMALL, prepared=False)
    except ImportError:
        report.missing("small question", "PostgreSQL")
        return
    report.heading(f"a small question on PostgreSQL, {rows:,} rows", "wall", "CPU")
    for who, each in found.items():
        report.row("on PostgreSQL", who, seconds(each.wall), seconds(each.cpu), timing=each)
    more = found["sfumato"].wall - found["plain"].wall
    report.figure("PostgreSQL: a small question over the plain one", 1e3 * more, "<=", 20, unit=" ms")


def small_spark(report: Report) -> None:
    """What a question costs on Spark where there are few rows: jobs, and seconds over the plain one."""
    rows = size("small")
    report.heading(f"a small question on Spark, {rows:,} rows", "wall", "CPU", "jobs")
    found = _on_spark("by country", str(visits(rows)), "plain", "sfumato")
    plain, ours = found["plain"], found["sfumato"]
    for who, each in (("plain", plain), ("sfumato", ours)):
        timing, jobs = _timing(each), each["jobs"]
        cells = seconds(timing.wall), seconds(timing.cpu), str(jobs)
        report.row("on Spark", who, *cells, timing=timing, jobs=jobs, first=each["first"])
    what = "Spark: a small question over the plain one"
    report.figure(f"{what}, jobs", ours["jobs"] - plain["jobs"], "<=", 1)
    report.figure(f"{what}, in plain ones", ours["wall"] / plain["wall"] - 1, "<=", 1)


def groups(report: Report) -> None:
    """Noise for groups that nobody listed, drawn on Spark and written to files there.

    The aggregation is the statement of the question, run to its end by the same engine, whose result is
    dropped (Spark's `noop` writer). The figure is all of `write`, from the text to files that are in place,
    over that: wall seconds, the best of each. What the noise adds is one less.
    """
    count = size("groups")
    source = folder() / f"groups-{count}.parquet"
    if not source.exists():
        rows = f"SELECT (i * 2654435761) % {count} AS g FROM range({ROWS_A_GROUP * count}) AS t(i)"
        duckdb.sql(rows).write_parquet(str(source))
    report.heading(f"{count:,} groups on Spark, written to files", "wall", "CPU", "driver", "JVM")
    found = _on_spark("groups", str(source))
    whole, base = _timing(found["written"]), _timing(found["aggregation"])
    peaks = found["peaks"]
    for who, timing in (("aggregation", base), ("sfumato", whole)):
        cells = seconds(timing.wall), seconds(min(timing.cpus)), f"{peaks['driver']:.0f} MB"
        each = found["aggregation" if timing is base else "written"]
        facts = {key: each[key] for key in ("jobs", "shuffled", "stages", "first")}
        report.row("counts", who, *cells, f"{peaks['java']:.0f} MB", timing=timing, **facts)
    print(f"    {found['shown']:,} groups are shown; peaks are those of the whole run")
    over, cpu = whole.wall / base.wall, min(whole.cpus) / min(base.cpus)
    what = f"Spark: {count:,} groups with noise over the aggregation"
    report.figure(what, over, "<=", 2, unit=" ×", cpu=cpu, **peaks)
    what = f"Spark: memory of the driver, {count:,} groups"
    report.figure(what, peaks["driver"], "<=", 1000, unit=" MB", shown=found["shown"])


def _on_postgres(report: Report, rows: int, *, repeats: int, prepared: bool) -> dict[str, Timing]:
    """The question on a server of its own.

    Raises:
        ImportError: if there is none to start.
    """
    import psycopg

    with ExitStack() as stack:
        address = stack.enter_context(engine_servers.postgres())
        connection = stack.enter_context(psycopg.connect(address, autocommit=True))
        engine_servers.load(connection, "visits", visits(rows))
        version = connection.execute("SHOW server_version").fetchone()
        _versions(report, {"PostgreSQL": "" if version is None else version[0]})

        def plain(name: str) -> Callable[[], object]:
            text = engine_questions.PLAIN.replace("FROM visits", f"FROM {name}")
            return lambda: connection.execute(text, binary=True).fetchall()

        def ours(name: str) -> Callable[[], object]:
            engine = stack.enter_context(sf.engines.Postgres())
            one = stack.enter_context(engine_questions.session(f"{address}::public.{name}", engine))
            return engine_questions.asked(one)

        calls = {"plain": plain("visits"), "sfumato": ours("visits")}
        target = f"{address}::public.prepared"
        if prepared and engine_questions.prepared(f"{address}::public.visits", target) is not None:
            calls |= {"plain, prepared": plain("prepared"), "prepared": ours("prepared")}
        return race(calls, repeats=repeats, warm=3, budget=60.0, clock=cpu_seconds)


def _on_spark(case: str, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.engine_spark", case, *words]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{case}: {run.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def _timing(found: Mapping[str, Any]) -> Timing:
    return Timing(found["wall"], found["cpu"], found["calls"], tuple(found["walls"]), tuple(found["cpus"]))


def _overhead(report: Report, engine: str, rows: int, found: Mapping[str, Timing]) -> None:
    """Each way beside the plain query over the source."""
    report.heading(f"user-level sum and mean by country on {engine}, {rows:,} rows", *COLUMNS)
    base = found["plain"]
    for who, each in found.items():
        cells = seconds(each.wall), seconds(each.cpu), times(each.wall / base.wall)
        report.row(f"on {engine}", who, *cells, timing=each)
    for who, name, most in (("sfumato", "unprepared", UNPREPARED), ("prepared", "prepared", PREPARED)):
        if who not in found:
            report.row(f"on {engine}", who, "absent: the engine prepares no tables", absent=True)
            continue
        ours = found[who]
        what = f"{engine}: sum and mean, {name}, over plain, {rows:,} rows"
        cpu = ours.cpu / max(base.cpu, TICK)
        report.figure(what, ours.wall / base.wall, "<=", most, unit=" ×", cpu=cpu)


def _versions(report: Report, found: Mapping[str, str]) -> None:
    for name, version in found.items():
        report.row("version", name, version, version=version)


PARTS = (
    beside_tumult,
    shuffled,
    duckdb_overhead,
    postgres_overhead,
    spark_overhead,
    small_postgres,
    small_spark,
    groups,
)
