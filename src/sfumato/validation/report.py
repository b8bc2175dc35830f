"""What a validation found, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sfumato._dataclasses import dataclass

__all__ = ["Change", "ColumnReport", "Lines", "TableReport", "Units", "Validation"]

LADDER = (1, 2, 3, *(step * 10**power for power in range(9) for step in (5, 10, 20)))
"""Limits that are shown: 1, 2, 3, 5, 10, 20, 50 and so on."""


@dataclass(frozen=True, slots=True)
class Change:
    """A line of sfumato.toml to change, in the section of a table: `csv` or `columns`.

    Only types, formats and columns: no value and no bound is read off the data into a file.

    Attributes:
        section: The section.
        old: The line as it is declared; None: there is none.
        new: The line to write; None: the old one is to go.
        what: For a column of another type both types, as in `text to int`; else empty.
    """

    section: str
    old: str | None
    new: str | None
    what: str = ""


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """How many values of a column fit what is declared.

    Attributes:
        name: The column.
        declared: Its type, in the catalog's words.
        rows: All rows.
        empty: Rows without a value.
        unread: Values that cannot be read as the type; a question takes them for NULL.
        outside: Values that can, and are outside the bounds or not in the list of values.
        patterns: Among those, by what they look like: how many.
    """

    name: str
    declared: str
    rows: int
    empty: int
    unread: int
    outside: int
    patterns: Mapping[str, int]

    @property
    def fitting(self) -> int:
        """Values that fit type, bounds and list."""
        return self.rows - self.empty - self.unread - self.outside


@dataclass(frozen=True, slots=True)
class Units:
    """How many rows units have, and how many groups.

    Attributes:
        column: What names the units.
        rows: By a number of rows, how many units have so many.
        unnamed: Rows that belong to no unit: no question counts them.
        alike: By a kind (blanks, case, leading zeros), how many ids are the same as another one but for it.
        groups: By column, by a number of groups, how many units are in so many; of the first columns.
        max_rows: The declared limit; None: auto.
        max_groups: The declared limit.
        ceiling: The most rows that a unit is declared, or taken, to have.
        grouped: How many columns there are to group by, counted or not.
    """

    column: str
    rows: Mapping[int, int]
    unnamed: int
    alike: Mapping[str, int]
    groups: Mapping[str, Mapping[int, int]]
    max_rows: int | None
    max_groups: int
    ceiling: int
    grouped: int

    @property
    def count(self) -> int:
        """How many units there are."""
        return sum(self.rows.values())

    def cut(self, limit: int) -> tuple[int, int]:
        """How many units have more rows than a limit, and how many rows are beyond it."""
        above = {rows: units for rows, units in self.rows.items() if rows > limit}
        return sum(above.values()), sum((rows - limit) * units for rows, units in above.items())

    def groups_cut(self, column: str, limit: int) -> tuple[int, int]:
        """The same for groups of a column: units in more groups, and their groups beyond the limit."""
        above = {groups: units for groups, units in self.groups[column].items() if groups > limit}
        return sum(above.values()), sum((groups - limit) * units for groups, units in above.items())


@dataclass(frozen=True, slots=True)
class Lines:
    """What a CSV file shows when it is read as text, before any type.

    Attributes:
        records: How many records it has beside the header.
        uneven: How many have another number of fields than there are columns: they are left out.
        broken: How many lines are not UTF-8: their rows are left out.
        encoding: What such lines could be in.
        first: The number of the first line that is left out.
        file: The file that it is in, of several.
    """

    records: int
    uneven: int = 0
    broken: int = 0
    encoding: str = ""
    first: int | None = None
    file: str = ""


@dataclass(frozen=True, slots=True)
class TableReport:
    """One table: what was read and what was found."""

    name: str
    source: str
    rows: int
    columns: tuple[ColumnReport, ...]
    units: Units | None
    lines: Lines | None
    findings: tuple[str, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """How declarations fit the data, table by table. Print it; it is for the steward alone.

    Privacy:
        Every figure is exact and none is paid for: whoever sees it learns of single rows. Nothing of it is
        kept, and no question depends on it.
    """

    tables: tuple[TableReport, ...]

    @property
    def fits(self) -> bool:
        """Whether nothing was found."""
        return not any(table.findings for table in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        plain = {"steward_only": True, "fits": self.fits, "tables": [asdict(table) for table in self.tables]}
        for table, data in zip(self.tables, plain["tables"], strict=True):  # type: ignore[call-overload]
            if table.units is not None:
                data["units"]["count"] = table.units.count
                data["units"]["cut"] = [
                    {"limit": limit, "units": units, "rows": rows}
                    for limit in LADDER
                    if limit <= max(table.units.rows, default=0)
                    for units, rows in [table.units.cut(limit)]
                ]
        return plain

    def __str__(self) -> str:
        from sfumato.validation.words import told

        return told(self)
