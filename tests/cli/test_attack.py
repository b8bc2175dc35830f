"""Attacks as commands: the plain side falls, the private side does not, and what is wrong is said."""

import datetime
import functools
import json
import math
import os
import shutil
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import typer

from sfumato.attacks import company_z, table_2
from sfumato.cli.attack_numbers import _once, _reach
from sfumato.cli.attack_rows import private_rows
from sfumato.cli.attack_tables import _person
from sfumato.errors import InvalidParameter
from sfumato.random import simulation
from sfumato.testing import seeded

from .conftest import SECRET

STEWARD = "Scored against the truth, paid for by nobody: for the steward, not for analysts."
ROWS = 200
THREE = ("made_from.parquet", "copies.parquet", "control.parquet")
RUNS = {
    "linkage": ("people.csv", "rows.csv", "--on", "zip,age,sex", "--truth", "id"),
    "homogeneity": ("rows.csv", "--quasi", "zip,age", "--sensitive", "job"),
    "intersection": (
        *("even.parquet", "odd.parquet", "--quasi", "age", "--sensitive", "job"),
        *("--people", "known.parquet", "--truth", "job"),
    ),
    "singling-out": (*THREE, "--columns", "zip,age,sex,job,salary"),
    "inference": (*THREE, "--known", "zip,age,sex", "--secret", "salary"),
    "differencing": ("rows.csv", "--column", "salary", "--lower", "0", "--upper", "1000000"),
    "averaging": ("rows.csv", "--times", "500"),
    "reconstruction": ("rows.csv", "--column", "smokes"),
    "tracing": ("bits.parquet", "--people", "40"),
}


BUILT = functools.cache(typer.main.get_command)


@pytest.fixture(autouse=True)
def repeatable(monkeypatch):
    # All commands are put together once: that takes longer than most of these attacks.
    monkeypatch.setattr("typer.testing._get_command", BUILT)
    with seeded("the attacks as commands"):
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two hundred people, in the files that the attacks take."""
    tmp_path = tmp_path_factory.mktemp("files")
    draw = simulation(1)
    salary = [None if row == 7 else 1000.0 * each for row, each in enumerate(draw.integers(20, 900, ROWS))]
    people = pa.table(
        {
            "id": np.arange(ROWS),
            "name": [SECRET if row == 5 else f"Person {row}" for row in range(ROWS)],
            "zip": [f"0{each}" for each in draw.integers(2100, 2130, ROWS)],
            "age": draw.integers(18, 90, ROWS),
            "sex": np.array(["f", "m"])[draw.integers(0, 2, ROWS)],
            "job": np.array(list("abcdef"))[draw.integers(0, 6, ROWS)],
            "smokes": [("no", "yes")[row % 4 == 0] for row in range(ROWS)],
            "city": [(SECRET, "Lyon", "Nice")[row % 3] for row in range(ROWS)],
            "salary": salary,
        }
    )
    pa.csv.write_csv(people, tmp_path / "people.csv")
    pa.csv.write_csv(people.drop_columns(["name"]), tmp_path / "rows.csv")
    half = ROWS // 2
    for name, table in zip(
        THREE,
        (people.slice(0, half), people.slice(0, half).take(draw.integers(0, half, half)), people.slice(half)),
        strict=True,
    ):
        pq.write_table(table, tmp_path / name)
    # Everybody is among four of an age in either table, with others who have another job; together alone.
    ages = np.repeat(np.arange(20, 45), 4)
    jobs = np.arange(100)
    pq.write_table(pa.table({"age": ages, "job": jobs}), tmp_path / "even.parquet")
    other = np.where(np.arange(100) % 4 == 0, jobs, jobs + 1000)
    pq.write_table(pa.table({"age": ages, "job": other}), tmp_path / "odd.parquet")
    pq.write_table(pa.table({"age": ages[::4], "job": jobs[::4]}), tmp_path / "known.parquet")
    share = draw.uniform(0.1, 0.9, 400)
    bits = draw.random((220, 400)) < share
    pq.write_table(pa.table({f"v{place}": bits[:, place] for place in range(400)}), tmp_path / "bits.parquet")
    return tmp_path


@pytest.fixture
def folder(files, tmp_path):
    """A copy of them, where the command runs."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def done():
    """What attacks said, by name and flags: the same each time, as noise is the same."""
    return {}


