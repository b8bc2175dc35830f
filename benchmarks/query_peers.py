"""The same questions asked of peers, in a warm process and in a fresh one; part of `query`.

Peers bound what a user adds in their own ways, which their rows name; all of them answer by user, at the same
price. Nothing is left out for being faster. Qrlew and SmartNoise run in an environment of their own and hold
the rows in memory, the others read them from the file.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks import limits
from benchmarks.harness import Report, Timing, best, peer, race, seconds, times
from benchmarks.visits import COUNTRIES, DELTA, visits

ROWS = 1_000_000
LIMITS = (5, 5_000)
"""The rows of a user in a country that OpenDP keeps: few, and so many that none is cut."""
THREADS = 2
_FRESH = 3  # processes of each kind
_REMOTE = {"Qrlew": 3, "SmartNoise": 1}


def _ours(ledger: str) -> Callable[[], object]:
    """Sum and mean by country, a new question each time, on a ledger on disk."""
    table = sf.PrivateTable(
        "visits",
        source=visits(ROWS),
        unit=sf.PrivacyUnit("user_id", max_groups=3),
        schema={
            "country": sf.Enum(*COUNTRIES),
            "amount": sf.Float(0, 200, nullable=False),
            "day": sf.Int(0, 364),
        },
    )
    engine = sf.engines.DuckDB(threads=THREADS)
    one = sf.Session(table, budget=sf.Budget(10**6, "0.5"), ledger=ledger, engine=engine)
    fresh = itertools.count(1)

    def call() -> object:
        where = f"day >= {-next(fresh)}"  # true for all rows
        text = (
            f"SELECT country, SUM(amount) AS s, AVG(amount) AS m FROM visits WHERE {where} GROUP BY country"
        )
        return one.sql(text).release(epsilon=1, delta=DELTA).table

    return call


def _plain() -> Callable[[], object]:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    clamped = "LEAST(GREATEST(amount, 0), 200)"
    return lambda: connection.sql(
        f"SELECT country, SUM({clamped}), AVG({clamped}) FROM read_parquet('{visits(ROWS)}') GROUP BY country"
    ).to_arrow_table()


def _opendp(limit: int) -> Callable[[], object] | None:
    """OpenDP's sums and counts, which make a mean, of so many rows of each user in three countries."""
    dp, polars = peer("opendp.prelude"), peer("polars")
    if dp is None or polars is None:
        return None
    dp.enable_features("contrib", "honest-but-curious")
    keys = polars.LazyFrame({"country": COUNTRIES})
    total = polars.col("amount").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, 200.0))

    def call() -> object:
        context = dp.Context.compositor(
            data=polars.scan_parquet(visits(ROWS)),
            privacy_unit=dp.unit_of(contributions=1, identifier=polars.col("user_id")),
            privacy_loss=dp.loss_of(epsilon=1.0, delta=float(DELTA)),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=50 * ROWS)],
        )
        rows = context.query().truncate_per_group(limit, by=["country"])
        rows = rows.truncate_num_groups(3, by=["country"], keep="first")
        asked = rows.group_by("country").agg(total, dp.len(signed=True)).with_keys(keys)
        return asked.release().collect()

    return call


def warm(report: Report) -> None:
    """Sum and mean by country with user units, the whole question each time."""
    report.heading(f"sum and mean by country, user units, {ROWS:,} rows", "wall", "CPU", "over ours")
    case = "sum and mean by country"
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Timing | None] = dict(
            race({"plain DuckDB": _plain(), "sfumato": _ours(f"{folder}/peers.ledger")}, repeats=7)
        )
    for limit in LIMITS:
        theirs = _opendp(limit)
        found[f"OpenDP, {limit:,} rows"] = theirs and race({"": theirs}, repeats=2)[""]
    rows = pq.read_table(visits(ROWS), columns=["user_id", "amount", "country"])
    rows = rows.rename_columns(["user_id", "amount", "shop"])
    ask = {"query": "sums", "rows": 3, "top": 200.0, "epsilon": 1.0, "delta": float(DELTA)}
    asks = [{**ask, "who": who, "times": _REMOTE[who]} for who in limits.NAMES]
    found |= zip(limits.NAMES, limits.timed(rows, asks), strict=True)
    _lines(report, case, found)


def _lines(report: Report, case: str, found: dict[str, Timing | None]) -> None:
    """A row for each, and a figure for each peer: its CPU seconds over ours, also where it wins."""
    ours = found["sfumato"]
    assert ours is not None
    for who, timing in found.items():
        if timing is None:
            report.missing(case, who)
            continue
        ratio = timing.wall / ours.wall
        report.row(case, who, seconds(timing.wall), seconds(timing.cpu), times(ratio), timing=timing)
        if who not in ("sfumato", "plain DuckDB"):
            cpu = timing.cpu / ours.cpu
            report.figure(f"{case}: {who} over ours", ratio, ">=", 1, unit=" ×", cpu=cpu)


_COLD: dict[str, tuple[str, str]] = {
    "plain DuckDB": (
        "duckdb",
        """
import duckdb
duckdb.sql("SELECT COUNT(*) FROM read_parquet('{path}') WHERE day >= 100").fetchall()
""",
    ),
    "sfumato": (
        "sfumato",
        """
import sfumato as sf
table = sf.PrivateTable("visits", source="{path}", unit=sf.PrivacyUnit("user_id", max_groups=5),
                        schema={{"day": sf.Int(0, 364)}})
one = sf.Session(table, budget=sf.Budget(10, "1e-6"), ledger="{folder}/{number}.ledger")
one.sql("SELECT COUNT(*) AS n FROM visits WHERE day >= 100").release(epsilon=1).table
""",
    ),
    "OpenDP, 5 rows": (
        "opendp.prelude",
        """
import opendp.prelude as dp, polars
dp.enable_features("contrib", "honest-but-curious")
context = dp.Context.compositor(
    data=polars.scan_parquet("{path}"),
    privacy_unit=dp.unit_of(contributions=1, identifier=polars.col("user_id")),
    privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-7), split_evenly_over=1,
    margins=[dp.polars.Margin(max_length=50_000_000)])
rows = context.query().filter(polars.col("day") >= 100).truncate_per_group(5)
rows.select(dp.len(signed=True)).release().collect()
""",
    ),
}
"""What each runs in a fresh process, and the module without which it is not installed."""


def cold(report: Report) -> None:
    """A count with a condition in a fresh process, from its start to its end."""
    report.heading(f"a fresh process that counts {ROWS:,} rows by user", "wall", "CPU", "over ours")
    found: dict[str, Timing | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        for who, (module, script) in _COLD.items():
            if peer(module) is None:
                found[who] = None
                continue
            runs = [
                _process(script.format(path=visits(ROWS), folder=folder, number=number))
                for number in range(_FRESH)
            ]
            walls, cpus = zip(*runs, strict=True)
            found[who] = best(walls, cpus)
    _lines(report, "a count in a fresh process", found)


def _process(script: str) -> tuple[float, float]:
    """Wall and CPU seconds of a process of its own."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    source = str(Path(sf.__file__).parents[1])
    path = os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


PARTS = (warm, cold)
