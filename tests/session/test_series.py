"""Series: paid for once, each step read once when it is over, and never an answer twice."""

from __future__ import annotations

import datetime
from contextlib import contextmanager
from datetime import UTC, date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidParameter, QueryRefused
from sfumato.session.series.calendar import Calendar

START = date(2026, 1, 1)
DAILY = "SELECT day, COUNT(*) AS n, SUM(amount) AS total FROM visits GROUP BY day"


def rows_of(days, many=20, seed=0):
    draw = np.random.default_rng(seed)
    listed = [START + timedelta(days=day) for day in range(days) for _ in range(many)]
    size = len(listed)
    return pa.table(
        {
            "user": np.arange(size),
            "day": listed,
            "shop": draw.choice(["a", "b"], size),
            "amount": draw.integers(0, 11, size),
        }
    )


def table_of(source, unit=None):
    schema = {
        "day": sf.Date("2026-01-01", "2027-12-31"),
        "shop": sf.Enum(["a", "b"]),
        "amount": sf.Int(0, 10),
    }
    return sf.PrivateTable("visits", source=source, schema=schema, unit=unit or sf.PrivacyUnit.row())


def session_of(source, ledger=None, unit=None, epsilon=1000):
    budget = sf.Budget(epsilon=epsilon, delta="0.001")
    return sf.Session(table_of(source, unit), budget=budget, ledger=ledger)


def at(day):
    """A moment at which so many days are over."""
    return datetime.datetime.combine(START + timedelta(days=day), datetime.time(), UTC)


def daily(session, horizon=30, epsilon=900, text=DAILY, **more):
    return session.stream(text, start="2026-01-01", horizon=horizon, epsilon=epsilon, delta="1e-6", **more)


def test_totals_are_those_of_the_rows_within_their_intervals():
    with session_of(rows_of(30)) as session:
        series = daily(session, epsilon=5)
        assert series.advance(now=at(25)) == 25
        for of, window in (("running", None), ("steps", None), ("window", 7)):
            shown = series.table(of, window=window, confidence=1 - 1e-9).to_pydict()
            exact = np.full(25, 20)
            true = {"running": np.cumsum(exact), "steps": exact}.get(of)
            if true is None:
                true = np.array([exact[max(0, step - 6) : step + 1].sum() for step in range(25)])
            assert shown["day"] == [START + timedelta(days=step) for step in range(25)]
            assert all(
                low <= n <= high for low, n, high in zip(shown["n_low"], true, shown["n_high"], strict=True)
            )


def test_it_is_paid_once_before_the_first_point_and_goes_on_in_another_session(tmp_path):
    path = tmp_path / "visits.ledger"
    with session_of(rows_of(30), path) as session:
        first = daily(session)
        assert session.balance().spent == 0
        assert len(first) == 0
        assert first.advance(now=at(3)) == 3
        assert first.advance(now=at(3)) == 0
        shown = first.table()
        assert session.balance().spent == 900
    with session_of(rows_of(30), path) as session:
        again = daily(session)
        assert again.table().equals(shown)
        assert again.advance(now=at(5)) == 2
        assert again.table().slice(0, 3).equals(shown)
        assert session.balance().spent == 900
        assert session.ledger.verify().ok


@pytest.mark.parametrize("taken", ["1e-6", "6e-4", "9.9e-4"])
def test_a_series_that_names_no_delta_goes_on_when_the_budget_spares_less(tmp_path, taken):
    """What is spared of delta gets less as others spend it: the series is the one that was paid for."""

    def opened(session):
        return session.stream(DAILY, start=START, horizon=5, epsilon=1)

    with session_of(rows_of(5), tmp_path / "l") as session:
        unpaid, series = opened(session), opened(session)
        series.advance(now=at(1))
        shown = series.table()
        session.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1, delta=taken, mechanism="gaussian")
        assert opened(session).table().equals(shown)
        assert unpaid.advance(now=at(2)) == 1
        again = session.stream(DAILY, start=START, horizon=5, epsilon=1, delta=series.delta)
        assert again.advance(now=at(3)) == 1
        other = session.stream(DAILY, start=START, horizon=5, epsilon=2)
        assert len(other) == 0
        assert session.balance().spent == 2
    with session_of(rows_of(5), tmp_path / "l") as session:
        assert opened(session).advance(now=at(5)) == 2
        assert session.balance().spent == 2


