"""Columns of every type that all engines store, at their extremes: are they read alike?"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from sfumato.engines import DuckDB, Engine
from sfumato.engines.base import UNIT_COLUMN
from sfumato.engines.dialect import PORTABLE
from sfumato.errors import EngineFailed, SourceUnusable
from sfumato.numeric.moments import DAY, FIRST, LAST
from sfumato.sql.write.pieces import column, select
from sfumato.sql.write.pieces import table as table_of

__all__ = ["AS_ID", "COLUMNS", "differences", "rows"]

AS_ID = "id"
Cells: TypeAlias = list[Any] | None
KINDS = ("integer", "float", "boolean", "text", "date", "timestamp", "time")
_SECONDS = [0, 1, -1, FIRST, FIRST - 1, LAST, LAST + 1, 9 * 10**12, -2 * 10**11, 1709251198, None]
_DAYS = [0, 1, -1, FIRST // DAY, FIRST // DAY - 1, LAST // DAY, LAST // DAY + 1, 106762939, 106762940]
_WORDS = ("1", "0", "true", "T", "f", "no", "yes", "on", "off", " 1 ", " true", "2", "", "a\u0308")
_MOMENTS = (
    *("2020-01-01", "2020-1-1", "2020-02-30", " 2020-01-01 ", "2020-01-01 ", "2020-01-01 10:00:00 "),
    *("infinity", "epoch", "20200101", "2020/01/01", "10000-01-01", "0001-01-01", "0000-01-01", "10:00 "),
)


def _decimals(digits: int, scale: int, *values: str) -> pa.Array:
    most = "9" * (digits - scale) + ("." + "9" * scale if scale else "")
    return pa.array([None, *map(decimal.Decimal, (*values, most, f"-{most}"))], pa.decimal128(digits, scale))


def _micros(zone: str | None) -> pa.Array:
    return pa.array(
        [None if second is None else second * 10**6 + 5 for second in _SECONDS], pa.timestamp("us", zone)
    )


COLUMNS: Mapping[str, pa.Array] = {
    "decimal 5 2": _decimals(5, 2, "0", "0.40", "-0.49", "0.50", "1.50", "2.50"),
    "decimal 18 0": _decimals(18, 0, "0", "-5"),
    "decimal 38 0": _decimals(38, 0, "0", "1", str(2**63 - 1), str(2**63), str(-(2**63))),
    "decimal 38 10": _decimals(38, 10, "1e-10", "9223372036854775807.5", "-9223372036854775808.5", "0.5"),
    "decimal 38 38": _decimals(38, 38, "0", "0.5", "0.4"),
    "float": pa.array([0.0, 0.4, 0.5, 2.5, math.nan, math.inf, -math.inf, 1e-45, 3e38, -0.0], pa.float32()),
    "double": pa.array(
        [0.0, 0.4, 0.5, 2.5, 1.5, math.nan, math.inf, -math.inf, 5e-324, 1.7e308, 9.3e18, 2.0**63, -0.0, None]
    ),
    **{
        f"int{bits}": pa.array([0, 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), None], f"int{bits}")
        for bits in (8, 16, 32)
    },
    "int64": pa.array([0, 2**63 - 1, -(2**63), LAST, LAST + 1, FIRST, FIRST - 1, DAY - 1, DAY, -1, None]),
    "uint32": pa.array([0, 2**32 - 1, None], pa.uint32()),
    "uint64": pa.array([0, 2**64 - 1, 2**63, None], pa.uint64()),
    "boolean": pa.array([True, False, None]),
    "timestamp us": _micros(None),
    "timestamp us UTC": _micros("UTC"),
    "timestamp s": pa.array(_SECONDS, pa.timestamp("s")),
    "date": pa.array([*_DAYS, -2440588, 2145031948, None], pa.int32()).cast(pa.date32()),
    "words": pa.array([*_WORDS, None]),
    "moments": pa.array([*_MOMENTS, None]),
    "dictionary": pa.array(["1", "a", None, "1"]).dictionary_encode(),
}
"""Days are those that PostgreSQL has."""


def rows() -> pa.Table:
    """All columns in one table, with the number of each row."""
    longest = max(map(len, COLUMNS.values()))
    padded = {
        name: pa.concat_arrays([cells, pa.nulls(longest - len(cells), cells.type)])
        for name, cells in COLUMNS.items()
    }
    return pa.table({"n": range(longest), **padded})


def differences(other: Engine, source: Any, *, ids: bool = True) -> tuple[dict[str, list[str]], list[str]]:
    """What another engine reads otherwise than DuckDB, by column and kind; and the reads that failed.

    Args:
        other: The engine.
        source: The table of `rows` as it takes it.
        ids: Whether columns are read as ids of units, too: a read for each.
    """
    found, failed, table = dict[str, list[str]](), list[str](), rows()
    with DuckDB(threads=1) as duckdb:
        for kind in KINDS:
            mine, its = _columns(duckdb, table, kind), _columns(other, source, kind)
            for name in COLUMNS:
                _note(name, kind, mine.get(name, []), its.get(name, []), found, failed)
        for name in COLUMNS if ids else ():
            digests = _ids(duckdb, table, name), _ids(other, source, name)
            _note(name, AS_ID, *digests, found, failed)
    return found, failed


def _note(
    name: str, kind: str, mine: Cells, its: Cells, found: dict[str, list[str]], failed: list[str]
) -> None:
    what, shown = f"{name} as {kind}", _plain(COLUMNS[name]).to_pylist()
    if mine is None or its is None:
        failed.append(what)
    elif [] in (mine, its):
        found |= {what: ["refused"]} if mine != its else {}
    elif list(map(repr, mine)) != list(map(repr, its)):
        trios = zip(shown, mine, its, strict=False)
        found[what] = [f"{cell}: {a}, {b}" for cell, a, b in trios if repr(a) != repr(b)]


def _columns(engine: Engine, source: Any, kind: str) -> dict[str, Cells]:
    """The values of all columns that can have a kind; None where a read fails."""
    names, own = list(COLUMNS), engine.schema(source)
    while names:
        try:
            engine.attach("t", source, {"n": "integer", **dict.fromkeys(names, kind)})  # type: ignore[arg-type]
            break
        except SourceUnusable as refusal:
            named = re.search(r'column "([^"]+)"', str(refusal))
            assert named is not None
            names = [name for name in names if own[name] != own[named[1]]]  # it is refused by what it holds
    together = _read(engine, {name: column(name) for name in names})
    if together is not None:
        return dict(together)
    alone = {name: _read(engine, {name: column(name)}) for name in names}
    return {name: None if cells is None else cells[name] for name, cells in alone.items()}


def _ids(engine: Engine, source: Any, name: str) -> Cells:
    """The digests of ids; none if they are refused, None if the read fails."""
    try:
        engine.attach("t", source, {"n": "integer"}, unit=name)
    except SourceUnusable:
        return []
    digest = engine.dialect.choosing_by(PORTABLE.name).chosen_by(column(UNIT_COLUMN))
    found = _read(engine, {name: digest})
    return None if found is None else found[name]


def _read(engine: Engine, wanted: Mapping[str, Any]) -> dict[str, list[Any]] | None:
    try:
        found = engine.fetch(select([("n", column("n")), *wanted.items()], table_of("t")))
    except EngineFailed:
        return None
    found = found.sort_by("n")
    return {name: _plain(found.column(name)).to_pylist() for name in wanted}


def _plain(cells: Any) -> Any:
    """Days and moments as numbers: Python has not all of them."""
    if pa.types.is_date32(cells.type):
        return cells.cast(pa.int32())
    return cells.cast(pa.int64()) if pa.types.is_timestamp(cells.type) else cells
