"""Spellings of one name are one name: for limits, revocations, allotments and datasets."""

from __future__ import annotations

import json
import unicodedata
from fractions import Fraction

import pytest

from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.ledger import Budget, Counter, Ledger, Steward, account, names, rules
from sfumato.loss import PureLoss

F = Fraction
UNIT = {"unit": "row"}
NAMES = ["ada", "jean luc", "straße", "ÉMILIE", "πλάτων", "наташа", "小林", "team-7", "o'neil", "ﬁona"]


def full_width(name):
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in name)


SPELLINGS = {
    "upper": str.upper,
    "lower": str.lower,
    "title": str.title,
    "swapped": str.swapcase,
    "folded": str.casefold,
    "wide": full_width,
    "wide upper": lambda name: full_width(name.upper()),
    "decomposed": lambda name: unicodedata.normalize("NFD", name),
    "compatible": lambda name: unicodedata.normalize("NFKD", name),
    "hard spaces": lambda name: name.replace(" ", "\u00a0"),
    "many spaces": lambda name: name.replace(" ", " \u2003 "),
    "a joiner that is not seen": lambda name: name[:1] + "\u034f" + name[1:],
    "a variant mark": lambda name: name + "\ufe0f",
    "a filler": lambda name: name[:1] + "\u3164" + name[1:],
}
CASES = [(name, how) for name in NAMES for how in SPELLINGS]


def registered() -> Ledger:
    ledger = Ledger.open()
    ledger.register("visits", UNIT, Budget(1))
    return ledger


def escapes(name, other) -> list[str]:
    """What an analyst gains by writing their name in another way: nothing, if all is well."""
    found = []
    with registered() as ledger:
        Steward(ledger).limit("visits", name, Budget("0.1"), reason="small")
        try:
            ledger.debit("visits", PureLoss("0.2"), fingerprint="q", analyst=other)
            found.append("limit")
        except (BudgetExceeded, InvalidParameter):
            pass
        try:
            Steward(ledger).allot("visits", {name: Budget("0.1"), other: Budget("0.1")}, reason="twice")
            found.append("allotment")
        except InvalidParameter:
            pass
        Steward(ledger).revoke("visits", other, reason="over")
        try:
            ledger.debit("visits", PureLoss("0.01"), fingerprint="q", analyst=name)
            found.append("revocation")
        except AccessDenied:
            pass
        ledger.register(name, UNIT, Budget(1))
        try:
            if other != name:
                ledger.register(other, UNIT, Budget(1))
                found.append("dataset")
        except (LedgerMismatch, InvalidParameter):
            pass
        assert len({names.alike(each.analyst) for each in ledger.entries() if each.analyst}) == 1
        assert ledger.verify().ok
    return found


def searched() -> list[tuple[str, str, str]]:
    different = [
        (name, how) for name, how in CASES if unicodedata.normalize("NFC", SPELLINGS[how](name)) != name
    ]
    assert len(different) >= 75
    return [(name, how, what) for name, how in different for what in escapes(name, SPELLINGS[how](name))]


def test_no_spelling_of_a_name_escapes_a_limit_a_revocation_or_a_budget():
    assert searched() == []


def test_the_search_finds_names_that_are_compared_as_they_are_written(monkeypatch):
    for module in (names, account, rules):
        if hasattr(module, "alike"):
            monkeypatch.setattr(module, "alike", lambda name: name)
    monkeypatch.setattr("sfumato.ledger.allotment.alike", lambda name: name)
    with pytest.raises(AssertionError):
        escapes("ada", "ADA")  # already the receipts have two names
    with registered() as ledger:
        Steward(ledger).limit("visits", "ada", Budget("0.1"), reason="small")
        ledger.debit("visits", PureLoss("0.2"), fingerprint="q", analyst="Ada")  # the hole


def test_a_receipt_has_the_spelling_that_was_first_on_record():
    with registered() as ledger:
        Steward(ledger).limit("visits", "Ada", Budget("0.5"), reason="x")
        assert (
            ledger.debit("visits", PureLoss("0.1"), fingerprint="q", analyst="ADA").receipt.analyst == "Ada"
        )
        assert ledger.balance("visits", "ada").spent == F("0.1")
        assert ledger.balance("visits", "ada").retrospective == pytest.approx(0.1)
        assert ledger.promised("visits", ["ADA"]) == {"epsilon": 0, "delta": 0}


