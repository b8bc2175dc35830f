"""Tables as a client knows them: all that is declared, and neither rows nor where they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from sfumato.schema import PrivacyUnit, PrivateTable, PublicTable, State, column_from_dict
from sfumato.session.carried.values import pack, unpack

__all__ = ["pack_tables", "unpack_tables"]

_ELSEWHERE = "on the server"
_LONGEST = 1_000  # letters of a name


def pack_tables(tables: Iterable[PrivateTable | PublicTable], datasets: Mapping[str, str]) -> list[Any]:
    """What is declared of tables, as plain data.

    Args:
        tables: As a session has them; of public ones the values of their columns are declared, too.
        datasets: Whose budget each private one draws on.

    Privacy:
        Nothing is read off private rows: columns, bounds, unit and state are the steward's words. The names
        of files are left out, only a digest of them tells one list from another.
    """
    return [
        _private(table, datasets[table.name]) if isinstance(table, PrivateTable) else _public(table)
        for table in tables
    ]


def _private(table: PrivateTable, dataset: str) -> dict[str, Any]:
    states = {name: _state(state) for name, state in table.states.items()}
    return table.declaration() | {"dataset": dataset, "size": table.size, "states": states}


def _state(state: State) -> dict[str, Any]:
    if state.column is not None:
        return {"column": state.column, "last": pack(state.last)}
    if state.snapshot is not None:
        return {"snapshot": state.snapshot}
    return {"files": hashlib.sha256("\n".join(state.files).encode("utf-8", "surrogatepass")).hexdigest()}


def _public(table: PublicTable) -> dict[str, Any]:
    if table.listed is None:
        return table.declaration() | {"listed": None}
    columns, rows = table.listed
    return table.declaration() | {"listed": [list(columns), pack(sorted(rows, key=repr))]}


def unpack_tables(data: Iterable[Mapping[str, Any]]) -> dict[str, PrivateTable | PublicTable]:
    """The tables by name, without a source.

    Raises:
        InvalidParameter, ValueError, TypeError or KeyError: if they are none.
    """
    return {_name(one["table"]): _table(one) for one in data}


def _name(name: str) -> str:
    """A name that can be shown in a sentence."""
    if not isinstance(name, str) or len(name) > _LONGEST:
        raise ValueError("no name")
    return name


def _table(data: Mapping[str, Any]) -> PrivateTable | PublicTable:
    schema = {_name(name): column_from_dict(kind) for name, kind in data["schema"].items()}
    if data.get("public"):
        listed = data["listed"]
        return PublicTable(
            data["table"],
            source=_ELSEWHERE,
            schema=schema,
            key=data["key"] or None,
            version=data["version"],
            listed=None if listed is None else (tuple(listed[0]), frozenset(unpack(listed[1]))),
        )
    return PrivateTable(
        data["table"],
        source=_ELSEWHERE,
        unit=PrivacyUnit.from_dict(data["unit"]),
        schema=schema,
        dataset=data["dataset"],
        version=data["version"],
        size=data["size"],
        rows=data.get("rows"),
        profile=[(rows, units) for rows, units in data.get("profile", ())] or None,
        states={name: _read_state(state) for name, state in data["states"].items()},
    )


def _read_state(data: Mapping[str, Any]) -> State:
    if "column" in data:
        return State(column=data["column"], last=unpack(data["last"]))
    if "snapshot" in data:
        return State(snapshot=data["snapshot"])
    return State(files=[data["files"]])
