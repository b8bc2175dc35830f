"""Questions about timestamps and times of day, against Python on the same rows."""

from __future__ import annotations

import collections
import datetime as dt
import random

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.schema import column_from_dict

DRAW = random.Random(3)
STARTS = [dt.datetime(2024, 1, 30) + dt.timedelta(seconds=DRAW.randrange(3 * 86_400)) for _ in range(400)]
STOPS = [start + dt.timedelta(seconds=DRAW.randrange(10_000)) for start in STARTS]
TABLE = pa.table(
    {
        "u": range(400),
        "start": pa.array(STARTS, pa.timestamp("us")),
        "stop": pa.array(STOPS, pa.timestamp("ns", "UTC")),
        "clock": [start.time() for start in STARTS],
        "free": pa.array([start.replace(minute=0, second=0) for start in STARTS], pa.timestamp("s")),
    }
)
SCHEMA = {
    "start": sf.Timestamp("2024-01-30", "2024-02-01"),
    "stop": sf.Timestamp("2024-01-30T00:00:00", "2024-02-02T12:00:00"),
    "clock": sf.Time(),
    "free": sf.Timestamp(),
}


@pytest.fixture(scope="module")
def session():
    table = sf.PrivateTable("t", source=TABLE, unit=sf.PrivacyUnit("u"), schema=SCHEMA)
    with sf.Session(table, budget=sf.Budget(epsilon=10**9, delta=0.5)) as opened:
        yield opened


def asked(session, text: str, **more) -> list[tuple]:
    rows = session.sql(text).release(epsilon=more.pop("epsilon", 10**6), **more).table
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def counted(values) -> list[tuple]:
    return sorted(collections.Counter(values).items())


def test_hours_of_the_day_are_public_groups(session):
    for text in ("EXTRACT(HOUR FROM start)", "hour(clock)", "DATE_PART('hour', CAST(start AS TIME))"):
        found = asked(session, f"SELECT {text} AS h, COUNT(*) AS n FROM t GROUP BY 1")
        assert [hour for hour, _ in found] == list(range(24))
        assert [row for row in found if row[1]] == counted(start.hour for start in STARTS)


def test_hours_minutes_and_days_as_groups(session):
    found = asked(session, "SELECT DATE_TRUNC('hour', start) AS h, COUNT(*) AS n FROM t GROUP BY 1")
    assert len(found) == 72
    assert [row for row in found if row[1]] == counted(one.replace(minute=0, second=0) for one in STARTS)
    found = asked(session, "SELECT DATE_TRUNC('day', start) AS d, COUNT(*) AS n FROM t GROUP BY 1")
    assert found == counted(one.date() for one in STARTS)
    found = asked(session, "SELECT DATE_TRUNC('month', start) AS d, COUNT(*) AS n FROM t GROUP BY 1")
    assert found == counted(one.date().replace(day=1) for one in STARTS)
    found = asked(session, "SELECT DATE_TRUNC('hour', clock) AS h, COUNT(*) AS n FROM t GROUP BY 1")
    assert [row for row in found if row[1]] == counted(dt.time(one.hour) for one in STARTS)


def test_groups_that_are_found_in_the_data(session):
    found = asked(session, "SELECT free, COUNT(*) AS n FROM t GROUP BY free", epsilon=500, delta=0.1)
    true = dict(counted(one.replace(minute=0, second=0) for one in STARTS))
    assert found
    assert all(abs(true[moment] - count) <= 3 for moment, count in found)
    table = session.sql("SELECT free, COUNT(*) AS n FROM t GROUP BY free").release(epsilon=500, delta=0.1)
    assert table.table.schema.field("free").type == pa.timestamp("s")


@pytest.mark.parametrize(
    ("condition", "test"),
    [
        ("start < '2024-01-31'", lambda a, b: a < dt.datetime(2024, 1, 31)),
        ("start >= TIMESTAMP '2024-01-31 08:30:00+02'", lambda a, b: a >= dt.datetime(2024, 1, 31, 6, 30)),
        ("start BETWEEN DATE '2024-01-31' AND '2024-01-31 12:00'",
         lambda a, b: dt.datetime(2024, 1, 31) <= a <= dt.datetime(2024, 1, 31, 12)),
        ("clock >= '08:00' AND CAST(stop AS TIME) < TIME '20:00:01'",
         lambda a, b: a.time() >= dt.time(8) and b.time() < dt.time(20, 0, 1)),
        ("CAST(start AS DATE) <> CAST(stop AS DATE)", lambda a, b: a.date() != b.date()),
        ("start + INTERVAL 90 MINUTE < stop", lambda a, b: a + dt.timedelta(minutes=90) < b),
        ("stop - INTERVAL 1 DAY < start", lambda a, b: True),
        ("DATE_DIFF('hour', start, stop) = 2", lambda a, b: b.replace(minute=0, second=0)
         - a.replace(minute=0, second=0) == dt.timedelta(hours=2)),
        ("EXTRACT(EPOCH FROM (stop - start)) > 5000", lambda a, b: (b - a).seconds > 5000),
        ("DAYOFWEEK(start) = 3 AND MINUTE(start) = SECOND(stop) % 60",
         lambda a, b: a.isoweekday() == 3 and a.minute == b.second),
        ("start + INTERVAL 1 MONTH >= TIMESTAMP '2024-02-29 12:00:00' AND MONTH(start) = 1",
         lambda a, b: a.month == 1 and a.time() >= dt.time(12)),
    ],
)  # fmt: skip
def test_conditions(session, condition, test):
    (found,) = asked(session, f"SELECT COUNT(*) AS n FROM t WHERE {condition}")
    assert found == (sum(test(a, b) for a, b in zip(STARTS, STOPS, strict=True)),)


