"""Tables prepared for a grouping, asked through a session: answers, quotes, and what they fall back to."""

import functools
import random
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.prepare import prepare
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.questions.bounding import boundings
from sfumato.plan.questions.sensitivity import sensitivities
from sfumato.session.query import Query

SCHEMA = {
    "country": sf.Enum("FR", "DE", "IT"),
    "city": sf.Text(),
    "amount": sf.Float(0, 10, nullable=False),
    "age": sf.Int(0, 99),
}
UNIT = sf.PrivacyUnit("user", max_groups=2, max_rows=6)
SURE = {"epsilon": 600, "delta": "1e-6"}  # so much that no count is off
BY_COUNTRY = "SELECT country, COUNT(*) AS n, SUM(amount) AS s FROM visits GROUP BY country"
BY_CITY = "SELECT city, COUNT(*) AS n, COUNT(DISTINCT user) AS u FROM visits GROUP BY city"


def rows(users=200, seed=3):
    draw = random.Random(seed)
    return [
        {
            "user": user,
            "country": draw.choice(["FR", "DE", "IT", "XX"]),
            "city": draw.choice(["a", "b", "c", None]),
            "amount": 2.5,
            "age": draw.randrange(100),
        }
        for user in range(users)
        for _ in range(draw.randint(1, 20))
    ]


DATA = rows()


def table(source, unit=UNIT, name="visits"):
    return sf.PrivateTable(name, source=source, unit=unit, schema=SCHEMA)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    source = pa.Table.from_pylist(DATA)
    return {
        by: prepare(table(source), folder / f"{'-'.join(by)}.duckdb", group_by=by).path
        for by in (("country",), ("city",), ("country", "city"))
    }


@pytest.fixture(scope="module")
def opened(files):
    """Sessions about the files, one for each grouping and unit: the tests share them."""
    with ExitStack() as stack:

        @functools.cache
        def session(*by, unit=UNIT):
            return stack.enter_context(sf.Session(table(files[by], unit), budget=sf.Budget(10**6, "0.01")))

        yield session


def most(key, k, r):
    """How many rows count at most where k groups of each unit do, and r rows in each."""
    units = defaultdict(Counter)
    for row in DATA:
        units[row["user"]][row[key]] += 1
    held = [sorted((min(n, r) for n in found.values()), reverse=True) for found in units.values()]
    return sum(sum(each[:k]) for each in held)


def test_listed_keys_are_counted_by_a_filter(opened):
    session = opened("country")
    assert session.prepared == {"visits": ("country",)}
    release = session.sql(BY_COUNTRY).release(**SURE)
    assert release.quote.measured.bounding.name == "grouped"
    found = {row["country"]: row for row in release.table.to_pylist()}
    assert list(found) == ["FR", "DE", "IT"]
    for row in found.values():
        assert row["s"] == pytest.approx(2.5 * row["n"], abs=5)
    # Of each unit two of its groups count, three rows in each: never more than that in all.
    assert sum(row["n"] for row in found.values()) <= most("country", 2, 3)


def test_all_rows_count_where_nobody_has_more_than_may(opened):
    session = opened("city", unit=sf.PrivacyUnit("user", max_groups=4, max_rows=80))
    release = session.sql(BY_CITY).release(**SURE)
    assert release.quote.measured.bounding.name == "grouped"
    found = {row["city"]: row for row in release.table.to_pylist()}
    true = Counter(row["city"] for row in DATA)
    people = Counter(city for _, city in {(row["user"], row["city"]) for row in DATA})
    assert {city: row["u"] for city, row in found.items()} == people
    assert {city: row["n"] for city, row in found.items()} == pytest.approx(true, abs=20)


@pytest.mark.parametrize(("k", "r"), [(1, 1), (1, 4), (2, 3), (3, 1)])
def test_units_count_in_as_many_groups_and_with_as_many_rows_as_declared(opened, k, r):
    session = opened("city", unit=sf.PrivacyUnit("user", max_groups=k, max_rows=k * r))
    release = session.sql(BY_CITY).release(**SURE)
    assert release.quote.measured.bounding.name == "grouped"
    found = release.table.to_pylist()
    pairs = Counter((row["user"], row["city"]) for row in DATA)
    groups = Counter(user for user, _ in pairs)
    assert sum(row["u"] for row in found) == sum(min(k, many) for many in groups.values())
    if r == 1:
        assert [row["n"] for row in found] == [row["u"] for row in found]
    assert sum(row["n"] for row in found) <= most("city", k, r)


