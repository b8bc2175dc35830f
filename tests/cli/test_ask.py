"""`query` and `quote`: every way to ask, every way to be answered, and what programs may rely on."""

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


def test_the_question_comes_from_an_argument_a_file_or_standard_input(cli, hospital):
    (hospital / "by city.sql").write_text(BY_CITY)
    (hospital / "by_city.sql").write_text(BY_CITY)
    asked = cli("query", BY_CITY, "--epsilon", "0.2", "--json").json
    for again in (
        cli("query", "by_city.sql", "--epsilon", "0.2", "--json"),
        cli("query", "by city.sql", "--epsilon", "0.2", "--json"),
        cli("query", "-", "--epsilon", "0.2", "--json", stdin=BY_CITY),
        cli("query", "--epsilon", "0.2", "--json", stdin=BY_CITY),
    ):
        assert again.json["free"] is True
        assert again.json["rows"] == asked["rows"]
    assert cli("query", "missing.sql", "--epsilon", "0.2").code == 2
    assert cli("query", "-", "--epsilon", "0.2", stdin="  ").code == 2


def test_json_has_the_keys_that_programs_rely_on(cli, hospital):
    answer = cli("query", BY_CITY, "--epsilon", "0.25", "--confidence", "0.9", "--json").json
    assert list(answer) == [
        "columns",
        "estimands",
        "rows",
        "errors",
        "covering",
        "confidence",
        "paid",
        "free",
        "counted",
        "receipt",
        "touched",
        "bounds",
        "left",
        "quote",
    ]
    assert answer["columns"] == ["city", "n"]
    assert [row["city"] for row in answer["rows"]] == ["Lyon", "Nice"]
    assert all(isinstance(row["n"], int) for row in answer["rows"])
    assert [set(row) for row in answer["errors"]] == [{"n"}, {"n"}]
    assert answer["confidence"] == 0.9
    assert answer["paid"] == {"epsilon": 0.25, "delta": 0, "parts": {"the answer": 0.25}}
    assert answer["left"] == {"dataset": "visits", "analyst": None, "epsilon": 0.75, "delta": 1e-6}
    assert answer["free"] is False
    wider = cli("query", BY_CITY, "--epsilon", "0.25", "--confidence", "0.99", "--json").json
    assert wider["errors"][0]["n"] > answer["errors"][0]["n"]
    assert wider["rows"] == answer["rows"]
    assert wider["paid"] == {"epsilon": 0, "delta": 0, "parts": {}}
    assert (
        cli("query", BY_CITY, "--epsilon", "0.25", "--format", "json").json
        == cli("query", BY_CITY, "--epsilon", "0.25", "--json").json
    )


@pytest.mark.parametrize("written", ["19/20", " 0.95", "9.5e-1"])
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_every_way_to_write_a_confidence_gets_the_answer_that_was_paid(cli, hospital, written, form):
    done = cli("query", BY_CITY, "--epsilon", "0.2", "--confidence", written, "--format", form)
    assert done.code == 0
    assert "Lyon" in done.out


def test_what_was_paid_first_is_part_of_what_was_paid(cli, hospital):
    catalog = hospital / "sfumato.toml"
    catalog.write_text(catalog.read_text().replace("max_groups = 2", 'max_rows = "auto"'))
    answer = cli("query", BY_CITY, "--epsilon", "0.5", "--json").json
    assert answer["paid"] == {
        "epsilon": 0.5,
        "delta": answer["quote"]["delta"],
        "parts": {"the profile": 0.1, "the answer": 0.4},
    }
    assert answer["left"]["epsilon"] == 0.5
    again = cli("query", BY_CITY, "--epsilon", "0.5", "--json").json
    assert again["paid"] == {"epsilon": 0, "delta": 0, "parts": {}}
    refused = cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.7")
    assert refused.code == 3
    assert refused.err.lower().count("nothing was spent") == 1


def test_a_quote_spends_nothing_and_says_what_it_would(cli, hospital):
    for _ in range(2):
        quote = cli("quote", BY_CITY, "--epsilon", "0.25", "--json").json
        assert quote["left"]["epsilon"] == 1
        assert quote["quote"]["epsilon"] == 0.25
        assert {column["name"] for column in quote["quote"]["columns"]} == {"city", "n"}
    text = cli("quote", BY_CITY, "--epsilon", "0.25").out
    assert max(map(len, text.splitlines())) <= 80