@pytest.mark.parametrize(
    "name", ["ad\u0430", "\u0430da", "\u0391da", "p\u03bfol", "n\u0430\u03c1a", "\u03b1\u0430", "x \u0430b"]
)
def test_a_word_of_letters_that_look_alike_is_no_new_name(name):
    with registered() as ledger:
        with pytest.raises(InvalidParameter, match="several scripts"):
            ledger.debit("visits", PureLoss("0.1"), fingerprint="q", analyst=name)
        with pytest.raises(InvalidParameter, match="several scripts"):
            ledger.register(name, UNIT, Budget(1))
        with pytest.raises(InvalidParameter, match="several scripts"):
            Steward(ledger).limit("visits", name, Budget("0.1"), reason="x")


@pytest.mark.parametrize("name", ["\u3164", "\u034f\u3164", "\ufe0f"])
def test_a_name_that_nobody_sees_is_refused(name):
    with registered() as ledger, pytest.raises(InvalidParameter):
        ledger.register(name, UNIT, Budget(1))


def as_of_before(monkeypatch) -> None:
    """Names compared as they are written, as earlier versions did."""
    for module in ("account", "allotment", "counter", "names"):
        monkeypatch.setattr(f"sfumato.ledger.{module}.alike", lambda name: name)


def test_a_ledger_with_two_spellings_keeps_both_and_counts_them_together(tmp_path, monkeypatch):
    where = tmp_path / "old.ledger"
    with monkeypatch.context() as before:
        as_of_before(before)
        with Ledger.open(where) as ledger:
            ledger.register("visits", UNIT, Budget(1))
            ledger.register("VISITS", UNIT, Budget(1))
            Steward(ledger).limit("visits", "ada", Budget("0.2"), reason="x")
            ledger.debit("visits", PureLoss("0.1"), fingerprint="q", analyst="ada")
            ledger.debit("visits", PureLoss("0.4"), fingerprint="q", analyst="Ada")
            Steward(ledger).revoke("visits", "ADA", reason="x")
            ledger.debit("visits", PureLoss("0.05"), fingerprint="q", analyst="ada")
            assert ledger.verify().ok
    with Ledger.open(where) as ledger:
        assert ledger.verify().ok  # what earlier versions admitted is not called a fraud now
        assert [each.name for each in ledger.datasets()] == ["visits", "VISITS"]
        assert ledger.register("VISITS", UNIT, None).name == "VISITS"
        assert ledger.balance("visits", "ada").spent == F("0.55")
        with pytest.raises(AccessDenied):  # the last decision about any spelling holds for all
            ledger.debit("visits", PureLoss("0.01"), fingerprint="q", analyst="Ada")
        Steward(ledger).limit("visits", "ada", Budget("0.6"), reason="again")
        assert (
            ledger.debit("visits", PureLoss("0.04"), fingerprint="q", analyst="Ada").receipt.analyst == "Ada"
        )
        with pytest.raises(BudgetExceeded):
            ledger.debit("visits", PureLoss("0.02"), fingerprint="q", analyst="ada")
        ledger.debit("visits", PureLoss("0.01"), fingerprint="q", analyst="ada")
        assert ledger.balance("visits", "ADA").spent == F("0.6")
        assert ledger.verify().ok
        bodies = [json.loads(row.body) for row in ledger._journal.store.walk(1) if row.analyst == "Ada"]
        assert bodies[-1]["analyst_totals"]["epsilon"] == "11/25"  # each spelling's own sums go on


def test_an_analysts_side_opens_no_budget_and_declares_nothing(place):
    with place.made(Budget(1)) as ledger:
        counter = Counter(ledger, "ada")
        before = ledger.export()
        for declaration in (
            {"unit": "row", "version": 2},
            {"unit": "row", "version": 1, "schema": {"age": [0, 1000]}},
        ):
            with pytest.raises(AccessDenied):
                counter.register("visits", declaration, None)
        for name in ("fresh", "visits 2"):
            with pytest.raises(AccessDenied, match="only the steward"):
                counter.register(name, {"unit": "row"}, Budget(10**6))
        assert counter.register("visits", {"unit": "row", "version": 1}, Budget(1)).name == "visits"
        assert ledger.export() == before
