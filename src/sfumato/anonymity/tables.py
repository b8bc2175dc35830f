"""Any table as rows that a private engine in memory can read and group.

| in the source | here |
| --- | --- |
| NULL, an empty field of a CSV file | a value like any other: two missing values are equal |
| NaN | one value |
| −0.0 | 0.0 |
| a column of a CSV file whose every value is a plain number, or a day | numbers, days; `02139` stays text, \
and so do numbers that are too long for a float |
| a CSV file with a row that cannot be read, or that ends inside quotes | refused |

Steward-only: everything that is opened here is read as it is, and nothing is paid for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

from sfumato._dataclasses import dataclass
from sfumato.engines.base import Source, SourceKind
from sfumato.engines.kinds import kind_of
from sfumato.engines.native import native_cursor, native_table
from sfumato.engines.running import run
from sfumato.engines.scans import Column, quoted
from sfumato.engines.sources import Files, Located, locate
from sfumato.errors import Cancelled, EngineFailed, InvalidParameter, SourceUnusable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Rows",
    "checked",
    "columns_of",
    "exactly",
    "names_given",
    "names_of",
    "opened",
    "quoted",
    "together",
]

_T = TypeVar("_T")
# No more digits than a float has: two long numbers would be one, and their rows a class.
_NUMBER = "[-+]?(0|[1-9][0-9]{0,14})?([.]0*[0-9]{0,17})?([eE][-+]?[0-9]+)?"
_WHOLE = "[-+]?(0|[1-9][0-9]{0,17})"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_GUESSES = ((_WHOLE, "BIGINT"), (_NUMBER, "DOUBLE"), (_DAY, "DATE"))
_AT_ONCE = 8  # columns whose types are found in one statement


class _Stopped(Cancelled):
    """Ctrl-C while a table was measured."""

    headline = "Interrupted; nothing was written."


_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Rows:
    """An open table.

    Attributes:
        shown: What to call it in messages.
        kinds: What each column holds, by its name in the source.
        relation: What to put after FROM; its columns are c0, c1, … in the order of `kinds`, since the engine
            takes names that differ in upper and lower case alone for one.
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

    def scalar(self, name: str) -> str:
        """SQL for a column; one that holds lists or other rare things is text."""
        inner = f"c{list(self.kinds).index(name)}"
        return f"CAST({inner} AS VARCHAR)" if self.kinds[name] == "other" else inner

    def all(self) -> pa.Table:
        """All rows, with the names of the source.

        Raises:
            SourceUnusable: if they cannot be read.
            Cancelled: on Ctrl-C.
        """
        return self.fetch(f"SELECT * FROM {self.relation}").rename_columns(list(self.kinds))

    def count(self) -> int:
        """The number of rows.

        Raises:
            InvalidParameter: if there is none.
        """
        return checked(int(self.first(f"SELECT count(*) FROM {self.relation}")[0]), self.shown)

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
    with together((table, columns)) as (rows,):
        yield rows


def names_of(table: Source) -> list[str]:
    """The names of a table's columns, from its header alone: no row is read.

    Raises:
        InvalidParameter: for a source with two columns of one name.
        SourceUnusable: if the source cannot be opened.
    """
    located = locate(exactly(table))
    with native_cursor([located]) as cursor:
        _, held = native_table(
            cursor,
            f"anonymity {next(_NUMBERS)}",
            located,
            lambda names: columns_of(names, None, located.shown),
        )
        return [column.name for column in held]


@contextmanager
def together(*tables: tuple[Source, Sequence[str] | None]) -> Iterator[tuple[Rows, ...]]:
    """Several tables open side by side: one statement may read them all, through any of them.

    Raises:
        InvalidParameter: for a column that a source does not have, or has twice.
        SourceUnusable: if a source cannot be opened.
    """
    sources = [(locate(exactly(table)), columns) for table, columns in tables]
    with native_cursor([located for located, _ in sources]) as cursor:
        undo: list[str] = []
        try:
            yield tuple([_open(cursor, located, columns, undo) for located, columns in sources])
        finally:
            for command in reversed(undo):
                with suppress(Exception):
                    cursor.execute(command)


