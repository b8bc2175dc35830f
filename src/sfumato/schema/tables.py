"""Tables that may be asked: private ones, which protect a unit, and public ones, which are about no one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.render import is_text, without_password
from sfumato.schema._assign import assign
from sfumato.schema.columns import ColumnType
from sfumato.schema.states import (
    GROWING,
    Snapshot,
    State,
    StateFiles,
    folder_of,
    identity_of,
    is_version,
    states_of,
)
from sfumato.schema.unit import PrivacyUnit
from sfumato.schema.windows import Windows

__all__ = ["PrivateTable", "PublicTable"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, weakref_slot=True, init=False, eq=False, repr=False)
class PrivateTable:
    """A table that may be asked but not seen: the steward's promise about it.

    Attributes:
        name: What queries call it.
        source: Where the rows are: a path, glob, folder, DuckDB file, Arrow table, pandas or Polars frame.
        unit: Whose privacy is protected.
        schema: Its columns; others of the source cannot be asked for.
        dataset: Whose budget it draws on. Tables about the same units share one; by default each has its own,
            but a table whose unit is reached via another draws on that one's: ask `dataset_of`.
        version: The steward's word for the state of the data. Answers are given again, free, while it stays.
            Of a table with states the name of the one that is read, the last unless another is asked for.
        states: What the table held at some times, oldest first, by the steward's words for them.
        size: About how many units there are, if that is public: lets the errors of means be quoted.
        rows: Exactly how many rows there are, if that is public: averages over all of them divide by it. Only
            where each row is a unit and units are exchanged, so that neighbours have equally many. No claim
            rests on it: where the data have another number, averages are off and stay as private.
        profile: How many units have how many rows, if that is public: pairs of a number of rows and of the
            units that have up to so many, and more than the number before. It takes the place of a profile
            that is bought; no claim about privacy rests on it.
        within: Of which windows alone statements read rows; None: of all. Nobody declares it: see `held_to`.
    """

    name: str
    source: Any
    unit: PrivacyUnit
    schema: Mapping[str, ColumnType]
    dataset: str
    version: str
    size: int | None
    rows: int | None
    profile: tuple[tuple[int, int], ...]
    states: Mapping[str, State]
    within: Windows | None = field(init=False)

    def __init__(
        self,
        name: str,
        *,
        source: Any,
        unit: PrivacyUnit,
        schema: Mapping[str, ColumnType],
        dataset: str | None = None,
        version: str | int | None = None,
        size: int | None = None,
        rows: int | None = None,
        profile: Mapping[int, int] | Iterable[tuple[int, int]] | None = None,
        states: Mapping[str, State] | None = None,
    ) -> None:
        if not isinstance(unit, PrivacyUnit):
            raise InvalidParameter(
                'unit must be a PrivacyUnit: PrivacyUnit("user_id", max_groups=3), or .row().'
            )
        columns = _columns(schema)
        if unit.is_via and any(column.casefold() == str(unit.column).casefold() for column in columns):
            raise InvalidParameter(f'The name "{unit.column}" is kept for the unit; rename that column.')
        unit = _timed(unit, columns)
        assign(self, name=_name(name), source=source, unit=unit, dataset=str(dataset or name))
        assign(self, schema=MappingProxyType(columns))
        about = None if size is None else as_integer(size, "size")
        exactly = _rows(rows, unit, about)
        known = states_of(states, source, columns)
        assign(self, states=MappingProxyType(known))
        version = next(reversed(known), "1") if version is None else version
        if known and version not in (*known, GROWING):
            raise InvalidParameter(f"There is no state {str(version)[:60]!r} of {name}: {', '.join(known)}.")
        assign(self, version=str(version) if known else _version(version), rows=exactly)
        assign(self, size=exactly if about is None else about)
        # A table that is replaced hands its own on, which may be empty.
        assign(self, profile=() if profile is None or profile == () else _profile(profile, unit))
        assign(self, within=None)

    def __getstate__(self) -> dict[str, Any]:
        return _state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        _restore(self, state)

    def __repr__(self) -> str:
        return (
            f"PrivateTable({self.name!r}, source={_shown(self.source)!r}, unit={self.unit!r}, "
            f"columns={list(self.schema)})"
        )

    def at(self, state: str) -> PrivateTable:
        """The table as it was, or as it grows.

        Raises:
            InvalidParameter: if it has no such state.
        """
        return replace(self, version=state)

    @property
    def identity(self) -> str:
        """Which data this is, as fingerprints have it: the version, or a state with what it holds."""
        state = self.states.get(self.version)
        return self.version if state is None else identity_of(self.version, state)

    @property
    def reads(self) -> Any:
        """What is opened: the source, or those files of it that belong to the state."""
        state = self.states.get(self.version)
        if state is None or not state.is_apart:
            return self.source
        folder = folder_of(self.source)
        if state.snapshot is not None:
            return Snapshot((folder, str(state.snapshot)))
        return StateFiles((folder, *(str(Path(folder, path)) for path in state.files)))

    @property
    def relation(self) -> str:
        """What an engine calls it: another state's files are another table there."""
        by_files = any(state.is_apart for state in self.states.values())
        return f"{self.name} at {self.version}" if by_files and self.version != self.newest else self.name

    @property
    def newest(self) -> str:
        """The name of its last state; of a table without states the version."""
        return next(reversed([*self.states]), self.version)

    @property
    def last(self) -> tuple[str, Any] | None:
        """The column that says which rows belong to the state, and its last value there; None: all do."""
        state = self.states.get(self.version)
        return None if state is None or state.column is None else (state.column, state.last)

    def held_to(self, windows: Windows) -> PrivateTable:
        """The table of which statements read the rows of these windows alone.

        Raises:
            InvalidParameter: if its units have other windows, or none.
        """
        if self.unit.window != windows.each:
            raise InvalidParameter(f"{self.name} has no windows of one {windows.each}.")
        table = copy(self)
        assign(table, within=windows)
        return table

    def declaration(self) -> dict[str, Any]:
        """What the steward declares, as plain data: unit, columns and bounds, version; not the source."""
        told: dict[str, Any] = {
            "table": self.name,
            "unit": self.unit.to_dict(),
            "schema": {name: kind.to_dict() for name, kind in self.schema.items()},
            "version": self.version,
        }
        told |= {} if self.rows is None else {"rows": self.rows}
        return told | ({"profile": [list(pair) for pair in self.profile]} if self.profile else {})


