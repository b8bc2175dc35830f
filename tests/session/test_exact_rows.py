"""A table whose exact number of rows is public: averages over all of it divide by that number."""

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.prices import recipe as measure
from sfumato.plan.questions.whole import whole_ways
from sfumato.testing import assert_coverage, exact, seeded

AGES = np.random.default_rng(21).integers(0, 101, 10_000)
SCHEMA = {"age": sf.Int(0, 100, nullable=False), "half": sf.Float(0, 100), "sex": sf.Enum("f", "m")}


def table(rows=10_000, **more):
    columns = {"age": AGES, "half": AGES / 2, "sex": np.where(AGES % 2, "f", "m")}
    unit = sf.PrivacyUnit.row(adjacency="exchange")
    return sf.PrivateTable("people", source=pa.table(columns), unit=unit, schema=SCHEMA, rows=rows, **more)


@pytest.fixture
def session():
    with sf.Session(table(), budget=sf.Budget(10_000, 1e-6)) as session:
        yield session


def test_the_average_age_of_the_documents_is_within_0_0599_years(session):
    text = "SELECT AVG(age) AS age FROM people"
    quote = session.sql(text).quote(epsilon=0.5)
    assert len(quote.measured.measurements) == 1
    assert "± 0.0599" in str(quote)
    assert quote.error(0.95)["age"] == pytest.approx(0.01 / 0.5 * math.log(20), abs=5e-5)
    assert session.sql(text).quote(epsilon=1).error(0.95)["age"] == pytest.approx(0.0300, abs=5e-5)
    built = session.table("people").agg(age=sf.mean("age"))
    assert built.quote(epsilon=0.5).error() == quote.error()
    assert built.quote(epsilon=0.5).fingerprint == quote.fingerprint
    release = built.release(epsilon=0.5)
    assert release.error(0.95)["age"][0].as_py() == pytest.approx(0.0599, abs=1e-9)
    assert abs(release.table["age"][0].as_py() - AGES.mean()) <= release.error(1 - 1e-12)["age"][0].as_py()
    assert session.sql("SELECT AVG(age) AS age, COUNT(*) AS n FROM people").release(epsilon=0.5).free


def test_the_sensitivity_is_the_range_over_the_number_of_rows(session):
    found = exact(session.sql("SELECT AVG(age) AS age FROM people"))
    assert found.l1 == {"age.sum": 100.0} == found.l2
    assert found.table["age.sum"].to_pylist() == [AGES.sum() - 50 * 10_000]


def test_d_means_of_truth_values_move_by_d_over_n_in_l1_and_root_d_over_n_in_l2():
    names = [f"b{i}" for i in range(4)]
    bits = sf.PrivateTable(
        "bits",
        source=pa.table({name: [True] * 50 for name in names}),
        unit=sf.PrivacyUnit.row(adjacency="exchange"),
        schema={name: sf.Bool(nullable=False) for name in names},
        rows=50,
    )
    with sf.Session(bits, budget=sf.Budget(1)) as asked:
        columns = ", ".join(f"AVG(CAST({name} AS INT)) AS {name}" for name in names)
        found = exact(asked.sql(f"SELECT {columns} FROM bits"))
        assert sum(found.l1.values()) / 50 == 4 / 50
        assert math.hypot(*found.l2.values()) / 50 == math.sqrt(4) / 50


def test_the_bar_holds_as_often_as_it_says(session):
    quote = session.sql("SELECT AVG(age) AS age FROM people").quote(epsilon=0.5)
    total = int(AGES.sum() - 50 * 10_000)
    with seeded(5):
        noisy = np.rint(quote.mechanisms[0].release(np.full(20_000, total)))
    assert_coverage((noisy - total) / 10_000, quote.error(0.95)["age"], 0.95)


def test_a_wanted_error_names_its_price(session):
    quote = session.sql("SELECT AVG(age) AS age FROM people").quote(error={"age": 0.06})
    assert float(quote.epsilon) == pytest.approx(0.5, abs=0.002)
    assert quote.error(0.95)["age"] <= 0.06 * (1 + 1e-12)


