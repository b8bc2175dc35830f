"""Series whose steps a public table has a say in: it may say something else whenever it is read."""

from __future__ import annotations

import datetime
from datetime import UTC, date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.ledger import Ledger
from sfumato.session.series import stream
from sfumato.session.series.points import Courses

START, HORIZON = date(2026, 1, 5), 4  # a Monday
LOOKED_UP = "visits v JOIN shops s ON v.k = s.k"
LEFT = "visits v LEFT JOIN shops s ON v.k = s.k"
OWN = {
    "v.day": LOOKED_UP,
    "v.day ": "visits v LEFT JOIN shops s ON v.k = s.k WHERE s.open = 1",
    "DATE_TRUNC('day', v.day)": LOOKED_UP,
    "day": "(SELECT v.day AS day, v.k FROM visits v JOIN shops s ON v.k = s.k) AS t",
    "DATE_TRUNC('week', CASE WHEN v.k = 1 THEN v.day ELSE v.day + 1 END)": LOOKED_UP,
}
PUBLIC = {
    "s.day": LOOKED_UP,
    "s.day ": LEFT,
    "DATE_TRUNC('day', s.day)": LOOKED_UP,
    "DATE_TRUNC('week', COALESCE(s.day, v.day))": LEFT,
    "DATE_TRUNC('week', CASE WHEN s.open = 1 THEN v.day ELSE v.day + 1 END)": LOOKED_UP,
    "DATE_TRUNC('week', v.day + s.open)": LOOKED_UP,
    "day": "(SELECT s.day AS day, v.k FROM visits v JOIN shops s ON v.k = s.k) AS t",
    "DATE_TRUNC('week', day)": "(SELECT v.day + s.open AS day FROM visits v JOIN shops s ON v.k = s.k) AS t",
}


def days(*places):
    return pa.array([START + timedelta(days=place) for place in places], pa.date32())


def length_of(key):
    """How many days a step has."""
    return 7 if "week" in key else 1


def opened(ledger, keys, said, adjacency="add-remove"):
    """A session where the public table says this day of shop 1, and whether it is open."""
    visits = sf.PrivateTable(
        "visits",
        source=pa.table({"k": pa.array(keys, pa.int64()), "day": days(*[0] * len(keys))}),
        unit=sf.PrivacyUnit.row(adjacency=adjacency),
        schema={"k": sf.Int(0, 9), "day": sf.Date(START, "2026-12-31")},
    )
    shops = sf.PublicTable(
        "shops",
        source=pa.table({"k": [0, 1], "day": days(0, said), "open": pa.array([0, said % 2], pa.int64())}),
        schema={"k": sf.Int(0, 9), "day": sf.Date(START, "2026-12-31"), "open": sf.Int(0, 1)},
        key=["k"],
    )
    return sf.Session(visits, shops, budget=sf.Budget(epsilon=100, delta="1e-3"), ledger=ledger)


def series_of(session, key, source):
    text = f"SELECT {key} AS step, COUNT(*) AS n FROM {source} GROUP BY {key}"
    return session.stream(text, start=START, horizon=HORIZON, epsilon=1, delta="1e-6")


def met(keys, key, source):
    """The exact numbers of each point, while the public table moves on; and in how many steps a row is."""
    numbers, release = list[int](), Courses.release

    def watched(self, exact):
        numbers.append(int(np.asarray(exact[0])[0]))
        return release(self, exact)

    with pytest.MonkeyPatch.context() as patch, Ledger.open() as ledger:
        patch.setattr(Courses, "release", watched)
        for step in range(HORIZON):
            with opened(ledger, keys, step * length_of(key)) as session:
                series = series_of(session, key, source)
                after = datetime.datetime.combine(
                    START + timedelta(days=(step + 1) * length_of(key)), datetime.time(), UTC
                )
                series.advance(now=after)
    return np.array(numbers), series.pricing.choice.plan.touches


@pytest.mark.parametrize(("key", "source"), [*OWN.items(), *PUBLIC.items()])
def test_a_row_is_in_no_more_steps_than_are_paid_for(key, source):
    (more, touches), (fewer, _) = met([1, 1, 0], key, source), met([1, 0], key, source)
    assert np.count_nonzero(more - fewer) <= touches
    assert (touches == 1) == (OWN.get(key) == source)


def test_one_step_alone_would_be_too_few(monkeypatch):
    monkeypatch.setattr(stream, "steps_of", lambda *_: 1)
    (more, touches), (fewer, _) = (
        met([1, 1, 0], "s.day", PUBLIC["s.day"]),
        met([1, 0], "s.day", PUBLIC["s.day"]),
    )
    assert np.count_nonzero(more - fewer) == HORIZON > touches


def test_by_exchange_both_rows_count():
    for key, touches in (("v.day", 2), ("s.day", HORIZON)):
        with Ledger.open() as ledger, opened(ledger, [1], 0, "exchange") as session:
            series = series_of(session, key, PUBLIC["s.day"])
            assert series.pricing.choice.plan.touches == touches
