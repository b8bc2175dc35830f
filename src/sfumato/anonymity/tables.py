"""Any table as rows that a private DuckDB in memory can group: what every figure here starts from.

| in the source | here |
| --- | --- |
| NULL, an empty field of a CSV file | a value like any other: two missing values are equal |
| NaN | one value |
| −0.0 | 0.0 |
| a column of a CSV file whose every value is a plain number, or a day | numbers, days; `02139` stays text |

Steward-only: everything that is opened here is read as it is, and nothing is paid for it.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato.engines._run import run
from sfumato.engines._tables import Column, Table, quoted
from sfumato.engines._types import kind_of
from sfumato.engines.base import Source, SourceKind
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.native import native_table
from sfumato.engines.sources import Database, Files, Located, locate
from sfumato.errors import Cancelled, EngineFailed, InvalidParameter, SourceUnusable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Rows", "columns_of", "names_given", "opened", "quoted"]

_T = TypeVar("_T")
_NUMBER = "[-+]?(0|[1-9][0-9]*)?([.][0-9]*)?([eE][-+]?[0-9]+)?"
_WHOLE = "[-+]?(0|[1-9][0-9]{0,17})"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_GUESSES = ((_WHOLE, "BIGINT"), (_NUMBER, "DOUBLE"), (_DAY, "DATE"))


class _Stopped(Cancelled):
    """Ctrl-C while a table was measured."""

    headline = "Interrupted; nothing was written."


class _Shared:
    """One instance of DuckDB for the process: to make one takes longer than to measure a small table."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        self._process = 0
        self._engine: DuckDB | None = None

    def cursor(self) -> Any:
        with self._lock:
            if self._connection is None or self._process != os.getpid():  # forked
                self._engine = DuckDB()
                self._connection, self._process = self._engine._connect(), os.getpid()
            return self._connection.cursor()


_SHARED = _Shared()
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Rows:
    """An open table.

    Attributes:
        shown: What to call it in messages.
        kinds: What each column holds, by its name in the source.
        relation: What to put after FROM; its columns have the names of the source.
    """

    shown: str
    kinds: Mapping[str, SourceKind]
    relation: str
    _cursor: Any

    def fetch(self, statement: str) -> pa.Table:
        """The result of a SELECT over `relation`.

        Raises:
            SourceUnusable: if the rows cannot be read.
            Cancelled: on Ctrl-C.
        """
        return self._read(lambda: self._cursor.sql(statement).to_arrow_table())

    def first(self, statement: str) -> tuple[Any, ...]:
        """The first row of the result of a SELECT over `relation`."""
        row: tuple[Any, ...] = self._read(lambda: self._cursor.execute(statement).fetchall()[0])
        return row

    def count(self) -> int:
        """The number of rows.

        Raises:
            InvalidParameter: if there is none.
        """
        return self.checked(int(self.first(f"SELECT count(*) FROM {self.relation}")[0]))

    def checked(self, rows: int) -> int:
        """The number of rows, unless it is nought.

        Raises:
            InvalidParameter: if there is none.
        """
        if not rows:
            raise InvalidParameter(f"{self.shown} has no rows: there is nobody in it to be anonymous.")
        return rows

    def _read(self, work: Callable[[], _T]) -> _T:
        return _guarded(work, self._cursor.interrupt, self.shown)


@contextmanager
def opened(table: Source, columns: Sequence[str] | None = None) -> Iterator[Rows]:
    """The rows of a table with these columns, or all of them; closed and forgotten afterwards.

    Args:
        table: A path (CSV, Parquet, Arrow, `file.duckdb::table`), or an Arrow, pandas or Polars frame.
        columns: Their names as the source has them; one that differs in upper and lower case alone will do.

    Raises:
        InvalidParameter: for a column that the source does not have, or has twice.
        SourceUnusable: if the source cannot be opened.
    """
    located = locate(table)
    number = next(_NUMBERS)
    own = DuckDB() if isinstance(located, Database) else None  # so that no file stays attached
    cursor = _SHARED.cursor() if own is None else own._connect()
    source, name = f"anonymity {number} source", f"anonymity {number}"
    try:
        planned, held = native_table(
            cursor, source, located, lambda names: columns_of(names, columns, located.shown)
        )
        kinds = _guarded(
            lambda: _create(cursor, planned, held, name, located), cursor.interrupt, located.shown
        )
        yield Rows(located.shown, kinds, quoted(name), cursor)
    finally:
        for made, view in (("TABLE", f"{name} copy"), ("VIEW", name), ("VIEW", source)):
            with suppress(Exception):
                cursor.execute(f"DROP {made} IF EXISTS {quoted(view)}")
        with suppress(Exception):
            cursor.execute(f"DROP VIEW IF EXISTS {quoted(source + ' source')}")
        cursor.close()
        if own is not None:
            own.close()


