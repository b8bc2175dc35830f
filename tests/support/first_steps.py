"""Who counts in the steps of a series in which each unit counts in one, over states of a table."""

from __future__ import annotations

import datetime
from datetime import UTC, date, timedelta
from decimal import Decimal

import pyarrow as pa

import sfumato as sf
from sfumato.ledger import Ledger

__all__ = ["DAYS", "FORMS", "counted"]

START = date(2026, 1, 5)
WHOLE = [1, 7, 10, 120]
FORMS = {
    "int64": pa.array(WHOLE, pa.int64()),
    "uint8": pa.array(WHOLE, pa.uint8()),
    "float64": pa.array([float(each) for each in WHOLE]),
    "float32": pa.array([float(each) for each in WHOLE], pa.float32()),
    "decimal(10,2)": pa.array(map(Decimal, WHOLE), pa.decimal128(10, 2)),
    "decimal(38,0)": pa.array(map(Decimal, WHOLE), pa.decimal128(38, 0)),
    "text": pa.array(map(str, WHOLE)),
    "a row without an id": pa.array([1.0, 7.0, 10.0, 120.0, None]),
}
"""The same four people."""
DAYS = {
    "date": pa.array([START], pa.date32()),
    "seconds": pa.array([START], pa.date32()).cast(pa.timestamp("s")),
    "nanoseconds": pa.array([START], pa.date32()).cast(pa.timestamp("ns")),
    "zone": pa.array([START], pa.date32()).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
}


def counted(states, window=None, engine=None):
    """The people of each step, over states of the table with a step each."""
    shown, ledger = [], Ledger.open()
    for step, ids in enumerate(states):
        day = pa.array([START + timedelta(days=step)] * len(ids), pa.date32())
        table = sf.PrivateTable(
            "visits",
            source=pa.table({"user": ids, "day": day}),
            unit=sf.PrivacyUnit("user", window=window, time=None if window is None else "day"),
            schema={"day": sf.Date("2026-01-01", "2026-12-31")},
        )
        budget = sf.Budget(10**6, "1e-3")
        with sf.Session(table, budget=budget, ledger=ledger, engine=engine) as session:
            text = "SELECT day, COUNT(*) AS n FROM visits GROUP BY day"
            series = session.stream(
                text, start=START, horizon=5, epsilon=10**5, delta="1e-6", max_steps=1, zone="UTC"
            )
            after = datetime.datetime.combine(START + timedelta(days=step + 1), datetime.time(), UTC)
            series.advance(now=after)
            shown.append(round(series.point(-1, "steps").table["n"][0].as_py()))
    return shown
