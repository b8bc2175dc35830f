"""Children for the tests: a process that has imported the ledger once and forks one child for each job.

It reads one line of JSON, a list of jobs, forks all of them, waits for all, and writes one line: for each the
exit status and what it reported. A job names a function below and its arguments.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback

from sfumato.errors import BudgetExceeded
from sfumato.ledger import Budget, Ledger
from sfumato.ledger.sqlite import SQLite
from sfumato.loss import PureLoss


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def spend(report, where, state, price, most, analyst=None, start=0):
    """Debits until the budget is used up, and reports how many were admitted."""
    admitted = 0
    with Ledger.open(where, state=state) as ledger:
        try:
            while admitted < most:
                receipt = ledger.debit(
                    "visits", PureLoss(price), fingerprint=f"q{os.getpid()}", analyst=analyst
                )
                admitted += 1
                report(receipt.number)
        except BudgetExceeded:
            pass


def killed(report, where, state, price, point, after):
    """Debits, and dies at a named point of the debit after `after` whole ones."""
    ledger = Ledger.open(where, state=state)
    store, mark = ledger._store, ledger._anchor
    commit, prepare = store.commit, mark.prepare
    armed = done = False

    class Pending:
        def __init__(self, pending):
            self._pending = pending

        def settle(self):
            if armed and point == "after_commit":
                _die()
            self._pending.settle()
            if armed and point == "after_anchor":
                _die()

    def prepared(now, coming):
        return Pending(prepare(now, coming))

    def committed():
        nonlocal done
        if armed and point == "before_commit":
            _die()
        commit()
        done = armed

    if point in ("before_announcement", "before_rename"):
        replace = os.replace

        def replaced(*paths):
            if armed and done == (point == "before_rename"):
                _die()
            replace(*paths)

        os.replace = replaced
    store.commit, mark.prepare = committed, prepared
    for number in range(after + 1):
        armed = number == after
        if armed and point == "before_begin":
            _die()
        receipt = ledger.debit("visits", PureLoss(price), fingerprint=f"k{number}")
        report(receipt.number)


def register(report, where, state, name, epsilon):
    """Registers a dataset, and reports the id that it was given."""
    with Ledger.open(where, state=state) as ledger:
        report(ledger.register(name, {"unit": "row"}, Budget(epsilon)).id)


def deferred(report, *arguments):
    """`spend` with a planted bug: a transaction that takes the right to write only when it writes."""
    SQLite.begin = lambda self: self.execute("BEGIN DEFERRED")
    spend(report, *arguments)


def forkless(report, where, state, price, count):
    """Forks with a ledger open, and spends on both sides of the fork."""
    ledger = Ledger.open(where, state=state)
    ledger.debit("visits", PureLoss(price), fingerprint="parent")
    child = os.fork()
    for number in range(count):
        receipt = ledger.debit("visits", PureLoss(price), fingerprint=f"f{child != 0}{number}")
        report(receipt.number)
    if child:
        os.waitpid(child, 0)
        ledger.close()


JOBS = {job.__name__: job for job in (spend, killed, register, deferred, forkless)}


def _start(job: list[object]) -> tuple[int, int]:
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    status = 1
    try:
        os.close(reader)
        JOBS[job[0]](lambda found: os.write(writer, f"{json.dumps(found)}\n".encode()), *job[1:])
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        answers = []
        for child, reader in [_start(job) for job in json.loads(line)]:
            with os.fdopen(reader, "rb") as pipe:
                found = [json.loads(part) for part in pipe.read().splitlines()]
            answers.append([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), found])
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main()