@pytest.fixture
def ran(cli, folder, done):
    """Runs an attack, once for all tests that look at what it says."""

    def run(*named):
        attack, *flags = named
        if named not in done:
            done[named] = cli("attack", attack, *RUNS[attack], "--seed", "1", *flags)
        return done[named]

    return run


@pytest.mark.parametrize("attack", RUNS)
def test_the_plain_side_falls_and_the_private_side_does_not(ran, attack):
    found = ran(attack, "--json")
    assert found.code == 0, found.err
    assert found.json["steward_only"] is True
    plain, *_, private = found.json["outcomes"]
    assert plain["works"], plain
    low, high = private["baseline_interval"]
    assert not private["works"]
    assert low <= private["rate"] <= high
    assert "epsilon" in private["target"]
    assert "epsilon" not in plain["target"]


@pytest.mark.parametrize("attack", [each for each in RUNS if each != "averaging"])
def test_the_text_fits_and_ends_with_whom_it_is_for(ran, attack):
    found = ran(attack)
    assert found.code == 0, found.err
    assert found.err == ""
    assert max(map(len, found.out.splitlines())) <= 80
    assert found.out.splitlines()[-1] == STEWARD
    assert "It works." in found.out
    text = " ".join(found.out.split())
    # Two hundred rows are too few for most attacks to vouch for anything.
    silent = "No verdict: this attack would notice a planted leak"
    assert ("No better than a guess." in text) != (silent in text)
    assert silent not in text or attack in (
        "linkage",
        "homogeneity",
        "intersection",
        "singling-out",
        "inference",
    )
    assert "at epsilon 1" in text


def test_the_outcomes_are_drawn(cli, folder):
    found = cli("attack", "reconstruction", *RUNS["reconstruction"], "--plot", "found.png")
    assert "Wrote found.png." in found.out
    assert (folder / "found.png").read_bytes().startswith(b"\x89PNG")


def test_a_seed_chooses_the_same_people_again(cli, folder):
    def exact(*more):
        run = cli("attack", "differencing", *RUNS["differencing"], "--tolerance", "1e5", "--json", *more)
        return run.json["outcomes"][0]

    assert exact("--seed", "3") == exact("--seed", "3")
    # Which hundred of 199: the guess of somebody who knows the average is another one.
    assert len({exact("--seed", str(seed))["baseline"] for seed in range(4, 7)}) > 1


def test_the_whole_price_is_the_one_of_all_answers(cli, folder):
    # Epsilon for each count is no protection; the same epsilon for all counts is.
    _, each, all_ = cli("attack", "reconstruction", *RUNS["reconstruction"], "--json").json["outcomes"]
    assert each["works"]
    assert not all_["works"]
    assert each["baseline"] == 0.5  # though a quarter of the rows smoke
    # The deviation of the noise is 1.36 at epsilon 1, and √2 · answers where they share it.
    assert each["detail"]["typical_error"] == pytest.approx(1.36, rel=0.5)
    assert all_["detail"]["typical_error"] == pytest.approx(2**0.5 * all_["detail"]["answers"], rel=0.5)


def test_one_row_is_one_person(cli, folder):
    for more in ((), ("--totals",)):
        found = cli("attack", "differencing", *RUNS["differencing"], "--row", "9", *more, "--json")
        plain, private = found.json["outcomes"]
        assert (plain["hits"], plain["trials"]) == (100, 100)
        assert not private["works"]
        # Two totals at epsilon 1/2: noise of 2,000,000 in each, and 1.15 times that between them (median).
        assert 1.6e6 < private["detail"]["median_miss"] < 3.2e6
        assert ("totals" in plain["target"]) is bool(more)
        assert plain["success"].startswith("the person's value")


