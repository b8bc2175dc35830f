"""A job of `zygote.py`: a published series that goes on where it is, and dies at a named point of a step.

POINTS are in the order in which a step passes them. Of a step that is cut off before its point is committed
nothing is left but the debit; from then on the point is on record, whether or not anybody was told.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib
import os
import signal
import sys
import time
from datetime import UTC, date, timedelta
from pathlib import Path

__all__ = ["POINTS", "RECORDED", "advanced", "noise_of_secret", "series", "session_of", "values_of", "warm"]

POINTS = [
    "before debit",
    "after debit",
    "before read",
    "after read",
    "after noise",
    "before commit",
    "after commit",
    "before it is shown",
]
RECORDED = POINTS[POINTS.index("after commit") :]
START = date(2026, 1, 1)
TEXT = "SELECT day, shop, COUNT(*) AS n, AVG(amount) AS mean FROM visits GROUP BY day, shop"
FOUND = 95  # rows in a shop and a day: about every second time it is found by so many


def session_of(ledger, found=False):
    """A session over rows that never change; in `found` the shops are not public, and some open every day."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    if found:
        return _of_new_shops(ledger)
    many = np.arange(400)
    rows = {
        "user": many,
        "day": [START + timedelta(days=int(day)) for day in many % 20],
        "shop": np.where(many % 3 == 0, "a", "b"),
        "amount": many % 11,
    }
    schema = {
        "day": sf.Date("2026-01-01", "2026-12-31"),
        "shop": sf.Enum(["a", "b"]),
        "amount": sf.Int(0, 10),
    }
    table = sf.PrivateTable("visits", source=pa.table(rows), schema=schema, unit=sf.PrivacyUnit.row())
    return sf.Session(table, budget=sf.Budget(1, "1e-5"), ledger=ledger)


def _of_new_shops(ledger):
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    shops = [(day, shop) for day in range(20) for shop in range(2 * day + 2) for _ in range(FOUND)]
    rows = {
        "day": [START + timedelta(days=day) for day, _ in shops],
        "shop": [f"shop {shop}" for _, shop in shops],
        "amount": np.arange(len(shops)) % 11,
    }
    schema = {"day": sf.Date("2026-01-01", "2026-12-31"), "shop": sf.Text(), "amount": sf.Int(0, 10)}
    table = sf.PrivateTable("visits", source=pa.table(rows), schema=schema, unit=sf.PrivacyUnit.row())
    return sf.Session(table, budget=sf.Budget(1, "1e-4"), ledger=ledger)


@functools.cache
def warm():
    """Loads what a series needs, which a child finds out: this process opens no engine."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        from sfumato.ledger import Ledger

        for found in (False, True):
            with Ledger.open() as ledger, session_of(ledger, found) as session:
                advanced(session, 1, 2)
        os.write(writer, "\n".join(sys.modules).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        names = pipe.read().decode().split()
    os.waitpid(child, 0)
    for name in names:
        if name not in sys.modules and not name.startswith("_"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def noise_of_secret():
    """One secret for all series, so that those of two ledgers can be compared, and states sealed often."""
    from sfumato.ledger.series import SeriesOf
    from sfumato.session.series import points

    SeriesOf.secret = lambda *_: b"s" * 32
    points._EVERY = 3


def advanced(session, steps, horizon, wait=lambda: None):
    """The series of the session with this many steps."""
    series = session.stream(TEXT, start=START, horizon=horizon, epsilon="0.5", delta="1e-6")
    wait()
    if len(series) < steps:
        moment = datetime.datetime.combine(START + timedelta(days=steps), datetime.time(), UTC)
        series.advance(now=moment)
    return series


def series(report, where, state, point, at, horizon, found=False):
    """Goes on with a series, and dies at a point of a step; what it shows goes into the report.

    At the point "together" it waits until `at` processes have found out how far the series is.
    """
    from sfumato.ledger import Ledger

    noise_of_secret()
    ledger = Ledger.open(where, state=state)
    with session_of(ledger, found) as session:
        _armed(session, point, at)
        wait = (lambda: _met(Path(state), at)) if point == "together" else (lambda: None)
        shown = advanced(session, horizon, horizon, wait)
        report(values_of(shown))
    ledger.close()


def values_of(series):
    return [
        [[units.tolist() for units in point.units], [list(group) for group in point.found]]
        for point in series._points
    ]


def _met(folder, many):
    (folder / f"here {os.getpid()}").touch()
    for _ in range(3000):
        if len(list(folder.glob("here *"))) >= many:
            return
        time.sleep(0.01)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _armed(session, point, at):
    """Has the process die at a point of step `at`."""
    from sfumato.ledger import Ledger
    from sfumato.ledger.series import SeriesOf
    from sfumato.session.series.points import Courses
    from sfumato.session.vault import Vault

    right, store = SeriesOf.right, session.ledger._journal.store
    step = -1

    def next_one(self, receipt, place, reads, **more):
        nonlocal step
        step = place
        return right(self, receipt, place, reads, **more)

    def around(owner, name, *, before="", after=""):
        real = getattr(owner, name)

        def wrapped(*arguments, **more):
            due = step == at or "debit" in point
            if due and point == before:
                _die()
            found = real(*arguments, **more)
            if due and point == after:
                _die()
            return found

        setattr(owner, name, wrapped)

    SeriesOf.right = next_one
    around(Ledger, "debit", before="before debit", after="after debit")
    around(Vault, "read", before="before read", after="after read")
    around(Courses, "release", after="after noise")
    around(Courses, "release_found", after="after noise")
    around(store, "commit", before="before commit", after="after commit")
    around(SeriesOf, "record", after="before it is shown")
