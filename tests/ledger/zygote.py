"""Children for the tests: a process that has imported the ledger once and forks one child for each job.

It reads one line of JSON, a list of jobs, forks all of them, waits for all, and writes one line: for each the
exit status and what it reported. A job names a function below and its arguments.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

from sfumato.accounting import BasicFilter
from sfumato.errors import AccessDenied, BudgetExceeded, LedgerMismatch
from sfumato.ledger import Budget, Ledger, Memo, anchor, checkpoint
from sfumato.ledger.blocks import BlocksOf
from sfumato.ledger.sqlite import SQLite
from sfumato.loss import PureLoss
from sfumato.purchase import Purchase, buy

sys.path.append(str(Path(__file__).parents[1] / "support"))
import published


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
                ).receipt
                admitted += 1
                report(receipt.number)
        except BudgetExceeded:
            pass


def killed(report, where, state, price, point, after):
    """Debits, and dies at a named point of the debit after `after` whole ones."""
    ledger = Ledger.open(where, state=state)
    store, mark = ledger._journal.store, ledger._journal.anchor
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

    if point in ("before_announcement", "before_mark"):
        write = anchor.write_slot

        def written(*arguments):
            if armed and done == (point == "before_mark"):
                _die()
            write(*arguments)

        anchor.write_slot = written
    elif point in ("before_checkpoint", "after_checkpoint"):
        checkpoint.EVERY = 1
        replace = os.replace

        def moved(*paths):
            mine = armed and done and str(paths[1]).endswith(".checkpoint")
            if mine and point == "before_checkpoint":
                _die()
            replace(*paths)
            if mine:
                _die()

        os.replace = moved
    store.commit, mark.prepare = committed, prepared
    for number in range(after + 1):
        armed = number == after
        if armed and point == "before_begin":
            _die()
        receipt = ledger.debit("visits", PureLoss(price), fingerprint=f"k{number}").receipt
        report(receipt.number)


def register(report, where, state, name, epsilon):
    """Registers a dataset, and reports the id that it was given."""
    with Ledger.open(where, state=state) as ledger:
        report(ledger.register(name, {"unit": "row"}, Budget(epsilon)).id)


def declared(report, where, state, unit, epsilon, others, planted):
    """Declares `visits`, waits until so many others have, and pays for a loss priced for its own unit.

    Planted: the debit looks at nothing but what is on record then.
    """
    folder = Path(state)
    with Ledger.open(where, state=state) as ledger:
        known = ledger.register("visits", {"unit": unit}, Budget(epsilon))
        (folder / f"declared {unit}").touch()
        while len(list(folder.glob("declared *"))) <= others:
            time.sleep(0.002)
        try:
            ledger.debit("visits", PureLoss("0.1"), fingerprint="q", known=None if planted else known)
        except LedgerMismatch as refused:
            report(["refused", str(refused)])
        else:
            report(["paid", unit])


def deferred(report, *arguments):
    """`spend` with a planted bug: a transaction that takes the right to write only when it writes."""
    SQLite.begin = lambda self, synced=True: self.execute("BEGIN DEFERRED")
    spend(report, *arguments)


def forkless(report, where, state, price, count):
    """Forks with a ledger open, and spends on both sides of the fork."""
    ledger = Ledger.open(where, state=state)
    ledger.debit("visits", PureLoss(price), fingerprint="parent")
    child = os.fork()
    for number in range(count):
        receipt = ledger.debit("visits", PureLoss(price), fingerprint=f"f{child != 0}{number}").receipt
        report(receipt.number)
    if child:
        os.waitpid(child, 0)
        ledger.close()


def purchase(answer, **more):
    """A question about `visits` at a tenth, whose answer is a number."""
    usual = {
        "dataset": "visits",
        "loss": PureLoss("0.1"),
        "fingerprint": "q",
        "memo": Memo("test", "a number"),
        "write": lambda number: str(number).encode(),
        "read_back": int,
    }
    return Purchase(answer=answer, **(usual | more))


def bought(report, where, state, point, patience=0.0, after=None, planted=""):
    """Buys one answer, and dies at a named point; what it read and was given goes into the report.

    It waits for a file `after` first, if one is named, and makes the file `reading` while it reads.
    """
    folder = Path(state)
    ledger = Ledger.open(where, state=state)
    PLANTED[planted](ledger)
    _watched(report, ledger, point)

    def answer(right):
        right.use("q")
        _in_read(report, folder, point, patience)
        return os.getpid()

    def write(number):
        if point == "after noise":
            _die()
        return str(number).encode()

    _wait_for(folder, after)
    report(buy(ledger, purchase(answer, write=write)).answer)
    ledger.close()


def _watched(report, ledger, point):
    """Has a ledger report what it is paid, and die around that or once an answer is on record."""
    debit, record = ledger.debit, ledger.record

    def debited(*arguments, **more):
        if point == "before debit":
            _die()
        right = debit(*arguments, **more)
        report("paid")
        if point == "after debit":
            _die()
        return right

    def recorded(*arguments):
        record(*arguments)
        if point == "after record":
            _die()

    ledger.debit, ledger.record = debited, recorded


def _in_read(report, folder, point, patience):
    report("read")
    (folder / "reading").touch()
    time.sleep(patience)
    if point == "in read":
        _die()


def _wait_for(folder, after):
    while after is not None and not (folder / after).exists():
        time.sleep(0.01)


def modelled(report, where, state, point, patience=0.0, after=None, planted="", what="fit"):
    """Fits, searches or models a table on a session, as `bought` buys an answer; reports what was learned."""
    import sfumato as sf
    from sfumato.fits.kept import Kept
    from sfumato.session.vault import Vault

    folder = Path(state)
    ledger = Ledger.open(where, state=state)
    PLANTED[planted](ledger)
    source = pa.table({"age": [20, 30, 40, 50], "pay": [1.0, 2.0, None, 4.0]})
    schema = {"age": sf.Int(0, 100), "pay": sf.Float(0, 10)}
    unit = sf.PrivacyUnit("age", max_rows=1) if what == "tables" else sf.PrivacyUnit.row()
    tables = [sf.PrivateTable("visits", source=source, unit=unit, schema=schema)]
    if what == "tables":
        via = sf.PrivacyUnit.via("visits", on="age", max_rows=2)
        tables.append(sf.PrivateTable("bills", source=source, unit=via, schema=schema))
    with sf.Session(*tables, budget=Budget(1, "1e-6"), ledger=ledger) as session:
        _watched(report, ledger, point)
        how = "moments" if what == "fit" else "rows"
        honest, written = getattr(Vault, how), Kept.to_bytes

        def read(*arguments):
            found = honest(*arguments)
            _in_read(report, folder, point, patience)
            return found

        def write(kept):
            if point == "after noise":
                _die()
            return written(kept)

        setattr(Vault, how, read)
        Kept.to_bytes = write
        learn = {
            "fit": _moments, "search": _search, "synth": _synth, "tables": _tables, "check": _check
        }[what](session)  # fmt: skip
        _wait_for(folder, after)
        report(learn())
    ledger.close()


def _moments(session):
    from sfumato.fits import meter
    from sfumato.learn._core import paying, sums
    from sfumato.learn._core.declared import declared
    from sfumato.learn._core.design import Design
    from sfumato.learn._core.reading import Reading
    from sfumato.session.rows_wanted import rows_wanted

    design = Design(declared((0, 10), ["age", "pay"]))
    fit = Reading(rows_wanted(session, "SELECT age, pay FROM visits"), design, ())

    def learn(right, noise):
        return {"moments": noise.noisy(sums.moments(fit.rows(right, lambda _: None)), 1)}, {}

    paid = meter.price("0.1", "1e-9")
    wanted = paying.purchase(session, fit, paid, facts=["moments"], words="moments", learn=learn)
    return lambda: session.buy(wanted).answer.learned["moments"].tolist()


def _search(session):
    from sfumato.learn import HoldoutSearch, Ridge

    search = HoldoutSearch(Ridge(), {"alpha": [0, 1]}, epsilon="0.1", delta="1e-9")

    def learn():
        search.fit(session, "SELECT age, pay FROM visits", target="pay")
        return [search.best_index_, search.best_score_, search.best_estimator_.coef_.tolist()]

    return learn


def _synth(session):
    from sfumato.synth import fit

    def learn():
        made = fit(session, epsilon="0.1", delta="1e-9", method="independent", columns=["age"])
        return [made.rows, made.marginal(["age"])["count"].to_pylist()]

    return learn


def _tables(session):
    from sfumato.synth import tables

    def learn():
        made = tables(session, ["visits", "bills"], epsilon="0.1", delta="1e-9", method="independent")
        return [made.parents, made.marginal(["bills.pay"])["count"].to_pylist()]

    return learn


def _check(session):
    from sfumato.session.rows_wanted import rows_wanted
    from sfumato.synth import check
    from sfumato.synth._model.domain import Domain
    from sfumato.synth._model.model import Model
    from sfumato.synth.columns.coarse import as_it_is
    from sfumato.synth.columns.fine import fine
    from sfumato.synth.methods.base import Learned
    from sfumato.synth.released import Released
    from sfumato.synth.synthesizer import Synthesizer

    column = fine(rows_wanted(session, "visits").column("age"))
    domain = Domain(("age",), (column.size,))
    flat = Released(domain, (as_it_is(column),), Learned([], Model(domain, 4.0, {}), True), np.ones(1), {})
    price = {"epsilon": Fraction(1), "delta": Fraction(1, 10**9)}
    made = Synthesizer(
        table="visits", columns=(column,), method="mst", **price, released=flat, unit="", receipt=None
    )

    def learn():
        found = check(session, made, "visits", epsilon="0.1", delta="1e-9")
        return [found.rows, found.error]

    return learn


def reading(report, where, state, point):
    """Reads what somebody else has bought, in bob's name, and dies at a named point."""
    ledger = Ledger.open(where, state=state)
    count = ledger.count_read

    def counted(*arguments):
        if point == "before count":
            _die()
        found = count(*arguments)
        if point == "after count":
            _die()
        return found

    ledger.count_read = counted
    report(buy(ledger, purchase(lambda right: 0, read_back=bytes.decode), "bob").answer)
    ledger.close()


