"""Tables of any size as Parquet on disk, each made once: more rows, groups, columns or files.

`SCALE_ROWS` sets the most rows (1e8 unless given: 4 GB on disk), `SCALE_FOLDER` a folder that keeps them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.visits import COUNTRIES, folder

MOST = int(float(os.environ.get("SCALE_ROWS", "1e8")))
KEPT = os.environ.get("SCALE_FOLDER")
CHUNK, ROW_GROUP = 1_000_000, 250_000
WIDE = 100_000  # rows of the wide table


def place() -> Path:
    """Where the files are."""
    return Path(KEPT) if KEPT else folder()


def made(name: str, write: Callable[[Path], None]) -> str:
    """The path of a file or folder, which is written once; half a one is never taken for a whole."""
    path = place() / name
    if not path.exists():
        part = path.with_name(f"part-{name}")
        write(part)
        part.rename(path)
    return str(path)


def _visits(rows: int, chunk: int) -> pa.Table:
    """One stretch of the visits: a tenth as many users as rows, with a long tail; keys of several sizes."""
    draw = np.random.default_rng([20240601, chunk])
    count, users = min(CHUNK, rows - chunk * CHUNK), max(rows // 10, 1)
    user = (users * draw.random(count) ** 2).astype(np.int64)  # the first has √(10 · rows) of them
    popular = 1.0 / np.arange(1, len(COUNTRIES) + 1) ** 1.1
    country = draw.choice(len(COUNTRIES), size=count, p=popular / popular.sum()).astype(np.int8)
    named = pa.DictionaryArray.from_arrays(pa.array(country), pa.array(COUNTRIES))
    return pa.table(
        {
            "user_id": (user * np.int64(2654435761)) % np.int64(2**40),
            "country": named.cast(pa.string()),
            "k": draw.integers(0, 10**6, count).astype(np.int32),
            "amount": draw.gamma(2.0, 40.0, count),
        }
    )


def visits(rows: int) -> str:
    """One Parquet file with so many rows, made stretch by stretch."""

    def write(path: Path) -> None:
        with pq.ParquetWriter(path, _visits(rows, 0).schema) as writer:
            for chunk in range(-(-rows // CHUNK)):
                writer.write_table(_visits(rows, chunk), row_group_size=ROW_GROUP)

    return made(f"visits-{rows}.parquet", write)


def grouped(groups: int) -> str:
    """The visits, of a tenth of the most rows, with a key `g` of so many values."""
    rows = max(MOST // 10, 1)

    def write(path: Path) -> None:
        duckdb.sql(f"SELECT user_id, amount, k % {groups} AS g FROM '{visits(rows)}'").write_parquet(
            str(path)
        )

    return made(f"grouped-{rows}-{groups}.parquet", write)


def wide(columns: int) -> str:
    """A key of ten values and so many numbers."""
    rows = min(WIDE, MOST)

    def write(path: Path) -> None:
        draw = np.random.default_rng(1)
        numbers = {f"x{i}": draw.random(rows) for i in range(columns)}
        pq.write_table(pa.table({"g": draw.integers(0, 10, rows), **numbers}), path)

    return made(f"wide-{rows}-{columns}.parquet", write)


def files(count: int) -> str:
    """A hundredth of the most rows, in so many files of one folder."""
    rows = max(MOST // 100, 1000)

    def write(path: Path) -> None:
        table = pq.read_table(visits(rows))
        path.mkdir()
        ends = (rows * i // count for i in range(count + 1))
        for i, (start, end) in enumerate(itertools.pairwise(ends)):
            pq.write_table(table.slice(start, end - start), path / f"{i:04}.parquet")

    return str(Path(made(f"files-{rows}-{count}", write)) / "*.parquet")
