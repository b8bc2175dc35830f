"""Several machines, one anchor: no state of the database and of folders lets one spend what another spent."""

from __future__ import annotations

import os
import random
import shutil
from fractions import Fraction

import pytest

from sfumato.errors import BudgetExceeded, LedgerTampered, LedgerUnusable
from sfumato.ledger import Budget, Ledger, Steward
from sfumato.ledger.anchor import FileAnchor, Held, Mark
from sfumato.ledger.chain import Chain, canonical
from sfumato.ledger.key import load_key
from sfumato.loss import PureLoss

F = Fraction
TENTH = PureLoss("0.1")


def pay(ledger, **more):
    return ledger.debit("visits", TENTH, **({"fingerprint": "q"} | more)).receipt


def machine(place, folder, *, anchor=True):
    """The state of another machine: the key carried over, and a copy of the anchor."""
    folder.mkdir()
    for path in (place.key, *([place.anchor] if anchor else [])):
        shutil.copy(path, folder)
    return folder


def test_machines_that_share_a_folder_share_the_budget(place):
    """Two ledgers with one state, as on machines with a shared folder: each sees what the other anchored."""
    with place.made(Budget(1)) as one, place.open() as two:
        for _ in range(3):
            pay(one)
            pay(two)
        place.snapshot()
        pay(one)
        assert one.balance("visits").spent == two.balance("visits").spent == F("0.7")
        assert one.verify().ok
        assert two.verify().ok
        place.restore()  # the database alone goes back: neither machine spends on
        for each in (one, two):
            with pytest.raises(LedgerTampered):
                pay(each)
    with pytest.raises(LedgerTampered, match="older copy"):
        place.open()


def test_a_machine_with_an_anchor_of_its_own_is_refused(place, tmp_path):
    """The case that was accepted: machine two's anchor is older than the database that is restored."""
    with place.made(Budget("0.5")) as one:
        pay(one)
        other = machine(place, tmp_path / "two")
        pay(one)
        with pytest.raises(LedgerTampered, match="another machine"):
            Ledger.open(place.where, state=other)
        place.snapshot()
        for _ in range(3):
            pay(one)
        with pytest.raises(BudgetExceeded):
            pay(one)
    place.restore()
    with pytest.raises(LedgerTampered):
        place.open()
    with pytest.raises(LedgerTampered, match="another machine"):
        Ledger.open(place.where, state=other)
    assert not Ledger.inspect(place.where, state=other).ok


def test_an_open_ledger_notices_another_machines_anchor(place, tmp_path):
    with place.made(Budget(1)) as one:
        other = machine(place, tmp_path / "two")
        with Ledger.open(place.where, state=other) as two:
            pay(two)  # the copy is of this moment: nothing tells them apart yet
            with pytest.raises(LedgerTampered, match="another machine"):
                pay(one)
            assert not one.verify().ok
        with pytest.raises(LedgerTampered):
            place.open()


def test_a_machine_without_an_anchor_is_told_to_share(place, tmp_path):
    with place.made(Budget(1)) as one:
        other = machine(place, tmp_path / "two", anchor=False)
        with pytest.raises(LedgerTampered, match="share"):
            Ledger.open(place.where, state=other)
        pay(one)
        with Ledger.open(place.where, state=other, adopt=True) as two:
            Steward(two).adopted(reason="the first machine is gone")
            pay(two)
        with pytest.raises(LedgerTampered):  # from now on it is the other one's
            pay(one)


# ── a search: random histories of two machines, restored databases, crashes and stale copies


class _Crash(Exception):
    pass


def steps(choose) -> list[str]:
    """What happens, in any order: before the database is saved, before it is restored, and afterwards."""
    first = choose.sample(["copy", "copy", "pay", "crash"], 2)
    second = choose.sample(["pay", "pay", "pay", "stale", "crash"], 3)
    third = choose.sample(["stale", "stale", "stale", "stale", "pay", "crash"], 4)
    return [*first, "pay", "save", *second, "restore", *third]