@dataclass(frozen=True, slots=True, weakref_slot=True, init=False, eq=False, repr=False)
class PublicTable:
    """A table about no one, such as the regions of a country: free to read, paid for by no budget.

    Privacy:
        Nothing protects its rows: its values may appear in answers and in errors, and choose the keys of
        groups. Only the steward can know that nobody's data is in it.

    Attributes:
        name: What queries call it.
        source: Where the rows are, as of a `PrivateTable`.
        schema: Its columns; others of the source cannot be asked for.
        key: Columns whose combination is in no two rows, so that a join on them multiplies no row; empty if
            there are none.
        version: The steward's word for the state of the data.
        listed: Columns with few values, and the combinations of these that its rows have; None: not known.
    """

    name: str
    source: Any
    schema: Mapping[str, ColumnType]
    key: tuple[str, ...]
    version: str
    listed: tuple[tuple[str, ...], frozenset[tuple[Any, ...]]] | None

    def __init__(
        self,
        name: str,
        *,
        source: Any,
        schema: Mapping[str, ColumnType],
        key: str | Iterable[str] | None = None,
        version: str | int = "1",
        listed: tuple[tuple[str, ...], frozenset[tuple[Any, ...]]] | None = None,
    ) -> None:
        columns = _columns(schema)
        assign(self, name=_name(name), source=source, key=_key(key, columns))
        assign(self, schema=MappingProxyType(columns))
        assign(self, version=_version(version), listed=listed)

    def __getstate__(self) -> dict[str, Any]:
        return _state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        _restore(self, state)

    def __repr__(self) -> str:
        return (
            f"PublicTable({self.name!r}, source={_shown(self.source)!r}, key={list(self.key)}, "
            f"columns={list(self.schema)})"
        )

    @property
    def identity(self) -> str:
        """Which data this is, as fingerprints have it: the version."""
        return self.version

    @property
    def reads(self) -> Any:
        """What is opened: the source."""
        return self.source

    @property
    def relation(self) -> str:
        """What an engine calls it: by its name."""
        return self.name

    def declaration(self) -> dict[str, Any]:
        """What the steward declares, as plain data: columns, key, version; not the source."""
        return {
            "table": self.name,
            "public": True,
            "schema": {name: kind.to_dict() for name, kind in self.schema.items()},
            "key": list(self.key),
            "version": self.version,
        }


def _timed(unit: PrivacyUnit, columns: Mapping[str, ColumnType]) -> PrivacyUnit:
    """The unit with the column that decides its windows: the only one of its kind if none is named."""
    if unit.window is None:
        return unit
    times = [name for name, kind in columns.items() if kind.kind in ("date", "timestamp")]
    if unit.time is None and len(times) == 1:
        return unit.timed(times[0])
    if unit.time in times:
        return unit
    listed = ", ".join(times) or "none is declared"
    raise InvalidParameter(
        f"time must name a column of dates or timestamps, which decides windows: {listed}."
    )


