"""GoogleSQL's clause keeps its documented meaning: per unit and group first, then groups, clamps and sums."""

import collections
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.testing import assert_continuous, assert_discrete, seeded

LIMIT = sf.PrivacyUnit("id", max_groups=3, max_rows=12)
OPTIONS = "epsilon = 600, delta = 1e-9, privacy_unit_column = id, max_groups_contributed = {groups}"


def sample(seed=6, units=150):
    generator = np.random.default_rng(seed)
    rows = []
    for unit in range(units):
        for _ in range(1 + int(generator.pareto(1.0)) % 40):
            value = int(generator.normal(20, 30))
            rows.append(
                (unit, "abcd"[int(generator.integers(4))], None if generator.random() < 0.15 else value)
            )
    return rows


def session_of(rows, unit=LIMIT, *, keys=None, budget=None, **more):
    columns = list(zip(*rows, strict=True)) if rows else [[]] * 3
    columns.append(columns[0])
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.int64())
    names = ("id", "g", "x", "own")
    source = pa.table(
        {name: pa.array(column, kind) for name, column, kind in zip(names, columns, kinds, strict=True)}
    )
    schema = {"g": keys or sf.Enum("a", "b", "c", "d"), "x": sf.Int(-200, 200), "own": sf.Int()}
    table = sf.PrivateTable("t", source=source, unit=unit, schema=schema)
    return sf.Session(table, budget=budget or sf.Budget(10**5, "0.1"), **more)


def clamp(value, low, high):
    return min(max(value, low), high)


def reference(rows, kept):
    """The documented order: an aggregate for each unit and group, few groups a unit, clamps, sums over units.

    Args:
        rows: Of unit, group, value.
        kept: Which pairs of unit and group count.
    """
    pairs = collections.defaultdict(list)
    for unit, group, value in rows:
        pairs[unit, group].append(value)
    answer = {group: {"n": 0, "c": 0, "s": 0, "a": []} for _, group in pairs}
    for (unit, group), values in pairs.items():
        if (unit, group) not in kept:
            continue
        present, row = [each for each in values if each is not None], answer[group]
        row["n"] += clamp(len(values), 0, 3)
        row["c"] += clamp(len(present), 1, 2)
        row["s"] += clamp(sum(present), -10, 50)
        if present:
            row["a"].append(clamp(sum(present) / len(present), 0, 30))
    return {
        group: {**row, "a": sum(row["a"]) / len(row["a"]) if row["a"] else None}
        for group, row in answer.items()
    }


def kept_pairs(session, rows, text):
    """Which groups were chosen for each unit, one unit at a time: a condition does not move the choice."""
    found, spread = set(), collections.defaultdict(set)
    for unit, group, _ in rows:
        spread[unit].add(group)
    for unit, groups in spread.items():
        if len(groups) > 1:
            measured = session.sql(text.replace("FROM t", f"FROM t WHERE own = {unit}")).quote().measured
            reading = session.vault._read(measured, 0)
            (place,) = (i for i, each in enumerate(measured.measurements) if each.kind == "rows")
            counts = zip(reading.groups, reading.columns[place], strict=True)
            groups = {group[0] for group, n in counts if n}
        found |= {(unit, group) for group in groups}
    return found, spread


AGGREGATES = (
    "COUNT(*, contribution_bounds_per_group => (0, 3)) AS n, "
    "COUNT(x, contribution_bounds_per_group => (1, 2)) AS c, "
    "SUM(x, contribution_bounds_per_group => (-10, 50)) AS s, "
    "AVG(x, contribution_bounds_per_group => (0, 30)) AS a"
)


def google(groups, aggregates=AGGREGATES, options=OPTIONS):
    clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS({options.format(groups=groups)})"
    return f"SELECT {clause} g, {aggregates} FROM t GROUP BY g"


@pytest.mark.parametrize("groups", [1, 3])
def test_the_answer_is_that_of_the_documented_order(groups):
    rows, text = sample(units=50), google(groups)
    with session_of(rows) as session, seeded(f"google {groups}"):
        kept, spread = kept_pairs(session, rows, text)
        most = collections.Counter(unit for unit, _ in kept)
        assert all(most[unit] == min(groups, len(mine)) for unit, mine in spread.items())
        expected = reference(rows, kept)
        release = session.sql(text).release()
        for row in release.table.to_pylist():
            wanted = expected[row["g"]]
            assert row["n"] == pytest.approx(wanted["n"], abs=2)
            assert row["c"] == pytest.approx(wanted["c"], abs=2)
            assert row["s"] == pytest.approx(wanted["s"], abs=8)
            assert row["a"] == pytest.approx(wanted["a"], abs=0.4)
            assert type(row["n"]) is type(row["s"]) is int
            assert type(row["a"]) is float


