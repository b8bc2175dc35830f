"""States of a table that grows: which rows it had by then, in the steward's words."""

from __future__ import annotations

import datetime
import itertools
import json
import os
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.numeric.exact import as_integer
from sfumato.numeric.moments import as_moment
from sfumato.render import is_text, is_visible
from sfumato.schema._assign import assign
from sfumato.schema.columns import ColumnType

__all__ = [
    "GROWING",
    "Snapshot",
    "State",
    "StateFiles",
    "folder_of",
    "identity_of",
    "is_version",
    "states_of",
]

GROWING = "all states"
"""The version of a table that is read as it is, whatever its newest state."""

_WILD = "*?["
_OPENING = '{"state": '
_LONGEST_NAME = 200
_ONE = (
    'A state is a list of files, State(files=["2026-01.parquet"]), or the rows up to a value of a column, '
    'State(column="arrived", last="2026-01-31"); of a Delta table State(snapshot=12).'
)


@dataclass(frozen=True, slots=True, init=False)
class State:
    """What a table held at some time: some files of its folder, or its rows up to a value of a column.

    Attributes:
        files: Paths within the table's folder. A file that arrives later is in none that is declared before.
        sizes: How many bytes each of them had when the state was declared; empty: not known. Nothing is
            decided by it: `sfumato check` tells the steward of a file that has another size by now.
        column: A declared column of dates, timestamps or whole numbers that grows as rows arrive.
        last: The greatest value of it that belongs to the state.
        snapshot: Of a Delta table, the number of the snapshot.
    """

    files: tuple[str, ...]
    sizes: tuple[int, ...]
    column: str | None
    last: Any
    snapshot: int | None

    def __init__(
        self,
        files: Iterable[str | Path] = (),
        *,
        sizes: Iterable[int] = (),
        column: str | None = None,
        last: Any = None,
        snapshot: int | None = None,
    ) -> None:
        if isinstance(files, str | Path):
            raise InvalidParameter("files is a list of paths within the table's folder.")
        listed = tuple(os.fspath(path) for path in files)
        counted = tuple(as_integer(size, "sizes", least=0) for size in sizes)
        ways = (bool(listed), column is not None, snapshot is not None)
        if sum(ways) != 1 or (column is None) != (last is None):
            raise InvalidParameter(_ONE)
        if counted and len(counted) != len(listed):
            raise InvalidParameter("sizes has the bytes of each of the files, or nothing.")
        for path in listed:
            if not is_text(path) or not path or os.path.isabs(path) or ".." in Path(path).parts:
                raise InvalidParameter("files are paths within the table's folder, such as 2026-01.parquet.")
        number = None if snapshot is None else as_integer(snapshot, "snapshot", least=0)
        assign(self, files=listed, sizes=counted, column=column, last=last, snapshot=number)

    @property
    def is_apart(self) -> bool:
        """Whether it has files of its own: to an engine each such state is another table."""
        return self.column is None


class Snapshot(tuple[str, ...]):
    """A Delta table at one of its snapshots, as a source."""

    __slots__ = ()

    @property
    def folder(self) -> str:
        """Where the table is."""
        return self[0]

    @property
    def number(self) -> int:
        """Which snapshot."""
        return int(self[1])


class StateFiles(tuple[str, ...]):
    """The files of one state, as a source: a list of paths that knows the folder which they are in."""

    __slots__ = ()

    @property
    def folder(self) -> str:
        """The folder, whose `key=value` folders are columns."""
        return self[0]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return tuple(self[1:])


def states_of(
    declared: Mapping[str, State] | None, source: Any, columns: Mapping[str, ColumnType]
) -> dict[str, State]:
    """The states of a table in order, the newest last, checked against its columns.

    Raises:
        InvalidParameter: for what is no state of this table.
    """
    found: dict[str, State] = {}
    for name, state in (declared or {}).items():
        _check_name(name)
        if not isinstance(state, State):
            raise InvalidParameter(_ONE)
        if state.is_apart:
            folder_of(source)
            found[name] = state
        else:
            found[name] = State(column=state.column, last=_last(state, columns))
    if len({unicodedata.normalize("NFC", name).lower() for name in found}) != len(found):
        raise InvalidParameter("Two states differ only in upper and lower case; give them other names.")
    if len({state.is_apart for state in found.values()}) > 1:
        raise InvalidParameter("The states of a table are all files of their own, or all by a column.")
    return found


def identity_of(name: str, state: State) -> str:
    """What fingerprints have of a state: its name and what it holds, in a form that no version has.

    Privacy:
        By the declaration alone. A state that is declared anew with other files, another snapshot or another
        last value is other data, and no answer about the old one is an answer about it. The sizes of files
        are not part of it.
    """
    held: dict[str, Any]
    if state.column is not None:
        last = state.last if isinstance(state.last, int) else state.last.isoformat()
        held = {"column": state.column, "last": last}
    else:
        held = {"files": sorted(state.files)} if state.snapshot is None else {"snapshot": state.snapshot}
    return json.dumps({"state": name, **held})


def is_version(text: str) -> bool:
    """Whether a text can be the version of a table without states: it is nothing that `identity_of` gives."""
    return text != GROWING and not text.startswith(_OPENING)


def _check_name(name: object) -> None:
    if (
        not isinstance(name, str)
        or not 1 <= len(name) <= _LONGEST_NAME
        or name != name.strip()
        or not is_visible(name)
        or name.lower() == GROWING
    ):
        raise InvalidParameter(
            f'A state has a name of 1 to {_LONGEST_NAME} characters, such as "2026-03", without invisible '
            f"ones or a space at either end, and not {GROWING!r}."
        )


def folder_of(source: Any) -> str:
    """The folder that files of states are in.

    Raises:
        InvalidParameter: for a source that has no files.
    """
    if not isinstance(source, str | Path) or "://" in os.fspath(source) or "::" in os.fspath(source):
        raise InvalidParameter(
            "States that are lists of files need a folder or a pattern of paths as source; elsewhere a state "
            'is made by a column: State(column="arrived", last="2026-01-31").'
        )
    parts = Path(source).parts
    fixed = itertools.takewhile(lambda part: not any(sign in part for sign in _WILD), parts)
    return os.path.join(".", *fixed) if not Path(source).is_absolute() else os.path.join(*fixed)


def _last(state: State, columns: Mapping[str, ColumnType]) -> datetime.date | int:
    declared = columns.get(str(state.column))
    kind = None if declared is None else declared.kind
    try:
        if kind == "date":
            return as_moment(state.last).date()
        if kind == "timestamp":
            return as_moment(state.last, last=True)
        if kind == "integer" and isinstance(state.last, int) and not isinstance(state.last, bool):
            return state.last
    except (ValueError, TypeError):
        pass
    raise InvalidParameter(
        "A state by a column names a declared one of dates, timestamps or whole numbers, and the last value "
        'of it that belongs to the state: State(column="arrived", last="2026-01-31").'
    )
