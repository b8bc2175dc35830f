"""Quantiles, extremes and distinct values: the law of their noise, their meaning and their intervals."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.mechanisms import Quantiles
from sfumato.plan.answers.outside import outside_of
from sfumato.plan.intervals.rings import cuts_around
from sfumato.session import answering
from sfumato.testing import assert_bernoulli, assert_continuous, assert_discrete, seeded

GROUPS = 2_000
EPSILON = Fraction(4)
USERS = sf.PrivacyUnit("u", max_groups=2, max_rows=4)
EXCHANGED = sf.PrivacyUnit("u", max_groups=2, max_rows=4, adjacency="exchange")
NONE = {"u": pa.array([], pa.int64()), "k": pa.array([], pa.int64()), "x": pa.array([], pa.int64())}


def session_of(columns, unit=USERS, *, upper=1, groups=GROUPS, budget=None, **more):
    schema = {"k": sf.Int(0, groups - 1, nullable=False), "x": sf.Int(0, upper)}
    table = sf.PrivateTable("t", source=pa.table(columns), unit=unit, schema=schema)
    return sf.Session(table, budget=budget or sf.Budget(10**6, "0.1"), **more)


def two_sided_geometric(scale):
    q = math.exp(-1 / scale)
    return lambda k: (1 - q) / (1 + q) * q ** np.abs(k)


def extra_of(columns, text, seed, **more):
    with session_of(columns, **more) as session, seeded(seed):
        release = session.sql(text).release(epsilon=EPSILON)
        ((price, arrays),) = release._answer.extras
        assert price == EPSILON
        assert session.balance().spent == EPSILON
    return arrays


def check_counts(unit=USERS, moved=1):
    """The pieces around a cell move by a unit's whole weight; five sixths of the price are for them."""
    _, cuts, noisy, _ = extra_of(
        NONE, "SELECT k, MEDIAN(x) AS m FROM t GROUP BY k", "counts", unit=unit, upper=30, groups=200
    )
    weight = 1 if unit.column is None else unit.max_rows
    assert noisy.shape == (200, cuts.shape[1] - 1)
    scale = moved * weight / (float(EPSILON) * 5 / 6)
    assert_continuous(noisy.reshape(-1), stats.laplace(scale=scale).cdf)


def check_cells(unit=USERS, moved=1):
    """Six rows in two cells, four and two: the lesser is taken if its coin shows heads before the other's."""
    keys = np.repeat(np.arange(GROUPS), 6)
    columns = {"u": np.arange(keys.size), "k": keys, "x": np.tile([0, 0, 1, 0, 0, 1], GROUPS)}
    cells, cuts, *_ = extra_of(columns, "SELECT k, MEDIAN(x) AS m FROM t GROUP BY k", "cells", unit=unit)
    assert (cuts == cuts_around(cells, 2)).all()  # they follow from what was selected, and from nothing else
    weight = 1 if unit.column is None else unit.max_rows
    # The scores of a median move by half of a unit's weight, and permute-and-flip costs twice its rate.
    rate = float(EPSILON) / 6 / (moved * weight)
    assert_bernoulli(int((cells[:, 0] == 1).sum()), GROUPS, math.exp(-rate) / 2)


def check_distinct(unit=USERS, moved=1):
    (noisy,) = extra_of(NONE, "SELECT k, COUNT(DISTINCT x) AS d FROM t GROUP BY k", "distinct", unit=unit)
    weight = 1 if unit.column is None else unit.max_rows
    assert_discrete(noisy, two_sided_geometric(moved * weight / float(EPSILON)))


CHECKS = {"counts": check_counts, "cells": check_cells, "distinct": check_distinct}


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("unit", [sf.PrivacyUnit.row(), USERS, EXCHANGED], ids=["rows", "users", "exchanged"])
def test_what_is_released_carries_the_noise_of_its_price(name, unit):
    CHECKS[name](unit, 2 if unit.adjacency == "exchange" else 1)


