"""The receipts of one analyst: those that the whole walk has, found by an index."""

from __future__ import annotations

import os
import shutil
import sqlite3
from itertools import islice
from pathlib import Path

import psycopg
import pytest

from sfumato.errors import InvalidParameter
from sfumato.ledger import Budget, Counter, Ledger, Steward, journal, sqlite
from sfumato.ledger.names import alike
from sfumato.ledger.store import OF_ANALYSTS
from sfumato.loss import PureLoss

DATA = Path(__file__).parent.parent / "data" / "ledger-v1"
LOSS = PureLoss("0.001")
ADA = ["Ada L", "ADA L", "ａｄａ l", "ada\u00a0l"]
INSERT = "INSERT INTO sfumato_receipts (number, kind, dataset, analyst, body, mac) VALUES (?, ?, ?, ?, ?, ?)"


def walked(receipts, *, analyst, dataset=None, kind=None, after=0, before=10**9, newest=False):
    """What `entries` is to give, by looking at every receipt."""
    found = [
        receipt
        for receipt in receipts
        if receipt.analyst is not None
        and alike(receipt.analyst) == alike(analyst)
        and dataset in (None, receipt.dataset)
        and kind in (None, receipt.kind)
        and after < receipt.number < before
    ]
    return found[::-1] if newest else found


def spelled(ledger):
    """Receipts of several kinds in several spellings of one name, one in each dataset, and of others."""
    for place, spelling in enumerate(ADA):
        ledger.register(f"d{place}", {"unit": "row"}, Budget(1))
        for time in range(4):
            right = ledger.debit(f"d{place}", LOSS, fingerprint=f"q{time}", analyst=spelling)
            ledger.record(right, b"x")
            ledger.debit(f"d{place}", LOSS, fingerprint=f"q{time}", analyst=["bob", "ada", None][time % 3])
        Steward(ledger).limit(f"d{place}", spelling, Budget("0.5"), reason="small")
        Steward(ledger).limit(f"d{place}", "bob", Budget("0.5"), reason="small")


def crowd(ledger, number):
    """So many receipts of two hundred others, sealed as any and written at once."""
    store, rows = ledger._journal.store, []
    with ledger._journal.writing() as draft:
        store.append = rows.append
        for at in range(number):
            draft.add("access", "", analyst=f"other {at % 200}", act="add", by="sam")
        del store.append
        values = [(row.number, row.kind, row.dataset, row.analyst, row.body, row.mac) for row in rows]
        store._connection.cursor().executemany(INSERT.replace("?", store.mark), values)


def watched(ledger, monkeypatch):
    """All statements that are run from here on, each with its values and how many rows it gave."""
    store, seen = ledger._journal.store, []
    real = store.execute

    def execute(statement, values=()):
        found = real(statement, values)
        seen.append((statement, values, len(found)))
        return found

    monkeypatch.setattr(store, "execute", execute)
    return seen


def explained(place, statement, values):
    """How the database goes about a statement."""
    if place.kind == "sqlite":
        return "\n".join(str(row[3]) for row in place.sql(f"EXPLAIN QUERY PLAN {statement}", *values))
    return "\n".join(row[0] for row in place.sql(f"EXPLAIN {statement}", *values))


def is_indexed(place):
    tables = {"sqlite": "name FROM sqlite_master", "postgres": "indexname FROM pg_indexes"}
    return (OF_ANALYSTS,) in place.sql(f"SELECT {tables[place.kind]}")


@pytest.mark.parametrize("page", [3, 1000])
def test_they_are_those_of_the_whole_walk(place, monkeypatch, page):
    monkeypatch.setattr(journal, "_PAGE", page)
    with place.open() as ledger:
        spelled(ledger)
        for asker in (ledger, Counter(ledger, "Ada L"), Counter(ledger, "bob")):
            whole = list(asker.entries())
            for analyst in (*ADA[:2], "Bob", "ada", "nobody"):
                wishes = [{}, {"dataset": "d1"}, {"kind": "debit"}, {"dataset": "d2", "kind": "debit"}]
                wishes += [{"after": 9}, {"before": 30}, {"after": 9, "before": 30}, {"before": 0}]
                for wish in wishes:
                    for newest in (False, True):
                        found = list(asker.entries(analyst=analyst, newest=newest, **wish))
                        assert found == walked(whole, analyst=analyst, newest=newest, **wish)
        assert len({receipt.analyst for receipt in ledger.entries(analyst="ada l")}) == len(ADA)
        assert list(ledger.entries(newest=True, before=20)) == list(ledger.entries())[18::-1]
        with pytest.raises(InvalidParameter, match="analyst"):
            list(ledger.entries(analyst=" "))


def test_a_leaf_after_another_has_each_receipt_once(place):
    with place.open() as ledger:
        spelled(ledger)
        for newest in (False, True):
            found, wish = [], {}
            while leaf := list(islice(ledger.entries(analyst="ada l", newest=newest, **wish), 5)):
                found += leaf
                wish = {"before" if newest else "after": found[-1].number}
            assert found == walked(ledger.entries(), analyst="ada l", newest=newest)


def test_a_spelling_that_comes_later_is_found(place):
    with place.made(Budget(1)) as ledger, place.open() as other:
        assert list(ledger.entries(analyst="ada l")) == []
        other.register("more", {"unit": "row"}, Budget(1))
        paid = [other.debit("visits", LOSS, fingerprint="q", analyst=ADA[0]).receipt.number]
        assert [receipt.number for receipt in ledger.entries(analyst="ada l")] == paid
        paid += [ledger.debit("more", LOSS, fingerprint="q", analyst=ADA[2]).receipt.number]
        for each in (ledger, other):
            assert [receipt.number for receipt in each.entries(analyst="ada l")] == paid


