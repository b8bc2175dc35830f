"""A located source as a DuckDB view: which columns it has, and the SELECT that gives them canonical types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.engines._ids import OBJECT, as_id, common_type, keeps_apart, pointer_type
from sfumato.engines._origins import Origin, origins_of
from sfumato.engines.base import (
    GROUP_COLUMN,
    PLACE_COLUMN,
    POINTER_PREFIX,
    RANK_COLUMN,
    UNIT_COLUMN,
    UNREAD_PREFIX,
    is_kept,
    pointer_column,
    unread_column,
)
from sfumato.engines.kinds import ALL_NULL, CANONICAL, cast, kind_of
from sfumato.engines.scans import Column, Scan, quoted
from sfumato.engines.sources import Database, Files, Located, Stamp, stamps_of
from sfumato.errors import SourceUnusable
from sfumato.schema import Kind

__all__ = ["Slice", "Table", "plan_table", "raw_column"]

_KEPT = {
    UNIT_COLUMN: "the unit",
    RANK_COLUMN: "ranks",
    GROUP_COLUMN: "ranks of groups",
    PLACE_COLUMN: "ranks in groups",
}


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of a table that are read in one way.

    Attributes:
        scan: What follows FROM.
        select: The columns of the view.
        inner: What DuckDB calls the columns of the source that it uses.
    """

    scan: Scan
    select: tuple[str, ...]
    inner: tuple[str, ...]

    def query(self, connection: Any, name: str) -> str:
        """The SELECT, after what it needs is attached or registered under a name."""
        origin = self.scan.prepare(connection, name)
        query = f"SELECT {', '.join(self.select)} FROM {origin}"
        if self.scan.whole and self.inner:
            query += f" WHERE hash({', '.join(self.inner)}) IS NOT NULL"
        return query


