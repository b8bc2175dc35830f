"""The table that queries are measured on: visits of users with a long tail, as a Parquet file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf

DELTA = "1e-7"
COUNTRIES = tuple(f"C{i:02d}" for i in range(30))


@cache
def folder() -> Path:
    """A folder that lives as long as this process."""
    return Path(_HOLDER.name)


_HOLDER = tempfile.TemporaryDirectory(prefix="visits-")


@cache
def visits(rows: int) -> Path:
    """The path of a table with this many rows: a tenth as many users with 1 to 50 visits, 30 countries."""
    generator = np.random.default_rng(20240601)
    users = rows // 10
    weights = 1.0 / np.arange(1, 51)
    counts = generator.choice(np.arange(1, 51), size=users, p=weights / weights.sum())
    user = np.repeat(np.arange(users, dtype=np.int64), counts)
    generator.shuffle(user)
    user = (
        user[:rows] if len(user) >= rows else np.append(user, generator.integers(0, users, rows - len(user)))
    )
    user = (user * np.int64(2654435761)) % np.int64(2**40) + 1000
    popularity = 1.0 / np.arange(1, 31) ** 1.1
    country = generator.choice(30, size=rows, p=popularity / popularity.sum()).astype(np.int8)
    day = generator.integers(0, 365, rows).astype(np.int32)
    amount = np.clip(generator.lognormal(3.5, 1.0, rows), 0, 1000)
    age = np.clip(generator.normal(45, 17, rows), 18, 99).astype(np.int32)
    named = pa.DictionaryArray.from_arrays(pa.array(country), pa.array(COUNTRIES)).cast(pa.string())
    table = pa.table({"user_id": user, "country": named, "day": day, "amount": amount, "age": age})
    path = folder() / f"visits-{rows}.parquet"
    pq.write_table(table, path, row_group_size=250_000)
    return path


def asked(one: sf.Session, text: str) -> Callable[[], object]:
    """A call that asks of a new ledger in memory each time, and gives the table."""
    renew = forgetting(one)

    def call() -> object:
        renew()
        release = one.sql(text).release(epsilon=1, delta=DELTA)
        assert not release.free
        return release.table

    return call


def forgetting(one: sf.Session) -> Callable[[], None]:
    """A call that gives a session a new ledger in memory: no answer comes from the one before."""
    known = one.ledger.datasets()

    def renew() -> None:
        one.ledger = sf.Ledger.open(None)
        one._datasets = {
            each.name: one.ledger.register(each.name, each.declaration, each.budget) for each in known
        }

    return renew
