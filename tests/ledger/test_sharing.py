"""Another's answer costs the dataset nothing, and counts once toward the reader's own limit."""

from __future__ import annotations

import random
import threading
from fractions import Fraction

import pytest

from sfumato.errors import AccessDenied, BudgetExceeded, LedgerMismatch
from sfumato.ledger import Budget, Counter, Ledger, Memo, Steward
from sfumato.ledger.names import alike
from sfumato.loss import PureLoss
from sfumato.purchase import Purchase, buy, known, on_record

F = Fraction


def asked(price="0.1", question="q"):
    """A question about `visits` whose answer is its own price; one that cost no less will do."""

    def answer(right):
        right.use(question)
        return F(price)

    return Purchase(
        dataset="visits",
        loss=PureLoss(price),
        fingerprint=question,
        memo=Memo("test", question),
        answer=answer,
        write=lambda number: str(number).encode(),
        read_back=lambda kept: F(kept.decode()),
        choose=lambda kept: next((bought for bought in kept if bought.answer >= F(price)), None),
    )


def reads(ledger):
    return [receipt for receipt in ledger.entries("visits") if receipt.kind == "read"]


def test_a_balance_looks_back_on_what_was_paid_and_read_when_it_was_made(place):
    with place.made(Budget(10)) as ledger:
        buy(ledger, asked(3), "ada")
        buy(ledger, asked(1, "first"), "bob")
        balances = [ledger.balance("visits", who) for who in (None, "ada", "bob")]
        buy(ledger, asked(3), "bob")  # reads what ada has paid for
        buy(ledger, asked(2, "other"), "bob")
        buy(ledger, asked(2, "other"), "ada")
        assert [sum(count for _, count in balance._losses()) for balance in balances] == [2, 1, 1]
        assert [balance.retrospective for balance in balances] == [4, 3, 1]
        assert [ledger.balance("visits", who).retrospective for who in (None, "ada", "bob")] == [6, 5, 6]


def test_another_s_answer_counts_once_toward_the_readers_limit(place):
    with place.made(Budget(10)) as ledger:
        steward = Steward(ledger)
        for name in ("ada", "bob"):
            steward.limit("visits", name, Budget(6), reason="a course")
        paid = buy(ledger, asked(5), "ada")
        assert known(ledger, asked(5), "bob") is None  # what is not counted yet is not told
        for spelling in ("bob", "BOB"):
            read = buy(ledger, asked(5), spelling)
            assert (read.answer, read.free, read.receipt) == (5, True, paid.receipt)
        assert buy(ledger, asked(5), "ada").counted == {}  # her own
        assert [ledger.balance("visits", who).spent for who in (None, "ada", "bob")] == [5, 5, 5]
        (receipt,) = reads(ledger)
        assert (
            str(receipt) == f"#{receipt.number} read of the answer to #5 on visits by bob: epsilon 5, delta 0"
        )
        assert "epsilon 5, delta 0 in 0 debits and 1 answer of others" in str(ledger.balance("visits", "bob"))
        assert ledger.balance("visits", "bob").retrospective == 5
        with pytest.raises(BudgetExceeded, match="limit of 'bob'"):
            buy(ledger, asked(2, "other"), "bob")
        assert ledger.verify().ok
    with place.open() as ledger:
        assert buy(ledger, asked(5), "bob").counted == {}
        assert len(reads(ledger)) == 1


def test_beyond_the_limit_it_is_refused_and_ones_own_can_be_bought(place):
    with place.made(Budget(10)) as ledger:
        Steward(ledger).limit("visits", "bob", Budget("0.01"), reason="a course")
        buy(ledger, asked(5), "ada")
        with pytest.raises(BudgetExceeded) as refused:
            buy(ledger, asked(5), "bob")
        assert str(refused.value) == (
            "Somebody else's answer to this question is on record, and reading it counts toward your own "
            "limit on 'visits': asked epsilon 5, spent 0 of 0.01, left 0.01. Nothing was spent; ask the "
            "steward for a larger limit, or to give this answer to all."
        )
        assert ledger.balance("visits", "bob").spent == 0
        own = buy(ledger, asked("0.01"), "bob")
        assert (own.answer, own.free) == (F("0.01"), False)
        assert ledger.balance("visits").spent == F("5.01")
        assert buy(ledger, asked("0.01"), "bob").free
        assert ledger.verify().ok


def test_what_is_given_to_all_counts_for_nobody(place):
    with place.made(Budget(10)) as ledger:
        steward = Steward(ledger)
        steward.limit("visits", "bob", Budget("0.01"), reason="a course")
        paid = buy(ledger, asked(5), "ada").receipt
        (gift,) = steward.give("visits", paid, reason="published")
        assert (gift.kind, gift.memo["debit"], gift.memo["reason"]) == ("give", paid.number, "published")
        assert steward.give("visits", [paid.number], reason="again") == []
        read = buy(ledger, asked(5), "bob")
        assert (read.answer, read.free, read.counted) == (5, True, {})
        assert ledger.balance("visits", "bob").spent == 0
        for wrong in (1, gift.number):
            with pytest.raises(LedgerMismatch, match="is no debit"):
                steward.give("visits", wrong, reason="a slip")
        with pytest.raises(LedgerMismatch, match="no receipt 99"):
            steward.give("visits", [paid.number, 99], reason="a slip")
        assert ledger.verify().ok
    with place.open() as ledger:
        assert buy(ledger, asked(5), "carol").counted == {}


