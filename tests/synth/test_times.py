"""Timestamps and times of day in synthetic tables: cells of seconds, and values in them again."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.numeric.moments import seconds_of
from sfumato.session.rows_wanted import WantedColumn
from sfumato.synth.columns.fine import Fine, fine

RNG = np.random.default_rng(4)
FIRST = seconds_of(dt.datetime(2024, 1, 1))
STARTS = (
    FIRST + RNG.integers(0, 30, 3000) * 86_400 + np.clip(RNG.normal(10, 2, 3000), 0, 23).astype(int) * 3600
)
STOPS = STARTS + RNG.integers(0, 4, 3000) * 3600
SCHEMA = {
    "start": sf.Timestamp("2024-01-01", "2024-01-31"),
    "stop": sf.Timestamp("2024-01-01", "2024-02-01", nullable=False),
    "clock": sf.Time("00:00", "23:59:59"),
    "kind": sf.Enum("a", "b"),
}


def session(**schema) -> sf.Session:
    rows = pa.table(
        {
            "start": pa.array(STARTS).cast(pa.timestamp("s")),
            "stop": pa.array(STOPS).cast(pa.timestamp("s")),
            "clock": pa.array((STARTS % 86_400).astype(np.int32)).cast(pa.time32("s")),
            "kind": np.where(STARTS % 86_400 < 10 * 3600, "a", "b"),
        }
    )
    table = sf.PrivateTable("t", source=rows, unit=sf.PrivacyUnit.row(), schema=SCHEMA | schema)
    return sf.Session(table, budget=sf.Budget(epsilon=100, delta=1e-3))


def test_rows_are_drawn_as_times_and_keep_constraints(tmp_path):
    with session() as opened:
        made = sf.synth.fit(opened, "t", epsilon=20, delta=1e-6, constraints=["start <= stop"])
    for model in (made, _stored(made, tmp_path / "t.synth")):
        rows = model.sample(2000)
        assert rows.schema.field("start").type == pa.timestamp("s")
        assert rows.schema.field("clock").type == pa.time32("s")
        start, stop = (rows[name].cast(pa.int64()).to_numpy() for name in ("start", "stop"))
        there = ~np.asarray(rows["start"].is_null())
        assert (start[there] <= stop[there]).all()
        assert stop.min() >= FIRST
        assert stop.max() < FIRST + 32 * 86_400
    clocks = rows["clock"].cast(pa.int32()).to_numpy(zero_copy_only=False)
    assert abs(np.nanmean(clocks) - (STARTS % 86_400).mean()) < 1800
    assert made.marginal(["clock"]).num_rows > 1
    assert made.marginal(["start", "kind"]).num_rows > 2


def _stored(made, path):
    sf.synth.save(made, path)
    return sf.synth.load(path)


def test_estimates_take_conditions_on_times():
    with session() as opened:
        made = sf.synth.fit(opened, "t", epsilon=20, delta=1e-6)
    asked = "SELECT COUNT(*) AS n FROM t WHERE clock < '10:00' AND start < TIMESTAMP '2024-01-16'"
    true = ((STARTS % 86_400 < 36_000) & (STARTS < FIRST + 15 * 86_400)).sum()
    (found,) = made.estimate(asked).table["n"].to_pylist()
    assert abs(found - true) < 250


@pytest.mark.parametrize("kind", ["timestamp", "time"])
@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (0, 1), (5, 900), (0, 86_399), (3600, 7300)])
@pytest.mark.parametrize("nullable", [False, True])
def test_values_lie_in_their_cells(kind, lower, upper, nullable):
    column = fine(WantedColumn("x", "number", lower, upper, None, type=kind, nullable=nullable))
    assert Fine.from_dict(column.to_dict()) == column
    codes = np.arange(column.size)
    drawn = column.exactly(codes)
    assert drawn.type == (pa.timestamp("s") if kind == "timestamp" else pa.time32("s"))
    assert column.places(drawn).tolist() == codes.tolist()
    values = pa.array(np.unique(np.linspace(lower, upper, 500).astype(np.int32)))
    times = values.cast(pa.int64()).cast(drawn.type) if kind == "timestamp" else values.cast(drawn.type)
    for cell, value in zip(column.places(times).tolist(), times.to_pylist(), strict=True):
        low, high = column.edges(cell, cell)
        assert low <= value <= high


def test_bounds_are_asked_for_and_models_say_how_to_take_parts():
    with session(start=sf.Timestamp()) as opened:
        with pytest.raises(InvalidParameter, match=r"sf\.Timestamp\(first, last\)"):
            sf.synth.fit(opened, "t", epsilon=1, delta=1e-6)
        with pytest.raises(QueryRefused, match=r"HOUR\(clock\)"):
            sf.learn.LogisticRegression(epsilon=1, delta=1e-6).fit(
                opened, "SELECT clock, kind FROM t", target="kind"
            )
        assert opened.balance().spent == 0
