"""Figures that advice quotes are those of the benchmarks."""

import json
from pathlib import Path

import pytest

from sfumato.advice.measured import (
    CLASSES,
    NUMBERS,
    PEOPLE,
    PLAIN,
    PLAIN_NUMBER,
    PRICES,
    VARIATION,
    comparable,
)

RESULTS = Path(__file__).parents[2] / "benchmarks/results"
HALF = 0.00051  # of the last digit that is written


def rows(name):
    return json.loads((RESULTS / name).read_text())["rows"]


def test_models_of_a_class_and_of_a_number():
    found = {(row["case"], row["who"]): row for row in rows("learn.json") if "threads" not in row}
    sources = {
        "GradientBoosting": ("boosting", "sfumato"),
        "LogisticRegression": ("logistic", "sfumato"),
        "NoisyGradientDescent": ("logistic", "descent, 60"),
    }
    assert set(sources) == set(CLASSES)
    for model, wrong in CLASSES.items():
        row = found[sources[model]]
        assert tuple(row["epsilons"]) == PRICES
        assert wrong == pytest.approx([1 - right for right in row["accuracy"]], abs=HALF)
    assert pytest.approx(1 - found["boosting", "not private"]["accuracy"], abs=HALF) == PLAIN
    assert pytest.approx(found["linear", "sfumato"]["r2"], abs=HALF) == NUMBERS
    assert pytest.approx(found["linear", "not private"]["r2"], abs=HALF) == PLAIN_NUMBER


def test_methods_of_a_synthetic_table():
    runs = {
        row["case"]: row["runs"] for row in rows("synth.json") if row["who"] == "sfumato" and "runs" in row
    }
    for method, figures in VARIATION.items():
        for price, figure in zip(PRICES, figures, strict=True):
            case = f"{method}, epsilon {price:g}"
            assert (figure is None) == (case not in runs), case
            if figure is not None:
                mean = sum(run["variation"] for run in runs[case]) / len(runs[case])
                assert figure == pytest.approx(mean, abs=HALF), case


def test_the_price_that_is_most_like_one():
    assert [comparable(price, PEOPLE) for price in PRICES] == [0, 1, 2]
    assert comparable(1, PEOPLE // 10) == 0
    assert comparable(1, 10**9) == 2