@pytest.mark.parametrize("name", CHECKS)
def test_less_noise_is_noticed(name, monkeypatch):
    """As if twice the price had been paid, or the noise had been halved."""
    honest = answering.privatise_extra

    def planted(found, priced):
        if name == "cells":
            return honest(found, priced.extra.priced(2 * priced.epsilon))
        arrays = honest(found, priced)
        if name == "distinct":
            return (arrays[0] // 2,)
        cells, cuts, noisy, mark = arrays
        return cells, cuts, noisy / 2, mark

    monkeypatch.setattr(answering, "privatise_extra", planted)
    with pytest.raises(AssertionError, match="claimed"):
        CHECKS[name]()


# Meaning.

SOME = 60


def sample(seed=4, users=SOME * 40):
    generator = np.random.default_rng(seed)
    keys = generator.integers(0, SOME, users)
    values = generator.integers(0, 40, users)
    missing = generator.random(users) < 0.1
    return {
        "u": np.arange(users),
        "k": keys,
        "x": pa.array(
            [None if gone else int(v) for v, gone in zip(values, missing, strict=True)], pa.int64()
        ),
    }


def values_by_key(columns):
    found = {key: [] for key in range(SOME)}
    for key, value in zip(columns["k"].tolist(), columns["x"].to_pylist(), strict=True):
        if value is not None:
            found[key].append(value)
    return found


def is_quantile(value, numbers, level):
    """Whether at most that part of the numbers lies below the value, and at least that part up to it."""
    below, upto = sum(each < value for each in numbers), sum(each <= value for each in numbers)
    return below <= level * len(numbers) <= upto


def test_at_a_high_price_quantiles_and_distinct_values_are_exact():
    columns = sample()
    text = (
        "SELECT k, MEDIAN(x) AS h, QUANTILE_CONT(x, 0.25) AS q, "
        "PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY x) AS p, COUNT(DISTINCT x) AS d, COUNT(*) AS n "
        "FROM t GROUP BY k ORDER BY k"
    )
    with session_of(columns, groups=SOME, upper=50) as session, seeded("meaning"):
        table = session.sql(text).release(epsilon=30_000).table.to_pylist()
    for row, numbers in zip(table, values_by_key(columns).values(), strict=True):
        assert is_quantile(row["h"], numbers, 0.5)
        assert is_quantile(row["q"], numbers, 0.25)
        assert is_quantile(row["p"], numbers, 0.75)
        assert row["d"] == len(set(numbers))
        assert row["q"] <= row["h"] <= row["p"]


def test_extremes_are_seldom_beyond_the_data():
    """At most once in 32 times a cell beyond the greatest number is taken, and hardly ever one far within."""
    keys = np.repeat(np.arange(GROUPS), 8)
    columns = {"u": np.arange(keys.size), "k": keys, "x": np.tile([3, 4, 5, 5, 6, 6, 7, 7], GROUPS)}
    with session_of(columns, sf.PrivacyUnit.row(), upper=20) as session, seeded("extremes"):
        release = session.sql("SELECT k, MIN(x) AS low, MAX(x) AS high FROM t GROUP BY k").release(
            epsilon=200
        )
        low, high = (release.table[name].to_numpy() for name in ("low", "high"))
        ends = release.interval(0.9, "noise").to_pydict()
    assert stats.binom.sf((high > 7).sum() - 1, GROUPS, 1 / 32) > 1e-9
    assert stats.binom.sf((low < 3).sum() - 1, GROUPS, 1 / 32) > 1e-9
    assert (high < 6).mean() < 0.01
    assert (low > 4).mean() < 0.01
    assert np.mean(np.array(ends["high_low"]) <= 7) > 0.9
    assert np.mean(np.array(ends["low_high"]) >= 3) > 0.9


def test_a_unit_vouches_for_few_distinct_values():
    """One unit with forty values counts for four of them at most, whatever the group."""
    columns = {"u": [7] * 40, "k": [0, 1] * 20, "x": list(range(40))}
    with session_of(columns, groups=2, upper=50) as session, seeded("few"):
        table = session.sql("SELECT k, COUNT(DISTINCT x) AS d FROM t GROUP BY k").release(epsilon=5_000).table
        assert sum(table["d"].to_pylist()) == USERS.max_rows


@pytest.mark.parametrize("numbers", [[], [None] * 30, [5]], ids=["empty", "all missing", "one row"])
def test_strange_tables_give_answers_of_the_same_shape(numbers):
    columns = {
        "u": pa.array(range(len(numbers)), pa.int64()),
        "k": pa.array([0] * len(numbers), pa.int64()),
        "x": pa.array(numbers, pa.int64()),
    }
    with session_of(columns, groups=3, upper=50) as session, seeded("strange"):
        text = "SELECT k, MIN(x) AS low, MEDIAN(x) AS m, COUNT(DISTINCT x) AS d FROM t GROUP BY k"
        release = session.sql(text).release(epsilon=1)
        assert release.table.schema.types == [pa.int64()] * 4
        assert release.table.num_rows == 3
        assert all(0 <= each <= 50 for each in release.table["m"].to_pylist())
        ends = release.interval(0.9, "noise")
        assert all(each.null_count == 0 for each in ends.columns)
        assert session.balance().spent == 1


def test_quantiles_of_several_columns_and_of_expressions():
    columns = sample()
    with session_of(columns, groups=SOME, upper=50) as session, seeded("expressions"):
        release = session.sql(
            "SELECT MEDIAN(x) AS m, MEDIAN(100 - 2 * x) AS e, MEDIAN(k) AS k FROM t"
        ).release(epsilon=20_000)
        row = release.table.to_pylist()[0]
    numbers = [each for each in columns["x"].to_pylist() if each is not None]
    assert is_quantile(row["m"], numbers, 0.5)
    assert is_quantile(row["e"], [100 - 2 * each for each in numbers], 0.5)
    assert is_quantile(row["k"], columns["k"].tolist(), 0.5)
    assert len(release._answer.extras) == 3


def test_the_builder_asks_the_same_questions():
    with session_of(sample(), groups=SOME, upper=50) as session:
        text = "SELECT k, MEDIAN(x) AS m, MIN(x) AS l, COUNT(DISTINCT x) AS d FROM t GROUP BY k"
        built = (
            session.table("t").group_by("k").agg(a=sf.count_distinct("x"), b=sf.min("x"), c=sf.median("x"))
        )
        assert built.quote(epsilon=1).fingerprint == session.sql(text).quote(epsilon=1).fingerprint
        session.sql(text).release(epsilon=1)
        assert built.release(epsilon=1).free


# Intervals.


def test_intervals_hold_what_would_be_answered_without_noise():
    """Sixty groups, asked several times in fresh ledgers: at 0.9 few miss, also where the price is low."""
    columns = sample()
    truth = values_by_key(columns)
    held = {"m": [], "q": [], "o": [], "d": []}
    levels = {"m": 0.5, "q": 0.9, "o": 0.97}
    text = "SELECT k, MEDIAN(x) AS m, QUANTILE(x, 0.9) AS q, QUANTILE(x, 0.97) AS o FROM t GROUP BY k"
    for seed in range(3):
        with session_of(columns, groups=SOME, upper=50) as session, seeded(f"coverage {seed}"):
            ends = session.sql(text).release(epsilon=40).interval(0.9, "noise").to_pylist()
            distinct = session.sql("SELECT k, COUNT(DISTINCT x) AS d FROM t GROUP BY k").release(epsilon=1)
            counts = distinct.interval(0.9, "noise").to_pylist()
        for row, count in zip(ends, counts, strict=True):
            numbers = truth[row["k"]]
            for name, level in levels.items():
                cells = [value for value in range(51) if is_quantile(value, numbers, level)]
                held[name].append(row[f"{name}_low"] <= cells[0] <= row[f"{name}_high"])
            held["d"].append(count["d_low"] <= len(set(numbers)) <= count["d_high"])
    for name, each in held.items():
        assert stats.binom.cdf(sum(each), len(each), 0.9) > 1e-6, name


def test_intervals_narrow_as_the_price_rises():
    with session_of(sample(), groups=SOME, upper=50) as session, seeded("narrow"):
        query = session.sql("SELECT MEDIAN(x) AS m, COUNT(DISTINCT x) AS d FROM t")
        cheap, dear = (query.release(epsilon=price).error(0.9).to_pylist()[0] for price in (2, 2_000))
        assert dear["m"] < 2
        assert cheap["d"] > dear["d"]


# What was found wrong.


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("MEDIAN(x) AS a", "QUANTILE_CONT(x, 0.9) AS a"),
        ("MEDIAN(x) AS a", "MIN(x) AS a, MAX(x) AS b"),
        ("MIN(x) AS a, MAX(x) AS b", "QUANTILE_CONT(x, 0.2) AS a, QUANTILE_CONT(x, 0.6) AS b"),
    ],
)
def test_other_quantiles_are_another_question(first, second):
    with session_of(sample(), groups=SOME, upper=50) as session, seeded("levels"):
        session.sql(f"SELECT {first} FROM t").release(epsilon=100)
        other = session.sql(f"SELECT {second} FROM t").release(epsilon=100)
        assert not other.free
        assert session.balance().spent == 200