def test_units_found_in_the_data_are_thresholded_in_the_same_query():
    rows = [(unit, "common", 5) for unit in range(60)] + [(100, "rare", 5)]
    with session_of(rows, keys=sf.Text()) as session, seeded("threshold"):
        release = session.sql(google(2)).release()
        assert release.table.to_pylist() == [
            {"g": "common", "n": 60, "c": 60, "s": pytest.approx(300, abs=2), "a": pytest.approx(5, abs=0.2)}
        ]
        assert release.quote.delta == Fraction(1, 10**9)
        assert session.balance().spent == 600


# Noise of bounds per group.

CASES = {
    "COUNT(*, contribution_bounds_per_group => (0, 5)) AS v": 5,
    "COUNT(x, contribution_bounds_per_group => (2, 7)) AS v": 7,
    "SUM(x, contribution_bounds_per_group => (-30, 20)) AS v": 30,
}


@pytest.mark.parametrize("aggregate", CASES)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_noise_is_that_of_the_bounds_in_each_group(aggregate, mechanism):
    """A unit moves each of its two groups by the larger bound."""
    empty = pa.array([], pa.int64())
    table = sf.PrivateTable(
        "t",
        source=pa.table({"id": empty, "g": empty, "x": empty}),
        unit=LIMIT,
        schema={"g": sf.Int(0, 1_999), "x": sf.Int(-200, 200)},
    )
    with sf.Session(table, budget=sf.Budget(10, "1e-3")) as session, seeded(aggregate):
        text = google(2, aggregate, "epsilon = 2, delta = 1e-6, max_groups_contributed = {groups}")
        (noisy,) = session.sql(text).release(mechanism=mechanism)._answer.noisy
    bound = CASES[aggregate]
    if mechanism == "gaussian":
        sigma = float(sf.accounting.gaussian_sigma(Fraction(2), Fraction(1, 10**6))) * bound * math.sqrt(2)
        check(noisy, assert_continuous, stats.norm(scale=sigma).cdf)
    elif aggregate.startswith("SUM"):
        check(noisy, assert_continuous, stats.laplace(scale=2 * bound / 2).cdf)
    else:
        q = math.exp(-1 / bound)
        check(noisy, assert_discrete, lambda k: (1 - q) / (1 + q) * q ** np.abs(k))


def check(noisy, follows, law):
    """The law, and not half of its noise."""
    follows(noisy, law)
    half = noisy // 2 if noisy.dtype.kind == "i" else noisy / 2
    with pytest.raises(AssertionError, match="claimed"):
        follows(half, law)


# Limits and refusals.


def test_limits_may_only_tighten():
    with session_of(sample()) as session:
        for wrong in (
            google(4),
            google(1, "COUNT(*) AS n", "epsilon = 1, max_rows_contributed = 13"),
            google(1, "COUNT(*) AS n", "epsilon = 1, max_rows_contributed = 2, max_groups_contributed = 1"),
            google(1, "COUNT(*) AS n", "epsilon = 1, privacy_unit_column = x"),
            google(1, "COUNT(*) AS n", "epsilon = 1, privacy_unit_column = g"),
            google(1, "COUNT(*) AS n", "epsilon = 1e20"),
            google(1, "COUNT(*) AS n", "epsilon = 0"),
            google(1, "COUNT(*) AS n", "epsilon = 1, epsilon = 2"),
            google(1, "COUNT(*) AS n", "epsilon = 1, group_selection_strategy = NOBODY"),
            google(1, "COUNT(*) AS n", "epsilon = 1, seed = 3"),
            google(1, "SUM(x, contribution_bounds_per_group => (5, 1)) AS n"),
            google(1, "SUM(x, contribution_bounds_per_row => (0, 1)) AS n"),
            google(1, "COUNT(*, contribution_bounds_per_group => (0, 1.5)) AS n"),
            google(1, "SUM(x, contribution_bounds_per_group => (0, x)) AS n"),
            google(1).replace("SELECT WITH", "SELECT DISTINCT WITH"),
            google(1).replace("GROUP BY g", "GROUP BY ROLLUP (g)"),
        ):
            with pytest.raises(QueryRefused):
                session.sql(wrong).release()
        assert session.balance().spent == 0
        looser = google(1, "COUNT(*) AS n", "epsilon = 1, max_groups_contributed = 3")
        tighter = google(1, "COUNT(*) AS n", "epsilon = 1, max_groups_contributed = 1")
        wide, narrow = (
            session.sql(each).quote(mechanism="laplace").noises[0].scale for each in (looser, tighter)
        )
        assert narrow == pytest.approx(wide / 3)
        session.sql(looser.replace("privacy", "Privacy").replace("epsilon", "EPSILON")).quote()


