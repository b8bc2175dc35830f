"""The anchor's two slots: whatever write is cut off wherever, the database that goes with it still does."""

from __future__ import annotations

import json
import random

import pytest

from sfumato.errors import LedgerTampered
from sfumato.ledger import Budget, anchor
from sfumato.ledger.anchor import FileAnchor, Held, Mark
from sfumato.ledger.chain import Chain, canonical
from sfumato.ledger.slots import padded
from sfumato.loss import PureLoss

CHAIN = Chain(b"k" * 32, "0" * 32)
CUTS = (0, 1, 40, 200, 300, 511, 512)


def mark(number, history=0):
    return Mark(number, bytes([number % 256, history % 256]) * 16)


class Database:
    """A chain of marks with an anchor, and every state that its file could be left in."""

    def __init__(self, folder, monkeypatch):
        self.anchor = FileAnchor(folder / "x.anchor", CHAIN)
        self.torn = FileAnchor(folder / "torn.anchor", CHAIN)
        self.head, self.states = mark(0), 0
        self.anchor.start(self.head)
        write = anchor.write_slot

        def written(path, which, line):
            before = path.read_bytes()
            accepted = self._ends(self.anchor)
            write(path, which, line)
            accepted |= self._ends(self.anchor)
            for cut in CUTS:
                at = 512 * which
                self._left(before[:at] + line[:cut] + before[at + cut :], accepted)
                self._left(before[:at] + line[:cut] + bytes(512 - cut) + before[at + 512 :], accepted)

        monkeypatch.setattr(anchor, "write_slot", written)

    def _ends(self, one):
        held = one.read()
        return {held.mark, *([held.coming] if held.coming else [])}

    def _left(self, content, accepted):
        """A file as a power cut may leave it: the database opens, and no other does that would not before."""
        self.torn.path.write_bytes(content)
        ends = self._ends(self.torn)
        assert self.head in ends
        assert ends <= accepted
        self.states += 1

    def damaged(self):
        """With either slot destroyed, no older database passes."""
        content = self.anchor.path.read_bytes()
        for begin in (0, 512):
            self.torn.path.write_bytes(content[:begin] + b"?" * 512 + content[begin + 512 :])
            assert all(end.number >= self.head.number for end in self._ends(self.torn))

    def step(self, rng):
        coming = mark(self.head.number + 1, rng.randrange(256))
        pending = self.anchor.prepare(self.head, coming)
        outcome = rng.choice(["settled", "settled", "killed", "failed", "late"])
        if outcome == "failed":
            return  # the commit did not happen
        self.head = coming
        if outcome == "settled":
            pending.settle()
        elif outcome == "late":
            then = mark(self.head.number + 1, rng.randrange(256))
            other = self.anchor.prepare(self.head, then)
            self.head = then
            pending.settle()
            other.settle()
        if self.anchor.read() == Held(self.head):
            self.damaged()


def search(seeds, steps, folder, monkeypatch):
    states = 0
    for seed in seeds:
        own = folder / str(seed)
        own.mkdir()
        with monkeypatch.context() as patch:
            database, rng = Database(own, patch), random.Random(seed)
            for _ in range(steps):
                database.step(rng)
            states += database.states
    return states


def test_no_cut_write_loses_the_end_or_lets_an_older_one_pass(tmp_path, monkeypatch):
    assert search(range(1), 10, tmp_path, monkeypatch) > 100


@pytest.mark.stats
def test_no_cut_write_of_long_histories(tmp_path, monkeypatch):
    search(range(100, 140), 60, tmp_path, monkeypatch)


@pytest.mark.parametrize("bug", ["a single slot is believed as it stands", "a failed commit is forgotten"])
def test_the_search_finds_planted_bugs(tmp_path, monkeypatch, bug):
    if bug == "a single slot is believed as it stands":
        newest = FileAnchor._newest

        def believed(self, slots):
            found = newest(self, slots)
            _, held = self._content(slots[found.slot], in_slot=True)
            return anchor._Found(held, found.order, found.slot)

        monkeypatch.setattr(FileAnchor, "_newest", believed)
    else:

        def always_the_other(self, found, held):
            if found is None or not found.order:
                anchor.replace_file(self.path, self._line(held, 1) + self._line(held, 2))
            else:
                anchor.write_slot(self.path, 1 - found.slot, self._line(held, found.order + 1))

        monkeypatch.setattr(FileAnchor, "_write", always_the_other)
    with pytest.raises(AssertionError):
        search(range(4), 12, tmp_path, monkeypatch)


def test_slots_that_do_not_follow_each_other_let_no_older_one_pass(tmp_path):
    """The newer slot replaced by an older copy of itself: the other one's announcement must have happened."""
    one = FileAnchor(tmp_path / "x.anchor", CHAIN)
    one.start(mark(0))
    contents = []
    for number in range(4):
        one.prepare(mark(number), mark(number + 1)).settle()
        contents.append(one.path.read_bytes())
    last, old = contents[-1], contents[0]
    for begin in (0, 512):
        one.path.write_bytes(last[:begin] + old[begin : begin + 512] + last[begin + 512 :])
        assert one.read() == Held(mark(4))


def test_an_older_seal_holds_for_no_slot(tmp_path):
    """A copy of an anchor of the first or second version, with an order of the attacker's."""
    one = FileAnchor(tmp_path / "x.anchor", CHAIN)
    one.start(mark(0))
    one.prepare(mark(0), mark(1)).settle()
    whole, old = one.path.read_bytes(), mark(0)
    plain = {"ledger": CHAIN.ledger, "number": old.number, "mac": old.mac.hex()}
    text = f"{old.number}\n{old.mac.hex()}"
    first = plain | {"seal": CHAIN.seal("anchor", text)}
    second = plain | {"coming": None, "seal": CHAIN.seal("anchor 2", f"{text}\n")}
    for copy in (first, second):
        one.path.write_text(canonical(copy) + "\n")
        assert one.read().mark == old  # by itself it is an anchor
        slot = padded(canonical(copy | {"order": 99}))
        for content in (slot + whole[512:], whole[:512] + slot):
            one.path.write_bytes(content)
            assert one.read() == Held(mark(1))


def test_an_anchor_of_an_earlier_version_is_read_and_written_anew(sqlite_place):
    with sqlite_place.made(Budget(1)) as ledger:
        held, chain = ledger._journal.anchor.read(), ledger._journal.chain
        where = {"number": held.mark.number, "mac": held.mark.mac.hex()}
        seal = chain.seal("anchor 2", f"{held.mark.number}\n{held.mark.mac.hex()}\n")
        old = canonical({"ledger": chain.ledger, **where, "coming": None, "seal": seal}) + "\n"
    sqlite_place.anchor.write_text(old)
    sqlite_place.sql("UPDATE sfumato_ledger SET version = 2")
    with sqlite_place.open() as ledger:
        assert json.loads(sqlite_place.anchor.read_text()) == json.loads(old)
        ledger.debit("visits", PureLoss("0.1"), fingerprint="q")
        assert len(sqlite_place.anchor.read_bytes()) == 1024
        assert ledger.verify().ok
    sqlite_place.anchor.write_text(old)
    with pytest.raises(LedgerTampered, match="receipt 2 and the ledger at 3"):
        sqlite_place.open()
