"""Answers that were read lately are given from memory: never others than the database has, nor to others."""

from __future__ import annotations

import contextlib
import random

import pytest

from sfumato.errors import AccessDenied, SfumatoError
from sfumato.ledger import Budget, Counter, Ledger, Steward, kept
from sfumato.ledger.kept import Kept
from sfumato.loss import PureLoss

QUESTIONS, ANALYSTS = ("q", "r"), ("ada", "bob")


def told(ledger, question, analyst):
    """What an analyst, or the steward, is given of a question: answers, or the name of a refusal."""
    try:
        counter = ledger if analyst is None else Counter(ledger, analyst)
        return [
            (receipt.number, payload)
            for others in (False, True)
            for receipt, payload in counter._recall("visits", question, analyst, others=others)
        ]
    except SfumatoError as refused:
        return type(refused).__name__


def act(ledger, chance):
    """Something that somebody does: most often to pay and record, at times a steward's act."""
    steward, who = Steward(ledger), chance.choice(ANALYSTS)
    what = chance.choices(("pay", "revoke", "limit", "give", "close"), (12, 2, 2, 2, 1))[0]
    with contextlib.suppress(SfumatoError):
        if what == "pay":
            question = chance.choice(QUESTIONS)
            right = ledger.debit("visits", PureLoss("0.1"), fingerprint=question, analyst=who)
            ledger.record(right, f"{right.receipt.number}".encode())
        elif what == "revoke":
            steward.revoke("visits", who, reason="a test")
        elif what == "limit":
            steward.limit("visits", who, Budget(1), reason="a test")
        elif what == "give":
            debits = [debit.number for debit in ledger.entries("visits", kind="debit")]
            steward.give("visits", chance.choice(debits), reason="a test")
        elif chance.random() < 0.3:
            steward.close_budget("visits", reason="a test")


def differences(place, seed, steps=25):
    """How often one of two open ledgers gives anything else than one that is opened for it."""
    chance, wrong = random.Random(seed), 0
    with place.made(Budget(10)) as one, place.open() as other:
        for _ in range(steps):
            act(chance.choice((one, other)), chance)
            question, who = chance.choice(QUESTIONS), chance.choice((None, *ANALYSTS))
            with place.open() as fresh:
                expected = told(fresh, question, who)
            wrong += sum(told(ledger, question, who) != expected for ledger in (one, other))
    return wrong


@pytest.mark.parametrize("seed", range(3))
def test_what_is_given_from_memory_is_what_a_new_opening_gives(sqlite_place, seed):
    assert differences(sqlite_place, seed) == 0


def test_the_search_finds_answers_that_are_kept_too_long(sqlite_place, monkeypatch):
    monkeypatch.setattr(Kept, "follow", lambda self, rows: None)
    assert differences(sqlite_place, 0)


def test_the_search_finds_answers_that_are_given_to_whoever_asks(sqlite_place, monkeypatch):
    given = {}
    recall = Counter._recall

    def careless(self, dataset, fingerprint, analyst, *, others):
        asked = (fingerprint, others)
        if asked not in given:
            given[asked] = recall(self, dataset, fingerprint, analyst, others=others)
        return given[asked]

    with sqlite_place.made(Budget(10)) as ledger:
        right = ledger.debit("visits", PureLoss(1), fingerprint="q")
        ledger.record(right, b"answer")
        assert told(ledger, "q", None)
        Steward(ledger).close_budget("visits", reason="a test")
        assert told(ledger, "q", "ada") == "AccessDenied"
        monkeypatch.setattr(Counter, "_recall", careless)
        told(ledger, "q", None)
        assert told(ledger, "q", "ada") != "AccessDenied"


def test_the_database_is_asked_once_for_an_answer(sqlite_place, monkeypatch):
    with sqlite_place.made() as ledger:
        ledger.record(ledger.debit("visits", PureLoss("0.1"), fingerprint="q"), b"answer")
        asked, payload = [], ledger._journal.store.payload
        monkeypatch.setattr(
            ledger._journal.store, "payload", lambda debit: asked.append(debit) or payload(debit)
        )
        assert [told(ledger, "q", None) for _ in range(3)] == [[(3, b"answer")]] * 3
        assert asked == [3]


def test_only_so_many_bytes_are_kept(sqlite_place, monkeypatch):
    monkeypatch.setattr(kept, "_BYTES", 250)
    monkeypatch.setattr(kept, "_LARGEST", 120)
    with sqlite_place.made() as ledger:
        for number in range(8):
            right = ledger.debit("visits", PureLoss("0.01"), fingerprint=f"q{number % 3}")
            ledger.record(right, b"x" * (100 + 10 * (number % 4)))
        for _ in range(2):
            for number in range(3):
                with Ledger.open(sqlite_place.where) as fresh:
                    assert told(ledger, f"q{number}", None) == told(fresh, f"q{number}", None)
                held = ledger._journal.kept
                bytes_held = sum(
                    len(answer._payload or b"") for answers in held._questions.values() for answer in answers
                )
                assert held._bytes == bytes_held <= 250


def test_a_closed_budget_gives_nothing_from_memory(place):
    with place.made() as ledger, place.open() as other:
        ledger.record(ledger.debit("visits", PureLoss("0.1"), fingerprint="q", analyst="ada"), b"answer")
        ada = Counter(ledger, "ada")
        assert ada.recall("visits", "q")
        Steward(other).close_budget("visits", reason="the data is deleted")
        with pytest.raises(AccessDenied):
            ada.recall("visits", "q")
