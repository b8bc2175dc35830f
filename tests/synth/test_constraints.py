"""Constraints hold in every drawn row, as a database checks them, and bad ones are refused before a debit."""

from __future__ import annotations

import contextlib
import datetime
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.random import simulation
from sfumato.synth import METHODS, Determines, Never
from sfumato.synth._rules.rules import Condition
from sfumato.synth.columns.coarse import Coarse, as_it_is, coarse
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.scales import Scales
from sfumato.synth.constraints import Constraints
from synthetic import people, session_of

_DAYS = Fraction(datetime.date(2020, 1, 1).toordinal() - datetime.date(1970, 1, 1).toordinal())


def _number(name: str, kind: Any, lower: int, upper: int, steps: int, nullable: bool) -> Fine:
    return Fine(name, kind, None, Fraction(lower), Fraction(upper), steps, nullable)


def _columns(rng: Any) -> list[Fine]:
    """Columns of all kinds: with one value a cell and with many, listed, with and without what is missing."""
    null = lambda: bool(rng.random() < 0.5)  # noqa: E731
    return [
        _number("age", "integer", 0, 99, 99, null()),
        _number("years", "integer", -5, 40, 45, null()),
        _number("pay", "integer", 0, 90_000, 200, null()),
        _number("share", "float", 0, 100, 100, null()),
        _number("rate", "float", -50, 50, 70, null()),
        Fine("start", "date", None, _DAYS, _DAYS + 60, 60, null()),
        Fine("stop", "date", None, _DAYS, _DAYS + 900, 90, null()),
        Fine("town", "text", tuple(f"t{at}" for at in range(70)), Fraction(0), Fraction(0), 0, null()),
        Fine("sex", "text", ("F", "M"), Fraction(0), Fraction(0), 0, null()),
        Fine("level", "integer", (1, 2, 5, 9), Fraction(0), Fraction(0), 0, null()),
        Fine("member", "boolean", (False, True), Fraction(0), Fraction(0), 0, null()),
    ]


_NUMBERS, _DATES = ("age", "years", "pay", "share", "rate", "level"), ("start", "stop")


def _constant(name: str, rng: Any) -> str:
    if name in _DATES:
        return f"DATE '{datetime.date(2020, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 60)))}'"
    if name in ("town", "sex"):
        return f"'t{rng.integers(0, 70)}'" if name == "town" else str(rng.choice(["'F'", "'M'"]))
    if name in ("share", "rate"):
        return f"{rng.integers(0, 50)}.{rng.integers(0, 99)}"
    return str(rng.choice([1, 2, 5, 9])) if name == "level" else str(rng.integers(0, 40))


def _leaf(names: list[str], rng: Any) -> str:
    """A comparison with a constant or of two columns, IN or IS NULL, on some columns."""
    name = str(rng.choice(names))
    kin = [other for group in (_NUMBERS, _DATES) if name in group for other in group if other in names]
    sign = str(rng.choice(["<", "<=", ">", ">=", "<>", "="]))
    match int(rng.integers(0, 6)):
        case 0:
            return "member" if name == "member" else f"{name} IN ({_listed(name, rng)})"
        case 1 | 2 if len(kin) > 1:
            other = str(rng.choice([one for one in kin if one != name]))
            return f"{name} {sign.replace('=', '<=') if sign == '=' else sign} {other}"
        case 3 if name in _NUMBERS and len(kin) > 1:
            other = str(rng.choice([one for one in kin if one != name]))
            return f"2 * {name} - 3 {rng.choice(['<', '>='])!s} {other}"
        case 4 if rng.random() < 0.3:
            return f"{name} IS {'NOT ' if rng.random() < 0.7 else ''}NULL"
    return "NOT member" if name == "member" else f"{name} {sign} {_constant(name, rng)}"


def _listed(name: str, rng: Any) -> str:
    return ", ".join(_constant(name, rng) for _ in range(int(rng.integers(1, 4))))


