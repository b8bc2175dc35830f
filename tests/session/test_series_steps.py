"""Series in which a unit counts in few steps: the first in which it has rows, by what is on record."""

from __future__ import annotations

import datetime
from datetime import UTC, date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import AccessDenied, InvalidParameter, QueryRefused
from sfumato.ledger import Ledger
from sfumato.session.series import points, roster
from sfumato.session.series.points import Point

INTEGERS = pa.int64()
START = date(2026, 1, 1)
TEXT = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
PER_SHOP = "SELECT day, shop, COUNT(*) AS n, SUM(amount) AS total FROM visits GROUP BY day, shop"


def table_of(rows, *, unit=None, shops=("a", "b"), ids=INTEGERS):
    users, days, places = zip(*rows, strict=True) if rows else ((), (), ())
    source = pa.table(
        {
            "user": pa.array(users, ids),
            "day": pa.array([START + timedelta(days=day) for day in days], pa.date32()),
            "shop": pa.array(places, pa.string()),
            "amount": pa.array([3] * len(rows), pa.int64()),
        }
    )
    schema = {
        "day": sf.Date("2026-01-01", "2027-12-31"),
        "shop": sf.Enum(shops) if shops else sf.Text(),
        "amount": sf.Int(0, 10),
    }
    unit = sf.PrivacyUnit("user", max_rows=2, max_groups=2) if unit is None else unit
    return sf.PrivateTable("visits", source=source, schema=schema, unit=unit)


def session_of(rows, ledger=None, **more):
    budget = sf.Budget(epsilon="1e8", delta="0.01")
    return sf.Session(table_of(rows, **more), budget=budget, ledger=ledger)


def series_of(session, most=2, text=TEXT, horizon=10, epsilon=10**7, of="running"):
    return session.stream(
        text, start=START, horizon=horizon, epsilon=epsilon, delta="1e-6", of=of, max_steps=most
    )


def at(day):
    return datetime.datetime.combine(START + timedelta(days=day), datetime.time(), UTC)


def steps(series, name="n"):
    return [round(value) for value in series.table("steps", kind="noise")[name].to_pylist()]


DAILY = [(user, day, "a") for user in range(3) for day in range(user, 8)]


@pytest.mark.parametrize("ids", [pa.int64(), pa.string(), pa.float64()])
def test_a_unit_counts_in_the_first_steps_in_which_it_has_rows(ids):
    rows = [(str(user) if ids == pa.string() else user, *rest) for user, *rest in DAILY]
    with session_of(rows, ids=ids) as session:
        series = series_of(session)
        series.advance(now=at(8))
        assert steps(series) == [1, 2, 2, 1, 0, 0, 0, 0]
        assert round(series.table("running", kind="noise")["n"][-1].as_py()) == 6


def test_who_has_counted_is_on_record_whatever_becomes_of_their_rows():
    """Erased, come again, with late rows and others: nobody counts in a third step."""
    states = [
        [(7, 0, "a"), (8, 0, "a")],
        [(7, 1, "a")],  # 8 is erased
        [(7, 2, "a"), (8, 2, "b"), (8, 1, "a")],  # 7 has but one row left; 8 comes again, with a late row
        [(7, 3, "a"), (8, 3, "a"), (9, 3, "a")],
        [(user, 4, "a") for user in (7, 8, 9)],
        [(user, 5, "a") for user in (7, 8, 9)],
    ]
    ledger = Ledger.open()
    for day, rows in enumerate(states):
        with session_of(rows, ledger) as session:
            series = series_of(session)
            series.advance(now=at(day + 1))
            shown = steps(series)
    assert shown == [2, 1, 1, 1, 1, 0]


def test_by_groups_and_by_groups_that_are_found():
    rows = [(user, day, "a") for day in range(4) for user in range(200)]
    rows += [(user, 2, "b") for user in range(100, 400)]
    for shops in (("a", "b"), ()):
        with session_of(rows, shops=shops) as session:
            series = series_of(session, text=PER_SHOP, epsilon=5000)
            series.advance(now=at(4))
            shown = series.table("steps", kind="noise").to_pylist()
            found = {(row["day"].day - 1, row["shop"]): (row["n"], row["total"]) for row in shown}
            # Of those who are in the other shop a hundred counted on the first two days.
            for key, n in {(0, "a"): 200, (1, "a"): 200, (2, "a"): 0, (3, "a"): 0, (2, "b"): 200}.items():
                assert np.abs(np.array(found[key]) - [n, 3 * n]).max() < 20


