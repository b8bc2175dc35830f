"""Each window of a unit by itself: what is said, what is refused, and in how many steps of a series it is."""

from __future__ import annotations

import datetime
import functools
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import sfumato as sf
from sfumato.catalog import Catalog
from sfumato.engines.dialect import Dialect
from sfumato.errors import InvalidParameter, LedgerMismatch, QueryRefused
from sfumato.plan.expressions.tree import Column, call
from sfumato.plan.questions.sources import Scan
from sfumato.session.series.calendar import meets
from sfumato.session.series.pricing import steps_of, touches_of
from windows_of_time import WINDOWS, window

SCHEMA = {"day": sf.Date("2026-01-01", "2026-12-31"), "amount": sf.Int(0, 10)}


def rows():
    days = [date(2026, 1, 1) + timedelta(days=day) for day in range(90)]
    listed = [(user, day) for user in range(10) for day in days]
    return pa.table(
        {"user": [u for u, _ in listed], "day": [d for _, d in listed], "amount": [1] * len(listed)}
    )


def table_of(name="visits", **wishes):
    unit = sf.PrivacyUnit("user", **({"max_rows": 5, "window": "month"} | wishes))
    return sf.PrivateTable(name, source=rows(), unit=unit, schema=SCHEMA, dataset="people")


def session_of(*tables, **more):
    return sf.Session(*tables, budget=sf.Budget(epsilon=10**6, delta="0.001"), **more)


def test_each_window_of_a_unit_counts_by_itself():
    text = "SELECT COUNT(*) AS n, COUNT(DISTINCT user) AS users, SUM(amount) AS total FROM visits"
    for length in WINDOWS:
        with session_of(table_of(window=length)) as session:
            found = session.sql(text).release(epsilon=10**5).table.to_pylist()[0]
            days = sorted(set(rows().column("day").to_pylist()))
            windows = {}
            for day in days:
                windows[window(day, length)] = windows.get(window(day, length), 0) + 1
            capped = 10 * sum(min(5, many) for many in windows.values())
            assert abs(found["n"] - capped) < 1
            assert abs(found["total"] - capped) <= 1  # sd 0.2, then rounded: 2 off is beyond 7 of them
            assert found["users"] == 10 * len(windows)


def test_it_is_said_that_a_lifetime_is_not_protected():
    with session_of(table_of()) as session:
        quote = str(session.sql("SELECT COUNT(*) AS n FROM visits").quote(epsilon=1))
        words = " ".join(quote.split())
        assert "Protects one user in one month, not a lifetime" in words
        assert "each user in one month" in words
    assert str(sf.PrivacyUnit("user", window=30, time="day")) == "one user in 30 days"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(n) AS m FROM (SELECT user, COUNT(*) AS n FROM visits GROUP BY user) AS x",
        "SELECT COUNT(*) AS n FROM visits JOIN stays ON visits.user = stays.user",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits UNION ALL SELECT * FROM stays) AS x",
        "SELECT COUNT(*) FROM (SELECT *, RANK() OVER (PARTITION BY user ORDER BY day) AS r FROM visits) x",
    ],
)
def test_rows_of_several_windows_are_not_put_together(text):
    with session_of(table_of(), table_of("stays")) as session, pytest.raises(QueryRefused, match="by itself"):
        session.sql(text)


def test_windows_are_on_record_and_stay(tmp_path):
    path = tmp_path / "l"
    with session_of(table_of(), ledger=path) as session:
        session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
    for other in ({"window": "year"}, {"window": None}):
        with pytest.raises(LedgerMismatch):
            session_of(table_of(**other), ledger=path)
    with pytest.raises(InvalidParameter, match="same unit"):
        session_of(table_of(), table_of("stays", window="week"))


def test_what_points_to_windows_is_refused():
    lines = sf.PrivateTable(
        "lines",
        source=rows(),
        unit=sf.PrivacyUnit.via("visits", on={"amount": "amount"}),
        schema={"amount": sf.Int(0, 10)},
    )
    with pytest.raises(InvalidParameter, match="windows of time"):
        session_of(table_of(), lines)


