"""What SQLAlchemy writes over each of its drivers: a type behind every value, the answer of the bare one."""

from __future__ import annotations

import asyncio
import datetime
import decimal
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

import sfumato as sf
from sfumato.server.wire import Front

VISITS = sa.Table(
    "visits",
    sa.MetaData(),
    sa.Column("country", sa.Text),
    sa.Column("age", sa.BigInteger),
    sa.Column("day", sa.Date),
)
COUNTRY, AGE, DAY = VISITS.c.country, VISITS.c.age, VISITS.c.day
N = sa.func.count().label("n")
BY_COUNTRY = sa.select(COUNTRY, N).group_by(COUNTRY)


def _count(condition: Any) -> Any:
    return sa.select(N).select_from(VISITS).where(condition)


def _by(key: Any) -> Any:
    return sa.select(key.label("k"), N).group_by(sa.text("k"))


DAYS = datetime.date(2024, 1, 5), datetime.date(2024, 1, 7)
GROUPED = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country "
BY_KEY = "SELECT {} AS k, COUNT(*) AS n FROM visits GROUP BY k"
# What is written with SQLAlchemy, and the same question in plain SQL.
IDIOMS = {
    "in_": (_count(COUNTRY.in_(["FR", "DE"])), "country IN ('FR', 'DE')"),
    "in_ whole": (_count(AGE.in_([21, 22, 23])), "age IN (21, 22, 23)"),
    "not_in": (_count(COUNTRY.not_in(["FR"])), "country NOT IN ('FR')"),
    "in_ day": (_count(DAY.in_(DAYS)), "day IN ('2024-01-05', '2024-01-07')"),
    "like": (_count(COUNTRY.like("F%")), "country LIKE 'F%'"),
    "not_like": (_count(COUNTRY.not_like("F%")), "country NOT LIKE 'F%'"),
    "ilike": (_count(COUNTRY.ilike("f%")), "country ILIKE 'f%'"),
    "escape": (_count(COUNTRY.like("F/%", escape="/")), "country LIKE 'F/%' ESCAPE '/'"),
    "startswith": (_count(COUNTRY.startswith("F")), "country LIKE 'F%'"),
    "endswith": (_count(COUNTRY.endswith("R")), "country LIKE '%R'"),
    "contains": (_count(COUNTRY.contains("R")), "country LIKE '%R%'"),
    "autoescape": (_count(COUNTRY.contains("R%", autoescape=True)), "country LIKE '%R/%%' ESCAPE '/'"),
    "icontains": (_count(COUNTRY.icontains("r")), "country ILIKE '%r%'"),
    "==": (_count(COUNTRY == "FR"), "country = 'FR'"),
    "!=": (_count(COUNTRY != "FR"), "country <> 'FR'"),
    "between": (_count(AGE.between(30, 50)), "age BETWEEN 30 AND 50"),
    "> float": (_count(AGE > 33.5), "age > 33.5"),
    "> decimal": (_count(decimal.Decimal("33.5") < AGE), "age > 33.5"),
    "cast decimal": (_count(sa.cast(33, sa.Numeric(10, 2)) < AGE), "age > 33"),
    ">= day": (_count(DAYS[0] <= DAY), "day >= '2024-01-05'"),
    ">= text": (_count(sa.literal("2024-01-05", sa.String) <= DAY), "day >= '2024-01-05'"),
    "between texts": (
        _count(DAY.between("2024-01-05", "2024-01-07")),
        "day BETWEEN '2024-01-05' AND '2024-01-07'",
    ),
    "== none": (_count(AGE == None), "age IS NULL"),  # noqa: E711
    "%": (_count(AGE % 2 == 0), "age % 2 = 0"),
    "and, or": (
        _count(sa.or_(sa.and_(AGE > 30, AGE < 40), COUNTRY == "DE")),
        "age > 30 AND age < 40 OR country = 'DE'",
    ),
    "limit": (BY_COUNTRY.limit(1), GROUPED + "LIMIT 1"),
    "slice": (BY_COUNTRY.slice(1, 2), GROUPED + "LIMIT 1 OFFSET 1"),
    "fetch": (BY_COUNTRY.fetch(1), GROUPED + "LIMIT 1"),
    "having": (
        BY_COUNTRY.having(sa.func.count() > 5),
        GROUPED + "HAVING COUNT(*) > 5",
    ),
    "case": (
        _by(sa.case((AGE > 65, "old"), else_="young")),
        BY_KEY.format("CASE WHEN age > 65 THEN 'old' ELSE 'young' END"),
    ),
    "case of": (
        _by(sa.case({"FR": 1, "DE": 2}, value=COUNTRY, else_=0)),
        BY_KEY.format("CASE country WHEN 'FR' THEN 1 WHEN 'DE' THEN 2 ELSE 0 END"),
    ),
    "extract": (
        _by(sa.extract("month", DAY)),
        BY_KEY.format("EXTRACT(month FROM day)"),
    ),
    "date_trunc": (
        _by(sa.func.date_trunc("week", DAY)),
        BY_KEY.format("DATE_TRUNC('week', day)"),
    ),
    "date_part": (
        _by(sa.func.date_part("day", DAY)),
        BY_KEY.format("DATE_PART('day', day)"),
    ),
    "coalesce": (
        _by(sa.func.coalesce(AGE, 0)),
        BY_KEY.format("COALESCE(age, 0)"),
    ),
    "left": (
        _by(sa.func.left(COUNTRY, 1)),
        BY_KEY.format("LEFT(country, 1)"),
    ),
    "filter": (
        sa.select(sa.func.count().filter(COUNTRY == "FR").label("n")).select_from(VISITS),
        "SELECT COUNT(*) FILTER (WHERE country = 'FR') AS n FROM visits",
    ),
    "percentile": (
        sa.select(sa.func.percentile_cont(0.5).within_group(AGE).label("m")),
        "SELECT MEDIAN(age) AS m FROM visits",
    ),
    "subquery": (
        sa.select(N).select_from(sa.select(VISITS).where(AGE > 30).subquery()),
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits WHERE age > 30) AS s",
    ),
}


