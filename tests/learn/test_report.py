"""Reports count rightly, their intervals cover, they read no session, and they fit a terminal."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, multinomial
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeClassifier

import sfumato as sf
from sfumato import learn
from sfumato.errors import AccessDenied, InvalidParameter
from sfumato.numeric.estimates import bins_of, calibration, gap, paired, share, spread
from sfumato.testing import seeded

CHANCES = (0.0, 0.02, 0.2, 0.5, 0.7, 0.99)


class Fixed:
    """Says of each row what its columns say."""

    classes_ = np.array(["no", "yes"])

    def predict(self, X):
        return np.where(np.asarray(X["said"]), "yes", "no")

    def predict_proba(self, X):
        chance = np.asarray(X["chance"], float)
        return np.column_stack([1 - chance, chance])


@st.composite
def tables(draw):
    rows = draw(
        st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from("abc")), min_size=1, max_size=40)
    )
    said, true, group = (list(column) for column in zip(*rows, strict=True))
    return pd.DataFrame({"said": said, "chance": np.linspace(0, 1, len(said)), "group": group}), np.array(
        true
    )


@settings(max_examples=10)
@given(tables())
def test_every_figure_is_what_a_count_gives(table):
    X, true = table
    found = learn.report(Fixed(), X, np.where(true, "yes", "no"), groups="group")
    said = X["said"].to_numpy()
    assert found.everybody.rows == len(X) == sum(line.rows for line in found.lines[1:])
    for line in found.lines:
        inside = np.ones(len(X), bool) if line.group == "everybody" else "group=" + X["group"] == line.group
        expected = {
            "accuracy": (said == true)[inside],
            "selected": said[inside],
            "false positive": said[inside & ~true],
            "false negative": ~said[inside & true],
        }
        for name, hits in expected.items():
            value, low, high = line.figures[name]
            assert np.isnan(value) if not len(hits) else value == np.mean(hits)
            assert not len(hits) or 0 <= low <= value <= high <= 1
        if line.gaps and not inside.all():
            assert line.gaps["parity"].value == pytest.approx(said[inside].mean() - said[~inside].mean())
    assert max(map(len, str(found).splitlines())) <= 80
    json.dumps(found.to_dict(), allow_nan=False)


def covered(inside, chances):
    """The probability that an interval covers, from whether it does for each outcome."""
    return float(np.sum(np.asarray(inside) * np.asarray(chances)))


def least_cover(make, confidence):
    """The worst probability over many true differences that `make`'s interval of a gap covers it."""
    worst = 1.0
    for trials, others in ((1, 1), (2, 9), (7, 7), (4, 25)):
        found = [
            [make(k, trials, m, others, confidence) for m in range(others + 1)] for k in range(trials + 1)
        ]
        lows, highs = (np.array([[each[at] for each in row] for row in found]) for at in (1, 2))
        for p in CHANCES:
            for q in CHANCES:
                chances = np.outer(
                    binom.pmf(range(trials + 1), trials, p), binom.pmf(range(others + 1), others, q)
                )
                worst = min(worst, covered((lows <= p - q + 1e-12) & (p - q - 1e-12 <= highs), chances))
    return worst


def test_intervals_of_gaps_cover_exactly_and_shorter_ones_do_not():
    assert least_cover(gap, 0.9) >= 0.9

    def shorter(*given):
        value, low, high = gap(*given)
        return value, (low + value) / 2, (high + value) / 2

    assert least_cover(shorter, 0.9) < 0.9


def test_intervals_of_paired_and_largest_gaps_cover_exactly():
    trials, confidence = 9, 0.9
    counts = [(one, other) for one in range(trials + 1) for other in range(trials + 1 - one)]
    found = [paired(*count, trials, confidence) for count in counts]
    for p, q in ((0.0, 0.1), (0.3, 0.3), (0.05, 0.6), (0.5, 0.5)):
        chances = [
            multinomial.pmf([*count, trials - sum(count)], trials, [p, q, 1 - p - q]) for count in counts
        ]
        assert covered([low <= p - q <= high for _, low, high in found], chances) >= confidence
    sizes = (3, 6)
    for p, q in ((0.0, 1.0), (0.4, 0.5), (0.5, 0.5), (0.1, 0.9)):
        inside, chances = [], []
        for k in range(sizes[0] + 1):
            for m in range(sizes[1] + 1):
                _, low, high = spread([(k, sizes[0]), (m, sizes[1])], confidence)
                inside.append(low <= abs(p - q) <= high)
                chances.append(binom.pmf(k, sizes[0], p) * binom.pmf(m, sizes[1], q))
        assert covered(inside, chances) >= confidence