@dataclass(frozen=True, slots=True)
class Table:
    """An attached table: everything that is needed to create its view in a fresh instance.

    Attributes:
        name: What statements call it.
        parts: Where its rows are; several if its files have columns of different types.
        has_unit: Whether the ids of units are among the columns.
        is_prepared: Whether the ranks of rows are, too.
        grouping: The columns whose groups are ranked as well, as they are declared; empty: there are none.
        exact: The declared columns of which the canonical type keeps apart what the source does.
        unread: The declared columns of which it says which cells could not be read.
        shown: All columns of the view.
        dates: The declared columns that are dates of Parquet files, shown as they are.
    """

    name: str
    parts: tuple[Slice, ...]
    has_unit: bool
    is_prepared: bool = False
    grouping: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that DuckDB opens to read it."""
        return tuple(path for part in self.parts for path in part.scan.paths)

    def stamps(self) -> tuple[Stamp, ...]:
        """The state of the files: the same before and after a read only if nobody wrote to them meanwhile.

        A statement may scan a source twice; weights of the old rows must not meet rows of the new ones.
        """
        files = [path for part in self.parts for path in part.scan.paths + part.scan.files]
        return stamps_of([*files, *self._prepared_files()])

    def _prepared_files(self) -> tuple[str, ...]:
        """A prepared file, with the log of writes that DuckDB has not put into it yet."""
        path = self.parts[0].scan.database
        return () if path is None or not self.is_prepared else (path, f"{path}.wal")

    def is_stale(self) -> bool:
        """Whether what Arrow remembers of the files is no longer what is in them."""
        scans = [part.scan for part in self.parts if part.scan.seen is not None]
        return any(scan.seen != stamps_of(scan.files) for scan in scans)

    def create(self, connection: Any) -> None:
        """Create the view."""
        names = [f"{self.name} source{f' {i}' if i else ''}" for i in range(len(self.parts))]
        queries = [part.query(connection, name) for part, name in zip(self.parts, names, strict=True)]
        connection.execute(f"CREATE VIEW {quoted(self.name)} AS {' UNION ALL '.join(queries)}")


def plan_table(
    connection: Any,
    name: str,
    located: Located,
    columns: Mapping[str, Kind],
    *,
    unit: str | None,
    pointers: Sequence[str] = (),
    raw: bool = False,
) -> Table:
    """How `name` is made from the source.

    Args:
        connection: An instance of DuckDB.
        name: What statements call it.
        located: The source.
        columns: What is declared, each with its kind.
        unit: The column of ids.
        pointers: Columns that are shown as the source has them, too.
        raw: Whether to show each column as `raw_column` too: its text, or '' for what is not text and not
            NULL. Text is then taken as a number, whatever the metadata say: for the steward to be told.

    Raises:
        SourceUnusable: if it cannot be opened, a column is missing or cannot have its kind, ids or pointers
            have types that tell no one apart, or a column is declared under a name that is kept.
    """
    _check_names(columns, located.shown)
    ids = [*([] if unit is None else [unit]), *pointers]
    origins = origins_of(connection, located, list(columns), ids, columns)
    if not raw:
        _check_numbers(origins, columns, located)
    note = origins[0].scan.note if unit is not None else None
    forms = [
        _form(
            [origin.ids[i] for origin in origins],
            id_name,
            located.shown,
            points=i >= len(ids) - len(pointers),
        )
        for i, id_name in enumerate(ids)
    ]
    collated = isinstance(located, Database)  # no other source can have a collation of its own
    shown_ids = [*([] if unit is None else [UNIT_COLUMN]), *map(pointer_column, pointers)]
    ranks: list[str] = []
    grouping: tuple[str, ...] = ()
    if note is not None:
        grouping = note.grouping(columns)
        ranks = [RANK_COLUMN, GROUP_COLUMN, PLACE_COLUMN] if grouping else [RANK_COLUMN]
    parts = []
    unread = tuple(
        public
        for place, (public, kind) in enumerate(columns.items())
        if any(_may_fail(origin.values[place], public, kind, located) for origin in origins)
    )
    for origin in origins:
        values = {
            public: (column, _value(column, public, kind, located, collated=collated))
            for (public, kind), column in zip(columns.items(), origin.values, strict=True)
        }
        select = [f"{value} AS {quoted(public)}" for public, (_, value) in values.items()]
        select += [
            f"{_is_unread(*values[public], collated=collated)} AS {quoted(unread_column(public))}"
            for public in unread
        ]
        select += [
            f"{_id(column, form, collated=collated)} AS {quoted(public)}"
            for public, form, column in zip(shown_ids, forms, origin.ids, strict=True)
        ]
        select += map(quoted, ranks)
        if raw:
            select += [
                f"{_raw(column, collated=collated)} AS {quoted(raw_column(public))}"
                for public, column in zip(columns, origin.values, strict=True)
            ]
        present = [column for column in (*origin.values, *origin.ids) if column is not None]
        inner = dict.fromkeys(quoted(column.inner) for column in present)
        parts.append(Slice(origin.scan, tuple(select) or ("NULL AS nothing",), tuple(inner)))
    exact = tuple(
        public
        for i, (public, kind) in enumerate(columns.items())
        if keeps_apart(
            {stored.own or stored.native for origin in origins if (stored := origin.values[i])}, kind
        )
    )
    shown = (*columns, *map(unread_column, unread), *shown_ids, *ranks)
    dates = _dates(origins, columns) if isinstance(located, Files) and located.format == "parquet" else ()
    return Table(
        name, tuple(parts), unit is not None, note is not None, grouping, exact, unread, shown, dates
    )


def _dates(origins: Sequence[Origin], columns: Mapping[str, Kind]) -> tuple[str, ...]:
    """The columns that are dates in all parts of a source that DuckDB scans itself."""
    if not all(origin.scan.paths and origin.scan.frame is None for origin in origins):
        return ()
    return tuple(
        public
        for place, (public, kind) in enumerate(columns.items())
        if kind == "date" and all((c := origin.values[place]) and c.native == "DATE" for origin in origins)
    )


def raw_column(name: str) -> str:
    """The name under which a table that is planned with `raw` shows a column as its source has it."""
    return f"{_RAW}{name}"


_RAW = "sfumato raw "


def _raw(column: Column | None, *, collated: bool) -> str:
    if column is None:
        return "CAST(NULL AS VARCHAR)"
    inner = _inner(column, collated=collated)
    is_text = kind_of(column.native) == "text"
    return f"CAST({inner} AS VARCHAR)" if is_text else f"CASE WHEN {inner} IS NOT NULL THEN '' END"


def _check_names(columns: Mapping[str, Kind], shown: str) -> None:
    name = next(filter(is_kept, columns), None)
    if name is None:
        return
    folded = name.casefold()
    starts = {POINTER_PREFIX: "pointers", UNREAD_PREFIX: "cells that could not be read"}
    what = _KEPT.get(folded) or next(
        (use for start, use in starts.items() if folded.startswith(start)), "what statements compute"
    )
    said = folded if folded in _KEPT else name[:100]
    raise SourceUnusable(f'{shown}: the name "{said}" is kept for {what}; rename that column.')


def _value(column: Column | None, name: str, kind: Kind, located: Located, *, collated: bool) -> str:
    """SQL for a declared column in its canonical type."""
    if column is None:
        return f"CAST(NULL AS {CANONICAL[kind]})"
    inner = _inner(column, collated=collated)
    csv = located.csv if isinstance(located, Files) else None
    sql = (csv.cast(inner, kind) if csv else None) or cast(inner, column.native, kind)
    if sql is None:
        is_now = kind_of(column.native)
        raise SourceUnusable(
            f'{located.shown}: column "{name[:100]}" cannot be read as {kind}; the source has it as {is_now}.'
        )
    return sql


def _may_fail(column: Column | None, name: str, kind: Kind, located: Located) -> bool:
    """Whether a value of the source's type may be none of the declared kind, by the types alone."""
    if column is None or kind == "text":
        return False
    value = _value(column, name, kind, located, collated=False)
    return value != _inner(column, collated=False) and not value.startswith("CAST(")


