"""Timestamps and times of day in every kind of source: whole seconds, in UTC where a zone is said."""

from __future__ import annotations

import datetime as dt

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import sqlglot

from sfumato.engines import Csv
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import prepare
from sfumato.numeric.moments import FIRST, LAST, as_moment, clock_at, moment_at, seconds_of
from sfumato.schema import Int, PrivacyUnit, PrivateTable, Time, Timestamp

pytestmark = pytest.mark.duckdb

PARIS = dt.timezone(dt.timedelta(hours=2))
MOMENT = dt.datetime(2024, 2, 29, 23, 59, 58)
EARLY = dt.datetime(1960, 1, 1, 0, 0, 1)


def read(source, kind: str, column: str = "c") -> list[int | None]:
    with DuckDB(threads=1) as engine:
        engine.attach("t", source, {"n": "integer", column: kind})
        statement = sqlglot.parse_one(f'SELECT "{column}" FROM t ORDER BY n', dialect="duckdb")
        return engine.fetch(statement).column(0).to_pylist()


def numbered(array) -> pa.Table:
    return pa.table({"n": range(len(array)), "c": array})


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("way", ["table", "parquet", "pandas", "polars"])
def test_arrow_timestamps_of_all_units_and_zones(tmp_path, unit, zone, way):
    later = 0 if unit == "s" else 999_000
    moments = [MOMENT.replace(microsecond=later), EARLY.replace(microsecond=later), None]
    table = numbered(pa.array(moments, pa.timestamp(unit)).view(pa.timestamp(unit, zone)))
    if way == "parquet":
        pq.write_table(table, tmp_path / "t.parquet")
    sources = {
        "table": lambda: table,
        "parquet": lambda: str(tmp_path / "t.parquet"),
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
    }
    source = sources[way]()
    wanted = [seconds_of(MOMENT), seconds_of(EARLY), None]
    assert read(source, "timestamp") == wanted
    assert read(source, "time") == [None if each is None else each % 86_400 for each in wanted]
    assert read(source, "date") == [MOMENT.date(), EARLY.date(), None]  # as it always was


def test_texts_are_read_in_utc_where_they_say_a_zone(tmp_path):
    texts = ["2024-01-01", "2024-01-01T10:00:00", "2024-01-01 10:00:00+02", "2024-01-01T10:00:00.9Z", "now",
             "infinity", "10:00", "9999-12-31 23:59:59.9", "10000-01-01", "", None]  # fmt: skip
    day = seconds_of(dt.datetime(2024, 1, 1))
    wanted = [day, day + 36_000, day + 28_800, day + 36_000, None, None, None, LAST, None, None, None]
    assert read(numbered(texts), "timestamp") == wanted
    (tmp_path / "t.csv").write_text("n,c\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts[:-1])))
    assert read(str(tmp_path / "t.csv"), "timestamp") == wanted[:-1]
    clocks = ["08:30", "8:30:15.9", "23:59:59", "24:00:00", "08:30+02", "noon", "2024-01-01 08:30", None]
    assert read(numbered(clocks), "time") == [30_600, 30_615, 86_399, None, None, None, None, None]


def test_numbers_are_seconds_and_days_are_midnight():
    ends = [0, FIRST, LAST, FIRST - 1, LAST + 1, 2**63 - 1, -(2**63)]
    assert read(numbered(ends), "timestamp") == [0, FIRST, LAST, None, None, None, None]
    assert read(numbered([0, 86_399, 86_400, -1]), "time") == [0, 86_399, None, None]
    days = pa.array([dt.date(2024, 2, 29), dt.date(1, 1, 1)])
    assert read(numbered(days), "timestamp") == [seconds_of(dt.datetime(2024, 2, 29)), FIRST]


@pytest.mark.parametrize("way", ["table", "parquet", "duckdb", "ipc"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_time_of_day_makes_a_read_fail(tmp_path, unit, way):
    """Sources may hold any number of units since midnight; DuckDB's own read of Parquet fails past 24:00."""
    second, wide = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit], unit in ("us", "ns")
    most = 2**63 - 1 if wide else (2**31 - 1) // (1000 if way == "parquet" and unit == "s" else 1)
    odd = [0, 86_400 * second - 1, 86_400 * second, 90_000 * second, -second, most, -most]
    numbers = pa.array([*odd, None], pa.int64() if wide else pa.int32())
    table = numbered(numbers.view(pa.time64(unit) if wide else pa.time32(unit)))
    source = str(tmp_path / f"t.{way}")
    if way == "parquet":
        pq.write_table(table, source)
    elif way == "ipc":
        source = str(tmp_path / "t.arrow")
        feather.write_feather(table, source)
    elif way == "duckdb":
        with duckdb.connect(source) as connection:
            connection.register("held", table)
            connection.execute("CREATE TABLE t AS SELECT * FROM held")
    found = read(table if way == "table" else source, "time")
    assert found == [0, 86_399, *(None,) * 6]


def test_parts_of_a_second_before_midnight_are_no_time():
    assert read(numbered(pa.array([-1, 1], pa.int64()).view(pa.time64("us"))), "time") == [None, 0]


def test_cells_of_python_objects():
    cells = [MOMENT, MOMENT.replace(tzinfo=PARIS), pd.Timestamp(MOMENT), "2024-02-29 23:59:58", 7, None]
    frame = pd.DataFrame({"n": range(len(cells)), "c": pd.Series(cells, dtype=object)})
    at = seconds_of(MOMENT)
    assert read(frame, "timestamp") == [at, at - 7200, at, at, None, None]
    clocks = [dt.time(8, 30, 15, 900_000), dt.time(8, 30, tzinfo=PARIS), "08:30", None]
    frame = pd.DataFrame({"n": range(len(clocks)), "c": pd.Series(clocks, dtype=object)})
    assert read(frame, "time") == [30_615, None, 30_600, None]


def test_csv_files_may_write_them_in_another_way(tmp_path):
    (tmp_path / "t.csv").write_text("n,c\n0,31.12.2024 08:30\n1,2024-12-31 08:30\n2,31.12.2024\n")
    source = Csv(str(tmp_path / "t.csv"), dates=["%d.%m.%Y", "%d.%m.%Y %H:%M"])
    assert read(source, "timestamp") == [seconds_of(dt.datetime(2024, 12, 31, 8, 30)), None, None]


def test_a_prepared_file_holds_them(tmp_path):
    table = pa.table({"n": [1, 2], "at": pa.array([MOMENT, None], pa.timestamp("us")), "c": ["08:30", "x"]})
    schema = {"at": Timestamp(), "c": Time(), "n": Int()}
    private = PrivateTable("t", source=table, unit=PrivacyUnit("n"), schema=schema)
    made = prepare(private, tmp_path / "t.duckdb")
    with DuckDB(threads=1) as engine:
        engine.attach("t", str(made.path), {"at": "timestamp", "c": "time"}, unit="n")
        rows = engine.fetch(sqlglot.parse_one("SELECT at, c FROM t", dialect="duckdb")).to_pylist()
    assert sorted(rows, key=str) == sorted(
        [{"at": seconds_of(MOMENT), "c": 30_600}, {"at": None, "c": None}], key=str
    )


@pytest.mark.parametrize("seconds", [FIRST, LAST, 0, -1, 951_782_399])
def test_seconds_and_moments_are_the_same(seconds):
    assert seconds_of(moment_at(seconds)) == seconds
    assert seconds_of(clock_at(seconds % 86_400)) == seconds % 86_400
    assert as_moment(moment_at(seconds).isoformat()) == moment_at(seconds)
