"""One suite for both stores: `place` is a ledger's place in SQLite, then in PostgreSQL."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from postgres import running
from sfumato.ledger import Budget, Ledger

_FOLDER = Path(__file__).parent


class Place:
    """Where a ledger lies, with what a test or an attacker can do there."""

    def __init__(self, where: str, state: Path) -> None:
        self.where, self.state = where, state

    def open(self, **wishes) -> Ledger:
        return Ledger.open(self.where, state=self.state, **wishes)

    def made(self, budget: Budget | None = None) -> Ledger:
        """A ledger with the dataset `visits`."""
        ledger = self.open()
        ledger.register("visits", {"unit": "row", "version": 1}, budget or Budget(1))
        return ledger

    def inspect(self):
        return Ledger.inspect(self.where, state=self.state)

    @property
    def anchor(self) -> Path:
        return next(self.state.glob("*.anchor"))

    def anchored(self) -> int:
        """The receipt that the anchor marks."""
        contents = [json.loads(line) for line in self.anchor.read_text().splitlines()]
        return max(contents, key=lambda content: content.get("order", 0))["number"]

    @property
    def key(self) -> Path:
        return next(self.state.glob("*.key"))


class SQLitePlace(Place):
    kind = "sqlite"

    def sql(self, statement: str, *values):
        connection = sqlite3.connect(self.where, isolation_level=None)
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    def _files(self, folder: Path) -> list[Path]:
        return [folder / (Path(self.where).name + end) for end in ("", "-wal", "-shm")]

    def snapshot(self) -> None:
        self.copy = self.state / "copy"
        self.copy.mkdir()
        for path in self._files(Path(self.where).parent):
            if path.exists():
                shutil.copy(path, self.copy)

    def restore(self) -> None:
        for path, copy in zip(self._files(Path(self.where).parent), self._files(self.copy), strict=True):
            path.unlink(missing_ok=True)
            if copy.exists():
                shutil.copy(copy, path)


class PostgresPlace(Place):
    kind = "postgres"

    def sql(self, statement: str, *values):
        with psycopg.connect(self.where, autocommit=True) as connection:
            cursor = connection.execute(statement.replace("?", "%s"), values or None)
            return cursor.fetchall() if cursor.description else []

    def snapshot(self) -> None:
        for table in ("receipts", "payloads"):
            self.sql(f"CREATE TABLE copy_{table} AS SELECT * FROM sfumato_{table}")

    def restore(self) -> None:
        for table in ("receipts", "payloads"):
            self.sql(f"DELETE FROM sfumato_{table}")
            self.sql(f"INSERT INTO sfumato_{table} SELECT * FROM copy_{table}")


@pytest.fixture(scope="session")
def postgres_server():
    with running() as server:
        yield server


@pytest.fixture
def postgres_place(postgres_server, tmp_path) -> Iterator[Place]:
    state = tmp_path / "state"
    state.mkdir()
    with postgres_server.database() as address:
        yield PostgresPlace(address, state)


@pytest.fixture
def sqlite_place(tmp_path) -> Place:
    return SQLitePlace(str(tmp_path / "visits.ledger"), tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request) -> Place:
    return request.getfixturevalue(f"{request.param}_place")


class Crew:
    """Child processes that run jobs of `zygote.py` at the same time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, _FOLDER / "zygote.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout.readline() == "ready\n"

    def run(self, *jobs: list[object]) -> list[tuple[int, list[object]]]:
        """For each job its exit status (minus the signal) and what it reported."""
        self._process.stdin.write(
            json.dumps([[str(x) if isinstance(x, Path) else x for x in job] for job in jobs]) + "\n"
        )
        self._process.stdin.flush()
        return [(status, found) for status, found in json.loads(self._process.stdout.readline())]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


@pytest.fixture(scope="session")
def crew():
    made = Crew()
    yield made
    made.close()