def _open(cursor: Any, located: Located, columns: Sequence[str] | None, undo: list[str]) -> Rows:
    """Make what one table needs in the instance; what removes it again is added to `undo`."""
    name = f"anonymity {next(_NUMBERS)}"
    planned, held = native_table(
        cursor, name, located, lambda names: columns_of(names, columns, located.shown)
    )
    (part,) = planned.parts
    is_csv = isinstance(located, Files) and located.format == "csv"
    if is_csv or part.scan.frame is not None:
        undo.append(f"DROP {'TABLE' if is_csv else 'VIEW'} IF EXISTS {quoted(name)}")

    def work() -> tuple[str, list[str | None]]:
        inside = f"(SELECT {', '.join(part.select) or '1'} FROM {part.scan.prepare(cursor, name)})"
        if not is_csv:
            return inside, [None] * len(held)
        cursor.execute(f"CREATE TEMP TABLE {quoted(name)} AS FROM {inside} AS r")
        return quoted(name), _guessed(cursor, quoted(name), held)

    inside, casts = _guarded(work, cursor.interrupt, located.shown)
    kinds: dict[str, SourceKind] = {}
    select = []
    for i, (column, into) in enumerate(zip(held, casts, strict=True)):
        native = into or column.native
        kinds[column.name] = kind_of(native)
        value = quoted(column.inner) if into is None else f"CAST({quoted(column.inner)} AS {into})"
        select.append(f"{_one_form(value, native)} AS c{i}")
    relation = f"(SELECT {', '.join(select) or '1'} FROM {inside} AS r) AS {quoted(name)}"
    return Rows(located.shown, kinds, relation, cursor)


def exactly(table: Source) -> Source:
    """The same, with decimals of more than 38 digits as text: as floats, different ones would be equal."""
    import pyarrow as pa

    if not isinstance(table, pa.Table | pa.RecordBatch):
        return table
    for place, field in enumerate(table.schema):
        if pa.types.is_decimal256(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.string()))
    return table


def checked(rows: int, shown: str) -> int:
    """The number of rows, unless it is 0.

    Raises:
        InvalidParameter: if there is none.
    """
    if not rows:
        raise InvalidParameter(f"{shown} has no rows: give one with somebody in it.")
    return rows


def columns_of(names: Sequence[str], wanted: Sequence[str] | None, shown: str) -> list[int]:
    """Where the wanted columns are: the same name, else the only one that differs in case or outer blanks.

    Raises:
        InvalidParameter: for a column that is not there, or is there twice.
    """
    if wanted is None:
        if len(set(names)) < len(names):
            raise InvalidParameter(f"{shown} has several columns of one name; rename them in the source.")
        return list(range(len(names)))
    places = [_position(name, names, shown) for name in wanted]
    twice = [i for at, i in enumerate(places) if i in places[:at]]
    if twice:
        raise InvalidParameter(f'The column "{names[twice[0]][:100]}" is named twice.')
    return places


def names_given(given: str | Sequence[str], what: str) -> list[str]:
    """A list of names of columns from one name or several.

    Raises:
        InvalidParameter: if it is neither, or a name is given twice.
    """
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else None
    if names is None or not all(isinstance(name, str) and name for name in names):
        raise InvalidParameter(f"{what} must be the name of a column, or a list of such names.")
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InvalidParameter(f'{what} names the column "{twice[0][:100]}" twice.')
    return names


def _position(name: str, names: Sequence[str], shown: str) -> int:
    exact = [i for i, column in enumerate(names) if column == name]
    near = exact or [i for i, column in enumerate(names) if column.casefold() == name.casefold()]
    # A header such as `name, zip` has a blank before each further name.
    near = near or [
        i for i, column in enumerate(names) if column.strip().casefold() == name.strip().casefold()
    ]
    if not near:
        close = get_close_matches(name, names, n=1)
        # No list of names: where a file has no header, its first row would appear in a message.
        hint = f'did you mean "{close[0][:100]}"?' if close else _none_near(names)
        raise InvalidParameter(f'{shown} has no column "{name[:100]}"; {hint}')
    if len(near) > 1:
        raise InvalidParameter(f'{shown} has several columns "{name[:100]}"; rename them in the source.')
    return near[0]


def _none_near(names: Sequence[str]) -> str:
    of_them = "its one column is not" if len(names) == 1 else f"none of its {len(names)} columns is"
    return f"{of_them} like it: check that its first row holds the names."


def _guessed(cursor: Any, copy: str, held: Sequence[Column]) -> list[str | None]:
    """The types of those text columns whose every value is a plain number or a day.

    Text with a leading zero is not a number: `02139` is a zip code, and `2139` another one.
    """
    # To plan a statement takes time that grows with the square of its columns: a few at once.
    some = [held[start : start + _AT_ONCE] for start in range(0, len(held), _AT_ONCE)]
    return [into for chunk in some for into in _guessed_of(cursor, copy, chunk)]


def _guessed_of(cursor: Any, copy: str, held: Sequence[Column]) -> list[str | None]:
    """The types of some columns, in one statement."""
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
