"""A fit on a session: one purchase, free again, refused before it is paid; and what is drawn from it."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidParameter, InvalidValue, QueryRefused
from sfumato.synth import METHODS
from synthetic import COLUMNS, people, session_of


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_a_fit_is_one_debit_and_free_again(method: str) -> None:
    with session_of(people(300)) as session:
        quoted = sf.synth.quote(session, epsilon=1, delta=1e-6, method=method)
        assert session.balance().spent == 0
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method=method)
        spent = session.balance().spent
        assert spent == 1
        assert made.receipt is not None
        assert quoted.epsilon == made.epsilon == 1
        again = sf.synth.fit(session, epsilon=1, delta=1e-6, method=method)
        assert session.balance().spent == spent
        assert again.sample(50, seed=1).equals(made.sample(50, seed=1))
        assert "on record" in str(sf.synth.quote(session, epsilon=1, delta=1e-6, method=method))


def test_drawn_rows_have_the_columns_types_and_bounds_of_the_table(fitted: sf.synth.Synthesizer) -> None:
    rows = fitted.sample(2000, seed=0)
    assert rows.column_names == ["who", "age", "sex", "income", "joined", "member"]
    assert rows.schema.types == [pa.int64(), pa.int64(), pa.string(), pa.float64(), pa.date32(), pa.bool_()]
    assert set(rows["sex"].to_pylist()) <= {"F", "M", None}
    assert len(set(rows["who"].to_pylist())) == 2000
    ages, incomes = (rows[name].drop_null().to_numpy() for name in ("age", "income"))
    assert ages.min() >= 0
    assert ages.max() <= 99
    assert incomes.min() >= 0
    assert incomes.max() <= 200_000
    assert 0.05 < rows["income"].null_count / 2000 < 0.15


def test_drawn_rows_are_like_the_table(fitted: sf.synth.Synthesizer) -> None:
    real, drawn = people(4000), fitted.sample(4000, seed=3)
    for name in ("age", "income"):
        ours, theirs = (np.sort(rows[name].drop_null().to_numpy()) for rows in (drawn, real))
        for share in (0.1, 0.25, 0.5, 0.75, 0.9):
            gap = abs(np.quantile(ours, share) - np.quantile(theirs, share))
            assert gap < 0.05 * (theirs[-1] - theirs[0]), (name, share)
    means = [
        np.mean(
            [
                cells[name]
                for cells in rows.select(["sex", "income"]).to_pylist()
                if cells["sex"] == "M"
                for name in ["income"]
                if cells[name] is not None
            ]
        )
        for rows in (drawn, real)
    ]
    assert abs(means[0] / means[1] - 1) < 0.15
    assert abs(fitted.rows - 4000) < 200


def test_the_number_of_rows_is_noisy_and_the_same_seed_draws_the_same_rows(
    fitted: sf.synth.Synthesizer,
) -> None:
    assert fitted.sample(0).num_rows == 0
    assert fitted.sample(7, seed=1).equals(fitted.sample(7, seed=1))
    assert fitted.sample().num_rows == round(fitted.rows)
    for wrong in (-1, 10**10, 1.5, "many"):
        with pytest.raises(InvalidParameter):
            fitted.sample(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("many", [0, 1, 2])
def test_hardly_any_rows_fit_like_any_other(method: str, many: int) -> None:
    with session_of(people(2).slice(0, many)) as session:
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method=method)
        assert made.sample(5).num_rows == 5
        assert made.rows >= 1


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("name", COLUMNS)
def test_one_column_fits_like_any_other(method: str, name: str) -> None:
    with session_of(people(50)) as session:
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method=method, columns=[name])
        assert made.sample(5).column_names == ["who", name]


def test_units_with_several_rows_have_about_as_many_again() -> None:
    rows = people(3000, units=1000)
    with session_of(rows, unit=sf.PrivacyUnit("who", max_rows=8)) as session:
        made = sf.synth.fit(session, epsilon=50, delta=1e-6, columns=["sex", "member"])
        ids = made.sample(3000, seed=0)["who"].to_numpy()
        each = np.bincount(ids)
        real = np.bincount(np.bincount(rows["who"].to_numpy()))
        assert abs(each[each > 0].mean() - 3000 / (1000 - real[0])) < 0.3
        assert each.max() <= 8


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "best"}, "no method"),
        ({"columns": []}, "list of names"),
        ({"columns": ["age", "age"]}, "list of names"),
        ({"workload": [("age", "hieght")]}, "no column"),
        ({"workload": []}, "empty"),
        ({"workload": {("age",): 0}}, "above 0"),
        ({"workload": {("age",): float("inf")}}, "weight"),
        ({"workload": {("age", "sex"): 1e308, ("age", "member"): 1e308}}, "weight"),
        ({"workload": {("age", "sex"): 1e-320, ("age", "member"): 1}, "method": "fixed"}, "weight"),
        ({"workload": {("age",): "much"}}, "weight"),
        ({"workload": {("age",): None}}, "weight"),
        ({"workload": 5}, "sets of columns"),
        ({"workload": "age"}, "sets of columns"),
        ({"workload": [5]}, "sets of columns"),
        ({"columns": 5}, "list of names"),
        ({"columns": [1]}, "list of names"),
        ({"columns": [["age"]]}, "list of names"),
        ({"method": ["mst"]}, "no method"),
        ({"constraints": 5}, "A constraint is"),
        ({"memory": 0}, "memory"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"delta": 0}, "delta"),
    ],
)
def test_what_cannot_be_done_is_refused_before_it_is_paid(given: dict[str, Any], said: str) -> None:
    with session_of(people(5)) as session:
        with pytest.raises(InvalidParameter, match=said):
            sf.synth.fit(session, **({"epsilon": 1, "delta": 1e-6} | given))
        assert session.balance().spent == 0


def test_all_columns_without_bounds_are_named_at_once_and_a_mistyped_table_with_the_nearest() -> None:
    rows = pa.table({"age": [3], "sex": ["F"], "pay": [1.5], "born": [datetime.date(2000, 1, 1)]})
    schema = {"age": sf.Int(), "sex": sf.Text(), "pay": sf.Float(), "born": sf.Date()}
    table = sf.PrivateTable("people", source=rows, unit=sf.PrivacyUnit.row(), schema=schema)
    with sf.Session(table, budget=sf.Budget(epsilon=1, delta=1e-6)) as session:
        with pytest.raises(InvalidParameter, match=r"'age', 'pay', 'born' lie: .*Int\(.*Date\(") as refused:
            sf.synth.quote(session, "people", epsilon=1)
        assert "upper = 120 and start = 2020-01-01" in refused.value.shell
        with pytest.raises(QueryRefused, match=r"There is no table 'peple'. Did you mean people\?"):
            sf.synth.quote(session, "peple", epsilon=1)
        assert session.balance().spent == 0


@pytest.mark.parametrize(
    ("column", "said"),
    [(sf.Int(), "where the values of 'age' lie"), (sf.Float(), "bounds")],
)
def test_a_column_without_bounds_is_refused_and_can_be_left_out(column: Any, said: str) -> None:
    with session_of(people(5), columns=COLUMNS | {"age": column}) as session:
        with pytest.raises(InvalidParameter, match=said):
            sf.synth.fit(session, epsilon=1, delta=1e-6)
        assert session.balance().spent == 0
        sf.synth.fit(session, epsilon=1, delta=1e-6, columns=["sex"])


def test_more_than_what_is_left_is_refused() -> None:
    with session_of(people(5), budget=sf.Budget(epsilon=1, delta="1e-6")) as session:
        assert "more than what is left" in str(sf.synth.quote(session, epsilon=2, delta=1e-6))
        with pytest.raises(BudgetExceeded):
            sf.synth.fit(session, epsilon=2, delta=1e-6)
        assert session.balance().spent == 0


def test_a_query_names_the_rows() -> None:
    with session_of(people(200)) as session:
        made = sf.synth.fit(
            session,
            "SELECT age, sex FROM people WHERE age >= $least",
            parameters={"least": 50},
            epsilon=20,
            delta=1e-6,
        )
        assert np.min(made.sample(500)["age"].drop_null().to_numpy()) >= 50


@pytest.mark.parametrize("method", ["adaptive", "fixed"])
def test_weights_as_far_apart_as_they_may_be_are_fitted(method: str) -> None:
    with session_of(people(50)) as session:
        workload = {("age", "sex"): 1e-9, ("age", "member"): 1e9}
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method=method, workload=workload)
        assert made.sample(5).num_rows == 5


def test_counts_stand_beside_columns_of_the_same_name() -> None:
    rows = pa.table({"count": [7] * 30, "low": [1] * 30})
    schema = {"count": sf.Int(7, 8, nullable=False), "low": sf.Int(0, 1, nullable=False)}
    table = sf.PrivateTable("people", source=rows, unit=sf.PrivacyUnit.row(), schema=schema)
    with sf.Session(table, budget=sf.Budget(100, 1e-6)) as session:
        made = sf.synth.fit(session, epsilon=90, delta=1e-6, method="mst")
    told = made.marginal(["low", "count"])
    assert told.column_names == ["low", "count", "count_2", "low_2", "high"]
    assert told["count"].to_pylist() == [7, 7, 8, 8]
    assert told["count_2"].to_pylist() == pytest.approx([0, 30, 0, 0], abs=2)
    made.picture()


def test_a_file_gives_the_same_back(fitted: sf.synth.Synthesizer, tmp_path: Any) -> None:
    path = tmp_path / "people.arrow"
    sf.synth.save(fitted, path)
    back = sf.synth.load(path)
    assert back.sample(100, seed=4).equals(fitted.sample(100, seed=4))
    assert back.marginal(["sex"]).equals(fitted.marginal(["sex"]))
    assert (back.epsilon, back.delta, back.receipt) == (Fraction(20), fitted.delta, None)
    assert repr(back) == repr(fitted)
    for content in (b"", b"nothing", path.read_bytes()[:-40]):
        path.write_bytes(content)
        with pytest.raises(InvalidValue):
            sf.synth.load(path)
    with pytest.raises(InvalidValue):
        sf.synth.load(tmp_path / "none")
    with pytest.raises(InvalidParameter):
        sf.synth.save(fitted, tmp_path / "no" / "folder")


def test_a_workload_of_questions_is_about_the_columns_that_they_name() -> None:
    with session_of(people(50)) as session:
        ask = {"epsilon": 1, "delta": 1e-9, "columns": ["age", "sex", "member"], "method": "fixed"}
        questions = ["age BETWEEN 20 AND 29 AND sex = 'F'", "age > 50 AND sex = 'M'", "member", "age < 30"]
        made = sf.synth.fit(session, "people", workload=questions, **ask)
        assert sf.synth.quote(
            session, "people", workload={("age", "sex"): 2, "member": 1, "age": 1}, **ask
        ).note.startswith("It is on record")
        assert made.marginal(["age", "sex"])["low"].null_count == 0
        for bad in ("agee > 3", "age +", "age; DROP TABLE people", ""):
            with pytest.raises((InvalidParameter, QueryRefused)):
                sf.synth.quote(session, "people", workload=[bad], **ask)