def test_several_levels_are_priced_by_the_depths_of_their_tree():
    text = "SELECT QUANTILE(x, 0.1) AS a, MEDIAN(x) AS b, QUANTILE(x, 0.9) AS c FROM t"
    for accountant in ("basic", "zcdp"):
        budget = sf.Budget(100, "1e-6", accountant=accountant)
        with session_of({"u": [1, 2], "k": [0, 0], "x": [3, 5]}, upper=9, budget=budget) as session:
            quote = session.sql(text).quote(epsilon=1)
            (extra,) = quote.extras
            assert quote.loss.pure == 1
            assert extra.loss.rho == 2 * Fraction(1, 8) ** 2 / 2 + Fraction(3, 4) ** 2 / 2
            before = session.balance().spent
            session.sql(text).release(epsilon=1)
            assert accountant != "basic" or session.balance().spent - before == 1


def test_answers_from_before_levels_were_nested_are_read_as_they_were_made():
    """They lack the mark: the ranks that they aim at are those of levels that were selected apart."""
    columns = {"u": list(range(400)), "k": [0] * 400, "x": [i % 50 for i in range(400)]}
    text = "SELECT MIN(x) AS a, MEDIAN(x) AS b, MAX(x) AS c FROM t"
    with session_of(columns, sf.PrivacyUnit.row(), groups=1, upper=50) as session, seeded("former"):
        release = session.sql(text).release(epsilon=20)
        (priced,) = release.quote.extras
        ((_, arrays),) = release._answer.extras
    now, former = outside_of(priced, arrays), outside_of(priced, arrays[:3])
    assert former.aims == priced.former_aims
    assert [aim.guard for aim in now.aims] != [aim.guard for aim in former.aims]
    apart = Quantiles(5, [0, "1/2", 1], sensitivity=1)
    assert [aim.rate for aim in former.aims] == [float(apart.rate(each)) for each in (0, "1/2", 1)]
    assert {aim.guard for aim in former.aims} == {None, float(apart.guard(51))}
    for place in range(3):
        low, high = former.interval(place, 0.1)
        assert low[0] <= former.value(place)[0] <= high[0]


