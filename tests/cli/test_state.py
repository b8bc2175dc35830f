"""`sfumato state`: a state is written into the catalog, questions are about the newest, and a check looks."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CATALOG = """
[datasets.visits]
epsilon = 100

[tables.visits]
source = "visits"
unit = "user"                # whose privacy is protected

[tables.visits.columns]
place = { type = "int", lower = 0, upper = 100 }
"""
TEXT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits").mkdir()
    (tmp_path / "sfumato.toml").write_text(CATALOG)

    def arrives(name, many, first):
        rows = {"user": range(first, first + many), "place": pa.array([first] * many, pa.int64())}
        pq.write_table(
            pa.table({k: list(v) if isinstance(v, range) else v for k, v in rows.items()}),
            tmp_path / "visits" / f"{name}.parquet",
        )

    return arrives


def counted(cli, *options):
    return round(cli("query", TEXT, "--epsilon", "10", "--format", "json", *options).json["rows"][0]["n"])


def test_states_are_added_asked_and_checked(cli, clinic, tmp_path):
    clinic("jan", 30, 0)
    added = cli("state", "add", "visits", "2026-01", "--json").json
    assert added == {"table": "visits", "state": "2026-01", "files": ["jan.parquet"]}
    assert abs(counted(cli) - 30) <= 5
    clinic("feb", 200, 1000)
    assert abs(counted(cli) - 30) <= 5  # not declared yet
    assert "as of 2026-02" in cli("state", "add", "visits", "2026-02").out
    assert abs(counted(cli) - 230) <= 5
    spent = cli("ledger", "show", "--json").json
    assert abs(counted(cli, "--at", "2026-01") - 30) <= 5
    assert cli("ledger", "show", "--json").json == spent
    shown = cli("ledger", "show").out
    assert "data of" in shown
    assert "2026-02" in shown
    assert "2026-01 is on record" in " ".join(cli("quote", f"{TEXT} ", "--epsilon", "20").out.split())
    listed = cli("state", "list", "visits").out.split()
    assert listed == ["2026-01", "1", "files", "2026-02", "2", "files"]
    assert "data of" in cli("card").out
    preparation = cli("check", "--json").json["steps"][1]
    assert preparation["verdict"] == "done"
    (tmp_path / "visits" / "jan.parquet").unlink()
    clinic("feb", 20, 1000)
    gone = cli("check", "--json").json["steps"][1]
    assert gone["verdict"] == "open"
    assert "jan.parquet of visits at 2026-01 is gone" in gone["evidence"]
    assert "feb.parquet of visits at 2026-02 has another size" in gone["evidence"]
    assert (tmp_path / "sfumato.toml").read_text().startswith(CATALOG.rstrip())


def test_states_by_a_column(cli, clinic):
    clinic("jan", 30, 0)
    assert cli("state", "add", "visits", "a", "--column", "place", "--last", "1").code == 0
    assert cli("state", "add", "visits", "b", "--last", "2").code == 0
    assert cli("state", "list", "visits", "--json").json["b"] == {
        "files": [],
        "column": "place",
        "last": 2,
        "snapshot": None,
    }


def test_what_cannot_be_a_state_leaves_the_file(cli, clinic, tmp_path):
    clinic("jan", 30, 0)
    before = (tmp_path / "sfumato.toml").read_text()
    for wrong in (
        ("nobody", "a"),
        ("visits", "all states"),
        ("visits", "a", "--last", "3"),
        ("visits", "a", "--column", "user", "--last", "3"),
        ("visits", "a", "--column", "place", "--last=--5"),
        ("visits", "a", "--column", "place", "--last", "9" * 5000),
    ):
        failed = cli("state", "add", *wrong)
        assert failed.code != 0
        assert "nobody foresaw" not in failed.err
        assert (tmp_path / "sfumato.toml").read_text() == before
    cli("state", "add", "visits", "a")
    assert "already" in cli("state", "add", "visits", "a").err