def columns_of(names: Sequence[str], wanted: Sequence[str] | None, shown: str) -> list[int]:
    """Where the wanted columns are: the same name, else the only one that differs in case.

    Raises:
        InvalidParameter: for a column that is not there, or is there twice.
    """
    return [_position(each, names, shown) for each in (names if wanted is None else wanted)]


def names_given(given: str | Sequence[str], what: str) -> list[str]:
    """A list of names of columns from one name or several.

    Raises:
        InvalidParameter: if it is neither, or a name is given twice.
    """
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else None
    if names is None or not all(isinstance(each, str) and each for each in names):
        raise InvalidParameter(f"{what} must be the name of a column, or a list of such names.")
    twice = [each for i, each in enumerate(names) if each in names[:i]]
    if twice:
        raise InvalidParameter(f'{what} names the column "{twice[0][:100]}" twice.')
    return names


def _position(name: str, names: Sequence[str], shown: str) -> int:
    exact = [i for i, each in enumerate(names) if each == name]
    near = exact or [i for i, each in enumerate(names) if each.casefold() == name.casefold()]
    if not near:
        close = get_close_matches(name, names, n=1)
        hint = f'did you mean "{close[0][:100]}"?' if close else f"it has {_listed(names)}."
        raise InvalidParameter(f'{shown} has no column "{name[:100]}"; {hint}')
    if len(near) > 1:
        raise InvalidParameter(f'{shown} has several columns "{name[:100]}"; rename them in the source.')
    return near[0]


def _listed(names: Sequence[str]) -> str:
    some = ", ".join(f'"{each[:40]}"' for each in names[:12])
    return some + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _create(
    cursor: Any, planned: Table, held: Sequence[Column], name: str, located: Located
) -> dict[str, SourceKind]:
    """Make the view that has each value in one form; what its columns hold."""
    planned.create(cursor)
    inside = quoted(planned.name)
    casts: list[str | None] = [None] * len(held)
    if isinstance(located, Files) and located.format == "csv" and held:
        copy = quoted(f"{name} copy")
        cursor.execute(f"CREATE TEMP TABLE {copy} AS SELECT * FROM {inside}")
        inside = copy
        casts = _guessed(cursor, copy, held)
    kinds: dict[str, SourceKind] = {}
    shown = []
    for column, into in zip(held, casts, strict=True):
        native = into or column.native
        kinds[column.name] = kind_of(native)
        value = quoted(column.inner) if into is None else f"CAST({quoted(column.inner)} AS {into})"
        shown.append(f"{_one_form(value, native)} AS {quoted(column.name)}")
    cursor.execute(f"CREATE TEMP VIEW {quoted(name)} AS SELECT {', '.join(shown) or '1'} FROM {inside}")
    return kinds


def _guessed(cursor: Any, copy: str, held: Sequence[Column]) -> list[str | None]:
    """The types of those text columns whose every value is a plain number or a day.

    A number with a leading zero is none: `02139` is a zip code, and `2139` another one.
    """
    tests = []
    for column in held:
        inner = quoted(column.inner)
        tests.append(f"count({inner}) > 0")
        for pattern, into in _GUESSES:
            fits = f"regexp_full_match({inner}, '{pattern}') AND TRY_CAST({inner} AS {into}) IS NOT NULL"
            tests.append(f"coalesce(bool_and({fits}) FILTER (WHERE {inner} IS NOT NULL), false)")
    (row,) = cursor.execute(f"SELECT {', '.join(tests)} FROM {copy}").fetchall()
    casts: list[str | None] = []
    width = 1 + len(_GUESSES)
    for i in range(len(held)):
        some, *fits_all = row[i * width : (i + 1) * width]
        fitting = [into for (_, into), fit in zip(_GUESSES, fits_all, strict=True) if some and fit]
        casts.append(fitting[0] if fitting else None)
    return casts


def _one_form(value: str, native: str) -> str:
    """Of values that count as one always the same, and text for what neither counts nor orders."""
    if native in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({value}) THEN CAST('nan' AS {native}) ELSE {value} + CAST(0 AS {native}) END"
    if native.startswith("ENUM("):
        return f"CAST({value} AS VARCHAR)"
    return value


def _guarded(work: Callable[[], _T], interrupt: Callable[[], object], shown: str) -> _T:
    """What the read gives; of a failure no more than that it failed, since its text may hold data."""
    stopped = False
    try:
        return run(work, interrupt, timeout=None)
    except Cancelled:
        stopped = True
    except EngineFailed:
        pass
    if stopped:
        raise _Stopped("Reading was interrupted; nothing was written.")
    raise SourceUnusable(f"{shown} cannot be read; check that it is whole and readable.")
