"""Where accounts are kept: `place` is a ledger's place in SQLite, then in PostgreSQL."""

from __future__ import annotations

import contextlib
from pathlib import Path

import psycopg
import pytest

from postgres import running
from sfumato.server.access import Accounts


class Place:
    """A ledger's place, with what somebody who has the database can do there."""

    def __init__(self, where: str, state: Path) -> None:
        self.where, self.state = where, state
        self._opened: list[Accounts] = []

    def open(self, **wishes) -> Accounts:
        """The accounts there, closed when the test is over."""
        self._opened.append(Accounts.open(self.where, state=self.state, **wishes))
        return self._opened[-1]

    def close(self) -> None:
        for accounts in self._opened:
            accounts.close()

    @property
    def key(self) -> Path:
        (path,) = self.state.glob("*.serverkey")
        return path

    def sql(self, statement: str, *values):
        if "://" in self.where:
            with psycopg.connect(self.where, autocommit=True) as connection:
                cursor = connection.execute(statement.replace("?", "%s"), values or None)
                return cursor.fetchall() if cursor.description else []
        import sqlite3

        with contextlib.closing(
            sqlite3.connect(f"{self.where}.accounts", isolation_level=None)
        ) as connection:
            return connection.execute(statement, values).fetchall()


@pytest.fixture(scope="session")
def postgres_server():
    with running() as server:
        yield server


@pytest.fixture
def postgres_place(postgres_server, tmp_path):
    with postgres_server.database() as address:
        made = Place(address, tmp_path / "state")
        yield made
        made.close()


@pytest.fixture
def sqlite_place(tmp_path):
    made = Place(str(tmp_path / "visits.ledger"), tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request) -> Place:
    return request.getfixturevalue(f"{request.param}_place")