def test_an_error_bar_may_be_asked_for_instead_of_a_price(cli, hospital):
    answer = cli("query", BY_CITY, "--error", "n=30", "--json").json
    assert all(0 < row["n"] <= 31 for row in answer["errors"])
    assert 0 < answer["paid"]["epsilon"] < 1
    one = cli("quote", BY_CITY, "--error", "30", "--json").json
    assert one["quote"]["epsilon"] == answer["paid"]["epsilon"]
    for wrong in (["n"], ["n=30", "n=31"], ["=3"], ["m=30"], ["n=-1"], ["n=x"]):
        options = [part for each in wrong for part in ("--error", each)]
        failed = cli("quote", BY_CITY, *options)
        assert failed.code == 2, wrong
        assert failed.out == ""
    assert cli("quote", BY_CITY).code == 2
    assert cli("quote", BY_CITY, "--epsilon", "0.1", "--error", "n=3").code == 2


def test_csv_and_parquet_carry_values_and_half_widths(cli, hospital):
    answer = cli("query", BY_CITY, "--epsilon", "0.5", "--json").json
    written = cli("query", BY_CITY, "--epsilon", "0.5", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(written.out)))
    assert list(rows[0]) == ["city", "n", "n_error"]
    assert [int(row["n"]) for row in rows] == [row["n"] for row in answer["rows"]]
    assert [float(row["n_error"]) for row in rows] == [row["n"] for row in answer["errors"]]
    assert "free" in written.err  # the price does not spoil the table
    assert cli("query", BY_CITY, "--epsilon", "0.5", "--format", "parquet").code == 2
    done = cli("query", BY_CITY, "--epsilon", "0.5", "--format", "parquet", "--output", "a.parquet")
    assert done.code == 0
    assert done.out == ""
    table = pq.read_table(hospital / "a.parquet")
    assert table.column_names == ["city", "n", "n_error"]
    assert table["n"].to_pylist() == [row["n"] for row in answer["rows"]]
    for format_, name in (("table", "a.txt"), ("csv", "a.csv"), ("json", "a.json")):
        assert cli("query", BY_CITY, "--epsilon", "0.5", "--format", format_, "-o", name).out == ""
    assert (hospital / "a.csv").read_text() == written.out
    assert json.loads((hospital / "a.json").read_text())["rows"] == answer["rows"]
    assert "±" in (hospital / "a.txt").read_text(encoding="utf-8")


def test_an_output_that_cannot_be_written_is_told_before_anything_is_paid(cli, hospital):
    for place in ("no/such/folder.txt", "."):
        assert cli("query", BY_CITY, "--epsilon", "0.5", "--output", place).code == 2
    assert cli("quote", BY_CITY, "--epsilon", "0.5", "--json").json["left"]["epsilon"] == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT age FROM visits",
        "SELECT * FROM visits",
        "SELECT COUNT(*) FROM vists",
        "SELECT COUNT(*) FROM visits WHERE nonsense(age) = 1",
        "DROP TABLE visits",
        "not even sql (",
        "SELECT COUNT(*) FROM visits; SELECT 1",
    ],
)
def test_a_refused_query_costs_nothing_and_exits_with_2(cli, hospital, sql):
    refused = cli("query", sql, "--epsilon", "0.5")
    assert refused.code == 2
    assert refused.out == ""
    assert refused.err.startswith("sfumato: The query was refused; nothing was spent.\n  ")
    assert "Traceback" not in refused.err
    told = json.loads(cli("query", sql, "--epsilon", "0.5", "--json").err)
    assert told["error"]["code"] == "query_refused"


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", "--epsiln", "1"],
        ["query", BY_CITY, "--epsilon", "much"],
        ["query", BY_CITY, "--epsilon", "-1"],
        ["query", BY_CITY, "--epsilon", "0.1", "--confidence", "2"],
        ["query", BY_CITY, "--epsilon", "0.1", "--format", "xml"],
        ["quere"],
        ["ledger", "shw"],
        ["ledger", "show", "nothing"],
    ],
)
def test_wrong_usage_exits_with_2(cli, hospital, arguments):
    cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.1")
    wrong = cli(*arguments)
    assert wrong.code == 2
    assert wrong.out == ""
    assert wrong.err
    assert "Traceback" not in wrong.err


def test_flags_go_over_the_environment_over_the_file(cli, hospital, monkeypatch):
    (hospital / "sub").mkdir()
    monkeypatch.setenv("SFUMATO_LEDGER", str(hospital / "sub" / "env.ledger"))
    assert cli("query", BY_CITY, "--epsilon", "0.1").code == 0
    assert (hospital / "sub" / "env.ledger").exists()
    assert not (hospital / "sfumato.ledger").exists()
    assert cli("query", BY_CITY, "--epsilon", "0.1", "--ledger", "flag.ledger").code == 0
    assert (hospital / "flag.ledger").exists()
    (hospital / "sfumato.toml").rename(hospital / "sub" / "other.toml")
    assert cli("schema").code == 2
    monkeypatch.setenv("SFUMATO_CONFIG", str(hospital / "sub" / "other.toml"))
    assert cli("schema").code == 0
    assert cli("schema", "--config", "none.toml").code == 2


