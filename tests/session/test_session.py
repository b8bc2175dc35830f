"""The data path end to end: priced, paid, read, made private, answered."""

import threading
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.errors import (
    AccessDenied,
    BudgetExceeded,
    InvalidParameter,
    LedgerMismatch,
    QueryRefused,
    SourceUnusable,
)
from sfumato.testing import exact
from tables import SCHEMA, make, rows

COUNT = "SELECT COUNT(*) AS n FROM visits"
GROUPED = "SELECT country, COUNT(*) AS n, AVG(amount) AS spend FROM visits GROUP BY country"


def test_the_names_of_the_design_work_together(session):
    query = session.sql(GROUPED)
    quote = query.quote(epsilon=0.3)
    assert "0.3" in str(quote)
    assert session.balance().spent == 0
    release = query.release(epsilon=0.3)
    assert release.table.column_names == ["country", "n", "spend"]
    assert release.table["country"].to_pylist() == ["FR", "DE", "IT"]
    assert release.error(0.95).column_names == ["country", "n", "spend"]
    assert list(release.to_pandas().columns) == ["country", "n", "spend"]
    assert release.to_polars().shape == (3, 3)
    assert session.balance().spent == Fraction(3, 10)
    assert session.balance().remaining == Fraction(97, 10)
    assert release.receipt.number > 0
    assert "±" in str(release)
    assert "<table" in release._repr_html_()


def test_answers_are_near_the_truth_and_within_their_bars(by_row, data):
    release = by_row.sql(GROUPED).release(epsilon=100)
    frame = data.to_pandas()
    frame["amount"] = frame["amount"].clip(0, 200)
    true = frame[frame.country != "XX"].groupby("country").amount.agg(["size", "mean"])
    bars = release.error(0.999999).to_pylist()
    for row, bar in zip(release.table.to_pylist(), bars, strict=True):
        assert abs(row["n"] - true.loc[row["country"], "size"]) <= bar["n"]
        assert abs(row["spend"] - true.loc[row["country"], "mean"]) <= bar["spend"] + 1e-6


def test_a_user_unit_weighs_its_rows(session):
    generator = np.random.default_rng(3)
    source = pa.table({"user_id": [1] * 30 + [2] * 2, "country": ["FR"] * 32, "amount": generator.random(32)})
    table = sf.PrivateTable(
        "t",
        source=source,
        unit=sf.PrivacyUnit("user_id", max_groups=3),
        schema={"country": sf.Enum("FR", "DE"), "amount": sf.Float(0, 1)},
    )
    with sf.Session(table, budget=sf.Budget(1000)) as one:
        found = exact(one.sql("SELECT country, COUNT(*) AS n FROM t GROUP BY country"))
        assert found.table["n"].to_pylist() == pytest.approx([5, 0])
        assert found.l1["n"] == found.l2["n"] == 3
        release = one.sql("SELECT COUNT(*) AS n, COUNT(DISTINCT user_id) AS users FROM t").release(
            epsilon=900
        )
        assert release.table.to_pylist() == [{"n": 5, "users": 2}]


def test_the_same_question_is_free_whatever_its_dress(session):
    first = session.sql(GROUPED).release(epsilon=0.5)
    same = [
        "SELECT country, AVG(amount) AS x, COUNT(*) AS y FROM visits GROUP BY country",
        "SELECT AVG(amount) / 2 AS half, country, COUNT(*) FROM visits GROUP BY 2 ORDER BY half DESC LIMIT 1",
        "select v.country, avg(v.amount) a, count(*) c from visits v group by v.country having count(*) > 5",
    ]
    for text in same:
        again = session.sql(text).release(epsilon=0.5)
        assert again.free, text
    assert session.sql(GROUPED).release(epsilon=0.1).free
    assert session.sql(GROUPED).release(epsilon=0.5).table.equals(first.table)
    built = session.table("visits").group_by("country").agg(n=sf.count(), spend=sf.mean("amount"))
    assert built.release(epsilon=0.5).table.equals(first.table)
    assert session.balance().spent == Fraction(1, 2)
    assert not session.sql(GROUPED).release(epsilon=0.6).free
    assert session.balance().spent == Fraction(11, 10)


