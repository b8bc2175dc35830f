"""`sfumato prepare`: a steward's file, asked like its source, written over only by force."""

import stat

import pytest

BY_CITY = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


def test_it_is_written_and_the_catalog_can_point_at_it(cli, hospital):
    made = cli("prepare", "visits")
    assert made.code == 0
    assert 'source = "visits.prepared.duckdb"' in made.out
    assert "the same 2 rows" in made.out
    target = hospital / "visits.prepared.duckdb"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    text = (hospital / "sfumato.toml").read_text()
    (hospital / "sfumato.toml").write_text(text.replace("visits.parquet", "visits.prepared.duckdb"))
    answer = cli("query", BY_CITY, "--epsilon", "0.5", "--json")
    assert answer.code == 0
    assert len(answer.json["rows"]) == 2


def test_json_names_what_was_written_and_nothing_of_the_rows(cli, hospital):
    made = cli("prepare", "--json", "-o", "p.duckdb")
    assert made.code == 0
    assert set(made.json) == {"path", "table", "unit", "columns", "groups", "bytes", "source"}
    assert made.json["groups"] == []
    assert (made.json["table"], made.json["unit"]) == ("visits", "patient_id")
    assert made.json["columns"] == ["city", "age", "cost"]
    assert made.json["source"] == "p.duckdb"


def test_a_grouping_can_be_prepared_for(cli, hospital):
    made = cli("prepare", "--group-by", "city, age", "--group-by", "city", "--json")
    assert made.code == 0
    assert made.json["groups"] == ["city", "age"]
    made = cli("prepare", "--force", "--group-by", "city")
    told = " ".join(made.out.split())
    assert "Questions that group by city and nothing else take 2 groups of each unit and 1 row of it" in told
    text = (hospital / "sfumato.toml").read_text()
    (hospital / "sfumato.toml").write_text(text.replace("visits.parquet", "visits.prepared.duckdb"))
    quote = cli("quote", BY_CITY, "--epsilon", "0.5")
    assert "when the table was prepared for this grouping" in " ".join(quote.out.split())
    assert cli("query", BY_CITY, "--epsilon", "0.5").code == 0


def test_an_existing_file_is_left_as_it_is(cli, hospital):
    assert cli("prepare").code == 0
    before = (hospital / "visits.prepared.duckdb").read_bytes()
    kept = cli("prepare")
    assert kept.code == 2
    assert "--force" in kept.err
    assert (hospital / "visits.prepared.duckdb").read_bytes() == before
    assert cli("prepare", "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("patients",), 2, "no table 'patients'"),
        (("-o", "p.parquet"), 2, "ends in .duckdb"),
        (("-o", "nowhere/p.duckdb"), 2, "no folder"),
        (("--config", "none.toml"), 2, "There is no none.toml"),
        (("--group-by", "town"), 2, "no declared column 'town' to group by; it has city, age, cost"),
        (("--group-by", "city,patient_id"), 2, "patient_id is the privacy unit, not a group"),
    ],
)
def test_what_cannot_be_done_is_told(cli, hospital, arguments, code, words):
    failed = cli("prepare", *arguments)
    assert (failed.code, words in failed.err) == (code, True)


def test_a_table_must_be_named_where_there_are_several(cli, hospital):
    text = (hospital / "sfumato.toml").read_text()
    second = text[text.index("[tables.visits]") :].replace("tables.visits", "tables.more")
    budget = "\n[datasets.more]\nepsilon = 1\n"
    (hospital / "sfumato.toml").write_text(text + second + budget)
    failed = cli("prepare")
    assert failed.code == 2
    assert "Which table?" in failed.err
    assert "more, visits" in failed.err


def test_a_broken_source_leaves_nothing_behind(cli, hospital):
    (hospital / "visits.parquet").write_bytes(b"PAR1 Zanzibar-4711")
    failed = cli("prepare")
    assert failed.code == 1
    assert not list(hospital.glob("*.duckdb*"))


def test_another_engine_has_no_prepared_files(cli, hospital):
    file = hospital / "sfumato.toml"
    file.write_text(f'{file.read_text()}\n[engine]\nname = "abacus"\n')
    refused = cli("prepare")
    assert refused.code == 2
    told = " ".join(refused.err.split())
    assert (
        "prepared for the engines duckdb, postgres and spark, and visits of sfumato.toml is read by abacus"
        in told
    )
    assert not (hospital / "visits.prepared.duckdb").exists()
