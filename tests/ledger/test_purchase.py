"""One way to pay: once in all processes and threads, each read once, whatever is killed and whenever."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import threading
import weakref
from fractions import Fraction

import pytest

from sfumato.errors import AccessDenied, BudgetExceeded, InvalidParameter
from sfumato.ledger import Budget, Ledger, Memo, Right, Steward, turns
from sfumato.loss import PureLoss
from sfumato.purchase import Bought, Purchase, buy, known

F = Fraction
# point → debits, reads and records of a process that is killed there
POINTS = {
    "never": (1, 1, 1),
    "before debit": (0, 0, 0),
    "after debit": (1, 0, 0),
    "in read": (1, 1, 0),
    "after noise": (1, 1, 0),
    "after record": (1, 1, 1),
}


def asked(answer=None, **more):
    """A question about `visits` at a tenth, whose answer is a number."""

    def one(right):
        right.use(more.get("fingerprint", "q"))
        return 7

    usual = {
        "dataset": "visits",
        "loss": PureLoss("0.1"),
        "fingerprint": "q",
        "memo": Memo("test", "a number"),
        "write": lambda number: str(number).encode(),
        "read_back": int,
    }
    return Purchase(answer=answer or one, **(usual | more))


def kinds(place):
    with place.open() as ledger:
        assert ledger.verify().ok
        found = [receipt.kind for receipt in ledger.entries("visits")]
        assert ledger.balance("visits").spent == F(found.count("debit"), 10)
    return found.count("debit"), found.count("release")


def run(place, crew, *jobs, kind="bought"):
    answers = crew.run(*([kind, place.where, place.state, *job] for job in jobs))
    return [status for status, _ in answers], [found for _, found in answers]


# ── one process


def test_paid_before_it_is_read_recorded_after_and_free_again(place):
    with place.made() as ledger:
        seen = []

        def answer(right):
            seen.append((ledger.balance("visits").entries, ledger.recall("visits", "q")))
            right.use("q")
            return 42

        first = buy(ledger, asked(answer))
        assert seen == [(1, [])]
        assert (first.answer, first.free) == (42, False)
        again = buy(ledger, asked(answer))
        assert (again.answer, again.free, again.receipt) == (42, True, first.receipt)
        assert known(ledger, asked(answer)) == again
        assert len(seen) == 1
    assert kinds(place) == (1, 1)


def test_what_will_not_do_is_bought_anew(place):
    with place.made() as ledger:
        numbers = iter(range(10))
        better = asked(
            lambda _: next(numbers), choose=lambda kept: next((x for x in kept if x.answer > 1), None)
        )
        assert [buy(ledger, better).answer for _ in range(4)] == [0, 1, 2, 2]
        assert known(ledger, asked()).answer == 2  # the newest


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_a_failure_stays_paid_and_is_no_answer(place, error):
    with place.made() as ledger:

        def fails(right):
            right.use("q")
            raise error

        with pytest.raises(error):
            buy(ledger, asked(fails))
        assert known(ledger, asked()) is None
        assert not buy(ledger, asked()).free
    assert kinds(place) == (2, 1)


def test_what_does_not_fit_is_not_answered(place):
    with place.made(Budget("0.05")) as ledger:
        with pytest.raises(BudgetExceeded):
            buy(ledger, asked(lambda _: pytest.fail("read unpaid")))
        assert ledger.balance("visits").spent == 0


def test_who_may_not_ask_sees_nothing_of_before(place):
    with place.made() as ledger:
        buy(ledger, asked(), "ada")
        Steward(ledger).revoke("visits", "ada", reason="left")
        for act in (buy, known):
            with pytest.raises(AccessDenied):
                act(ledger, asked(), "ada")
        assert buy(ledger, asked()).free
        Steward(ledger).close_budget("visits", reason="over")
        with pytest.raises(AccessDenied):
            known(ledger, asked())


def test_threads_with_one_question_pay_once_also_over_two_ledgers(place):
    with place.made() as one, place.open() as two:
        reads, found = [], []

        def answer(right):
            right.use("q")
            reads.append(1)
            return len(reads)

        threads = [
            threading.Thread(target=lambda at=at: found.append(buy((one, two)[at % 2], asked(answer)).answer))
            for at in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [1] * 8
        assert len(reads) == 1


def test_different_questions_do_not_wait_for_each_other(place):
    with place.made() as ledger:
        both = threading.Barrier(2, timeout=60)

        def answer(_):
            both.wait()  # each is inside its read while the other is
            return 1

        threads = [
            threading.Thread(target=buy, args=(ledger, asked(answer, fingerprint=name))) for name in "ab"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.balance("visits").entries == 2


def test_one_question_may_need_another_but_not_itself(place):
    with place.made() as ledger:
        outer = asked(lambda _: buy(ledger, asked(fingerprint="inner")).answer)
        assert buy(ledger, outer).answer == 7
        own = asked(lambda _: buy(ledger, asked(fingerprint="own")).answer, fingerprint="own")
        with pytest.raises(InvalidParameter, match="being answered"):
            buy(ledger, own)


def test_locks_and_marks_do_not_grow(place):
    rights = []
    with place.made(Budget(10)) as ledger:

        def answer(right):
            rights.append(weakref.ref(right))
            right.use(right.receipt.fingerprint)
            return 1

        for number in range(30):
            buy(ledger, asked(answer, fingerprint=f"q{number}"))
        gc.collect()
        assert len(rights) == 30
        assert [each() for each in rights] == [None] * 30
        assert turns._locks.turns == {}
        assert turns._locks.files == {}
        if place.kind == "postgres":
            assert place.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


# ── rights


def test_a_right_reads_each_part_once_and_only_what_was_paid_for(place):
    with place.made() as ledger:
        right = ledger.debit("visits", PureLoss("0.1"), fingerprint="q", reads=("a", "b"))
        for read, part in (("a", 0), ("a", 1), ("b", 0)):
            right.use(read, part)
            with pytest.raises(AccessDenied, match="used before"):
                right.use(read, part)
        with pytest.raises(AccessDenied, match="not paid for this"):
            right.use("q")
        plain = ledger.debit("visits", PureLoss("0.1"), fingerprint="q")
        plain.use("q")
        with pytest.raises(AccessDenied, match="not paid for this"):
            plain.use("a")


def test_threads_that_use_one_right_at_once_read_once():
    with Ledger.open() as ledger:
        ledger.register("visits", {"unit": "row"}, Budget(10))
        for _ in range(50):
            right, won = ledger.debit("visits", PureLoss("0.1"), fingerprint="q"), []
            start = threading.Barrier(4, timeout=60)

            def work(right=right, won=won, start=start):
                start.wait()
                try:
                    right.use("q")
                    won.append(1)
                except AccessDenied:
                    pass

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert won == [1]


def test_a_right_is_not_made_copied_or_carried_away(place):
    with place.made() as ledger:
        right = ledger.debit("visits", PureLoss("0.1"), fingerprint="q")
        receipt = next(each for each in ledger.entries() if each.kind == "debit")
        assert receipt == right.receipt
        with pytest.raises(AccessDenied, match="pay"):
            Right(receipt, ("q",))
        for carry in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="pickled or copied"):
                carry(right)
        with pytest.raises(InvalidParameter, match="right"):
            ledger.record(receipt, b"made up")
        pickle.loads(pickle.dumps(receipt))  # which is for everybody to see


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_may_neither_read_nor_record_what_its_parent_paid_for(place, crew):
    place.made().close()
    ((status, found),) = crew.run(["forked", place.where, place.state])
    assert (status, found) == (0, ["refused", "refused", "refused", "read", 1])
    assert kinds(place) == (1, 1)


# ── several processes


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_it_stays_paid_and_is_never_read(place, crew, point):
    place.made().close()
    debits, reads, records = POINTS[point]
    (status,), (found,) = run(place, crew, [point])
    assert status == (0 if point == "never" else -signal.SIGKILL)
    assert (found.count("paid"), found.count("read")) == (debits, reads)
    assert kinds(place) == (debits, records)
    # The next one is given what is on record, and else pays for itself: nothing is read for the old debit.
    (status,), (again,) = run(place, crew, ["never"])
    assert status == 0
    assert again.count("paid") == again.count("read") == 1 - records
    assert kinds(place) == (debits + 1 - records, 1)


def test_processes_with_one_question_pay_once_and_agree(place, crew):
    place.made().close()
    statuses, found = run(place, crew, *[["never", 0.2]] * 4)
    assert statuses == [0] * 4
    said = [each for found_here in found for each in found_here]
    assert (said.count("paid"), said.count("read")) == (1, 1)
    assert len({each for each in said if isinstance(each, int)}) == 1
    assert kinds(place) == (1, 1)


@pytest.mark.parametrize("point", ["in read", "after noise", "after record"])
def test_who_waits_for_a_process_that_dies_pays_itself_unless_it_recorded(place, crew, point):
    place.made().close()
    recorded = point == "after record"
    statuses, found = run(place, crew, [point, 0.3], ["never", 0.0, "reading"])
    assert statuses == [-signal.SIGKILL, 0]
    assert found[1].count("read") == (0 if recorded else 1)
    assert kinds(place) == (1 if recorded else 2, 1)


# ── a model that is fitted on a session


LONG = [pytest.param(what, marks=pytest.mark.stats) for what in ("tables", "check")]


def places(like, points):
    """A place of its own for each."""
    made = {}
    for point in points:
        folder = like.state / point
        folder.mkdir()
        made[point] = type(like)(str(folder / "visits.ledger"), folder)
        made[point].made(Budget(1, "1e-6")).close()
    return made


@pytest.mark.parametrize("what", ["fit", "search", "synth", *LONG])
def test_a_fit_that_is_killed_at_any_point_stays_paid_and_is_never_read(sqlite_place, crew, what):
    points = ("after debit", "in read", "after noise", "after record")
    made = places(sqlite_place, points)

    def fits(*at):
        return crew.run(
            *(["modelled", place.where, place.state, point, 0.0, None, "", what]
              for place, point in zip(made.values(), at, strict=True))
        )  # fmt: skip

    for (point, place), (status, found) in zip(made.items(), fits(*points), strict=True):
        debits, reads, records = POINTS[point]
        assert status == -signal.SIGKILL
        assert (found.count("paid"), found.count("read")) == (debits, reads)
        assert kinds(place) == (debits, records)
    for (point, place), (status, again) in zip(made.items(), fits(*["never"] * 4), strict=True):
        debits, _, records = POINTS[point]
        assert status == 0
        assert again.count("paid") == again.count("read") == 1 - records
        assert kinds(place) == (debits + 1 - records, 1)


@pytest.mark.parametrize("what", ["fit", "search", "synth", *LONG])
def test_processes_with_one_fit_pay_once_and_agree(sqlite_place, crew, what):
    sqlite_place.made(Budget(1, "1e-6")).close()
    statuses, found = run(sqlite_place, crew, *[["never", 0.1, None, "", what]] * 2, kind="modelled")
    assert statuses == [0] * 2
    said = [each for found_here in found for each in found_here]
    assert (said.count("paid"), said.count("read")) == (1, 1)
    assert len({str(each) for each in said if isinstance(each, list)}) == 1
    assert kinds(sqlite_place) == (1, 1)


def test_a_child_that_outlives_a_dead_parent_keeps_no_turn(place, crew):
    place.made().close()
    (_, orphan), (status, found) = crew.run(
        ["orphaned", place.where, place.state], ["waiting", place.where, place.state]
    )
    assert (status, orphan) == (0, [])
    assert found[:2] == ["paid", "read"]
    assert kinds(place) == (2, 1)


# ── planted bugs


def test_without_turns_processes_pay_twice(sqlite_place, crew):
    sqlite_place.made().close()
    _, found = run(sqlite_place, crew, *[["never", 0.3, None, "no turn"]] * 3)
    with pytest.raises(AssertionError):
        assert sum(each.count("read") for each in found) == 1


def test_a_record_before_the_noise_does_not_pass(sqlite_place, crew):
    sqlite_place.made().close()
    run(sqlite_place, crew, ["in read", 0.0, None, "recorded before noise"])
    with pytest.raises(AssertionError):
        assert kinds(sqlite_place) == POINTS["in read"][::2]


def test_marks_that_are_not_kept_do_not_pass(sqlite_place, monkeypatch):
    monkeypatch.setattr(Right, "use", lambda self, read, part=0: None)
    with pytest.raises(pytest.fail.Exception):
        test_a_right_reads_each_part_once_and_only_what_was_paid_for(sqlite_place)


def test_a_fingerprint_that_is_not_compared_does_not_pass(sqlite_place, monkeypatch):
    use = Right.use

    def loose(self, read, part=0):
        self._reads |= {read}
        use(self, read, part)

    monkeypatch.setattr(Right, "use", loose)
    with pytest.raises(pytest.fail.Exception):
        test_a_right_reads_each_part_once_and_only_what_was_paid_for(sqlite_place)


def test_a_read_before_the_debit_does_not_pass(sqlite_place, monkeypatch):
    class Unpaid:
        def use(self, read, part=0):
            """Nobody asks."""

    def early(ledger, wanted, analyst=None):
        answer = wanted.answer(Unpaid())
        right = ledger.debit(wanted.dataset, wanted.loss, fingerprint=wanted.fingerprint, analyst=analyst)
        ledger.record(right, wanted.write(answer))
        return Bought(answer, right.receipt, False)

    monkeypatch.setitem(globals(), "buy", early)
    with pytest.raises(AssertionError):
        test_paid_before_it_is_read_recorded_after_and_free_again(sqlite_place)
