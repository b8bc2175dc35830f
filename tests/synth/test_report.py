"""Reports of synthetic tables: errors are counted rightly; copies and lost ties are seen."""

import itertools
import json
from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import r2_score, roc_auc_score

import sfumato as sf
from sfumato import synth
from sfumato.attacks import NearestRecords
from sfumato.errors import InvalidParameter, MissingExtra
from sfumato.random import simulation
from sfumato.synth._model.domain import Marginal
from sfumato.synth._report import learned
from sfumato.synth._report.attacked import _nearer, advantage_allowed, attacks_on, nearest_of
from sfumato.synth._report.learned import areas, tasks_of
from sfumato.synth._report.marginals import Measured, errors_over, on_simplex, some_cliques
from sfumato.synth._report.yardstick import Yardstick, fine_codes, groups_of
from sfumato.synth.columns.coarse import as_it_is, coarse
from sfumato.synth.columns.fine import Fine
from sfumato.synth.columns.scales import Scales
from sfumato.synth.report import fidelity


def listed(name, *values, nullable=False):
    kind = "text" if isinstance(values[0], str) else "integer"
    return Fine(name, kind, values, Fraction(0), Fraction(0), 0, nullable)


def number(name, lower, upper, *, nullable=False):
    return Fine(name, "integer", None, Fraction(lower), Fraction(upper), upper - lower, nullable)


COLUMNS = (
    number("age", 0, 99),
    listed("town", *"abcdefgh"),
    number("pay", 0, 500, nullable=True),
    listed("rare", "no", "yes"),
    listed("ill", "no", "yes"),
)


def people(rows, seed):
    """Pay follows age, being ill follows both, and a tenth is rare."""
    draw = simulation(seed)
    age = draw.integers(0, 100, rows)
    pay = np.clip(3 * age + draw.normal(0, 30, rows) + 50, 0, 500).round().astype(int)
    rare = draw.random(rows) < 0.1
    ill = draw.random(rows) < np.where(rare, 0.5, np.where(age > 60, 0.9, 0.1))
    return pa.table(
        {
            "age": age,
            "town": np.array(list("abcdefgh"))[np.minimum(draw.geometric(0.4, rows), 8) - 1],
            "pay": pa.array(pay, mask=draw.random(rows) < 0.05),
            "rare": np.array(["no", "yes"])[rare.astype(int)],
            "ill": np.array(["no", "yes"])[ill.astype(int)],
        }
    )


def shuffled(table, seed):
    """Each column by itself: what ties them is gone."""
    draw = simulation(seed)
    return pa.table({name: table[name].take(draw.permutation(table.num_rows)) for name in table.column_names})


REAL, OTHERS, FRESH = people(900, 1), people(900, 2), people(900, 3)


@pytest.fixture(scope="module")
def copied():
    again = REAL.take(simulation(4).integers(0, 900, 900))
    return fidelity(REAL, again, COLUMNS, holdout=OTHERS, epsilon=1, delta=1e-9)


# ── errors of counts


