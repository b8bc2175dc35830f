"""A check of a synthetic table: one purchase, an honest interval, a claim that neighbours keep."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.registry import examined, subjects
from sfumato.errors import BudgetExceeded, InvalidParameter, QueryRefused
from sfumato.fits.meter import Meter
from sfumato.random import simulation
from sfumato.synth import checking
from sfumato.synth._private.misfits import WHOLE, parts_of
from sfumato.synth.check_examples import check_of, close_to, pair_of
from sfumato.synth.checked import Noisy, SynthCheck
from sfumato.synth.checking import measured
from sfumato.synth.examples import examples
from sfumato.synth.fit_examples import fits
from sfumato.testing.fits import check_answers, check_noise
from sfumato.testing.mutants.synth import CHECK_MUTANTS, planted_in_synth
from sfumato.testing.stream import seeded
from synthetic import COLUMNS, people, session_of

FITS = {fit.name: fit for fit in fits()}
ONE, TRIPLE = "synth independent: one more", "synth fixed: a triple, one more"
MST, WIDE = "synth mst: one more", "synth mst: many cells, somebody with three rows"
SWAP = "synth adaptive: two rows exchanged"
CASES = [
    *[("misfits as if a unit had one row", name) for name in (WIDE, SWAP)],
    *[("several misfits as if they were one", name) for name in (MST, WIDE, TRIPLE)],
    ("misfits added up as if they were a mean", MST),
    ("misfits beside the exact number of rows", MST),
    ("counts of a check as if a unit had one row", WIDE),
    *[("half the noise of a check", name) for name in (ONE, SWAP)],
]


# ── what it says


def slow_error(made: sf.synth.Synthesizer, rows: Any) -> dict[tuple[str, str], float]:
    """The total variation of each pair of columns, by a loop over rows."""
    released = made.released
    codes = {
        column.name: cut.codes(column.places(rows[column.name]))
        for column, cut in zip(made.columns, released.cuts, strict=True)
    }
    found = {}
    for pair in itertools.combinations(range(len(made.columns)), 2):
        names = tuple(made.columns[at].name for at in pair)
        chances = released.learned.model.marginal(pair) / made.rows
        counts = np.zeros(chances.shape)
        for cell in zip(*(codes[name] for name in names), strict=True):
            counts[cell] += 1
        found[names] = float(np.abs(counts / rows.num_rows - chances).sum() / 2)
    return found


def test_a_check_is_one_debit_near_the_truth_and_free_again(tmp_path: Any) -> None:
    rows = people(500)
    with session_of(rows) as session, seeded("check"):
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method="independent")
        before = session.balance().spent
        quoted = sf.synth.quote_check(session, made, epsilon=20, delta=1e-6)
        assert session.balance().spent == before
        checked = sf.synth.check(session, made, epsilon=20, delta=1e-6)
        spent = session.balance().spent
        assert spent == before + 20
        assert quoted.epsilon == checked.epsilon == 20
        path = tmp_path / "made.arrow"
        sf.synth.save(made, path)
        again = sf.synth.check(session, sf.synth.load(path), epsilon=10, delta=1e-6)
        assert session.balance().spent == spent
        assert "on record" in str(sf.synth.quote_check(session, made, epsilon=20, delta=1e-6))
        assert again.to_dict() == checked.to_dict()
        truth = slow_error(made, rows)
        low, high = checked.interval(0.999)
        assert low <= np.mean(list(truth.values())) <= high
        assert high - low < 0.05
        assert abs((high - low) / 2 / quoted.half_width - 1) < 1
        for line in checked.by_column(0.999).to_pylist():
            own = np.mean([error for names, error in truth.items() if line["column"] in names])
            assert line["low"] <= own <= line["high"]
            assert line["high"] - line["low"] < 0.1
        pairs = list(itertools.combinations(rows.column_names[1:], 2))
        sf.synth.check(session, made, epsilon=20, delta=1e-6, workload=pairs[::-1])
        assert session.balance().spent == spent  # all pairs, in whatever order they are named
        other = sf.synth.fit(session, epsilon=2, delta=1e-6, method="independent")
        sf.synth.check(session, other, epsilon=1, delta=1e-6)  # of another model it is another check
        assert session.balance().spent > spent + 2
    assert str(checked).startswith("Over 10 sets of columns of people, the total variation")
    assert max(map(len, str(checked).splitlines())) <= 80


def test_a_close_model_is_told_from_a_far_one() -> None:
    with session_of(people(1000)) as session, seeded("close"):
        near, far = (
            sf.synth.fit(session, epsilon=20, delta=1e-6, method=method, columns=["sex", "income"])
            for method in ("mst", "independent")
        )
        ours, theirs = (sf.synth.check(session, made, epsilon=4, delta=1e-6) for made in (near, far))
    assert ours.interval()[1] < theirs.interval()[0]


def test_where_one_set_is_checked_no_count_by_its_columns_is_off_by_more() -> None:
    rows = people(800)
    with session_of(rows) as session, seeded("one set"):
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method="independent", columns=["sex", "member"])
        checked = sf.synth.check(session, made, epsilon=4, delta=1e-6, workload=[("sex", "member")])
    (truth,) = slow_error(made, rows).values()
    model = made.released.learned.model.marginal((0, 1)).ravel()
    real = np.zeros(model.size)
    cells = [
        cut.codes(column.places(rows[column.name]))
        for column, cut in zip(made.columns, made.released.cuts, strict=True)
    ]
    np.add.at(real, np.ravel_multi_index(cells, made.released.domain.sizes), 1)
    worst = max(abs(np.dot(chosen, real - model)) for chosen in itertools.product((0, 1), repeat=model.size))
    assert worst <= checked.misfit(0.999)
    assert 2 * truth * 800 <= checked.misfit(0.999) + abs(made.rows - 800)
    assert checked.misfit(0.999) < 2 * truth * 800 + 200


def test_a_bought_check_gives_intervals_where_nothing_was_measured() -> None:
    rows = people(3000, 5)
    with session_of(rows) as session:
        made = sf.synth.fit(session, "people", epsilon=20, delta=1e-9, method="independent")
        other = sf.synth.fit(session, "people", epsilon=21, delta=1e-9, method="independent")
        bought = sf.synth.check(session, made, epsilon=5, delta=1e-9, workload=[("sex", "member")])
        several = sf.synth.check(session, made, epsilon=5, delta=1e-9, workload=[("sex", "member"), "age"])
    true = sum(row["sex"] == "F" and not row["member"] for row in rows.to_pylist())
    ask = "SELECT COUNT(*) FROM people WHERE sex = 'F' AND NOT member"
    assert made.estimate(ask).low is None
    assert made.estimate(ask, check=several).low is None
    told = made.estimate(ask, check=bought)
    low, high = told.low or np.nan, told.high or np.nan
    assert low < true < high
    assert high - low <= 2 * bought.misfit() + 1e-6
    assert "found to be" in str(told)
    average = "SELECT AVG(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) FROM people WHERE member"
    mean = made.estimate(average, check=bought)
    share = np.mean([row["sex"] == "F" for row in rows.to_pylist() if row["member"]])
    assert (mean.low or np.nan) < share < (mean.high or np.nan)
    assert made.estimate("SELECT COUNT(*) FROM people WHERE sex = 'F' AND age < 30", check=bought).low is None
    assert "about the rows that the check read" in " ".join(str(told).split())
    with pytest.raises(InvalidParameter, match="of another synthetic table"):
        other.estimate(ask, check=bought)


def test_models_with_the_same_public_totals_are_told_apart() -> None:
    totals = sf.synth.Totals("sex", {"F": 20, "M": 20, None: 0})
    with session_of(people(40)) as session:
        ask = {"delta": 1e-9, "method": "independent", "constraints": [totals]}
        one, other = (sf.synth.fit(session, "people", epsilon=price, **ask) for price in (1, 2))
        bought = sf.synth.check(session, one, epsilon=1, delta=1e-9, workload=[("sex", "member")])
    assert one.rows == other.rows
    with pytest.raises(InvalidParameter, match="of another synthetic table"):
        other.estimate("SELECT COUNT(*) FROM people WHERE sex = 'F' AND member", check=bought)


def test_texts_that_the_fit_found_are_compared_too() -> None:
    rows = people(300)
    with session_of(rows, columns=COLUMNS | {"sex": sf.Text()}) as session, seeded("found"):
        made = sf.synth.fit(session, epsilon=20, delta=1e-6, columns=["sex", "member"], method="independent")
        low, high = sf.synth.check(session, made, epsilon=8, delta=1e-6).interval(0.999)
    (truth,) = slow_error(made, rows).values()
    assert low <= truth <= high


@pytest.mark.parametrize("name", [MST, SWAP])
def test_intervals_hold_as_often_as_they_say(name: str) -> None:
    fit = FITS[name]
    with seeded(f"hold {name}"):
        pair = check_of(fit, close_to(fit, "right"))
        truth = truth_of(pair)
        hits, often = 0, 100
        for _ in range(often):
            checked = result_of(pair)
            low, high = checked.interval(0.8)
            hits += low <= truth <= high
    assert hits / often >= 0.8 - 6 * (0.16 / often) ** 0.5


def truth_of(pair: Any) -> float:
    """The mean total variation, exactly."""
    plan, released = pair.plan, pair.plan.synthesizer.released
    codes = [
        cut.codes(column.codes(*cells))
        for cut, column, cells in zip(
            released.cuts,
            plan.synthesizer.columns,
            zip(pair.left.columns, pair.left.missing, strict=True),
            strict=True,
        )
    ]
    found = []
    for clique, chances in zip(plan.cliques, plan.chances, strict=True):
        counts = np.zeros(chances.shape)
        np.add.at(counts, tuple(codes[at] for at in clique), 1)
        found.append(np.abs(counts / len(codes[0]) - chances).sum() / 2)
    return float(np.average(found, weights=plan.weights))


def result_of(pair: Any) -> SynthCheck:
    plan = pair.plan
    found = measured(plan, pair.left, Meter.alone(pair.loss, exchange=plan.wanted.exchange))
    counting, one, _ = found["sigmas"].tolist()
    mean = Noisy(float(found["mean"][0]), one, plan.rounded(plan.weights))
    receipt: Any = None
    price = pair.loss.point
    return SynthCheck("people", 1, float(found["rows"][0]), counting, mean, {}, 1.0, "", 0.0, *price, receipt)


def test_weights_add_up_to_the_whole_and_are_near_what_was_said() -> None:
    draw = simulation(3)
    for size in (1, 2, 7, 500):
        weights = (10 ** draw.uniform(-6, 6, size)).tolist()
        parts = parts_of(weights)
        assert sum(parts) == WHOLE
        assert np.abs(np.array(parts) / WHOLE - np.array(weights) / sum(weights)).max() < 1e-9


def _part(session: sf.Session) -> list[tuple[Any, Any]]:
    chosen = session.table("people").filter(sf.col("age") >= 50)
    return [
        ("SELECT age, sex FROM people WHERE age >= 50", None),
        ("SELECT age, sex FROM people WHERE age >= $least", {"least": 50}),
        (chosen, None),
    ]


@pytest.mark.parametrize("place", range(3))
def test_rows_are_those_of_the_fit_unless_others_are_named(place: int, tmp_path: Any) -> None:
    rows = people(300)
    truth = sum(age is not None and age >= 50 for age in rows["age"].to_pylist())
    assert 60 < truth < 240
    with session_of(rows) as session, seeded(f"rows {place}"):
        asked, parameters = _part(session)[place]
        paid: dict[str, Any] = {"epsilon": 9, "delta": 1e-6}
        made = sf.synth.fit(session, asked, parameters=parameters, method="independent", **paid)
        checked = sf.synth.check(session, made, **paid)
        assert abs(checked.rows - truth) < 20
        spent = session.balance().spent
        named = sf.synth.check(session, made, asked, parameters=parameters, **paid)
        assert named.to_dict() == checked.to_dict()
        assert session.balance().spent == spent
        sf.synth.save(made, tmp_path / "part")
        read = sf.synth.load(tmp_path / "part")
        with pytest.raises(InvalidParameter, match="a part of 'people', and its file does not say which"):
            sf.synth.check(session, read, **paid)
        again = sf.synth.check(session, read, asked, parameters=parameters, **paid)
        assert again.to_dict() == checked.to_dict()
        assert session.balance().spent == spent


# ── what is refused


def test_what_cannot_be_checked_is_refused_before_it_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    with session_of(people(20)) as session:
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method="independent")
        spent, paid = session.balance().spent, {"epsilon": 1, "delta": 1e-6}
        for wrong, said in [
            ({"workload": [("age", "hieght")]}, "no column"),
            ({"workload": []}, "empty"),
            ({"workload": {("age",): float("inf")}}, "finite number"),
            ({"epsilon": 0}, "epsilon"),
            ({"delta": 0}, "delta"),
        ]:
            with pytest.raises(InvalidParameter, match=said):
                sf.synth.check(session, made, **(paid | wrong))
        with monkeypatch.context() as small:
            small.setattr(checking, "_MOST_CELLS", 10)
            with pytest.raises(InvalidParameter, match="too many cells"):
                sf.synth.check(session, made, **paid)
        with pytest.raises(QueryRefused, match="no column"):
            sf.synth.check(session, made, "SELECT age FROM people", **paid)
        with pytest.raises(InvalidParameter, match="'age' is declared otherwise"):
            sf.synth.check(session, made, "SELECT * FROM people WHERE age > 50", **paid)
        for odd in ((None, made), (session, None), (session, "people")):
            with pytest.raises(InvalidParameter, match="takes a session and a synthesizer"):
                sf.synth.check(*odd, **paid)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="level"):
            sf.synth.check(session, made, **paid).interval(1.0)
        assert session.balance().spent == spent + 1
    other = sf.PrivateTable("others", source=people(5), schema=COLUMNS, unit=sf.PrivacyUnit.row())
    with sf.Session(other, budget=sf.Budget(1, "1e-5")) as session:
        with pytest.raises(InvalidParameter, match="no table 'people'"):
            sf.synth.check(session, made, **paid)
        dear = paid | {"epsilon": 2}
        assert "would be refused" in str(sf.synth.quote_check(session, made, "others", **dear))
        with pytest.raises(BudgetExceeded):
            sf.synth.check(session, made, "others", **dear)
        assert session.balance().spent == 0
        sf.synth.check(session, made, "others", **paid)  # other rows with the same columns may be named


@pytest.mark.parametrize("many", [0, 1])
def test_hardly_any_rows_are_checked_like_any_others(many: int) -> None:
    with session_of(people(2).slice(0, many)) as session:
        made = sf.synth.fit(session, epsilon=1, delta=1e-6, method="independent", columns=["sex"])
        low, high = sf.synth.check(session, made, epsilon=1, delta=1e-6).interval()
    assert 0 <= low <= high <= 1


# ── what it claims


ANSWERS = {
    "noise": None,
    "nothing": lambda total, _: np.zeros(total.values.shape),
    "all": lambda total, _: np.full(total.values.shape, 1e12),
    "none": lambda total, _: np.full(total.values.shape, -1e12),
    "the truth": lambda total, _: np.asarray(total.values, np.float64) * float(total.step),
}


def held(name: str, *answers: str) -> None:
    """Holds a check of close models of a fit's two tables to its claim on the two, whatever noise says."""
    fit = FITS[name]
    exchange = fit.plan.wanted.exchange
    for side in ("left", "right"):
        pair = check_of(fit, close_to(fit, side))
        runs = [partial(pair.released, side) for side in ("left", "right")]
        for forge in map(ANSWERS.get, answers):
            for mine, theirs in (runs, runs[::-1]):
                check_answers(mine, theirs, pair.loss, exchange=exchange, forge=forge)
        check_noise(runs[0], pair.loss, exchange=exchange, least=100)