def test_sums_counts_and_what_is_made_of_them_take_the_number_as_it_is(session):
    columns = "COUNT(*) AS n, COUNT(age) AS ages, SUM(age) AS s, AVG(age) AS a, 2 * AVG(age) + COUNT(*) AS z"
    query = session.sql(f"SELECT {columns} FROM people")
    quote = query.quote(epsilon=2)
    assert len(quote.measured.measurements) == 1
    assert quote.error() == {"n": 0, "ages": 0, "s": 150, "a": pytest.approx(0.015), "z": pytest.approx(0.03)}
    row = query.release(epsilon=2).table.to_pylist()[0]
    assert row["n"] == row["ages"] == 10_000
    assert isinstance(row["s"], int)
    assert row["a"] == pytest.approx(row["s"] / 10_000, rel=1e-12)
    assert row["z"] == pytest.approx(2 * row["a"] + 10_000, rel=1e-12)
    bars = query.release(epsilon=2).error(0.95).to_pylist()[0]
    assert {"s": bars["s"], "a": bars["a"]} == {"s": 150, "a": pytest.approx(0.015, abs=1e-9)}


def test_a_count_that_is_public_is_not_sold(session):
    with pytest.raises(QueryRefused, match="exactly 10,000 rows, which is public"):
        session.sql("SELECT COUNT(*) AS n FROM people").quote(epsilon=1)
    assert session.balance().spent == 0
    found = session.sql("SELECT COUNT(*) AS n, MEDIAN(age) AS m FROM people").release(epsilon=1)
    assert found.table["n"].to_pylist() == [10_000]
    assert found.receipt.loss.pure == 1


@pytest.mark.parametrize(
    ("text", "measured", "told"),
    [
        ("SELECT AVG(age) AS a FROM people", {"sum"}, "10,000, is declared and public"),
        ("SELECT AVG(COALESCE(half, 0)) AS a FROM people", {"sum"}, "10,000, is declared and public"),
        ("SELECT AVG(half) AS a FROM people", {"sum", "present"}, "how many have a number is private"),
        ("SELECT AVG(age) AS a FROM people WHERE age < 30", {"sum", "rows"}, "pass a condition is private"),
        ("SELECT sex, AVG(age) AS a FROM people GROUP BY sex", {"sum", "rows"}, "are in a group or pass"),
        ("SELECT COUNT(*) AS n FROM people WHERE age < 30", {"rows"}, "exchange"),
        ("SELECT STDDEV(age) AS a FROM people", {"sum", "rows"}, "exchange"),
    ],
)
def test_only_what_is_about_all_rows_divides_by_their_number(session, text, measured, told):
    quote = session.sql(text).quote(epsilon=1)
    assert {each.kind for each in quote.measured.measurements} == measured
    assert told in " ".join(quote.notes)


def test_an_average_beside_a_deviation_measures_no_second_sum():
    ages = sf.PrivateTable(
        "people",
        source=pa.table({"age": [18, 99]}),
        unit=sf.PrivacyUnit.row(adjacency="exchange"),
        schema={"age": sf.Int(18, 99, nullable=False)},
        rows=2,
    )
    with sf.Session(ages, budget=sf.Budget(1)) as asked:
        one = asked.sql("SELECT AVG(age) AS a, STDDEV(age) AS d FROM people").quote(epsilon=1)
        assert len(one.measured.measurements) == 3
        alone = asked.sql("SELECT AVG(age) AS a FROM people").quote(epsilon=1)
        assert alone.measured.measurements[0].whole


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (sf.PrivacyUnit.row(), "the number of rows is private"),
        (sf.PrivacyUnit("id", adjacency="exchange"), "changes their number"),
        (sf.PrivacyUnit("id"), "the number of rows is private"),
        (sf.PrivacyUnit.via("others", on="id", adjacency="exchange"), "changes their number"),
    ],
)
def test_it_is_refused_where_the_number_of_rows_is_private(unit, message):
    with pytest.raises(InvalidParameter, match=message):
        sf.PrivateTable("t", source=None, unit=unit, schema={"x": sf.Int(0, 1)}, rows=3)


@pytest.mark.parametrize("rows", [0, -1, 1.5, "many", True, 2**53 + 1])
def test_it_is_a_whole_number_of_at_least_one(rows):
    with pytest.raises(InvalidParameter):
        table(rows)


def test_it_is_a_size_too():
    assert table().size == table().rows == 10_000
    assert table(size=10_000).size == 10_000
    with pytest.raises(InvalidParameter, match="differ"):
        table(size=9_000)
    assert table().declaration()["rows"] == 10_000
    assert "rows" not in table(None).declaration()


# ── no claim rests on the number, nor on any other promise ──

