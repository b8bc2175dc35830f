"""The questions of the ledgers in this folder, which an earlier version wrote.

Run by that version, `python questions.py FOLDER` wrote `visits.ledger` and, with a second argument, the
address of a PostgreSQL database, `postgres.json` and its key and anchor. Nothing here is to be written again:
the tests open copies and ask the same questions, which must be free.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.engines.prepare import prepare
from sfumato.games.daily import DailyReserve
from sfumato.games.reserve import BidLog, ReservePrice
from sfumato.ledger import Budget, Ledger

_PEOPLE = range(60)
ROWS = pa.table(
    {
        "person": [each for each in _PEOPLE for _ in range(2)],
        "city": [["Lyon", "Nice", "Paris"][each % 3] for each in _PEOPLE for _ in range(2)],
        "ward": [["east", "west"][each % 2] for each in _PEOPLE for _ in range(2)],
        "cost": [each % 11 for each in _PEOPLE for _ in range(2)],
        "pay": [float(each * 10 + turn) for each in _PEOPLE for turn in range(2)],
    }
)
UNIT = sf.PrivacyUnit("person", max_groups=2)
SCHEMA = {
    "city": sf.Enum("Lyon", "Nice", "Paris"),
    "ward": sf.Text(),
    "cost": sf.Int(0, 10),
    "pay": sf.Float(),
}
LOG = BidLog([1, 1, 2, 2], ["ann", "bob", "cyd", "dan"], [5.0, 2.0, 4.0, 1.0])
DAYS = ("2026-03-01", "2026-03-02")


def visits(source: Any = ROWS, name: str = "visits") -> sf.PrivateTable:
    return sf.PrivateTable(name, source=source, unit=UNIT, schema=SCHEMA)


def daily(ledger: Ledger) -> DailyReserve:
    return DailyReserve(ledger, "bids", ReservePrice("0.1", [1, 2, 4], max_auctions=2))


def _sql(text: str, **more: Any) -> Callable[[sf.Session], Any]:
    return lambda session: session.sql(text).release(**more)


QUESTIONS: dict[str, Callable[[sf.Session], Any]] = {
    "count": _sql("SELECT COUNT(*) AS n FROM visits", epsilon="0.5"),
    "by city": _sql("SELECT city, COUNT(*) AS n, AVG(cost) AS c FROM visits GROUP BY city", epsilon="0.5"),
    "found": _sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=3, delta="1e-3"),
    "median": _sql("SELECT MEDIAN(cost) AS m FROM visits", epsilon=1),
    "rollup": _sql("SELECT city, SUM(cost) AS s FROM visits GROUP BY ROLLUP (city)", epsilon=1),
    "bounds": _sql("SELECT AVG(pay) AS p FROM visits", epsilon=2, bounds="auto"),
    "touched": _sql("SELECT SUM(cost) AS s FROM visits", epsilon=1, touched=True),
    "choose": _sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=1, bounding="choose"),
    "builder": lambda session: (
        session.table("visits").group_by("city").agg(units=sf.count_distinct("person")).release(epsilon=1)
    ),
    "gaussian": _sql(
        "SELECT city, SUM(cost) AS s FROM visits GROUP BY city", epsilon=1, delta="1e-3", mechanism="gaussian"
    ),
}


def ready(folder: Path) -> sf.PrivateTable:
    path = folder / "ready.duckdb"
    if not path.exists():
        prepare(visits(name="ready"), path)
    return visits(str(path), name="ready")


def shown(release: Any) -> Any:
    table = release.table
    return {
        "fingerprint": release.receipt.fingerprint,
        "receipt": release.receipt.number,
        "columns": {name: [str(each) for each in table[name].to_pylist()] for name in table.column_names},
    }


def ask(ledger: Ledger, folder: Path) -> dict[str, Any]:
    """Every question, and what was released for it."""
    found: dict[str, Any] = {}
    budget = Budget(100, "0.1")
    with sf.Session(visits(), budget=budget, ledger=ledger) as session:
        for name, question in QUESTIONS.items():
            found[name] = shown(question(session))
    with sf.Session(visits(), ledger=ledger, analyst="ada") as session:
        release = session.sql("SELECT COUNT(*) AS n FROM visits WHERE cost > 5").release(epsilon="0.25")
        found["analyst"] = shown(release)
    with sf.Session(ready(folder), budget=budget, ledger=ledger) as session:
        release = session.sql("SELECT city, COUNT(*) AS n FROM ready GROUP BY city").release(epsilon=1)
        found["prepared"] = shown(release)
    if "bids" not in [each.name for each in ledger.datasets()]:
        ledger.register("bids", {"unit": "bidder"}, Budget(1))
    found["days"] = [daily(ledger).learn(day, lambda: LOG) for day in DAYS]
    return found


def _died(ledger: Ledger) -> None:
    """A debit whose process died before it had read anything."""
    with sf.Session(visits(), ledger=ledger) as session:
        quote = session.sql("SELECT SUM(cost) AS s FROM visits WHERE cost > 3").quote(epsilon=1)
        ledger.debit("visits", quote.loss, fingerprint=quote.fingerprint, memo={"sql": "SELECT …"})


def main() -> None:
    folder = Path(sys.argv[1])
    where = sys.argv[2] if len(sys.argv) > 2 else folder / "visits.ledger"
    state = folder / "state" if len(sys.argv) > 2 else None
    with Ledger.open(where, state=state) as ledger:
        found = ask(ledger, folder)
        ledger.limit("visits", "ada", Budget(1), reason="a student project")
        _died(ledger)
        assert ledger.verify().ok
        found["export"] = [[each["kind"], each["fingerprint"], each["memo"]] for each in ledger.export()]
        kept = folder / ("postgres.json" if len(sys.argv) > 2 else "visits.json")
        if len(sys.argv) > 2:
            import psycopg

            with psycopg.connect(where) as connection:
                found["tables"] = {
                    table: [
                        [{"bytes": base64.b64encode(x).decode()} if isinstance(x, bytes) else x for x in row]
                        for row in connection.execute(f"SELECT * FROM sfumato_{table} ORDER BY 1").fetchall()
                    ]
                    for table in ("ledger", "receipts", "payloads")
                }
        kept.write_text(json.dumps(found, indent=1) + "\n")
    (folder / "ready.duckdb").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
