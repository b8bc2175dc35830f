"""`sfumato learn`: a model fitted, paid once, written, read back and measured on public rows."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sfumato import learn
from sfumato.cli.learn import KINDS, ModelOptions, _maker
from sfumato.learn.base import PrivateEstimator

CATALOG = """
[datasets.people]
epsilon = 60
delta = 1e-5

[tables.people]
source = "people.parquet"
unit = "who"

[tables.people.columns]
age = { type = "int", lower = 17, upper = 90 }
sex = { type = "enum", values = ["F", "M"] }
rich = { type = "enum", values = ["no", "yes"] }
pay = { type = "float", lower = 0, upper = 100 }
"""
ROWS = "SELECT age, sex, rich FROM people"
LOGISTIC = ("learn", "logistic", ROWS, "--target", "rich")


def _people(rows, seed):
    draw = np.random.default_rng(seed)
    age, sex = draw.integers(17, 90, rows), draw.choice(["F", "M"], rows)
    rich = np.where(age + draw.normal(0, 10, rows) > 50, "yes", "no")
    return pa.table({"age": age, "sex": sex, "rich": rich, "pay": age * 1.0})


@pytest.fixture
def town(tmp_path):
    table = _people(2_000, 1)
    pq.write_table(table.append_column("who", pa.array(range(2_000))), tmp_path / "people.parquet")
    pyarrow.csv.write_csv(_people(300, 2), tmp_path / "public.csv")
    (tmp_path / "sfumato.toml").write_text(CATALOG)
    return tmp_path


def test_a_model_is_quoted_fitted_written_and_free_the_second_time(cli, town):
    quoted = cli(*LOGISTIC, "--epsilon", "2", "--quote")
    assert quoted.code == 0
    words = " ".join(quoted.out.split())
    assert "LogisticRegression on people, from age and sex: epsilon 2, delta 1e-07" in words
    assert "Left in the budget of people: epsilon 60 of 60" in words
    fitted = cli(*LOGISTIC, "--epsilon", "2", "--out", "model.json")
    assert fitted.code == 0
    assert max(map(len, fitted.out.splitlines())) <= 80
    words = " ".join(fitted.out.split())
    assert "Towards yes" in words
    assert "Paid epsilon 2, delta 1e-07 (receipt " in words
    assert "Left: epsilon 58 of 60" in words
    model = learn.load(town / "model.json")
    old, young = (pa.table({"age": [age], "sex": ["F"]}) for age in (89, 18))
    assert model.predict(old) == ["yes"]
    assert model.predict(young) == ["no"]
    again = cli(*LOGISTIC, "--epsilon", "2", "--json").json
    assert again["free"] is True
    assert (again["model"], again["columns"]) == ("LogisticRegression", ["age", "sex"])
    assert again["left"]["epsilon"] == 58
    (columns,) = again["learned"].values()
    assert columns["column"] == ["age", "sex=F", "sex=M", "(intercept)"]
    assert columns["weight"][0] == model.coef_[0, 0]
    assert "fit: LogisticRegression of rich" in cli("ledger", "show").out


def test_hazard_ratios_are_shown(cli, town):
    flags = pa.array(np.arange(2_000) % 2)
    table = pq.read_table(town / "people.parquet")
    pq.write_table(table.set_column(2, "rich", flags), town / "people.parquet")
    numbers = CATALOG.replace(
        '{ type = "enum", values = ["no", "yes"] }', '{ type = "int", lower = 0, upper = 1 }'
    )
    (town / "sfumato.toml").write_text(numbers)
    fitted = cli(
        *("learn", "cox", "SELECT age, sex, pay, rich FROM people", "--target", "pay", "--target", "rich"),
        *("--set", "horizon=60", "--epsilon", "2", "--json"),
    ).json
    (shown,) = fitted["learned"].values()
    assert shown["column"] == ["age", "sex=F", "sex=M"]
    assert shown["hazard ratio"][1] == 1


def test_quality_is_told_on_public_rows_alone(cli, town):
    fitted = cli(*LOGISTIC, "--epsilon", "20", "--test", "public.csv", "--by", "sex")
    assert fitted.code == 0
    assert max(map(len, fitted.out.splitlines())) <= 80
    assert "sex=F" in fitted.out.split("Accuracy by group")[1]
    told = cli(*LOGISTIC, "--epsilon", "20", "--test", "public.csv", "--json").json["report"]
    assert told["lines"][0]["rows"] == 300
    assert told["lines"][0]["figures"]["accuracy"]["low"] > 0.7
    numbers = ("learn", "linear", "SELECT age, sex, pay FROM people", "--target", "pay", "--epsilon", "20")
    told = cli(*numbers, "--test", "public.csv", "--json").json["report"]
    assert told["lines"][0]["figures"]["R²"]["low"] > 0.9


def test_test_rows_without_a_number_are_left_out_and_counted(cli, town):
    lines = (town / "public.csv").read_text().replace('"', "").splitlines()
    at = lines[0].split(",").index("age")
    for place, cell in ((3, ""), (7, "NaN")):
        cells = lines[place].split(",")
        lines[place] = ",".join([*cells[:at], cell, *cells[at + 1 :]])
    (town / "some.csv").write_text("\n".join(lines))
    told = cli(*LOGISTIC, "--epsilon", "20", "--test", "some.csv", "--json").json
    assert told["left_out"] == 2
    assert told["report"]["lines"][0]["rows"] == 298
    shown = cli(*LOGISTIC, "--epsilon", "20", "--test", "some.csv")
    assert "Left out: 2 test rows without a number, or without the truth." in shown.out
    for bad, words in (("", "No row of the test file"), ("old", "'age' of the test file is not of numbers")):
        changed = [[*line.split(",")[:at], bad, *line.split(",")[at + 1 :]] for line in lines[1:]]
        (town / "none.csv").write_text("\n".join([lines[0], *map(",".join, changed)]))
        refused = cli(*LOGISTIC, "--epsilon", "21", "--test", "none.csv")
        assert refused.code == 2
        assert words in " ".join(refused.err.split())
    assert cli("ledger", "show", "--json").json["balances"][0]["spent"] == 20


def test_parameters_and_whole_tables(cli, town):
    told = cli(
        "learn", "PCA", "SELECT age, pay FROM people", "--epsilon", "9", "--set", "n_components=1", "--json"
    )
    assert told.code == 0
    assert list(told.json["learned"]["Components"]) == ["column", "component 1"]
    whole = cli("learn", "moments", "people", "--epsilon", "9", "--json").json
    assert whole["columns"] == ["age", "sex", "rich", "pay"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((*LOGISTIC,), 2, "--epsilon 1"),
        (("learn", "logistic", "--epsilon", "1"), 2, "Say which rows"),
        (("learn", "forest", ROWS, "--epsilon", "1"), 2, "say one of logistic, linear"),
        (("learn", "report", ROWS, "--epsilon", "1"), 2, "There is no model 'report'"),
        (("learn", "logistic", ROWS, "--epsilon", "1"), 2, "target"),
        (
            ("learn", "logistic", "SELECT age FROM nothing", "--target", "age", "--epsilon", "1"),
            2,
            "one of people",
        ),
        ((*LOGISTIC, "--epsilon", "61"), 3, "left 60"),
        ((*LOGISTIC, "--epsilon", "-1"), 2, "epsilon"),
        ((*LOGISTIC, "--epsilon", "1", "--out", "none/model.json"), 2, "existing folder"),
        ((*LOGISTIC, "--epsilon", "1", "--set", "wings=2"), 2, "LogisticRegression has: bounds, classes"),
        ((*LOGISTIC, "--epsilon", "1", "--set", "epsilon=9"), 2, "--set takes NAME=VALUE"),
        ((*LOGISTIC, "--epsilon", "1", "--test", "none.csv"), 2, "cannot be read"),
        ((*LOGISTIC, "--epsilon", "1", "--test", "public.csv", "--by", "town"), 2, "no column 'town'"),
        ((*LOGISTIC, "--epsilon", "1", "--by", "sex"), 2, "add --test"),
        (("learn", "moments", ROWS, "--epsilon", "1", "--test", "public.csv"), 2, "leave --test out"),
        (("learn", "moments", "SELECT COUNT(*) FROM people", "--epsilon", "1"), 2, "single rows"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_block_and_costs_nothing(cli, town, arguments, code, words):
    refused = cli(*arguments)
    assert refused.code == code
    assert not refused.out
    assert words in " ".join(refused.err.split())
    known = cli("ledger", "show", "--json")
    assert known.code or known.json["balances"][0]["spent"] == 0
    assert not (town / "model.json").exists()
    as_json = cli(*arguments, "--json")
    assert set(json.loads(as_json.err)) == {"error"}


def test_a_budget_without_delta_is_told(cli, town):
    (town / "sfumato.toml").write_text(CATALOG.replace("delta = 1e-5", ""))
    refused = cli(*LOGISTIC, "--epsilon", "1")
    assert refused.code == 2
    assert "needs some delta" in refused.err


def test_short_names_are_of_models_and_every_model_can_be_named():
    models = {name for name in learn.__all__ if isinstance(getattr(learn, name), type)}
    models = {name for name in models if issubclass(getattr(learn, name), PrivateEstimator)}
    models.discard("Pipeline")  # its parts are made in Python
    assert set(KINDS.values()) <= models
    for name in sorted(models):
        made = _maker(name.lower())(ModelOptions(epsilon="1", delta="1e-6"), None)
        assert type(made) is getattr(learn, name)