def test_values_beyond_the_bounds_are_held_within_them(cli, folder):
    bounds = ("--column", "salary", "--lower", "0", "--upper", "1")
    found = cli("attack", "differencing", "rows.csv", *bounds, "--tolerance", "1000", "--json")
    plain, private = found.json["outcomes"]
    # The noise is that of a sum of numbers up to 1: nobody's salary can be near what it leaves.
    assert plain["rate"] == 1
    assert private["rate"] == 0


def test_what_remains_of_a_person_is_counted_and_shown_only_if_asked_for(cli, folder):
    pq.write_table(table_2(), "first.parquet")
    pq.write_table(company_z(), "second.parquet")
    run = ("attack", "intersection", "first.parquet", "second.parquet")
    ask = (*run, "--person", "age=31", "--quasi", "age", "--sensitive", "score", "--seed", "1")
    text = " ".join(cli(*ask).out.split())
    assert "as they are: each table alone leaves 4 and 4 values; together one remains." in text
    assert "613" not in text
    assert "No better" not in text  # one trial has no rate
    assert "together one remains. Left: 613." in " ".join(cli(*ask, "--show").out.split())
    plain, private = cli(*ask, "--json").json["person"]
    assert plain == {"target": "the tables as they are", "alone": [4, 4], "together": 1}
    assert private["target"] == "private rows at epsilon 1"
    assert "values" not in private
    assert cli(*ask, "--show", "--json").json["person"][0]["values"] == [613]


def test_a_control_replaces_the_random_row(cli, folder):
    found = cli("attack", "linkage", THREE[0], "rows.csv", "--on", "zip,age", "--control", THREE[2], "--json")
    assert found.json["outcomes"][0]["guessing"] == "the same attack on people who are not in the data"


def test_labels_cover_the_values_of_people(cli, folder):
    pq.write_table(pa.table({"zip": ["19456", "30309"]}), "named.parquet")
    pq.write_table(pa.table({"zip": ["19***", "30***"]}), "labelled.parquet")
    run = ("attack", "linkage", "named.parquet", "labelled.parquet", "--on", "zip", "--json")
    assert cli(*run).json["outcomes"][0]["hits"] == 0
    assert cli(*run, "--labels").json["outcomes"][0]["hits"] == 2


def test_only_what_can_be_traced_is(cli, folder):
    found = cli("attack", "tracing", "rows.csv", "--json")
    assert found.json["outcomes"][0]["detail"]["attributes"] == 2  # sex and smokes
    # Two columns recognise nobody, which is no reason to be calm.
    assert all(each["works"] is None for each in found.json["outcomes"])
    text = " ".join(cli("attack", "tracing", "rows.csv").out.split())
    assert "No verdict: this attack would notice a planted leak (exact averages of 2 columns" in text
    assert "No better" not in text


def test_lone_matches_without_the_truth_get_no_verdict(cli, folder):
    run = ("attack", "linkage", "people.csv", "rows.csv", "--on", "zip,age,sex", "--seed", "1")
    text = " ".join(cli(*run, "--plot", "found.png").out.split())
    assert "No verdict: a stranger may match one row alone, too" in text
    assert "It works." not in text
    assert (folder / "found.png").exists()


def test_private_rows_keep_ties_so_that_a_high_epsilon_lets_the_attack_through(cli, folder):
    draw = simulation(2)
    crowd = {
        "zip": draw.integers(0, 30, 1000),
        "age": draw.integers(18, 90, 1000),
        "sex": np.arange(1000) % 2,
    }
    pq.write_table(pa.table(crowd), "crowd.parquet")
    run = ("attack", "linkage", "crowd.parquet", "crowd.parquet", "--on", "zip,age,sex", "--seed", "1")
    low, high = (cli(*run, "--epsilon", price, "--json").json for price in ("1", "1000"))
    assert not low["outcomes"][-1]["works"]
    assert high["outcomes"][-1]["works"] is True
    assert high["outcomes"][-1]["keeps"] is True
    assert "a high epsilon may let the attack through" in high["note"]
    text = " ".join(cli(*run, "--epsilon", "1000").out.split())
    assert "Better than a guess, and within what epsilon 1000 allows: " in text
    assert "It works." not in text