def _plain(written: str) -> str:
    return written if written.startswith("SELECT") else f"SELECT COUNT(*) AS n FROM visits WHERE {written}"


@pytest.fixture(params=["psycopg", "pg8000", "asyncpg"])
def asked(request: Any, front: Front) -> Iterator[dict[str, list[tuple[Any, ...]]]]:
    """What each idiom gives, at the price of the plain question, which is paid before."""
    address = f"postgresql+{request.param}://ada:open-sesame@127.0.0.1:{front.port}/demo"
    if request.param == "asyncpg":
        yield asyncio.run(_asked(address))
        return
    engine = sa.create_engine(address)
    with engine.connect() as connection:
        connection.exec_driver_sql("SET sfumato.epsilon = 0.125")
        yield {name: list(map(tuple, connection.execute(idiom))) for name, (idiom, _) in IDIOMS.items()}
    engine.dispose()


async def _asked(address: str) -> dict[str, list[tuple[Any, ...]]]:
    engine = create_async_engine(address)
    async with engine.connect() as connection:
        await connection.exec_driver_sql("SET sfumato.epsilon = 0.125")
        found = {
            name: list(map(tuple, await connection.execute(idiom))) for name, (idiom, _) in IDIOMS.items()
        }
    await engine.dispose()
    return found


@pytest.fixture(scope="module")
def plain(steward: sf.Session) -> dict[str, list[tuple[Any, ...]]]:
    """The answers to the same questions in plain SQL."""
    session = steward.as_analyst("ada")
    found = {}
    for name, (_, written) in IDIOMS.items():
        table = session.sql(_plain(written)).release(epsilon="0.125").table
        found[name] = list(zip(*table.to_pydict().values(), strict=True))
    return found


def test_an_idiom_is_the_plain_question_that_was_paid(plain: Any, asked: Any, steward: sf.Session) -> None:
    """The same answer to the last digit: it was read from the ledger, free."""
    assert asked.keys() == plain.keys()
    for name, rows in asked.items():
        assert rows == plain[name], name
