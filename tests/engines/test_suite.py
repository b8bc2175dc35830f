"""The tests of questions, written for DuckDB, hold on every engine; what does not is a strict list."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine_gaps import GAPS
from on_engine import MAKERS, SUITE

ROOT = Path(__file__).parents[2]
SAMPLED = ("session/test_meant.py", "session/test_text_rows.py")
"""What runs on PostgreSQL each time; the whole of it, there and on Spark, among the statistical tests."""


def reads_on(engine: str, *files: str) -> int:
    """How many reads the tests of files make on an engine, if all of them hold."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "not stats",
        "--on",
        engine,
        "-p",
        "no:cacheprovider",
    ]
    command += [f"tests/{file}" for file in files]
    run = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]
    found = re.search(rf"tests read on {engine}, ([0-9,]+) reads", run.stdout)
    assert found is not None
    return int(found[1].replace(",", ""))


@pytest.mark.slow
def test_some_of_the_suite_holds_on_postgres():
    assert reads_on("postgres", *SAMPLED) > 10


@pytest.mark.stats
@pytest.mark.parametrize("file", SUITE)
@pytest.mark.parametrize("engine", sorted(MAKERS))
def test_the_suite_holds_on_every_engine(engine, file):
    assert reads_on(engine, file) > 0


def test_gaps_are_of_files_of_the_suite():
    listed = [name.split("::")[0] for gaps in GAPS.values() for name in gaps]
    assert set(listed) <= set(SUITE)
