"""`sfumato init`: any source, public metadata only, nothing overwritten."""

import gzip
import shlex
import tomllib

import duckdb
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from sfumato.catalog import Catalog


def test_every_kind_of_source(cli, data):
    (data / "people.csv").write_text("user_id,age,city,joined_date\n1,30,Lyon,2024-01-01\n")
    with gzip.open(data / "more.csv.gz", "wt") as stream:
        stream.write("a,b\n1,2\n")
    feather.write_feather(pa.table({"x": [1.5]}), data / "x.arrow", compression="uncompressed")
    with duckdb.connect(str(data / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE orders (customer_id INTEGER, amount DOUBLE)")
    sources = ["visits.parquet", "people.csv", "more.csv.gz", "x.arrow", "shop.duckdb::orders", "*.parquet"]
    made = cli("init", *sources, "--json")
    assert made.code == 0
    assert made.json["tables"] == ["visits", "people", "more", "x", "orders", "data"]
    assert made.json["roles"]["visits"]["patient_id"] == "identifier"
    tables = tomllib.loads((data / "sfumato.toml").read_text())["tables"]
    assert tables["people"]["columns"]["age"] == {"type": "int", "role": "quasi-identifier"}
    assert tables["people"]["columns"]["joined_date"]["type"] == "date"
    assert tables["orders"]["source"] == "shop.duckdb::orders"


def test_decided_at_once_it_can_be_asked_at_once(cli, data):
    assert (
        cli("init", "visits.parquet", "--unit", "patient_id", "--epsilon", "1", "--delta", "1e-6").code == 0
    )
    assert cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5").code == 0
    assert cli("init", "visits.parquet", "--unit", "nobody", "-o", "b.toml").code == 2
    for near in ("patient id", "PATIENT_ID", "patientid"):
        refused = cli("init", "visits.parquet", "--unit", near, "-o", "b.toml")
        assert "Did you mean 'patient_id'?" in " ".join(refused.err.split())
    assert cli("init", "visits.parquet", "--epsilon", "lots", "-o", "b.toml").code == 2
    assert not (data / "b.toml").exists()


def test_what_comes_next_follows_from_what_is_decided(cli, data):
    count = '"SELECT COUNT(*) AS n FROM visits"'
    said = cli("init", "visits.parquet").out
    assert "Edit sfumato.toml, then:\n\n  sfumato validate\n" in said
    assert f"  sfumato quote {count} --epsilon 0.1\n" in said
    assert "Each row is protected" not in said
    for epsilon, price in (("1", "0.1"), ("0.1", "0.1"), ("0.05", "0.05")):
        said = cli("init", "visits.parquet", "--unit", "patient_id", "--epsilon", epsilon, "--force").out
        assert f"Ask now, or edit sfumato.toml first:\n\n  sfumato query {count} --epsilon {price}\n" in said
        assert "Each row is protected" not in said
    assert cli("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.05").code == 0


@pytest.mark.parametrize(
    ("header", "column"),
    [
        ("user_id,age", "user_id, or another"),
        ("age,Patient ID", "'Patient ID', or another"),
        ("age", "COLUMN."),
    ],
)
def test_who_protects_rows_is_told_which_column_may_name_people(cli, data, header, column):
    (data / "people.csv").write_text(f"{header}\n")
    said = cli("init", "people.csv", "--header", "--unit", "row", "--epsilon", "1").out
    assert f"protect people: run init with --force and --unit {column}" in " ".join(said.split())


def test_one_place_to_decide_is_one(cli, data):
    for header, words in (
        ("note", "1 place in sfumato.toml is"),
        ("note,remark", "2 places in sfumato.toml are"),
    ):
        (data / "people.csv").write_text(f"{header}\n")
        said = cli("init", "people.csv", "--header", "--unit", "row", "--epsilon", "1", "--force").out
        assert words in " ".join(said.split())


def test_a_name_that_needs_quotes_is_shown_in_a_line_that_a_shell_takes(cli, data):
    (data / "people.csv").write_text("id,email,Income (EUR)\na,x,5\n")
    made = cli("init", "people.csv", "--header", "--unit", "row", "--epsilon", "1")
    line = next(line for line in made.out.splitlines() if "Income (EUR)" in line and "sfumato query" in line)
    program, *arguments = shlex.split(line)
    assert program == "sfumato"
    assert cli(*arguments).code == 0
    (data / "people.csv").write_text("id,income\na,5\n")
    assert "double quotes" not in cli("init", "people.csv", "--header", "--unit", "row", "--force").out


def test_a_name_without_its_quotes_is_answered_with_a_line_that_a_shell_takes(cli, data):
    (data / "people.csv").write_text("id,email,Income (EUR)\na,x,5\n")
    assert cli("init", "people.csv", "--header", "--unit", "row", "--epsilon", "1").code == 0
    for asked in ("SELECT COUNT(Income (EUR)) AS n FROM people", "SELECT COUNT(Income) AS n FROM people"):
        refused = cli("query", asked, "--epsilon", "0.1")
        assert refused.code == 2
        _, *arguments = shlex.split(refused.err.splitlines()[-1])
        assert cli(*arguments).code == 0
    bounds = cli("query", 'SELECT AVG("Income (EUR)") AS n FROM people', "--epsilon", "0.1").err
    assert "put the whole question in single quotes: sfumato query 'SELECT …'" in " ".join(bounds.split())
    plain = cli("query", "SELECT email, COUNT(*) AS n FROM people GROUP BY email", "--epsilon", "0.1").err
    assert "Others must first be declared, by the steward." in " ".join(plain.split())
    assert "shell" not in plain


def test_nothing_in_the_file_depends_on_the_rows(cli, data):
    (data / "one").mkdir()
    (data / "two").mkdir()
    (data / "one/people.csv").write_text("user_id,age,city,note\n7,31,Lyon,x\n8,99,Nice,y\n")
    (data / "two/people.csv").write_text("user_id,age,city,note\n,,,\n")
    for folder in ("one", "two"):
        assert cli("init", f"{folder}/people.csv", "-o", f"{folder}/sfumato.toml").code == 0
    assert (data / "one/sfumato.toml").read_text() == (data / "two/sfumato.toml").read_text()
    assert 'source = "people.csv"' in (data / "one/sfumato.toml").read_text()


def test_an_existing_file_is_left_as_it_is(cli, data):
    (data / "sfumato.toml").write_text("mine")
    kept = cli("init", "visits.parquet")
    assert kept.code == 2
    assert "--force" in kept.err
    assert (data / "sfumato.toml").read_text() == "mine"
    assert cli("init", "visits.parquet", "--force").code == 0
    assert (data / "sfumato.toml").read_text() != "mine"


@pytest.mark.parametrize("source", ["missing.parquet", "nothing/*.csv", "sfumato.toml", "broken.parquet"])
def test_an_unusable_source_is_told_and_nothing_is_written(cli, data, source):
    (data / "broken.parquet").write_bytes(b"PAR1 not really")
    failed = cli("init", source)
    assert failed.code == 1
    assert failed.err.startswith("sfumato: The data source cannot be used.")
    assert not (data / "sfumato.toml").exists()


def test_the_catalog_is_found_from_a_folder_below(cli, data, monkeypatch):
    assert cli("init", "visits.parquet", "--unit", "row", "--epsilon", "1").code == 0
    (data / "below").mkdir()
    monkeypatch.chdir(data / "below")
    assert Catalog.read(environ={}).tables[0].source == str(data / "visits.parquet")


def test_what_pandas_writes_along_is_seen_through(cli, data):
    rows = pa.table({"patient_id": [1.0, None], "age": [30, 40], "__index_level_0__": [0, 1]})
    pq.write_table(rows, data / "pandas.parquet")
    made = cli("init", "pandas.parquet", "--json")
    assert made.code == 0, made.err
    assert made.json["roles"]["pandas"] == {"patient_id": "identifier", "age": "quasi-identifier"}
    text = (data / "sfumato.toml").read_text()
    assert "__index_level_0__" not in text
    assert 'could be "patient_id"' in text.replace("\n# ", " ")
    assert cli("init", "pandas.parquet", "--unit", "__index_level_0__", "-o", "b.toml").code == 0
