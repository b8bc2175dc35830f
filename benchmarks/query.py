"""Private queries beside the plain ones: what privacy costs in time and memory, and how fast debits are."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

import sfumato as sf
from benchmarks import query_peers
from benchmarks.engine_servers import database
from benchmarks.harness import Report, Timing, peer, race, seconds, times
from benchmarks.visits import COUNTRIES, DELTA, asked, visits

FEW, ONE, TEN = 1_000, 1_000_000, 10_000_000
THREADS = 2
CLAMPED = "LEAST(GREATEST(amount, 0), 200)"
_fresh = itertools.count()


def session(rows: int, *, unit: sf.PrivacyUnit, ledger: str | None = None) -> sf.Session:
    """A session on the visits with a budget that these measurements cannot use up."""
    table = sf.PrivateTable(
        "visits",
        source=visits(rows),
        unit=unit,
        schema={
            "country": sf.Enum(*COUNTRIES),
            "amount": sf.Float(0, 200, nullable=False),
            "age": sf.Int(18, 99),
            "day": sf.Int(0, 364),
        },
    )
    engine = sf.engines.DuckDB(threads=THREADS)
    return sf.Session(table, budget=sf.Budget(10**7, "0.5"), ledger=ledger, engine=engine)


def distinct(one: sf.Session) -> Callable[[], object]:
    """A call that asks another scalar count each time, so that every one is paid for and read."""

    def call() -> object:
        text = f"SELECT COUNT(*) AS n FROM visits WHERE day >= {-next(_fresh)}"  # true for all rows
        return one.sql(text).release(epsilon=1, delta=DELTA).table

    return call


def plain(rows: int, text: str, *, settings: tuple[str, ...] = ()) -> Callable[[], object]:
    """The same question without privacy, straight to the engine."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    for each in settings:
        connection.execute(each)
    unit = 'user_id AS "sfumato unit"'  # where generated statements look for it
    connection.execute(f"CREATE VIEW visits AS SELECT *, {unit} FROM read_parquet('{visits(rows)}')")
    return lambda: connection.sql(text).to_arrow_table()


def scalar(report: Report) -> None:
    """A scalar count in a warm session: what is ours on top of the engine's own read, in CPU seconds."""
    report.heading(f"a scalar count over {ONE:,} rows, warm session, durable ledger", "wall", "CPU")
    text = "SELECT COUNT(*) AS n FROM visits WHERE day >= -1"
    with tempfile.TemporaryDirectory() as folder:
        cases = {"row": sf.PrivacyUnit.row(), "user": sf.PrivacyUnit("user_id", max_groups=3)}
        worst = 0.0
        for name, unit in cases.items():
            one = session(ONE, unit=unit, ledger=f"{folder}/{name}.ledger")
            statement = _statement(one, text).sql("duckdb")
            contenders = {
                "engine alone": plain(ONE, statement, settings=_optimisers()),
                "engine, all optimisers": plain(ONE, statement),
                "sfumato": distinct(one),
            }
            timing = race(contenders, repeats=25)
            worst = max(worst, min(timing["sfumato"].cpus) - min(timing["engine alone"].cpus))
            for who, each in timing.items():
                report.row(f"{name} unit", who, seconds(each.wall), seconds(each.cpu), timing=each)
            one.close()
        report.figure("scalar count, our CPU on top of the engine", worst * 1e3, "<=", 20, unit=" ms")
        for rows, target in ((ONE, 12), (TEN, 50)):
            _whole_count(report, rows, target, f"{folder}/{rows}.ledger")
    for limit in (5, 5_000):
        _opendp(report, "user unit", limit)


def _whole_count(report: Report, rows: int, target: float, ledger: str) -> None:
    """The whole of a count with a condition, row units, beside plain reads with and without statistics."""
    text = "SELECT COUNT(*) AS n FROM visits WHERE day >= -1"
    one = session(rows, unit=sf.PrivacyUnit.row(), ledger=ledger)
    contenders = {
        "plain DuckDB": plain(rows, text),
        "without statistics": plain(rows, text, settings=_optimisers()),
        "sfumato": distinct(one),
    }
    timing = race(contenders, repeats=15)
    for who, each in timing.items():
        report.row(f"row unit, {rows:,} rows", who, seconds(each.wall), seconds(each.cpu), timing=each)
    whole = min(timing["sfumato"].cpus) * 1e3
    report.figure(f"scalar count with WHERE, {rows:,} rows, all CPU", whole, "<=", target, unit=" ms")
    one.close()


