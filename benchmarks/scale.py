"""How cost grows with rows, groups, columns and files, beside the plain aggregate, and where it goes.

`growth` is about the length of questions; here the question stays and the data grows. Each case and size runs
in a process of its own, ours and the plain query alike, so that the peak of memory is that of one. Questions
are new ones each time, on a ledger in memory. `scale_tables` says how large the data is and where it is kept.
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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import sfumato as sf
from benchmarks.harness import Report, seconds, times
from benchmarks.scale_tables import MOST, files, grouped, made, place, visits, wide
from benchmarks.visits import COUNTRIES, DELTA, forgetting
from sfumato.engines.prepare import prepare
from sfumato.session import answering

THREADS = 2
REPEATS, ENOUGH = 3, 60.0  # no further repetition after so many seconds
EXPONENT = 1.1
TOGETHER = 50  # means in one question
_SPACES = itertools.count(1)
STAGES = ("text to plan", "price", "ledger", "engine", "noise", "result")


@dataclass(frozen=True, slots=True)
class Case:
    """One question over data that grows.

    Attributes:
        sizes: How large, up to what the most rows allow.
        source: The files of a size.
        table: What is declared of them.
        ours: The questions; one alone has at most 64 aggregates.
        plain: The same without privacy, clamped alike, over a view of that name.
        epsilon: What is paid: enough that groups of ten rows are found.
    """

    sizes: Sequence[int]
    source: Callable[[int], str]
    table: Callable[[int, str], sf.PrivateTable]
    ours: Callable[[int], Sequence[str]]
    plain: Callable[[int], str]
    epsilon: int = 1


BY_COUNTRY = "SELECT country, COUNT(*) AS n, AVG({0}) AS m FROM visits GROUP BY country"
BY_GROUP = "SELECT g, COUNT(*) AS n FROM visits GROUP BY g"
CLAMPED = "LEAST(GREATEST(amount, 0), 200)"
ROW, USER = sf.PrivacyUnit.row(), sf.PrivacyUnit("user_id", max_groups=3)
COUNTRY: Mapping[str, sf.schema.ColumnType] = {
    "country": sf.Enum(*COUNTRIES),
    "amount": sf.Float(0, 200, nullable=False),
}


def _declared(unit: sf.PrivacyUnit) -> Callable[[int, str], sf.PrivateTable]:
    return lambda _, source: sf.PrivateTable("visits", source=source, unit=unit, schema=COUNTRY)


def _prepared(rows: int, source: str) -> sf.PrivateTable:
    """The visits as a table that was prepared, once."""
    table = _declared(USER)(rows, source)
    target = made(f"prepared-{rows}.duckdb", lambda path: prepare(table, path, threads=THREADS) and None)
    return sf.PrivateTable("visits", source=target, unit=USER, schema=COUNTRY)


def _listed(groups: int, source: str) -> sf.PrivateTable:
    return sf.PrivateTable("visits", source=source, unit=ROW, schema={"g": sf.Int(0, groups - 1)})


def _unlisted(_: int, source: str) -> sf.PrivateTable:
    return sf.PrivateTable("visits", source=source, unit=ROW, schema={"g": sf.Int()})


def _columns(columns: int, source: str) -> sf.PrivateTable:
    schema: dict[str, sf.schema.ColumnType] = {f"x{i}": sf.Float(0, 1) for i in range(columns)}
    return sf.PrivateTable("visits", source=source, unit=ROW, schema={"g": sf.Int(0, 9), **schema})


def _means(first: int, end: int) -> str:
    return f"SELECT g, {', '.join(f'AVG(x{i}) AS m{i}' for i in range(first, end))} FROM visits GROUP BY g"


def _in_parts(columns: int) -> list[str]:
    return [_means(first, min(first + TOGETHER, columns)) for first in range(0, columns, TOGETHER)]


def _up_to(*sizes: int) -> list[int]:
    return [size for size in sizes if size <= MOST]


def _by_country(
    declared: Callable[[int, str], sf.PrivateTable], source: Callable[[int], str], sizes: Sequence[int]
) -> Case:
    ours, plain = BY_COUNTRY.format("amount"), BY_COUNTRY.format(CLAMPED)
    return Case(sizes, source, declared, lambda _: [ours], lambda _: plain)


def _by_group(declared: Callable[[int, str], sf.PrivateTable], *sizes: int) -> Case:
    return Case(_up_to(*sizes), grouped, declared, lambda _: [BY_GROUP], lambda _: BY_GROUP, epsilon=10)


DECADES = (10**5, 10**6, 10**7, 10**8)
CASES: dict[str, Case] = {
    "rows, row units": _by_country(_declared(ROW), visits, _up_to(*DECADES)),
    "rows, user units": _by_country(_declared(USER), visits, _up_to(*DECADES)),
    "rows, prepared": _by_country(_prepared, visits, _up_to(*DECADES[:3])),
    "listed groups": _by_group(_listed, 1, 10**3, 10**5),
    "unlisted groups": _by_group(_unlisted, 1, 10**3, 10**5, 10**6),
    "means of columns": Case((1, 10, 100, 500), wide, _columns, _in_parts, lambda size: _means(0, size)),
    "files": _by_country(_declared(USER), files, (1, 10, 100, 1000)),
}


class Stages:
    """Seconds in each stage of a question, and what its reads brought."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self.lines, self.travelled, self._inside = 0, 0, 0.0

    @contextmanager
    def running(self, stage: str) -> Iterator[None]:
        """Count what runs inside for a stage, less what is counted for another one there."""
        start, outside = time.perf_counter(), self._inside
        self._inside = 0.0
        try:
            yield
        finally:
            took = time.perf_counter() - start
            self.seconds[stage] += took - self._inside
            self._inside = outside + took

    def _timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            with self.running(stage):
                found = call(*arguments, **options)
            if isinstance(found, pa.Table):
                self.lines, self.travelled = self.lines + found.num_rows, self.travelled + found.nbytes
            return found

        return timed

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time the parts of a release that have a name of their own; what is left is the price's."""
        noise = ("privatise", "privatise_extra", "select", "select_in_rounds", "select_on_levels")
        parts: list[tuple[Any, str, str]] = [(answering, name, "noise") for name in noise]
        parts += [(sf.engines.DuckDB, "fetch", "engine"), (sf.Ledger, "debit", "ledger")]
        parts.append((sf.Ledger, "record", "ledger"))
        with ExitStack() as stack:
            for owner, name, stage in parts:
                own = getattr(owner, name)
                stack.callback(setattr, owner, name, own)
                setattr(owner, name, self._timed(stage, own))
            yield

    def ask(self, one: sf.Session, text: str, epsilon: int) -> None:
        """A whole question, stage by stage."""
        with self.watching():
            with self.running("text to plan"):
                query = one.sql(_anew(text))
            with self.running("price"):
                release = query.release(epsilon=epsilon, delta=DELTA)
            with self.running("result"):
                release.table  # noqa: B018