def test_the_budget_still_holds():
    with session_of(sample(), budget=sf.Budget(1)) as session:
        query = session.sql(google(1, "COUNT(*) AS n", "epsilon = 2"))
        with pytest.raises(sf.errors.BudgetExceeded):
            query.release()
        assert session.balance().spent == 0
        assert query.quote(epsilon=1).epsilon == 1
        with pytest.raises(InvalidParameter):
            session.sql(google(1, "COUNT(*) AS n", "max_groups_contributed = 1")).quote()


def test_rows_as_units_have_no_unit_column():
    with session_of(sample(), sf.PrivacyUnit.row()) as session:
        with pytest.raises(QueryRefused):
            session.sql(google(1)).quote()
        assert session.sql(google(1, "COUNT(*) AS n", "epsilon = 1")).release().epsilon == 1


# Old words, parameters, intervals, EXPLAIN.


def test_deprecated_words_mean_the_same():
    with session_of(sample()) as session, seeded("old"):
        new = session.sql(google(2, "SUM(x, contribution_bounds_per_group => (0, 9)) AS s"))
        old = session.sql(
            "SELECT WITH ANONYMIZATION OPTIONS(epsilon = 600, delta = 1e-9, kappa = 2) g, "
            "ANON_SUM(x CLAMPED BETWEEN 0 AND 9) AS s FROM t GROUP BY g"
        )
        assert old.quote().fingerprint == new.quote().fingerprint
        assert sum("deprecated" in note for note in old.quote().notes) >= 2
        assert not any("deprecated" in note for note in new.quote().notes)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "SELECT g, SUM(x, contribution_bounds_per_group => (?, ?)) AS s FROM t WHERE x > ? GROUP BY g",
            [0, 9, 3],
        ),
        (
            "SELECT g, SUM(x, contribution_bounds_per_group => ($2, $1)) AS s FROM t WHERE x > $3 GROUP BY g",
            [9, 0, 3],
        ),
        (
            "SELECT g, SUM(x, contribution_bounds_per_group => (@low, :high)) AS s FROM t "
            "WHERE x > $least GROUP BY g",
            {"low": 0, "high": 9, "least": 3},
        ),
    ],
)
def test_parameters_are_the_values_in_their_place(text, values):
    with session_of(sample()) as session:
        text = text.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-9)")
        plain = (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-9) g, "
            "SUM(x, contribution_bounds_per_group => (0, 9)) AS s FROM t WHERE x > 3 GROUP BY g"
        )
        given = session.sql(text, values).quote()
        assert given.fingerprint == session.sql(plain).quote().fingerprint
        for wrong in (None, [], {"low": 0}, [0, 9, 3, 4], [0, 9, "'; DROP TABLE t; --"]):
            with pytest.raises((InvalidParameter, QueryRefused)):
                session.sql(text, wrong).quote()


def test_a_parameter_is_never_text_of_the_query():
    with session_of([(1, "a", 1)], keys=sf.Text()) as session:
        query = session.sql("SELECT COUNT(*) AS n FROM t WHERE g = ?", ["a' OR 'a' = 'a"])
        honest = session.sql("SELECT COUNT(*) AS n FROM t WHERE g = 'a'' OR ''a'' = ''a'")
        assert query.quote(epsilon=1).fingerprint == honest.quote(epsilon=1).fingerprint


