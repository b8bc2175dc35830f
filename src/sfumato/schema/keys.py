"""Public group keys as a value."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from sfumato._dataclasses import dataclass
from sfumato.errors import InvalidParameter
from sfumato.schema._assign import assign

__all__ = ["Keys"]


@dataclass(frozen=True, slots=True, init=False)
class Keys:
    """Public group keys as a value: for each column its list, or explicit combinations.

    `Keys(city=["Lyon", "Nice"])` is every listed value, several columns give every combination;
    `Keys.of(("city", "sex"), [("Lyon", "F"), …])` is just those.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __init__(self, **values: Iterable[Any]) -> None:
        if not values:
            raise InvalidParameter('Keys takes columns with their values: Keys(city=["Lyon", "Nice"]).')
        lists = [tuple(column) for column in values.values()]
        assign(self, columns=tuple(values), rows=_distinct(itertools.product(*lists)))

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Keys:
        """Just these combinations."""
        keys = cls.__new__(cls)
        listed = [tuple(row) for row in rows]
        if any(len(row) != len(columns) for row in listed):
            raise InvalidParameter("Keys.of: every row must have one value for each column.")
        assign(keys, columns=tuple(columns), rows=_distinct(listed))
        return keys


def _distinct(rows: Iterable[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    unique = tuple(dict.fromkeys(rows))
    if not unique:
        raise InvalidParameter("Keys: a list of values is empty.")
    return unique
