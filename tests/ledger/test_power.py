"""A power cut takes what no sync has covered: answers at the end, and never a debit that was granted."""

from __future__ import annotations

import contextlib
import random
import shutil
from pathlib import Path

import pytest

from sfumato.errors import SfumatoError
from sfumato.ledger import Budget, Ledger, Steward, anchor
from sfumato.ledger.journal import Journal
from sfumato.ledger.sqlite import SQLite
from sfumato.loss import PureLoss


class Disk:
    """A ledger with every state that a power cut could leave its database in, given what was synced.

    A commit that waits for the disk leaves one state, one that does not leaves those before it possible, too.
    The anchor is synced with each write.
    """

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder, self.where = folder, folder / "visits.ledger"
        self.states: list[Path] = []
        self.checked = 0
        begin, commit = SQLite.begin, SQLite.commit

        def begun(store, *, synced=True):
            if store.path == self.where:
                self.synced = synced
            begin(store, synced=synced)

        def committed(store):
            told = store.execute("PRAGMA synchronous")
            commit(store)
            if store.path == self.where:
                assert told == [(2 if self.synced else 1,)]  # of the database itself
                self.keep()

        monkeypatch.setattr(SQLite, "begin", begun)
        monkeypatch.setattr(SQLite, "commit", committed)
        self.synced = True
        self.ledger = Ledger.open(self.where)
        self.ledger.register("visits", {"unit": "row"}, Budget(100))

    def keep(self) -> None:
        if self.synced:
            for state in self.states:
                shutil.rmtree(state)
            self.states = []
        state = self.folder / f"state-{random.getrandbits(64)}"
        state.mkdir()
        for path in self.folder.glob("visits.ledger*"):
            if path.name.endswith((".ledger", "-wal", ".key", ".checkpoint")):
                shutil.copy(path, state)
        self.states.append(state)

    def cut(self, granted: set[int]) -> None:
        """Opens each state beside the anchor of now; all debits that were granted are on record there."""
        for state in self.states:
            left = self.folder / "left"
            shutil.copytree(state, left)
            shutil.copy(self.folder / "visits.ledger.anchor", left)
            with Ledger.open(left / "visits.ledger", create=False) as ledger:
                assert granted <= {debit.number for debit in ledger.entries("visits", kind="debit")}
                ledger.debit("visits", PureLoss("0.01"), fingerprint="after")
                assert ledger.verify().ok
            shutil.rmtree(left)
            self.checked += 1


def history(folder, monkeypatch, seed, steps=8) -> int:
    """Debits, answers in any order and steward's acts, the power cut after each step; states that opened."""
    folder.mkdir()
    with monkeypatch.context() as patch:
        disk, chance = Disk(folder, patch), random.Random(seed)
        rights, granted = [], set()
        for _ in range(steps):
            what = chance.choices(("debit", "record", "act", "open"), (4, 4, 1, 1))[0]
            if what == "debit":
                right = disk.ledger.debit("visits", PureLoss("0.1"), fingerprint="q")
                rights.append(right)
                granted.add(right.receipt.number)
            elif what == "record" and rights:
                disk.ledger.record(rights.pop(chance.randrange(len(rights))), b"answer")
            elif what == "act":
                Steward(disk.ledger).limit("visits", "ada", Budget(1), reason="a test")
            elif what == "open":
                Ledger.open(disk.where).close()
            disk.cut(granted)
        disk.ledger.close()
    return disk.checked


def histories(folder, monkeypatch) -> int:
    return sum(history(folder / str(seed), monkeypatch, seed) for seed in range(3))


def test_whatever_a_power_cut_takes_it_opens_and_what_was_granted_is_on_record(tmp_path, monkeypatch):
    assert histories(tmp_path, monkeypatch) > 30


@pytest.mark.stats
def test_power_cuts_of_long_histories(tmp_path, monkeypatch):
    for seed in range(100, 120):
        history(tmp_path / str(seed), monkeypatch, seed, 25)


def _unsynced_debits(patch):
    writing = Journal.writing
    patch.setattr(Journal, "writing", lambda self, *, answer=False: writing(self))
    begin = SQLite.begin
    patch.setattr(SQLite, "begin", lambda self, *, synced=True: begin(self, synced=False))


def _marks_of_answers(patch):
    """The anchor is set to an answer that may be lost."""
    writing = Journal.writing

    @contextlib.contextmanager
    def eager(self, *, answer=False):
        with writing(self, answer=answer) as draft:
            yield draft
        if answer:
            self.anchor.settle(self._book.head)

    patch.setattr(Journal, "writing", eager)


def _strict_anchors(patch):
    """The database must end where the anchor does, answers and all."""
    patch.setattr(anchor.Held, "ends_at", lambda self, head, due: head in (self.mark, self.coming))


@pytest.mark.parametrize("bug", [_unsynced_debits, _marks_of_answers, _strict_anchors])
def test_the_search_finds_planted_bugs(tmp_path, monkeypatch, bug):
    bug(monkeypatch)
    with pytest.raises((AssertionError, SfumatoError)):
        histories(tmp_path, monkeypatch)