def small(report: Report) -> None:
    """The fixed cost of a question: what is ours on top of the engine, in CPU seconds.

    Each question is a new one, asked in a warm session, priced, paid for on a durable ledger, read, made
    private, recorded and shown. The engine alone runs the statement of such a question.
    """
    report.heading(f"a new question over {FEW:,} rows, warm session, durable ledger", "wall", "CPU", "ours")
    texts = {
        "one count": "SELECT COUNT(*) AS n FROM visits WHERE day >= {}",
        "counts and means": "SELECT country, COUNT(*) AS n, AVG(amount) AS m FROM visits WHERE day >= {} "
        "GROUP BY country",
    }
    units = {"row": sf.PrivacyUnit.row(), "user": sf.PrivacyUnit("user_id", max_groups=3)}
    ours: dict[str, list[float]] = {name: [] for name in texts}
    with tempfile.TemporaryDirectory() as folder:
        for whose, unit in units.items():
            one = session(FEW, unit=unit, ledger=f"{folder}/{whose}.ledger")
            for name, text in texts.items():
                statement = _statement(one, text.format(-1)).sql("duckdb")
                timing = race(
                    {
                        "engine alone": plain(FEW, statement, settings=_optimisers()),
                        "sfumato": partial(_new, one, text),
                    },
                    repeats=60,
                    warm=3,
                )
                engine, whole = timing["engine alone"], timing["sfumato"]
                own = min(whole.cpus) - min(engine.cpus)
                ours[name].append(own)
                case = f"{name}, {whose} unit"
                report.row(case, "engine alone", seconds(engine.wall), seconds(engine.cpu), timing=engine)
                shown = (seconds(whole.wall), seconds(whole.cpu), seconds(own))
                report.row(case, "sfumato", *shown, timing=whole, own_seconds=own)
            one.close()
    report.figure("a small question, our own CPU", max(ours["one count"]) * 1e3, "<=", 12, unit=" ms")
    grouped = max(ours["counts and means"]) * 1e3
    report.figure("a small question by group, our own CPU", grouped, "<=", 20, unit=" ms")


def _new(one: sf.Session, text: str) -> object:
    """The answer to a question that was not asked before; its condition is true for all rows."""
    return one.sql(text.format(-next(_fresh) - 1)).release(epsilon=1, delta=DELTA).table


def _optimisers() -> tuple[str, ...]:
    """The settings of our engine: a read must not trust a file's statistics, at the engine's cost."""
    from sfumato.engines.duckdb import _OPTIMIZERS

    found = {row[0] for row in duckdb.sql("SELECT name FROM duckdb_optimizers()").fetchall()}
    return (f"SET disabled_optimizers = '{','.join(sorted(found - _OPTIMIZERS))}'",)


def _statement(one: sf.Session, text: str) -> Any:
    from sfumato.engines.dialect import DUCKDB
    from sfumato.plan.prices.recipe import measured_of
    from sfumato.sql.write.lower import lower

    query = one.sql(text)
    table = one.tables["visits"]
    return lower(measured_of(query.report, table), table, DUCKDB)


def _opendp(report: Report, case: str, limit: int) -> None:
    """OpenDP's count of at most so many rows of each user."""
    dp, polars = peer("opendp.prelude"), peer("polars")
    if dp is None or polars is None:
        report.missing(case, "OpenDP")
        return
    dp.enable_features("contrib", "honest-but-curious")

    def count() -> object:
        context = dp.Context.compositor(
            data=polars.scan_parquet(visits(ONE)),
            privacy_unit=dp.unit_of(contributions=1, identifier=polars.col("user_id")),
            privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-7),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=50 * ONE)],
        )
        return context.query().truncate_per_group(limit).select(dp.len(signed=True)).release().collect()

    timing = race({"OpenDP": count}, repeats=2)["OpenDP"]
    who = f"OpenDP, {limit:,} rows"
    report.row(case, who, seconds(timing.wall), seconds(timing.cpu), timing=timing)