def test_limits_may_be_changed_without_preparing_again(opened):
    counts = []
    for k in (1, 2, 3, 4):
        session = opened("city", unit=sf.PrivacyUnit("user", max_groups=k, max_rows=k))
        counts.append(sum(session.sql(BY_CITY).release(**SURE).table["u"].to_pylist()))
    assert counts == sorted(set(counts))


def test_both_keys_in_any_order(opened):
    session = opened("country", "city")
    one = session.sql("SELECT country, city, COUNT(*) AS n FROM visits GROUP BY country, city")
    two = session.sql("SELECT city, country, COUNT(*) AS n FROM visits GROUP BY city, country")
    release = one.release(**SURE)
    assert release.quote.measured.bounding.name == "grouped"
    assert two.release(**SURE).free


def test_the_quote_says_what_counts_and_what_is_lost(opened):
    notes = " ".join(opened("country").sql(BY_COUNTRY).quote(epsilon=1).notes)
    assert "in at most 2 groups and with at most 3 rows in each" in notes
    assert "prepared for this grouping" in notes
    assert "before any condition" in notes
    release = opened("country").sql(BY_COUNTRY).release(epsilon=1)
    assert "at most 3 of each user in each of at most 2 groups" in str(release)
    median = "SELECT country, COUNT(*) AS n, MEDIAN(age) AS m FROM visits GROUP BY country"
    quote = opened("country").sql(median).quote(epsilon=1)
    assert "For quantiles at most 6 of its rows count" in " ".join(quote.notes)


FALLBACKS = {
    "SELECT COUNT(*) AS n FROM visits": "prepared",
    "SELECT city, COUNT(*) AS n FROM visits GROUP BY city": "choose",
    "SELECT country, city, COUNT(*) AS n FROM visits GROUP BY country, city": "choose",
    "SELECT country, COUNT(DISTINCT user) AS n FROM visits WHERE age > 9 GROUP BY country": "reweight",
    "SELECT country, COUNT(DISTINCT user) AS n FROM visits GROUP BY country": "grouped",
    "SELECT country, COUNT(*) AS n FROM visits WHERE age > 9 GROUP BY country": "grouped",
    "SELECT country, MEDIAN(age) AS n FROM visits GROUP BY country": "prepared",
    "SELECT country, COUNT(*) AS n FROM visits GROUP BY ROLLUP (country)": "reweight",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=1) country, COUNT(*) AS n FROM visits "
    "GROUP BY country": "grouped",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=1) country, COUNT(*) AS n FROM visits "
    "WHERE age > 9 GROUP BY country": "choose",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=1) country, "
    "SUM(age, contribution_bounds_per_group => (0, 9)) AS n FROM visits GROUP BY country": "choose",
    "SELECT country, COUNT(*) AS n FROM (SELECT user, country FROM visits GROUP BY user, country) AS t "
    "GROUP BY country": "reweight",
}


@pytest.mark.parametrize("text", FALLBACKS)
def test_other_questions_are_held_as_they_would_be_without_a_grouping(opened, text):
    release = opened("country").sql(text).release(**SURE)
    assert (release.quote.recipe.questions[0].bounding.name) == FALLBACKS[text]
    assert release.table.num_rows


def test_who_asks_for_a_way_gets_it(opened):
    session = opened("country")
    for way in ("reweight", "choose"):
        assert session.sql(BY_COUNTRY).quote(epsilon=1, bounding=way).measured.bounding.name == way
    with pytest.raises(InvalidParameter):
        session.sql(BY_COUNTRY).quote(epsilon=1, bounding="grouped")


@pytest.mark.parametrize("way", ["prepared", "grouped"])
def test_ranks_that_are_not_there_are_not_taken_on_trust(opened, way):
    text = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    plain = sf.Session(table(pa.Table.from_pylist(DATA)), budget=sf.Budget(10, "0.01"))
    for session in (opened("country"), plain):
        report = session.sql(text).report
        forced = Query(session, replace(report, child=replace(report.child, bounding=boundings()[way])))
        assert forced.quote(epsilon=1, delta="1e-6").measured.bounding.name == "choose"
    plain.close()


