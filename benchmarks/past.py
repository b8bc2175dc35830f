"""Growth with the past: what a longer ledger, more losses and noise of new scales cost; part of `growth`.

Each function below measures one group of rows. A row is one size; beside a group's rows its growth exponent
is a figure: the slope of log time over log size between its first and its last size, by CPU seconds.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import islice
from pathlib import Path

import sfumato as sf
from benchmarks.harness import Report, Timing, race, seconds
from sfumato import random
from sfumato.ledger.rules import Draft, account_of, named

_LINEAR = 1.1  # exponents up to this are called linear


def peak(call: Callable[[], object]) -> float:
    """The most memory in MB that Python held at once during a call, beyond what it held before."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def sizes(
    report: Report,
    case: str,
    calls: Mapping[int, Callable[[], object]],
    *,
    most: Mapping[int, float] | None = None,
    repeats: int = 5,
    power: float | None = _LINEAR,
) -> dict[int, Timing]:
    """Measures one thing at several sizes: a row each, targets in milliseconds where given, the exponent."""
    timings = {}
    for size, call in calls.items():
        timing = race({"sfumato": call}, repeats=repeats, budget=10.0)["sfumato"]
        memory = peak(call)
        report.row(
            f"{case}, {size:,}",
            "sfumato",
            seconds(timing.wall),
            seconds(timing.cpu),
            f"{memory:.1f} MB",
            timing=timing,
            size=size,
            peak_megabytes=memory,
        )
        timings[size] = timing
    for size, target in (most or {}).items():
        timing = timings[size]
        report.figure(f"{case}, {size:,}", timing.wall * 1e3, "<=", target, unit=" ms", cpu=timing.cpu * 1e3)
    if power is not None and len(timings) > 1:
        first, *_, last = timings
        slope = math.log(timings[last].cpu / timings[first].cpu) / math.log(last / first)
        report.figure(f"{case}, growth exponent", slope, "<=", power)
    return timings


# ── the ledger


def _filled(path: Path, debits: int) -> None:
    """A ledger with so many debits of 37 different prices by five analysts, each with its answer.

    Written in one transaction, receipt by receipt as `debit` and `record` write them.
    """
    with sf.Ledger.open(path) as ledger:
        ledger.register("visits", {"unit": "row", "version": 1}, sf.Budget(10**6, "1e-6"))
        journal = ledger._journal
        store, book = journal.store, journal._book
        account = account_of(book, "visits")
        units = account.cap.units
        store.begin()
        for number in range(debits):
            loss, who = sf.loss.PureLoss(Fraction(1 + number % 37, 1000)), f"analyst {number % 5}"
            paid, payload = account.priced(loss, who), f"{number}".encode() * 100
            draft = Draft(book, journal.chain, store)
            draft.add(
                "debit",
                "visits",
                analyst=who,
                fingerprint=hashlib.sha256(str(number).encode()).hexdigest(),
                loss=loss.to_dict(),
                price=named(units, paid.price),
                totals=named(units, paid.totals),
                analyst_totals=named(units, paid.analyst_totals),
                adjacency=paid.adjacency,
                memo={"text": f"SELECT COUNT(*) AS n FROM visits WHERE age < {number}"},
            )
            book.follow(draft.rows)
            debit = draft.rows[0]
            store.keep(debit.number, payload)
            draft = Draft(book, journal.chain, store)
            draft.add(
                "release",
                "visits",
                analyst=who,
                fingerprint=debit.fingerprint,
                debit=debit.number,
                digest=hashlib.sha256(payload).hexdigest(),
                size=len(payload),
            )
            book.follow(draft.rows)
        store.commit()
        journal.anchor.settle(journal._book.due)


