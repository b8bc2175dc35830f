"""The builder: each of its forms makes the plan that its SQL makes, and says what it has no form for."""

import copy
import datetime
import itertools
import pickle
import random

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, QueryRefused, SfumatoError, UnknownName
from sfumato.plan.builder import Selection
from sfumato.plan.prices.plan import Plan
from tables import make, rows

PEOPLE = pa.table({"user_id": range(500), "born": np.arange(500) % 60 + 1940, "sex": ["F", "M"] * 250})
PLACES = pa.table({"city": ["Lyon", "Nice", "Brest"], "zone": ["east", "east", "west"], "age": [1, 2, 3]})
ZONES = pa.table({"zone": ["east", "west"], "tax": [0.5, 1.5]})


@pytest.fixture(scope="module")
def session():
    unit = sf.PrivacyUnit("user_id", max_groups=3)
    tables = (
        make(rows(60, 20), dataset="d"),
        sf.PrivateTable(
            "people",
            source=PEOPLE,
            unit=unit,
            dataset="d",
            schema={"born": sf.Int(1900, 2024), "sex": sf.Enum("F", "M")},
        ),
        sf.PublicTable(
            "places",
            source=PLACES,
            key="city",
            schema={"city": sf.Text(), "zone": sf.Enum("east", "west"), "age": sf.Int(0, 9)},
        ),
        sf.PublicTable(
            "zones", source=ZONES, key="zone", schema={"zone": sf.Enum("east", "west"), "tax": sf.Float(0, 2)}
        ),
    )
    with sf.Session(*tables, budget=sf.Budget(epsilon=100, delta=1e-6)) as opened:
        yield opened


c, n = sf.col, sf.count()

