"""`validate`: tables with their declarations in, a report for the steward out."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.engines._csv import header_of
from sfumato.engines._origins import describe
from sfumato.engines._tables import plan_table
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.kinds import cast, kind_of
from sfumato.engines.scans import Column, quoted
from sfumato.engines.sources import Database, Files, Located, locate
from sfumato.errors import AccessDenied, InvalidParameter, SourceUnusable
from sfumato.schema import Bool, ColumnType, Enum, Kind, PrivateTable, PublicTable, Text, owners, pointers_of
from sfumato.validation import patterns
from sfumato.validation.advice import advise
from sfumato.validation.days import Days, read_days
from sfumato.validation.lines import look_through
from sfumato.validation.reading import (
    Cells,
    Reader,
    look_like,
    read_columns,
    read_groups,
    read_ids,
    read_units,
)
from sfumato.validation.report import ColumnReport, Lines, TableReport, Units, Validation

__all__ = ["Progress", "validate"]

Progress: TypeAlias = Callable[[float, str], object]
"""Is told how much is done, from 0 to 1, and what comes now."""

_MOST_GROUPED = 12  # columns whose groups are counted for each unit


def validate(
    *tables: PrivateTable | PublicTable,
    progress: Progress | None = None,
    threads: int | None = None,
    memory: str | None = None,
    timeout: float | None = None,
    roles: Mapping[str, Mapping[str, str]] | None = None,
) -> Validation:
    """Hold what is declared about tables against their rows, for the steward alone.

    ```python
    print(sf.validate(visits))
    ```

    It tells how many values of each column fit the declared type, bounds and values, what those that do not
    look like, how many rows units have and what limits would cut, and what to change in `sfumato.toml`.

    Args:
        *tables: Private and public ones; a table whose unit is via another one together with that one.
        progress: Is told how much is done, from 0 to 1, and what comes now.
        threads: How many threads to use; by default one a core.
        memory: How much memory, like `"4GB"`; the rest goes to the disk, in a private folder.
        timeout: How many seconds one statement may take.
        roles: By table and column the role that its line in `sfumato.toml` has, for lines to change.

    Privacy:
        None: the figures are exact, nobody pays for them, and whoever sees them learns of single rows. It is
        for who may read the rows anyway. It writes nothing, and no question, price or answer depends on it.

    Raises:
        AccessDenied: in the name of an analyst (`SFUMATO_ANALYST`).
        InvalidParameter: for what is not a table.
        SourceUnusable: if a source cannot be opened or read to its end; of its content nothing is said.
    """
    refuse_analysts(os.environ.get("SFUMATO_ANALYST"))
    if not tables or not all(isinstance(table, PrivateTable | PublicTable) for table in tables):
        raise InvalidParameter("validate takes one or more PrivateTable or PublicTable.")
    if len({table.name.lower() for table in tables}) != len(tables):
        raise InvalidParameter("Two tables have the same name.")
    steps = _Steps(len(tables), progress or _silent)
    with DuckDB(threads=threads, memory=memory, timeout=timeout) as engine:
        connection = engine._connect()
        try:
            reader = Reader(connection, timeout)
            opened = [_open(connection, reader, table, tables, steps) for table in tables]
            reports = [
                _report(reader, each, tables, opened, steps, (roles or {}).get(each.table.name, {}))
                for each in opened
            ]
        finally:
            connection.close()
    steps.at(1.0, "done")
    return Validation(tuple(reports))


def _silent(done: float, what: str) -> None:
    del done, what


def refuse_analysts(who: str | None) -> None:
    """Refuse whoever works in an analyst's name.

    Raises:
        AccessDenied: if there is a name.
    """
    if who and who.strip():
        raise AccessDenied(
            f"Only the steward can validate, since exact counts of rows are shown; {who.strip()[:40]} is an "
            "analyst."
        )


class _Steps:
    """How much of the work is done: half of it is to open the tables."""

    def __init__(self, tables: int, tell: Progress) -> None:
        self._parts, self._done, self.at = 2 * tables, 0, tell

    def within(self, what: str) -> Callable[[float], None]:
        """Tells how far a part is."""
        return lambda part: (self.at((self._done + part) / self._parts, what), None)[1]

    def next(self) -> None:
        """The next part begins."""
        self._done += 1


@dataclass(frozen=True, slots=True)
class _Open:
    """A table in the instance, as far as it can be opened.

    Attributes:
        table: As declared.
        located: Its source.
        schema: The declared columns that are there and can be read.
        texts: Those of them that the source has as text.
        missing: Those that are not there, each with the name of the nearest one that is, if any.
        repeated: Those of whose name the source has several.
        unfit: Those that the source has in a type that cannot be read so, with it.
        refused: Numbers that the source's own metadata have as text, so that a session refuses them.
        has_unit: Whether the column of the unit is there.
        lines: What a CSV file shows as text.
    """

    table: PrivateTable | PublicTable
    located: Located
    schema: dict[str, ColumnType]
    texts: list[str]
    missing: dict[str, str | None]
    repeated: list[str]
    unfit: dict[str, str]
    refused: list[str]
    has_unit: bool
    lines: Lines | None

    @property
    def is_csv(self) -> bool:
        """Whether its fields have no types of their own."""
        return isinstance(self.located, Files) and self.located.format == "csv"


def _open(
    connection: Any, reader: Reader, table: PrivateTable | PublicTable, tables: Sequence[Any], steps: _Steps
) -> _Open:
    within = steps.within(f"opening {table.name}")
    within(0.0)
    located = locate(table.reads)
    is_csv = isinstance(located, Files) and located.format == "csv"
    lines = look_through(located, within) if isinstance(located, Files) and is_csv else None
    held = describe(connection, located)
    natives = {name: _natives(name, held) for name in table.schema}
    there = {name: kind for name, kind in table.schema.items() if len(natives[name]) == 1}
    free = [column.name for column in held if column.name not in there]
    missing = {name: _near(name, free) for name in table.schema if not natives[name]}
    repeated = [name for name in table.schema if len(natives[name]) > 1]
    unfit = {
        name: str(kind_of(natives[name][0]))
        for name, kind in there.items()
        if cast("x", natives[name][0], kind.kind) is None
    }
    schema = {name: kind for name, kind in there.items() if name not in unfit}
    unit = table.unit.column if isinstance(table, PrivateTable) and not table.unit.is_via else None
    ids = [] if unit is None else _natives(unit, held)
    has_unit = len(ids) == 1
    if unit is not None and not ids:
        missing[unit] = _near(unit, free)
    elif unit is not None and not has_unit:
        repeated.append(unit)
    private = [other for other in tables if isinstance(other, PrivateTable)]
    pointers = [name for name in pointers_of(private).get(table.name, ()) if name in schema]
    kinds = {name: kind.kind for name, kind in schema.items()}
    planned = plan_table(
        connection, table.name, located, kinds, unit=unit if has_unit else None, pointers=pointers, raw=True
    )
    reader.do(planned.create)
    if not isinstance(located, Database) and (is_csv or not isinstance(located, Files)):
        # Read once: a CSV file is slow to read, and every statement would do it again.
        kept = f"{table.name} kept"
        reader.do(lambda at: at.execute(f"CREATE TEMP TABLE {quoted(kept)} AS FROM {quoted(table.name)}"))
        reader.do(lambda at: at.execute(f"DROP VIEW {quoted(table.name)}"))
        reader.do(lambda at: at.execute(f"CREATE TEMP VIEW {quoted(table.name)} AS FROM {quoted(kept)}"))
    steps.next()
    refused = [name for name in kinds if _is_refused(connection, located, name, kinds[name])]
    texts = [name for name in schema if kind_of(natives[name][0]) == "text"]
    return _Open(table, located, schema, texts, missing, repeated, unfit, refused, has_unit, lines)


def _natives(name: str, held: Sequence[Column]) -> list[str]:
    """The types of the columns that a name may mean: the same name, else those in another case."""
    exact = [column.native for column in held if column.name == name]
    return exact or [column.native for column in held if column.name.casefold() == name.casefold()]


def _near(name: str, free: Sequence[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name, free, 1, 0.6)), None)


def _is_refused(connection: Any, located: Located, name: str, kind: Kind) -> bool:
    """Whether a session would refuse the column for what the metadata of its source say."""
    if kind not in ("integer", "float"):
        return False
    try:
        plan_table(connection, "looked at", located, {name: kind}, unit=None)
    except SourceUnusable:
        return True
    return False


def _report(
    reader: Reader,
    opened: _Open,
    tables: Sequence[Any],
    others: Sequence[_Open],
    steps: _Steps,
    roles: Mapping[str, str],
) -> TableReport:
    table = opened.table
    within = steps.within(f"reading {table.name}")
    within(0.0)
    csv = opened.located.csv if isinstance(opened.located, Files) else None
    decimal = "." if csv is None else csv.decimal
    rows, cells = read_columns(reader, table.name, opened.schema, opened.texts, decimal=decimal)
    within(0.4)
    days: dict[str, Days] = {}
    for name, kind in opened.schema.items():
        if name in opened.texts and _may_be_days(kind, cells[name]):
            days[name] = _days(reader, table.name, name)
    within(0.5)
    columns = []
    for place, (name, kind) in enumerate(opened.schema.items()):
        forms = days[name].forms if name in days else ()
        columns.append(_column(reader, table.name, name, kind, rows, cells[name], forms))
        within(0.5 + 0.1 * place / len(opened.schema))
    within(0.6)
    units = None
    if isinstance(table, PrivateTable) and not table.unit.is_row:
        units = _units(reader, opened, tables, others, within)
    steps.next()
    if opened.is_csv:
        misread = [column.name for column in columns if _is_misread(column, opened.schema[column.name])]
        open_ = {name: Text() for name in misread if name in opened.texts}
        again = read_columns(reader, table.name, open_, open_, decimal=decimal)[1]
        cells |= {name: replace(found, padded=0) for name, found in again.items()}
        days |= {
            name: _days(reader, table.name, name)
            for name, found in again.items()
            if name not in days and _may_be_days(Text(), found)
        }
    findings, changes = advise(
        table.schema,
        columns=columns,
        cells=cells,
        days=days if opened.is_csv else {},
        refused=opened.refused,
        csv=csv,
        delimiter=header_of(opened.located, names_files=True).delimiter
        if isinstance(opened.located, Files) and opened.is_csv
        else "",
        is_csv=opened.is_csv,
        missing=opened.missing,
        repeated=opened.repeated,
        unfit=opened.unfit,
        units=units,
        lines=opened.lines,
        roles=roles,
    )
    shown = opened.located.shown.removeprefix("The source ").strip('"')
    return TableReport(
        table.name,
        os.path.basename(shown) or shown,
        rows,
        tuple(columns),
        units,
        opened.lines,
        findings,
        changes,
    )


def _is_misread(column: ColumnReport, kind: ColumnType) -> bool:
    """Whether most values of a column are not of its type, so that it may be of another one."""
    return kind.kind != "text" and 2 * column.unread > column.rows - column.empty


def _may_be_days(kind: ColumnType, cells: Cells) -> bool:
    """Whether a column is declared to hold days, or its text looks like them."""
    return kind.kind in ("date", "timestamp") or 2 * (cells.days + cells.written) > cells.present


def _days(reader: Reader, table: str, name: str) -> Days:
    return read_days(reader, table, name, patterns.nothing("cell"))


def _column(
    reader: Reader,
    table: str,
    name: str,
    kind: ColumnType,
    rows: int,
    cells: Cells,
    forms: Iterable[str],
) -> ColumnReport:
    unread = cells.present - cells.read
    found = look_like(reader, table, name, kind, unread=unread > 0, outside=cells.outside > 0, forms=forms)
    return ColumnReport(name, declared(kind), rows, rows - cells.present, unread, cells.outside, found)


def _units(
    reader: Reader,
    opened: _Open,
    tables: Sequence[Any],
    others: Sequence[_Open],
    within: Callable[[float], None],
) -> Units | None:
    table = opened.table
    assert isinstance(table, PrivateTable)
    chain = owners(table, tables)
    by_name = {other.table.name: other for other in others}
    links = [by_name[link.name] for link in chain]
    pointed = [(here.unit.on, a, b) for here, a, b in zip(chain, links, links[1:], strict=False)]
    if not links[-1].has_unit or any(
        x not in a.schema or y not in b.schema for pairs, a, b in pointed for x, y in pairs
    ):
        return None
    rows, unnamed = read_units(reader, chain)
    within(0.7)
    alike = read_ids(reader, table.name) if len(chain) == 1 else {}
    within(0.75)
    grouped = [
        name
        for name, kind in opened.schema.items()
        if isinstance(kind, Enum | Bool | Text) and name != table.unit.column
    ]
    counted = grouped[:_MOST_GROUPED]
    groups = {}
    for place, name in enumerate(counted, 1):
        groups[name] = read_groups(reader, chain, name)
        within(0.75 + 0.25 * place / len(counted))
    unit = table.unit
    return Units(
        str(unit.column),
        rows,
        unnamed,
        alike,
        groups,
        None if unit.auto else unit.max_rows,
        unit.max_groups,
        table.profile[-1][0] if table.profile else unit.ceiling,
        len(grouped),
    )


def declared(kind: ColumnType) -> str:
    """A type in a few words: `int 0 to 120`, `enum of 3`."""
    data = kind.to_dict()
    if "values" in data:
        return f"enum of {len(data['values'])}"
    low, high = data.get("lower", data.get("start")), data.get("upper", data.get("end"))
    return str(data["type"]) if low is None else f"{data['type']} {low} to {high}"