def forked(report, where, state):
    """Forks while it has a right: the child may neither read nor record what the parent paid for."""
    ledger = Ledger.open(where, state=state)

    def answer(right):
        child = os.fork()
        if not child:
            uses = (
                lambda: right.use("q"),
                lambda: right.steps(BasicFilter("0.1")),
                lambda: ledger.record(right, b"7"),
            )
            for use in uses:
                try:
                    use()
                except AccessDenied:
                    report("refused")
            os._exit(0)
        os.waitpid(child, 0)
        right.use("q")
        report("read")
        return 1

    report(buy(ledger, purchase(answer)).answer)
    ledger.close()


def orphaned(report, where, state):
    """Dies while it reads, and leaves a child behind that lives until somebody else was answered."""
    folder, ledger = Path(state), Ledger.open(where, state=state)

    def answer(right):
        if not os.fork():
            for _ in range(6000):
                if (folder / "answered").exists():
                    os._exit(0)
                time.sleep(0.01)
            report("gave up")
            os._exit(1)
        (folder / "reading").touch()
        _die()

    buy(ledger, purchase(answer))


def waiting(report, where, state):
    """Asks the same once that one reads, and says when it was answered."""
    folder = Path(state)
    bought(report, where, state, "never", 0.0, "reading")
    (folder / "answered").touch()


