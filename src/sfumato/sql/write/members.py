"""Whether a row's keys are public ones, as a condition of the engine."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from sfumato.plan.questions.nodes import Key
from sfumato.sql.write.constants import constant_node
from sfumato.sql.write.typed import Typed

__all__ = ["among"]

_FEW = 16  # so many values are listed even if they are a range


def among(
    columns: Sequence[Typed], keys: Sequence[Key], combinations: Sequence[tuple[Any, ...]] | None
) -> exp.Expr:
    """True where the keys' values, given as columns, are one of the public combinations; None: of all."""
    if combinations is None:
        parts = [_one_of(column, key.values or ()) for column, key in zip(columns, keys, strict=True)]
        return exp.and_(*parts, copy=False)
    listed = [tuple(dict.fromkeys(row[i] for row in combinations)) for i in range(len(keys))]
    if any(value is None for values in listed for value in values):  # NULL equals nothing, listed or not
        parts = [_one_of_or_null(column, values) for column, values in zip(columns, listed, strict=True)]
        return exp.and_(*parts, copy=False)
    every = math.prod(map(len, listed)) == len(set(combinations))
    if every or len(keys) == 1:
        parts = [_one_of(column, values) for column, values in zip(columns, listed, strict=True)]
        return exp.and_(*parts, copy=False)
    rows = [exp.Tuple(expressions=[constant_node(value) for value in row]) for row in combinations]
    return exp.In(this=exp.Tuple(expressions=[_whole(column) for column in columns]), expressions=rows)


def _one_of_or_null(column: Typed, values: tuple[Any, ...]) -> exp.Expr:
    """A row passes whose value is listed; with several keys, also where each is listed in another group."""
    others = tuple(value for value in values if value is not None)
    missing = exp.Is(this=_whole(column.copy()), expression=exp.Null())
    if len(others) == len(values):
        return _one_of(column, values)
    return exp.paren(exp.or_(_one_of(column, others), missing, copy=False)) if others else missing


def _one_of(column: Typed, values: tuple[Any, ...]) -> exp.Expr:
    if len(values) > _FEW and _is_range(column, values):
        low, high = (constant_node(end) for end in (min(values), max(values)))
        return exp.Between(this=_whole(column), low=low, high=high)
    return exp.In(this=_whole(column), expressions=[constant_node(value) for value in values])


def _whole(column: Typed) -> exp.Expr:
    return column.sql if isinstance(column.sql, exp.Column) else exp.Paren(this=column.sql)


def _is_range(column: Typed, values: tuple[Any, ...]) -> bool:
    """Whether a value of the column's type between the least and greatest is always one of these."""
    if column.kind == "date" and all(isinstance(value, datetime.date) for value in values):
        return bool((max(values) - min(values)).days + 1 == len(values))
    if column.kind == "integer" and all(isinstance(value, int) for value in values):
        return bool(max(values) - min(values) + 1 == len(values))
    return False
