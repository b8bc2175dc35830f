"""The steward's acts: what is declared, raised, limited, revoked; each with a receipt of its own."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.ledger import Budget, Counter, Ledger, Steward
from sfumato.loss import GaussianLoss, PureLoss

F = Fraction
UNIT = {"column": "user_id", "max_groups": 3}
DECLARED = {"unit": UNIT, "schema": {"age": {"lower": 18, "upper": 99}}, "version": "2024-01"}


def pay(ledger, epsilon="0.1", analyst=None):
    return ledger.debit("visits", PureLoss(epsilon), fingerprint="q", analyst=analyst).receipt


def kinds(ledger):
    return [receipt.kind for receipt in ledger.entries()]


def test_registering_again_finds_the_same_dataset(place):
    with place.open() as ledger:
        first = ledger.register("visits", DECLARED, Budget(1))
        assert len(first.salt) == 16
        assert ledger.register("visits", dict(reversed(DECLARED.items())), Budget(1.0)) == first
        pay(ledger)
    with place.open() as ledger:
        again = ledger.register("visits", DECLARED, None)
        assert again == first
        assert again.budget == Budget(1)
        assert ledger.balance("visits").spent == F("0.1")
        assert kinds(ledger) == ["register", "open", "debit"]
        other = ledger.register("other", DECLARED, Budget(1))
        assert (other.id, other.salt) != (first.id, first.salt)


def test_another_budget_is_a_mismatch(place):
    with place.open() as ledger:
        ledger.register("visits", DECLARED, Budget(1, "1e-6"))
        pay(ledger)
        for budget in (Budget(2, "1e-6"), Budget(1), Budget(1, "1e-6", "zcdp"), Budget("0.5", "1e-6")):
            with pytest.raises(LedgerMismatch, match=r"on record is epsilon 1, delta 1e-06 \(basic\)"):
                ledger.register("visits", DECLARED, budget)
        with pytest.raises(LedgerMismatch, match="give one"):
            ledger.register("new", DECLARED, None)
        assert kinds(ledger) == ["register", "open", "debit"]


def test_the_unit_never_changes_once_something_was_spent(place):
    with place.open() as ledger:
        ledger.register("visits", DECLARED, Budget(1))
        pay(ledger)
        other = DECLARED | {"unit": {"column": "user_id", "max_groups": 4}}
        with pytest.raises(LedgerMismatch, match="unit"):
            ledger.register("visits", other, None)
        with pytest.raises(LedgerMismatch, match="unit"):
            Steward(ledger).redeclare("visits", other, reason="we want to")
        assert kinds(ledger) == ["register", "open", "debit"]


def test_bounds_change_freely_until_something_is_spent(place):
    wider = DECLARED | {"schema": {"age": {"lower": 0, "upper": 120}}}
    widest = DECLARED | {"schema": {"age": {"lower": 0, "upper": 150}}, "version": "2024-02"}
    with place.open() as ledger:
        ledger.register("visits", DECLARED, Budget(1))
        assert ledger.register("visits", wider, Budget(1)).declaration == wider
        assert kinds(ledger) == ["register", "open", "redeclare"]
        pay(ledger)
        with pytest.raises(LedgerMismatch, match="redeclare"):
            ledger.register("visits", widest, Budget(1))
        receipt = Steward(ledger).redeclare("visits", widest, reason="ages were wrong")
        assert (receipt.kind, receipt.memo["reason"]) == ("redeclare", "ages were wrong")
        assert ledger.register("visits", widest, Budget(1)).declaration == widest
        assert ledger.balance("visits").spent == F("0.1")
    with place.open() as ledger:
        assert ledger.datasets()[0].declaration == widest
        assert ledger.verify().ok


def test_a_new_version_has_a_receipt_and_no_new_budget(place):
    with place.open() as ledger:
        ledger.register("visits", DECLARED, Budget(1))
        pay(ledger, "0.9")
        newer = DECLARED | {"version": "2024-02"}
        assert ledger.register("visits", newer, Budget(1)).declaration == newer
        assert kinds(ledger) == ["register", "open", "debit", "version"]
        with pytest.raises(BudgetExceeded):
            pay(ledger, "0.2")


def test_a_budget_is_raised_and_never_lowered(place):
    with place.made(Budget(1, "1e-6")) as ledger:
        pay(ledger, "0.9")
        for lower in (Budget("0.95", "1e-6"), Budget(2, "1e-7")):
            with pytest.raises(LedgerMismatch, match="only be raised"):
                Steward(ledger).raise_budget("visits", lower, reason="less")
        with pytest.raises(LedgerMismatch, match="gated by 'basic'"):
            Steward(ledger).raise_budget("visits", Budget(2, "1e-6", "zcdp"), reason="tighter")
        receipt = Steward(ledger).raise_budget("visits", Budget(2, "1e-6"), reason="a second year")
        assert (receipt.kind, receipt.memo["reason"]) == ("raise", "a second year")
        pay(ledger, "1.1")
        with pytest.raises(BudgetExceeded):
            pay(ledger, "0.1")
        with pytest.raises(LedgerMismatch):
            ledger.register("visits", {"unit": "row", "version": 1}, Budget(1, "1e-6"))
        assert ledger.register("visits", {"unit": "row", "version": 1}, Budget(2, "1e-6")).budget.epsilon == 2
    with place.open() as ledger:
        assert ledger.balance("visits").epsilon == 2
        assert ledger.verify().ok


def test_a_raised_budget_keeps_its_order(sqlite_place):
    with sqlite_place.made(Budget(1, "1e-6", "rdp")) as ledger:
        order = ledger.datasets()[0].budget.order
        assert Budget(4, "1e-6", "rdp").order != order
        ledger.debit("visits", GaussianLoss(F("0.01")), fingerprint="q")
        Steward(ledger).raise_budget("visits", Budget(4, "1e-6", "rdp"), reason="more")
        assert ledger.datasets()[0].budget.order == order
        Steward(ledger).limit("visits", "ada", Budget("0.9", "1e-6", "rdp"), reason="some")
        ledger.debit("visits", GaussianLoss(F("0.01")), fingerprint="q", analyst="ada")
        assert ledger.verify().ok


def test_limits_hold_inside_the_cap(place):
    with place.made(Budget(1)) as ledger:
        pay(ledger, "0.1", "ada")  # before there is a limit: it counts
        receipt = Steward(ledger).limit("visits", "ada", Budget("0.4"), reason="junior")
        assert (receipt.kind, receipt.analyst) == ("limit", "ada")
        pay(ledger, "0.3", "ada")
        with pytest.raises(
            BudgetExceeded,
            match=r"The limit of 'ada' on 'visits' is used up: asked epsilon 0.1, spent 0.4 of 0.4",
        ):
            pay(ledger, "0.1", "ada")
        pay(ledger, "0.2", "bob")
        pay(ledger, "0.2")
        ada, everybody = ledger.balance("visits", "ada"), ledger.balance("visits")
        assert (ada.epsilon, ada.spent, ada.remaining, ada.entries) == (F("0.4"), F("0.4"), 0, 2)
        assert (everybody.spent, everybody.remaining) == (F("0.8"), F("0.2"))
        bob = ledger.balance("visits", "bob")
        assert (bob.epsilon, bob.spent, bob.remaining) == (1, F("0.2"), F("0.2"))
        Steward(ledger).limit("visits", "ada", Budget("0.9"), reason="promoted")
        assert ledger.balance("visits", "ada").remaining == F("0.2")  # what the dataset has left
        with pytest.raises(BudgetExceeded, match="the budget of 'visits'"):
            pay(ledger, "0.3", "ada")
        pay(ledger, "0.2", "ada")
    with place.open() as ledger:
        assert ledger.balance("visits", "ada").spent == F("0.6")
        Steward(ledger).raise_budget("visits", Budget(2), reason="more")
        pay(ledger, "0.3", "ada")
        with pytest.raises(BudgetExceeded, match="limit"):  # raising the cap raises nobody's limit
            pay(ledger, "0.1", "ada")
        Steward(ledger).limit("visits", "ada", Budget("0.5"), reason="less than was spent already")
        assert ledger.balance("visits", "ada").remaining == 0
        with pytest.raises(BudgetExceeded):
            pay(ledger, "0.01", "ada")
        assert ledger.verify().ok


def test_a_limit_above_the_cap_or_of_another_gate_is_refused(place):
    with place.made(Budget(1, "1e-6")) as ledger:
        for wrong in (Budget(2, "1e-6"), Budget(1, "1e-5"), Budget(1, "1e-6", "zcdp")):
            with pytest.raises(LedgerMismatch):
                Steward(ledger).limit("visits", "ada", wrong, reason="too much")
        with pytest.raises(InvalidParameter):
            Steward(ledger).limit("visits", "ada", 0.5, reason="no budget")


@pytest.mark.parametrize("accountant", ["zcdp", "gaussian", "rdp"])
def test_limits_hold_under_every_gate(sqlite_place, accountant):
    loss = GaussianLoss(F("0.005"))
    with sqlite_place.made(Budget(1, "1e-6", accountant)) as ledger:
        Steward(ledger).limit("visits", "ada", Budget("0.6", "1e-6", accountant), reason="junior")
        ledger.debit("visits", loss, fingerprint="q", analyst="ada")
        with pytest.raises(BudgetExceeded, match="limit"):
            [ledger.debit("visits", loss, fingerprint="q", analyst="ada") for _ in range(4)]
        assert ledger.balance("visits", "ada").spent <= F("0.6")
        ledger.debit("visits", loss, fingerprint="q", analyst="bob")
        assert ledger.verify().ok


def test_a_revoked_analyst_is_denied_until_a_new_limit(place):
    with place.made(Budget(1)) as ledger:
        pay(ledger, "0.1", "ada")
        receipt = Steward(ledger).revoke("visits", "ada", reason="left the team")
        assert (receipt.kind, receipt.analyst, receipt.memo["reason"]) == ("revoke", "ada", "left the team")
        with pytest.raises(AccessDenied, match="nothing was spent"):
            pay(ledger, "0.1", "ada")
        pay(ledger, "0.1", "bob")
        assert not ledger.balance("visits", "ada").open
        assert ledger.balance("visits", "bob").open
    with place.open() as ledger:
        with pytest.raises(AccessDenied):
            pay(ledger, "0.1", "ada")
        Steward(ledger).limit("visits", "ada", Budget("0.3"), reason="is back")
        pay(ledger, "0.2", "ada")
        with pytest.raises(BudgetExceeded):  # what was spent before counts
            pay(ledger, "0.1", "ada")
        Steward(ledger).revoke("visits", "carol", reason="never had access")
        with pytest.raises(AccessDenied):
            pay(ledger, "0.1", "carol")
        assert ledger.verify().ok


@pytest.mark.parametrize("reason", ["", "  ", None, 3])
def test_every_act_needs_a_reason(reason):
    with Ledger.open() as ledger:
        ledger.register("visits", DECLARED, Budget(1))
        for act in (
            lambda: Steward(ledger).raise_budget("visits", Budget(2), reason=reason),
            lambda: Steward(ledger).close_budget("visits", reason=reason),
            lambda: Steward(ledger).limit("visits", "ada", Budget("0.5"), reason=reason),
            lambda: Steward(ledger).revoke("visits", "ada", reason=reason),
            lambda: Steward(ledger).redeclare("visits", DECLARED, reason=reason),
        ):
            with pytest.raises(InvalidParameter, match="reason"):
                act()
        assert kinds(ledger) == ["register", "open"]


@pytest.mark.parametrize("wrong", [None, {}, {"schema": {}}, [], {"unit": object()}])
def test_a_declaration_names_a_unit(wrong):
    with Ledger.open() as ledger, pytest.raises(InvalidParameter):
        ledger.register("visits", wrong, Budget(1))


def test_a_budget_must_be_one():
    with Ledger.open() as ledger, pytest.raises(InvalidParameter):
        ledger.register("visits", DECLARED, 1.0)


def test_an_act_has_the_name_of_who_did_it(place):
    with place.open() as ledger:
        ledger.register("visits", DECLARED, Budget(1))
        pay(ledger, analyst="ada")
        steward = Steward(ledger, by="sofia")
        steward.limit("visits", "ada", Budget("0.5"), reason="a project")
        steward.allot("visits", {"bob": Budget("0.2")}, reason="a term")
        steward.take_back("visits", reason="it is over")
        steward.access("liv", "account added", role="analyst")
        acts = [receipt for receipt in ledger.entries() if receipt.number > 3]
        assert {act.memo["by"] for act in acts} == {"sofia"}
        assert str(acts[-1]) == f"#{acts[-1].number} access for liv"
        assert "by" not in Steward(ledger).revoke("visits", "ada", reason="done").memo
        with pytest.raises(InvalidParameter, match="who acts"):
            Steward(ledger).access("liv", "account added")
        assert ledger.analysts("visits") == ["ada", "bob"]
        assert [one.kind for one in Counter(ledger, "bob").entries() if one.kind == "access"] == []
        assert [one.kind for one in Counter(ledger, "Liv").entries() if one.kind == "access"] == ["access"]
        assert ledger.verify().ok
    with place.open() as ledger:
        assert kinds(ledger)[-2:] == ["access", "revoke"]
