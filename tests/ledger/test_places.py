"""Where a ledger lies, and when it cannot be reached, read or written: one sentence, nothing half done."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import get_args

import psycopg
import pytest

from sfumato.errors import (
    InvalidParameter,
    LedgerMismatch,
    LedgerUnusable,
    MissingExtra,
)
from sfumato.ledger import Budget, Ledger, Steward, sqlite, store
from sfumato.ledger.receipt import Kind
from sfumato.loss import PureLoss

F = Fraction
TENTH = PureLoss("0.1")
DATA = Path(__file__).parent.parent / "data" / "ledger-v1"


def owe(ledger, **more):
    return ledger.debit("visits", TENTH, **({"fingerprint": "q"} | more))


def pay(ledger, **more):
    return owe(ledger, **more).receipt


def test_by_default_key_and_anchor_lie_beside_the_file(tmp_path):
    (tmp_path / "new").mkdir()
    with Ledger.open(tmp_path / "new" / "a ledger?*[x].db") as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(1))
        pay(ledger)
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == [f"a ledger?*[x].db{end}" for end in ("", ".anchor", ".anchor.lock", ".key")]
    assert (tmp_path / "new" / names[0]).stat().st_mode & 0o777 == 0o600


def test_by_default_postgres_keeps_its_state_in_the_current_folder(postgres_place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Ledger.open(postgres_place.where) as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(1))
    assert len(list((tmp_path / ".sfumato").glob("*.anchor"))) == 1
    with Ledger.open(postgres_place.where) as ledger:
        assert len(ledger.datasets()) == 1


def test_nothing_is_made_unasked(tmp_path):
    with pytest.raises(LedgerUnusable, match="no ledger"):
        Ledger.open(tmp_path / "none", create=False)
    with pytest.raises(LedgerUnusable, match="no ledger"):
        Ledger.inspect(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["mysql://x/y", "", 3, "sqlite:///x"])
def test_only_known_places(where):
    with pytest.raises(InvalidParameter):
        Ledger.open(where)


def test_a_file_of_something_else_is_left_alone(tmp_path):
    text = tmp_path / "data.csv"
    text.write_text("a,b\n" * 1000)
    with pytest.raises(LedgerUnusable, match="not a ledger"):
        Ledger.open(text)
    assert text.read_text() == "a,b\n" * 1000
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(LedgerUnusable, match="file of its own"):
        Ledger.open(other)
    assert other.read_bytes() == before
    with pytest.raises(LedgerUnusable):
        Ledger.open(tmp_path)
    with pytest.raises(LedgerUnusable):
        Ledger.open(text / "below.ledger")


def test_a_damaged_file_is_refused(sqlite_place):
    with sqlite_place.made() as ledger:
        for _ in range(9):
            pay(ledger)
    path = Path(sqlite_place.where)
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(LedgerUnusable):
        sqlite_place.open()


def test_a_server_that_cannot_be_reached(postgres_place, tmp_path):
    password = psycopg.conninfo.conninfo_to_dict(postgres_place.where)["password"]
    wrong = (
        postgres_place.where.replace(password, "wrong"),
        postgres_place.where + "_nowhere",
        "postgresql://u:secret@127.0.0.1:1/x",
        "postgresql://[nonsense",
    )
    for address in wrong:
        with pytest.raises(LedgerUnusable, match="cannot be") as refused:
            Ledger.open(address, state=tmp_path)
        said = str(refused.value)
        assert "wrong" not in said
        assert "secret" not in said
        assert refused.value.__suppress_context__


def test_a_lost_connection_is_made_again(postgres_place):
    with postgres_place.made(Budget(1)) as ledger:
        pay(ledger)
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sfumato'"
        postgres_place.sql(end)
        pay(ledger)
        assert ledger.balance("visits").spent == F("0.2")
        commit = ledger._journal.store.commit
        ledger._journal.store.commit = lambda: (postgres_place.sql(end), commit())
        with pytest.raises(LedgerUnusable, match="uncertain"):
            pay(ledger)
        ledger._journal.store.commit = commit
        assert ledger.balance("visits").spent == F("0.2")
        pay(ledger)
        assert ledger.verify().ok


def test_a_role_that_may_not_write(postgres_place):
    postgres_place.made(Budget(1)).close()
    role = f"reader_{os.urandom(4).hex()}"
    postgres_place.sql(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    for table in ("ledger", "receipts", "payloads"):
        postgres_place.sql(f"GRANT SELECT ON sfumato_{table} TO {role}")
    parts = psycopg.conninfo.conninfo_to_dict(postgres_place.where)
    address = f"postgresql://{role}:x@{parts['host']}:{parts['port']}/{parts['dbname']}"
    try:
        shutil.copytree(postgres_place.state, postgres_place.state / "reader")
        for path in list((postgres_place.state / "reader").glob("*.ledger")):
            path.unlink()
        with Ledger.open(address, state=postgres_place.state / "reader") as ledger:
            assert ledger.balance("visits").spent == 0
            with pytest.raises(LedgerUnusable, match="may not"):
                pay(ledger)
    finally:
        postgres_place.sql(f"DROP OWNED BY {role}")
        postgres_place.sql(f"DROP ROLE {role}")


def failing(monkeypatch, name, code, *, only=".anchor"):
    """Makes one call of the operating system fail as on a full or read-only disk."""
    real = getattr(os, name)

    def fail(path, *arguments, **more):
        if not isinstance(path, int) and only not in str(path):
            return real(path, *arguments, **more)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize(
    ("name", "code"), [("open", errno.EROFS), ("open", errno.EACCES), ("write", errno.ENOSPC)]
)
def test_no_room_for_the_anchor_shows_before_anything_is_written(place, monkeypatch, name, code):
    with place.made(Budget(1)) as ledger:
        right = owe(ledger)
        failing(monkeypatch, name, code)
        acts = [lambda: pay(ledger), lambda: Steward(ledger).revoke("visits", "ada", reason="x")]
        if name == "open":  # an answer needs no room there, but the anchor is looked at
            acts.append(lambda: ledger.record(right, b"x"))
        for act in acts:
            with pytest.raises(LedgerUnusable, match="Nothing was spent") as refused:
                act()
            assert refused.value.__suppress_context__
        monkeypatch.undo()
        assert len(ledger.export()) == 3
        ledger.record(right, b"y")
        assert ledger.recall("visits", "q") == [(right.receipt, b"y")]
        assert ledger.verify().ok
    assert not list(place.state.glob("*.tmp"))


@pytest.mark.parametrize("name", ["fdatasync", "write"])
def test_an_anchor_that_cannot_follow_is_said_and_caught_up(place, monkeypatch, name):
    with place.made(Budget(1)) as ledger:
        commit = ledger._journal.store.commit
        ledger._journal.store.commit = lambda: (commit(), failing(monkeypatch, name, errno.EIO))
        with pytest.raises(LedgerUnusable, match="is on record and paid"):
            pay(ledger)
        monkeypatch.undo()
        ledger._journal.store.commit = commit
        assert ledger.balance("visits").spent == F("0.1")
    assert not list(place.state.glob("*.tmp"))
    with place.open() as ledger:
        assert ledger.verify().ok


def test_a_full_disk_under_sqlite(sqlite_place):
    with sqlite_place.made(Budget(1)) as ledger:
        pages = ledger._journal.store.execute("PRAGMA page_count")[0][0]
        ledger._journal.store.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LedgerUnusable, match="disk is full"):
            pay(ledger, memo={"x": "y" * 100_000})
        ledger._journal.store.execute("PRAGMA max_page_count = 100000")
        assert ledger.balance("visits").entries == 0
        pay(ledger)
        assert ledger.verify().ok


def test_a_read_only_database(sqlite_place):
    with sqlite_place.made(Budget(1)) as ledger:
        ledger._journal.store.execute("PRAGMA query_only = ON")
        with pytest.raises(LedgerUnusable, match="read-only"):
            pay(ledger)
        ledger._journal.store.execute("PRAGMA query_only = OFF")
        pay(ledger)
        assert len(ledger.export()) == 3


def test_a_busy_database_is_not_waited_for_for_ever(sqlite_place, monkeypatch):
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.05)
    with sqlite_place.made(Budget(1)) as ledger:
        other = sqlite3.connect(sqlite_place.where, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnusable, match="busy"):
            pay(ledger)
        assert ledger.balance("visits").entries == 0  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        pay(ledger)


def test_what_is_committed_is_synced(sqlite_place):
    with sqlite_place.made(Budget(1)) as ledger:
        assert ledger._journal.store.execute("PRAGMA synchronous") == [(2,)]
        assert ledger._journal.store.execute("PRAGMA journal_mode") == [("wal",)]


def test_psycopg_is_an_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"sfumato\[postgres\]"):
        Ledger.open("postgresql://localhost/x")


def test_an_interrupt_between_the_steps_leaves_a_whole_ledger(sqlite_place):
    with sqlite_place.made(Budget(1)) as ledger:
        commit = ledger._journal.store.commit

        def interrupted():
            commit()
            raise KeyboardInterrupt

        ledger._journal.store.commit = interrupted
        with pytest.raises(KeyboardInterrupt):
            pay(ledger)
        ledger._journal.store.commit = commit
        assert ledger.balance("visits").spent == F("0.1")  # on record, so it counts
        pay(ledger)
        assert ledger.verify().ok


# ── versions


def frozen(tmp_path):
    for path in DATA.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "visits.ledger.key").chmod(0o600)
    return tmp_path / "visits.ledger"


def test_a_ledger_of_version_1_opens(tmp_path):
    path = frozen(tmp_path)
    with Ledger.open(path) as ledger:
        assert ledger.verify().ok
        kinds = {receipt.kind for receipt in ledger.entries()}
        assert kinds == set(get_args(Kind)) - {
            "adopt",
            "block",
            "point",
            "read",
            "give",
            "access",
        }  # which came later
        balances = {dataset.name: ledger.balance(dataset.name) for dataset in ledger.datasets()}
        assert {name: balance.accountant for name, balance in balances.items()} == {
            "visits": "basic",
            "zcdp": "zcdp",
            "gaussian": "gaussian",
            "rdp": "rdp",
            "closed": "basic",
        }
        assert balances["visits"].spent == F("0.5")
        assert balances["visits"].epsilon == 2
        assert ledger.balance("visits", "ada").spent == F("0.2")
        assert all(balance.retrospective <= balance.spent for balance in balances.values())
        assert ledger.recall("visits", "question")[0][1] == b"forty-two"
        assert [receipt.loss is not None for receipt in ledger.entries() if receipt.kind == "debit"] == [
            True
        ] * 7
        pay(ledger)
        with pytest.raises(LedgerMismatch):
            ledger.register("visits", {"unit": "row"}, Budget(1))
        assert ledger.register("zcdp", {"unit": "row"}, Budget(1, "1e-6", "zcdp")).budget.limits[0] > 0
        assert ledger.register("rdp", {"unit": "row"}, Budget(1, "1e-6", "rdp")).budget.order == 22


def test_a_later_version_migrates_in_one_step_and_an_older_program_refuses(tmp_path, monkeypatch):
    path = frozen(tmp_path)
    with monkeypatch.context() as later:
        migrations = (*store.MIGRATIONS, ("CREATE TABLE sfumato_new (x {integer})",))
        for module in ("store", "opening"):
            later.setattr(f"sfumato.ledger.{module}.MIGRATIONS", migrations)
        with Ledger.open(path) as ledger:
            assert ledger._journal.store.execute("SELECT * FROM sfumato_new") == []
            assert ledger.verify().ok
            pay(ledger)
        Ledger.open(path).close()
    with pytest.raises(LedgerUnusable, match="newer Sfumato"):
        Ledger.open(path)


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    path = frozen(tmp_path)
    with monkeypatch.context() as later:
        migrations = (*store.MIGRATIONS, ("CREATE TABLE sfumato_new (x {integer})", "CREATE NONSENSE"))
        for module in ("store", "opening"):
            later.setattr(f"sfumato.ledger.{module}.MIGRATIONS", migrations)
        with pytest.raises(LedgerUnusable):
            Ledger.open(path)
    with Ledger.open(path) as ledger:
        assert ledger.verify().ok
        assert (
            ledger._journal.store.execute("SELECT name FROM sqlite_master WHERE name = 'sfumato_new'") == []
        )