def _anew(text: str) -> str:
    """The same question in a text that nobody has asked: plans of texts are kept."""
    return text + " " * next(_SPACES)


def _ours(case: Case, size: int) -> tuple[Callable[[], object], Callable[[], Stages]]:
    engine = sf.engines.DuckDB(threads=THREADS)
    table = case.table(size, case.source(size))
    one = sf.Session(table, budget=sf.Budget(10**7, "0.5"), engine=engine)
    texts, renew = case.ours(size), forgetting(one)

    def call() -> None:
        renew()
        for text in texts:
            release = one.sql(_anew(text)).release(epsilon=case.epsilon, delta=DELTA)
            assert not release.free
            release.table  # noqa: B018

    def told() -> Stages:
        renew()
        stages = Stages()
        for text in texts:
            stages.ask(one, text, case.epsilon)
        return stages

    return call, told


def _plain(case: Case, size: int) -> Callable[[], object]:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"CREATE VIEW visits AS SELECT * FROM read_parquet('{case.source(size)}')")
    text = case.plain(size)
    return lambda: connection.sql(text).to_arrow_table()


def measure(name: str, size: int, who: str) -> dict[str, Any]:
    """Wall and CPU seconds, the best of several, peak memory, and for ours where the time goes."""
    case, stages = CASES[name], None
    start = time.perf_counter()
    if who == "sfumato":
        call, told = _ours(case, size)
    else:
        call, told = _plain(case, size), None
    opened = time.perf_counter() - start
    before = _peak()
    walls: list[float] = []
    cpus: list[float] = []
    call()
    while len(walls) < REPEATS and sum(walls) < ENOUGH:
        gc.collect()
        cpu, wall = time.process_time(), time.perf_counter()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    found: dict[str, Any] = {
        "wall": min(walls),
        "cpu": min(cpus),
        "walls": walls,
        "cpus": cpus,
        "mb": _peak(),
        "mb_before": before,
        "opened": opened,
    }
    if told is not None:
        stages = told()
        found |= {"stages": stages.seconds, "lines": stages.lines, "travelled": stages.travelled}
    return found


