"""`sfumato synth` as it is typed: declarations hold, two tables join, refusals come before the debit."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.output import _State
from sfumato.errors import CatalogUnusable
from sfumato.testing import seeded

CATALOG = """
[datasets.patients]
epsilon = 20
delta = 1e-6

[tables.patients]
source = "patients.parquet"
unit = "patient"
max_rows = 1

[tables.patients.columns]
age = { type = "int", lower = 0, upper = 99 }
sex = { type = "enum", values = ["F", "M"], nullable = false }
pregnant = { type = "bool", nullable = false }
zip = { type = "enum", values = [1, 2], nullable = false }
city = { type = "enum", values = ["Bonn", "Ulm"] }
card = "int"

[tables.patients.synth]
constraints = ["age >= 18"]
never = [{ sex = "M", pregnant = true }]
determines = [{ by = "zip", column = "city", mapping = { 1 = "Bonn", 2 = "Ulm" } }]
totals = { sex = { F = 120, M = 80 } }
workload = [["age", "sex"]]
ids = ["card"]

[tables.visits]
source = "visits.parquet"
unit = "patient"
max_rows = 4
dataset = "patients"

[tables.visits.columns]
kind = { type = "enum", values = ["a", "b"] }
note = "text"
"""
COST = ("--epsilon", "4", "--delta", "1e-8")
ASKED = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    many = range(200)
    patients = {
        "patient": list(many),
        "age": [18 + at % 70 for at in many],
        "sex": ["F" if at % 5 < 3 else "M" for at in many],
        "pregnant": [at % 15 == 0 for at in many],
        "zip": [1 + at % 2 for at in many],
        "city": [("Bonn", "Ulm")[at % 2] for at in many],
        "card": [7000 + at for at in many],
    }
    pq.write_table(pa.table(patients), tmp_path / "patients.parquet")
    whose = [at for at in many for _ in range(at % 4)]
    visits = {"patient": whose, "kind": ["ab"[at % 2] for at in whose], "note": [f"n {at}" for at in whose]}
    pq.write_table(pa.table(visits), tmp_path / "visits.parquet")
    (tmp_path / "sfumato.toml").write_text(CATALOG)
    return tmp_path


def lines(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_what_the_file_declares_holds_in_every_row(clinic, cli):
    with seeded("declared"):
        done = cli("synth", "patients", *COST, "--constraint", "age < 80", "-o", "out.csv", "--seed", "1")
    assert done.code == 0, done.err
    assert max(map(len, done.out.split("\n"))) <= 80
    rows = lines(clinic / "out.csv")
    assert Counter(row["sex"] for row in rows) == {"F": 120, "M": 80}
    assert all(18 <= int(row["age"]) < 80 for row in rows if row["age"])
    assert not [row for row in rows if row["sex"] == "M" and row["pregnant"] == "true"]
    assert {(row["zip"], row["city"]) for row in rows if row["city"]} <= {("1", "Bonn"), ("2", "Ulm")}
    assert [row["card"] for row in rows] == [str(at) for at in range(1, 201)]
    # without a column, what is said of it is left out; the rest holds
    few = cli("synth", "patients", *COST, "--without", "sex", "--json", "--method", "independent").json
    assert few["columns"] == ["patient", "age", "pregnant", "zip", "city", "card"]
    assert few["constraints"] == ["age >= 18", "zip determines city"]
    part = cli("synth", "SELECT age, sex FROM patients", *COST, "--json", "--method", "independent").json
    assert part["constraints"] == []
    assert "for whole tables" in part["note"]


def test_a_model_is_checked_asked_kept_and_asked_again(clinic, cli):
    told = ("--workload", "age,city", "--check", "2", "--ask", ASKED)
    quoted = cli("synth", "patients", *COST, *told[:4], "--quote").out
    assert "A check of it, on top: epsilon 2, delta 1e-08." in quoted
    with seeded("checked"):
        done = cli("synth", "patients", *COST, *told, "--model", "one.model", "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["left"]["epsilon"] == 14
    assert found["check"]["sets"] == 1
    assert [row["n"] for row in found["answers"][0]["rows"]] == pytest.approx([120, 80])
    again = cli("synth", "patients", *COST, *told)
    assert again.code == 0, again.err
    words = " ".join(again.out.split())
    assert "On record (receipt" in words
    assert "The check is on record (receipt" in words
    assert "the total variation between model and rows is" in words
    assert "The first rows" not in words
    assert "It is on record: to check it again" in " ".join(
        cli("synth", "patients", *COST, *told[:4], "--quote").out.split()
    )
    (clinic / "sfumato.toml").unlink()  # a file needs neither the catalog nor the ledger
    read = cli("synth", "--from", "one.model", "--ask", ASKED, "--json").json
    assert read["answers"] == found["answers"]
    assert (read["left"], read["free"]) == (None, True)
    assert cli("synth", "--from", "one.model", "-o", "more.parquet", "--rows", "7").code == 0
    assert pq.read_table(clinic / "more.parquet").num_rows == 7


def test_two_tables_join(clinic, cli):
    asked = ("synth", "visits", "patients", *COST, "--without", "visits.note", "--without", "patients.card")
    assert "patients with their visits" in cli(*asked, "--quote").out
    done = cli(*asked, "-o", "shared/", "--model", "two.model", "--picture", "two.png", "--json")
    assert done.code == 0, done.err
    assert "not kept here" in done.json["note"]
    files = {name: Path(one["file"]) for name, one in done.json["tables"].items()}
    assert set(files) == {"patients", "visits"}
    patients, visits = (pq.read_table(clinic / files[name]) for name in ("patients", "visits"))
    assert patients.column_names == ["patient", "age", "sex", "pregnant", "zip", "city"]
    assert visits.column_names == ["patient", "kind"]
    assert set(visits["patient"].to_pylist()) <= set(patients["patient"].to_pylist())
    assert (clinic / "two.png").stat().st_size > 1000
    again = cli(*asked)
    assert "On record" in again.out
    assert max(map(len, again.out.split("\n"))) <= 80
    drawn = cli("synth", "--from", "two.model", "--rows", "9", "--json").json
    assert drawn["tables"]["patients"]["rows"] == 9


def test_what_is_refused_is_refused_before_it_is_paid(clinic, cli):
    one, two = ("synth", "patients", *COST), ("synth", "patients", "visits", *COST)
    for command, code, said in [
        (("synth", "patients"), 2, "--epsilon 1"),
        (("synth", "--epsilon", "1"), 2, "Say which table"),
        ((*one, "--constraint", "age <"), 2, "cannot be read as a condition"),
        ((*one, "--constraint", "age > 99"), 2, "No values of age"),
        ((*one, "--workload", "age,sexx"), 2, "'sexx', which is no column"),
        ((*one, "--without", "shoe"), 2, "patients has no such column"),
        ((*one, "--check", "17"), 3, "epsilon"),
        ((*one, "--check", "0"), 2, "epsilon"),
        ((*one, "--ask", "SELECT MEDIAN(age) FROM patients"), 2, "no count, sum or average"),
        ((*one, "-o", "rows.xlsx"), 2, "must end in .parquet"),
        ((*one, "--rows", "-1"), 2, "number of rows"),
        ((*one, "--column", "card"), 2, "nothing is left to model"),
        ((*two, "-o", "both.csv"), 2, "go into a folder"),
        ((*two, "--check", "1"), 2, "--check is for one table"),
        ((*two, "--ask", ASKED), 2, "--ask is for a model of one table"),
        ((*two, "--without", "note"), 2, "--without patients.note"),
        ((*two, "--without", "visits.nothing"), 2, "no such column"),
        (two, 2, "--without patients.card"),
        (("synth", "patients", "visits", "x", *COST), 2, "no more"),
        (("synth", "--from", "no.model"), 2, "no such file"),
        (("synth", "--from", "sfumato.toml"), 2, "no.synthesizer|holds no synthesizer"),
        (("synth", "patients", "--from", "no.model"), 2, "leave out patients"),
        (("synth", "--from", "no.model", "--epsilon", "1"), 2, "leave out --epsilon"),
    ]:
        done = cli(*command)
        words = " ".join(done.err.split())
        assert done.code == code, (command, done.out, done.err)
        assert any(part in words for part in said.split("|")), (command, words)
        assert max(map(len, done.err.split("\n"))) <= 80
        assert not done.out
    left = cli("synth", "patients", *COST, "--quote", "--json").json["left"]
    assert left["epsilon"] == 20


def test_there_is_no_bar_until_something_is_measured():
    state = _State("reading what is on record", None)
    assert state.line(2.0, 3).endswith(" reading what is on record, 2 s")
    state.tell(0.5, "measuring")
    assert state.line(2.0, 3).endswith(" 50 %  measuring, 2 s")


def test_a_limit_that_nobody_named_is_said_or_refused(clinic, cli):
    catalog = clinic / "sfumato.toml"
    catalog.write_text(CATALOG.replace("max_rows = 4", 'max_rows = "auto"'))
    assert "declare a number to read more" in " ".join(cli("synth", "visits", *COST, "--quote").out.split())
    assert "declare a number" not in cli("synth", "patients", *COST, "--quote").out
    left_out = ("--without", "visits.note", "--without", "patients.card")
    for names in (("patients", "visits"), ("visits", "patients")):
        done = cli("synth", *names, *COST, *left_out)
        assert done.code == 2
        assert "write max_rows = 1 for the table with one row each" in " ".join(done.err.split())


def test_files_of_the_same_people_share_one_budget(clinic, cli):
    catalog = clinic / "sfumato.toml"
    files = ("patients.parquet", "visits.parquet")
    assert cli("init", *files, "--unit", "patient", "--epsilon", "3", "--force").code == 0
    read = sf.Catalog.read(catalog, environ={})
    assert list(read.budgets) == ["patients"]
    assert {table.dataset for table in read.tables} == {"patients"}
    assert cli("init", *files, "--unit", "row", "--epsilon", "3", "--force").code == 0
    assert list(sf.Catalog.read(catalog, environ={}).budgets) == ["patients", "visits"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("synth = 3", r"must be a section: \[tables.patients.synth\]"),
        ("synth.constraint = []", "Did you mean 'constraints'"),
        ("synth.constraints = 'age > 3'", "constraints is a list"),
        ("synth.constraints = [3]", "constraints is a list of texts"),
        ("synth.never = ['M']", "never is a list of values by column"),
        ("synth.determines = [{ by = 'zip' }]", "determines is a list such as"),
        ("synth.determines = [{ of = 'zip' }]", "no setting 'of'"),
        (
            "synth.determines = [{ by = 'zip', column = 'sex', mapping = { x = 'F' } }]",
            "'x' is no value of 'zip'",
        ),
        ("synth.totals = { sex = 4 }", "how many rows have each value"),
        ("synth.totals = { sex = { F = 1.5 } }", "a whole number of rows"),
        ("synth.totals = { shoe = { F = 1 } }", "no column 'shoe'"),
        ("synth.workload = [3]", "workload is a list of sets of columns"),
        ("synth.ids = 'card'", "ids is a list"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tmp_path, line, said):
    text = f"""
