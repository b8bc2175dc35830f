"""Ledgers of an earlier version: they open, verify, and every question on record is recognised and free."""

from __future__ import annotations

import base64
import importlib.util
import json
import shutil
from pathlib import Path

import pytest

import sfumato as sf
from postgres import running
from sfumato.ledger import Ledger

DATA = Path(__file__).parent.parent / "data" / "ledger-v2"
_spec = importlib.util.spec_from_file_location("earlier_questions", DATA / "questions.py")
earlier = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(earlier)


def asked_again(ledger: Ledger, folder: Path, kept: dict) -> None:
    """The same answers to the same fingerprints, for nothing, and nothing was added to the chain."""
    before = ledger.export()
    assert ledger.verify().ok
    assert [[each["kind"], each["fingerprint"], each["memo"]] for each in before] == kept["export"]
    found = earlier.ask(ledger, folder)
    assert found == {name: kept[name] for name in found}
    assert ledger.export() == before


def unanswered(ledger: Ledger) -> None:
    """What a process paid for and did not live to read is paid again, whatever receipt there is."""
    spent = ledger.balance("visits").spent
    with sf.Session(earlier.visits(), ledger=ledger) as session:
        release = session.sql("SELECT SUM(cost) AS s FROM visits WHERE cost > 3").release(epsilon=1)
    assert not release.free
    assert ledger.balance("visits").spent == spent + 1
    assert ledger.verify().ok


def test_a_file_of_an_earlier_version(tmp_path):
    for path in DATA.glob("visits.*"):
        shutil.copy(path, tmp_path)
    (tmp_path / "visits.ledger.key").chmod(0o600)  # as it was written, and as no checkout keeps it
    with Ledger.open(tmp_path / "visits.ledger") as ledger:
        asked_again(ledger, tmp_path, json.loads((DATA / "visits.json").read_text()))
        unanswered(ledger)


@pytest.mark.xdist_group("postgres")
def test_a_database_of_an_earlier_version(tmp_path):
    import psycopg

    kept = json.loads((DATA / "postgres.json").read_text())
    state = shutil.copytree(DATA / "state", tmp_path / "state")
    next(state.glob("*.key")).chmod(0o600)
    with running() as server, server.database() as address:
        Ledger.open(address, state=tmp_path / "made").close()  # for its tables, which are the same ever since
        with psycopg.connect(address, autocommit=True) as connection:
            for table, rows in kept.pop("tables").items():
                connection.execute(f"DELETE FROM sfumato_{table}")
                for row in rows:
                    values = [base64.b64decode(x["bytes"]) if isinstance(x, dict) else x for x in row]
                    marks = ", ".join(["%s"] * len(values))
                    connection.execute(f"INSERT INTO sfumato_{table} VALUES ({marks})", values)
        with Ledger.open(address, state=state) as ledger:
            asked_again(ledger, tmp_path, kept)
            unanswered(ledger)
