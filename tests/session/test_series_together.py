"""Steps that are due together are read by one statement where that gives what they give one by one."""

from __future__ import annotations

import datetime
import random
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded
from sfumato.ledger.series import SeriesOf
from sfumato.session.series import pricing, stream

START, DAYS = date(2026, 1, 1), 40
ROW = sf.PrivacyUnit.row()

SCHEMA = {
    "day": sf.Date("2025-12-01", "2026-12-31"),
    "at": sf.Timestamp("2025-12-01", "2026-12-31"),
    "turn": sf.Int(0, 40),
    "shop": sf.Enum("a", "b", "ä"),
    "open": sf.Bool(),
    "amount": sf.Float(-5, 10),
}
KINDS = {
    "days": ("day", "2026-01-01", 20),
    "weeks": ("DATE_TRUNC('week', day)", "2026-01-05", 5),
    "months of moments": ("DATE_TRUNC('month', at)", "2026-01-01", 2),
    "hours": ("DATE_TRUNC('hour', at)", "2026-01-01T00:00:00", 30),
    "turns": ("turn", 3, 20),
}
OTHERS = ("", "shop", "open, shop", "EXTRACT(MONTH FROM day)")
SHOWN = (
    "COUNT(*) AS n",
    "COUNT(amount) AS n, SUM(amount) AS total",
    "AVG(amount) AS m, SUM(turn) AS t",
    "SUM(CASE WHEN day > DATE '2026-01-09' THEN amount ELSE 1 END) AS t",
    "SUM(turn * 2) AS t, COUNT(*) AS n",
)
FILTERS = ("", "WHERE amount > 0 OR amount IS NULL", "WHERE day < DATE '2026-01-12'", "WHERE NOT open")


def rows_of(draw, many):
    """Rows in any order, a tenth of whose cells are NULL, some of them before the first step."""

    def cells(make):
        return [None if draw.random() < 0.1 else make() for _ in range(many)]

    begin = datetime.datetime(2025, 12, 28)
    return pa.table(
        {
            "user": pa.array(cells(lambda: draw.randrange(12)), pa.int64()),
            "day": pa.array(cells(lambda: START + timedelta(draw.randrange(-4, DAYS))), pa.date32()),
            "at": pa.array(
                cells(lambda: begin + timedelta(minutes=draw.randrange(90 * 24 * 60))), pa.timestamp("us")
            ),
            "turn": pa.array(cells(lambda: draw.randrange(41)), pa.int64()),
            "shop": pa.array(cells(lambda: draw.choice(["a", "b", "ä", "c"])), pa.string()),
            "open": pa.array(cells(lambda: draw.random() < 0.5), pa.bool_()),
            "amount": pa.array(cells(lambda: draw.choice([0.1, -7.5, 3.0, np.nan, np.inf])), pa.float64()),
        }
    )


def text_of(draw, time):
    other = draw.choice(OTHERS)
    keys = [time, *([other] if other else [])]
    if draw.random() < 0.5:
        keys.reverse()
    kept = draw.choice(FILTERS)
    return f"SELECT {', '.join(keys)}, {draw.choice(SHOWN)} FROM t {kept} GROUP BY {', '.join(keys)}"


def points_of(rows, unit, text, start, horizon, stops):
    """Each point's numbers and salt, taken up to each of the stops, and how many reads it took."""
    table = sf.PrivateTable("t", source=rows, unit=unit, schema=SCHEMA)
    with sf.Session(table, budget=sf.Budget(9, "0.01")) as session:
        series = session.stream(text, start=start, horizon=horizon, epsilon=1, delta="1e-6")
        reads, read = [], session.vault.read
        session.vault.read = lambda *asked: (reads.append(asked), read(*asked))[1]
        for stop in stops:
            series.advance(series.pricing.calendar.value(stop - 1))
        points = [([*map(np.ndarray.tolist, point.units)], point.salt) for point in series._points]
    return points, len(reads)


@pytest.fixture(autouse=True)
def one_secret(monkeypatch):
    monkeypatch.setattr(SeriesOf, "secret", lambda *_: b"s" * 32)


def different(seed, unit, kind):
    """Whether a random series is another one, read together, than step by step; and reads of both."""
    draw = random.Random(f"together {seed} {kind}")
    time, start, horizon = KINDS[kind]
    rows, text = rows_of(draw, draw.choice((0, 1, 60, 400))), text_of(draw, time)
    if kind in ("weeks", "hours"):  # weeks lie in two months, and hours with months are too many groups
        text = text.replace("EXTRACT(MONTH FROM day)", "open")
    stops = sorted({*draw.sample(range(1, horizon), draw.randrange(3) if horizon > 3 else 0), horizon})
    together, few = points_of(rows, unit, text, start, horizon, stops)
    apart, many = points_of(rows, unit, text, start, horizon, range(1, horizon + 1))
    return together != apart, few, many, len(stops)