def test_another_question_is_not_free(session):
    session.sql(GROUPED).release(epsilon=0.5)
    for text in (
        "SELECT country, COUNT(*) AS n FROM visits WHERE age > 3 GROUP BY country",
        "SELECT country, COUNT(*) AS n, AVG(age) AS spend FROM visits GROUP BY country",
    ):
        assert not session.sql(text).release(epsilon=0.5).free


def test_a_new_version_of_the_data_is_another_question(tmp_path, data):
    ledger = tmp_path / "v.ledger"
    budget = sf.Budget(epsilon=2)
    with sf.Session(make(data), budget=budget, ledger=ledger) as one:
        one.sql(COUNT).release(epsilon=1)
    with sf.Session(make(data), budget=budget, ledger=ledger) as one:
        assert one.sql(COUNT).release(epsilon=1).free
    with sf.Session(make(data, version="2"), budget=budget, ledger=ledger) as one:
        assert not one.sql(COUNT).release(epsilon=1).free
        assert one.balance().remaining == 0


def test_a_budget_belongs_to_the_dataset_and_not_to_the_file(tmp_path, data):
    ledger = tmp_path / "v.ledger"
    with sf.Session(make(data), budget=sf.Budget(1), ledger=ledger) as one:
        one.sql(COUNT).release(epsilon=1)
    pq.write_table(data.slice(1), tmp_path / "edited.parquet")
    with (
        sf.Session(make(tmp_path / "edited.parquet"), budget=sf.Budget(1), ledger=ledger) as one,
        pytest.raises(BudgetExceeded),
    ):
        one.sql("SELECT COUNT(*) AS n FROM visits WHERE age > 1").release(epsilon=1)
    with pytest.raises(LedgerMismatch):
        sf.Session(make(data), budget=sf.Budget(2), ledger=ledger)
    with pytest.raises(LedgerMismatch):
        sf.Session(make(data, unit=sf.PrivacyUnit.row()), budget=sf.Budget(1), ledger=ledger)
    wider = sf.PrivateTable(
        "visits",
        source=data,
        unit=sf.PrivacyUnit("user_id", max_groups=3),
        schema=SCHEMA | {"amount": sf.Float(0, 500)},
    )
    with pytest.raises(LedgerMismatch):
        sf.Session(wider, budget=sf.Budget(1), ledger=ledger)


def test_a_fresh_budget_admits_exactly_one_release_at_its_price(data):
    with sf.Session(make(data), budget=sf.Budget("0.3", "1e-6")) as one:
        one.sql(GROUPED).release(epsilon=0.3, delta=1e-6, mechanism="gaussian")
        assert (one.balance().remaining, one.balance().remaining_delta) == (0, 0)
        with pytest.raises(BudgetExceeded, match="Nothing was spent"):
            one.sql(COUNT).release(epsilon=1e-9)


def test_ten_times_a_tenth_is_one(data):
    with sf.Session(make(data), budget=sf.Budget(1)) as one:
        for age in range(10):
            one.sql(f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}").release(epsilon=0.1)
        assert one.balance().remaining == 0


def _fits(one, text):
    try:
        one.sql(text).release(epsilon=0.5)
    except BudgetExceeded:
        return False
    return True


@pytest.mark.parametrize("accountant", ["basic", "zcdp", "gaussian", "rdp"])
def test_every_gate_admits_queries_and_fills_up(data, accountant):
    budget = sf.Budget(epsilon=2, delta=1e-6, accountant=accountant)
    with sf.Session(make(data), budget=budget) as one:
        texts = [f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}" for age in range(100)]
        admitted = sum(_fits(one, text) for text in texts)
        assert 4 <= admitted < 100
        balance = one.balance()
        assert 0 < balance.spent <= 2
        assert balance.retrospective <= float(balance.spent) + 1e-9
        assert one.ledger.verify().ok


