"""Geometric and harmonic means: values, bars that cover, refusals, and one question however it is written."""

import re

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.mechanisms import Laplace
from sfumato.plan.expressions.facts import column_facts
from sfumato.plan.expressions.tree import Column
from sfumato.plan.intervals.noise import Noise
from sfumato.plan.questions.aggregates import functions, statistics, ways_of
from sfumato.plan.questions.nodes import AggregateCall
from sfumato.testing import exact, seeded
from sfumato.testing.statistics import bernoulli_finding

PRICES = np.random.default_rng(5).lognormal(2, 0.8, 20_000)
MEANS = {"GEOMETRIC_MEAN": stats.gmean, "HARMONIC_MEAN": stats.hmean}
SCHEMA = {
    "price": sf.Float(1, 100),
    "size": sf.Int(1, 9, nullable=False),
    "debt": sf.Float(-5, 100),
    "free": sf.Float(),
    "shop": sf.Enum("a", "b"),
}


def table(prices=PRICES):
    size = np.arange(len(prices)) % 9 + 1
    columns = {"price": prices, "size": size, "debt": prices, "free": prices}
    columns["shop"] = np.where(np.arange(len(prices)) % 3, "a", "b")
    return sf.PrivateTable("sales", source=pa.table(columns), unit=sf.PrivacyUnit.row(), schema=SCHEMA)


@pytest.fixture(scope="module")
def session():
    with sf.Session(table(), budget=sf.Budget(1e9, 1e-6)) as session:
        yield session


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("column", ["price", "size"])
def test_nearly_without_noise_it_is_the_mean_of_the_clamped_numbers(session, name, column):
    values = np.clip(PRICES, 1, 100) if column == "price" else np.arange(len(PRICES)) % 9 + 1.0
    release = session.sql(f"SELECT {name}({column}) AS m FROM sales").release(epsilon=10_000)
    assert release.table["m"][0].as_py() == pytest.approx(MEANS[name](values), rel=1e-4)
    assert release.error()["m"][0].as_py() < 1e-3


@pytest.mark.parametrize("name", MEANS)
def test_groups_have_means_of_their_own_and_missing_numbers_do_not_count(name):
    prices = PRICES[:3000].copy()
    prices[::5] = np.nan
    shops = np.where(np.arange(3000) % 3, "a", "b")
    text = f"SELECT shop, {name}(price) AS m, COUNT(price) AS n FROM sales GROUP BY shop"
    with sf.Session(table(prices), budget=sf.Budget(1e9, 1e-6)) as session:
        shown = session.sql(text).release(epsilon=10_000).table.to_pylist()
    for row in shown:
        own = prices[(shops == row["shop"]) & ~np.isnan(prices)]
        assert row["m"] == pytest.approx(MEANS[name](np.clip(own, 1, 100)), rel=1e-3)
        assert row["n"] == len(own)


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("odd", [0.0, -0.0, -7.0, -1e308, 5e-324, 0.5, 1e308, -np.inf, np.inf])
def test_numbers_outside_of_the_range_are_held_at_its_ends(name, odd):
    """Where half of the numbers are so, none of them may pass for missing."""
    prices = np.where(np.arange(3000) % 2, 10.0, odd)
    with sf.Session(table(prices), budget=sf.Budget(1e9, 1e-6)) as session:
        release = session.sql(f"SELECT {name}(price) AS m, COUNT(*) AS n FROM sales").release(epsilon=10_000)
    assert release.table["m"][0].as_py() == pytest.approx(MEANS[name](np.clip(prices, 1, 100)), rel=1e-3)


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("rows", [0, 3, 400])
@pytest.mark.parametrize("told", [1.0, 0.3])
def test_the_bars_cover_and_those_of_less_noise_would_not(name, rows, told):
    """Many draws of the real noise at once, on the parts that are measured."""
    (part,) = ways_of(AggregateCall(name.lower(), Column("price")), {"price": column_facts(SCHEMA["price"])})
    prices = np.clip(PRICES[:rows], 1, 100)
    inner = np.log(prices) if name == "GEOMETRIC_MEAN" else 1 / prices
    lower, upper = part.estimator.average.limits
    exact_parts = [np.sum(inner - (lower + upper) / 2), rows]
    scales = [(upper - lower), 2.0]
    with seeded(7):
        noisy = [
            Laplace(1, scale).release(np.full(2000, part))
            for part, scale in zip(exact_parts, scales, strict=True)
        ]
    noises = [Noise.of(Laplace(1, scale * told)) for scale in scales]
    low, high = part.estimator.interval(noisy, noises, risk=0.2)
    value = part.estimator.value(noisy)
    assert ((low >= 1) & (low <= value + 1e-12) & (value <= high + 1e-12) & (high <= 100)).all()
    if rows:
        truth = MEANS[name](prices)
        inside = int(np.sum((low <= truth) & (truth <= high)))
        covered = bernoulli_finding(inside, 2000, 0.8, 1.0).p > 1e-9
        assert covered or told < 1
        assert not covered or told == 1 or rows < 400
        assert rows < 400 or told < 1 or inside < 1950  # and not by being far too wide


