"""Ranks and totals of released groups: as DuckDB gives them, with intervals that hold what they must."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.plan.answers.over import ends_over, values_over
from sfumato.plan.expressions.tree import Column
from sfumato.plan.questions.over import Over
from tables import make, rows

FUNCTIONS = ("sum", "rank", "dense_rank", "row_number", "ntile")


def windows(rng):
    for function in FUNCTIONS:
        for descending in (False, True) if function != "sum" else (False,):
            yield Over(function, Column("a0"), (), descending, int(rng.integers(1, 7)))


def test_values_are_those_of_an_engine():
    rng = np.random.default_rng(1)
    for _ in range(6):
        size = int(rng.integers(1, 12))
        values, labels = rng.integers(0, 6, size).astype(float), rng.integers(0, 3, size).tolist()
        engine = duckdb.connect()
        engine.register("rows", pa.table({"i": range(size), "x": values, "g": labels}))
        for window in windows(rng):
            order = f"ORDER BY x {'DESC' if window.descending else ''}, i"
            order = order.removesuffix(", i") if "rank" in window.function else order
            call = {"sum": "SUM(x)", "ntile": f"NTILE({window.parts})"}.get(
                window.function, f"{window.function}()"
            )
            over = "PARTITION BY g" + ("" if window.function == "sum" else f" {order}")
            found = engine.sql(f"SELECT {call} OVER ({over}) AS w FROM rows ORDER BY i").fetchall()
            assert values_over(window, values, labels).tolist() == [float(one) for (one,) in found], window


def test_intervals_hold_whatever_the_groups_are_within_theirs():
    """For any values within the groups' intervals, the function of them lies within its own."""
    rng = np.random.default_rng(2)
    tight = 0
    for _ in range(30):
        size = int(rng.integers(1, 8))
        low = rng.normal(0, 2, size)
        high = low + rng.choice([0.0, 0.5, 3.0], size)
        labels = rng.integers(0, 2, size).tolist()
        for window in windows(rng):
            least, most = ends_over(window, (low, high), labels)
            for _ in range(5):
                at = low + (high - low) * rng.choice([0.0, 1.0, rng.random()], size)
                shown = values_over(window, at, labels)
                assert (least - 1e-9 <= shown).all(), window
                assert (shown <= most + 1e-9).all(), window
            tight += int((least == most).sum())
    assert tight > 150  # they are not simply everything


@pytest.fixture(scope="module")
def session():
    with sf.Session(make(rows(400, 300)), budget=sf.Budget(epsilon=100, delta=1e-6)) as opened:
        yield opened


PLAIN = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
SHARES = (
    "SELECT country, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share, "
    "RANK() OVER (ORDER BY n DESC) AS place FROM visits GROUP BY country"
)


def test_they_are_free_and_follow_from_what_is_released(session):
    plain = session.sql(PLAIN).release(epsilon=5)
    shares = session.sql(SHARES).release(epsilon=5)
    assert shares.free
    counts = np.array(plain.table["n"].to_pylist(), dtype=float)
    assert shares.table["share"].to_pylist() == (counts / counts.sum()).tolist()
    assert shares.table["place"].to_pylist() == [1, 2, 3]
    ends = shares.interval(0.95, "noise")
    for low, share, high in zip(ends["share_low"], shares.table["share"], ends["share_high"], strict=True):
        assert low.as_py() < share.as_py() < high.as_py()
    first = session.sql(f"{SHARES} ORDER BY place DESC LIMIT 1").release(epsilon=5)
    assert first.table["place"].to_pylist() == [3]
    assert first.interval(0.95, "noise")["share_low"][0] == ends["share_low"][2]
    among = session.sql(f"{SHARES} HAVING country <> 'FR'").release(epsilon=5)
    assert sum(among.table["share"].to_pylist()) == pytest.approx(1)
    assert among.table["place"].to_pylist() == [1, 2]


REFUSED = [
    (
        "SELECT country, COUNT(*) FROM visits GROUP BY 1 HAVING RANK() OVER (ORDER BY COUNT(*)) < 3",
        "HAVING comes",
    ),
    ("SELECT country, COUNT(*), RANK() OVER (ORDER BY country) FROM visits GROUP BY 1", "by numbers"),
    ("SELECT country, COUNT(*), RANK() OVER () FROM visits GROUP BY 1", "one order"),
    ("SELECT country, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY country) FROM visits GROUP BY 1", "no order"),
    ("SELECT country, COUNT(*), NTILE(0) OVER (ORDER BY COUNT(*)) FROM visits GROUP BY 1", "whole number"),
    (
        "SELECT country, COUNT(*), LAG(COUNT(*)) OVER (ORDER BY country) FROM visits GROUP BY 1",
        "Ask for the groups",
    ),
    ("SELECT country, SUM(COUNT(*)) OVER () AS s FROM visits GROUP BY ROLLUP (country)", "several levels"),
    (
        "SELECT country, SUM(age) OVER () AS s, COUNT(*) FROM visits GROUP BY country",
        "neither aggregated nor",
    ),
    ("SELECT COUNT(*), RANK() OVER (ORDER BY age) FROM visits", "only in a subquery"),
]


def test_other_windows_are_refused(session):
    for text, words in REFUSED:
        with pytest.raises(QueryRefused) as refusal:
            session.sql(text)
        assert words in str(refusal.value), str(refusal.value)
