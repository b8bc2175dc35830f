"""`sfumato rehearse`: made-up rows, whatever the file's sources are."""

import pyarrow.parquet as pq
import pytest

COUNT = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"


@pytest.fixture
def declared(cli, tmp_path, monkeypatch):
    """A file whose source does not exist: whoever opened it would fail."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sfumato.toml").write_text(
        """
[datasets.visits]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "nowhere.parquet"
unit = "patient"
max_rows = "auto"
[tables.visits.columns]
city = { type = "enum", values = ["Lyon", "Nice"] }
age = { type = "int", lower = 0, upper = 99 }
"""
    )
    return cli


def test_a_question_is_answered_without_data_or_ledger(declared, tmp_path):
    asked = declared("rehearse", COUNT, "--epsilon", "0.5")
    assert asked.code == 0, asked.err
    assert "made up from the declarations" in " ".join(asked.out.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sfumato.toml"]
    assert declared("rehearse", COUNT, "--epsilon", "0.5", "--json").json["rows"][0]["city"] == "Lyon"


def test_what_would_be_refused_is_refused(declared):
    assert declared("rehearse", COUNT, "--epsilon", "2").code == 3
    assert declared("rehearse", "SELECT COUNT(*) AS n FROM visit", "--epsilon", "1").code == 2


def test_the_tables_can_be_written(declared, tmp_path):
    wrote = declared("rehearse", "--write", "made")
    assert wrote.code == 0, wrote.err
    assert set(pq.read_table(tmp_path / "made" / "visits.parquet").column_names) == {"patient", "city", "age"}
    again = declared("rehearse", "--write", "made")
    assert again.code == 2
    assert "is there already" in " ".join(again.err.split())