@pytest.mark.parametrize("attack", ["linkage", "inference", "differencing", "reconstruction", "tracing"])
def test_what_epsilon_allows_is_told_of_the_private_side_alone(ran, attack):
    found = ran(attack, "--json").json["outcomes"]
    assert all("allowed" not in each for each in found[:-1])
    assert found[-1]["keeps"] is True
    assert found[-1]["baseline"] < found[-1]["allowed"] < 1
    text = " ".join(ran(attack).out.split())
    assert "Epsilon 1 allows " in text


def test_of_many_people_a_random_choice_is_looked_for(cli, folder):
    pq.write_table(pa.table({"age": np.arange(1500) % 50, "job": np.arange(1500) % 7}), "many.parquet")
    run = ("attack", "intersection", "many.parquet", "many.parquet", "--quasi", "age", "--sensitive", "job")
    found = cli(*run, "--people", "many.parquet", "--truth", "job", "--json").json
    assert found["outcomes"][0]["trials"] == 1000
    assert "At most 1,000 people are looked for" in found["note"]


def test_a_person_is_read_as_a_file_would_be():
    read = _person(
        "zip=02139,age=31,weight=70.5,born=1990-05-31,job=a b", ["zip", "age", "weight", "born", "job"]
    )
    born = datetime.date(1990, 5, 31)
    assert read == {"zip": "02139", "age": 31, "weight": 70.5, "born": born, "job": "a b"}


@pytest.mark.parametrize(("epsilon", "near"), [("1", "0"), ("1/10", "2"), ("1/10", "5/2"), ("3", "1/15")])
def test_one_answer_alone_is_near_as_often_as_its_law_says(epsilon, near):
    alpha, most = np.exp(-float(Fraction(epsilon))), int(Fraction(near))
    law = (1 - alpha) / (1 + alpha) * sum(alpha ** abs(k) for k in range(-most, most + 1))
    assert _once(Fraction(epsilon), Fraction(near)) == pytest.approx(law, rel=1e-12)


def test_one_answer_alone_is_near_for_any_size_of_noise():
    for epsilon in (Fraction(1, 10**9), Fraction(1, 10**200)):
        assert _once(epsilon, 1 / (5 * epsilon)) == pytest.approx(1 - np.exp(-0.2), rel=1e-6)
    assert _once(Fraction(10**6), Fraction(0)) == 1


# ── private rows


def test_private_rows_are_like_those_of_members_alone():
    members = pa.table({"job": ["a"] * 60 + ["b"] * 20, "age": [30] * 60 + [40] * 20})
    others = pa.table({"job": ["c"] * 50, "age": [50] * 50})
    made = private_rows(members, others, names=["job", "age"], epsilon=Fraction(400), seed=1)
    assert 70 < made.num_rows < 90
    kinds = Counter(zip(made["job"].to_pylist(), made["age"].to_pylist(), strict=True))
    assert kinds["a", 30] > 50  # what goes together stays together
    assert kinds["b", 40] > 12
    assert kinds["a", 40] + kinds["b", 30] < 4
    noisy = private_rows(members, others, names=["job", "age"], epsilon=Fraction(1, 10), seed=1)
    assert "c" in noisy["job"].to_pylist()  # what occurs among others is possible, too


def test_private_rows_of_every_kind_of_value():
    day = datetime.date(2020, 1, 1)
    members = pa.table(
        {
            "many": [None, *(row / 4 for row in range(99))],
            "few": [float("nan"), None, *([0.5, float("inf")] * 49)],
            "days": [day + datetime.timedelta(days=row) for row in range(100)],
            "texts": [None, *(f"text {row}" for row in range(99))],
            "one": [True] * 100,
        }
    )
    made = private_rows(members, names=members.column_names, epsilon=Fraction(100), seed=1)
    assert made.schema.types == members.schema.types
    for name in members.column_names:
        possible = {repr(value) for value in members[name].to_pylist()}
        assert {repr(value) for value in made[name].to_pylist()} <= possible
    assert made["days"].null_count == 0