[datasets.patients]
epsilon = 1
[tables.patients]
source = "p.parquet"
unit = "row"
columns = {{ zip = "int", sex = {{ type = "enum", values = ["F"] }} }}
{line}
"""
    (tmp_path / "sfumato.toml").write_text(text)
    with pytest.raises(CatalogUnusable, match=said):
        sf.Catalog.read(tmp_path / "sfumato.toml", environ={})


def test_keys_have_the_types_of_their_columns(tmp_path):
    text = """
[datasets.t]
epsilon = 1
[tables.t]
source = "t.parquet"
unit = "row"
[tables.t.columns]
n = "int"
b = "bool"
day = "date"
word = "text"
odd = { type = "enum", values = ["NULL", "x"] }
[tables.t.synth.totals]
n = { -3 = 1, NULL = 2 }
b = { true = 1, False = 2 }
day = { 2024-02-29 = 4 }
word = { 7 = 5 }
odd = { NULL = 6, x = 7 }
"""
    import datetime

    (tmp_path / "sfumato.toml").write_text(text)
    assert sf.Catalog.read(tmp_path / "sfumato.toml", environ={}).synth["t"].totals == {
        "n": {-3: 1, None: 2},
        "b": {True: 1, False: 2},
        "day": {datetime.date(2024, 2, 29): 4},
        "word": {"7": 5},
        "odd": {"NULL": 6, "x": 7},
    }