def test_both_spellings_and_the_builder_ask_one_question(session):
    texts = ["GEOMETRIC_MEAN(price)", "geomean(price)"]
    asked = [session.sql(f"SELECT {text} AS m FROM sales").quote(epsilon=1) for text in texts]
    asked.append(session.table("sales").agg(m=sf.geometric_mean("price")).quote(epsilon=1))
    assert len({quote.fingerprint for quote in asked}) == 1
    harmonic = session.sql("SELECT HARMONIC_MEAN(price) AS m FROM sales").quote(epsilon=1)
    assert (
        session.table("sales").agg(m=sf.harmonic_mean("price")).quote(epsilon=1).error() == harmonic.error()
    )


def test_what_is_measured_is_the_sum_of_logarithms_and_the_count(session):
    found = exact(session.sql("SELECT GEOMETRIC_MEAN(price) AS m FROM sales"))
    assert set(found.l1) == {"m.sum", "m.count"}
    assert found.l1["m.sum"] == pytest.approx(np.log(100) / 2, rel=1e-6)


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("column", ["debt", "LEAST(GREATEST(free, 0), 9)", "price - 1"])
def test_a_range_that_does_not_begin_above_0_is_refused(session, name, column):
    with pytest.raises(QueryRefused, match=rf"{name} needs a lower bound above 0.*GREATEST\(x, 1\)"):
        session.sql(f"SELECT {name}({column}) AS m FROM sales")


@pytest.mark.parametrize("name", MEANS)
def test_without_bounds_it_is_refused_and_none_are_bought(session, name):
    query = f"SELECT {name}(free) AS m FROM sales"
    with pytest.raises(QueryRefused, match="needs bounds for free"):
        session.sql(query)
    with pytest.raises(QueryRefused, match="needs bounds for free"):
        session.sql(query).release(epsilon=1, bounds="auto")
    held = f"SELECT {name}(free, contribution_bounds_per_row => (1, 100)) AS m FROM sales"
    assert len(session.sql(held).quote(epsilon=1).measured.measurements) == 2


def test_every_aggregate_is_written_in_sql_or_read_apart_and_has_a_function_in_python():
    named = {name for each in statistics().values() for name in each.spelled}
    assert {"AVG", "GEOMEAN", "HARMONIC_MEAN", "MEDIAN", "CORR"} <= named
    assert all(
        each.spelled for name, each in statistics().items() if name not in ("count_distinct", "count_values")
    )
    assert all(callable(getattr(sf, name)) for name in functions())


def test_no_value_stays_none_where_numbers_are_held_within_bounds():
    """SQL's GREATEST makes a bound of NULL, which an average counts: `clip` and what is advised do not."""
    prices = [None, 4.0, None, 200.0, -3.0] * 50
    table = sf.PrivateTable(
        "t", source=pa.table({"x": prices}), unit=sf.PrivacyUnit.row(), schema={"x": sf.Float()}
    )
    with sf.Session(table, budget=sf.Budget(10**7)) as session:
        with pytest.raises(QueryRefused) as refused:
            session.sql("SELECT AVG(x) AS m FROM t").quote(epsilon=1)
        advised = re.search(r"Write (AVG.*?), or", str(refused.value))[1]
        advised = advised.replace("LOW", "0").replace("HIGH", "100")
        questions = [
            session.sql(f"SELECT {advised} AS m FROM t"),
            session.table("t").agg(m=sf.mean(sf.col("x").clip(0, 100))),
        ]
        for question in questions:
            assert question.release(epsilon=1000).table["m"][0].as_py() == pytest.approx(104 / 3, abs=0.2)


@pytest.mark.parametrize("name", ["SUM", "AVG"])
@pytest.mark.parametrize("whole", ["CAST(REPLACE(t, ',', '.') AS DOUBLE)", "CAST(t AS INT)"])
def test_numbers_made_of_text_are_held_as_a_whole(name, whole):
    """What is advised is what works: text itself cannot be held within numbers."""
    table = sf.PrivateTable(
        "p", source=pa.table({"t": ["1,5", "2"]}), unit=sf.PrivacyUnit.row(), schema={"t": sf.Text()}
    )
    with sf.Session(table, budget=sf.Budget(1)) as session:
        with pytest.raises(QueryRefused) as refused:
            session.sql(f"SELECT {name}({whole}) AS a FROM p").quote(epsilon=1)
        advised = refused.value.fix.removeprefix("Write ").split(", with the whole argument as x")[0]
        assert advised.startswith(f"{name}(LEAST(GREATEST(x, LOW), HIGH))")
        advised = advised.replace("LOW", "0").replace("HIGH", "100")
        assert ("FILTER (WHERE x IS NOT NULL)" in advised) == (name == "AVG")
        works = re.sub(r"\bx\b", lambda _: whole, advised)
        session.sql(f"SELECT {works} AS a FROM p").quote(epsilon=1)