def _condition(rng: Any, columns: list[Fine]) -> str:
    names = [str(name) for name in rng.choice([column.name for column in columns], 2, replace=False)]
    parts = [_leaf(names, rng) for _ in range(int(rng.integers(1, 4)))]
    told = parts[0]
    for part in parts[1:]:
        told = f"({told}) {rng.choice(['AND', 'OR'])!s} ({part})"
    return f"NOT ({told})" if rng.random() < 0.2 else told


def _violated(rows: pa.Table, texts: list[str]) -> dict[str, int]:
    """How many rows break each condition, as DuckDB reads it: a CHECK, which NULL passes."""
    connection = duckdb.connect()
    connection.register("rows", rows)
    counts = {
        text: connection.execute(f"SELECT COUNT(*) FROM rows WHERE NOT ({text})").fetchall()[0][0]
        for text in texts
    }
    connection.close()
    return {text: count for text, count in counts.items() if count}


def _cuts(columns: list[Fine], found: Constraints, rng: Any) -> list[Coarse]:
    return [
        coarse(column, Scales(column.known, (rng.normal(20, 30, column.size),), 5.0), 12, found.allowed(at))
        if column.size > 12
        else as_it_is(column)
        for at, column in enumerate(columns)
    ]


@pytest.mark.parametrize("seed", range(32))
def test_all_drawn_rows_keep_to_random_constraints_whatever_cells_a_model_draws(seed: int) -> None:
    rng = simulation(seed)
    columns = _columns(rng)
    found = None
    while found is None:  # until they do not contradict each other
        texts = [_condition(rng, columns) for _ in range(int(rng.integers(1, 4)))]
        with contextlib.suppress(InvalidParameter):
            found = Constraints.read(columns, texts)
    found = Constraints.from_data(columns, found.to_data())
    cuts = _cuts(columns, found, rng)
    codes = np.stack([rng.integers(0, cut.size, 300) for cut in cuts], axis=1)  # zeros among them
    rows = pa.table(found.drawn(cuts, codes, rng))
    assert not _violated(rows, texts), texts
    for clique, zeros in found.zeros(cuts).items():
        places = tuple(cuts[at].codes(columns[at].places(rows[columns[at].name])) for at in clique)
        assert not zeros[places].any(), (texts, clique)


def test_what_breaks_constraints_is_seen_by_the_check() -> None:
    rng = simulation(1)
    columns = _columns(rng)
    free = Constraints(columns)
    cuts = _cuts(columns, free, rng)
    codes = np.stack([rng.integers(0, cut.size, 300) for cut in cuts], axis=1)
    rows = pa.table(free.drawn(cuts, codes, rng))
    assert _violated(rows, ["age >= 18", "start <= stop", "sex = 'F' OR member"]).keys() == {
        "age >= 18", "start <= stop", "sex = 'F' OR member"
    }  # fmt: skip


CONSTRAINTS = ["age >= 18", "age < 85 OR sex = 'F'", "income >= 100 * age AND income < 150000.5"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("many", [0, 300])
def test_all_methods_keep_to_constraints(method: str, many: int, tmp_path: Any) -> None:
    with session_of(people(300).slice(0, many)) as session:
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method=method, constraints=CONSTRAINTS)
        for seed in range(2):
            assert not _violated(made.sample(500, seed=seed), CONSTRAINTS)
        path = tmp_path / "people.arrow"
        sf.synth.save(made, path)
        back = sf.synth.load(path)
        assert back.constraints.said == made.constraints.said
        assert back.sample(100, seed=1).equals(made.sample(100, seed=1))


def test_constraints_are_part_of_what_is_bought() -> None:
    with session_of(people(20)) as session:
        for constraints in (None, ["age >= 18"], ["age >= 19"], ["age >= 18"]):
            sf.synth.fit(
                session, epsilon=1, delta=1e-6, method="independent", columns=["age"], constraints=constraints
            )
        assert session.balance().spent == 3


def test_a_bin_is_cut_where_a_column_ends() -> None:
    with session_of(people(2000)) as session:
        made = sf.synth.fit(
            session, epsilon=20, delta=1e-6, method="mst", columns=["age", "sex"], constraints="age >= 43"
        )
    told = made.marginal(["age"]).to_pylist()
    below = [row for row in told if isinstance(row["age"], str) and row["age"].startswith("0 to")]
    assert below[0]["age"] == "0 to 42"
    assert below[0]["count"] == 0


