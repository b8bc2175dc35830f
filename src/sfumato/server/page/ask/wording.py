"""A question that was put together by choosing, and the SQL that asks it.

Names are written as every message of this package writes them (`in_sql`), constants by their declared type;
nothing that somebody typed becomes SQL in any other way.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sfumato._dataclasses import dataclass
from sfumato.plan.expressions.names import in_sql, unused
from sfumato.schema import PrivateTable

__all__ = [
    "LENGTHS",
    "OPERATORS",
    "STATISTICS",
    "Choice",
    "Condition",
    "Figure",
    "Group",
    "Number",
]

Constant: TypeAlias = "str | Number | datetime.date | datetime.time"

STATISTICS: Mapping[str, tuple[str, str, str]] = {
    "rows": ("number of rows", "COUNT(*)", "rows"),
    "people": ("number of people", "COUNT(DISTINCT {0})", "people"),
    "sum": ("sum of", "SUM({0})", "total_{0}"),
    "mean": ("average of", "AVG({0})", "average_{0}"),
    "median": ("median of", "MEDIAN({0})", "median_{0}"),
    "min": ("least of", "MIN({0})", "least_{0}"),
    "max": ("greatest of", "MAX({0})", "greatest_{0}"),
    "std": ("spread (standard deviation) of", "STDDEV({0})", "spread_{0}"),
}
"""What can be computed: in words, in SQL, and what the result is called."""
OPERATORS: Mapping[str, tuple[str, str]] = {
    "eq": ("is", "{0} = {1}"),
    "ne": ("is not", "{0} <> {1}"),
    "lt": ("is below", "{0} < {1}"),
    "le": ("is at most", "{0} <= {1}"),
    "ge": ("is at least", "{0} >= {1}"),
    "gt": ("is above", "{0} > {1}"),
    "starts": ("begins with", "STARTS_WITH({0}, {1})"),
    "contains": ("contains", "CONTAINS({0}, {1})"),
    "true": ("is true", "{0}"),
    "false": ("is false", "NOT {0}"),
    "missing": ("is missing", "{0} IS NULL"),
    "present": ("is there", "{0} IS NOT NULL"),
}
"""What rows can be held against: in words and in SQL."""
_FEW = 3  # columns that are written on one line, and no more
LENGTHS = ("year", "quarter", "month", "week", "day", "hour")
"""Into which stretches times can be put."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was typed, in digits."""

    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """What is computed: a key of `STATISTICS`, of which column, within which limits of the question's own."""

    statistic: str
    column: str | None = None
    limits: tuple[Number, Number] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """By what: a column, or the year, month, … of one."""

    column: str
    length: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """Which rows: a column, a key of `OPERATORS`, and what it is held against, where that takes something."""

    column: str
    operator: str
    value: Constant | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A question.

    Attributes:
        table: About whose rows.
        figures: What is computed of them, at least one.
        groups: One line of the answer for each of these.
        conditions: What the rows satisfy, all of it.
        order: The place of the column of the answer by which it is sorted, and whether from the top.
        limit: How many lines are kept, at most.
    """

    table: PrivateTable
    figures: tuple[Figure, ...]
    groups: tuple[Group, ...] = ()
    conditions: tuple[Condition, ...] = ()
    order: tuple[int, bool] | None = None
    limit: int | None = None

    @property
    def names(self) -> list[str]:
        """What the columns of the answer are called, no two alike, nor like another column of the table."""
        taken = {name.lower(): 1 for name in self.table.schema}
        parts = [self._name(group, taken) for group in self.groups]
        figures = [
            unused(STATISTICS[figure.statistic][2].format(figure.column), taken) for figure in self.figures
        ]
        return [*parts, *figures]

    @staticmethod
    def _name(group: Group, taken: dict[str, int]) -> str:
        if group.length:
            return unused(f"{group.column}_{group.length}", taken)
        # ORDER BY "all" is read as ORDER BY ALL: the quotes are lost on the way.
        return unused(group.column, taken) if group.column.lower() == "all" else group.column

    def words(self) -> str:
        """The question in plain words."""
        figures = [
            STATISTICS[one.statistic][0] + ("" if one.column is None else f" {one.column}")
            for one in self.figures
        ]
        text = f"The {_and(figures)} in {self.table.name}"
        if self.conditions:
            text += f", of rows where {_and([_said(one) for one in self.conditions])}"
        if self.groups:
            each = [f"{one.length} of {one.column}" if one.length else one.column for one in self.groups]
            text += f", for each {_and(each)}"
        return text + "."

    def sql(self) -> str:
        """The same as text."""
        names, keys = self.names, [_group(group) for group in self.groups]
        asked = [*keys, *(self._figure(figure) for figure in self.figures)]
        shown = [
            text if text == in_sql(name) else f"{text} AS {in_sql(name)}"
            for text, name in zip(asked, names, strict=True)
        ]
        between = ", " if len(shown) < _FEW else ",\n  "
        lines = [f"SELECT {between.join(shown)}", f"FROM {in_sql(self.table.name)}"]
        if self.conditions:
            lines.append("WHERE " + "\n  AND ".join(_condition(one) for one in self.conditions))
        if keys:
            lines.append(f"GROUP BY {', '.join(keys)}")
            if self.order is not None:
                place, down = self.order
                lines.append(f"ORDER BY {in_sql(names[place])}{' DESC' if down else ''}")
            if self.limit is not None:
                lines.append(f"LIMIT {self.limit}")
        return "\n".join(lines)

    def _figure(self, figure: Figure) -> str:
        column = self.table.unit.column if figure.statistic == "people" else figure.column
        over = "" if column is None else in_sql(column)
        if figure.limits is not None:
            low, high = (_constant(end) for end in figure.limits)
            over = f"CASE WHEN {over} IS NULL THEN NULL ELSE LEAST(GREATEST({over}, {low}), {high}) END"
        return STATISTICS[figure.statistic][1].format(over)


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _said(condition: Condition) -> str:
    value = condition.value.text if isinstance(condition.value, Number) else condition.value
    said = f"{condition.column} {OPERATORS[condition.operator][0]}"
    return said if value is None else f"{said} {value}"


def _group(group: Group) -> str:
    name = in_sql(group.column)
    return f"DATE_TRUNC('{group.length}', {name})" if group.length else name


def _condition(condition: Condition) -> str:
    value = "" if condition.value is None else _constant(condition.value)
    return OPERATORS[condition.operator][1].format(in_sql(condition.column), value)


def _constant(value: Constant) -> str:
    """A constant as SQL writes it."""
    match value:
        case Number():
            return value.text
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case datetime.time():
            return f"TIME '{value.isoformat()}'"