NASTY = (None, -(10**12), -3, 0, 1, 2, 10**12)
NASTY_FLOATS = (None, math.nan, -math.inf, math.inf, -1e300, -0.0, 0.1, 0.55, 2.0, 1e300)
KINDS = [
    *((sf.Int(low, high, nullable=False), NASTY) for low, high in ((0, 3), (-9, -2), (0, 0))),
    *((sf.Float(low, high, nullable=False), NASTY_FLOATS) for low, high in ((0.1, 0.7), (-1, 3))),
]


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(i) for i in range(len(KINDS))])
def test_exchanging_any_row_moves_the_sum_by_at_most_the_range(kind, values):
    """Every value for every other in one row, alone or beside another row, whatever number is declared."""
    unit, reached, pairs = sf.PrivacyUnit.row(adjacency="exchange"), 0.0, 0
    bounds = kind.to_dict()
    width = float(Fraction(bounds["upper"]) - Fraction(bounds["lower"]))
    for others, rows in (([], 7), ([values[-1]], 1)):
        tables = [
            sf.PrivateTable(
                f"t{i}",
                source=pa.table(
                    {"x": pa.array([value, *others], pa.int64() if kind.kind == "integer" else None)}
                ),
                unit=unit,
                schema={"x": kind},
                rows=rows,
            )
            for i, value in enumerate(values)
        ]
        with sf.Session(*tables, budget=sf.Budget(1)) as asked:
            found = [exact(asked.sql(f"SELECT AVG(x) AS a FROM {each.name}")) for each in tables]
        sums = [each.table["a.sum"][0].as_py() for each in found]
        claim = found[0].l1["a.sum"]
        assert claim == pytest.approx(width or 1.0, rel=1e-6)
        assert claim <= (width or 1.0) * (1 + 1e-9)
        for one, other in itertools.combinations(sums, 2):
            pairs += 1
            assert abs(one - other) <= claim
            reached = max(reached, abs(one - other) / claim)
    assert pairs == 2 * math.comb(len(values), 2)
    assert reached > 0.99 or not width


# ── the answer is about the rows that SQL means ──

QUESTIONS = (
    "SELECT AVG(x) AS a FROM t",
    "SELECT AVG(y) AS a FROM t",
    "SELECT AVG(COALESCE(y, 5)) AS a FROM t",
    "SELECT AVG(x) AS a FROM t WHERE x > 40",
    "SELECT SUM(x) AS a FROM t",
    "SELECT SUM(y) AS a FROM t",
    "SELECT SUM(x) AS a FROM t WHERE y IS NULL",
    "SELECT AVG(x * 2 - 1) AS a FROM t",
    "SELECT AVG(x) - SUM(x) / COUNT(*) AS a FROM t",
)


def wrong(seed: int) -> list[str]:
    """The questions whose interval at 1 − 1e-12 does not hold what DuckDB says, on one random table."""
    draw = random.Random(f"exact rows {seed}")
    count = draw.randint(1, 400)
    x = [draw.randint(0, 100) for _ in range(count)]
    y = [draw.choice((None, 5.0, draw.uniform(0, 10))) for _ in range(count)]
    source = pa.table({"x": pa.array(x, pa.int64()), "y": pa.array(y, pa.float64())})
    schema = {"x": sf.Int(0, 100, nullable=False), "y": sf.Float(0, 10)}
    unit = sf.PrivacyUnit.row(adjacency="exchange")
    made, found = sf.PrivateTable("t", source=source, unit=unit, schema=schema, rows=count), []
    with sf.Session(made, budget=sf.Budget(10_000)) as asked, duckdb.connect() as plain, seeded(seed):
        plain.register("t", source)
        for text in QUESTIONS:
            release = asked.sql(text).release(epsilon=500)
            (truth,) = plain.execute(text).fetchone()
            away = abs(release.table["a"][0].as_py() - (0.0 if truth is None else truth))
            if truth is not None and not away <= release.error(1 - 1e-12)["a"][0].as_py() + 1e-6:
                found.append(text)
    return found


def test_released_averages_and_sums_are_those_of_sql():
    assert [text for seed in range(5) for text in wrong(seed)] == []


def _surely(columns):
    return {name: replace(facts, nullable=False) for name, facts in columns.items()}


PLANTED = {
    "what may be missing is divided by all rows": (
        "whole_ways",
        lambda each, columns, count: whole_ways(each, _surely(columns), count),
        "AVG(y)",
    ),
    "one row is forgotten": (
        "whole_ways",
        lambda each, columns, count: whole_ways(each, columns, count + 1),
        "AVG(x)",
    ),
    "a condition is forgotten": (
        "_ways",
        lambda each, columns, unit, count, ways=measure._ways: ways(each, columns, unit, 50),
        "WHERE",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(monkeypatch, name):
    place, bug, by = PLANTED[name]
    monkeypatch.setattr(measure, place, bug)
    assert any(by in text for seed in range(5) for text in wrong(seed))