def test_a_series_that_goes_on_elsewhere_is_the_one_that_never_stopped(tmp_path, monkeypatch):
    """The noise follows from the ledger's secret and the rows, however often a series is resumed."""
    from sfumato.ledger.series import SeriesOf
    from sfumato.session.series import points

    monkeypatch.setattr(points, "_EVERY", 8)
    monkeypatch.setattr(SeriesOf, "secret", lambda self, receipt: b"s" * 32)
    with session_of(rows_of(30, 2)) as session:
        whole = daily(session)
        whole.advance(now=at(30))
        expected = [point.units for point in whole._points]
    for stops in ([1, 2, 7, 8, 9, 16, 30], [18, 30]):
        path = tmp_path / f"{len(stops)}.ledger"
        for stop in stops:
            with session_of(rows_of(30, 2), path) as session:
                series = daily(session)
                series.advance(now=at(stop))
        found = [point.units for point in series._points]
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_rows_that_come_late_change_no_point_and_are_counted_in_none(tmp_path):
    path = tmp_path / "visits.parquet"
    pq.write_table(rows_of(3), path)
    with session_of(path, tmp_path / "l") as session:
        series = daily(session)
        series.advance(now=at(3))
        before = series.table("steps")
    late = pa.concat_tables([rows_of(4), rows_of(2, 500)])
    pq.write_table(late, path)
    with session_of(path, tmp_path / "l") as session:
        series = daily(session)
        series.advance(now=at(4))
        assert series.table("steps").slice(0, 3).equals(before)
        assert abs(series.table("steps")["n"][3].as_py() - 20) < 10


def test_points_read_the_rows_of_their_steps_alone(monkeypatch):
    with session_of(rows_of(30)) as session:
        series = daily(session)
        asked = []
        read = session.vault.read
        monkeypatch.setattr(
            session.vault,
            "read",
            lambda questions, right: (asked.append(questions), read(questions, right))[1],
        )
        for step in range(4):
            series.advance(now=at(step + 1))
        series.advance(now=at(9))
        days = [[key.values for key in question.keys] for (question,) in asked]
        alone, together = days[:4], days[4:]
        assert alone == [[(START + timedelta(days=step),)] for step in range(4)]
        assert together == [[tuple(START + timedelta(days=step) for step in range(4, 9))]]


@pytest.mark.parametrize("unit", [sf.PrivacyUnit("user", max_rows=3, max_groups=3), sf.PrivacyUnit.row()])
def test_what_is_said_of_steps_that_a_unit_can_be_in(unit):
    with session_of(rows_of(30), unit=unit) as session:
        series = daily(session)
        touches = series.pricing.choice.plan.touches
        assert touches == (1 if unit.is_row else 30)
        assert ("in one step" if touches == 1 else "in up to 30 steps") in " ".join(str(series).split())


def refused(session, error, words, act):
    spent = session.balance().spent
    receipts = len(session.ledger.export())
    with pytest.raises(error, match=words):
        act()
    assert session.balance().spent == spent
    assert len(session.ledger.export()) == receipts


