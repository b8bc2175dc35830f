"""What results say of themselves: lines of 80 columns, intervals where they are offered, else the reason."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato import learn
from sfumato.errors import InvalidParameter
from sfumato.learn.survival.kaplan_meier import Band
from sfumato.random import simulation
from sfumato.testing import seeded

PAID = {"epsilon": 1, "delta": 1e-6}


@pytest.fixture(scope="module")
def many():
    chance = simulation(0)
    X = chance.uniform(-1, 1, (40_000, 2))
    return X, X @ [1, -0.5] + chance.normal(0, 0.3, len(X))


def narrow(text):
    lines = text.splitlines()
    assert lines
    assert max(map(len, lines)) <= 80
    return lines


def test_weights_are_told_with_their_intervals(many):
    X, y = many
    model = learn.LinearRegression(**PAID, bounds=(-1, 1), target_bounds=(-3, 3))
    with seeded(1):
        model.fit(X, y)
    lines = narrow(model.summary(0.9))
    assert lines[0].split() == ["column", "weight", "standard", "error", "90", "%", "interval"]
    assert [line.split()[0] for line in lines[2:]] == ["x0", "x1", "intercept"]
    for line, ends in zip(lines[2:], model.confidence_intervals(0.9), strict=True):
        low, _, high = line.split()[-3:]
        assert float(low) <= ends[0] < ends[1] <= float(high)
        assert float(low) == pytest.approx(ends[0], abs=2e-3)
    with pytest.raises(InvalidParameter):
        model.summary(2)


def _cox(X, y):
    model = learn.CoxRegression(**PAID, bounds=(-1, 1), horizon=4, bins=4)
    return model.fit(X[:500], (np.abs(y[:500]), y[:500] > 0))


@pytest.mark.parametrize(
    ("fitted", "heads", "said"),
    [
        (
            lambda X, y: learn.Ridge(**PAID, bounds=(-1, 1), target_bounds=(-3, 3)).fit(X[:500], y[:500]),
            "column weight",
            "a penalty draws the weights to 0",
        ),
        (
            lambda X, y: learn.LogisticRegression(**PAID, bounds=(-1, 1), classes=[0, 1]).fit(
                X[:500], y[:500] > 0
            ),
            "column weight",
            "too few rows",
        ),
        (
            lambda X, y: learn.LogisticRegression(**PAID, bounds=(-1, 1), classes=["a", "b", "c"]).fit(
                X[:500], np.array(["a", "b", "c"])[np.digitize(y[:500], [-0.5, 0.5])]
            ),
            "column a b c",
            "more than two classes",
        ),
        (
            lambda X, y: learn.PoissonRegression(**PAID, bounds=(-1, 1), target_bounds=(0, 5)).fit(
                X[:500], np.abs(y[:500])
            ),
            "column weight",
            "none are shown to hold",
        ),
        (_cox, "column weight hazard ratio", "No intervals for hazard ratios"),
    ],
    ids=["Ridge", "Logistic", "several classes", "Poisson", "Cox"],
)
def test_where_there_are_no_intervals_the_reason_is_below(many, fitted, heads, said):
    lines = narrow(fitted(*many).summary())
    assert " ".join(lines[0].split()) == heads
    assert said in " ".join(lines)


def test_names_of_any_length_fit(many):
    import pandas as pd

    X, y = many
    frame = pd.DataFrame(X[:200], columns=["a" * 200, "b"])
    model = learn.LinearRegression(**PAID, bounds=(-1, 1), target_bounds=(-3, 3)).fit(frame, y[:200])
    narrow(model.summary())


@pytest.mark.parametrize("bins", [1, 7, 20, 21, 90])
def test_a_band_prints_as_a_short_table(bins):
    time = simulation(2).exponential(5, 20_000)
    model = learn.KaplanMeier(epsilon=5, delta=1e-6, horizon=10, bins=bins)
    with seeded(3):
        band = model.fit(None, (np.minimum(time, 6), time <= 6)).band()
    lines = narrow(repr(band))
    assert len(lines) <= 25
    assert lines[0].split() == ["time", "survival", "between"]
    assert any(line.split()[0] == "10" for line in lines)
    assert ("later it is only" in " ".join(lines)) == (band.until < 10)
    assert isinstance(band, Band)
    assert len(band) == 5


def test_a_log_rank_test_and_a_cross_validation_print_as_sentences(many):
    time, arm = simulation(4).exponential(5, 4000), ["old", "new"] * 2000
    model = learn.KaplanMeier(epsilon=5, delta=1e-6, horizon=10, bins=5, groups=["old", "new"])
    found = model.fit(arm, (time, np.ones(4000))).logrank()
    assert narrow(repr(found))[0].startswith("Log-rank test of 2 groups: p ")
    X, y = many
    model = learn.Ridge(bounds=(-1, 1), target_bounds=(-3, 3))
    scores = learn.cross_val_score(model, X[:2000], y[:2000], **PAID, folds=12)
    lines = narrow(repr(scores))
    assert lines[0].startswith(f"Score {scores.score:.3f}; ")
    assert "epsilon 1, delta 1e-06" in " ".join(lines)