def test_a_catalog_names_windows(tmp_path):
    csv.write_csv(rows(), tmp_path / "visits.csv")
    (tmp_path / "sfumato.toml").write_text(
        '[datasets.visits]\nepsilon = 1\n[tables.visits]\nsource = "visits.csv"\nunit = "user"\n'
        'window = "month"\ntime = "day"\nmax_rows = 5\n[tables.visits.columns]\n'
        'day = { type = "date", start = 2026-01-01, end = 2026-12-31 }\n'
    )
    (table,) = Catalog.read(tmp_path / "sfumato.toml").tables
    assert (table.unit.window, table.unit.time) == ("month", "day")


@functools.cache
def windows_of_days(length):
    """The windows of all days of some decades, by Python."""
    first = date(1995, 1, 1)
    return [window(first + timedelta(days=place), length) for place in range(366 * 30)]


@pytest.mark.parametrize("every", ["day", "week", "month", "quarter", "year"])
@pytest.mark.parametrize("length", [*WINDOWS, 2, 7, 8, 9, 29, 90, 92, 366, 367])
def test_no_window_meets_more_steps_than_are_paid_for(every, length):
    """All windows of some decades against the bound."""
    steps = {}
    for one, step in zip(windows_of_days(length), windows_of_days(every), strict=True):
        steps.setdefault(one, set()).add(step)
    most = max(map(len, steps.values()))
    assert most <= meets(length, every)
    nested = isinstance(length, str) and "week" not in (length, every)
    assert not nested or most == meets(length, every)


def test_within_a_day_steps_are_counted_by_the_clock():
    assert [meets("day", every) for every in ("minute", "hour", "day")] == [1440, 24, 1]
    assert meets(2, "hour") == 48
    assert meets("month", "hour") == 31 * 24


def _touches(unit, time, every, horizon, kind=None):
    return touches_of(unit, steps_of(unit, Scan("visits"), time, every, horizon, kind), horizon)


def test_only_the_time_that_decides_windows_says_in_how_many_steps_a_unit_is():
    unit = sf.PrivacyUnit("user", window="month", time="day")
    day = Column("day")
    assert _touches(unit, day, "day", 365) == 31
    assert _touches(unit, call("trunc_week", day), "week", 365) == 6
    assert _touches(unit, call("trunc_month", day), "month", 365) == 1
    assert _touches(unit, call("trunc_month", call("trunc_week", day)), "month", 365) == 365
    assert _touches(unit, Column("other"), "day", 365) == 365
    assert _touches(unit, day, "day", 7) == 7
    assert _touches(sf.PrivacyUnit("user"), day, "day", 365) == 365
    assert _touches(sf.PrivacyUnit.row(), Column("other"), "day", 365) == 1


def test_a_series_over_windows_is_less_noisy_the_shorter_they_are():
    widths = []
    for length in ("day", "week", "month", None):
        with session_of(table_of(window=length)) as session:
            series = session.stream(
                "SELECT day, COUNT(*) AS n FROM visits GROUP BY day",
                start="2026-01-01",
                horizon=90,
                epsilon=1,
                delta="1e-6",
            )
            now = datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC)
            assert series.advance(now=now) == 31
            widths.append(series.table(kind="noise")["n_error"][30].as_py())
    assert np.all(np.diff(widths) > 0)


def _counted():
    """How many rows count of two units whose windows and ids read the same one after the other."""
    days = [date(1970, 1, 1) + timedelta(days=number) for number in (1000, 10_000)]
    unit = sf.PrivacyUnit("user", max_rows=1, window=1, time="day")
    schema = {"day": sf.Date("1970-01-01", "2026-12-31")}
    source = pa.table({"user": ["01", "1"], "day": days})
    with session_of(sf.PrivateTable("visits", source=source, unit=unit, schema=schema)) as session:
        return session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=10**5).table["n"][0].as_py()


def test_a_window_and_an_id_are_not_taken_for_others(monkeypatch):
    assert round(_counted()) == 2
    fill = Dialect.fill
    monkeypatch.setattr(
        Dialect, "fill", lambda self, form, *nodes: fill(self, form.replace("':' || ", ""), *nodes)
    )
    assert round(_counted()) == 1  # planted: nothing between them
