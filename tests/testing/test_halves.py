"""The test run itself: two processes run all tests once, and `make quick` runs what is fast."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from durations import QUICK, Measured, listed, parsed, written
from halves import first_half

_TESTS = Path(__file__).parents[1]
_LONG = """
def test_long():
    _note("long")
"""
_SOME = """
import pytest

@pytest.mark.parametrize("number", range(12))
def test_fast(number):
    _note("fast")

@pytest.mark.parametrize("number", range(12))
def test_many(number):
    _note("many")
"""
_BUSY = """
import time

def test_busy():
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
"""
_NOTE = """
import os, pathlib

def _note(name):
    with open(pathlib.Path(__file__).parent / "notes", "a") as file:
        print(name, os.getpid(), file=file)
"""
_DURATIONS = f"""
 9.00 9.0  1  tests/test_long.py::test_long
 {0.3 * QUICK} {3.6 * QUICK} 12  tests/test_some.py::test_many
 8.00 8.0  1  tests/test_some.py::test_gone
"""


FILES = {path.relative_to(_TESTS.parent).as_posix() for path in _TESTS.rglob("test_*.py")}
KNOWN = parsed((_TESTS / "durations.txt").read_text())


@pytest.fixture
def run(tmp_path):
    """Runs the tests above and gives which ran, in order, and in which process."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_long.py").write_text(_LONG + _NOTE)
    (folder / "test_some.py").write_text(_SOME + _NOTE)
    (folder / "durations.txt").write_text(_DURATIONS)

    def run(*options: str, code: int = 0) -> list[tuple[str, str]]:
        plugins = ["-p", "durations", "-p", "halves", "-p", "no:cacheprovider", f"--rootdir={tmp_path}"]
        done = subprocess.run(
            ["sh", _TESTS / "halves.sh", sys.executable, *plugins, *options, str(folder)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(_TESTS / "support")},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout.decode() + done.stderr.decode()
        return [tuple(line.split()) for line in (folder / "notes").read_text().splitlines()]

    return run


def test_each_test_runs_once(run):
    notes = run()
    assert sorted(name for name, _ in notes) == ["fast"] * 12 + ["long"] + ["many"] * 12
    where = dict(notes)
    assert where["fast"] == where["many"] != where["long"]


def test_the_fast_tests_leave_out_what_takes_long(run):
    assert [name for name, _ in run("-m", "not slow")] == ["fast"] * 12 + ["many"] * 3


def test_durations_of_the_files_that_ran_are_written_and_others_stay(run, tmp_path):
    with (tmp_path / "tests" / "test_some.py").open("a") as file:
        file.write(_BUSY)
    run("--write-durations", "--deselect", "tests/test_long.py::test_long")
    known = parsed((tmp_path / "tests" / "durations.txt").read_text())
    assert known["tests/test_long.py::test_long"] == Measured(9.0, 9.0, 1)
    assert known["tests/test_some.py::test_busy"].total > QUICK
    assert "tests/test_some.py::test_gone" not in known


@pytest.mark.parametrize("name", ["long", "some"])
def test_a_failure_in_either_half_is_one_of_the_run(run, tmp_path, name):
    with (tmp_path / "tests" / f"test_{name}.py").open("a") as file:
        file.write("\ndef test_wrong():\n    assert False\n")
    run(code=1)


@pytest.mark.parametrize("quick", [False, True])
def test_what_needs_a_server_is_in_one_half(quick):
    first = first_half(FILES, KNOWN, quick=quick)
    needing = {file for file in FILES if file.startswith(("tests/ledger/", "tests/session/test_earlier"))}
    assert len(needing) > 10
    assert needing <= first or not needing & first


def test_what_needs_spark_is_in_one_file():
    needing = [
        file
        for file in FILES
        if re.search(r"^(import|from) spark\b", (_TESTS.parent / file).read_text(), re.M)
    ]
    assert needing == ["tests/engines/test_spark.py"]


def test_both_halves_have_as_much_to_do():
    first = first_half(FILES, KNOWN)
    whole = sum(each.total for each in KNOWN.values())
    part = sum(each.total for name, each in KNOWN.items() if name.split("::")[0] in first)
    assert abs(part / whole - 1 / 2) < 0.01


def test_durations_are_of_functions():
    taken = {"tests/a.py::test_b[x-1]": 0.25, "tests/a.py::test_b[[y]]": 0.75, "tests/a.py::test_c": 0.01}
    assert parsed(written(listed(taken))) == {"tests/a.py::test_b": Measured(0.75, 1.0, 2)}


def test_new_cases_of_a_function_are_as_long_as_the_others():
    known = Measured(longest=QUICK, total=5 * QUICK, cases=20)  # four of them fit
    assert [known.quick(cases) for cases in (1, 4, 5, 20, 100)] == [1, 4, 4, 4, 4]
    assert Measured(longest=0.6, total=0.6, cases=1).quick(1) == 0