def test_what_is_refused_spends_nothing():
    with session_of(rows_of(30)) as session:
        series = daily(session, 5)
        refused(session, InvalidParameter, "not over yet", lambda: series.advance(now=at(0)))
        refused(session, InvalidParameter, "still open", lambda: series.advance("2026-01-02", now=at(1)))
        refused(
            session, InvalidParameter, "time zone", lambda: series.advance(now=at(1).replace(tzinfo=None))
        )
        for wrong in ("soon", 3, 3.5, "2026-01-01T03:00"):
            refused(session, InvalidParameter, "step", lambda wrong=wrong: series.advance(wrong, now=at(9)))
        for wrong in (START, "2026-01-03", 5):
            refused(session, InvalidParameter, "time zone", lambda wrong=wrong: series.advance(now=wrong))
        refused(session, BudgetExceeded, "ends with", lambda: series.advance("2026-01-06", now=at(9)))
        refused(
            session, BudgetExceeded, "Not within", lambda: daily(session, epsilon=2000).advance(now=at(3))
        )
        series.advance(now=at(4))
        refused(session, InvalidParameter, "clock went back", lambda: series.advance(now=at(2)))
        refused(session, InvalidParameter, "zone='UTC'", lambda: daily(session, 5, zone="Asia/Tokyo"))
        series.advance(now=at(40))
        assert len(series) == 5
        refused(session, BudgetExceeded, "ends with", lambda: series.advance(now=at(40)))
        refused(session, InvalidParameter, "5 are published", lambda: series.point(5))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT COUNT(*) AS n FROM visits", "no key that is a time"),
        ("SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop", "no key that is a time"),
        ("SELECT day, MEDIAN(amount) AS m FROM visits GROUP BY day", "counts, sums"),
        ("SELECT day, COUNT(*) AS n FROM visits GROUP BY day HAVING COUNT(*) > 5", "same columns"),
        ("SELECT day, shop, COUNT(*) AS n FROM visits GROUP BY ROLLUP (day, shop)", "one level"),
        ("EXPLAIN SELECT day, COUNT(*) AS n FROM visits GROUP BY day", "EXPLAIN"),
    ],
)
def test_what_makes_no_series_is_refused(text, words):
    with session_of(rows_of(3)) as session:
        refused(session, QueryRefused, words, lambda: daily(session, text=text))


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (
            {
                "start": "2026-01-02",
                "text": "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY m",
            },
            "beginning of a month",
        ),
        ({"start": "soon"}, "date of the first step"),
        ({"horizon": 0}, "horizon"),
        ({"horizon": 10**7}, "9999"),
        ({"zone": "Mars/Olympus"}, "time zone"),
        ({"of": "all"}, "running"),
        ({"of": "window"}, 'of="window" goes with'),
        ({"window": 7}, 'of="window" goes with'),
    ],
)
def test_bad_wishes_are_one_sentence(wishes, words):
    usual = {"text": DAILY, "start": "2026-01-01", "horizon": 5, "epsilon": 1, "delta": "1e-6"}
    with session_of(rows_of(3)) as session:
        refused(session, InvalidParameter, words, lambda: session.stream(**(usual | wishes)))


def test_a_budget_without_delta_has_no_series():
    with sf.Session(table_of(rows_of(3)), budget=sf.Budget(epsilon=1)) as session:
        refused(
            session,
            InvalidParameter,
            "the budget has none",
            lambda: session.stream(DAILY, start=START, horizon=5, epsilon="0.1"),
        )


def test_by_groups_and_by_months():
    text = "SELECT DATE_TRUNC('month', day) AS m, shop, COUNT(*) AS n FROM visits GROUP BY m, shop"
    with session_of(rows_of(90)) as session:
        series = daily(session, 12, text=text)
        assert series.advance(now=at(90)) == 3
        shown = series.table("steps").to_pydict()
        assert shown["m"] == [date(2026, month, 1) for month in (1, 2, 3) for _ in "ab"]
        assert shown["shop"] == ["a", "b"] * 3
        months = [sum(shown["n"][place : place + 2]) for place in (0, 2, 4)]
        assert np.abs(np.array(months) - [620, 560, 620]).max() < 20


@pytest.mark.parametrize("every", ["minute", "hour", "day", "week", "month", "quarter", "year"])
def test_steps_follow_one_another(every):
    calendar = Calendar(datetime.datetime(2024, 1, 1), every)
    for step in range(50):
        value = calendar.value(step)
        assert calendar.step_of(value) == step
        moment = value.replace(tzinfo=UTC)
        assert calendar.closed(moment) == step
        assert calendar.closed(moment - timedelta(seconds=1)) == max(step - 1, 0)
    assert calendar.step_of(calendar.start - timedelta(days=1)) == -1