PAIRS = [
    ("SELECT COUNT(*) AS n FROM visits", lambda t: t.agg(n=n)),
    ("SELECT COUNT(*) AS n FROM visits", lambda t: t.agg(n.alias("n"))),
    ("SELECT COUNT(user_id) AS n FROM visits", lambda t: t.agg(n=sf.count("user_id"))),
    ("SELECT COUNT_IF(age > 65) AS n FROM visits", lambda t: t.agg(n=sf.count_if(c("age") > 65))),
    (
        "SELECT SUM(amount) FILTER (WHERE new) AS s FROM visits",
        lambda t: t.agg(s=c("amount").where(c("new")).sum()),
    ),
    (
        "SELECT AVG(age) AS a, MIN(age) AS b, MAX(age) AS c, MEDIAN(age) AS d, STDDEV(age) AS e, "
        "VARIANCE(age) AS f, QUANTILE_CONT(age, 0.9) AS g, COUNT(DISTINCT city) AS h, "
        "COUNT(DISTINCT user_id) AS i, COUNT(city) AS j, SUM(age) AS k FROM visits",
        lambda t: t.agg(
            a=c("age").mean(), b=c("age").min(), c=c("age").max(), d=c("age").median(), e=c("age").std(),
            f=c("age").var(), g=c("age").quantile("0.9"), h=c("city").n_unique(), i=c("user_id").n_unique(),
            j=c("city").count(), k=c("age").sum(),
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE city IN ('Lyon', 'Nice') AND age IS NOT NULL",
        lambda t: t.filter(c("city").is_in(["Nice", "Lyon"]), c("age").is_not_null()).agg(n=n),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE city IS NULL OR age BETWEEN 3 AND 4",
        lambda t: t.filter(c("city").is_null() | c("age").between(3, 4)).agg(n=n),
    ),
    (
        "SELECT AVG(a) AS m FROM (SELECT age * 2 AS a FROM visits)",
        lambda t: t.with_columns(a=c("age") * 2).agg(m=sf.mean("a")),
    ),
    (
        "SELECT AVG(age) AS m FROM (SELECT age + 1 AS age, age AS old FROM visits WHERE age > 3) "
        "WHERE old > 7",
        lambda t: (
            t.filter(c("age") > 3)
            .with_columns((c("age") + 1).alias("age"), old=c("age"))
            .filter(c("old") > 7)
            .agg(m=sf.mean("age"))
        ),
    ),
    (
        "SELECT FLOOR(age / 10) AS age, COUNT(*) AS n FROM visits GROUP BY 1",
        lambda t: t.group_by((c("age") / 10).floor()).agg(n=n),
    ),
    (
        "SELECT age // 10 AS decade, COUNT(*) AS n FROM visits GROUP BY 1",
        lambda t: t.group_by((c("age") // 10).alias("decade")).agg(n=n),
    ),
    (
        "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1",
        lambda t: t.group_by(month=c("day").dt.truncate("1mo")).agg(n=n),
    ),
    (
        "SELECT YEAR(day) AS a, QUARTER(day) AS b, MONTH(day) AS c, COUNT(*) AS n FROM visits "
        "GROUP BY 1, 2, 3",
        lambda t: t.group_by(a=c("day").dt.year(), b=c("day").dt.quarter(), c=c("day").dt.month()).agg(n=n),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE WEEK(day) = 3 OR DAY(day) = 4 OR ISODOW(day) = 5 "
        "OR DAYOFYEAR(day) = 6 OR (day + INTERVAL 1 MONTH) + 2 = DATE '2024-05-01'",
        lambda t: t.filter(
            (c("day").dt.week() == 3) | (c("day").dt.day() == 4) | (c("day").dt.weekday() == 5)
            | (c("day").dt.ordinal_day() == 6)
            | (c("day").dt.offset_by(days=2, months=1) == datetime.date(2024, 5, 1))
        ).agg(n=n),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE LOWER(city) = 'a' OR UPPER(city) = 'B' OR LENGTH(city) > 3 "
        "OR STARTS_WITH(city, 'x') OR ENDS_WITH(city, 'y') OR CONTAINS(city, 'z') OR city LIKE 'L%' "
        "OR city ILIKE '_x'",
        lambda t: t.filter(
            (c("city").str.to_lowercase() == "a") | (c("city").str.to_uppercase() == "B")
            | (c("city").str.len_chars() > 3) | c("city").str.starts_with("x") | c("city").str.ends_with("y")
            | c("city").str.contains("z") | c("city").str.like("L%") | c("city").str.ilike("_x")
        ).agg(n=n),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE SUBSTRING(city, 2, 3) = 'a' OR SUBSTRING(city, 3) = 'b' "
        "OR LEFT(city, 1) = 'c' OR RIGHT(city, 1) = 'd' OR TRIM(city) = 'e' OR LTRIM(city, 'x') = 'f' "
        "OR RTRIM(city) = 'g' OR REPLACE(city, 'ab', 'c') = 'h'",
        lambda t: t.filter(
            (c("city").str.slice(1, 3) == "a") | (c("city").str.slice(2) == "b")
            | (c("city").str.head(1) == "c") | (c("city").str.tail(1) == "d")
            | (c("city").str.strip_chars() == "e") | (c("city").str.strip_chars_start("x") == "f")
            | (c("city").str.strip_chars_end() == "g") | (c("city").str.replace_all("ab", "c") == "h")
        ).agg(n=n),
    ),
    (
        "SELECT SUM(ROUND(amount, 1)) AS a, SUM(CEIL(amount)) AS b, SUM(ABS(age - 50)) AS c, "
        "SUM(COALESCE(age, 3)) AS d, SUM(CAST(new AS INTEGER)) AS e, "
        "SUM(CASE WHEN amount IS NULL THEN NULL ELSE LEAST(GREATEST(amount, 0), 9) END) AS f FROM visits",
        lambda t: t.agg(
            a=c("amount").round(1).sum(), b=c("amount").ceil().sum(), c=abs(c("age") - 50).sum(),
            d=c("age").fill_null(3).sum(), e=c("new").cast(int).sum(), f=c("amount").clip(0, 9).sum(),
        ),
    ),
    (
        "SELECT country, COUNT(*) AS count FROM visits GROUP BY country ORDER BY count DESC",
        lambda t: t.value_counts("country"),
    ),
    (
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city",
        lambda t: t.value_counts("city", sort=False, name="n"),
    ),
    (
        "SELECT country, sex, COUNT(*) AS count FROM visits GROUP BY country, sex",
        lambda t: t.crosstab("country", "sex"),
    ),
    (
        "SELECT city FROM visits GROUP BY city ORDER BY COUNT(DISTINCT user_id) DESC",
        lambda t: t.unique("city"),
    ),
    (
        "SELECT b * 12 AS age_from, LEAST(b * 12 + 11, 110) AS age_to, COUNT(*) AS count FROM "
        "(SELECT CASE WHEN age IS NULL THEN NULL ELSE LEAST(GREATEST(FLOOR(age / 12), 0), 9) END AS b "
        "FROM visits) GROUP BY b",
        lambda t: t.histogram("age", bins=10),
    ),
    (
        "SELECT sex, b * 50 AS amount_from, LEAST(b * 50 + 50, 200) AS amount_to, COUNT(*) AS n FROM "
        "(SELECT sex, CASE WHEN amount IS NULL THEN NULL ELSE LEAST(GREATEST(FLOOR(amount / 50), 0), 3) END "
        "AS b FROM visits WHERE new) GROUP BY sex, b",
        lambda t: t.filter(c("new")).group_by("sex").histogram("amount", bins=4, name="n"),
    ),
    (
        "SELECT CASE b WHEN 0 THEN 0 WHEN 1 THEN 18 ELSE NULL END AS x_from, "
        "CASE b WHEN 0 THEN 17 WHEN 1 THEN 65 ELSE NULL END AS x_to, COUNT(*) AS count FROM "
        "(SELECT CASE WHEN age IS NULL THEN NULL WHEN GREATEST(age, 0) < 0 THEN NULL "
        "WHEN GREATEST(age, 0) < 18 THEN 0 WHEN GREATEST(age, 0) <= 65 THEN 1 ELSE NULL END AS b FROM "
        "visits) GROUP BY b",
        lambda t: t.histogram(c("age").alias("x"), bins=[0, 18, 65]),
    ),
    (
        "SELECT COUNT(*) AS rows, COUNT(age) AS age_count, AVG(age) AS age_mean, STDDEV(age) AS age_std, "
        "MIN(age) AS age_min, MEDIAN(age) AS age_median, MAX(age) AS age_max FROM visits",
        lambda t: t.describe("age"),
    ),
    (
        "SELECT country, COUNT(*) AS n FROM visits GROUP BY country HAVING COUNT(*) > 5 AND country <> 'FR' "
        "ORDER BY n DESC, country LIMIT 2",
        lambda t: (
            t.group_by("country")
            .agg(n=n)
            .filter(c("n") > 5)
            .filter(c("country") != "FR")
            .sort("n", "country", descending=[True, False])
            .head(2)
        ),
    ),
    (
        "SELECT zone, COUNT(*) AS n FROM visits JOIN places USING (city) GROUP BY zone",
        lambda t: t.join("places", on="city").group_by("zone").agg(n=n),
    ),
    (
        "SELECT p.zone, AVG(v.age) AS a, MAX(p.age) AS b FROM visits v LEFT JOIN places p ON v.city = p.city "
        "WHERE v.age > 3 AND p.age < 5 GROUP BY 1",
        lambda t: (
            t.filter(c("age") > 3)
            .join("places", left_on="city", right_on="city", how="left")
            .filter(c("age_right") < 5)
            .group_by("zone")
            .agg(a=sf.mean("age"), b=sf.max("age_right"))
        ),
    ),
    (
        "SELECT p.zone, SUM(amount * tax) AS s FROM visits v JOIN places p ON v.city = p.city "
        "JOIN zones z ON p.zone = z.zone GROUP BY 1",
        lambda t: (
            t.join("places", on="city").join("zones", on="zone")
            .with_columns(paid=c("amount") * c("tax")).group_by("zone").agg(s=sf.sum("paid"))
        ),
    ),
    (
        "SELECT v.sex, COUNT(*) AS n, COUNT(DISTINCT v.user_id) AS u FROM visits v JOIN people p "
        "ON v.user_id = p.user_id WHERE born > 1950 AND p.sex = 'F' GROUP BY v.sex",
        lambda t: (
            t.join("people", on="user_id")
            .filter(c("born") > 1950, c("sex_right") == "F")
            .group_by("sex")
            .agg(n=n, u=sf.count_distinct("user_id"))
        ),
    ),
]  # fmt: skip


def test_each_form_makes_the_plan_of_its_sql(session):
    for text, build in PAIRS:
        asked, built = session.sql(text), build(session.table("visits"))
        assert built.report == asked.report, text
        plans = [Plan.of(query.report, session.tables) for query in (asked, built)]
        prints = {plan.recipe.measured.fingerprint for plan in plans}
        assert len(prints) == 1, text


REFUSED = [
    (lambda t: t.filter(c("agge") > 3), "There is no column 'agge'. Did you mean age?"),
    (lambda t: t.group_by("contry"), "There is no column 'contry'. Did you mean country?"),
    (lambda t: t.agg(n=sf.mean("amuont")), "Did you mean amount?"),
    (lambda t: t.filter(c("user_id") == 3), "count_distinct('user_id')"),
    (lambda t: t.with_columns(c("age") + c("amount")), "alias"),
    (lambda t: t.with_columns(x=3), "with_columns takes expressions"),
    (lambda t: t.group_by(c("age") + c("amount")), "alias"),
    (lambda t: t.agg(sf.count()), "agg takes named aggregates"),
    (lambda t: t.agg(), "agg takes named aggregates"),
    (lambda t: t.agg(n=sf.count_if(True)), "count_if takes a condition"),
    (lambda t: t.group_by("sex").agg(sex=sf.count()), "Two columns of the result are called 'sex'"),
    (lambda t: t.sort("age"), "Single rows are never sorted"),
    (lambda t: t.head(), "Single rows are never shown"),
    (lambda t: t.group_by("sex").limit(3), "Single rows are never shown"),
    (lambda t: t.unique("country"), "declared, and so public: FR, DE, IT"),
    (lambda t: t.unique(), "unique takes columns"),
    (lambda t: t.histogram("city"), "value_counts"),
    (lambda t: t.histogram("day"), "dt.truncate"),
    (lambda t: t.with_columns(free=c("amount").cast(str).cast(float)).histogram("free"), "clip(0, 100)"),
    (lambda t: t.histogram("age", bins=0), "bins must be a whole number"),
    (lambda t: t.histogram("age", bins=[3, 1]), "ascending order"),
    (lambda t: t.join("place", on="city"), "places"),
    (lambda t: t.join("places", on="zone"), "There is no column 'zone' to join on"),
    (lambda t: t.join("places", left_on="city", right_on="zone"), "key of places"),
    (lambda t: t.join("places"), "Say which columns are equal"),
    (lambda t: t.join("places", on="city", how="outer"), "how must be inner or left"),
    (lambda t: t.join("people", left_on="age", right_on="born"), "people"),
    (lambda t: t.with_columns(zone=c("age")).join("places", on="city"), "with_columns after join"),
    (lambda t: t.group_by("sex").agg(n=n).sort("m"), "The result has no column 'm'. Columns: sex, n."),
    (lambda t: t.group_by("sex").agg(n=n).head(1).sort("n"), "before head"),
    (lambda t: t.group_by("sex").agg(n=n).head(1).filter(c("n") > 3), "before head"),
    (lambda t: t.group_by("sex").agg(n=n).head(-1), "whole number"),
    (lambda t: t.group_by("sex").agg(n=n).filter(c("n") + 1), "true or false"),
    (lambda t: t.filter(c("day").dt.truncate("moth") == 3), "Did you mean month?"),
    (lambda t: t.filter(c("day").cast("flaot") == 3), "Did you mean float?"),
    (lambda t: t.filter(c("day").apply("mnth") == 3).agg(n=n), "Did you mean month?"),
]


def test_what_has_no_form_is_refused_with_the_fix(session):
    for build, words in REFUSED:
        with pytest.raises(SfumatoError) as refusal:
            build(session.table("visits"))
        assert words in str(refusal.value), str(refusal.value)
        assert isinstance(refusal.value, QueryRefused | InvalidParameter)
    assert session.balance().spent == 0


UNKNOWN = [
    (lambda t: t.groupby("x"), "group_by"),
    (lambda t: t.collect(), "Single rows are never shown"),
    (lambda t: t.mean("age"), "agg(mean=sf.mean"),
    (lambda t: c("age").isin([1]), "is_in"),
    (lambda t: c("day").dt.yaer(), "Did you mean year?"),
    (lambda t: c("day").str.lower(), "to_lowercase"),
    (lambda t: n.alais("n"), "Did you mean alias?"),
    (lambda t: t.agg(n=n).to_pandas(), "Release it first"),
    (lambda t: t.agg(n=n).relase(), "Did you mean release?"),
    (lambda t: sf.cuont, "Did you mean count?"),
]


def test_a_name_that_does_not_exist_is_one_of_our_errors(session):
    for build, words in UNKNOWN:
        with pytest.raises(UnknownName) as error:
            build(session.table("visits"))
        assert words in str(error.value)
        assert isinstance(error.value, AttributeError)  # so that hasattr and the tools of notebooks work


LISTS = {  # what people do with lists and frames
    "a name": lambda thing: thing["age"],
    "a place": lambda thing: thing[0],
    "a slice": lambda thing: thing[:5],
    "a condition": lambda thing: thing[c("age") > 3],
    "a length": len,
    "a loop": list,
    "a search": lambda thing: "age" in thing,
}


@pytest.mark.parametrize("habit", LISTS)
def test_what_is_no_list_says_what_to_write_instead(session, habit):
    table, agg = session.table("visits"), session.table("visits").agg(n=n)
    for thing in (table, agg, agg.release(epsilon=1), c("age"), n, session):
        with pytest.raises(InvalidParameter) as error:
            LISTS[habit](thing)
        assert len(str(error.value)) > 30


def test_a_column_is_nearer_than_a_method(session):
    table = session.table("visits").with_columns(old=c("age") > 64)
    for name, column in [*((name, name) for name in table.table.schema if name != "new"), ("agee", "age")]:
        for look in (lambda name=name: getattr(table, name), lambda name=name: table[name]):
            with pytest.raises(UnknownName) as error:
                look()
            assert f'sf.col("{column}")' in str(error.value)
    with pytest.raises(UnknownName, match="Did you mean filter"):
        table.fliter  # noqa: B018


def test_lists_and_comparisons_of_columns_and_aggregates():
    for wrong in (("a", "b"), ("ab",), (3,)):
        with pytest.raises(InvalidParameter, match="takes a list"):
            c("age").is_in(*wrong)
    for compare in (lambda: n > 5, lambda: n <= 5, lambda: n < n):
        with pytest.raises(InvalidParameter, match="once it is released"):
            compare()


def test_a_question_tells_what_it_asks(session):
    table = session.table("visits")
    built = repr(table.filter(c("age") >= 30).group_by("country").agg(n=n, spend=sf.mean("amount")))
    assert built.startswith("Question: rows of visits where age >= 30, by country\nn      rows, ")
    assert "\nspend  mean of amount over rows" in built
    for text, build in PAIRS[::5]:
        asked, made = (repr(query).split("\n") for query in (session.sql(text), build(table)))
        assert asked[0].startswith("Question: SELECT")
        told = [
            [line for line in lines if not line.startswith(("Question:", "     "))] for lines in (asked, made)
        ]
        assert told[0] == told[1]  # what the columns estimate
        assert max(map(len, asked + made)) <= 80
        assert "Call(" not in "".join(made)


WIDE = [-50, -1, 0, 1, 9, 10, 11, 49, 50, 51, 98, 99, 100, 400, None]
BINS = [1, 10, 7, [-10, 0, 50, 100], [0, 10.5, 99], [10, 50], [-400, -1]]


@pytest.mark.parametrize("kind", [sf.Int, sf.Float])
def test_bins_of_both_kinds_hold_the_values_that_are_held_within_the_bounds(kind):
    """A value counts in the bin where it lies once it is within the bounds, or nowhere."""
    rows = pa.table(
        {"id": range(len(WIDE)), "x": pa.array(WIDE, pa.float64() if kind is sf.Float else pa.int64())}
    )
    unit = sf.PrivacyUnit("id", max_groups=1)
    table = sf.PrivateTable("t", source=rows, unit=unit, schema={"x": kind(0, 99)})
    held = [min(max(value, 0), 99) for value in WIDE if value is not None]
    with sf.Session(table, budget=sf.Budget(10**9)) as session:
        for bins in BINS:
            found = session.table("t").histogram("x", bins).release(epsilon=10**5).table.to_pylist()
            last = found[-1]
            for row in found:
                low, high = row["x_from"], row["x_to"]
                closed = kind is sf.Int or row is last
                inside = [v for v in held if low <= v and (v <= high if closed else v < high)]
                assert row["count"] == len(inside), (bins, row)
            assert last["x_to"] <= (99 if isinstance(bins, int) else bins[-1])
            if isinstance(bins, int):
                assert sum(row["count"] for row in found) == len(held)


def test_tools_that_look_for_methods_find_none(session):
    table = session.table("visits")
    for thing in (c("age"), n, c("age").dt, table, table.agg(n=n)):
        assert not hasattr(thing, "__array__")
    assert copy.deepcopy(c("age")).expression == c("age").expression
    assert pickle.loads(pickle.dumps(n)).calls == n.calls


def test_released_groups_are_shaped_at_no_cost(session):
    before = session.balance().spent
    query = session.table("visits").value_counts("country")
    paid = query.release(epsilon=20)
    free = query.sort("country").head(2).release(epsilon=20)
    assert free.free
    assert free.table["country"].to_pylist() == ["DE", "FR"]
    assert paid.table["count"].to_pylist() == sorted(paid.table["count"].to_pylist(), reverse=True)
    assert session.balance().spent - before == 20
    binned = session.table("visits").histogram("age", bins=10).release(epsilon=20).table
    assert binned["age_from"].to_pylist() == list(range(0, 120, 12))
    assert binned["age_to"].to_pylist() == [*range(11, 119, 12), 110]
    found = session.table("visits").unique("city").release(epsilon=20, delta="1e-7").table
    assert found.column_names == ["city"]
    assert set(found["city"].to_pylist()) <= {"Lyon", "Nice", "Brest"}


def test_listed_combinations_come_in_the_order_of_all_of_them():
    draw = random.Random("combinations")
    schema = {"a": sf.Int(0, 4), "b": sf.Enum("y", "x", "z"), "c": sf.Bool(), "d": sf.Int()}
    table = sf.PrivateTable("t", source={}, unit=sf.PrivacyUnit.row(), schema=schema)
    values = {"a": range(5), "b": ("y", "x", "z"), "c": (False, True), "d": (7, 5, 9, 8)}
    for _ in range(30):
        names = draw.sample([*values], draw.randint(2, 4))
        rows = [*itertools.product(*(values[name] for name in names[:2]))]
        keys = sf.Keys.of(names[:2], draw.sample(rows, draw.randint(1, len(rows) - 1)))
        others = [sf.Keys(d=values["d"]) if name == "d" else name for name in names[2:]]
        node = Selection(table, lambda report: report).group_by(keys, *others).agg(n=sf.count()).child
        lists = [key.values for key in node.keys]
        every = [row for row in itertools.product(*lists) if row[:2] in keys.rows]
        assert [*(node.combinations or itertools.product(*lists))] == every
