"""What an attacker with the database can do is noticed: by `open`, by `verify`, by a ledger that is open."""

from __future__ import annotations

import contextlib
import json
import shutil
from fractions import Fraction

import pytest

from sfumato.errors import BudgetExceeded, LedgerTampered, LedgerUnusable
from sfumato.ledger import Budget, Ledger, Steward
from sfumato.ledger.chain import Chain
from sfumato.loss import PureLoss

F = Fraction
TENTH = PureLoss("0.1")


def owe(ledger, **more):
    return ledger.debit("visits", TENTH, **({"fingerprint": "q"} | more))


def pay(ledger, **more):
    return owe(ledger, **more).receipt


def filled(place):
    """A ledger of nine receipts: register, open, limit, four debits (the third with its answer), one more."""
    with place.made(Budget(1)) as ledger:
        Steward(ledger).limit("visits", "ada", Budget("0.5"), reason="junior")
        for number in range(4):
            right = owe(ledger, fingerprint=f"q{number}", analyst="ada")
            if number == 2:
                ledger.record(right, b"forty-two")
        pay(ledger)


def edited_body(place, number, change):
    body = json.loads(place.sql("SELECT body FROM sfumato_receipts WHERE number = ?", number)[0][0])
    change(body)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    place.sql("UPDATE sfumato_receipts SET body = ? WHERE number = ?", text, number)


def swapped(place):
    for old, new in ((5, 1000), (6, 5), (1000, 6)):
        place.sql("UPDATE sfumato_receipts SET number = ? WHERE number = ?", new, old)


def rekeyed(place, *, whole=True):
    """Writes the chain anew under a key of the attacker's, as if it had always been so."""
    chain = Chain(b"\x07" * 32, place.sql("SELECT id FROM sfumato_ledger")[0][0])
    with Ledger.open(place.where, state=place.state) as ledger:
        rows = list(ledger._journal.store.walk(1))[:-1]
    mac = chain.start
    place.sql("DELETE FROM sfumato_receipts WHERE number > ?", len(rows))
    for row in rows:
        row = chain.sealed(row, mac)
        mac = row.mac
        place.sql("UPDATE sfumato_receipts SET mac = ? WHERE number = ?", mac, row.number)
    place.sql("UPDATE sfumato_ledger SET seal = ?", chain.seal("identity", ""))
    if whole:
        place.key.write_text("07" * 32)


def changed(column, value, number):
    return lambda place: place.sql(
        f"UPDATE sfumato_receipts SET {column} = ? WHERE number = ?", value, number
    )


def body(number, change):
    return lambda place: edited_body(place, number, change)


def run(statement):
    return lambda place: place.sql(statement)


