"""User-level GROUP BY over the plain query: on prepared tables, and with groups that nobody listed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb

import sfumato as sf
from benchmarks.harness import Report, once, race, seconds, times
from benchmarks.query import TEN, THREADS, plain
from benchmarks.visits import COUNTRIES, DELTA, asked, folder, visits
from sfumato.engines.prepare import prepare

COLUMNS = {"amount": sf.Float(0, 200, nullable=False), "age": sf.Int(18, 99)}
UNIT = sf.PrivacyUnit("user_id", max_groups=3)
BY_COUNTRY = "SELECT country, COUNT(*) AS n FROM visits GROUP BY country"
SUMS = "SELECT country, SUM({0}) AS s, AVG({0}) AS m FROM visits GROUP BY country"
BY_DAY = "SELECT country, day, COUNT(*) AS n FROM visits GROUP BY country, day"


def table(source: Path, **keys: sf.schema.ColumnType) -> sf.PrivateTable:
    """The visits in that source, with these columns to group by."""
    return sf.PrivateTable("visits", source=source, unit=UNIT, schema={**COLUMNS, **keys})


def session(declared: sf.PrivateTable) -> sf.Session:
    """A session with a budget that these measurements cannot use up."""
    engine = sf.engines.DuckDB(threads=THREADS)
    return sf.Session(declared, budget=sf.Budget(10**7, "0.5"), engine=engine)


def in_file(path: Path, text: str) -> Callable[[], object]:
    """The same question without privacy over the prepared file itself."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
    connection.execute("CREATE VIEW visits AS SELECT * FROM file.main.visits")
    return lambda: connection.sql(text).to_arrow_table()


def prepared(report: Report) -> None:
    """A prepared table by country over the plain query, 1e7 rows."""
    report.heading(f"a prepared table by country, user units, {TEN:,} rows", "wall", "CPU", "over plain")
    source, target = visits(TEN), folder() / "visits.prepared.duckdb"
    declared = table(source, country=sf.Enum(*COUNTRIES), day=sf.Int(0, 364))
    first = once(lambda: prepare(declared, target, threads=THREADS))
    size = f"{target.stat().st_size / source.stat().st_size:.2f} of source"
    report.row("preparing it, once", "sfumato", seconds(first.wall), seconds(first.cpu), size, timing=first)
    one = session(table(target, country=sf.Enum(*COUNTRIES), day=sf.Int(0, 364)))
    clamped = SUMS.format("LEAST(GREATEST(amount, 0), 200)")
    cases = {"count": (BY_COUNTRY, BY_COUNTRY), "sum and mean": (SUMS.format("amount"), clamped)}
    for name, (ours, theirs) in cases.items():
        found = race(
            {
                "plain, Parquet": plain(TEN, theirs),
                "plain, prepared": in_file(target, theirs),
                "sfumato": asked(one, ours),
            },
            repeats=25,
        )
        mine = found["sfumato"]
        for who, each in found.items():
            ratio = times(each.wall / found["plain, Parquet"].wall)
            report.row(name, who, seconds(each.wall), seconds(each.cpu), ratio, timing=each)
        if name == "count":
            for who, where in (("plain, Parquet", "its source"), ("plain, prepared", "the same file")):
                what = f"prepared GROUP BY over plain on {where}, 1e7 rows"
                base = found[who]
                report.figure(what, mine.wall / base.wall, "<=", 1.5, unit=" ×", cpu=mine.cpu / base.cpu)
    one.close()


def grouped(report: Report) -> None:
    """Tables prepared for the grouping that is asked, with listed keys and with unlisted ones, 1e7 rows."""
    report.heading(f"tables prepared for the grouping, user units, {TEN:,} rows", "wall", "CPU", "over plain")
    listed = {"country": sf.Enum(*COUNTRIES), "day": sf.Int(0, 364)}
    unlisted = {"country": sf.Text(), "day": sf.Int()}
    cases = {
        "by country": (("country",), listed, BY_COUNTRY),
        "10,950 unlisted groups": (("country", "day"), unlisted, BY_DAY),
    }
    for name, (by, keys, text) in cases.items():
        target = folder() / f"visits.{'.'.join(by)}.duckdb"
        work = partial(prepare, table(visits(TEN), **keys), target, group_by=by, threads=THREADS)
        first = once(work)
        size = f"{target.stat().st_size / visits(TEN).stat().st_size:.2f} of source"
        report.row(f"{name}: once", "sfumato", seconds(first.wall), seconds(first.cpu), size, timing=first)
        one = session(table(target, **keys))
        assert one.sql(text).quote(epsilon=1, delta=DELTA).measured.bounding.name == "grouped"
        found = race(
            {
                "plain, Parquet": plain(TEN, text),
                "plain, prepared": in_file(target, text),
                "sfumato": asked(one, text),
            },
            repeats=25,
        )
        mine = found["sfumato"]
        for who, each in found.items():
            ratio = times(each.wall / found["plain, Parquet"].wall)
            report.row(name, who, seconds(each.wall), seconds(each.cpu), ratio, timing=each)
        for who, where in (("plain, Parquet", "its source"), ("plain, prepared", "the same file")):
            base = found[who]
            what = f"prepared for its grouping, {name}, over plain on {where}, 1e7 rows"
            report.figure(what, mine.wall / base.wall, "<=", 1.5, unit=" ×", cpu=mine.cpu / base.cpu)
        one.close()


def chosen(report: Report) -> None:
    """Nothing prepared: three groups of each user among 10,950 that nobody listed, 1e7 rows."""
    title = f"choosing 3 of 10,950 unlisted groups, user units, {TEN:,} rows"
    report.heading(title, "wall", "CPU", "over plain")
    one = session(table(visits(TEN), country=sf.Text(), day=sf.Int()))
    found = race({"plain DuckDB": plain(TEN, BY_DAY), "sfumato": asked(one, BY_DAY)}, repeats=5, budget=90.0)
    base, mine = found["plain DuckDB"], found["sfumato"]
    for who, each in found.items():
        ratio = times(each.wall / base.wall)
        report.row("count", who, seconds(each.wall), seconds(each.cpu), ratio, timing=each)
    what = "unprepared, 3 groups a unit, unknown keys, over plain, 1e7 rows"
    report.figure(what, mine.wall / base.wall, "<=", 25, unit=" ×", cpu=mine.cpu / base.cpu)
    one.close()


PARTS = (prepared, grouped, chosen)