@pytest.mark.parametrize("name", FITS)
def test_checks_stay_within_their_claims_on_neighbours(name: str) -> None:
    with seeded(f"check {name}"):
        held(name, *ANSWERS)


def test_all_mutants_are_tried() -> None:
    assert {mutant for mutant, _ in CASES} == set(CHECK_MUTANTS)


@pytest.mark.parametrize(("mutant", "name"), CASES)
def test_a_planted_bug_is_seen(mutant: str, name: str) -> None:
    answers = "noise" if mutant.startswith("half") else "the truth" if name == SWAP else "nothing"
    with seeded(f"check {mutant} {name}"), planted_in_synth(mutant), pytest.raises(AssertionError):
        held(name, answers)


def test_checks_are_registered() -> None:
    assert {f"check of {name}" for name in FITS} <= {example.name for example in examples()}


def by_samples(name: str, samples: int, share: float) -> str:
    registered = next(each for each in subjects() if each.name == f"check of {name}")
    (found,) = examined(replace(registered, part=1), samples=samples, share=share)
    return found.verdict


@pytest.mark.stats
@pytest.mark.parametrize("name", FITS)
def test_samples_show_nothing_beyond_the_claim(name: str) -> None:
    with seeded(f"samples of a check: {name}"):
        assert by_samples(name, 1000, 1 - 1e-9) == "holds"


@pytest.mark.stats
def test_samples_alone_show_half_the_noise() -> None:
    with seeded("samples of a check with half the noise"):
        pair_of(ONE)  # the model, with honest noise
        with planted_in_synth("half the noise of a check"):
            assert by_samples(ONE, 4000, 0.9999) == "broken"
