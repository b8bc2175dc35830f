"""Two linked tables: one purchase, keys that join, sensible numbers of children, early refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, InvalidValue, SfumatoError
from sfumato.random import simulation
from sfumato.synth._model.domain import Domain
from sfumato.synth._model.model import Model
from sfumato.synth._model.siblings import siblings

NAMES = ["people", "visits"]
PARENT = {"who": sf.Int(), "age": sf.Int(0, 99, nullable=False), "sex": sf.Enum("F", "M")}
CHILD = {
    "who": sf.Int(),
    "kind": sf.Enum("a", "b", "c", nullable=False),
    "cost": sf.Float(0, 100),
}


def rows_of(many: int, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """The old have more visits, and dearer ones of another kind."""
    rng = simulation(seed)
    age = rng.integers(0, 100, many)
    number = np.minimum(rng.poisson(0.2 + age / 20), 8)
    whose = np.repeat(np.arange(many), number)
    old = age[whose] > 60
    kind = np.where(rng.random(len(whose)) < np.where(old, 0.8, 0.1), "c", "a")
    cost = np.clip(rng.normal(20 + 50 * (kind == "c"), 8), 0, 100)
    return (
        pa.table({"who": np.arange(many), "age": age, "sex": np.where(rng.random(many) < 0.5, "F", "M")}),
        pa.table({"who": whose, "kind": kind, "cost": cost}),
    )


def session_of(
    people: pa.Table, visits: pa.Table, *, parent: Any = None, child: Any = None, **more: Any
) -> sf.Session:
    first = sf.PrivateTable(
        "people",
        source=people,
        schema=more.get("parents", PARENT),
        unit=parent or sf.PrivacyUnit("who", max_rows=1),
        **more.get("first", {}),
    )
    second = sf.PrivateTable(
        "visits",
        source=visits,
        schema=more.get("children", CHILD),
        unit=child or sf.PrivacyUnit.via("people", on="who", max_rows=8),
        **more.get("second", {}),
    )
    others = more.get("others", ())
    return sf.Session(first, second, *others, budget=sf.Budget(epsilon=1000, delta="0.01"))


@pytest.fixture(scope="module")
def made() -> sf.synth.SyntheticTables:
    with session_of(*rows_of(4000)) as session:
        return sf.synth.tables(session, NAMES, epsilon=20, delta="1e-6")


def test_a_fit_is_one_debit_and_free_again() -> None:
    with session_of(*rows_of(200)) as session:
        quoted = sf.synth.quote_tables(session, NAMES, epsilon=1, delta="1e-6", method="mst")
        assert session.balance("people").spent == 0
        made = sf.synth.tables(session, NAMES, epsilon=1, delta="1e-6", method="mst")
        assert session.balance("people").spent == quoted.epsilon == 1
        again = sf.synth.tables(session, NAMES[::-1], epsilon=1, delta="1e-6", method="mst")
        assert session.balance("people").spent == 1
        mine, theirs = (tables.sample(50, seed=1) for tables in (made, again))
        assert all(mine[name].equals(theirs[name]) for name in NAMES)
        said = str(sf.synth.quote_tables(session, NAMES, epsilon=1, delta="1e-6", method="mst"))
        assert "on record" in said
        assert "point to none" in said


def test_keys_join_and_values_lie_where_they_are_declared(made: sf.synth.SyntheticTables) -> None:
    drawn = made.sample(3000, seed=0)
    people, visits = drawn["people"], drawn["visits"]
    assert people.column_names == ["who", "age", "sex"]
    assert visits.column_names == ["who", "kind", "cost"]
    assert people["who"].to_pylist() == list(range(1, 3001))
    assert set(visits["who"].to_pylist()) <= set(people["who"].to_pylist())
    assert max(np.bincount(visits["who"])) <= 8
    assert set(visits["kind"].to_pylist()) <= {"a", "b", "c"}
    assert made.sample(0)["visits"].num_rows == 0
    assert sum(table.num_rows > 0 for table in made.sample(1, seed=3).values()) in (1, 2)
    assert abs(made.sample()["people"].num_rows - 4000) < 100
    for wrong in (-1, 10**10, "many"):
        with pytest.raises(InvalidParameter):
            made.sample(wrong)  # type: ignore[arg-type]


def test_children_are_as_many_and_of_the_kind_that_parents_have(made: sf.synth.SyntheticTables) -> None:
    real, drawn = rows_of(4000), made.sample(4000, seed=5)
    pairs = [real, (drawn["people"], drawn["visits"])]
    numbers, kinds = list[Any](), list[Any]()
    for people, visits in pairs:
        ids = people["who"].to_numpy()
        each = np.bincount(np.searchsorted(ids, visits["who"].to_numpy()), minlength=len(ids))
        numbers.append(np.bincount(each, minlength=9) / len(each))
        old = people["age"].to_numpy()[np.searchsorted(ids, visits["who"].to_numpy())] > 60
        kind = visits["kind"].to_numpy(zero_copy_only=False) == "c"
        dear = visits["cost"].to_numpy() > 50
        kinds.append(np.bincount(old * 4 + kind * 2 + dear, minlength=8) / len(old))
    assert np.abs(numbers[0] - numbers[1]).sum() / 2 < 0.03
    assert np.abs(kinds[0] - kinds[1]).sum() / 2 < 0.05


def test_counts_by_the_model_are_those_of_its_rows(made: sf.synth.SyntheticTables) -> None:
    drawn = made.sample(40_000, seed=2)
    scale = made.parents / 40_000
    by_number = made.marginal(["number of visits"])
    assert by_number["number of visits"].to_pylist() == list(range(9))
    each = np.bincount(np.bincount(drawn["visits"]["who"], minlength=40_001)[1:], minlength=9)
    assert np.abs(by_number["count"].to_numpy() - each * scale).max() < 20
    joined = drawn["visits"].join(drawn["people"], "who")
    told = made.marginal(["visits.kind", "people.sex"]).to_pylist()
    for line in told:
        rows = sum(
            kind == line["visits.kind"] and sex == line["people.sex"]
            for kind, sex in zip(joined["kind"].to_pylist(), joined["sex"].to_pylist(), strict=True)
        )
        assert abs(rows * scale - line["count"]) < 40
    assert abs(sum(line["count"] for line in told) - made.children) < 1
    together = made.marginal(["number of visits", "visits.kind"])
    assert abs(together["count"].to_numpy().sum() - made.children) < 1
    assert abs(made.marginal(["people.sex"])["count"].to_numpy().sum() - made.parents) < 1
    for wrong in ([], ["kind"], ["people.sex", "people.sex"]):
        with pytest.raises(InvalidParameter):
            made.marginal(wrong)


def test_a_file_holds_all_of_it(made: sf.synth.SyntheticTables, tmp_path: Any) -> None:
    sf.synth.save(made, tmp_path / "clinic.arrow")
    again = sf.synth.load_tables(tmp_path / "clinic.arrow")
    assert again.receipt is None
    assert repr(again) == repr(made)
    mine, theirs = (tables.sample(100, seed=1) for tables in (made, again))
    assert all(mine[name].equals(theirs[name]) for name in NAMES)
    with pytest.raises(InvalidValue):
        sf.synth.load(tmp_path / "clinic.arrow")


EMPTY = rows_of(0)
SHAPES = {
    "empty tables": EMPTY,
    "parents without children": (rows_of(30)[0], EMPTY[1]),
    "children without parents": (EMPTY[0], rows_of(30)[1]),
    "one parent, no child": (rows_of(1)[0], EMPTY[1]),
    "one parent, many children": (
        rows_of(1)[0],
        pa.table({"who": [0] * 50, "kind": ["a"] * 50, "cost": [1.0] * 50}),
    ),
    "one parent twice": (pa.concat_tables([rows_of(1)[0]] * 2), rows_of(1)[1]),
    "children of others": (rows_of(5)[0], pa.table({"who": [77], "kind": ["a"], "cost": [None]})),
    "values that are not there": (
        pa.table({"who": [1, 2, None], "age": [None, 5, 6], "sex": [None, "X", "F"]}),
        pa.table({"who": [1, 2, 2, None], "kind": ["a", None, "z", "b"], "cost": [float("nan"), -5, 500, 1]}),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("child", [None, sf.PrivacyUnit("who", max_rows=3)])
def test_no_table_makes_an_error(shape: str, child: sf.PrivacyUnit | None) -> None:
    more = {} if child is None else {"second": {"dataset": "people"}}
    with session_of(*SHAPES[shape], child=child, **more) as session:
        made = sf.synth.tables(session, NAMES, epsilon=1, delta="1e-6", method="mst")
        drawn = made.sample(5, seed=0)
        assert drawn["people"].num_rows == 5
        assert set(drawn["visits"]["who"].to_pylist()) <= set(range(1, 6))


def test_keys_of_any_name_are_made_anew() -> None:
    people, visits = rows_of(50)
    with session_of(
        people.append_column("card", people["who"]),
        visits.rename_columns(["holder", "kind", "cost"]).append_column(
            "visit", pa.array(range(len(visits)))
        ),
        child=sf.PrivacyUnit.via("people", on={"holder": "card"}, max_rows=8),
        parents={**PARENT, "card": sf.Int()},
        children={"holder": sf.Int(), "visit": sf.Int(), **{name: CHILD[name] for name in ("kind", "cost")}},
    ) as session:
        with pytest.raises(InvalidParameter, match=r"visits\.visit.*columns="):
            sf.synth.quote_tables(session, NAMES, epsilon=1, delta="1e-6")
        made = sf.synth.tables(
            session, NAMES, epsilon=1, delta="1e-6", method="mst", columns={"visits": ["cost"]}
        )
        drawn = made.sample(20, seed=0)
        assert drawn["people"].column_names == ["who", "card", "age", "sex"]
        assert drawn["visits"].column_names == ["holder", "cost"]


ROW = sf.PrivacyUnit.row()
BAD: dict[str, tuple[dict[str, Any], Any, str]] = {
    "three tables": ({}, ["people", "visits", "more"], "Two tables"),
    "one table": ({}, ["people"], "Two tables"),
    "one twice": ({}, ["people", "people"], "Two tables"),
    "a text": ({}, "people", "Two tables"),
    "no such table": ({}, ["people", "visit"], "no table 'visit'"),
    "no link": ({"child": ROW}, NAMES, "via"),
    "no link between units": ({"child": sf.PrivacyUnit("kind", max_rows=3)}, NAMES, "via"),
    "several parents a unit": ({"parent": sf.PrivacyUnit("who", max_rows=2)}, NAMES, "max_rows=1"),
    "too many children": (
        {"child": sf.PrivacyUnit.via("people", on="who", max_rows=5000)},
        NAMES,
        "smaller max_rows",
    ),
    "no bounds": ({"children": {**CHILD, "cost": sf.Float()}}, NAMES, "declare bounds"),
    "no values": ({"parents": {**PARENT, "sex": sf.Text()}}, NAMES, "declare bounds or a list"),
    "nothing but keys": ({"parents": {"who": sf.Int()}}, NAMES, "people"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_declarations_are_refused_before_the_debit(case: str) -> None:
    declared, names, said = BAD[case]
    with session_of(*rows_of(20), **declared) as session:
        with pytest.raises(SfumatoError, match=said):
            sf.synth.tables(session, names, epsilon=1, delta="1e-6")
        assert session.balance("people").spent == 0


def test_bad_choices_are_refused_before_the_debit() -> None:
    with session_of(*rows_of(20)) as session:
        for wrong in (
            {"columns": ["age"]},
            {"columns": {"visits": "cost"}},
            {"columns": {"visits": ["cost", "cost"]}},
            {"columns": {"visits": ["who"]}},
            {"columns": {"others": ["cost"]}},
            {"workload": [("age", "cost")]},
            {"method": "best"},
            {"memory": 0},
            {"delta": 0},
        ):
            with pytest.raises(SfumatoError):
                sf.synth.tables(session, NAMES, **{"epsilon": 1, "delta": "1e-6", **wrong})
        assert session.balance("people").spent == 0


# ── siblings


def test_each_sibling_by_itself_has_the_distribution_of_the_model() -> None:
    rng = simulation(0)
    domain = Domain(("p", "q", "a", "b"), (3, 2, 4, 3))
    model = Model(
        domain,
        1.0,
        {
            clique: rng.normal(size=domain.shape(clique))
            for clique in ((0, 1), (0, 2), (1, 2), (2, 3), (0, 3))
        },
    )
    many = 60_000
    rows = model.rows(many, rng)
    numbers = rng.integers(1, 5, many)
    every = siblings(model, rows, numbers, 2, rng)
    assert len(every) == numbers.sum()
    assert (every[:, :2] == np.repeat(rows, numbers, axis=0)[:, :2]).all()
    last = every[np.cumsum(numbers) - 1][numbers == 4]
    wanted = model.marginal((0, 1, 2, 3)).ravel()
    counts = np.bincount(np.ravel_multi_index(tuple(last.T), domain.sizes), minlength=wanted.size)
    expected = wanted * len(last)
    assert ((counts - expected) ** 2 / expected).sum() < wanted.size + 6 * np.sqrt(2 * wanted.size)
    alike = (every[np.cumsum(numbers) - 1][numbers == 4] == rows[numbers == 4])[:, 2].mean()
    alone = (model.rows(many, rng)[:, 2] == rows[:, 2]).mean()
    assert alike < alone + 0.25