def test_an_answer_is_never_given_for_one_that_was_held_otherwise(opened):
    session = opened("country", unit=sf.PrivacyUnit("user", max_groups=2, max_rows=10))  # nobody else's
    assert not session.sql(BY_COUNTRY).release(epsilon=1).free
    assert not session.sql(BY_COUNTRY).release(epsilon=1, bounding="choose").free
    assert session.sql(BY_COUNTRY).release(epsilon=1).free


def test_googles_limits_are_filters_on_the_same_ranks(opened):
    session = opened("city")
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed={}) city, COUNT(DISTINCT user) AS u "
        "FROM visits GROUP BY city"
    )
    releases = [session.sql(text.format(k)).release(**SURE) for k in (1, 2)]
    assert {each.quote.measured.bounding.name for each in releases} == {"grouped"}
    counts = [sum(each.table["u"].to_pylist()) for each in releases]
    groups = Counter(user for user, _ in {(row["user"], row["city"]) for row in DATA})
    assert counts == [sum(min(k, many) for many in groups.values()) for k in (1, 2)]


def test_the_number_of_groups_can_be_bought(opened):
    release = opened("city").sql(BY_CITY).release(epsilon=100, delta="1e-6", bounds="auto")
    assert release.quote.measured.bounding.name == "grouped"
    limit = release.quote.measured.unit.max_groups
    assert f"in at most {limit} groups" in " ".join(release.bounds)


def test_the_share_of_units_that_were_cut_is_right(opened):
    release = opened("city").sql(BY_CITY).release(**SURE, touched=True)
    pairs = Counter((row["user"], row["city"]) for row in DATA)
    groups = Counter(user for user, _ in pairs)
    cut = {user for (user, _), many in pairs.items() if many > 3} | {u for u, n in groups.items() if n > 2}
    assert release.touched().share == pytest.approx(len(cut) / 200, abs=0.01)


def test_ranks_have_no_name_that_could_be_asked_for(opened):
    session = opened("country")
    for name in ("sfumato rank", "sfumato group", "sfumato place", "sfumato unit"):
        for text in (
            f'SELECT SUM("{name}") AS n FROM visits',
            f'SELECT country, COUNT(*) AS n FROM visits WHERE "{name}" < 3 GROUP BY country',
            f'SELECT "{name}", COUNT(*) AS n FROM visits GROUP BY "{name}"',
        ):
            with pytest.raises(QueryRefused):
                session.sql(text)


@pytest.mark.parametrize("adjacency", ["add-remove", "exchange"])
@pytest.mark.parametrize("by", ["country", "city"])
def test_one_unit_moves_what_is_read_by_no_more_than_is_claimed(tmp_path, by, adjacency):
    few = [row for row in DATA if row["user"] < 8]
    unit = sf.PrivacyUnit("user", max_groups=2, max_rows=6, adjacency=adjacency)
    text = {"country": BY_COUNTRY, "city": BY_CITY}[by]
    answers, measured, tables = {}, None, {}
    for place, other in enumerate((None, *range(8))):
        left = [row for row in few if row["user"] != other]
        if adjacency == "exchange" and other is not None:
            left += [{**row, "user": 99, "country": "FR", "city": "z"} for row in DATA[:30]]
        path, name = tmp_path / f"{place}.duckdb", f"visits{place}"
        prepare(table(pa.Table.from_pylist(left), unit), path, group_by=by, salt=b"same")
        tables[other] = table(path, unit, name)
    with sf.Session(*tables.values(), budget=sf.Budget(10**6, "0.01")) as session:
        for other, held in tables.items():
            asked = text.replace("visits", held.name)
            measured = session.sql(asked).quote(epsilon=1, delta="1e-6").measured
            assert measured.bounding.name == "grouped"
            found = session.vault._read(measured, 0)
            lists = [*found.columns, *([found.units] if by == "city" else [])]
            answers[other] = [dict(zip(found.groups, each.tolist(), strict=True)) for each in lists]
    claims = [(each.l1, each.l2_squared) for each in sensitivities(measured)]
    twice = 2 if adjacency == "exchange" else 1
    claims += [(2 * twice, 2 * twice)] if by == "city" else []
    reached = 0.0
    for other in range(8):
        for whole, less, (l1, l2) in zip(answers[None], answers[other], claims, strict=True):
            moves = [abs(whole.get(key, 0) - less.get(key, 0)) for key in whole.keys() | less.keys()]
            assert sum(moves) <= l1
            assert sum(move * move for move in moves) <= l2
            reached = max(reached, sum(moves) / l1)
    assert reached >= 0.5