def test_ends_of_intervals_are_columns():
    with session_of(sample()) as session, seeded("ends"):
        release = session.sql(
            "SELECT DP_INTERVAL_LOW(n) AS low, g, COUNT(*) AS n, DP_INTERVAL_HIGH(N, 0.5) AS half, "
            "AVG(x) AS a, DP_INTERVAL_HIGH(n) AS high, dp_interval_low(a, 0.9) AS a_low, MEDIAN(x) AS m, "
            "DP_INTERVAL_HIGH(m) AS top FROM t GROUP BY g ORDER BY n DESC LIMIT 3"
        ).release(epsilon=4)
        assert release.table.column_names == ["low", "g", "n", "half", "a", "high", "a_low", "m", "top"]
        for level, columns in (
            (0.95, {"low": "n_low", "high": "n_high", "top": "m_high"}),
            (0.5, {"half": "n_high"}),
            (0.9, {"a_low": "a_low"}),
        ):
            ends = release.interval(level, kind="noise")
            for mine, theirs in columns.items():
                assert release.table[mine].to_pylist() == ends[theirs].to_pylist()
        assert release.table["low"].to_pylist() <= release.table["n"].to_pylist()
        plain = session.sql("SELECT g, COUNT(*) AS n, AVG(x) AS a, MEDIAN(x) AS m FROM t GROUP BY g")
        assert plain.release(epsilon=4).free
        for wrong in (
            "DP_INTERVAL_LOW(z)",
            "DP_INTERVAL_LOW(COUNT(*))",
            "DP_INTERVAL_LOW(n, 2)",
            "DP_INTERVAL_LOW()",
        ):
            with pytest.raises(QueryRefused):
                session.sql(f"SELECT COUNT(*) AS n, {wrong} AS e FROM t")


def test_explain_gives_the_quote():
    with session_of(sample()) as session:
        for text in ("EXPLAIN ", "explain privacy "):
            query = session.sql(text + google(2))
            assert query.explain
            assert str(query.quote()) == str(session.sql(google(2)).quote())
        assert not session.sql(google(2)).explain
        assert session.balance().spent == 0


# What was found wrong.


@pytest.mark.parametrize("bounding", [None, "reweight"])
def test_bounds_per_group_mean_the_same_without_the_clause(bounding):
    rows = [(unit, "a", 4) for unit in range(50)]
    text = "SELECT g, SUM(x, contribution_bounds_per_group => (0, 9)) AS s FROM t GROUP BY g"
    with session_of(rows) as session, seeded("no clause"):
        try:
            release = session.sql(text).release(epsilon=500, bounding=bounding)
        except QueryRefused:
            return
        assert release.table["s"][0].as_py() == pytest.approx(200, abs=5)


def test_a_limit_on_rows_holds_over_all_groups():
    rows = [(unit, group, 1) for unit in range(100) for group in "abcd" for _ in range(2)]
    with session_of(rows) as session, seeded("rows"):
        text = google(1, "COUNT(*) AS n", "epsilon = 500, delta = 1e-9, max_rows_contributed = 1")
        assert sum(session.sql(text).release().table["n"].to_pylist()) == pytest.approx(100, abs=5)


def test_explain_never_spends():
    with session_of(sample()) as session:
        with pytest.raises(QueryRefused):
            session.sql("EXPLAIN SELECT COUNT(*) AS n FROM t").release(epsilon=1)
        assert session.balance().spent == 0


def test_the_unit_column_is_that_of_a_table_of_the_query():
    with session_of(sample()) as session:
        session.sql(google(1, "COUNT(*) AS n", "epsilon = 1, privacy_unit_column = t.id"))
        with pytest.raises(QueryRefused):
            session.sql(google(1, "COUNT(*) AS n", "epsilon = 1, privacy_unit_column = other.id"))


def test_bounds_can_be_bought_for_the_clause():
    table = sf.PrivateTable(
        "t",
        source=pa.table({"id": range(80), "g": ["a", "b"] * 40, "x": [float(i % 9) for i in range(80)]}),
        unit=LIMIT,
        schema={"g": sf.Enum("a", "b"), "x": sf.Float()},
    )
    with sf.Session(table, budget=sf.Budget(100, "1e-3")) as session, seeded("bought"):
        query = session.sql(google(1, "SUM(x) AS s", "epsilon = 50"))
        assert query.release(bounds="auto").table.num_rows == 2
        assert session.balance().spent == 50


def test_units_without_numbers_add_nothing_to_a_sum():
    with session_of([(unit, "a", None) for unit in range(50)]) as session, seeded("nulls"):
        text = google(2, "SUM(x, contribution_bounds_per_group => (5, 10)) AS s")
        assert session.sql(text).release().table["s"].to_pylist() == pytest.approx([0] * 4, abs=3)
