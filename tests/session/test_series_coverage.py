"""Intervals of a series hold as often as they say: totals so far, of some steps, of one, and means."""

from __future__ import annotations

import datetime
from datetime import UTC, date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import sfumato as sf
from sfumato.session.series import pricing
from sfumato.session.series.points import Courses

START = date(2026, 1, 1)
HORIZON, CONFIDENCE = 6, 0.5
FORMS = {"running": {}, "steps": {}, "window": {"window": 2}}
TEXT = "SELECT day, COUNT(*) AS n, SUM(f) AS total, AVG(f) AS mean FROM visits GROUP BY day"


def visits():
    draw = np.random.default_rng(1)
    days = [START + timedelta(days=day) for day in range(HORIZON) for _ in range(60 + 30 * day)]
    return pa.table({"day": days, "f": np.round(draw.random(len(days)) * 16) / 2})


def truth(rows, of, window=HORIZON):
    """What the columns estimate at each step."""
    place = np.array([(day - START).days for day in rows["day"].to_pylist()])
    values = rows["f"].to_numpy()
    found = {"n": [], "total": [], "mean": []}
    for step in range(HORIZON):
        first = {"running": 0, "steps": step, "window": max(step - window + 1, 0)}[of]
        chosen = values[(place >= first) & (place <= step)]
        for name, value in (("n", chosen.size), ("total", chosen.sum()), ("mean", chosen.mean())):
            found[name].append(value)
    return found


def hits(times, seed):
    """How often each interval holds what it is about, by form, column and step."""
    rows = visits()
    table = sf.PrivateTable(
        "visits",
        source=rows,
        schema={"day": sf.Date("2026-01-01", "2026-12-31"), "f": sf.Float(0, 8)},
        unit=sf.PrivacyUnit.row(),
    )
    draw = np.random.default_rng(seed)
    found = {(of, name): np.zeros(HORIZON) for of in FORMS for name in ("n", "total", "mean")}
    with sf.Session(table, budget=sf.Budget(epsilon=10, delta="0.001")) as session:
        series = session.stream(TEXT, start=START, horizon=HORIZON, epsilon="0.5", delta="1e-5")
        exact = []
        with pytest.MonkeyPatch.context() as patch:
            release = Courses.release
            patch.setattr(
                Courses, "release", lambda self, values: (exact.append(values), release(self, values))[1]
            )
            end = datetime.datetime.combine(START + timedelta(days=HORIZON), datetime.time(), UTC)
            series.advance(now=end)
        for _ in range(times):
            courses = Courses(series.pricing.noises, draw.bytes(32))
            series._points = [courses.release(values) for values in exact]
            for of, more in FORMS.items():
                shown = series.table(of, **more, confidence=CONFIDENCE).to_pydict()
                for name, true in truth(rows, of, **more).items():
                    low, high = np.array(shown[f"{name}_low"]), np.array(shown[f"{name}_high"])
                    found[of, name] += (low <= true) & (true <= high)
    return found


def problems(found, times):
    """Where intervals hold less often than they say; or, for sums, clearly more often."""
    wrong = []
    for (of, name), counts in found.items():
        least = binom.ppf(1e-9, times, CONFIDENCE)
        most = times if name == "mean" else binom.isf(1e-9, times, CONFIDENCE + 0.03)  # whole counts: wider
        wrong += [(of, name, step, count) for step, count in enumerate(counts) if not least <= count <= most]
    return wrong


def test_intervals_hold_as_often_as_they_say():
    assert problems(hits(25, 0), 25) == []


@pytest.mark.stats
def test_intervals_hold_as_often_as_they_say_over_many_series():
    assert problems(hits(400, 1), 400) == []


@pytest.mark.stats
@pytest.mark.parametrize("factor", [0.25, 3])
def test_deviations_that_are_off_are_found(factor, monkeypatch):
    real = pricing.Pricing._laws
    monkeypatch.setattr(
        pricing.Pricing, "_laws", lambda self, found: real(self, [factor * each for each in found])
    )
    assert len(problems(hits(120, 0), 120)) > 5