def test_a_window_has_steps_of_its_own():
    unit = sf.PrivacyUnit("user", max_rows=2, max_groups=2, window=4, time="day")
    epoch = (START - date(1970, 1, 1)).days % 4
    rows = [(1, day, "a") for day in range(10)]
    with session_of(rows, unit=unit) as session:
        series = series_of(session, most=1)
        assert series.pricing.choice.plan.touches == 1
        series.advance(now=at(10))
        first = [day for day in range(10) if day == 0 or (day + epoch) % 4 == 0]
        assert steps(series) == [int(day in first) for day in range(10)]


def test_a_series_that_goes_on_elsewhere_is_the_one_that_never_stopped(monkeypatch):
    from sfumato.ledger.series import SeriesOf

    monkeypatch.setattr(points, "_EVERY", 2)
    monkeypatch.setattr(SeriesOf, "secret", lambda self, receipt: b"s" * 32)
    with session_of(DAILY) as session:
        whole = series_of(session, epsilon=1)
        whole.advance(now=at(8))
        expected = [point.units for point in whole._points]
    ledger = Ledger.open()
    for stop in (1, 3, 4, 7, 8):
        with session_of(DAILY, ledger) as session:
            series = series_of(session, epsilon=1)
            series.advance(now=at(stop))
    for mine, other in zip(series._points, expected, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine.units, other, strict=True))


def test_the_price_is_that_of_all_streams_together():
    with session_of(DAILY) as session:
        pricing = series_of(session, text=PER_SHOP, epsilon=1).pricing
        paid = sum((mechanism.rho for mechanism in pricing.quote.mechanisms), Fraction(0))
        assert sum((noise.rho for noise in pricing.streams), Fraction(0)) == paid
        assert pricing.hiding.plan.touches == pricing.choice.plan.touches == 2
        assert pricing.hiding.sensitivity == 1


def follows_from_noise(series):
    """Whether what is kept of each point is as long as its noisy number of units says, and nothing else."""
    noise = series.pricing.hiding
    for point in series._points:
        noisy = float(noise.floats(point.units[-1])[0])
        length = int(np.ceil(noisy + 14 * noise.deviation(np.ones(1))))
        if len(point.roster) != 12 + 16 + 8 + 16 * length:
            return False
    return True


def test_what_is_kept_has_a_length_that_noise_decides(monkeypatch):
    with session_of(DAILY) as session:
        series = series_of(session, epsilon=1)
        series.advance(now=at(8))
        assert follows_from_noise(series)
        assert len({len(point.roster) for point in series._points}) > 4
        back = Point.from_bytes(series._points[0].to_bytes())
        assert (back.roster, back.state) == (series._points[0].roster, series._points[0].state)
    monkeypatch.setattr(roster, "_SURE", -1e9)  # a planted bug: as long as the list is
    with session_of(DAILY) as session:
        series = series_of(session, epsilon=1)
        series.advance(now=at(8))
        assert not follows_from_noise(series)


def test_what_is_said_of_it():
    with session_of(DAILY) as session:
        series = series_of(session, most=3, epsilon=1)
        said = " ".join(str(series).split())
        assert "one user, which counts in up to 3 steps" in said
        assert "Each user counts in the first 3 steps in which they have rows, and in none after" in said
        series.advance(now=at(8))
        release = series.point(-1)
        assert "in their first 3 steps" in str(release)
        assert "newcomers" in " ".join(str(release).split())
        low, high = series.table()["n_low"][-1].as_py(), series.table()["n_high"][-1].as_py()
        assert np.isfinite(low)
        assert high == np.inf  # over all rows: what is left out is not known
        assert series.receipt.memo["max_steps"] == 3
        units = "SELECT day, COUNT(DISTINCT user) AS n FROM visits GROUP BY day"
        assert "in the first 3 steps of each user" in str(
            series_of(session, 3, units, epsilon=2, of="steps").pricing.quote
        )


def test_another_number_of_steps_is_another_series():
    with session_of(DAILY) as session:
        series_of(session, 2, epsilon=1).advance(now=at(2))
        assert len(series_of(session, 2, epsilon=1)) == 2
        for other in (None, 3, 10):
            assert len(series_of(session, other, epsilon=1)) == 0
        # As many steps as there are: the same noise but for what hides who counts.
        assert series_of(session, 10).pricing.choice == series_of(session, None).pricing.choice


def test_what_is_refused_spends_nothing():
    with session_of(DAILY) as session:
        for wrong in (0, -1, 1.5, "many", True):
            with pytest.raises(InvalidParameter, match="max_steps"):
                series_of(session, wrong)
        assert session.balance().spent == 0
    with session_of(DAILY, unit=sf.PrivacyUnit.row()) as session:
        with pytest.raises(InvalidParameter, match="Each row is in one step"):
            series_of(session, 2)
        assert session.balance().spent == 0


