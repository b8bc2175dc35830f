"""`Attached`: the tables of a session on one engine, each opened and checked once for all who ask."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato._dataclasses import dataclass
from sfumato.engines.base import UNIT_COLUMN, check_address, pointer_column
from sfumato.engines.public import some_rows
from sfumato.errors import InvalidParameter, SourceUnusable
from sfumato.numeric.zones import UTC, offsets_of
from sfumato.schema import (
    ColumnType,
    Enum,
    Int,
    PrivateTable,
    PublicTable,
    Text,
    dataset_of,
    owners,
    pointers_of,
)
from sfumato.sql.write.sources import id_types

if TYPE_CHECKING:
    from sfumato.engines.base import Engine

__all__ = ["Attached", "attach", "declaration_of"]

_MOST_VALUES = 10_000


@dataclass(frozen=True, slots=True)
class Attached:
    """Tables that an engine shows, however many sessions ask them.

    Attributes:
        engine: What runs the reads.
        tables: By name; public ones with the values of their columns.
        members: The private tables of each dataset.
        prepared: The tables whose rows have ranks; by name the columns of the grouping that they were
            prepared for, if any.
        unread: Of each private table, the columns that may have cells that could not be read.
        ended: Set once the session that attached them is closed.
        opened: What the engine has of other states, by its own names for them.
        turn: One at a time attaches more.
    """

    engine: Engine
    tables: Mapping[str, Any]
    members: Mapping[str, list[PrivateTable]]
    prepared: Mapping[str, tuple[str, ...]]
    unread: Mapping[str, frozenset[str]]
    ended: threading.Event = field(default_factory=threading.Event)
    opened: set[str] = field(default_factory=set)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def at(self, states: Mapping[str, str]) -> Attached:
        """The same tables in other states, whose files are opened if that was not done yet.

        Args:
            states: The name of a state for each table that is read in another.

        Raises:
            SourceUnusable: if files of a state are gone.
        """
        tables = {
            name: table.at(states[name]) if name in states else table for name, table in self.tables.items()
        }
        private = [table for table in tables.values() if isinstance(table, PrivateTable)]
        pointers, members = pointers_of(private), _by_dataset(private)
        with self.turn:
            for table in private:
                if table.relation not in self.opened:
                    _attach(self.engine, table, pointers.get(table.name, ()))
            for together in members.values():
                _check_ids(self.engine, together)
            _refuse_ranks(self.engine, private)
            self.opened.update(table.relation for table in private)
        unread = {table.name: self.engine.unread(table.relation) for table in private}
        return replace(
            self, tables=MappingProxyType(tables), members=members, unread=MappingProxyType(unread)
        )


def attach(engine: Engine, tables: Sequence[PrivateTable | PublicTable], *, whole: bool) -> Attached:
    """Open the sources and check what can be checked before anything is asked.

    Args:
        engine: A fresh one, or one that was handed in.
        tables: Private and public ones.
        whole: Whether to look for rows that would be lost: for the steward, since no row may decide what an
            analyst is told.

    Raises:
        SourceUnusable: if a source cannot be opened or lacks a declared column, or ids do not fit together.
    """
    private = [table for table in tables if isinstance(table, PrivateTable)]
    members = _by_dataset(private)
    pointers = pointers_of(private)
    for table in tables:  # all of them before the first read, which shuts the engine's doors
        _attach(engine, table, pointers.get(table.name, ()))
    shown = {
        table.name: _listed(engine, table) if isinstance(table, PublicTable) else table for table in tables
    }
    if whole:
        for table in tables:
            engine.check_whole(table.reads)
    for together in members.values():
        _check_ids(engine, together)
    _refuse_ranks(engine, private)
    ranked = [table for table in private if engine.is_prepared(table.relation)]
    groupings = {table.name: engine.grouping(table.relation) for table in ranked}
    unread = {table.name: engine.unread(table.relation) for table in private}
    return Attached(
        engine,
        MappingProxyType(shown),
        members,
        MappingProxyType(groupings),
        MappingProxyType(unread),
        opened={table.relation for table in private},
    )


def _refuse_ranks(engine: Engine, private: Sequence[PrivateTable]) -> None:
    """Refuse tables whose ranks were made of other units, or of the rows of all states together."""
    for table in private:
        if not engine.is_prepared(table.relation) or (table.unit.window is None and not table.states):
            continue
        made = "units without windows of time" if table.unit.window is not None else "one state alone"
        raise SourceUnusable(f"{table.name} was prepared for {made}: attach the table that it was made of.")


def _by_dataset(tables: Sequence[PrivateTable]) -> dict[str, list[PrivateTable]]:
    members: dict[str, list[PrivateTable]] = {}
    for table in tables:
        members.setdefault(dataset_of(table, tables), []).append(table)
    return members


def declaration_of(members: Sequence[PrivateTable]) -> dict[str, Any]:
    """What the ledger keeps on record: whose privacy, which bounds, which state of the data."""
    roots = [owners(table, members)[-1] for table in members]
    units = {(root.unit.column, root.unit.adjacency, root.unit.window, root.unit.zone) for root in roots}
    if len(units) > 1:
        raise InvalidParameter("Tables that share a dataset must protect the same unit.")
    column, adjacency, window, zone = units.pop()
    # With the offsets: what a window is must not move with the tables of zones of a machine.
    ended = {} if zone == UTC else {"zone": zone, "offsets": offsets_of(zone).digest}
    return {
        "unit": {"column": column, "adjacency": adjacency} | ({"window": window} if window else {}) | ended,
        "schema": {
            table.name: {
                "max_groups": table.unit.max_groups,
                "max_rows": "auto" if table.unit.auto else table.unit.max_rows,
                "columns": {name: kind.to_dict() for name, kind in table.schema.items()},
                **({"time": table.unit.time} if window else {}),
                **(
                    {"via": {"table": table.unit.table, "on": [list(pair) for pair in table.unit.on]}}
                    if table.unit.is_via
                    else {}
                ),
            }
            for table in members
        },
        "version": {table.name: table.newest for table in members},
    }


def _fits(values: list[Any]) -> bool:
    """Whether values can be an enum's: whole numbers beyond 2**53 cannot."""
    return all(isinstance(value, str) or abs(value) <= 2**53 for value in values)


