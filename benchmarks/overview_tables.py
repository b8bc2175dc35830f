"""How rows of the results become tables of docs/benchmarks.md.

A subject has tables. Each begins at a row that is named by its case and who it is about, and takes all rows
up to where the next one begins. So no row of a peer gets lost: only rows without its values are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.harness import seconds, times

Row = dict[str, Any]
NOTHING = "–"


def number(value: float, digits: int = 3) -> str:
    """So many digits, or all digits before the point."""
    if value and not 1e-3 <= abs(value) < 1e12:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head, and what it says of a row, or None where the row says nothing."""

    head: str
    of: Callable[[Row], str | None]


def column(key: str, head: str, shown: Callable[[Any], str]) -> Column:
    def cell(row: Row) -> str | None:
        value = row.get(key)
        return None if value is None else shown(value)

    return Column(head, cell)


def took(key: str = "wall_seconds", head: str = "time") -> Column:
    return column(key, head, seconds)


def ratio(key: str, head: str) -> Column:
    return column(key, head, times)


def value(key: str, head: str) -> Column:
    return column(key, head, number)


def mean(key: str, head: str) -> Column:
    return column(key, head, lambda found: number(fmean(found)))


def place(key: str, index: int, head: str) -> Column:
    """One of several values: of an epsilon, or of a level. What has no epsilon says the same for all."""
    return column(key, head, lambda found: number(found[index] if isinstance(found, list) else found, 4))


def at_each(key: str, names: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(place(key, index, name) for index, name in enumerate(names))


def each(parts: str, head: str) -> Column:
    """Time of one of the things that were made in a call."""
    return Column(head, lambda row: seconds(row["wall_seconds"] / row[parts]) if parts in row else None)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows from `first` (case and who) on, with what each column says of them; without columns none is shown.

    `again`: it begins where its first row comes for the second time, after it was in the table before.
    """

    title: str
    first: tuple[str, str]
    columns: Sequence[Column]
    again: bool = False

    def begins(self, row: Row, before: Sequence[Row]) -> bool:
        """Whether the table begins at the row, after the rows of the table before it."""
        if (row["case"], row["who"]) != self.first:
            return False
        return not self.again or self.first in {(earlier["case"], earlier["who"]) for earlier in before}


@dataclass(frozen=True, slots=True)
class Subject:
    """How a subject is shown. One without tables has only rows of its own, which its figures sum up."""

    title: str
    note: str = ""
    tables: tuple[Table, ...] = ()


def split(subject: str, rows: Sequence[Row], tables: Sequence[Table]) -> list[list[Row]]:
    """The rows of each table.

    Raises:
        ValueError: if no row begins a table.
    """
    found: list[list[Row]] = []
    for row in rows:
        if len(found) < len(tables) and tables[len(found)].begins(row, found[-1] if found else []):
            found.append([])
        if found and row["case"] != "version":
            found[-1].append(row)
    if len(found) < len(tables):
        missing = tables[len(found)]
        raise ValueError(f"{subject}: no row begins the table {missing.title!r}: {missing.first}.")
    return found


def cells(row: Row, table: Table) -> list[str] | None:
    """What a line of the table says; None if the row has none of its values."""
    said = [column.of(row) for column in table.columns]
    if row.get("installed") is False:
        said[0] = "not installed"
    if not any(said):
        return None
    return [row["case"], row["who"], *(cell or NOTHING for cell in said)]


TIME, CPU = took(), took("cpu_seconds", "CPU")
