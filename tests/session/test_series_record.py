"""What of a series is in memory: a few points, read from the ledger where they are needed."""

from __future__ import annotations

import datetime
import tracemalloc
from datetime import UTC, date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import LedgerTampered
from sfumato.ledger.series import SeriesOf
from sfumato.session.series import points, record
from sfumato.session.series.points import Point
from sfumato.session.series.record import OnRecord

START = date(2026, 1, 1)
DAILY = "SELECT day, shop, COUNT(*) AS n FROM visits GROUP BY day, shop"
DAYS = 25


def session_of(ledger, *, public=True):
    """Ninety rows a day in each of three shops, of which one opens late."""
    rows = [
        (START + timedelta(days=day), shop)
        for shop, first in (("a", 0), ("b", 0), ("late", 9))
        for day in range(first, DAYS)
        for _ in range(90)
    ]
    table = sf.PrivateTable(
        "visits",
        source=pa.table({"day": [day for day, _ in rows], "shop": [shop for _, shop in rows]}),
        schema={
            "day": sf.Date("2026-01-01", "2026-12-31"),
            "shop": sf.Enum(["a", "b", "late"]) if public else sf.Text(),
        },
        unit=sf.PrivacyUnit.row(),
    )
    return sf.Session(table, budget=sf.Budget(epsilon=100, delta="0.001"), ledger=ledger)


def daily(session):
    return session.stream(DAILY, start=START, horizon=DAYS, epsilon=2, delta="1e-6")


def at(day):
    return datetime.datetime.combine(START + timedelta(days=day), datetime.time(), UTC)


@pytest.fixture
def loads(monkeypatch):
    """Which points were read, in bands of four of which two are kept."""
    monkeypatch.setattr(record, "_BAND", 4)
    monkeypatch.setattr(record, "_MOST", 2)
    monkeypatch.setattr(points, "_EVERY", 5)
    seen, real = [], SeriesOf.points

    def watched(self, receipt, first=0, end=None):
        seen.append((first, end))
        return real(self, receipt, first, end)

    monkeypatch.setattr(SeriesOf, "points", watched)
    return seen


@pytest.mark.parametrize("public", [True, False])
def test_a_series_that_goes_on_reads_its_last_points_and_shows_the_same(public, loads, tmp_path):
    with session_of(tmp_path / "l", public=public) as session:
        series = daily(session)
        series.advance(now=at(14))
        shown = [series.table(), series.table("window", window=6), series.point(-1).table]
    for day in range(15, DAYS + 1):
        with session_of(tmp_path / "l", public=public) as session:
            loads.clear()
            series = daily(session)
            assert len(series) == day - 1
            assert loads == []
            assert series.advance(now=at(day)) == 1
            assert all(first >= day - 10 for first, _ in loads)  # those since the noise was sealed
    with session_of(tmp_path / "l", public=public) as session:
        series = daily(session)
        assert series.table().slice(0, shown[0].num_rows).equals(shown[0])
        assert series.table("window", window=6).slice(0, shown[1].num_rows).equals(shown[1])
        assert series.point(13).table.equals(shown[2])
        assert len(series._points._bands) <= 2
        assert session.ledger.verify().ok


def test_two_who_go_on_at_once_see_the_points_of_both(loads, tmp_path):
    with session_of(tmp_path / "l") as one, session_of(tmp_path / "l") as other:
        mine, theirs = daily(one), daily(other)
        for day in range(1, 12):
            (mine, theirs)[day % 2].advance(now=at(day))
        theirs.advance(now=at(11))
        mine.advance(now=at(11))
        assert mine.table().equals(theirs.table())


def test_a_point_that_was_changed_is_noticed_where_it_is_read(tmp_path):
    import sqlite3

    path = tmp_path / "l"
    with session_of(path) as session:
        daily(session).advance(now=at(3))
    with sqlite3.connect(path) as database:
        last = "SELECT MAX(debit) FROM sfumato_payloads"
        database.execute(f"UPDATE sfumato_payloads SET payload = x'00' WHERE debit = ({last})")
    with session_of(path) as session:
        series = daily(session)
        with pytest.raises(LedgerTampered):
            series.table()


def test_points_are_those_of_a_list_and_few_are_in_memory():
    size, many = 20_000, 400
    written = [Point((np.full(size, place, np.int64),), bytes([place % 7])) for place in range(many)]
    stored = [point.to_bytes() for point in written]
    kept = OnRecord(lambda first, end: stored[first:end])
    assert len(kept) == 0
    assert list(kept) == []
    kept.follow(many)
    tracemalloc.start()
    try:
        values = [int(point.units[0][0]) for point in kept]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert values == list(range(many))
    assert most < many * size * 8
    assert int(kept[-1].units[0][0]) == many - 1
    assert [int(point.units[0][0]) for point in kept[3:9:2]] == [3, 5, 7]
    kept.append(written[0])
    stored.append(stored[0])
    assert int(kept[many].units[0][0]) == 0
    with pytest.raises(IndexError):
        kept[many + 1]