def test_a_right_to_sums_opens_no_lines_of_units():
    with session_of(DAILY) as session:
        series = series_of(session, epsilon=1)
        series.advance(now=at(1))
        (question,) = series.pricing.step_plan(1).recipe.questions
        right = session.ledger.series.right(series.receipt, 1, (question.fingerprint,))
        with pytest.raises(AccessDenied, match="not paid for this question"):
            session.vault.of_some_units(question, right, lambda units: np.ones(len(units), bool))
        with pytest.raises(AccessDenied, match="A receipt opens nothing"):
            session.vault.of_some_units(question, series.receipt, lambda units: np.ones(len(units), bool))


def test_a_point_that_was_not_recorded_is_read_again_as_if_it_never_was(monkeypatch):
    """Who was admitted to a step that nobody has seen is admitted again, and counts once."""
    from sfumato.ledger.series import SeriesOf

    record = SeriesOf.record
    failing = iter([False, True, True, *[False] * 20])

    def recorded(self, right, point, payload):
        if next(failing):
            raise OSError("the disk is full")
        record(self, right, point, payload)

    with session_of(DAILY) as session:
        series = series_of(session)
        monkeypatch.setattr(SeriesOf, "record", recorded)
        for _ in range(2):
            with pytest.raises(OSError, match="disk is full"):
                series.advance(now=at(8))
            assert len(series) == 1
        assert series.advance(now=at(8)) == 7
        assert steps(series) == [1, 2, 2, 1, 0, 0, 0, 0]


_BY_DAY = "SELECT day, COUNT(*) AS n FROM (SELECT {0}, %s AS day FROM visits GROUP BY {0}) AS v GROUP BY day"
MADE = {
    "latest": _BY_DAY % "MAX(day)",
    "first": _BY_DAY % "MIN(day)",
    "months": "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM (SELECT {0}, MAX(day) AS day FROM "
    "visits WHERE amount > 1 GROUP BY {0}) AS v GROUP BY m",
    "how often": "SELECT many, COUNT(*) AS n FROM (SELECT {0}, COUNT(*) AS many FROM visits GROUP BY {0}) "
    "AS v WHERE many < 50 GROUP BY many",
}


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize("made", MADE)
def test_the_one_row_that_is_made_of_all_rows_of_a_unit_can_be_in_every_step(made, adjacency):
    """More rows come, and it is in another step: a person who comes every day is in all of them."""
    unit = sf.PrivacyUnit("user", max_rows=2, max_groups=2, adjacency=adjacency)
    text = MADE[made].format('"user"')
    with session_of([(1, 0, "a")], unit=unit) as session:
        start = 0 if made == "how often" else START
        series = session.stream(text, start=start, horizon=8, epsilon=1, delta="1e-6")
        assert series.pricing.choice.plan.touches == 8
        assert "user" in str(series)
        assert "in up to 8 steps" in " ".join(str(series).split())
        with pytest.raises(InvalidParameter, match="one row of all rows of each user"):
            session.stream(text, start=start, horizon=8, epsilon=1, delta="1e-6", max_steps=2)


# ── different people


PEOPLE = "SELECT day, COUNT(DISTINCT user) AS n FROM visits GROUP BY day"
WINDOWED = sf.PrivacyUnit("user", max_rows=4, max_groups=4, window=4, time="day")


@pytest.mark.parametrize("unit", [None, WINDOWED])
@pytest.mark.parametrize("most", [None, 3])
def test_numbers_of_people_are_no_totals(unit, most):
    with session_of(DAILY, **({} if unit is None else {"unit": unit})) as session:
        before = session.balance().spent
        with pytest.raises(QueryRefused, match="do not add up over steps"):
            series_of(session, most, PEOPLE)
        series = series_of(session, most, PEOPLE, of="steps")
        series.advance(now=at(8))
        for of, window in (("running", None), ("window", 3)):
            with pytest.raises(QueryRefused, match="do not add up over steps"):
                series.table(of, window=window)
            with pytest.raises(QueryRefused, match="do not add up over steps"):
                series.point(-1, of, window=window)
        assert session.balance().spent - before == series.epsilon
        assert len(series.table()) == 8


def test_newcomers_add_up_to_people():
    with session_of(DAILY) as session:
        series = series_of(session, 1, PEOPLE)
        series.advance(now=at(8))
        assert round(series.table(kind="noise")["n"][-1].as_py()) == 3


def test_limits_are_those_of_a_step():
    with session_of(DAILY, unit=WINDOWED) as session:
        series = series_of(session, None, epsilon=1)
        quote = " ".join(str(series.pricing.quote).split())
        assert "counted in each step" in quote
        assert "These limits are for each step by itself" in quote
        assert "not a lifetime: whoever is in the data for 12 times as long" in " ".join(str(series).split())