ATTACKS = {
    "a cheaper price": body(4, lambda body: body["price"].update(epsilon="0")),
    "smaller sums": body(9, lambda body: body["totals"].update(epsilon="0")),
    "a larger budget": body(2, lambda body: body["budget"].update(limits=["9", "0"])),
    "another analyst": changed("analyst", "bob", 5),
    "nobody": changed("analyst", None, 5),
    "another dataset": changed("dataset", "x", 9),
    "another kind": changed("kind", "release", 9),
    "another question": changed("fingerprint", "z", 6),
    "another mac": changed("mac", b"\x00" * 32, 6),
    "no json": changed("body", "", 6),
    "a deletion": run("DELETE FROM sfumato_receipts WHERE number = 5"),
    "the first deleted": run("DELETE FROM sfumato_receipts WHERE number = 1"),
    "truncation": run("DELETE FROM sfumato_receipts WHERE number > 8"),
    "all deleted": run("DELETE FROM sfumato_receipts"),
    "swapped rows": swapped,
    "renumbered": changed("number", 20, 9),
    "a foreign row": run(
        "INSERT INTO sfumato_receipts SELECT 10, kind, dataset, analyst, fingerprint, body, mac "
        "FROM sfumato_receipts WHERE number = 9"
    ),
    "another key, database alone": lambda place: rekeyed(place, whole=False),
    "another key, key file too": rekeyed,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_noticed_by_verify_and_refused_at_open(place, attack):
    filled(place)
    assert place.inspect().ok
    ATTACKS[attack](place)
    found = place.inspect()
    assert not found.ok
    assert found.problems
    with pytest.raises(LedgerTampered):
        place.open()


@pytest.mark.parametrize(
    "attack", ["smaller sums", "truncation", "all deleted", "renumbered", "another dataset"]
)
def test_an_open_ledger_notices_before_it_pays(place, attack):
    filled(place)
    with place.open() as ledger:
        ATTACKS[attack](place)
        assert not ledger.verify().ok
        if attack not in ("smaller sums", "another dataset"):
            with pytest.raises(LedgerTampered):
                pay(ledger)
        else:  # the sums it goes on from are those it has checked before
            receipt = pay(ledger)
            assert receipt.totals["epsilon"] == F("0.6")
            assert not ledger.verify().ok


def test_an_answer_that_was_changed_is_noticed(place):
    filled(place)
    place.sql("UPDATE sfumato_payloads SET payload = ?", b"forty-three")
    with place.open() as ledger:
        with pytest.raises(LedgerTampered):
            ledger.recall("visits", "q2")
        assert "answer" in str(ledger.verify())
    place.sql("DELETE FROM sfumato_payloads")
    with place.open() as ledger:
        with pytest.raises(LedgerTampered):
            ledger.recall("visits", "q2")
        assert not ledger.verify().ok


def test_an_older_copy_is_refused(place):
    with place.made(Budget(1)) as ledger:
        for _ in range(5):
            pay(ledger)
        place.snapshot()  # database and write-ahead log as they are
        for _ in range(5):
            pay(ledger)
    place.restore()
    assert "older copy" in str(place.inspect())
    with pytest.raises(LedgerTampered, match="ends at receipt 7, but its anchor is at 12"):
        place.open()


def test_an_older_copy_under_an_open_ledger_is_refused(place):
    with place.made(Budget(1)) as ledger:
        pay(ledger)
        place.snapshot()
        pay(ledger)
        place.restore()
        with pytest.raises(LedgerTampered):
            pay(ledger)
        with pytest.raises(LedgerTampered):
            ledger.balance("visits")
        assert not ledger.verify().ok


def test_an_older_copy_that_was_continued_is_refused(place, tmp_path):
    """Two histories: what the attacker lets another host write onto the old copy does not fit the anchor."""
    with place.made(Budget(1)) as ledger:
        pay(ledger)
        place.snapshot()
        other = tmp_path / "other"
        other.mkdir()
        shutil.copy(place.key, other)
        shutil.copy(place.anchor, other)
        for _ in range(3):
            pay(ledger)
    place.restore()
    with Ledger.open(place.where, state=other) as ledger:
        for _ in range(5):
            pay(ledger, memo={"history": "another"})
    with pytest.raises(LedgerTampered, match="not the one that the anchor holds"):
        place.open()
    assert not place.inspect().ok


def test_a_missing_anchor_is_refused_and_may_be_adopted(place):
    filled(place)
    place.anchor.rename(place.anchor.with_suffix(".away"))
    with pytest.raises(LedgerTampered, match=r"anchor .* is missing"):
        place.open()
    assert "anchor is missing" in str(place.inspect())
    with place.open(adopt=True) as ledger:
        assert ledger.balance("visits").spent == F("0.5")
    with place.open() as ledger:
        assert ledger.verify().ok


@pytest.mark.parametrize(
    "content", ["", "{}", "nonsense", "[]", '{"number": 1, "mac": "00", "seal": "é"}', "\x00" * 99]
)
def test_a_corrupt_anchor_is_refused(place, content):
    filled(place)
    old = place.anchor.read_text()
    place.anchor.write_text(content)
    with pytest.raises(LedgerTampered, match="anchor"):
        place.open()
    assert not place.inspect().ok
    place.anchor.write_text(old.replace('"number":9', '"number":3'))  # moved back, without the key
    with pytest.raises(LedgerTampered):
        place.open()
    place.anchor.write_text(old)
    with place.open() as ledger:
        place.anchor.write_text(content)
        with pytest.raises(LedgerTampered):
            pay(ledger)
        place.anchor.unlink()
        with pytest.raises(LedgerTampered, match="Nothing was spent"):
            pay(ledger)
    assert place.sql("SELECT count(*) FROM sfumato_receipts")[0][0] == 9


def test_an_older_anchor_is_refused_and_may_be_adopted(place):
    with place.made(Budget(1)) as ledger:
        old = place.anchor.read_bytes()
        pay(ledger)
        new = place.anchor.read_bytes()
        place.anchor.write_bytes(old)
        with pytest.raises(LedgerTampered, match="Nothing was spent"):
            pay(ledger)
        assert not ledger.verify().ok
        place.anchor.write_bytes(new)
        pay(ledger)
    place.anchor.write_bytes(old)
    assert "older copy" in str(place.inspect())
    with pytest.raises(LedgerTampered, match="receipt 2 and the ledger at 4"):
        place.open()
    with place.open(adopt=True) as ledger:
        assert place.anchored() == 4
    with place.open() as ledger:
        assert ledger.verify().ok


def test_a_missing_or_wrong_key_is_refused(place):
    filled(place)
    key = place.key
    content = key.read_text()
    for wrong, message in (
        ("07" * 32, "not the one"),
        ("07", "does not hold a key"),
        ("", "does not hold"),
        ("ü", "key"),
    ):
        key.write_text(wrong)
        with pytest.raises(LedgerUnusable, match=message):
            place.open()
    key.unlink()
    with pytest.raises(LedgerUnusable, match=r"put .* back"):
        place.open()
    assert not key.exists()
    key.write_text(content)
    key.chmod(0o644)
    with pytest.raises(LedgerUnusable, match="chmod 600"):
        place.open()
    key.chmod(0o600)
    with place.open() as ledger:
        assert ledger.verify().ok


def test_secrets_lie_outside_the_database_and_are_private(place):
    filled(place)
    assert place.key.stat().st_mode & 0o777 == 0o600
    assert place.anchor.stat().st_mode & 0o777 == 0o600
    key = place.key.read_text().split()[0]
    for table in ("ledger", "receipts", "payloads"):
        assert key not in str(place.sql(f"SELECT * FROM sfumato_{table}"))
        assert bytes.fromhex(key).hex() not in repr(place.sql(f"SELECT * FROM sfumato_{table}"))


def test_a_database_that_is_gone_is_refused(place):
    filled(place)
    if place.kind == "sqlite":
        for path in place._files(place.state):
            path.unlink(missing_ok=True)
    else:
        for table in ("ledger", "receipts", "payloads"):
            place.sql(f"DROP TABLE sfumato_{table}")
    with pytest.raises(LedgerTampered, match="gone"):
        place.open()
    assert not place.inspect().ok


def test_an_emptied_file_is_refused(sqlite_place):
    filled(sqlite_place)
    open(sqlite_place.where, "w").close()
    with pytest.raises(LedgerTampered, match="empty, but its anchor is not"):
        sqlite_place.open()


def test_another_ledger_in_its_place_is_refused(place, tmp_path):
    filled(place)
    place.sql("UPDATE sfumato_ledger SET id = ?", "0" * 32)
    with pytest.raises(LedgerUnusable):
        place.open()
    place.sql("UPDATE sfumato_ledger SET id = ?", "../../../etc/passwd")
    with pytest.raises(LedgerUnusable, match="does not say which ledger"):
        place.open()


def test_a_trigger_that_swallows_receipts_is_noticed(sqlite_place):
    with sqlite_place.made(Budget(1)) as ledger:
        sqlite_place.sql(
            "CREATE TRIGGER quiet BEFORE INSERT ON sfumato_receipts BEGIN SELECT RAISE(IGNORE); END"
        )
        with pytest.raises(LedgerUnusable, match="nothing was spent"):
            pay(ledger)
        sqlite_place.sql("DROP TRIGGER quiet")
        pay(ledger)
        assert ledger.verify().ok


# ── a bug planted in each guard, to see that the tests above would notice


def test_without_the_mac_check_an_edit_passes(sqlite_place, monkeypatch):
    filled(sqlite_place)
    ATTACKS["smaller sums"](sqlite_place)
    monkeypatch.setattr(Chain, "holds", lambda self, row, previous: True)
    with sqlite_place.open() as ledger:  # the overdraft that the mac prevents
        assert [pay(ledger) for _ in range(10)][-1].totals["epsilon"] == 1
        assert "do not add up" in str(ledger.verify())  # the replay notices all the same


def test_without_the_anchor_an_older_copy_passes(sqlite_place, monkeypatch):
    with sqlite_place.made(Budget("0.2")) as ledger:
        pay(ledger)
        sqlite_place.snapshot()
        pay(ledger)
        with pytest.raises(BudgetExceeded):
            pay(ledger)
    sqlite_place.restore()
    sqlite_place.anchor.unlink()
    with sqlite_place.open(adopt=True) as ledger:
        pay(ledger)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: body["price"].update(epsilon="1/20"), "paid less"),
        (lambda body: body["totals"].update(epsilon="1/20"), "do not add up"),
        (lambda body: body["analyst_totals"].update(epsilon="1/20"), "do not add up"),
        (lambda body: body.update(loss={"loss": "of a later version"}), "Unknown loss"),
        (lambda body: body["price"].pop("epsilon"), "cannot be understood"),
        (lambda body: body.update(price={"epsilon": "2", "delta": "0"}), "overdraws"),
    ],
)
def test_verify_believes_no_sum_even_under_a_right_mac(sqlite_place, monkeypatch, change, said):
    """As a buggy version of this package might have written it: sealed, but wrong."""
    from sfumato.ledger import rules

    with sqlite_place.made(Budget(1)) as ledger:
        pay(ledger)
        write = rules.canonical

        def wrong(value):
            if "loss" in value:
                value = json.loads(write(value))
                change(value)
            return write(value)

        monkeypatch.setattr(rules, "canonical", wrong)
        with contextlib.suppress(LedgerUnusable):
            pay(ledger, analyst="ada")
        monkeypatch.undo()
        found = ledger.verify()
        assert not found.ok
        assert said in str(found)