def _name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidParameter("A table's name is made of letters, digits and underscores, such as visits.")
    return name


def _version(version: str | int) -> str:
    written = str(version)
    if not is_text(written):
        raise InvalidParameter("version holds half a character, which no text can hold.")
    if not is_version(written):
        raise InvalidParameter(
            f"The version {written[:60]!r} would be read as a state's: give it another name."
        )
    return written


def _rows(rows: int | None, unit: PrivacyUnit, size: int | None) -> int | None:
    """The public number of rows, where it may be one."""
    if rows is None:
        return None
    number = as_integer(rows, "rows")
    if unit.adjacency != "exchange":
        raise InvalidParameter(
            "rows: when units are added or removed, the number of rows is private, and nothing may divide by "
            'it; declare the unit with adjacency="exchange", or give size, which may be rough.'
        )
    if not unit.is_row:
        raise InvalidParameter(
            "rows: exchanging a unit for one with more or fewer rows changes their number, which is private; "
            "declare PrivacyUnit.row, or give size, which may be rough."
        )
    if size is not None and size != number:
        raise InvalidParameter("rows and size differ, though each row is a unit; leave size out.")
    if number > 2**53:
        raise InvalidParameter("rows must be at most 2**53.")
    return number


def _profile(
    profile: Mapping[int, int] | Iterable[tuple[int, int]], unit: PrivacyUnit
) -> tuple[tuple[int, int], ...]:
    """The declared profile, by numbers of rows."""
    if unit.is_row:
        raise InvalidParameter("profile: each row is a unit, so that all units have one row; leave it out.")
    listed = list(profile.items()) if isinstance(profile, Mapping) else [*profile]
    if not listed or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in listed):
        raise InvalidParameter(
            "profile says how many units have up to so many rows: profile={1: 8000, 10: 900, 200: 30}."
        )
    pairs = sorted(
        (as_integer(rows, "profile: rows"), as_integer(units, "profile: units", least=0))
        for rows, units in listed
    )
    if len({rows for rows, _ in pairs}) != len(pairs):
        raise InvalidParameter("profile: a number of rows is given twice.")
    if pairs[-1][0] > 2**20 or max(units for _, units in pairs) > 2**53:
        raise InvalidParameter("profile: at most 2**20 rows of a unit, and 2**53 units.")
    return tuple(pairs)


def _state(table: PrivateTable | PublicTable) -> dict[str, Any]:
    """The fields for a copy: a view that cannot be written to cannot be pickled."""
    held = {part.name: getattr(table, part.name) for part in fields(table)}
    return {
        name: dict(value) if isinstance(value, MappingProxyType) else value for name, value in held.items()
    }


def _restore(table: PrivateTable | PublicTable, state: dict[str, Any]) -> None:
    views = {name: MappingProxyType(state[name]) for name in ("schema", "states") if name in state}
    older = {"within": None} if isinstance(table, PrivateTable) else {}
    assign(table, **(older | state | views))


def _columns(schema: Mapping[str, ColumnType]) -> dict[str, ColumnType]:
    columns = dict(schema)
    for column, kind in columns.items():
        if not isinstance(column, str) or not column:
            raise InvalidParameter("A column's name must be text.")
        if not isinstance(kind, ColumnType):
            raise InvalidParameter(f"Column {column!r} needs a type such as sf.Int(0, 100) or sf.Text().")
    folded = [column.lower() for column in columns]
    if len(set(folded)) != len(folded):
        raise InvalidParameter("Two columns differ only in upper and lower case; SQL cannot tell them apart.")
    return columns


def _key(key: str | Iterable[str] | None, columns: Mapping[str, ColumnType]) -> tuple[str, ...]:
    if key is None:
        return ()
    listed = (key,) if isinstance(key, str) else tuple(key)
    if not listed or len(set(listed)) != len(listed):
        raise InvalidParameter('key names columns, each once: key="region_id" or key=("year", "region").')
    for column in listed:
        if column not in columns:
            raise InvalidParameter(f"key: {str(column)[:60]!r} is not a column of the schema.")
        if columns[column].kind == "float":
            raise InvalidParameter(f"key: {column!r} is a float, which a join cannot compare exactly.")
    return listed


def _shown(source: Any) -> str:
    # Never the source itself: a frame would show its rows, and an address a password.
    return without_password(str(source)) if isinstance(source, str | Path) else f"<{type(source).__name__}>"
