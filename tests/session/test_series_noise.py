"""The noise of a series: the same if a step is computed again, another for other rows, and never shared."""

from __future__ import annotations

import datetime
from datetime import UTC, date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.continual.course import Course
from sfumato.ledger import Ledger
from sfumato.ledger import series as ledgers
from sfumato.ledger.series import SeriesOf
from sfumato.session.series.points import Courses, Point
from sfumato.session.series.stream import Stream

START = date(2026, 1, 1)
DAILY = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"


def at(day):
    return datetime.datetime.combine(START + timedelta(days=day), datetime.time(), UTC)


def session_of(ledger, many):
    """So many rows on each of ten days."""
    days = [START + timedelta(days=day) for day in range(10) for _ in range(many)]
    table = sf.PrivateTable(
        "visits",
        source=pa.table({"day": days}),
        schema={"day": sf.Date("2026-01-01", "2026-12-31")},
        unit=sf.PrivacyUnit.row(),
    )
    return sf.Session(table, budget=sf.Budget(epsilon=100, delta="0.001"), ledger=ledger)


def daily(session, horizon=5, epsilon=1):
    return session.stream(DAILY, start=START, horizon=horizon, epsilon=epsilon, delta="1e-6")


def drawn(series):
    return np.array([int(point.units[0][0]) for point in series._points])


class Cut(BaseException):
    """The process ends here."""


def cut_off(ledger, many, *, after):
    """What was drawn for a point that was never recorded, after some that were."""
    seen = []
    with session_of(ledger, many) as session, pytest.MonkeyPatch.context() as patch:
        series = daily(session)
        if after:
            series.advance(now=at(after))

        def record(self, right, point, payload):
            seen.append(int(Point.from_bytes(payload).units[0][0]))
            raise Cut

        patch.setattr(SeriesOf, "record", record)
        with pytest.raises(Cut):
            series.advance(now=at(after + 1))
    return seen[0]


def check_again(after=2):
    """A point that was cut off before it was recorded: the same rows, then other rows."""
    with Ledger.open() as ledger:
        first = cut_off(ledger, 20, after=after)
        assert cut_off(ledger, 20, after=after) == first  # however often
        other = cut_off(ledger, 30, after=after)
        with session_of(ledger, 20) as session:
            series = daily(session)
            grid = 2.0 ** -series.pricing.noises[0].exponent
            assert abs((other - first) / grid - 10) > 1e-3  # not the difference of the rows
            series.advance(now=at(5))
            assert drawn(series)[after] == first
        with session_of(ledger, 20) as session:  # and those who come later agree on all noise so far
            whole = Courses(
                series.pricing.noises, ledger.series.secret(series.receipt), daily(session)._points
            )
            assert whole.next == 5
            assert [course.save() for course in whole._courses] == states(ledger, series)


def states(ledger, series):
    """The state of a course that has released the whole series itself."""
    (noise,) = series.pricing.noises
    course = noise.start(ledger.series.secret(series.receipt))
    for step, point in enumerate(series._points):
        units = course.release([20], at=step, salt=point.salt)
        assert units.tolist() == point.units[0].tolist()
    return [course.save()]


@pytest.mark.parametrize("after", [0, 2])
def test_a_step_that_is_computed_again_has_the_same_noise_for_the_same_rows_alone(after):
    check_again(after)


def test_two_series_of_one_dataset_share_no_noise():
    with Ledger.open() as ledger, session_of(ledger, 20) as session:
        check_apart(session)


def check_apart(session):
    """The same series of two analysts, who have paid each."""
    found = []
    for name in ("ada", "bob"):
        with session.as_analyst(name) as own:
            series = daily(own)
            series.advance(now=at(4))
            found.append(drawn(series))
    assert not (found[0] == found[1]).any()


# ── planted bugs

_init = Courses.__init__


def _without_salts(self, noises, secret, points=(), finding=None, most=None):
    _init(self, noises, secret, [Point(point.units, b"", point.state) for point in points])


MUTANTS = {
    "fresh noise": (Courses, "_salt", lambda *_: np.random.default_rng().bytes(32)),
    "the same noise for other rows": (Courses, "_salt", lambda *_: b""),
    "no salts on the way back": (Courses, "__init__", _without_salts),
    "a secret that changes": (SeriesOf, "secret", lambda *_: np.random.default_rng().bytes(32)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_noise_that_does_not_come_back_is_found(name, monkeypatch):
    monkeypatch.setattr(*MUTANTS[name])
    with pytest.raises(AssertionError):
        check_again()


def test_a_secret_of_two_series_is_found(monkeypatch):
    monkeypatch.setattr(SeriesOf, "secret", lambda *_: b"s" * 32)
    with Ledger.open() as ledger, session_of(ledger, 20) as session, pytest.raises(AssertionError):
        check_apart(session)


# ── beyond the horizon

GUARDS = {
    "stream": (Stream, "_refuse", lambda *_, **__: None),
    "ledger": (ledgers, "_refuse", lambda *_: None),
    "course": (Course, "_check", lambda *_: None),
}


@pytest.mark.parametrize("last", GUARDS)
def test_each_guard_of_the_horizon_holds_by_itself(last, monkeypatch):
    for name, patch in GUARDS.items():
        if name != last:
            monkeypatch.setattr(*patch)
    with Ledger.open() as ledger, session_of(ledger, 20) as session:
        series = daily(session, 3)
        with pytest.raises((sf.errors.BudgetExceeded, sf.errors.Spent)):
            series.advance("2026-01-04", now=at(9))
        assert len(daily(session, 3)) == 0  # steps that are due together are taken together
        assert series.advance("2026-01-03", now=at(9)) == len(daily(session, 3)) == 3
        assert ledger.verify().ok
