"""How many answers a second: free ones and new ones, by threads and processes that share one ledger on disk.

Every worker is a process of its own with one session, asked from one or more threads; all of them begin at
one signal. A rate is answers over the seconds from the signal to the last answer, p99 is over the answers of
all threads. Both depend on the disk's syncs and on what else the machine does: CPU seconds an answer stand
beside them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks.harness import Report, race, seconds

_KEYS, _ROWS = 10, 1000
_AGAIN = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g"
_NEW = "SELECT COUNT(*) AS n FROM t WHERE x < {}"
_WARM = 5  # answers of each thread before the signal


@dataclass(frozen=True, slots=True)
class Load:
    """Who asks how often, and what to reach.

    Attributes:
        new: Whether each question is a new one, paid for and read; otherwise one that is on record.
        processes: How many there are.
        threads: In each of them.
        answers: Of each thread.
        rate: Answers a second to reach.
        p99: Milliseconds to reach; None: nothing is set for it.
    """

    new: bool
    processes: int
    threads: int
    answers: int
    rate: float
    p99: float | None = None


LOADS = {
    "free re-reads, 1 thread": Load(False, 1, 1, 1000, 1000),
    "free re-reads, 8 threads": Load(False, 1, 8, 200, 1000, 50),
    "free re-reads, 4 processes": Load(False, 4, 1, 500, 1500),
    "new releases, 8 threads": Load(True, 1, 8, 40, 100, 150),
    "new releases, 8 processes": Load(True, 8, 1, 40, 150, 150),
}


def _session(folder: Path, ledger: Path | None) -> sf.Session:
    schema = {"g": sf.Int(0, _KEYS - 1), "x": sf.Float(0, 100)}
    table = sf.PrivateTable("t", source=str(folder / "t.parquet"), unit=sf.PrivacyUnit.row(), schema=schema)
    return sf.Session(table, budget=sf.Budget(10**6, "0.1"), ledger=ledger)


def _call(session: sf.Session, new: bool, first: int) -> Callable[[], object]:
    """One answer: the table that a text gives, each time another text if it is to be new."""
    if not new:
        return lambda: session.sql(_AGAIN).release(epsilon="0.1").table
    numbers: Iterator[int] = iter(range(first, 10**9))
    return lambda: session.sql(_NEW.format(next(numbers) / 10**7)).release(epsilon="0.1").table


def _work(folder: Path, load: Load, which: int) -> dict[str, object]:
    """In a worker: ask at the signal; how long each answer took and what all of them cost."""
    with _session(folder, folder / "t.ledger") as session:
        calls = [
            _call(session, load.new, 10**6 * (1 + which * load.threads + thread))
            for thread in range(load.threads)
        ]
        gate, taken = threading.Barrier(load.threads + 1), list[float]()

        def ask(call: Callable[[], object]) -> None:
            for _ in range(_WARM):
                call()
            gate.wait()
            gate.wait()
            for _ in range(load.answers):
                begin = time.perf_counter()
                call()
                taken.append(time.perf_counter() - begin)

        with ThreadPoolExecutor(load.threads) as pool:
            asked = [pool.submit(ask, call) for call in calls]
            gate.wait()
            print("ready", flush=True)
            sys.stdin.readline()
            cpu, begin = time.process_time(), time.time()
            gate.wait()
            for one in asked:
                one.result()
        return {
            "begin": begin,
            "end": time.time(),
            "cpu": time.process_time() - cpu,
            "taken": taken,
        }


def _measured(folder: Path, name: str) -> tuple[float, float, float]:
    """Answers a second, the 99th percentile of what one took, and CPU seconds an answer."""
    load = LOADS[name]
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.throughput", str(folder), name, str(which)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for which in range(load.processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    found = [json.loads(worker.communicate()[0].splitlines()[-1]) for worker in workers]
    taken = np.sort(np.concatenate([one["taken"] for one in found]))
    wall = max(one["end"] for one in found) - min(one["begin"] for one in found)
    cpu = sum(one["cpu"] for one in found)
    return len(taken) / wall, float(np.quantile(taken, 0.99)), cpu / len(taken)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder with the table's file."""
    with tempfile.TemporaryDirectory() as made:
        drawn = np.random.default_rng(0)
        columns = {"g": drawn.integers(0, _KEYS, _ROWS), "x": drawn.random(_ROWS) * 100}
        pq.write_table(pa.table(columns), Path(made) / "t.parquet")
        yield Path(made)


def rates(report: Report) -> None:
    """Answers a second from a ledger on disk, free and new."""
    report.heading("answers a second, ledger on disk", "a second", "p99", "CPU each")
    for name, load in LOADS.items():
        with _folder() as folder:
            with _session(folder, folder / "t.ledger") as session:
                _call(session, new=False, first=0)()
            rate, slow, cpu = _measured(folder, name)
        report.row(
            name, "sfumato", f"{rate:,.0f}", seconds(slow), seconds(cpu), rate=rate, p99=slow, cpu_seconds=cpu
        )
        report.figure(f"{name}: a second", rate, ">=", load.rate)
        if load.p99 is not None:
            report.figure(f"{name}: p99", slow * 1e3, "<=", load.p99, unit=" ms")


def own(report: Report) -> None:
    """What one answer costs in a process that does nothing else."""
    report.heading("one answer", "wall", "CPU")
    with (
        _folder() as folder,
        _session(folder, None) as memory,
        _session(folder, folder / "t.ledger") as disk,
    ):
        calls = {
            "free re-read": _call(disk, new=False, first=0),
            "new release, ledger in memory": _call(memory, new=True, first=1),
            "new release, ledger on disk": _call(disk, new=True, first=1),
        }
        reach = dict(zip(calls, (1.0, None, 8.0), strict=True))
        for name, timing in race(calls, repeats=7, calls=30, warm=10).items():
            report.row(name, "sfumato", seconds(timing.wall), seconds(timing.cpu), timing=timing)
            most = reach[name]
            if most is not None:
                report.figure(f"{name}: CPU", min(timing.cpus) * 1e3, "<=", most, unit=" ms")


PARTS = (own, rates)

if __name__ == "__main__":
    print(json.dumps(_work(Path(sys.argv[1]), LOADS[sys.argv[2]], int(sys.argv[3]))))
