"""Ranks by one sort: those that windows give, whatever the ids are and however often hashes tie."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import ranking
from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import DUCKDB
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.prepare import prepare

pytestmark = pytest.mark.duckdb  # prepared files

SCHEMA = {"t": sf.Text(), "f": sf.Float(0, 10), "i": sf.Int(0, 99)}
KINDS = {name: kind.kind for name, kind in SCHEMA.items()}
SALT = b"a salt of tests"
IDS = {
    "integer": (pa.int64(), lambda i: i * 7 - 3),
    "unsigned": (pa.uint64(), lambda i: 2**64 - 1 - i),
    "text": (
        pa.string(),
        lambda i: ("", "a", "a\x00", "é", "e\u0301", "A", "z" * 40)[i % 7] + "x" * (i // 7),
    ),
    "float": (pa.float64(), lambda i: (0.0, -0.0, -math.inf, math.inf, 5e-324)[i] if i < 5 else i / 3),
    "bytes": (pa.binary(), lambda i: i.to_bytes(1 + i % 3 + i // 256, "little")),
    "decimal": (pa.decimal128(30, 2), lambda i: Decimal(i - 5) / 4),
    "date": (pa.date32(), lambda i: i - 7),
}
"""Types of ids, each with values that an order or an equality may see in its own way."""
WEAK = {
    "hash": DUCKDB.digest.sql,
    "few values": lambda count: f"hash(hash({{{count - 1}}})) % 3",
    "one value": lambda count: f"0 * length(concat({', '.join(f'{{{i}}}' for i in range(count))}))",
}
"""Digests under which rows of one unit tie never, often and always."""


def some_rows(seed: int, kind: str, users: int = 20) -> pa.Table:
    """Rows of users with 1 to 9 of them; some are the same, some differ in what no order tells apart."""
    draw = random.Random(seed)
    unit, made = IDS[kind]
    users = [made(user) for user in range(users) for _ in range(draw.randint(1, 9))]
    draw.shuffle(users)
    columns = {
        "t": (pa.string(), ["a", "b", "a\x00", "", None]),
        "f": (pa.float64(), [0.0, -0.0, math.nan, -math.nan, 3.25, 1e300, None]),
        "i": (pa.int64(), [1, 2, None]),
    }
    rows = {name: pa.array(draw.choices(values, k=len(users)), of) for name, (of, values) in columns.items()}
    return pa.table({"user": pa.array(users, unit), **rows})


@pytest.fixture(scope="module")
def connections():
    """An instance for each number of threads, in which rows are written in their order."""
    with DuckDB() as engine:
        made = {}
        for threads in (1, 2, 4):
            made[threads] = engine._connect()
            made[threads].execute("SET preserve_insertion_order = true")
            made[threads].execute(f"SET threads = {threads}")
        yield made


def lines(rows) -> Counter:
    """The rows as text; which of its zeros an id of floats is does not matter."""
    return Counter(repr((row[0] or 0, *row[1:])) for row in rows)


def ranked(connection, rows, digest, change=lambda text: text):
    """The rows that one sort gives, None where it cannot rank them; and those that windows give."""
    dialect = replace(DUCKDB, digest=replace(DUCKDB.digest, sql=WEAK[digest]))
    source = connection.from_arrow(rows).project(f'"user" AS "{UNIT_COLUMN}", * EXCLUDE ("user")')
    source.create_view("x", replace=True)
    fast, slow = (build("x", KINDS, SALT, dialect) for build in (ranking.statement, ranking.by_windows))
    whole = lines(connection.execute(slow).fetchall())
    try:
        return lines(connection.execute(change(fast)).fetchall()), whole
    except duckdb.Error as error:
        if ranking.OUT_OF_ORDER not in str(error):
            raise
        return None, whole


def agrees(connection, rows, digest) -> bool:
    """Whether one sort ranked the rows; it never ranks them otherwise than windows do."""
    fast, whole = ranked(connection, rows, digest)
    assert fast is None or fast == whole
    return fast is not None


@pytest.mark.parametrize("kind", IDS)
def test_ranks_by_one_sort_are_those_by_windows(connections, kind):
    rows = some_rows(1, kind)
    assert agrees(connections[2], rows, "hash")
    assert not agrees(connections[2], rows, "one value")


@pytest.mark.stats
@pytest.mark.parametrize("kind", IDS)
def test_ranks_by_one_sort_are_those_by_windows_on_many_tables(connections, kind):
    done = Counter()
    for seed, digest, threads in itertools.product(range(9), WEAK, connections):
        rows = some_rows(seed, kind, users=(1, 20, 800)[seed % 3])
        done[digest] += agrees(connections[threads], rows, digest)
    assert done["hash"] == 9 * len(connections)
    assert done["few values"] < done["hash"]


@pytest.mark.parametrize("order", ["ORDER BY u DESC, h", "ORDER BY h", "ORDER BY u, h DESC", ""])
def test_rows_that_come_in_another_order_are_not_ranked(connections, order):
    rows = some_rows(2, "integer")
    fast, _ = ranked(connections[1], rows, "hash", lambda text: text.replace("ORDER BY u, h", order))
    assert fast is None


@pytest.mark.parametrize("digest", WEAK)
def test_a_file_is_written_whether_rows_tie_or_not(tmp_path, monkeypatch, digest):
    monkeypatch.setattr(DuckDB, "_dialect", replace(DUCKDB, digest=replace(DUCKDB.digest, sql=WEAK[digest])))
    rows = some_rows(3, "integer")
    unit = sf.PrivacyUnit("user", max_groups=2)
    table = sf.PrivateTable("x", source=rows, unit=unit, schema=SCHEMA)
    path = prepare(table, tmp_path / "p.duckdb", salt=SALT).path
    with DuckDB() as engine, duckdb.connect(str(path), read_only=True) as file:
        _, whole = ranked(engine._connect(), rows, digest)
        assert lines(file.execute("SELECT * FROM x").fetchall()) == whole