def _check_ids(engine: Engine, members: Sequence[PrivateTable]) -> None:
    """Refuse tables of one dataset whose ids have different types, and pointers with different ends.

    Put together, two people could be one, or rows could reach owners that they do not point to.
    """
    shown = {table.name: table.relation for table in members}
    named = [table.name for table in members if not (table.unit.is_row or table.unit.is_via)]
    links = [(table.name, a, str(table.unit.table), b) for table in members for a, b in table.unit.on]
    columns = [(name, UNIT_COLUMN) for name in named]
    columns += [(name, pointer_column(column)) for a, b, c, d in links for name, column in ((a, b), (c, d))]
    if len(columns) < 2:
        return
    asked = [(shown[name], column) for name, column in columns]
    (row,) = engine.fetch(id_types(asked, engine.dialect)).to_pylist()
    types = dict(zip(columns, row.values(), strict=True))
    for here, a, there, b in links:
        if _differ(types[here, pointer_column(a)], types[there, pointer_column(b)]):
            raise SourceUnusable(
                f"{here}.{a} and {there}.{b} have different types in their sources, and rows would not find "
                "their owners. Write both as one type (a CSV file has text)."
            )
    if _differ(*(types[name, UNIT_COLUMN] for name in named)):
        raise SourceUnusable(
            f"The ids of {', '.join(named)} have different types in their sources, and rows of one person "
            "would not be recognised. Write both as one type (a CSV file has text), or declare the owner: "
            'unit = { via = "people", on = "person_id" }.'
        )


def _differ(*types: str) -> bool:
    """Whether columns of these types cannot be compared as they are; one of nothing but NULL always can."""
    return len(set(types) - {'"NULL"', "NULL"}) > 1


def _attach(engine: Engine, table: PrivateTable | PublicTable, pointers: Sequence[str]) -> None:
    check_address(table.source, engine.schemes)
    kinds = {name: kind.kind for name, kind in table.schema.items()}
    unit = table.unit.column if isinstance(table, PrivateTable) and not table.unit.is_via else None
    engine.attach(table.relation, table.reads, kinds, unit=unit, pointers=pointers)


def _listed(engine: Engine, table: PublicTable) -> PublicTable:
    """A public table with the values of its columns, which anyone may know."""
    if table.key and not engine.is_unique(table.name, table.key):
        raise SourceUnusable(f"The key of the public table {table.name} is not unique; declare one that is.")
    schema = dict(table.schema)
    for name, kind in table.schema.items():
        listed = isinstance(kind, Text) or (isinstance(kind, Int) and kind.lower is None)
        if listed and (values := engine.values(table.name, name, _MOST_VALUES)):
            schema[name] = Enum(*values) if _fits(values) else kind
    together = _combinations(engine, table.name, schema)
    return PublicTable(
        table.name,
        source=table.source,
        schema=schema,
        key=table.key or None,
        version=table.version,
        listed=together,
    )


def _combinations(
    engine: Engine, table: str, schema: Mapping[str, ColumnType]
) -> tuple[tuple[str, ...], frozenset[tuple[Any, ...]]] | None:
    """Which values of listed columns are together in a row of a public table; None if there are too many."""
    columns = tuple(name for name, kind in schema.items() if isinstance(kind, Enum) and kind.kind != "float")
    if len(columns) < 2:
        return None
    rows = engine.fetch(some_rows(table, columns, _MOST_VALUES))
    if rows.num_rows > _MOST_VALUES:
        return None
    return columns, frozenset(tuple(row.values()) for row in rows.to_pylist())