def test_a_step_ends_where_its_zone_says():
    calendar = Calendar(START, "day", "Asia/Tokyo")
    assert calendar.closed(datetime.datetime(2026, 1, 1, 15, tzinfo=UTC)) == 1
    assert calendar.closed(datetime.datetime(2026, 1, 1, 14, 59, tzinfo=UTC)) == 0


def test_other_rows_have_other_noise(monkeypatch):
    """A ledger that is put back gives no two answers with the same noise, whose difference would be exact."""
    from sfumato.ledger.series import SeriesOf

    monkeypatch.setattr(SeriesOf, "secret", lambda self, receipt: b"s" * 32)
    found = []
    for more in (0, 0, 1):
        one = pa.table({"user": [0], "day": [START], "shop": ["a"], "amount": [5]})
        with session_of(pa.concat_tables([rows_of(3, 1), *[one.cast(rows_of(1).schema)] * more])) as session:
            series = daily(session, epsilon=1)
            series.advance(now=at(1))
            found.append([point.units for point in series._points])
    (first,), (again,), (other,) = found
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    differences = [
        int(b[0] - a[0]) * noise.grid for a, b, noise in zip(first, other, series.pricing.noises, strict=True)
    ]
    assert not any(float(each).is_integer() for each in differences)


def test_a_difference_has_an_interval_of_its_own():
    with session_of(rows_of(30)) as session:
        series = daily(session, epsilon=5, text="SELECT day, COUNT(*) AS n FROM visits GROUP BY day")
        series.advance(now=at(20))
        found = series.difference(4, -1)
        assert abs(found.table["n"][0].as_py() - 300) < 100
        apart = [series.point(place).error()["n"][0].as_py() for place in (4, -1)]
        assert found.error()["n"][0].as_py() < sum(apart)
        same = series.table("window", window=15, kind="noise")
        assert found.table["n"][0].as_py() == same["n"][-1].as_py()
        for wrong in ((4, 4), (5, 4), (0, 20), (-21, 3)):
            with pytest.raises(InvalidParameter):
                series.difference(*wrong)
    with session_of(rows_of(3)) as session:
        series = daily(session, text="SELECT day, AVG(amount) AS m FROM visits GROUP BY day")
        series.advance(now=at(2))
        with pytest.raises(QueryRefused, match="counts and sums"):
            series.difference(0, 1)


@contextmanager
def days_of(units, many, unit, text):
    """A series over two days, on each of which so many units have so many rows, and hardly any noise."""
    listed = [(user, day) for day, rows in enumerate(many) for user in range(units) for _ in range(rows)]
    users, days = zip(*listed, strict=True)
    source = pa.table(
        {"user": users, "day": [date(2026, 1, 1 + day) for day in days], "amount": [5] * len(days)}
    )
    table = sf.PrivateTable(
        "visits",
        source=source,
        unit=unit,
        schema={"day": sf.Date("2026-01-01", "2026-12-31"), "amount": sf.Int(-10, 10)},
    )
    with sf.Session(table, budget=sf.Budget(epsilon=10**7, delta="1e-5")) as session:
        series = daily(session, epsilon=10**6, text=text, horizon=3)
        series.advance(now=at(2))
        yield series


@pytest.mark.parametrize("many", [(50, 1), (1, 50)])
@pytest.mark.parametrize("unit", [sf.PrivacyUnit("user", max_rows=1), sf.PrivacyUnit.row()], ids=str)
def test_the_interval_of_a_difference_holds_what_limits_left_out_of_either_side(unit, many):
    shown = "COUNT(*) AS n, SUM(amount) AS t, COUNT(*) * 2 - SUM(amount) AS mix"
    text = f"SELECT day, {shown} FROM visits GROUP BY day"
    change = 4 * (many[1] - many[0])
    expected = {"n": change, "t": 5 * change, "mix": -3 * change}
    with days_of(4, many, unit, text) as series:
        for of, window in (("steps", None), ("window", 1)):
            row = series.difference(0, 1, of, window=window).to_arrow(errors=True).to_pylist()[0]
            for name, value in expected.items():
                assert row[f"{name}_low"] - 1 <= value <= row[f"{name}_high"] + 1
                if unit.is_row:
                    assert row[f"{name}_high"] - row[f"{name}_low"] < 1
        later = series.difference(0, 1, "running").to_arrow(errors=True).to_pylist()[0]
        assert later["n_low"] > 3