def ledger(report: Report) -> None:
    """Opening, verifying, listing and looking back, by the number of debits on record."""
    report.heading("ledger: by debits on record", "wall", "CPU", "memory")
    debits = (1_000, 10_000, 50_000)
    with tempfile.TemporaryDirectory() as folder:
        paths = {count: Path(folder) / f"{count}.ledger" for count in debits}
        for count, path in paths.items():
            _filled(path, count)
        sizes(
            report,
            "ledger: open",
            {count: lambda path=path: sf.Ledger.open(path).close() for count, path in paths.items()},
            most=dict.fromkeys(debits, 20.0),
        )
        sizes(
            report,
            "ledger: verify",
            {count: lambda path=path: sf.Ledger.inspect(path) for count, path in paths.items()},
            most={50_000: 3_000.0},
            repeats=2,
        )
        books = {count: sf.Ledger.open(path) for count, path in paths.items()}
        sizes(
            report,
            "ledger: a page of 1,000 releases",
            {
                count: lambda book=book, count=count: list(
                    islice(book.entries("visits", kind="debit", after=count), 1000)
                )
                for count, book in books.items()
            },
            most=dict.fromkeys(debits, 100.0),
        )
        sizes(
            report,
            "ledger: retrospective",
            {
                count: lambda book=book: book.balance("visits").retrospective
                for count, book in books.items()
                if count <= 10_000
            },
            most={10_000: 100.0},
            repeats=2,
        )
        for book in books.values():
            book.close()


def losses(report: Report) -> None:
    """Making and composing 1,100 losses, of which 100 are the exponential mechanism's."""
    report.heading("losses: 1,100 of which 100 are the exponential mechanism's", "wall", "CPU", "memory")
    fresh = iter(range(1, 10**6))

    def made(count: int) -> list[sf.PrivacyLoss]:
        shift = Fraction(next(fresh), 10**12)  # new prices each time, so that nothing is remembered
        parts = [sf.loss.LaplaceLoss(Fraction(1 + at, 10**5) + shift) for at in range(5 * count // 11)]
        parts += [sf.loss.GaussianLoss(Fraction(1 + at, 10**7) + shift) for at in range(5 * count // 11)]
        return parts + [
            sf.loss.BoundedRangeLoss(Fraction(1 + at, 10**4) + shift) for at in range(count // 11)
        ]

    sizes(
        report,
        "losses: made",
        {count: lambda count=count: made(count) for count in (110, 1_100)},
        most={1_100: 20.0},
    )
    sizes(
        report,
        "losses: epsilon of them all",
        {count: lambda count=count: sf.compose(made(count)).epsilon("1e-6") for count in (110, 1_100)},
        most={1_100: 60.0},
        repeats=3,
    )


def scales(report: Report) -> None:
    """Noise of a scale that was never drawn before: one draw, and a vector of 1,000."""
    report.heading("noise: of a scale never drawn before", "wall", "CPU")
    fresh = iter(range(1, 10**6))
    laws = {"discrete Laplace": random.discrete_laplace, "discrete Gaussian": random.discrete_gaussian}
    for name, draw in laws.items():
        for count, target in ((1, 0.05), (1_000, 1.0)):

            def first(draw: Callable[..., object] = draw, count: int = count) -> object:
                return draw(Fraction(10**6 + next(fresh), 10**5), count)

            timing = race({"sfumato": first}, repeats=30)["sfumato"]
            case = f"noise: {name}, {count:,} of a new scale"
            report.row(case, "sfumato", seconds(timing.wall), seconds(timing.cpu), timing=timing, size=count)
            report.figure(case, timing.wall * 1e3, "<=", target, unit=" ms", cpu=timing.cpu * 1e3)


def spends(report: Report) -> None:
    """A debit with its answer on disk, one after the other, beside one sync of a small write."""
    report.heading("ledger: a debit and its answer, on disk", "wall", "CPU")
    with tempfile.TemporaryDirectory() as folder, sf.Ledger.open(Path(folder) / "x.ledger") as book:
        book.register("visits", {"unit": "row"}, sf.Budget(10**6))
        numbers = iter(range(10**9))
        loss, plain = sf.loss.PureLoss("0.1"), os.open(Path(folder) / "plain", os.O_CREAT | os.O_WRONLY)

        def spend() -> None:
            right = book.debit("visits", loss, fingerprint=f"q{next(numbers)}")
            book.record(right, b"answer" * 100)

        def sync() -> None:
            os.pwrite(plain, b"x" * 512, 0)
            os.fsync(plain)

        timing = race({"sfumato": spend, "one sync": sync}, repeats=7, calls=20, budget=20.0)
        os.close(plain)
        for who, one in timing.items():
            report.row("ledger: debit and record", who, seconds(one.wall), seconds(one.cpu), timing=one)
        report.figure("ledger: debit and record, CPU", timing["sfumato"].cpu * 1e3, "<=", 8, unit=" ms")


PARTS = (ledger, spends, losses, scales)
