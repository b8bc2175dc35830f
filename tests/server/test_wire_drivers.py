"""Other drivers before the wire front, as programs use them: asyncpg, pg8000, SQLAlchemy, pandas."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import pandas as pd
import pg8000.dbapi
import pytest
import sqlalchemy as sa

import sfumato as sf
from sfumato.server.wire import Front

COUNT = "SELECT country, COUNT(*) AS n FROM visits WHERE age < 92 GROUP BY country"
DAYS = (
    "SELECT day, COUNT(*) AS n, AVG(age) AS a FROM visits "
    "WHERE age >= {} AND country = {} AND day < {} GROUP BY day"
)
VALUES = (21, "FR", datetime.date(2024, 2, 1))
LOGIN = {"user": "ada", "password": "open-sesame", "host": "127.0.0.1"}


def with_asyncpg(front: Front, use: Callable[[asyncpg.Connection], Awaitable[Any]], **settings: str) -> Any:
    async def talk() -> Any:
        connection = await asyncpg.connect(
            **LOGIN, port=front.port, database="demo", server_settings=settings or None
        )
        try:
            return await use(connection)
        finally:
            await connection.close()

    return asyncio.run(asyncio.wait_for(talk(), 60))


def test_asyncpg_asks_in_binary_and_reads_typed_values(front: Front, steward: sf.Session) -> None:
    before = steward.balance().remaining

    async def use(connection: asyncpg.Connection) -> Any:
        await connection.execute("SET sfumato.epsilon = 0.5")
        return await connection.fetch(DAYS.format("$1", "$2", "$3"), *VALUES)

    rows = with_asyncpg(front, use)
    assert len(rows) == 31
    assert [type(value) for value in rows[0]] == [datetime.date, int, float]
    assert float(before - steward.balance().remaining) == pytest.approx(0.5)


def test_asyncpg_looks_at_types_and_the_catalog_for_free(front: Front, steward: sf.Session) -> None:
    before = steward.balance().remaining

    async def use(connection: asyncpg.Connection) -> Any:
        prepared = await connection.prepare(COUNT)
        told = [(each.name, each.type.name) for each in prepared.get_attributes()]
        query = "SELECT relname, oid, relkind, relacl FROM pg_class WHERE relname = ANY($1)"
        return told, await connection.fetchrow(query, ["visits"])

    told, row = with_asyncpg(front, use)
    assert told == [("country", "text"), ("n", "int8")]
    assert tuple(row) == ("visits", 16384, "r", ["=r/sfumato"])
    assert steward.balance().remaining == before


def test_asyncpg_s_cursors_read_one_answer_in_parts(front: Front, steward: sf.Session) -> None:
    before = steward.balance().remaining

    async def use(connection: asyncpg.Connection) -> Any:
        async with connection.transaction():
            asked = "SELECT day, COUNT(*) AS n FROM visits WHERE age < 33 GROUP BY day"
            return [row async for row in connection.cursor(asked, prefetch=5)]

    assert len(with_asyncpg(front, use, **{"sfumato.epsilon": "0.25"})) == 31
    assert float(before - steward.balance().remaining) == pytest.approx(0.25)


def test_asyncpg_s_errors_are_postgresql_s(front: Front, steward: sf.Session) -> None:
    before = steward.balance().remaining

    async def use(connection: asyncpg.Connection) -> Any:
        with pytest.raises(asyncpg.UndefinedTableError):
            await connection.fetch("SELECT COUNT(*) AS n FROM nowhere")
        with pytest.raises(asyncpg.FeatureNotSupportedError):
            await connection.fetch("SELECT * FROM visits")
        with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError) as caught:
            await connection.fetch("SELECT COUNT(*) AS n FROM visits WHERE age = 44")
        return caught.value

    error = with_asyncpg(front, use)
    assert "nothing was spent" in str(error)
    assert "price   epsilon 0.1" in error.detail
    assert steward.balance().remaining == before


def test_pg8000_asks_and_reads_typed_values(front: Front) -> None:
    with pg8000.dbapi.connect(**LOGIN, port=front.port, database="demo") as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("SET sfumato.epsilon = 1")
        cursor.execute(DAYS.format("%s", "%s", "%s"), VALUES)
        rows = cursor.fetchall()
        assert [column[0] for column in cursor.description] == ["day", "n", "a"]
        cursor.execute("SELECT relname, oid, relnatts FROM pg_class WHERE relname = %s", ("visits",))
        assert tuple(cursor.fetchone()) == ("visits", 16384, 3)
    assert len(rows) == 31
    assert [type(value) for value in rows[0]] == [datetime.date, int, float]


@pytest.fixture(params=["psycopg", "pg8000"])
def engine(request: Any, front: Front) -> Iterator[sa.Engine]:
    address = f"postgresql+{request.param}://ada:open-sesame@127.0.0.1:{front.port}/demo"
    made = sa.create_engine(address)
    yield made
    made.dispose()


def test_sqlalchemy_inspects_the_public_schema_for_free(engine: sa.Engine, steward: sf.Session) -> None:
    before = steward.balance().remaining
    found = sa.inspect(engine)
    assert found.default_schema_name == "public"
    assert "public" in found.get_schema_names()
    assert found.get_table_names() == found.get_table_names(schema="public") == ["visits"]
    assert found.has_table("visits")
    assert not found.has_table("nowhere")
    columns = [(each["name"], str(each["type"]), each["nullable"]) for each in found.get_columns("visits")]
    assert columns == [("country", "TEXT", False), ("age", "BIGINT", True), ("day", "DATE", True)]
    assert found.get_pk_constraint("visits")["constrained_columns"] == []
    for nothing in ("foreign_keys", "indexes", "unique_constraints", "check_constraints"):
        assert getattr(found, f"get_{nothing}")("visits") == []
    assert found.get_table_comment("visits") == {"text": None}
    assert found.get_view_names() == found.get_materialized_view_names() == found.get_sequence_names() == []
    assert steward.balance().remaining == before


def test_sqlalchemy_builds_questions_over_a_reflected_table(engine: sa.Engine, steward: sf.Session) -> None:
    visits = sa.Table("visits", sa.MetaData(), autoload_with=engine)
    count = sa.func.count().label("n")
    asked = sa.select(visits.c.country, count).where(visits.c.age > 30).group_by(visits.c.country)
    before = steward.balance().remaining
    with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError, match="nothing was spent"):
        connection.execute(asked)
    assert steward.balance().remaining == before
    with engine.connect() as connection:
        connection.execute(sa.text("SET sfumato.epsilon = 0.5"))
        rows = connection.execute(asked).all()
    assert {row.country for row in rows} == {"FR", "DE"}
    assert all(isinstance(row.n, int) for row in rows)


def test_pandas_reads_private_answers(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        connection.execute(sa.text("SET sfumato.epsilon = 1"))
        connection.execute(sa.text("SET sfumato.intervals = on"))
        frame = pd.read_sql(COUNT, connection)
        since = sa.text("SELECT day, COUNT(*) AS n FROM visits WHERE day >= :since GROUP BY day")
        days = pd.read_sql(since, connection, params={"since": datetime.date(2024, 1, 5)})
    assert list(frame.columns) == ["country", "n", "n_low", "n_high"]
    assert str(frame["n"].dtype) == "int64"
    assert (frame["n_low"] <= frame["n"]).all()
    assert days["day"].min() == datetime.date(2024, 1, 5)
