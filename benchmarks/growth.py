"""What a question costs beside its scan, and how that grows with lists, aggregates, columns and groups.

Each case runs in a process of its own, after a small question that loads what all questions load. CPU seconds
count, since the machine may do other things, and the peak of memory stands beside them. An exponent is the
logarithm of a ratio of costs over that of the sizes: 1 is linear. What an older version takes for the same
stands beside where `GROWTH_BEFORE` names its folder `src`.
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks import past, throughput
from benchmarks.harness import Report, seconds
from benchmarks.visits import folder, visits
from sfumato.engines.prepare import prepare

LARGEST_EXPONENT = 1.1
REPEATS = 3
ROWS = 1000
MANY = 100_000
BEFORE = os.environ.get("GROWTH_BEFORE")
ENOUGH = 60.0  # seconds: an older version is not waited for any longer


@dataclass(frozen=True, slots=True)
class Case:
    """A question whose size varies.

    Attributes:
        ask: From a size to what makes everything ready and gives the call that is timed.
        reach: The most CPU seconds at each size; None: nothing is set for it.
        memory: The most MB of the process at the greatest size; None: nothing is set.
        grows: Whether the cost is expected to follow the size, so that an exponent says something.
    """

    ask: Callable[[int], Callable[[], Callable[[], object]]]
    reach: Mapping[int, float | None]
    memory: int | None = None
    grows: bool = True


def session(columns: Mapping[str, Any], schema: Mapping[str, sf.schema.ColumnType]) -> sf.Session:
    """A session over one table of rows that are units, with a budget that is not used up."""
    table = sf.PrivateTable("t", source=pa.table(columns), unit=sf.PrivacyUnit.row(), schema=schema)
    return sf.Session(table, budget=sf.Budget(10**7, "0.5"))


def wide(columns: int, rows: int = ROWS) -> sf.Session:
    """A key `g` of ten values and numbers `x0`, …."""
    drawn = np.random.default_rng(0)
    data = {"g": drawn.integers(0, 10, rows)} | {f"x{i}": drawn.random(rows) for i in range(columns)}
    return session(data, {"g": sf.Int(0, 9)} | {f"x{i}": sf.Float(0, 1) for i in range(columns)})


Asked = Callable[[], Callable[[], object]]


def anew(make: Callable[[], sf.Session], text: str, **price: Any) -> Asked:
    """The whole question, from text to table, in a new session each time."""

    def ready() -> Callable[[], object]:
        one = make()
        return lambda: one.sql(text).release(**({"epsilon": 1} | price)).table

    return ready


def again(make: Callable[[], sf.Session], text: str, **price: Any) -> Asked:
    """The same question once it is on record."""

    def ready() -> Callable[[], object]:
        one = make()
        call = lambda: one.sql(text).release(**({"epsilon": 1} | price)).table  # noqa: E731
        call()
        return call

    return ready


def reading(make: Callable[[], sf.Session], text: str) -> Asked:
    """From text to a plan, without a price."""

    def ready() -> Callable[[], object]:
        one = make()
        return lambda: one.sql(text)

    return ready


def listed(groups: int) -> sf.Session:
    """A key of so many declared values."""
    drawn = np.random.default_rng(0)
    data = {"k": drawn.integers(0, groups, MANY), "x": drawn.random(MANY)}
    return session(data, {"k": sf.Int(0, groups - 1), "x": sf.Float(0, 1)})


def unlisted(groups: int) -> sf.Session:
    """A key of so many texts that nobody declared, three rows each."""
    keys = pa.array(np.arange(groups).astype(str))
    return session({"k": pa.concat_arrays([keys] * 3)}, {"k": sf.Text()})


RANKED = "SELECT k, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM t GROUP BY k"
BY_KEY = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
FOUND: Mapping[str, Any] = {"epsilon": 100, "delta": "1e-3"}


def _in(size: int) -> Asked:
    values = ",".join(map(str, range(size)))
    return anew(lambda: wide(5), f"SELECT COUNT(*) AS n FROM t WHERE g IN ({values})")


def _averages(size: int) -> Asked:
    means = ", ".join(f"AVG(x{i})" for i in range(size))
    return anew(lambda: wide(size), f"SELECT g, {means} FROM t GROUP BY g")


def _read_averages(size: int) -> Asked:
    return reading(lambda: wide(size), f"SELECT {', '.join(f'AVG(x{i})' for i in range(size))} FROM t")


def _case(size: int) -> Asked:
    branches = " ".join(f"WHEN g = {i} THEN {i % 7}" for i in range(size))
    return anew(lambda: wide(5), f"SELECT SUM(CASE {branches} ELSE 0 END) AS s FROM t")


def _terms(word: str) -> Callable[[int], Asked]:
    def ask(size: int) -> Asked:
        terms = f" {word} ".join(f"x{i % 5} > {i / 1000}" for i in range(size))
        return anew(lambda: wide(5), f"SELECT COUNT(*) AS n FROM t WHERE {terms}")

    return ask


def _nested(size: int) -> Asked:
    return anew(lambda: wide(1), f"SELECT SUM({'ABS(' * size}x0{')' * size}) AS s FROM t")


def _levels(size: int) -> Asked:
    asked = ", ".join(f"QUANTILE_CONT(x0, {(i + 1) / (size + 1):.4f}) AS q{i}" for i in range(size))
    return anew(lambda: wide(1, MANY), f"SELECT {asked} FROM t")


def _one_of(size: int) -> Asked:
    return anew(lambda: wide(size), "SELECT AVG(x0) AS m FROM t")


def _combined(size: int) -> Asked:
    keys = sf.Keys.of(("g", "x0"), [(i, i) for i in range(size)])
    data, schema = {"g": [1, 2], "x0": [1, 2]}, {"g": sf.Int(), "x0": sf.Int()}

    def ready() -> Callable[[], object]:
        asked = session(data, schema).table("t")
        return lambda: asked.group_by(keys).agg(n=sf.count()).release(epsilon=1).table

    return ready


def _small(size: int) -> Asked:
    drawn = np.random.default_rng(0)
    data = {"k": drawn.integers(0, size, ROWS), "x": drawn.random(ROWS)}
    schema = {"k": sf.Int(0, size - 1), "x": sf.Float(0, 1)}
    text = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t WHERE x > 0.5 GROUP BY k"
    return anew(lambda: session(data, schema), text)


def _visited(rows: int, unit: sf.PrivacyUnit) -> sf.PrivateTable:
    schema: dict[str, sf.schema.ColumnType] = {"country": sf.Text(), "amount": sf.Float(0, 200)}
    schema |= {"age": sf.Int(18, 99), "day": sf.Int(0, 364)}
    return sf.PrivateTable("visits", source=visits(rows), unit=unit, schema=schema)


def _count(size: int) -> Asked:
    """A new count with a condition that all rows pass, in a warm session on a ledger on disk."""
    ledger = folder() / "count.ledger"
    one = sf.Session(_visited(size, sf.PrivacyUnit.row()), budget=sf.Budget(10**7, "0.5"), ledger=ledger)
    bounds = itertools.count(-1, -1)

    def ask() -> object:
        text = f"SELECT COUNT(*) AS n FROM visits WHERE day >= {next(bounds)}"
        return one.sql(text).release(epsilon=1).table

    def ready() -> Callable[[], object]:
        ask()
        return ask

    return ready


def _prepare(size: int) -> Asked:
    """A table written anew, clustered by user and ranked."""
    table = _visited(size, sf.PrivacyUnit("user_id", max_groups=3))
    return lambda: lambda: prepare(table, folder() / "visits.duckdb", force=True)


CASES: dict[str, Case] = {
    "IN list": Case(_in, {1000: 0.05, 10_000: 0.3}),
    "AVGs by group": Case(_averages, {5: 0.08, 20: 0.15, 40: 0.25}),
    "AVGs of as many columns, text to plan": Case(_read_averages, {10: None, 50: 0.2}),
    "CASE branches": Case(_case, {10: None, 100: 0.05, 1000: None}),
    "AND terms": Case(_terms("AND"), {10: None, 100: 0.05, 1000: None}),
    "OR terms": Case(_terms("OR"), {10: None, 100: None, 1000: None}),
    "calls inside each other": Case(_nested, {5: None, 25: None}),
    "quantile levels": Case(_levels, {1: 0.05, 10: 0.1, 40: 0.2}),
    "MEDIAN by listed groups": Case(
        lambda size: anew(lambda: listed(size), "SELECT k, MEDIAN(x) AS m FROM t GROUP BY k"),
        {1000: 0.5, 5000: 1.5},
        memory=300,
    ),
    "listed groups": Case(lambda size: anew(lambda: listed(size), BY_KEY), {10**4: 0.05, 10**5: 0.25}),
    "listed groups again, free": Case(
        lambda size: again(lambda: listed(size), BY_KEY), {10**4: None, 10**5: 0.05}
    ),
    "listed groups, ranked": Case(
        lambda size: anew(lambda: listed(size), RANKED), {10**4: None, 10**5: None}
    ),
    "groups that Keys.of lists": Case(_combined, {300: None, 3000: None}),
    "unknown groups": Case(
        lambda size: anew(lambda: unlisted(size), BY_KEY, **FOUND), {10**5: 0.2, 10**6: 1.5}, memory=500
    ),
    "unknown groups again, free": Case(
        lambda size: again(lambda: unlisted(size), BY_KEY, **FOUND), {10**5: None, 10**6: None}
    ),
    "columns of a table, of which one is read": Case(_one_of, {50: None, 500: None}, 320, grows=False),
    "COUNT and SUM by 30 keys, 1,000 rows": Case(_small, {30: 0.014}, grows=False),
    "rows of a file, COUNT with WHERE": Case(_count, {10**6: 0.012, 10**7: 0.05}),
    "rows of a file, prepare": Case(_prepare, {10**6: None, 10**7: 6.0}),
}


def measured(name: str, size: int) -> dict[str, float]:
    """CPU seconds of one case, the least of several, and the peak of memory; in a process of its own."""
    found = _run(name, size, REPEATS, os.environ)
    if found is None:
        raise RuntimeError(f"{name}, {size:,}: no figure")
    return found


def earlier(name: str, size: int) -> dict[str, float] | None:
    """The same of the older version, measured once; None if there is none, or it does not get there."""
    if BEFORE is None:
        return None
    path = os.pathsep.join([BEFORE, str(Path(__file__).parents[1])])
    return _run(name, size, 1, {**os.environ, "PYTHONPATH": path}, timeout=ENOUGH)


def _run(
    name: str, size: int, repeats: int, environment: Mapping[str, str], timeout: float | None = None
) -> dict[str, float] | None:
    command = [sys.executable, "-m", "benchmarks.growth", name, str(size), str(repeats)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=timeout)
    except subprocess.TimeoutExpired:
        return None
    if run.returncode:
        return None
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def _measure(name: str, size: int, repeats: int) -> dict[str, float]:
    wide(1).sql("SELECT g, COUNT(*) AS n, AVG(x0) AS m FROM t GROUP BY g").release(epsilon=1).error(0.95)
    ready = CASES[name].ask(size)
    cpus = []
    for _ in range(repeats):
        call = ready()
        start = time.process_time()
        call()
        cpus.append(time.process_time() - start)
        del call
        gc.collect()  # the next session's memory is not added to this one's
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"cpu": min(cpus), "mb": peak / (1024 if sys.platform == "linux" else 2**20)}


def _held(report: Report, name: str) -> None:
    case = CASES[name]
    found = {size: measured(name, size) for size in case.reach}
    for size, each in found.items():
        old = earlier(name, size)
        report.row(
            name,
            f"{size:,}",
            seconds(each["cpu"]),
            f"{each['mb']:.0f} MB",
            *([] if old is None else [seconds(old["cpu"]), f"{old['mb']:.0f} MB"]),
            cpu_seconds=each["cpu"],
            mb=each["mb"],
            before=old,
        )
        reach = case.reach[size]
        if reach is not None:
            report.figure(f"{name}, {size:,}: CPU", each["cpu"], "<=", reach, unit=" s")
    if case.memory is not None:
        report.figure(
            f"{name}: memory", max(each["mb"] for each in found.values()), "<=", case.memory, unit=" MB"
        )
    if case.grows:
        (small, least), *_, (large, most) = found.items()
        exponent = math.log(most["cpu"] / least["cpu"]) / math.log(large / small)
        report.figure(f"{name}: growth exponent", exponent, "<=", LARGEST_EXPONENT)


def _part(report: Report, title: str, names: Sequence[str]) -> None:
    report.heading(title, "CPU", "peak", *(["before: CPU", "peak"] if BEFORE else []))
    for name in names:
        _held(report, name)


def texts(report: Report) -> None:
    """Long texts: lists, branches, aggregates."""
    names = [
        "IN list",
        "AVGs by group",
        "AVGs of as many columns, text to plan",
        "CASE branches",
        "AND terms",
        "OR terms",
        "calls inside each other",
    ]
    _part(report, "long questions about few rows, whole", names)


def levels(report: Report) -> None:
    """Quantiles: many levels, many groups."""
    _part(report, f"quantiles, {MANY:,} rows", ["quantile levels", "MEDIAN by listed groups"])


def groups(report: Report) -> None:
    """Many groups, listed and found, and the same once they are on record."""
    _part(report, "many groups", [name for name in CASES if "groups" in name and "MEDIAN" not in name])


def small(report: Report) -> None:
    """What a small question costs, beside a table of many columns and in a warm process."""
    names = ["columns of a table, of which one is read", "COUNT and SUM by 30 keys, 1,000 rows"]
    _part(report, "small questions", names)


def rows(report: Report) -> None:
    """Scans of a file, and preparing it."""
    _part(report, "rows of a file", [name for name in CASES if name.startswith("rows of a file")])


FIRST = """
import sfumato as sf
table = sf.PrivateTable("t", source={path!r}, unit=sf.PrivacyUnit.row(), schema={{"x": sf.Float(0, 1)}})
sf.Session(table, budget=sf.Budget(10, "0.1")).sql("SELECT COUNT(*) AS n FROM t").release(epsilon=1).table
"""
OTHERS = "import numpy, pyarrow, duckdb, sqlglot, flint, cryptography"


def fresh(report: Report) -> None:
    """A new process: up to its first private answer, its help, and one query on the command line."""
    report.heading("a fresh process", "CPU", *(["before: CPU"] if BEFORE else []))
    now = _fresh(os.environ)
    before = _fresh({**os.environ, "PYTHONPATH": BEFORE}) if BEFORE else {}
    reach = {"first private answer": 0.8, "sfumato --help": 0.15, "sfumato query": 0.9}
    for name, cost in now.items():
        old = before.get(name)
        shown = [] if old is None else [seconds(old)]
        report.row(name, "", seconds(cost), *shown, cpu_seconds=cost, before=old)
        if name in reach:
            report.figure(f"{name}: CPU", cost, "<=", reach[name], unit=" s")


def _fresh(environment: Mapping[str, str]) -> dict[str, float]:
    """CPU seconds of each, the least of several; what was imported once is kept compiled."""
    environment = {name: value for name, value in environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.parquet"
        pq.write_table(pa.table({"x": [0.25, 0.5]}), path)
        catalog = Path(folder) / "sfumato.toml"
        catalog.write_text(
            '[datasets.t]\nepsilon = 10\n\n[tables.t]\nsource = "t.parquet"\nunit = "row"\n\n'
            '[tables.t.columns]\nx = { type = "float", lower = 0, upper = 1 }\n'
        )
        cli = [sys.executable, "-c", "from sfumato.cli import main; main()"]
        runs = {
            "packages that it stands on": [sys.executable, "-c", OTHERS],
            "first private answer": [sys.executable, "-c", FIRST.format(path=str(path))],
            "sfumato --help": [*cli, "--help"],
            "sfumato query": [*cli, "query", "SELECT COUNT(*) AS n FROM t", "--epsilon", "0.1"],
        }
        return {
            name: min(_child(command, folder, environment) for _ in range(REPEATS + 1))
            for name, command in runs.items()
        }


def _child(command: list[str], folder: str, environment: Mapping[str, str]) -> float:
    """CPU seconds of a process, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[-3:])}: {done.stderr.strip()[-300:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


PARTS = (texts, levels, groups, small, rows, fresh, *past.PARTS, *throughput.PARTS)

if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else REPEATS)))