# ── what is wrong


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("linkage", "people.csv", "rows.csv", "--on", "zip,agee"), 'did you mean "age"?'),
        (("linkage", "people.csv", "rows.csv", "--on", " , "), "at least one column"),
        (("linkage", "people.csv", "nothing.csv", "--on", "zip"), "does not exist"),
        (("linkage", "people.csv", "notes.txt", "--on", "zip"), "unknown format"),
        (("linkage", "people.csv", "one.csv", "--on", "zip"), "at least two"),
        (
            ("linkage", "people.csv", "rows.csv", "--on", "zip", "--truth", "id", "--control", "one.csv"),
            "not both",
        ),
        (("linkage", "people.csv", "rows.csv", "--on", "zip,id", "--truth", "id"), "--truth must not be"),
        (("homogeneity", "rows.csv", "--quasi", "zip", "--sensitive", "zip"), "named twice"),
        (("homogeneity", "empty.csv", "--quasi", "zip", "--sensitive", "age"), "no rows"),
        (
            ("intersection", "rows.csv", "--quasi", "zip", "--sensitive", "job", "--person", "zip=1"),
            "two tables",
        ),
        (
            ("intersection", "rows.csv", "rows.csv", "--quasi", "zip", "--sensitive", "job"),
            "whom to look for",
        ),
        (("intersection", *RUNS["intersection"], "--show"), "--show is about one"),
        (
            (
                "intersection",
                "rows.csv",
                "rows.csv",
                "--quasi",
                "zip",
                "--sensitive",
                "job",
                "--person",
                "age=3",
            ),
            "not among --quasi",
        ),
        (
            (
                "intersection",
                "rows.csv",
                "rows.csv",
                "--quasi",
                "zip",
                "--sensitive",
                "job",
                "--person",
                "zip",
            ),
            "COLUMN=VALUE",
        ),
        (
            (
                "intersection",
                "rows.csv",
                "rows.csv",
                "--quasi",
                "zip,age",
                "--sensitive",
                "job",
                "--person",
                "age=3",
            ),
            'Nothing is said of the person in "zip"',
        ),
        (("singling-out", THREE[0], THREE[1], "one.csv"), "has no column"),
        (("singling-out", *THREE, "--columns", "zip,age,sex", "--width", "4"), "number of columns, 3"),
        (("singling-out", THREE[0], THREE[1], THREE[0]), "holds rows of the people"),
        (("inference", THREE[0], THREE[1], THREE[0], "--known", "zip", "--secret", "job"), "holds rows of"),
        (
            ("linkage", "people.csv", "rows.csv", "--on", "zip", "--control", THREE[2]),
            "holds rows of the people",
        ),
        (("linkage", "people.csv", "bare.csv", "--on", "zip"), "none of its 3 columns is like it"),
        (("singling-out", THREE[0], "bare.csv", THREE[2]), "those of SYNTHETIC"),
        (("singling-out", THREE[0], "same.csv", THREE[2]), "several columns of one name"),
        (
            (
                *("intersection", "rows.csv", "rows.csv", "--quasi", "zip", "--sensitive", "job"),
                *("--person", "zip=1", "--plot", "a.png"),
            ),
            "--plot draws a rate",
        ),
        (
            ("differencing", "mixed.csv", "-c", "cost", "--lower", "0", "--upper", "9"),
            "1 of its 9 values is not a number",
        ),
        (("averaging", "empty.csv"), "give one with somebody in it."),
        (("inference", *THREE, "--known", "zip", "--secret", "pay"), "has no column"),
        (("inference", *THREE, "--known", "zip", "--secret", "age", "--tolerance", "2"), "from 0 to 1"),
        (
            ("differencing", "people.csv", "-c", "name", "--lower", "0", "--upper", "1"),
            "does not hold numbers",
        ),
        (
            ("differencing", "rows.csv", "-c", "salary", "--lower", "1", "--upper", "1"),
            "--lower must be below",
        ),
        (("differencing", "rows.csv", "-c", "salary", "--lower", "x", "--upper", "1"), "lower"),
        (("differencing", *RUNS["differencing"], "--row", "8"), "no number"),
        (("differencing", *RUNS["differencing"], "--row", "201"), "beyond the last row"),
        (("differencing", "one.csv", "-c", "age", "--lower", "0", "--upper", "1"), "Fewer than three"),
        (("differencing", "rows.csv", "-c", "salary", "--lower", "0", "--upper", "1e300"), "within 1e290"),
        (("differencing", "rows.csv", "-c", "salary", "--lower", "0", "--upper", "1e-300"), "1e-290 apart"),
        (("averaging", "nothing.csv"), "does not exist"),
        (("averaging", "rows.csv", "--times", "2000000"), "at most 1,000,000"),
        (("reconstruction", "people.csv", "-c", "city"), "two values"),
        (("reconstruction", "rows.csv", "-c", "salary"), "two values"),
        (("reconstruction", "few.csv", "-c", "bit"), "at least 8 must have each"),
        (("tracing", "people.csv", "--columns", "sex,city"), '"city" must have two values'),
        (("tracing", "names.csv"), "No column has two values"),
        (("tracing", "rows.csv", "--people", "150"), "smaller --people"),
        (("averaging", "rows.csv", "--epsilon", "0"), "epsilon"),
        (("averaging", "rows.csv", "--tolerance", "1e400"), "at most 1e300"),
        (("differencing", *RUNS["differencing"], "--tolerance", "1e400"), "at most 1e300"),
        (("singling-out", *THREE, "--attacks", "1000000000"), "at most 100,000"),
        (("reconstruction", "rows.csv", "-c", "smokes", "--plot", "found.jpg"), ".png or .svg"),
        (("reconstruction", "rows.csv", "-c", "smokes", "--plot", "away/found.png"), "no folder"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_and_nothing_is_written(cli, folder, arguments, text):
    (folder / "notes.txt").write_text(SECRET)
    (folder / "one.csv").write_text(f"zip,age\n{SECRET},4711\n")
    (folder / "empty.csv").write_text("zip,age\n")
    (folder / "few.csv").write_text("bit\n" + "0\n" * 30 + "1\n" * 7)
    (folder / "names.csv").write_text("name\na\nb\nc\n")
    (folder / "bare.csv").write_text("4711,Ada,02139\n1,Bea,02138\n")
    (folder / "same.csv").write_text("4711,4711,02139\n1,2,02138\n")
    (folder / "mixed.csv").write_text("cost\n" + "1\n" * 8 + "about 4711\n")
    before = sorted(each.name for each in folder.iterdir())
    found = cli("attack", *arguments)
    assert found.code == 2, found
    said = " ".join(found.err.split())
    assert text in said
    assert "4711" not in said
    assert "Ada" not in said
    assert found.out == ""
    assert sorted(each.name for each in folder.iterdir()) == before


def test_what_is_wrong_is_a_document_too(cli, folder):
    found = cli("attack", "averaging", "nothing.csv", "--json")
    assert (found.code, found.out) == (2, "")
    assert json.loads(found.err)["error"]["code"] == "invalid_parameter"


def test_a_file_that_is_damaged_is_a_failure_of_the_source(cli, folder):
    (folder / "broken.parquet").write_bytes(b"PAR1" + SECRET.encode())
    assert cli("attack", "averaging", "broken.parquet").code == 1


# ── copies, rare secrets


def test_each_row_twice_is_caught(cli, folder):
    header, *rows = (folder / "rows.csv").read_text().splitlines()
    (folder / "twice.csv").write_text("\n".join([header, *rows, *rows]))
    run = ("attack", "linkage", "people.csv", "twice.csv", "--on", "zip,age,sex", "--seed", "1", "--json")
    assert cli(*run).json["outcomes"][0]["hits"] > ROWS / 2
    plain, private = cli(*run, "--truth", "id").json["outcomes"]
    assert plain["works"]
    assert (plain["detail"]["rows"], plain["detail"]["different rows"]) == (2 * ROWS, ROWS)
    assert not private["works"]
    half = pq.read_table(folder / THREE[0])
    pq.write_table(pa.concat_tables([half, half]), folder / "halves.parquet")
    named = ("attack", "linkage", THREE[0], "halves.parquet", "--on", "zip,age,sex", "--control", THREE[2])
    assert cli(*named, "--json").json["outcomes"][0]["works"]
    described = cli("attack", "singling-out", THREE[0], "halves.parquet", THREE[2], "--seed", "1", "--json")
    assert described.code == 0, described.err
    assert described.json["outcomes"][1]["works"]


def test_a_class_with_a_rare_secret_is_caught(cli, folder):
    ward = np.repeat(np.arange(50), 4)
    pq.write_table(pa.table({"ward": ward, "ill": np.where(ward == 7, "yes", "no")}), folder / "ill.parquet")
    run = ("attack", "homogeneity", "ill.parquet", "--quasi", "ward", "--sensitive", "ill")
    text = " ".join(cli(*run, "--values", "yes", "--show").out.split())
    assert "a person's class has one value alone in 4 of 4" in text
    assert "Certain: yes of 4 of 4." in text
    assert "It works." in text
    hidden = cli(*run, "--json").json["outcomes"]
    assert all("certain of" not in each["detail"] for each in hidden)
    shown = cli(*run, "--json", "--show").json["outcomes"]
    assert shown[0]["detail"]["certain of"] == {"no": [196, 196], "yes": [4, 4]}


def test_the_power_is_told_in_text_and_json(cli, folder):
    run = ("attack", "linkage", *RUNS["linkage"], "--seed", "1")
    small = cli(*run, "--leak", "0.02", "--json").json["outcomes"][-1]
    assert small["works"] is None
    assert small["power"]["leak"] == "the rows of 2.0% of the people as they are"
    assert not small["power"]["enough"]
    large = cli(*run, "--leak", "1", "--json").json["outcomes"][-1]
    assert large["works"] is False
    assert large["power"] == {
        "leak": "the rows of all people as they are",
        "hits": 20,
        "twins": 20,
        "enough": True,
    }
    assert "would be noticed in 20 of 20 twins planted" in " ".join(cli(*run, "--leak", "1").out.split())
    assert cli(*run, "--leak", "0").code == 2


@pytest.mark.parametrize("people", ["100", "40"])
def test_a_split_without_power_gives_no_all_clear(cli, folder, people):
    # Columns of which many say the same: half of the rows are too many to be recognised, forty are not.
    draw = simulation(8)
    base = draw.random((200, 40)) < 0.5
    rows = np.repeat(base, 3, axis=1)
    pq.write_table(pa.table({f"c{at}": rows[:, at] for at in range(120)}), folder / "bits.parquet")
    plain = cli("attack", "tracing", "bits.parquet", "--people", people, "--seed", "2", "--json").json
    assert plain["outcomes"][0]["works"] is not False


# ── pictures that cannot be written


def unwritable(folder):
    """A path each: no folder, no folder but a file, a folder, a name that is too long, no place for files."""
    (folder / "chart.png").mkdir()
    paths = ["away/a.png", "rows.csv/a.png", "chart.png", "x" * 300 + ".svg"]
    if Path("/proc/self").exists():
        paths.append("/proc/a.png")
    if os.geteuid() != 0:
        (folder / "shut").mkdir(mode=0o500)
        paths.append("shut/a.png")
    return paths


@pytest.mark.parametrize("attack", RUNS)
def test_a_picture_that_cannot_be_written_is_told_before_anything_is_read(cli, folder, attack):
    paths = unwritable(folder)
    before = sorted(each.name for each in folder.iterdir())
    # No file of the attack is there, which would be told otherwise.
    run = [each.replace(".parquet", ".gone").replace(".csv", ".gone") for each in RUNS[attack]]
    for path in paths:
        found = cli("attack", attack, *run, "--plot", path)
        assert (found.code, found.out) == (2, "")
        said = " ".join(found.err.split())
        assert said.startswith("sfumato: That setting cannot be used.")
        assert any(text in said for text in ("no folder", "is a folder", "cannot be written there"))
        assert sorted(each.name for each in folder.iterdir()) == before


def test_a_picture_that_fails_in_the_end_is_told_too(cli, folder):
    # Room for the name, and none for what is written beside it first.
    path = "x" * 246 + ".png"
    found = cli("attack", "reconstruction", *RUNS["reconstruction"], "--plot", path)
    assert (found.code, found.out) == (2, "")
    assert "cannot be written there" in " ".join(found.err.split())
    assert not [each for each in folder.iterdir() if each.name.startswith((".x", "x"))]


# ── what the noise is for


@pytest.mark.parametrize(
    ("low", "high", "reach"), [(0, 10, 10), (5, 10, 10), (-10, -5, 10), (-10, 10, 20), (-3, 10, 13)]
)
def test_one_person_moves_a_total_by_their_value_or_by_the_distance_of_the_bounds(low, high, reach):
    found = _reach(Fraction(low), Fraction(high), 200)
    # Brute force: anybody added, removed or exchanged, at the ends of the bounds.
    ends = (low, high)
    assert reach == max(*map(abs, ends), *(abs(one - other) for one in ends for other in ends))
    assert reach < found <= reach * (1 + 1e-9)


def test_rounding_to_floats_moves_a_total_by_no_more_than_is_allowed_for():
    low, high = Fraction("0.1"), Fraction("0.3")
    people = np.full(1000, float(high))
    without = Fraction(math.fsum(people[1:]))
    assert abs(Fraction(math.fsum(people)) - without) <= _reach(low, high, 1000)
    assert abs(Fraction(math.fsum(people)) - Fraction(math.fsum([*people[1:], 0.1]))) <= _reach(
        low, high, 1000
    )


def test_bounds_on_both_sides_of_zero_get_the_noise_of_their_distance(cli, folder):
    bounds = ("--column", "salary", "--lower", "-1000000", "--upper", "1000000", "--totals", "--json")
    misses = [
        cli("attack", "differencing", "rows.csv", *bounds).json["outcomes"][1]["detail"]["median_miss"]
        for _ in range(9)
    ]
    # Two totals at epsilon 1/2 and sensitivity 2,000,000: 1.15 · 4,000,000 between them (median of 900).
    assert 3.2e6 < np.median(misses) < 6.2e6


def test_private_rows_at_a_tiny_price_are_few_or_refused():
    members = pa.table({"bit": [False, True]})
    with seeded("a tiny epsilon"):
        made = private_rows(members, names=["bit"], epsilon=Fraction(1, 10**12), seed=1)
    assert 1 <= made.num_rows <= 10_000_000
    with pytest.raises(InvalidParameter, match="too"):
        private_rows(members, names=["bit"], epsilon=Fraction(1, 10**12), delta=Fraction(1, 10**30), seed=1)


# ── hostile files and settings


def test_escapes_in_a_value_do_not_reach_the_terminal(cli, folder):
    one = pa.table({"age": [31], "job": ["a\x1b[31mb\u202ec"]})
    pq.write_table(pa.concat_tables([one, one]), folder / "escape.parquet")
    run = (
        "attack",
        "intersection",
        "escape.parquet",
        "escape.parquet",
        "--quasi",
        "age",
        "--sensitive",
        "job",
    )
    shown = cli(*run, "--person", "age=31", "--show").out
    assert "Left: a [31mb c." in shown


def test_numbers_that_do_not_add_up_are_told(cli, folder):
    pq.write_table(pa.table({"n": [1e308] * 20}), folder / "huge.parquet")
    found = cli("attack", "differencing", "huge.parquet", "-c", "n", "--lower", "0", "--upper", "1")
    assert found.code == 2
    assert "too large to be added up" in " ".join(found.err.split())


@pytest.mark.parametrize("attack", RUNS)
def test_the_help_says_whom_it_is_for(cli, attack):
    assert STEWARD in " ".join(cli("attack", attack, "--help").out.split())