def row_level(report: Report) -> None:
    """GROUP BY with row units over the plain query, 1e7 rows."""
    report.heading(f"row-level GROUP BY, {TEN:,} rows", "wall", "CPU", "over plain")
    one = session(TEN, unit=sf.PrivacyUnit.row())
    count = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
    several = "SELECT country, COUNT(*) AS n, SUM({0}) AS s, AVG({0}) AS m FROM visits GROUP BY country"
    cases = {
        "count": (count, count, 1.5),
        "count, sum, mean": (several.format("amount"), several.format(CLAMPED), 1.5),
        "the same, plain unclamped": (several.format("amount"), several.format("amount"), None),
    }
    for name, (ours, theirs, target) in cases.items():
        ratio, cpu = _over(report, name, asked(one, ours), plain(TEN, theirs))
        if target is not None:
            what = f"row-level GROUP BY ({name}) over plain, 1e7 rows"
            report.figure(what, ratio, "<=", target, unit=" ×", cpu=cpu)
    one.close()


def conditions(report: Report) -> None:
    """GROUP BY with a WHERE, row units, each question new and on a ledger on disk.

    Where all rows pass, plain DuckDB leaves the condition out: the file's statistics say so. We read the
    column, since whether a row counts must not depend on what a file says of other rows.
    """
    report.heading(
        f"row-level GROUP BY with WHERE, {TEN:,} rows, ledger on disk", "wall", "CPU", "over plain"
    )
    measures = {"count": "COUNT(*) AS n", "count, sum, mean": "COUNT(*) AS n, SUM({0}) AS s, AVG({0}) AS m"}
    with tempfile.TemporaryDirectory() as folder:
        one = session(TEN, unit=sf.PrivacyUnit.row(), ledger=f"{folder}/where.ledger")
        for (name, what), (which, least) in itertools.product(
            measures.items(), {"all pass": -1, "some pass": 100}.items()
        ):
            text = f"SELECT country, {what} FROM visits WHERE day >= {{1}} GROUP BY country"
            theirs = text.format(CLAMPED, least)
            contenders: dict[str, Callable[[], object]] = {
                "plain DuckDB": plain(TEN, theirs),
                "without statistics": plain(TEN, theirs, settings=_optimisers()),
                "sfumato": _falling(one, text, least),
            }
            timing = race(contenders, repeats=7)
            base = timing["plain DuckDB"]
            for who, each in timing.items():
                shown = (seconds(each.wall), seconds(each.cpu), times(each.wall / base.wall))
                report.row(f"{name}, {which}", who, *shown, timing=each)
            mine = timing["sfumato"]
            figure = f"row-level GROUP BY ({name}), WHERE that {which.split()[0]} rows pass, over plain"
            report.figure(figure, mine.wall / base.wall, "<=", 1.4, unit=" ×", cpu=mine.cpu / base.cpu)
        one.close()


def _falling(one: sf.Session, text: str, least: int) -> Callable[[], object]:
    """A call that asks with another bound each time, one day below the last: each is a new question."""
    bounds = itertools.count(least, -1)

    def call() -> object:
        release = one.sql(text.format("amount", next(bounds))).release(epsilon=1, delta=DELTA)
        assert not release.free
        return release.table

    return call


def user_level(report: Report) -> None:
    """Sum and mean by country with user units over the plain query, 1e7 rows, nothing prepared."""
    report.heading(f"user-level sum and mean by country, {TEN:,} rows", "wall", "CPU", "over plain")
    one = session(TEN, unit=sf.PrivacyUnit("user_id", max_groups=3))
    several = "SELECT country, SUM({0}) AS s, AVG({0}) AS m FROM visits GROUP BY country"
    ours = asked(one, several.format("amount"))
    ratio, cpu = _over(report, "sum and mean", ours, plain(TEN, several.format(CLAMPED)))
    what = "user-level sum and mean over plain (clamped alike), 1e7 rows"
    report.figure(what, ratio, "<=", 6, unit=" ×", cpu=cpu)
    _over(report, "the same, plain unclamped", ours, plain(TEN, several.format("amount")))
    one.close()


