"""The test run itself: what belongs to one group runs in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SUPPORT = Path(__file__).parents[1] / "support"
_TESTS = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(12))
@pytest.mark.xdist_group("together")
def test_grouped(number):
    _note("together")

@pytest.mark.parametrize("number", range(12))
def test_free(number):
    _note("free")

def _note(name):
    with open(pathlib.Path(__file__).parent / name, "a") as file:
        print(os.environ["PYTEST_XDIST_WORKER"], file=file)
"""


@pytest.mark.slow
def test_a_group_runs_in_one_process(tmp_path):
    (tmp_path / "test_some.py").write_text(_TESTS)
    options = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "grouped_runs", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_SUPPORT)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()
    assert len(set((tmp_path / "together").read_text().split())) == 1
    assert len((tmp_path / "free").read_text().split()) == 12
