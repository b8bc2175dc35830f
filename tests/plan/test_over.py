"""Ranks and totals of released groups: as DuckDB gives them, with intervals that hold what they must."""

import re

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.plan.answers.boxes import Solver
from sfumato.plan.answers.over import Groups, ends_over, values_over
from sfumato.plan.expressions.tree import Call, Column, Literal
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
    """For any values within the groups' intervals, or NULL where they may be, it lies within its own."""
    rng = np.random.default_rng(2)
    tight = 0
    for _ in range(30):
        size = int(rng.integers(1, 8))
        low = rng.normal(0, 2, size)
        high = low + rng.choice([0.0, 0.5, 3.0], size)
        labels = rng.integers(0, 2, size).tolist()
        kind = rng.choice(3, size, p=[0.7, 0.15, 0.15])
        missing = kind == 1, kind > 0
        for window in windows(rng):
            least, most = ends_over(window, (low, high), missing, labels)
            for _ in range(5):
                at = low + (high - low) * rng.choice([0.0, 1.0, rng.random()], size)
                at[(kind == 1) | ((kind == 2) & (rng.random(size) < 0.5))] = np.nan
                assert_within(values_over(window, at, labels), (least, most), window)
            tight += int((least == most).sum())
    assert tight > 150  # they are not simply everything


def assert_within(shown, ends, what):
    there = ~np.isnan(shown)
    assert (ends[0][there] - 1e-9 <= shown[there]).all(), what
    assert (shown[there] <= ends[1][there] + 1e-9).all(), what


KEY, FIRST, SECOND = Column("k0"), Column("a0"), Column("a1")
ONE, NULL = Literal(1, "integer"), Literal(None, None)


def number(rng, depth):
    """A number over a key and two aggregates that is NULL by the key, by noise, or never."""
    if not depth or rng.random() < 0.2:
        whole = Literal(int(rng.integers(-3, 4)), "integer")
        return [KEY, FIRST, SECOND, FIRST, SECOND, whole][rng.integers(6)]
    one, two = (number(rng, depth - 1) for _ in range(2))
    name = str(
        rng.choice(["add", "subtract", "multiply", "divide", "nullif", "coalesce", "greatest", "case"])
    )
    if name != "case":
        return Call(name, (one, two))
    compared = str(rng.choice(["greater", "greater_equal", "less", "less_equal", "equal", "not_equal"]))
    sides = (KEY, ONE) if rng.random() < 0.4 else (number(rng, depth - 1), two)
    return Call("case", (Call(compared, sides), one, two if rng.random() < 0.2 else NULL))


SHARP = [
    Call("case", (Call("greater", (KEY, Literal(0, "integer"))), FIRST, NULL)),  # NULL by the key
    Call("case", (Call("greater", (FIRST, ONE)), FIRST, NULL)),  # by noise
    Call("case", (Call("less", (FIRST, Literal(0, "integer"))), NULL, SECOND)),
    Call("nullif", (FIRST, ONE)),
    Call("case", (Call("greater", (Call("nullif", (FIRST, ONE)), Literal(-9, "integer"))), SECOND, NULL)),
    Call("divide", (FIRST, KEY)),
    Call("divide", (FIRST, SECOND)),
]


def test_intervals_hold_where_the_key_or_noise_makes_values_null():
    """For any aggregates within their intervals, whatever is computed from them and put together."""
    rng = np.random.default_rng(3)
    finite = 0
    for expression in [*SHARP * 2, *(number(rng, 3) for _ in range(25))]:
        size = int(rng.integers(2, 7))
        low = {name: rng.integers(-3, 4, size).astype(float) for name in ("a0", "a1")}
        high = {name: ends + rng.choice([0.0, 1.0, 3.0], size) for name, ends in low.items()}
        results = {"k0": rng.integers(0, 3, size).astype(float)}
        none = (np.zeros(size),)
        solver = Solver(
            none, (), (), results, {}, lambda name, _, at=(low, high): (at[0][name], at[1][name]), size
        )
        parts = [(), (Call("nullif", (KEY, ONE)),)][rng.integers(2)]
        over = [Over("sum", expression, parts), Over("rank", expression, parts, bool(rng.integers(2)))]
        every = np.arange(size)
        groups = Groups(tuple(over), {**results, **low}, every, solver, every)
        ends = [groups.interval(place, 0.05) for place in range(2)]
        for _ in range(6):
            at = {name: low[name] + rng.integers(0, 1 + (high[name] - low[name]).astype(int)) for name in low}
            truth = Groups(tuple(over), {**results, **at}, every).columns(size)
            for place in range(2):
                assert_within(np.ma.filled(truth[f"w{place}"], np.nan), ends[place], (expression, place))
        finite += int(np.isfinite(ends[0]).all(axis=0).sum())
    assert finite > 50  # they are not simply everything


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
    (ranks,) = (cells for head, cells in shares.shown(0.95).columns.items() if head.startswith("place ±"))
    assert all(re.fullmatch(r"\d ± \d", rank) for rank in ranks)
    ends = shares.interval(0.95, "noise")
    for low, share, high in zip(ends["share_low"], shares.table["share"], ends["share_high"], strict=True):
        assert low.as_py() < share.as_py() < high.as_py()
    first = session.sql(f"{SHARES} ORDER BY place DESC LIMIT 1").release(epsilon=5)
    assert first.table["place"].to_pylist() == [3]
    assert first.interval(0.95, "noise")["share_low"][0] == ends["share_low"][2]
    among = session.sql(f"{SHARES} HAVING country <> 'FR'").release(epsilon=5)
    assert sum(among.table["share"].to_pylist()) == pytest.approx(1)
    assert among.table["place"].to_pylist() == [1, 2]


def test_a_total_of_values_that_may_be_null_is_no_point(session):
    """NULL by keys, by a comparison that noise cannot turn, and by one that is not understood."""
    counts = {"k": "CASE WHEN country <> 'FR' THEN COUNT(*) END"}
    counts["n"] = "CASE WHEN COUNT(*) > 0 THEN COUNT(*) END"
    counts["t"] = "CASE WHEN CAST(COUNT(*) AS VARCHAR) <> '7' THEN COUNT(*) END"
    sums = ", ".join(f"SUM({value}) OVER () AS {name}" for name, value in counts.items())
    ends = session.sql(f"SELECT country, {sums} FROM visits GROUP BY country").release(epsilon=2)
    ends = ends.interval(0.95, "noise")
    low, high = ({name: ends[f"{name}_{side}"][0].as_py() for name in counts} for side in ("low", "high"))
    assert 0 < low["k"] < high["k"] < low["n"] < high["n"]
    assert low["t"] <= 0 < high["n"] <= high["t"]


REFUSED = [
    (
        "SELECT country, COUNT(*) FROM visits GROUP BY 1 HAVING RANK() OVER (ORDER BY COUNT(*)) < 3",
        "HAVING comes",
    ),
    ("SELECT country, COUNT(*), RANK() OVER (ORDER BY country) FROM visits GROUP BY 1", "by numbers"),
    ("SELECT country, COUNT(*), RANK() OVER () FROM visits GROUP BY 1", "one order"),
    ("SELECT country, SUM(COUNT(*)) OVER (PARTITION BY COUNT(*) > 9) FROM visits GROUP BY 1", "by keys"),
    (
        "SELECT country, COUNT(*) AS n, RANK() OVER (PARTITION BY n ORDER BY n) FROM visits GROUP BY 1",
        "by keys",
    ),
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
