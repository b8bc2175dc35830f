"""Opening starts at the checkpoint: with the sums of all receipts, or not from the checkpoint at all."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, LedgerTampered, SfumatoError
from sfumato.ledger import Budget, Ledger, Steward, checkpoint
from sfumato.ledger.book import Book
from sfumato.ledger.checkpoint import FileCheckpoint
from sfumato.loss import PureLoss

F = Fraction
TENTH = PureLoss("0.1")


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(checkpoint, "EVERY", 4)


def pay(ledger, **more):
    return ledger.debit("visits", TENTH, **({"fingerprint": "q"} | more)).receipt


def file_of(place) -> Path:
    return next(place.state.glob("*.checkpoint"))


def filled(place, debits=8):
    """Register, open, then debits; with a checkpoint at receipts 4 and 8, and so on."""
    with place.made(Budget(2)) as ledger:
        for number in range(debits):
            pay(ledger, fingerprint=f"q{number}", analyst="ada")
    return json.loads(file_of(place).read_text())["number"]


# ── the same state


def act(ledger, rng):
    """One act of any kind, as far as the ledger allows it."""
    steward, name = Steward(ledger), rng.choice(["visits", "sales"])
    who = rng.choice(["ada", "ADA", "Bob", "ｂｏｂ", "eve"])
    budget, reason = Budget(rng.choice(["0.5", 1, 2])), "why not"

    def debit():
        right = ledger.debit(name, TENTH, fingerprint=rng.choice("abc"), analyst=rng.choice([who, None]))
        if rng.random() < 0.7:
            ledger.record(right, b"answer")

    def block():
        right = ledger.debit(name, TENTH, fingerprint="fit", analyst=who, resumable=True)
        right.block(F(rng.randint(1, 3), 4))

    def read():
        debits = [receipt for receipt in ledger.entries(name) if receipt.kind == "debit"]
        ledger.count_read(rng.choice(debits or [None]), who)

    def give():
        debits = [receipt for receipt in ledger.entries(name) if receipt.kind == "debit"]
        steward.give(name, rng.choice(debits or [1]), reason=reason)

    acts = (
        [debit] * 6
        + [block, read, read, give]
        + [
            lambda: steward.limit(name, who, budget, reason=reason),
            lambda: steward.revoke(name, who, reason=reason, force=True),
            lambda: steward.allot(name, {who: budget, "zoe": None}, reason=reason),
            lambda: steward.take_back(name, reason=reason),
            lambda: steward.raise_budget(name, Budget(rng.randint(9, 20)), reason=reason),
            lambda: steward.redeclare(name, {"unit": "row", "bound": rng.random()}, reason=reason),
            lambda: steward.adopted(reason=reason) if rng.random() < 0.2 else None,
            lambda: steward.close_budget(name, reason=reason) if rng.random() < 0.05 else None,
        ]
    )
    try:
        rng.choice(acts)()
    except (SfumatoError, AttributeError):
        return


def histories(seeds, acts, folder, every):
    for seed in seeds:
        rng, kinds = random.Random(seed), set()
        with Ledger.open() as ledger:
            for name in ("visits", "sales"):
                ledger.register(name, {"unit": "row"}, Budget(8))
            for _ in range(acts):
                act(ledger, rng)
            journal = ledger._journal
            rows = list(journal.store.walk(1))
            kinds |= {row.kind for row in rows}
            kept = FileCheckpoint(folder / "one.checkpoint", journal.chain)
            whole = Book(journal.chain)
            for number in range(1, len(rows) + 1):
                whole.follow(rows[number - 1 : number])
                if number % every:
                    continue
                kept._kept = -checkpoint.EVERY
                kept.keep(whole)
                book = kept.resume(journal.store)
                assert book.number == number
                assert book is not whole
                assert kept._state(book) == kept._state(whole)
                assert list(book.accounts) == list(whole.accounts)
                for name, account in whole.accounts.items():
                    assert book.accounts[name] == account  # every field, also those that nobody wrote down
                assert kept.problems(whole) == []
        yield kinds


def test_a_book_from_any_checkpoint_is_that_of_all_receipts(tmp_path):
    """Whatever happened before, and wherever the checkpoint is."""
    kinds = set().union(*histories(range(3), 36, tmp_path, 6))
    assert kinds >= {"debit", "release", "read", "give", "block", "limit", "revoke", "raise", "redeclare"}


@pytest.mark.stats
def test_a_book_from_any_checkpoint_of_long_histories(tmp_path):
    list(histories(range(100, 112), 100, tmp_path, 1))


def test_opening_starts_at_the_checkpoint_and_an_older_one_serves_as_well(place, monkeypatch):
    with place.made(Budget(2)) as ledger:
        for _ in range(4):
            pay(ledger)
        old = file_of(place).read_bytes()
        for _ in range(9):
            pay(ledger)
    assert json.loads(file_of(place).read_text())["number"] == 12
    read = []
    follow = Book.follow

    def counted(self, rows):
        rows = list(rows)
        read.extend(row.number for row in rows)
        follow(self, rows)

    monkeypatch.setattr(Book, "follow", counted)
    for content, expected in ((None, range(13, 16)), (old, range(5, 16)), (b"", range(1, 16))):
        if content is not None:
            file_of(place).write_bytes(content)
        read.clear()
        with place.open() as ledger:
            assert ledger.balance("visits").spent == F("1.3")
        assert read == list(expected)
        assert place.inspect().ok
    file_of(place).unlink()
    with place.open() as ledger:
        assert ledger.balance("visits").spent == F("1.3")


def test_a_ledger_without_a_checkpoint_is_given_one_and_may_be_read_only(place):
    filled(place)
    file_of(place).unlink()
    place.open().close()
    assert json.loads(file_of(place).read_text())["number"] == 10
    assert file_of(place).stat().st_mode & 0o777 == 0o600


# ── what an attacker can do


def edited(place, number, table="receipts"):
    body = json.loads(place.sql(f"SELECT body FROM sfumato_{table} WHERE number = ?", number)[0][0])
    body["totals"]["epsilon"] = "0"
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    place.sql(f"UPDATE sfumato_{table} SET body = ? WHERE number = ?", text, number)


def deleted(place, number):
    place.sql("DELETE FROM sfumato_receipts WHERE number = ?", number)


@pytest.mark.parametrize("attack", [edited, deleted])
@pytest.mark.parametrize("number", [3, 7, 8, 10])
def test_an_edit_is_refused_from_the_checkpoint_on_and_found_by_verify_before(sqlite_place, attack, number):
    assert filled(sqlite_place) == 8
    attack(sqlite_place, number)
    assert not sqlite_place.inspect().ok
    if number >= 8 or (number == 7 and attack is deleted):
        with pytest.raises(LedgerTampered):
            sqlite_place.open()
        return
    with sqlite_place.open() as ledger:  # it changes no sum
        assert ledger.balance("visits").spent == F("0.8")
        assert not ledger.verify().ok
        with pytest.raises(BudgetExceeded):
            ledger.debit("visits", PureLoss("1.3"), fingerprint="q")
        ledger.debit("visits", PureLoss("1.2"), fingerprint="q")
        with pytest.raises(LedgerTampered):
            Steward(ledger).take_back("visits", reason="goes by what old receipts say")


def cheaper(place, number):
    text = place.sql("SELECT body FROM sfumato_receipts WHERE number = ?", number)[0][0]
    assert '"1/10"' in text
    place.sql(
        "UPDATE sfumato_receipts SET body = ? WHERE number = ?", text.replace('"1/10"', '"1/99"'), number
    )


def of_another(column, value):
    def moved(place, number):
        place.sql(f"UPDATE sfumato_receipts SET {column} = ? WHERE number = ?", value, number)

    return moved


def recoded(place, number):
    place.sql("UPDATE sfumato_receipts SET mac = ? WHERE number = ?", b"0" * 32, number)


def another_in_its_place(place, number):
    """The table without its primary key, and a cheap debit twice instead of a dear one."""
    place.sql("CREATE TABLE loose AS SELECT * FROM sfumato_receipts WHERE number <> ?", number)
    place.sql("INSERT INTO loose SELECT * FROM sfumato_receipts WHERE number = 6")
    place.sql("DROP TABLE sfumato_receipts")
    place.sql("ALTER TABLE loose RENAME TO sfumato_receipts")


EDITS = {
    "deleted": deleted,
    "cheaper": cheaper,
    "of another kind": of_another("kind", "block"),
    "of another dataset": of_another("dataset", "sales"),
    "of another analyst": of_another("analyst", "bob"),
    "of another question": of_another("fingerprint", "q"),
    "another code": recoded,
    "another in its place": another_in_its_place,
}


def test_hindsight_is_of_the_debits_that_were_written_or_refused(sqlite_place):
    place = sqlite_place
    with place.made(Budget(2)) as ledger:
        pay(ledger, fingerprint="q0", analyst="ada")
        ledger.record(ledger.debit("visits", TENTH, fingerprint="q1", analyst="ada"), b"answer")
        for number in range(3):
            pay(ledger, fingerprint=f"more {number}", analyst="bob")
        before = ledger.balance("visits")  # composed only when it is asked for: later debits are not of it
        pay(ledger, fingerprint="last", analyst="bob")
        assert (before.retrospective, ledger.balance("visits", "bob").retrospective) == (0.5, 0.4)
    kinds = place.sql("SELECT kind FROM sfumato_receipts WHERE number BETWEEN 3 AND 6 ORDER BY number")
    assert [kind for (kind,) in kinds] == ["debit", "debit", "release", "debit"]
    place.sql("CREATE TABLE kept AS SELECT * FROM sfumato_receipts")
    for attack in EDITS:
        for number in (3, 4) if attack != "another in its place" else (4,):
            EDITS[attack](place, number)
            with place.open() as ledger:
                assert ledger.balance("visits").spent == F("0.6")
                for who in (None, "ada", "bob"):
                    balance = ledger.balance("visits", who)
                    with pytest.raises(LedgerTampered, match="`sfumato ledger verify` finds"):
                        _ = balance.retrospective
            place.sql("DELETE FROM sfumato_receipts")
            place.sql("INSERT INTO sfumato_receipts SELECT * FROM kept")


def changes(content, change):
    held = json.loads(content)
    change(held)
    return json.dumps(held, sort_keys=True, separators=(",", ":"))


CHANGES = {
    "smaller sums": lambda held: held["accounts"][0][1]["sums"].update(epsilon="0"),
    "smaller sums of an analyst": lambda held: held["accounts"][0][1]["seats"][0][1]["sums"].update(
        epsilon="0"
    ),
    "a larger budget": lambda held: held["accounts"][0][1]["budget"].update(limits=["99", "0"]),
    "fewer debits": lambda held: held["accounts"][0][1].update(debits=0),
    "an earlier number": lambda held: held.update(number=4),
    "another code": lambda held: held.update(mac="00" * 32),
    "another ledger": lambda held: held.update(ledger="0" * 32),
    "no account": lambda held: held.update(accounts=[]),
    "no seal": lambda held: held.pop("seal"),
    "a seal of nothing": lambda held: held.update(seal=""),
    "a seal that is no text": lambda held: held.update(seal=["é"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_checkpoint_that_was_changed_is_not_believed(sqlite_place, change):
    filled(sqlite_place)
    path = file_of(sqlite_place)
    path.write_text(changes(path.read_text(), CHANGES[change]))
    with sqlite_place.open() as ledger:
        assert ledger.balance("visits").spent == ledger.balance("visits", "ada").spent == F("0.8")
        assert ledger.verify().ok
    assert json.loads(path.read_text())["number"] == 10  # and a new one is written


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"\xff\x00", b"[" * 9999, b"x" * 99])
def test_a_torn_checkpoint_is_not_believed(sqlite_place, content):
    filled(sqlite_place)
    file_of(sqlite_place).write_bytes(content)
    with sqlite_place.open() as ledger:
        assert ledger.balance("visits").spent == F("0.8")


def test_a_tail_that_was_cut_off_is_refused_whatever_checkpoint_is_there(place):
    """Also where checkpoint and anchor are at one receipt, and the database ends before it."""
    assert filled(place, debits=6) == 8
    newest = file_of(place).read_bytes()
    place.sql("DELETE FROM sfumato_receipts WHERE number > 6")
    for content in (newest, None):
        if content is None:
            file_of(place).unlink()
        with pytest.raises(LedgerTampered, match="ends at receipt 6, but its anchor is at 8"):
            place.open()
        assert not place.inspect().ok


def test_an_older_state_with_its_checkpoint_is_refused(place):
    with place.made(Budget(2)) as ledger:
        for _ in range(3):
            pay(ledger)
        place.snapshot()
        old = file_of(place).read_bytes()
        for _ in range(5):
            pay(ledger)
    newest = file_of(place).read_bytes()
    place.restore()
    for content in (old, newest):
        file_of(place).write_bytes(content)
        with pytest.raises(LedgerTampered, match="ends at receipt 5, but its anchor is at 10"):
            place.open()


def test_a_checkpoint_of_another_history_is_not_believed(sqlite_place):
    """The same number in a ledger that was put back, adopted and gone on with under the same key."""
    with sqlite_place.made(Budget(2)) as ledger:
        pay(ledger)
        sqlite_place.snapshot()
        for _ in range(6):
            pay(ledger)
    other = file_of(sqlite_place).read_bytes()
    sqlite_place.restore()
    sqlite_place.anchor.unlink()
    with sqlite_place.open(adopt=True) as ledger:
        for _ in range(5):
            ledger.debit("visits", PureLoss("0.2"), fingerprint="q")
    file_of(sqlite_place).write_bytes(other)
    with sqlite_place.open() as ledger:
        assert ledger.balance("visits").spent == F("1.1")


def test_a_block_that_is_cut_out_stays_taken(sqlite_place):
    with sqlite_place.made(Budget(1)) as ledger:
        right = ledger.debit("visits", TENTH, fingerprint="fit", analyst="ada", resumable=True)
        right.block(F(3, 4))
        for _ in range(4):
            pay(ledger)
    assert json.loads(file_of(sqlite_place).read_text())["number"] == 8
    sqlite_place.sql("DELETE FROM sfumato_receipts WHERE kind = ?", "block")
    with sqlite_place.open() as ledger:
        right = ledger.resume("visits", "fit", "ada")
        assert right.left == F(1, 4)
        with pytest.raises(BudgetExceeded):
            right.block(F(1, 2))


def test_both_sides_of_a_fork_go_on_from_the_checkpoint(sqlite_place, crew):
    filled(sqlite_place)
    ((status, numbers),) = crew.run(["forkless", sqlite_place.where, sqlite_place.state, "1/100", 10])
    assert (status, len(numbers)) == (0, 20)
    with sqlite_place.open() as ledger:
        assert ledger.balance("visits").spent == F("0.8") + F("0.21")


# ── a bug planted in each guard, to see that the tests above would notice


def test_without_the_seal_smaller_sums_pass(sqlite_place, monkeypatch):
    """The overdraft that the seal prevents; `verify` notices all the same."""
    assert filled(sqlite_place, debits=6) == 8
    path = file_of(sqlite_place)
    path.write_text(changes(path.read_text(), CHANGES["smaller sums"]))

    def unsealed(self):
        held = json.loads(self.path.read_text())
        del held["seal"]
        return held

    monkeypatch.setattr(FileCheckpoint, "_read", unsealed)
    assert "does not hold what the receipts up to 8 add up to" in str(sqlite_place.inspect())
    with sqlite_place.open() as ledger:
        assert ledger.debit("visits", PureLoss(2), fingerprint="q").receipt.totals["epsilon"] == 2
        assert "do not add up" in str(ledger.verify())


def test_without_a_look_at_its_receipt_a_tail_that_was_cut_off_passes(sqlite_place, monkeypatch):
    assert filled(sqlite_place, debits=6) == 8
    sqlite_place.sql("DELETE FROM sfumato_receipts WHERE number > 6")

    def blind(self, store):
        held, book = self._read(), Book(self._chain)
        book.accounts = {name: checkpoint._account(name, data) for name, data in held["accounts"]}
        book.number, book.mac = held["number"], bytes.fromhex(held["mac"])
        return book

    monkeypatch.setattr(FileCheckpoint, "resume", blind)
    sqlite_place.open().close()