@pytest.mark.parametrize("shown", ["SUM(amount) / COUNT(*)", "COUNT(*) * 2 + 1", "COUNT(*) * SUM(amount)"])
def test_what_is_no_sum_has_no_difference(shown):
    text = f"SELECT day, {shown} AS z FROM visits GROUP BY day"
    series = days_of(4, (1, 2), sf.PrivacyUnit.row(), text)
    with series as published, pytest.raises(QueryRefused, match="counts and sums"):
        published.difference(0, 1, "steps")


def test_it_is_drawn_with_a_band(tmp_path):
    text = "SELECT day, shop, COUNT(*) AS n, SUM(amount) AS total FROM visits GROUP BY day, shop"
    with session_of(rows_of(10)) as session:
        series = daily(session, text=text)
        series.advance(now=at(5))
        series.plot(tmp_path / "all.svg")
        drawn = (tmp_path / "all.svg").read_text()
        assert all(word in drawn for word in ("total, b", "Totals from 2026-01-01 on"))
        series.plot(tmp_path / "one.png", "n", of="window", window=2)
        assert (tmp_path / "one.png").stat().st_size > 5000
        with pytest.raises(InvalidParameter, match="there is n, total"):
            series.plot(column="m")


def test_a_version_that_chooses_other_noise_goes_on_with_what_is_on_record(tmp_path, monkeypatch):
    from sfumato.continual import candidates
    from sfumato.errors import LedgerUnusable
    from sfumato.session.series import pricing, stream

    path = tmp_path / "l"
    with session_of(rows_of(6), path) as session:
        first = daily(session)
        first.advance(now=at(3))
        chosen = first.pricing.choice.plan
    with monkeypatch.context() as patch:
        patch.setattr(stream, "choice_of", lambda *_: candidates(30)[-1])
        with session_of(rows_of(6), path) as session:
            again = daily(session)
            assert again.pricing.choice.plan == chosen
            assert again.advance(now=at(5)) == 2
            assert session.balance().spent == 900
    with monkeypatch.context() as patch:
        patch.setattr(pricing.Pricing, "noise", "of another kind")
        with session_of(rows_of(6), path) as session, pytest.raises(LedgerUnusable, match="another version"):
            daily(session)


@pytest.mark.parametrize(
    ("of", "window"), [("running", None), ("steps", None), ("window", 1), ("window", 4), ("window", 99)]
)
def test_a_table_has_the_points_one_by_one(of, window, monkeypatch):
    """Totals that follow from one another, and deviations of all steps together, are those of each point."""
    from sfumato.continual import Continual

    text = "SELECT day, shop, COUNT(*) AS n, AVG(amount) AS m FROM visits GROUP BY day, shop"
    with session_of(rows_of(12)) as session:
        series = daily(session, epsilon=5, text=text)
        series.advance(now=at(9))
        shown = series.table(of, window=window, kind="noise")

        def too_many(self, window=None, *, since=0):
            raise InvalidParameter("too many steps to list")

        monkeypatch.setattr(Continual, "deviations", too_many)
        apart = series.table(of, window=window, kind="noise")
        points = [
            series.point(step, of, window=window).to_arrow(errors=True, kind="noise") for step in range(9)
        ]
        one_by_one = pa.concat_tables(table.replace_schema_metadata(None) for table in points)
        assert apart.equals(one_by_one)
        for name in shown.column_names:
            if pa.types.is_floating(shown[name].type):
                assert np.allclose(shown[name].to_numpy(), apart[name].to_numpy(), rtol=1e-6)
            else:
                assert shown[name].equals(apart[name])
