"""The test run itself: groups stay together, the longest tests begin, and `make quick` runs what is fast."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from durations import QUICK, Measured, parsed, written

_SUPPORT = Path(__file__).parents[1] / "support"
_TESTS = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(12))
@pytest.mark.xdist_group("together")
def test_grouped(number):
    _note("together")

@pytest.mark.parametrize("number", range(12))
def test_fast(number):
    _note("fast")

@pytest.mark.parametrize("number", range(12))
def test_many(number):
    _note("many")

def test_long():
    _note("long")

def _note(name):
    with open(pathlib.Path(__file__).parent / "notes", "a") as file:
        print(name, os.environ.get("PYTEST_XDIST_WORKER"), file=file)
"""
_DURATIONS = f"""
 9.00 9.0  1  tests/test_some.py::test_long
 {0.3 * QUICK} {3.6 * QUICK} 12  tests/test_some.py::test_many
"""


@pytest.fixture
def run(tmp_path):
    """Runs the tests above and gives which ran, in order, and where."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_some.py").write_text(_TESTS)
    (folder / "durations.txt").write_text(_DURATIONS)

    def run(*options: str) -> list[tuple[str, str]]:
        plugins = ["-p", "durations", "-p", "grouped_runs", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *plugins, *options, str(folder)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(_SUPPORT)},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        return [tuple(line.split()) for line in (folder / "notes").read_text().splitlines()]

    return run


def test_a_group_and_the_fast_tests_of_a_file_run_in_one_process_each(run):
    notes = run("-n", "2", "--dist", "loadgroup")
    assert len(notes) == 37
    assert len({where for name, where in notes if name == "together"}) == 1
    assert len({where for name, where in notes if name in ("fast", "many")}) == 1


def test_the_longest_run_first(run):
    assert [name for name, _ in run("-n", "1", "--dist", "loadgroup")] == [
        *["long"],
        *["fast"] * 12,
        *["many"] * 12,
        *["together"] * 12,
    ]


def test_the_fast_tests_leave_out_what_takes_long(run):
    names = [name for name, _ in run("-m", "not slow")]
    assert names == ["together"] * 12 + ["fast"] * 12 + ["many"] * 3


def test_durations_are_measured_and_written(run, tmp_path):
    run("-n", "2", "--dist", "loadgroup", "--write-durations")
    assert parsed((tmp_path / "tests" / "durations.txt").read_text()) == {}  # all were fast


def test_durations_are_of_functions():
    taken = {"tests/a.py::test_b[x-1]": 0.25, "tests/a.py::test_b[[y]]@all": 0.75, "tests/a.py::test_c": 0.01}
    assert parsed(written(taken)) == {"tests/a.py::test_b": Measured(0.75, 1.0, 2)}


def test_new_cases_of_a_function_are_as_long_as_the_others():
    known = Measured(longest=QUICK, total=5 * QUICK, cases=20)  # four of them fit
    assert [known.quick(cases) for cases in (1, 4, 5, 20, 100)] == [1, 4, 4, 4, 4]
    assert Measured(longest=0.6, total=0.6, cases=1).quick(1) == 0
