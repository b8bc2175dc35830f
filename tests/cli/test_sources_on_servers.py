"""Commands on a table that is in PostgreSQL: those that read it, and those that say what to do instead."""

from __future__ import annotations

import pyarrow as pa
import pytest

from postgres_engine import given, shared

SECRET = "canary-9931"


@pytest.fixture
def source(tmp_path, monkeypatch):
    """The address of a table of visits, and a folder to work in."""
    monkeypatch.chdir(tmp_path)
    rows = pa.table(
        {
            "patient_id": [i // 2 for i in range(60)],
            "city": ["Lyon", "Nice", SECRET] * 20,
            "day": ["2024-02-29"] * 60,
            "cost": [1.5] * 60,
        }
    )
    shared()
    return given(rows)


def catalog(source: str) -> str:
    return f"""
[datasets.visits]
epsilon = 5

[tables.visits]
source = "{source}"
unit = "patient_id"
max_rows = 2
dataset = "visits"
columns.city = {{ type = "enum", values = ["Lyon", "Nice"] }}
columns.cost = {{ type = "float", lower = 0, upper = 9 }}
"""


def test_init_writes_a_catalog_from_the_columns_of_a_server(cli, source, tmp_path):
    found = cli("init", source, "--unit", "patient_id", "--epsilon", "1")
    assert found.code == 0, found.err
    text = (tmp_path / "sfumato.toml").read_text()
    assert f'source = "{source}"' in text
    name = source.rpartition(".")[2]
    assert f"[tables.{name}]" in text
    assert SECRET not in text + found.out
    assert cli("query", f"SELECT COUNT(*) AS n FROM {name}", "--epsilon", "0.5").code == 0


def test_init_says_what_is_wrong_with_an_address(cli, source):
    for address, words in (
        (source + "_absent", "does not exist"),
        (source.replace("@", f":{SECRET}@"), "has a password in it"),
        ("postgresql://nobody@127.0.0.1:1/none::t", "cannot be reached"),
        ("postgresql://nobody@127.0.0.1:1/none", "write postgresql://role@host/database::schema.table"),
    ):
        found = cli("init", address, "--unit", "row")
        assert found.code != 0
        assert words in " ".join(found.err.split())
        assert SECRET not in found.out + found.err


def test_clients_can_encode_a_column_of_a_server(cli, source):
    numbers = ("--column", "cost", "--lower", "0", "--upper", "9", "--epsilon", "2")
    found = cli("local", "encode", source, *numbers, "-o", "r.sfl")
    assert found.code == 0, found.err
    found = cli(
        "local", "encode", source, "--column", "nothing", "--size", "3", "--epsilon", "2", "-o", "x.sfl"
    )
    assert found.code != 0
    assert "nothing" in found.err


@pytest.mark.parametrize(
    "command",
    [("validate",), ("anonymity", "{source}", "--quasi", "city")],
    ids=lambda command: command[0],
)
def test_what_reads_files_alone_says_so(cli, source, tmp_path, command):
    (tmp_path / "sfumato.toml").write_text(catalog(source))
    found = cli(*(part.format(source=source) for part in command))
    assert found.code != 0
    assert "copy it to this machine and give its path" in " ".join(found.err.split())


def test_a_table_of_a_server_is_prepared_beside_it(cli, source, tmp_path):
    (tmp_path / "sfumato.toml").write_text(catalog(source))
    refused = cli("prepare", "visits")
    assert refused.code == 2
    told = " ".join(refused.err.split())
    assert "say where: --output postgresql://writer@host/database::schema.table" in told
    target = f"{shared()}::public.{source.rpartition('.')[2]}_ready"
    found = cli("prepare", "visits", "--output", target, "--group-by", "city")
    assert found.code == 0, found.err
    assert f'source = "{target}"' in found.out.replace("\n", "")
    assert "the role that reads the source" in " ".join(found.out.split())
    (tmp_path / "sfumato.toml").write_text(catalog(target))
    asked = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
    assert "prepared for this grouping" in " ".join(cli("quote", asked, "--epsilon", "1").out.split())
    assert cli("query", asked, "--epsilon", "1").code == 0
    (tmp_path / "sfumato.toml").write_text(catalog(source))
    again = cli("prepare", "visits", "-o", target)
    assert again.code == 2
    assert "--force" in again.err
    made = cli("prepare", "visits", "-o", target, "--force", "--json")
    assert made.json["path"] == made.json["source"] == target
    assert made.json["bytes"] > 0
    assert SECRET not in found.out + found.err + refused.err + again.err + made.out