def fitted(report, where, state, point, at, planted=""):
    """A fit of five blocks with two steps each, killed at a point of a block; its state is in a file."""
    ledger, gate = Ledger.open(where, state=state), BasicFilter("0.1")
    PLANTED[planted](ledger)
    model = Path(state) / "model"

    def answer(right):
        while right.left:
            turn = 5 - int(right.left * 5)
            block = right.block("1/5")
            if (point, at) == ("after block", turn):
                _die()
            steps = block.steps(gate)
            for step in range(2):
                steps.take(PureLoss("0.01"))
                report(["step", turn, step])
                if (point, at) == ("in block", turn):
                    _die()
            model.write_text(f"{int(model.read_text()) + 1 if model.exists() else 1}")
            if (point, at) == ("after step", turn):
                _die()
        return int(model.read_text())

    report(["answer", buy(ledger, purchase(answer, resumable=True)).answer])
    ledger.close()


def _not_durable(ledger):
    """Blocks that are counted in memory alone."""
    BlocksOf.take = lambda self, receipt, share: receipt


def _no_turn(ledger):
    ledger.turn = lambda *_: contextlib.nullcontext()


def _recorded_before_noise(ledger):
    debit = ledger.debit

    def early(*arguments, **more):
        right = debit(*arguments, **more)
        ledger.record(right, b"0")
        return right

    ledger.debit = early


PLANTED = {
    "": lambda _: None,
    "not durable": _not_durable,
    "no turn": _no_turn,
    "recorded before noise": _recorded_before_noise,
}
JOBS = {
    job.__name__: job
    for job in (
        spend,
        killed,
        register,
        declared,
        deferred,
        forkless,
        bought,
        modelled,
        reading,
        forked,
        fitted,
        orphaned,
        waiting,
        published.series,
    )
}


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
        answers, jobs = [], json.loads(line)
        if any(job[0] == "series" for job in jobs):
            published.warm()
        if any(job[0] == "modelled" for job in jobs):
            modules = ["learn._core.paying", "session.session", "engines.duckdb"]
            more = {"search": "learn.search", "synth": "synth.fitting"}
            more |= {"tables": "synth.linked", "check": "synth.checking"}
            modules += [more[what] for what in more if any(what in job for job in jobs)]
            for name in modules:
                importlib.import_module(f"sfumato.{name}")  # once, and not in every child
        for child, reader in [_start(job) for job in jobs]:
            with os.fdopen(reader, "rb") as pipe:
                found = [json.loads(part) for part in pipe.read().splitlines()]
            answers.append([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), found])
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main()