def test_calibration_covers_what_is_true_of_the_model():
    """Labels drawn anew, predictions fixed: the interval misses the true figure in at most 1 of 10 draws."""
    draw = np.random.default_rng(5)
    for rows, slant in ((12, 0.0), (400, 0.0), (400, 0.3)):
        predicted = draw.random(rows)
        true = np.clip(predicted + slant, 0, 1)
        place = np.minimum((predicted * 10).astype(int), 9)
        real = sum(abs((true - predicted)[place == at].sum()) for at in range(10)) / rows
        labels = draw.random((60, rows)) < true
        found = [calibration(bins_of(predicted, line, 10, 0.9), 0.9) for line in labels]
        missed = sum(not low <= real <= high for _, low, high in found)
        assert missed <= 22  # more than 22 of 60 at 1 in 10 have a probability below 1e-8
        if slant:
            assert (
                sum(high < real for _, _, high in found) + sum(value < real / 2 for value, _, _ in found) == 0
            )


def test_calibration_covers_exactly_in_a_few_rows_where_chance_alone_looks_like_an_error():
    predicted, confidence = np.array([0.35, 0.45, 0.55, 0.65]), 0.5
    right, chances = [], []
    for labels in np.ndindex(2, 2, 2, 2):
        seen = np.array(labels, bool)
        _, low, high = calibration(bins_of(predicted, seen, 10, confidence), confidence)
        right.append(low <= 0 <= high)  # predictions are the truth
        chances.append(np.prod(np.where(seen, predicted, 1 - predicted)))
    assert covered(right, chances) >= confidence


def test_numbers_have_errors_and_r2_by_group():
    draw = np.random.default_rng(2)
    X = draw.normal(size=(300, 2))
    y = X[:, 0] + draw.normal(size=300)
    group = np.where(np.arange(300) < 40, "few", "many")
    model, other = LinearRegression().fit(X, y), LinearRegression().fit(X, y + 1)
    found = learn.report(other, X, y, groups={"kind": group}, plain=model)
    for line, inside in zip(found.lines, (group != "", group == "many", group == "few"), strict=True):
        assert line.figures["R²"].value == pytest.approx(r2_score(y[inside], other.predict(X[inside])))
        assert line.figures["mean error"].value == pytest.approx(np.mean(other.predict(X) - y, where=inside))
        assert line.lost.low <= line.lost.value <= line.lost.high
        assert line.figures["R²"].low < line.figures["R²"].value < line.figures["R²"].high
    assert "Absolute error by group" in str(found)
    assert learn.report(model, X[:1], y[:1]).to_dict()["lines"][0]["figures"]["R²"]["value"] is None


def test_groups_may_be_given_in_every_form():
    X = pd.DataFrame({"said": [True, False] * 6, "chance": [0.9, 0.2] * 6, "sex": ["F", "F", "M"] * 4})
    y = ["yes", "no", "no"] * 4
    kinds = [X, pa.Table.from_pandas(X), pl.from_pandas(X)]
    forms = [(frame, groups) for frame in kinds for groups in ("sex", ["sex"], {"sex": X["sex"]}, X[["sex"]])]
    found = [str(learn.report(Fixed(), frame, y, groups=groups)) for frame, groups in forms]
    assert len(set(found)) == 1
    labelled = learn.report(Fixed(), X, y, groups=X["sex"].to_numpy())
    assert [line.group for line in labelled.lines] == ["everybody", "F", "M"]
    both = {"sex": X["sex"], "old": [True, None] * 6}
    each = learn.report(Fixed(), X, y, groups=both)
    assert [line.group for line in each.lines][3:] == ["old=(none)", "old=true"]
    crossed = learn.report(Fixed(), X, y, groups=both, cross=True)
    assert {line.group for line in crossed.lines[1:]} == {
        f"sex={sex}, old={old}" for sex in "FM" for old in ("(none)", "true")
    }
    assert crossed.group("sex=F, old=true").rows == 4


def test_a_selection_is_reported_without_any_model():
    hired, able = np.array([1, 1, 0, 0, 1, 0, 0, 0]), np.array([1, 0, 1, 0, 1, 1, 0, 0])
    town = list("aaaabbbb")
    found = learn.report_selection(hired, groups={"town": town}, deserved=able, plain=able)
    line = found.group("town=a")
    assert line.gaps["parity"].value == pytest.approx(2 / 4 - 1 / 4)
    assert line.gaps["opportunity"].value == pytest.approx(1 / 2 - 1 / 2)
    assert line.plain_gaps["opportunity"].value == 0
    assert line.lost.value == pytest.approx(2 / 4)
    assert found.largest["parity"].value == pytest.approx(0.25)
    assert "demographic parity" in str(found)
    unknown = learn.report_selection(hired == 1, groups=town)
    assert set(unknown.everybody.figures) == {"selected"}
    assert "equal opportunity" not in str(unknown)
    assert "<table" in unknown._repr_html_()


