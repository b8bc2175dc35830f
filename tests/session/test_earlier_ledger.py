"""Ledgers of an earlier version: they open, verify, and every question on record is recognised and free."""

from __future__ import annotations

import base64
import importlib.util
import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from postgres import running
from sfumato.cli.receipts import _about
from sfumato.errors import AccessDenied
from sfumato.ledger import Ledger, Right

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


def shown(ledger: Ledger) -> None:
    """What was asked is told as it was, though it is written down in another way now."""
    told = [str(each.purpose) for each in ledger.entries() if each.kind == "debit"]
    assert told[0] == "SELECT COUNT(*) AS n FROM visits"
    assert "bounds: numbers or groups of visits" in told
    assert told[-3:] == ["reserve price: 2026-03-01", "reserve price: 2026-03-02", "SELECT …"]
    paid = {each.purpose.spender: each.purpose for each in ledger.entries("visits") if each.kind == "debit"}
    assert set(paid) == {"sql", "bounds", "table"}
    assert (paid["bounds"].sql, paid["bounds"].epsilon) == (None, Fraction(2, 5))
    assert [_about(each) for each in ledger.entries() if each.kind == "limit"] == [
        "1 in all: a student project"
    ]


def open_to_who_paid(ledger: Ledger) -> None:
    """An answer of before is free for whoever paid for it, and counts for everybody else who is named."""
    before = ledger.export()
    paid = {each.number: each for each in ledger.entries() if each.kind == "debit"}
    kept = {each.memo["debit"] for each in ledger.entries() if each.kind == "release"}
    assert kept
    for number in kept:
        debit = paid[number]
        mine = [one.number for one, _ in ledger.recall(debit.dataset, debit.fingerprint, debit.analyst)]
        others = [one.number for one, _ in ledger.recall(debit.dataset, debit.fingerprint, "a stranger")]
        assert (number in mine, number in others) == (True, False)
    assert ledger.export() == before


def opens_nothing(ledger: Ledger) -> None:
    """No receipt of before gives a right, and none of them can be gone on with."""
    for receipt in ledger.entries():
        with pytest.raises(AccessDenied):
            Right(receipt, (str(receipt.fingerprint),))
        if receipt.fingerprint is not None:
            assert ledger.resume(receipt.dataset, receipt.fingerprint) is None


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
        shown(ledger)
        open_to_who_paid(ledger)
        opens_nothing(ledger)
        unanswered(ledger)


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
