"""Fits that can be resumed: a block taken is spent, whoever dies; all blocks together are what was paid."""

from __future__ import annotations

import random
import signal
import threading
from dataclasses import fields, replace
from fractions import Fraction

import pytest

from sfumato.accounting import BasicFilter
from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter, LedgerMismatch
from sfumato.ledger import Budget, Ledger, Memo, Steward
from sfumato.loss import PureLoss
from sfumato.purchase import Purchase, buy

F = Fraction
GATE = BasicFilter("0.1")


def fit(ledger, **more):
    return ledger.debit("visits", GATE.loss, **({"fingerprint": "fit", "resumable": True} | more))


def wanted(answer, **more):
    usual = {
        "dataset": "visits",
        "loss": GATE.loss,
        "fingerprint": "fit",
        "memo": Memo("test", "a fit"),
        "write": lambda number: str(number).encode(),
        "read_back": int,
        "resumable": True,
    }
    return Purchase(answer=answer, **(usual | more))


def test_blocks_add_up_to_what_was_paid_and_no_further(place):
    draws = random.Random(5)
    with place.made() as ledger:
        for _ in range(4):
            right, taken = fit(ledger), F(0)
            while taken < 1:
                share = F(draws.randint(1, 60), 100)
                if taken + share > 1:
                    with pytest.raises(BudgetExceeded, match="beyond what was paid"):
                        right.block(share)
                    share = 1 - taken
                steps = right.block(share).steps(GATE)
                taken += share
                assert right.left == 1 - taken
                for _ in range(4):
                    steps.take(PureLoss(F("0.1") * share / 4))
                with pytest.raises(BudgetExceeded):
                    steps.take(PureLoss("1e-9"))
            with pytest.raises(BudgetExceeded):
                right.block("1e-9")
        assert ledger.verify().ok
        assert ledger.balance("visits").spent == F("0.4")


def test_without_a_block_nothing_is_read(place):
    with place.made() as ledger:
        right = fit(ledger)
        for use in (lambda: right.use("fit"), lambda: right.steps(GATE)):
            with pytest.raises(AccessDenied):
                use()
        block = right.block("1/2", ("rows",))
        block.use("rows")
        with pytest.raises(AccessDenied, match="used before"):
            block.use("rows")
        with pytest.raises(AccessDenied, match="not made for a fit"):
            block.block("1/2")
        for wrong in (0, -1, "x", 2):
            with pytest.raises((InvalidParameter, BudgetExceeded)):
                right.block(wrong)
        assert right.left == F(1, 2)


def test_only_a_fit_that_can_be_resumed_is_and_only_while_it_is_unfinished(place):
    with place.made() as ledger:
        ledger.debit("visits", GATE.loss, fingerprint="fit", memo={"resumable": True})  # a note is no debit
        assert ledger.resume("visits", "fit") is None
        plain = ledger.debit("visits", GATE.loss, fingerprint="fit")
        with pytest.raises(AccessDenied, match="not made for a fit"):
            plain.block("1/2")
        first = fit(ledger)
        first.block("1/4")
    with place.open() as ledger:
        again = ledger.resume("visits", "fit")
        assert again.receipt == first.receipt
        assert again.left == F(3, 4)
        assert ledger.resume("visits", "another") is None
        ledger.record(again, b"1")
        assert ledger.resume("visits", "fit") is None
        used_up = fit(ledger)
        used_up.block(1)
        assert ledger.resume("visits", "fit") is None


def test_a_closed_budget_gives_no_block(place):
    with place.made() as ledger:
        right = fit(ledger, analyst="ada")
        Steward(ledger).revoke("visits", "ada", reason="left")
        with pytest.raises(AccessDenied):
            right.block("1/2")
        other = fit(ledger)
        other.block("1/4")
        Steward(ledger).close_budget("visits", reason="over")
        with pytest.raises(AccessDenied):
            other.block("1/4")


def test_a_foreign_receipt_gives_no_block(place):
    with place.made() as ledger, Ledger.open() as elsewhere:
        elsewhere.register("visits", {"unit": "row"}, Budget(1))
        fit(ledger)
        foreign = fit(elsewhere)
        with pytest.raises(LedgerMismatch):
            ledger._blocks.take(foreign.receipt, F(1, 2))


def test_threads_take_different_blocks(place):
    with place.made() as ledger:
        right, got = fit(ledger), []

        def work():
            for _ in range(10):
                try:
                    got.append(right.block("1/10"))
                except BudgetExceeded:
                    return

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 10


def test_another_price_is_another_fit(place):
    with place.made() as ledger:
        fit(ledger).block("1/2")
        seen = []

        def answer(right):
            seen.append(right.left)
            return 1

        assert not buy(ledger, wanted(answer, loss=PureLoss("0.2"))).free
        assert seen == [1]


# point → the steps that are ever done of a fit that is killed there once, in its second block
KILLED = {"never": 10, "after block": 8, "in block": 9, "after step": 10}


@pytest.mark.parametrize("point", KILLED)
def test_a_fit_that_was_killed_goes_on_after_the_blocks_it_took(place, crew, point):
    place.made().close()
    killed = point != "never"
    jobs = [["fitted", place.where, place.state, point, 1]] * (1 + killed)
    runs = [
        crew.run(job)[0]
        for job in [*jobs[:1], *([["fitted", place.where, place.state, "never", 0]] * killed)]
    ]
    assert [status for status, _ in runs] == ([-signal.SIGKILL, 0] if killed else [0])
    steps = [tuple(each[1:]) for _, found in runs for each in found if each[0] == "step"]
    assert len(steps) == len(set(steps)) == KILLED[point]
    # A block that was taken and not finished is missing from the model, and is not done again.
    assert runs[-1][1][-1] == ["answer", 5 if point in ("never", "after step") else 4]
    with place.open() as ledger:
        kinds = [receipt.kind for receipt in ledger.entries("visits")]
        assert (kinds.count("debit"), kinds.count("block"), kinds.count("release")) == (1, 5, 1)
        assert ledger.balance("visits").spent == F("0.1")
        assert ledger.verify().ok


def test_blocks_that_are_not_on_record_do_not_pass(sqlite_place, crew):
    """Counted in memory alone, the second process does the same steps again; so it would never end."""
    sqlite_place.made().close()
    job = ["fitted", sqlite_place.where, sqlite_place.state, "after step", 0, "not durable"]
    runs = [crew.run(job)[0] for _ in range(2)]
    steps = [tuple(each[1:]) for _, found in runs for each in found if each[0] == "step"]
    with pytest.raises(AssertionError):
        assert len(steps) == len(set(steps))


def test_a_block_that_was_altered_is_noticed(sqlite_place):
    with sqlite_place.made() as ledger:
        right = fit(ledger)
        right.block("1/2")
        chain, store = ledger._journal.chain, ledger._journal.store
        (row,) = store.rows(4, 1)
        assert row.kind == "block"
    # Whoever has the key writes a block beyond what was paid: verify adds up for itself.
    forged = chain.sealed(
        replace(row, number=5, body=row.body.replace('"share":"1/2"', '"share":"3/4"').replace("1/2", "5/4")),
        row.mac,
    )
    values = (getattr(forged, field.name) for field in fields(forged))
    sqlite_place.sql("INSERT INTO sfumato_receipts VALUES (?, ?, ?, ?, ?, ?, ?)", *values)
    assert any("not paid for" in each for each in sqlite_place.inspect().problems)