def _over(
    report: Report, case: str, ours: Callable[[], object], theirs: Callable[[], object]
) -> tuple[float, float]:
    timing: dict[str, Timing] = race({"plain DuckDB": theirs, "sfumato": ours}, repeats=7)
    base, mine = timing["plain DuckDB"], timing["sfumato"]
    report.row(case, "plain DuckDB", seconds(base.wall), seconds(base.cpu), timing=base)
    ratio = mine.wall / base.wall
    report.row(case, "sfumato", seconds(mine.wall), seconds(mine.cpu), times(ratio), timing=mine)
    return ratio, mine.cpu / base.cpu


_PEAK = """
import json, sys
import sfumato as sf
from benchmarks import query
path = sys.argv[1]
query.visits = lambda rows: path
one = query.session(query.TEN, unit=sf.PrivacyUnit("user_id", max_groups=3))
text = "SELECT country, SUM(amount) AS s, AVG(amount) AS m FROM visits GROUP BY country"
one.sql(text).release(epsilon=1, delta="1e-7").table
lines = open("/proc/self/status").read().splitlines()
print(json.dumps({line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("VmHWM")}))
"""


def memory(report: Report) -> None:
    """Peak memory of a fresh process that answers the user-level query at 1e7 rows."""
    report.heading("peak memory of a process that answers it", "peak")
    peaks = []
    for _ in range(3):
        run = [sys.executable, "-c", _PEAK, str(visits(TEN))]
        out = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        peaks.append(json.loads(out)["VmHWM"] * 1024 / 1e6)
    report.row("user-level sum and mean", "sfumato", f"{max(peaks):.0f} MB", megabytes=peaks)
    report.figure("peak memory of the user-level query, 1e7 rows", max(peaks), "<=", 400, unit=" MB")


def _spend(arguments: tuple[str, str, int]) -> tuple[int, int]:
    where, state, attempts = arguments
    ledger = sf.Ledger.open(where, state=Path(state))
    loss = sf.Geometric(epsilon=1, sensitivity=1).loss
    admitted = refused = 0
    for attempt in range(attempts):
        try:
            ledger.debit("visits", loss, fingerprint=f"{attempt}")
            admitted += 1
        except sf.errors.BudgetExceeded:
            refused += 1
    ledger.close()
    return admitted, refused


def debits(report: Report) -> None:
    """Durable debits of 8 processes at once, on both stores; the budget admits exactly what fits."""
    report.heading("durable debits, 8 processes", "a second", "overdrafts")
    processes, attempts, budget = 8, 60, 400
    with tempfile.TemporaryDirectory() as folder:
        where = f"{folder}/bench.ledger"
        _debits(report, "SQLite", where, folder, processes, attempts, budget)
        try:
            with database() as address:
                _debits(report, "PostgreSQL", address, folder, processes, attempts, budget)
        except ImportError:
            report.missing("debits", "PostgreSQL")


def _debits(
    report: Report, who: str, where: str, state: str, processes: int, attempts: int, budget: int
) -> None:
    ledger = sf.Ledger.open(where, state=Path(state))
    ledger.register("visits", {"unit": {}, "schema": {}, "version": {}}, sf.Budget(budget))
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        pool.map(_spend, [(where, state, 0)] * processes, chunksize=1)  # start every process first
        began = time.perf_counter()
        counts = pool.map(_spend, [(where, state, attempts)] * processes, chunksize=1)
        took = time.perf_counter() - began
    admitted = sum(each for each, _ in counts)
    spent = ledger.balance("visits").spent
    verified = ledger.verify().ok
    ledger.close()
    overdrafts = max(0, admitted - budget) + (0 if spent == min(admitted, budget) and verified else 1)
    rate = processes * attempts / took
    report.row("debits", who, f"{rate:.0f}", str(overdrafts), debits_per_second=rate, admitted=admitted)
    report.figure(f"overdrafts, 8 processes on {who}", overdrafts, "<=", 0, attempts=processes * attempts)


PARTS = (small, scalar, row_level, conditions, user_level, memory, debits, *query_peers.PARTS)