def test_an_accuracy_is_reached_at_the_least_price(by_row):
    query = by_row.sql("SELECT country, COUNT(*) AS n FROM visits GROUP BY country")
    quote = query.quote(error={"n": 50})
    assert query.quote(epsilon=quote.epsilon).error(0.95)["n"] <= 50
    assert query.quote(epsilon=quote.epsilon * Fraction(99, 100)).error(0.95)["n"] > 50
    release = query.release(error={"n": 50}, confidence=0.95)
    assert max(release.error(0.95)["n"].to_pylist()) <= 50
    with pytest.raises(QueryRefused):
        by_row.sql("SELECT AVG(age) AS a FROM visits").quote(error={"a": 1})


def test_the_analyst_of_a_session_is_limited_and_can_be_revoked(tmp_path, data):
    ledger = tmp_path / "v.ledger"
    with sf.Session(make(data), budget=sf.Budget(10), ledger=ledger) as steward:
        sf.Steward(steward.ledger).limit("visits", "ada", sf.Budget(1), reason="a project")
        with sf.Session(make(data), ledger=ledger, analyst="ada") as ada:
            ada.sql(COUNT).release(epsilon=1)
            assert ada.balance().remaining == 0
            with pytest.raises(BudgetExceeded):
                ada.sql("SELECT COUNT(*) FROM visits WHERE age > 1").release(epsilon=0.1)
            sf.Steward(steward.ledger).revoke("visits", "ada", reason="project ended")
            with pytest.raises(AccessDenied):
                ada.sql(COUNT).release(epsilon=1)  # not even what was answered before
        assert steward.balance().spent == 1


def test_many_threads_with_one_question_pay_once(session):
    answers = []

    def ask():
        answers.append(session.sql(COUNT).release(epsilon=1).table.to_pylist())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)
    assert session.balance().spent == 1