def test_an_election_is_reported_by_the_size_of_its_wards():
    # Each ward elects one of three by a private choice; the same noise decides in small wards more often.
    voters = np.repeat([40, 4_000], 60)
    draw = np.random.default_rng(6)
    votes = np.array([draw.multinomial(count, [0.40, 0.36, 0.24]) for count in voters])
    choice = sf.Exponential(epsilon=0.5, sensitivity=1, monotone=True)
    with seeded("election"):
        seats = np.array([choice.select(counts) for counts in votes])
    elected, won = (np.eye(3, dtype=bool)[who].ravel() for who in (seats, votes.argmax(axis=1)))
    ward = np.repeat(np.where(voters < 100, "small", "large"), 3)
    found = learn.report_selection(elected, groups={"ward": ward}, deserved=won, plain=won)
    small, large = found.group("ward=small"), found.group("ward=large")
    # One seat in each ward: parity cannot show it, and equal opportunity does.
    assert small.gaps["parity"].value == large.gaps["parity"].value == 0
    assert large.figures["false negative"].value == 0
    assert small.figures["false negative"].value > 0.1
    assert small.gaps["opportunity"].value < -0.1
    assert small.gaps["opportunity"].high < 0
    assert small.plain_gaps["opportunity"].value == 0


def test_more_than_two_classes_have_no_error_rates_until_one_is_named():
    X = np.arange(60.0)[:, None]
    y = np.arange(60) % 3
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    assert set(learn.report(model, X, y).everybody.figures) == {"accuracy", "calibration error"}
    assert learn.report(model, X, y, positive=2).everybody.figures["selected"].value == pytest.approx(1 / 3)


def test_a_model_that_memorises_is_found_out_beside_the_figures():
    draw = np.random.default_rng(3)
    X, y = draw.normal(size=(240, 3)), draw.integers(0, 2, 240)
    model = DecisionTreeClassifier(random_state=0).fit(X[:120], y[:120])
    found = learn.report(model, X[120:], y[120:], trained=(X[:120], y[:120]), shadows=2, seed=1)
    assert found.membership["with noise"].works
    assert found.allowed is None
    assert "it works" in str(found)
    assert not learn.report(model, X[120:], y[120:], trained=(X[:120], y[:120]), shadows=0).membership


def test_a_report_reads_no_session_and_no_question():
    people = sf.PrivateTable(
        "people", source=pa.table({"age": [1, 2]}), unit=sf.PrivacyUnit.row(), schema={"age": sf.Int(0, 9)}
    )
    session = sf.Session(people, budget=sf.Budget(epsilon=1))
    query = session.sql("SELECT COUNT(*) AS n FROM people")
    with pytest.raises(AccessDenied, match="ada is an analyst"):
        learn.report(Fixed(), session.as_analyst("ada"), "age")
    with pytest.raises(AccessDenied, match="Only the steward"):
        learn.report_selection([1], groups=session.as_analyst("ada"))
    for source in (session, query):
        with pytest.raises(InvalidParameter, match="give arrays or frames"):
            learn.report(Fixed(), source, "age")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": "town"}, "no column 'town'"),
        ({"groups": {"town": ["a"]}}, "one label for each row"),
        ({"groups": {"town": list(range(200))}}, "one label"),
        ({"plain": True}, "trained="),
        ({"positive": "maybe"}, "one of the model's classes"),
        ({"confidence": 1}, "confidence"),
        ({"bins": 0}, "bins"),
    ],
)
def test_what_does_not_fit_together_is_refused(given, message):
    X = pd.DataFrame({"said": [True] * 3, "chance": [0.5] * 3})
    with pytest.raises(InvalidParameter, match=message):
        learn.report(Fixed(), X, ["yes"] * 3, **given)


def test_too_many_groups_are_refused_without_naming_one():
    with pytest.raises(InvalidParameter, match="more than 100 values") as told:
        learn.report_selection([1] * 150, groups={"age": list(range(1000, 1150))})
    assert "1000" not in str(told.value)


def test_names_of_groups_cannot_break_a_page():
    found = learn.report_selection([1, 0, 1], groups=["<b>" * 40, "x\ny", "é" * 90])
    assert max(map(len, str(found).splitlines())) <= 80
    assert "<b>" not in found._repr_html_()


def test_shares_without_a_trial_have_no_figure():
    assert share(0, 0, 0.95).shown() == ""
    assert spread([(1, 2)], 0.95).to_dict() == {"value": None, "low": None, "high": None}