def test_a_column_follows_from_another_and_some_values_never_meet() -> None:
    columns = _columns(simulation(3))
    towns = {f"t{at}": "F" if at % 3 else "M" for at in range(65)}
    given = [Determines("town", "sex", towns), Never({"level": [1, 2], "member": True, "age": range(9)[3]})]
    found = Constraints.read(columns, given)
    found = Constraints.from_data(columns, found.to_data())
    rng = simulation(4)
    cuts = _cuts(columns, found, rng)
    codes = np.stack([rng.integers(0, cut.size, 5000) for cut in cuts], axis=1)
    rows = pa.table(found.drawn(cuts, codes, rng)).to_pylist()
    pairs = {(row["town"], row["sex"]) for row in rows if row["town"] in towns and row["sex"]}
    assert all(towns[town] == sex for town, sex in pairs)
    assert len(pairs) > 40
    assert not any(row["level"] in (1, 2) and row["member"] and row["age"] == 3 for row in rows)
    assert any(row["level"] in (1, 2) and row["member"] for row in rows)


def test_values_within_cells_are_as_likely_as_among_those_that_keep_to_the_constraint() -> None:
    columns = [_number("low", "float", 0, 8, 8, False), _number("high", "float", 0, 8, 8, False)]
    found = Constraints.read(columns, ["low <= high"])
    cuts = [as_it_is(column) for column in columns]
    rows = pa.table(found.drawn(cuts, np.full((20_000, 2), 4), simulation(0)))
    low, high = rows["low"].to_numpy() - 3.5, rows["high"].to_numpy() - 3.5
    # The least and the greatest of two numbers between 0 and 1.
    assert abs(low.mean() - 1 / 3) < 0.01
    assert abs(high.mean() - 2 / 3) < 0.01


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["agee >= 18"], "Did you mean age"),
        (["age >= 18", "age < 18", "income > 3"], "No values of age were found"),
        (["age > 120"], "No values of age"),
        (["age + 1"], "neither true nor false"),
        (["1 = 1"], "names no column"),
        (["age >= 'old'"], "mixes"),
        (["SUM(age) > 3"], "aggregate"),
        (["age > 3) GROUP BY (sex"], "more than a condition"),
        (["income < joined"], "mixes"),
        ([3], "A constraint is a condition"),
        ([""], "A constraint is a condition"),
        (["income + age > 3 OR joined > DATE '2020-01-01'"], "combinations of values"),
        ([Determines("age", "hieght", {1: 2})], "no column"),
        ([Determines("income", "sex", {1: "F"})], "too many numbers"),
        ([Determines("age", "sex", {})], "a mapping"),
        ([Determines("age", "sex", {3: "X"})], "no value of 'sex'"),
        ([Determines("age", "sex", {300: "F"})], "maps no value"),
        ([Never({})], "values by column"),
        ([Never({"sex": []})], "no value of 'sex'"),
        ([Never({"sex": 3})], "mixes"),
        ([Never({"sex": ["F", "M", None]})], "No values of sex"),
    ],
)
def test_bad_constraints_are_refused_before_anything_is_spent(given: list[Any], said: str) -> None:
    with session_of(people(5)) as session:
        with pytest.raises((InvalidParameter, QueryRefused), match=said):
            sf.synth.fit(session, epsilon=1, delta=1e-6, constraints=given)
        assert session.balance().spent == 0


def test_conditions_that_hold_only_between_the_points_are_not_taken_for_impossible() -> None:
    columns = [_number("pay", "integer", 0, 90_000, 200, False)]
    found = Constraints.read(columns, ["pay % 7 = 3"])
    assert isinstance(found.rules[0], Condition)
    assert not found.rules[0].plain
    assert found.allowed(0) is None
    rows = found.drawn([as_it_is(columns[0])], np.arange(200).reshape(-1, 1), simulation(0))
    assert all(value % 7 == 3 for value in rows["pay"].to_pylist())
    assert len(set(rows["pay"].to_pylist())) > 150