@st.composite
def tables(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    made = []
    for _ in range(2):
        rows = draw(st.integers(1, 12))
        made.append([[draw(st.integers(0, size - 1)) for _ in range(rows)] for size in sizes])
    return sizes, made


@given(tables(), st.integers(1, 3), st.booleans())
@settings(max_examples=30, deadline=None)
def test_errors_are_those_of_counting_by_hand(drawn, width, sparse):
    sizes, (one, other) = drawn
    if width > len(sizes):
        return
    columns = [listed(f"c{at}", *range(size)) for at, size in enumerate(sizes)]
    real, synthetic = ([np.array(own) for own in table] for table in (one, other))
    yardstick = Yardstick.of(columns, real)
    cliques = some_cliques(len(sizes), width, 100, simulation(0))
    with pytest.MonkeyPatch.context() as patch:
        if sparse:  # as where there are many more cells than rows
            patch.setattr("sfumato.synth._report.marginals._DENSE", -100)
        found = errors_over(cliques, real, synthetic, yardstick, simulation(0))
    assert len(cliques) == found.of
    for clique, error in zip(cliques, found.synthetic, strict=True):
        mine, theirs = (
            Counter(zip(*(table[column] for column in clique), strict=True)) for table in (one, other)
        )
        by_hand = sum(
            abs(Fraction(mine[cell], mine.total()) - Fraction(theirs[cell], theirs.total()))
            for cell in mine.keys() | theirs.keys()
        )
        assert error == pytest.approx(float(by_hand / 2), abs=1e-12)


def compared(synthetic, **given):
    codes = fine_codes(REAL, COLUMNS)[0]
    yardstick = Yardstick.of(COLUMNS, codes)
    mine, theirs = yardstick.codes(codes), yardstick.codes(fine_codes(synthetic, COLUMNS)[0])
    pairs = list(itertools.combinations(range(len(COLUMNS)), 2))
    return errors_over(pairs, mine, theirs, yardstick, simulation(0), **given)


def test_lost_ties_show_in_the_pairs_that_had_them():
    lost = compared(shuffled(REAL, 5))
    assert lost.worst[0] == ("age", "pay")
    by_pair = dict(zip(lost.columns, zip(lost.synthetic, lost.sampling, strict=True), strict=True))
    assert by_pair["age", "pay"][0] > 3 * by_pair["age", "pay"][1]
    assert by_pair["age", "ill"][0] > 3 * by_pair["age", "ill"][1]
    assert by_pair["town", "rare"][0] < 2 * by_pair["town", "rare"][1]
    assert lost.mean > 2 * lost.sampling.mean()


def test_rows_drawn_again_are_off_by_luck_alone():
    drawn = compared(REAL.take(simulation(6).integers(0, 900, 900)))
    assert drawn.mean == pytest.approx(drawn.sampling.mean(), rel=0.4)
    # What luck does, where cells are large: half of the sum of E|N(0, p(1 − p)/n)| over cells.
    share = np.bincount([town == "yes" for town in REAL["rare"].to_pylist()]) / 900
    expected = 0.5 * np.sqrt(2 / np.pi * share * (1 - share) / 900).sum()
    codes = [np.repeat([0, 1], np.round(share * 900).astype(int))]
    own = Yardstick.of([listed("rare", 0, 1)], codes)
    draws = [errors_over([(0,)], codes, codes, own, simulation(seed)).sampling[0] for seed in range(300)]
    assert np.mean(draws) == pytest.approx(expected, rel=0.2)


def test_noise_alone_is_what_was_measured_and_what_asking_would_cost():
    codes, _ = fine_codes(REAL, COLUMNS)
    cuts = tuple(as_it_is(column) for column in COLUMNS)
    exact = np.zeros((2, 2))
    np.add.at(exact, (codes[3], codes[4]), 1)
    given = compared(REAL, sigma=1e-9, measured=Measured(cuts, (Marginal((3, 4), exact, 0.0),)))
    told = dict(zip(given.columns, given.measured, strict=True))
    assert told["rare", "ill"] == pytest.approx(0, abs=1e-12)
    assert np.isnan(told["age", "pay"])
    assert int(given.is_measured.sum()) == 1
    assert given.asked.max() < 1e-6
    off = exact + np.array([[90, -90], [0, 0]])
    shown = compared(REAL, sigma=10.0, measured=Measured(cuts, (Marginal((3, 4), off, 1.0),)))
    assert np.nanmax(shown.measured) == pytest.approx(0.1, abs=0.01)
    # All pairs at once: √10 as much noise, and E|N(0, s)| = s·√(2/π) in each of four cells; clipped at 0.
    asked = dict(zip(shown.columns, shown.asked, strict=True))["rare", "ill"]
    assert 0.2 < asked / (0.5 * 4 * 10 * np.sqrt(10) * np.sqrt(2 / np.pi) / 900) < 2.5


def test_measured_counts_in_other_cells_are_laid_over_those_of_the_comparison():
    codes, _ = fine_codes(REAL, COLUMNS)
    counts = np.bincount(codes[0], minlength=100).astype(float)
    cut = coarse(COLUMNS[0], Scales(COLUMNS[0].known, (counts,), 0.0), 10)
    cuts = (cut, *(as_it_is(column) for column in COLUMNS[1:]))
    exact = np.zeros((cut.size, 2))
    np.add.at(exact, (cut.codes(codes[0]), codes[3]), 1)
    own = Measured(cuts, (Marginal((0, 3), exact, 0.0),))
    yardstick = Yardstick.of(COLUMNS, codes)
    shares = own.shares((0, 3), yardstick).reshape(yardstick.sizes[0], 2)
    # Each column's own counts are kept: a cell is spread as its rows are.
    assert np.allclose(shares.sum(axis=1) * 900, np.bincount(yardstick.codes(codes)[0]), atol=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_shares_are_the_nearest_ones(values):
    given_counts = np.array(values)
    found = on_simplex(given_counts)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    if given_counts.sum() > 0.1:
        wanted = given_counts / given_counts.sum()
        near = ((found - wanted) ** 2).sum()
        for other in np.vstack([np.eye(len(values)), np.full(len(values), 1 / len(values))]):
            for part in (0.01, 0.5):  # no step towards any other shares comes nearer
                moved = found + part * (other - found)
                assert ((moved - wanted) ** 2).sum() >= near - 1e-9


def test_of_many_sets_a_public_choice_is_looked_at():
    chosen = some_cliques(40, 3, 50, simulation(7))
    assert len(set(chosen)) == 50
    assert chosen == some_cliques(40, 3, 50, simulation(7))
    assert all(a < b < c < 40 for a, b, c in chosen)


def test_rows_that_no_fit_would_read_are_left_out():
    given_rows = pa.table({"age": [1, None, 3], "town": ["a", "b", "z"], "pay": [None, 1, 2]})
    _, is_read = fine_codes(given_rows, COLUMNS[:3])
    assert is_read.tolist() == [True, False, False]


# ── groups


def test_small_groups_come_first_and_one_that_is_gone_is_wholly_wrong():
    gone = REAL.filter(pa.compute.equal(REAL["rare"], "no"))
    found = fidelity(REAL, gone, COLUMNS, by=["rare", "age"])
    first, second, *ages = found.groups
    assert (first.group, first.synthetic, first.error) == ("rare=yes", 0, 1.0)
    assert second.group == "rare=no"
    assert second.error < 0.15
    assert len(ages) == 5
    assert sum(line.real for line in ages) == 900
    assert [line.real for line in ages] == sorted(line.real for line in ages)
    assert "rare=yes" in str(found)


def test_many_values_are_few_groups():
    wide = listed("w", *range(60), nullable=True)
    codes = [np.concatenate([np.arange(61), np.repeat(np.arange(10), 50)])]
    groups = groups_of([wide], 0, [codes, codes])
    assert len(groups) <= 24
    assert sum(group.parts[0].astype(int) for group in groups).tolist() == [1] * len(codes[0])
    assert {"w=(none)", "w=(others)"} <= {group.name for group in groups}


# ── models


def test_models_from_lost_ties_lose_what_models_from_fresh_rows_keep():
    real, fresh, test = (fine_codes(table, COLUMNS)[0] for table in (REAL, FRESH, OTHERS))
    lost = fine_codes(shuffled(REAL, 5), COLUMNS)[0]
    groups = groups_of(COLUMNS, 3, [real, lost, test])
    given_rows = {"confidence": 0.95, "seed": 0}
    tasks = tasks_of(COLUMNS, 4, lost, real, test, groups, **given_rows)
    assert [task.group for task in tasks] == ["everybody", "rare=yes", "rare=no"]
    assert tasks[0].figure == "AUC"
    assert tasks[0].lost.low > 0.2
    assert tasks[0].synthetic.low < 0.5 < tasks[0].synthetic.high
    assert tasks[1].real.half > tasks[2].real.half  # a small group is known less well
    few, others = ([codes[:300] for codes in table] for table in (fresh, real))
    kept, *_ = tasks_of(COLUMNS, 2, few, others, test, [], **given_rows)
    assert kept.figure == "R²"
    assert kept.rows == 900 - OTHERS["pay"].null_count
    assert abs(kept.lost.value) < 0.1
    assert kept.real.value > 0.6


def test_a_class_that_is_missing_is_learned_as_nothing():
    real, test = (fine_codes(table, COLUMNS)[0] for table in (REAL, OTHERS))
    never = [*real[:4], np.zeros(900, np.int64)]
    one, *_ = tasks_of(COLUMNS[3:], 1, never[3:], real[3:], test[3:], [], confidence=0.95, seed=0)
    assert one.synthetic.value == 0.5


@given(st.integers(0, 10**6))
@settings(max_examples=8, deadline=None)
def test_areas_are_those_of_scikit_learn(seed):
    draw = simulation(seed)
    truth = np.concatenate([[True, True, False, False], draw.random(40) < 0.3])
    scores, others = draw.integers(0, 6, (2, 44)).astype(float)
    one, _, lost = areas(truth, scores, others, 0.95)
    assert one.value == pytest.approx(roc_auc_score(truth, scores))
    assert lost.value == pytest.approx(roc_auc_score(truth, others) - one.value)
    assert areas(truth, scores, scores, 0.95)[2].half == 0
    values = draw.integers(0, 9, 30)
    told = values + draw.normal(size=30)
    assert learned._numbers(values, told, told, 0.95)[1].value == pytest.approx(r2_score(values, told))


def test_intervals_of_areas_cover():
    draw = simulation(8)
    missed = narrow = 0
    for _ in range(150):
        truth = np.arange(100) < 30
        scores = draw.normal(size=100) + truth  # an area of Φ(1/√2)
        one, _, lost = areas(truth, scores, scores + draw.normal(0, 0.01, 100), 0.95)
        missed += not one.low <= 0.76025 <= one.high
        narrow += abs(one.value - 0.76025) > one.half / 3
        assert lost.half < one.half / 4  # the same rows: what they share cancels out
    # At 95 %, more than 28 of 150 are missed less than once in 10⁹ times; at a third of the width they are.
    assert missed <= 28 < narrow


def test_models_without_scikit_learn_name_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[learn\]"):
        fidelity(REAL, FRESH, COLUMNS, targets="ill")


# ── people


def test_copies_are_caught_by_nearest_records_and_attacks(copied):
    assert copied.nearest.is_near
    assert copied.nearest.copies.low > copied.nearest.copies_outside.high
    found = {attack.outcome.attack: attack for attack in copied.attacks}
    for name in ("singling out", "membership by distance"):
        assert found[name].outcome.works
        assert found[name].keeps is False
    text = " ".join(str(copied).split())
    assert "It gives people away: singling out" in text
    assert "nearest records" in text
    assert "beyond the price" in text


def test_rows_of_others_give_nobody_away():
    near = nearest_of(REAL, FRESH, OTHERS, simulation(0))
    assert not near.is_near
    assert near.nearer.low < 0.5 < near.nearer.high
    for attack in attacks_on(REAL, FRESH, OTHERS, targets=[], paid=(Fraction(1), Fraction(1, 10**9)), seed=0):
        assert not attack.outcome.works
        assert attack.keeps


def test_records_that_many_rows_are_near_to_widen_the_interval():
    """Dealt out again and again, the share of the nearest is off as its interval says, not as a binomial."""
    draw = simulation(9)
    places, many = draw.integers(0, 10, 1000), 20  # the same 10 of 40 records, over and over
    far = np.ones(1000)
    missed = 0
    for _ in range(100):
        dealt = draw.permutation(40)[:10] < 20  # which of the 10 are behind the table
        own = NearestRecords(places, np.where(dealt[places], 0.0, far))
        other = NearestRecords(places + 10, np.where(dealt[places], far, 0.0))
        found = _nearer(own, other, many, 0.99)
        missed += not found.low <= 0.5 <= found.high
    assert missed <= 12  # a binomial one would miss nearly all


def test_what_the_price_allows_is_the_distance_between_neighbours():
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(20)):
        allowed = advantage_allowed(epsilon, Fraction(1, 10**9))
        pure = float((np.exp(2 * float(epsilon)) - 1) / (np.exp(2 * float(epsilon)) + 1))
        assert 0 < allowed < pure + 1e-6


# ── what is told


def test_the_steward_is_named_in_words_values_and_picture(copied, tmp_path):
    text = str(copied)
    assert "for the steward alone" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert json.loads(json.dumps(copied.to_dict()))["steward_only"] is True
    figure = copied.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000
    assert "for the steward alone" in figure.get_suptitle()
    assert len(figure.axes) == 4


def test_without_other_people_it_says_what_is_missing():
    found = fidelity(REAL.to_pandas(), pl.from_arrow(FRESH), COLUMNS)
    assert found.attacks == ()
    assert found.nearest is None
    assert "give holdout=" in " ".join(str(found).split())
    assert "give targets=" in " ".join(str(found).split())
    assert len(found.picture().axes) == 2
    alone = fidelity(REAL, FRESH, COLUMNS[:1])
    assert alone.triples is None
    assert alone.pairs.columns == (("age",),)
    assert len(alone.picture().axes) == 1
    assert max(map(len, str(alone).splitlines())) <= 80


@pytest.mark.parametrize(
    ("given_rows", "message"),
    [
        ({"targets": ["agee"]}, "no column"),
        ({"by": ["age", "age"]}, "twice"),
        ({"confidence": 1}, "confidence"),
        ({"holdout": REAL}, "control"),
        ({"holdout": pd.DataFrame({"age": [1]})}, "column"),
    ],
)
def test_what_does_not_fit_together_is_refused(given_rows, message):
    with pytest.raises(InvalidParameter, match=message):
        fidelity(REAL, FRESH, COLUMNS, **given_rows)


def test_a_session_is_not_a_table():
    table = sf.PrivateTable(
        "t", source=REAL.select(["age"]), unit=sf.PrivacyUnit.row(), schema={"age": sf.Int(0, 99)}
    )
    with (
        sf.Session(table, budget=sf.Budget(epsilon=1)) as session,
        pytest.raises(InvalidParameter, match="rows"),
    ):
        fidelity(session, FRESH, COLUMNS)


# ── of a fit


def test_a_fit_is_reported_with_its_price_and_what_it_measured():
    schema = {
        "age": sf.Int(0, 99, nullable=False),
        "rare": sf.Enum("no", "yes", nullable=False),
        "ill": sf.Enum("no", "yes", nullable=False),
    }
    table = sf.PrivateTable("people", source=REAL, unit=sf.PrivacyUnit.row(), schema=schema)
    with sf.Session(table, budget=sf.Budget(epsilon=3, delta=1e-6)) as session:
        model = synth.fit(session, epsilon=3, delta=1e-6)
        before = session.balance().spent
        found = model.report(REAL, by="rare", seed=1)
        assert session.balance().spent == before  # a report reads no session
    assert "A synthetic people" in found.about
    assert "at epsilon 3, delta 1e-06: " in found.about
    assert "beside 900 real ones" in found.about
    assert found.pairs.columns == (("age", "rare"), ("age", "ill"), ("rare", "ill"))
    assert not np.isnan(found.pairs.asked).any()
    assert found.pairs.is_measured.any()
    assert found.pairs.mean < 0.25
    assert [line.group for line in found.groups] == ["rare=yes", "rare=no"]