@pytest.mark.parametrize("unit", [sf.PrivacyUnit.row(), sf.PrivacyUnit("who", max_rows=3)])
def test_the_very_extremes_are_covered_up_to_the_declared_bounds(unit):
    """MIN and MAX are measured inside of them: the bar is for that, and one end alone for the extreme."""
    many = 3000
    rows = pa.table({"who": [each // 5 for each in range(many)], "x": list(range(many))})
    table = sf.PrivateTable("t", source=rows, unit=unit, schema={"x": sf.Int(-500, 5000)})
    with sf.Session(table, budget=sf.Budget(10)) as session:
        text = "SELECT MIN(x) AS low, MAX(x) AS high, MAX(x) - MIN(x) AS wide, MEDIAN(x) AS m FROM t"
        release = session.sql(text).release(epsilon=1)
    ends, noise = (release.interval(kind=kind).to_pylist()[0] for kind in ("covering", "noise"))
    assert -500 == ends["low_low"] <= 0 < noise["low_low"]
    assert ends["low_low"] < ends["low_high"] <= noise["low_high"]
    assert noise["high_high"] < many - 1 < ends["high_high"] == 5000
    assert noise["high_low"] <= ends["high_low"] < many - 1
    assert noise["wide_high"] < many - 1 < ends["wide_high"]
    assert "low, all rows" in str(release)
    if unit.column is None:
        assert (ends["m_low"], ends["m_high"]) == (noise["m_low"], noise["m_high"])
