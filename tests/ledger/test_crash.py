"""Races and kills: never an overdraft, never a receipt that is not on record, never a chain that breaks."""

from __future__ import annotations

import signal
from fractions import Fraction

import pytest

from sfumato.errors import LedgerTampered, LedgerUnusable
from sfumato.ledger import Budget, Ledger
from sfumato.loss import PureLoss

F = Fraction
POINTS = [
    "before_begin",
    "before_announcement",
    "before_commit",
    "after_commit",
    "before_mark",
    "after_anchor",
    "before_checkpoint",
    "after_checkpoint",
]
COMMITTED = POINTS[POINTS.index("after_commit") :]


def sound(place, returned, price, budget):
    """The balance is that of the receipts on record, which hold all that were handed out."""
    assert place.inspect().ok
    with place.open() as ledger:
        debits = [receipt for receipt in ledger.entries() if receipt.kind == "debit"]
        assert {receipt.number for receipt in debits} >= set(returned)
        assert len(returned) == len(set(returned))
        balance = ledger.balance("visits")
        assert balance.spent == len(debits) * F(price)
        assert balance.spent <= budget
        assert ledger.verify().ok
        assert place.anchored() == max(r.number for r in ledger.entries())
    assert not list(place.state.glob("*.tmp"))
    return len(debits)


def race(place, crew, processes, price, budget):
    place.made(Budget(budget)).close()
    answers = crew.run(*(["spend", place.where, place.state, price, 10**6] for _ in range(processes)))
    assert [status for status, _ in answers] == [0] * processes
    returned = [number for _, numbers in answers for number in numbers]
    admitted = sound(place, returned, price, budget)
    assert admitted == len(returned) == budget / F(price)


def test_a_race_of_eight_processes_admits_exactly_what_fits(place, crew):
    race(place, crew, 8, "1/24", 1)


def kill(place, crew, point, times, together=1):
    """Kills children at a point, some of them at work at the same time, and checks after each round."""
    price, budget = "1/1000", 1
    place.made(Budget(budget)).close()
    returned, on_record = [], 0
    for turn in range(times):
        jobs = [["killed", place.where, place.state, price, point, turn % 2] for _ in range(together)]
        answers = crew.run(*jobs)
        # Whoever finds that another's later mark is set already has nothing to write, and lives.
        lived = sum(status == 0 for status, _ in answers)
        assert lived < together if point == "before_mark" else lived == 0
        assert [status for status, _ in answers].count(-signal.SIGKILL) == together - lived
        now = [number for _, numbers in answers for number in numbers]
        assert len(now) == together * (turn % 2) + lived
        returned += now
        before, on_record = on_record, sound(place, returned, price, budget)
        written = together * (turn % 2 + (point in COMMITTED))
        assert on_record - before == written


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_nothing_is_lost_and_nothing_half_written(sqlite_place, crew, point):
    kill(sqlite_place, crew, point, 10)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_of_a_debit_in_postgres(postgres_place, crew, point):
    kill(postgres_place, crew, point, 2)


def test_killed_among_others(sqlite_place, crew):
    kill(sqlite_place, crew, "after_commit", 4, together=4)


@pytest.mark.stats
@pytest.mark.parametrize("point", POINTS)
def test_killed_very_often(place, crew, point):
    kill(place, crew, point, 100, together=4)


@pytest.mark.stats
def test_a_long_race(place, crew):
    race(place, crew, 16, "1/2000", 1)


def test_the_first_registration_is_one_in_a_race(place, crew):
    answers = crew.run(*(["register", place.where, place.state, "visits", 1] for _ in range(8)))
    assert [status for status, _ in answers] == [0] * 8
    assert len({numbers[0] for _, numbers in answers}) == 1
    with place.open() as ledger:
        assert [receipt.kind for receipt in ledger.entries()] == ["register", "open"]
        assert ledger.verify().ok


def test_both_sides_of_a_fork_spend_from_one_budget(place, crew):
    place.made(Budget(1)).close()
    ((status, numbers),) = crew.run(["forkless", place.where, place.state, "1/100", 10])
    assert status == 0
    assert sound(place, numbers, "1/100", 1) == 21


def test_a_ledger_in_memory_does_not_fork(monkeypatch):
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(1))
        monkeypatch.setattr("os.getpid", lambda: -1)
        with pytest.raises(LedgerUnusable, match="fork"):
            ledger.debit("visits", PureLoss(1), fingerprint="q")
        monkeypatch.undo()
        ledger.debit("visits", PureLoss(1), fingerprint="q")


# ── planted bugs


def test_a_deferred_transaction_does_not_pass(sqlite_place, crew, capfd):
    """The right to append taken late: eight processes run into each other."""
    sqlite_place.made(Budget(1)).close()
    answers = crew.run(
        *(["deferred", sqlite_place.where, sqlite_place.state, "1/200", 10**6] for _ in range(8))
    )
    assert any(status for status, _ in answers)


def test_an_anchor_before_the_commit_does_not_pass(sqlite_place, monkeypatch):
    """Killed in between, the database is behind its anchor and would never open again."""
    with sqlite_place.made(Budget(1)) as ledger:
        prepare = ledger._journal.anchor.prepare

        def early(now, coming):
            pending = prepare(now, coming)
            pending.settle()
            return pending

        monkeypatch.setattr(ledger._journal.anchor, "prepare", early)
        monkeypatch.setattr(
            ledger._journal.store, "commit", lambda: (_ for _ in ()).throw(LedgerUnusable("killed"))
        )
        with pytest.raises(LedgerUnusable, match="killed"):
            ledger.debit("visits", PureLoss("0.1"), fingerprint="q")
    with pytest.raises(LedgerTampered, match="ends at receipt 2, but its anchor is at 3"):
        sqlite_place.open()
