"""Paying: exact, gated by the budget's filter, once for an answer; one suite for both stores."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from sfumato.errors import (
    AccessDenied,
    BudgetExceeded,
    InvalidParameter,
    LedgerMismatch,
    LedgerUnusable,
    Spent,
    UnsupportedLoss,
)
from sfumato.ledger import Budget, Ledger, Steward
from sfumato.loss import (
    NO_LOSS,
    ApproximateLoss,
    ConcentratedLoss,
    DiscreteGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    PureLoss,
)

F = Fraction
TENTH = PureLoss("0.1")


def owe(ledger, loss=TENTH, **more):
    return ledger.debit("visits", loss, **({"fingerprint": "q"} | more))


def pay(ledger, loss=TENTH, **more):
    return owe(ledger, loss, **more).receipt


def test_ten_tenths_are_one(place):
    with place.made(Budget(1)) as ledger:
        receipts = [pay(ledger, PureLoss(0.1)) for _ in range(10)]
        balance = ledger.balance("visits")
        assert (balance.spent, balance.remaining) == (1, 0)
        assert isinstance(balance.spent, Fraction)
        with pytest.raises(BudgetExceeded):
            pay(ledger, PureLoss("1e-200"))
        pay(ledger, NO_LOSS)
        assert [receipt.totals["epsilon"] for receipt in receipts] == [F(n, 10) for n in range(1, 11)]
    with place.open() as ledger:
        assert ledger.balance("visits").remaining == 0
        with pytest.raises(BudgetExceeded):
            pay(ledger, PureLoss("1e-200"))
        assert ledger.verify().ok


def test_a_refusal_says_asked_spent_and_left_and_spends_nothing(place):
    with place.made(Budget(1, "1e-6")) as ledger:
        pay(ledger, PureLoss("0.7"))
        before = ledger.export()
        with pytest.raises(BudgetExceeded) as refused:
            pay(ledger, PureLoss("0.4"))
        said = str(refused.value)
        for part in ("asked epsilon 0.4", "spent 0.7 of 1", "left 0.3", "Nothing was spent", "'visits'"):
            assert part in said
        with pytest.raises(BudgetExceeded, match=r"asked delta 1e-05, spent 0 of 1e-06, left 1e-06"):
            pay(ledger, ApproximateLoss("0.1", "1e-5"))
        assert ledger.export() == before
        pay(ledger, PureLoss("0.3"))
        with pytest.raises(BudgetExceeded) as refused:
            pay(ledger, PureLoss("0.4"))
        said = str(refused.value)
        assert said.startswith("The budget of 'visits' is used up: asked epsilon 0.4, spent 1 of 1, left 0.")
        assert "the steward may raise it" in said
        assert "ask for less" not in said


def test_a_receipt_holds_what_was_paid(place):
    with place.made(Budget(1, "1e-6")) as ledger:
        memo = {"query": "SELECT 'é' \x00 ☃", "epsilon": F(1, 3), "parts": (1, 2.5, None, True)}
        receipt = pay(ledger, LaplaceLoss(F(1, 3)), fingerprint="f" * 64, analyst="ada", memo=memo)
        assert (receipt.number, receipt.kind, receipt.dataset, receipt.analyst) == (
            3,
            "debit",
            "visits",
            "ada",
        )
        assert receipt.loss == LaplaceLoss(F(1, 3))
        assert receipt.price == {"epsilon": F(1, 3), "delta": 0}
        assert receipt.fingerprint == "f" * 64
        assert receipt.memo == {"query": memo["query"], "epsilon": "1/3", "parts": [1, 2.5, None, True]}
        assert abs(receipt.time - datetime.now(UTC)) < timedelta(minutes=1)
        assert list(ledger.entries())[-1] == receipt
        assert list(ledger.entries("visits"))[-1] == receipt
        assert list(ledger.entries("other")) == []
        assert str(receipt) == "#3 debit on visits by ada: epsilon 0.333333333333, delta 0"
    with place.open() as ledger:
        assert list(ledger.entries())[-1] == receipt
        assert [entry["kind"] for entry in ledger.export()] == ["register", "open", "debit"]
        assert all("salt" not in str(entry) for entry in ledger.export())


POINTED = GaussianLoss(F(1, 1000), point=(F("0.3"), F("2e-7")))
GATES = {
    "basic": (Budget(1, "1e-6"), POINTED, 3, DiscreteGaussianLoss(F(10))),
    "zcdp": (Budget(1, "1e-6", "zcdp"), ConcentratedLoss(F("0.01")), 2, ApproximateLoss("0.01", "1e-8")),
    "gaussian": (Budget(1, "1e-6", "gaussian"), GaussianLoss(F("0.01")), 2, LaplaceLoss(F(1, 10))),
    "rdp": (Budget(1, "1e-6", "rdp", order=22), GaussianLoss(F("0.01")), 2, ApproximateLoss("0.01", "1e-8")),
}  # fmt: skip


@pytest.mark.parametrize("gate", GATES)
def test_each_gate_admits_what_fits_and_nothing_it_cannot_prove(place, gate):
    budget, loss, fits, foreign = GATES[gate]
    with place.made(budget) as ledger:
        for _ in range(fits):
            pay(ledger, loss)
        with pytest.raises(BudgetExceeded):
            pay(ledger, loss)
        with pytest.raises((UnsupportedLoss, BudgetExceeded)):
            pay(ledger, foreign)
        balance = ledger.balance("visits")
        assert balance.accountant == gate
        assert balance.entries == fits
        assert 0 < balance.spent <= 1
        assert 0 <= balance.remaining < 1
        assert 0 < balance.retrospective <= balance.spent
        for unit, (spent, limit) in balance.gate.items():
            assert 0 <= spent <= limit, unit
        assert ledger.verify().ok
    with place.open() as ledger:
        assert ledger.balance("visits").gate == balance.gate
        with pytest.raises(BudgetExceeded):
            pay(ledger, loss)


def test_mixed_neighbours_are_refused(sqlite_place):
    one, other = (PureLoss(F(1, 100)).sampled("0.5", scheme) for scheme in ("poisson", "fixed"))
    assert {one.adjacency, other.adjacency} == {"add-remove", "exchange"}
    with sqlite_place.made(Budget(1, "1e-6", "rdp", order=32)) as ledger:
        pay(ledger, one)
    with sqlite_place.open() as ledger:
        with pytest.raises(UnsupportedLoss):
            pay(ledger, other)
        pay(ledger, one)


def test_the_retrospective_figure_is_tighter_and_labelled(place):
    with place.made(Budget(10, "1e-6")) as ledger:
        assert ledger.balance("visits").retrospective == 0
        for _ in range(25):
            pay(ledger, LaplaceLoss(F(1, 5)))
        balance = ledger.balance("visits")
        assert balance.spent == 5
        assert 2 < balance.retrospective < 4.5
        pay(ledger)
        assert balance.retrospective < 4.5  # as of then
        assert ledger.balance("visits").retrospective > balance.retrospective
        shown = str(balance)
        assert "(the same questions, fixed before the first was asked, would count as" in shown
        assert max(map(len, shown.splitlines())) <= 80


def test_unlike_fractions_do_not_grow_without_end():
    primes = [n for n in range(10**6, 10**6 + 8000) if all(n % d for d in range(2, 1100))]
    assert len(primes) > 400
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(1))
        for prime in primes[:400]:
            pay(ledger, PureLoss(F(1, prime)))
        spent = ledger.balance("visits").spent
        exact = sum((F(1, prime) for prime in primes[:400]), F(0))
        assert 0 <= spent - exact < F(1, 2**1100)
        assert spent.denominator.bit_length() < 5000
        assert ledger.verify().ok


def test_answers_are_recorded_once_and_recalled_newest_first(place):
    with place.made() as ledger:
        first, second = owe(ledger), owe(ledger)
        other = owe(ledger, fingerprint="other")
        assert ledger.recall("visits", "q") == []
        ledger.record(first, b"\x00first\xff")
        ledger.record(second, b"")
        ledger.record(other, b"other")
        assert ledger.recall("visits", "q") == [(second.receipt, b""), (first.receipt, b"\x00first\xff")]
        assert ledger.recall("visits", "nothing") == []
        with pytest.raises(Spent):
            ledger.record(first, b"again")
        assert ledger.recall("visits", "q")[1][1] == b"\x00first\xff"
        assert ledger.balance("visits").spent == F("0.3")
    with place.open() as ledger:
        assert [payload for _, payload in ledger.recall("visits", "q")] == [b"", b"\x00first\xff"]
        assert ledger.verify().ok


def test_only_this_ledgers_debits_are_recorded(place, tmp_path):
    with place.made() as ledger, Ledger.open() as elsewhere:
        elsewhere.register("visits", {"unit": "row"}, Budget(1))
        foreign = owe(elsewhere)
        pay(ledger)
        with pytest.raises(LedgerMismatch):
            ledger.record(foreign, b"x")
        with pytest.raises(InvalidParameter):
            ledger.record(next(ledger.entries()), b"x")
        with pytest.raises(InvalidParameter):
            ledger.record(owe(ledger), "text")
        assert ledger.recall("visits", "q") == []


def test_threads_share_one_ledger(place):
    with place.made(Budget(1)) as ledger:
        admitted, refused = [], []

        def work() -> None:
            for _ in range(10):
                try:
                    admitted.append(pay(ledger, PureLoss(F(1, 20))).number)
                except BudgetExceeded:
                    refused.append(1)
                ledger.balance("visits")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(admitted) == list(range(3, 23))
        assert len(refused) == 20
        assert ledger.balance("visits").remaining == 0
        assert ledger.verify().ok


def test_two_open_ledgers_see_each_other(place):
    with place.made(Budget(1)) as one, place.open() as other:
        right = owe(one, PureLoss("0.6"))
        assert other.balance("visits").spent == F("0.6")
        with pytest.raises(BudgetExceeded):
            pay(other, PureLoss("0.5"))
        pay(other, PureLoss("0.4"))
        other.record(right, b"from the other")
        assert one.recall("visits", "q") == [(right.receipt, b"from the other")]
        assert one.verify().ok
        assert other.verify().ok


def test_many_pages_are_followed(sqlite_place, monkeypatch):
    import sfumato.ledger.journal as module

    monkeypatch.setattr(module, "_PAGE", 3)
    with sqlite_place.made(Budget(1)) as one, sqlite_place.open() as other:
        for number in range(7):
            pay(one, fingerprint=f"q{number}")
        assert other.balance("visits").entries == 7
        assert len(list(other.entries())) == 9
        assert other.balance("visits").retrospective == pytest.approx(0.7)
        assert other.verify().ok


NAMES = [
    "Besuche 2024 – Zürich",
    "訪問",
    "a'; DROP TABLE sfumato_receipts; --",
    "%s?{x}",
    "💧" * 50,
    "../etc/passwd",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_just_a_name(place, name):
    with place.open() as ledger:
        ledger.register(name, {"unit": name}, Budget(1))
        Steward(ledger).limit(name, name, Budget("0.5"), reason=name)
        right = ledger.debit(name, TENTH, fingerprint=name, analyst=name, memo={name: name})
        ledger.record(right, name.encode())
        assert ledger.recall(name, name) == [(right.receipt, name.encode())]
        assert ledger.balance(name, name).spent == F("0.1")
        assert max(map(len, str(ledger.balance(name, name)).splitlines())) <= 80
    with place.open() as ledger:
        assert [dataset.name for dataset in ledger.datasets()] == [name]
        assert ledger.verify().ok


@pytest.mark.parametrize(
    "name", ["", " visits", "vis\x00its", "a\nb", "x" * 201, "\ud800", "a\u202eb", "a\u200bb", None, 3]
)
def test_names_that_cannot_be_told_apart_are_refused(name):
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(1))
        with pytest.raises(InvalidParameter):
            ledger.register(name, {"unit": "row"}, Budget(1))
        with pytest.raises(InvalidParameter):
            ledger.debit("visits", TENTH, fingerprint=name)
        with pytest.raises(InvalidParameter):
            ledger.debit(name, TENTH, fingerprint="q")
        if name is not None:
            with pytest.raises(InvalidParameter):
                pay(ledger, analyst=name)


def test_two_spellings_of_a_name_are_one():
    with Ledger.open() as ledger:
        ledger.register("caf\u00e9", {"unit": "row"}, Budget(1))
        Steward(ledger).limit("cafe\u0301", "Ame\u0301lie", Budget("0.1"), reason="small")
        ledger.debit("cafe\u0301", TENTH, fingerprint="q", analyst="Am\u00e9lie")
        with pytest.raises(BudgetExceeded):
            ledger.debit("caf\u00e9", TENTH, fingerprint="q", analyst="Ame\u0301lie")


@pytest.mark.parametrize(
    "memo", [{"x": float("nan")}, {"x": b"bytes"}, {1: 2}, {"x": object()}, {"x": "y" * 2**21}]
)
def test_a_memo_that_no_receipt_can_hold_is_refused(memo):
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(1))
        with pytest.raises(InvalidParameter):
            pay(ledger, memo=memo)
        nested = []
        for _ in range(200):
            nested = [nested]
        with pytest.raises(InvalidParameter):
            pay(ledger, memo={"x": nested})
        assert ledger.balance("visits").entries == 0


def test_only_losses_are_paid():
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(1))
        with pytest.raises(InvalidParameter):
            pay(ledger, 0.1)
        with pytest.raises(LedgerMismatch, match="register"):
            ledger.debit("unknown", TENTH, fingerprint="q")
        with pytest.raises(LedgerMismatch):
            ledger.balance("unknown")


def test_memory_lives_and_dies_with_the_ledger():
    ledger = Ledger.open()
    ledger.register("visits", {"unit": "row"}, Budget(1))
    pay(ledger)
    assert ledger.verify().ok
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnusable, match="closed"):
        pay(ledger)
    with Ledger.open() as other:
        assert other.datasets() == []


def test_a_closed_budget_denies(place):
    with place.made() as ledger:
        right = owe(ledger)
        Steward(ledger).close_budget("visits", reason="the study is over")
        ledger.record(right, b"paid before")
        with pytest.raises(AccessDenied, match="nothing was spent"):
            pay(ledger)
        assert not ledger.balance("visits").open
        assert ledger.datasets()[0].closed
        for act in (
            lambda: Steward(ledger).raise_budget("visits", Budget(2), reason="more"),
            lambda: Steward(ledger).limit("visits", "ada", Budget("0.1"), reason="more"),
            lambda: Steward(ledger).close_budget("visits", reason="again"),
        ):
            with pytest.raises(AccessDenied):
                act()
    with place.open() as ledger:
        with pytest.raises(AccessDenied):
            pay(ledger)
        assert ledger.register("visits", {"unit": "row", "version": 1}, None).closed
        assert ledger.recall("visits", "q") == [(right.receipt, b"paid before")]
        assert ledger.verify().ok


def test_a_ledger_is_verified_beside_those_who_pay(place):
    with place.made() as ledger:
        pay(ledger)
        told = []
        found = ledger.verify(beside=True, progress=lambda *_: told.append(pay(ledger)))
        assert found.ok
        assert told
        assert (found.entries, ledger.verify(beside=True).entries) == (3, 4)  # paid while it was read
    with Ledger.open(None) as memory:
        memory.register("visits", {"unit": "row"}, Budget(1))
        assert memory.verify(beside=True).ok