def test_others_are_not_read_however_many_there_are(place, monkeypatch):
    with place.made(Budget(1)) as ledger:
        ledger.debit("visits", LOSS, fingerprint="q", analyst="ada")
        crowd(ledger, 20_000)
        ledger.register("more", {"unit": "row"}, Budget(1))
        ledger.debit("more", LOSS, fingerprint="q", analyst="ADA")
        assert ledger.verify().ok
    place.sql("ANALYZE")
    with place.open() as ledger:
        seen = watched(ledger, monkeypatch)
        for wish in ({}, {"newest": True}, {"kind": "debit", "newest": True}, {"before": 9}, {"after": 9}):
            assert [receipt.analyst for receipt in ledger.entries(analyst="ada", **wish)] == {
                "before": ["ada"],
                "after": ["ADA"],
                "newest": ["ADA", "ada"],
            }.get(next(reversed(wish), ""), ["ada", "ADA"])
        page = list(islice(ledger.entries(analyst="other 7", newest=True), 25))
        assert len(page) == 25
        names = sum(rows for statement, _, rows in seen if "RECURSIVE" in statement)
        assert names == 202  # once: each spelling on record
        assert sum(rows for _, _, rows in seen) - names < 200
        plans = [
            explained(place, statement, values) for statement, values, _ in seen if "analyst =" in statement
        ]
        plans += [
            explained(place, statement, values) for statement, values, _ in seen if "RECURSIVE" in statement
        ]
    assert len(plans) > 10
    for plan in plans:
        assert OF_ANALYSTS in plan
        for slow in ("Seq Scan on sfumato_receipts", "pkey", "SCAN sfumato_receipts\n", "TEMP B-TREE"):
            assert slow not in f"{plan}\n"


# ── ledgers that have no index yet


def test_a_ledger_of_before_gets_the_index_and_stays_what_it_was(place):
    with place.open() as ledger:
        spelled(ledger)
        before, identity = ledger.export(), ledger._journal.store.identity()
    assert is_indexed(place)
    place.sql(f"DROP INDEX {OF_ANALYSTS}")
    anchored = place.anchor.read_bytes()
    assert place.inspect().ok
    assert not is_indexed(place)  # who only looks writes nothing
    with place.open() as ledger:
        assert is_indexed(place)
        assert (ledger.export(), ledger._journal.store.identity()) == (before, identity)
        assert place.anchor.read_bytes() == anchored
        assert list(ledger.entries(analyst="ada l")) == walked(ledger.entries(), analyst="ada l")
        assert ledger.verify().ok


def test_a_file_of_version_1_gets_the_index(tmp_path):
    for path in DATA.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "visits.ledger.key").chmod(0o600)
    with Ledger.open(tmp_path / "visits.ledger") as ledger:
        assert ledger._journal.store.has_index(OF_ANALYSTS)
        found = list(ledger.entries(analyst="ADA"))
        assert found == walked(ledger.entries(), analyst="ada") != []
        assert ledger.verify().ok


def test_while_another_program_has_it_open_the_index_is_made(place):
    with place.made(Budget(1)) as old:
        place.sql(f"DROP INDEX {OF_ANALYSTS}")
        old.debit("visits", LOSS, fingerprint="q", analyst="ada")
        with place.open() as ledger:
            assert is_indexed(place)
            old.debit("visits", LOSS, fingerprint="q", analyst="ada")
            assert [len(list(each.entries(analyst="Ada"))) for each in (old, ledger)] == [2, 2]


def test_a_file_that_others_keep_busy_opens_without(sqlite_place, monkeypatch):
    with sqlite_place.open() as ledger:
        spelled(ledger)
    sqlite_place.sql(f"DROP INDEX {OF_ANALYSTS}")
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.05)
    other = sqlite3.connect(sqlite_place.where, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with sqlite_place.open() as ledger:
        assert not is_indexed(sqlite_place)
        assert list(ledger.entries(analyst="ada l")) == walked(ledger.entries(), analyst="ada l") != []
    other.close()


def test_a_role_that_may_not_make_it_reads_without(postgres_place):
    with postgres_place.open() as ledger:
        spelled(ledger)
    postgres_place.sql(f"DROP INDEX {OF_ANALYSTS}")
    role = f"reader_{os.urandom(4).hex()}"
    postgres_place.sql(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
    parts = psycopg.conninfo.conninfo_to_dict(postgres_place.where)
    address = f"postgresql://{role}:x@{parts['host']}:{parts['port']}/{parts['dbname']}"
    try:
        for rights in ("SELECT", "SELECT, INSERT, UPDATE"):  # who reads, and who pays
            for table in ("ledger", "receipts", "payloads"):
                postgres_place.sql(f"GRANT {rights} ON sfumato_{table} TO {role}")
            with Ledger.open(address, state=postgres_place.state) as ledger:
                assert not is_indexed(postgres_place)
                found = list(ledger.entries(analyst="ada l"))
                assert found == walked(ledger.entries(), analyst="ada l") != []
        with Ledger.open(address, state=postgres_place.state) as ledger:
            ledger.debit("d0", LOSS, fingerprint="q", analyst="ada l")
    finally:
        postgres_place.sql(f"DROP OWNED BY {role}")
        postgres_place.sql(f"DROP ROLE {role}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_finds_what_was_spelled_since(sqlite_place):
    with sqlite_place.made(Budget(1)) as ledger:
        ledger.debit("visits", LOSS, fingerprint="q", analyst="Ada")
        assert len(list(ledger.entries(analyst="ada"))) == 1
        ledger.register("more", {"unit": "row"}, Budget(1))
        ledger.debit("more", LOSS, fingerprint="q", analyst="ADA")
        child = os.fork()
        if not child:
            os._exit(len(list(ledger.entries(analyst="ada"))))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