def history(place, seed, folder) -> Fraction:
    """What the receipts that were handed out cost together, whatever happened in between."""
    choose = random.Random(seed)
    place.made(Budget("0.3")).close()
    copies: list[tuple] = []
    paid = F(0)

    def attempt(state, crash=None):
        nonlocal paid
        try:
            with Ledger.open(place.where, state=state) as ledger:
                if crash is not None:
                    _crashing(ledger, crash)
                pay(ledger)
                paid += F("0.1")
        except (LedgerTampered, LedgerUnusable, BudgetExceeded, _Crash):
            pass

    heads, saved = set(), 0
    for step, what in enumerate(steps(choose)):
        if what == "pay":
            attempt(place.state)
        elif what == "crash":
            attempt(place.state, choose.choice(["announced", "committed"]))
        elif what == "copy":
            copies.append(machine(place, folder / f"{seed}-{step}"))
            heads.add(_head(place))
        elif what == "stale" and copies:
            attempt(choose.choice(copies))
        elif what == "save" and not hasattr(place, "copy"):
            place.snapshot()
            saved = _head(place)
        elif what == "restore" and hasattr(place, "copy") and saved not in heads:
            place.restore()  # an anchor of this very moment would be a ledger restored with its anchor
    return paid


def _head(place) -> int:
    return place.sql("SELECT max(number) FROM sfumato_receipts")[0][0]


def _crashing(ledger, when) -> None:
    commit, prepare = ledger._journal.store.commit, ledger._journal.anchor.prepare

    class Stopped:
        def settle(self):
            raise _Crash

    def committed():
        if when == "announced":
            raise _Crash
        commit()

    def prepared(now, coming):
        prepare(now, coming)
        return Stopped()

    ledger._journal.store.commit, ledger._journal.anchor.prepare = committed, prepared