def test_many_threads_with_many_questions_do_not_overdraw(data):
    with sf.Session(make(data), budget=sf.Budget(5)) as one:
        admitted = []

        def ask(start):
            for age in range(start, 90, 8):
                try:
                    one.sql(f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}").release(epsilon=1)
                    admitted.append(age)
                except BudgetExceeded:
                    pass

        threads = [threading.Thread(target=ask, args=(start,)) for start in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(admitted) == 5
        assert one.balance().remaining == 0


def test_bad_arguments_cost_nothing(session, data):
    query = session.sql(COUNT)
    for bad in (
        {},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": "x"},
        {"epsilon": 1, "error": 3},
        {"epsilon": True},
    ):
        with pytest.raises(sf.errors.SfumatoError):
            query.release(**bad)
    with pytest.raises(InvalidParameter):
        sf.Session(budget=sf.Budget(1))
    with pytest.raises(InvalidParameter):
        sf.Session(make(data), make(data), budget=sf.Budget(1))
    with pytest.raises(SourceUnusable):
        sf.Session(make("missing.parquet"), budget=sf.Budget(1))
    with pytest.raises(SourceUnusable, match="day"):
        sf.Session(make(data.drop_columns("day")), budget=sf.Budget(1))
    with pytest.raises(sf.errors.SfumatoError):
        sf.Session(make(data))  # no budget on record and none given
    assert session.balance().spent == 0


def test_several_tables_have_their_own_budgets_unless_they_share_a_dataset(data):
    other = make(data, name="calls")
    with sf.Session(make(data), other, budget=sf.Budget(1)) as one:
        one.sql(COUNT).release(epsilon=1)
        one.sql("SELECT COUNT(*) AS n FROM calls").release(epsilon=1)
        assert one.balance("visits").remaining == one.balance("calls").remaining == 0
        with pytest.raises(InvalidParameter, match="calls"):
            one.balance()
    first, second = make(data, dataset="people"), make(data, name="calls", dataset="people")
    with sf.Session(first, second, budget=sf.Budget(1)) as one:
        one.sql(COUNT).release(epsilon=1)
        with pytest.raises(BudgetExceeded):
            one.sql("SELECT COUNT(*) AS n FROM calls").release(epsilon=1)


def test_releases_lists_what_was_asked_before(session):
    session.sql(COUNT).release(epsilon=1)
    session.sql(COUNT).release(epsilon=1)
    (receipt,) = session.releases()
    assert receipt.purpose.sql == COUNT


@pytest.mark.parametrize(
    "build",
    [
        lambda s: s.table("visits").agg(n=sf.count()),
        lambda s: s.table("visits").filter((sf.col("sex") == "M") & (sf.col("age") > 18)).agg(n=sf.count()),
        lambda s: s.table("visits").group_by("country", "sex").agg(s=sf.sum("amount"), v=sf.var("age")),
        lambda s: s.table("visits").group_by(sf.Keys(city=["Lyon", "Nice"])).agg(m=sf.mean("amount")),
        lambda s: s.table("visits").agg(x=sf.sum("amount") / sf.count(), u=sf.count_distinct("user_id")),
        lambda s: (
            s.table("visits").filter(~sf.col("new"), sf.col("age").between(20, 30)).agg(n=sf.count("age"))
        ),
        lambda s: s.table("visits").group_by(old=sf.col("age") >= 65).agg(n=sf.count().clip(0)),
        lambda s: s.table("visits").filter(sf.col("day") + 7 >= "2024-03-01").agg(n=sf.count()),
    ],
    ids=range(8),
)
def test_the_builder_makes_the_plans_of_sql(session, build):
    texts = [
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE sex = 'M' AND age > 18",
        "SELECT country, sex, SUM(amount) AS s, VARIANCE(age) AS v FROM visits GROUP BY country, sex",
        "SELECT city, AVG(amount) AS m FROM visits WHERE city IN ('Lyon', 'Nice') GROUP BY city",
        "SELECT SUM(amount) / COUNT(*) AS x, COUNT(DISTINCT user_id) AS u FROM visits",
        "SELECT COUNT(age) AS n FROM visits WHERE NOT new AND age BETWEEN 20 AND 30",
        "SELECT age >= 65 AS old, GREATEST(COUNT(*), 0) AS n FROM visits GROUP BY old",
        "SELECT COUNT(*) AS n FROM visits WHERE day + INTERVAL 7 DAY >= DATE '2024-03-01'",
    ]
    query = build(session)
    released = query.release(epsilon=0.01)
    same = [
        session.sql(text).release(epsilon=0.01) for text in texts if session.sql(text).report == query.report
    ]
    assert len(same) == 1, query.report
    assert same[0].free
    assert same[0].table.equals(released.table)


def test_empty_tables_have_the_same_shape():
    empty = rows(0)
    with sf.Session(make(empty), budget=sf.Budget(100, 1e-6)) as one:
        for text in (COUNT, GROUPED, "SELECT STDDEV(amount) AS s, SUM(age) AS t FROM visits"):
            release = one.sql(text).release(epsilon=1)
            full = rows(50)
            with sf.Session(make(full), budget=sf.Budget(100, 1e-6)) as other:
                same = other.sql(text).release(epsilon=1)
            assert release.table.schema == same.table.schema
            assert release.table.num_rows == same.table.num_rows
            assert release.error(0.9).schema == same.error(0.9).schema


def test_a_stored_answer_is_given_again_only_if_it_is_no_less_accurate(by_row):
    query = by_row.sql("SELECT COUNT(*) AS n, SUM(age) AS s FROM visits")
    query.release(epsilon=5, delta="1e-9", mechanism="gaussian")
    wide = query.quote(epsilon=5, delta="1e-9", mechanism="gaussian").error(0.95)
    narrow = query.quote(epsilon=4, mechanism="laplace").error(0.95)
    assert narrow["s"] < wide["s"]
    better = query.release(epsilon=4, mechanism="laplace")
    assert not better.free
    assert max(better.error(0.95)["s"].to_pylist()) <= narrow["s"]
    assert query.release(epsilon=3, mechanism="laplace").free


def test_what_cannot_be_asked_is_refused_before_it_is_paid(by_row, monkeypatch):
    from sfumato.session import vault

    def nothing(*_args, **_kwargs):
        raise QueryRefused("This has no form in the engine's language.")

    monkeypatch.setattr(vault, "lower", nothing)
    with pytest.raises(QueryRefused):
        by_row.sql(COUNT).release(epsilon=1)
    assert by_row.balance().spent == 0


def test_no_repr_shows_a_row(data):
    secret = pa.table({name: data[name] for name in data.column_names})
    with sf.Session(make(secret), budget=sf.Budget(10)) as one:
        query = one.sql(GROUPED)
        things = [make(secret), one.table("visits"), query, query.quote(epsilon=1), one.balance(), one]
        things.append(query.release(epsilon=1))
        for each in things:
            shown = repr(each) + str(each)
            assert "Brest" not in shown
            assert "2024-" not in shown.replace("2024-01-01", "").replace("2024-12-31", "")
            assert str(data["amount"][0].as_py()) not in shown


def test_datasets_that_differ_in_case_alone_are_one_mistake(tmp_path, data):
    ledger = tmp_path / "v.ledger"
    with sf.Session(make(data, dataset="people"), budget=sf.Budget(1), ledger=ledger):
        pass
    with pytest.raises(LedgerMismatch, match="case"):
        sf.Session(make(data, dataset="People"), budget=sf.Budget(1), ledger=ledger)


def test_an_error_is_promised_only_where_it_can_be_kept(data):
    table = make(data, unit=sf.PrivacyUnit.row(), size=2_000)
    with sf.Session(table, budget=sf.Budget(100)) as one:
        assert one.sql("SELECT AVG(age) AS a FROM visits").quote(error={"a": 1}).epsilon > 0
        for text in (
            "SELECT AVG(age) AS a FROM visits WHERE sex = 'F'",
            "SELECT sex, AVG(age) AS a FROM visits GROUP BY sex",
        ):
            with pytest.raises(QueryRefused, match="depends on the data"):
                one.sql(text).quote(error={"a": 1})


def test_other_gates_say_why_the_noise_is_gaussian(data):
    with sf.Session(make(data), budget=sf.Budget(2, 1e-6, accountant="zcdp")) as one:
        quote = one.sql(COUNT).quote(epsilon=0.5)
        assert quote.mechanism == "gaussian"
        assert "zcdp" in str(quote)


def test_an_analysts_session_opens_no_budget(tmp_path, data):
    ledger = tmp_path / "v.ledger"
    for place in (ledger, None):
        with pytest.raises(AccessDenied, match="only the steward"):
            sf.Session(make(data), budget=sf.Budget(10), ledger=place, analyst="ada")
    with sf.Session(make(data), budget=sf.Budget(1), ledger=ledger):
        pass
    for other in ({"dataset": "fresh"}, {"version": "2"}):
        with pytest.raises(AccessDenied, match="only the steward"):
            sf.Session(make(data, **other), budget=sf.Budget(1), ledger=ledger, analyst="ada")
    with sf.Session(make(data), ledger=ledger, analyst="ada") as ada:
        assert [dataset.name for dataset in ada.ledger.datasets()] == ["visits"]


@pytest.mark.parametrize("budget", [1, "1", {"epsilon": 1}])
def test_a_number_in_place_of_a_budget_is_told_how_to_write_one(budget):
    people = sf.PrivateTable("p", source=pa.table({"x": [1]}), unit=sf.PrivacyUnit.row(), schema={})
    with pytest.raises(sf.errors.InvalidParameter, match=r"such as sf\.Budget\(epsilon=1\), not "):
        sf.Session(people, budget=budget)


@pytest.mark.parametrize("unit", [sf.PrivacyUnit.row(), sf.PrivacyUnit("x")])
@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "parquet", "csv"])
def test_rows_are_counted_where_no_column_may_be_asked_for(kind, unit, tmp_path):
    table = pa.table({"x": [1, 2, 3], "other": ["a", "b", None]})
    pq.write_table(table, tmp_path / "t.parquet")
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    sources = {
        "arrow": lambda: table,
        "pandas": table.to_pandas,
        "polars": lambda: pytest.importorskip("polars").from_arrow(table),
        "parquet": lambda: tmp_path / "t.parquet",
        "csv": lambda: tmp_path / "t.csv",
    }
    people = sf.PrivateTable("p", source=sources[kind](), unit=unit, schema={})
    with sf.Session(people, budget=sf.Budget(10**6)) as session:
        answer = session.sql("SELECT COUNT(*) AS n FROM p").release(epsilon=10**4)
    assert answer.table["n"].to_pylist() == [3]
