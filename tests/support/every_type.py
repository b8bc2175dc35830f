"""Columns of every native type with extreme values, in every kind of source."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq

__all__ = ["DUCKDB", "arrow_columns", "duckdb_sources", "mixed_sources", "object_frames", "sources"]

LEAST, MOST = -(2**63), 2**63 - 1
SECONDS = 253402214400  # 9999-12-31
LONG = 7
"""How many rows each column has; row 0 is ordinary."""


def _raw(native: Any, *values: int) -> pa.Array:
    width = pa.int32() if native.bit_width == 32 else pa.int64()
    return pa.array([0, *values, *[None] * (LONG - 1 - len(values))], width).view(native)


def _of(native: Any, *values: Any) -> pa.Array:
    return pa.array([*values, *[None] * (LONG - len(values))], native)


def _broken_text(native: Any) -> pa.Array:
    held = pa.array([b"a", b"\xff\xfe", b"\xc3", b"ok", b"", b"\xed\xa0\x80", b"z"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), LONG, held.buffers())
    return text if native == pa.string() else text.cast(native)


def arrow_columns(*, text: bool = True) -> dict[str, pa.Array]:
    """A column of each Arrow type; `text`: also one that is not UTF-8."""
    made: dict[str, pa.Array] = {}
    for unit, zone in itertools.product(("s", "ms", "us", "ns"), (None, "UTC", "America/New_York")):
        scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 1}[unit]
        native = pa.timestamp(unit, tz=zone)
        made[f"timestamp {unit} {zone}"] = _raw(native, LEAST, MOST, LEAST + 1, MOST - 1, SECONDS * scale)
    made["date32"] = _raw(pa.date32(), -(2**31), 2**31 - 1)
    made["date64"] = _raw(pa.date64(), LEAST, MOST, 1)
    for bits in (8, 16, 32, 64):
        made[f"int{bits}"] = _of(getattr(pa, f"int{bits}")(), 0, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        made[f"uint{bits}"] = _of(getattr(pa, f"uint{bits}")(), 0, 2**bits - 1)
    for native in (pa.float16(), pa.float32(), pa.float64()):
        made[str(native)] = _of(native, 0.0, math.nan, math.inf, -math.inf, -0.0, 6e4)
    made["float64 whole"] = _of(pa.float64(), 1.0, 2.0**53, 2.0**63, -(2.0**63), 1e300, 0.5)
    for digits, scale in ((4, 2), (18, 0), (38, 0), (38, 38), (38, 10)):
        ends = [decimal.Decimal((sign, (9,) * digits, -scale)) for sign in (0, 1)]
        made[f"decimal {digits} {scale}"] = _of(pa.decimal128(digits, scale), decimal.Decimal(0), *ends)
    made["decimal beyond"] = pa.Array.from_buffers(
        pa.decimal128(4, 2), LONG, [None, pa.array([0, 0, *[MOST] * (2 * LONG - 2)]).buffers()[1]]
    )
    made["decimal256"] = _of(pa.decimal256(76, 0), decimal.Decimal(1), decimal.Decimal(10) ** 75)
    made["bool"] = _of(pa.bool_(), True, False)
    texts = ("1", "9" * 400, "1e999", "infinity", "294247-01-10 04:00:55", "\x00")
    for native in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        made[f"text {native}"] = _of(native, *texts)
    if text:
        made["broken text"] = _broken_text(pa.string())
    made["dates as text"] = _of(pa.string(), "2020-01-01", "-290309-12-21 (BC)", "5881580-07-11", "epoch")
    made["nothing"] = pa.nulls(LONG)
    made["binary"] = _of(pa.binary(), b"a", b"\xff")
    made["binary 16"] = _of(pa.binary(16), b"a" * 16)
    for native in (pa.time32("s"), pa.time32("ms")):
        made[str(native)] = _raw(native, -(2**31), 2**31 - 1)
    for native in (pa.time64("us"), pa.time64("ns"), pa.duration("s"), pa.duration("us")):
        made[str(native)] = _raw(native, LEAST, MOST)
    made["list"] = _of(pa.list_(pa.int64()), [1], [])
    return made


def _numbered(columns: dict[str, pa.Array]) -> pa.Table:
    return pa.table({"n": pa.array(range(LONG)), **columns})


def _written(table: pa.Table, folder: Path, suffix: str) -> str:
    path = str(folder / f"t{suffix}")
    if suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".arrow":
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif suffix == ".stream.arrow":
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    else:
        feather.write_feather(table, path)
    return path


def _fits(columns: dict[str, pa.Array], works: Callable[[pa.Table], object]) -> dict[str, pa.Array]:
    """The columns that another library takes at all, tried one by one."""
    found = {}
    for name, column in columns.items():
        try:
            works(pa.table({name: column}))
        except Exception:
            continue
        found[name] = column
    return found


def sources(folder: Path) -> Iterator[tuple[str, Any]]:
    """Every kind of source that Arrow can write, with as many of the types as it takes."""
    columns, plain = arrow_columns(), arrow_columns(text=False)
    yield "table", _numbered(columns)
    yield "batch", _numbered(columns).to_batches()[0]
    in_files = _fits(plain, lambda table: pq.write_table(table, folder / "try.parquet"))
    yield "parquet", _written(_numbered(in_files), folder, ".parquet")
    for suffix in (".arrow", ".stream.arrow", ".feather"):
        yield suffix, _written(_numbered(columns), folder, suffix)
    yield "dataset", ds.dataset(_written(_numbered(columns), folder, ".arrow"), format="ipc")
    yield "dataset of parquet", ds.dataset(_written(_numbered(in_files), folder, ".parquet"))
    yield "dataset in memory", ds.dataset(_numbered(columns))
    yield "pandas", _numbered(_fits(plain, lambda table: table.to_pandas())).to_pandas(ignore_metadata=True)
    yield "pandas of arrow", _numbered(plain).to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
    yield "polars", pl.from_arrow(_numbered({k: v for k, v in plain.items() if k != "decimal256"}))
    pyarrow.csv.write_csv(_numbered(_fits(plain, _as_text)), folder / "t.csv")
    yield "csv", str(folder / "t.csv")


def _as_text(table: pa.Table) -> None:
    pyarrow.csv.write_csv(table, pa.BufferOutputStream())


def object_frames(firsts: tuple[Any, ...] = ("1", "2020-01-01", True)) -> Iterator[tuple[str, Any]]:
    """Frames of Python objects, in which no cell may decide how another is read."""
    odd: list[Any] = [
        *("07", "\ud800", "a\x00", 7, 7.0, 0.5, 10**5000, True, math.nan, math.inf, None, b"\xff", [1], {}),
        *(
            decimal.Decimal("1.50"),
            decimal.Decimal("sNaN"),
            decimal.Decimal("1e999999"),
            object(),
            pd.NaT,
            pd.NA,
        ),
        *(datetime.date(2020, 1, 1), datetime.datetime(9999, 12, 31), uuid.UUID(int=1), pd.Timestamp(0)),
        *(
            np.int64(7),
            np.float32(0.1),
            np.datetime64("2020-01-01"),
            np.array([1, 2]),
            pd.Timestamp(0, tz="UTC"),
        ),
        datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=9))),
    ]
    pairs = list(itertools.product(firsts, odd))
    columns: dict[str, Any] = {
        f"c{i}": pd.Series([first, cell, None], dtype=object) for i, (first, cell) in enumerate(pairs)
    }
    columns["category"] = pd.Categorical.from_codes([0, 1, -1], pd.Index(["1", 2], dtype=object))
    yield "pandas", pd.DataFrame({"n": [0, 1, 2], **columns})
    objects = {
        f"c{i}": pl.Series([first, cell, None], dtype=pl.Object) for i, (first, cell) in enumerate(pairs)
    }
    yield "polars", pl.DataFrame({"n": [0, 1, 2], **objects})


DUCKDB: dict[str, tuple[str, ...]] = {
    **{
        f"{sign}{name}": (
            "0",
            str((2**bits - 1) if sign else 2 ** (bits - 1) - 1),
            "0" if sign else str(-(2 ** (bits - 1))),
        )
        for name, bits in (
            ("TINYINT", 8),
            ("SMALLINT", 16),
            ("INTEGER", 32),
            ("BIGINT", 64),
            ("HUGEINT", 128),
        )
        for sign in ("", "U")
    },
    "BIGNUM": ("0", "9" * 19, "9" * 25, "-" + "9" * 40, "1" + "0" * 400, "9" * 5000),
    "FLOAT": ("0", "nan", "inf", "-inf", "3.4e38", "-0.0"),
    "DOUBLE": ("0", "nan", "inf", "-inf", "1.7e308", "9.3e18"),
    "DECIMAL(4,2)": ("0", "99.99", "-99.99"),
    "DECIMAL(38,0)": ("0", "9" * 38, "-" + "9" * 38),
    "DECIMAL(38,38)": ("0", "0." + "9" * 38),
    "BOOLEAN": ("true", "false"),
    "VARCHAR": ("1", "9" * 400, "1e999", "infinity", "290309-12-22 (BC)", "1e18446744073709551616"),
    "DATE": ("2020-01-01", "infinity", "-infinity", "5877642-06-25 (BC)", "5881580-07-10", "9999-12-31"),
    "TIMESTAMP": ("2020-01-01", "infinity", "-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10"),
    "TIMESTAMP_S": ("2020-01-01", "infinity", "-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10"),
    "TIMESTAMP_MS": ("2020-01-01", "infinity", "-infinity", "290309-12-22 (BC) 00:00:00", "294247-01-10"),
    "TIMESTAMP_NS": ("2020-01-01", "infinity", "-infinity", "1677-09-22", "2262-04-11 23:47:16.854775806"),
    "TIMESTAMPTZ": ("2020-01-01", "infinity", "-infinity", "290309-12-22 (BC) 00:00:00+00", "294247-01-10"),
    "TIMESTAMPTZ_NS": ("2020-01-01", "infinity", "-infinity", "1677-09-22", "2262-04-11"),
    "TIME": ("00:00:00", "24:00:00"),
    "TIME_NS": ("00:00:00", "24:00:00"),
    "TIMETZ": ("00:00:00", "24:00:00-1559", "00:00:00+1559"),
    "INTERVAL": ("1 day", "178956970 years", "2147483647 days"),
    "BIT": ("0", "1" * 200),
    "UUID": ("00000000-0000-0000-0000-000000000001", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "BLOB": ("", "\\xFF\\xFE"),
    "JSON": ("1", "null", '"a"', "{}", "1e999"),
    "ENUM('1', 'a', '', 'nan', 'infinity')": ("1", "a", "", "nan", "infinity"),
    "INTEGER[]": ("[1]", "[]"),
}


def duckdb_sources(folder: Path) -> Iterator[tuple[str, Any]]:
    """The native types of DuckDB in a file of its own, and in a Parquet and a CSV file that it writes."""
    file = str(folder / "t.duckdb")
    with duckdb.connect(file) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        named = [f'"{native}" {native}' for native in DUCKDB]
        connection.execute(f"CREATE TABLE t (n INTEGER, {', '.join(named)})")
        marks = ", ".join("?" * (len(DUCKDB) + 1))
        for i in range(LONG):
            cells = [values[i] if i < len(values) else None for values in DUCKDB.values()]
            connection.execute(f"INSERT INTO t VALUES ({marks})", [i, *cells])
        connection.execute(f"COPY t TO '{folder / 'native.csv'}' (HEADER)")
        skipped = ", ".join(f'"{native}"' for native in ("BIGNUM", "BIT", "TIMESTAMPTZ_NS"))
        connection.execute(f"COPY (SELECT * EXCLUDE ({skipped}) FROM t) TO '{folder / 'native.parquet'}'")
    yield "duckdb", file
    yield "csv by duckdb", str(folder / "native.csv")
    yield "parquet by duckdb", str(folder / "native.parquet")


FEW = (
    *("timestamp ms None", "timestamp ms UTC", "timestamp us None", "timestamp ns None", "date32", "int32"),
    *("int64", "float64 whole", "decimal 38 0", "decimal256", "text string", "nothing"),
)


def mixed_sources(folder: Path, *, few: bool = False) -> Iterator[tuple[str, Any]]:
    """Two files in which a column has any two different types, as Parquet and as an Arrow dataset."""
    columns = _fits(arrow_columns(text=False), lambda table: pq.write_table(table, folder / "try.parquet"))
    names = [name for name in columns if not few or name in FEW]
    pairs = list(itertools.permutations(names, 2))
    sides = [{f"{a} | {b}": columns[(a, b)[i]] for a, b in pairs} for i in (0, 1)]
    for i, side in enumerate(sides):
        (folder / "mixed").mkdir(exist_ok=True)
        pq.write_table(_numbered(side), folder / "mixed" / f"{i}.parquet")
    yield "parquet files", str(folder / "mixed")
    yield "dataset of files", ds.dataset(str(folder / "mixed"))