@pytest.fixture
def quick(monkeypatch):
    """No power is cut here, so that nothing waits for the disk."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def overdrawn(tmp_path, runs, make) -> list[int]:
    found = []
    for seed in range(runs):
        folder = tmp_path / f"run-{seed}"
        folder.mkdir()
        if history(make(folder), seed, tmp_path) > F("0.3"):
            found.append(seed)
    return found


def test_no_history_of_machines_hands_out_more_than_the_budget(sqlite_place, tmp_path, quick):
    kind = type(sqlite_place)
    assert overdrawn(tmp_path, 30, lambda folder: kind(str(folder / "l"), folder)) == []


def test_the_search_finds_anchors_that_may_be_behind(sqlite_place, tmp_path, monkeypatch, quick):
    """As it was: any anchor that is not ahead of the database was taken."""
    monkeypatch.setattr(Held, "ends_at", lambda self, head, due: self.mark.number <= head.number)
    kind = type(sqlite_place)
    assert len(overdrawn(tmp_path, 25, lambda folder: kind(str(folder / "l"), folder))) > 2


# ── ledgers of earlier versions


def as_of_before(place, lag=0) -> None:
    """What an earlier version left: tables of version 1, an anchor that announces nothing, a key alone."""
    key = load_key(place.key)
    chain = Chain(key.secret, place.sql("SELECT id FROM sfumato_ledger")[0][0])
    number, mac = place.sql("SELECT number, mac FROM sfumato_receipts ORDER BY number DESC LIMIT ?", lag + 1)[
        -1
    ]
    seal = chain.seal("anchor", f"{number}\n{bytes(mac).hex()}")
    old = {"ledger": chain.ledger, "number": number, "mac": bytes(mac).hex(), "seal": seal}
    place.anchor.write_text(canonical(old) + "\n")
    place.key.write_text(key.secret.hex() + "\n")
    place.sql("UPDATE sfumato_ledger SET version = 1")


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_a_ledger_of_version_1_opens_and_is_anchored_anew(place, lag):
    with place.made(Budget(1)) as ledger:
        pay(ledger)
        pay(ledger)
    as_of_before(place, lag)
    with place.open() as ledger:
        assert ledger.verify().ok
        assert place.anchored() == 4
        pay(ledger)
    assert place.sql("SELECT version FROM sfumato_ledger")[0][0] == 3
    assert load_key(place.key).ledger == place.sql("SELECT id FROM sfumato_ledger")[0][0]
    with place.open() as ledger:
        assert ledger.balance("visits").spent == F("0.3")


def test_a_second_machine_of_version_1_is_refused_once_the_first_is_upgraded(place, tmp_path):
    with place.made(Budget(1)) as ledger:
        pay(ledger)
    as_of_before(place)
    other = machine(place, tmp_path / "two")
    with place.open() as ledger:
        pay(ledger)
    with pytest.raises(LedgerTampered, match="another machine"):
        Ledger.open(place.where, state=other)


def test_an_older_copy_of_version_1_is_refused_before_anything_is_upgraded(place):
    with place.made(Budget(1)) as ledger:
        pay(ledger)
        place.snapshot()
        pay(ledger)
    as_of_before(place)
    place.restore()
    place.sql("UPDATE sfumato_ledger SET version = 1")
    with pytest.raises(LedgerTampered, match="older copy"):
        place.open()
    assert place.sql("SELECT version FROM sfumato_ledger")[0][0] == 1


# ── the key remembers


def gone(place) -> None:
    if place.kind == "sqlite":
        for path in place._files(place.state):
            path.unlink(missing_ok=True)
    else:
        for table in ("ledger", "receipts", "payloads"):
            place.sql(f"DROP TABLE sfumato_{table}")


def emptied(place) -> None:
    place.sql("DELETE FROM sfumato_receipts")


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("how", [gone, emptied])
def test_a_key_that_has_signed_opens_no_new_budget(place, how, early):
    with place.made(Budget(1)) as ledger:
        pay(ledger)
    if early:
        as_of_before(place)
        place.open().close()
    how(place)
    for path in (*place.state.glob("*.anchor*"), *place.state.glob("*.ledger")):
        if path.suffix != ".ledger" or place.kind == "postgres":
            path.unlink()
    for _ in range(2):
        with pytest.raises(LedgerTampered):
            place.open()
        assert not place.inspect().ok
    if how is gone:  # nor was anything made by looking
        with pytest.raises((LedgerTampered, LedgerUnusable)):
            place.open(create=False)
        place.key.unlink()
        with place.open() as ledger:  # on purpose
            assert ledger.datasets() == []


def test_a_key_whose_ledger_was_never_begun_is_used(tmp_path):
    """Killed between the key and the first commit: the key has signed nothing."""
    path = tmp_path / "a.ledger"
    (tmp_path / "a.ledger.key").write_text("07" * 32 + "\n")
    (tmp_path / "a.ledger.key").chmod(0o600)
    with Ledger.open(path) as ledger:
        assert ledger.datasets() == []
    assert load_key(tmp_path / "a.ledger.key").ledger is not None


@pytest.mark.parametrize(
    "content", ["07" * 32 + "\nsigned", "07" * 32 + "\nother x y", "07" * 32 + "\nsigned a b c"]
)
def test_a_key_with_a_strange_memory_is_refused(tmp_path, content):
    path = tmp_path / "a.ledger"
    (tmp_path / "a.ledger.key").write_text(content + "\n")
    (tmp_path / "a.ledger.key").chmod(0o600)
    with pytest.raises(LedgerUnusable, match="does not hold a key"):
        Ledger.open(path)


def test_a_key_keeps_its_mode_when_it_learns(tmp_path):
    path = tmp_path / "a.ledger"
    (tmp_path / "a.ledger.key").write_text("07" * 32 + "\n")
    (tmp_path / "a.ledger.key").chmod(0o640)
    Ledger.open(path).close()
    assert (tmp_path / "a.ledger.key").stat().st_mode & 0o777 == 0o640


def test_a_late_settlement_does_not_set_an_anchor_back(tmp_path):
    chain = Chain(b"k" * 32, "0" * 32)
    anchor = FileAnchor(tmp_path / "x.anchor", chain)
    one, two, three = (Mark(number, bytes([number])) for number in (1, 2, 3))
    anchor.start(one)
    anchor.start(two)
    assert anchor.read() == Held(one)
    first = anchor.prepare(one, two)
    second = anchor.prepare(two, three)  # another writer, before the first has settled
    first.settle()
    assert anchor.read() == Held(two, three)
    second.settle()
    first.settle()
    assert anchor.read() == Held(three)