@pytest.mark.parametrize("many", [3, pytest.param(60, marks=pytest.mark.stats)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_series_is_the_same_read_together_and_step_by_step(kind, many):
    fewer = 0
    for seed in range(many):
        is_different, few, apart, stops = different(seed, ROW, kind)
        assert not is_different, seed
        assert apart == KINDS[kind][2]
        assert few in (stops, apart) or few < apart
        fewer += few < apart
    assert fewer > many // 2


@pytest.mark.parametrize("unit", [sf.PrivacyUnit("user"), sf.PrivacyUnit("user", max_rows=2, max_groups=2)])
def test_steps_of_units_with_several_rows_are_read_one_by_one(unit):
    """Limits hold within a step, and a statement over several steps would share them out."""
    is_different, few, apart, _ = different(0, unit, "days")
    assert not is_different
    assert few == apart == 20


def test_what_one_statement_reads_is_bounded(monkeypatch):
    monkeypatch.setattr(stream, "_CELLS", 7 * 3)
    rows = rows_of(random.Random(1), 200)
    text = "SELECT day, shop, COUNT(*) AS n FROM t GROUP BY day, shop"
    together, reads = points_of(rows, ROW, text, START, 20, [20])
    apart, _ = points_of(rows, ROW, text, START, 20, range(1, 21))
    assert together == apart
    assert reads == 3


def test_a_right_to_several_points_is_for_none_beyond_what_was_paid():
    table = sf.PrivateTable("t", source=rows_of(random.Random(1), 9), unit=ROW, schema=SCHEMA)
    with sf.Session(table, budget=sf.Budget(9, "0.01")) as session:
        text = "SELECT day, COUNT(*) AS n FROM t GROUP BY day"
        series = session.stream(text, start=START, horizon=5, epsilon=1, delta="1e-6")
        series.advance(START)
        rights = session.ledger.series
        rights.right(series.receipt, 1, ("q",), many=4)
        with pytest.raises(BudgetExceeded, match="5 points were paid for"):
            rights.right(series.receipt, 1, ("q",), many=5)


def test_a_read_of_several_steps_that_fails_leaves_the_points_before_it(monkeypatch):
    from sfumato.errors import EngineFailed

    table = sf.PrivateTable("t", source=rows_of(random.Random(1), 90), unit=ROW, schema=SCHEMA)
    with sf.Session(table, budget=sf.Budget(9, "0.01")) as session:
        text = "SELECT day, COUNT(*) AS n FROM t GROUP BY day"
        series = session.stream(text, start=START, horizon=9, epsilon=1, delta="1e-6")
        series.advance(START + timedelta(days=2))
        before = series.table("steps")
        with monkeypatch.context() as patch:

            def fails(*_, **__):
                raise EngineFailed("no")

            patch.setattr(session._engine, "fetch", fails)
            with pytest.raises(EngineFailed):
                series.advance(START + timedelta(days=8))
        assert len(series) == 3
        series.advance(START + timedelta(days=8))
        assert series.table("steps").slice(0, 3).equals(before)
        assert session.ledger.verify().ok


def _rolled(real):
    def steps(self, columns):
        found = real(self, columns)
        return found[1:] + found[:1]

    return steps


def _no_order(self, columns):
    apart = [column.reshape(self.many, -1) for column in columns]
    return [[column[step] for column in apart] for step in range(self.many)]


@pytest.mark.parametrize(
    ("place", "bug"),
    [("steps", _rolled(pricing.Together.steps)), ("steps", _no_order)],
    ids=["steps are moved", "time is taken for the first key"],
)
def test_planted_bugs_are_found(monkeypatch, place, bug):
    monkeypatch.setattr(pricing.Together, place, bug)
    assert any(different(seed, ROW, "days")[0] for seed in range(12))


def test_limits_of_units_that_are_shared_out_over_steps_are_noticed(monkeypatch):
    """Planted: units with several rows are taken for rows."""
    monkeypatch.setattr(pricing, "reads_rows_alone", lambda plan: True)
    unit = sf.PrivacyUnit("user", max_rows=2, max_groups=2)
    assert any(different(seed, unit, "days")[0] for seed in range(6))
