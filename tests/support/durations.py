"""What the tests take: which are slow, and so left out by `make quick`, and how two processes share them.

`tests/durations.txt` has the processor seconds of all test functions that take noticeable time, with those
of processes that they start. `make durations` measures and writes it; a function that is not listed is fast.
"""

from __future__ import annotations

import fcntl
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Measured", "count", "follow", "listed", "parsed", "written"]

QUICK = 0.01
"""Seconds that the cases of one function may take in `make quick`: of more cases some count as slow."""

_PLACE = "tests/durations.txt"
_BROWSER = "tests/page/"
_HEAD = "# Of each test function the longest case, all cases and their number; written by `make durations`.\n"


@dataclass(frozen=True)
class Measured:
    """What the cases of one test function took, in seconds of a processor."""

    longest: float
    total: float
    cases: int

    @property
    def mean(self) -> float:
        """What one case takes."""
        return self.total / self.cases

    def quick(self, cases: int) -> int:
        """How many of its cases `make quick` runs."""
        return min(cases, int(QUICK / self.mean)) if self.mean else cases  # the list is rounded


def function_of(test: str) -> str:
    """The function of a test's id."""
    return test.split("[")[0]


def parsed(text: str) -> dict[str, Measured]:
    """What a file of durations says of each function."""
    lines = [line.split(maxsplit=3) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: Measured(float(longest), float(total), int(cases)) for longest, total, cases, name in lines}


def listed(taken: Mapping[str, float]) -> dict[str, Measured]:
    """What the tests of each function took."""
    functions: dict[str, list[float]] = defaultdict(list)
    for test, seconds in taken.items():
        functions[function_of(test)].append(seconds)
    return {name: Measured(max(each), sum(each), len(each)) for name, each in functions.items()}


def written(functions: Mapping[str, Measured]) -> str:
    """The file of durations for what the functions took."""
    lines = [
        f"{each.longest:7.2f} {each.total:7.1f} {each.cases:5}  {name}\n"
        for name, each in sorted(functions.items())
        if each.total > QUICK
    ]
    return _HEAD + "".join(lines)


_known: dict[str, Measured] = {}
_elsewhere: list[float] = []
_beside: set[int] = set()


def count(seconds: float) -> None:
    """Add what a test took in processes that are not its own children."""
    _elsewhere.append(seconds)


def follow(process: int) -> None:
    """Add what tests take in a process that serves many of them, until this one ends."""
    _beside.add(process)


def _seconds_of(process: int) -> float:
    told = Path(f"/proc/{process}/stat")
    if not told.exists():
        return 0.0
    user, system = told.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _now() -> float:
    return sum(os.times()[:4]) + sum(_elsewhere) + sum(map(_seconds_of, _beside))


def pytest_addoption(parser):
    parser.addoption(
        "--write-durations", action="store_true", help="measure the tests and write tests/durations.txt"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what is slow: cases beyond what fits into `make quick`, and what needs PostgreSQL or a browser."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("stats") is None:
            cases[function_of(item.nodeid)].append(item)
    for function, those in cases.items():
        known = _known.get(function)
        quick = len(those) if known is None else known.quick(len(those))
        kept = {round(place * len(those) / quick) for place in range(quick)}
        for place, item in enumerate(those):
            if place not in kept or "[postgres" in item.name or function.startswith(_BROWSER):
                item.add_marker(pytest.mark.slow)


def pytest_configure(config):
    file = config.rootpath / _PLACE
    if file.exists():
        _known.update(parsed(file.read_text()))
    if config.getoption("--write-durations"):
        config.pluginmanager.register(_Recorder(config.rootpath))


class _Recorder:
    """Measures each test, and writes what those of the files that ran have taken; other files keep theirs."""

    def __init__(self, root: Path) -> None:
        self.root, self.file = root, root / _PLACE
        self.taken: dict[str, float] = {}
        self.before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self):
        self.before = _now()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item):
        # Not the end of what tests share: the last one would be charged for the whole server.
        self.taken[item.nodeid] = _now() - self.before

    def pytest_sessionfinish(self):
        new = listed(self.taken)
        files = {name.split("::")[0] for name in new}
        with self.file.open("a+") as file:  # the other half may write at the same time
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            others = {
                name: each
                for name, each in parsed(file.read()).items()
                if (of := name.split("::")[0]) not in files and (self.root / of).exists()
            }
            file.truncate(0)
            file.write(written(others | new))
