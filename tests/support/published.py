"""A job of `zygote.py`: a published series that goes on where it is, and dies at a named point of a step.

POINTS are in the order in which a step passes them, and FEW those of a series in which people count in few
steps. Of a step that is cut off before its point is committed nothing is left but the debit; from then on the
point is on record, whether or not anybody was told.

A series has one of four forms: "public", of groups that all know and units that are rows, a day at a time;
"at once", the same where all days are due together, and read together; "found", of groups that come later;
"few", of people who come on most days and count on two of them.
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

__all__ = [
    "FEW",
    "FORMS",
    "MOST",
    "POINTS",
    "RECORDED",
    "advanced",
    "counted",
    "noise_of_secret",
    "series",
    "session_of",
    "values_of",
    "warm",
]

FORMS = ("public", "at once", "found", "few")

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
FEW = [*POINTS[:3], "after it is known who counts", POINTS[3], "before who counted is sealed", *POINTS[4:]]
RECORDED = POINTS[POINTS.index("after commit") :]
MOST = 2  # steps in which somebody counts, of a series in which they count in few
SECRET = b"s" * 32
START = date(2026, 1, 1)
TEXT = "SELECT day, shop, COUNT(*) AS n, AVG(amount) AS mean FROM visits GROUP BY day, shop"
FOUND = 95  # rows in a shop and a day: about every second time it is found by so many


def session_of(ledger, form="public"):
    """A session over rows that never change."""
    import pyarrow as pa

    import sfumato as sf

    rows, unit = {"public": _of_rows, "at once": _of_rows, "found": _of_new_shops, "few": _of_regulars}[
        form
    ]()
    schema = {
        "day": sf.Date("2026-01-01", "2026-12-31"),
        "shop": sf.Text() if form == "found" else sf.Enum(["a", "b"]),
        "amount": sf.Int(0, 10),
    }
    days = [START + timedelta(days=int(day)) for day in rows["day"]]
    table = sf.PrivateTable("visits", source=pa.table(rows | {"day": days}), schema=schema, unit=unit)
    return sf.Session(table, budget=sf.Budget(1, "1e-4"), ledger=ledger)


def _of_rows():
    import numpy as np

    import sfumato as sf

    many = np.arange(400)
    shops = np.where(many % 3 == 0, "a", "b")
    return {"day": many % 20, "shop": shops, "amount": many % 11}, sf.PrivacyUnit.row()


def _of_new_shops():
    """Some shops open every day."""
    import numpy as np

    import sfumato as sf

    shops = [(day, shop) for day in range(20) for shop in range(2 * day + 2) for _ in range(FOUND)]
    days, names = [day for day, _ in shops], [f"shop {shop}" for _, shop in shops]
    return {"day": days, "shop": names, "amount": np.arange(len(shops)) % 11}, sf.PrivacyUnit.row()


def _of_regulars():
    """Three people come for the first time on each day, and then on three days of four."""
    import numpy as np

    import sfumato as sf

    visits = [(user, day) for user in range(60) for day in range(user // 3, 20) if (user + day) % 4]
    users, days = np.array(visits).T
    shops = np.where(users % 2 == 0, "a", "b")
    return {"user": users, "day": days, "shop": shops, "amount": days % 11}, sf.PrivacyUnit("user")


@functools.cache
def warm():
    """Loads what a series needs, which a child finds out: this process opens no engine."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        from sfumato.ledger import Ledger

        for form in FORMS:
            with Ledger.open() as ledger, session_of(ledger, form) as session:
                advanced(session, 1, 2, form)
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

    SeriesOf.secret = lambda *_: SECRET
    points._EVERY = 2


def advanced(session, steps, horizon, form="public", wait=lambda: None):
    """The series of the session with this many steps."""
    most = MOST if form == "few" else None
    series = session.stream(TEXT, start=START, horizon=horizon, epsilon="0.5", delta="1e-6", max_steps=most)
    wait()
    if len(series) < steps:
        for day in range(len(series) + 1, steps + 1) if form == "public" else [steps]:
            series.advance(now=datetime.datetime.combine(START + timedelta(days=day), datetime.time(), UTC))
    return series


def series(report, where, state, point, at, horizon, form="public"):
    """Goes on with a series, and dies at a point of a step; what it shows goes into the report.

    At the point "together" it waits until `at` processes have found out how far the series is.
    """
    from sfumato.ledger import Ledger

    noise_of_secret()
    ledger = Ledger.open(where, state=state)
    with session_of(ledger, form) as session:
        _armed(session, point, at)
        wait = (lambda: _met(Path(state), at)) if point == "together" else (lambda: None)
        shown = advanced(session, horizon, horizon, form, wait)
        report(values_of(shown))
    ledger.close()


def values_of(series):
    """Of each point its numbers, the groups that joined with it, and who counted in it."""
    return [
        [
            [units.tolist() for units in point.units],
            [list(group) for group in point.found],
            counted(point) if point.roster else [],
        ]
        for point in series._points
    ]


def counted(point):
    """Who counted in a point, by their digests."""
    from sfumato.session.series.roster import Roster

    roster = Roster(SECRET, MOST)
    roster.follow(point.roster)
    return sorted(name.hex() for name in roster._steps)


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
    from sfumato.session.series.roster import Roster
    from sfumato.session.vault import Vault

    right, store = SeriesOf.right, session.ledger._journal.store
    step = -1

    def next_one(self, receipt, place, reads, **more):
        nonlocal step
        step = place
        return right(self, receipt, place, reads, **more)

    def recorded(self, *arguments):
        nonlocal step
        record(self, *arguments)
        step += 1  # of those that are read together

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
    around(Vault, "of_some_units", before="before read", after="after read")
    around(Roster, "admit", after="after it is known who counts")
    around(Roster, "closed", before="before who counted is sealed")
    around(Courses, "release", after="after noise")
    around(Courses, "release_found", after="after noise")
    around(store, "commit", before="before commit", after="after commit")
    around(SeriesOf, "record", after="before it is shown")
    record, SeriesOf.record = SeriesOf.record, recorded