def _is_unread(column: Column | None, value: str, *, collated: bool) -> str:
    """SQL for whether a cell is there, not blank, and no value of the declared kind."""
    if column is None:
        return "FALSE"
    inner = _inner(column, collated=collated)
    there = f"{inner} IS NOT NULL"
    if kind_of(column.native) == "text":
        there = f"coalesce(trim(CAST({inner} AS VARCHAR)), '') <> ''"
    return f"({there} AND {value} IS NULL)"


def _check_numbers(origins: Sequence[Origin], columns: Mapping[str, Kind], located: Located) -> None:
    """Refuse a number that the source's own metadata have as text wherever they have it."""
    for place, (name, kind) in enumerate(columns.items()):
        stored = [column for origin in origins if (column := origin.values[place]) is not None]
        if (
            kind in _DECLARED
            and stored
            and all(kind_of(column.native) == "text" and _is_typed(column, located) for column in stored)
        ):
            raise SourceUnusable(
                f'{located.shown}: column "{name[:100]}" is declared {_DECLARED[kind]}, and the source has '
                "it as text; declare it text, or write numbers to the source."
            )


_DECLARED: dict[Kind, str] = {"integer": "int", "float": "float"}


def _is_typed(column: Column, located: Located) -> bool:
    """Whether the type of a column is the source's own word.

    Fields of CSV files, the names of folders and Python's objects are text whatever they mean.
    """
    if isinstance(located, Files) and (located.format == "csv" or column.name in located.partitions):
        return False
    return column.own != OBJECT


def _id(column: Column | None, form: str, *, collated: bool) -> str:
    """SQL for an id or a pointer in the type that all parts of the source have for it."""
    if column is None:
        return "NULL" if form in ALL_NULL else f"CAST(NULL AS {form})"
    return as_id(_inner(column, collated=collated), column.native, form)


def _inner(column: Column, *, collated: bool) -> str:
    inner = quoted(column.inner)
    if collated and column.native == "VARCHAR":
        # A collation of the file would take two ids for one: 'A' and 'a' are two people.
        inner = f'({inner} COLLATE "binary")'
    is_text = column.unchecked and column.native == "VARCHAR"  # what is not UTF-8 is NULL
    return f"TRY(decode(encode({inner})))" if is_text else inner


def _form(columns: Sequence[Column | None], name: str, shown: str, *, points: bool) -> str:
    """The type in which an id or a pointer compares, whatever part of the source it is from."""
    natives = [column.native for column in columns if column is not None]
    form = pointer_type(natives) if points else common_type(natives)
    if form is not None:
        return form
    if len(set(natives) - ALL_NULL) > 1:
        raise SourceUnusable(
            f'{shown}: column "{name[:100]}" has different types in different files, and ids would be '
            "mistaken for one another; write it as one type."
        )
    raise SourceUnusable(
        f'{shown}: the values of column "{name[:100]}" cannot be the ids of units; write them as text or '
        "whole numbers."
    )
