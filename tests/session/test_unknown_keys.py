"""Groups that are found in the data: who is shown, with which noise, and what the numbers mean."""

import collections
import datetime
import itertools
import math
import re
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sfumato as sf
from sfumato.errors import QueryRefused
from sfumato.session import answering
from sfumato.session.reading import Reading
from sfumato.testing import assert_bernoulli, assert_continuous, assert_discrete, seeded

SIZES = (3, 6, 9)
EACH = 1_500
PRICE, DELTA = Fraction(2), Fraction(1, 50)
UNITS = "SELECT g, COUNT(DISTINCT u) AS n FROM t GROUP BY g"


def steps(epsilon, delta):
    """P(J = j): the steps of the best chance to keep a group of n units, by the recursion of its theorem."""
    kept, grow = [0.0], math.exp(epsilon)
    while kept[-1] < 1:
        last = kept[-1]
        kept.append(min(grow * last + delta, 1 - (1 - last - delta) / grow, 1.0))
    return np.diff(kept)


def session_of(columns, unit, schema, *, budget=None, **more):
    table = sf.PrivateTable("t", source=pa.table(columns), unit=unit, schema=schema)
    return sf.Session(table, budget=budget or sf.Budget(10**6, Fraction(9, 10)), **more)


def groups_of_sizes():
    """EACH groups of every size, and each unit in two groups of the same size: nobody is cut at two."""
    keys, units = [], []
    for size in SIZES:
        for place in range(EACH):
            for member in range(size):
                keys.append(size * 10_000 + place)
                units.append((size * 10_000 + place // 2) * 100 + member)
    return {"u": units, "g": keys}


@pytest.fixture(scope="module")
def sized():
    return groups_of_sizes()


def released_sizes(sized, seed, unit):
    with session_of(sized, unit, {"g": sf.Int()}) as session, seeded(seed):
        text = UNITS if unit.column else UNITS.replace("DISTINCT u", "*")
        release = session.sql(text).release(epsilon=PRICE, delta=DELTA)
        shown = dict(zip(release.table["g"].to_pylist(), release.table["n"].to_pylist(), strict=True))
        assert (release.quote.selection.epsilon, release.quote.selection.delta) == (PRICE, DELTA)
        return shown, release.quote.selection.threshold


def check_selection(sized, unit=None, seed="selection"):
    unit = sf.PrivacyUnit("u", max_groups=2) if unit is None else unit
    shares = 1 if unit.column is None else unit.max_groups
    shown, threshold = released_sizes(sized, seed, unit)
    chances = steps(float(PRICE) / shares, float(DELTA) / shares)
    for size in SIZES:
        counts = [n for key, n in shown.items() if key // 10_000 == size]
        keep = float(chances[:size].sum())
        assert_bernoulli(len(counts), EACH, min(keep, 1.0))
        if keep > 1e-3:
            law = {size + threshold - j: chance / keep for j, chance in enumerate(chances[:size].tolist())}
            assert_discrete(counts, law)


def test_groups_survive_as_often_as_the_best_rule_lets_them_and_show_its_noise(sized):
    check_selection(sized)


def test_rows_as_units_are_selected_at_the_whole_price(sized):
    check_selection(sized, sf.PrivacyUnit.row(), "rows")


def planted(change):
    honest = answering.select

    def wrapped(found, selection):
        survivors, noisy = honest(found, selection)
        return change(found, survivors, noisy, selection)

    return wrapped


def all_kept(found, survivors, noisy, selection):
    return Reading(found.groups, found.columns), np.maximum(found.units, selection.threshold + 1)


def less_noise(found, survivors, noisy, selection):
    true = dict(zip(found.groups, found.units, strict=True))
    exact = np.array([true[group] for group in survivors.groups])
    return survivors, np.maximum(exact + (noisy - exact) // 2, selection.threshold + 1)


def dearer(found, survivors, noisy, selection):
    """As if the price were not divided by the groups that a unit is in."""
    whole = sf.PartitionSelection(selection.epsilon, selection.delta)
    kept, counts = whole.release(found.units)
    places = np.flatnonzero(kept)
    shift = selection.threshold - whole.threshold
    return Reading(tuple(found.groups[i] for i in places), ()), counts[kept] + shift


@pytest.mark.parametrize("change", [all_kept, less_noise, dearer])
def test_a_selection_that_is_skipped_or_cheaper_is_noticed(sized, change, monkeypatch):
    monkeypatch.setattr(answering, "select", planted(change))
    with pytest.raises(AssertionError, match="claimed"):
        check_selection(sized)


# Sums of the groups that were found.

MANY, MEMBERS = 3_000, 4


def released_sums(mechanism, seed):
    """Noise alone: every row of large enough groups is 0."""
    keys = np.repeat(np.arange(MANY), MEMBERS)
    columns = {"u": np.arange(keys.size) // 3, "g": keys, "x": np.zeros(keys.size)}
    unit = sf.PrivacyUnit("u", max_groups=3, max_rows=6)
    with (
        session_of(columns, unit, {"g": sf.Int(), "x": sf.Float(-5, 10, nullable=False)}) as session,
        seeded(seed),
    ):
        query = session.sql("SELECT g, SUM(x) AS s FROM t GROUP BY g")
        release = query.release(epsilon=200, delta="0.2", mechanism=mechanism)
        assert release.table.num_rows == MANY
        return release.table["s"].to_numpy(), release.quote


def check_sums(mechanism):
    noisy, quote = released_sums(mechanism, mechanism)
    price = Fraction(200) - quote.selection.epsilon  # the selection and the one aggregate have the same claim
    assert price == 100
    reach = 10 * 2  # of one unit in one of its three groups: two rows' weight
    if mechanism == "laplace":
        assert quote.selection.delta == Fraction("0.2")
        assert_continuous(noisy, stats.laplace(scale=3 * reach / float(price)).cdf)
    else:
        assert quote.selection.delta == Fraction("0.1")
        sigma = float(sf.accounting.gaussian_sigma(price, Fraction("0.1"), 1)) * math.sqrt(3) * reach
        assert_continuous(noisy, stats.norm(scale=sigma).cdf)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_sums_of_found_groups_have_the_noise_of_every_group_that_a_unit_is_in(mechanism):
    check_sums(mechanism)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_less_noise_on_the_sums_is_noticed(mechanism, monkeypatch):
    honest = answering.privatise
    monkeypatch.setattr(
        answering, "privatise", lambda exact, quote: tuple(each * 0.85 for each in honest(exact, quote))
    )
    with pytest.raises(AssertionError, match="claimed"):
        check_sums(mechanism)


# What is chosen for a unit.

CHOICES = 6


def chosen_subsets(text, *, units=1_500):
    """Which of its six groups each unit was left with, three at most: every group belongs to one unit."""
    units_of = np.repeat(np.arange(units), CHOICES)
    place = np.tile(np.arange(CHOICES), units)
    columns = {
        "u": units_of,
        "o": units_of,
        "i": place,
        "g": [f"{u}-{i}" for u, i in zip(units_of, place, strict=True)],
    }
    schema = {"o": sf.Int(), "i": sf.Int(), "g": sf.Text()}
    with session_of(columns, sf.PrivacyUnit("u", max_groups=3), schema) as session:
        quote = session.sql(text).quote(epsilon=1, delta="1e-6")
        found = session.vault._read(quote.measured, 0)
    subsets = collections.defaultdict(set)
    for group in found.groups:
        owner, which = (
            group[0].split("-") if len(group) == 1 else sorted(group, key=lambda each: each < CHOICES)
        )
        subsets[int(owner)].add(int(which))
    assert set(found.units) == {1}
    return [tuple(sorted(subsets[unit])) for unit in range(units) if unit >= CHOICES]


@pytest.mark.parametrize("text", [UNITS, "SELECT i, o, COUNT(DISTINCT u) AS n FROM t GROUP BY i, o"])
def test_every_unit_keeps_exactly_its_limit_and_all_choices_are_alike(text):
    subsets = chosen_subsets(text)
    every = list(itertools.combinations(range(CHOICES), 3))
    assert set(map(len, subsets)) == {3}
    places = {subset: place for place, subset in enumerate(every)}
    assert_discrete(
        [places[each] for each in subsets], {place: 1 / len(every) for place in range(len(every))}
    )


def test_the_choice_depends_on_nobody_else_and_on_no_order():
    rows = [(unit, f"g{group}") for unit in range(40) for group in range(unit % 7 + 1)]
    unit, schema = sf.PrivacyUnit("u", max_groups=2), {"g": sf.Text()}

    def read(session):
        return dict(
            zip(
                *(lambda found: (found.groups, found.units))(
                    session.vault._read(session.sql(UNITS).quote(epsilon=1, delta="1e-6").measured, 0)
                ),
                strict=True,
            )
        )

    def columns(listed):
        return {"u": [each[0] for each in listed], "g": [each[1] for each in listed]}

    ledger = sf.ledger.Ledger.open(None)
    shuffled = [rows[i] for i in np.random.default_rng(3).permutation(len(rows))]
    with session_of(columns(rows), unit, schema, ledger=ledger) as session:
        all_of_them = read(session)
    with session_of(columns(shuffled * 2), unit, schema, ledger=ledger) as session:
        assert read(session) == all_of_them
        assert list(read(session)) == sorted(all_of_them)
    alone = collections.Counter()
    for one in range(0, 40, 3):
        with session_of(
            columns([row for row in rows if row[0] == one]), unit, schema, ledger=ledger
        ) as session:
            mine = read(session)
        assert sum(mine.values()) == min(2, one % 7 + 1)
        alone.update(mine)
    assert all(count <= all_of_them[group] for group, count in alone.items())
    ledger.close()


# Meaning.

KEYS = {
    "text": (sf.Text(), pa.string(), ["", "a", "A", " a", "é", "e\u0301", "'; --", "None", None]),
    "integer": (sf.Int(), pa.int64(), [0, -5, 2**62, None]),
    "date": (
        sf.Date(),
        pa.date32(),
        [datetime.date(1, 1, 1), datetime.date(2024, 2, 29), datetime.date(9999, 12, 31), None],
    ),
    "boolean and text": (sf.Text(), pa.string(), ["x", "y", None]),
}
ARROW = {"text": pa.string(), "integer": pa.int64(), "date": pa.date32(), "boolean and text": pa.string()}


def listed(kind, *, each=30):
    declared, arrow, values = KEYS[kind]
    many = values * each
    generator = np.random.default_rng(len(many))
    columns = {
        "u": np.arange(len(many)),
        "g": pa.array([many[i] for i in generator.permutation(len(many))], arrow),
        "x": pa.array([None if i % 11 == 0 else i % 7 for i in range(len(many))], pa.int64()),
        "b": [bool(i % 2) for i in range(len(many))],
    }
    return columns, {"g": declared, "x": sf.Int(0, 10), "b": sf.Bool(nullable=False)}


def same(one, other):
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert a == b if not isinstance(b, float) else a == pytest.approx(b, abs=1e-2), (a, b, mine)


@pytest.mark.parametrize("kind", KEYS)
def test_at_a_high_price_the_answer_is_that_of_plain_sql(kind):
    columns, schema = listed(kind)
    keys = "g, b" if kind == "boolean and text" else "g"
    text = (
        f"SELECT {keys}, COUNT(DISTINCT u) AS n, COUNT(*) AS c, COUNT(x) AS p, SUM(x) AS s, AVG(x) AS a, "
        f"QUANTILE_DISC(x, 0.38) AS m, COUNT(DISTINCT x) AS d FROM t GROUP BY {keys} ORDER BY {keys}"
    )
    t = pa.table(columns)
    plain = duckdb.sql(text).fetchall()
    with session_of(columns, sf.PrivacyUnit("u", max_groups=2, max_rows=2), schema) as session, seeded(kind):
        release = session.sql(text).release(epsilon=4_000, delta="1e-9")
        same([tuple(row.values()) for row in release.table.to_pylist()], plain)
        again = session.sql(text).release(epsilon=4_000, delta="1e-9")
        assert again.free
        assert again.table.equals(release.table)
        assert release.table.schema.field("g").type == ARROW[kind]
    assert t.num_rows == sum(row[3 if "," in keys else 2] for row in plain)


def test_results_are_filtered_ordered_and_computed_with():
    columns, schema = listed("text")
    t = pa.table(columns)
    assert t.num_rows
    text = (
        "SELECT LOWER(g) AS low, 2 * COUNT(*) - 1 AS n, SUM(x) / COUNT(*) AS r FROM t WHERE x > 2 AND "
        "g <> 'None' GROUP BY low HAVING COUNT(*) > 17 ORDER BY n DESC, low LIMIT 3 OFFSET 1"
    )
    with session_of(columns, sf.PrivacyUnit("u", max_groups=1), schema) as session, seeded("results"):
        release = session.sql(text).release(epsilon=1_200, delta="1e-9")
        same([tuple(row.values()) for row in release.table.to_pylist()], duckdb.sql(text).fetchall())


@pytest.mark.parametrize("kind", ["text", "integer", "date"])
@pytest.mark.parametrize("rows", ["none", "one", "a few"])
def test_an_answer_without_groups_has_its_columns(kind, rows):
    columns, schema = listed(kind)
    many = {"none": 0, "one": 1, "a few": 9}[rows]
    columns = {name: pa.table(columns)[name].slice(0, many) for name in columns}
    with session_of(columns, sf.PrivacyUnit("u", max_groups=2), schema) as session, seeded(kind):
        text = (
            "SELECT g, COUNT(*) AS n, AVG(x) AS a, MEDIAN(x) AS m, COUNT(DISTINCT x) AS d, "
            "DP_INTERVAL_LOW(n) AS low FROM t GROUP BY g"
        )
        release = session.sql(text).release(epsilon="0.01", delta="1e-9")
        kinds = [ARROW[kind], pa.int64(), pa.float64(), pa.int64(), pa.int64(), pa.float64()]
        assert release.table.schema.types == kinds
        assert release.table.num_rows == release.error().num_rows == release.interval().num_rows == 0
        assert str(release)
        assert session.sql(text).release(epsilon="0.01", delta="1e-9").free


def test_rows_without_a_unit_found_nothing():
    columns = {"u": pa.array([None] * 500, pa.int64()), "g": ["a"] * 500}
    with session_of(columns, sf.PrivacyUnit("u", max_groups=1), {"g": sf.Text()}) as session:
        assert session.sql(UNITS).release(epsilon=100, delta="1e-9").table.num_rows == 0


def test_limits_hold_in_the_answer():
    """Thirty units with ten rows in each of nine groups, limited to three groups of two rows."""
    rows = [(u, f"g{g}", 1) for u in range(30) for g in range(9) for _ in range(10)]
    columns = dict(zip("ugx", zip(*rows, strict=True), strict=True))
    schema = {"g": sf.Text(), "x": sf.Int(0, 1, nullable=False)}
    with (
        session_of(columns, sf.PrivacyUnit("u", max_groups=3, max_rows=6), schema) as session,
        seeded("limits"),
    ):
        release = session.sql(
            "SELECT g, COUNT(DISTINCT u) AS n, COUNT(*) AS c, SUM(x) AS s FROM t GROUP BY g"
        ).release(epsilon=3_000, delta="1e-9")
        assert sum(release.table["n"].to_pylist()) == 30 * 3
        assert sum(release.table["c"].to_pylist()) == sum(release.table["s"].to_pylist()) == 30 * 6
        assert release.table["c"].to_pylist() == [2 * n for n in release.table["n"].to_pylist()]


def test_groups_found_in_the_data_need_a_delta_and_cannot_be_weighted(sized):
    with session_of(
        sized, sf.PrivacyUnit("u", max_groups=2), {"g": sf.Int()}, budget=sf.Budget(5)
    ) as session:
        with pytest.raises(QueryRefused, match="delta"):
            session.sql(UNITS).release(epsilon=1)
        with pytest.raises(QueryRefused, match="public"):
            session.sql(UNITS).release(epsilon=1, delta="0.1", bounding="reweight")
        with pytest.raises(QueryRefused, match="error"):
            session.sql(UNITS).quote(error=5)
        assert session.balance().spent == 0


@pytest.mark.parametrize("confidence", [0.9])
def test_intervals_hold_for_the_groups_that_are_shown(sized, confidence):
    """Also for small groups that were lucky: among those shown of each size the interval holds the truth."""
    unit = sf.PrivacyUnit("u", max_groups=2)
    with session_of(sized, unit, {"g": sf.Int()}) as session, seeded("coverage"):
        release = session.sql(UNITS).release(epsilon=PRICE, delta=DELTA)
        ends = release.interval(confidence, "noise").to_pydict()
    held = collections.defaultdict(list)
    for key, low, high in zip(ends["g"], ends["n_low"], ends["n_high"], strict=True):
        held[key // 10_000].append(low <= key // 10_000 <= high)
    assert {3, 6, 9} >= set(held) >= {6, 9}
    for each in held.values():
        assert stats.binom.cdf(sum(each), len(each), confidence) > 1e-6


# What was found wrong.


def test_a_dearer_answer_serves_a_cheaper_question():
    columns, schema = listed("text")
    with session_of(columns, sf.PrivacyUnit("u", max_groups=1), schema) as session:
        dear = session.sql(UNITS).release(epsilon=20, delta="0.01")
        cheap = session.sql(UNITS).release(epsilon="0.1", delta="1e-9")
        assert cheap.free
        assert cheap.interval(0.9).equals(dear.interval(0.9))


def test_a_declared_list_still_says_which_groups_are_reported():
    columns = {"u": range(200), "g": ["a", "b"] * 100, "e": ["x", "y", "unlisted", "x"] * 50}
    with session_of(
        columns, sf.PrivacyUnit("u", max_groups=1), {"g": sf.Text(), "e": sf.Enum("x", "y")}
    ) as session:
        release = session.sql("SELECT g, e, COUNT(*) AS n FROM t GROUP BY g, e").release(
            epsilon=500, delta="1e-9"
        )
        assert set(release.table["e"].to_pylist()) == {"x", "y"}


@pytest.mark.parametrize("key", ["\0z", "a" * 20_000])
def test_no_key_can_make_the_second_read_fail(key):
    columns = {"u": range(200), "g": ["a", key] * 100, "x": [1] * 200}
    with session_of(
        columns, sf.PrivacyUnit("u", max_groups=1), {"g": sf.Text(), "x": sf.Int(0, 3)}
    ) as session:
        release = session.sql("SELECT g, COUNT(*) AS n, MEDIAN(x) AS m FROM t GROUP BY g").release(
            epsilon=900, delta="1e-9"
        )
        assert (
            release.table.to_pylist()
            == [{"g": "a", "n": 100, "m": 1}, {"g": key, "n": 100, "m": 1}][:: 1 if key > "a" else -1]
        )


@pytest.mark.parametrize(
    "values", [[math.nan, None], [math.inf, -math.inf, 0.0], [1e300, 0.0], [-0.0, 0.0, math.nan]]
)
def test_floors_of_any_number_are_keys(values):
    columns = {
        "u": range(300),
        "g": pa.array([values[i % len(values)] for i in range(300)], pa.float64()),
        "x": [1] * 300,
    }
    with session_of(
        columns, sf.PrivacyUnit("u", max_groups=1), {"g": sf.Float(), "x": sf.Int(0, 3)}
    ) as session:
        release = session.sql(
            "SELECT FLOOR(g) AS f, COUNT(*) AS n, MEDIAN(x) AS m FROM t GROUP BY f"
        ).release(epsilon=900, delta="1e-9")
        assert sum(release.table["n"].to_pylist()) == 300
        assert len(set(map(str, release.table["f"].to_pylist()))) == release.table.num_rows


def test_a_date_beyond_the_calendar_is_the_group_null_for_every_aggregate(tmp_path):
    """Its rows were once counted in the group and then missed by the questions that follow it."""
    path = tmp_path / "t.parquet"
    day = "CASE WHEN i % 2 = 0 THEN DATE '2020-01-01' ELSE DATE '9999-12-30' + CAST(5 AS INTEGER) END"
    duckdb.sql(f"COPY (SELECT i AS u, {day} AS k, i % 100 AS x FROM range(4000) t(i)) TO '{path}'")
    unit = sf.PrivacyUnit("u", max_groups=1)
    table = sf.PrivateTable("t", source=path, unit=unit, schema={"k": sf.Date(), "x": sf.Int(0, 100)})
    text = "SELECT k, COUNT(*) AS n, MEDIAN(x) AS m, COUNT(DISTINCT x) AS d FROM t GROUP BY k"
    with sf.Session(table, budget=sf.Budget(100, "1e-5")) as session, seeded("calendar"):
        released = session.sql(text).release(epsilon=40).table.to_pylist()
    assert [row["k"] for row in released] == [datetime.date(2020, 1, 1), None]
    for row in released:
        assert abs(row["n"] - 2000) < 20
        assert abs(row["m"] - 50) < 5
        assert abs(row["d"] - 50) < 10


@pytest.mark.parametrize(("more", "fits"), [({}, False), ({"aside": "5e-6"}, True)])
def test_a_budget_kept_by_zcdp_pays_for_found_groups_from_what_is_aside(more, fits):
    columns = {"u": list(range(3000)), "k": [f"c{i % 3}" for i in range(3000)]}
    budget = sf.Budget(5, "1e-5", accountant="zcdp", **more)
    unit = sf.PrivacyUnit("u", max_groups=1)
    with session_of(columns, unit, {"k": sf.Text()}, budget=budget) as session, seeded("aside"):
        query = session.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k")
        if fits:
            assert query.release(epsilon=1).table.num_rows == 3
            return
        with pytest.raises(QueryRefused, match="aside"):
            query.quote(epsilon=1)
        with pytest.raises(QueryRefused, match="aside"):
            query.release(epsilon=1)
        assert session.balance().spent == 0


LEFT_OUT = "are left out: missing does not mean 0."


@pytest.mark.parametrize(
    ("unit", "few"),
    [(sf.PrivacyUnit.row(), "few rows"), (sf.PrivacyUnit("u", max_rows=1), r"few units \(u\)")],
)
def test_an_answer_says_that_small_groups_have_no_line_where_some_can_be_missing(unit, few):
    columns = {"u": list(range(300)), "g": ["a"] * 299 + ["b"], "k": ["x"] * 300}
    schema = {"g": sf.Text(), "k": sf.Enum("x", "y")}
    with session_of(columns, unit, schema) as session:

        def said(text, epsilon=50):
            release = session.sql(text).release(epsilon=epsilon, delta=Fraction(1, 1000))
            left = [line for line in release.bounds if "max_groups" not in line]  # that is said of all groups
            assert [line for line in str(release).splitlines() if LEFT_OUT in line] == left
            return left

        found = said("SELECT g, COUNT(*) AS n FROM t GROUP BY g")
        assert re.fullmatch(f"Groups with {few} {LEFT_OUT}", found[0])
        assert said("SELECT g, COUNT(*) AS n FROM t GROUP BY g") == found  # on record
        # Here none can be missing without a word: keys are public, others have a line, or nothing was found.
        assert not said("SELECT k, COUNT(*) AS n FROM t GROUP BY k")
        assert not said("SELECT k, g, COUNT(*) AS n FROM t GROUP BY ROLLUP (k, g)")
        assert not said("SELECT g, COUNT(*) AS n FROM t WHERE k = 'y' GROUP BY g")
