"""Whether a row's keys are public ones, as a condition of the engine."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from sqlglot import exp

from sfumato.engines.dialect import Dialect
from sfumato.numeric.moments import seconds_of
from sfumato.plan.questions.nodes import Key
from sfumato.sql.write.constants import constant_node
from sfumato.sql.write.lists import is_in
from sfumato.sql.write.typed import Typed

__all__ = ["among", "is_one_of"]

_FEW = 16  # so many values are listed even if they are a range


def among(
    columns: Sequence[Typed],
    keys: Sequence[Key],
    combinations: Sequence[tuple[Any, ...]] | None,
    dialect: Dialect,
) -> exp.Expr:
    """True where the keys' values, given as columns, are one of the public combinations; None: of all."""
    if combinations is None:
        parts = [
            _one_of(column, key.values or (), dialect) for column, key in zip(columns, keys, strict=True)
        ]
        return exp.and_(*parts, copy=False)
    listed = [tuple(dict.fromkeys(map(itemgetter(i), combinations))) for i in range(len(keys))]
    if any(None in values for values in listed):  # NULL equals nothing, listed or not
        parts = [
            _one_of_or_null(column, values, dialect) for column, values in zip(columns, listed, strict=True)
        ]
        return exp.and_(*parts, copy=False)
    if len(keys) == 1 or math.prod(map(len, listed)) == len(set(combinations)):
        parts = [_one_of(column, values, dialect) for column, values in zip(columns, listed, strict=True)]
        return exp.and_(*parts, copy=False)
    return _listed(columns, combinations, dialect)


def is_one_of(columns: Sequence[Typed], groups: Sequence[tuple[Any, ...]], dialect: Dialect) -> exp.Expr:
    """Whether the keys have just the values of one of these groups, NULL among them; true or false."""
    if not groups:
        return exp.false()
    kinds: dict[tuple[bool, ...], list[tuple[Any, ...]]] = {}
    for group in groups:
        kinds.setdefault(tuple(value is None for value in group), []).append(group)
    either = []
    for missing, rows in kinds.items():
        parts: list[exp.Expr] = [
            exp.Is(this=_whole(column.copy()), expression=exp.Null())
            for column, absent in zip(columns, missing, strict=True)
            if absent
        ]
        there = [place for place, absent in enumerate(missing) if not absent]
        if there:
            shown = [[row[i] for i in there] for row in rows]
            parts.append(_listed([columns[place].copy() for place in there], shown, dialect))
        either.append(exp.paren(exp.and_(*parts, copy=False), copy=False))
    whether = exp.paren(exp.or_(*either, copy=False), copy=False)
    return exp.Coalesce(this=whether, expressions=[exp.false()])


def _listed(columns: Sequence[Typed], rows: Sequence[Sequence[Any]], dialect: Dialect) -> exp.Expr:
    """Whether the columns together have one of these rows of values, none of them NULL."""
    if len(columns) == 1 or not rows:
        return is_in(_whole(columns[0]), [row[0] for row in rows], dialect)
    listed = [exp.Tuple(expressions=[constant_node(value) for value in row]) for row in rows]
    return exp.In(this=exp.Tuple(expressions=[_whole(column) for column in columns]), expressions=listed)


def _one_of_or_null(column: Typed, values: tuple[Any, ...], dialect: Dialect) -> exp.Expr:
    """A row passes whose value is listed; with several keys, also where each is listed in another group."""
    others = tuple(value for value in values if value is not None)
    missing = exp.Is(this=_whole(column.copy()), expression=exp.Null())
    if len(others) == len(values):
        return _one_of(column, values, dialect)
    return exp.paren(exp.or_(_one_of(column, others, dialect), missing, copy=False)) if others else missing


def _one_of(column: Typed, values: tuple[Any, ...], dialect: Dialect) -> exp.Expr:
    if len(values) > _FEW and _is_range(column, values):
        low, high = (constant_node(end) for end in (min(values), max(values)))
        return exp.Between(this=_whole(column), low=low, high=high)
    return is_in(_whole(column), values, dialect)


def _whole(column: Typed) -> exp.Expr:
    return column.sql if isinstance(column.sql, exp.Column) else exp.Paren(this=column.sql)


def _is_range(column: Typed, values: tuple[Any, ...]) -> bool:
    """Whether a value of the column's type between the least and greatest is always one of these."""
    types = {*map(type, values)}
    if column.kind == "date" and types == {datetime.date}:
        return bool((max(values) - min(values)).days + 1 == len(values))
    if column.kind in ("timestamp", "time") and types in ({datetime.datetime}, {datetime.time}):
        return seconds_of(max(values)) - seconds_of(min(values)) + 1 == len(values)
    if column.kind == "integer" and types == {int}:
        return bool(max(values) - min(values) + 1 == len(values))
    return False