def test_differences_and_the_builder(session):
    (found,) = asked(session, "SELECT SUM(DATE_DIFF('second', start, stop)) AS s FROM t")
    apart = sum((b - a).seconds for a, b in zip(STARTS, STOPS, strict=True))
    assert abs(found[0] - apart) < 10
    noon = dt.datetime(2024, 1, 31, 12)
    query = session.table("t").filter(sf.col("start") >= noon).group_by(h=sf.col("start").dt.hour())
    rows = query.agg(n=sf.count()).release(epsilon=10**6).table.to_pylist()
    assert [(row["h"], row["n"]) for row in rows if row["n"]] == counted(
        one.hour for one in STARTS if one >= noon
    )
    (row,) = (
        session.sql("SELECT COUNT(*) AS n FROM t WHERE start >= ?", [noon]).release(epsilon=10**6).table["n"]
    )
    assert row.as_py() == sum(one >= noon for one in STARTS)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("SELECT start, COUNT(*) AS n FROM t GROUP BY start", "EXTRACT"),
        ("SELECT MAX(start) AS n FROM t", "HOUR"),
        ("SELECT AVG(clock) AS n FROM t", "time of day"),
        ("SELECT COUNT(*) AS n FROM t WHERE stop - start > 5", "DATE_DIFF"),
        ("SELECT COUNT(*) AS n FROM t WHERE start + 5 > stop", "INTERVAL"),
        ("SELECT COUNT(*) AS n FROM t WHERE start > 'noon'", "2024-01-31 08:30:00"),
        ("SELECT COUNT(*) AS n FROM t WHERE start > '2024-01-31 08:30:00.5'", "whole seconds"),
        ("SELECT COUNT(*) AS n FROM t WHERE clock > '8 pm'", "08:30"),
        ("SELECT COUNT(*) AS n FROM t WHERE clock > start", "mixes"),
        ("SELECT CAST(start AS VARCHAR) AS x, COUNT(*) AS n FROM t GROUP BY 1", "HOUR"),
        ("SELECT COUNT(*) AS n FROM t WHERE HOUR(CAST(start AS DATE)) = 1", "Timestamp"),
        ("SELECT DATE_TRUNC('second', start) AS x, COUNT(*) AS n FROM t GROUP BY 1", "HOUR or MINUTE"),
    ],
)
def test_what_is_refused_says_what_to_write(session, text, advice):
    before = session.balance().spent
    with pytest.raises(QueryRefused) as caught:
        session.sql(text).release(epsilon=1)
    assert advice in str(caught.value)
    assert session.balance().spent == before


@pytest.mark.parametrize(
    "column",
    [
        sf.Timestamp(),
        sf.Timestamp("2024-01-01", "2024-12-31T08:00:00", nullable=False),
        sf.Timestamp(
            dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-3))), dt.date(2024, 2, 2)
        ),
        sf.Time(),
        sf.Time("08:00", dt.time(18, 30)),
    ],
)
def test_declarations_are_read_back(column):
    assert column_from_dict(column.to_dict()) == column


def test_declarations_say_what_they_need():
    assert sf.Timestamp("2024-01-01", "2024-12-31").end == dt.datetime(2024, 12, 31, 23, 59, 59)
    assert sf.Timestamp("2024-01-01T02:00+02:00", "2024-12-31").start == dt.datetime(2024, 1, 1)
    for make in (
        lambda: sf.Timestamp("2024-01-01"),
        lambda: sf.Timestamp("2024-01-02", "2024-01-01"),
        lambda: sf.Timestamp("2024-01-01", "2024-01-01T00:00:00.5"),
        lambda: sf.Timestamp("yesterday", "today"),
        lambda: sf.Time("22:00", "06:00"),
        lambda: sf.Time("08:00+02:00", "09:00"),
        lambda: sf.Time("08:00"),
    ):
        with pytest.raises(InvalidParameter):
            make()
