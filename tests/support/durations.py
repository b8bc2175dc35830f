"""What the tests take: which are slow, which `make quick` leaves out, and which run first.

`tests/durations.txt` has the processor seconds of all test functions that take noticeable time, with those
of processes that they start. `make durations` measures and writes it; a function that is not listed is fast.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Measured", "count", "measured", "parsed", "written"]

QUICK = 0.04
"""Seconds that the cases of one function may take in `make quick`: of more cases some count as slow."""

_PLACE = "tests/durations.txt"
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
    return test.split("[")[0].split("@")[0]


def parsed(text: str) -> dict[str, Measured]:
    """What a file of durations says of each function."""
    lines = [line.split(maxsplit=3) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: Measured(float(longest), float(total), int(cases)) for longest, total, cases, name in lines}


def written(taken: dict[str, float]) -> str:
    """The file of durations for what each test took."""
    functions: dict[str, list[float]] = defaultdict(list)
    for test, seconds in taken.items():
        functions[function_of(test)].append(seconds)
    lines = [
        f"{max(each):7.2f} {sum(each):7.1f} {len(each):5}  {name}\n"
        for name, each in sorted(functions.items())
        if sum(each) > QUICK
    ]
    return _HEAD + "".join(lines)


_listed: dict[str, Measured] = {}
_elsewhere: list[float] = []


def measured(test: str) -> Measured | None:
    """What is known of a test's function; nothing if it is fast."""
    return _listed.get(function_of(test))


def count(seconds: float) -> None:
    """Add what a test took in processes that are not its own children."""
    _elsewhere.append(seconds)


def _now() -> float:
    return sum(os.times()[:4]) + sum(_elsewhere)


def pytest_addoption(parser):
    parser.addoption(
        "--write-durations", action="store_true", help="measure the tests and write tests/durations.txt"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what is slow: cases beyond what fits into `make quick`, and all that need PostgreSQL."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("stats") is None:
            cases[function_of(item.nodeid)].append(item)
    for function, those in cases.items():
        known = _listed.get(function)
        quick = len(those) if known is None else known.quick(len(those))
        kept = {round(place * len(those) / quick) for place in range(quick)}
        for place, item in enumerate(those):
            if place not in kept or "[postgres" in item.name:
                item.add_marker(pytest.mark.slow)


def pytest_configure(config):
    file = config.rootpath / _PLACE
    if file.exists():
        _listed.update(parsed(file.read_text()))
    if config.getoption("--write-durations"):
        config.pluginmanager.register(_Recorder(file))


class _Recorder:
    """Measures each test where it runs, and writes the file where the run was started."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.taken: dict[str, float] = {}
        self.before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self):
        self.before = _now()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item):
        # Not the end of what tests share: the last one would be charged for the whole server.
        self.taken[item.nodeid] = _now() - self.before

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.taken |= node.workeroutput["durations"]

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["durations"] = self.taken
        else:
            self.file.write_text(written(self.taken))
