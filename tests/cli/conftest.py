"""A small hospital with its catalog, and the command line to ask it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from commands import invoke

CATALOG = """
[datasets.visits]
epsilon = 1
delta = 1e-6

[tables.visits]
source = "visits.parquet"
unit = "patient_id"
max_groups = 2
size = 40

[tables.visits.columns]
city = { type = "enum", values = ["Lyon", "Nice"], role = "quasi-identifier" }
age = { type = "int", lower = 0, upper = 105, role = "quasi-identifier" }
cost = { type = "float", role = "sensitive" }
"""
BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
SECRET = "Zanzibar-4711"


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith("SFUMATO_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with visits.parquet: 120 visits of 40 patients; one city is nowhere declared."""
    monkeypatch.chdir(tmp_path)
    rows = range(120)
    table = pa.table(
        {
            "patient_id": [1000 + row % 40 for row in rows],
            "city": [SECRET if row % 17 == 0 else ("Lyon", "Nice")[row % 2] for row in rows],
            "age": [20 + row % 40 for row in rows],
            "cost": [float(row) for row in rows],
        }
    )
    pq.write_table(table, tmp_path / "visits.parquet")
    return tmp_path


@pytest.fixture
def hospital(data):
    """The same with a catalog whose every decision is made."""
    (data / "sfumato.toml").write_text(CATALOG)
    return data


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run a command in this process."""
    from sfumato.cli import app

    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: str | None = None) -> Outcome:
        result = invoke(app, list(arguments), input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert SECRET not in result.stdout + result.stderr
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def process(tmp_path):
    """Run a command in a process of its own."""

    def run(*arguments: str, env: dict[str, str] | None = None, **options) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "sfumato", *arguments],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            capture_output=True,
            timeout=120,
            **options,
        )
        encoding = "utf-8"
        return Outcome(done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding))

    return run
