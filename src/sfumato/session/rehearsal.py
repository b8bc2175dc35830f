"""Made-up tables in the shape of the declared ones: to try questions on before anything is spent."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sfumato.ledger import Budget, Ledger
from sfumato.numeric.moments import DAY, seconds_of
from sfumato.random import simulation
from sfumato.schema import (
    Bool,
    ColumnType,
    Date,
    Enum,
    Float,
    Int,
    PrivateTable,
    PublicTable,
    Time,
    Timestamp,
    dataset_of,
    owners,
)
from sfumato.session.attaching import declaration_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from sfumato.engines.base import Engine
    from sfumato.session.session import Session

__all__ = ["REMARK", "made_up", "rehearsal"]

REMARK = "A rehearsal: these rows are made up from the declarations; no row was read and nothing was spent."

_UNITS = 2_000  # where their number is not declared
_MOST_UNITS = 50_000
_MISSING = 0.02
_FIRST_DAY = datetime.date(2024, 1, 1)
_FIRST_MOMENT = datetime.datetime(2024, 1, 1)
_WORDS = 20  # different texts in a column without a list of values


def rehearsal(
    tables: Iterable[PrivateTable | PublicTable],
    budgets: Mapping[str, Budget],
    *,
    seed: int = 0,
    engine: Engine | None = None,
) -> Session:
    """A session over made-up rows, with budgets of its own that live and die with it.

    Args:
        tables: As they are declared: their sources are not opened, but for those of public tables.
        budgets: Of each dataset.
        seed: The same seed makes the same rows.
        engine: What runs the reads; by default the one inside this process.
    """
    from sfumato.session.session import Session

    listed = list(tables)
    private = [table for table in listed if isinstance(table, PrivateTable)]
    sources = made_up(private, seed=seed)
    shown = [
        _with(table, sources[table.name]) if isinstance(table, PrivateTable) else table for table in listed
    ]
    ledger = Ledger.open(None)
    for name in dict.fromkeys(dataset_of(table, private) for table in private):
        members = [table for table in private if dataset_of(table, private) == name]
        ledger.register(name, declaration_of(members), budgets[name])
    session = Session(*shown, ledger=ledger, engine=engine)
    session.remark = REMARK
    return session


def made_up(tables: Iterable[PrivateTable], *, seed: int = 0) -> dict[str, pa.Table]:
    """Rows for each table by its name, from its declaration alone.

    Numbers are spread evenly over their bounds, values evenly over their lists; some are missing where they
    may be. Units have from one row to about twice as many as count. A row whose owner is in another table
    points to a made-up row there.
    """
    private = list(tables)
    made: dict[str, pa.Table] = {}
    for table in sorted(private, key=lambda each: len(owners(each, private))):
        made[table.name] = _rows(table, made, simulation(_seed(table.name, seed)))
    return made


def _seed(name: str, seed: int) -> int:
    return int.from_bytes(f"{seed} {name}".encode()[:30].ljust(30, b" "), "big")


def _rows(table: PrivateTable, made: Mapping[str, pa.Table], draw: Any) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    unit = table.unit
    units = min(table.size or _UNITS, _MOST_UNITS)
    columns: dict[str, Any] = {}
    if unit.column is None:
        count = table.rows or units
    else:
        each = draw.integers(1, 2 * min(unit.max_rows, 50) + 1, size=units)
        count = int(each.sum())
    if unit.is_via:
        parent = made[str(unit.table)]
        chosen = draw.integers(0, parent.num_rows, size=count)
        columns |= {
            here: parent.column(there).combine_chunks().take(pa.array(chosen)) for here, there in unit.on
        }
    elif unit.column is not None:
        columns[unit.column] = _ids(table.schema.get(unit.column), np.repeat(np.arange(units), each))
    for name, kind in table.schema.items():
        if name not in columns:
            columns[name] = _values(kind, count, draw)
    return pa.table(columns)


def _ids(kind: ColumnType | None, numbers: np.ndarray[Any, Any]) -> pa.Array:
    import pyarrow as pa

    if kind is None or kind.kind == "text":
        listed = kind.values if isinstance(kind, Enum) else None
        texts = [
            f"made up {number}" if listed is None else listed[number % len(listed)] for number in numbers
        ]
        return pa.array(texts, pa.string())
    if isinstance(kind, Int) and kind.lower is not None and kind.upper is not None:
        return pa.array(kind.lower + numbers % (kind.upper - kind.lower + 1), pa.int64())
    return pa.array(numbers, pa.int64())


def _values(kind: ColumnType, count: int, draw: Any) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    values: Any
    match kind:
        case Int():
            low, high = (0, 100) if kind.lower is None or kind.upper is None else (kind.lower, kind.upper)
            values = draw.integers(low, high, size=count, endpoint=True)
            native = pa.int64()
        case Float():
            ends = (
                (0.0, 1.0)
                if kind.lower is None or kind.upper is None
                else (float(kind.lower), float(kind.upper))
            )
            values, native = draw.uniform(*ends, size=count), pa.float64()
        case Enum():
            values = np.array(kind.values, dtype=object)[draw.integers(0, len(kind.values), size=count)]
            native = pa.string() if kind.kind == "text" else pa.int64()
        case Bool():
            values, native = draw.integers(0, 2, size=count).astype(bool), pa.bool_()
        case Date():
            first = kind.start or _FIRST_DAY
            days = 365 if kind.end is None else (kind.end - first).days
            values = np.datetime64(first) + draw.integers(0, days + 1, size=count).astype("timedelta64[D]")
            native = pa.date32()
        case Timestamp() | Time():
            since = seconds_of(kind.start or _FIRST_MOMENT)
            until = since + 365 * DAY if kind.end is None else seconds_of(kind.end)
            words = pa.int64() if kind.kind == "timestamp" else pa.int32()
            native = pa.timestamp("s") if kind.kind == "timestamp" else pa.time32("s")
            values = draw.integers(since, until, size=count, endpoint=True).astype(words.to_pandas_dtype())
            missing = draw.random(count) < _MISSING if kind.nullable else None
            return pa.array(values, words, mask=missing).cast(native)
        case _:
            values = np.array([f"text {place + 1}" for place in range(_WORDS)], dtype=object)
            values, native = values[draw.integers(0, _WORDS, size=count)], pa.string()
    missing = draw.random(count) < _MISSING if kind.nullable else None
    return pa.array(values, native, mask=missing)


def _with(table: PrivateTable, source: pa.Table) -> PrivateTable:
    return PrivateTable(
        table.name,
        source=source,
        unit=table.unit,
        schema=table.schema,
        dataset=table.dataset,
        version=None if table.states else table.version,
        size=table.size,
        rows=table.rows,
        profile=table.profile or None,
    )