def test_a_counter_tells_nothing_that_does_not_count(place):
    with place.made(Budget(10)) as ledger:
        paid = buy(ledger, asked(5), "ada").receipt
        bob = Counter(ledger, "bob")
        assert bob.recall("visits", "q") == []
        with pytest.raises(AccessDenied):
            bob.recall("visits", "q", "ada")
        with pytest.raises(AccessDenied):
            bob.count_read(paid, "ada")
        assert bob.count_read(paid) == {"epsilon": 5, "delta": 0}
        assert bob.count_read(paid) == {}
        assert [payload for _, payload in bob.recall("visits", "q")] == [b"5"]
        assert len(ledger.recall("visits", "q")) == 1  # the steward's own, in no name
        Steward(ledger).revoke("visits", "bob", reason="left")
        for refused in (lambda: bob.recall("visits", "q"), lambda: bob.count_read(paid)):
            with pytest.raises(AccessDenied):
                refused()


def test_sums_are_those_of_a_plain_count_whoever_asks_whatever():
    """Random histories against sets of debits: own and read ones, each once, never beyond a limit."""
    names = ("ada", "Ada", "bob", "carol", None)
    for seed in range(4):
        draw = random.Random(seed)
        with Ledger.open(None) as ledger:
            ledger.register("visits", {"unit": "row"}, Budget(1000))
            limits, held, given, prices = {}, {}, set(), {}
            for _ in range(60):
                who, what = draw.choice(names), draw.choice("qrs")
                act = draw.random()
                if act < 0.1 and who is not None:
                    limits[alike(who)] = F(draw.randint(1, 30))
                    Steward(ledger).limit("visits", who, Budget(limits[alike(who)]), reason="so")
                elif act < 0.15 and prices:
                    number = draw.choice(sorted(prices))
                    Steward(ledger).give("visits", number, reason="so")
                    given.add(number)
                else:
                    mine = held.setdefault(None if who is None else alike(who), set())
                    room = limits.get(None if who is None else alike(who))
                    spent = sum(prices[number] for number in mine)
                    price = draw.randint(1, 5)
                    try:
                        bought = buy(ledger, asked(price, what), who)
                    except BudgetExceeded:
                        assert spent + price > room
                        continue
                    number = bought.receipt.number
                    prices.setdefault(number, bought.answer)
                    counts = not bought.free or (who is not None and number not in given | mine)
                    if counts:
                        mine.add(number)
                        assert room is None or spent + prices[number] <= room
            assert ledger.balance("visits").spent == sum(prices.values())
            for name in ("ada", "bob", "carol"):
                assert ledger.balance("visits", name).spent == sum(prices[n] for n in held.get(name, ()))
            assert ledger.verify().ok


def test_threads_count_once(place):
    with place.made(Budget(10)) as ledger:
        buy(ledger, asked(5), "ada")
        counted, ready = [], threading.Barrier(6)

        def read():
            counter = Counter(ledger, "bob")
            ready.wait()
            counted.append(bool(buy(counter, asked(5)).counted))

        threads = [threading.Thread(target=read) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(counted) == [False] * 5 + [True]
        assert ledger.balance("visits", "bob").spent == 5


@pytest.mark.parametrize("point", ["never", "before count", "after count"])
def test_processes_count_once_whatever_is_killed(place, crew, point):
    with place.made() as ledger:
        buy(ledger, asked(), "ada")
    answers = crew.run(*(["reading", place.where, place.state, point] for _ in range(2)))
    killed = [status for status, _ in answers].count(-9)
    assert killed == {"never": 0, "before count": 2}.get(point, killed)
    assert killed or point == "never"  # where one has counted, the other need not
    with place.open() as ledger:
        counted = 0 if point == "before count" else 1
        assert len(reads(ledger)) == counted
        assert bool(buy(ledger, asked(), "bob").counted) == (not counted)  # counted is read, or can be
        assert ledger.balance("visits", "bob").spent == F("0.1")
        assert ledger.balance("visits").spent == F("0.1")
        assert ledger.verify().ok


def test_verify_finds_reads_that_are_wrong(place):
    def forged(number, **facts):
        usual = {"debit": 3, "counts": {"epsilon": "5", "delta": "0"}}
        usual["analyst_totals"] = {"epsilon": "5", "delta": "0"}
        return {"analyst": "bob", "fingerprint": "q"} | usual | facts

    wrongs = {
        "nobody paid for": forged(1, debit=1),
        "counts less": forged(2, counts={"epsilon": "1", "delta": "0"}),
        "do not add up": forged(3, analyst_totals={"epsilon": "6", "delta": "0"}),
        "open to its reader": forged(4, analyst="ada"),
    }
    with place.made(Budget(10)) as ledger:
        buy(ledger, asked(5), "ada")
        for facts in wrongs.values():
            with ledger._journal.writing() as draft:
                draft.add("read", "visits", **facts)
        problems = " ".join(ledger.verify().problems)
        assert all(wrong in problems for wrong in wrongs)


def test_planning_with_anothers_answer_counts_nothing(place):
    with place.made(Budget(10)) as ledger:
        buy(ledger, asked(5), "ada")
        assert on_record(ledger, asked(5), "bob").answer == 5
        assert on_record(ledger, asked(6), "bob") is None
        assert reads(ledger) == []