def _peak() -> float:
    """The greatest memory of this process so far, in MB.

    Linux counts that of the process that started it among `ru_maxrss`, and not among `VmHWM`.
    """
    if sys.platform == "linux":
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _run(name: str, size: int, who: str) -> dict[str, Any]:
    environment = {**os.environ, "SCALE_FOLDER": str(place()), "SCALE_ROWS": str(MOST)}
    command = [sys.executable, "-m", "benchmarks.scale", name, str(size), who]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    if run.returncode:
        raise RuntimeError(f"{name}, {size:,}, {who}: {run.stderr.strip()[-300:]}")
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def _part(report: Report, name: str) -> None:
    """Each size of a case, ours beside the plain query, and by how much the cost grows."""
    case = CASES[name]
    report.heading(name, "wall", "CPU", "peak", "over plain")
    cpus: dict[int, float] = {}
    for size in case.sizes:
        case.table(size, case.source(size))  # made once, by this process
        plain, ours = (_run(name, size, who) for who in ("plain DuckDB", "sfumato"))
        for who, each in (("plain DuckDB", plain), ("sfumato", ours)):
            ratio = each["wall"] / plain["wall"]
            cells = seconds(each["wall"]), seconds(each["cpu"]), f"{each['mb']:.0f} MB", times(ratio)
            report.row(f"{name}: {size:,}", who, *cells, size=size, over_plain=ratio, **each)
        total = sum(ours["stages"].values())
        shares = ", ".join(f"{stage} {100 * ours['stages'][stage] / total:.0f} %" for stage in STAGES)
        print(f"    {shares}; {ours['lines']:,} lines, {ours['travelled']:,} bytes travel")
        cpus[size] = ours["cpu"]
    if len(cpus) > 1 and name != "files":
        (small, least), (large, most) = list(cpus.items())[-2:]
        exponent = math.log(most / least) / math.log(large / small)
        report.figure(f"{name}: growth exponent, {small:,} to {large:,}", exponent, "<=", EXPONENT)


def rows(report: Report) -> None:
    """Rows of a Parquet file: row units, user units, and user units on a table that was prepared."""
    for name in CASES:
        if name.startswith("rows"):
            _part(report, name)


def groups(report: Report) -> None:
    """Groups, listed and not."""
    _part(report, "listed groups")
    _part(report, "unlisted groups")


def columns(report: Report) -> None:
    """Columns, all of them measured in one question."""
    _part(report, "means of columns")


def folders(report: Report) -> None:
    """Files of one source."""
    _part(report, "files")


PARTS = (rows, groups, columns, folders)

if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