def test_a_column_named_like_its_own_error_bar_is_kept(cli, hospital):
    sql = "SELECT COUNT(*) AS n, COUNT(*) AS n_error FROM visits"
    written = cli("query", sql, "--epsilon", "0.5", "--format", "csv")
    head = written.out.splitlines()[0].split(",")
    assert len(head) == len(set(head)) == 4


def test_schema_tells_the_promise(cli, hospital):
    text = cli("schema").out
    assert "one patient_id" in text
    assert "0 to 105" in text
    assert "not summable" in text
    document = cli("schema", "--json").json
    assert list(document) == ["path", "tables", "public", "budgets", "analysts"]
    (table,) = document["tables"]
    assert table["unit"]["column"] == "patient_id"
    assert table["roles"]["cost"] == "sensitive"
    assert document["budgets"]["visits"]["epsilon"] == "1"


def test_explain_says_it_in_words_and_in_json(cli):
    text = cli("explain", "1", "--delta", "1e-6")
    assert text.code == 0
    assert "73." in text.out
    assert max(map(len, text.out.splitlines())) <= 80
    listed = cli("explain", "1", "--deployments")
    assert len(listed.out) > len(text.out)
    document = cli("explain", "1", "--json").json
    assert list(document) == [
        "epsilon",
        "delta",
        "unit",
        "words",
        "advantage",
        "tradeoff",
        "beliefs",
        "deployments",
    ]
    assert 0.46 < document["advantage"] < 0.47  # tanh(1/2)
    # With a delta, beliefs are bounded but for a probability that is said.
    beliefs = cli("explain", "1", "--delta", "1e-6", "--json").json["beliefs"]
    assert all(0 < each["smallest"] < each["prior"] < each["largest"] < 1 for each in beliefs)
    assert {each["failure"] for each in beliefs} == {1e-5}
    assert cli("explain", "zero").code == 2
    assert cli("explain", "-1").code == 2


def test_histogram_and_crosstab_answer_like_their_sql(hospital, cli):
    binned = cli("histogram", "age", "--bins", "0,30,60", "--epsilon", "0.3", "--json")
    assert binned.code == 0, binned.err
    rows = json.loads(binned.out)["rows"]
    assert [(row["age_from"], row["age_to"]) for row in rows] == [(0, 29), (30, 60)]
    pairs = json.loads(cli("crosstab", "city", "age", "--table", "visits", "--epsilon", "0.3", "--json").out)
    assert pairs["columns"] == ["city", "age", "count"]
    text = "SELECT city, age, COUNT(*) AS n FROM visits GROUP BY city, age"
    assert json.loads(cli("query", text, "--epsilon", "0.3", "--json").out)["free"]
    for arguments, words in (
        (("histogram", "age"), "Give a price"),
        (("histogram", "age", "--bins", "many", "--epsilon", "1"), "--bins takes"),
        (("histogram", "city", "--epsilon", "1"), "SELECT city, COUNT(*) AS n FROM"),
        (("crosstab", "city", "agge", "--epsilon", "1"), "Did you mean age?"),
        (("crosstab", "city", "age", "--table", "visit", "--epsilon", "1"), "There is no table"),
    ):
        failed = cli(*arguments)
        assert failed.code != 0
        assert words in " ".join(failed.err.split()), failed.err


PYTHON = (
    "sf.",
    "=False",
    "=True",
    ".agg(",
    "epsilon=",
    "bins=",
    "error=",
    ".value_counts",
    ".group_by",
    "profile=",
)


def test_advice_is_in_the_words_of_the_command_line(hospital, cli):
    text = (hospital / "sfumato.toml").read_text()
    (hospital / "sfumato.toml").write_text(text.replace("max_groups = 2", 'max_rows = "auto"'))
    for arguments, words in (
        (("histogram", "city", "--epsilon", "1"), "sfumato query"),
        (("histogram", "cost", "--epsilon", "1"), "--bins 0,10,100"),
        (("histogram", "age"), "--epsilon 0.5"),
        (("query", BY_CITY, "--error", "n=5"), "--no-profile"),
        (("quote", BY_CITY, "--error", "n=5"), "--no-profile"),
        (("quote", BY_CITY), "--error n=50"),
        (("query", "SELECT SUM(cost) AS s FROM visits", "--epsilon", "0.1"), "--bounds auto"),
        (("query", "SELECT * FROM visits", "--epsilon", "0.1"), "COUNT(*)"),
    ):
        failed = cli(*arguments)
        told = " ".join(failed.err.split())
        assert failed.code == 2
        assert words in told, told
        assert not [word for word in PYTHON if word in told.replace('bounds="auto" (--bounds auto)', "")], (
            told
        )
