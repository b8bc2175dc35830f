"""`place`: where accounts are kept, in SQLite, then in PostgreSQL; `front`: a wire front over a table."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
import wire
from lives import Nursery
from postgres import running
from sfumato.server.access import Accounts
from sfumato.server.access.scram import Exchange, ScramVerifier
from sfumato.server.wire import Front

ROWS = 2000


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


@pytest.fixture(scope="package")
def steward() -> Iterator[sf.Session]:
    days = [datetime.date(2024, 1, 1 + row % 20) for row in range(ROWS)]
    table = pa.table(
        {
            "user_id": list(range(ROWS)),
            "country": ["FR", "DE"] * (ROWS // 2),
            "age": [20 + row % 60 for row in range(ROWS)],
            "day": days,
        }
    )
    visits = sf.PrivateTable(
        "visits",
        source=table,
        unit=sf.PrivacyUnit("user_id", max_rows=1),
        schema={
            "country": sf.Enum("FR", "DE", nullable=False),
            "age": sf.Int(0, 100),
            "day": sf.Date("2024-01-01", "2024-01-31"),
        },
    )
    with sf.Session(visits, budget=sf.Budget(epsilon=1000, delta=1e-6)) as session:
        yield session


@pytest.fixture(scope="package")
def verifiers() -> dict[str, ScramVerifier]:
    return {"ada": ScramVerifier.of("open-sesame"), "bob": ScramVerifier.of("of-bob")}


@pytest.fixture(scope="package")
def front(steward: sf.Session, verifiers: dict[str, ScramVerifier]) -> Iterator[Front]:
    made = Front(
        lambda login, database: steward.as_analyst("ada"),
        lambda user, address, binding: Exchange(
            verifiers.get(user) or ScramVerifier.of("nobody knows"), binding=binding
        ),
        plain=True,
    )
    with wire.serving(made):
        yield made


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture(scope="session")
def until() -> Callable[..., None]:
    """Looks again and again whether something holds, for so many seconds at most."""

    def wait(holds: Callable[[], bool], *, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.1)

    return wait
