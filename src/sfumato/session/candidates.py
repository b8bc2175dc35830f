"""The values that a choice is made among: public ones, and refusals in its own words."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable
from typing import Any

from sfumato.errors import InvalidParameter, QueryRefused
from sfumato.plan.questions.terms import Col
from sfumato.schema import Keys, PrivateTable
from sfumato.session.release import Release

__all__ = ["check_kinds", "listed_values", "not_public"]

_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "integer": (int, "[1, 2]"),
    "float": ((int, float), "[0.5, 1]"),
    "text": (str, "['a', 'b']"),
    "boolean": (bool, "[True, False]"),
    "date": ((str, datetime.date), "['2024-01-31']"),
    "timestamp": ((str, datetime.date), "['2024-01-31 08:30:00']"),
    "time": ((str, datetime.time), "['08:30']"),
}


def not_public(column: str | Col) -> QueryRefused:
    """The refusal of a column whose values nobody has listed."""
    name = column if isinstance(column, str) else "this expression"
    return QueryRefused(
        f"The values of {name} are not public, and to choose among those that the data have would show "
        "who is in it.",
        f"List them: among=['a', 'b'], or buy them first: among=s.sql('SELECT {name}, COUNT(*) …')"
        ".release(…).",
    )


def check_kinds(table: PrivateTable, column: str | Col, listed: str | Col | Keys) -> None:
    """Refuse, in words of choices, values of another kind than the column's, and columns without a list."""
    declared = table.schema.get(column) if isinstance(column, str) else None
    if declared is None:
        return
    if not isinstance(listed, Keys):
        raise not_public(column)
    wanted, such = _KINDS.get(declared.kind, (object, ""))
    values = [value for row in listed.rows for value in row]
    if not all(isinstance(value, wanted) for value in values):
        raise QueryRefused(
            f"Some values of among are of another kind than {column}, which is declared {declared.kind}.",
            f"Give values such as among={such}.",
        )


def listed_values(column: str, among: Iterable[Any] | Release) -> Keys:
    """The candidates: a public list, or what a release shows."""
    if isinstance(among, Release):
        if column not in among.table.column_names:
            raise InvalidParameter(f"This release has no column {column!r} to choose from.")
        among = among.table[column].to_pylist()
    if isinstance(among, str | bytes) or not isinstance(among, Iterable):
        raise InvalidParameter("among must be a list of values, or a release with the column in it.")
    values = [value for value in among if value is not None]
    if not values or not all(isinstance(value, Hashable) for value in values):
        raise InvalidParameter("among must be a list of one or more single values, such as ['a', 'b'].")
    return Keys(**{column: values})
