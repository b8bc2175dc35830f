"""Estimates with intervals: the weights of a question, the least squares, and how often intervals hold."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy.stats import binom, chi2

import sfumato as sf
from sfumato.errors import InvalidParameter, SfumatoError
from sfumato.fits.meter import Meter, price
from sfumato.random import simulation
from sfumato.synth import METHODS
from sfumato.synth._asked.figures import Figure
from sfumato.synth._asked.question import read
from sfumato.synth._asked.weights import Weights, coarsened, multiplied
from sfumato.synth._model.domain import Domain, Marginal
from sfumato.synth._model.model import Model
from sfumato.synth._private.cells import Cells
from sfumato.synth.columns.coarse import Coarse
from sfumato.synth.columns.fine import Fine
from sfumato.synth.estimates import Parts
from sfumato.synth.fit_examples import plan_of, read_of
from sfumato.synth.fitting import released
from sfumato.synth.methods import residual
from sfumato.synth.methods.base import Learned
from sfumato.synth.sums import Sums
from sfumato.synth.synthesizer import Synthesizer
from sfumato.testing.stream import seeded
from synthetic import people, session_of

SMALL = {
    "age": sf.Int(0, 7),
    "sex": sf.Enum("F", "M"),
    "member": sf.Bool(nullable=False),
    "income": sf.Float(0, 100),
    "city": sf.Enum(*(f"c{at}" for at in range(70)), nullable=False),
}
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE age < 3",
    "SELECT COUNT(*) AS n FROM people WHERE age < 3 AND sex = 'F'",
    "SELECT COUNT(*) AS n FROM people WHERE age % 2 = 0 OR sex IS NULL",
    "SELECT SUM(age) AS n FROM people",
    "SELECT AVG(age) AS n FROM people WHERE sex = 'M'",
    "SELECT AVG(income) AS n FROM people",
    "SELECT SUM(income - 40) AS n FROM people WHERE sex = 'F'",
    "SELECT COUNT(*) AS n FROM people WHERE income < 33.3",
    "SELECT COUNT(*) AS n FROM people WHERE income BETWEEN 20 AND 60 AND age > 2",
    "SELECT COUNT(income) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE city = 'c1'",
    "SELECT COUNT(*) AS n FROM people WHERE city IN ('c0', 'c1', 'c69')",
    "SELECT AVG(CASE WHEN income > 50 THEN 1 ELSE 0 END) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE member",
    "SELECT COUNT(*) AS n FROM people WHERE member AND sex = 'F'",
    "SELECT COUNT(*) AS n FROM people WHERE member AND age < 4",
    "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex",
]


def small(many: int, seed: int) -> pa.Table:
    """Rows of a few columns, among them one with fine cells of numbers and one of listed values."""
    rng = simulation(seed)
    age = rng.integers(0, 8, many)
    sex = np.where(rng.random(many) < 0.2 + age / 12, "F", "M")
    income = np.clip(rng.normal(30 + 5 * age, 12, many), 0, 100)
    income[rng.random(many) < 0.2] = 50.0
    city = np.minimum(rng.geometric(0.4, many) - 1, 69)
    return pa.table(
        {
            "who": np.arange(many),
            "age": pa.array(age, mask=rng.random(many) < 0.05),
            "sex": pa.array(sex, mask=rng.random(many) < 0.1),
            "member": rng.random(many) < 0.1 + 0.7 * (sex == "F"),
            "income": pa.array(income, mask=rng.random(many) < 0.1),
            "city": [f"c{at}" for at in city],
        }
    )


def made_often(
    rows: pa.Table, method: str, epsilon: float, times: int, columns: Any = SMALL
) -> Iterator[Synthesizer]:
    """Synthesizers of the same rows, each with noise of its own; no ledger is asked."""
    plan = plan_of(sf.PrivacyUnit.row(), columns, method=method)
    lines = [
        [None if code >= column.known else int(code) for code in column.places(rows[column.name])]
        for column in plan.columns
    ]
    for _ in range(times):
        yield Synthesizer(
            table="people",
            columns=plan.columns,
            method=method,
            epsilon=Fraction(1),
            delta=Fraction(0),
            released=released(plan, read_of(lines), Meter.alone(price(epsilon, 1e-6))),
            unit="",
            receipt=None,
        )


def asked(made: Synthesizer, question: str) -> dict[str, list[tuple[list[Weights], bool]]]:
    """What rows count for in each number of an answer, by column: the same for all fits of a table."""
    found, parts = read(question, "people", made.columns), Parts(made.columns)
    return {
        name: [
            (parts.of((*found.conditions, *group.conditions), aggregate), aggregate.function == "mean")
            for group in found.groups
        ]
        for name, aggregate in found.aggregates.items()
    }


def truths(rows: pa.Table, question: str) -> dict[str, list[float]]:
    """What the question gives for the rows, by column."""
    with duckdb.connect() as engine:
        engine.register("people", rows)
        found = engine.sql(question).to_arrow_table()
    if "sex" in found.column_names:
        found = found.filter(pc.is_valid(found["sex"])).sort_by("sex").drop_columns("sex")
    return {name: found[name].to_pylist() for name in found.column_names}


def held_often(
    rows: pa.Table, method: str, epsilon: float, times: int, level: float, columns: Any = SMALL
) -> dict[tuple[str, str, int], list[bool]]:
    """Whether intervals held the truth, of those fits that gave one, for each number of each question."""
    questions = [one for one in QUESTIONS if not any(name in one for name in SMALL.keys() - columns.keys())]
    true = {question: truths(rows, question) for question in questions}
    lines, found = dict[str, Any](), dict[tuple[str, str, int], list[bool]]()
    for made in made_often(rows, method, epsilon, times, columns):
        lines = lines or {question: asked(made, question) for question in questions}
        for question, by_name in lines.items():
            for name, numbers in by_name.items():
                for at, (parts, is_mean) in enumerate(numbers):
                    ends = Figure(made.released, made.columns, parts, is_mean=is_mean).ends(level)
                    if ends is not None:
                        value = float(true[question][name][at])
                        found.setdefault((question, name, at), []).append(ends[0] <= value <= ends[1])
    return found


def assert_often(found: Mapping[Any, Sequence[bool]], level: float) -> None:
    """Each of them held as often as it should, at a false-alarm rate of 1e-9 in all."""
    for number, outcomes in found.items():
        least = binom.ppf(1e-9 / len(found), len(outcomes), level)
        assert sum(outcomes) >= least, f"{number}: {np.mean(outcomes):.4f} of {len(outcomes)}"


@pytest.mark.parametrize(
    ("method", "names", "times"), [("fixed", ["age", "sex"], 20), ("independent", ["income"], 8)]
)
def test_intervals_hold_as_often_as_they_say(method: str, names: list[str], times: int) -> None:
    columns = {name: SMALL[name] for name in names}
    with seeded(f"often {method}"):
        found = held_often(small(200, 1), method, 1.0, times, 0.95, columns)
    assert len(found) >= 4
    assert_often(found, 0.95)
    every = [held for outcomes in found.values() for held in outcomes]
    assert np.mean(every) > 0.85


@pytest.mark.stats
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("many", "epsilon"), [(100, 0.3), (1000, 1.0)])
def test_intervals_of_all_kinds_of_questions_hold_as_often_as_they_say(
    method: str, many: int, epsilon: float
) -> None:
    with seeded(f"kinds {method} {many}"):
        found = held_often(small(many, 2), method, epsilon, 100, 0.9)
    assert len(found) >= 12
    assert_often(found, 0.9)


@pytest.mark.stats
@pytest.mark.parametrize("method", ["mst", "adaptive"])
def test_intervals_hold_where_noise_decides_what_is_measured(method: str) -> None:
    """Small columns that depend on nothing: what is chosen follows from the noise of earlier counts."""
    columns = {name: SMALL[name] for name in ("age", "sex", "member")}
    with seeded(f"chosen {method}"):
        found = held_often(small(100, 3), method, 0.5, 300, 0.9, columns)
    assert_often(found, 0.9)


def test_sums_are_the_least_squares_of_all_fresh_counts() -> None:
    rng = simulation(0)
    domain = Domain(("a", "b", "c"), (3, 2, 4))
    cliques = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2), (0, 1)]
    marginals = [
        Marginal(clique, rng.normal(10, 5, domain.shape(clique)), float(rng.uniform(0.5, 3)))
        for clique in cliques
    ]
    learned = Learned(marginals, Model(domain, 1.0, {}), True)
    every = np.eye(domain.cells((0, 1, 2))).reshape(-1, 3, 2, 4)
    for clique, first in [((), 0), ((1,), 0), ((0, 1), 3), ((1, 2), 4), ((0, 2), 5), ((0, 1, 2), 5)]:
        fresh = marginals[first:]
        reads = [every.sum(axis=_without(held.clique)).reshape(24, -1).T / held.sigma for held in fresh]
        design = np.concatenate(reads)
        answers = np.concatenate([held.values.ravel() / held.sigma for held in fresh])
        inverse = np.linalg.pinv(design.T @ design)
        weights = rng.normal(size=(5, domain.cells(clique)))
        spread = weights @ every.sum(axis=_without(clique)).reshape(24, -1).T
        told = Sums(domain, learned, clique).told(weights)
        assert told is not None
        assert np.allclose(told[0], spread @ inverse @ design.T @ answers)
        assert np.allclose(told[1], np.sqrt(np.einsum("ij,jk,ik->i", spread, inverse, spread)))
        counts = Sums(domain, learned, clique).counts()
        cells = Sums(domain, learned, clique).told(np.eye(domain.cells(clique)))
        assert counts is not None
        assert cells is not None
        assert np.allclose(counts[0].ravel(), cells[0])
        assert np.allclose(counts[1], cells[1])
    assert Sums(domain, learned._replace(marginals=marginals[:3]), (0, 1)).told(np.ones((1, 6))) is None


def _without(clique: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(place + 1 for place in range(3) if place not in clique)


def test_noise_that_marginals_share_has_the_size_that_is_said() -> None:
    rng = simulation(1)
    domain = Domain(("a", "b", "c"), (3, 2, 4))
    cells = Cells(domain, [rng.integers(0, size, 50) for size in domain.sizes])
    plan = residual.planned(domain, {(0, 1): 1.0, (1, 2): 3.0, (0,): 1.0}, "max")
    weights = np.concatenate([np.eye(6), [[1, 1, 1, 0, 0, 0], [1, 0, 1, 0, 2, 0], np.ones(6)]])
    true = weights @ cells.counts((0, 1)).values
    off = list[Any]()
    for _ in range(60):
        parts = residual.measured(cells, Meter.alone(price(1, 1e-6)), plan)
        marginals = [parts.marginal(clique) for clique in ((0,), (0, 1), (1, 2))]
        told = Sums(domain, Learned(marginals, Model(domain, 1.0, {}), True, parts.sigmas), (0, 1)).told(
            weights
        )
        assert told is not None
        off.append((told[0] - true) / told[1])
    squares = np.square(off).sum(axis=0)
    assert (chi2.ppf(1e-7, 60) < squares).all()
    assert (squares < chi2.isf(1e-7, 60)).all()


KINDS = {
    "age": sf.Int(0, 7),
    "code": sf.Int(0, 100_000),
    "income": sf.Float(-50, 50, nullable=False),
    "day": sf.Date("2000-01-01", "2010-12-31"),
    "sex": sf.Enum("F", "M"),
    "member": sf.Bool(),
}
CONDITIONS = [
    "age < 3", "age % 2 = 0", "age IS NULL", "code < 51234", "code = 500", "code % 7 = 3", "income > 12.34",
    "income BETWEEN -1.5 AND 3", "income = 7.5", "NOT (income < 0 OR income > 20)", "abs(income) > 10",
    "day >= DATE '2003-05-06'", "year(day) = 2004", "sex = 'F'", "sex IN ('M') OR member", "member",
    "income > age", "income * 2 + code / 1000 < 30 AND age > 1",
    "income > -10 AND income < age AND income > 2 - age", "income < age + 0.01 AND income > age - 0.01",
]  # fmt: skip
VALUES = [
    "1", "age", "code", "income", "income - age", "2 * income + 1", "-income / 4", "code % 5", "age * age",
    "income * income", "CASE WHEN income > 3.3 THEN 5 ELSE -1 END", "member",
    "CASE WHEN income > 3.3 THEN 10 - income ELSE 0 END",
]  # fmt: skip


def test_no_row_counts_for_less_or_more_than_its_cell_allows() -> None:
    """All conditions and values, on rows anywhere within cells: bounds hold for each of them."""
    rng = simulation(5)
    rows = _anywhere(500, rng)
    columns = plan_of(sf.PrivacyUnit.row(), KINDS).columns
    codes = [column.places(rows[column.name]) for column in columns]
    questions = [("income > 3.3", "10 - income"), *((condition, "1") for condition in CONDITIONS)]
    questions += [(CONDITIONS[at], value) for value in VALUES for at in rng.integers(0, len(CONDITIONS), 1)]
    with duckdb.connect() as engine:
        engine.register("people", rows)
        for condition, value in questions:
            found = read(f"SELECT SUM({value}) FROM people WHERE {condition}", "people", columns)
            (call,) = found.aggregates.values()
            try:
                parts = Parts(columns).of(found.conditions, call)
            except InvalidParameter:
                continue
            cuts = [_halved(column.size) for column in columns]
            said = f"CASE WHEN {condition} THEN CAST({value} AS DOUBLE) END"
            true = engine.sql(f"SELECT coalesce({said}, 0) AS n FROM people").to_arrow_table()["n"].to_numpy()
            for weights, own in [
                (parts, codes),
                (
                    [coarsened(part, cuts) for part in parts],
                    [c.codes(k) for c, k in zip(cuts, codes, strict=True)],
                ),
            ]:
                if math.prod(table for part in weights for table in part.every.shape) > 2**22:
                    continue
                whole = multiplied(weights)
                at = tuple(own[place] for place in whole.clique)
                slack = 1e-9 * (1 + np.abs(true))
                assert (whole.low()[at] <= true + slack).all(), (condition, value)
                assert (whole.high()[at] >= true - slack).all(), (condition, value)


def test_a_number_where_two_cells_meet_may_be_in_either() -> None:
    """Cells are computed in doubles: next to an end, rows are where rounding puts them."""
    rng, seen = simulation(11), 0
    for at in range(16):
        lower = float(np.round(rng.normal(0, 100), 2)) * (at % 3 > 0)
        upper = lower + float(rng.choice([10.23, 102.3, 511.5, np.round(rng.uniform(1, 999), 2)]))
        (column,) = plan_of(sf.PrivacyUnit.row(), {"x": sf.Float(lower, upper, nullable=False)}).columns
        place = int(rng.integers(1, column.steps))
        end = lower + (place - 0.5) * (upper - lower) / column.steps
        near = [end]
        for side in (-np.inf, np.inf):
            for _ in range(5):
                near.append(float(np.nextafter(near[-1], side)))
        values = np.array([*near, round(end, 2), round(end, 3)])
        cells = column.places(pa.array(values))
        for constant in values[:: 3 if at % 2 else 4]:
            for sign in ("<", "<=", "=", "<>"):
                found = read(
                    f"SELECT COUNT(*) FROM people WHERE x {sign} {float(constant)!r}", "people", [column]
                )
                (call,) = found.aggregates.values()
                weights = multiplied(Parts([column]).of(found.conditions, call))
                said = {"<": np.less, "<=": np.less_equal, "=": np.equal, "<>": np.not_equal}[sign]
                true = said(values, constant)
                assert (weights.low()[cells] <= true).all(), (lower, upper, constant, sign)
                assert (weights.high()[cells] >= true).all(), (lower, upper, constant, sign)
                seen += 1
    assert seen > 150


def _anywhere(many: int, rng: Any) -> pa.Table:
    """Rows of all kinds, heaped at numbers that conditions name."""
    income = np.where(
        rng.random(many) < 0.3, rng.choice([-1.5, 3.0, 3.3001, 7.5, 12.34, 4.0, 50.0], many), 0.0
    )
    income = np.where(income == 0, rng.uniform(-50, 50, many), income)
    code = np.where(
        rng.random(many) < 0.3, rng.choice([500, 51233, 51234], many), rng.integers(0, 100_001, many)
    )
    first = datetime.date(2000, 1, 1)
    return pa.table(
        {
            "age": pa.array(rng.integers(0, 8, many), mask=rng.random(many) < 0.1),
            "code": pa.array(code, mask=rng.random(many) < 0.1),
            "income": income,
            "day": [first + datetime.timedelta(days=int(day)) for day in rng.integers(0, 4018, many)],
            "sex": pa.array(rng.choice(["F", "M"], many), mask=rng.random(many) < 0.1),
            "member": pa.array(rng.random(many) < 0.5, mask=rng.random(many) < 0.1),
        }
    )


def _halved(size: int) -> Coarse:
    """Runs of three fine cells each."""
    return Coarse(np.arange(size) // 3, np.ones(size))


def test_estimates_are_near_the_table_and_within_their_intervals(fitted: Synthesizer) -> None:
    rows = people(4000)
    question = "SELECT sex, COUNT(*) AS n, COUNT(sex) AS age FROM people GROUP BY sex"
    answer, true = fitted.estimate(question), truths(rows, question)
    assert answer.table.column_names == ["sex", "n", "age"]
    assert answer.table["sex"].to_pylist() == ["F", "M"]
    assert np.allclose(answer.table["n"].to_numpy(), true["n"], atol=60)
    assert np.allclose(answer.table["age"].to_numpy(), true["age"], atol=60)
    mean = "SELECT AVG(age) AS n FROM people"
    assert np.allclose(fitted.estimate(mean).estimate, truths(rows, mean)["n"], atol=1)
    ends, half = answer.interval(), answer.error()
    for name in ("n", "age"):
        low, high, value = (
            table.to_numpy() for table in (ends[f"{name}_low"], ends[f"{name}_high"], answer.table[name])
        )
        assert (low <= value).all()
        assert (value <= high).all()
        assert np.allclose(half[name].to_numpy(), np.maximum(high - value, value - low))
        wider = answer.interval(0.999)
        assert (wider[f"{name}_low"].to_numpy() <= low).all()
    assert answer.to_arrow(errors=True).column_names == [
        "sex", "n", "n_low", "n_high", "age", "age_low", "age_high",
    ]  # fmt: skip
    assert list(answer.to_pandas()["n"]) == answer.table["n"].to_pylist()


def test_an_estimate_says_in_words_what_it_is(fitted: Synthesizer) -> None:
    one = fitted.estimate("SELECT COUNT(*) FROM people WHERE age < $top", parameters={"top": 30})
    assert one.low is not None
    assert one.low <= one.estimate <= (one.high or 0)
    assert "noisy counts of age" in str(one)
    assert "at most 1 of each who" in str(one)
    assert "noisy counts of age" in one._repr_html_()
    assert one.estimands == {"count(*)": "rows"}
    several = fitted.estimate("SELECT sex, COUNT(*) FROM people GROUP BY sex")
    with pytest.raises(InvalidParameter, match="several numbers"):
        _ = several.estimate
    for wrong in (0, 1, 1.5):
        with pytest.raises(InvalidParameter):
            one.interval(wrong)


def test_columns_that_were_not_measured_together_have_no_interval() -> None:
    (made,) = made_often(small(100, 0), "independent", 1.0, 1)
    none = made.estimate("SELECT COUNT(*) AS n FROM people WHERE age < 3 AND sex = 'F'")
    assert none.low is None
    assert none.high is None
    assert none.estimate >= 0
    assert none.interval()["n_low"].to_pylist() == none.error()["n"].to_pylist() == [None]
    assert "age and sex were not measured together" in none.notes["n"]
    assert "No interval" in str(none)
    alone = made.estimate(
        "SELECT COUNT(*) FROM people WHERE age < 3 AND (sex = 'F' OR sex <> 'F' OR sex IS NULL)"
    )
    assert alone.low is not None  # sex changes nothing
    assert "within a bin" in made.estimate("SELECT AVG(sqrt(income)) AS n FROM people").notes["n"]


def test_a_condition_that_cuts_a_bin_is_allowed_for() -> None:
    columns = {name: SMALL[name] for name in ("age", "income")}
    (made,) = made_often(small(2000, 0), "fixed", 200.0, 1, columns)
    question = "SELECT COUNT(*) AS n FROM people WHERE income < 33.3 AND age < 4"
    found = made.estimate(question)
    assert "within bins of income" in found.notes["n"]
    assert found.low is not None
    assert found.high is not None
    assert found.low <= truths(small(2000, 0), question)["n"][0] <= found.high
    assert found.high - found.low < 100


@pytest.mark.parametrize(
    ("condition", "surely", "perhaps"),
    [
        ("city = 'a'", [1, 0, 0, 0], [1, 0, 0, 0]),
        ("city IN ('b', 'others')", [0, 1, 1, 0], [0, 1, 1, 0]),
        ("city IS NULL", [0, 0, 0, 1], [0, 0, 0, 1]),
        ("city = 'Rome'", [0, 0, 0, 0], [0, 0, 1, 0]),
        ("city <> 'Rome'", [1, 1, 0, 0], [1, 1, 1, 0]),
        ("city LIKE 'a%'", [1, 0, 0, 0], [1, 0, 1, 0]),
    ],
)
def test_texts_that_were_not_found_may_be_any(condition: str, surely: list[int], perhaps: list[int]) -> None:
    column = Fine("city", "text", ("a", "b", "others"), Fraction(0), Fraction(0), 0, True, True)
    found = read(f"SELECT COUNT(*) FROM people WHERE {condition}", "people", [column])
    (call,) = found.aggregates.values()
    weights = multiplied(Parts([column]).of(found.conditions, call))
    assert weights.low().tolist() == surely
    assert weights.high().tolist() == perhaps


def test_what_stands_for_all_other_texts_is_said_to() -> None:
    """A rare text may be called so, too: a question for it means all that were not found."""
    rows = pa.table(
        {"who": np.arange(60), "city": ["Bonn"] * 40 + ["others"] + [f"c{at}" for at in range(19)]}
    )
    with session_of(rows, columns={"city": sf.Text()}) as session:
        made = sf.synth.fit(session, epsilon=20, delta="1e-6")
    assert made.columns[0].values == ("Bonn", "others")
    for question in ("WHERE city = 'others'", "WHERE city IN ('Bonn', 'others')", "GROUP BY city"):
        said = " ".join(str(made.estimate(f"SELECT COUNT(*) AS n FROM people {question}")).split())
        assert "As a value of city, 'others' is all texts that the fit did not find." in said
    assert "did not find" not in str(made.estimate("SELECT COUNT(*) FROM people WHERE city = 'Bonn'"))


def test_a_saved_synthesizer_estimates_the_same(fitted: Synthesizer, tmp_path: Any) -> None:
    sf.synth.save(fitted, tmp_path / "people.arrow")
    loaded = sf.synth.load(tmp_path / "people.arrow")
    question = "SELECT member, COUNT(*) AS n, SUM(income) AS s FROM people WHERE age > 30 GROUP BY member"
    ours, theirs = (made.estimate(question) for made in (fitted, loaded))
    assert ours.to_arrow(errors=True).equals(theirs.to_arrow(errors=True))
    assert ours.notes == theirs.notes


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("SELECT COUNT(*) FROM people p JOIN people q ON p.age = q.age", "without JOIN"),
        ("SELECT COUNT(*) FROM people WHERE age < (SELECT AVG(age) FROM people)", "without JOIN"),
        ("SELECT COUNT(*) FROM peple", "Did you mean people"),
        ("SELECT COUNT(*) FROM people WHERE agee < 3", "Did you mean age"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > 3", "HAVING"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n", "ORDER BY"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex LIMIT 1", "LIMIT"),
        ("SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)", "each level by itself"),
        ("SELECT MEDIAN(age) FROM people", "draw rows"),
        ("SELECT SUM(age) / COUNT(*) FROM people", "several results"),
        ("SELECT COUNT(DISTINCT sex) FROM people", "draw rows"),
        ("SELECT income, COUNT(*) FROM people GROUP BY income", "Group by steps"),
        ("SELECT * FROM people", "Name aggregates"),
        ("DELETE FROM people", "nothing is written"),
        ("EXPLAIN SELECT COUNT(*) FROM people", "free"),
        ("SELECT age, FLOOR(income / 2000), COUNT(*) FROM people GROUP BY 1, 2", "groups"),
        ("SELECT COUNT(*) FROM people WHERE income > code AND joined > start", "no declared column"),
    ],
)
def test_other_questions_are_refused_with_what_would_work(
    fitted: Synthesizer, question: str, said: str
) -> None:
    with pytest.raises(SfumatoError, match=said):
        fitted.estimate(question)
