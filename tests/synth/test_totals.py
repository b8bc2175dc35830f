"""Declared public totals hold exactly in what is drawn, beside constraints; bad ones are refused unpaid."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.synth import METHODS, Determines, Totals
from sfumato.synth._model.domain import Domain
from sfumato.synth._model.mending import shared_out
from sfumato.synth._model.model import Model
from sfumato.synth.columns.coarse import as_it_is
from sfumato.synth.columns.fine import Fine
from sfumato.synth.constraints import Constraints
from sfumato.synth.totals import ColumnTotals, _moves
from sfumato.testing import seeded
from synthetic import people, session_of

_TOTALS = [Totals("sex", {"F": 310, "M": 150, None: 40}), Totals("member", {True: 499, False: 0, None: 1})]


def _counts(drawn: Any, name: str) -> dict[Any, int]:
    return dict(Counter(drawn[name].to_pylist()))


@pytest.mark.parametrize("method", METHODS)
def test_what_is_drawn_has_the_totals(method: str, tmp_path: Any) -> None:
    with session_of(people(300)) as session:
        ask = {"epsilon": 1, "delta": 1e-9, "method": method, "constraints": [*_TOTALS, "age >= 30"]}
        made = sf.synth.fit(session, "people", columns=["age", "sex", "member"], **ask)
    assert made.rows == 500
    drawn = made.sample(seed=1)
    assert _counts(drawn, "sex") == {"F": 310, "M": 150, None: 40}
    assert _counts(drawn, "member") == {True: 499, None: 1}
    assert min(age for age in drawn["age"].to_pylist() if age is not None) >= 30
    assert _counts(made.sample(50, seed=1), "sex") == {"F": 31, "M": 15, None: 4}
    assert made.marginal(["sex"])["count"].to_pylist() == pytest.approx([310, 150, 40])
    sf.synth.save(made, tmp_path / "made.arrow")
    assert sf.synth.load(tmp_path / "made.arrow").sample(seed=1).equals(drawn)


@pytest.mark.parametrize("seed", range(40))
def test_raking_depends_on_the_model_and_not_on_how_its_potentials_are_written(seed: int) -> None:
    """What is added to one clique and taken from another is no change, however large it is."""
    rng = simulation(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 9, 3))
    domain, pairs = Domain(("a", "b", "c"), sizes), [(0, 1), (1, 2)]
    plain = {clique: rng.normal(0, 1, domain.shape(clique)) for clique in [*pairs, (1,)]}
    shift = rng.normal(0, rng.choice([1, 100, 10_000]), sizes[1])
    written = dict(plain) | {(1,): plain[1,] - 2 * shift}
    written |= {(0, 1): plain[0, 1] + shift, (1, 2): plain[1, 2] + shift[:, np.newaxis]}
    counts = rng.integers(1, 50, sizes[rng.integers(0, 3)] if seed % 2 else sizes[2])
    place = sizes.index(len(counts))
    totals = ColumnTotals({place: counts})
    one, other = (totals.raked(Model(domain, 100, tables)) for tables in (plain, written))
    for clique in pairs:
        np.testing.assert_allclose(one.marginal(clique), other.marginal(clique), atol=1e-5, rtol=1e-4)
    np.testing.assert_allclose(other.marginal((place,)), counts, atol=1e-5)


@pytest.mark.parametrize("workload", [None, [("age", "sex")], [("age", "member")]])
def test_totals_that_are_nearly_true_leave_other_columns_as_they_are(workload: Any) -> None:
    rows = people(2000)
    sexes = Counter(rows["sex"].to_pylist())
    totals = Totals("sex", {"F": sexes["F"] + 20, "M": sexes["M"] - 20, None: 0})
    ages = np.array(rows["age"].to_pylist())
    with session_of(rows) as session, seeded("nearly"):
        ask: dict[str, Any] = {"epsilon": 2, "delta": 1e-9, "columns": ["age", "sex", "member"]}
        made = sf.synth.fit(session, "people", constraints=["age >= 18", totals], workload=workload, **ask)
    drawn = np.array([age for age in made.sample(seed=0)["age"].to_pylist() if age is not None])
    cuts = [0, 30, 45, 60, 75, 100]
    real, ours = (np.histogram(some, cuts)[0] / len(some) for some in (ages, drawn))
    assert np.abs(real - ours).sum() / 2 < 0.1


def _model(rng: Any) -> Model:
    """Any model of up to four columns, with cells that no row can be in and others that have next to none."""
    sizes = tuple(int(size) for size in rng.integers(1, 5, rng.integers(1, 5)))
    domain = Domain(tuple("abcd"[: len(sizes)]), sizes)
    potentials = {}
    for _ in range(rng.integers(1, 4)):
        clique = tuple(sorted(rng.permutation(len(sizes))[: rng.integers(1, 3)].tolist()))
        table = rng.normal(0, rng.choice([1, 10, 1000]), domain.shape(clique))
        table[rng.random(table.shape) < 0.1] = -np.inf
        potentials[clique] = table
    return Model(domain, 100, potentials)


@pytest.mark.parametrize("seed", range(60))
def test_any_model_is_raked_to_totals_that_some_rows_of_it_have(seed: int) -> None:
    rng = simulation(seed)
    model = _model(rng)
    while not model.is_possible:
        model = _model(rng)
    many = int(rng.integers(1, 400))
    soft = {
        clique: np.where(table > -np.inf, table / 100, table) for clique, table in model.potentials.items()
    }
    softer = Model(model.domain, many, soft)
    others = softer.rows(many, rng)
    named = [place for place in range(len(model.domain)) if rng.random() < 0.7]
    totals = ColumnTotals(
        {place: np.bincount(others[:, place], minlength=model.domain.sizes[place]) for place in named}
    )
    raked = totals.raked(model)
    rows = totals.kept(raked, raked.rows(many, rng), rng)
    for place in named:
        have = np.bincount(rows[:, place], minlength=model.domain.sizes[place])
        assert (have == totals.counts[place]).all()
    for clique, table in model.potentials.items():
        assert (table[tuple(rows[:, place] for place in clique)] > -np.inf).all()


_RULES = [
    ["a = b"],
    ["a <= b", "b <= c"],
    ["a + b = c"],
    ["(a + b + c) % 3 = 0"],
    [Determines("c", "a", {value: value % 5 for value in range(9)})],
]


@pytest.mark.parametrize("rules", _RULES)
@pytest.mark.parametrize("with_zeros", [True, False])
def test_totals_hold_beside_rules_that_tie_columns_to_each_other(rules: list[Any], with_zeros: bool) -> None:
    """A row that cannot have another value beside its others is changed as a whole.

    Without zeros, the model knows nothing of the rules, as where they have no room in it.
    """
    rng = simulation(7)
    columns = [
        Fine(name, "integer", None, Fraction(0), Fraction(last), last, False)
        for name, last in (("a", 4), ("b", 4), ("c", 8))
    ]
    sizes = [column.size for column in columns]
    every = np.array(list(np.ndindex(*sizes)))
    cuts = [as_it_is(column) for column in columns]
    zeros = Constraints.read(columns, rules).zeros(cuts)
    good = every[[all(not zeros[q][tuple(row[list(q)])] for q in zeros) for row in every]]
    for named in ([0], [2], [0, 1]) if with_zeros else ([0], [2]):
        held = good[rng.integers(0, len(good), 150)]
        counts = {place: np.bincount(held[:, place], minlength=sizes[place]) for place in named}
        said = [Totals("abc"[place], dict(enumerate(counts[place].tolist()))) for place in named]
        constraints = Constraints.read(columns, [*rules, *said])
        tables = {q: np.where(table & with_zeros, -np.inf, 0.0) for q, table in zeros.items()}
        model = constraints.totals.raked(Model(Domain(("a", "b", "c"), tuple(sizes)), 150, tables))
        codes = constraints.totals.kept(model, model.rows(150, rng), rng)
        drawn = constraints.drawn(cuts, codes, rng)
        rows = np.stack([drawn[name].to_numpy() for name in "abc"], axis=1)
        for q, table in zeros.items():
            assert not table[tuple(rows[:, place] for place in q)].any()
        for place in named:
            assert (np.bincount(rows[:, place], minlength=sizes[place]) == counts[place]).all()


def test_cells_that_a_model_gives_next_to_nothing_come_back() -> None:
    domain = Domain(("sex", "member"), (2, 2))
    model = Model(domain, 100, {(0, 1): np.array([[0.0, -1500.0], [-1500.0, -20.0]])})
    totals = ColumnTotals({0: np.array([60, 40]), 1: np.array([99, 1])})
    raked = totals.raked(model)
    np.testing.assert_allclose(raked.marginal((0,)), [60, 40], atol=1e-3)
    np.testing.assert_allclose(raked.marginal((1,)), [99, 1], atol=1e-3)


def test_counts_too_small_to_be_divided_by_are_lifted() -> None:
    moves = _moves(np.array([10**9, 3, 0]), np.array([1e-320, 0.0, 7.0]))
    assert moves.tolist() == [700.0, 700.0, -np.inf]


def test_rows_are_shared_out_in_whole_numbers() -> None:
    rng = simulation(3)
    for _ in range(200):
        counts = rng.integers(0, 10 ** int(rng.integers(1, 9)), rng.integers(1, 9))
        counts[0] += 1
        rows = int(rng.integers(0, 10 ** int(rng.integers(1, 9))))
        found = shared_out(counts, rows)
        exact = [Fraction(int(count) * rows, int(counts.sum())) for count in counts]
        assert found.sum() == rows
        assert all(abs(int(one) - other) < 1 for one, other in zip(found, exact, strict=True))
        assert (shared_out(counts, int(counts.sum())) == counts).all()


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        ([Totals("sex", {"F": 1})], "says nothing of 'M'"),
        ([Totals("sex", {"F": 1, "M": 2})], "add None: 0"),
        ([Totals("sex", {"F": 1, "M": 2, "X": 3, None: 0})], "'X', which is no value of 'sex'"),
        ([Totals("member", {1: 1, False: 2, None: 0})], "'1', which is no value of 'member'"),
        ([Totals("seks", {"F": 1})], "which is no column"),
        ([Totals("sex", {"F": -1, "M": 2, None: 0})], "at least 0"),
        ([Totals("sex", {"F": 0.5, "M": 2, None: 0})], "whole number"),
        ([Totals("sex", {"F": 10**10, "M": 2, None: 0})], "a billion"),
        ([Totals("sex", {"F": 10**9, "M": 2, None: 0})], "at most a billion rows"),
        ([Totals("sex", {"F": 0, "M": 0, None: 0})], "at least 1 row"),
        ([Totals("sex", ["F"])], "rows by value"),  # type: ignore[arg-type]
        ([Totals("income", {1.0: 5})], "at most 64 values"),
        ([Totals("age", {1: 5})], "at most 64 values"),
        ([_TOTALS[0], Totals("member", {True: 1, False: 2, None: 0})], "add up to the same: 3 and 500"),
        ([_TOTALS[0], _TOTALS[0]], "given twice"),
        ([_TOTALS[0], "sex = 'M' OR sex IS NULL"], "do not allow"),
        ([*_TOTALS, "member IS NOT NULL AND NOT (sex = 'F' AND member)"], "do not allow"),
    ],
)
def test_totals_that_cannot_be_are_refused_before_anything_is_spent(totals: Any, said: str) -> None:
    with session_of(people(20)) as session:
        with pytest.raises(InvalidParameter, match=said):
            sf.synth.fit(session, "people", epsilon=1, delta=1e-9, constraints=totals)
        assert session.balance().spent == 0


def test_stored_totals_are_checked_again() -> None:
    column = Fine("sex", "text", ("F", "M"), Fraction(0), Fraction(0), 0, False)
    data = Constraints.read([column], Totals("sex", {"F": 1, "M": 2})).to_data()
    assert Constraints.from_data([column], data).totals.rows == 3
    for wrong in ([["totals", 1, [1, 2]]], [["totals", 0, [1]]], [["totals", 0, [1, -2]]], [["totals", 0]]):
        with pytest.raises(InvalidParameter):
            Constraints.from_data([column], wrong)
