"""The first questions of every course on differential privacy, as SQL and as data-frame calls."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.testing import exact

AGES = np.random.default_rng(11).integers(0, 101, 10_000)
SEXES = np.random.default_rng(12).choice(["male", "female"], 10_000)


def people(adjacency="add-remove", **more):
    return sf.PrivateTable(
        "people",
        source=pa.table({"age": AGES, "sex": SEXES}),
        unit=sf.PrivacyUnit.row(adjacency=adjacency),
        schema={"age": sf.Int(0, 100, nullable=False), "sex": sf.Enum("male", "female", nullable=False)},
        **more,
    )


@pytest.fixture
def asked():
    with sf.Session(people(), budget=sf.Budget(1000, 1e-6)) as session:
        yield session


def both(session, text, built):
    """The release of a question in SQL, after checking that the builder asks the same."""
    release = session.sql(text).release(epsilon=10)
    assert built.release(epsilon=10).free
    return release


def test_counting(asked):
    text = "SELECT COUNT(*) AS n FROM people WHERE age >= 65"
    release = both(asked, text, asked.table("people").filter(sf.col("age") >= 65).agg(n=sf.count()))
    assert abs(release.table["n"][0].as_py() - (AGES >= 65).sum()) <= release.error(0.999999)["n"][0].as_py()
    assert exact(asked.sql(text)).l1 == {"n": 1.0}


def test_figure_two_the_males_over_18(asked):
    text = "SELECT COUNT(*) AS males FROM people WHERE sex = 'male' AND age > 18"
    adults = (sf.col("sex") == "male") & (sf.col("age") > 18)
    release = both(asked, text, asked.table("people").filter(adults).agg(males=sf.count()))
    true = int(((SEXES == "male") & (AGES > 18)).sum())
    assert exact(asked.sql(text)).table["males"].to_pylist() == [true]
    assert abs(release.table["males"][0].as_py() - true) <= release.error(0.999999)["males"][0].as_py()


@pytest.mark.parametrize(("adjacency", "l1", "l2"), [("add-remove", 1, 1), ("exchange", 2, math.sqrt(2))])
def test_a_histogram_has_the_sensitivity_of_its_adjacency(adjacency, l1, l2):
    with sf.Session(people(adjacency), budget=sf.Budget(1000)) as session:
        text = "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade"
        found = exact(session.sql(text))
        assert found.l1["n"] == l1
        assert found.l2["n"] == pytest.approx(l2, rel=1e-12)
        assert found.l2["n"] >= l2
        release = session.sql(text).release(epsilon=100)
        assert release.table["decade"].to_pylist() == list(range(0, 101, 10))
        true = np.bincount(AGES // 10, minlength=11)
        assert np.abs(np.array(release.table["n"]) - true).max() <= 2


def test_k_counts_cost_k_in_l1_and_root_k_in_l2(asked):
    columns = ", ".join(f"COUNT_IF(age > {10 * i}) AS n{i}" for i in range(9))
    query = asked.sql(f"SELECT {columns} FROM people")
    found = exact(query)
    assert sum(found.l1.values()) == 9
    assert math.sqrt(sum(each**2 for each in found.l2.values())) == pytest.approx(3)
    quote = query.quote(epsilon=1, mechanism="laplace")
    assert quote.loss.pure == 1
    assert quote.error(0.95)["n0"] == pytest.approx(sf.Geometric(Fraction(1, 9), 1).error(0.95), abs=1)


def test_the_average_age_divides_by_a_noisy_count(asked):
    text = "SELECT AVG(age) AS age FROM people"
    quote = asked.sql(text).quote(epsilon=0.5)
    assert len(quote.measured.measurements) == 2  # a sum and a count: the number of people is private
    release = asked.sql(text).release(epsilon=0.5)
    bar = release.error(0.95)["age"][0].as_py()
    # With a public count the mean of 10,000 ages in [0, 100] would be off by 0.0599 years.
    assert sf.Laplace(epsilon=0.5, sensitivity=Fraction(100, 10_000)).error(0.95) == pytest.approx(
        0.0599, abs=1e-4
    )
    assert 0.02 < bar < 0.2
    assert abs(release.table["age"][0].as_py() - AGES.mean()) < 1


def test_a_sum_and_a_mean_by_group(asked):
    text = "SELECT sex, SUM(age) AS years, AVG(age) AS mean FROM people GROUP BY sex"
    built = asked.table("people").group_by("sex").agg(years=sf.sum("age"), mean=sf.mean("age"))
    release = both(asked, text, built)
    for row, bar in zip(release.table.to_pylist(), release.error(0.999999).to_pylist(), strict=True):
        ages = AGES[row["sex"] == SEXES]
        assert abs(row["years"] - ages.sum()) <= bar["years"]
        assert abs(row["mean"] - ages.mean()) <= bar["mean"]


def test_clamping_and_rounding_afterwards_cost_nothing(asked):
    text = "SELECT age, COUNT(*) AS n FROM people WHERE sex = 'male' GROUP BY age"
    plain = asked.sql(text).release(epsilon=0.05)
    spent = asked.balance().spent
    clamped = text.replace("COUNT(*) AS n", "ROUND(GREATEST(COUNT(*), 60)) AS n")
    release = asked.sql(clamped).release(epsilon=0.05)
    assert release.free
    assert asked.balance().spent == spent
    assert release.table["n"].to_pylist() == [max(60, n) for n in plain.table["n"].to_pylist()]


def test_averaging_repeated_answers_gains_nothing(asked):
    answers = {
        asked.sql("SELECT COUNT(*) AS n FROM people").release(epsilon=0.1).table["n"][0] for _ in range(50)
    }
    assert len(answers) == 1
    assert asked.balance().spent == Fraction(1, 10)


def test_the_same_noise_weighs_more_on_a_small_group():
    people = sf.PrivateTable(
        "people",
        source=pa.table({"home": ["island"] * 100 + ["mainland"] * 10_000}),
        unit=sf.PrivacyUnit.row(),
        schema={"home": sf.Enum("island", "mainland", nullable=False)},
    )
    with sf.Session(people, budget=sf.Budget(1)) as session:
        release = session.sql("SELECT home, COUNT(*) AS n FROM people GROUP BY home").release(epsilon=1)
    counts = dict(zip(*release.table.to_pydict().values(), strict=True))
    widths = dict(zip(*release.error(0.95).to_pydict().values(), strict=True))
    assert widths["island"] == widths["mainland"] == sf.Geometric(1, 1).error(0.95)
    relative = {home: widths[home] / counts[home] for home in counts}
    assert 50 < relative["island"] / relative["mainland"] < 200  # about as the groups' sizes
