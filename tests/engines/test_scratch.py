"""Rows that were spilled to the disk do not outlive their process for long, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from sfumato.engines._scratch import Scratch
from sfumato.engines.duckdb import DuckDB

pytestmark = pytest.mark.duckdb  # its folder of spilled data

SPILLING = """
import numpy as np, pyarrow as pa
from sqlglot import parse_one
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import EngineFailed
engine = DuckDB(threads=1, memory="60MB")
engine.attach("t", pa.table({"x": np.arange(800_000)}), {"x": "integer"})
print("ready", flush=True)
long = "CAST(HASH(x) AS VARCHAR) || REPEAT('x', 60)"
text = f"SELECT COUNT(*) AS n FROM (SELECT {long} AS v, COUNT(*) AS n FROM t GROUP BY v ORDER BY v) AS s"
while True:
    try:
        engine.fetch(parse_one(text, dialect="duckdb"))
    except EngineFailed:
        print("failed", flush=True)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def folders(place):
    return sorted(each.name for each in place.iterdir() if each.name.startswith((".sfumato-", "sfumato-")))


def spilled(place):
    return sum(each.stat().st_size for each in place.rglob("*") if each.name.startswith("duckdb_temp"))


def test_what_a_killed_process_spilled_is_removed_by_the_next_engine(temporary):
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", SPILLING], env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 60
        while spilled(temporary) < 2**20 and time.monotonic() < deadline:
            time.sleep(0.05)
        (left,) = folders(temporary)
        with DuckDB():  # the other one is alive: what it has stays
            assert left in folders(temporary)
        assert folders(temporary) == [left]
        child.send_signal(signal.SIGKILL)
    assert spilled(temporary) >= 2**20
    with DuckDB():
        assert left not in folders(temporary)
    assert folders(temporary) == []


def test_engines_of_one_process_leave_each_other_alone(temporary):
    with DuckDB() as first:
        first.attach("t", pa.table({"x": [1]}), {"x": "integer"})
        with DuckDB():
            assert len(folders(temporary)) == 2
        assert len(folders(temporary)) == 1
    assert folders(temporary) == []


def test_a_folder_that_is_not_ours_to_remove_is_left(temporary):
    (temporary / "sfumato-demo-1").mkdir(mode=0o700)  # nothing locked it, so nobody knows whose it is
    open_to_all = temporary / "sfumato-open"
    open_to_all.mkdir(mode=0o755)
    (open_to_all / "sfumato.lock").touch()
    other = temporary / "elsewhere"
    other.mkdir(mode=0o700)
    (other / "sfumato.lock").touch()
    os.symlink(other, temporary / "sfumato-link")
    Scratch().remove()
    assert folders(temporary) == ["sfumato-demo-1", "sfumato-link", "sfumato-open"]
    assert (other / "sfumato.lock").exists()


def test_a_forked_child_removes_nothing_of_its_parents(temporary):
    mine = Scratch()
    child = os.fork()
    if child == 0:
        mine.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert mine.path.is_dir()
    mine.remove()
    assert folders(temporary) == []
